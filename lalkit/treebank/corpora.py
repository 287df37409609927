"""Treebanks by name: where their files are, how they are split and read, and how to get them.

| name       | files                                        | train / dev / test            | arc labels            |
|------------|----------------------------------------------|-------------------------------|-----------------------|
| sample     | data/sample (ours, in the repository)        | by file                       | our head rules        |
| sample-zh  | data/sample-zh (ours, Chinese)               | by file                       | our Chinese rules     |
| ptb-sample | NLTK treebank + dependency_treebank          | 0001-0160 / -0179 / -0199     | our rules (from tags) |
| craft      | CRAFT treebank + dependencies                | 60 / 7 articles / none        | gold, Stanford style  |
| ewt        | UD English EWT, dependencies alone           | by file, no test              | gold, UD              |
| gum        | GUM; gum/news,voyage: only these genres      | by document                   | gold, UD              |
| masc       | MASC, twelve genres, constituents by hand    | by document, no test          | our rules (from tags) |
| sinica     | NLTK sinica_treebank (traditional Chinese)   | by line: 8 / 1 / 1 of ten     | gold roles            |
| a folder   | {train,dev,test}.trees and, if any, .conllu  | by file                       | from the .conllu      |

Several of them with + between them are a mixture, see `parts_of`.
"""

from __future__ import annotations

import logging
import os
import re
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lalkit.errors import CorpusError, TreebankError, checked, shown, warn_once
from lalkit.files import in_utf8
from lalkit.treebank import brackets, conllu
from lalkit.treebank.foreign import annotation, check_format
from lalkit.treebank.head_words import Heads, Rules
from lalkit.treebank.text import with_text
from lalkit.treebank.tree import UNARY, Node, Sentence, Span, in_order
from lalkit.treebank.tree import escape as escape_brackets

if TYPE_CHECKING:
    from lalkit.treebank.search import Hits

SPLITS = ("train", "dev", "test")
SHOWN = 10  # sentences of a treebank that a notebook displays
GET_CRAFT = "git clone --depth 1 --branch v5.0.2 https://github.com/UCDenver-ccp/CRAFT"
MIXED = re.compile(r"([^:*@]+(?:@heads=[^:*@]+)?(?:@drop=[^:*@]+)?)(?::(constituents|dependencies))?(?:\*(\d*\.?\d+))?")
OPTION = re.compile("@(?=heads=|drop=)")
Sentences = Iterator[Sentence | TreebankError]  # an error stands for a sentence that cannot be read
MARKUP = re.compile(r"(?m)^[^\S\n]*<[^<>\n]*>([^()\n]*</[^<>\n]*>)?[^\S\n]*$")  # <S ID=3>
HEADS = Heads()
NO_RULES = "Give rules for it (--heads FILE), or the dependencies in a .conllu file: see book/treebanks.md."
logger = logging.getLogger(__name__)


@checked
@dataclass(frozen=True, repr=False)
class Treebank:
    """The sentences of one split, and the problems met while reading. Each problem names file, line and sentence.

    notes: warnings about the whole, with a remedy: annotation of other programs, or constituents that no head rule knows.

    >>> treebank = lalkit.Treebank.load("sample", "test")
    >>> treebank
    Treebank 'sample', test: 44 sentences, 678 words
    >>> " ".join(treebank[0].words)
    'Total cost : $ 4.2 million .'
    """

    name: str
    split: str
    sentences: tuple[Sentence, ...]
    problems: tuple[TreebankError, ...] = ()
    notes: tuple[TreebankError, ...] = ()

    @classmethod
    def load(cls, name: str | Path, split: str = "", *, task: str = "joint", lenient: bool = False) -> Treebank:
        """Load one split of a named treebank or of a folder; or one file, `Treebank.load("own.conllu")` or `("own.trees")`.

        >>> len(lalkit.Treebank.load("sample", "dev"))
        44

        Arguments and errors: see `lalkit.treebank.corpora.load`.
        """
        return load(name if isinstance(name, str) else os.path.abspath(name), split, task=task, lenient=lenient)

    def __post_init__(self):
        object.__setattr__(self, "sentences", tuple(in_order(self.sentences, "sentences")))

    def __len__(self) -> int:
        return len(self.sentences)

    def __iter__(self) -> Iterator[Sentence]:
        return iter(self.sentences)

    def __getitem__(self, place: int | slice) -> Any:
        """Return one sentence, or the treebank of a slice of the sentences (without the problems)."""
        try:
            part: Any = self.sentences[place]
        except TypeError:
            raise TreebankError(f"{shown(place)} is no index", "Give a whole number or a slice.") from None
        return replace(self, sentences=part, problems=()) if isinstance(place, slice) else part

    def sample(self, count: int) -> Treebank:
        """Return `count` sentences from all over the treebank, at equal distances. 0 means all sentences.

        >>> len(treebank.sample(2))
        2
        """
        return replace(self, sentences=tuple(subset(self.sentences, count)), problems=())

    def search(self, pattern: str) -> Hits:
        """Search the gold trees with a pattern of tgrep, such as "SBAR < (IN < that)".

        >>> lalkit.Treebank.load("sample", "test").search("SBAR < (IN < that)")
        2 matches of 'SBAR < (IN < that)' in 2 sentences
        """
        from lalkit.treebank.search import search  # it loads a part of NLTK

        return search(self, pattern)

    def __repr__(self) -> str:
        problems = f", {len(self.problems)} problems" if self.problems else ""
        words = sum(map(len, self.sentences))
        split = self.split and f", {self.split}"
        return f"Treebank {self.name!r}{split}: {len(self)} sentences, {words} words{problems}"

    def _repr_html_(self) -> str:
        """Show the first sentences in a notebook."""
        rows = [f"<tr><td>{escape(s.id)}</td><td>{escape(' '.join(s.words))}</td></tr>" for s in self[:SHOWN]]
        more = f"<tr><td></td><td>and {len(self) - SHOWN} more</td></tr>" if len(self) > SHOWN else ""
        return f"<table><caption>{escape(repr(self))}</caption>{''.join(rows)}{more}</table>"


def load(name: str, split: str, *, task: str = "joint", lenient: bool = False) -> Treebank:
    """Load one split of a named corpus, or of a folder of treebank files; or one file.

    Where too many constituents are in no head rule, the sentences have no dependencies.

    Args:
        name: a name of the table above, a folder, or a mixture of them; or a file: .conllu has dependencies, any other one trees.
        split: train, dev or test; "" for a file.
        task: 'constituents' reads trees only. 'joint' reads both layers. 'dependencies' leaves out each sentence that cannot be
            read, and adds it to the problems.
        lenient: collect problems instead of raising the first one, and do not log the notes.

    Raises:
        CorpusError: the corpus or the split is missing or empty, or a genre is unknown.
        TreebankError: the first problem. For 'dependencies' only if no sentence is left.
    """
    one_file, parts = not split and os.path.isfile(OPTION.split(name)[0]), parts_of(name, task)
    if split not in SPLITS and not one_file:
        remedy = f"The splits are {', '.join(SPLITS)}. A single file needs none: Treebank.load('own.conllu')."
        raise CorpusError(f"there is no split {split!r}", where=name, remedy=remedy)
    sentences, problems, notes = [], [], []
    for part in parts:
        base, *options = OPTION.split(part.name)
        how, read = dict(option.split("=", 1) for option in options), []
        folder = Path(base) if one_file else find(base)
        if folder is None:
            raise missing(base)
        heads = Heads(Rules(Path(how["heads"])) if "heads" in how else None)
        reading = Reading(part.task, heads, how["drop"].split(",") if "drop" in how else ())
        for item in read_file(folder, reading) if one_file else _read(base, folder, split, reading):
            if isinstance(item, Sentence):
                read.append(item)
            elif lenient or part.task == "dependencies":
                problems.append(item)
            else:
                raise item
        where, layer = f"{base} {split}".strip(), part.task
        if heads.guessed:
            notes.append(TreebankError(heads.guessed, NO_RULES, where=where))
            if task == "dependencies":
                raise notes[-1]
            layer = "constituents"
        notes += [note.at(where) for note in annotation(read)]
        sentences += read if layer == task else layers_of(read, layer)
    if problems and not sentences and not lenient:
        first = problems[0]
        problem = f"no sentence of the {split or 'only'} part can be read; the first problem: {first.problem}"
        raise TreebankError(problem, where=first.where, remedy=first.remedy)
    if not sentences and not problems:
        raise CorpusError(f"the {split} part of {name} is empty", remedy="Give another part or another treebank.")
    for note in () if lenient else notes:
        warn_once(str(note))
    return Treebank(name, split, tuple(sentences), tuple(problems), tuple(notes))


class Part(NamedTuple):
    """One treebank of a mixture, the task whose layers are used, and how often an epoch of training sees its sentences.

    name: with the options of the reading, @heads=FILE and @drop=ID,CODE.
    """

    name: str
    task: str
    times: float


class Reading(NamedTuple):
    """How the files of a treebank are read.

    task: whose layers are read. heads: the head rules; None: derive nothing. drop: tags of words to leave out. genres: of GUM,
    with commas; empty for all. unwrap: labels of layout brackets, see `brackets.clean`. free_arcs: see `Sentence`; arcs of
    Universal Dependencies are free. plain: see `brackets.scan_trees`.
    """

    task: str = "joint"
    heads: Heads | None = HEADS
    drop: Collection[str] = ()
    genres: str = ""
    unwrap: tuple[str, ...] = ()
    free_arcs: bool = False
    plain: bool = True


READING = Reading()


def parts_of(treebank: str, task: str = "joint") -> list[Part]:
    """Return the parts of a mixture NAME:LAYER*TIMES+NAME:LAYER*TIMES, such as craft:constituents*0.5+ewt+gum/news.

    LAYER, constituents or dependencies, is the one layer to use; without it, all layers. TIMES is how often an epoch sees the
    sentences: with 0.5 it sees half of them, and the next epoch sees other ones (`check.Lessons`). A folder is never split.
    After a name, @heads=FILE gives head rules, and then @drop=ID,CODE leaves out words with these tags. Raises CorpusError.
    """
    base, *options = OPTION.split(treebank)
    if os.path.exists(base) and not re.search(r"[+*]|:[cd]", "".join(options)):
        return [Part(treebank, task, 1.0)]
    parts = []
    for text in treebank.split("+"):
        match = MIXED.fullmatch(text.strip())
        name, layer, times = match.groups() if match else ("", "", "")
        if not match or (layer and task not in ("joint", layer)) or not 0 < float(times or 1) <= 1000:
            remedy = "Write NAME, NAME:constituents or NAME:dependencies; then perhaps *0.5 (half of it) or *2 (twice)."
            raise CorpusError(f"cannot use {text!r} for the task {task}", remedy, where=treebank)
        parts.append(Part(name, layer or task, float(times or 1)))
    return parts


def subset(sentences: Sequence[Sentence], size: int) -> list[Sentence]:
    """Return `size` sentences from all over a part, at equal distances. Size 0 means all sentences."""
    size = min(size or len(sentences), len(sentences))
    return [sentences[i * len(sentences) // size] for i in range(size)]


def layers_of(sentences: Iterable[Sentence], task: str) -> list[Sentence]:
    """Return the sentences with only those layers that a task learns and scores."""
    without = {"dependencies": {"constituents": None}, "constituents": {"heads": None, "arc_labels": None}}.get(task)
    return [replace(s, **without) if without else s for s in sentences]


# ------------------------------------------------------------------------------------------- from files to sentences


def build(
    tree: Node, gold: conllu.Dependencies | None = None, id: str = "", place: str = "", reading: Reading = READING
) -> Sentence:
    """Build one sentence from its tree and, if there are any, its dependencies.

    Args:
        tree: as the treebank has it.
        gold: dependencies over the same words. Without them, head rules give heads and arc labels; if only their arc labels are
            missing, head rules give these.
        id: the id of the sentence.
        place: the file and line of the tree.
        reading: its head rules, unwrap and free_arcs count.

    Raises:
        TreebankError: the words differ, or the sentence is not well-formed.
    """
    cleaned, rules = brackets.clean(tree, reading.unwrap), reading.heads
    sentence = brackets.tree_to_sentence(cleaned, id)
    # Where gold has the heads, rules only name the arcs: their guesses do not count.
    derive = Heads(rules.rules) if rules and gold else rules
    heads, labels = derive(cleaned) if derive and not (gold and gold.labels) else (None, None)
    if gold:
        _check_same_words(sentence, gold)
        if gold.heads is None:
            raise TreebankError("its dependencies have no heads", "Leave the .conllu file out.", where=f"sentence {id}")
        heads = gold.heads
        if labels and not gold.labels:
            labels = tuple("ROOT" if h == 0 else "DEP" if label == "ROOT" else label for h, label in zip(heads, labels))
    layers: dict[str, Any] = {"heads": heads, "arc_labels": gold and gold.labels or labels, "upos": gold and gold.upos}
    layers["rows"] = gold.rows if gold else ()
    return replace(sentence, place=place, free_arcs=reading.free_arcs, **layers)


def _check_same_words(sentence: Sentence, gold: conllu.Dependencies) -> None:
    pairs = zip_longest(map(_one_name, sentence.words), map(_one_name, gold.words), fillvalue="")
    for number, (in_tree, in_gold) in enumerate(pairs, 1):
        if in_tree != in_gold:
            problem = f"tree and dependencies have different words at word {number}: {in_tree!r} against {in_gold!r}"
            remedy = "Give both the same words, or leave the sentence out of both."
            raise TreebankError(problem, remedy, where=f"sentence {sentence.id}")


def _one_name(word: str) -> str:
    """Return one name for a token that treebanks write in several ways: brackets, and quotation marks (`` and '' are ")."""
    word = brackets.without_slash(word)
    return '"' if word in ("``", "''") else escape_brackets(brackets.unescape(word))


def read_files(trees: Path | None, gold: Path | None, prefix: str, reading: Reading) -> Sentences:
    """Yield the sentences of a file of trees, of a file of dependencies, or of both for the same sentences.

    Ids begin with the prefix, unless gold has its own. Raises TreebankError for `drop` with dependencies.
    """
    both, arcs = reading.task != "constituents", list[Any]()
    if gold and (both or not trees):
        if reading.drop:
            raise TreebankError("words cannot be left out of dependencies", "Leave --drop-tags out.", where=str(gold))
        arcs = list(conllu.scan_conll(check_format(brackets.read_text(gold), gold, trees=False), str(gold)))
    items: list = [(getattr(item, "line", 0), None) for item in arcs]
    if trees:
        items = list(brackets.scan_trees(_text(trees), str(trees), reading.plain))
        read = (item for item in arcs if isinstance(item, conllu.Dependencies))
        free_arcs = reading.free_arcs or conllu.is_universal(label for item in read for label in item.labels or ())
        reading = reading._replace(free_arcs=free_arcs, heads=reading.heads if both else None)
        arcs = arcs if gold and both else [None] * len(items)
    if not items and not arcs:
        yield TreebankError("is empty", "Write at least one sentence into it.", where=str(trees or gold))
    for number, ((line, tree), given) in enumerate(zip(items, arcs), 1):
        place = f"{trees or gold}, line {line}"
        try:
            for part in (tree, given):
                if isinstance(part, TreebankError):
                    raise part
            id = given and given.comments.get("sent_id") or f"{prefix}.{number}"
            if tree is None:
                yield _of_dependencies(given, id, place)
            elif not reading.drop or (tree := brackets.drop_empty(tree, reading.drop)):
                yield build(tree, given, id, place, reading)
        except TreebankError as error:
            yield error if error in (tree, given) else error.at(place)
    if len(arcs) != len(items):
        problem, remedy = f"has {len(arcs)} sentences, but {trees.name} has {len(items)} trees", "Give both the same."
        yield TreebankError(problem, remedy, where=str(gold))


def _text(trees: Path) -> str:
    """Return the text of a file of trees, without the lines of markup of the Chinese Treebank."""
    return MARKUP.sub("", check_format(brackets.read_text(trees), trees, trees=True))


def _of_dependencies(item: conllu.Dependencies, id: str, place: str) -> Sentence:
    """Return a sentence as Universal Dependencies have it: without constituents, unless a comment has their tree."""
    sentence = Sentence(item.words, item.tags, None, item.heads, item.labels, id, place, True, item.upos)
    if tree := item.comments.get(conllu.CONSTITUENCY):
        spans = build(brackets.parse_tree(tree), item, id, place, Reading(heads=None, free_arcs=True)).constituents
        sentence = replace(sentence, constituents=spans)
    return with_text(replace(sentence, rows=item.rows), item.comments.get("text"))


def read_file(file: Path, reading: Reading = READING) -> Sentences:
    """Yield the sentences of one file: of dependencies if its name ends with .conllu or .conll, else of trees."""
    pair: tuple[Any, Any] = (None, file) if file.suffix in (".conllu", ".conll") else (file, None)
    return read_files(*pair, in_utf8(file.stem), reading)


# ---------------------------------------------------------------------------------------------------- named treebanks


def _read_folder(folder: Path, split: str, reading: Reading) -> Sentences:
    trees, dependencies = folder / f"{split}.trees", folder / f"{split}.conllu"
    if not dependencies.exists():  # the names of Universal Dependencies: en_ewt-ud-train.conllu
        candidates = sorted(folder.glob(f"*-{split}.conllu"))
        if len(candidates) > 1:
            problem = f"several files could be the {split} part: {', '.join(file.name for file in candidates)}"
            raise CorpusError(problem, where=str(folder), remedy=f"Leave one there, or name it {dependencies.name}.")
        dependencies = candidates[0] if candidates else None
    if not trees.exists() and dependencies is None:
        remedy = "For each split a treebank folder has a .trees file, or a .conllu file for dependencies alone."
        raise CorpusError(f"no file {trees.name}", where=str(folder), remedy=remedy)
    prefix = f"{in_utf8(folder.name)}-{split}"
    return read_files(trees if trees.exists() else None, dependencies, prefix, reading)


def _of_nltk(folder: Path, corpus: str) -> Path:
    """Return the folder of a corpus of NLTK, or its zip archive, which is read in the same way."""
    if (folder / corpus).is_dir():
        return folder / corpus
    try:
        return zipfile.Path(folder / f"{corpus}.zip", f"{corpus}/")  # type: ignore[return-value]
    except brackets.UNREADABLE as error:
        problem, where = f"is not a whole zip archive ({error})", str(folder / f"{corpus}.zip")
        raise CorpusError(problem, "Delete it and fetch it again.", where=where) from None


def _ptb_sample(folder: Path, split: str, reading: Reading) -> Sentences:
    # Its words keep their backslashes (1\\/2): the shipped parsers learned them, and their cards count them.
    first, last = {"train": (1, 160), "dev": (161, 179), "test": (180, 199)}[split]
    trees, dependencies = _of_nltk(folder, "treebank"), _of_nltk(folder, "dependency_treebank")
    for name in (f"wsj_{number:04d}" for number in range(first, last + 1)):
        pair = trees / "combined" / f"{name}.mrg", dependencies / f"{name}.dp"
        yield from read_files(*pair, name, reading._replace(plain=False))


def _craft(folder: Path, split: str, reading: Reading) -> Sentences:
    """Yield the sentences of articles. Some brackets over a whole line are layout, and not syntax."""
    annotation = folder / "structural-annotation"
    for article in brackets.read_text(folder / "articles" / "ids" / f"craft-ids-{split}.txt").split():
        trees = annotation / "treebank" / "penn" / f"{article}.tree"
        gold = annotation / "dependency" / "conllx" / f"{article}.conll"
        yield from read_files(trees, gold, article, reading._replace(unwrap=("TITLE", "HEADING", "CAPTION")))


def _gum(folder: Path, split: str, reading: Reading) -> Sentences:
    """Yield the documents of some genres, by the corpus's own parts."""
    rows = [line.split("\t") for line in brackets.read_text(folder / "splits.tsv").splitlines()[1:]]
    for number, row in enumerate(rows, 2):
        if len(row) != 2 or not re.fullmatch("[^_/]+_[^_/]+_[^/]+", row[0]) or row[1] not in SPLITS:
            place, remedy = f"{folder}/splits.tsv, line {number}", "A line is GUM_GENRE_NAME, a tab, and the part."
            raise TreebankError(f"{row} is not a document and its part", remedy, where=place)
    known = sorted({document.split("_")[1] for document, _ in rows})  # GUM_GENRE_name
    chosen = reading.genres.split(",") if reading.genres else known
    if unknown := sorted(set(chosen) - set(known)):
        remedy = f"Its genres are {', '.join(known)}; for a folder write ./gum/..."
        raise CorpusError(f"gum has no genre {unknown[0]!r}", remedy=remedy)
    for document, part in rows:
        if part == split and document.split("_")[1] in chosen:
            trees, gold = folder / "const" / f"{document}.ptb", folder / "dep" / f"{document}.conllu"
            for item in read_files(trees, gold, document, reading._replace(free_arcs=True)):
                yield penn_form(item) if isinstance(item, Sentence) else item


def _sinica(folder: Path, split: str, reading: Reading) -> Sentences:
    file = _of_nltk(folder, "sinica_treebank") / "parsed"
    return brackets.read_sinica(brackets.read_text(file), split, str(file))


class Corpus(NamedTuple):
    """Where a named treebank is, and how it is read.

    home: ours (in data/), nltk, or local (a folder in LALKIT_DATA). needs: files that its folder must have. read: its reader.
    """

    home: str
    needs: tuple[str, ...]
    read: Callable[[Path, str, Reading], Sentences] = _read_folder
    splits: tuple[str, ...] = SPLITS


CORPORA = {
    "sample": Corpus("ours", ("train.trees",)),
    "sample-zh": Corpus("ours", ("train.trees",)),
    "ptb-sample": Corpus("nltk", ("treebank", "dependency_treebank"), _ptb_sample),
    "craft": Corpus("local", ("structural-annotation/treebank/penn",), _craft, SPLITS[:2]),
    "ewt": Corpus("local", (), splits=SPLITS[:2]),
    "gum": Corpus("local", ("splits.tsv", "dep", "const"), _gum),
    "masc": Corpus("local", ("train.trees",), splits=SPLITS[:2]),
    "sinica": Corpus("nltk", ("sinica_treebank",), _sinica),
}
NAMES = tuple(CORPORA)


def _read(name: str, folder: Path, split: str, reading: Reading) -> Sentences:
    base, genres = _base_and_genres(name)
    corpus = CORPORA.get(base, Corpus("", ()))
    if split not in corpus.splits:
        raise CorpusError(f"{name} has no {split} part here", remedy="Use train and dev; dev is not used for training.")
    return corpus.read(folder, split, reading._replace(genres=genres))


def _base_and_genres(name: str) -> tuple[str, str]:
    """Return gum and its genres for gum/news,voyage; any other name or folder stays as it is."""
    return ("gum", name.removeprefix("gum/")) if name.startswith("gum/") else (name, "")


def repository() -> Path:
    """Return the checkout from which this package runs, or the current folder if the package was installed without one."""
    root = Path(__file__).resolve().parents[2]
    return root if (root / "data").is_dir() else Path.cwd()


def shipped() -> Path:
    """Return the folder data/ of the checkout, or (from a wheel) the part of it that setup.py puts into the package."""
    package = Path(__file__).resolve().parents[1]
    return package / "data" if (package / "data").is_dir() else package.parent / "data"


def cache_folder() -> Path:
    """Return the folder in which lalkit looks for corpora without LALKIT_DATA."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lalkit"


def find(name: str) -> Path | None:
    """Return the folder of a corpus (for NLTK's: their common folder), or None if it is not on this machine."""
    base, _ = _base_and_genres(name)
    home, needs, *_ = CORPORA.get(base, ("", ()))
    if home == "ours":
        folders = [shipped() / name]
    elif home == "nltk":
        import nltk.data

        folders = [Path(str(folder), "corpora") for folder in (*_folders_of("NLTK_DATA"), *nltk.data.path)]
    elif home == "local":
        folders = [Path(folder) / base for folder in (*_folders_of("LALKIT_DATA"), str(cache_folder()))]
    else:
        folders = [Path(name)]
    for folder in filter(os.path.isdir, folders):
        if all((folder / part).exists() or (folder / f"{part}.zip").is_file() for part in needs):
            return folder
    return None


def _folders_of(variable: str) -> list[str]:
    return [folder for folder in os.environ.get(variable, "").split(os.pathsep) if folder]


def missing(name: str) -> CorpusError:
    """Return the error for a corpus that is not on this machine, with the command that gets it."""
    base, _ = _base_and_genres(name)
    if base not in CORPORA:
        remedy = f"Give one of {', '.join(NAMES)}, or a folder with train.trees, dev.trees, test.trees."
        if os.path.isfile(name):
            remedy = "One file has no parts: leave the split out, or put the file into a folder as test.trees."
        return CorpusError(f"there is no treebank {name!r}", remedy=remedy)
    remedy = f"Get it with: lalkit data fetch {name}   (or set NLTK_DATA to the folder that has it)"
    if CORPORA[base].home == "local":
        remedy = f"Put it into a folder {base} of a folder that LALKIT_DATA names: data/README.md says how."
    if base == "craft":
        remedy = f"Get it with: {GET_CRAFT} {cache_folder() / base}   (or set LALKIT_DATA to the folder that has it)"
    return CorpusError(f"the corpus {base} is not on this machine", remedy=remedy)


# ------------------------------------------------------------------------------------------------------------ download


def fetch(name: str) -> Path:
    """Return the folder of a corpus, and download it first if it is not here yet. Raises CorpusError if that fails."""
    if find(name) is None:
        if name not in CORPORA or CORPORA[name].home != "nltk":
            raise missing(name)
        import nltk

        try:
            nltk.download([*CORPORA[name].needs], quiet=True, raise_on_error=True)
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            remedy = "Is this machine online, and its disk not full? Try again, or see data/README.md."
            raise CorpusError(f"{name} could not be downloaded ({error})", remedy=remedy) from None
    if folder := find(name):
        return folder
    remedy = "Delete it in NLTK's folder, and fetch it again."
    raise CorpusError(f"{name} was downloaded but is not complete", remedy=remedy)


# ------------------------------------------------------------------------------------------ constituents of a parser

WH_PHRASES = {"WDT": "WHNP", "WP": "WHNP", "WRB": "WHADVP"}
PLAIN = (None, "NP", "ADVP")  # the labels that a parser gives such a word instead
NUMBER_WORDS = frozenset({"hundred", "thousand", "million", "billion", "trillion"})


def penn_form(sentence: Sentence) -> Sentence:
    """Return the sentence with two kinds of small constituents that the Penn Treebank has, and nothing else changed.

    The parser that made the constituents of GUM leaves them out, or names them otherwise. On the trees that people drew for
    the Penn Treebank sample, these rules change next to nothing (a test counts):

    * a relative pronoun or question word alone at the beginning of a clause is a WHNP or a WHADVP: (SBAR (WHNP who) (S ...));
    * a number of several words is a QP: (NP (QP $ 1.5 million)), (NP (QP 3 million) people).
    """
    if sentence.constituents is None:
        return sentence
    labels = {(start, end): label for start, end, label in sentence.constituents}
    for start, end, label in sentence.constituents:
        wh = WH_PHRASES.get(sentence.tags[start])
        child_ends = [e for s, e in labels if s == start and e < end]
        if label.split(UNARY)[-1] in ("SBAR", "SBARQ") and wh and max(child_ends, default=start + 1) == start + 1 < end:
            if labels.get((start, start + 1)) in PLAIN:
                labels[start, start + 1] = wh
    end = 0
    for number, run in groupby(sentence.tags, lambda tag: tag in ("$", "#", "CD")):
        start, end = end, end + len(list(run))
        words = {word.lower() for word in sentence.words[start:end]}
        crossed = any(s < start < e < end or start < s < end < e for s, e in labels)  # it has only a part of the number
        if not number or end - start == 1 or crossed or words.isdisjoint(NUMBER_WORDS):
            continue
        around = [span for span in labels if span[0] <= start and end <= span[1]]
        smallest = min(around, key=lambda span: span[1] - span[0], default=None)
        if smallest is None or not labels[smallest].endswith("QP"):
            labels[start, end] = f"{labels[start, end]}{UNARY}QP" if smallest == (start, end) else "QP"
    return replace(sentence, constituents=tuple(Span(*span, label) for span, label in labels.items()))
