"""Dependencies out of constituents: the head child of a node, and heads and arc labels of a whole tree.

Every word but one depends on a word of a sibling: in each constituent, the head words of the other children depend on
the head word of the head child. So the result is one projective tree, and every constituent has one word with a head
outside, which is what a joint (simplified-HPSG) sentence asks for.

Dependencies out of constituents by the head rules of the tree's own language.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from lalkit.errors import TreebankError
from lalkit.treebank import ctb
from lalkit.treebank.arc_labels import arc_label
from lalkit.treebank.brackets import strip_function
from lalkit.treebank.head_rules import ENGLISH, HeadRules
from lalkit.treebank.text import is_chinese
from lalkit.treebank.tree import Node


def head_child(node: Node, rules: HeadRules = ENGLISH) -> int:
    """Index of the head among the children of a constituent. Function tags and indices do not matter.

    Raises TreebankError for a leaf, which has no children.
    """
    if node.is_leaf:
        raise TreebankError(f"({node.label} {node.word}) is a word: only constituents have a head child")
    if len(node.children) == 1:
        return 0
    return rules.find(strip_function(node.label), [strip_function(child.label) for child in node.children])


def dependencies(
    tree: Node, rules: HeadRules = ENGLISH, name: Callable[[Node, int, int], str] = arc_label
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Heads (1-based, 0 = root) and arc labels of the leaves of a tree. name: as `arc_label`, gives an arc its label.

    The tree is one from `brackets.clean`: without traces, function tags still on, since labels come from them
    (`arc_labels`). Each leaf counts as a word, a -NONE- too.
    """
    leaves = _Leaves(tree, rules)
    heads, labels = [0] * leaves.count, ["ROOT"] * leaves.count
    for at, node in enumerate(leaves.nodes):
        if len(node.children) < 2:
            continue
        head = leaves.head_children[at]
        governor = leaves.words[leaves.children[at][head]]
        for i, child in enumerate(leaves.children[at]):
            if i != head:
                heads[leaves.words[child]] = governor + 1
                labels[leaves.words[child]] = name(node, head, i)
    return tuple(heads), tuple(labels)


class _Leaves:
    """The nodes of a tree in pre-order with, for each, its children's positions, head child and head word (0-based).

    Positions, not nodes, are the keys, and nothing recurses: hashing or comparing a Node walks all of it.
    """

    def __init__(self, tree: Node, rules: HeadRules):
        self.nodes = list(tree.nodes())
        self.children: list[list[int]] = [[] for _ in self.nodes]
        self.starts, self.ends = [0] * len(self.nodes), [0] * len(self.nodes)  # fenceposts
        self.words, self.head_children = [0] * len(self.nodes), [0] * len(self.nodes)
        self.count = 0
        waiting: list[list[int]] = []  # [position of an open node, children still to come]
        for at, node in enumerate(self.nodes):
            if waiting:
                self.children[waiting[-1][0]].append(at)
                waiting[-1][1] -= 1
            self.starts[at] = self.words[at] = self.count
            if node.is_leaf:
                self.count += 1
            else:
                waiting.append([at, len(node.children)])
            while waiting and waiting[-1][1] == 0:
                waiting.pop()
        for at in reversed(range(len(self.nodes))):  # children before parents
            self.ends[at] = self.starts[at] + 1
            if self.children[at]:
                self.head_children[at] = head_child(self.nodes[at], rules)
                self.words[at] = self.words[self.children[at][self.head_children[at]]]
                self.ends[at] = self.ends[self.children[at][-1]]


@dataclass
class Comparison:
    """How far head rules reproduce given heads, over words and over the productions of the trees.

    productions: where the two choose another head child, as "NP -> *DT* VBD!" (* ours, ! theirs), with counts; "?"
    after the arrow marks a constituent that in the given heads has not exactly one word with its head outside.
    """

    words: int = 0
    same: int = 0
    sentences: int = 0
    productions: Counter[str] = field(default_factory=Counter)

    @property
    def accuracy(self) -> float:
        """Share of words with the same head, punctuation included (1.0 for no words)."""
        return self.same / self.words if self.words else 1.0


def compare_with(sentences: Iterable[tuple[Node, Sequence[int]]], rules: HeadRules = ENGLISH) -> Comparison:
    """Our heads against given ones. sentences: pairs of a cleaned tree and its heads (1-based, 0 = root).

    Raises TreebankError where a tree and its heads differ in length.
    """
    result = Comparison()
    for tree, given in sentences:
        ours, _ = dependencies(tree, rules)
        result.sentences += 1
        if len(ours) != len(given):
            raise TreebankError(f"{len(given)} heads for {len(ours)} words", where=f"sentence {result.sentences}")
        result.words += len(ours)
        result.same += sum(a == b for a, b in zip(ours, given))
        result.productions.update(_differences(_Leaves(tree, rules), given))
    return result


def _differences(leaves: _Leaves, given: Sequence[int]) -> Iterable[str]:
    for at, node in enumerate(leaves.nodes):
        if len(node.children) < 2:
            continue
        start, end = leaves.starts[at], leaves.ends[at]
        outward = [word for word in range(start, end) if not start < given[word] <= end]
        theirs = [i for i, child in enumerate(leaves.children[at]) for word in outward
                  if leaves.starts[child] <= word < leaves.ends[child]]  # fmt: skip
        ours = leaves.head_children[at]
        if theirs != [ours]:
            marked = [strip_function(child.label) for child in node.children]
            marked[ours] = f"*{marked[ours]}*"
            if len(theirs) == 1:
                marked[theirs[0]] += "!"
            yield f"{strip_function(node.label)} -> {'' if len(theirs) == 1 else '? '}{' '.join(marked)}"


Rules = Callable[[Node], tuple[tuple[int, ...], tuple[str, ...]]]


def by_chinese_rules(tree: Node) -> tuple[tuple[int, ...], tuple[str, ...]]:
    return dependencies(tree, ctb.CHINESE, ctb.arc_label)


def derive(tree: Node) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Heads (1-based, 0 = root) and arc labels of a cleaned tree: by the Chinese rules where the tags are the Chinese
    Treebank's, else by the English ones. Raises TreebankError for Chinese words under other tags: English rules would give
    heads without a warning, and wrong ones."""
    leaves = tree.leaves()
    tags = {leaf.label for leaf in leaves}
    if ctb.is_ctb(tags):
        return by_chinese_rules(tree)
    if 2 * sum(is_chinese(leaf.word) for leaf in leaves) > len(leaves):
        if tags <= ctb.TAGS:
            return by_chinese_rules(tree)
        strange = sorted(tags - ctb.TAGS)
        raise TreebankError(
            f"there are no head rules for Chinese with the tags {', '.join(strange[:5])}",
            remedy="Give the dependencies in a .conllu file; our rules are for the tags of the Chinese Treebank.",
        )
    return dependencies(tree)
