"""Read and write dependencies as CoNLL-U and CoNLL-X: a word a line, ten columns separated by tabs.

The three columns of NLTK's sample (word, tag, head) can be read too.

This file also has the conventions of Universal Dependencies: relations, and parts of speech from Penn tags and arc labels.
A parser whose arcs have UD's labels gives Penn tags. The universal part of speech (UPOS) of a word follows from its tag, its
arc label and, for a few words, the word itself. The rules were chosen on the train parts of UD English EWT and GUM. With gold
tags and labels they give 99.6 % of the words of both dev parts their gold UPOS.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import repeat

from lalkit.config import MOST_DIGITS
from lalkit.errors import TreebankError
from lalkit.treebank.brackets import unescape
from lalkit.treebank.tree import Sentence, format_tree

CONSTITUENCY = "constituency"  # the comment with the tree
RELATIONS = frozenset(
    "acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse dislocated expl fixed flat "
    "goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct reparandum root vocative xcomp".split()
)
_TAGS = """
ADJ JJ JJR JJS; ADP IN RP; ADV RB RBR RBS WRB; AUX MD; CCONJ CC; DET DT PDT; INTJ UH; NOUN NN NNS; NUM CD LS; PART TO POS;
PRON PRP PRP$ WP WP$ WDT EX; PROPN NNP NNPS ADD; PUNCT `` '' , . : -LRB- -RRB- HYPH NFP; SCONJ; SYM $ #;
VERB VB VBD VBG VBN VBP VBZ; X FW AFX GW XX
"""
_ROWS = [row.split() for row in _TAGS.split(";")]
UPOS, PENN = frozenset(row[0] for row in _ROWS), frozenset(tag for row in _ROWS for tag in row[1:])
USUAL = {tag: upos for upos, *tags in _ROWS for tag in (upos, *tags)}  # UPOS of each tag, and of itself
PRONOUNS = {first + last for first in ("any", "every", "no", "some") for last in ("body", "one", "thing")} | {"none"}
POINTING = {"this", "that", "these", "those"}
NEGATION = {"not", "n't", "n’t", "nt"}
COLUMNS = "ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC".split()
UPOS_AT, XPOS_AT, HEAD_AT, DEPREL_AT, DEPS_AT, MISC_AT = 3, 4, 6, 7, 8, 9  # columns of COLUMNS
HAS_XPOS = re.compile(r"^\d+\t(?:[^\t\n]*\t){3}(?!_?\t)", re.M)


@dataclass(frozen=True)
class Dependencies:
    """One sentence of a dependency file. Only its form is checked. heads count from 1; 0 is the root.

    rows: its lines, as they are in the file. Without heads, as in a blind test file, heads and labels are None.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    heads: tuple[int, ...] | None
    labels: tuple[str, ...] | None
    line: int
    comments: dict[str, str] = field(default_factory=dict)
    upos: tuple[str, ...] | None = None  # if the fourth column has universal parts of speech
    rows: tuple[str, ...] = ()


def scan_conll(
    text: str, place: str = "", *, first: int = 1, heads: bool = True
) -> Iterator[Dependencies | TreebankError]:
    """Yield the sentences of a text; a malformed sentence gives its error, which names line and sentence.

    Multi-word ranges (3-4) and empty nodes (3.1) are no words. The tag is the fifth column (XPOS) or, if that is '_' in the whole
    text, the fourth. A space in a word (10 000) becomes a no-break space, because white space separates words everywhere else.

    Args:
        text: the lines.
        place: the name of the file, for error messages.
        first: the number of the first line.
        heads: whether heads and labels are read; without them, these columns may hold anything.
    """
    rows: list[tuple[int, list[str]]] = []  # line number, columns
    lines: list[str] = []
    comments: dict[str, str] = {}
    number, xpos = 0, HAS_XPOS.search(text) is not None
    # Only \n ends a line: str.splitlines would also cut at U+2028 and U+0085 inside a word.
    for line_number, line in enumerate([*text.split("\n"), ""], first):
        line = line.rstrip("\r")
        if is_comment(line) and not rows:
            key, _, value = line[1:].partition("=")
            comments[key.strip()] = value.strip()
            lines.append(line)
            if key.strip() == "global.columns" and value.split()[: len(COLUMNS)] != COLUMNS[: len(value.split())]:
                problem = f"the columns have another order: {value.strip()}"
                remedy = f"Write them in this order, with _ for what is missing: {' '.join(COLUMNS)}"
                yield TreebankError(problem, remedy, where=f"{place + ', ' if place else ''}line {line_number}")
                return
        elif line.strip(" \t"):
            rows.append((line_number, line.split("\t")))
            lines.append(line)
        elif rows:
            number += 1
            try:
                yield _read_rows(rows, comments, tuple(lines), xpos, heads)
            except TreebankError as error:
                yield error.at(f"{place + ', ' if place else ''}line {rows[0][0]}, sentence {number}")
            rows, lines, comments = [], [], {}


def is_comment(line: str) -> bool:
    """Return whether a line is a comment. In files without numbers a row may begin with the word #."""
    return line.startswith("# ") or (line.startswith("#") and "\t" not in line)


def _read_rows(
    rows: list[tuple[int, list[str]]], comments: dict[str, str], lines: tuple[str, ...], xpos: bool, with_heads: bool
) -> Dependencies:
    words: list[tuple[str, str, int, str | None, str]] = []  # word, tag, head, label, fourth column
    blind = not with_heads or all(len(columns) > HEAD_AT and columns[HEAD_AT] == "_" for _, columns in rows)
    for line, columns in rows:
        if len(columns) == 3:
            (word, tag, head), label, coarse_tag = columns, None, "_"
        elif len(columns) < 8:
            remedy = "CoNLL-U has ten columns separated by tabs, not spaces."
            raise TreebankError(f"line {line} has {len(columns)} columns", remedy)
        elif "-" in columns[0] or "." in columns[0]:
            continue
        elif columns[0] != str(len(words) + 1):
            remedy = "Number the words of a sentence from 1, and end it with an empty line."
            raise TreebankError(f"line {line} is numbered {columns[0]!r} instead of {len(words) + 1}", remedy)
        else:
            _, word, _, coarse_tag, tag, _, head, label = columns[:8]
            tag, word = tag if xpos else coarse_tag, word.replace(" ", "\u00a0")
            head = "0" if blind else head
        if not head.isascii() or not head.isdigit() or len(head) > MOST_DIGITS:
            problem = f"line {line}: the head of {word!r} is {head[:40]!r}, not the number of a word"
            raise TreebankError(problem, remedy="Give the number of the head word in the sentence, or 0 for the root.")
        words.append((word, tag, int(head), label, coarse_tag))
    forms, tags, heads, labels, upos = zip(*words) if words else ((),) * 5
    labels, upos = None if blind or None in labels else labels, upos if UPOS.issuperset(upos) else None
    lines = lines if len(rows[0][1]) > len(("word", "tag", "head")) else ()
    return Dependencies(forms, tags, None if blind else heads, labels, rows[0][0], comments, upos, lines)


def format_conllu(
    sentences: Iterable[Sentence], notes: Iterable[tuple[Sequence[str], Sequence[str]]] | None = None
) -> str:
    """Write CoNLL-U text. Tags go to XPOS; lemma and features are '_' because lalkit does not know them.

    A sentence that was read from CoNLL-U keeps its lines (`Sentence.rows`): only tags, heads and labels are ours, and DEPS, which
    would be about other heads, is '_'. Constituents are a comment in the form that Stanza writes: # constituency = (S (NP ...)).

    Any other sentence that knows its text has it as a comment, and SpaceAfter=No where a word touches the next one. A sentence
    with universal parts of speech (UPOS) has what the rules of Universal Dependencies ask for: these in the fourth column, the
    text, and an id without spaces and slashes.

    notes: for each sentence, comments and the MISC column of every word, or None. Raises TreebankError without heads.
    """
    blocks = []
    for number, (sentence, (comments, last)) in enumerate(zip(sentences, notes or repeat(((), ()))), 1):
        if sentence.heads is None:
            remedy = "Write its tree in brackets, or parse it with a parser that gives dependencies."
            raise TreebankError("this sentence has no dependencies to write", where=sentence.id, remedy=remedy)
        rows = sentence.rows or _new_rows(sentence, number)
        blocks.append("\n".join([*_filled(sentence, rows, comments, last), "", ""]))
    return "".join(blocks)


def _new_rows(sentence: Sentence, number: int) -> Iterator[str]:
    """Yield the lines of a sentence that was not read from CoNLL-U: its id, its text and its words."""
    words = sentence.words if sentence.text else [unescape(word) for word in sentence.words]
    text, name = sentence.text or " ".join(words), " ".join(sentence.id.splitlines())  # a name can contain a line end
    if sentence.upos:
        name = re.sub(r"[\s/]+", "_", name) or str(number)
    if name:
        yield f"# sent_id = {name}"
    if sentence.text or sentence.upos:
        yield "# text = " + re.sub("[\\t\\n\\r]", " ", text)
    places = sentence.offsets or ()
    touching = {i for i, ((_, end), (start, _)) in enumerate(zip(places, places[1:])) if start == end}
    for i, word in enumerate(words):
        yield "\t".join([str(i + 1), word, *"_" * 7, "SpaceAfter=No" if i in touching else "_"])


def _filled(sentence: Sentence, rows: Iterable[str], comments: Sequence[str], notes: Sequence[str]) -> Iterator[str]:
    """Yield lines with the columns and comments of a sentence. notes: what MISC gets, too, for each word."""
    rows, ours = list(rows), [f"# {comment}" for comment in comments]
    if sentence.constituents is not None:
        ours.insert(0, f"# {CONSTITUENCY} = {format_tree(sentence.tree)}")
    words = [columns for line in rows if (columns := line.split("\t"))[0].isdigit()]
    numbers = list(range(1, len(words) + 1))
    if len(words) > len(sentence):  # the parser left punctuation out: it hangs on the root
        forms = iter(sentence.words)
        form, numbers = next(forms), []
        for number, columns in enumerate(words, 1):
            if columns[1].replace(" ", "\u00a0") == form:
                numbers.append(number)
                form = next(forms, None)
    places = {number: word for word, number in enumerate(numbers)}
    heads = [numbers[head - 1] if head else 0 for head in sentence.heads]
    layers = {UPOS_AT: sentence.upos, XPOS_AT: sentence.tags, HEAD_AT: heads, DEPREL_AT: sentence.arc_labels}
    for line in rows:
        if is_comment(line):
            if line[1:].partition("=")[0].strip() != CONSTITUENCY:
                yield line
            continue
        yield from ours
        ours, columns = [], line.split("\t")
        columns += "_" * (len(COLUMNS) - len(columns))
        if columns[0].isdigit():
            columns[DEPS_AT] = "_"
            if (word := places.get(int(columns[0]))) is None:
                columns[HEAD_AT], columns[DEPREL_AT] = str(numbers[sentence.heads.index(0)]), "punct"
            else:
                for place, layer in layers.items():
                    columns[place] = str(layer[word]) if layer else columns[place]
                before = [] if columns[MISC_AT] == "_" else [columns[MISC_AT]]
                columns[MISC_AT] = "|".join([*before, *notes[word : word + 1]]) or "_"
        yield "\t".join(columns)


# ---------------------------------------------------------------- Universal Dependencies


def without_subtype(label: str) -> str:
    """Return the relation of an arc label: nsubj:pass -> nsubj."""
    return label.partition(":")[0]


def is_universal(labels: Iterable[str]) -> bool:
    """Whether these are the arc labels of Universal Dependencies: its relations, root among them, also with subtypes."""
    relations = {*map(without_subtype, labels)}
    return "root" in relations and relations <= RELATIONS


def same_convention(labels: set[str], others: set[str]) -> bool:
    """Whether two sets of arc labels follow one convention: the smaller set shares at least 60 % of its labels with the other.

    Two treebanks of one convention share at least 83 %, our English rules and Universal Dependencies 0 %, Stanford style and
    Universal Dependencies 51 %. Sets of a few labels say nothing.
    """
    fewer = min(labels, others, key=len)
    return len(fewer) < 8 or len(labels & others) >= 0.6 * len(fewer)


def universal_tags(words: Sequence[str], tags: Sequence[str] | None, labels: Sequence[str]) -> tuple[str, ...]:
    """Return the UPOS of every word, from its Penn tag and its arc label in Universal Dependencies."""
    return tuple(map(universal_tag, words, tags or ("X",) * len(words), map(without_subtype, labels)))


@lru_cache(maxsize=2**14)
def universal_tag(word: str, tag: str, relation: str) -> str:
    """Return the UPOS of a word. relation: of its arc, without subtype."""
    word, usual = word.lower(), USUAL.get(tag, "X")
    if relation == "goeswith":  # a later piece of a word that was written as two
        return "X"
    if usual == "VERB" and relation in ("aux", "cop"):
        return "AUX"
    if tag == "IN" and relation == "mark":
        return "SCONJ"
    if (tag == "DT" and relation != "det" and word in POINTING) or (tag == "NN" and word in PRONOUNS):
        return "PRON"
    if tag == "WDT" and relation == "det":
        return "DET"
    if usual == "ADV" and word in NEGATION:
        return "PART"
    if tag == "NNP" and relation == "amod":  # an adjective in a name: New York
        return "ADJ"
    if usual in ("PUNCT", "SYM", "X"):  # arcs say what is punctuation
        return "PUNCT" if relation == "punct" else "SYM" if usual == "PUNCT" else usual
    return usual
