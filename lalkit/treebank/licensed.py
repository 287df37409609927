"""The Penn and the Chinese Treebank from a user's own licensed copy: their files found, dealt out by the standard splits, read.

| treebank | files | train / dev / test |
|---|---|---|
| ptb | wsj_0001.mrg ... (any folders), or one file a part | sections 02-21 / 22 / 23 |
| ctb | chtb_001.fid ... (any folders), or one file a part | articles 1-270, 440-1151 / 301-325 / 271-300 (Liu and Zhang 2017) |
| ctb-dependencies | the same | 1-815, 1001-1136 / 886-931, 1148-1151 / 816-885, 1137-1147 (Zhang and Clark 2008) |

One file a part: train or 02-21, dev or 22, test or 23 in its name, trees one a line or over several lines. Nothing is fetched.

A licensed treebank -> a folder of ours: {train,dev,test}.trees and .conllu, and what the joint form makes of it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from lalkit.errors import CorpusError, TreebankError
from lalkit.files import write_json, write_text
from lalkit.treebank import brackets, conllu
from lalkit.treebank.brackets import format_tree
from lalkit.treebank.conllu import format_conllu
from lalkit.treebank.corpora import SPLITS, build
from lalkit.treebank.head_words import Rules, by_chinese_rules, dependencies
from lalkit.treebank.joint import joint_constituents
from lalkit.treebank.tagging import Tagger, jackknife
from lalkit.treebank.tree import Node, Sentence

MARKUP = re.compile(r"\s*<[^<>]*>([^()]*</[^<>]*>)?\s*$")  # a line of a file's own: <S ID=3>, <DOCID>1</DOCID>
PARTS = {
    "train": re.compile(r"train|(?<!\d)0?2-21(?!\d)", re.I),
    "dev": re.compile(r"dev|valid|(?<![\d-])22(?!\d)", re.I),
    "test": re.compile(r"test|(?<![\d-])23(?!\d)", re.I),
}


@dataclass(frozen=True)
class Licensed:
    """A treebank as its owners publish it. file: the pattern of its files' names, with their number; part: number -> split, or
    None for what no split has; sizes: sentences of the splits as published; suffixes: of the files, empty for any."""

    name: str
    file: re.Pattern
    part: Callable[[int], str | None]
    sizes: tuple[int, int, int]
    rules: Rules
    suffixes: tuple[str, ...] = ()


def _ptb_part(number: int) -> str | None:
    section = number // 100
    return "train" if 2 <= section <= 21 else {22: "dev", 23: "test"}.get(section)


def _ctb_part(number: int) -> str | None:
    if number <= 270 or 440 <= number <= 1151:
        return "train"
    return "dev" if 301 <= number <= 325 else "test" if 271 <= number <= 300 else None


def _ctb_dependency_part(number: int) -> str | None:
    if number <= 815 or 1001 <= number <= 1136:
        return "train"
    if 886 <= number <= 931 or 1148 <= number <= 1151:
        return "dev"
    return "test" if 816 <= number <= 885 or 1137 <= number <= 1147 else None


TREEBANKS = {
    "ptb": Licensed("ptb", re.compile(r"wsj_(\d{4})"), _ptb_part, (39832, 1700, 2416), dependencies, (".mrg", ".parse", ".tree")),
    "ctb": Licensed("ctb", re.compile(r"chtb_(\d{3,4})"), _ctb_part, (17544, 352, 348), by_chinese_rules),
    "ctb-dependencies": Licensed(
        "ctb-dependencies", re.compile(r"chtb_(\d{3,4})"), _ctb_dependency_part, (16091, 803, 1910), by_chinese_rules
    ),
}  # fmt: skip


def read(
    name: str, path: str | Path, dependency_files: Iterable[str | Path] = ()
) -> Iterator[tuple[str, list[tuple[Node, Sentence]], list[TreebankError]]]:
    """(split, its trees and their sentences, problems) of a treebank in a folder.

    dependency_files: CoNLL-X, one file a split, told apart by their names like trees. Without them our head rules derive
    dependencies. Raises CorpusError where files are missing or could be several things.
    """
    treebank = TREEBANKS[name]
    files = find(treebank, Path(path))
    gold = _by_part([Path(file) for file in dependency_files], "dependencies") if dependency_files else {}
    for split in SPLITS:
        kept, problems = [], []
        for item in _sentences(files[split], gold.get(split), treebank.rules):
            (problems if isinstance(item, TreebankError) else kept).append(item)
        yield split, kept, problems


def _sentences(files: list[Path], gold: Path | None, rules: Rules) -> Iterator[tuple[Node, Sentence] | TreebankError]:
    """A tree and its sentence, whose id is its file and number in it; or the problem that spoils it, with its place."""
    given = conllu.scan_leniently(_text(gold), str(gold)) if gold else iter(())
    for file in files:
        for number, (line, tree) in enumerate(read_trees(file), 1):
            deps = next(given, None)
            if isinstance(tree, TreebankError):
                yield tree
            elif isinstance(deps, TreebankError):
                yield deps
            elif gold and deps is None:
                yield TreebankError(f"ends before the tree of {file}, line {line}", where=str(gold))
                return
            else:
                try:
                    sentence = build(tree, deps, f"{file.stem}.{number}", rules=rules)
                    yield brackets.clean(tree), sentence
                except TreebankError as error:
                    yield error.at(f"{file}, line {line}")
    if next(given, None) is not None:
        yield TreebankError("has more sentences than there are trees", where=str(gold))


def find(treebank: Licensed, folder: Path) -> dict[str, list[Path]]:
    """The files of every split, in order."""
    if not folder.is_dir():
        raise CorpusError("is no folder", where=str(folder), remedy="Give the folder of your copy: --path FOLDER.")
    present = sorted(file for file in folder.rglob("*") if file.is_file() and not file.name.startswith("."))
    own = [file for file in present if treebank.file.match(file.name)]
    if any("bracketed" in file.parts for file in own):  # beside it: the same articles as raw, segmented and tagged text
        own = [file for file in own if "bracketed" in file.parts]
    own = [file for file in own if not treebank.suffixes or file.suffix.lower() in treebank.suffixes]
    return _by_number(treebank, own, folder) if own else _by_part(present, "trees", folder)


def _by_number(treebank: Licensed, files: list[Path], folder: Path) -> dict[str, list[Path]]:
    numbers: dict[int, Path] = {}
    for file in files:
        number = int(treebank.file.match(file.name).group(1))
        if number in numbers:
            raise CorpusError(
                f"{numbers[number].relative_to(folder)} and {file.relative_to(folder)} are both number {number}",
                where=str(folder),
                remedy="Give the folder that has each file once (one encoding, one annotation).",
            )
        numbers[number] = file
    found: dict[str, list[Path]] = {split: [] for split in SPLITS}
    for number in sorted(numbers):
        if split := treebank.part(number):
            found[split].append(numbers[number])
    if treebank.name == "ptb":
        missing = sorted({*range(2, 24)} - {number // 100 for number in numbers})
        if missing:
            raise CorpusError(
                f"there is no file of section(s) {', '.join(f'{section:02d}' for section in missing)}",
                where=str(folder), remedy="The splits are sections 02-21, 22 and 23: give the folder that has all of them.",
            )  # fmt: skip
    empty = [split for split in SPLITS if not found[split]]
    if empty:
        raise CorpusError(f"no file of the {empty[0]} part", where=str(folder), remedy="Is your copy complete?")
    return found


def _by_part(files: list[Path], what: str, folder: Path | None = None) -> dict[str, list[Path]]:
    """One file a split, by its name."""
    found = {}
    for split in SPLITS:
        named = [file for file in files if PARTS[split].search(file.name)]
        if len(named) != 1:
            several = "several: " + ", ".join(file.name for file in named[:4]) if named else "none"
            raise CorpusError(
                f"one file of {what} is needed for {split}, and there are {several}" if named
                else f"no file of {what} is found for {split}",
                where=str(folder or "--dependencies"),
                remedy="Files are told apart by train, dev, test (or 02-21, 22, 23) in their names"
                + (", or named as their owners name them: wsj_0001.mrg, chtb_001.fid." if folder else "."),
            )  # fmt: skip
        found[split] = named if folder else named[0]
    return found


def read_trees(file: Path) -> Iterator[tuple[int, Node | TreebankError]]:
    """(line, tree) of a file of brackets; lines of markup around them are left out."""
    lines = _text(file).split("\n")
    text = "\n".join("" if MARKUP.match(line) else line for line in lines)
    found = 0
    for found, item in enumerate(brackets.scan_leniently(text, str(file)), 1):  # noqa: B007
        yield item
    if not found:
        yield 1, TreebankError("has no trees", where=str(file), remedy="Is it the bracketed annotation?")


def _text(file: Path) -> str:
    """UTF-8 or, where it is not, GB18030 (which has GB2312 and GBK in it). Raises TreebankError where it is neither."""
    try:
        return brackets.read_text(file)
    except TreebankError as error:
        if "is not utf-8" not in error.problem:
            raise
        try:
            return brackets.read_text(file, "gb18030")
        except TreebankError as other:
            raise TreebankError(
                f"is neither UTF-8 ({error.problem}) nor GB18030", where=other.where, remedy="Convert it to UTF-8."
            ) from None


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
    if name not in TREEBANKS:
        raise CorpusError(f"there is no importer for {name!r}", remedy=f"There are those for {', '.join(TREEBANKS)}.")
    parts, facts, rows = {}, {}, []
    for (split, pairs, problems), published in zip(read(name, path, dependencies), TREEBANKS[name].sizes):
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
