"""Treebanks by name: where their files are, how they are split and read, and what to do if they are missing.

| name       | files                                        | train / dev / test            | arc labels            |
|------------|----------------------------------------------|-------------------------------|-----------------------|
| sample     | data/sample (ours, in the repository)        | by file                       | our head rules        |
| sample-zh  | data/sample-zh (ours, Chinese)               | by file                       | our Chinese rules     |
| ptb-sample | NLTK treebank + dependency_treebank          | 0001-0160 / -0179 / -0199     | our rules (from tags) |
| craft      | CRAFT treebank + dependencies                | 60 / 7 articles / none        | gold, Stanford style  |
| ewt        | UD English EWT, dependencies alone           | by file, no test              | gold, UD              |
| gum        | GUM; gum/news,voyage: only these genres      | by document                   | gold, UD              |
| sinica     | NLTK sinica_treebank (traditional Chinese)   | by line: 8 / 1 / 1 of ten     | gold roles            |
| a folder   | {train,dev,test}.trees and, if any, .conllu  | by file                       | from the .conllu      |

Several of them with + between them are a mixture: see `lalkit.treebank.mixture`.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lalkit.errors import CorpusError, TreebankError
from lalkit.treebank import brackets, conllu, sinica
from lalkit.treebank.head_words import Rules, derive
from lalkit.treebank.mixture import LABELS, layers_of, parts_of, without_genres
from lalkit.treebank.silver import penn_form
from lalkit.treebank.tree import Node, Sentence
from lalkit.treebank.tree import escape as escape_brackets

if TYPE_CHECKING:
    from lalkit.treebank.search import Hits

SPLITS = ("train", "dev", "test")
SHOWN = 10  # sentences of a treebank that a notebook displays
CRAFT_WRAPPERS = ("TITLE", "HEADING", "CAPTION")  # layout over a whole line, not syntax
OURS = ("sample", "sample-zh")
NAMES = tuple(LABELS)
PAIRED = "The files of trees and of dependencies need the same sentences in the same order."
# NLTK's names for them.
NLTK = {"ptb-sample": ("treebank", "dependency_treebank"), "sinica": ("sinica_treebank",)}
# The folders in LALKIT_DATA, and what one must contain.
LOCAL: dict[str, tuple[str, ...]] = {
    "craft": ("structural-annotation/treebank/penn",),
    "ewt": (),
    "gum": ("splits.tsv", "dep", "const"),
}
BY_HAND = ("ewt", "gum")  # lalkit cannot download these


@dataclass(frozen=True, repr=False)
class Treebank:
    """The sentences of one split, and the problems met while reading. Each problem names file, line and sentence.

    >>> treebank = Treebank.load("sample", "test")
    >>> treebank
    Treebank 'sample', test: 44 sentences, 678 words
    >>> " ".join(treebank[0].words)
    'Total cost : $ 4.2 million .'
    """

    name: str
    split: str
    sentences: tuple[Sentence, ...]
    problems: tuple[TreebankError, ...] = ()

    @classmethod
    def load(cls, name: str, split: str, *, task: str = "joint", lenient: bool = False) -> Treebank:
        """Load one split of a named treebank, or of a folder. The arguments are those of `lalkit.treebank.corpora.load`."""
        return load(name, split, task=task, lenient=lenient)

    def __len__(self) -> int:
        return len(self.sentences)

    def __iter__(self) -> Iterator[Sentence]:
        return iter(self.sentences)

    def __getitem__(self, place: int | slice) -> Any:
        """Return one sentence, or the treebank of a slice of the sentences (without the problems)."""
        if isinstance(place, slice):
            return replace(self, sentences=self.sentences[place], problems=())
        return self.sentences[place]

    def search(self, pattern: str, **conditions) -> Hits:
        """Search the gold trees with a pattern of tgrep, such as "SBAR < (IN < that)". conditions: those of `Pattern`.

        >>> Treebank.load("sample", "test").search("SBAR < (IN < that)")
        2 matches of 'SBAR < (IN < that)' in 2 sentences
        """
        from lalkit.treebank.search import search  # it loads a part of NLTK

        return search(self, pattern, **conditions)

    def __repr__(self) -> str:
        problems = f", {len(self.problems)} problems" if self.problems else ""
        words = sum(map(len, self.sentences))
        return f"Treebank {self.name!r}, {self.split}: {len(self)} sentences, {words} words{problems}"

    def _repr_html_(self) -> str:
        """Show the first sentences in a notebook."""
        rows = [f"<tr><td>{escape(s.id)}</td><td>{escape(' '.join(s.words))}</td></tr>" for s in self[:SHOWN]]
        more = f"<tr><td></td><td>and {len(self) - SHOWN} more</td></tr>" if len(self) > SHOWN else ""
        return f"<table><caption>{escape(repr(self))}</caption>{''.join(rows)}{more}</table>"


def load(name: str, split: str, *, task: str = "joint", lenient: bool = False) -> Treebank:
    """Load one split of a named corpus, or of a folder of treebank files.

    Args:
        name: a name of the table above, a folder, or a mixture of them.
        split: train, dev or test.
        task: 'constituents' reads trees only. 'joint' reads both layers. 'dependencies' leaves out each sentence that cannot be
            read, and adds it to the problems.
        lenient: collect problems instead of raising the first one.

    Raises:
        CorpusError: the corpus or the split is missing or empty, a genre is unknown, or treebanks cannot be mixed.
        TreebankError: the first problem. For 'dependencies' only if no sentence is left.
    """
    if split not in SPLITS:
        raise CorpusError(f"there is no split {split!r}", remedy=f"The splits are {', '.join(SPLITS)}.")
    parts = parts_of(name, task)
    if parts != [(name, task, 1)]:
        mixed = [(part, load(part.name, split, task=part.task, lenient=lenient)) for part in parts]
        sentences = [s for part, corpus in mixed for s in layers_of(corpus.sentences, part.task)]
        return Treebank(name, split, tuple(sentences), tuple(p for _, corpus in mixed for p in corpus.problems))
    folder = find(name)
    if folder is None:
        raise missing(name)
    gum = without_genres(name) == "gum"
    read = partial(_read_gum, genres=name[len("gum/") :]) if gum else READERS.get(name, _read_folder)
    sentences, problems = [], []
    for item in read(folder, split, task):
        if isinstance(item, Sentence):
            sentences.append(item)
        elif lenient or task == "dependencies":
            problems.append(item)
        else:
            raise item
    if problems and not sentences and not lenient:
        first = problems[0]
        problem = f"no sentence of the {split} part can be read; the first problem: {first.problem}"
        raise TreebankError(problem, where=first.where, remedy=first.remedy)
    if not sentences and not problems:
        remedy = "Give another part or another treebank."
        raise CorpusError(f"the {split} part of {name} is empty", remedy=remedy)
    return Treebank(name, split, tuple(sentences), tuple(problems))


def build(
    tree: Node,
    gold: conllu.Dependencies | None,
    id: str,
    unwrap: tuple[str, ...] = (),
    rules: Rules | None = derive,
    place: str = "",
    free_arcs: bool = False,
) -> Sentence:
    """Build one sentence from its tree and, if there are any, its dependencies.

    Args:
        tree: as the treebank has it.
        gold: dependencies over the same words. Without them, head rules give heads and arc labels; if only their arc labels are
            missing, head rules give these.
        id: the id of the sentence.
        unwrap: labels of layout brackets, see `brackets.clean`.
        rules: the head rules; None: derive nothing.
        place: the file and line of the tree.
        free_arcs: see `Sentence`.

    Raises:
        TreebankError: the words differ, or the sentence is not well-formed.
    """
    cleaned = brackets.clean(tree, unwrap)
    sentence = brackets.tree_to_sentence(cleaned, id)
    heads = labels = upos = None
    if gold is not None:
        _check_same_words(sentence, gold)
        heads, labels, upos = gold.heads, gold.labels, gold.upos
        if labels is None and rules:
            derived = rules(cleaned)[1]
            named = zip(heads, derived)
            labels = tuple("ROOT" if h == 0 else "DEP" if label == "ROOT" else label for h, label in named)
    elif rules:
        heads, labels = rules(cleaned)
    return Sentence(sentence.words, sentence.tags, sentence.constituents, heads, labels, id, place, free_arcs, upos)


def _check_same_words(sentence: Sentence, gold: conllu.Dependencies) -> None:
    in_tree = [_one_name(word) for word in sentence.words]
    in_gold = [_one_name(word) for word in gold.words]
    if in_tree != in_gold:
        at = next(i for i, (a, b) in enumerate(zip_longest(in_tree, in_gold)) if a != b)
        raise TreebankError(
            f"the tree has {len(in_tree)} words, the dependencies {len(in_gold)}; they differ from word {at + 1}: "
            f"{' '.join(in_tree[at : at + 3])!r} against {' '.join(in_gold[at : at + 3])!r}",
            where=f"sentence {sentence.id}",
            remedy="Give both the same words, or leave the sentence out of both.",
        )


def _one_name(word: str) -> str:
    """Return one name for a token that treebanks write in several ways: brackets, and quotation marks (`` and '' are ")."""
    return '"' if word in ("``", "''") else escape_brackets(brackets.unescape(word))


class Source(NamedTuple):
    """The text of a file, and the place that error messages name."""

    place: str
    text: str


class NumberedTree(NamedTuple):
    """A tree or its error, with its place (file and line) and the id of its sentence."""

    place: str
    id: str
    tree: Node | TreebankError


def pair(
    trees: Iterable[NumberedTree],
    gold: Source | None,
    rules: Rules | None,
    unwrap: tuple[str, ...] = (),
    use_sent_id: bool = True,
    free_arcs: bool = False,
) -> Iterator[tuple[Node, Sentence] | TreebankError]:
    """Yield each tree with its sentence. A problem takes the place of the sentence that it makes unreadable.

    Args:
        trees: in order.
        gold: a CoNLL text with the dependencies of the same sentences, or None.
        rules: head rules for what gold does not give, see `build`.
        unwrap: labels of layout brackets, see `brackets.clean`.
        use_sent_id: take the ids of the sentences from gold, if it has any.
        free_arcs: see `Sentence`.
    """
    dependencies = conllu.scan_conll(gold.text, gold.place) if gold else iter(())
    for place, id, tree in trees:
        arcs = next(dependencies, None)
        if gold and arcs is None:
            yield TreebankError(f"ends before the tree of {place}", where=gold.place, remedy=PAIRED)
            return
        if isinstance(tree, TreebankError):
            yield tree
        elif isinstance(arcs, TreebankError):
            yield arcs
        else:
            if arcs and use_sent_id:
                id = arcs.comments.get("sent_id") or id
            try:
                yield tree, build(tree, arcs, id, unwrap, rules, place, free_arcs)
            except TreebankError as error:
                yield error.at(place)
    if next(dependencies, None) is not None:
        yield TreebankError("has more sentences than there are trees", where=gold.place, remedy=PAIRED)


# ---------------------------------------------------------------------------------------------------------- where files are


def repository() -> Path:
    """Return the checkout from which this package runs, or the current folder if the package was installed without one."""
    root = Path(__file__).resolve().parents[2]
    return root if (root / "data").is_dir() else Path.cwd()


def shipped() -> Path:
    """Return the folder data/ of the checkout, or (from a wheel) the part of it that setup.py puts into the package."""
    package = Path(__file__).resolve().parents[1]
    return package / "data" if (package / "data").is_dir() else package.parent / "data"


def cache_folder() -> Path:
    """Return the folder into which `lalkit data fetch` puts corpora."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lalkit"


def find(name: str) -> Path | None:
    """Return the folder of a corpus (for NLTK's: their common folder), or None if it is not on this machine."""
    folders, parts, base = [Path(name)], NLTK.get(name, ()), without_genres(name)
    if name in OURS:
        folders, parts = [shipped() / name], ("train.trees",)
    elif name in NLTK:
        import nltk.data

        folders = [Path(str(folder), "corpora") for folder in (*_folders_of("NLTK_DATA"), *nltk.data.path)]
    elif base in LOCAL:
        folders = [Path(folder) / base for folder in (*_folders_of("LALKIT_DATA"), str(cache_folder()))]
        parts = LOCAL[base]
    for folder in folders:
        if folder.is_dir() and all((folder / part).exists() or (folder / f"{part}.zip").is_file() for part in parts):
            return folder
    return None


def _folders_of(variable: str) -> list[str]:
    return [folder for folder in os.environ.get(variable, "").split(os.pathsep) if folder]


def missing(name: str) -> CorpusError:
    """Return the error for a corpus that is not on this machine, with the command that gets it."""
    base = without_genres(name)
    if base in NAMES:
        remedy = f"Get it with: lalkit data fetch {name}   (or set NLTK_DATA / LALKIT_DATA to the folder that has it)"
        if base in BY_HAND:
            remedy = f"Put it into a folder {base} of a folder that LALKIT_DATA names: data/README.md says how."
        return CorpusError(f"the corpus {base} is not on this machine", remedy=remedy)
    remedy = f"Give one of {', '.join(NAMES)}, or a folder with train.trees, dev.trees, test.trees."
    return CorpusError(f"there is no treebank {name!r}", remedy=remedy)


# --------------------------------------------------------------------------------------------------------------- readers

Sentences = Iterator[Sentence | TreebankError]


def _read_folder(folder: Path, split: str, task: str) -> Sentences:
    trees, dependencies = folder / f"{split}.trees", folder / f"{split}.conllu"
    if not dependencies.exists():  # the names of Universal Dependencies: en_ewt-ud-train.conllu
        candidates = sorted(folder.glob(f"*-{split}.conllu"))
        if len(candidates) > 1:
            problem = (
                f"{len(candidates)} files could be the {split} part: {', '.join(file.name for file in candidates)}"
            )
            remedy = f"Leave one there, or put them together as {dependencies.name}."
            raise CorpusError(problem, where=str(folder), remedy=remedy)
        dependencies = candidates[0] if candidates else None
    prefix = f"{folder.name}-{split}"
    if trees.exists():
        gold = _source(dependencies) if dependencies else None
        return _not_empty(_pair_files(_source(trees), gold, prefix, task), trees)
    if dependencies is None:
        remedy = "For each split a treebank folder has a .trees file, or a .conllu file for dependencies alone."
        raise CorpusError(f"no file {trees.name}", where=str(folder), remedy=remedy)
    return _not_empty(_dependencies_alone(_source(dependencies), prefix), dependencies)


def _not_empty(sentences: Sentences, file: Path) -> Sentences:
    """Yield the sentences and problems of a file. If there are none, this is a problem, too."""
    empty = True
    for item in sentences:
        empty = False
        yield item
    if empty:
        yield TreebankError("is empty", where=str(file), remedy="Write at least one sentence into it.")


def _dependencies_alone(source: Source, prefix: str) -> Sentences:
    """Yield sentences without constituents, as Universal Dependencies have them."""
    for number, item in enumerate(conllu.scan_conll(source.text, source.place), 1):
        if isinstance(item, TreebankError):
            yield item
            continue
        try:
            id, place = item.comments.get("sent_id") or f"{prefix}.{number}", f"{source.place}, line {item.line}"
            yield Sentence(item.words, item.tags, None, item.heads, item.labels, id, place, True, item.upos)
        except TreebankError as error:
            yield error.at(place)


def _read_ptb_sample(folder: Path, split: str, task: str) -> Sentences:
    first, last = {"train": (1, 160), "dev": (161, 179), "test": (180, 199)}[split]
    trees, dependencies = _member_reader(folder, "treebank"), _member_reader(folder, "dependency_treebank")
    for number in range(first, last + 1):
        name = f"wsj_{number:04d}"
        files = trees(f"treebank/combined/{name}.mrg"), dependencies(f"dependency_treebank/{name}.dp")
        yield from _pair_files(*files, name, task)


def _read_sinica(folder: Path, split: str, task: str) -> Sentences:
    source = _member_reader(folder, "sinica_treebank")("sinica_treebank/parsed")
    return sinica.read(source.text, split, source.place)


def _member_reader(folder: Path, corpus: str) -> Callable[[str], Source]:
    """Return a function that reads a file of an NLTK corpus, from its folder or from its zip archive."""
    if (folder / corpus).is_dir():
        return lambda member: Source(member, brackets.read_text(folder / member))
    file = folder / f"{corpus}.zip"
    try:
        archive = zipfile.ZipFile(io.BytesIO(file.read_bytes()))
    except zipfile.BadZipFile:
        remedy = "Delete it and fetch it again."
        raise CorpusError("is no complete zip archive", where=str(file), remedy=remedy) from None
    return lambda member: Source(member, brackets.decode(archive.read(member), f"{file.name}:{member}"))


def _read_craft(folder: Path, split: str, task: str) -> Sentences:
    ids = folder / "articles" / "ids" / f"craft-ids-{split}.txt"
    if not ids.exists():
        raise CorpusError(f"CRAFT has no {split} part here", remedy="Use train and dev; dev is not used for training.")
    annotation = folder / "structural-annotation"
    for article in brackets.read_text(ids).split():
        trees = _source(annotation / "treebank" / "penn" / f"{article}.tree")
        dependencies = _source(annotation / "dependency" / "conllx" / f"{article}.conll")
        yield from _pair_files(trees, dependencies, article, task, CRAFT_WRAPPERS)


def _read_ewt(folder: Path, split: str, task: str) -> Sentences:
    if split == "test":
        raise CorpusError("ewt has no test part here", remedy="Use train and dev; dev is not used for training.")
    return _read_folder(folder, split, task)


def _read_gum(folder: Path, split: str, task: str, genres: str) -> Sentences:
    """Yield the sentences of the documents of some genres, by the corpus's own parts. genres: with commas; empty for all."""
    file = folder / "splits.tsv"
    rows = [line.split("\t") for line in brackets.read_text(file).splitlines()[1:]]
    documents = dict(rows)
    known = sorted({document.split("_")[1] for document in documents})  # GUM_GENRE_name
    chosen = genres.split(",") if genres else known
    if unknown := sorted(set(chosen) - set(known)):
        remedy = f"Its genres are {', '.join(known)}; for a folder write ./gum/..."
        raise CorpusError(f"gum has no genre {unknown[0]!r}", remedy=remedy)
    for document, part in documents.items():
        if part == split and document.split("_")[1] in chosen:
            trees, gold = _source(folder / "const" / f"{document}.ptb"), _source(folder / "dep" / f"{document}.conllu")
            for item in _pair_files(trees, gold, document, task, free_arcs=True):
                yield penn_form(item) if isinstance(item, Sentence) else item


READERS = {"ptb-sample": _read_ptb_sample, "craft": _read_craft, "ewt": _read_ewt, "sinica": _read_sinica}


def _source(path: Path) -> Source:
    return Source(str(path), brackets.read_text(path))


def _pair_files(
    trees: Source, gold: Source | None, prefix: str, task: str, unwrap: tuple[str, ...] = (), free_arcs: bool = False
) -> Sentences:
    """Yield the sentences of a file of trees and a file of dependencies. Ids begin with the prefix, unless gold has its own."""
    numbered = (
        NumberedTree(f"{trees.place}, line {line}", f"{prefix}.{number}", tree)
        for number, (line, tree) in enumerate(brackets.scan_trees(trees.text, trees.place), 1)
    )
    both = task != "constituents"
    for item in pair(numbered, gold if both else None, derive if both else None, unwrap, free_arcs=free_arcs):
        yield item if isinstance(item, TreebankError) else item[1]
