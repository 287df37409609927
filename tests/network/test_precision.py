"""Parsing in bf16 and int8: the arithmetic, independence of the batch, and what is refused."""

import pytest
import torch
from torch import nn

import lalkit
from lalkit.errors import LalkitError, ModelError, ParameterError
from lalkit.network import precision
from lalkit.network.precision import Bf16Linear, Int8Linear, lowered, resolve
from lalkit.network.word_vectors import LowRankLinear
from lalkit.parsing.journaled_output import Part
from lalkit.parsing.parse_corpus import parse
from lalkit.parsing.text_windows import from_arguments
from lalkit.treebank.tree import Sentence
from tests.command import lalkit as command


def literal(linear, x):
    """The product of whole numbers, number by number: each row of weights in 255 steps, each input row in 127."""
    weight = linear.weight + linear.up @ linear.down if isinstance(linear, LowRankLinear) else linear.weight
    y = torch.zeros(len(x), len(weight), dtype=torch.float64)
    for column, row in enumerate(weight):
        step = row.abs().max() / 127
        whole = (row / step).round().long()
        for i, values in enumerate(x):
            size = values.abs().max() / 63
            inputs = (values / size + 0.5).floor().long() if size > 0 else torch.zeros_like(whole)
            y[i, column] = (inputs * whole).sum().double() * float(size) * float(step)
    return y + (0.0 if linear.bias is None else linear.bias.double())


@pytest.mark.parametrize("kind", ["plain", "no bias", "low rank"])
@torch.no_grad()
def test_int8_is_the_product_of_whole_numbers(kind):
    torch.manual_seed(0)
    linear = nn.Linear(48, 20, bias=kind != "no bias")
    if kind == "low rank":
        linear = LowRankLinear(linear, 4)
        nn.init.normal_(linear.up)
    x = torch.randn(3, 5, 48) * torch.logspace(-3, 3, 5)[:, None]
    x[1, 2] = 0
    y, expected = Int8Linear(linear)(x), literal(linear, x.flatten(0, 1)).view(3, 5, 20)
    size = 1 + x.abs().amax(-1, keepdim=True)
    torch.testing.assert_close(y.double() / size, expected / size, rtol=0, atol=1e-5)
    assert 1e-4 < ((y - linear(x)).abs() / size).max() < 0.5  # it is rounded, but not far away


@pytest.mark.skipif(not torch.ops.mkldnn._is_mkldnn_bf16_supported(), reason="oneDNN does not compute bf16 here")
@torch.no_grad()
def test_bf16_adds_the_low_rank_before_it_rounds():
    torch.manual_seed(0)
    linear = LowRankLinear(nn.Linear(48, 20), 4)
    nn.init.normal_(linear.up)
    x = torch.randn(3, 5, 48)
    rounded = [tensor.bfloat16().float() for tensor in (x, linear.weight + linear.up @ linear.down, linear.bias)]
    torch.testing.assert_close(Bf16Linear(linear)(x), nn.functional.linear(*rounded).bfloat16(), rtol=2**-7, atol=1e-2)


@pytest.fixture(scope="module")
def parser():
    return lalkit.load("en-news-span")


@pytest.fixture(scope="module")
def sentences(sample):
    return [Sentence(s.words, id=str(i)) for i, s in enumerate(sample[:12])]


@pytest.fixture(scope="module")
def parses(parser, sentences):
    return parser.parse_all(sentences, precision="int8")


def test_in_int8_a_sentence_has_the_same_scores_alone_and_in_a_batch(parser, sentences, parses):
    for sentence, result in list(zip(sentences, parses))[::3]:
        alone = parser.parse(sentence, precision="int8")
        assert alone.sentence == result.sentence and alone.score == pytest.approx(result.score, abs=2e-4)


def test_int8_leaves_the_parser_as_it_is(parser, sentences, parses):
    network, before = parser.network, parser.parse_all(sentences)
    names = [*network.state_dict()]
    whole = lowered(network, "int8")
    assert lowered(network, "int8") is whole and [*network.state_dict()] == names
    assert {*map(id, whole.parameters())} < {*map(id, network.parameters())}
    assert [r.score for r in parser.parse_all(sentences)] == [r.score for r in before]
    assert all(result.score != other.score for result, other in zip(parses, before))
    assert sum(a.sentence.heads == b.sentence.heads for a, b in zip(parses, before)) >= 9


def test_the_copy_in_int8_is_made_again_after_a_change(parser, sentences, parses):
    old, weight = lowered(parser.network, "int8"), parser.network.words.project.weight
    with torch.no_grad():
        weight.mul_(2)
        assert lowered(parser.network, "int8") is not old
        assert parser.parse(sentences[0], precision="int8").score != pytest.approx(parses[0].score, abs=2e-4)
        weight.div_(2)
    assert parser.parse(sentences[0], precision="int8").score == pytest.approx(parses[0].score, abs=2e-4)


def test_bf16_rounds_every_product(parser, sentences, monkeypatch):
    monkeypatch.setattr(precision, "has_bf16", lambda device: True)  # slower here, but the same numbers
    monkeypatch.setattr(precision, "bf16_is_fast", lambda device: True)
    before = parser.parse(sentences[0])
    low, auto = (parser.parse(sentences[0], precision=name) for name in ("bf16", "auto"))
    high = parser.parse(sentences[0])
    narrow = lowered(parser.network, "bf16")
    assert {p.dtype for p in narrow.parameters() if p.dim() > 1} == {torch.bfloat16}
    assert lowered(parser.network, "bf16") is narrow
    assert {p.dtype for p in parser.network.parameters()} == {torch.float32} and high.score == before.score
    assert auto.score == low.score and low.prediction.precision == "bf16" and high.prediction.precision == "fp32"
    assert high.score != low.score == pytest.approx(high.score, rel=0.05, abs=0.5)
    assert low.sentence.heads == high.sentence.heads


def test_explanations_and_probabilities_are_of_fp32(parser, sentences, parses):
    result = parses[0]
    for ask in (result.explain, lambda: result.terms, result.confidence, result.explore, result.alternatives):
        with pytest.raises(LalkitError, match="this was parsed in int8"):
            ask()
    with pytest.raises(ParameterError, match="computed in fp32, not in int8"):
        parser.parse(sentences[0], require=["NP(1,2)"], precision="int8")


@pytest.mark.parametrize(
    ("name", "device", "exact", "error"),
    [
        ("fp16", "cpu", False, "there is no precision 'fp16'"),
        ("bf16", "cpu", False, "this processor does not compute in bf16"),
        ("int8", "cuda", False, "int8 is for x86 processors"),
        ("int8", "cpu", True, "computed in fp32, not in int8"),
    ],
)
def test_a_precision_that_cannot_be_is_refused(name, device, exact, error):
    with pytest.raises(ParameterError, match=error):
        resolve(name, device, exact)


def test_auto_is_fp32_without_bf16_and_for_probabilities(monkeypatch):
    assert resolve("auto", "cpu") == "fp32"
    monkeypatch.setattr(precision, "has_bf16", lambda device: True)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_fp16": True, "amx_tile": False})
    assert resolve("auto", "cpu") == "fp32" and resolve("bf16", "cpu") == "bf16"
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_fp16": True, "amx_tile": True})
    assert resolve("auto", "cpu") == "bf16" and resolve("auto", "cpu", exact=True) == "fp32"


def test_a_parser_without_a_pretrained_encoder_has_no_int8(tiny_parser):
    with pytest.raises(ModelError, match="this parser has none"):
        lalkit.load(tiny_parser, precision="int8").parse("It works.")


def test_the_command_line_refuses_in_one_line(tiny_parser):
    for arguments in (
        ["parse", "It works.", "--model", tiny_parser],
        ["evaluate", tiny_parser, "--treebank", "sample"],
    ):
        code, out, err = command(*arguments, "--precision", "bf16")
        assert code == 2 and "this processor does not compute in bf16" in err and not out


def test_a_parse_is_not_resumed_in_another_precision(tiny_parser, tmp_path, monkeypatch):
    monkeypatch.setattr(precision, "has_bf16", lambda device: True)
    monkeypatch.setattr(precision, "bf16_is_fast", lambda device: True)
    with monkeypatch.context() as patch:
        patch.setattr(Part, "finish", lambda part: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            parse(tiny_parser, from_arguments(["It works."]), out=tmp_path / "out", precision="auto")
    with pytest.raises(LalkitError, match="--precision bf16"):
        parse(tiny_parser, from_arguments(["It works."]), out=tmp_path / "out", precision="fp32", resume=True)
    parse(tiny_parser, from_arguments(["It works."]), out=tmp_path / "out", precision="bf16", resume=True)
