"""Rankings of words: by gradients (Mohankumar et al. 2020, table 4), and how faithful they are (ERASER, DeYoung et al. 2020).

    comprehensiveness = p(all words) - p(all but the first k words)     large: the first words are needed
    sufficiency       = p(all words) - p(the first k words alone)       small: the first words are enough

p is the probability of what is decided from all words, and k is 1, 5, 10, 20 or 50% of the words, rounded up. The mean over
these k is the area over the perturbation curve (AOPC). It depends on how much there is to lose, so we also divide its sum over
texts by the sum of p(all words) - p(no word), as Carton et al. (2020) do for single texts.

If a system knows its true attribution, the measures can be graded: do they prefer the ranking that is closer to the truth?
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lalkit.evaluation.statistics import mean_interval
from lalkit.probes.perturbation import erasure_flip, ranks
from lalkit.probes.view import AttentionView, tidy
from lalkit.probes.weights import share

SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)
AREAS, ALL, TRUTH = ("comprehensiveness", "sufficiency"), "all words", "agreement"  # measures of the tables
# 1: a faithful ranking has large values; -1: small ones.
BETTER = {"comprehensiveness": 1, "sufficiency": -1, "erased": -1}
Kept = Callable[[Tensor], Tensor]  # the words that stay, bool [B, T] -> p [B, U]
METHODS = ("gradient", "integrated")
STEPS = 50


# ---------------------------------------------------------------- by gradients


def attribute(
    function: Callable[..., Tensor], embedded: Tensor, target: Tensor, method: str = "gradient", *rest: Tensor
) -> Tensor:
    """Return for each word the signed attribution of the target, summed over the vector's dimensions: [B, T].

    Args:
        function: Embedded words [B, T, e] and the rest -> probabilities [B, C].
        embedded: [B, T, e].
        target: Classes [B].
        method: "gradient" (times the input) or "integrated" (gradients integrated from zero vectors).
        rest: More arguments of the function, whose first axis is B.

    Integrated gradients use the rule of Gauss and Legendre with 50 steps. They add up to f(x) - f(0) within 1e-5, unless the
    function detaches its attention.
    """
    from captum.attr import InputXGradient, IntegratedGradients

    if method not in METHODS:
        raise ValueError(f"no method {method!r}: {' or '.join(METHODS)}")
    explainer, settings = InputXGradient(function), {}
    if method == "integrated":
        explainer = IntegratedGradients(function)
        settings = {"n_steps": STEPS, "method": "gausslegendre", "internal_batch_size": max(len(embedded), 512)}
    settings |= {"target": target, "additional_forward_args": rest or None}
    return explainer.attribute(embedded.detach().requires_grad_(), **settings).sum(-1).detach()


def agree(attributions: Tensor, attention: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return Pearson's correlation and Jensen-Shannon divergence, [B, U] each, of |attributions| [B, U, T] and attention [B, T].

    Both sides are normalised over valid words. The divergence is in nats, from 0 to log 2. Both are nan if all attributions are
    zero; the correlation also for fewer than three words, and if one side does not vary.
    """
    valid = mask[:, None].to(attributions.dtype)
    a = share(attributions.abs() * valid)
    b = attention[:, None] * valid
    b = b / b.sum(-1, keepdim=True)
    count = valid.sum(-1, keepdim=True)
    x, y = ((v - v.sum(-1, keepdim=True) / count) * valid for v in (a, b))
    sizes = [v.square().sum(-1) for v in (x, y)]
    # Equal weights can differ in their last bit. So a side that varies by less than 1e-12 counts as not varying.
    varies = (sizes[0] > 1e-24) & (sizes[1] > 1e-24) & (count[..., 0] >= 3)
    pearson = (x * y).sum(-1) / (sizes[0] * sizes[1]).sqrt().where(varies, torch.nan)
    middle = (a + b) / 2
    jsd = (torch.special.entr(middle) - (torch.special.entr(a) + torch.special.entr(b)) / 2).sum(-1)
    return pearson, jsd.clamp(min=0)


def compact(embedded: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """Return the kept words as texts: (embedded [B, most, e], mask [B, most]). Their order stays."""
    size = keep.sum(1)
    order = torch.argsort(~keep, dim=1, stable=True)[:, : int(size.max())]
    mask = torch.arange(order.shape[1], device=keep.device)[None] < size[:, None]
    return embedded.gather(1, order[..., None].expand(*order.shape, embedded.shape[-1])), mask


# ---------------------------------------------------------------- faithful?


@torch.no_grad()
def removal(p: Kept, scores: Tensor, mask: Tensor) -> dict[str, Tensor]:
    """Return comprehensiveness and sufficiency (means over SHARES, and each, such as "sufficiency 0.1"), and "all words": [B, U].

    scores [B, T]: the word with the largest goes first, equal ones from left to right. "all words" is what is lost without any.
    """
    rank, length, whole = ranks(scores[:, None, None], mask)[:, 0, 0], mask.sum(1, keepdim=True), p(mask)
    lost = {ALL: whole - p(torch.zeros_like(mask))}
    for part in SHARES:
        first = rank < torch.ceil(part * length.double() - 1e-9)
        for name, kept in zip(AREAS, (mask & ~first, mask & first)):
            lost[f"{name} {part:g}"] = whole - p(kept)
    return lost | {name: torch.stack([lost[f"{name} {part:g}"] for part in SHARES]).mean(0) for name in AREAS}


def by_weights(view: AttentionView, normalised: bool = True) -> Kept:
    """Remove words from the attention alone, in all heads and queries. normalised: The weights of the others still sum to 1."""
    decision = view.predict(view.weights).decision[..., None]

    def p(kept: Tensor) -> Tensor:
        rest = view.weights * kept[:, None, None]
        mass = rest.sum(-1, keepdim=True)
        rest = rest / mass.where(mass > 0, 1.0) if normalised else rest
        return view.predict(rest).probs.gather(-1, decision)[..., 0]

    return p


def faithfulness(
    view: AttentionView,
    rankings: Mapping[str, Tensor],
    p: Kept | None = None,
    truth: Tensor | None = None,
    texts: Sequence[int] = (),
    system: str = "",
    seed: int = 0,
) -> pd.DataFrame:
    """Return the long table of `removal`, with our own `erased` (see `erasure_flip`), and the columns ranking and text.

    Args:
        view: Its decisions are explained. `erased` takes words from its attention.
        rankings: Their names, and scores [B, T]. The ranking "random" is added.
        p: Removes words; by default `by_weights`.
        truth: Scores [B, T] that are known to be right. The measure "agreement" is Pearson's correlation of both orders.
        texts: The number of each example's text, if several examples are of one text.
        system, seed: For their columns; the seed is that of the training.
    """
    units, tables = view.predict(view.weights).unit_mask, []
    drawn = np.stack([np.random.default_rng([0, e]).random(view.key_mask.shape[1]) for e in view.examples])
    for name, scores in {**rankings, "random": torch.from_numpy(drawn).to(view.key_mask.device)}.items():
        measures = removal(p or by_weights(view), scores, view.key_mask)
        measures["erased"] = erasure_flip(view, scores[:, None, None].expand_as(view.weights)).fraction
        if truth is not None:
            orders = [-ranks(x[:, None, None], view.key_mask)[:, 0, 0].double() for x in (scores, truth)]
            orders = [order - order.amin(1, keepdim=True) for order in orders]
            measures[TRUTH] = agree(orders[0][:, None], orders[1], view.key_mask)[0].expand_as(units)
        parts = [
            tidy(value, "bu", measure, view, units, system=system, seed=seed) for measure, value in measures.items()
        ]
        tables.append(pd.concat(parts, ignore_index=True).assign(ranking=name))
    table = pd.concat(tables, ignore_index=True)
    return table.assign(text=table["example"].map(dict(zip(view.examples, texts or view.examples))))


def areas(table: pd.DataFrame) -> pd.DataFrame:
    """Return system, ranking, measure, value, low, high (95%, by drawing texts again) and texts, from `faithfulness`.

    A text counts once, with the mean over its units and seeds. "comprehensiveness, normalised" is described above.
    """
    rows = []
    for key, group in table.groupby(["system", "ranking"], sort=False):
        texts = group.groupby(["text", "measure"], sort=False)["value"].mean().unstack()
        for measure, values in texts.items():
            rows.append((*key, measure, *mean_interval(values.dropna()), values.count()))
        for measure in AREAS:
            rows.append((*key, f"{measure}, normalised", *mean_interval(texts[measure], texts[ALL]), len(texts)))
    return pd.DataFrame(rows, columns=["system", "ranking", "measure", "value", "low", "high", "texts"])


def grades(table: pd.DataFrame) -> pd.DataFrame:
    """Return how often each measure prefers the ranking that agrees more with the truth; 0.5 is chance, and ties count half.

    table: from `faithfulness`, with a truth. All pairs of rankings on the same text are compared. Columns as those of `areas`.
    """
    rows = []
    for system, group in table.groupby("system", sort=False):
        means = group.groupby(["text", "example", "measure", "ranking"])["value"].mean()
        examples = means.unstack(["measure", "ranking"])
        pairs = list(combinations(group["ranking"].unique(), 2))
        for measure, sign in BETTER.items():
            says, true = ([examples[of, a] - examples[of, b] for a, b in pairs] for of in (measure, TRUTH))
            right = [(np.sign(sign * s * t) + 1) / 2 for s, t in zip(says, (t.where(t != 0) for t in true))]
            values = pd.concat(right, axis=1).mean(axis=1).groupby("text").mean().dropna()
            rows.append((system, measure, *mean_interval(values), len(values)))
    return pd.DataFrame(rows, columns=["system", "measure", "value", "low", "high", "texts"])
