"""The study's tables: seeds first (a number a run), then their mean and spread; and what was expected beside what was seen."""

from __future__ import annotations

import pandas as pd

SENTENCES = ("sentence_polarity", "subjectivity")
RUN = ["data", "system", "seed"]


def runs(measures: pd.DataFrame) -> pd.DataFrame:
    """A row a run: for every measure its mean over texts (measure), its median (measure_median), texts for which it is not
    defined left out; accuracy in percent. measures: the long table of `study`."""
    groups = measures.groupby([*RUN, "measure"], sort=False)["value"]
    mean, median = groups.mean().unstack("measure"), groups.median().unstack("measure").add_suffix("_median")
    found = mean.join(median).reset_index()
    return found.assign(accuracy=100 * found["right"])


def over_seeds(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Mean and standard deviation over seeds of the columns of `runs`, and how many seeds: indexed by data and system."""
    groups = table.groupby(["data", "system"], sort=False)
    found = groups[columns].agg(["mean", "std"])
    found[("seeds", "")] = groups.size()
    return found


def erased_if_right(texts: pd.DataFrame) -> pd.DataFrame:
    """Medians of erased and erased_random over all texts, and over those classified rightly, with their numbers (all, right).

    texts: a row a text (`by_text`), with data. The paper keeps wrong decisions too."""
    rows = []
    for name, some in (("all", texts), ("right", texts[texts["right"] == 1])):
        groups = some.groupby(["data", "system"], sort=False)
        rows.append(groups[["erased", "erased_random"]].median().assign(texts=groups.size()).add_suffix(f", {name}"))
    return pd.concat(rows, axis=1)


def erasure(texts: pd.DataFrame) -> pd.DataFrame:
    """Figure 3's boxes: data, system, ranking (erased, erased_random), p5, low, median, high, p95, n; of all seeds' texts."""
    names, rows = {"p5": 0.05, "low": 0.25, "median": 0.5, "high": 0.75, "p95": 0.95}, []
    for (data, system), some in texts.groupby(["data", "system"], sort=False):
        for ranking in ("erased", "erased_random"):
            values = some[ranking].dropna()
            found = {name: values.quantile(q) for name, q in names.items()}
            rows.append({"data": data, "system": system, "ranking": ranking, **found, "n": len(values)})
    return pd.DataFrame(rows)


def undefined(measures: pd.DataFrame) -> pd.DataFrame:
    """data, system, measure, n, n_nan: texts for which a measure is not defined (two words, attention that does not vary)."""
    groups = measures.groupby(["data", "system", "measure"], sort=False)["value"]
    found = pd.DataFrame({"n": groups.count(), "n_nan": groups.size() - groups.count()}).reset_index()
    return found[found["n_nan"] > 0]


def expected(table: pd.DataFrame) -> pd.DataFrame:
    """data, model, what, wanted, found, holds: the lines that small runs must reach, from means over seeds of `runs`. Only for
    data and models that are in the table beside a vanilla one."""
    means, rows = table.groupby(["data", "system"]).mean(numeric_only=True), []
    for (name, system), row in means.iterrows():
        if system not in ("diversity", "orthogonal") or (name, "vanilla") not in means.index:
            continue
        plain = means.loc[(name, "vanilla")]
        fall = 100 * (1 - row["conicity"] / plain["conicity"])
        gain = row["pearson_gradient_fixed"] - plain["pearson_gradient_fixed"]
        if name == "babi-1":
            rows += [(name, system, "accuracy, percent", ">=", 97, row["accuracy"])]
            rows += [
                (name, system, "conicity falls by, percent", ">=", {"diversity": 70, "orthogonal": 45}[system], fall)
            ]
            share = row["erased_median"] / row["erased_random_median"]
            rows += [(name, system, "erased by attention / at random", "<=", 0.25, share)]
            rows += [(name, system, "Pearson, gradient: above vanilla", ">=", 0.3, gain)] * (system == "diversity")
        elif name in SENTENCES:
            least = {"sentence_polarity": 70, "subjectivity": 85}[name]
            rows += [(name, system, "accuracy, percent", ">=", least, row["accuracy"])]
            rows += [(name, system, "accuracy: points below vanilla", "<=", 4, plain["accuracy"] - row["accuracy"])]
            rows += [
                (name, system, "conicity falls by, percent", ">=", {"diversity": 55, "orthogonal": 40}[system], fall)
            ]
            if system == "diversity":
                rows += [(name, system, "conicity / isotropic", "<=", 1.15, row["conicity"] / row["isotropic"])]
            drop = plain["erased_median"] - row["erased_median"]
            rows += [(name, system, "erased, median: below vanilla", ">=", 0.3, drop)]
            rows += [(name, system, "TVD, median: times vanilla", ">=", 2, row["tvd_median"] / plain["tvd_median"])]
            rows += [(name, system, "Pearson, gradient: above vanilla", ">=", 0.2, gain)]
    found = pd.DataFrame(rows, columns=["data", "model", "what", "is", "wanted", "found"])
    above = found["found"] >= found["wanted"]
    return found.assign(holds=above.where(found["is"] == ">=", found["found"] <= found["wanted"]))
