"""Import the Penn or the Chinese Treebank from a user's own licensed copy into a folder of ours. Nothing is downloaded.

| treebank | files | train / dev / test |
|---|---|---|
| ptb | wsj_0001.mrg ... (any folders) | sections 02-21 / 22 / 23 |
| ctb | chtb_001.fid ... (any folders) | articles 1-270, 440-1151 / 301-325 / 271-300 (Liu and Zhang 2017) |
| ctb-dependencies | the same | 1-815, 1001-1136 / 886-931, 1148-1151 / 816-885, 1137-1147 (Zhang and Clark 2008) |

The new folder has {train,dev,test}.trees, and .conllu files with the heads of our rules. To train on other dependencies of the
same sentences, put CoNLL-X files in the place of these. A copy with one file a part, one tree a line, needs no import: name
its files train.trees, dev.trees and test.trees. `lalkit data check FOLDER` names the sentences without a joint form.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from lalkit.errors import CorpusError, TreebankError
from lalkit.files import write_text
from lalkit.treebank import brackets
from lalkit.treebank.conllu import format_conllu
from lalkit.treebank.corpora import SPLITS, build
from lalkit.treebank.head_words import CHINESE, ENGLISH, Rules, dependencies
from lalkit.treebank.tree import Node, Sentence, format_tree

logger = logging.getLogger(__name__)

MARKUP = re.compile(r"\s*<[^<>]*>([^()]*</[^<>]*>)?\s*$")  # a line of markup: <S ID=3>, <DOCID>1</DOCID>
PTB_FILE, CTB_FILE = r"wsj_(\d{4}).*\.(?i:mrg|parse|tree)$", r"chtb_(\d{3,4})"
# The head rules, the pattern of the names of the files (its group is the file's number), and the numbers of each split.
TREEBANKS = {
    "ptb": (ENGLISH, PTB_FILE, {"train": [(200, 2199)], "dev": [(2200, 2299)], "test": [(2300, 2399)]}),
    "ctb": (CHINESE, CTB_FILE, {"train": [(0, 270), (440, 1151)], "dev": [(301, 325)], "test": [(271, 300)]}),
    "ctb-dependencies": (CHINESE, CTB_FILE, {
        "train": [(0, 815), (1001, 1136)], "dev": [(886, 931), (1148, 1151)], "test": [(816, 885), (1137, 1147)],
    }),
}  # fmt: skip


def import_treebank(name: str, path: str | Path, out: str | Path, *, lenient: bool = False) -> dict[str, dict]:
    """Read a licensed treebank and write the folder `out`.

    Args:
        name: ptb, ctb or ctb-dependencies.
        path: the folder of the licensed copy.
        out: the new folder.
        lenient: leave out sentences that cannot be read, and log each; otherwise raise the first TreebankError.

    Returns:
        How many sentences each split has, and how many were left out.

    Raises:
        CorpusError: there is no importer of this name, or files are missing or there twice.
        TreebankError: a sentence cannot be read, or no sentence of a part can.
    """
    if name not in TREEBANKS:
        raise CorpusError(f"there is no importer for {name!r}", f"There are those for {', '.join(TREEBANKS)}.")
    rules, pattern, numbers = TREEBANKS[name]
    files, parts, counts = _files(Path(path), pattern), {}, {}
    if name == "ptb" and (sections := set(range(2, 24)) - {number // 100 for number in files}):
        raise CorpusError(f"there is no file of section {min(sections):02d}", "Is your copy complete?", where=str(path))
    for split in SPLITS:
        chosen = [f for n, f in sorted(files.items()) if any(first <= n <= last for first, last in numbers[split])]
        items = [item for file in chosen for item in _read(file, rules)]
        problems = [item for item in items if isinstance(item, TreebankError)]
        parts[split] = [item for item in items if not isinstance(item, TreebankError)]
        if problems and not lenient:
            raise problems[0]
        if not parts[split]:
            raise CorpusError(f"no sentence of {split} can be read", "Is your copy complete?", where=str(path))
        for problem in problems:
            logger.info(f"left out: {problem}")
        counts[split] = {"sentences": len(parts[split]), "left out": len(problems)}
        logger.info("%s: %s", split, counts[split])
    for split, pairs in parts.items():
        write_text(Path(out) / f"{split}.trees", "".join(f"{format_tree(tree)}\n" for tree, _ in pairs))
        write_text(Path(out) / f"{split}.conllu", format_conllu([sentence for _, sentence in pairs]))
    return counts


def _files(folder: Path, pattern: str) -> dict[int, Path]:
    """Return the files of a copy by their numbers. Raises CorpusError for two files of one number."""
    matched = [(file, re.match(pattern, file.name)) for file in sorted(folder.rglob("*")) if file.is_file()]
    named = [(file, int(match[1])) for file, match in matched if match]
    # A folder `bracketed` stands beside folders with the raw, segmented and tagged text of the same articles.
    named = [(file, number) for file, number in named if "bracketed" in file.parts] or named
    files: dict[int, Path] = {}
    for file, number in named:
        if number in files:
            remedy = "Give the folder that has each file once (one encoding, one annotation)."
            raise CorpusError(f"two files have the same number: {files[number]}, {file}", remedy, where=str(folder))
        files[number] = file
    return files


def _read(file: Path, rules: Rules) -> Iterator[tuple[Node, Sentence] | TreebankError]:
    """Yield the cleaned trees of a file with their sentences. An id is the file's name and a number: wsj_0001.1.

    The file is UTF-8 or GB18030 (which includes GB2312 and GBK), and may have lines of markup.
    """
    try:
        text = brackets.read_text(file)
    except TreebankError:
        text = brackets.read_text(file, "gb18030")
    text = "\n".join("" if MARKUP.match(line) else line for line in text.split("\n"))
    no_trees = TreebankError("has no trees", where=str(file), remedy="Is it the bracketed annotation?")
    for number, (line, tree) in enumerate([*brackets.scan_trees(text, str(file))] or [(1, no_trees)], 1):
        if isinstance(tree, TreebankError):
            yield tree
            continue
        try:
            sentence = build(tree, None, f"{file.stem}.{number}", rules=partial(dependencies, rules=rules))
            yield brackets.clean(tree), sentence
        except TreebankError as error:
            yield error.at(f"{file}, line {line}")
