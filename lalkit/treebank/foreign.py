"""Recognise the formats of other programs, and annotation that stands where a word or a label should be."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from lalkit.errors import TreebankError, warn_once
from lalkit.treebank.brackets import TRACE
from lalkit.treebank.tree import UNARY, Sentence

# Files that are refused: the look of their beginning, and the remedy.
FORMATS = {
    "the export format of NeGra": (r"(?:(?:%%|#FORMAT|#BOT|#EOT)[^\n]*\n+)*#BOS ", "Convert it with treetools."),
    "XML, such as TIGER-XML": (r"\s*<(?:\?xml|corpus|treebank)\b", "Convert it to brackets or CoNLL-U first."),
    "CoNLL-2012 (OntoNotes)": (r"\s*#begin document", "Give the trees in brackets (the .parse files of OntoNotes)."),
    "discbracket (a word is 0=The), whose trees are discontinuous": (
        r"\s*\((?:[^\s()]+\s+\()+[^\s()]+\s+\d+=[^\s()]+\)", "Make them continuous, e.g. with discodop treetransforms.",
    ),
    "CoNLL-2008": (r"(?:#.*\n)*1(?:\t[^\t\n]*){7}\t\d+\t[^\t\n\d_][^\t\n]*\t", "Convert it to CoNLL-U first."),
    "JSON": (r"\s*[\[{]+\s*\"", "Convert it to brackets or CoNLL-U first."),
}  # fmt: skip
ROWS = {"CoNLL-U in a file of trees": (r"(?:#.*\n)*1(?:-\d+)?\t", "Call it FOLDER/train.conllu, or the like.")}
TREES = {"trees in a file of dependencies": (r"\s*\(\S*\s*\(", "Call it FOLDER/train.trees, or the like.")}
BRACKETED = re.compile(r"\([^\s()]+\s+\([^\s()]+\)\s*\)")
LEAF = re.compile(r"\([^\s()]+\s+[^\s()]+\)")
IN_BRACKETS = r"Remove these: sed -E 's/\(([^ ()]+) \(([^ ()]+)\)\)/(\1 \2)/g' FILE > NEW"
NO_FORMS = "Add the words first: such a corpus comes with a program that takes them from their source."
NOTES = re.compile("ID|CODE|META|METADATA")  # tags of IcePaHC and the parsed corpora of historical English
STRANGE = re.compile(r"(?!.*\|<).*[@^*+<>_#~].*")  # a label that another program has changed
# Annotation: the layer that shows it, its look, the least share of the words (in MASC, 1 % are notes), the problem, the remedy.
LOOKS = [
    ("tags", NOTES, 0.03, "words are numbers and notes of the editors", "Leave them out: --drop-tags {}"),
    ("words", TRACE, 0.005, "words are traces and other empty elements", "Leave them out: --drop-tags traces"),
    ("words", re.compile(r"[^\W\d_]+-[^\W\d_]+"), 0.3, "words have their lemma after a hyphen",
     "Cut it: sed 's/-[^- ()]*)/)/g' FILE > NEW"),
    ("labels", re.compile(r".*\|<.*"), 0, "constituents are halves that NLTK made", "Undo it: tree.un_chomsky_normal_form()"),
    ("labels", STRANGE, 0, "constituents have labels of another program",
     r"Cut them: sed -E 's/(\([^][ ()@^*+<>_#~]+)[@^*+<>_#~][^ ()]*/\1/g' FILE > NEW"),
]  # fmt: skip


def check_format(text: str, place: Any, trees: bool) -> str:
    """Return the text of a file of trees or dependencies. That of CoNLL-2009 becomes CoNLL-U.

    Raises TreebankError for another format, for words in brackets of their own, and for words that are all missing.
    """
    for kind, (look, remedy) in (FORMATS | (ROWS if trees else TREES)).items():
        if re.match(look, text[:4000]):
            raise TreebankError(f"this is {kind}, which lalkit does not read", remedy, where=str(place))
    if text.lstrip().startswith("(") and (own := BRACKETED.findall(text)) and len(own) > len(LEAF.findall(text)):
        problem = f"{len(own)} words stand in brackets of their own: {own[0]}"
        raise TreebankError(problem, IN_BRACKETS, where=str(place))
    words = re.findall(r"(?m)^\d+\t([^\t\n]*)\t", text)
    if (missing := words.count("_")) > 0.05 * len(words):
        raise TreebankError(f"{missing:,} of {len(words):,} words are missing (_)", NO_FORMS, where=str(place))
    if re.match(r"(?:#.*\n)*1(?:\t[^\t\n]*){7}\t\d+\t(?:\d+|_)\t[^\t\n]*\t", text) and "global.columns" not in text:
        warn_once(f"{place} is CoNLL-2009: its columns FORM, LEMMA, POS, HEAD and DEPREL are read")
        lines = (line.split("\t") for line in text.split("\n"))
        rows = (["\t".join([*c[:3], "_", c[4], "_", c[8], c[10], "_", "_"])] if len(c) > 11 else c for c in lines)
        return "\n".join(row[0] for row in rows)
    return text


def annotation(sentences: Sequence[Sentence]) -> Iterator[TreebankError]:
    """Yield an error for each kind of annotation of other programs in a treebank of trees: its amount, and the remedy."""
    trees = [sentence for sentence in sentences if sentence.constituents and sentence.tags]
    counts = {
        "tags": Counter(tag for s in trees for tag in s.tags or ()),
        "words": Counter(word for s in trees for word in s.words),
        "labels": Counter(part for s in trees for span in s.constituents or () for part in span.label.split(UNARY)),
    }
    for kind, look, share, problem, remedy in LOOKS:
        seen = Counter({name: count for name, count in counts[kind].items() if look.fullmatch(name)})
        annotated = sum(count for name, count in seen.items() if name.strip("0*-123456789"))  # 0 and * are words, too
        if annotated > share * counts["words"].total():
            some = " ".join(name for name, _ in seen.most_common(3))
            yield TreebankError(f"{seen.total():,} {problem}: {some}", remedy.format(",".join(sorted(seen))))
