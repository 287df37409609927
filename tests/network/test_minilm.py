"""MiniLM computes the bits of transformers, and its tokenizer gives the same sub-words."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModel, AutoTokenizer

from lalkit.network.alignment import resolve
from lalkit.network.minilm import MiniLM, WordPieces

FOLDER = resolve("minilm")
OURS, THEIRS = WordPieces(FOLDER), AutoTokenizer.from_pretrained(FOLDER)


@pytest.fixture(scope="module")
def models():
    theirs = AutoModel.from_pretrained(FOLDER, dtype=torch.float32)
    theirs.pooler = None
    return MiniLM(FOLDER), theirs


def test_the_weights_have_the_names_and_the_order_of_transformers(models):
    ours, theirs = (dict(model.named_parameters()) for model in models)
    assert list(ours) == list(theirs)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("lengths", [(9, 9), (9, 4, 1)], ids=["equal", "padded"])
@pytest.mark.parametrize("training", [False, True], ids=["parsing", "training"])
def test_all_layers_and_gradients_have_the_same_bits(models, lengths, training):
    torch.manual_seed(0)
    words = torch.randint(1000, 30000, (len(lengths), max(lengths)))
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
    results = []
    for model in models:
        torch.manual_seed(1)  # the same dropout
        model.train(training).zero_grad()
        output = model(input_ids=words, attention_mask=mask, output_hidden_states=True)
        output.last_hidden_state.square().sum().backward()
        results.append([*output.hidden_states, *(p.grad for p in model.parameters())])
    assert len(results[0]) == len(results[1]) and all(map(torch.equal, *results))


@given(st.lists(st.text(max_size=9), max_size=5))
def test_the_sub_words_are_those_of_transformers(words):
    for special in (True, False):
        assert OURS(words, special)["input_ids"] == (
            THEIRS(words, add_special_tokens=special)["input_ids"] if words else []
        )
        assert OURS.encode(" ".join(words), special) == THEIRS.encode(" ".join(words), add_special_tokens=special)
    for name in ("pad", "unk", "mask", "eos"):
        assert getattr(OURS, f"{name}_token_id") == getattr(THEIRS, f"{name}_token_id")
