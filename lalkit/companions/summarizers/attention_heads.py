"""What each head of a summarizer attends to (Baan et al. 2019, section 4), and what is lost without the head.

A head can attend to parts of speech, to names, to neighbours of its query, or to few words. Without one head, is the summary
worse, and by more than chance? A gate removes the context of a head. For the copy head, the gate alone does not change what is
copied. So we also let it copy from all words equally, and do both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pandas as pd
import torch
from torch import Tensor

from lalkit.chart.machine import progress
from lalkit.companions.frame import in_order, pad
from lalkit.companions.summarizers.documents import Document
from lalkit.companions.summarizers.headlines import GREEDY, Beam, score, summarize, summarize_all
from lalkit.companions.summarizers.summarizer import STOP, UNCHANGED, Batch, Change, Summarizer
from lalkit.errors import CorpusError
from lalkit.evaluation.statistics import holm, paired_test
from lalkit.probes import weights as measures

SIZE = 50  # documents in a batch
OFFSETS = {"enc": (-1, 1), "cross": (-1, 0, 1)}
PLACES = {-1: "before", 0: "at", 1: "after"}
MODES = ("context", "copy", "both")


@torch.inference_mode()
def head_table(model: Summarizer, documents: Sequence[Document], *, own: bool = False) -> pd.DataFrame:
    """Return a row for each head, while the model reads the true summary, or (own) while it writes its own words [P].

    pos_kl, ne_ratio: means over documents (ne_ratio: over documents with names); ne_share: the share of names among the tokens,
    which even attention would give; before, at, after: the shares of queries that attend most to the word before, at or after
    their own place (no `at` in the encoder); position: the largest of these; sparsity; documents; named: documents with names;
    empty: documents in which the head attends to nothing that counts.

    A query of the encoder is a word of the document. A query of the decoder is a word of the summary. Its own place is where
    that word is in the document: of several places, the one to which the copy head attends most. A query without a place is left
    out [D]. A step of the decoder depends on the words before it alone, so a greedy summary that is read again has the attention
    that it was written with.
    """
    if not all(d.tags and d.entities and d.summary for d in documents):
        raise CorpusError("documents with tags, entities and summaries are needed", remedy="Such as news, or gum.")
    model.eval()
    names = sorted({tag for d in documents for tag in d.tags})
    if own:
        written = summarize_all(model, documents, replace(GREEDY, most=model.config.target), SIZE)
        documents = [replace(d, summary=tuple(words)) for d, words in zip(documents, written)]
    table = pd.concat([_measure(model, group, names) for group in in_order(documents, SIZE)], ignore_index=True)
    groups = table.groupby("head", sort=False)
    heads = groups[["pos_kl", "ne_ratio", "ne_share"]].mean()
    counts = [f"{what}_{place}" for what in ("hits", "asked") for place in PLACES.values()]
    totals = groups[[*counts, "zeros", "cells"]].sum(min_count=1)
    for place in PLACES.values():
        heads[place] = totals[f"hits_{place}"] / totals[f"asked_{place}"]
    heads["position"] = heads[[*PLACES.values()]].max(axis=1)
    heads["sparsity"] = totals["zeros"] / totals["cells"]
    heads["documents"], heads["named"] = groups.size(), groups["ne_ratio"].count()
    heads["empty"] = heads["documents"] - groups["pos_kl"].count()
    return heads.reset_index()


def _measure(model: Summarizer, documents: Sequence[Document], names: Sequence[str]) -> pd.DataFrame:
    """Return a row for each head and document. What is counted over all queries is in the row of the first document."""
    batch = model.collate(documents)
    tags = _tags(batch, documents, names)
    named = pad([d.entities for d in documents], batch.source.shape[1], -1, device=batch.source.device) == 1
    weights = model(batch).weights
    places = reference(batch, weights[f"cross.{model.config.layers - 1}"][:, 0])
    share = named.sum(1) / batch.mask.sum(1)
    tables = []
    for block in model.blocks:
        kind, w = block.split(".")[0], weights[block]
        queries = _queries(batch, block)
        pooled = measures.pool_queries(w, queries, batch.mask)
        every = torch.arange(w.shape[2], device=w.device).expand_as(w[:, 0, :, 0])
        own = every if kind == "enc" else places
        kl, ratio = measures.pos_kl(pooled, tags, len(names)), measures.mass_ratio(pooled, named)
        near = measures.relative_position(w, own, batch.mask, queries, OFFSETS[kind])
        asked = [int(measures.places_near(own, offset, batch.mask, queries)[1].sum()) for offset in OFFSETS[kind]]
        zeros = measures.sparsity(w, batch.mask, queries)
        cells = int((batch.mask[:, None] & queries[:, :, None]).sum())
        for h in range(w.shape[1]):
            columns = {"pos_kl": kl[:, h], "ne_ratio": ratio[:, h], "ne_share": share}
            table = pd.DataFrame({"head": f"{block}.{h}"} | {name: value.cpu() for name, value in columns.items()})
            table.loc[table["ne_ratio"].isna(), "ne_share"] = float("nan")
            for offset, value, count in zip(OFFSETS[kind], near[h].tolist(), asked):
                place = PLACES[offset]
                table.loc[0, f"asked_{place}"], table.loc[0, f"hits_{place}"] = count, value * count if count else 0.0
            table.loc[0, "zeros"], table.loc[0, "cells"] = float(zeros[h]) * cells, cells
            tables.append(table)
    return pd.concat(tables, ignore_index=True)


@torch.inference_mode()
def tag_table(model: Summarizer, documents: Sequence[Document]) -> pd.DataFrame:
    """Return a row for each head and tag: its share of the head's attention, and of the tokens, over all documents."""
    model.eval()
    names = sorted({tag for d in documents for tag in d.tags})
    attention = model.say.weight.new_zeros(len(model.heads), len(names))
    tokens = attention.new_zeros(len(names))
    for group in in_order(documents, SIZE):
        batch = model.collate(group)
        tags, weights = _tags(batch, group, names), model(batch).weights
        pooled = [measures.pool_queries(weights[block], _queries(batch, block), batch.mask) for block in model.blocks]
        attention += torch.cat([measures.tag_histogram(p.nan_to_num(), tags, len(names)).sum(0) for p in pooled])
        tokens += torch.bincount(tags[tags >= 0], minlength=len(names))
    shares, tokens = attention / attention.sum(-1, keepdim=True), tokens / tokens.sum()
    wide = pd.DataFrame(shares.tolist(), model.heads, pd.Index(names, name="tag")).rename_axis("head")
    table = wide.stack().rename("share").reset_index()
    return table.assign(tokens=table["tag"].map(dict(zip(names, tokens.tolist()))))


@torch.inference_mode()
def attention_of(model: Summarizer, document: Document, heads: Sequence[str]) -> pd.DataFrame:
    """Return a row for each weight: head, row and asks (the query), column and word (attended to), weight.

    A query of the decoder is named by the word of the true summary that it writes.
    """
    batch = model.collate([document])
    words = list(document.words[: batch.source.shape[1]])
    summary = [*document.summary[: model.config.target], "(end)"]
    weights, tables = model.eval()(batch).weights, []
    for head in heads:
        block, _, number = head.rpartition(".")
        cells = product(enumerate(words if block.startswith("enc") else summary), enumerate(words))
        table = pd.DataFrame([(head, *q, *k) for q, k in cells], columns=["head", "row", "asks", "column", "word"])
        tables.append(table.assign(weight=weights[block][0, int(number)].flatten().tolist()))
    return pd.concat(tables, ignore_index=True)


def reference(batch: Batch, copying: Tensor) -> Tensor:
    """Return [B, Q]: the place in the document of each word of the true summary, or -1 if it has none.

    Of several places, it is the one to which copying [B, Q, T] attends most.
    """
    same = (batch.target[..., None] == batch.extended[:, None]) & batch.mask[:, None]
    best = copying.masked_fill(~same, -1.0).argmax(-1)
    return best.masked_fill(~same.any(-1), -1)


def _queries(batch: Batch, block: str) -> Tensor:
    """Return [B, Q], True for the words of the document, or for those of the true summary without its end."""
    return batch.mask if block.startswith("enc") else batch.target_mask & (batch.target != STOP)


def _tags(batch: Batch, documents: Sequence[Document], names: Sequence[str]) -> Tensor:
    """Return the numbers of the tags [B, T], -1 on padding."""
    rows = [[names.index(tag) for tag in d.tags] for d in documents]
    return pad(rows, batch.source.shape[1], -1, device=batch.source.device)


# ---------------------------------------------------------------- heads taken away


def ablate_heads(
    model: Summarizer, documents: Sequence[Document], *, beam: Beam = GREEDY, heads: Sequence[str] | None = None
) -> pd.DataFrame:
    """Return a row for each head without its context, and two more for the copy head (the modes copy and both).

    Args:
        heads: The heads to take away; None means all. A pruned model has only its kept ones.

    Returns: head; mode; the mean rouge1 without the head; difference to the whole model (negative: worse); low and high (95%);
        p (t-test); p_holm (of p, over all rows); p_signs (random signs); same (the share of documents with an equal summary).
    """
    whole, texts = _scores(model, documents, beam)
    copy = f"cross.{model.config.layers - 1}.0"
    changes = [(head, "context") for head in (model.heads if heads is None else heads)]
    rows = []
    for head, mode in progress([*changes, *((copy, mode) for mode in MODES[1:])], desc="without a head", unit="head"):
        values, summaries = _scores(model, documents, beam, head, mode)
        test = paired_test(values, whole)
        same = sum(a == b for a, b in zip(texts, summaries)) / len(texts)
        rows.append(
            {"head": head, "mode": mode, "rouge1": sum(values) / len(values), "difference": test.difference,
             "low": test.low, "high": test.high, "p": test.t_p, "p_signs": test.permutation_p, "same": same}
        )  # fmt: skip
    table = pd.DataFrame(rows)
    table.insert(7, "p_holm", holm(table["p"]))
    return table


def change_without(model: Summarizer, head: str, mode: str, batch: Batch) -> Change:
    """Return the change that takes a head away. Raises ValueError for an unknown mode or head."""
    block, _, number = head.rpartition(".")
    if head not in model.heads or mode not in MODES:
        raise ValueError(f"no head {head!r} or no mode {mode!r}: {', '.join(MODES)}")
    gate = model.say.weight.new_ones(model.config.heads)
    gate[int(number)] = 0.0
    gates = {block: gate} if mode != "copy" else None
    if mode == "context":
        return Change(gates=gates)
    if head != f"cross.{model.config.layers - 1}.0":
        raise ValueError(f"{head} does not copy; the copy head is cross.{model.config.layers - 1}.0")
    even = batch.mask[:, None].to(gate.dtype)
    return Change(gates=gates, copy=even / even.sum(-1, keepdim=True))


def _scores(
    model: Summarizer, documents: Sequence[Document], beam: Beam, head: str = "", mode: str = ""
) -> tuple[list[float], list[list[str]]]:
    values, texts = [], []
    for group in in_order(documents, SIZE):
        batch = model.collate(group)
        change = change_without(model, head, mode, batch) if head else UNCHANGED
        summaries = summarize(model, batch, beam, change)
        texts += summaries
        values += score(group, summaries)["rouge1"].tolist()
    return values, texts
