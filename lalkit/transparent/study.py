"""The study: every kind of classifier on every data set with every seed, trained once, measured once, resumed after a kill."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pandas as pd

from lalkit.checkpoint import fingerprint
from lalkit.errors import CorpusError, ModelError, ParameterError
from lalkit.files import write_text
from lalkit.provenance import parts_hash
from lalkit.transparent import corpora
from lalkit.transparent.config import KINDS, usual
from lalkit.transparent.examples import Dataset, shorten
from lalkit.transparent.measure import attention_by_tag, measure
from lalkit.transparent.tags import tagged
from lalkit.transparent.training import load_classifier, train


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
