"""Gates on heads: open ones change nothing, closed ones are heads cut out; a price closes them; the control has none."""

import dataclasses

import pytest
import torch

from lalkit.companions.summarizers import pruning, summarizer_training
from lalkit.companions.summarizers.documents import news
from lalkit.companions.summarizers.pruning import Gated, PruneConfig, load_gated, prune
from lalkit.companions.summarizers.summarizer import Summarizer, SummarizerConfig, Vocabulary
from lalkit.errors import ModelError
from tests.command import lalkit

CONFIG = SummarizerConfig(layers=2, heads=2, d_model=16, d_ff=32, dropout=0.0, min_count=2, batch=10)
DATA = news(40, 10, 10)
SMALL = PruneConfig(lam=1.0, epochs=2)


@pytest.fixture
def summarizer():
    torch.manual_seed(0)
    return Summarizer(CONFIG, Vocabulary.build(DATA.train, CONFIG)).eval()


def test_open_gates_are_no_gates_and_closed_ones_are_cuts(summarizer):
    model = Gated(summarizer).eval()
    batch = summarizer.collate(DATA.test)
    with torch.no_grad():
        for gate in model.gates.values():
            gate.log_a.fill_(4.0)
        assert torch.equal(model(batch).probs, summarizer(batch).probs)
        model.gates["enc-1"].log_a[0] = model.gates["cross-0"].log_a[1] = -4.0
        model.gates["enc-0"].log_a[1] = 0.0
        gated = model(batch).probs
        assert torch.allclose(model.cut()(batch).probs, gated, atol=1e-5)
        assert not torch.allclose(gated, summarizer(batch).probs, atol=1e-4)
    table = model.table().set_index("head")
    assert table.loc["enc.1.0", "gate"] == table.loc["cross.0.1", "gate"] == 0 and table["kept"].sum() == 6
    assert table.loc["enc.0.1", "gate"] == pytest.approx(0.5)


def test_zero_epochs_on_the_command_line_are_the_usual_number(monkeypatch, tmp_path):
    configs = []
    monkeypatch.setattr(summarizer_training, "load_summarizer", lambda run: None)
    monkeypatch.setattr(pruning, "prune", lambda model, data, out, config, resume: configs.append(config))
    for epochs in ("0", "2"):
        code, _, err = lalkit("summarize", "prune", "x", "--data", "news", "--out", tmp_path, "--epochs", epochs)
        assert code == 0, err
    assert [config.epochs for config in configs] == [PruneConfig().epochs, 2]


def test_a_price_closes_gates_and_no_price_has_none(summarizer, tmp_path):
    dear = dataclasses.replace(SMALL, lam=300.0, gate_rate=0.3, epochs=6)
    closed = prune(summarizer, DATA, tmp_path / "dear", dear)
    assert not closed.table()["kept"].any()
    control = prune(summarizer, DATA, tmp_path / "control", dataclasses.replace(SMALL, lam=None))
    assert control.table().empty and float(control.price()) == 0
    changed = control.cut().state_dict()
    assert any(not torch.equal(changed[k], v) for k, v in summarizer.state_dict().items()), "it went on learning"


def test_a_resumed_pruning_is_the_same(summarizer, tmp_path, killed):
    whole = prune(summarizer, DATA, tmp_path / "a", SMALL)

    with killed():
        prune(summarizer, DATA, tmp_path / "b", SMALL)
    again = prune(summarizer, DATA, tmp_path / "b", SMALL, resume=True)
    assert all(torch.equal(p, q) for p, q in zip(whole.state_dict().values(), again.state_dict().values()))
    assert all(torch.equal(p, q) for p, q in zip(load_gated(tmp_path / "a").parameters(), whole.parameters()))
    with pytest.raises(ModelError, match="holds a run already"):
        prune(summarizer, DATA, tmp_path / "a", SMALL)
    with pytest.raises(ModelError, match="is of other data"):
        prune(summarizer, dataclasses.replace(DATA, dev=DATA.dev[1:]), tmp_path / "a", SMALL, resume=True)
    with torch.no_grad():
        summarizer.copy.bias += 1
    with pytest.raises(ModelError, match="is of other weights than this summarizer's"):
        prune(summarizer, DATA, tmp_path / "a", SMALL, resume=True)
    with pytest.raises(ModelError, match="no gated summarizer here"):
        load_gated(tmp_path)
