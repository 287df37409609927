"""Label heads tied to labels, or pushed apart: the losses are those of the loops, and without them nothing changes."""

import pytest
import torch

from lalkit.api import Parser
from lalkit.config import override, tiny
from lalkit.errors import ModelError
from lalkit.network.head_ties import HeadTies, likeness
from lalkit.training.loop import Run, train
from lalkit.training.objective import losses, terms_of
from tests.reference import head_ties_literal as literal
from tests.reference.label_attention_literal import dense

QUIET = {
    f"model.{name}dropout": 0.0
    for name in ("", "encoder.word_", "label_attention.attention_", "label_attention.residual_")
}
TIED = {"model.label_attention.ties": "fixed", "train.tie_weight": 0.5}


def a_run(folder, settings):
    return Run(override(tiny(), QUIET | settings), "sample", folder)


def gradients(network, loss):
    """The gradient of every weight; zeros for a weight that has none."""
    names, weights = zip(*network.named_parameters())
    found = torch.autograd.grad(loss, weights, allow_unused=True)
    return {name: torch.zeros_like(w) if g is None else g for name, w, g in zip(names, weights, found)}


@pytest.mark.parametrize("shared", [True, False])
def test_the_tie_loss_and_its_gradient_are_those_of_the_loops(tmp_path, sample, shared):
    run = a_run(tmp_path / "run", TIED | {"model.label_attention.shared": shared})
    network, batch = run.network.train(), run.collator(sample[:4], gold=True)
    output = network(batch, posts=True)
    expected = literal.tie_loss(network.ties, output.posts, network.spans.first.weight, batch.spans)
    assert 0.3 < expected.item() / sum(map(len, batch.spans)) < 6
    term = losses(network, batch, run.config.train)["ties"]
    torch.testing.assert_close(term, 0.5 * expected / 4)
    ours, theirs = gradients(network, 8 * term), gradients(network, expected)
    for name in ours:
        torch.testing.assert_close(ours[name], theirs[name], rtol=1e-3, atol=1e-4, msg=name)
    assert ours["ties.direction"].abs().max() > 0.01 and ours["label_attention.reduce.content"].abs().max() > 0.01


def test_training_raises_the_share_of_the_own_head(tmp_path, sample):
    run = a_run(tmp_path / "run", TIED | {"train.tie_weight": 5, "train.rate": 0.01})
    first, _ = run.step(sample[:8], 0.0)
    for _ in range(30):
        last, _ = run.step(sample[:8], 0.0)
    assert last["ties"] < 0.5 * first["ties"]


def dealt(kind, counts, epoch=0, sums=None):
    ties = HeadTies(kind, 4, 8, len(counts))
    if sums is not None:
        ties.sums.copy_(torch.tensor(sums))
    ties.deal(counts, epoch)
    return ties.owned.tolist()


FREE = [0, 0, 0, 0]


def test_frequent_labels_have_a_head_of_their_own_and_others_share_the_rest():
    fixed = dealt("fixed", [0, 0, 90, 40, 19, 0, 3])
    assert fixed == [FREE, FREE, [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1], FREE, [0, 0, 1, 1]]
    many = dealt("fixed", [0, 0, 90, 80, 70, 60, 50])
    assert many[2:] == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1]]


def test_a_shuffled_matching_is_dealt_anew_in_every_epoch():
    counts = [0, 0, 90, 80, 70, 5]
    deals = [dealt("shuffled", counts, epoch) for epoch in range(8)]
    assert deals == [dealt("shuffled", counts, epoch) for epoch in range(8)] and len(set(map(str, deals))) > 2
    for owned in deals:
        assert [sum(row) for row in owned] == [0, 0, 1, 1, 1, 1] and [sum(c) for c in zip(*owned)] == [1, 1, 1, 1]


def test_a_random_matching_is_another_one_in_every_batch(tmp_path, sample):
    """It is the loss of a fixed matching with its heads in another order, and there is nothing to learn."""
    run = a_run(
        tmp_path / "run", TIED | {"model.label_attention.ties": "random", "train.tie_weight": 5, "train.rate": 0.01}
    )
    ties, batch = run.network.ties, run.collator(sample[:4], gold=True)
    posts, first = run.network(batch, posts=True).posts, run.network.spans.first.weight
    torch.manual_seed(3)
    found = [ties.loss(posts, first, batch.spans) for _ in range(3)]
    torch.manual_seed(3)
    fixed = ties.owned.clone()
    for loss in found:
        ties.owned.copy_(fixed[:, torch.randperm(fixed.shape[1])])
        torch.testing.assert_close(loss, literal.tie_loss(ties, posts, first, batch.spans))
    assert len({loss.item() for loss in found}) == 3
    ties.owned.copy_(fixed)
    steps = [run.step(sample[:8], 0.0)[0]["ties"] for _ in range(30)]
    assert min(steps[-5:]) > 0.5 * steps[0]


def test_a_learned_matching_has_the_largest_mean_contribution():
    """Head 1 contributes most to both labels; the best pair of means gives it to the second, though the first has more spans."""
    sums = [FREE, FREE, [80.0, 90.0, 0, 0], [0, 20.0, 0, 15.0]]
    assert dealt("learned", [0, 0, 100, 20], 1, sums)[2:] == [[1, 0, 0, 0], [0, 1, 0, 0]]
    assert dealt("learned", [0, 0, 100, 20], 0, sums) == [FREE] * 4, "the first epoch is without ties"


def test_contributions_are_gathered_and_the_matching_is_resumed(tmp_path, sample):
    settings = TIED | {"model.label_attention.ties": "learned", "train.epochs": 1, "train.dev_sentences": 5}
    run = a_run(tmp_path / "run", settings)
    batch = run.collator(sample[:4], gold=True)
    posts = run.network(batch, posts=True).posts
    assert losses(run.network, batch, run.config.train)["ties"] == 0, "no head is tied yet"
    expected = literal.minmax_sums(posts, batch.spans, len(run.vocab.labels))
    torch.testing.assert_close(run.network.ties.sums, expected)
    train(run.config, "sample", tmp_path / "run", resume=True)
    again = Run(run.config, "sample", tmp_path / "run", resume=True)
    owned = again.network.ties.owned
    assert owned[2:].any(1).all() and owned[:2].sum() == 0
    assert torch.equal(Parser.load(tmp_path / "run").network.ties.owned[2:].any(1), owned[2:].any(1))


def test_heads_are_pushed_apart(tmp_path, sample):
    run = a_run(tmp_path / "run", {"train.apart_weight": 0.5})
    layer, batch = run.network.label_attention, run.collator(sample[:4], gold=True)
    queries = torch.stack([dense(layer.key, h).T @ layer.query[h] for h in range(6)])
    term = losses(run.network, batch, run.config.train)["apart"]
    torch.testing.assert_close(term, 0.5 * literal.likeness(queries))
    ours, theirs = (torch.autograd.grad(x, layer.query)[0] for x in (term, 0.5 * literal.likeness(queries)))
    torch.testing.assert_close(ours, theirs)
    assert ours.abs().max() > 1e-4


@pytest.mark.parametrize("shared", [True, False])
def test_values_are_pushed_apart_in_each_sentence(tmp_path, sample, shared):
    settings = {"train.apart_weight": 2, "train.apart": "values", "model.label_attention.shared": shared}
    run = a_run(tmp_path / "run", settings)
    layer, batch, kept = run.network.label_attention, run.collator(sample[:4], gold=True), []
    term = losses(run.network, batch, run.config.train)["apart"]
    with layer.hooked(contexts=lambda c: kept.append(c) or c):
        run.network(batch)
    passed_on = [torch.stack([dense(layer.project, h) @ c for h, c in enumerate(heads)]) for heads in kept[0]]
    expected = 2 * sum(map(literal.likeness, passed_on)) / 4
    torch.testing.assert_close(term, expected)
    ours, theirs = (torch.autograd.grad(x, layer.value.content)[0] for x in (term, expected))
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-6)
    assert ours.abs().max() > 1e-4


def test_likeness_of_parallel_and_orthogonal_heads():
    assert float(likeness(3 * torch.eye(3))) == 0
    assert float(likeness(torch.tensor([[1.0, 2], [-2, -4]]))) == pytest.approx(1)
    assert float(likeness(torch.ones(1, 2))) == 0, "one head has no other"


def test_without_these_weights_training_is_as_it_was(tmp_path, sample):
    """The weights that ties add are drawn last, and a network without ties has no more weights and no more terms than before."""
    plain, tied = a_run(tmp_path / "plain", {}), a_run(tmp_path / "tied", {"model.label_attention.ties": "fixed"})
    assert not any("ties" in name for name in plain.network.state_dict())
    assert terms_of(plain.config.train) == ("loss", "spans", "arcs", "arc_labels", "tags")
    for settings in (TIED, {"train.apart_weight": 0.5}, {"train.apart_weight": 0.5, "train.apart": "values"}):
        other = a_run(tmp_path / f"{len(settings)}", settings)
        batch = plain.collator(sample[:4], gold=True)
        usual, more = (losses(r.network.train(), batch, r.config.train) for r in (plain, other))
        assert all(torch.equal(usual[name], more[name]) for name in terms_of(plain.config.train)[1:])
        assert more["loss"] > usual["loss"]
    for run in (plain, tied):
        for start in (0, 8):
            run.step(sample[start : start + 8], 0.0)
    others = dict(tied.network.named_parameters())
    assert all(torch.equal(p, others[name]) for name, p in plain.network.named_parameters())


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"train.tie_weight": 1}, "train.tie_weight needs model.label_attention.ties\n.*fixed"),
        (TIED | {"model.feedforward": 16}, "heads of the paper's layer that stay apart"),
        (TIED | {"model.label_attention.combine": "project"}, "stay apart"),
        ({"train.apart_weight": 1, "model.label_attention.query": "matrix"}, "stay apart.*query=vector"),
        ({"train.apart_weight": 1, "model.label_attention": None}, "stay apart"),
        (TIED | {"model.task": "dependencies"}, "score constituents"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(tmp_path, settings, says):
    with pytest.raises(ModelError, match=f"(?s){says}"):
        Run(override(tiny(), settings), "sample", tmp_path / "run")
