"""bAbI (Weston et al. 2015), tasks 1 to 3: a generator of stories in its form, and a reader of its files.

A line is `N sentence.`, and N begins at 1 in every story. The line of a question is
`N question?<TAB>answer<TAB>numbers of the supporting lines`.

Any place can be the answer, even if the story does not name it. The authors' program can exclude what a text does not name,
and does so for CNN. But for bAbI the preprocessing of Jain and Wallace (2019) gives it a mask of ones only. This matters: with
a mask of the named places, vanilla attention is on places in every seed. Without it, in some seeds it is on the full stops
behind them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lalkit.companions.classifiers.examples import Dataset, Example, unseen
from lalkit.errors import CorpusError

# The words of the stories: names, ways to say what happens, and the tag of every word.
WORDS = json.loads(Path(__file__).with_name("babi.json").read_text(encoding="utf-8"))
PEOPLE, PLACES, OBJECTS = WORDS["people"], WORDS["places"], WORDS["objects"]
TAG = {word: tag for tag, words in WORDS["tags"].items() for word in words}
QUESTIONS = 5  # in a story


def generate(task: int, train: int = 10_000, test: int = 1000) -> Dataset:
    """Generate questions about stories. The data do not change with the seeds of a study.

    Args:
        task: 1, 2 or 3.
        train: Number of questions for training: 10,000 [P]; 15% of them become dev [P].
        test: Number of questions for testing.

    A question of dev or test is left out if the same story and question are in an earlier part. Raises CorpusError for another
    task.
    """
    if task not in (1, 2, 3):
        raise CorpusError(f"there is no generator for bAbI {task}", remedy="Tasks 1, 2 and 3; for others give files.")
    dev = round(0.15 * train)
    parts = []
    for part, size in enumerate((train - dev, dev, test)):
        lines = stories(task, size, np.random.default_rng([0, task, part]))
        parts.append(tuple(read(lines))[:size])
    fitted, chosen, tested = parts[0], unseen(parts[1], parts[0]), unseen(parts[2], parts[0] + parts[1])
    return Dataset(f"babi-{task}", fitted, chosen, tested)


def read(lines: Iterable[str], where: str = "bAbI") -> Iterator[Example]:
    """Yield an Example for every question, with the story so far but without its earlier questions.

    Raises CorpusError, with the number of the line, if a line is not in bAbI's form.
    """
    facts: dict[int, tuple[str, ...]] = {}
    for place, line in enumerate(lines, 1):
        if not line.strip():
            continue
        at = f"{where}, line {place}"
        number, _, rest = line.strip().partition(" ")
        parts = rest.split("\t")
        if not number.isdigit() or len(parts) not in (1, 3):
            remedy = "Write: N sentence.   or: N question?<TAB>answer<TAB>lines"
            raise CorpusError("is not a line in bAbI's form", where=at, remedy=remedy)
        if number == "1":
            facts = {}
        words = tuple(parts[0].lower().replace(".", " .").replace("?", " ?").split())
        if len(parts) == 1:
            facts[int(number)] = words
            continue
        wanted = {int(n) for n in parts[2].split()}
        if not facts or wanted - set(facts):
            remedy = "The last column names lines of the same story that come before the question."
            raise CorpusError("names supporting lines that the story does not have", where=at, remedy=remedy)
        story, supports = [], []
        for n, fact in facts.items():
            if n in wanted:
                supports += range(len(story), len(story) + len(fact))
            story += fact
        tags = tuple(TAG.get(word, "") for word in story)
        yield Example(tuple(story), parts[1].strip().lower(), words, tuple(supports), tags if all(tags) else ())


def stories(task: int, questions: int, rng: np.random.Generator) -> Iterator[str]:
    """Yield the lines of stories that have at least `questions` questions."""
    for _ in range(0, questions, QUESTIONS):
        yield from (one_move_story(rng) if task == 1 else story(task, rng))


def one_move_story(rng: np.random.Generator) -> list[str]:
    """Tell a story of task 1. Five times: two persons move, then a question asks where one of those who moved is."""
    world = World(rng)
    for _ in range(QUESTIONS):
        for _ in range(2):
            world.move()
        person = pick(rng, list(world.at))
        world.ask(f"Where is {person}?", world.at[person], [world.moved[person]])
    return world.lines


def story(task: int, rng: np.random.Generator) -> list[str]:
    """Tell a story of task 2 or 3: random moves, gets and drops. After at least three facts, ask with probability 1/2."""
    world, asked, since = World(rng), 0, 0
    while asked < QUESTIONS:
        world.act()
        since += 1
        question = world.where() if task == 2 else world.before()
        if since > 2 and question and rng.random() < 0.5:
            world.ask(*question)
            asked, since = asked + 1, 0
    return world.lines


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
            if thing not in self.trail:
                self.trail[thing] = [(self.at[person], self.moved[person], self.last[thing])]
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


def pick(rng: np.random.Generator, options):
    """Return one of the options, each with the same probability."""
    return options[int(rng.integers(len(options)))]
