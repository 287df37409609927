"""The study's tables in the form of Baan et al. (2019), tables 1 to 4; and what had to be seen beside what was, seed by seed."""

from __future__ import annotations

import pandas as pd

from lalkit.companions.summarizers.summarizer_study import ABLATED_PRICE, CONTROL, PRICES, Study

RUN = ["variant", "seed", "price"]
ROUGE = ("rouge1", "rouge2", "rougeL")
LEVEL = 0.05  # of Holm's p
PRICE = f"{ABLATED_PRICE:g}"
_KINDS = (("enc", "enc"), ("dec", "cross"))  # as tables call the parts, and as heads are called
NEAR_ZERO = 0.05  # nats: what POS-KL may be before any training


def runs(study: Study) -> pd.DataFrame:
    """A row per run: rouge1, rouge2, rougeL, exact, copied (of the unknown words of true summaries) in percent; zeros_enc and
    zeros_dec, percent of exactly zero weights; significant_enc and significant_dec, heads whose loss is no chance after Holm;
    pruned_enc, pruned_dec, kept: heads. nan for what was not asked of a run."""
    rows = []
    for key, table in study.scores.fillna({"price": ""}).groupby(RUN, sort=False):
        row = dict(zip(RUN, key)) | {name: 100 * table[name].mean() for name in (*ROUGE, "exact")}
        row["copied"] = 100 * table["copied"].sum() / max(1, table["unknown"].sum())
        own = _of(study.heads, key)
        rows.append(row | _zeros(own) | _significant(_of(study.ablation, key)) | _pruned(_of(study.gates, key)))
    return pd.DataFrame(rows)


def seeds_apart(study: Study) -> pd.DataFrame:
    """variant, first, second, points: the mean over documents of how far rouge1 of two seeds' summaries is apart."""
    rows = []
    plain = study.scores[study.scores["price"].fillna("") == ""]
    for variant, table in plain.groupby("variant", sort=False):
        wide = table.pivot(index="id", columns="seed", values="rouge1")
        for i, a in enumerate(wide.columns):
            for b in wide.columns[i + 1 :]:
                apart = 100 * (wide[a] - wide[b]).abs().mean()
                rows.append({"variant": variant, "first": a, "second": b, "points": apart})
    return pd.DataFrame(rows, columns=["variant", "first", "second", "points"])


def beside(table: pd.DataFrame, published: pd.DataFrame, number: int) -> pd.DataFrame:
    """Ours (rows of `runs`) and the paper's under the same columns; `whose` says which is which. number: the paper's table: 1
    soft, 2 soft pruned, 3 sparse, 4 sparse pruned."""
    pruned, sparse = table["price"] != "", table["variant"] != "soft"
    ours = table[(pruned == (number in (2, 4))) & (sparse == (number in (3, 4)))]
    names = ours["variant"] + ours["price"].map(lambda p: "" if not p else ", no gates" if p == CONTROL else f", {p}")
    own = ours.rename(columns={"pruned_enc": "pruned_encoder", "pruned_dec": "pruned_decoder"})
    own = own.assign(whose="ours, made-up news", model=names)
    theirs = published[published["table"] == number].assign(whose="NOT OURS: the paper, CNN/DailyMail")
    columns = ["whose", "model", "seed", "pruned_encoder", "pruned_decoder", *ROUGE, "exact", "copied"]
    columns += ["zeros_enc", "zeros_dec", "significant_enc", "significant_dec"]
    found = pd.concat([own, theirs], ignore_index=True).reindex(columns=columns)
    return found.dropna(axis=1, how="all")


def sharpest(study: Study, variant: str, seed: int, kind: str, count: int = 3) -> pd.DataFrame:
    """Figures 2 and 5: rows of `tags` of the heads with the highest POS-KL, of kind "enc" or "cross", the highest first."""
    key = (variant, seed, "")
    heads = _of(study.heads, key)
    chosen = heads[heads["head"].str.startswith(kind)].nlargest(count, "pos_kl")["head"].tolist()
    tags = _of(study.tags, key)
    return pd.concat([tags[tags["head"] == head] for head in chosen], ignore_index=True)


def folder(study: Study, variant: str, seed: int, price: str = "") -> str:
    """Where a run is."""
    return _of(study.folders, (variant, seed, price))["folder"].iloc[0]


def examples(heads: pd.DataFrame) -> list[str]:
    """Three heads to show, from a table as `lost` gives: the encoder's most positional, its furthest from the parts of speech as
    they are, and the head that copies."""
    encoder = heads[heads["head"].str.startswith("enc")]
    chosen = [encoder.loc[encoder[name].idxmax(), "head"] for name in ("position", "pos_kl")]
    copying = heads["head"].iloc[-1].rpartition(".")[0] + ".0"
    return list(dict.fromkeys([*chosen, copying]))


def copy_head(study: Study) -> pd.DataFrame:
    """Rows of `ablation` of the heads that copy, each way of taking them away."""
    heads = study.ablation[study.ablation["mode"] == "copy"]["head"].unique()
    found = study.ablation[study.ablation["head"].isin(heads)].assign(price=study.ablation["price"].fillna(""))
    columns = ["head", "mode", "rouge1", "difference", "low", "high", "p_holm", "same"]
    return found[[*RUN, *columns]].reset_index(drop=True)


def prices(table: pd.DataFrame) -> pd.DataFrame:
    """seed, price (nan: no gates), kept, rouge1 of the pruned soft summarizers: what `draw.head_figures.price_lines` draws."""
    some = table[(table["variant"] == "soft") & (table["price"] != "")]
    return some.assign(price=pd.to_numeric(some["price"], errors="coerce"))[["seed", "price", "kept", "rouge1"]]


def on_gum(study: Study) -> pd.DataFrame:
    """A row for each seed, before and after training: means and extremes over heads of what they look at in GUM."""
    if not len(study.gum):
        return pd.DataFrame()
    heads = study.gum.assign(away=(study.gum["ne_ratio"] - study.gum["ne_share"]).abs())
    groups = heads.groupby(["variant", "seed", "untrained"], sort=False)
    found = groups.agg(
        documents=("documents", "max"), named=("named", "max"), pos_kl=("pos_kl", "mean"), pos_kl_max=("pos_kl", "max"),
        ne_share=("ne_share", "mean"), ne_ratio=("ne_ratio", "mean"), ne_ratio_max=("ne_ratio", "max"), away_max=("away", "max"),
        position_max=("position", "max"),
    )  # fmt: skip
    return found.reset_index()


def expected(study: Study) -> pd.DataFrame:
    """variant, seed, what, is, wanted, found, holds: the lines that the small runs must reach, for what is
    in the study. No line asks what becomes of summarizers that are sparse everywhere."""
    table, rows = runs(study), []

    def line(variant, seed, what, sign, wanted, found):
        if found == found:  # nan: was not asked
            rows.append((variant, seed, what, sign, wanted, found))

    for seed in dict.fromkeys(table["seed"]):
        own = table[table["seed"] == seed].set_index(["variant", "price"])
        soft = own.loc[("soft", "")] if ("soft", "") in own.index else None
        if soft is not None:
            line("soft", seed, "ROUGE-1, percent", ">=", 90, soft["rouge1"])
            line("soft", seed, "unknown words copied, percent", ">=", 80, soft["copied"])
            line("soft", seed, "encoder heads whose loss is significant (Holm)", ">=", 1, soft["significant_enc"])
        if soft is not None and ("sparse-enc", "") in own.index:
            sparse = own.loc[("sparse-enc", "")]
            line("sparse-enc", seed, "ROUGE-1: points below soft", "<=", 5, soft["rouge1"] - sparse["rouge1"])
            line("sparse-enc", seed, "zeros in the encoder, percent", ">=", 60, sparse["zeros_enc"])
        if ("soft", PRICE) in own.index and ("soft", CONTROL) in own.index:
            gated, control = own.loc[("soft", PRICE)], own.loc[("soft", CONTROL)]
            line("soft", seed, f"heads closed at {PRICE}", ">=", 6, gated["pruned_enc"] + gated["pruned_dec"])
            below = control["rouge1"] - gated["rouge1"]
            line("soft", seed, f"ROUGE-1 at {PRICE}: points below the control", "<=", 3, below)
        kept = [own.loc[("soft", f"{p:g}"), "kept"] for p in PRICES["soft"] if ("soft", f"{p:g}") in own.index]
        if len(kept) > 1:
            rise = max(b - a for a, b in zip(kept, kept[1:]))
            line("soft", seed, "kept heads: largest rise from a price to the next", "<=", 0, rise)
        moved = study.cuts[study.cuts["seed"] == seed]["moved"] if len(study.cuts) else []
        if len(moved):
            line("all pruned", seed, "cutting instead of gating moves a probability by", "<=", 1e-5, max(moved))
        if len(study.gum):
            fresh = study.gum[(study.gum["seed"] == seed) & study.gum["untrained"]]
            if len(fresh):
                away = (fresh["ne_ratio"] - fresh["ne_share"]).abs().max()
                line("untrained, on GUM", seed, "largest POS-KL of a head", "<=", NEAR_ZERO, fresh["pos_kl"].max())
                line("untrained, on GUM", seed, "NE-ratio: furthest from the share of tokens", "<=", 0.03, away)
    found = pd.DataFrame(rows, columns=["variant", "seed", "what", "is", "wanted", "found"])
    above = found["found"] >= found["wanted"]
    return found.assign(holds=above.where(found["is"] == ">=", found["found"] <= found["wanted"]))


def lost(study: Study, variant: str, seed: int, price: str = "") -> pd.DataFrame:
    """`heads` of one run with what is lost without each head (points of rouge1, negative: worse), p_holm, and is it cut?"""
    key = (variant, seed, price)
    found = _of(study.heads, key)
    found = found[["head", "pos_kl", "ne_ratio", "ne_share", "position", "sparsity"]].reset_index(drop=True)
    taken, gates = _of(study.ablation, key), _of(study.gates, key)
    if len(taken):
        taken = taken[taken["mode"] == "context"].set_index("head")
        found["difference"] = 100 * found["head"].map(taken["difference"])
        found["p_holm"] = found["head"].map(taken["p_holm"])
    kept = set(gates["head"][gates["kept"]]) if len(gates) else set(found["head"])
    return found.assign(cut=~found["head"].isin(kept))


def _of(table: pd.DataFrame, key: tuple) -> pd.DataFrame:
    if not len(table):
        return table
    variant, seed, price = key
    return table[(table["variant"] == variant) & (table["seed"] == seed) & (table["price"].fillna("") == price)]


def _zeros(heads: pd.DataFrame) -> dict[str, float]:
    kinds = heads["head"].str.split(".").str[0]
    return {f"zeros_{name}": 100 * heads[kinds == kind]["sparsity"].mean() for name, kind in _KINDS}


def _significant(ablation: pd.DataFrame) -> dict[str, float]:
    if not len(ablation):
        return {f"significant_{name}": float("nan") for name, _ in _KINDS}
    hit = (ablation["mode"] == "context") & (ablation["p_holm"] < LEVEL) & (ablation["difference"] < 0)
    kinds = ablation["head"].str.split(".").str[0]
    return {f"significant_{name}": int((hit & (kinds == kind)).sum()) for name, kind in _KINDS}


def _pruned(gates: pd.DataFrame) -> dict[str, float]:
    if not len(gates):
        return {"pruned_enc": float("nan"), "pruned_dec": float("nan"), "kept": float("nan")}
    kinds, closed = gates["head"].str.split(".").str[0], ~gates["kept"].astype(bool)
    counts = {f"pruned_{name}": int((closed & (kinds == kind)).sum()) for name, kind in _KINDS}
    return counts | {"kept": int((~closed).sum())}
