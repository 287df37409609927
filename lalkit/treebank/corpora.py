"""Named treebanks with fixed splits: where their files are, how they are read, what to do when they are missing.

| name       | files                                        | train / dev / test            | arc labels            |
|------------|----------------------------------------------|-------------------------------|-----------------------|
| sample     | data/sample (ours, in the repository)        | by file                       | our head rules        |
| sample-zh  | data/sample-zh (ours, Chinese)               | by file                       | our Chinese rules     |
| ptb-sample | NLTK treebank + dependency_treebank          | 0001-0160 / -0179 / -0199     | our rules (from tags) |
| craft      | CRAFT treebank + dependencies                | 60 / 7 articles / none        | gold, Stanford style  |
| sinica     | NLTK sinica_treebank (traditional Chinese)   | by line: 8 / 1 / 1 of ten     | gold roles            |
| a folder   | {train,dev,test}.trees and, if any, .conllu  | by file                       | from the .conllu      |
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lalkit.errors import CorpusError, TreebankError
from lalkit.treebank import brackets, conllu, sinica
from lalkit.treebank.head_words import Rules, derive
from lalkit.treebank.tree import Node, Sentence

SPLITS = ("train", "dev", "test")
CRAFT_WRAPPERS = ("TITLE", "HEADING", "CAPTION")  # layout over a whole line, not syntax
OURS = ("sample", "sample-zh")
NAMES = (*OURS, "ptb-sample", "craft", "sinica")
NLTK = {"ptb-sample": ("treebank", "dependency_treebank"), "sinica": ("sinica_treebank",)}  # what NLTK calls them


@dataclass(frozen=True)
class Corpus:
    """The sentences of one split, and every problem met while reading (each names file, line and sentence)."""

    name: str
    split: str
    sentences: tuple[Sentence, ...]
    problems: tuple[TreebankError, ...] = ()

    def __len__(self) -> int:
        return len(self.sentences)


def load(name: str, split: str, *, task: str = "joint", lenient: bool = False, keep_wrappers: bool = False) -> Corpus:
    """One split of a named corpus or of a folder of treebank files.

    task: of 'constituents', no dependencies are asked of trees; of 'dependencies', whose arcs cross in most treebanks, what
    lalkit cannot parse is left out: a problem. keep_wrappers: leave CRAFT's TITLE, HEADING and CAPTION brackets in the trees.
    Raises CorpusError for a missing corpus or split, and TreebankError at the first problem (of 'dependencies', where
    nothing is left) unless lenient, when problems are collected instead.
    """
    if split not in SPLITS:
        raise CorpusError(f"there is no split {split!r}", remedy=f"The splits are {', '.join(SPLITS)}.")
    if name == "ptb-sample":
        items = _read_ptb_sample(split, task)
    elif name == "craft":
        items = _read_craft(split, task, () if keep_wrappers else CRAFT_WRAPPERS)
    elif name == "sinica":
        items = _read_sinica(split)
    else:
        items = _read_folder(name, sample_folder(name) if name in OURS else Path(name), split, task)
    sentences, problems = [], []
    for item in items:
        if isinstance(item, Sentence):
            sentences.append(item)
        elif lenient or task == "dependencies":
            problems.append(item)
        else:
            raise item
    if problems and not sentences and not lenient:
        raise TreebankError(
            f"no sentence of the {split} part can be read; of the first: {problems[0].problem}",
            where=problems[0].where,
            remedy=problems[0].remedy or f"See: lalkit data check {name}",
        )
    if not sentences and not lenient:
        raise CorpusError(f"the {split} part of {name} is empty")
    return Corpus(name, split, tuple(sentences), tuple(problems))


def build(
    tree: Node, gold: conllu.Dependencies | None, id: str, unwrap: tuple[str, ...] = (), rules: Rules | None = derive
) -> Sentence:
    """One sentence from its tree and, if given, its dependencies, whose tokens must be the same.

    Without dependencies, or without arc labels, head rules give them: `derive`'s for the language, or others; None: none do.
    Raises TreebankError.
    """
    cleaned = brackets.clean(tree, unwrap)
    sentence = brackets.tree_to_sentence(cleaned, id)
    heads = labels = None
    if gold is None and rules:
        heads, labels = rules(cleaned)
    elif gold is not None:
        ours = [brackets.unescape(word) for word in sentence.words]
        theirs = [brackets.unescape(word) for word in gold.words]
        if ours != theirs:
            at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
            raise TreebankError(
                f"the tree has {len(ours)} words, the dependencies {len(theirs)}; they differ from word {at + 1}: "
                f"{' '.join(ours[at : at + 3])!r} against {' '.join(theirs[at : at + 3])!r}",
                where=f"sentence {id}",
            )
        heads, labels = gold.heads, gold.labels
        if labels is None and rules:
            derived = rules(cleaned)[1]
            labels = ["ROOT" if h == 0 else "DEP" if label == "ROOT" else label for h, label in zip(heads, derived)]
    return Sentence(sentence.words, sentence.tags, sentence.constituents, heads, labels, id)


def pair(
    trees: Iterator[tuple[int, Node | TreebankError]],
    gold: Iterator[conllu.Dependencies | TreebankError] | None,
    place: str,
    prefix: str,
    task: str,
    unwrap: tuple[str, ...] = (),
) -> Iterator[Sentence | TreebankError]:
    """Trees and dependencies, sentence by sentence; a problem takes the place of the sentence it spoils."""
    number, rules = 0, derive
    if task == "constituents":
        gold = rules = None
    for number, (line, tree) in enumerate(trees, 1):
        deps = None
        if gold is not None:
            deps = next(gold, None)
            if deps is None:
                yield TreebankError(
                    f"no dependencies for tree {number} and those after it", where=f"{place}, line {line}"
                )
                return
        broken = next((item for item in (tree, deps) if isinstance(item, TreebankError)), None)
        if broken is not None:
            yield broken
            continue
        try:
            id = deps.comments.get("sent_id", "") if deps is not None else ""
            yield build(tree, deps, id or f"{prefix}.{number}", unwrap, rules)
        except TreebankError as error:
            yield error.at(f"{place}, line {line}")
    if gold is not None and next(gold, None) is not None:
        yield TreebankError(f"more dependencies than its {number} trees", where=place)


# ---------------------------------------------------------------------------------------------------------- where files are


def repository() -> Path:
    """The checkout this package runs from (installed without one, the current folder)."""
    root = Path(__file__).resolve().parents[2]
    return root if (root / "data").is_dir() else Path.cwd()


def sample_folder(name: str = "sample") -> Path:
    return repository() / "data" / name


def data_folders() -> list[Path]:
    """Folders in which `lalkit data fetch` corpora are looked for: $LALKIT_DATA, then the user's cache."""
    given = [Path(p) for p in os.environ.get("LALKIT_DATA", "").split(os.pathsep) if p]
    return given + [cache_folder()]


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lalkit"


def find(name: str) -> Path | None:
    """The folder (or, for NLTK's, its corpora folder) of a named corpus, or None where it is not on this machine."""
    if name in OURS:
        return sample_folder(name) if (sample_folder(name) / "train.trees").exists() else None
    if name in NLTK:
        return next((f for f in nltk_folders() if all(_nltk_has(f, corpus) for corpus in NLTK[name])), None)
    if name == "craft":
        wanted = "structural-annotation/treebank/penn"
        return next((f / "craft" for f in data_folders() if (f / "craft" / wanted).is_dir()), None)
    return Path(name) if Path(name).is_dir() else None


def nltk_folders() -> list[Path]:
    import nltk.data

    given = [p for p in os.environ.get("NLTK_DATA", "").split(os.pathsep) if p]
    return [Path(p) / "corpora" for p in dict.fromkeys([*given, *nltk.data.path])]


def _nltk_has(folder: Path, corpus: str) -> bool:
    return (folder / corpus).is_dir() or (folder / f"{corpus}.zip").is_file()


def missing(name: str) -> CorpusError:
    if name in NAMES:
        return CorpusError(
            f"the corpus {name} is not on this machine",
            remedy=f"Get it with: lalkit data fetch {name}   (or set NLTK_DATA / LALKIT_DATA to the folder that has it)",
        )
    return CorpusError(
        f"there is no treebank {name!r}",
        remedy=f"Give one of {', '.join(NAMES)}, or a folder with train.trees, dev.trees, test.trees.",
    )


# --------------------------------------------------------------------------------------------------------------- readers


def _read_folder(name: str, folder: Path, split: str, task: str) -> Iterator[Sentence | TreebankError]:
    if not folder.is_dir():
        raise missing(name)
    trees, deps = folder / f"{split}.trees", folder / f"{split}.conllu"
    if not deps.exists():  # as UD names them: en_ewt-ud-train.conllu
        named = sorted(folder.glob(f"*-{split}.conllu"))
        if len(named) > 1:
            raise CorpusError(
                f"{len(named)} files could be the {split} part: {', '.join(file.name for file in named)}",
                where=str(folder),
                remedy=f"Leave one there, or put them together as {deps.name}.",
            )
        deps = named[0] if named else deps
    if not trees.exists() and not deps.exists():
        raise CorpusError(
            f"no file {trees.name}",
            where=str(folder),
            remedy="A treebank folder has a .trees file a split, or a .conllu file for dependencies alone.",
        )
    gold = conllu.scan_leniently(brackets.read_text(deps), str(deps)) if deps.exists() else None
    if not trees.exists():
        return _dependencies_alone(gold, str(deps), f"{folder.name}-{split}")
    return pair(
        brackets.scan_leniently(brackets.read_text(trees), str(trees)), gold, str(trees), f"{folder.name}-{split}", task
    )


def _dependencies_alone(
    gold: Iterator[conllu.Dependencies | TreebankError], place: str, prefix: str
) -> Iterator[Sentence | TreebankError]:
    """Sentences without constituents: Universal Dependencies."""
    for number, deps in enumerate(gold, 1):
        if isinstance(deps, TreebankError):
            yield deps
            continue
        try:
            id = deps.comments.get("sent_id") or f"{prefix}.{number}"
            yield Sentence(deps.words, deps.tags, None, deps.heads, deps.labels, id)
        except TreebankError as error:
            yield error.at(f"{place}, line {deps.line}")


def _read_ptb_sample(split: str, task: str) -> Iterator[Sentence | TreebankError]:
    folder = find("ptb-sample")
    if folder is None:
        raise missing("ptb-sample")
    first, last = {"train": (1, 160), "dev": (161, 179), "test": (180, 199)}[split]
    trees, deps = _opener(folder, "treebank"), _opener(folder, "dependency_treebank")
    for number in range(first, last + 1):
        name = f"wsj_{number:04d}"
        mrg, dp = f"treebank/combined/{name}.mrg", f"dependency_treebank/{name}.dp"
        yield from pair(brackets.scan_leniently(trees(mrg), mrg), conllu.scan_leniently(deps(dp), dp), mrg, name, task)


def _read_sinica(split: str) -> Iterator[Sentence | TreebankError]:
    folder = find("sinica")
    if folder is None:
        raise missing("sinica")
    member = "sinica_treebank/parsed"
    yield from sinica.read(_opener(folder, "sinica_treebank")(member), split, member)


def _opener(folder: Path, corpus: str):
    """member name -> text, from the unpacked corpus or from its zip."""
    if (folder / corpus).is_dir():
        return lambda member: brackets.read_text(folder / member)
    try:
        archive = zipfile.ZipFile(io.BytesIO((folder / f"{corpus}.zip").read_bytes()))
    except zipfile.BadZipFile:
        raise CorpusError(
            "is no complete zip archive", where=str(folder / f"{corpus}.zip"), remedy="Delete it and fetch it again."
        ) from None
    return lambda member: brackets.decode(archive.read(member), f"{corpus}.zip:{member}")


def _read_craft(split: str, task: str, unwrap: tuple[str, ...]) -> Iterator[Sentence | TreebankError]:
    folder = find("craft")
    if folder is None:
        raise missing("craft")
    ids = folder / "articles" / "ids" / f"craft-ids-{split}.txt"
    if not ids.exists():
        raise CorpusError(f"CRAFT has no {split} part here", remedy="Use train and dev; dev is not used for training.")
    structural = folder / "structural-annotation"
    for article in brackets.read_text(ids).split():
        trees = structural / "treebank" / "penn" / f"{article}.tree"
        deps = structural / "dependency" / "conllx" / f"{article}.conll"
        yield from pair(
            brackets.scan_leniently(brackets.read_text(trees), str(trees)),
            conllu.scan_leniently(brackets.read_text(deps), str(deps)),
            str(trees),
            article,
            task,
            unwrap,
        )
