"""A licensed treebank -> a folder of ours: {train,dev,test}.trees and .conllu, and what the joint form makes of it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from lalkit.errors import CorpusError, TreebankError
from lalkit.files import write_json, write_text
from lalkit.tagging import Tagger, jackknife
from lalkit.treebank import licensed
from lalkit.treebank.brackets import format_tree
from lalkit.treebank.conllu import format_conllu
from lalkit.treebank.joint import joint_constituents
from lalkit.treebank.tree import Node, Sentence

Pair = tuple[Node, Sentence]


def import_treebank(
    name: str,
    path: str | Path,
    out: str | Path,
    *,
    dependencies: Iterable[str | Path] = (),
    automatic_tags: bool = False,
    lenient: bool = False,
    say: Callable[[str], None] = print,
) -> dict[str, dict]:
    """Read `ptb` or `ctb` and write the folder `out`; returns, and writes to import.json, counts for each split.

    automatic_tags: the training part's by 10-way jackknifing, dev's and test's by a tagger trained on all of it; heads come
    from the gold tags all the same. lenient: leave out sentences that cannot be read, and say which; else the first raises its
    TreebankError. joint.csv says for each sentence how many of its constituents the joint form can represent.
    """
    if name not in licensed.TREEBANKS:
        raise CorpusError(
            f"there is no importer for {name!r}", remedy=f"There are those for {', '.join(licensed.TREEBANKS)}."
        )
    parts, facts, rows = {}, {}, []
    for (split, pairs, problems), published in zip(
        licensed.read(name, path, dependencies), licensed.TREEBANKS[name].sizes
    ):
        if problems and not lenient:
            raise problems[0]
        for problem in problems:
            say(f"left out: {problem}")
        if not pairs:
            raise TreebankError(f"no sentence of {split} can be read", where=str(path))
        parts[split] = pairs
        mine = [(split, s.id, len(s), len(s.constituents), joint_constituents(s)) for _, s in pairs]
        facts[split] = {
            "sentences": len(pairs), "left out": len(problems), "published": published,
            "constituents": sum(row[3] for row in mine), "joint": sum(row[4] for row in mine),
            "sentences not joint": sum(row[3] != row[4] for row in mine),
        }  # fmt: skip
        rows += mine
        say(_line(split, facts[split]))
    if automatic_tags:
        parts, accuracy = _retagged(parts, say)
        for split, share in accuracy.items():
            facts[split]["tags right"] = round(share, 2)
    for split, pairs in parts.items():
        write_text(Path(out) / f"{split}.trees", "".join(f"{format_tree(tree)}\n" for tree, _ in pairs))
        write_text(Path(out) / f"{split}.conllu", format_conllu([sentence for _, sentence in pairs]))
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows([("split", "id", "words", "constituents", "joint"), *rows])
    write_text(Path(out) / "joint.csv", table.getvalue())
    write_json(Path(out) / "import.json", {"treebank": name, "automatic tags": automatic_tags, **facts})
    return facts


def _line(split: str, facts: dict) -> str:
    share = 100 * facts["joint"] / max(facts["constituents"], 1)
    usual = "" if facts["sentences"] == facts["published"] else f" (published experiments have {facts['published']:,})"
    return (
        f"{split}: {facts['sentences']:,} sentences{usual}; the joint form represents {share:.2f}% of "
        f"{facts['constituents']:,} constituents, and all of those of all but {facts['sentences not joint']:,} sentences"
    )


def _retagged(
    parts: dict[str, list[Pair]], say: Callable[[str], None]
) -> tuple[dict[str, list[Pair]], dict[str, float]]:
    """The same with automatic tags, and how many of them are right, in percent."""
    gold = [(sentence.words, sentence.tags) for _, sentence in parts["train"]]
    tags: dict[str, Iterator[list[str]]] = {"train": jackknife(gold, say=say)}
    tagger = Tagger(gold)
    for split in ("dev", "test"):
        tags[split] = (tagger(sentence.words) for _, sentence in parts[split])
    found, accuracy = {}, {}
    for split, pairs in parts.items():
        found[split] = [(_with_tags(tree, t), replace(s, tags=t)) for (tree, s), t in zip(pairs, tags[split])]
        right = sum(a == b for (_, s), (_, t) in zip(pairs, found[split]) for a, b in zip(s.tags, t.tags, strict=True))
        accuracy[split] = 100 * right / sum(len(s) for _, s in pairs)
        say(f"{split}: {accuracy[split]:.2f}% of the automatic tags are right")
    return found, accuracy


def _with_tags(tree: Node, tags: Iterable[str]) -> Node:
    """A tree with other tags over its words."""
    waiting = iter(tags)

    def build(node: Node) -> Node:
        if node.is_leaf:
            return Node(next(waiting), word=node.word)
        return Node(node.label, tuple(map(build, node.children)))

    return build(tree)
