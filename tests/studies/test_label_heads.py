"""Runs of both layers are compared under the same controls: the numbers agree with a direct computation."""

import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lalkit.api import Parser
from lalkit.errors import LalkitError
from lalkit.evaluation.scores import by_label, evaluate
from lalkit.studies import label_heads
from lalkit.studies.label_heads import TRAINED, HeadsRun, compare_heads, measure, read_runs
from lalkit.studies.label_heads import tests as make_tests
from lalkit.treebank.brackets import parse_tree
from lalkit.treebank.corpora import build, load
from lalkit.treebank.joint import to_joint

LABELS = ["NP", "VP"]


@pytest.fixture(scope="module")
def gold():
    return load("sample", "dev").sentences[:10]


@pytest.fixture(scope="module")
def comparison(tiny_parser, tiny_span_parser):
    """The span parser twice, as two seeds would be: whatever differs between them is a mistake."""
    runs = [
        HeadsRun("paper", 1, tiny_parser), HeadsRun("span", 1, tiny_span_parser), HeadsRun("span", 2, tiny_span_parser)
    ]  # fmt: skip
    return compare_heads(runs, "sample", "dev", sentences=10, probed=4, rounds=3)


def values(comparison, system, **where):
    table = comparison.table[(comparison.table["system"] == system) & (comparison.table["seed"] == 1)]
    for column, value in where.items():
        table = table[table[column] == value]
    return table.set_index("measure")["value"]


def test_scores_as_trained_are_those_of_evaluation(comparison, tiny_span_parser):
    gold = load("sample", "dev").sentences  # ten of them, evenly spread
    gold = [gold[i * len(gold) // 10] for i in range(10)]
    parser = Parser.load(tiny_span_parser)
    summary = evaluate(gold, [r.sentence for r in parser.parse_all(gold)]).summary()
    own = values(comparison, "span", what=TRAINED, label="")
    assert [own[key] for key in ("f1", "uas", "las")] == pytest.approx([summary[key] for key in ("f1", "uas", "las")])
    spans = parser.network.spans
    sizes = [spans.key.weight, spans.query, spans.evidence.weight]
    assert own["head_parameters"] == sum(p.numel() for p in sizes) < own["parameters"]


def test_a_head_out_is_evidence_of_zero(tiny_span_parser, gold):
    """The head's evidence really gone from the weights, against what the table says."""
    parser = Parser.load(tiny_span_parser)
    table = measured(parser, gold, ["NP"])
    parser.network.spans.evidence.weight.data[parser.vocab.label_index["NP"] - 1] = 0
    counts = by_label(gold, [r.sentence for r in parser.parse_all(gold)]).set_index("label")
    assert table["head out", "NP", "recall"] == pytest.approx(counts.loc["NP", "recall"])
    assert table["head out", "NP", "label_f1"] == pytest.approx(counts.loc["NP", "f1"])
    others = counts.drop(index="NP")[["matched", "gold", "predicted"]].sum()
    wanted = 200 * others.matched / (others.gold + others.predicted)
    assert table["head out", "NP", "label_f1_of_others"] == pytest.approx(wanted)


def test_labels_that_evalb_takes_as_equal_are_counted_apart():
    """ADVP is not found by PRT's head; and what is found where gold has none of that label counts against the others."""
    trees = ("(S (VP (V a) (PRT (R b)) (ADVP (R c))))", "(S (VP (V a) (PRT (R b)) (X (R c))))")
    gold, found = ([build(parse_tree(tree), None, "1")] for tree in trees)
    table = by_label(gold, found, label_heads.APART, least=0).set_index("label")
    assert table["matched"].to_dict() == {"S": 1, "VP": 1, "PRT": 1, "ADVP": 0, "X": 0}
    assert table["predicted"].sum() == 4 and table.loc["X", ["gold", "predicted"]].tolist() == [0, 1]
    assert "PRT" not in set(by_label(gold, found)["label"])


def measured(parser, gold, labels=LABELS):
    return {row[:3]: row[3] for row in measure(parser, gold, gold, labels, 2, 2)}


@pytest.mark.parametrize("layer", ["paper", "span"])
def test_head_words_and_top_shares_agree_with_a_direct_count(layer, tiny_parser, tiny_span_parser, gold):
    parser = Parser.load(tiny_parser if layer == "paper" else tiny_span_parser)
    source = parser.attribution
    contributions = source.explain(gold, gold=True).heads()
    contributions = contributions.where(contributions.spans["gold"].to_numpy(bool))
    attention = [*label_heads._attention(source, gold)]
    assert [(b, span) for b, span, _ in attention] == [
        (b, (c.start, c.end, c.label)) for b, s in enumerate(gold) for c in s.constituents if c.end - c.start > 1
    ]
    table = measured(parser, gold)
    for label in LABELS:
        head, hits, chance = source.head_of(label, contributions), [], []
        if layer == "span":
            assert parser.vocab.labels[head + 1] == label
        for b, (start, end, name), weights in attention:
            if name == label:
                word = next(s.head for s in to_joint(gold[b]) if (s.start, s.end) == (start, end))
                hits.append(start + 1 + int(weights[head].argmax()) == word)
                chance.append(1 / (end - start))
        assert table[TRAINED, label, "on_head_word"] == pytest.approx(100 * np.mean(hits))
        assert table[TRAINED, label, "on_head_word_chance"] == pytest.approx(100 * np.mean(chance))
        top = contributions.top(contributions.norm)
        own = (contributions.spans["label"] == label).to_numpy()
        assert table[TRAINED, label, "top_share"] == pytest.approx(100 * (top[own] == head).mean())


def test_uniform_heads_look_at_the_head_word_by_chance(tiny_span_parser, gold):
    parser = Parser.load(tiny_span_parser)
    parser.network.spans.query.data.zero_()
    table = measured(parser, gold)
    for label in LABELS:
        assert table[TRAINED, label, "on_head_word"] == pytest.approx(table[TRAINED, label, "on_head_word_chance"])
    assert table["uniform attention", "", "f1"] == table[TRAINED, "", "f1"]
    assert table["probe", "", "tvd"] == pytest.approx(0, abs=1e-6)
    assert table["probe", "", "tvd_uniform"] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(("model", "system"), [
    ({"label_attention": "none"}, "none, 1 self-attention layer"),
    ({"label_attention": "none", "span_attention": {"boundary": "full", "attention": "none"}}, "span full, no attention"),
])  # fmt: skip
def test_a_parser_without_label_attention_has_scores_alone(trained, gold, model, system):
    folder = trained(**model)
    table = measured(Parser.load(folder), gold)
    assert {what for what, *_ in table} == {TRAINED}
    assert table[TRAINED, "", "head_parameters"] == 0
    assert [run.system for run in read_runs([str(folder)])] == [system]


def test_tests_are_over_the_runs():
    """Controls by pairs of a seed, systems by Welch; what a run alone cannot tell is empty."""
    f1 = {("a", TRAINED): [90.0, 91.0, 92.0], ("a", "zeroed"): [89.0, 90.5, 91.0], ("b", TRAINED): [88.0, 90.0, 89.5]}
    rows = [
        (system, seed, what, "", measure, value - (measure == "uas"))
        for (system, what), values in f1.items()
        for seed, value in enumerate(values, 1)
        for measure in ("f1", "uas")
    ]
    found = make_tests(pd.DataFrame(rows, columns=list(label_heads.COLUMNS))).set_index(["family", "measure"])
    control, system = found.loc[("control", "f1")], found.loc[("system", "f1")]
    pairs = stats.ttest_rel(f1["a", TRAINED], f1["a", "zeroed"])
    welch = stats.ttest_ind(f1["a", TRAINED], f1["b", TRAINED], equal_var=False)
    assert (control["what"], control["runs"], control["difference"]) == ("zeroed", 3, pytest.approx(2.5 / 3))
    assert (system["system"], system["what"]) == ("a", "b")
    assert control["p"] == pytest.approx(pairs.pvalue) and system["p"] == pytest.approx(welch.pvalue)
    interval = welch.confidence_interval()
    assert [system["low"], system["high"]] == pytest.approx([interval.low, interval.high])
    assert control["p_holm"] == pytest.approx(min(1, 2 * pairs.pvalue)), "two measures, one family"
    first = pd.DataFrame(rows, columns=list(label_heads.COLUMNS)).query("seed == 1")
    one = make_tests(first[(first["measure"] == "f1") | (first["system"] == "a")])
    assert one.groupby("family")["measure"].agg(set).to_dict() == {"control": {"f1", "uas"}, "system": {"f1"}}
    assert one["difference"].notna().all() and one["p_holm"].isna().all()


def test_the_files(comparison, tmp_path):
    paths = label_heads.write(*comparison, tmp_path, "Heads")
    assert [path.name for path in paths] == ["tests.csv", "heads.md", "table.csv"], "the last one means: it has ended"
    written = pd.read_csv(paths[-1], keep_default_na=False, na_values={"value": [""]})
    pd.testing.assert_frame_equal(written, comparison.table, check_dtype=False)


def test_kept_measurements_are_not_repeated(tmp_path, tiny_parser, tiny_span_parser, monkeypatch):
    runs = [HeadsRun("paper", 1, tiny_parser), HeadsRun("span", 1, tiny_span_parser)]
    asked = {"treebank": "sample", "split": "dev", "sentences": 3, "probed": 1, "rounds": 2}
    measured = []
    monkeypatch.setattr(label_heads, "measure", lambda parser, *others: measured.append(1) or measure(parser, *others))
    first = compare_heads(runs[:1], **asked, keep=tmp_path)
    both = compare_heads(runs, **asked, keep=tmp_path)
    assert len(measured) == 2
    pd.testing.assert_frame_equal(both.table[both.table["system"] == "paper"], first.table)
    next(tmp_path.iterdir()).write_text("{half")
    compare_heads(runs, **asked, keep=tmp_path)
    compare_heads(runs[1:], **{**asked, "rounds": 3}, keep=tmp_path)
    assert len(measured) == 4


def test_runs_by_name_by_config_and_of_a_sweep(tiny_parser, tiny_span_parser, tmp_path, monkeypatch):
    runs = read_runs([f"the paper's={tiny_parser}", str(tiny_span_parser)])
    assert [(run.system, run.seed) for run in runs] == [("the paper's", 1), ("span glass", 1)]
    (tmp_path / "lr=2").symlink_to(tiny_span_parser)
    assert read_runs([str(tmp_path / "lr=2")]) == [("span glass", 1, tmp_path / "lr=2")]
    for places in ([str(tiny_span_parser)] * 2, ["nowhere"], []):
        pytest.raises(LalkitError, read_runs, places)
    (tmp_path / "runs" / "k1").mkdir(parents=True)
    (tmp_path / "runs" / "k1" / "parser").symlink_to(tiny_parser)
    (tmp_path / "sweep.json").write_text("{}")
    sweep = SimpleNamespace(axes=["heads"], runs=pd.DataFrame([{"heads": "paper", "run": "k1"}]))
    monkeypatch.setattr(label_heads, "read_sweep", lambda folder: sweep)
    assert [run.system for run in read_runs([str(tmp_path), f"ptb={tmp_path}"])] == ["paper", "ptb: paper"]


def test_mixed_heads_have_controls_alone(trained):
    found = compare_heads(read_runs([str(trained(feedforward=16))]), "sample", "dev", sentences=4)
    assert "zeroed" in set(found.tests["what"])


# ---------------------------------------------------------------- figures/heads

FOLDER = Path(__file__).resolve().parents[2] / "figures" / "heads"
HEADS = [pytest.param(path.parent, marks=[pytest.mark.slow] * (path.parent.name != "biomedical"))
         for path in sorted(FOLDER.glob("*/table.csv"))]  # fmt: skip


@pytest.mark.parametrize("folder", HEADS, ids=lambda folder: folder.name)
def test_the_tests_and_the_page_belong_to_their_table(folder):
    table = pd.read_csv(folder / "table.csv", keep_default_na=False, na_values={"value": [""]})
    tests = pd.read_csv(io.StringIO(make_tests(table).to_csv(index=False, float_format="%.6g")))  # as `write` does
    if (folder / "tests.csv").exists():
        pd.testing.assert_frame_equal(tests, pd.read_csv(folder / "tests.csv"), check_dtype=False, rtol=1e-4)
    text = (folder / "heads.md").read_text(encoding="utf-8")
    assert label_heads.page(table, tests, text.splitlines()[0][2:]) == text
