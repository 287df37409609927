"""Do label heads stand for their labels? Compare parsers as trained, under controls, and without the head of each label.

`read_runs` finds the parsers. `measure` measures one of them through `Explainer`, in the same way for every layer.
`compare_heads` measures all of them and tests the differences. The measurements of each run are kept in their own file, so that
an interrupted comparison continues.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from lalkit.api import Parser
from lalkit.config import Config, from_dict
from lalkit.draw.pages import render
from lalkit.errors import CorpusError, JointError, LalkitError, ParameterError
from lalkit.evaluation.evalb import COLLINS
from lalkit.evaluation.provenance import code_hash, json_hash
from lalkit.evaluation.scores import by_label, evaluate
from lalkit.evaluation.statistics import holm, paired_test, welch
from lalkit.files import find_json, write_json, write_text
from lalkit.interpret import layer_of
from lalkit.interpret.layers import Explainer, gold_spans
from lalkit.interpret.tables import Contributions, Span
from lalkit.probes.perturbation import ask
from lalkit.probes.view import AttentionView
from lalkit.reproduce.report import read_sweep
from lalkit.studies.frame import in_order
from lalkit.training.checkpoint import fingerprint, read_content
from lalkit.treebank.corpora import load, subset
from lalkit.treebank.joint import to_joint
from lalkit.treebank.tree import Sentence

logger = logging.getLogger(__name__)

TRAINED = "as trained"
TESTED = ("f1", "uas")  # the scores that are tested
MARGIN = 0.3  # points: two means that differ by less count as equal, see `lalkit.evaluation.statistics.welch`
MEANS = 200  # training sentences over which means are taken
LABELS = 6  # the number of labels to look at, the most frequent ones, if none are named
VIEWED = 20  # sentences probed at a time
COLUMNS = ("system", "seed", "what", "label", "measure", "value")
TESTS = ["family", "system", "what", "measure", "runs", "difference", "low", "high", "p", "p_holm", "equal_p"]
# Unlike in COLLINS.prm, ADVP and PRT are two labels here, because each of the two has a label head.
APART = replace(COLLINS, equal_labels=())  # ADVP and PRT apart
Row = tuple[str, str, str, float]  # what, label, measure, value


class HeadsRun(NamedTuple):
    """A trained parser, with the name of its system."""

    system: str
    seed: int
    folder: Path


class Compared(NamedTuple):
    """The result of a comparison. table: the `COLUMNS`, a number in each row. tests: see `tests`."""

    table: pd.DataFrame
    tests: pd.DataFrame


def read_runs(places: Sequence[str]) -> list[HeadsRun]:
    """Find runs. A place is NAME=FOLDER, FOLDER (named by its config), or the folder of a sweep, which gives all its runs.

    Raises ParameterError if there is no run, or if two runs have the same system and seed; ModelError for a folder without a
    parser.
    """
    runs: list[HeadsRun] = []
    for text in places:
        name, _, folder = ("", "", text) if Path(text).exists() else text.rpartition("=")  # a path may have a = in it
        found = [(name, Path(folder))]
        if (Path(folder) / "sweep.json").exists():
            sweep = read_sweep(folder)
            cells = (f"{name}: " if name else "") + sweep.runs[list(sweep.axes)].agg(", ".join, axis=1)
            found = [(cell, Path(folder) / "runs" / run / "parser") for cell, run in zip(cells, sweep.runs["run"])]
        for system, parser in found:
            config = from_dict(Config, read_content(parser, "model")["config"], f"{parser}/model.json: config")
            runs.append(HeadsRun(system or system_of(config), config.train.seed, parser))
    if not runs or len({run[:2] for run in runs}) < len(runs):
        problem = f"two runs have the same system and seed, or there is none: {', '.join(map(str, places))}"
        raise ParameterError(problem, remedy="Give trained runs, and name them apart: NAME=FOLDER.")
    return runs


def with_constituents(treebank: str, split: str, size: int) -> list[Sentence]:
    """Return `size` sentences from all over a split; 0 means all. Raises CorpusError if one has no constituents."""
    sentences = subset(load(treebank, split).sentences, size)
    if any(sentence.constituents is None for sentence in sentences):
        remedy = "Give a treebank with constituents, such as sample or ptb-sample."
        raise CorpusError("there are sentences without constituents", where=f"{treebank} {split}", remedy=remedy)
    return sentences


def system_of(config: Config) -> str:
    """Return the name of a parser that the user did not name."""
    if layer := layer_of(config.model):
        return layer.system(config.model)
    return f"none, {config.model.layers} self-attention layer{'s' * (config.model.layers > 1)}"


# ---------------------------------------------------------------- one parser


def measure(
    parser: Parser, gold: Sequence[Sentence], train: Sequence[Sentence], labels: Sequence[str], probed: int, rounds: int
) -> list[Row]:
    """Measure a parser as trained, under all controls, without the head of each label, and with the probes.

    The heads of labels and the probes are left out where the parts of heads are mixed, such as by a feed-forward after them.

    Args: gold: the sentences to parse. train: the sentences over which means are taken. labels: their heads are removed.
        probed: the number of sentences for the probes, spread evenly; 0: the controls alone. rounds: permutations of each
        attention.
    Raises: ModelError for a parser whose heads do not have one context each for a sentence.
    """
    trained = _parse(parser, gold)
    evaluations = {TRAINED: evaluate(gold, trained)}
    source = parser.attribution if layer_of(parser.config.model) and parser.attribution.attends else None
    rows: list[Row] = []
    weights = [p for p in parser.network.parameters() if p.requires_grad]
    for name, tensors in (("parameters", weights), ("head_parameters", source.weights() if source else [])):
        rows.append((TRAINED, "", name, sum(x.numel() for x in tensors)))
    if source:
        mean = source.mean(train)
        for name, hooks in source.controls(mean).items():
            with source.layer.hooked(**hooks):
                evaluations[name] = evaluate(gold, _parse(parser, gold))
        if probed and not source.mixed:
            found = source.explain(gold, gold=True).heads(mean.cpu().numpy())
            known = np.isfinite(found.by(found.norm)).all(1)  # labels that the parser knows
            found = found.where(found.spans["gold"].to_numpy(bool) & known)
            heads = {name: source.head_of(name, found) for name in labels if name in parser.vocab.label_index}
            before = by_label(gold, trained, APART, least=0)
            for label, head in heads.items():
                rows += _of_label(TRAINED, label, before)
                for name, hooks in source.without(head, mean).items():
                    with source.layer.hooked(**hooks):
                        counts = by_label(gold, _parse(parser, gold), APART, least=0)
                        rows += _of_label(name, label, counts)
            rows += _tops(found, heads)
            rows += _head_words(source, gold, heads)
            rows += _probes(source, subset(gold, probed), rounds)
    for name, evaluation in evaluations.items():
        summary = evaluation.summary()
        rows += [(name, "", key, summary[key]) for key in ("f1", "uas", "las") if summary[key] is not None]
    return rows


def _parse(parser: Parser, sentences: Sequence[Sentence]) -> list[Sentence]:
    return [prediction.sentence for prediction in parser.model.parse(sentences, threads=1)]


def _of_label(what: str, label: str, table: pd.DataFrame) -> Iterator[Row]:
    """Yield recall and F1 of a label, and of all other labels together.

    F1 is needed, too, because a head can lower the score of its label: without the head, the label is then found more often,
    also where it is wrong.
    """
    is_label = table["label"] == label
    for name, rows in (("", table[is_label]), ("_of_others", table[~is_label])):
        sums = rows[["matched", "gold", "predicted"]].sum()
        if sums["gold"]:
            yield what, label, f"recall{name}", 100 * sums["matched"] / sums["gold"]
            yield what, label, f"label_f1{name}", 200 * sums["matched"] / (sums["gold"] + sums["predicted"])


def _tops(found: Contributions, heads: dict[str, int]) -> Iterator[Row]:
    """Yield the number of each label's head, and how often it leads spans of the label, against all spans (lift)."""
    top = found.top(found.norm)
    for label, head in heads.items():
        share = 100 * (top[found.labelled(label)] == head).mean()
        overall = 100 * (top == head).mean()
        yield TRAINED, label, "head", head
        yield TRAINED, label, "top_share", share
        yield TRAINED, label, "top_share_of_all", overall
        yield TRAINED, label, "lift", share / overall if overall else np.nan


def _head_words(source: Explainer, gold: Sequence[Sentence], heads: dict[str, int]) -> Iterator[Row]:
    """Yield the percent of a label's spans in which the most attended word is the head word by the dependencies.

    The rows are for the label's head, for the mean and the best of the other heads, and by chance. Spans have two words or
    more. If k words have the same attention, each counts 1/k. Sentences whose two layers are not one tree are left out.
    """
    words = [_head_of(sentence) for sentence in gold]
    hits: dict[str, list[np.ndarray]] = {label: [] for label in heads}
    chance: dict[str, list[float]] = {label: [] for label in heads}
    for b, (start, end, label), weights in _attention(source, gold):
        if label in hits and (start, end) in words[b]:
            best = np.isclose(weights, weights.max(-1, keepdims=True), rtol=1e-6, atol=0)
            hits[label].append(best[:, words[b][start, end] - 1 - start] / best.sum(-1))
            chance[label].append(1 / (end - start))
    for label, head in heads.items():
        if hits[label]:
            shares = 100 * np.mean(hits[label], axis=0)
            others = np.delete(shares, head)
            yield TRAINED, label, "on_head_word", shares[head]
            yield TRAINED, label, "on_head_word_chance", 100 * float(np.mean(chance[label]))
            if len(others):
                yield TRAINED, label, "on_head_word_other_heads", others.mean()
                yield TRAINED, label, "on_head_word_best_other", others.max()


def _views(source: Explainer, gold: Sequence[Sentence]) -> Iterator[tuple[list[tuple[int, Span]], AttentionView]]:
    """Yield views of some sentences, with their gold spans of two words or more: number of the sentence, span."""
    spans = [[span for span in in_sentence if span[1] - span[0] > 1] for in_sentence in gold_spans(gold)]
    for some in in_order(range(len(gold)), VIEWED):
        if places := [(b, span) for b in some for span in spans[b]]:
            yield places, source.view([gold[b] for b in some], spans=[spans[b] for b in some], examples=some)


def _attention(source: Explainer, gold: Sequence[Sentence]) -> Iterator[tuple[int, Span, np.ndarray]]:
    """Yield the attention of all heads to the words of each gold span: number of the sentence, span, [heads, words]."""
    for places, view in _views(source, gold):
        weights = view.weights[:, :, 0].cpu().numpy()
        for k, (b, (start, end, label)) in enumerate(places):
            # An example of the view is a span, or a sentence with START.
            one = weights[k, :, : end - start] if source.head_labels else weights[b % VIEWED, :, start + 1 : end + 1]
            yield b, (start, end, label), one


def _head_of(sentence: Sentence) -> dict[tuple[int, int], int]:
    try:
        return {(span.start, span.end): span.head for span in to_joint(sentence)}
    except JointError:
        return {}


def _probes(source: Explainer, gold: Sequence[Sentence], rounds: int) -> Iterator[Row]:
    """Yield the measures of the shared probes on all heads together: means over gold spans of two words or more."""
    tables = [ask(view, rounds) for _, view in _views(source, gold)]
    if not tables:
        raise LalkitError("no constituent has two words", remedy="Probe more sentences.")
    table = pd.concat(tables)
    for name, values in table.groupby("measure", sort=False)["value"]:
        yield "probe", "", name, values.mean()
    erased = table.loc[table["measure"] == "erased", "value"]
    yield "probe", "", "never_erased", (erased == 1).mean()


# ---------------------------------------------------------------- all parsers


def compare_heads(
    runs: Sequence[HeadsRun], treebank: str, split: str = "test", *,
    sentences: int = 0, probed: int = 40, rounds: int = 20, keep: str | Path | None = None,
) -> Compared:  # fmt: skip
    """Measure every run on a split of a treebank, and test the differences.

    Args: runs: the first run's system is the one that the others are tested against. sentences: the number of sentences, spread
        evenly over the split; 0 means all. probed: the number of sentences for the probes. rounds: permutations of each
        attention. keep: a folder for the measurements of each run.
    Raises: LalkitError, with the run's folder, if its heads do not have one context each; and for sentences without
        constituents.
    """
    gold = with_constituents(treebank, split, sentences)
    train = subset(load(treebank, "train").sentences, MEANS)
    # The most frequent labels of gold constituents, without unary chains.
    names = pd.Series([c.label for s in gold for c in s.constituents if "::" not in c.label])
    labels = list(names.value_counts().index[:LABELS])
    # The measurements depend on the parser and on these.
    common = [[repr(s) for s in gold], [repr(s) for s in train], labels, probed, rounds, code_hash()]
    rows = []
    for run in runs:
        file = Path(keep or "") / f"{json_hash([fingerprint(run.folder), common])[:16]}.json"
        kept = find_json(file, nan=True) if keep else None
        logger.info("%s, seed %s ...%s", run.system, run.seed, " measured before" if kept else "")
        if kept:
            measured = kept["rows"]
        else:
            try:
                measured = measure(Parser.load(run.folder), gold, train, labels, probed, rounds)
            except LalkitError as error:
                raise error.at(str(run.folder)) from None
            if keep:
                write_json(file, {"rows": [(*row[:3], float(row[3])) for row in measured]})
        rows += [(run.system, run.seed, *row) for row in measured]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    return Compared(table, tests(table))


def tests(table: pd.DataFrame) -> pd.DataFrame:
    """Test every control against the parser as trained, and every other system against the first one, over the runs.

    A control belongs to its run, so the test is of pairs (t over the seeds). Two systems have different runs: Welch's test.

    Args: table: of `COLUMNS`.
    Returns: family (control, system), system, what (the control, or the other system), measure, runs, difference (points: the
        system as trained less `what`), low and high (its 95 % interval), p, equal_p (of the test that the difference is within
        `MARGIN`; for systems), p_holm (corrected within the family). With one run there is a difference alone.
    """
    scores = table[(table["label"] == "") & table["measure"].isin(TESTED)]
    scores = scores.pivot_table(index=["measure", "system", "what"], columns="seed", values="value", sort=False)
    systems, rows = list(table["system"].unique()), []
    known = [pair for pair in product(TESTED, systems) if (*pair, TRAINED) in scores.index]
    for measure_, system in known:
        trained = scores.loc[(measure_, system, TRAINED)]
        common = {"measure": measure_, "runs": int(trained.notna().sum())}
        for what, changed in scores.loc[(measure_, system)].drop(index=TRAINED).iterrows():
            found = vars(paired_test(trained, changed))
            rows.append({"family": "control", "system": system, "what": what} | common | found)
        if system != systems[0] and (measure_, systems[0]) in known:
            found = vars(welch(scores.loc[(measure_, systems[0], TRAINED)].dropna(), trained.dropna(), MARGIN))
            rows.append({"family": "system", "system": systems[0], "what": system} | common | found)
    tested = pd.DataFrame(rows).reindex(columns=TESTS).sort_values("family", kind="stable", ignore_index=True)
    for _, known in tested[tested["p"].notna()].groupby("family"):
        tested.loc[known.index, "p_holm"] = holm(known["p"])
    return tested


# ---------------------------------------------------------------- the report

FIRST = "Means over seeds (± standard deviation). The tests are over the runs, see `lalkit.studies.label_heads.tests`."
SIZES = {"f1": "F1", "uas": "UAS", "las": "LAS", "parameters": "weights", "head_parameters": "of the heads"}
REMOVED = {
    "label_f1": "F1", "label_f1_of_others": "F1 of others", "recall": "recall", "recall_of_others": "recall of others",
}  # fmt: skip
HEADS = {
    "top_share": "top %", "lift": "lift", "on_head_word": "on head word",
    "on_head_word_chance": "chance", "on_head_word_other_heads": "other heads", "on_head_word_best_other": "best other",
}  # fmt: skip
PROBES = {
    "tvd": "permuted: TVD", "tvd_uniform": "uniform: TVD", "erased": "erased by attention", "erased_random": "at random",
    "never_erased": "never changes",
}  # fmt: skip


def write(table: pd.DataFrame, tested: pd.DataFrame, out: str | Path, title: str) -> list[Path]:
    """Write tests.csv, the page heads.md and, last, table.csv into a folder."""
    return [
        write_text(Path(out, "tests.csv"), tested.to_csv(index=False, float_format="%.6g")),
        write_text(Path(out, "heads.md"), page(table, tested, title)),
        write_text(Path(out, "table.csv"), table.to_csv(index=False)),  # it means that the study has ended
    ]


def page(table: pd.DataFrame, tests: pd.DataFrame, title: str) -> str:
    """Return a page in Markdown: means over seeds, with the standard deviation (n - 1) if there are several."""
    return render("reproduce/report.md.jinja", title=title, first=FIRST, parts=summaries(table, tests))


def summaries(table: pd.DataFrame, tests: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the tables of the page by their titles, with cells as text; those without a row are left out."""
    whole, labelled = table[table["label"] == ""], table[table["label"] != ""]
    scores, removed = whole[whole["measure"] == "f1"], labelled[labelled["measure"].isin(REMOVED)]
    scores = scores.assign(measure=scores["what"])
    removed = removed.assign(measure=removed["measure"].map(REMOVED) + ", " + removed["what"])
    removals = [f"{name}, {what}" for name in REMOVED.values() for what in removed["what"].unique()]
    parts = {
        "Systems": _means(whole[whole["what"] == TRAINED], ["system"], SIZES),
        "F1 with other attention or contexts at test": _means(scores, ["system"], scores["what"].unique()),
        "Label heads": _means(labelled[labelled["what"] == TRAINED], ["label", "system"], HEADS),
        "A label without its head": _means(removed, ["label", "system"], removals),
        "Probes of attention (gold spans)": _means(table[table["what"] == "probe"], ["system"], PROBES),
        "Tests": tests.round(3),
    }
    return {name: part for name, part in parts.items() if len(part)}


def _means(table: pd.DataFrame, by: list[str], measures: Iterable[str]) -> pd.DataFrame:
    """Return a row for each group and a column for each measure, with cells as text. A dictionary names the columns."""
    table = table[table["measure"].isin([*measures])]
    table = table.assign(**{column: pd.Categorical(table[column], table[column].unique()) for column in by})
    cells = table.groupby([*by, "measure"], observed=True)["value"].agg(_cell).unstack(fill_value="").reset_index()
    names = measures if isinstance(measures, dict) else {}
    return cells[[*by, *(m for m in measures if m in cells)]].rename(columns=names).rename_axis(columns=None)


def _cell(values: pd.Series) -> str:
    mean, sd = values.mean(), values.std()
    if not np.isfinite(mean):
        return ""
    digits = 0 if abs(mean) >= 1000 else 1 if abs(mean) >= 10 else 2
    return f"{mean:,.{digits}f}" + (f" ± {sd:,.{digits}f}" if sd > 1e-9 else "")
