"""All probes of one classifier on a part of its data: a long table a text, and what each part of speech is given.

Table 3: does attention fall on the words that suffice? A generator is trained for a frozen classifier, then asked.

Table 5: whose attention do people find more helpful? Two models' attention on a text, their sides drawn by lot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lalkit.companions.classifiers.classifier import (
    Batch,
    Classifier,
    exact,
    from_some_words,
    from_words,
    in_order,
    shuffled,
    view,
)
from lalkit.companions.classifiers.examples import Dataset, Example
from lalkit.errors import ModelError
from lalkit.probes.attribution import agree, attribute
from lalkit.probes.rationale import RationaleGenerator, attention_on, compact, rationale, share, train_rationale
from lalkit.probes.tables import ask, look_at, tidy
from lalkit.probes.view import AttentionView
from lalkit.probes.weights import mass_ratio

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


def rationales(
    model: Classifier, data: Dataset, weight: float = 0.2, epochs: int = 3, hidden: int = 64, seed: int = 0,
    say: Callable[[str], None] = print,
) -> pd.DataFrame:  # fmt: skip
    """One row a text of the test part: length |Z| / T, attention of the whole text on Z, right from Z, right from all of it,
    changed (whether Z's class is another), and the rationale's words. weight: a, what a whole text costs; it and hidden are
    the same for every model that is compared."""
    model.eval()
    torch.manual_seed(seed)
    generator = RationaleGenerator(model.config.embedding, hidden)

    def batches(epoch: int) -> Iterator[tuple]:
        for group in shuffled(data.train, model.config.batch, seed, epoch):
            batch = model.vocabulary.collate(group)
            yield model.words(batch.x).detach(), batch.mask, batch.label, from_some_words(model, batch)

    for row in train_rationale(generator, batches, weight, epochs, seed=seed):
        say(f"rationales of {model.config.model}: epoch {row['epoch']}/{epochs}  reward {row['reward']:.3f}  "
            f"length {row['length']:.2f}")  # fmt: skip
    rows = []
    with torch.no_grad():
        for group in in_order(data.test, 100):
            batch = model.vocabulary.collate(group)
            embedded, whole = model.words(batch.x), model(batch)
            keep = rationale(generator, embedded, batch.mask)
            decided = from_some_words(model, batch)(*compact(embedded, keep)).argmax(-1)
            first = whole.logits.argmax(-1)
            columns = {
                "length": share(keep, batch.mask), "attention": attention_on(whole.attention, keep),
                "right": decided == batch.label, "right_whole": first == batch.label, "changed": decided != first,
            }  # fmt: skip
            table = pd.DataFrame({name: column.tolist() for name, column in columns.items()})
            table["words"] = [" ".join(w for w, k in zip(e.words, row) if k) for e, row in zip(group, keep.tolist())]
            rows.append(table)
    found = pd.concat(rows, ignore_index=True)
    return found.assign(system=model.config.model, seed=model.config.seed)


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
