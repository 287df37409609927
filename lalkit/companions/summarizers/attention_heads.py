"""What every head of a summarizer looks at (Baan et al. 2019, section 4): parts of speech, names, neighbours, how few words.

One head taken away at a time: is the summary worse, and by more than chance?

A gate takes a head's context away. For the copy head, whose weights are also what is copied, that leaves the copying as it was;
so it is also made to copy from all words alike, and both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import torch
from torch import Tensor

from lalkit.companions.summarizers.documents import Document
from lalkit.companions.summarizers.headlines import GREEDY, Beam, score, summarize
from lalkit.companions.summarizers.summarizer import STOP, Batch, Change, Summarizer
from lalkit.errors import CorpusError
from lalkit.evaluation.statistics import holm, paired_test
from lalkit.probes.weights import mass_ratio, pool_queries, pos_kl, relative_position, sparsity, tag_histogram

SIZE = 50  # documents at a time
OFFSETS = {"enc": (-1, 1), "cross": (-1, 0, 1)}


@torch.inference_mode()
def head_table(model: Summarizer, documents: Sequence[Document]) -> pd.DataFrame:
    """A row per head: pos_kl and ne_ratio (means over documents; of those with names alone), ne_share (of tokens, what attention
    spread evenly would give), the shares of queries that look most at the word before, at or after their own (`before`, `at`,
    `after`; nan for an encoder's own) and the largest of them, `position`; sparsity; documents, named (documents with
    names), empty (documents in which the head attends to nothing that counts).

    An encoder's query is a word of the document; a decoder's is a word of the true summary, and its own place the one where
    that word stands in the document: the place the copy head attends to most, of several; no place, and it is left out [D].
    """
    if not all(d.tags and d.entities and d.summary for d in documents):
        raise CorpusError("documents with tags, entities and summaries are needed", remedy="Such as news, or gum.")
    model.eval()
    names = sorted({tag for d in documents for tag in d.tags})
    parts = [_measure(model, documents[i : i + SIZE], names) for i in range(0, len(documents), SIZE)]
    table = pd.concat(parts, ignore_index=True)
    sums = ["hits_before", "hits_at", "hits_after", "asked_before", "asked_at", "asked_after", "zeros", "cells"]
    groups = table.groupby("head", sort=False)
    found = groups[["pos_kl", "ne_ratio"]].mean()
    found["ne_share"] = groups["ne_share"].mean()
    totals = groups[sums].sum(min_count=1)
    for name in ("before", "at", "after"):
        found[name] = totals[f"hits_{name}"] / totals[f"asked_{name}"]
    found["position"] = found[["before", "at", "after"]].max(axis=1)
    found["sparsity"] = totals["zeros"] / totals["cells"]
    found["documents"], found["named"] = groups.size(), groups["ne_ratio"].count()
    found["empty"] = found["documents"] - groups["pos_kl"].count()
    return found.reset_index()


@torch.inference_mode()
def tag_table(model: Summarizer, documents: Sequence[Document]) -> pd.DataFrame:
    """A row per head and tag, over the whole corpus: share of the head's attention, and of tokens."""
    model.eval()
    names = sorted({tag for d in documents for tag in d.tags})
    attention, tokens = torch.zeros(len(model.heads), len(names)), torch.zeros(len(names))
    for start in range(0, len(documents), SIZE):
        group = documents[start : start + SIZE]
        batch = model.vocabulary.collate(group, model.config)
        tags = _numbers(batch, [[names.index(t) for t in d.tags] for d in group])
        weights, rows = model(batch).weights, []
        for block in model.blocks:
            pooled = pool_queries(weights[block], _queries(batch, block), batch.mask)
            rows.append(tag_histogram(pooled.nan_to_num(), tags, len(names)).sum(0))
        attention += torch.cat(rows)
        tokens += torch.bincount(tags[tags >= 0], minlength=len(names))
    shares = attention / attention.sum(-1, keepdim=True)
    rows = [
        {"head": head, "tag": tag, "share": float(shares[h, k]), "tokens": float(tokens[k] / tokens.sum())}
        for h, head in enumerate(model.heads)
        for k, tag in enumerate(names)
    ]
    return pd.DataFrame(rows)


@torch.inference_mode()
def attention_of(
    model: Summarizer, document: Document, heads: Sequence[str]
) -> list[tuple[str, Tensor, list[str], list[str]]]:
    """(head, weights [Q, T], what asks, what is attended to) on one document. A decoder's query is named by the word it says."""
    batch, found = model.vocabulary.collate([document], model.config), []
    words = list(document.words[: batch.source.shape[1]])
    said = [*document.summary[: model.config.target], "(end)"]
    weights = model.eval()(batch).weights
    for head in heads:
        block, _, number = head.rpartition(".")
        found.append((head, weights[block][0, int(number)], words if block.startswith("enc") else said, words))
    return found


def _measure(model: Summarizer, documents: Sequence[Document], names: Sequence[str]) -> pd.DataFrame:
    """A row per head and document; what is counted over all queries stands in the batch's first."""
    batch = model.vocabulary.collate(documents, model.config)
    tags = _numbers(batch, [[names.index(t) for t in d.tags] for d in documents])
    named = _numbers(batch, [[int(e) for e in d.entities] for d in documents]) == 1
    weights = model(batch).weights
    places = reference(batch, weights[f"cross.{model.config.layers - 1}"][:, 0])
    share = named.sum(1) / batch.mask.sum(1)
    tables = []
    for block in model.blocks:
        kind, w = block.split(".")[0], weights[block]
        queries = _queries(batch, block)
        pooled = pool_queries(w, queries, batch.mask)
        own = torch.arange(w.shape[2])[None].expand(w.shape[:1] + w.shape[2:3]) if kind == "enc" else places
        kl, ratio = pos_kl(pooled, tags, len(names)), mass_ratio(pooled, named)
        near = relative_position(w, own, batch.mask, queries, OFFSETS[kind])
        asked = _asked(own, batch.mask, queries, OFFSETS[kind])
        zeros = sparsity(w, batch.mask, queries)
        cells = int((batch.mask[:, None] & queries[:, :, None]).sum())
        for h in range(w.shape[1]):
            table = pd.DataFrame(
                {"head": f"{block}.{h}", "pos_kl": kl[:, h], "ne_ratio": ratio[:, h], "ne_share": share}
            )
            table.loc[table["ne_ratio"].isna(), "ne_share"] = float("nan")
            for offset, value, count in zip(OFFSETS[kind], near[h].tolist(), asked):
                name = {-1: "before", 0: "at", 1: "after"}[offset]
                table.loc[0, f"asked_{name}"], table.loc[0, f"hits_{name}"] = count, value * count if count else 0.0
            table.loc[0, "zeros"], table.loc[0, "cells"] = float(zeros[h]) * cells, cells
            tables.append(table)
    found = pd.concat(tables, ignore_index=True)
    return found.reindex(columns=[*found.columns, *({"asked_at", "hits_at"} - set(found.columns))])


def reference(batch: Batch, copying: Tensor) -> Tensor:
    """[B, Q]: for each word of the true summary the place of the same word in the document, of several the one that copying
    [B, Q, T] attends to most; -1 where there is none."""
    same = (batch.target[..., None] == batch.extended[:, None]) & batch.mask[:, None]
    best = copying.masked_fill(~same, -1.0).argmax(-1)
    return best.masked_fill(~same.any(-1), -1)


def _asked(own: Tensor, mask: Tensor, queries: Tensor, offsets: Sequence[int]) -> list[int]:
    """How many queries have a place at each offset from their own."""
    found = []
    for offset in offsets:
        target = own + offset
        inside = (target >= 0) & (target < mask.shape[1]) & (own >= 0) & queries
        found.append(int((inside & mask.gather(1, target.clamp(0, mask.shape[1] - 1))).sum()))
    return found


def _queries(batch: Batch, block: str) -> Tensor:
    """[B, Q]: the words of the document, or those of the true summary, its end left out."""
    return batch.mask if block.startswith("enc") else batch.target_mask & (batch.target != STOP)


def _numbers(batch: Batch, rows: Sequence[Sequence[int]]) -> Tensor:
    """[B, T], -1 on padding; what was cut off the documents is left out."""
    found = torch.full(batch.source.shape, -1)
    for i, row in enumerate(rows):
        found[i, : min(len(row), found.shape[1])] = torch.tensor(row[: found.shape[1]])
    return found


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
