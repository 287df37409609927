"""Derive dependencies from constituents by head rules.

In each constituent one child is the head child. The head words of the other children depend on the head word of the head
child. So the result is one projective tree, and each constituent has exactly one word whose head is outside it. A joint tree
needs just this.
"""

from __future__ import annotations

from collections.abc import Callable

from lalkit.errors import TreebankError
from lalkit.treebank import ctb
from lalkit.treebank.arc_labels import arc_label
from lalkit.treebank.brackets import strip_function
from lalkit.treebank.head_rules import ENGLISH, HeadRules
from lalkit.treebank.text import is_chinese
from lalkit.treebank.tree import Node

Arcs = tuple[tuple[int, ...], tuple[str, ...]]  # heads (from 1; 0 is the root), arc labels
Rules = Callable[[Node], Arcs]


def derive(tree: Node) -> Arcs:
    """Return heads and arc labels of a cleaned tree, by the Chinese rules if it is Chinese, else by the English ones.

    Raises TreebankError for Chinese words with other tags than the Chinese Treebank's: English rules would give wrong heads
    without a warning.
    """
    leaves = tree.leaves()
    tags = {leaf.label for leaf in leaves}
    mostly_chinese = 2 * sum(is_chinese(leaf.word) for leaf in leaves) > len(leaves)
    if ctb.is_ctb(tags) or (mostly_chinese and tags <= ctb.TAGS):
        return by_chinese_rules(tree)
    if mostly_chinese:
        problem = f"there are no head rules for Chinese with the tags {', '.join(sorted(tags - ctb.TAGS)[:5])}"
        remedy = "Give the dependencies in a .conllu file; our rules are for the tags of the Chinese Treebank."
        raise TreebankError(problem, remedy=remedy)
    return dependencies(tree)


def by_chinese_rules(tree: Node) -> Arcs:
    return dependencies(tree, ctb.CHINESE, ctb.arc_label)


def dependencies(tree: Node, rules: HeadRules = ENGLISH, name_arc: Callable[[Node, int, int], str] = arc_label) -> Arcs:
    """Return heads and arc labels of the leaves of a tree. Every leaf counts as a word, also a trace (-NONE-).

    tree: as `brackets.clean` returns it: without traces, but with function tags, because arc labels come from them.
    name_arc: a function that gives an arc its label, such as `arc_label`.
    """
    nodes = list(tree.nodes())
    position = sum(node.is_leaf for node in nodes)
    heads, labels = [0] * position, ["ROOT"] * position
    waiting: list[int] = []  # head words (from 0) of the subtrees that have no parent yet, the leftmost last
    for node in reversed(nodes):  # children before parents; no recursion: a tree may be very deep
        if node.is_leaf:
            position -= 1
            waiting.append(position)
            continue
        head = head_child(node, rules)
        head_words = [waiting.pop() for _ in node.children]
        waiting.append(head_words[head])
        for i, word in enumerate(head_words):
            if i != head:
                heads[word] = head_words[head] + 1
                labels[word] = name_arc(node, head, i)
    return tuple(heads), tuple(labels)


def head_child(node: Node, rules: HeadRules = ENGLISH) -> int:
    """Return the index of the head among the children of a constituent. Function tags and indices do not matter.

    Raises TreebankError for a leaf, which has no children.
    """
    if node.is_leaf:
        problem = f"({node.label} {node.word}) is a word: only constituents have a head child"
        raise TreebankError(problem, remedy="Give a constituent.")
    if len(node.children) == 1:
        return 0
    return rules.find(strip_function(node.label), [strip_function(child.label) for child in node.children])
