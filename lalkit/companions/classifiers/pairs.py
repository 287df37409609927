"""Pairs that can be judged only by comparing: does the question follow from the text, or say the same as a part of it?

The forms of the pairs and their words are in pairs.json. A form makes four pairs at once. It makes a sentence and a question, and
then both again with two fillers swapped (x and y, or the persons a and b):

    Mary went to the kitchen .      Mary is in the kitchen
    Mary went to the garden .       Mary is in the garden

Along the rows the answer is yes, across them no. So every text and every question stands as often with yes as with no: neither
of them alone can tell the answer (see `alone`). Half of the texts have one more sentence, about other persons. `entailment` has
places, negation, kinds of things (an apple is a fruit) and who gave to whom; `paraphrase` the passive, synonyms and negation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import numpy as np

from lalkit.companions.classifiers.babi import pick
from lalkit.companions.classifiers.examples import Dataset, Example

FORMS = json.loads(Path(__file__).with_name("pairs.json").read_text(encoding="utf-8"))
WORDS = FORMS.pop("words")


def generate(task: str, train: int = 6000, test: int = 1000) -> Dataset:
    """Generate the pairs of entailment or paraphrase; dev has as many as test. A sentence is in the texts of one part only."""
    fitted, chosen, tested = (
        tuple(pairs(FORMS[task], part, size, np.random.default_rng([0, part])))
        for part, size in enumerate((train, test, test))
    )
    return Dataset(task, fitted, chosen, tested)


def pairs(forms: Sequence[dict], part: int, count: int, rng: np.random.Generator) -> Iterator[Example]:
    """Yield the pairs of a part (0, 1, 2: train, dev, test), four at a time. Supports: the sentence that is asked about."""
    for _ in range(0, count, 4):
        sentences, questions = drawn(forms, part, rng)
        (other, _), _ = drawn(forms, part, rng, {*sentences[0]} & {*WORDS["people"]})
        before, after = pick(rng, [((), ()), ((), ()), (other, ()), ((), other)])  # half of the texts are easier
        for i, sentence in enumerate(sentences):
            supports = tuple(range(len(before), len(before) + len(sentence)))
            for j, question in enumerate(questions):
                yield Example((*before, *sentence, *after), "yes" if i == j else "no", question, supports)


def drawn(forms: Sequence[dict], part: int, rng: np.random.Generator, taken: Set[str] = frozenset()) -> list[list]:
    """Draw two sentences and their two questions, as words. Both belong to the part, and contain none of the names in `taken`."""
    while True:
        form = pick(rng, forms)
        (a, b), (x, y) = (rng.permutation(len(WORDS[of]))[:2] for of in ("people", form["x"]))
        a, b, x, y = WORDS["people"][a], WORDS["people"][b], WORDS[form["x"]][x], WORDS[form["x"]][y]
        v = pick(rng, WORDS[form["v"]]) if "v" in form else [""]
        slots = {"a": a, "b": b, "x": x[0], "X": x[-1], "y": y[0], "v": v[0], "V": v[-1]}
        swapped = slots | ({"a": b, "b": a} if form["swap"] == "ab" else {"x": y[0], "X": y[-1], "y": x[0]})
        texts, questions = (
            [tuple(form[of].format(**s).split()) for s in (slots, swapped)] for of in ("text", "question")
        )
        hashes = {max(crc32(" ".join(text).encode()) % 5 - 2, 0) for text in texts}
        if hashes == {part} and questions[0] != questions[1] and not taken & {*texts[0], *texts[1]}:
            return [texts, questions]


def alone(data: Dataset, side: str) -> Dataset:
    """Return the data with one text of each pair only: the control.

    A classifier that cannot compare two texts is right in exactly half of the pairs.
    side: "text" or "question"; "" keeps both.
    """

    def one(e: Example) -> Example:
        return replace(e, question=()) if side == "text" else Example(e.question, e.label)

    fitted, chosen, tested = (tuple(map(one, part)) for part in (data.train, data.dev, data.test))
    return Dataset(f"{data.name}-{side}", fitted, chosen, tested) if side else data
