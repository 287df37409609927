"""Dependencies out of constituents by the head rules of the tree's own language."""

from __future__ import annotations

from collections.abc import Callable

from lalkit.errors import TreebankError
from lalkit.treebank import ctb
from lalkit.treebank.chinese import is_chinese
from lalkit.treebank.heads import dependencies
from lalkit.treebank.tree import Node

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
