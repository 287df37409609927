"""Gates on the label heads of a parser: what a closed gate means, and that the cut parser is the gated one."""

import math

import pandas as pd
import pytest
import torch
from scipy.integrate import quad

import lalkit.studies.gates as gates
from lalkit.api import Parser
from lalkit.errors import ModelError
from lalkit.network.batches import batches
from lalkit.studies.gates import BETA, GatesConfig, HardConcreteGate, cut, gated, prune, study
from lalkit.studies.label_heads import HeadsRun
from lalkit.training.checkpoint import load_model
from tests.command import lalkit


def scores(loaded, sentences):
    with torch.no_grad():
        output = loaded.network(loaded.collator(sentences))
    return output.label_scores, output.arc_scores


@pytest.mark.parametrize("closes", ["contexts", "output"])
def test_the_cut_parser_is_the_gated_one(tiny_parser, sample, closes):
    loaded = load_model(tiny_parser)
    heads = loaded.config.model.label_attention.heads
    values = torch.linspace(0, 1, heads).roll(1)
    as_trained = scores(loaded, sample[:8])
    with gated(loaded.network, closes, values):
        before = scores(loaded, sample[:8])
    with torch.no_grad():
        cut(loaded.network, closes, values)
    for first, second, third in zip(as_trained, before, scores(loaded, sample[:8])):
        assert not torch.allclose(first, second, atol=1e-3)
        torch.testing.assert_close(second, third, atol=1e-4, rtol=1e-4)


def test_a_closed_context_is_a_zero_context_and_a_closed_output_is_no_head(tiny_parser, sample):
    loaded = load_model(tiny_parser)
    layer, closed = loaded.network.label_attention, torch.zeros(loaded.config.model.label_attention.heads)
    with layer.hooked(contexts=torch.zeros_like):
        zeroed = scores(loaded, sample[:8])
    with gated(loaded.network, "contexts", closed):
        torch.testing.assert_close(scores(loaded, sample[:8]), zeroed)
    with gated(loaded.network, "output", closed):
        labels, _ = scores(loaded, sample[:1])
    inside = torch.triu_indices(labels.shape[1], labels.shape[1], 1)
    assert (labels[0, inside[0], inside[1]] == labels[0, 0, 1]).all()  # nothing is left to tell one span from another


def test_a_high_price_closes_heads_and_word_vectors_stay(tiny_parser, sample):
    dear, free = load_model(tiny_parser), load_model(tiny_parser)
    words, usual, calls = [p.clone() for p in dear.network.words.parameters()], dear.network.words.forward, []
    dear.network.words.forward = lambda batch: calls.append(batch) or usual(batch)
    closed = prune(dear, sample[:60], GatesConfig(closes="contexts", price=1000, epochs=6, gate_rate=0.5))
    assert closed.max() == 0
    groups = batches([len(s) for s in sample[:60]], dear.config.train.batch_tokens, dear.config.train.seed)
    assert len(calls) == len(groups), "once for each batch"
    assert all(torch.equal(a, b) for a, b in zip(words, dear.network.words.parameters()))
    kept = prune(free, sample[:60], GatesConfig(closes="contexts", price=0, epochs=1))
    assert kept.min() > 0


def test_a_study_is_repeated_from_its_parsers(tiny_parser, tmp_path, monkeypatch):
    configs = [GatesConfig(epochs=1), GatesConfig("output", 5, epochs=1)]
    runs = [HeadsRun("paper", 1, tiny_parser), HeadsRun("paper", 2, tiny_parser)]
    files = study(runs, "sample", tmp_path, configs, "dev")
    first = [file.read_text() for file in files]
    monkeypatch.setattr(gates, "prune", None)
    assert [file.read_text() for file in study(runs, "sample", tmp_path, configs, "dev")] == first
    heads, tests, table = map(pd.read_csv, files)
    assert list(table["closes"]) == ["nothing", "output"] * 2 and (table["kept"] <= table["heads"]).all()
    assert heads[heads["gate"] > 0].groupby(["seed", "closes"]).size().tolist() == table["kept"].tolist()
    assert set(tests["what"]) == {"output, 5"} and set(tests["runs"]) == {2}
    uas = table.groupby("closes")["uas"].mean()
    assert tests.set_index("measure")["difference"]["uas"] == pytest.approx(uas["nothing"] - uas["output"], abs=1e-3)
    with pytest.raises(ModelError, match="holds another pruning"):
        study(runs[:1], "sample", tmp_path, [GatesConfig(epochs=2)], "dev")


def test_the_command_writes_the_tables(tiny_parser, tiny_span_parser, tmp_path):
    given = ("--treebank", "sample", "--epochs", "1", "--prices", "5", "--closes", " output", "--split", "dev")
    code, printed, messages = lalkit("study", "gates", f"paper={tiny_parser}", *given, "--out", tmp_path / "gates")
    assert code == 0, messages
    assert [line.rpartition("/")[2] for line in printed.split()] == ["gates-heads.csv", "gates-tests.csv", "gates.csv"]
    parser = Parser.load(tmp_path / "gates" / "paper-1-output-5.0")  # an ordinary parser
    assert len(parser.parse("It rained .", "tokens").sentence) == 3 and len(parser.contributions("It rained ."))
    code, _, messages = lalkit("study", "gates", tiny_span_parser, *given, "--out", tmp_path / "other")
    assert code == 2 and str(tiny_span_parser) in messages


@pytest.mark.parametrize(("log_a", "chance", "mean"), [(-3, 0.0990, 0.0506), (0, 0.6881, 0.5), (2, 0.9422, 0.8749)])
def test_the_chance_to_be_open_and_the_mean_of_a_gate(log_a, chance, mean):
    gate = HardConcreteGate(10**6)
    torch.nn.init.constant_(gate.log_a, log_a)
    torch.manual_seed(0)
    drawn = gate.train()().detach()
    assert float(gate.open()[0].detach()) == pytest.approx(chance, abs=1e-4)
    assert float((drawn > 0).float().mean()) == pytest.approx(chance, abs=0.002)

    def above(x):  # P(g > x), by inverting the stretched concrete distribution
        s = (x + 0.1) / 1.2
        return 1 / (1 + math.exp(-(log_a - BETA * math.log(s / (1 - s)))))

    assert quad(above, 0, 1)[0] == pytest.approx(mean, abs=1e-4)
    assert float(drawn.mean()) == pytest.approx(mean, abs=0.002)


def test_in_evaluation_gates_close_and_open_exactly():
    gate, points = HardConcreteGate(6), torch.tensor([-3, -2.399, 0, 2.399, 4, -2.39])
    gate.log_a.data = points
    found = gate.eval()().detach()
    assert found[:5].tolist() == pytest.approx([0, 0, 0.5, 1, 1], abs=1e-7) and found[5] > 0
