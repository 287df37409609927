"""CoNLL-U and CoNLL-X dependencies in and out (ten tab-separated columns; the NLTK sample's three are read too)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lalkit.errors import TreebankError
from lalkit.treebank.brackets import read_text, unescape
from lalkit.treebank.tree import Sentence, check_heads


@dataclass(frozen=True)
class Dependencies:
    """One sentence of a dependency file; nothing is checked but the form. heads are 1-based, 0 = root."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    heads: tuple[int, ...]
    labels: tuple[str, ...] | None
    line: int
    comments: dict[str, str] = field(default_factory=dict)

    def check(self) -> "Dependencies":
        """Raises TreebankError unless the heads are one projective tree."""
        check_heads(self.heads)
        return self


def scan_conll(text: str, place: str = "") -> Iterator[Dependencies]:
    """Sentences of a CoNLL-U, CoNLL-X or three-column text. Multi-word ranges (3-4) and empty nodes (3.1) are left out.

    The tag is the fifth column (XPOS) or, where that is '_', the fourth. Raises TreebankError naming line and sentence.
    """
    for item in scan_leniently(text, place):
        if isinstance(item, TreebankError):
            raise item
        yield item


def scan_leniently(text: str, place: str = "") -> Iterator[Dependencies | TreebankError]:
    """Like `scan_conll`, but a malformed sentence comes back as its error."""
    rows, comments, start, number = [], {}, 1, 0
    # Only \n ends a line: str.splitlines would also cut at U+2028 and U+0085 inside a word.
    for line_number, line in enumerate([*text.split("\n"), ""], 1):
        line = line.rstrip("\r")
        if line.startswith("#") and not rows and "\t" not in line:
            key, _, value = line[1:].partition("=")
            comments[key.strip()] = value.strip()
        elif line.strip(" \t"):
            if not rows:
                start = line_number
            rows.append((line_number, line.split("\t")))
        elif rows:
            number += 1
            where = f"{place + ', ' if place else ''}line {start}, sentence {number}"
            try:
                yield _read_rows(rows, start, comments)
            except TreebankError as error:
                yield error.at(where)
            rows, comments = [], {}


def _read_rows(rows: list[tuple[int, list[str]]], start: int, comments: dict[str, str]) -> Dependencies:
    words, tags, heads, labels = [], [], [], []
    for line, columns in rows:
        short = len(columns) == 3
        if not short and len(columns) < 8:
            raise TreebankError(
                f"line {line} has {len(columns)} columns",
                remedy="CoNLL-U has ten columns separated by tabs, not spaces.",
            )
        if not short and ("-" in columns[0] or "." in columns[0]):
            continue
        if not short and columns[0] != str(len(words) + 1):
            raise TreebankError(f"line {line} is numbered {columns[0]!r} instead of {len(words) + 1}")
        word, head = (columns[0], columns[2]) if short else (columns[1], columns[6])
        if not head.isascii() or not head.isdigit():
            raise TreebankError(f"line {line}: the head of {word!r} is {head!r}, not a number")
        words.append(word)
        tags.append(columns[1] if short else columns[4] if columns[4] != "_" else columns[3])
        heads.append(int(head))
        labels.append(None if short else columns[7])
    return Dependencies(
        tuple(words), tuple(tags), tuple(heads), None if None in labels else tuple(labels), start, comments
    )


def read_conll(path: str | Path, encoding: str = "utf-8") -> Iterator[Dependencies]:
    """The sentences of a dependency file, as `scan_conll`."""
    return scan_conll(read_text(path, encoding), str(path))


def format_conllu(sentences: Iterable[Sentence], comments: Iterable[dict[str, str]] | None = None) -> str:
    """CoNLL-U text. Tags go to XPOS; UPOS, lemma and features are '_' because lalkit does not know them."""
    blocks = []
    for sentence, extra in zip(sentences, comments if comments is not None else iter(dict, None)):
        if sentence.heads is None:
            raise TreebankError("this sentence has no dependencies to write", where=sentence.id)
        lines = [f"# sent_id = {sentence.id}"] if sentence.id else []
        lines += [f"# {key} = {value}" for key, value in extra.items()]
        labels = sentence.arc_labels or ("_",) * len(sentence)
        tags = sentence.tags or ("_",) * len(sentence)
        for i, word in enumerate(sentence.words):
            row = (i + 1, unescape(word), "_", "_", tags[i], "_", sentence.heads[i], labels[i], "_", "_")
            lines.append("\t".join(map(str, row)))
        blocks.append("\n".join(lines) + "\n\n")
    return "".join(blocks)
