"""The study of classifiers: every kind on every data set with every seed is trained once and measured once; then its tables.

The tables first have one number for each run, then the mean and the spread over seeds, and last what was expected.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pandas as pd

from lalkit.companions.classifiers.classifier import KINDS, usual
from lalkit.companions.classifiers.classifier_training import load_classifier, train
from lalkit.companions.classifiers.examples import Dataset, shorten, tagged
from lalkit.companions.classifiers.faithfulness import attention_by_tag, by_text, measure
from lalkit.companions.classifiers.text_corpora import load
from lalkit.companions.frame import grid, judge, kept_tables, run_folder
from lalkit.errors import CorpusError, ParameterError
from lalkit.evaluation.provenance import parts_hash
from lalkit.probes.perturbation import by_max_attention

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Size:
    """How large a study is. 0 means all, or the usual number.

    train, dev, test: examples of each part; epochs: of the training; rounds: permutations; attributed, integrated: examples for
    which gradients and integrated gradients are computed.
    """

    train: int = 0
    dev: int = 0
    test: int = 0
    epochs: int = 0
    rounds: int = 100
    attributed: int = 300
    integrated: int = 100


def study(
    names: Sequence[str], kinds: Sequence[str], seeds: Sequence[int], folder: str | Path, size: Size
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Train and measure every kind of classifier on every data set with every seed. Runs are in FOLDER/DATA/KIND-SEED.

    A finished run is read and not repeated, as long as its settings, data and classifier are the same.

    Returns: the long table of all probes on the test parts, and the table of attention by tag. Both have a column data; the first
        also has train and epochs, the number of training examples and of epochs that were trained.

    Raises: ModelError for an unknown kind or a run of other data, CorpusError for data that are not here, ParameterError for two
        data sets with the same name.
    """
    sets = [shorten(load(name), train=size.train, dev=size.dev, test=size.test) for name in names]
    titles = [data.name for data in sets]
    if twice := [title for title in titles if titles.count(title) > 1]:
        raise ParameterError(f"two data sets are named {twice[0]!r}", remedy="Give each an --out of its own.")
    results = []
    for data in map(with_tags, sets):
        for seed, kind in grid("classifier", kinds, KINDS, seeds):
            table, tags = probed(run := trained(folder, data, kind, seed, size.epochs), data, size)
            epochs = json.loads((run / "resume.json").read_text(encoding="utf-8"))["state"]["epoch"]
            table = table.assign(data=data.name, train=len(data.train), epochs=epochs)
            results.append((table, tags.assign(data=data.name)))
    measures, attention = zip(*results)
    return pd.concat(measures, ignore_index=True), pd.concat(attention, ignore_index=True)


def trained(folder: str | Path, data: Dataset, kind: str, seed: int, epochs: int = 0) -> Path:
    """Train a classifier of the study, unless that is done already, and return its folder. epochs: 0 means the usual number."""
    run, config = run_folder(folder, data.name, kind, seed), usual(data.name, kind, seed)
    train(replace(config, epochs=epochs or config.epochs), data, run, resume=True)
    return run


def probed(run: Path, data: Dataset, size: Size) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the two tables of a trained classifier. They are kept in its folder."""

    def measured() -> dict[str, pd.DataFrame]:
        model = load_classifier(run)
        return {
            "measures": measure(model, data.test, size.rounds, size.attributed, size.integrated),
            "tags": attention_by_tag(model, data.test),
        }

    tables = kept_tables(run, ["measures", "tags"], [asdict(size), parts_hash([("test", data.test)])], measured)
    return tables["measures"], tables["tags"]


def with_tags(data: Dataset) -> Dataset:
    """Return the data with parts of speech in the test part. Without a tagger, log why and return them as they are."""
    try:
        return replace(data, test=tuple(tagged(data.test)))
    except CorpusError as error:
        logger.info("no parts of speech for %s: %s", data.name, error.problem)
        return data


# ---------------------------------------------------------------- tables

GROUPS = ["data", "system"]


def tables(measures: pd.DataFrame, tags: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the tables of notebook 17 by their names, without those that are empty. measures, tags: from `study`."""
    texts, table = by_text(measures), runs(measures)
    shown = {"runs": table, "erasure": erasure(texts), "right": erased_if_right(texts), "expected": expected(table)}
    shown |= {"permutation": by_max_attention(texts, by=GROUPS), "tags": tags, "undefined": undefined(measures)}
    return {name: rows for name, rows in shown.items() if len(rows)}


def runs(measures: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each run, with the mean of every measure over texts (MEASURE) and its median (MEASURE_median).

    Texts for which a measure is not defined are left out of it. The accuracy is in percent. measures: from `study`.
    """
    groups = measures.groupby([*GROUPS, "seed", "measure"], sort=False)["value"]
    mean, median = groups.mean().unstack("measure"), groups.median().unstack("measure").add_suffix("_median")
    table = mean.join(median).reset_index()
    return table.assign(accuracy=100 * table["right"])


def over_seeds(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Return "mean ± standard deviation" over seeds of some columns of `runs`, and the number of seeds, by data and system."""
    groups = table.groupby(GROUPS, sort=False)
    means, spread = (part.map("{:.2f}".format) for part in (groups[columns].mean(), groups[columns].std()))
    return (means + " ± " + spread).replace(" ± nan", "", regex=True).assign(seeds=groups.size()).reset_index()


def erased_if_right(texts: pd.DataFrame) -> pd.DataFrame:
    """Return medians of erased and erased_random over all texts, and over those that are classified rightly; and their numbers.

    texts: a row for each text (`by_text`), with a column data. The paper uses wrong decisions too.
    """
    tables = []
    for name, rows in (("all", texts), ("right", texts[texts["right"] == 1])):
        groups = rows.groupby(GROUPS, sort=False)
        tables.append(groups[["erased", "erased_random"]].median().assign(texts=groups.size()).add_suffix(f", {name}"))
    return pd.concat(tables, axis=1).reset_index()


def erasure(texts: pd.DataFrame) -> pd.DataFrame:
    """Return the boxes of figure 3: data, system, ranking (erased, erased_random), p5, low, median, high, p95 and n.

    Each box is over the texts of all seeds.
    """
    names, rows = {"p5": 0.05, "low": 0.25, "median": 0.5, "high": 0.75, "p95": 0.95}, []
    for (data, system), group in texts.groupby(GROUPS, sort=False):
        for ranking in ("erased", "erased_random"):
            values = group[ranking].dropna()
            box = {name: values.quantile(q) for name, q in names.items()}
            rows.append({"data": data, "system": system, "ranking": ranking, **box, "n": len(values)})
    return pd.DataFrame(rows)


def undefined(measures: pd.DataFrame) -> pd.DataFrame:
    """Return data, system, measure, n and n_nan: the number of texts for which a measure is not defined.

    Examples are texts of two words, and attention that is equal everywhere.
    """
    groups = measures.groupby([*GROUPS, "measure"], sort=False)["value"]
    return pd.DataFrame({"n": groups.count(), "n_nan": groups.size() - groups.count()}).reset_index().query("n_nan > 0")


# The lines of `expected`: on which side of its bound a number must be, and how it is computed. m has the means of a model, and
# v those of the vanilla model on the same data.
LINES = {
    "accuracy, percent": (">=", lambda m, v: m["accuracy"]),
    "accuracy: points below vanilla": ("<=", lambda m, v: v["accuracy"] - m["accuracy"]),
    "conicity falls by, percent": (">=", lambda m, v: 100 * (1 - m["conicity"] / v["conicity"])),
    "conicity / isotropic": ("<=", lambda m, v: m["conicity"] / m["isotropic"]),
    "erased by attention / at random": ("<=", lambda m, v: m["erased_median"] / m["erased_random_median"]),
    "erased, median: below vanilla": (">=", lambda m, v: v["erased_median"] - m["erased_median"]),
    "TVD, median: times vanilla": (">=", lambda m, v: m["tvd_median"] / v["tvd_median"]),
    "Pearson, gradient: above vanilla": (">=", lambda m, v: m["pearson_gradient_fixed"] - v["pearson_gradient_fixed"]),
}
# The bounds that small runs must reach: data set -> model -> line -> bound.
BOUNDS = json.loads(Path(__file__).with_name("classifier_bounds.json").read_text(encoding="utf-8"))


def expected(table: pd.DataFrame) -> pd.DataFrame:
    """Return the lines that small runs must reach, judged by the means over seeds of `runs`.

    There are lines only for data and models that the table has together with a vanilla model.
    """
    means, lines = table.groupby(GROUPS).mean(numeric_only=True), []
    for data, models in BOUNDS.items():
        for system, bounds in models.items():
            if {(data, system), (data, "vanilla")} <= set(means.index):
                model, vanilla = means.loc[(data, system)], means.loc[(data, "vanilla")]
                for what, bound in bounds.items():
                    sign, compute = LINES[what]
                    lines.append((data, system, what, sign, bound, compute(model, vanilla)))
    return judge(lines, "data", "model")
