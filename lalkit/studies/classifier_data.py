"""The data of the classifiers: texts of one's own, three corpora of NLTK, and generated stories (bAbI) and pairs.

| name                    | from                  | train / dev / test                          | stands for the paper's |
|-------------------------|-----------------------|---------------------------------------------|------------------------|
| babi-1, -2, -3          | generated             | 8,500 / up to 1,500 / up to 1,000 questions | bAbI 1, 2, 3           |
| entailment, paraphrase  | generated             | 6,000 / 1,000 / 1,000 pairs                 | SNLI, QQP              |
| sentence_polarity       | NLTK                  | 8 : 1 : 1, ours                             | SST (they overlap)     |
| subjectivity            | NLTK                  | 8 : 1 : 1, ours                             | 20News, Tweets         |
| movie_reviews           | NLTK, first 200 words | 8 : 1 : 1, ours                             | IMDB                   |

A folder has train, dev and test as .csv, .tsv or .jsonl files, with the column names of SNLI, QQP or SICK; or the two files of
a bAbI task, qaN_..._train.txt and qaN_..._test.txt.

bAbI (Weston et al. 2015). A line is `N sentence.`, and N begins at 1 in every story. The line of a question is
`N question?<TAB>answer<TAB>numbers of the supporting lines`. Any place can be the answer, even if the story does not name it.

The pairs can be judged only by comparing two texts. A form makes a sentence and a question, and then both again with two
fillers swapped:

    Mary went to the kitchen .      Mary is in the kitchen
    Mary went to the garden .       Mary is in the garden

Along the rows the answer is yes, across them no. So every text and every question stands as often with yes as with no.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd

from lalkit.errors import CorpusError
from lalkit.studies.frame import json_lines, text_lines


@dataclass(frozen=True)
class Example:
    """One text with its class. Raises CorpusError for an empty text, or for tags that do not fit the words.

    words: the text, on which attention is; supports: the positions of the facts that give the answer, if the data name them;
    tags: a universal part of speech for every word, or nothing.
    """

    words: tuple[str, ...]
    label: str
    question: tuple[str, ...] = ()
    supports: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()

    def __post_init__(self):
        if not self.words or self.tags and len(self.tags) != len(self.words):
            problem = f"a text of {len(self.words)} words with {len(self.tags)} tags: {' '.join(self.words[:8])}"
            raise CorpusError(problem, remedy="Leave an empty text out, and give one tag for each word, or none.")


@dataclass(frozen=True)
class Texts:
    """Three parts, and the classes of the training part.

    Raises CorpusError for an empty part, for fewer than two classes, for a class that only dev or test have, and if only some
    examples have a question.
    """

    name: str
    train: tuple[Example, ...]
    dev: tuple[Example, ...]
    test: tuple[Example, ...]

    def __post_init__(self):
        for part in ("train", "dev", "test"):
            examples, problem = getattr(self, part), ""
            if not examples:
                problem = "is empty"
            elif len({bool(example.question) for example in (*examples, self.train[0])}) > 1:
                problem = "has a question with some examples only"
            elif unknown := {example.label for example in examples} - set(self.classes):
                problem = f"has the class {min(unknown)!r}, which train does not have"
            elif len(self.classes) < 2:
                problem = f"has one class only, {self.classes[0]!r}"
            if problem:
                raise CorpusError(f"the part {part} {problem}", where=self.name, remedy="Give other examples.")

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(sorted({example.label for example in self.train}))


def split(name: str, examples: Iterable[Example]) -> Texts:
    """Split examples 8 : 1 : 1 at random, in the same way for every seed of a study. A repeated example counts once."""
    once = list(dict.fromkeys(examples))
    order = np.random.default_rng(0).permutation(len(once))
    tenth = round(0.1 * len(once))
    tested, chosen, trained = (tuple(once[i] for i in part) for part in np.split(order, [tenth, 2 * tenth]))
    return Texts(name, trained, chosen, tested)


def unseen(examples: Iterable[Example], seen: Sequence[Example]) -> tuple[Example, ...]:
    """Return the examples whose text and question are not among those seen."""
    known = {(example.words, example.question) for example in seen}
    return tuple(example for example in examples if (example.words, example.question) not in known)


def shorten(data: Texts, words: int = 0, train: int = 0, dev: int = 0, test: int = 0) -> Texts:
    """Keep the first `words` words of every text, and the first examples of each part. 0 means all."""

    def cut(e: Example) -> Example:
        most = words or len(e.words)
        return replace(e, words=e.words[:most], supports=tuple(i for i in e.supports if i < most), tags=e.tags[:most])

    sizes = {"train": train, "dev": dev, "test": test}
    parts = {part: tuple(map(cut, getattr(data, part)[: size or None])) for part, size in sizes.items()}
    return Texts(data.name, **parts)


# ---------------------------------------------------------------- universal parts of speech (Petrov et al. 2012)

UNIVERSAL = ("NOUN", "VERB", "ADJ", "ADV", "PRON", "DET", "ADP", "NUM", "CONJ", "PRT", ".", "X")
_PENN = {
    "NOUN": "NN NNS NNP NNPS", "VERB": "VB VBD VBG VBN VBP VBZ MD", "ADJ": "JJ JJR JJS", "ADV": "RB RBR RBS WRB",
    "PRON": "PRP PRP$ WP WP$", "DET": "DT EX PDT WDT", "ADP": "IN", "NUM": "CD", "CONJ": "CC", "PRT": "RP TO POS",
    ".": ". , : `` '' # $ -LRB- -RRB- ( ) -NONE-",
}  # fmt: skip
OF_UD = {
    "PROPN": "NOUN", "AUX": "VERB", "PUNCT": ".", "SYM": ".", "PART": "PRT", "CCONJ": "CONJ", "SCONJ": "ADP", "INTJ": "X",
}  # fmt: skip
OF_PENN = {penn: tag for tag, several in _PENN.items() for penn in several.split()}


def universal(penn: str) -> str:
    """Return the universal tag of a Penn tag. A tag that is not in the table (FW, LS, SYM, UH and unknown ones) has X."""
    return OF_PENN.get(penn, "X")


def of_dependencies(tag: str) -> str:
    """Return the universal tag (one of twelve) of a tag of Universal Dependencies (one of seventeen)."""
    return OF_UD.get(tag, tag if tag in UNIVERSAL else "X")


def tagged(examples: Sequence[Any]) -> list[Any]:
    """Return the examples, or documents, with tags. Tags that are there stay, others come from NLTK's tagger.

    Raises CorpusError if the tagger is needed and is not on this machine.
    """
    if all(example.tags for example in examples):
        return list(examples)
    from nltk.tag import PerceptronTagger

    try:
        tagger = PerceptronTagger()
    except LookupError:
        remedy = "Get it with: python -m nltk.downloader averaged_perceptron_tagger_eng"
        raise CorpusError("NLTK's tagger is not on this machine", remedy=remedy) from None
    return [
        example if example.tags else replace(example, tags=tuple(universal(t) for _, t in tagger.tag(example.words)))
        for example in examples
    ]


# ---------------------------------------------------------------- data by name, and folders

NLTK = ("sentence_polarity", "subjectivity", "movie_reviews")
# The names that files give to our columns: our own, and those of SNLI, QQP, SICK and others.
COLUMNS = {
    "label": ("label", "gold_label", "is_duplicate", "entailment_label", "entailment_judgment", "class", "sentiment"),
    "text": ("text", "sentence", "sentence1", "sentence_A", "premise", "question1"),
    "question": ("question", "sentence2", "sentence_B", "hypothesis", "question2"),
}


def load(name: str) -> Texts:
    """Return a data set. Raises CorpusError if it is unknown, not on this machine, or damaged."""
    if name in ("babi-1", "babi-2", "babi-3"):
        return babi(int(name[-1]))
    if name in FORMS:
        return pairs(name)
    if Path(name).is_dir():
        return _folder(Path(name))
    if name not in NLTK:
        known = ", ".join(("babi-1, babi-2, babi-3", *FORMS, *NLTK))
        raise CorpusError(f"there are no data {name!r}", remedy=f"Give one of {known}, or a folder of files.")
    from nltk import corpus

    try:
        reader = getattr(corpus, name)
        if name == "movie_reviews":
            documents = [Example(tuple(reader.words(file)), file.split("/")[0]) for file in reader.fileids()]
            return shorten(split(name, documents), words=200)
        return split(name, [Example(tuple(s), c) for c in reader.categories() for s in reader.sents(categories=c) if s])
    except LookupError:
        remedy = f"Get it with: python -m nltk.downloader {name}   (or set NLTK_DATA to the folder that has it)"
        raise CorpusError(f"NLTK's corpus {name} is not on this machine", remedy=remedy) from None


def _folder(folder: Path) -> Texts:
    """Read a folder of tables, or of bAbI's files. Without a dev part, a tenth of train becomes it."""
    name, parts = folder.name, {}
    for part in ("train", "dev", "test"):
        files = [*folder.glob(f"qa*_{part}.txt"), *(folder.glob(f"{part}.[ctj]*"))]
        if len(files) > 1:
            remedy = f"Leave one of {', '.join(sorted(file.name for file in files))}."
            raise CorpusError(f"has several files for {part}", where=str(folder), remedy=remedy)
        for file in files:
            if file.suffix == ".txt":
                name = f"babi-{re.match('qa([0-9]*)', file.name)[1]}"
                parts[part] = tuple(read_babi(text_lines(file), str(file)))
            else:
                parts[part] = tuple(_examples(read_table(file), file))
    if not parts.get("train") or not parts.get("test"):
        remedy = "Give train, test and perhaps dev as .csv, .tsv or .jsonl, or the two files of a bAbI task."
        raise CorpusError("has no data that can be read", where=str(folder), remedy=remedy)
    if "dev" not in parts:  # examples of the test part are left out of train and dev
        once = list(dict.fromkeys(unseen(parts["train"], parts["test"])))
        order = np.random.default_rng(0).permutation(len(once))
        chosen, trained = np.split(order, [max(len(once) // 10, 1)])
        parts |= {"train": tuple(once[i] for i in trained), "dev": tuple(once[i] for i in chosen)}
    return Texts(name, parts["train"], parts["dev"], parts["test"])


def read_table(file: Path) -> pd.DataFrame:
    """Read a table of texts. Raises CorpusError with the name of the file if it is not a table."""
    if file.suffix == ".jsonl":
        return pd.DataFrame([row for _, row in json_lines(file)])
    try:
        return pd.read_csv(file, sep="," if file.suffix == ".csv" else "\t", dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:  # it is not UTF-8, or not a table
        problem = " ".join(str(error).split())
        raise CorpusError(f"cannot be read ({problem})", where=str(file), remedy="Is it complete, and UTF-8?") from None


def _examples(table: pd.DataFrame, file: Path) -> Iterator[Example]:
    """Yield the rows of a table as examples, in small letters, without those on which SNLI's annotators did not agree."""
    from nltk.tokenize import TreebankWordTokenizer

    names = {ours: next((c for c in theirs if c in table), None) for ours, theirs in COLUMNS.items()}
    if not names["label"] or not names["text"]:
        remedy = f"Name them one of {', '.join(COLUMNS['label'])}, and one of {', '.join(COLUMNS['text'])}."
        raise CorpusError("has no column of labels, or of texts", where=str(file), remedy=remedy)
    columns = [name for name in names.values() if name]
    for row, values in enumerate(table[columns].itertuples(index=False, name=None), 1):
        if any(value in (None, "") or value != value for value in values):  # nan
            where = f"{file}, row {row}"
            raise CorpusError(f"lacks {' or '.join(columns)}", where=where, remedy="Complete the row, or leave it out.")
        label, *sides = map(str, values)
        if label != "-":
            words = (tuple(w.lower() for w in TreebankWordTokenizer().tokenize(side)) for side in sides)
            try:
                yield Example(next(words), label, next(words, ()))
            except CorpusError as error:
                raise error.at(f"{file}, row {row}") from None


# ---------------------------------------------------------------- bAbI, tasks 1 to 3

# The words of the stories: names, ways to say what happens, and the tag of every word.
WORDS = json.loads(Path(__file__).with_name("babi.json").read_text(encoding="utf-8"))
PEOPLE, PLACES, OBJECTS = WORDS["people"], WORDS["places"], WORDS["objects"]
TAG = {word: tag for tag, words in WORDS["tags"].items() for word in words}
QUESTIONS = 5  # in a story


def babi(task: int, train: int = 10_000, test: int = 1000) -> Texts:
    """Generate questions about stories of a task (1, 2 or 3). The data do not change with the seeds of a study.

    15% of train become dev [P]. A question of dev or test is left out if the same story and question are in an earlier part.
    """
    dev = round(0.15 * train)
    parts = []
    for part, size in enumerate((train - dev, dev, test)):
        lines = stories(task, size, np.random.default_rng([0, task, part]))
        parts.append(tuple(read_babi(lines))[:size])
    fitted, chosen, tested = parts[0], unseen(parts[1], parts[0]), unseen(parts[2], parts[0] + parts[1])
    return Texts(f"babi-{task}", fitted, chosen, tested)


def read_babi(lines: Iterable[str], where: str = "bAbI") -> Iterator[Example]:
    """Yield an Example for every question, with the story so far but without its earlier questions.

    Raises CorpusError, with the number of the line, if a line is not in bAbI's form.
    """
    facts: dict[int, tuple[str, ...]] = {}
    for place, line in enumerate(lines, 1):
        if not line.strip():
            continue
        number, _, rest = line.strip().partition(" ")
        parts = rest.split("\t")
        facts = {} if number == "1" else facts
        asks = len(parts) == 3
        wanted = set(parts[2].split()) if asks else set()
        if not number.isdigit() or not (asks or len(parts) == 1) or wanted - set(map(str, facts)) or asks and not facts:
            remedy = "Write: N sentence.   or: N question?<TAB>answer<TAB>earlier lines of the story"
            raise CorpusError("is not a line in bAbI's form", where=f"{where}, line {place}", remedy=remedy)
        words = tuple(parts[0].lower().replace(".", " .").replace("?", " ?").split())
        if not asks:
            facts[int(number)] = words
            continue
        story, supports = [], []
        for n, fact in facts.items():
            if str(n) in wanted:
                supports += range(len(story), len(story) + len(fact))
            story += fact
        tags = tuple(TAG.get(word, "") for word in story)
        yield Example(tuple(story), parts[1].strip().lower(), words, tuple(supports), tags if all(tags) else ())


def stories(task: int, questions: int, rng: np.random.Generator) -> Iterator[str]:
    """Yield the lines of stories that have at least `questions` questions."""
    for _ in range(0, questions, QUESTIONS):
        yield from World(rng).moves() if task == 1 else World(rng).story(task)


def pick(rng: np.random.Generator, options):
    """Return one of the options, each with the same probability."""
    return options[int(rng.integers(len(options)))]


@dataclass
class World:
    """Who is where, who holds what, and the lines that tell it. Every object lies somewhere before a line names it."""

    rng: np.random.Generator
    lines: list[str] = field(default_factory=list)
    at: dict[str, str] = field(default_factory=dict)  # person -> place
    moved: dict[str, int] = field(default_factory=dict)  # person -> line of the last move
    holder: dict[str, str] = field(default_factory=dict)  # object -> person
    trail: dict[str, list[tuple[str, int, int]]] = field(default_factory=dict)  # object -> (place, its move, its get)
    last: dict[str, int] = field(default_factory=dict)  # object -> line of its last get or drop
    proof: dict[str, int] = field(default_factory=dict)  # dropped object -> line of the move that tells where

    def __post_init__(self):
        self.lies = {thing: pick(self.rng, PLACES) for thing in OBJECTS}

    def moves(self) -> list[str]:
        """Tell a story of task 1. Five times: two persons move, then a question asks where one of those who moved is."""
        for _ in range(QUESTIONS):
            self.move()
            self.move()
            person = pick(self.rng, list(self.at))
            self.ask(f"Where is {person}?", self.at[person], [self.moved[person]])
        return self.lines

    def story(self, task: int) -> list[str]:
        """Tell a story of task 2 or 3: random moves, gets and drops. After at least three facts, ask with probability 1/2."""
        asked, since = 0, 0
        while asked < QUESTIONS:
            self.act()
            since += 1
            question = self.where() if task == 2 else self.before()
            if since > 2 and question and self.rng.random() < 0.5:
                self.ask(*question)
                asked, since = asked + 1, 0
        return self.lines

    def say(self, text: str) -> int:
        """Add a line and return its number."""
        self.lines.append(f"{len(self.lines) + 1} {text}")
        return len(self.lines)

    def ask(self, question: str, answer: str, facts: list[int]) -> None:
        self.say(f"{question}\t{answer}\t{' '.join(map(str, sorted(facts)))}")

    def move(self) -> None:
        """Let a person go to another place."""
        person = pick(self.rng, PEOPLE)
        place = pick(self.rng, [p for p in PLACES if p != self.at.get(person)])
        line = self.say(f"{person} {pick(self.rng, WORDS['move'])} the {place}.")
        self.at[person], self.moved[person] = place, line
        for thing, holder in self.holder.items():
            if holder == person:
                self.lies[thing] = place
                self.trail[thing].append((place, line, self.last[thing]))

    def act(self) -> None:
        """Let one possible thing happen. A get needs person and object at the same place; a drop needs an object that is held."""
        gets = [(p, o) for p in self.at for o in OBJECTS if o not in self.holder and self.lies[o] == self.at[p]]
        drops = [(p, o) for o, p in self.holder.items()]
        kind = pick(self.rng, ["move", *["get"] * bool(gets), *["drop"] * bool(drops)])
        if kind == "move":
            self.move()
            return
        person, thing = pick(self.rng, gets if kind == "get" else drops)
        self.last[thing] = self.say(f"{person} {pick(self.rng, WORDS[kind])} the {thing}.")
        if kind == "get":
            self.holder[thing] = person
            self.trail.setdefault(thing, [(self.at[person], self.moved[person], self.last[thing])])
        else:
            del self.holder[thing]
            self.proof[thing] = self.moved[person]

    def where(self) -> tuple[str, str, list[int]] | None:
        """Task 2: ask where a thing is. The facts: its last get or drop, and the last move of the person who did that."""
        if not self.trail:
            return None
        thing = pick(self.rng, list(self.trail))
        move = self.moved[self.holder[thing]] if thing in self.holder else self.proof[thing]
        return f"Where is the {thing}?", self.trail[thing][-1][0], [self.last[thing], move]

    def before(self) -> tuple[str, str, list[int]] | None:
        """Task 3: ask where a thing was before it came to a place. Facts: its get, the move to that place, the move before."""
        known = [
            (thing, i)
            for thing, trail in self.trail.items()
            for i in range(1, len(trail))
            if trail[i][0] not in {place for place, _, _ in trail[i + 1 :]}
        ]
        if not known:
            return None
        thing, i = pick(self.rng, known)
        (earlier, came, _), (place, move, get) = self.trail[thing][i - 1], self.trail[thing][i]
        return f"Where was the {thing} before the {place}?", earlier, [get, came, move]


# ---------------------------------------------------------------- pairs

FORMS = json.loads(Path(__file__).with_name("pairs.json").read_text(encoding="utf-8"))
FILLERS = FORMS.pop("words")


def pairs(task: str, train: int = 6000, test: int = 1000) -> Texts:
    """Generate the pairs of entailment or paraphrase; dev has as many as test. A sentence is in the texts of one part only."""
    fitted, chosen, tested = (
        tuple(_pairs(FORMS[task], part, size, np.random.default_rng([0, part])))
        for part, size in enumerate((train, test, test))
    )
    return Texts(task, fitted, chosen, tested)


def _pairs(forms: Sequence[dict], part: int, count: int, rng: np.random.Generator) -> Iterator[Example]:
    """Yield the pairs of a part (0, 1, 2: train, dev, test), four at a time. Supports: the sentence that is asked about."""
    for _ in range(0, count, 4):
        sentences, questions = _drawn(forms, part, rng)
        (other, _), _ = _drawn(forms, part, rng, {*sentences[0]} & {*FILLERS["people"]})
        before, after = pick(rng, [((), ()), ((), ()), (other, ()), ((), other)])  # half of the texts are easier
        for i, sentence in enumerate(sentences):
            supports = tuple(range(len(before), len(before) + len(sentence)))
            for j, question in enumerate(questions):
                yield Example((*before, *sentence, *after), "yes" if i == j else "no", question, supports)


def _drawn(forms: Sequence[dict], part: int, rng: np.random.Generator, taken: Set[str] = frozenset()) -> list[list]:
    """Draw two sentences and their two questions, as words. Both belong to the part, and contain none of the names in `taken`."""
    while True:
        form = pick(rng, forms)
        (a, b), (x, y) = (rng.permutation(len(FILLERS[of]))[:2] for of in ("people", form["x"]))
        a, b, x, y = FILLERS["people"][a], FILLERS["people"][b], FILLERS[form["x"]][x], FILLERS[form["x"]][y]
        v = pick(rng, FILLERS[form["v"]]) if "v" in form else [""]
        slots = {"a": a, "b": b, "x": x[0], "X": x[-1], "y": y[0], "v": v[0], "V": v[-1]}
        swapped = slots | ({"a": b, "b": a} if form["swap"] == "ab" else {"x": y[0], "X": y[-1], "y": x[0]})
        texts, questions = (
            [tuple(form[of].format(**s).split()) for s in (slots, swapped)] for of in ("text", "question")
        )
        hashes = {max(crc32(" ".join(text).encode()) % 5 - 2, 0) for text in texts}
        if hashes == {part} and questions[0] != questions[1] and not taken & {*texts[0], *texts[1]}:
            return [texts, questions]
