"""What each head of a summarizer attends to, and what is lost without it (Baan et al. 2019, section 4); and the whole study.

A head can attend to parts of speech, to names, to neighbours of its query, or to few words. Without one head, is the summary
worse, and by more than chance? A gate removes the context of a head. For the copy head, the gate alone does not change what is
copied. So we also let it copy from all words equally, and do both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from lalkit.chart.machine import progress
from lalkit.config import override
from lalkit.errors import CorpusError
from lalkit.evaluation.provenance import parts_hash
from lalkit.evaluation.statistics import holm, paired_test
from lalkit.probes import weights as measures
from lalkit.probes.perturbation import ask, overview
from lalkit.studies import frame
from lalkit.studies.frame import exact, in_order, pad
from lalkit.studies.summarizer_data import Document, Documents, annotated, load
from lalkit.studies.summarizers import (
    GROUP,
    SMALL,
    STOP,
    UNCHANGED,
    Batch,
    Change,
    Gated,
    PruneConfig,
    Summarizer,
    SummarizerConfig,
    Vocabulary,
    load_gated,
    load_summarizer,
    prune,
    train,
    views,
)  # fmt: skip

Tables = dict[str, pd.DataFrame]

SIZE = 50  # documents in a batch
PLACES = {"enc": {"before": -1, "after": 1}, "cross": {"before": -1, "at": 0, "after": 1}}
MODES = ("context", "copy", "both")
ROUGE = {"rouge1": "rouge1", "rouge2": "rouge2", "rougeL": "rougeLsum"}


# ---------------------------------------------------------------- summaries and their scores


def summaries(model: Summarizer, documents: Sequence[Document], most: int) -> list[list[str]]:
    """Return the words of every document's summary, at most `most`."""
    groups = in_order(documents, GROUP)
    return [words for group in groups for words in model.summarize(model.collate(group), most)]


def score(
    documents: Sequence[Document], written: Sequence[Sequence[str]], vocabulary: Vocabulary | None = None
) -> pd.DataFrame:
    """Return a row for each document: id, rouge1, rouge2, rougeL (F, from 0 to 1; 0 for an empty summary) and exact.

    With a vocabulary also: unknown, the number of words of the true summary that it lacks and the document has; and copied, how
    many of these words the summary has.
    """
    from rouge_score.rouge_scorer import RougeScorer

    scorer, rows = RougeScorer(list(ROUGE.values()), use_stemmer=True), []
    for document, words in zip(documents, written, strict=True):
        scores = scorer.score(" ".join(document.summary), " ".join(words))
        row = {"id": document.id, **{name: scores[kind].fmeasure for name, kind in ROUGE.items()}}
        row["exact"] = tuple(words) == document.summary
        if vocabulary:
            unknown = [w for w in document.summary if w not in vocabulary.index and w in document.words]
            row |= {"unknown": len(unknown), "copied": sum(w in words for w in unknown)}
        rows.append(row)
    return pd.DataFrame(rows)


# ---------------------------------------------------------------- what heads attend to


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
        raise CorpusError("documents with tags, entities and summaries are needed", remedy="Such as news.")
    model.eval()
    names = sorted({tag for d in documents for tag in d.tags})
    if own:
        written = summaries(model, documents, model.config.target)
        documents = [replace(d, summary=tuple(words)) for d, words in zip(documents, written)]
    parts = [_measure(model, group, names) for group in in_order(documents, SIZE)]
    groups = pd.concat([texts for texts, _ in parts], ignore_index=True).groupby("head", sort=False)
    heads = groups[["pos_kl", "ne_ratio", "ne_share"]].mean()
    counts = pd.concat([counts for _, counts in parts]).groupby(["head", "what"], sort=False).sum(min_count=1)
    shares = (counts["hits"] / counts["cells"]).unstack("what")
    heads = heads.join(shares.reindex(columns=["before", "at", "after", "sparsity"]))
    heads.insert(6, "position", heads[["before", "at", "after"]].max(axis=1))
    heads["documents"], heads["named"] = groups.size(), groups["ne_ratio"].count()
    heads["empty"] = heads["documents"] - groups["pos_kl"].count()
    return heads.reset_index()


def _measure(
    model: Summarizer, documents: Sequence[Document], names: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a row for each head and document; and counts over all queries: head, what, hits, and cells (their number)."""
    batch = model.collate(documents)
    tags = _tags(batch, documents, names)
    named = pad([d.entities for d in documents], batch.source.shape[1], -1, device=batch.source.device) == 1
    weights = model(batch).weights
    places = reference(batch, weights[model.copying][:, 0])
    share = named.sum(1) / batch.mask.sum(1)
    texts, counts = [], []
    for block in model.blocks:
        kind, w = block.split(".")[0], weights[block]
        queries = _queries(batch, block)
        pooled = measures.pool_queries(w, queries, batch.mask)
        every = torch.arange(w.shape[2], device=w.device).expand_as(w[:, 0, :, 0])
        own, offsets = every if kind == "enc" else places, tuple(PLACES[kind].values())
        kl, ratio = measures.pos_kl(pooled, tags, len(names)), measures.mass_ratio(pooled, named)
        near = measures.relative_position(w, own, batch.mask, queries, offsets)
        asked = [int(measures.places_near(own, offset, batch.mask, queries)[1].sum()) for offset in offsets]
        zeros, cells = measures.sparsity(w, batch.mask, queries), int((batch.mask[:, None] & queries[:, :, None]).sum())
        for h in range(w.shape[1]):
            head, columns = f"{block}.{h}", {"pos_kl": kl[:, h], "ne_ratio": ratio[:, h], "ne_share": share}
            table = pd.DataFrame({"head": head} | {name: value.cpu() for name, value in columns.items()})
            texts.append(table.assign(ne_share=table["ne_share"].where(table["ne_ratio"].notna())))
            shares = [*zip(PLACES[kind], near[h].tolist(), asked), ("sparsity", float(zeros[h]), cells)]
            counts += [(head, what, value * n if n else 0.0, n) for what, value, n in shares]
    return pd.concat(texts), pd.DataFrame(counts, columns=["head", "what", "hits", "cells"])


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
    """Return a row for each weight (figure 1): head, row and asks (the query), column and word (attended to), weight.

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
    model: Summarizer, documents: Sequence[Document], most: int, heads: Sequence[str] | None = None
) -> pd.DataFrame:
    """Return a row for each head without its context, and two more for the copy head (the modes copy and both).

    Args:
        most: The most words of a summary.
        heads: The heads to take away; None means all. A pruned model has only its kept ones.

    Returns: head; mode; the mean rouge1 without the head; difference to the complete model (negative: worse); low and high (95%);
        p (t-test); p_holm (of p, over all rows); p_signs (random signs); same (the share of documents with an equal summary).
    """
    complete, texts = _scores(model, documents, most)
    copying, rows = f"{model.copying}.0", []
    changes = [
        *((head, "context") for head in (model.heads if heads is None else heads)),
        (copying, "copy"),
        (copying, "both"),
    ]
    for head, mode in progress(changes, desc="without a head", unit="head"):
        values, written = _scores(model, documents, most, head, mode)
        test = paired_test(values, complete)
        same = sum(a == b for a, b in zip(texts, written)) / len(texts)
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
    if head not in model.heads or mode not in MODES or mode != "context" and head != f"{model.copying}.0":
        raise ValueError(f"no head {head!r}, or no mode {mode!r} of it: {', '.join(MODES)}")
    gate = model.say.weight.new_ones(model.config.heads)
    gate[int(number)] = 0.0
    even = batch.mask[:, None].to(gate.dtype)
    return Change(
        gates={block: gate} if mode != "copy" else None,
        copy=even / even.sum(-1, keepdim=True) if mode != "context" else None,
    )


def _scores(
    model: Summarizer, documents: Sequence[Document], most: int, head: str = "", mode: str = ""
) -> tuple[list[float], list[list[str]]]:
    values, texts = [], []
    for group in in_order(documents, SIZE):
        batch = model.collate(group)
        written = model.summarize(batch, most, change_without(model, head, mode, batch) if head else UNCHANGED)
        texts += written
        values += score(group, written)["rouge1"].tolist()
    return values, texts


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
PRICES = {"soft": (None, 0.03, 0.1, 0.3, 1.0), "sparse-tl": (None, 0.3)}  # lambdas; None: the control
ABLATED = tuple(product(PRICES, ("", "0.3")))  # (variant, price) of the runs whose heads are taken away
RUN = ["variant", "seed", "price"]
PROBED, ROUNDS = 16, 20  # documents whose attention is permuted and erased, and permutations (as in notebook 19)


def study(
    data: str,
    variants: Sequence[str],
    seeds: Sequence[int],
    folder: str | Path,
    *,
    train: int = 0,
    dev: int = 0,
    test: int = 0,
    prune_epochs: int = 0,
    ablated: int = 0,
    settings: dict[str, str] | None = None,
    config: SummarizerConfig = SMALL,
) -> Tables:
    """Train, prune and measure every variant with every seed. Runs are in FOLDER/DATA/VARIANT-SEED and VARIANT-SEED-PRICE.

    A finished run is read and not repeated, as long as its settings, documents and model are the same. Documents without tags or
    entities get them from `annotated`.

    Args:
        train, dev, test: Number of documents of each part; 0 means all.
        prune_epochs: Epochs of the pruning; 0 means the usual number.
        ablated: Number of test documents for taking heads away; 0 means all.
        settings: Settings of SummarizerConfig that replace those of `config`.

    Returns: tables whose first columns are variant, seed and price (a lambda, "control", or "": not pruned), without empty ones.
        runs: a row for each run (see `_run_row`); heads: a row for each head, its `head_table` with what is lost without it
        (difference, p_holm) and whether it is closed (cut); tags: `tag_table`; ablation: `ablate_heads`; documents: `score` of
        each test document; written: `head_table` while the model reads the true words and while it writes its own (own); probes:
        a row for each block of heads, with the outcome of permuted and erased attention.

    Raises: ModelError for an unknown variant or a run of other documents, and CorpusError for data that are not here or have no
        summaries.
    """
    documents = shortened(load(data), train, dev, test)
    if not documents.test or not all(d.summary for d in documents.test):  # checked before any training
        raise CorpusError("the test part has no summaries", where=data, remedy="E.g. news.")
    config = override(config, settings or {})
    documents = replace(documents, test=annotated(documents.test))
    tables: dict[str, list[pd.DataFrame]] = {}
    for seed, variant in frame.grid(variants, VARIANTS, seeds):
        run = trained(folder, documents, variant, seed, config)
        for price in ("", *PRICES.get(variant, ())):
            place, tag = run, ""
            if price != "":
                tag = "control" if price is None else f"{price:g}"
                place, usual = run.with_name(f"{run.name}-{tag}"), PruneConfig(lam=price, seed=seed)
                prune(
                    load_summarizer(run),
                    documents,
                    place,
                    replace(usual, epochs=prune_epochs or usual.epochs),
                    resume=True,
                )
            for name, table in _measured(place, variant, tag, documents.test, ablated).items():
                key = pd.DataFrame({"variant": variant, "seed": seed, "price": tag}, index=table.index)
                tables.setdefault(name, []).append(pd.concat([key, table], axis=1))
    return {name: pd.concat(parts, ignore_index=True) for name, parts in tables.items()}


def shortened(data: Documents, train: int = 0, dev: int = 0, test: int = 0) -> Documents:
    """Keep the first documents of each part. If that leaves any out, the data get another name."""
    parts = {name: getattr(data, name)[: n or None] for name, n in (("train", train), ("dev", dev), ("test", test))}
    same = all(len(parts[part]) == len(getattr(data, part)) for part in parts)
    return data if same else Documents("-".join([data.name, *(str(len(p)) for p in parts.values())]), **parts)


def trained(folder: str | Path, data: Documents, variant: str, seed: int, config: SummarizerConfig) -> Path:
    """Train a summarizer of the study, unless that is done already, and return its folder."""
    run = frame.run_folder(folder, data.name, variant, seed)
    train(replace(config, seed=seed, **VARIANTS[variant]), data, run, resume=True)
    return run


def _measured(run: Path, variant: str, price: str, test: Sequence[Document], ablated: int) -> Tables:
    """Return the tables of one run. They are kept in its folder."""
    removed, more = (variant, price) in ABLATED, variant in PRICES and not price
    names = ["runs", "heads", "tags", "documents"] + ["ablation"] * removed + ["written", "probes"] * more

    def measure() -> Tables:
        gated = load_gated(run) if price else None
        model = gated.cut() if gated else load_summarizer(run)
        most = 2 * max(len(d.summary) for d in test)  # a summary without an end is cut here
        tables = {
            "tags": tag_table(model, test),
            "documents": score(test, summaries(model, test, most), model.vocabulary),
        }
        heads, gates = (
            head_table(model, test),
            gated.table().set_index("head")["kept"] if gated else pd.Series(dtype=bool),
        )
        heads["cut"] = [not gates.get(head, True) for head in heads["head"]]
        if removed:
            found = ablate_heads(model, test[: ablated or None], most, heads["head"][~heads["cut"]].tolist())
            tables["ablation"] = found
            losses = found[found["mode"] == "context"].set_index("head")[["difference", "p_holm"]]
            heads = heads.join(losses.assign(difference=100 * losses["difference"]), on="head")
        if more:
            reads, writes = (head_table(model, test, own=own).assign(own=own) for own in (False, True))
            double = exact(model)
            batch = double.collate(test[: min(PROBED, ablated or PROBED)])
            probes = [ask(seen, ROUNDS, system=block) for block, seen in views(double, batch)]
            tables |= {"written": pd.concat([reads, writes], ignore_index=True), "probes": overview(pd.concat(probes))}
        row = _run_row(tables["documents"], heads) | ({"moved": cutting(gated, test)} if gated else {})
        return tables | {"runs": pd.DataFrame([row]), "heads": heads}

    return frame.kept_tables(run, names, [ablated, parts_hash([("test", test)]), names], measure)


def _run_row(documents: pd.DataFrame, heads: pd.DataFrame) -> dict[str, float]:
    """Return the numbers of a run.

    rouge1, rouge2, rougeL, exact, and copied (of the unknown words of true summaries) are in percent. zeros_enc, zeros_dec:
    percent of weights that are exactly zero; significant_enc, significant_dec: number of heads whose loss is significant after
    Holm; pruned_enc, pruned_dec, kept: numbers of heads.
    """
    row = {name: 100 * documents[name].mean() for name in (*ROUGE, "exact")}
    row["copied"] = 100 * documents["copied"].sum() / max(1, documents["unknown"].sum())
    for side, rows in heads.groupby(heads["head"].str.startswith("enc").map({True: "enc", False: "dec"}), sort=False):
        row[f"zeros_{side}"] = 100 * rows["sparsity"].mean()
        if "p_holm" in rows:
            row[f"significant_{side}"] = int(((rows["p_holm"] < 0.05) & (rows["difference"] < 0)).sum())
        row[f"pruned_{side}"] = int(rows["cut"].sum())
    return row | {"kept": int((~heads["cut"]).sum())}


@torch.inference_mode()
def cutting(gated: Gated, documents: Sequence[Document]) -> float:
    """Return the most by which any probability moves if closed heads are cut out instead of gated."""
    gated, cut, moved = gated.eval(), gated.cut(), 0.0
    for group in in_order(documents, GROUP):
        batch = cut.collate(group)
        moved = max(moved, float((gated(batch).probs - cut(batch).probs).abs().max()))
    return moved
