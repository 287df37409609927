"""All probes of one classifier on a part of its data: a long table a text, and what each part of speech is given."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import torch
from torch import Tensor

from lalkit.probes.attribution import agree, attribute
from lalkit.probes.tables import ask, look_at, tidy
from lalkit.probes.view import AttentionView
from lalkit.probes.weights import mass_ratio
from lalkit.transparent.batch import Batch, in_order
from lalkit.transparent.classifier import Classifier
from lalkit.transparent.examples import Example
from lalkit.transparent.view import exact, from_words, view

SIZE = 100  # texts at a time
# (name in the table, method, through attention): the authors hold attention fixed.
ATTRIBUTIONS = (
    ("gradient", "gradient", True),
    ("gradient_fixed", "gradient", False),
    ("integrated", "integrated", True),
)


def measure(
    model: Classifier, examples: Sequence[Example], rounds: int = 100, attributed: int = 0, integrated: int = 200
) -> pd.DataFrame:
    """The table of `lalkit.probes`, system the kind of model, seed its training's. attributed, integrated: for how many of the
    examples gradients, and integrated gradients, are computed (they cost most); 0: all.

    Measures beside those of `look_at` and `ask`: right, length, isotropic, supported (attention on supporting facts), and
    pearson_ and jsd_ of the attributions.
    """
    model, tables = exact(model), []
    for number, group in enumerate(in_order(examples, SIZE)):
        start = number * SIZE
        batch = model.vocabulary.collate(group)
        seen = view(model, batch, range(start, start + len(group)))
        named = {"system": model.config.model, "seed": model.config.seed}
        tables += [look_at(seen, **named), ask(seen, rounds, **named)]
        for name, value in _of_texts(seen, batch).items():
            tables.append(tidy(value, "b", name, seen, **named))
        for name, method, through in ATTRIBUTIONS:
            limit = (integrated if method == "integrated" else attributed) or len(examples)
            if start < limit:
                for kind, value in zip(("pearson", "jsd"), _agreement(model, batch, seen, method, through)):
                    some = torch.where(torch.arange(start, start + len(group))[:, None] < limit, value, torch.inf)
                    table = tidy(some, "bu", f"{kind}_{name}", seen, **named)
                    tables.append(table[table["value"] != float("inf")])
    return pd.concat(tables, ignore_index=True)


def _of_texts(seen: AttentionView, batch: Batch) -> dict[str, Tensor]:
    """[B] each."""
    length = seen.key_mask.sum(1).double()
    found = {"right": seen.predict(seen.weights).score[:, 0], "length": length, "isotropic": length.rsqrt()}
    if any(example.supports for example in batch.examples):
        flags = torch.zeros_like(batch.mask)
        for i, example in enumerate(batch.examples):
            flags[i, list(example.supports)] = True
        found["supported"] = mass_ratio(seen.weights[:, :, 0], flags)[:, 0]
        found["supporting_share"] = flags.sum(1) / length
    return found


def _agreement(
    model: Classifier, batch: Batch, seen: AttentionView, method: str, through: bool
) -> tuple[Tensor, Tensor]:
    embedded = model.words(batch.x).detach()
    target = seen.predict(seen.weights).decision
    rows = torch.arange(len(embedded))
    found = attribute(from_words(model, batch, through), embedded, target, method, rows)
    return agree(found, seen.weights[:, 0, 0], batch.mask)


@torch.no_grad()
def attention_by_tag(model: Classifier, examples: Sequence[Example]) -> pd.DataFrame:
    """Figure 5: for each universal tag that occurs its share of all attention and of all words, in percent, and the words'
    number. Texts without tags are left out."""
    model, rows = exact(model), []
    for group in in_order([example for example in examples if example.tags], SIZE):
        attention = model(model.vocabulary.collate(group)).attention
        for example, weights in zip(group, attention.tolist()):
            rows += zip(example.tags, weights)
    table = pd.DataFrame(rows, columns=["tag", "weight"]).groupby("tag")["weight"].agg(["sum", "count"]).reset_index()
    return pd.DataFrame({
        "system": model.config.model, "seed": model.config.seed, "tag": table["tag"],
        "attention": 100 * table["sum"] / table["sum"].sum(), "words": 100 * table["count"] / table["count"].sum(),
        "n": table["count"],
    })  # fmt: skip


def by_text(table: pd.DataFrame) -> pd.DataFrame:
    """The long table with a column for every measure, one row a text: what figure 4 groups."""
    some = table[table["example"].notna()]
    return some.pivot_table(index=["system", "seed", "example"], columns="measure", values="value").reset_index()
