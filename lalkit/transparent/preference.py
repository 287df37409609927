"""Table 5: whose attention do people find more helpful? Two models' attention on a text, their sides drawn by lot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from lalkit.errors import ModelError
from lalkit.transparent.batch import in_order
from lalkit.transparent.classifier import Classifier
from lalkit.transparent.examples import Example


@torch.no_grad()
def blinded(
    first: Classifier, second: Classifier, examples: Sequence[Example], count: int = 20, seed: int = 0
) -> tuple[list[dict], pd.DataFrame]:
    """(items for `lalkit.draw.preference_page`, the key: item, example, left, right). Texts that both classify rightly, chosen
    by lot. The items do not say whose attention is where; keep the key apart until all have answered.

    Raises ModelError if there is no such text, or both models are of the same kind.
    """
    names = first.config.model, second.config.model
    if names[0] == names[1]:
        raise ModelError(f"both classifiers are {names[0]}", remedy="Compare two kinds.")
    both = []
    for group in in_order(list(range(len(examples))), 100):
        found = [m(m.vocabulary.collate([examples[i] for i in group])) for m in (first, second)]
        label = first.vocabulary.collate([examples[i] for i in group]).label
        right = (found[0].logits.argmax(-1) == label) & (found[1].logits.argmax(-1) == label)
        both += [(i, [f.attention[r].tolist() for f in found]) for r, i in enumerate(group) if right[r]]
    if not both:
        raise ModelError("there is no text that both classify rightly")
    rng = np.random.default_rng(seed)
    items, key = [], []
    for number, place in enumerate(rng.permutation(len(both))[:count], 1):
        i, weights = both[place]
        sides = rng.permutation(2)
        example, size = examples[i], len(examples[i].words)
        left, right = (weights[s][:size] for s in sides)
        items.append({"item": number, "words": example.words, "question": " ".join(example.question),
                      "label": example.label, "left": left, "right": right})  # fmt: skip
        key.append((number, i, names[sides[0]], names[sides[1]]))
    return items, pd.DataFrame(key, columns=["item", "example", "left", "right"])


def preferred(answers: pd.DataFrame, key: pd.DataFrame) -> pd.DataFrame:
    """Answers of the page (item, choice: left, right, both or neither) -> how often each model was chosen, and the rest.

    Raises ModelError for an answer to an item that the key has not.
    """
    known = key.set_index("item")
    strange = sorted(set(answers["item"]) - set(known.index))
    if strange:
        raise ModelError(f"the key has no item {strange[0]}", remedy="Use the key that was written with the page.")
    named = [known.loc[item, choice] if choice in ("left", "right") else choice for item, choice in
             zip(answers["item"], answers["choice"])]  # fmt: skip
    counts = pd.Series(named).value_counts()
    return pd.DataFrame({"choice": counts.index, "answers": counts.to_numpy(), "percent": 100 * counts / counts.sum()})
