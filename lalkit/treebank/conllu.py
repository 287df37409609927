"""Read and write dependencies as CoNLL-U and CoNLL-X: a word a line, ten columns separated by tabs.

The three columns of NLTK's sample (word, tag, head) can be read too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat

from lalkit.errors import TreebankError
from lalkit.treebank.brackets import unescape
from lalkit.treebank.tree import Sentence

MOST_DIGITS = 9  # of a word's number


@dataclass(frozen=True)
class Dependencies:
    """One sentence of a dependency file. Only its form is checked. heads count from 1; 0 is the root."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    heads: tuple[int, ...]
    labels: tuple[str, ...] | None
    line: int
    comments: dict[str, str] = field(default_factory=dict)


def scan_conll(text: str, place: str = "") -> Iterator[Dependencies | TreebankError]:
    """Yield the sentences of a text; a malformed sentence gives its error, which names line and sentence.

    Multi-word ranges (3-4) and empty nodes (3.1) are left out. The tag is the fifth column (XPOS) or, if that is '_', the fourth.
    place: the name of the file, for error messages.
    """
    rows: list[tuple[int, list[str]]] = []  # line number, columns
    comments: dict[str, str] = {}
    number = 0
    # Only \n ends a line: str.splitlines would also cut at U+2028 and U+0085 inside a word.
    for line_number, line in enumerate([*text.split("\n"), ""], 1):
        line = line.rstrip("\r")
        if line.startswith("#") and not rows and "\t" not in line:
            key, _, value = line[1:].partition("=")
            comments[key.strip()] = value.strip()
        elif line.strip(" \t"):
            rows.append((line_number, line.split("\t")))
        elif rows:
            number += 1
            try:
                yield _read_rows(rows, comments)
            except TreebankError as error:
                yield error.at(f"{place + ', ' if place else ''}line {rows[0][0]}, sentence {number}")
            rows, comments = [], {}


def _read_rows(rows: list[tuple[int, list[str]]], comments: dict[str, str]) -> Dependencies:
    words: list[tuple[str, str, int, str | None]] = []  # word, tag, head, label
    for line, columns in rows:
        if len(columns) == 3:
            (word, tag, head), label = columns, None
        elif len(columns) < 8:
            remedy = "CoNLL-U has ten columns separated by tabs, not spaces."
            raise TreebankError(f"line {line} has {len(columns)} columns", remedy=remedy)
        elif "-" in columns[0] or "." in columns[0]:
            continue
        elif columns[0] != str(len(words) + 1):
            problem = f"line {line} is numbered {columns[0]!r} instead of {len(words) + 1}"
            raise TreebankError(problem, remedy="Number the words of a sentence from 1, and end it with an empty line.")
        else:
            _, word, _, coarse_tag, tag, _, head, label = columns[:8]
            tag = coarse_tag if tag == "_" else tag
        if not head.isascii() or not head.isdigit() or len(head) > MOST_DIGITS:
            problem = f"line {line}: the head of {word!r} is {head[:40]!r}, not the number of a word"
            raise TreebankError(problem, remedy="Give the number of the head word in the sentence, or 0 for the root.")
        words.append((word, tag, int(head), label))
    forms, tags, heads, labels = zip(*words) if words else ((), (), (), ())
    return Dependencies(forms, tags, heads, None if None in labels else labels, rows[0][0], comments)


def format_conllu(
    sentences: Iterable[Sentence], notes: Iterable[tuple[Sequence[str], Sequence[str]]] | None = None
) -> str:
    """Write CoNLL-U text. Tags go to XPOS; UPOS, lemma and features are '_' because lalkit does not know them.

    notes: for each sentence, comments and the last column (MISC) of every word; None for none.
    """
    blocks = []
    for sentence, (comments, last) in zip(sentences, repeat(((), ())) if notes is None else notes):
        if sentence.heads is None:
            remedy = "Write its tree in brackets, or parse it with a parser that gives dependencies."
            raise TreebankError("this sentence has no dependencies to write", where=sentence.id, remedy=remedy)
        name = " ".join(sentence.id.splitlines())  # the name of a file can contain a line end
        lines = [f"# sent_id = {name}"] if name else []
        lines += [f"# {comment}" for comment in comments]
        blank = ("_",) * len(sentence)
        columns = (sentence.words, sentence.tags or blank, sentence.heads, sentence.arc_labels or blank, last or blank)
        for i, (word, tag, head, label, misc) in enumerate(zip(*columns), 1):
            lines.append(f"{i}\t{unescape(word)}\t_\t_\t{tag}\t_\t{head}\t{label}\t_\t{misc}")
        blocks.append("\n".join(lines) + "\n\n")
    return "".join(blocks)
