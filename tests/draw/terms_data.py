"""Data for the explorer's page of terms, made up by a rule: every reading's terms add up to its score."""

import math

from tests.draw.explorer_data import LABELS, sentence

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
