"""Read typed text as sentences without trees, and recognise and normalise Chinese words.

A text has one of five forms: running text, whose lines are joined, and raw text, of which every line is read by itself (both are
split into sentences and tokens here), tokens with spaces between them, word_TAG pairs, or CoNLL-U, of which the words count.

The tokens of raw English text are those of the English Web Treebank, of GUM and of CRAFT: don't is two tokens, an address or an
emoticon is one, and a hyphen splits a word unless a prefix stands before it. The Penn Treebank keeps words with hyphens and
slashes whole. Typographic apostrophes and quotes are read as the plain ones are. A token is a slice of the text: nothing is
replaced. On the raw text of EWT's dev part, F1 of the words is 98.9. (The rules were chosen on its train part.)
"""

from __future__ import annotations

import os
import re
import reprlib
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from typing import Any, Literal, get_args

from lalkit.errors import LalkitError, TreebankError, warn_once
from lalkit.treebank.brackets import NO_TEXT, PLAIN
from lalkit.treebank.conllu import scan_conll
from lalkit.treebank.tree import WHITE, Sentence, in_order

HAN = re.compile("[\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
# A hyphenation point, bullets, a dot operator and Katakana dots: all are written between the parts of a foreign name.
DOTS = dict.fromkeys(map(ord, "\u2027\u2022\u2219\u22c5\u30fb\uff65"), "·")

APOSTROPHE = "['’‘`´ʼ＇]"
# Control characters, soft hyphen, zero-width spaces and joiners, marks of direction: they stay inside or after their word.
INVISIBLE = "\x01-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
# Accents, vowel signs, and what changes the picture of a character: they belong to the character before them.
MARKS = (
    "\u0300-\u034e\u0350-\u036f\u0483-\u0489\u0591-\u05bd\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0e31\u0e34-\u0e3a"
    "\u0e47-\u0e4e\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\U0001f3fb-\U0001f3ff"
)
CLITIC = f"{APOSTROPHE}(?:[sSmMdD]|ll|LL|re|RE|ve|VE)(?!\\w)"
# Words that end with a full stop inside a sentence, too.
ABBREVIATIONS = (
    "Dr|Mr|Mrs|Ms|St|Ste|vs|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|Inc|Ft|Mt|Co|Corp|Ltd|Gen|Lt|Col|Sgt|Capt|Rev|Hon"
    "|Prof|Jr|Sr|Gov|Sen|Reps?|Mon|Tues?|Wed|Thurs?|Thur|Fri|Sat|Sun|La|Calif|Va|Attn|Ave|Blvd|Rd|Dept|Univ|Bros|Vol|pp"
    "|[Ff]igs?|al|cf|Esq|Ph|Messrs|Assn|Conn|Pa|Md|Mass|Ariz|Fla|Ill|Ind|Wash|Ore|Minn|Mich|Miss|Tenn|Tex|Wis|ca|approx|ext"
)
# A hyphen after one of these does not split a word.
PREFIXES = (
    "a|anti|arch|bi|co|counter|cross|e|ex|extra|inter|intra|macro|mega|meta|micro|mid|mini|multi|neo|non|over|post|pre|pro"
    "|psycho|quasi|re|semi|socio|sub|super|trans|u|ultra|un|under|uni|x"
)
VERBS = "do|does|did|ca|could|wo|would|is|are|was|were|has|have|had|should"
UNITS = "[kKmM]|MM|bn|[ap]m|[AP]M|kg|km|cm|mm|ft|lbs?|mph|yrs?|hrs?|min|mg|GB|MB|x"
ENDINGS = "com|org|net|edu|gov|info|biz|mil|int|uk|de|fr|ca|au|us|tv|io|ly|eu|nl|js|py|html?|pdf|docx?|xls|txt|jpe?g|ppt|zip|exe"
LAST = r"[^\s<>\"”’'()\[\]{},;:!?.]"  # the last character of an address

# Tried in this order at each place of the text.
RULES = {
    "address": rf"(?i:(?:https?|ftp|file)://|mailto:|www\.)[^\s<>\"”]*{LAST}/?",
    "mail": r"[\w.+%-]{1,64}@\w[\w.-]{0,250}\w",
    "host or file": rf"(?:[A-Za-z0-9-]{{1,63}}\.){{1,8}}(?i:{ENDINGS})\b(?:[/:?][^\s<>\"”]*{LAST})?/?",
    "hashtag": r"\#\d*[^\W\d]\w+|@[A-Za-z_]\w+",
    "word with hyphens": rf"\w+(?:[-/]\w+)+(?!\w|{APOSTROPHE}[tT]\b)",  # only as the Penn Treebank has it
    "company": r"[A-Z]+&[A-Z]+(?!\w)",
    "emoticon": r"(?<![\w(])(?:(?:>?[:;=][-o^']*|[8B][-o^])[)(\]\[DPp|/\\]+|[:;]-?[*3]|[)(][-^]?[:;=]|:['’]\()(?!\w)",
    "other emoticon": r"(?<![\w(])(?:-_+-|<3+|\^_+\^|[xX]D+)(?!\w)",
    "date or telephone": r"\d{1,4}(?:[-/.]\d{1,4}){2,}(?!\w)|\d{3,5}-\d{4}(?!\w)|\d{1,2}/\d{1,2}(?!\w)|\d{1,2}(?::\d{2})+",
    "number before a unit": rf"\d+(?:,\d{{3}})*(?:\.\d+)?(?=(?:{UNITS})(?!\w))",
    "number": r"\.?\d+(?:,\d{3})*(?:\.\d+)?(?:st|nd|rd|th|s|['’]s)?(?!\w)",
    "letters with full stops": r"(?:[A-Za-z]\.){2,}(?![A-Za-z]\.)(?=\s*\S)|(?:[A-Za-z]\.){2,}(?:[A-Za-z](?!\w))?",
    "abbreviation": rf"etc\.(?=\s*\S)|(?:{ABBREVIATIONS})\.",
    "initial": r"(?<!\w)[A-Z]\.(?=\s*[A-Z]|$)",
    "two words in one": r"[Cc]an(?=not\b)|(?:[Gg]on|[Ww]an|[Gg]ot)(?=(?:na|ta)\b)|(?:[Ll]em|[Gg]im)(?=me\b)",
    "it before a verb": r"['’][Tt](?=is\b|was\b)",
    "not without apostrophe": rf"(?i:{VERBS})(?=nt(?!\w))|(?<=\w)nt(?!\w)",
    "not": rf"\w+?(?=[nN]{APOSTROPHE}[tT](?!\w))|[nN]{APOSTROPHE}[tT](?!\w)",
    "clitic": CLITIC,
    "word with an apostrophe before it": rf"{APOSTROPHE}(?:em|til|bout|cause|\d\ds?)\b",
    "prefix": rf"(?i:{PREFIXES})-\w+",
    "word": rf"\w[\w{INVISIBLE}{MARKS}]*(?:(?!{CLITIC}|{APOSTROPHE}[tT](?!\w)){APOSTROPHE}\w[\w{INVISIBLE}{MARKS}]*)*",
    "flag": r"[\U0001f1e6-\U0001f1ff]{2}",
    "signs": r"\.{2,}|…+|-{2,}|[!?]+[!?.]*|\.[?!]+|<<+|>>+|\*+|=+|_+|\++|\#+|~+|``|''|‘‘|’’|-+>|<-+",
    "one character": rf"[^\s{INVISIBLE}][{INVISIBLE}{MARKS}]*(?:(?<=\u200d)[^\s\w{INVISIBLE}][{INVISIBLE}{MARKS}]*)*",
}


def script(text: str) -> str:
    """Return the script of most letters of a text: LATIN, CJK, CYRILLIC and so on; "" without letters."""
    return "LATIN" * any(map(str.isalpha, text)) if text.isascii() else script_of_letters(text)


def script_of_letters(text: str) -> str:
    """Return `script` from the name of each letter."""
    letters = filter(str.isalpha, unicodedata.normalize("NFKC", text))
    scripts = Counter(unicodedata.name(letter, "").partition(" ")[0] for letter in letters)
    return max(scripts, key=scripts.__getitem__, default="")


def is_chinese(text: str) -> bool:
    """Return whether a text contains a Han character (Japanese Kanji are Han characters, too)."""
    return HAN.search(text) is not None


def normalise(word: str) -> str:
    """Return one form for all ways of writing a word, for looking the word up. Trees and results keep the word as it was
    written.

    Full-width letters, digits and signs become half-width ones; compatibility ideographs become the characters for which they
    stand; all middle dots become one. Words in simplified and in traditional characters stay different.
    """
    if word.isascii():
        return word
    narrow = "".join(chr(ord(c) - 0xFEE0) if "\uff01" <= c <= "\uff5e" else c for c in word)
    return unicodedata.normalize("NFC", narrow).translate(DOTS)


# The kinds of files that are not plain text: their first bytes, and the remedy.
LOOKS = {
    **NO_TEXT,
    "HTML or XML": (
        rb"(?i)\s*<(?:!doctype|\?xml|!--|(?:html|head|body|tei|p|div|article|title|h1)\b)",
        f"{PLAIN}, without the tags.",
    ),
    "CoNLL-U": (rb"(?:\s*#[^\n]*\n)*\s*(?:0\.1|1(?:-\d+)?)\t[^\t\n]+\t[^\t\n]*\t[^\t\n]*\t", "Give --form conllu."),
    "trees in brackets": (
        rb"\s*\(\s*(?:[A-Z][^\sa-z()]*)?\s*(?:\([A-Z][^\sa-z()]*\s*)*\([^\sa-z()]+ [^\s()]+\)\s*[()]",
        'Call it FOLDER/test.trees, and in Python: parser.parse_all(lalkit.Treebank.load(FOLDER, "test"))',
    ),
    "JSON": (rb'\s*(?:\[\s*)*\{\s*"', f"{PLAIN}, one sentence a line."),
    "text whose lines end with CR alone": (rb"[^\n]*[^\r\n]\r[^\r\n]", "Convert it: tr '\\r' '\\n' < FILE > NEW"),
}


# Texts with other things than words between their sentences: their first bytes, and the remedy.
NOT_PROSE = {
    "a table (CSV)": (
        rb"[A-Za-z_]\w*(?:[,;\t][A-Za-z_]\w*)+\r?\n[^\n]*[,;\t]", 'In Python: parser.parse_all(pandas.read_csv(FILE)["text"])',
    ),
    "subtitles": (
        rb"(?:WEBVTT[^\n]*\s+)?(?:\d+\s*\n)?(?:\d+:)?\d+:\d+[,.]\d+ +-->",
        "Leave out the numbers and times: grep -vE -e '-->|^WEBVTT|^[0-9]+\\s*$' FILE > NEW",
    ),
    "a text with front matter": (rb"---\s*\n(?:[^\n]*\n)*?---\s*\n", "Leave it out: sed '1d;2,/^---/d' FILE > NEW"),
    "mail with quoted lines": (rb"(?ms).*?^>.*?^>", "Take the marks away: sed 's/^[> ]*//' FILE > NEW"),
}  # fmt: skip
FILE_NAME = re.compile(
    r"(?i)(?!\w+://|www\.)[^\s@]+\.(?:te?xt|md|rst|tex|log|conllu?|trees?|ptb|mrg|jsonl?|[ct]sv|xml|html?|pdf|docx?|rtf|odt|gz|zip)"
    r"|(?:\.{0,2}|~)/\S*\w"
)


def check_names(texts: Iterable[str]) -> None:
    """Raise TreebankError if one of several typed texts is the name of a file or folder, or looks like the name of a file."""
    for text in texts:
        if os.path.isfile(text):
            raise TreebankError("is a file, given as one of the sentences", "Give one file at a time.", where=text)
        if os.path.isdir(text) or FILE_NAME.fullmatch(text):
            remedy = f"Check the name. To parse it as a sentence: echo {text} | lalkit parse"
            raise TreebankError("there is no such file", remedy, where=text)


def check_look(first: bytes, form: str, place: str) -> None:
    """Raise TreebankError if the first bytes of a file show another kind of file than its form."""
    for kind, (look, remedy) in (LOOKS | NOT_PROSE if form in ("text", "raw") else LOOKS).items():
        if re.match(look, first.removeprefix(b"\xef\xbb\xbf")) and (form != "conllu" or kind != "CoNLL-U"):
            raise TreebankError(f"this is {kind}, not {form}", remedy, where=place)


Form = Literal["text", "raw", "tokens", "tagged", "conllu"]


def read_sentences(texts: Any, form: Form = "raw", hyphens: bool = True, skip: bool = False) -> list[Sentence | None]:
    """Return texts, lists of words or Sentences as Sentences: of a list, an array, a column of a table or an iterator.

    skip: None stands for an entry that is missing or has no words.

    Raises TreebankError if an entry is not a sentence (the message has its number), or if the texts are words of one sentence.
    """
    items = list(in_order(texts, "sentences"))
    signs = [item for item in items if isinstance(item, str) and re.fullmatch(r"[^\w\s]|[.!?]+", item)]
    if form == "raw" and signs and not hasattr(texts, "iloc"):
        if len(items) > 1 and all(isinstance(item, str) and len(item.split()) == 1 for item in items):
            problem = f"are these {len(items)} texts of one word each the words of one sentence? {reprlib.repr(items)}"
            remedy = "If so, put them into one more list: [words]. If not: [[word] for word in texts]."
            raise TreebankError(problem, remedy)
    numbered = enumerate(items, 1)
    return [None if skip and is_blank(text) else read_sentence(text, form, n, hyphens) for n, text in numbered]


def is_blank(value: Any) -> bool:
    """Return whether a value is missing, as None and the NaN and NA of pandas are, or has no words."""
    import pandas as pd

    if hasattr(value, "__len__"):
        return not len(re.sub(f"[{INVISIBLE}]", "", value).split() if isinstance(value, str) else value)
    return bool(pd.isna(value))


def read_sentence(text: Any, form: Form = "raw", number: int = 1, hyphens: bool = True) -> Sentence:
    """Return one text, list of words or Sentence as a Sentence. Raises TreebankError if there are no words."""
    if isinstance(text, Sentence):
        return text
    sentence = read_line(text, form, str(number), hyphens) if isinstance(text, str) else None
    if not isinstance(text, str) and hasattr(text, "__iter__"):
        sentence = Sentence(text, id=str(number))
    if sentence is None:
        remedy = 'Give at least one word. In parse_all, errors="skip" passes over what is missing.'
        raise TreebankError(f"there is nothing to parse in {reprlib.repr(text)}", remedy, where=f"sentence {number}")
    return sentence


def read_line(line: str, form: Form = "raw", id: str = "", hyphens: bool = True) -> Sentence | None:
    """Read a line that is one sentence; None for a line without words.

    hyphens: whether hyphens and slashes split words of raw text, as in all our treebanks but the Penn Treebank.

    Raises TreebankError for an unknown form, a token of tagged text that is not word_TAG, or several sentences of CoNLL-U.
    """
    if form not in get_args(Form):
        raise TreebankError(f"there is no form {form!r}", f"Forms: {', '.join(get_args(Form))}.", where=id)
    if form == "conllu":
        sentences = list(read_conllu(line))
        if len(sentences) > 1:
            raise TreebankError(f"there are {len(sentences)} sentences of CoNLL-U", "Give one at a time.", where=id)
        return sentences[0] if sentences else None
    if form in ("text", "raw"):
        words = tuple(line[start:end] for start, end in tokenize(line, hyphens))
        # str.strip() alone would cut U+001F off a word.
        return Sentence(words, id=id, text=line.strip(WHITE)) if words else None
    tokens = [token for token in re.split(f"[{WHITE}]", line) if token]
    if form == "tokens" or not tokens:
        return Sentence(tuple(tokens), id=id) if tokens else None
    pairs = [token.rpartition("_") for token in tokens]
    if wrong := [token for token, (word, _, tag) in zip(tokens, pairs) if not word or not tag]:
        remedy = "Tagged text looks like: The_DT end_NN ._."
        raise TreebankError(f"{wrong[0]!r} is not a word_TAG pair", remedy, where=id)
    words, _, tags = zip(*pairs)
    return Sentence(words, tags, id=id)


def read_lines(
    lines: Iterable[str], form: Form = "raw", place: str = "", first: int = 1, hyphens: bool = True
) -> Iterator[list[Sentence | None]]:
    """Yield the sentences of every line. An empty line gives [None]. The ids are `place:line`.

    A line of raw text can have several sentences; they have the ids `place:line.1`, `place:line.2` and so on. In running text the
    lines of a paragraph are joined: a blank line ends it. Its ids count the sentences that begin on a line.

    Args:
        lines: the lines.
        form: the form of the text.
        place: the name of the file, for ids and error messages. Without it, every line is a text of its own.
        first: the number of the first line.
        hyphens: see `read_line`.
    """
    if form == "conllu":
        yield from ([sentence] for sentence in read_conllu("\n".join(lines), place, first))
        return
    numbered: Iterable[tuple[int, str]] = enumerate(lines, first)
    if form == "text" and place:  # paragraphs, and blank lines one by one
        numbered = (
            pair
            for filled, group in groupby(numbered, lambda pair: not pair[1].isspace() and pair[1] != "")
            for pair in (_joined(group) if filled else group)
        )
    for number, line in numbered:
        where = f"{place}:{number}" if place else str(number)
        try:
            if form not in ("text", "raw"):
                yield [read_line(line, form, where, hyphens)]
                continue
            starts, sentences, end = Counter(), read_text(line, hyphens), 0
            for place_in_line, sentence in enumerate(sentences):
                begin = line.index(sentence.text, end)
                end = begin + len(sentence.text)
                start = number + (line.count("\n", 0, begin) if place else 0)
                starts[start] += 1
                id = f"{place + ':' if place else ''}{start}.{starts[start]}"
                alone = form == "raw" and len(sentences) == 1
                sentences[place_in_line] = replace(sentence, id=where if alone else id)
            yield sentences or [None]
        except TreebankError as error:
            raise error if error.where else error.at(where) from None


def _joined(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield numbered lines as one, with the number of the first."""
    numbers, parts = zip(*lines)
    yield numbers[0], "\n".join(parts)


def read_text(text: str, hyphens: bool = True) -> list[Sentence]:
    """Return the sentences of running text. Their ids are 1, 2 and so on."""
    sentences = [read_line(part, "raw", hyphens=hyphens) for part in split_sentences(text)]
    return [replace(sentence, id=str(i)) for i, sentence in enumerate(filter(None, sentences), 1)]


def read_conllu(text: str, place: str = "", first: int = 1) -> Iterator[Sentence]:
    """Yield the words and tags of CoNLL-U, with its lines, which `format_conllu` writes back. Raises TreebankError.

    place: the name of the file. first: the number of the first line.
    """
    for item in scan_conll(text, place, first=first, heads=False):
        if isinstance(item, TreebankError):
            raise item
        where = f"{place}:{item.line}" if place else str(item.line)
        tags = item.tags if {*item.tags} != {"_"} else None
        id = item.comments.get("sent_id") or where
        try:
            yield with_text(Sentence(item.words, tags, id=id, place=where, rows=item.rows), item.comments.get("text"))
        except TreebankError as error:
            raise error.at(where) from None


def with_text(sentence: Sentence, text: str | None) -> Sentence:
    """Return a sentence with its text, if the words are its slices. (The words of German *zum*, *zu* and *dem*, are not.)"""
    if text is None or "".join("".join(sentence.words).split()) != "".join(text.split()):
        return sentence
    whole = replace(sentence, text=text)
    try:
        return whole if whole.offsets else sentence
    except ValueError:  # two spaces inside a word
        return sentence


# The 60 commonest words of the train parts of EWT, GUM and MASC: 30 to 44 % of the words of English treebanks, 2 to 4 % of those
# of PUD in German, Spanish and French.
COMMON = """
the and to of a in i that is you it for was on with have this as are be not they we at he do by my from but or will if there your
can would an so one all had has his what me about were their which when time out like know up just who some also
""".split()


# Common words of other languages, mostly of French, Spanish and German, that are very rare in English text and in names.
FOREIGN = """
le les des une est je que der das und ist ich nicht sie el los del las la una mit für auf dans sur pour qui con por para wir ein
eine il un es du den dem zu im sich wird wurde dass einer einem einen nach bei aus aber ces cette nous vous pas avec aux sont été
ont par mais était elle ils y su como más fue pero también está sus sobre não uma och att det het een niet di che è nie jest bir
ve và là của bonjour merci hola gracias hallo danke
""".split()


def habits(sentences: Iterable[Sentence]) -> dict[str, Any]:
    """Return how a treebank writes hyphens and punctuation marks, and its commonest words.

    hyphens: whether they are tokens of their own: well - known, and not well-known. marks: None if the treebank has full stops;
    else, as in Sinica, the marks that occur five times or more. common: as many words as `COMMON` has.
    """
    words = Counter(word for sentence in sentences for word in sentence.words)
    inside = sum(count for word, count in words.items() if re.fullmatch(r"\w+(-\w+)+", word))
    often = (word for word, count in words.items() if count >= 5)
    marks = sorted({normalise(word) for word in often if not any(map(str.isalnum, word))})
    lower = Counter(word.lower() for word in words.elements() if word.isalpha())
    common = [word for word, _ in lower.most_common(len(COMMON))]
    return {"hyphens": words["-"] >= inside, "marks": None if words["."] + words["。"] else marks, "common": common}


def check_one(text: Any) -> None:
    """Raise TreebankError for a text of several sentences."""
    if isinstance(text, str) and len(parts := split_sentences(text)) > 1:
        problem = f"the text has {len(parts)} sentences; the second one is {reprlib.repr(parts[1])}"
        remedy = "Split them: parser.parse_text(text), or --form text. To read all as one sentence: parser.parse_all([text])."
        raise TreebankError(problem, remedy)


# Abbreviations before a name or a number, which sentencex takes for the end of a sentence: INT. HOUSE, Eq. 3.
NO_END = re.compile(r"(?:^|[\s(])(?:INT|EXT|[Ee]qs?|[Ff]igs?|[Aa]pprox|[Cc]f|ca|vs)\.\Z")


def split_sentences(text: str) -> list[str]:
    """Split running text into sentences by the rules of sentencex for English (abbreviations, quotations, numbers).

    A sentence goes over the end of a line, but not over a blank line, and has a letter or a digit, if the paragraph has any.
    """
    from sentencex import segment

    parts = []
    for paragraph in re.split(r"\n\s*\n", text):
        flat, end, places = re.sub(r"[\r\n\ud800-\udfff]", " ", paragraph), 0, []
        filled = False  # the last part has a letter or a digit
        for part in filter(None, map(str.strip, segment("en", flat))):
            start = max(end, flat.find(part, end))
            end = start + len(part)
            full = any(map(str.isalnum, part))
            if places:
                first, last = places[-1]
                if not (filled and full) or NO_END.search(paragraph[max(first, last - 8) : last]):
                    start, full = places.pop()[0], filled or full
            places.append((start, end))
            filled = full
        parts += [paragraph[start:end] for start, end in places]
    return parts


def tokenize(text: str, hyphens: bool = True) -> list[tuple[int, int]]:
    """Return the first character of each token of a sentence, and the one after its last.

    hyphens: whether hyphens and slashes split words. Raises TreebankError for text whose letters are mostly not Latin (or Greek).
    """
    if not text.isascii() and (letters := script(text)) not in ("", "LATIN", "GREEK"):
        problem = f"lalkit splits only English into words, and most letters here are {letters}: {text.strip()[:20]!r}"
        raise TreebankError(problem, "Put spaces between the words, and choose the form tokens (--form tokens).")
    return [match.span() for match in token_pattern(hyphens).finditer(text)]


@cache
def token_pattern(hyphens: bool) -> re.Pattern:
    """Return all rules as one expression."""
    return re.compile("|".join(rule for name, rule in RULES.items() if not (hyphens and name == "word with hyphens")))


OTHERS = "`lalkit models` lists the parsers (en: English, zh-sinica: Chinese)"
UNLEARNED = f"the parser never learned this language: its trees mean little. {OTHERS}"


@dataclass(frozen=True)
class Reader:
    """Read sentences in the form that one parser knows, and warn of a language, a script or marks that it never learned.

    hyphens: whether hyphens split words of raw text. scripts: those that the parser learned, such as LATIN; empty: not known.
    common: the commonest words of its training part; empty: not known. pieces: words -> the sub-words of each word. marks: the
    punctuation that it knows; None: all. tags: the tags that it knows. reads_tags: whether it reads the tags of a text.
    """

    hyphens: bool = True
    scripts: Collection[str] = ()
    common: Collection[str] = ()
    pieces: Callable[[list[str]], list] = list
    marks: Collection[str] | None = None
    tags: Collection[str] = ()
    reads_tags: bool = False

    def read(self, texts: Any, form: Form = "raw", skip: bool = False, one: bool = False) -> list[Sentence | None]:
        """Return texts as sentences that the parser can read. Arguments, the case of None, and errors: see `read_sentences`.

        one: there is one text. Raises TreebankError if it has several sentences.
        """
        if one and form in ("raw", "text"):
            check_one(*texts)
        entries = read_sentences(texts, form, self.hyphens, skip)
        ready = iter(self.prepared([entry for entry in entries if entry is not None], form))
        return [None if entry is None else next(ready) for entry in entries]

    def prepared(self, sentences: Sequence[Sentence], form: Form = "raw") -> list[Sentence]:
        """Return sentences in the form that the parser knows, with warnings. Raises LalkitError: see `check_tags`.

        A parser that learned from sentences without punctuation would take a full stop for a verb: punctuation that it does not
        know is left out of the tree. (In CoNLL-U that was read, it depends on the root.) Sentences with trees stay as they are.
        """
        if form == "tagged":
            self.check_tags(sentences)
        if self.is_unlearned(sentences):
            warn_once(UNLEARNED)
        for sentence in sentences if self.scripts else ():
            if (found := script("".join(sentence.words))) and found not in self.scripts:
                warn_once(f"the parser never learned this script, {found}: its trees mean little. {OTHERS}")
        return [self._without_marks(sentence) for sentence in sentences]

    def check_tags(self, sentences: Iterable[Sentence]) -> None:
        """Warn if the parser does not read tags. Raise LalkitError for a tag that it does not know."""
        for sentence in sentences:
            if unknown := [tag for tag in sentence.tags or () if tag not in self.tags]:
                remedy = f"Its tags are: {' '.join(self.tags)}" if self.tags else "Use --form tokens."
                raise LalkitError(f"the parser has no tag {unknown[0]!r}", where=sentence.where, remedy=remedy)
        if not self.reads_tags:
            warn_once("this parser chooses tags itself: the tags of the text are not used")

    def is_unlearned(self, sentences: Iterable[Sentence]) -> bool:
        """Return whether a text is hardly in the language that the parser learned: by words of other languages, or by two signs.

        For a parser of English: more words are in `FOREIGN` than are common. For any parser: few words are common (under 20
        words: none), and words in small letters (others may be names) have 1.5 (2.5) sub-words each or more. English has 1.1
        to 1.2 (CRAFT 1.6), and the other languages of PUD 1.7 to 2.2. No 300 sentences of a treebank of English are taken for
        another language. Of single sentences these are: 0.09 % of CRAFT (lists of abbreviations), at most 0.05 % of other English
        ones (quoted French), 92 to 97 % of PUD's German, Spanish and French ones, and 36 to 48 % of them without `FOREIGN`.
        """
        words = [word for sentence in sentences for word in sentence.words if any(map(str.isalpha, word))]
        if not self.common or len(words) < 3:
            return False
        words[0] = words[0][0].lower() + words[0][1:]
        known = sum(word.lower() in self.common for word in words)
        if "the" in self.common and sum(map({*FOREIGN}.__contains__, words)) > known:
            return True
        few, lower = len(words) < 20, [word for word in words if word.isalpha() and word.islower()]
        if known >= (1 if few else 0.1 * len(words)) or len(lower) < max(3, (0.8 if few else 0.5) * len(words)):
            return False
        some = lower[:: len(lower) // 500 + 1]
        return sum(map(len, self.pieces(some))) >= (2.5 if few else 1.5) * len(some)

    def _without_marks(self, sentence: Sentence) -> Sentence:
        if self.marks is None or sentence.heads is not None or sentence.constituents is not None:
            return sentence
        words, tags = sentence.words, sentence.tags
        keep = [i for i, word in enumerate(words) if any(map(str.isalnum, word)) or normalise(word) in self.marks]
        if len(keep) in (0, len(words)):
            return sentence
        warn_once("the parser never learned punctuation: unknown marks are left out of the tree")
        kept = tuple(words[i] for i in keep), tags and tuple(tags[i] for i in keep)
        return replace(sentence, words=kept[0], tags=kept[1], upos=None, text=None)
