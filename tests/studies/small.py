"""Small data and small classifiers for the tests of the studies."""

from __future__ import annotations

from dataclasses import replace

import torch

from lalkit.studies.classifiers import Classifier, ClassifierConfig, Vocabulary
from lalkit.studies.texts import Text, Texts

WORDS = "the plot is thin but acting was good bad a film of no charm and great fun".split()


def sentences(count: int = 60) -> Texts:
    """Texts of 1 to 9 words without sense; 'good' if they have more words of the first half than of the second."""
    rng = torch.Generator().manual_seed(0)
    found = []
    for _ in range(count):
        length = int(torch.randint(1, 10, (1,), generator=rng))
        chosen = torch.randint(0, len(WORDS), (length,), generator=rng).tolist()
        label = "good" if sum(i < len(WORDS) / 2 for i in chosen) * 2 > length else "bad"
        found.append(Text(tuple(WORDS[i] for i in chosen), label, tags=("NOUN",) * length))
    third = count // 3
    return Texts("sentences", tuple(found[:third]), tuple(found[third : 2 * third]), tuple(found[2 * third :]))


def config(model: str = "vanilla", **settings) -> ClassifierConfig:
    return replace(ClassifierConfig(model, embedding=12, hidden=8, min_count=1, epochs=2, batch=10), **settings)


def untrained(model: str, data: Texts, **settings) -> Classifier:
    torch.manual_seed(0)
    asked = config(model, **settings)
    return Classifier(asked, Vocabulary.build(data.train, asked)).double().eval()


def films() -> Texts:
    """Ten short texts of two classes in each part."""
    pairs = [(i, label, word) for i in range(5) for label, word in (("1", "good"), ("0", "bad"))]
    parts = (
        tuple(Text((part, word, str(i), "film"), label) for i, label, word in pairs)
        for part in ("train", "dev", "test")
    )
    return Texts("films", *parts)


def same(first, second) -> bool:
    """Return whether two models have the same weights."""
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    return all(torch.equal(*pair) for pair in pairs)
