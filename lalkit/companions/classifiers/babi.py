"""bAbI (Weston et al. 2015), tasks 1 to 3: stories of our own making in its form, and its files read, supporting facts kept.

A line is `N sentence.`, N restarting at 1 with every story; a question's is `N question?<TAB>answer<TAB>lines of the facts`.

Any place may be the answer, spoken of or not: the authors' program can leave out what a text does not name (and does so for
CNN), but the mask that it is given for bAbI, by the preprocessing of Jain and Wallace (2019), is all ones. It matters: with a
mask of the places named, vanilla attention settles on places in every seed; without, in some on the full stops behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from lalkit.companions.classifiers.examples import Dataset, Example, unseen
from lalkit.errors import CorpusError

PEOPLE = ("John", "Mary", "Sandra", "Daniel")
PLACES = ("bedroom", "kitchen", "garden", "hallway", "bathroom", "office")
OBJECTS = ("apple", "football", "milk")
MOVE = ("went to", "journeyed to", "travelled to", "moved to")
GET = ("grabbed", "took", "got", "picked up")
DROP = ("dropped", "put down", "left", "discarded")
QUESTIONS = 5  # of a story
TAGS = {
    "NOUN": (*PEOPLE, *PLACES, *OBJECTS),
    "VERB": ("went", "journeyed", "travelled", "moved", "grabbed", "took", "got", "picked", "dropped", "put", "left",
             "discarded"),
    "PRT": ("up", "down"), "ADP": ("to",), "DET": ("the",), ".": (".",),
}  # fmt: skip
TAG = {word.lower(): tag for tag, words in TAGS.items() for word in words}


def generate(task: int, train: int = 5000, test: int = 1000, seed: int = 0, extractive: bool = False) -> Dataset:
    """So many questions each to train on (15% of them dev [P]) and to test on. The data do not change with a study's seeds.

    extractive: only places that the story names can be the answer. A question of dev or test whose story is in train word by
    word is left out. Raises CorpusError for another task.
    """
    if task not in (1, 2, 3):
        raise CorpusError(f"there is no generator for bAbI {task}", remedy="Tasks 1, 2 and 3; for others give files.")
    dev = round(0.15 * train)
    parts = []
    for part, size in enumerate((train - dev, dev, test)):
        lines = stories(task, size, np.random.default_rng([seed, task, part]))
        parts.append(tuple(read(lines))[:size])
    fitted, chosen, held = parts[0], unseen(parts[1], parts[0]), unseen(parts[2], parts[0] + parts[1])
    return Dataset(f"babi-{task}", fitted, chosen, held, extractive)


def read(lines: Iterable[str], where: str = "bAbI") -> Iterator[Example]:
    """An Example for every question: the story so far, without its earlier questions. Raises CorpusError with the line."""
    facts: dict[int, tuple[str, ...]] = {}
    for place, line in enumerate(lines, 1):
        if not line.strip():
            continue
        number, _, rest = line.strip().partition(" ")
        parts = rest.split("\t")
        if not number.isdigit() or len(parts) not in (1, 3):
            raise CorpusError("is no line of bAbI's", where=f"{where}, line {place}",
                              remedy="Wanted: N sentence.   or: N question?<TAB>answer<TAB>lines")  # fmt: skip
        if number == "1":
            facts = {}
        words = tuple(parts[0].lower().replace(".", " .").replace("?", " ?").split())
        if len(parts) == 1:
            facts[int(number)] = words
            continue
        wanted = {int(n) for n in parts[2].split()}
        if not facts or wanted - set(facts):
            raise CorpusError("asks about facts that the story has not", where=f"{where}, line {place}")
        story, supports = [], []
        for n, fact in facts.items():
            if n in wanted:
                supports += range(len(story), len(story) + len(fact))
            story += fact
        tags = tuple(TAG.get(word, "") for word in story)
        yield Example(tuple(story), parts[1].strip().lower(), words, tuple(supports), tags if all(tags) else ())


def stories(task: int, questions: int, rng: np.random.Generator) -> Iterator[str]:
    """Lines of stories with at least so many questions."""
    asked = 0
    while asked < questions:
        yield from (one_move_story(rng) if task == 1 else story(task, rng))
        asked += QUESTIONS


def one_move_story(rng: np.random.Generator) -> list[str]:
    """Task 1: two moves, then where one of those is who have moved; five times."""
    world = World(rng)
    for _ in range(QUESTIONS):
        for _ in range(2):
            world.move()
        person = pick(rng, list(world.at))
        world.ask(f"Where is {person}?", world.at[person], [world.moved[person]])
    return world.lines


def story(task: int, rng: np.random.Generator) -> list[str]:
    """Tasks 2 and 3: moves, gets and drops at random; after more than two facts a question with probability 1/2."""
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
    """Who is where, who holds what, and the lines that say so. Objects are somewhere before they are first spoken of."""

    rng: np.random.Generator
    lines: list[str] = field(default_factory=list)
    at: dict[str, str] = field(default_factory=dict)  # person -> place
    moved: dict[str, int] = field(default_factory=dict)  # person -> line of the last move
    holder: dict[str, str] = field(default_factory=dict)  # object -> person
    trail: dict[str, list[tuple[str, int, int]]] = field(default_factory=dict)  # object -> (place, its move, its get)
    last: dict[str, int] = field(default_factory=dict)  # object -> line of its last get or drop
    proof: dict[str, int] = field(default_factory=dict)  # dropped object -> line of the move that says where

    def __post_init__(self):
        self.lies = {thing: pick(self.rng, PLACES) for thing in OBJECTS}

    def say(self, text: str) -> int:
        self.lines.append(f"{len(self.lines) + 1} {text}")
        return len(self.lines)

    def ask(self, question: str, answer: str, facts: list[int]) -> None:
        self.say(f"{question}\t{answer}\t{' '.join(map(str, sorted(facts)))}")

    def move(self) -> None:
        """Somebody goes to where they are not."""
        person = pick(self.rng, PEOPLE)
        place = pick(self.rng, [p for p in PLACES if p != self.at.get(person)])
        line = self.say(f"{person} {pick(self.rng, MOVE)} the {place}.")
        self.at[person], self.moved[person] = place, line
        for thing, holder in self.holder.items():
            if holder == person:
                self.lies[thing] = place
                self.trail[thing].append((place, line, self.last[thing]))

    def act(self) -> None:
        """One valid action: a get needs the same place, a drop needs holding."""
        gets = [(p, o) for p in self.at for o in OBJECTS if o not in self.holder and self.lies[o] == self.at[p]]
        drops = [(p, o) for o, p in self.holder.items()]
        kind = pick(self.rng, ["move", *["get"] * bool(gets), *["drop"] * bool(drops)])
        if kind == "move":
            self.move()
        elif kind == "get":
            person, thing = pick(self.rng, gets)
            self.last[thing] = self.say(f"{person} {pick(self.rng, GET)} the {thing}.")
            self.holder[thing] = person
            if thing not in self.trail:
                self.trail[thing] = [(self.at[person], self.moved[person], self.last[thing])]
        else:
            person, thing = pick(self.rng, drops)
            self.last[thing] = self.say(f"{person} {pick(self.rng, DROP)} the {thing}.")
            del self.holder[thing]
            self.proof[thing] = self.moved[person]

    def where(self) -> tuple[str, str, list[int]] | None:
        """Task 2: the last get or drop of a thing, and the last move of who did it."""
        if not self.trail:
            return None
        thing = pick(self.rng, list(self.trail))
        move = self.moved[self.holder[thing]] if thing in self.holder else self.proof[thing]
        return f"Where is the {thing}?", self.trail[thing][-1][0], [self.last[thing], move]

    def before(self) -> tuple[str, str, list[int]] | None:
        """Task 3: where a thing was before it came to a place: its get, the move to that place, and the move before."""
        known = [(thing, i) for thing, trail in self.trail.items() for i in range(1, len(trail))]
        known = [(thing, i) for thing, i in known if self.trail[thing][i][0] not in
                 {place for place, _, _ in self.trail[thing][i + 1 :]}]  # fmt: skip
        if not known:
            return None
        thing, i = pick(self.rng, known)
        (earlier, came, _), (place, move, get) = self.trail[thing][i - 1], self.trail[thing][i]
        return f"Where was the {thing} before the {place}?", earlier, [get, came, move]


def pick(rng: np.random.Generator, options):
    return options[int(rng.integers(len(options)))]
