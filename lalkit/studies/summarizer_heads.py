"""Measure where each head of a summarizer attends, and the loss without it (Baan et al. 2019, section 4); and the whole study.

A head can attend to parts of speech, to names, to neighbours of its query, or to few words. Without one head (its context is
set to zero), is the summary significantly worse? For the copy head, a zero context does not change which words are copied. So
there are two more modes: it copies from all words equally (copy), or both.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import product, repeat
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from lalkit.chart.machine import progress
from lalkit.config import override
from lalkit.evaluation.provenance import parts_hash
from lalkit.evaluation.statistics import holm, paired_test
from lalkit.network.batches import pad
from lalkit.network.encoder import Change
from lalkit.probes import weights as measures
from lalkit.studies import frame, summarizers
from lalkit.studies.frame import in_order
from lalkit.studies.summarizers import Batch, Summarizer, SummarizerConfig, Vocabulary
from lalkit.studies.texts import Text, Texts, news

Tables = dict[str, pd.DataFrame]

SIZE = 50  # documents in a batch
PLACES = {"enc": {"before": -1, "after": 1}, "cross": {"before": -1, "at": 0, "after": 1}}
ROUGE = {"rouge1": "rouge1", "rouge2": "rouge2", "rougeL": "rougeLsum"}


# ---------------------------------------------------------------- summaries and their scores


def score(documents: Sequence[Text], written: Sequence[Sequence[str]], vocabulary: Vocabulary) -> pd.DataFrame:
    """Return a row for each document: id, rouge1, rouge2, rougeL (F, from 0 to 1; 0 for an empty summary), exact, and counts.

    unknown: the number of words of the true summary that the vocabulary lacks and the document has; copied: how many of these
    words the summary has.
    """
    from rouge_score.rouge_scorer import RougeScorer

    scorer, rows = RougeScorer(list(ROUGE.values()), use_stemmer=True), []
    for document, words in zip(documents, written, strict=True):
        scores = scorer.score(" ".join(document.summary), " ".join(words))
        unknown = [w for w in document.summary if w not in vocabulary.index and w in document.words]
        row = {"id": document.id, **{name: scores[kind].fmeasure for name, kind in ROUGE.items()}}
        row |= {"exact": tuple(words) == document.summary, "unknown": len(unknown)}
        rows.append(row | {"copied": sum(w in words for w in unknown)})
    return pd.DataFrame(rows)


# ---------------------------------------------------------------- what heads attend to


@torch.inference_mode()
def head_tables(model: Summarizer, documents: Sequence[Text]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a row for each head, while the model reads the true summary; and a row for each head and tag.

    The second table has the share of the tag in the head's attention, and in the tokens, over all documents. The first has:

    pos_kl, ne_ratio: means over documents (ne_ratio: over documents with names); ne_share: the share of names among the tokens,
    which even attention would give; before, at, after: the shares of queries that attend most to the word before, at or after
    their own place (no `at` in the encoder); position: the largest of these; sparsity; documents; named: documents with names;
    empty: documents in which the head attends to nothing that counts.

    A query of the encoder is a word of the document. A query of the decoder is a word of the summary. Its own place is where
    that word is in the document: of several places, the one to which the copy head attends most. A query without a place is left
    out [D].
    """
    model.eval()
    texts, counts, tags = map(pd.concat, zip(*(_measure(model, group) for group in in_order(documents, SIZE))))
    groups, sums = texts.groupby("head", sort=False), tags.groupby(["head", "tag"]).sum()
    heads = groups[["pos_kl", "ne_ratio", "ne_share"]].mean()
    counts = counts.groupby(["head", "what"], sort=False).sum(min_count=1)
    shares = (counts["hits"] / counts["cells"]).unstack("what")
    heads = heads.join(shares.reindex(columns=["before", "at", "after", "sparsity"]))
    heads.insert(6, "position", heads[["before", "at", "after"]].max(axis=1))
    heads["documents"], heads["named"] = groups.size(), groups["ne_ratio"].count()
    heads["empty"] = heads["documents"] - groups["pos_kl"].count()
    return heads.reset_index(), (sums / sums.groupby("head").transform("sum")).reset_index()


def _measure(model: Summarizer, documents: Sequence[Text]) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return a row for each head and document; counts over all queries: head, what, hits, cells; a row for each head and tag."""
    batch = model.collate(documents)
    tags, names = _tags(batch, documents)
    named = pad([d.entities for d in documents], batch.source.shape[1], -1, device=batch.source.device) == 1
    weights = model(batch).weights
    places = reference(batch, weights[model.copying][:, 0])
    share = named.sum(1) / batch.mask.sum(1)
    texts, counts, rows, tokens = [], [], [], torch.bincount(tags[tags >= 0], minlength=len(names)).tolist()
    for block in model.blocks:
        kind, w = block.split(".")[0], weights[block]
        queries = batch.mask if kind == "enc" else batch.words  # [B, Q], of the document, or of its summary
        pooled = measures.pool_queries(w, queries, batch.mask)
        every = torch.arange(w.shape[2], device=w.device).expand_as(w[:, 0, :, 0])
        mass = measures.tag_histogram(pooled.nan_to_num(), tags, len(names)).sum(0).tolist()
        own, offsets = every if kind == "enc" else places, tuple(PLACES[kind].values())
        kl, ratio = measures.pos_kl(pooled, tags, len(names)), measures.mass_ratio(pooled, named)
        near = measures.relative_position(w, own, batch.mask, queries, offsets)
        asked = [int(measures.places_near(own, offset, batch.mask, queries)[1].sum()) for offset in offsets]
        zeros, cells = measures.sparsity(w, batch.mask, queries), int((batch.mask[:, None] & queries[:, :, None]).sum())
        for h in range(w.shape[1]):
            head, columns = f"{block}.{h}", {"pos_kl": kl[:, h], "ne_ratio": ratio[:, h], "ne_share": share}
            rows += zip(repeat(head), names, mass[h], tokens)
            table = pd.DataFrame({"head": head} | {name: value.cpu() for name, value in columns.items()})
            texts.append(table.assign(ne_share=table["ne_share"].where(table["ne_ratio"].notna())))
            shares = [*zip(PLACES[kind], near[h].tolist(), asked), ("sparsity", float(zeros[h]), cells)]
            counts += [(head, what, value * n if n else 0.0, n) for what, value, n in shares]
    counted = pd.DataFrame(counts, columns=["head", "what", "hits", "cells"])
    return pd.concat(texts), counted, pd.DataFrame(rows, columns=["head", "tag", "share", "tokens"])


@torch.inference_mode()
def attention_of(model: Summarizer, document: Text, heads: Sequence[str]) -> pd.DataFrame:
    """Return a row for each weight (figure 1): head, row and asks (the query), column and word (attended to), weight.

    A query of the decoder is named by the word of the true summary that it writes.
    """
    summary = [*document.summary, "(end)"]
    weights, tables = model.eval()(model.collate([document])).weights, []
    for head in heads:
        block, _, number = head.rpartition(".")
        queries = document.words if block.startswith("enc") else summary
        cells = product(enumerate(queries), enumerate(document.words))
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


def _tags(batch: Batch, documents: Sequence[Text]) -> tuple[Tensor, list[str]]:
    """Return the numbers of the tags [B, T], -1 on padding; and the names of the tags."""
    names = sorted({tag for d in documents for tag in d.tags})
    rows = [[names.index(tag) for tag in d.tags] for d in documents]
    return pad(rows, batch.source.shape[1], -1, device=batch.source.device), names


# ---------------------------------------------------------------- heads taken away


def ablate_heads(model: Summarizer, documents: Sequence[Text], most: int) -> pd.DataFrame:
    """Return a row for each head without its context, and two more for the copy head (the modes copy and both).

    most: The most words of a summary.

    Returns: head; mode; the mean rouge1 without the head; difference to the complete model (negative: worse); low and high (95%);
        p (t-test); p_holm (of p, over all rows); same (the share of documents with an equal summary).
    """
    complete, copying = summaries(model, documents, most), f"{model.copying}.0"
    rouge, rows = score(documents, complete, model.vocabulary)["rouge1"], []
    modes = [*((head, "context") for head in model.heads), (copying, "copy"), (copying, "both")]
    for head, mode in progress(modes, desc="without a head", unit="head"):
        written = summaries(model, documents, most, head, mode)
        values = score(documents, written, model.vocabulary)["rouge1"]
        test = paired_test(values.tolist(), rouge.tolist())
        rows.append(
            {"head": head, "mode": mode, "rouge1": values.mean(), "difference": test.difference, "low": test.low,
             "high": test.high, "p": test.p, "same": sum(a == b for a, b in zip(complete, written)) / len(written)}
        )  # fmt: skip
    table = pd.DataFrame(rows)
    table.insert(7, "p_holm", holm(table["p"]))
    return table


def summaries(
    model: Summarizer, documents: Sequence[Text], most: int, without: str = "", mode: str = "context"
) -> list[list[str]]:
    """Return the words of every document's summary, at most `most`. without: the head that is taken away, if any."""
    written: list[list[str]] = []
    for group in in_order(documents, summarizers.GROUP):
        batch = model.collate(group)
        with change_without(model, without, mode, batch) if without else nullcontext():
            written += model.summarize(batch, most)
    return written


def change_without(model: Summarizer, head: str, mode: str, batch: Batch) -> Change:
    """Return the change that takes a head away.

    mode: context (it is zero), copy (the head copies from all words equally), or both; the last two are for the copy head.
    """
    block, _, number = head.rpartition(".")
    gate = model.say.weight.new_ones(model.config.heads, 1, 1)
    gate[int(number)] = 0.0
    even = batch.mask[:, None].to(gate.dtype)
    even = even / even.sum(-1, keepdim=True)
    context = model.attention(block), {"contexts": lambda contexts: contexts * gate}
    copy = model, {"copied": lambda attention: even.expand_as(attention)}
    return Change({"context": [context], "copy": [copy], "both": [context, copy]}[mode])  # type: ignore[arg-type]


# ---------------------------------------------------------------- the study

# Where attention is sparse, and how ([P] section 5; the last is ours).
VARIANTS: dict[str, dict[str, Any]] = {
    "soft": {},
    "sparse-enc": {"sparse": "encoder"},
    "sparse-tl": {"sparse": "but-top"},
    "sparse-ch": {"sparse": "but-copy"},
    "sparse-all": {"sparse": "all"},
    "entmax-all": {"sparse": "all", "normaliser": "entmax15"},
}
ABLATED = ("soft", "sparse-tl")  # the variants whose heads are taken away


def study(
    variants: Sequence[str], seeds: Sequence[int], folder: str | Path, *, train: int = 0, dev: int = 0, test: int = 0,
    ablated: int = 0, example: int = 0, settings: dict[str, str] | None = None,
) -> Tables:  # fmt: skip
    """Train and measure every variant with every seed on made-up news. Runs are in FOLDER/DATA/VARIANT-SEED.

    A finished run is read and not repeated, as long as its settings, documents and model are the same.

    Args:
        variants: Of `VARIANTS`.
        train, dev, test: Number of documents of each part; 0 means all.
        ablated: Number of test documents for taking heads away; 0 means all.
        example: Number of the test document whose attention is returned.
        settings: Settings of SummarizerConfig that replace the usual ones, e.g. {"layers": "4"} as in the paper.

    Returns: the tables of notebook 17, whose first columns are variant and seed. runs: a row for each run (see `_run_row`);
        heads, tags: `head_tables`, the first with the loss without each head (difference, p_holm);
        ablation: `ablate_heads`; attention: `attention_of` three heads of the first run.

    Raises: ModelError for an unknown variant or a run of other documents.
    """
    documents = news().shortened(train, dev, test)
    config = override(SummarizerConfig(), settings or {})
    tables: dict[str, list[pd.DataFrame]] = {}
    for seed, variant in frame.grid(variants, VARIANTS, seeds):
        run, removed = trained(folder, documents, variant, seed, config), ablated if variant in ABLATED else None
        task = [removed, parts_hash([("test", documents.test)])]
        for name, table in frame.kept_tables(run, task, partial(_measured, run, documents.test, removed)).items():
            key = pd.DataFrame({"variant": variant, "seed": seed}, index=table.index)
            tables.setdefault(name, []).append(pd.concat([key, table], axis=1))
        if "attention" not in tables:
            # The head that attends most to neighbours, that with the highest POS-KL, and the copy head.
            heads, model = tables["heads"][0].set_index("head"), Summarizer.load(run)
            encoder = heads[heads.index.str.startswith("enc")]
            chosen = dict.fromkeys([encoder["position"].idxmax(), encoder["pos_kl"].idxmax(), f"{model.copying}.0"])
            tables["attention"] = [attention_of(model, documents.test[example], [*chosen])]
    return {name: pd.concat(parts, ignore_index=True) for name, parts in tables.items()}


def trained(folder: str | Path, data: Texts, variant: str, seed: int, config: SummarizerConfig) -> Path:
    """Train a summarizer of the study, unless that is done already, and return its folder."""
    run = Path(folder, data.name, f"{variant}-{seed}")
    frame.train(Summarizer, replace(config, seed=seed, **VARIANTS[variant]), data, run)
    return run


def _measured(run: Path, test: Sequence[Text], ablated: int | None) -> Tables:
    """Return the tables of one run. ablated: the number of documents for `ablate_heads` (0: all); None: no ablation."""
    # A summary without an end is cut at `most` words.
    model, most = Summarizer.load(run), 2 * max(len(d.summary) for d in test)
    written = score(test, summaries(model, test, most), model.vocabulary)
    heads, tags = head_tables(model, test)
    tables = {"tags": tags}
    if ablated is not None:
        found = tables["ablation"] = ablate_heads(model, test[: ablated or None], most)
        losses = found[found["mode"] == "context"].set_index("head")[["difference", "p_holm"]]
        heads = heads.join(losses.assign(difference=100 * losses["difference"]), on="head")
    return {"runs": pd.DataFrame([_run_row(written, heads)]), "heads": heads} | tables


def _run_row(documents: pd.DataFrame, heads: pd.DataFrame) -> dict[str, float]:
    """Return the numbers of a run.

    rouge1, rouge2, rougeL, exact, and copied (of the unknown words of true summaries) are in percent. zeros_enc, zeros_dec:
    percent of weights that are exactly zero; significant_enc, significant_dec: number of heads whose loss is significant after
    Holm.
    """
    row = {name: 100 * documents[name].mean() for name in (*ROUGE, "exact")}
    row["copied"] = 100 * documents["copied"].sum() / max(1, documents["unknown"].sum())
    for side, rows in (("enc", heads[: len(heads) // 2]), ("dec", heads[len(heads) // 2 :])):
        row[f"zeros_{side}"] = 100 * rows["sparsity"].mean()
        if "p_holm" in rows:
            row[f"significant_{side}"] = int(((rows["p_holm"] < 0.05) & (rows["difference"] < 0)).sum())
    return row
