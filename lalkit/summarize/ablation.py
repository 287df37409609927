"""One head taken away at a time: is the summary worse, and by more than chance?

A gate takes a head's context away. For the copy head, whose weights are also what is copied, that leaves the copying as it was;
so it is also made to copy from all words alike, and both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import torch

from lalkit.probes.statistics import holm, paired_test
from lalkit.summarize.decode import GREEDY, Beam, summarize
from lalkit.summarize.documents import Document
from lalkit.summarize.model import Change, Summarizer
from lalkit.summarize.rouge import score

SIZE = 100
MODES = ("context", "copy", "both")


def ablate_heads(
    model: Summarizer,
    documents: Sequence[Document],
    *,
    measure: str = "rouge1",
    beam: Beam = GREEDY,
    heads: Sequence[str] | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> pd.DataFrame:
    """A row per head without its context, and two more of the copy head (mode copy, both): head, mode, `measure` in the mean
    without it, difference to the whole model (negative: worse), low, high (95%), p (t-test), p_signs (random signs), p_holm
    (of p, over all rows), same (share of documents with the very same summary). heads: some only (a pruned model's kept ones)."""
    whole, texts = _scores(model, documents, measure, beam)
    copy = f"cross.{model.config.layers - 1}.0"
    chosen = model.heads if heads is None else heads
    # The copy head's weights are copied whether or not its context is kept.
    asked = [(head, "context") for head in chosen] + [(copy, mode) for mode in MODES[1:]]
    rows = []
    for head, mode in asked:
        values, found = _scores(model, documents, measure, beam, head, mode)
        test = paired_test(values, whole)
        same = sum(a == b for a, b in zip(texts, found)) / len(texts)
        rows.append(
            {"head": head, "mode": mode, measure: sum(values) / len(values), "difference": test.difference,
             "low": test.low, "high": test.high, "p": test.t_p, "p_signs": test.permutation_p, "same": same}
        )  # fmt: skip
        say(f"without {head} ({mode}): {measure} {test.difference:+.4f}, p {test.t_p:.3g}")
    table = pd.DataFrame(rows)
    table.insert(7, "p_holm", holm(table["p"]))
    return table


def change_without(model: Summarizer, head: str, mode: str, batch) -> Change:
    """What takes a head away. Raises ValueError for a mode, or a head, that there is not."""
    block, _, number = head.rpartition(".")
    if head not in model.heads or mode not in MODES:
        raise ValueError(f"no head {head!r} or no mode {mode!r}: {', '.join(MODES)}")
    gate = torch.ones(model.config.heads, dtype=model.say.weight.dtype)
    gate[int(number)] = 0.0
    gates = {block: gate} if mode != "copy" else None
    if mode == "context":
        return Change(gates=gates)
    if head != f"cross.{model.config.layers - 1}.0":
        raise ValueError(f"{head} does not copy; the copy head is cross.{model.config.layers - 1}.0")
    even = batch.mask[:, None].to(gate.dtype)
    return Change(gates=gates, copy=even / even.sum(-1, keepdim=True))


def _scores(
    model: Summarizer, documents: Sequence[Document], measure: str, beam: Beam, head: str = "", mode: str = ""
) -> tuple[list[float], list[list[str]]]:
    values, texts = [], []
    for start in range(0, len(documents), SIZE):
        group = documents[start : start + SIZE]
        batch = model.vocabulary.collate(group, model.config)
        change = change_without(model, head, mode, batch) if head else Change()
        found = summarize(model, batch, beam, change)
        texts += found
        values += score(group, found)[measure].tolist()
    return values, texts
