"""EVALB a second time, straight from its rules and slowly: lists instead of counters, word sets instead of spans."""

from lalkit.treebank.tree import Node


def count_brackets(gold: Node, predicted: Node, deleted: set[str], equal: set[str]) -> tuple[int, int, int] | str:
    """(matched, gold, predicted) or the name of what is wrong.

    deleted: tags and labels to delete; equal: labels that are one label.
    """
    words, brackets = zip(_read(gold, deleted, equal), _read(predicted, deleted, equal))
    if not words[1]:
        return "empty"
    if len(words[0]) != len(words[1]):
        return "length"
    if words[0] != words[1]:
        return "words"
    matched, rest = 0, list(brackets[1])
    for bracket in brackets[0]:
        if bracket in rest:
            rest.remove(bracket)
            matched += 1
    return matched, len(brackets[0]), len(brackets[1])


def _read(tree: Node, deleted: set[str], equal: set[str]) -> tuple[list[str], list[tuple[str, frozenset[int]]]]:
    words, brackets = [], []

    def visit(node: Node) -> set[int]:
        if node.is_leaf:
            if node.label in deleted:
                return set()
            words.append(node.word)
            return {len(words) - 1}
        inside = set().union(*[visit(child) for child in node.children])
        label = node.label.split("-")[0].split("=")[0]
        if inside and label not in deleted:
            brackets.append(("one of the equal" if label in equal else label, frozenset(inside)))
        return inside

    visit(tree)
    return words, brackets
