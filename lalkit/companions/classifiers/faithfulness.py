"""The measures of one classifier (Mohankumar et al. 2020): its attention under all probes, parts of speech, rationales, readers.

Table 1: what do models attend to in single texts?
Table 3: is attention on the words that are enough for the decision? A generator of rationales is trained for the classifier.
Table 5: whose attention do readers find more helpful? They see the attention of two models on a text, in a random order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lalkit.companions.classifiers.classifier import Batch, Classifier, from_some_words, from_words, view
from lalkit.companions.classifiers.classifier_training import shuffled
from lalkit.companions.classifiers.examples import Dataset, Example
from lalkit.companions.frame import exact, in_order
from lalkit.errors import ModelError
from lalkit.evaluation.statistics import fleiss_kappa
from lalkit.probes.attribution import (
    RationaleGenerator,
    agree,
    attribute,
    compact,
    kept_share,
    rationale,
    train_rationale,
)
from lalkit.probes.perturbation import ask
from lalkit.probes.view import AttentionView, tidy
from lalkit.probes.weights import look_at, mass_ratio

SIZE = 100  # texts in a batch
CRITERIA, CHOICES = ("overall", "completeness", "correctness"), ("left", "right", "skip")  # of table 5, and of its page
# (name in the table, method, whether gradients go through the attention): the authors hold attention fixed, in table 4 too.
ATTRIBUTIONS = (
    ("gradient", "gradient", True), ("gradient_fixed", "gradient", False),
    ("integrated", "integrated", True), ("integrated_fixed", "integrated", False),
)  # fmt: skip


def measure(
    model: Classifier, examples: Sequence[Example], rounds: int = 100, attributed: int = 0, integrated: int = 200
) -> pd.DataFrame:
    """Return the long table of all probes; its system is the kind of model, its seed that of the training.

    Args:
        rounds: Number of permutations.
        attributed: Number of examples for which gradients are computed; 0 means all.
        integrated: Number of examples for integrated gradients, which take the most time; 0 means all.

    Measures besides those of `look_at` and `ask`: right, length, isotropic, supported (the attention on supporting facts), and
    pearson_ and jsd_ of each kind of attribution.
    """
    model, tables = exact(model), []
    labels: dict[str, Any] = {"system": model.config.model, "seed": model.config.seed}
    for group in in_order(range(len(examples)), SIZE):
        batch = model.vocabulary.collate([examples[i] for i in group])
        seen = view(model, batch, group)
        tables += [look_at(seen, **labels), ask(seen, rounds, **labels)]
        tables += [tidy(value, "b", name, seen, **labels) for name, value in _of_texts(seen, batch).items()]
        for name, method, through in ATTRIBUTIONS:
            limit = (integrated if method == "integrated" else attributed) or len(examples)
            if group[0] < limit:
                wanted = (torch.tensor(group) < limit)[:, None]
                for kind, value in zip(("pearson", "jsd"), _agreement(model, batch, seen, method, through)):
                    tables.append(tidy(value, "bu", f"{kind}_{name}", seen, wanted, **labels))
    return pd.concat(tables, ignore_index=True)


def _of_texts(seen: AttentionView, batch: Batch) -> dict[str, Tensor]:
    """Return the measures that have one number [B] for each text."""
    length = seen.key_mask.sum(1).double()
    measures = {"right": seen.predict(seen.weights).score[:, 0], "length": length, "isotropic": length.rsqrt()}
    if any(example.supports for example in batch.examples):
        flags = torch.zeros_like(batch.mask)
        for i, example in enumerate(batch.examples):
            flags[i, list(example.supports)] = True
        measures["supported"] = mass_ratio(seen.weights[:, :, 0], flags)[:, 0]
        measures["supporting_share"] = flags.sum(1) / length
    return measures


def _agreement(
    model: Classifier, batch: Batch, seen: AttentionView, method: str, through: bool
) -> tuple[Tensor, Tensor]:
    """Return correlation and divergence [B, 1] of the attention and of the attributions to words."""
    embedded = model.words(batch.x).detach()
    decision, rows = seen.predict(seen.weights).decision, torch.arange(len(embedded))
    attributions = attribute(from_words(model, batch, through), embedded, decision, method, rows)
    return agree(attributions, seen.weights[:, 0, 0], batch.mask)


@torch.no_grad()
def attention_by_tag(model: Classifier, examples: Sequence[Example]) -> pd.DataFrame:
    """Figure 5: return for each universal tag its share of all attention and of all words, in percent, and its number of words.

    Texts without tags are left out.
    """
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
    """Turn the long table into one with a row for each text and a column for each measure: what figures 3 and 4 group."""
    index = [key for key in ("data", "system", "seed", "example") if key in table]
    return table.dropna(subset="example").pivot_table("value", index, "measure", sort=False).reset_index()


def rationales(
    model: Classifier, data: Dataset, weight: float = 0.2, epochs: int = 3, hidden: int = 64
) -> pd.DataFrame:
    """Table 3: train a generator of rationales for the classifier, and measure it on the test part.

    Args:
        weight: a, the cost of keeping a whole text.
        hidden: The size of the generator. It and `weight` must be equal for models that are compared.

    Returns: a row for each text: length |Z| / T; attention, how much of the whole text's attention is on Z; right, whether the
        class from Z alone is right; right_whole, the same from the whole text; changed, whether the two classes differ; words.
    """
    model.eval()
    torch.manual_seed(0)
    generator = RationaleGenerator(model.config.embedding, hidden)

    def batches(epoch: int) -> Iterator[tuple]:
        for group in shuffled(data.train, model.config.batch, 0, epoch):
            batch = model.vocabulary.collate(group)
            yield model.words(batch.x).detach(), batch.mask, batch.label, from_some_words(model, batch)

    train_rationale(generator, batches, weight, epochs)
    tables = []
    with torch.no_grad():
        for group in in_order(data.test, SIZE):
            batch = model.vocabulary.collate(group)
            embedded, whole = model.words(batch.x), model(batch)
            keep = rationale(generator, embedded, batch.mask)
            decision = from_some_words(model, batch)(*compact(embedded, keep)).argmax(-1)
            first = whole.logits.argmax(-1)
            # The authors' program measures the attention of a text whose other words are padding.
            columns = {
                "length": kept_share(keep, batch.mask), "attention": mass_ratio(whole.attention[:, None], keep)[:, 0],
                "right": decision == batch.label, "right_whole": first == batch.label, "changed": decision != first,
            }  # fmt: skip
            table = pd.DataFrame({name: column.tolist() for name, column in columns.items()})
            table["words"] = [" ".join(w for w, k in zip(e.words, row) if k) for e, row in zip(group, keep.tolist())]
            tables.append(table)
    return pd.concat(tables, ignore_index=True).assign(system=model.config.model, seed=model.config.seed)


@torch.no_grad()
def samples(models: Sequence[Classifier], examples: Sequence[Example]) -> pd.DataFrame:
    """Table 1: return the attention of several models on some texts, for `lalkit.draw.companion_figures.samples`.

    Returns: a row for each word: example, question, label, system, said (the class of the model), place, word, attention.
    """
    tables = []
    for i, example in enumerate(examples):
        for model in models:
            output = model(model.vocabulary.collate([example]))
            about = {"example": i, "question": " ".join(example.question), "label": example.label}
            about |= {"system": model.config.model, "said": model.vocabulary.classes[int(output.logits.argmax())]}
            about |= {"place": range(len(example.words)), "word": example.words}
            tables.append(pd.DataFrame(about | {"attention": output.attention[0].tolist()}))
    return pd.concat(tables, ignore_index=True)


@torch.no_grad()
def blinded(
    first: Classifier, second: Classifier, examples: Sequence[Example], count: int = 20, seed: int = 0
) -> tuple[list[dict], pd.DataFrame]:
    """Table 5: draw texts that both models classify rightly, and put each model's attention on a random side.

    Returns: the items for `lalkit.draw.companion_figures.preference_page`, and the key (item, example, left, right). The items do
        not tell whose attention is on which side, so keep the key apart until all readers have answered.

    Raises: ModelError if there is no such text, or if both models are of the same kind.
    """
    names = first.config.model, second.config.model
    if names[0] == names[1]:
        raise ModelError(f"both classifiers are {names[0]}", remedy="Compare two kinds.")
    candidates = []
    for group in in_order(range(len(examples)), SIZE):
        batches = [m.vocabulary.collate([examples[i] for i in group]) for m in (first, second)]
        outputs = [m(batch) for m, batch in zip((first, second), batches)]
        right = [output.logits.argmax(-1) == batch.label for output, batch in zip(outputs, batches)]
        both = (right[0] & right[1]).tolist()
        candidates += [(i, [o.attention[row].tolist() for o in outputs]) for row, i in enumerate(group) if both[row]]
    if not candidates:
        remedy = "Give more texts, or train both classifiers longer."
        raise ModelError("there is no text that both classify rightly", remedy=remedy)
    rng = np.random.default_rng(seed)
    items, key = [], []
    for number, place in enumerate(rng.permutation(len(candidates))[:count], 1):
        i, weights = candidates[place]
        sides = rng.permutation(2)
        example = examples[i]
        left, right = (weights[side][: len(example.words)] for side in sides)
        items.append({"item": number, "words": example.words, "question": " ".join(example.question),
                      "label": example.label, "left": left, "right": right})  # fmt: skip
        key.append((number, i, names[sides[0]], names[sides[1]]))
    return items, pd.DataFrame(key, columns=["item", "example", "left", "right"])


def preferred(answers: Sequence[pd.DataFrame], key: pd.DataFrame) -> pd.DataFrame:
    """Table 5: count by majority how often each model was chosen.

    answers: what the page saved for each judge (item; criterion; choice: left, right or skip). What was skipped does not count.

    Returns: a row for each criterion. texts: those with a majority; the name of each model: its percent of these; ties: texts
        without a majority; answers, skipped: of all judges; kappa: their agreement (Fleiss).

    Raises: ModelError for answers that are not of this page, or if a judge answered a question twice.
    """
    if not {"item", "left", "right"} <= set(key):
        raise ModelError("the key lacks item, left or right", remedy="Give the file that was written with the page.")
    known, models = key.set_index("item"), sorted({*key["left"], *key["right"]})
    allowed = {"item": set(known.index), "criterion": CRITERIA, "choice": CHOICES}
    for judge, table in enumerate(answers, 1):
        for column, values in allowed.items():
            if column not in table or (strange := sorted(set(table[column]) - set(values), key=str)):
                problem = f"the key has no {column} {strange[0]}" if column in table else f"there is no column {column}"
                where, remedy = f"judge {judge}", "Use what the page saved, and the key that was written with it."
                raise ModelError(problem, where=where, remedy=remedy)
        if (twice := table.duplicated(["item", "criterion"])).any():
            number = table["item"][twice].iloc[0]
            raise ModelError(f"item {number} is answered twice", where=f"judge {judge}", remedy="Give each file once.")
    given, rows = pd.concat(answers, ignore_index=True), []
    for criterion in CRITERIA:
        asked = given[given["criterion"] == criterion]
        counted = asked[asked["choice"] != "skip"]
        chosen = np.array([known.loc[item, side] for item, side in zip(counted["item"], counted["choice"])], object)
        votes = pd.crosstab(counted["item"].to_numpy(), chosen).reindex(columns=models, fill_value=0).to_numpy()
        decided = votes[votes.max(1, initial=0) * 2 > votes.sum(1)]
        shares = 100 * (decided * 2 > decided.sum(1, keepdims=True)).mean(0) if len(decided) else [np.nan] * len(models)
        row = {"criterion": criterion, "texts": len(decided), **dict(zip(models, shares))}
        row |= {"ties": len(votes) - len(decided), "answers": len(counted), "skipped": len(asked) - len(counted)}
        rows.append(row | {"kappa": fleiss_kappa(votes)})
    return pd.DataFrame(rows)
