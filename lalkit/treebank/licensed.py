"""Import the Penn or the Chinese Treebank from a user's own licensed copy into a folder of ours. Nothing is downloaded.

| treebank | files | train / dev / test |
|---|---|---|
| ptb | wsj_0001.mrg ... (any folders), or one file a part | sections 02-21 / 22 / 23 |
| ctb | chtb_001.fid ... (any folders), or one file a part | articles 1-270, 440-1151 / 301-325 / 271-300 (Liu and Zhang 2017) |
| ctb-dependencies | the same | 1-815, 1001-1136 / 886-931, 1148-1151 / 816-885, 1137-1147 (Zhang and Clark 2008) |

"One file a part" means: the name of the training file contains train or 02-21, that of the others dev or 22, and test or 23.
A tree may take one line or several.

The new folder has {train,dev,test}.trees and .conllu. `lalkit data check FOLDER` names the sentences without a joint form.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lalkit.errors import CorpusError, TreebankError
from lalkit.files import write_json, write_text
from lalkit.treebank import brackets
from lalkit.treebank.conllu import format_conllu
from lalkit.treebank.corpora import SPLITS, Source, pair
from lalkit.treebank.head_words import CHINESE, ENGLISH, Rules, dependencies
from lalkit.treebank.tree import Node, Sentence, format_tree

logger = logging.getLogger(__name__)

MARKUP = re.compile(r"\s*<[^<>]*>([^()]*</[^<>]*>)?\s*$")  # a line of markup: <S ID=3>, <DOCID>1</DOCID>
NAMES_OF_PARTS = {
    "train": re.compile(r"train|(?<!\d)0?2-21(?!\d)", re.I),
    "dev": re.compile(r"dev|valid|(?<![\d-])22(?!\d)", re.I),
    "test": re.compile(r"test|(?<![\d-])23(?!\d)", re.I),
}
Range = tuple[int, int]
Pair = tuple[Node, Sentence]


@dataclass(frozen=True)
class Licensed:
    """A treebank as its owners publish it.

    rules: the head rules of its language. file: the pattern of the names of its files; its group is the number of the file.
    train, dev, test: the first and the last file number of every range. published: how many sentences published experiments
    have in the three splits. sections: the numbers (file number // 100) of which each must have a file.
    """

    rules: Rules
    file: str
    train: tuple[Range, ...]
    dev: tuple[Range, ...]
    test: tuple[Range, ...]
    published: tuple[int, int, int]
    sections: range = range(0)

    def part(self, number: int) -> str | None:
        """Return the split of a file, or None if it belongs to no split."""
        inside = (split for split in SPLITS for first, last in getattr(self, split) if first <= number <= last)
        return next(inside, None)


CTB_FILE = r"chtb_(\d{3,4})"
TREEBANKS = {
    "ptb": Licensed(
        ENGLISH, r"wsj_(\d{4}).*\.(?i:mrg|parse|tree)$", ((200, 2199),), ((2200, 2299),), ((2300, 2399),),
        (39832, 1700, 2416), range(2, 24),
    ),
    "ctb": Licensed(CHINESE, CTB_FILE, ((0, 270), (440, 1151)), ((301, 325),), ((271, 300),), (17544, 352, 348)),
    "ctb-dependencies": Licensed(
        CHINESE, CTB_FILE, ((0, 815), (1001, 1136)), ((886, 931), (1148, 1151)), ((816, 885), (1137, 1147)),
        (16091, 803, 1910),
    ),
}  # fmt: skip


def import_treebank(
    name: str, path: str | Path, out: str | Path, *, dependencies: Iterable[str | Path] = (), lenient: bool = False
) -> dict[str, dict]:
    """Read a licensed treebank and write the folder `out`.

    Args:
        name: ptb, ctb or ctb-dependencies.
        path: the folder of the licensed copy.
        out: the new folder.
        dependencies: CoNLL-X files, one for each split, with train, dev or test in their names. Without them our head rules
            derive dependencies.
        lenient: leave out sentences that cannot be read, and log each; otherwise raise the first TreebankError.

    Returns:
        Counts for each split. They are also written to import.json.

    Raises:
        CorpusError: files are missing, or it is not clear which file is which part.
        TreebankError: a sentence cannot be read, or no sentence of a part can.
    """
    if name not in TREEBANKS:
        raise CorpusError(f"there is no importer for {name!r}", f"There are those for {', '.join(TREEBANKS)}.")
    treebank, given = TREEBANKS[name], [Path(file) for file in dependencies]
    files, gold = find(treebank, Path(path)), _by_name(given, "--dependencies") if given else {}
    parts, counts = {}, {}
    for split, published in zip(SPLITS, treebank.published):
        parts[split], left_out = _read_part(treebank, files[split], gold.get(split), lenient)
        if not parts[split]:
            problem = f"no sentence of {split} can be read"
            raise TreebankError(problem, "Without --lenient, the first problem is named.", where=str(path))
        counts[split] = {"sentences": len(parts[split]), "left out": left_out, "published": published}
        logger.info(f"{split}: {len(parts[split]):,} sentences (published experiments have {published:,})")
    for split, pairs in parts.items():
        write_text(Path(out) / f"{split}.trees", "".join(f"{format_tree(tree)}\n" for tree, _ in pairs))
        write_text(Path(out) / f"{split}.conllu", format_conllu([sentence for _, sentence in pairs]))
    write_json(Path(out) / "import.json", {"treebank": name, **counts})
    return counts


# ---------------------------------------------------------------------------------------------------------- finding files


def find(treebank: Licensed, folder: Path) -> dict[str, list[Path]]:
    """Return the files of every split, in order."""
    present = sorted(file for file in folder.rglob("*") if file.is_file() and not file.name.startswith("."))
    named = [file for file in present if re.match(treebank.file, file.name)]
    if not named:
        return {split: [file] for split, file in _by_name(present, str(folder)).items()}
    # A folder `bracketed` stands beside folders with the raw, segmented and tagged text of the same articles.
    named = [file for file in named if "bracketed" in file.parts] or named
    numbers = [int(re.match(treebank.file, file.name).group(1)) for file in named]
    if twice := [str(file) for file, n in zip(named, numbers) if numbers.count(n) > 1]:
        remedy = "Give the folder that has each file once (one encoding, one annotation)."
        raise CorpusError(f"files have the same number: {', '.join(twice[:4])}", remedy, where=str(folder))
    parts = {split: [f for n, f in sorted(zip(numbers, named)) if treebank.part(n) == split] for split in SPLITS}
    lacking = [f"section {n:02d}" for n in treebank.sections if n not in {number // 100 for number in numbers}]
    if lacking := lacking or [split for split in SPLITS if not parts[split]]:
        raise CorpusError(f"there is no file of {lacking[0]}", "Is your copy complete?", where=str(folder))
    return parts


def _by_name(files: Sequence[Path], where: str) -> dict[str, Path]:
    """Return the file of each split: the only one whose name says so."""
    parts = {}
    for split, pattern in NAMES_OF_PARTS.items():
        candidates = [file for file in files if pattern.search(file.name)]
        if len(candidates) != 1:
            problem = f"one file is needed for {split}, and there are {len(candidates)}"
            remedy = f"Its name must contain {split}. Or the names are those of the owners: wsj_0001.mrg, chtb_001.fid."
            raise CorpusError(problem, remedy, where=where)
        parts[split] = candidates[0]
    return parts


# ---------------------------------------------------------------------------------------------------------- reading files


def _read_part(treebank: Licensed, files: list[Path], gold: Path | None, lenient: bool) -> tuple[list[Pair], int]:
    """Return the cleaned trees of a split with their sentences, and how many sentences were left out."""
    pairs, left_out = [], 0
    source = Source(str(gold), _read_text(gold)) if gold else None
    for item in pair(_number_trees(files), source, partial(dependencies, rules=treebank.rules), use_sent_id=False):
        if not isinstance(item, TreebankError):
            pairs.append((brackets.clean(item[0]), item[1]))
        elif lenient:
            left_out += 1
            logger.info(f"left out: {item}")
        else:
            raise item
    return pairs, left_out


def _number_trees(files: list[Path]) -> Iterator[tuple[str, str, Node | TreebankError]]:
    """Yield the trees of files, without the lines of markup around them. An id is the file's name and a number: wsj_0001.1."""
    for file in files:
        lines = _read_text(file).split("\n")
        text = "\n".join("" if MARKUP.match(line) else line for line in lines)
        no_trees = TreebankError("has no trees", where=str(file), remedy="Is it the bracketed annotation?")
        for number, (line, tree) in enumerate(list(brackets.scan_trees(text, str(file))) or [(1, no_trees)], 1):
            yield f"{file}, line {line}", f"{file.stem}.{number}", tree


def _read_text(file: Path) -> str:
    """Read UTF-8 or GB18030 (which includes GB2312 and GBK). Raises TreebankError if the file is in neither."""
    try:
        return brackets.read_text(file)
    except TreebankError:
        return brackets.read_text(file, "gb18030")
