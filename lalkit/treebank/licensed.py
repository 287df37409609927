"""Import the Penn or the Chinese Treebank from a user's own licensed copy into a folder of ours. Nothing is downloaded.

| treebank | files | train / dev / test |
|---|---|---|
| ptb | wsj_0001.mrg ... (any folders), or one file a part | sections 02-21 / 22 / 23 |
| ctb | chtb_001.fid ... (any folders), or one file a part | articles 1-270, 440-1151 / 301-325 / 271-300 (Liu and Zhang 2017) |
| ctb-dependencies | the same | 1-815, 1001-1136 / 886-931, 1148-1151 / 816-885, 1137-1147 (Zhang and Clark 2008) |

"One file a part" means: the name of the training file contains train or 02-21, that of the others dev or 22, and test or 23.
A tree may take one line or several.

The new folder has {train,dev,test}.trees and .conllu, and joint.csv: how many constituents the joint form can represent.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from lalkit.errors import CorpusError, TreebankError
from lalkit.files import write_json, write_text
from lalkit.treebank import brackets
from lalkit.treebank.conllu import format_conllu
from lalkit.treebank.corpora import SPLITS, NumberedTree, Source, pair
from lalkit.treebank.head_words import by_chinese_rules, dependencies
from lalkit.treebank.joint import joint_constituents
from lalkit.treebank.tagging import Tagger, jackknife
from lalkit.treebank.tree import Node, Sentence, format_tree, from_flat

logger = logging.getLogger(__name__)

MARKUP = re.compile(r"\s*<[^<>]*>([^()]*</[^<>]*>)?\s*$")  # a line of markup: <S ID=3>, <DOCID>1</DOCID>
NAMES_OF_PARTS = {
    "train": re.compile(r"train|(?<!\d)0?2-21(?!\d)", re.I),
    "dev": re.compile(r"dev|valid|(?<![\d-])22(?!\d)", re.I),
    "test": re.compile(r"test|(?<![\d-])23(?!\d)", re.I),
}


@dataclass(frozen=True)
class Licensed:
    """A treebank as its owners publish it: an entry of licensed_splits.json.

    file: the pattern of the names of its files; its group is the number of the file. suffixes: of these files; empty for any.
    sections: the numbers (file number // 100) of which each must have a file. parts: split -> the first and the last file
    number of every range. sizes: how many sentences published experiments have in each split. language: of its head rules.
    """

    file: str
    suffixes: list[str]
    sections: list[int]
    parts: dict[str, list[tuple[int, int]]]
    sizes: dict[str, int]
    language: str

    def part(self, number: int) -> str | None:
        """Return the split of a file, or None if it belongs to no split."""
        splits = (split for split in SPLITS for first, last in self.parts[split] if first <= number <= last)
        return next(splits, None)


ENTRIES = json.loads(Path(__file__).with_name("licensed_splits.json").read_text(encoding="utf-8"))
TREEBANKS = {name: Licensed(**entry) for name, entry in ENTRIES.items()}
Pair = tuple[Node, Sentence]


def import_treebank(
    name: str,
    path: str | Path,
    out: str | Path,
    *,
    dependencies: Iterable[str | Path] = (),
    automatic_tags: bool = False,
    lenient: bool = False,
) -> dict[str, dict]:
    """Read a licensed treebank and write the folder `out`.

    Args:
        name: ptb, ctb or ctb-dependencies.
        path: the folder of the licensed copy.
        out: the new folder.
        dependencies: CoNLL-X files, one for each split, with train, dev or test in their names. Without them our head rules
            derive dependencies.
        automatic_tags: replace gold tags by those of a tagger: in the training part by 10-way jackknifing, in dev and test by a
            tagger that learned from the whole training part. Heads still come from the gold tags.
        lenient: leave out sentences that cannot be read, and log each; otherwise raise the first TreebankError.

    Returns:
        Counts for each split. They are also written to import.json; joint.csv has them for each sentence.

    Raises:
        CorpusError: files are missing, or it is not clear which file is which part.
        TreebankError: a sentence cannot be read, or no sentence of a part can.
    """
    if name not in TREEBANKS:
        raise CorpusError(f"there is no importer for {name!r}", remedy=f"There are those for {', '.join(TREEBANKS)}.")
    treebank = TREEBANKS[name]
    files = find(treebank, Path(path))
    gold_files = [Path(file) for file in dependencies]
    gold = _by_name(gold_files, "dependencies") if gold_files else {}
    parts, counts, rows = {}, {}, []
    for split in SPLITS:
        pairs, left_out = _read_part(treebank, files[split], gold.get(split), lenient)
        if not pairs:
            remedy = "Without --lenient, the first problem is named."
            raise TreebankError(f"no sentence of {split} can be read", where=str(path), remedy=remedy)
        parts[split] = pairs
        part_rows = [(split, s.id, len(s), len(s.constituents), len(joint_constituents(s))) for _, s in pairs]
        counts[split] = {
            "sentences": len(pairs), "left out": left_out, "published": treebank.sizes[split],
            "constituents": sum(row[3] for row in part_rows), "joint": sum(row[4] for row in part_rows),
            "sentences not joint": sum(row[3] != row[4] for row in part_rows),
        }  # fmt: skip
        rows += part_rows
        _log_counts(split, counts[split])
    if automatic_tags:
        _replace_tags(parts, counts)
    for split, pairs in parts.items():
        write_text(Path(out) / f"{split}.trees", "".join(f"{format_tree(tree)}\n" for tree, _ in pairs))
        write_text(Path(out) / f"{split}.conllu", format_conllu([sentence for _, sentence in pairs]))
    table = pd.DataFrame(rows, columns=["split", "id", "words", "constituents", "joint"])
    write_text(Path(out) / "joint.csv", table.to_csv(index=False, lineterminator="\n"))
    write_json(Path(out) / "import.json", {"treebank": name, "automatic tags": automatic_tags, **counts})
    return counts


def _log_counts(split: str, counts: dict) -> None:
    share = 100 * counts["joint"] / max(counts["constituents"], 1)
    published = counts["published"]
    note = "" if counts["sentences"] == published else f" (published experiments have {published:,})"
    logger.info(
        f"{split}: {counts['sentences']:,} sentences{note}; the joint form represents {share:.2f}% of "
        f"{counts['constituents']:,} constituents, and every constituent of all but {counts['sentences not joint']:,} sentences"
    )


# ---------------------------------------------------------------------------------------------------------- finding files


def find(treebank: Licensed, folder: Path) -> dict[str, list[Path]]:
    """Return the files of every split, in order."""
    if not folder.is_dir():
        raise CorpusError("is no folder", where=str(folder), remedy="Give the folder of your copy: --path FOLDER.")
    present = sorted(file for file in folder.rglob("*") if file.is_file() and not file.name.startswith("."))
    numbered = [file for file in present if re.match(treebank.file, file.name)]
    # A folder `bracketed` stands beside folders with the raw, segmented and tagged text of the same articles.
    if any("bracketed" in file.parts for file in numbered):
        numbered = [file for file in numbered if "bracketed" in file.parts]
    numbered = [file for file in numbered if not treebank.suffixes or file.suffix.lower() in treebank.suffixes]
    if numbered:
        return _by_number(treebank, numbered, folder)
    return {split: [file] for split, file in _by_name(present, "trees", folder).items()}


def _by_number(treebank: Licensed, files: list[Path], folder: Path) -> dict[str, list[Path]]:
    numbers: dict[int, Path] = {}
    for file in files:
        number = int(re.match(treebank.file, file.name).group(1))
        if number in numbers:
            problem = f"{numbers[number].relative_to(folder)} and {file.relative_to(folder)} are both number {number}"
            remedy = "Give the folder that has each file once (one encoding, one annotation)."
            raise CorpusError(problem, where=str(folder), remedy=remedy)
        numbers[number] = file
    missing = sorted(set(treebank.sections) - {number // 100 for number in numbers})
    if missing:
        problem = f"there is no file of section(s) {', '.join(f'{section:02d}' for section in missing)}"
        remedy = "The splits are sections 02-21, 22 and 23: give the folder that has all of them."
        raise CorpusError(problem, where=str(folder), remedy=remedy)
    parts = {split: [numbers[n] for n in sorted(numbers) if treebank.part(n) == split] for split in SPLITS}
    for split, part in parts.items():
        if not part:
            raise CorpusError(f"no file of the {split} part", where=str(folder), remedy="Is your copy complete?")
    return parts


def _by_name(files: list[Path], kind: str, folder: Path | None = None) -> dict[str, Path]:
    """Return the file of each split: the only one whose name says so. kind: trees or dependencies."""
    parts = {}
    for split in SPLITS:
        candidates = [file for file in files if NAMES_OF_PARTS[split].search(file.name)]
        if len(candidates) != 1:
            names = ", ".join(file.name for file in candidates[:4])
            problem = f"there is no file of {kind} for {split}"
            if candidates:
                problem = f"there are several files of {kind} for {split}, and one is needed: {names}"
            remedy = "A file's name must contain train, dev or test (or 02-21, 22, 23)"
            remedy += ", or be the name its owners gave it: wsj_0001.mrg, chtb_001.fid." if folder else "."
            raise CorpusError(problem, where=str(folder or "--dependencies"), remedy=remedy)
        parts[split] = candidates[0]
    return parts


# ---------------------------------------------------------------------------------------------------------- reading files


def _read_part(treebank: Licensed, files: list[Path], gold: Path | None, lenient: bool) -> tuple[list[Pair], int]:
    """Return the cleaned trees of a split with their sentences, and how many sentences were left out."""
    pairs, left_out = [], 0
    source = Source(str(gold), _read_text(gold)) if gold else None
    rules = dependencies if treebank.language == "english" else by_chinese_rules
    for item in pair(_number_trees(files), source, rules, use_sent_id=False):
        if not isinstance(item, TreebankError):
            pairs.append((brackets.clean(item[0]), item[1]))
        elif lenient:
            left_out += 1
            logger.info(f"left out: {item}")
        else:
            raise item
    return pairs, left_out


def _number_trees(files: list[Path]) -> Iterator[NumberedTree]:
    """Yield the trees of files, without the lines of markup around them. An id is the file's name and a number: wsj_0001.1."""
    for file in files:
        lines = _read_text(file).split("\n")
        text = "\n".join("" if MARKUP.match(line) else line for line in lines)
        no_trees = TreebankError("has no trees", where=str(file), remedy="Is it the bracketed annotation?")
        for number, (line, tree) in enumerate(list(brackets.scan_trees(text, str(file))) or [(1, no_trees)], 1):
            yield NumberedTree(f"{file}, line {line}", f"{file.stem}.{number}", tree)


def _read_text(file: Path) -> str:
    """Read UTF-8 or GB18030 (which includes GB2312 and GBK). Raises TreebankError if the file is in neither."""
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


# ---------------------------------------------------------------------------------------------------------- automatic tags


def _replace_tags(parts: dict[str, list[Pair]], counts: dict[str, dict]) -> None:
    """Replace the tags of all parts by automatic ones, and add to the counts what percentage of them is right."""
    gold = [(sentence.words, sentence.tags) for _, sentence in parts["train"]]
    tagger = Tagger(gold)
    for split, pairs in parts.items():
        tags = jackknife(gold) if split == "train" else (tagger(sentence.words) for _, sentence in pairs)
        parts[split] = [
            (_with_tags(tree, t), replace(s, tags=tuple(t))) for (tree, s), t in zip(pairs, tags, strict=True)
        ]
        right = sum(a == b for (_, old), (_, new) in zip(pairs, parts[split]) for a, b in zip(old.tags, new.tags))
        share = 100 * right / sum(len(s) for _, s in pairs)
        counts[split]["tags right"] = round(share, 2)
        logger.info(f"{split}: {share:.2f}% of the automatic tags are right")


def _with_tags(tree: Node, tags: Iterable[str]) -> Node:
    """Return the tree with other tags over its words."""
    waiting = iter(tags)
    return from_flat(
        [(next(waiting) if node.is_leaf else node.label, len(node.children), node.word) for node in tree.nodes()]
    )
