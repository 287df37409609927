"""What a parser is asked in one line: the tables agree with what they gather, and changes of label heads hold in their block."""

import math

import pandas as pd
import pytest
import torch

import lalkit
from lalkit.errors import LalkitError, ModelError, ParameterError
from lalkit.interpret.source import parsed_spans

TEXT = "The clerk counted the ballots in the hall ."
FIRST = ["sentence", "id", "start", "end", "label", "text", "head_word", "gold"]


@pytest.fixture(scope="module")
def parsers(tiny_parser, tiny_span_parser):
    """Both layers. Barely trained weights are made larger, so that a change can be seen."""
    both = {"paper": lalkit.load(tiny_parser), "span": lalkit.load(tiny_span_parser)}
    with torch.no_grad():
        for weight in (both["span"].network.spans.query, both["span"].network.spans.evidence.weight):
            weight.mul_(6)
        both["paper"].network.spans.second.weight.mul_(6)
    return both


@pytest.fixture(params=["paper", "span"])
def parser(parsers, request):
    return parsers[request.param]


@pytest.fixture
def treebank():
    return lalkit.Treebank.load("sample", "train")[:6]


def tables(parser, texts):
    return {
        "contributions": parser.contributions(texts),
        "attention": parser.attention(texts),
        "top_heads": parser.top_heads(texts, count=2),
    }


def test_every_table_has_the_words(parser, treebank):
    results = parser.parse_all(treebank)
    for name, table in tables(parser, treebank).items():
        assert list(table.columns[:8]) == FIRST, name
        for row in table.drop_duplicates(["sentence", "start", "end"]).itertuples():
            sentence, gold = results[row.sentence].sentence, treebank[row.sentence]
            assert row.id == gold.id and row.text == " ".join(gold.words[row.start : row.end])
            heads = [i for i in range(row.start, row.end) if not row.start < sentence.heads[i] <= row.end]
            assert row.head_word == gold.words[heads[0]]
            if row.label is not None:
                assert row.gold == ((row.start, row.end, row.label) in gold.constituents)
    assert tables(parser, TEXT)["contributions"]["gold"].isna().all(), "no tree was given"


def test_the_values_are_those_of_the_layer(parsers, treebank):
    looks = parsers["paper"].look(list(treebank))
    table = parsers["paper"].contributions(treebank, "share")
    assert table["value"].to_numpy() == pytest.approx(
        [v for look in looks for row in abs(look.raw) for v in row / row.sum()], rel=1e-4
    )
    table = parsers["span"].contributions(treebank)
    scores = table.groupby(["sentence", "start", "end"])["value"].sum()
    spans = [(place, *span) for place, look in enumerate(parsers["span"].terms(list(treebank))) for span in look.spans]
    for place, start, end, label in spans:
        rows = table[(table["sentence"] == place) & (table["start"] == start) & (table["end"] == end)]
        assert [parsers["span"].vocab.labels[head + 1] for head in rows["head"]] == [label] * len(rows)
    seen = [parsers["span"].parse(s) for s in treebank]
    wanted = [result.parser.attribution.score(result.terms, span) for result in seen for span in result.terms.spans]
    assert scores.to_numpy() == pytest.approx([w for _, w in sorted(zip([s[:3] for s in spans], wanted))], abs=1e-4)


def test_the_attention_is_of_sentences_or_of_spans(parsers, treebank):
    paper, span = (parsers[name].attention(treebank) for name in ("paper", "span"))
    assert paper.groupby(["sentence", "head"])["attention"].sum().to_numpy() == pytest.approx(1, abs=1e-5)
    assert span.groupby(["sentence", "start", "end"])["attention"].sum().to_numpy() == pytest.approx(1, abs=1e-5)
    assert list(paper.columns) == list(span.columns)
    inside = parsers["paper"].attention(treebank, "NP")
    assert (inside["position"] > inside["start"]).all() and (inside["position"] <= inside["end"]).all()
    keys = ["sentence", "head", "position"]
    both = inside.merge(paper, on=keys, suffixes=("", "_all"))
    assert len(both) == len(inside) and (both["attention"] == both["attention_all"]).all()
    assert set(inside["label"]) == set(parsers["span"].attention(treebank, "NP")["label"]) == {"NP"}


def test_top_heads_lead(parser, treebank):
    top, every = parser.top_heads(treebank, "NP", count=2), parser.top_heads(treebank, count=99)
    assert set(top["label"]) == {"NP"} and (top["rank"].to_numpy().reshape(-1, 2) == [1, 2]).all()
    if not parser.attribution.head_labels:
        wanted = parser.contributions(treebank).groupby(["sentence", "start", "end"], sort=False)["value"].max()
        assert every[every["rank"] == 1]["value"].to_numpy() == pytest.approx(wanted.to_numpy())
    else:
        assert [parser.vocab.labels[head + 1] for head in top["head"]] == top["head_label"].tolist()
    assert len(every) == parser.attribution.heads * sum(
        len(parsed_spans(r.prediction)) for r in parser.parse_all(treebank)
    )


def test_errors_name_the_head_word(parser, treebank):
    table, parses = parser.errors(treebank), [result.sentence for result in parser.parse_all(treebank)]
    for row in table[table["class"] == "wrong arc"].itertuples():
        head = parses[row.sentence].heads[row.end - 1]
        assert row.head_word == treebank[row.sentence].words[head - 1] if head else pd.isna(row.head_word)
    for row in table[table["class"] == "missing"].itertuples():
        assert row.head_word in row.text.split()
    assert len(table)


def test_a_result_has_the_same_tables(parser, treebank):
    result = parser.parse(treebank[0])
    pd.testing.assert_frame_equal(result.contributions(), parser.contributions(treebank[:1]))
    pd.testing.assert_frame_equal(result.attention(), parser.attention(treebank[0]))


def test_wrong_questions(parser):
    for ask, says in (
        (lambda: parser.attention(TEXT, "ZZ"), "no constituent is labelled 'ZZ'\n.*Labels here: "),
        (lambda: parser.top_heads(TEXT, "ZZ"), "no constituent is labelled 'ZZ'"),
        (lambda: parser.top_heads(TEXT, count=0), "count is 0"),
        (lambda: parser.contributions(TEXT, "most"), "no norm 'most'"),
        (lambda: parser.contributions(pd.Series(["One", None], ["a", "b"])), "row b: sentence 2: the text is missing"),
    ):
        with pytest.raises(LalkitError, match=says):
            ask()


# ---------------------------------------------------------------- changes of label heads


def changes(parser, treebank):
    return {
        "without": lambda: parser.without(heads=range(parser.attribution.heads)),
        "mean": lambda: parser.with_contexts("mean", of=treebank),
        "uniform": lambda: parser.with_contexts("uniform"),
        "swapped": lambda: parser.with_contexts("swapped", of="It rained all night ."),
        "function": lambda: parser.with_contexts(torch.zeros_like, heads=[1, 2]),
    }


EXPLAINED = {
    "explain": lambda r: r.explain(),
    "explore": lambda r: r.explore(),
    "contributions": lambda r: r.contributions(),
    "attention": lambda r: r.attention(),
    "readings": lambda r: r.readings,
    "confidence": lambda r: r.confidence(),
    "margin": lambda r: r.margin,
    "alternatives": lambda r: r.alternatives(2),
}


@pytest.mark.parametrize("change", ["without", "mean", "uniform", "swapped", "function"])
def test_an_explanation_belongs_to_the_network_that_parsed(parser, treebank, change):
    before, changed = parser.parse(TEXT), changes(parser, treebank)[change]
    with changed():
        inside, also_inside = parser.parse(TEXT), parser.parse(TEXT)
        assert inside.score != before.score and "changed at" in repr(parser)
        for name, explain in EXPLAINED.items():
            with pytest.raises(ModelError, match="changed since it parsed"):
                explain(before)
            assert explain(also_inside) is not None, name
        pd.testing.assert_frame_equal(also_inside.contributions(), parser.contributions(TEXT))
        assert also_inside.readings.best.score == pytest.approx(inside.score, abs=1e-4)
    assert "changed at" not in repr(parser)
    for name, explain in EXPLAINED.items():
        with pytest.raises(ModelError, match="changed since it parsed"):
            explain(inside)
        assert explain(before) is not None, name
    # What was asked inside the block stays what it was; readings that come from it belong to the changed network, too.
    assert also_inside.contributions() is not None
    for reading in also_inside.alternatives(2):
        with pytest.raises(ModelError, match="changed since it parsed"):
            reading.confidence()
    with changed(), pytest.raises(ModelError, match="changed since it parsed"):  # a new change, although it is alike
        inside.explain()


def test_the_same_hook_set_again_explains(parser):
    hooks = {parser.attribution.passed_on: lambda value, *context: value * 0.5}
    with parser.attribution.layer.hooked(**hooks):
        inside = parser.parse(TEXT)
    with parser.attribution.layer.hooked(**hooks):
        assert inside.explain() and inside.readings


def test_nested_changes_all_hold(parser):
    half, whole = (lambda value: value * 0.5), (lambda value: value + 1)
    with parser.with_contexts(half):
        outer = parser.parse(TEXT)
        with parser.with_contexts(whole):
            both = parser.parse(TEXT)
            with pytest.raises(ModelError):
                outer.explain()
        assert outer.explain() and parser.parse(TEXT).score == outer.score
        with pytest.raises(ModelError):
            both.explain()
    with parser.with_contexts(lambda value: value * 0.5 + 1):
        assert parser.parse(TEXT).score == pytest.approx(both.score, abs=1e-5)
    with parser.without(heads=1), parser.without(heads=[2]):
        twice = parser.parse(TEXT).score
    with parser.without(heads=[1, 2]):
        assert parser.parse(TEXT).score == pytest.approx(twice, abs=1e-5)


def test_what_depends_on_the_rest_of_the_batch_is_not_explained(parser):
    """Scored again, the sentence is alone. A function that mixes sentences then gives other scores."""
    with parser.with_contexts(lambda value: value.roll(1, 0) if len(value) > 1 else value):
        result, _ = parser.parse_all([TEXT, "They say it will rain all night long there ."])
        for explain in EXPLAINED.values():
            with pytest.raises(ModelError, match="changed since it parsed"):
                explain(result)


def test_only_the_chosen_heads_change(parser, treebank):
    seen = []

    def remember(value, *context):
        seen.append(value.clone())
        return value

    axis = 1 if parser.attribution.passed_on == "contexts" else 2
    hooks = {parser.attribution.passed_on: remember}
    for change in (lambda: parser.with_contexts("mean", heads=[1, 3], of=treebank), lambda: parser.without([])):
        with change(), parser.attribution.layer.hooked(**hooks):
            parser.parse(TEXT)
    different = (seen[0] != seen[1]).movedim(axis, 0).flatten(1).any(1)
    assert different.nonzero().flatten().tolist() == [1, 3]
    put = seen[0].select(axis, 3)[0]
    torch.testing.assert_close(put, parser.attribution.mean(treebank)[3].to(put).expand_as(put))


def test_swapped_contexts_are_those_of_the_other_sentence(parser):
    with parser.with_contexts("swapped", of=TEXT):
        (there,) = parser.contributions(TEXT)["value"].groupby(lambda _: 0).sum()
    (here,) = parser.contributions(TEXT)["value"].groupby(lambda _: 0).sum()
    assert there == pytest.approx(here, abs=1e-3), "a sentence swapped with itself"


def test_heads_are_named_by_their_labels(parsers):
    with parsers["span"].without(heads="NP"):
        by_label = parsers["span"].parse(TEXT).score
    with parsers["span"].without(heads=parsers["span"].vocab.label_index["NP"] - 1):
        assert parsers["span"].parse(TEXT).score == by_label
    with pytest.raises(ParameterError, match="head must be a whole number, not 'NP'"), parsers["paper"].without("NP"):
        pass


def test_wrong_changes(parser):
    wrong = (
        (lambda: parser.without(heads=[0, 999]), "head is 999\n.*Give 0 to"),
        (lambda: parser.with_contexts("uniform", heads=-1), "head is -1"),
        (lambda: parser.with_contexts("bogus"), "no contexts 'bogus'\n.*uniform, mean, swapped"),
        (lambda: parser.with_contexts("mean"), "need sentences to take them from\n.*of="),
    )
    for change, says in wrong:
        with pytest.raises(LalkitError, match=says), change():
            pass
    for function in (lambda value: value[:, :1, :1], lambda value: None):
        with parser.with_contexts(function), pytest.raises(LalkitError, match="the function returned"):
            parser.parse(TEXT)
    assert math.isfinite(parser.parse(TEXT).score)
