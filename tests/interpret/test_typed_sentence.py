"""A sentence typed into a page: trees, constraints, heads that are switched off, hostile requests, and many at once."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, cycle, islice

import pytest

import lalkit
from lalkit.chart.constraints import SpanItem
from lalkit.config import override, tiny
from lalkit.errors import LalkitError
from lalkit.interpret.typed_sentence import TypedSentences
from lalkit.training.loop import train
from tests.draw.local_clients import HOSTILE, get, parse, send, until

TEXT = "She saw the man with the telescope."


@pytest.fixture(scope="module", params=["tiny_parser", "tiny_span_parser"])
def parser(request):
    return lalkit.load(request.getfixturevalue(request.param))


def ask(typed, **parameters):
    return typed.trees({name: [text] for name, text in parameters.items()})


def test_the_answer_is_that_of_the_parser(parser):
    typed, result = TypedSentences(parser), parser.parse(TEXT)
    answer = ask(typed, text=TEXT, k="3", tree="2")
    trees = result.alternatives(3)
    assert answer["trees"] == [tree.to_dict() for tree in trees] and json.dumps(answer, allow_nan=False)
    assert answer["shown"] == {"number": 2, **trees[1].with_confidence().to_dict()}
    assert answer["price"] is None and answer["changed"] is None
    page = typed.page({"text": [TEXT], "tree": ["2"]})
    assert page == trees[1].explore(constrain=True).html != trees[0].explore(constrain=True).html


def test_constraints_and_brackets(parser):
    typed, (start, end, label, _) = TypedSentences(parser), parser.parse(TEXT).spans[0]
    item = SpanItem(label, start + 1, end)
    answer = ask(typed, text=TEXT, forbid=f" {item} ;8->3 ", require="3->4")
    wanted = parser.parse(TEXT, forbid=[item, "8->3"], require=["3->4"])
    assert answer["shown"]["spans"] == [span._asdict() for span in wanted.spans]
    assert answer["price"] == wanted.price._asdict() and answer["price"]["log_probability"] < 0
    answer = ask(typed, text="She saw [* the man with] the telescope.", form="brackets", k="1")
    assert any((span["start"], span["end"]) == (2, 5) for span in answer["shown"]["spans"])


def test_heads_are_switched_off_here_and_nowhere_else(parser):
    typed = TypedSentences(parser)
    everything = ",".join(map(str, range(typed.heads)))
    with parser.without(range(typed.heads)):
        wanted = parser.parse(TEXT)
    usual = parser.parse(TEXT)
    usual.explore()
    answer = ask(typed, text=TEXT, without=everything)
    assert answer["shown"]["score"] == pytest.approx(wanted.score) != usual.score
    assert answer["shown"]["spans"] == [span._asdict() for span in wanted.spans]
    gone = {str(SpanItem(s.label, s.start + 1, s.end)) for s in set(usual.spans) - set(wanted.spans)}
    assert {name for name in answer["changed"]["missing"] if "(" in name} <= gone
    assert bool(answer["changed"]["added"]) == (usual.prediction != wanted.prediction and bool(gone))
    page = typed.page({"text": [TEXT], "without": [everything]})
    with parser.without(range(typed.heads)):
        changed = parser.parse(TEXT).alternatives(1)[0]
        assert page == usual.explore(beside=changed, constrain=True).html
    with typed._parsed({"text": [TEXT], "without": [everything]}):
        assert parser.parse(TEXT).score == usual.score, "others use the whole network meanwhile"
    assert typed.parser.network is not parser.network
    pairs = zip(typed.parser.network.parameters(), parser.network.parameters(), strict=True)
    assert all(a is b for a, b in pairs), "the weights are not copied"


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"txt": "One."}, "txt: is no parameter\n  Use text, form, require"),
        ({"text": "one " * 151}, "the sentence has 151 words\n  Give one sentence of at most 150"),
        ({"text": "[* " + "one " * 151 + "]", "form": "brackets"}, "the sentence has 151 words"),
        ({"text": "x" * 2001}, "the text has 2,001 characters"),
        ({"text": "One.", "k": "21"}, "k is 21\n  Give 1 to 20"),
        ({"text": "One.", "k": "all"}, "k must be a whole number, not 'all'"),
        ({"text": "One.", "tree": "6"}, "tree is 6\n  Give 1 to 5"),
        ({"text": "One.", "without": "100000"}, "head is 100000"),
        ({"text": "One.", "forbid": "NP(1"}, "'NP\\(1': is no constraint"),
    ],
)
def test_what_is_wrong_is_named(parser, parameters, says):
    with pytest.raises(LalkitError, match=says):
        ask(TypedSentences(parser), **parameters)


def test_a_parser_of_one_layer_has_no_page(tmp_path):
    train(override(tiny(), {"model.task": "dependencies", "train.epochs": 1}), "sample", tmp_path)
    with pytest.raises(LalkitError, match="dependencies alone"):
        lalkit.load(tmp_path).playground()


# ---------------------------------------------------------------- the server of a parser


@pytest.fixture(scope="module")
def server(tiny_span_parser):
    server = lalkit.load(tiny_span_parser).playground()
    yield server
    server.close()


def check(name, request, allowed, address):
    status, headers, body = send(address, request)
    assert status in allowed, (name, status, body[:300])
    assert body or "content-type" not in headers, name  # tornado answers what is no HTTP without a word
    assert "Traceback" not in body and "/lalkit/" not in body, name
    kind = headers.get("content-type", "")
    if status >= 400:
        assert kind.startswith("text/plain") or not body, name
    elif "html" in kind:
        assert "<script>hacked" not in body and "<img src=x" not in body, name
    else:
        assert status == 0 or kind.startswith(("application/json", "text/")), name


@pytest.mark.parametrize(("name", "request_", "allowed"), [pytest.param(*row, id=row[0]) for row in HOSTILE])
def test_hostile_requests(server, name, request_, allowed):
    check(name, request_, allowed, server.address)
    assert send(server.address, parse("One.", k=1))[0] == 200


def test_there_is_one_server_for_a_parser(tiny_parser):
    parser = lalkit.load(tiny_parser)
    server = parser.playground(height=500)
    try:
        assert parser.playground(height=600) is server and "height: 600px" in server._repr_html_()
        server.close()
        again = parser.playground()
        assert again is not server and send(again.address, get("/"))[0] == 200
    finally:
        parser.playground().close()
    del parser, server, again


def requests(count):
    """A third of them is hostile, and of the rest one in eight asks for a page."""
    texts = ("She saw the man.", TEXT, "Yes", "It rained, and we stayed in.")
    usual = (
        row
        for text in cycle(texts)
        for row in [("a sentence", parse(text, k=1 + len(text) % 4), {200})] * 7
        + [("a page", parse(text, "/explore"), {200})]
    )
    mixed = chain.from_iterable(zip(usual, usual, cycle(HOSTILE)))
    return list(islice(mixed, count))


@pytest.mark.parametrize("count", [24, pytest.param(300, marks=pytest.mark.slow)])
def test_many_requests_from_eight_clients(server, count):
    start = time.perf_counter()
    with ThreadPoolExecutor(8) as clients:
        for done in [clients.submit(check, *row, server.address) for row in requests(count)]:
            done.result()
    print(f"{count} requests in {time.perf_counter() - start:.1f} s")
    assert send(server.address, parse("One.", k=1))[0] == 200
    until(lambda: server.waiting == 0)
