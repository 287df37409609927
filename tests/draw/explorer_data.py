"""Data for the explorer's pages, made up by a rule: sentences under random trees, with values one can compute again."""

import math
import random
from contextlib import suppress
from dataclasses import replace

import numpy as np

from lalkit.errors import TreebankError
from lalkit.interpret.tables import NORMS, normalise
from lalkit.treebank.tree import Sentence, Span
from tests.draw.sentences import random_sentence

HEADS = 16
WORDS = "the person saw a small house near the old river when it had rained and nobody was there".split()
TAGS = "DT NN VBD DT JJ NN IN DT JJ NN WRB PRP VBD VBN CC NN VBD RB".split()
LABELS = ("S", "NP", "VP", "PP", "SBAR", "ADJP", "S::VP")
ARCS = ("det", "nsubj", "obj", "amod", "obl", "nmod", "advcl", "punct")


def raw(span: int, head: int) -> float:
    """Positive and negative, all different within a span."""
    return round(math.sin(1 + 1.7 * head + 0.9 * span) * (3 if head == span % HEADS else 1) + 0.001 * head, 4)


def by_norm(values: list[float]) -> dict[str, list[float]]:
    raw = np.array([values])
    exact = (raw * 0.4 - 0.1).round(4)
    return {norm: normalise(raw, exact, norm)[0].tolist() for norm in NORMS}


def attention(n: int, seed: int) -> list[list[float]]:
    """[HEADS][n + 2]: each label head looks at a few places, START and STOP among them."""
    pick = random.Random(seed)
    rows = []
    for _ in range(HEADS):
        row = [pick.random() ** 12 + 0.001 for _ in range(n + 2)]
        rows.append([value / sum(row) for value in row])
    return rows


def other_head(made: Sentence) -> Sentence:
    """The sentence with another head of word 1, as far as it stays a tree."""
    for head in range(2, len(made) + 1):
        with suppress(TreebankError):
            changed = replace(made, heads=(head, *made.heads[1:]))
            if head != made.heads[0]:
                return changed
    raise AssertionError("take another seed")


def sentence(n: int, seed: int, gold: bool) -> dict:
    """n words; with gold, its first constituent below the top is missing there, its last has another label (XP) and one more
    lies over the last word; word 1 has another head, word 2 another label."""
    made = random_sentence(n, seed)
    arcs = [ARCS[i % len(ARCS)] for i in range(n)]
    arcs[made.heads.index(0)] = "root"
    made = replace(
        made, words=tuple(WORDS[i % len(WORDS)] for i in range(n)), tags=tuple(TAGS[i % len(TAGS)] for i in range(n)),
        constituents=tuple(c._replace(label=LABELS[i % len(LABELS)]) for i, c in enumerate(made.constituents)),
        arc_labels=tuple(arcs), id=f"made {n}",
    )  # fmt: skip
    right = None
    if gold:
        first, _, *others, last = made.constituents
        kept = [first, *others, last._replace(label="XP")]
        if (n - 1, n) not in {c[:2] for c in made.constituents}:
            kept.append(Span(n - 1, n, "ADVP"))
        right = replace(other_head(made), constituents=tuple(kept), arc_labels=(arcs[0], "other", *arcs[2:]))
    spans = [
        {
            **c._asdict(), "values": by_norm([raw(i, h) for h in range(HEADS)]),
            "head": next(w for w in range(c.start + 1, c.end + 1) if not c.start < made.heads[w - 1] <= c.end),
        }
        for i, c in enumerate(made.constituents)
    ]  # fmt: skip
    return {"sentence": made, "gold": right, "spans": spans, "attention": attention(n, seed)}


def explorer_data() -> dict:
    """Three sentences of 10, 30 and 60 words, the first two with gold, and a profile of three labels."""
    every = [900, 600, 300]
    led = [[(7 * h + 5 * k) % 40 for k in range(3)] for h in range(HEADS)]
    led[3] = [0, 0, 0]
    return {
        "pane": "heads",
        "title": "Made-up sentences",
        "model": "no model: values made up by a rule",
        "norm": "share",
        "norms": {name: f"what {name} means" for name in NORMS},
        "profile": {"corpus": "made-up", "spans": 1800, "labels": ["NP", "VP", "S"], "led": led, "all": every},
        "sentences": [sentence(10, 3, True), sentence(30, 4, True), sentence(60, 7, False)],
    }


BOUNDARY = "glass"


def reading(label: str, start: int, end: int, seed: int) -> dict:
    k = end - start
    powers = [math.exp(2 * math.sin(3 * (start + i) + seed)) for i in range(k)]
    attention = [p / sum(powers) for p in powers]
    evidence = [round(4 * math.cos(1.3 * (start + i) + 0.7 * seed) + 1, 4) for i in range(k)]
    value = [a * v for a, v in zip(attention, evidence)]
    rest = {"first": 0.5 + 0.1 * seed, "last": -0.25, "constant": 0.125}
    return {
        "label": label, "attention": attention, "evidence": evidence, "value": value, "rest": rest,
        "score": sum(value) + sum(rest.values()),
    }  # fmt: skip


def with_terms(made: dict) -> dict:
    """The sentence with readings for values, and for every word the label that would come first without it."""
    found = {"sentence": made["sentence"], "gold": made["gold"], "spans": []}
    for i, span in enumerate(made["spans"]):
        start, end = span["start"], span["end"]
        own, second = reading(span["label"], start, end, i), reading(LABELS[i % 7 - 1], start, end, i + 40)
        then = []
        for k in range(end - start):
            left = {r["label"]: r["score"] - r["value"][k] for r in (own, second)}
            best = max(left, key=left.get)
            then.append([best, left[best]])
        found["spans"].append({**{key: span[key] for key in ("start", "end", "label", "head")}, "readings": [own, second],
                               "then": then})  # fmt: skip
    return found


def terms_data() -> dict:
    """Three sentences of 10, 30 and 60 words, the first two with gold."""
    made = [sentence(10, 3, True), sentence(30, 4, True), sentence(60, 7, False)]
    return {
        "pane": "terms", "title": "Made-up sentences", "model": "no model: terms made up by a rule",
        "boundary": BOUNDARY,
        "sentences": [with_terms(one) for one in made],
    }  # fmt: skip
