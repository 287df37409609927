"""Questions in one line: tables agree with their sources, changes of label heads hold in their block, and the typed sentence."""

import json
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from copy import copy, deepcopy
from dataclasses import replace
from functools import partial
from itertools import chain, cycle, islice
from threading import Barrier

import numpy as np
import pandas as pd
import pytest
import torch

import lalkit
from lalkit.chart.constraints import SpanItem
from lalkit.draw.playground import TypedSentences
from lalkit.errors import LalkitError, ModelError, ParameterError
from lalkit.evaluation.scores import evaluate
from tests.draw.local_clients import HOSTILE, get, parse, send

TEXT = "She saw the man with the telescope ."
PLACE = ["sentence", "start", "end"]


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


@pytest.fixture(scope="module")
def treebank():
    return lalkit.Treebank.load("sample", "train")[:5]


@pytest.mark.parametrize("at", ["word", "boundary", "span", "head"])
def test_vectors_have_a_table_that_says_whose_they_are(parser, treebank, at):
    if at == "head" and parser.attribution.head_labels:
        with pytest.raises(ModelError, match="one context for a sentence"):
            parser.vectors(treebank, at)
        return
    (array, index), (alone, its) = parser.vectors(treebank, at, batch_words=60), parser.vectors(treebank[2], at)
    here = (index["sentence"] == 2).to_numpy()
    assert array[here] == pytest.approx(alone, abs=1e-4) and len(array) == len(index)
    assert its.drop(columns="sentence").equals(index[here].drop(columns="sentence").reset_index(drop=True))
    results = parser.parse_all(treebank)
    if at == "word":
        assert index["word"].tolist() == [word for sentence in treebank for word in sentence.words]
    elif at == "head":
        (values,) = parser.activations(treebank[2], "label_attention.contexts")
        assert alone == pytest.approx(values["label_attention.contexts"][0].numpy(), abs=1e-4)
    else:
        boundaries, of_boundaries = parser.vectors(treebank, "boundary")
        rows = {key: i for i, key in enumerate(zip(of_boundaries["sentence"], of_boundaries["boundary"]))}
        assert len(rows) == sum(len(sentence) + 1 for sentence in treebank)
        for k, row in enumerate(index.itertuples() if at == "span" else ()):
            wanted = boundaries[rows[row.sentence, row.end]] - boundaries[rows[row.sentence, row.start]]
            assert array[k] == pytest.approx(wanted, abs=1e-4)
            assert (row.start, row.end, row.label) in results[row.sentence].sentence.constituents


def test_a_parser_is_evaluated_in_one_line(parser, treebank):
    parses = [result.sentence for result in parser.parse_all(treebank)]
    wanted = evaluate(treebank, parses)
    table = parser.evaluate(treebank, batch_words=30, progress=True)
    assert table.iloc[0].to_dict() == pytest.approx(wanted.summary()) and table.index[0] == parser.info.get("name", "")
    pd.testing.assert_frame_equal(parser.evaluate(treebank, "sentence"), wanted.table())
    assert parser.evaluate(treebank, "length")["sentences"].sum() == len(treebank)
    assert "NP" in set(parser.evaluate(treebank, "label")["label"])
    with pytest.raises(LalkitError, match="no gold tree"):
        parser.evaluate(["It rained ."])


# ---------------------------------------------------------------- changes of label heads


def passed(parser):
    """The hook point of what the label heads pass on."""
    return "spans.evidence" if parser.attribution.head_labels else "label_attention.contexts"


CHANGES = {
    "without": lambda parser, others: parser.without(heads=range(parser.attribution.heads)),
    "mean": lambda parser, others: parser.patched({passed(parser): parser.attribution.mean(others)}),
    "self-attention": lambda parser, others: parser.patched({"encoder.0.contexts": torch.zeros_like}, words=2, heads=0),
}
EXPLAINED = [
    lambda r: r.explain(), lambda r: r.explore(), lambda r: r.explain(against="S"), lambda r: r.readings,
    lambda r: r.confidence(), lambda r: r.alternatives(2),
]  # fmt: skip


def refused(result):
    for explain in EXPLAINED:
        with pytest.raises(ModelError, match="changed since it parsed"):
            explain(result)


@pytest.mark.parametrize("change", CHANGES)
def test_an_explanation_belongs_to_the_network_that_parsed(parser, treebank, change):
    before, changed = parser.parse(TEXT), CHANGES[change]
    with changed(parser, treebank):
        inside, also_inside = parser.parse(TEXT), parser.parse(TEXT)
        assert inside.score != before.score and "changed at" in repr(parser)
        refused(before)
        assert all(explain(also_inside) is not None for explain in EXPLAINED)
        pd.testing.assert_frame_equal(also_inside.explain().table, parser.explain(TEXT).table)
        assert also_inside.readings.best.score == pytest.approx(inside.score, abs=1e-4)
    assert "changed at" not in repr(parser) and all(explain(before) is not None for explain in EXPLAINED)
    refused(inside)
    # An explanation from inside the block stays as it was; readings that come from it belong to the changed network, too.
    assert also_inside.explain() is not None
    for reading in also_inside.alternatives(2):
        with pytest.raises(ModelError, match="changed since it parsed"):
            reading.confidence()


def test_nested_changes_all_hold(parser):
    with parser.without(heads=1), parser.without(heads=[2]):
        twice = parser.parse(TEXT).score
    with parser.without(heads=[1, 2]):
        assert parser.parse(TEXT).score == pytest.approx(twice, abs=1e-5)


def test_changes_that_overlap_end_in_any_order_and_copies_have_none(parser):
    usual, first = parser.parse(TEXT), parser.without(heads=[0, 1, 2, 3])
    second = parser.patched({"words": torch.zeros_like})
    first.__enter__()
    alone = parser.parse(TEXT)
    second.__enter__()
    copies = [deepcopy(parser), pickle.loads(pickle.dumps(parser))]
    first.__exit__(None, None, None)
    only = parser.parse(TEXT).score
    second.__exit__(None, None, None)
    with parser.patched({"words": torch.zeros_like}):
        assert parser.parse(TEXT).score == only != alone.score
    for one in (parser, *copies):
        assert one.parse(TEXT).score == usual.score and "changed at" not in repr(one)
    refused(alone)
    generators = [iter(change) for change in (generate(parser, [0]), generate(parser, [1]))]
    for step in generators * 2:
        next(step, None)
    assert parser.parse(TEXT).score == usual.score and deepcopy(usual).explain()


def test_a_change_holds_in_its_own_thread(parser):
    """Eight threads at once, half of them inside a change: each result is that of one thread alone."""
    usual, without, zeroed = nullcontext(), parser.without([0, 1]), parser.patched({"words": torch.zeros_like})
    changes, all_inside = (usual, without, usual, zeroed), Barrier(8)

    def parses(change, wait=lambda: None):
        with change:
            wait()
            return [result.prediction for result in parser.parse_all([TEXT, "It rained .", TEXT] * 3)]

    alone = [parses(change) for change in changes] * 2
    with ThreadPoolExecutor(8) as threads, parser.without(heads=[2, 3]):
        assert list(threads.map(partial(parses, wait=all_inside.wait), changes * 2)) == alone
    assert len({each[0].score for each in alone}) == 3


def generate(parser, heads):
    with parser.without(heads):
        yield parser.parse(TEXT)


@pytest.fixture(scope="module")
def pretrained():
    return lalkit.load("en-news-span")


def test_only_the_chosen_words_and_heads_change(parsers, pretrained):
    """At every point: nothing changes by putting back what was there, and a patch changes what it names, and no more."""
    wanted = {"word": [1, 2], "position": [2, 3], "sub-word": [2, 3], "place": [2, 3]}
    for parser in (*parsers.values(), pretrained):
        score = parser.parse(TEXT).score
        points = parser.hooks().query("not point.str.contains('pretrained.[1-4]')")
        for point, axes in points.itertuples(index=False):
            put, axes = {point: lambda v: v.neg_().add_(1)}, axes.split()
            before = parser.activations(TEXT, point)[0][point]
            words = [2, 3] if wanted.keys() & {*axes} else None
            kind = "label" if "label" in axes else "head"
            head = min(1, before.shape[axes.index(kind)] - 1) if kind in axes else None
            if kind == "label":
                head = parser.attribution.head_labels.index(parser.parse(TEXT).spans[0].label)
            with parser.patched({point: before}):
                assert parser.parse(TEXT).score == pytest.approx(score, abs=1e-4)
            with parser.patched(put, words, head):
                changed = parser.activations(TEXT, point)[0][point] != before
                # A boundary "glass" does not read fenceposts.
                assert parser.parse(TEXT).score != score or point == "fenceposts"
            for axis, name in enumerate(axes):
                places = changed.movedim(axis, 0).flatten(1).any(1).nonzero().flatten().tolist()
                assert places == {**wanted, kind: [head]}.get(name, places)
            for wrong in ({"words": 99}, {"heads": -1}, {"points": {point: torch.zeros(1, 77, 77)}}):
                with pytest.raises(ParameterError), parser.patched(**{"points": put, **wrong}):
                    parser.parse(TEXT)
    with pytest.raises(ParameterError, match="in one row"), parser.patched({"pretrained.0.output": 0.0}, words=1):
        parser.parse_all([TEXT, "It rained ."])


def test_self_attention_is_between_words(parser, treebank, pretrained):
    for one, layer in ((parser, "encoder"), (pretrained, "encoder"), (pretrained, "pretrained")):
        found = one.self_attention(treebank, layer)
        table, array = found.table, found.arrays[0]
        assert {*table} == {*one.explain(treebank).attention(), "layer"}
        assert table.groupby(["layer", "head", *PLACE])["attention"].sum().to_numpy() == pytest.approx(1, abs=1e-5)
        row = table.query("sentence == 0 and layer == 0 and head == 1 and start == 2")
        assert row["attention"].to_numpy() == pytest.approx(array[0, 1, 3])
        assert tuple(row["word"])[1:-1] == treebank[0].words
        page = re.search('"layers":([^}]*})', one.parse(treebank[0]).explore(layer=layer).html)[1]
        assert np.array(json.loads(page)[f"{layer} 0"]) == pytest.approx(array[0], abs=6e-4)
    text, point = "No antidisestablishmentarianism", "pretrained.0.attention"
    (array,), (values,) = pretrained.self_attention(text, "pretrained").arrays, pretrained.activations(text, point)
    pieces = values[point][0, :, 1:-1, 1:-1]
    assert array[0, :, 1, 2] == pytest.approx(pieces[:, 0, 1:].sum(-1).numpy(), abs=1e-6)
    assert array[0, :, 2, 1] == pytest.approx(pieces[:, 1:, 0].mean(-1).numpy(), abs=1e-6)
    long = [["word"] * 600]
    for one, texts, message in ((parser, TEXT, "no self-att"), (pretrained, long, "one row"), (parser, [], None)):
        with pytest.raises(LalkitError, match=message):
            one.self_attention(texts, "pretrained")
    with pytest.raises(LalkitError, match="one row"):
        pretrained.activations(long, point)


# ---------------------------------------------------------------- a sentence that is typed into a page


def ask(typed, **parameters):
    return typed.trees({name: [text] for name, text in parameters.items()})


def test_the_answer_is_that_of_the_parser(parser):
    typed, result = TypedSentences(parser), parser.parse(TEXT)
    answer, trees = ask(typed, text=TEXT, k="3", tree="2"), result.alternatives(3)
    assert answer["trees"] == [tree.to_dict() for tree in trees] and json.dumps(answer, allow_nan=False)
    assert answer["shown"] == {"number": 2, **trees[1].with_confidence().to_dict()}
    assert answer["price"] is None and answer["changed"] is None and answer["note"] == ""
    page = typed.page({"text": [TEXT], "tree": ["2"]})
    assert page == trees[1].explore(constrain=True).html != trees[0].explore(constrain=True).html
    start, end, label, _ = result.spans[0]
    item = SpanItem(label, start + 1, end)
    answer = ask(typed, text=TEXT, forbid=f" {item} ;3->8 ", require="4->3")
    wanted = parser.parse(TEXT, forbid=[item, "3->8"], require=["4->3"])
    assert answer["shown"]["spans"] == [span._asdict() for span in wanted.spans]
    assert answer["price"] == wanted.price._asdict() and answer["price"]["log_probability"] < 0


def test_one_of_several_sentences(parsers):
    typed, text = TypedSentences(parsers["span"]), f"It rained. {TEXT} We left!"
    for number, part in enumerate(("It rained.", TEXT, "We left!"), 1):
        answer = ask(typed, text=text, sentence=str(number), k="2")
        assert answer["sentences"] == ["It rained.", TEXT, "We left!"]
        assert answer["shown"] == ask(typed, text=part, k="2")["shown"]
    tokens = ask(typed, text="One . Two .", form="tokens", k="1")
    assert tokens["sentences"] == ["One . Two ."] and len(tokens["shown"]["words"]) == 4


def test_heads_are_switched_off_here_and_nowhere_else(parser):
    typed, usual = TypedSentences(parser), parser.parse(TEXT)
    everything, named = ",".join(map(str, range(typed.heads))), copy(parser)
    name = f"{parser.info.get('name', 'a parser')} without heads {everything.replace(',', ', ')}"
    named.model = replace(named.model, info={**parser.info, "name": name})
    usual.explore(constrain=True)
    answer = ask(typed, text=TEXT, without=everything)
    page = typed.page({"text": [TEXT], "without": [everything]})
    with parser.without(range(typed.heads)):
        changed = named.parse(TEXT).alternatives(1)[0]
        assert page == usual.explore(beside=changed, constrain=True).html
    assert answer["shown"]["score"] == pytest.approx(changed.score) != usual.score
    assert answer["shown"]["spans"] == [span._asdict() for span in changed.spans]
    gone = {str(SpanItem(s.label, s.start + 1, s.end)) for s in set(usual.spans) - set(changed.spans)}
    assert {name for name in answer["changed"]["missing"] if "(" in name} <= gone
    with typed._parsed({"text": [TEXT], "without": [everything]}), ThreadPoolExecutor(1) as other:
        assert other.submit(parser.parse, TEXT).result().score == usual.score, "others use all heads meanwhile"


# ---------------------------------------------------------------- the server of a parser


@pytest.fixture(scope="module")
def server(tiny_span_parser):
    server = lalkit.load(tiny_span_parser).playground()
    yield server
    server.close()


def check(name, request, allowed, address):
    status, headers, body = send(address, request)
    assert status in allowed, (name, status, body[:300])
    assert body or "content-type" not in headers, name
    assert "Traceback" not in body and "/lalkit/" not in body, name
    kind = headers.get("content-type", "")
    if status >= 400:
        assert kind.startswith("text/plain") or not body, name
    elif "html" in kind:
        assert "<script>hacked" not in body and "<img src=x" not in body, name
    else:
        assert status == 0 or kind.startswith(("application/json", "text/")), name


def test_there_is_one_server_for_a_parser(tiny_parser):
    parser = lalkit.load(tiny_parser)
    server = parser.playground(height=500)
    assert parser.playground(height=600) is server and "height: 600px" in server._repr_html_()
    server.close()
    again = parser.playground()
    assert again is not server and send(again.address, get("/"))[0] == 200
    again.close()


def requests(count):
    """A third of them is hostile, and of the rest one in eight asks for a page."""
    texts = ("She saw the man.", TEXT, "Yes", "It rained, and we stayed in.")
    parses = (("a sentence", parse(text, k=1 + len(text) % 4), {200}) for text in cycle(texts) for _ in range(7))
    usual = chain.from_iterable(
        zip(*[parses] * 7, (("a page", parse(text, "/explore"), {200}) for text in cycle(texts)))
    )
    return list(islice(chain.from_iterable(zip(usual, usual, cycle(HOSTILE))), count))


@pytest.mark.parametrize("count", [3 * len(HOSTILE), pytest.param(300, marks=pytest.mark.slow)])
def test_many_requests_from_eight_clients(server, count):
    with ThreadPoolExecutor(8) as clients:
        for done in [clients.submit(check, *row, server.address) for row in requests(count)]:
            done.result()
    assert send(server.address, parse("One.", k=1))[0] == 200
