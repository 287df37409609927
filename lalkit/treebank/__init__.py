"""Sentences with constituents and dependencies: read them, join both layers in one tree, write them."""

from lalkit.treebank.brackets import indent_tree, parse_tree, tree_to_sentence
from lalkit.treebank.conllu import format_conllu
from lalkit.treebank.joint import GROUP, from_joint, to_joint
from lalkit.treebank.tree import Sentence

__all__ = [
    "GROUP",
    "Sentence",
    "format_conllu",
    "from_joint",
    "indent_tree",
    "parse_tree",
    "to_joint",
    "tree_to_sentence",
]
