"""The explanations in words and the page to explore agree with the tables."""

import json

import pytest

from lalkit.api import Parser, ParseResult
from lalkit.draw import draw_tree
from lalkit.errors import LalkitError
from lalkit.interpret.contributions import contributions
from lalkit.interpret.paper_layer import notes
from lalkit.interpret.tables import profile


@pytest.fixture(scope="module")
def parser(tiny_parser):
    return Parser.load(tiny_parser)


@pytest.fixture(scope="module")
def result(parser):
    return parser.parse("The clerk counted the ballots in the hall.")


def test_the_text_names_the_top_head_and_its_most_attended_word(result):
    seen = result.look
    label = seen.spans[0][2]
    text = result.explain(label, top=2)
    first = text.split("\n\n")[0]
    values = seen.exact[0]
    head = int(values.argmax())
    assert f"most by label head {head} ({values[head]:+.2f})" in first and f"score {seen.scores[0]:.2f}" in first
    place = int(seen.attention[head].argmax())
    words = ["the start", *(f"“{w}”" for w in result.sentence.words), "the end"]
    assert f"attends most to {words[place]} ({seen.attention[head, place]:.0%})" in first
    assert first.startswith(
        f"{label} “{' '.join(result.sentence.words[seen.spans[0][0] : seen.spans[0][1]])}”, head word"
    )
    assert len(result.explain().split("\n\n")) == len(seen.spans)


def test_the_text_compares_with_a_corpus(parser, result, sample):
    counts = profile(contributions(parser.look(sample[:30])), "exact", "sample train")
    seen = result.look
    place, label = next((i, span[2]) for i, span in enumerate(seen.spans) if span[2] in counts["labels"])
    head, k = int(seen.exact[place].argmax()), counts["labels"].index(label)
    share = counts["led"][head][k] / counts["all"][k]
    text = parser.attribution.explain(seen, label, profile=counts)
    assert f"In sample train it is on top of {share:.0%} of {label}" in text
    assert "In sample" not in parser.attribution.explain(seen, label, norm="share", profile=counts), (
        "it counts by another norm"
    )


def test_tables_of_a_result(result):
    table = result.contributions("share")
    assert list(table.columns[-5:]) == ["head_word", "gold", "head", "norm", "value"]
    assert len(table) == 6 * len(result.look.spans)
    assert result.attention().groupby("head")["attention"].sum().to_numpy() == pytest.approx(1, abs=1e-5)


def test_unknown_labels_and_norms_are_refused(parser, result):
    with pytest.raises(LalkitError, match="there is no ZZ in this parse\n.*It has: "):
        result.explain("ZZ")
    with pytest.raises(LalkitError, match="top is 0\n.*1 or more"):
        result.explain(top=0)
    with pytest.raises(LalkitError, match="no norm 'most'"):
        result.explain(norm="most")
    with pytest.raises(LalkitError, match="not at hand"):
        ParseResult(result.prediction).explain()
    with pytest.raises(LalkitError, match="no sentence to show"):
        parser.attribution.page([], title="", model="")


def test_a_page_of_a_result(result, tmp_path):
    exploration = result.explore()
    assert "<iframe" in exploration._repr_html_()
    html = exploration.save(tmp_path / "page.html").read_text(encoding="utf-8")
    assert html == exploration.html and "ballots" in html
    marked = result.explore(gold=result.sentence).html
    assert marked != html
    for beside in (result, result.sentence):
        assert result.explore(beside=beside).html.count("<template data-pane=") == 2
    with pytest.raises(LalkitError, match="both given"):
        result.explore(gold=result.sentence, beside=result)


def test_the_data_of_a_page(parser, sample):
    gold = sample[:3]
    looks = parser.look(gold)
    data = parser.attribution.page(looks, title="Three", model="tiny", gold=gold)
    assert json.loads(json.dumps(data)) == data
    first = data["sentences"][0]
    assert first["words"] == list(gold[0].words) and len(first["attention"][0]) == len(gold[0]) + 2
    assert {(s["start"], s["end"], s["label"]) for s in first["spans"]} == set(looks[0].spans)
    assert first["spans"][0]["values"]["exact"] == pytest.approx(looks[0].exact[0], rel=1e-3, abs=1e-6)
    assert len(first["gold"]["spans"]) == len(gold[0].constituents) and first["gold"]["heads"] == list(gold[0].heads)
    assert data["norm"] == "exact" and data["norms"][0] == "raw"


def test_notes_for_a_tree_name_each_constituents_top_head(result):
    seen = result.look
    found, by_share = notes(seen), contributions([seen]).by("share")
    wanted = [place for place, (*_, label) in enumerate(seen.spans) if label != "<H>"]
    assert len(found) == len(wanted) > 3
    for place in wanted:
        row = by_share[place]
        assert found[seen.spans[place][:2]] == f"head {row.argmax()} {100 * row.max():.0f}%"
    drawing = draw_tree(result.sentence, found)
    assert all(f">{note}<" in drawing for note in found.values())
