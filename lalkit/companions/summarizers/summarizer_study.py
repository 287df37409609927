"""The study of summarizers: every variant with every seed is trained once, some are pruned, and each run is measured once.

The tables have the form of Baan et al. (2019), tables 1 to 4. The last one has what was expected of each seed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from lalkit.companions.frame import grid, in_order, judge, kept_tables, run_folder
from lalkit.companions.summarizers.attention_heads import ablate_heads, attention_of, head_table, tag_table
from lalkit.companions.summarizers.documents import NOTE, Dataset, Document, annotated, load
from lalkit.companions.summarizers.headlines import GREEDY, Beam, score, summarize_all
from lalkit.companions.summarizers.pruning import Gated, PruneConfig, load_gated, prune
from lalkit.companions.summarizers.summarizer import SMALL, Summarizer, SummarizerConfig, Vocabulary, exact, views
from lalkit.companions.summarizers.summarizer_training import load_summarizer, train
from lalkit.errors import CorpusError
from lalkit.evaluation.provenance import parts_hash
from lalkit.probes.perturbation import ask, overview

logger = logging.getLogger(__name__)
Tables = dict[str, pd.DataFrame]

# Where attention is sparse, and how ([P] section 5; the last is ours).
VARIANTS: dict[str, dict[str, Any]] = {
    "soft": {},
    "sparse-enc": {"sparse": "encoder"},
    "sparse-tl": {"sparse": "but-top"},
    "sparse-ch": {"sparse": "but-copy"},
    "sparse-all": {"sparse": "all"},
    "entmax-all": {"sparse": "all", "normaliser": "entmax15"},
}
PRICES = {"soft": (0.03, 0.1, 0.3, 1.0), "sparse-tl": (0.3,)}  # lambdas; each of these variants also has a control
ABLATED = ("soft", "sparse-tl")
ABLATED_PRICE = 0.3
CONTROL = "control"
GROUP = 100  # documents in a batch
PROBED, ROUNDS = 16, 20  # documents whose attention is permuted and erased, and permutations (as in notebook 19)


@dataclass(frozen=True)
class Size:
    """How large a study is. 0 means all, or the usual number.

    train, dev, test: documents of each part; epochs, prune_epochs: of training and pruning; ablated: test documents for taking
    heads away; gum: documents of GUM (-1: none).
    """

    train: int = 0
    dev: int = 0
    test: int = 0
    epochs: int = 0
    prune_epochs: int = 0
    ablated: int = 0
    gum: int = 0


ALL = Size()


@dataclass(frozen=True)
class Study:
    """Tables whose first columns are variant, seed and price (a lambda, "control", or "": not pruned). A table may be empty.

    folders: the folder of each run, and a note on its tags;
    scores: a row for each test document; heads, tags: what heads attend to in the test part;
    ablation: heads taken away; gates: a row for each head of a pruned model; cuts: the most by which cutting moves a probability;
    gum: as heads, on GUM, with the column untrained (True: before any training). Of the runs in ABLATED that are not pruned:
    written: as heads, on the test part and on GUM (the column text), with the column own (True: while the model writes its own
    words); probes: a row for each block of heads, what permuting and erasing its attention changes.
    """

    folders: pd.DataFrame
    scores: pd.DataFrame
    heads: pd.DataFrame
    tags: pd.DataFrame
    ablation: pd.DataFrame
    gates: pd.DataFrame
    cuts: pd.DataFrame
    gum: pd.DataFrame
    written: pd.DataFrame
    probes: pd.DataFrame


def study(
    data: str, variants: Sequence[str], seeds: Sequence[int], folder: str | Path, size: Size = ALL, config=SMALL
) -> Study:
    """Train, prune and measure every variant with every seed. Runs are in FOLDER/DATA/VARIANT-SEED and VARIANT-SEED-PRICE.

    A finished run is read and not repeated, as long as its settings, documents and model are the same. Raises ModelError for an
    unknown variant or a run of other documents, and CorpusError for data that are not here or have no summaries. Documents
    without tags or entities get them from `annotated`. config: the settings of all summarizers; each run replaces the
    variant and the seed.
    """
    config = replace(config, epochs=size.epochs or config.epochs)
    documents = shorten(load(data), size)
    if not documents.test or not all(d.summary for d in documents.test):  # checked before any training
        raise CorpusError("the test part has no summaries", where=data, remedy="E.g. news.")
    note = "" if all(d.tags and d.entities for d in documents.test) else NOTE
    documents, real = replace(documents, test=annotated(documents.test)), _gum(size, config.source)
    tables: dict[str, list] = {field.name: [] for field in fields(Study)}
    for seed, variant in grid("variant", variants, VARIANTS, seeds):
        run = trained(folder, documents, variant, seed, config)
        for price, place in {"": run, **_pruned(run, documents, variant, seed, size.prune_epochs)}.items():
            of_run = measured(place, variant, price, documents, real, size)
            of_run["folders"] = pd.DataFrame([{"folder": str(place), "note": note}])
            for name, table in of_run.items():
                key = pd.DataFrame({"variant": variant, "seed": seed, "price": price}, index=table.index)
                tables[name].append(pd.concat([key, table], axis=1))
    return Study(**{n: pd.concat(parts, ignore_index=True) if parts else pd.DataFrame() for n, parts in tables.items()})


def shorten(data: Dataset, size: Size) -> Dataset:
    """Keep the first documents of each part. If that leaves any out, the data get another name."""
    counts = {part: getattr(size, part) for part in ("train", "dev", "test")}
    parts = {part: getattr(data, part)[: count or None] for part, count in counts.items()}
    same = all(len(parts[part]) == len(getattr(data, part)) for part in parts)
    return data if same else Dataset("-".join([data.name, *(str(len(p)) for p in parts.values())]), **parts)


def trained(folder: str | Path, data: Dataset, variant: str, seed: int, config: SummarizerConfig) -> Path:
    """Train a summarizer of the study, unless that is done already, and return its folder."""
    run = run_folder(folder, data.name, variant, seed)
    train(replace(config, seed=seed, **VARIANTS[variant]), data, run, resume=True)
    return run


def _pruned(run: Path, data: Dataset, variant: str, seed: int, epochs: int) -> dict[str, Path]:
    """Prune a trained summarizer at every price of its variant, and train its control. Return the folders by price."""
    folders = {}
    for lam in (None, *PRICES[variant]) if variant in PRICES else ():
        price = CONTROL if lam is None else f"{lam:g}"
        folders[price] = run.with_name(f"{run.name}-{price}")
        config = PruneConfig(lam=lam, seed=seed)
        prune(load_summarizer(run), data, folders[price], replace(config, epochs=epochs or config.epochs), resume=True)
    return folders


def measured(run: Path, variant: str, price: str, data: Dataset, real: Sequence[Document], size: Size) -> Tables:
    """Return the tables of one run. They are kept in its folder. real: documents of GUM."""
    ablated = variant in ABLATED and price in ("", f"{ABLATED_PRICE:g}")
    on_real = variant == "soft" and not price and bool(real)
    names = ["scores", "heads", "tags"] + ["ablation"] * ablated + ["gates", "cuts"] * bool(price) + ["gum"] * on_real

    def measure() -> Tables:
        gated = load_gated(run) if price else None
        model = gated.cut() if gated else load_summarizer(run)
        summaries = summarize_all(model, data.test, greedy(data.test), GROUP)
        tables = {"heads": head_table(model, data.test), "tags": tag_table(model, data.test)}
        tables["scores"] = score(data.test, summaries, model.vocabulary)
        if gated:
            tables |= {"gates": gated.table(), "cuts": pd.DataFrame([{"moved": cutting(gated, data.test)}])}
        if ablated:
            kept = tables["gates"].query("kept")["head"].tolist() if gated else None
            documents = data.test[: size.ablated or None]
            tables["ablation"] = ablate_heads(model, documents, beam=greedy(documents), heads=kept)
        if on_real:
            tables["gum"] = null(model, real)
        return tables

    known = parts_hash([("test", data.test), ("gum", real if on_real else ())])
    tables = kept_tables(run, names, [asdict(size), known, names], measure)
    if variant in ABLATED and not price:
        texts, more = {"test": data.test, "GUM": real}, ["written", "probes"]
        given = parts_hash(list(texts.items()))
        tables |= kept_tables(run, more, [asdict(size), given, more], lambda: asked(load_summarizer(run), texts, size))
    return tables


def asked(model: Summarizer, texts: dict[str, Sequence[Document]], size: Size) -> Tables:
    """Return the tables written and probes of a summarizer (see `Study`). The first of the texts is probed."""
    cases = [(text, own) for text in texts if texts[text] for own in (False, True)]
    parts = [head_table(model, texts[text], own=own).assign(text=text, own=own) for text, own in cases]
    model = exact(model)
    batch = model.collate(next(iter(texts.values()))[: min(PROBED, size.ablated or PROBED)])
    probes = [ask(seen, ROUNDS, system=block) for block, seen in views(model, batch)]
    return {"written": pd.concat(parts), "probes": overview(pd.concat(probes))}


def greedy(documents: Sequence[Document]) -> Beam:
    """Return a greedy search. A summary without an end is cut at twice the length of the longest true summary."""
    return replace(GREEDY, most=2 * max(len(d.summary) for d in documents))


@torch.inference_mode()
def cutting(gated: Gated, documents: Sequence[Document]) -> float:
    """Return the most by which any probability moves if closed heads are cut out instead of gated."""
    gated, cut, moved = gated.eval(), gated.cut(), 0.0
    for group in in_order(documents, GROUP):
        batch = cut.collate(group)
        moved = max(moved, float((gated(batch).probs - cut(batch).probs).abs().max()))
    return moved


def null(model: Summarizer, documents: Sequence[Document]) -> pd.DataFrame:
    """Return `head_table` of the model, and of a model with the same settings and random weights (the column untrained)."""
    torch.manual_seed(model.config.seed)
    with model.say.weight.device:
        fresh = Summarizer(model.config, Vocabulary(model.vocabulary.words)).eval()
    parts = [head_table(m, documents).assign(untrained=m is fresh) for m in (fresh, model)]
    return pd.concat(parts, ignore_index=True)


def _gum(size: Size, most: int) -> tuple[Document, ...]:
    """Return the documents of GUM, cut to the length that the summarizers read."""
    if size.gum < 0:
        return ()
    try:
        documents = load("gum").test
    except CorpusError as error:
        logger.info("without GUM: %s (%s)", error.problem, error.where)
        return ()
    return tuple(cut(d, most) for d in documents if d.summary)[: size.gum or None]


def cut(document: Document, most: int) -> Document:
    """Keep the first `most` words of a document, with their tags and entity flags."""
    known = {name: value for name in ("words", "tags", "entities") if (value := getattr(document, name))}
    return replace(document, **{name: value[:most] for name, value in known.items()})


# ---------------------------------------------------------------- tables

RUN = ["variant", "seed", "price"]
ROUGE = ("rouge1", "rouge2", "rougeL")
LEVEL = 0.05  # of Holm's p
PRICE = f"{ABLATED_PRICE:g}"
SIDES = {"enc": "enc", "dec": "cross"}  # the side in a column's name: the first part of its heads' names
# The tables of heads, by name: variant and price. A name with -tags has the attention on parts of speech of the first seed.
GRIDS = {"heads": ("soft", ""), "pruned": ("soft", PRICE)}
GRIDS |= {"sparse": ("sparse-tl", ""), "sparse-pruned": ("sparse-tl", PRICE)}
# The lines that small runs must reach: variant, what, is (">=" or "<="), and wanted.
BOUNDS = json.loads(Path(__file__).with_name("summarizer_bounds.json").read_text(encoding="utf-8"))


def tables(study: Study, document: Document) -> Tables:
    """Return the tables of notebook 18 by their names, without those of variants that were not run.

    document: The one on which the attention of the first soft summarizer is shown (figure 1).
    """
    table = runs(study)
    shown = {"runs": table, "seeds-apart": seeds_apart(study), "copy-head": copy_head(study), "prices": prices(table)}
    shown |= {"gum": on_gum(study), "expected": expected(study), "probes": study.probes, "written": written(study)}
    note = study.folders["note"].iloc[0]
    for name, kind in GRIDS.items():
        keys = [key for key in table[RUN].itertuples(index=False, name=None) if key[::2] == kind]
        grids = {", ".join(filter(None, (*kind, f"seed {key[1]}{note}"))): lost(study, *key) for key in keys}
        if not grids:
            continue
        shown[name] = pd.concat(grids, names=["panel"]).reset_index("panel")
        if not kind[1]:
            variant, seed, _ = keys[0]
            tags = {f"{variant}, {s}, seed {seed}{note}": sharpest(study, variant, seed, s) for s in SIDES.values()}
            shown[f"{name}-tags"] = pd.concat(tags, names=["panel"]).reset_index("panel")
        if name == "heads":
            model = load_summarizer(_of(study.folders, keys[0])["folder"].iloc[0])
            shown["attention"] = attention_of(model, document, examples(next(iter(grids.values()))))
    return {name: table for name, table in shown.items() if len(table)}


def runs(study: Study) -> pd.DataFrame:
    """Return a row for each run, with nan for what was not measured.

    rouge1, rouge2, rougeL, exact, and copied (of the unknown words of true summaries) are in percent. zeros_enc, zeros_dec:
    percent of weights that are exactly zero; significant_enc, significant_dec: number of heads whose loss is significant after
    Holm; pruned_enc, pruned_dec, kept: numbers of heads.
    """
    rows = []
    for key, table in study.scores.groupby(RUN, sort=False):
        row = dict(zip(RUN, key)) | {name: 100 * table[name].mean() for name in (*ROUGE, "exact")}
        row["copied"] = 100 * table["copied"].sum() / max(1, table["unknown"].sum())
        row |= _by_side("zeros", _of(study.heads, key), lambda heads: 100 * heads["sparsity"].mean())
        row |= _by_side("significant", _of(study.ablation, key), _significant)
        gates = _of(study.gates, key)
        row |= _by_side("pruned", gates, lambda heads: int((~heads["kept"].astype(bool)).sum()))
        rows.append(row | {"kept": int(gates["kept"].astype(bool).sum()) if len(gates) else float("nan")})
    return pd.DataFrame(rows)


def _of(table: pd.DataFrame, key: tuple) -> pd.DataFrame:
    """Return the rows of one run. key: variant, seed, price."""
    if not len(table):
        return table
    variant, seed, price = key
    return table[(table["variant"] == variant) & (table["seed"] == seed) & (table["price"] == price)]


def _by_side(name: str, heads: pd.DataFrame, number: Callable[[pd.DataFrame], float]) -> dict[str, float]:
    """Return a number for the encoder's heads and one for the decoder's, or nan for both if there are no rows."""
    if not len(heads):
        return {f"{name}_{side}": float("nan") for side in SIDES}
    kinds = heads["head"].str.split(".").str[0]
    return {f"{name}_{side}": number(heads[kinds == kind]) for side, kind in SIDES.items()}


def _significant(heads: pd.DataFrame) -> int:
    return int(((heads["mode"] == "context") & (heads["p_holm"] < LEVEL) & (heads["difference"] < 0)).sum())


def seeds_apart(study: Study) -> pd.DataFrame:
    """Return variant, first, second and points: how far rouge1 of two seeds is apart, as a mean over documents."""
    rows = []
    plain = study.scores[study.scores["price"] == ""]
    for variant, table in plain.groupby("variant", sort=False):
        wide = table.set_index([table.groupby("seed").cumcount(), "seed"])["rouge1"].unstack()  # ids can repeat
        rows += [(variant, a, b, 100 * (wide[a] - wide[b]).abs().mean()) for a, b in combinations(wide.columns, 2)]
    return pd.DataFrame(rows, columns=["variant", "first", "second", "points"])


def beside(table: pd.DataFrame, published: pd.DataFrame, number: int) -> pd.DataFrame:
    """Put our runs and the paper's under the same columns. The column whose tells which is which.

    table: from `runs`; number: of the paper's table: 1 soft, 2 soft and pruned, 3 sparse, 4 sparse and pruned.
    """
    table = table.fillna({"price": ""})
    pruned, sparse = table["price"] != "", table["variant"] != "soft"
    ours = table[(pruned == (number in (2, 4))) & (sparse == (number in (3, 4)))]
    names = ours["variant"] + ours["price"].map(lambda p: "" if not p else ", no gates" if p == CONTROL else f", {p}")
    ours = ours.rename(columns={"pruned_enc": "pruned_encoder", "pruned_dec": "pruned_decoder"})
    ours = ours.assign(whose="ours, made-up news", model=names, seed=ours["seed"].astype(str))
    theirs = published[published["table"] == number].assign(whose="NOT OURS: the paper, CNN/DailyMail")
    columns = ["whose", "model", "seed", "pruned_encoder", "pruned_decoder", *ROUGE, "exact", "copied"]
    columns += ["zeros_enc", "zeros_dec", "significant_enc", "significant_dec"]
    return pd.concat([ours, theirs], ignore_index=True).reindex(columns=columns).dropna(axis=1, how="all")


def sharpest(study: Study, variant: str, seed: int, kind: str) -> pd.DataFrame:
    """Figures 2 and 5: return the rows of `tags` of the three heads with the highest POS-KL. kind: "enc" or "cross"."""
    heads, tags = (_of(table, (variant, seed, "")) for table in (study.heads, study.tags))
    chosen = heads[heads["head"].str.startswith(kind)].nlargest(3, "pos_kl")["head"]
    return pd.concat([tags[tags["head"] == head] for head in chosen], ignore_index=True)


def lost(study: Study, variant: str, seed: int, price: str = "") -> pd.DataFrame:
    """Return `heads` of one run, with the difference without each head (points of rouge1; negative: worse), p_holm, and cut."""
    heads, ablation, gates = (_of(t, (variant, seed, price)) for t in (study.heads, study.ablation, study.gates))
    heads = heads[["head", "pos_kl", "ne_ratio", "ne_share", "position", "sparsity"]].reset_index(drop=True)
    if len(ablation):
        ablation = ablation[ablation["mode"] == "context"].set_index("head")
        heads["difference"] = 100 * heads["head"].map(ablation["difference"])
        heads["p_holm"] = heads["head"].map(ablation["p_holm"])
    kept = gates["head"][gates["kept"]] if len(gates) else heads["head"]
    return heads.assign(cut=~heads["head"].isin(set(kept)))


def examples(heads: pd.DataFrame) -> list[str]:
    """Return three heads to show, from the table of `lost`.

    They are the encoder's most positional head, its head with the highest POS-KL, and the head that copies.
    """
    encoder = heads[heads["head"].str.startswith("enc")]
    chosen = [encoder.loc[encoder[name].idxmax(), "head"] for name in ("position", "pos_kl")]
    copying = heads["head"].iloc[-1].rpartition(".")[0] + ".0"
    return list(dict.fromkeys([*chosen, copying]))


def copy_head(study: Study) -> pd.DataFrame:
    """Return the rows of `ablation` for the heads that copy, in each mode."""
    columns = [*RUN, "head", "mode", "rouge1", "difference", "low", "high", "p_holm", "same"]
    ablation = study.ablation.reindex(columns=columns)
    heads = ablation[ablation["mode"] == "copy"]["head"].unique()
    return ablation[ablation["head"].isin(heads)].reset_index(drop=True)


def prices(table: pd.DataFrame) -> pd.DataFrame:
    """Return seed, price (nan: no gates), kept and rouge1 of the pruned soft summarizers, for `price_lines`."""
    pruned = table[(table["variant"] == "soft") & (table["price"] != "")]
    return pruned.assign(price=pd.to_numeric(pruned["price"], errors="coerce"))[["seed", "price", "kept", "rouge1"]]


def on_gum(study: Study) -> pd.DataFrame:
    """Return for each seed, before and after training, means and extremes over heads of what they attend to in GUM."""
    if not len(study.gum):
        return study.gum
    heads = study.gum.assign(away=(study.gum["ne_ratio"] - study.gum["ne_share"]).abs())
    names = "documents named pos_kl pos_kl_max ne_share ne_ratio ne_ratio_max away_max position_max".split()
    columns = {name: (name.removesuffix("_max"), "max" if name.endswith("_max") else "mean") for name in names}
    return heads.groupby(["variant", "seed", "untrained"], sort=False).agg(**columns).reset_index()


def written(study: Study) -> pd.DataFrame:
    """Compare the heads over the document while they read true summaries and while the model writes its own words.

    Returns variant, seed, text, measure, and means over heads: true_words, own_words, and apart (the distance of the two); and
    largest, the largest distance of a head.
    """
    if not len(study.written):
        return study.written
    heads = study.written[study.written["head"].str.startswith("cross")]
    key = ["variant", "seed", "text", "measure"]
    long = heads.melt([*key[:3], "own", "head"], ["pos_kl", "ne_ratio", "position"], "measure")
    wide = long.pivot(index=[*key, "head"], columns="own", values="value").set_axis(["true_words", "own_words"], axis=1)
    wide["apart"] = wide["largest"] = (wide["own_words"] - wide["true_words"]).abs()
    how = dict.fromkeys(("true_words", "own_words", "apart"), "mean") | {"largest": "max"}
    return wide.groupby(key).agg(how).reset_index()


def expected(study: Study) -> pd.DataFrame:
    """Return the lines that small runs must reach, for what the study has of each seed.

    No line is about summarizers that are sparse everywhere.
    """
    table, lines = runs(study), []
    for seed in dict.fromkeys(table["seed"]):
        numbers = _numbers(study, table, seed)
        for bound in BOUNDS:
            number = numbers.get(bound["what"])
            if not pd.isna(number):
                lines.append((bound["variant"], seed, bound["what"], bound["is"], bound["wanted"], number))
    return judge(lines, "variant", "seed")


def _numbers(study: Study, table: pd.DataFrame, seed: int) -> dict[str, float]:
    """Return the numbers of one seed that BOUNDS is about, as far as the study has them. table: from `runs`."""
    of_seed = table[table["seed"] == seed].set_index(["variant", "price"]).to_dict("index")
    soft, sparse = of_seed.get(("soft", "")), of_seed.get(("sparse-enc", ""))
    gated, control = of_seed.get(("soft", PRICE)), of_seed.get(("soft", CONTROL))
    numbers = {}
    if soft:
        numbers["ROUGE-1, percent"] = soft["rouge1"]
        numbers["unknown words copied, percent"] = soft["copied"]
        numbers["encoder heads whose loss is significant (Holm)"] = soft["significant_enc"]
    if soft and sparse:
        numbers["ROUGE-1: points below soft"] = soft["rouge1"] - sparse["rouge1"]
        numbers["zeros in the encoder, percent"] = sparse["zeros_enc"]
    if gated and control:
        numbers[f"heads closed at {PRICE}"] = gated["pruned_enc"] + gated["pruned_dec"]
        numbers[f"ROUGE-1 at {PRICE}: points below the control"] = control["rouge1"] - gated["rouge1"]
    kept = [of_seed[key]["kept"] for p in PRICES["soft"] if (key := ("soft", f"{p:g}")) in of_seed]
    if len(kept) > 1:
        numbers["kept heads: largest rise from a price to the next"] = max(b - a for a, b in zip(kept, kept[1:]))
    if len(study.cuts):
        moved = study.cuts[study.cuts["seed"] == seed]["moved"]
        numbers["cutting instead of gating moves a probability by"] = moved.max()
    if len(study.gum):
        fresh = study.gum[(study.gum["seed"] == seed) & study.gum["untrained"]]
        numbers["largest POS-KL of a head"] = fresh["pos_kl"].max()
        away = (fresh["ne_ratio"] - fresh["ne_share"]).abs()
        numbers["NE-ratio: furthest from the share of tokens"] = away.max()
    return numbers
