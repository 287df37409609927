"""The study: every variant of the summarizer with every seed, trained once; some pruned at several prices, beside a control;
each measured once, and resumed after a kill."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pandas as pd
import torch

from lalkit.companions.summarizers import documents as corpora
from lalkit.companions.summarizers.attention_heads import ablate_heads, head_table, tag_table
from lalkit.companions.summarizers.documents import Dataset, Document
from lalkit.companions.summarizers.headlines import GREEDY, Beam, score, summarize
from lalkit.companions.summarizers.pruning import Gated, PruneConfig, load_gated, prune
from lalkit.companions.summarizers.summarizer import Summarizer, SummarizerConfig, Vocabulary
from lalkit.companions.summarizers.summarizer_training import load_summarizer, train
from lalkit.errors import CorpusError, ModelError
from lalkit.evaluation.provenance import parts_hash
from lalkit.files import write_text
from lalkit.training.checkpoint import fingerprint

# Where attention is sparse, and how ([P] section 5; the last is ours).
VARIANTS = {
    "soft": {},
    "sparse-enc": {"sparse": "encoder"},
    "sparse-tl": {"sparse": "but-top"},
    "sparse-ch": {"sparse": "but-copy"},
    "sparse-all": {"sparse": "all"},
    "entmax-all": {"sparse": "all", "normaliser": "entmax15"},
}
PRICES = {"soft": (0.03, 0.1, 0.3, 1.0), "sparse-tl": (0.3,)}  # lambdas; each variant here has a control besides
ABLATED = ("soft", "sparse-tl")
ABLATED_PRICE = 0.3
GROUP = 100
CONTROL = "control"


@dataclass(frozen=True)
class Size:
    """How much of everything (0: all, the usual number): documents of each part, epochs of training and of pruning, test
    documents on which heads are taken away; documents of GUM (-1: none)."""

    train: int = 0
    dev: int = 0
    test: int = 0
    epochs: int = 0
    prune_epochs: int = 0
    ablated: int = 0
    gum: int = 0


@dataclass(frozen=True)
class Study:
    """Tables whose rows begin with variant, seed and price (a lambda, "control", or "": not pruned).

    folders: where each run is; scores: a row per test document; heads, tags: what heads look at, on the test part; ablation:
    heads taken away; gates: a row per head of a pruned model; cuts: how far cutting moves a probability, at most; gum: as heads,
    on GUM, with untrained (True: before any training). Empty where there is nothing.
    """

    folders: pd.DataFrame
    scores: pd.DataFrame
    heads: pd.DataFrame
    tags: pd.DataFrame
    ablation: pd.DataFrame
    gates: pd.DataFrame
    cuts: pd.DataFrame
    gum: pd.DataFrame


def study(
    data: str,
    variants: Sequence[str],
    seeds: Sequence[int],
    folder: str | Path,
    size: Size | None = None,
    say: Callable[[str], None] = print,
) -> Study:
    """Runs are in folder/DATA/VARIANT-SEED and VARIANT-SEED-PRICE; what is finished is read, not done again, as long as settings,
    documents and model are the same. Raises ModelError for an unknown variant, or a run there of other documents, CorpusError for
    data that are not here or lack tags."""
    size = size or Size()
    wrong = [name for name in variants if name not in VARIANTS]
    if wrong:
        raise ModelError(f"there is no variant {wrong[0]!r}", remedy=f"Variants: {', '.join(VARIANTS)}.")
    documents = shorten(corpora.load(data), size)
    if not all(d.tags and d.entities and d.summary for d in documents.test):  # before anything is trained
        raise CorpusError(
            "test documents with tags, entities and summaries are needed", where=data, remedy="Such as news."
        )
    real = _gum(size, say)
    found: dict[str, list[pd.DataFrame]] = {name: [] for name in Study.__dataclass_fields__}
    for seed in seeds:
        for variant in variants:
            run = Path(folder) / documents.name / f"{variant}-{seed}"
            config = replace(SummarizerConfig(), seed=seed, **VARIANTS[variant])
            train(replace(config, epochs=size.epochs or config.epochs), documents, run, resume=True, say=say)
            runs = [("", run)]
            for lam in (None, *PRICES[variant]) if variant in PRICES else ():
                name = CONTROL if lam is None else f"{lam:g}"
                runs.append((name, run.with_name(f"{run.name}-{name}")))
                chosen = PruneConfig(lam=lam, seed=seed)
                chosen = replace(chosen, epochs=size.prune_epochs or chosen.epochs)
                prune(load_summarizer(run), documents, runs[-1][1], chosen, resume=True, say=say)
            for price, place in runs:
                tables = measured(place, variant, price, documents, real, size, say)
                tables["folders"] = pd.DataFrame([{"folder": str(place)}])
                for name, table in tables.items():
                    table.insert(0, "variant", variant)
                    table.insert(1, "seed", seed)
                    table.insert(2, "price", price)
                    found[name].append(table)
    return Study(**{n: pd.concat(parts, ignore_index=True) if parts else pd.DataFrame() for n, parts in found.items()})


def shorten(data: Dataset, size: Size) -> Dataset:
    """The first documents of each part, under another name where anything is left out."""
    asked = {part: getattr(size, part) for part in ("train", "dev", "test")}
    parts = {part: getattr(data, part)[: count or None] for part, count in asked.items()}
    same = all(len(parts[part]) == len(getattr(data, part)) for part in parts)
    return data if same else Dataset("-".join([data.name, *(str(len(p)) for p in parts.values())]), **parts)


def measured(
    run: Path,
    variant: str,
    price: str,
    data: Dataset,
    real: Sequence[Document],
    size: Size,
    say: Callable[[str], None] = print,
) -> dict[str, pd.DataFrame]:
    """The tables of one run, kept in its folder under a name made of all that they depend on."""
    taken = variant in ABLATED and price in ("", f"{ABLATED_PRICE:g}")
    on_gum = variant == "soft" and not price and bool(real)
    names = ["scores", "heads", "tags"] + ["ablation"] * taken + ["gates", "cuts"] * bool(price) + ["gum"] * on_gum
    known = parts_hash([("test", data.test), ("gum", real if on_gum else ())])
    task = [fingerprint(run), asdict(size), known, names]
    key = hashlib.sha256(json.dumps(task).encode()).hexdigest()[:12]
    files = {name: run / f"{name}-{key}.csv" for name in names}
    if not all(file.exists() for file in files.values()):
        say(f"measuring {run.name}")
        gated = load_gated(run) if price else None
        model = gated.cut() if gated else load_summarizer(run)
        tables = {"heads": head_table(model, data.test), "tags": tag_table(model, data.test)}
        tables["scores"] = scores(model, data.test)
        if gated:
            tables |= {"gates": gated.table(), "cuts": pd.DataFrame([{"moved": cutting(gated, data.test)}])}
        if taken:
            kept = None if gated is None else tables["gates"].query("kept")["head"].tolist()
            some = data.test[: size.ablated or None]
            tables["ablation"] = ablate_heads(model, some, beam=greedy(some), heads=kept, say=say)
        if on_gum:
            tables["gum"] = null(model, real)
        for name, file in files.items():
            write_text(file, tables[name].to_csv(index=False))
    return {name: pd.read_csv(file) for name, file in files.items()}


def scores(model: Summarizer, documents: Sequence[Document]) -> pd.DataFrame:
    """`rouge.score` of greedy summaries."""
    groups = [documents[i : i + GROUP] for i in range(0, len(documents), GROUP)]
    beam = greedy(documents)
    said = [words for g in groups for words in summarize(model, model.vocabulary.collate(g, model.config), beam)]
    return score(documents, said, model.vocabulary)


def greedy(documents: Sequence[Document]) -> Beam:
    """Greedy; twice the longest true summary is where a summary without an end is cut off."""
    return replace(GREEDY, most=2 * max(len(d.summary) for d in documents))


@torch.inference_mode()
def cutting(gated: Gated, documents: Sequence[Document]) -> float:
    """The most that any probability moves when gates are replaced by cuts."""
    gated, cut, moved = gated.eval(), gated.cut(), 0.0
    for start in range(0, len(documents), GROUP):
        batch = cut.vocabulary.collate(documents[start : start + GROUP], cut.config)
        moved = max(moved, float((gated(batch).probs - cut(batch).probs).abs().max()))
    return moved


def null(model: Summarizer, documents: Sequence[Document]) -> pd.DataFrame:
    """`head_table` of the model, and of one with the same settings and random weights (untrained)."""
    torch.manual_seed(model.config.seed)
    fresh = Summarizer(model.config, Vocabulary(model.vocabulary.words)).eval()
    parts = [head_table(m, documents).assign(untrained=m is fresh) for m in (fresh, model)]
    return pd.concat(parts, ignore_index=True)


def _gum(size: Size, say: Callable[[str], None]) -> tuple[Document, ...]:
    if size.gum < 0:
        return ()
    try:
        documents = corpora.load("gum").test
    except CorpusError as error:
        say(f"without GUM: {error.problem} ({error.where})")
        return ()
    # Cut here to what the summarizers read, once and with one word on it.
    most = SummarizerConfig().source
    long = sum(len(d.words) > most for d in documents)
    say(f"GUM: {long} of {len(documents)} documents are longer than {most} tokens; {most} of them are read")
    return tuple(cut(d, most) for d in documents if d.summary)[: size.gum or None]


def cut(document: Document, most: int) -> Document:
    """The first so many words, with what is known of them."""
    tags, entities = (None if v is None else v[:most] for v in (document.tags, document.entities))
    return replace(document, words=document.words[:most], tags=tags, entities=entities)
