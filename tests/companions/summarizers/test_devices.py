"""Everything is computed where the weights are: no tensor is made on another device.

The stand-in for a second device is torch's meta device, whose tensors have shapes but no numbers. If it is the default, a tensor
that is made without a device lands there, and cannot be used beside the weights on the CPU.
"""

import dataclasses

import pandas as pd
import pytest
import torch

from lalkit.companions.summarizers import attention_heads, summarizer_study, summarizer_training
from lalkit.companions.summarizers.documents import news
from lalkit.companions.summarizers.headlines import GREEDY, Beam, summarize_all
from lalkit.companions.summarizers.pruning import Gated
from lalkit.companions.summarizers.summarizer import Summarizer, SummarizerConfig, Vocabulary, exact, view
from lalkit.probes.perturbation import ask

CONFIG = SummarizerConfig(layers=2, heads=2, d_model=8, d_ff=16, min_count=2, sparse="but-copy")
DOCUMENTS = news(6, 0, 0).train
SHORT = dataclasses.replace(GREEDY, most=4)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    model = Summarizer(CONFIG, Vocabulary.build(DOCUMENTS, CONFIG)).eval()
    with torch.no_grad():
        model.embed.weight *= 4
    return model


USES = {
    "greedy": lambda model: summarize_all(model, DOCUMENTS, SHORT),
    "beam": lambda model: summarize_all(model, DOCUMENTS[:2], Beam(width=2, least=1, most=4)),
    "head_table": lambda model: attention_heads.head_table(model, DOCUMENTS),
    "tag_table": lambda model: attention_heads.tag_table(model, DOCUMENTS),
    "ablate_heads": lambda model: attention_heads.ablate_heads(model, DOCUMENTS[:3], beam=SHORT),
    "null": lambda model: summarizer_study.null(model, DOCUMENTS),
    "gates": lambda model: Gated(model).table(),
    "loss": lambda model: model.loss(model.collate(DOCUMENTS), Gated(model).change()) + Gated(model, False).price(),
    "likelihood": lambda model: summarizer_training.likelihood(model, DOCUMENTS),
    "probes": lambda model: ask(view(exact(model), model.collate(DOCUMENTS[:1]), "cross.1"), rounds=2),
}


@pytest.mark.parametrize("use", USES)
def test_nothing_is_made_on_the_default_device(model, use):
    torch.manual_seed(0)
    expected = USES[use](model)
    with torch.device("meta"):
        assert torch.zeros(1).is_meta
        torch.manual_seed(0)
        found = USES[use](model)
    if isinstance(expected, pd.DataFrame):
        pd.testing.assert_frame_equal(found, expected)
    else:
        assert found == expected


@pytest.mark.parametrize("sparse", ["none", "all"])
def test_shapes_without_numbers(model, sparse):
    """On the meta device the whole network runs, of any size, as soon as its batch is there too."""
    config = dataclasses.replace(CONFIG, sparse=sparse, d_model=512, heads=8)
    with torch.device("meta"):
        large = Summarizer(config, model.vocabulary)
    batch = large.collate(DOCUMENTS)
    assert all(getattr(batch, name).is_meta for name in ("source", "extended", "mask", "before", "target"))
    output, (b, q), t = large(batch), batch.before.shape, batch.source.shape[1]
    assert output.probs.is_meta and output.probs.shape == (b, q, len(model.vocabulary) + len(batch.unknown))
    shapes = {block: tuple(weights.shape) for block, weights in output.weights.items()}
    assert shapes == {block: (b, 8, t if block.startswith("enc") else q, t) for block in large.blocks}
    with pytest.raises(RuntimeError, match="device"):
        large(model.collate(DOCUMENTS))
