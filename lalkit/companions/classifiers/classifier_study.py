"""The study's tables: seeds first (a number a run), then their mean and spread; and what was expected beside what was seen.

The study: every kind of classifier on every data set with every seed, trained once, measured once, resumed after a kill.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pandas as pd

from lalkit.companions.classifiers import text_corpora as corpora
from lalkit.companions.classifiers.classifier import KINDS, usual
from lalkit.companions.classifiers.classifier_training import load_classifier, train
from lalkit.companions.classifiers.examples import Dataset, shorten, tagged
from lalkit.companions.classifiers.faithfulness import attention_by_tag, measure
from lalkit.errors import CorpusError, ModelError, ParameterError
from lalkit.evaluation.provenance import parts_hash
from lalkit.files import write_text
from lalkit.training.checkpoint import fingerprint


@dataclass(frozen=True)
class Size:
    """How much of everything: examples of each part and epochs (0: all, the usual number), permutations, and for how many
    texts gradients and integrated gradients are computed (0: all)."""

    train: int = 0
    dev: int = 0
    test: int = 0
    epochs: int = 0
    rounds: int = 100
    attributed: int = 300
    integrated: int = 100


def study(
    names: Sequence[str],
    kinds: Sequence[str],
    seeds: Sequence[int],
    folder: str | Path,
    size: Size | None = None,
    say: Callable[[str], None] = print,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(long table of all probes on the test parts, attention by tag), both with a column data; runs in folder/DATA/KIND-SEED.

    What is finished is read, not done again, as long as settings, data and classifier are the same. Raises ModelError for an
    unknown kind, or a run there of other data, CorpusError for data that are not here, ParameterError for two of one name.
    """
    size = size or Size()
    wrong = [kind for kind in kinds if kind not in KINDS]
    if wrong:
        raise ModelError(f"there is no classifier {wrong[0]!r}", remedy=f"Kinds: {', '.join(KINDS)}.")
    known = [shorten(corpora.load(name), train=size.train, dev=size.dev, test=size.test) for name in names]
    called = [data.name for data in known]
    twice = [name for name in called if called.count(name) > 1]
    if twice:
        raise ParameterError(f"two data sets are named {twice[0]!r}", remedy="Give each an --out of its own.")
    measured, by_tag = [], []
    for data in known:
        data = with_tags(data, say)
        for seed in seeds:
            for kind in kinds:
                run = Path(folder) / data.name / f"{kind}-{seed}"
                config = usual(data.name, kind, seed)
                train(replace(config, epochs=size.epochs or config.epochs), data, run, resume=True, say=say)
                tables = probed(run, data, size, say)
                measured.append(tables[0].assign(data=data.name))
                by_tag.append(tables[1].assign(data=data.name))
    return pd.concat(measured, ignore_index=True), pd.concat(by_tag, ignore_index=True)


def probed(
    run: Path, data: Dataset, size: Size, say: Callable[[str], None] = print
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The two tables of a trained classifier, kept in its folder under a name made of all that they depend on."""
    task = [fingerprint(run), asdict(size), parts_hash([("test", data.test)])]
    key = hashlib.sha256(json.dumps(task).encode()).hexdigest()[:12]
    files = run / f"measures-{key}.csv", run / f"tags-{key}.csv"
    if not all(file.exists() for file in files):
        say(f"measuring {run}")
        model = load_classifier(run)
        tables = (
            measure(model, data.test, size.rounds, size.attributed, size.integrated),
            attention_by_tag(model, data.test),
        )
        for file, table in zip(files, tables):
            write_text(file, table.to_csv(index=False))
    return tuple(pd.read_csv(file) for file in files)


def with_tags(data: Dataset, say: Callable[[str], None] = print) -> Dataset:
    """The test part with parts of speech; without, and with a word on why, where there is no tagger."""
    try:
        return replace(data, test=tuple(tagged(data.test)))
    except CorpusError as error:
        say(f"no parts of speech for {data.name}: {error.problem}")
        return data


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
