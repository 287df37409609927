"""The reports of a treebank hold what the functions behind them return, for both layers of label attention."""

import pandas as pd
import pytest

from lalkit.api import Parser
from lalkit.evaluation.scores import evaluate
from lalkit.interpret.contributions import contributions
from lalkit.interpret.errors import missed
from lalkit.interpret.source import gold_spans
from lalkit.interpret.tables import top_shares
from lalkit.treebank.check import subset
from lalkit.treebank.corpora import load
from tests.command import lalkit

FEW = ("--treebank", "sample", "--split", "dev", "--sentences", "12")


@pytest.mark.parametrize("kind", ["tiny_parser", "tiny_span_parser"])
def test_the_report_of_heads(kind, request, tmp_path):
    model = request.getfixturevalue(kind)
    code, out, err = lalkit("report", "heads", model, *FEW, "--label", "NP", "--out", tmp_path)
    assert code == 0, err
    names = ["heads.csv", "labels.csv", "tags.csv", "means.csv", "report.txt"]
    assert [line.rpartition("/")[2] for line in out.split()] == names and len([*tmp_path.iterdir()]) == 5
    source = Parser.load(model).attribution
    looks = source.look(subset(load("sample", "dev").sentences, 12))
    heads, expected = pd.read_csv(tmp_path / "heads.csv"), top_shares(source.ranked(looks), source.top_norm, ["NP"])
    assert list(heads["norm"].unique()) == (["raw"] if kind == "tiny_span_parser" else ["minmax", "exact"])
    heads = heads[heads["norm"] == source.top_norm]
    assert heads["head"].tolist() == expected["head"].tolist() and set(heads["model"]) == {model.name}
    assert heads["share"].to_numpy() == pytest.approx(expected["share"].to_numpy(), rel=1e-4)
    # By hand: the attention of the head over the words of every NP, by the tag of the word.
    tags = pd.read_csv(tmp_path / "tags.csv").query("norm == @source.top_norm").set_index("tag")
    attention = source.attention_table(looks, "NP")
    attention = attention if source.head_labels else attention[attention["head"] == expected["head"].iloc[0]]
    sums = dict.fromkeys(tags.index, 0.0)
    for row in attention.itertuples():
        sums[looks[row.sentence].prediction.sentence.tags[row.position - 1]] += row.attention
    total = sum(sums.values())
    wanted = {tag: 100 * part / total for tag, part in sums.items()}
    assert tags["attention"].to_dict() == pytest.approx(wanted, rel=1e-4) and tags["words"].sum() == pytest.approx(100)
    text = (tmp_path / "report.txt").read_text()
    assert text.startswith("Label heads on sample dev\n")
    assert model.name in text and f" {heads['share'].iloc[0]:.2f} " in text


def test_the_report_of_several_parsers(tiny_parser, tiny_span_parser, tmp_path):
    code, _, err = lalkit("report", "heads", f"one={tiny_parser}", tiny_span_parser, *FEW, "--out", tmp_path)
    assert code == 0 and set(pd.read_csv(tmp_path / "heads.csv")["model"]) == {"one", tiny_span_parser.name}, err
    code, _, err = lalkit("report", "heads", tiny_parser, tiny_parser, *FEW, "--out", tmp_path / "twice")
    assert code == 2 and "the same name" in err and not (tmp_path / "twice").exists()


def test_the_report_of_errors(tiny_parser, tiny_span_parser, tmp_path):
    command = ["report", "errors", tiny_parser, tiny_span_parser, "--treebank", "sample", "--split", "dev"]
    code, _, err = lalkit(*command, "--trace", "The dog saw a cat", "--out", tmp_path)
    assert code == 0, err
    gold, parser = load("sample", "dev").sentences, Parser.load(tiny_parser)
    parses = [result.sentence for result in parser.parse_all(gold)]
    tables = {path.stem: pd.read_csv(path) for path in tmp_path.glob("*.csv")}
    assert set(tables) == {"errors", "classes", "by_label", "lengths", "missed", "roots", "traced"}
    both = {tiny_parser.name, tiny_span_parser.name}
    assert all(set(tables[name]["model"]) == both for name in ("errors", "classes", "by_label", "lengths"))
    for name in ("missed", "roots", "traced"):
        assert set(tables[name]["model"]) == {tiny_parser.name}, "heads stay apart"
    own = {name: table[table["model"] == tiny_parser.name] for name, table in tables.items()}
    assert own["classes"]["errors"].sum() == len(own["errors"]) > 0
    totals = evaluate(gold, parses).brackets
    assert own["by_label"][["gold", "matched"]].sum().tolist() == [totals.gold, totals.matched]
    assert own["lengths"]["sentences"].sum() == len(gold)
    looks = parser.look(gold, besides=gold_spans(gold))
    found = contributions(looks, gold)
    expected = missed(found, "minmax").set_index("label")["still"].to_dict()
    rows = own["missed"].query("norm == 'minmax' and among == 'relabelled'")
    assert rows.set_index("label")["still"].to_dict() == expected
    traced = own["traced"].query("norm == 'exact'")
    assert traced["rank"].tolist() == list(range(1, len(traced) + 1)) and traced["contribution"].is_monotonic_decreasing
    assert "Kinds of errors: classes.csv" in (tmp_path / "report.txt").read_text()
