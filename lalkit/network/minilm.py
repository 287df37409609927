"""The encoders with a name of ours, MiniLM and e5-han: the network of a BERT, and a tokenizer, without the library transformers.

transformers computes the same bits (a test compares them). But importing its models takes two to three times as long as
importing torch, which is most of what one sentence on the command line takes. All other encoders come from transformers.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from lalkit.files import read_json, regular
from lalkit.network.encoder import HookedModule, fill


class Linear(nn.Linear):
    """A linear map whose weights will be read from a file. Random weights would take time, and random numbers."""

    def reset_parameters(self) -> None:
        pass


class BertLayer(HookedModule):
    """Self-attention, then a feed-forward map. The names are those of the files of weights."""

    attention: Any
    output: Any
    points = {"attention": "row head sub-word key", "contexts": "row head sub-word dim", "output": "row sub-word dim"}

    def __init__(self, config: SimpleNamespace):
        super().__init__()
        size, inner, self.heads = config.hidden_size, config.intermediate_size, config.num_attention_heads
        norm = partial(nn.LayerNorm, size, eps=config.layer_norm_eps)
        attention = nn.ModuleDict({name: Linear(size, size) for name in ("query", "key", "value")})
        output = nn.ModuleDict({"dense": Linear(size, size), "LayerNorm": norm()})
        self.attention = nn.ModuleDict({"self": attention, "output": output})
        self.intermediate = nn.ModuleDict({"dense": Linear(size, inner)})
        self.output = nn.ModuleDict({"dense": Linear(inner, size), "LayerNorm": norm()})
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.attention_dropout = config.attention_probs_dropout_prob

    def forward(self, x: Float[Tensor, "r s d"], mask: Bool[Tensor, "r 1 s s"] | None) -> Float[Tensor, "r s d"]:
        maps, output = self.attention["self"], self.attention["output"]
        query, key, value = (
            maps[name](x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for name in ("query", "key", "value")
        )
        dropout = self.attention_dropout if self.training else 0.0
        attend = partial(F.scaled_dot_product_attention, query, key, attn_mask=mask, dropout_p=dropout)
        if "attention" in self.hooks:
            # This function gives no weights, but mixes what it gets: here the rows of a unit matrix.
            unit = torch.eye(key.shape[2], dtype=key.dtype, device=key.device).expand(*key.shape[:3], -1)
            heads = self.hook("attention", attend(unit)) @ value
        else:
            heads = attend(value)
        heads = self.hook("contexts", heads)
        x = output["LayerNorm"](self.dropout(output["dense"](heads.transpose(1, 2).flatten(-2))) + x)
        inner = F.gelu(self.intermediate["dense"](x))
        return self.hook("output", self.output["LayerNorm"](self.dropout(self.output["dense"](inner)) + x))


class Bert(nn.Module):
    """Sub-words -> vectors, called as the models of transformers are. The weights are those of the folder."""

    embeddings: Any
    encoder: Any

    def __init__(self, folder: str | Path, weights: bool = True):
        """weights: read them. False: they are in the parser's own file, which replaces what stands here."""
        super().__init__()
        self.config = config = SimpleNamespace(**read_json(Path(folder) / "config.json", "Give an encoder's folder."))
        if config.hidden_size % config.num_attention_heads:
            raise ValueError(f"{config.num_attention_heads} heads do not divide {config.hidden_size} numbers")
        tables = {
            name: nn.Embedding.from_pretrained(
                torch.empty(rows, config.hidden_size), freeze=False, padding_idx=padding_idx
            )
            for name, rows, padding_idx in (
                ("word_embeddings", config.vocab_size, config.pad_token_id),
                ("position_embeddings", config.max_position_embeddings, None),
                ("token_type_embeddings", config.type_vocab_size, None),
            )
        }
        norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.embeddings = nn.ModuleDict({**tables, "LayerNorm": norm})
        layers = nn.ModuleList(BertLayer(config) for _ in range(config.num_hidden_layers))
        self.encoder, self.dropout = nn.ModuleDict({"layer": layers}), nn.Dropout(config.hidden_dropout_prob)
        if weights:
            file, expected = regular(Path(folder) / "model.safetensors"), self.state_dict()
            tensors = {name: tensor for name, tensor in whole(load_file(file)).items() if name in expected}
            fill(self, tensors, str(file), "Get the encoder again.")

    def get_input_embeddings(self) -> nn.Module:
        return self.embeddings["word_embeddings"]

    def forward(
        self, input_ids: Int[Tensor, "r s"], attention_mask: Int[Tensor, "r s"], output_hidden_states: bool = False
    ) -> SimpleNamespace:
        words, positions, types, norm = self.embeddings.values()
        places = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
        x = self.dropout(norm(words(input_ids) + types(torch.zeros_like(input_ids)) + positions(places)))
        seen = attention_mask.bool()
        full = torch.compiler.is_exporting() or seen.all()  # `lalkit export`: one sentence, without padding
        mask = None if full else seen[:, None, None].expand(-1, -1, seen.shape[1], -1)
        states = [x]
        for layer in self.encoder["layer"]:
            states.append(layer(states[-1], mask))
        return SimpleNamespace(last_hidden_state=states[-1], hidden_states=states if output_hidden_states else None)


def whole(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return weights with every matrix of 4 bits as numbers.

    Such a matrix is two tensors. `scale` has one number for 32 weights of a row, [rows, columns / 32, 1]; `pairs` has two weights
    in a byte, [rows, columns / 32, 16]: the low halves of the 16 bytes, then the high ones. A weight is (half - 8) * scale.

    Raises ValueError for other shapes.
    """
    numbers = {name: tensor for name, tensor in weights.items() if ":" not in name}
    for name in {name.partition(":")[0] for name in weights if ":" in name}:
        pairs, scale = weights[f"{name}:pairs"], weights[f"{name}:scale"]
        if pairs.dtype != torch.uint8 or pairs.shape[2:] != (16,) or scale.shape != (*pairs.shape[:2], 1):
            raise ValueError(f"{name} is no matrix of 4 bits")
        numbers[name] = ((torch.cat([pairs & 15, pairs >> 4], dim=-1).float() - 8) * scale.float()).flatten(1)
    return numbers


class Pieces:
    """What `lalkit.network.alignment` asks a tokenizer, by the library tokenizers alone."""

    def __init__(self, folder: str | Path):
        self.backend = Tokenizer.from_file(str(regular(Path(folder) / "tokenizer.json")))
        self.backend.no_truncation()
        self.backend.no_padding()
        vocab = self.backend.get_vocab()
        self.pad_token_id, self.unk_token_id = (
            next(vocab[name] for name in names if name in vocab) for names in (("[PAD]", "<pad>"), ("[UNK]", "<unk>"))
        )
        self.model_max_length = 512

    def __call__(self, texts: list[str], add_special_tokens: bool = True) -> dict[str, list[list[int]]]:
        encoded = self.backend.encode_batch(texts, add_special_tokens=add_special_tokens)
        return {"input_ids": [text.ids for text in encoded]}

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return self([text], add_special_tokens)["input_ids"][0]
