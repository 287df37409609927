"""The encoders with a name of ours, MiniLM, e5-han and mpnet: the network of a BERT, and a tokenizer, without transformers.

transformers computes the same bits (a test compares them). But importing its models takes two to three times as long as
importing torch, which is most of what one sentence on the command line takes. All other encoders come from transformers.
"""

from __future__ import annotations

import json
import math
import zipfile
from functools import partial
from io import BytesIO
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, Shaped
from safetensors.torch import load, load_file, save
from tokenizers import Tokenizer
from torch import Tensor, nn

from lalkit.config import MOST_LAYERS
from lalkit.files import read_json, regular
from lalkit.network.encoder import HookedModule, fill

FOUR_BITS = "bert-4bit"  # the model_type of an encoder by tools/encoders.py
# The names of an MPNet of transformers -> those of a BERT.
MPNET_NAMES = {
    "attention.attn.q": "attention.self.query", "attention.attn.k": "attention.self.key",
    "attention.attn.v": "attention.self.value", "attention.attn.o": "attention.output.dense",
    "attention.LayerNorm": "attention.output.LayerNorm",
}  # fmt: skip


class Linear(nn.Linear):
    """A linear map whose weights will be read from a file. Random weights would take time, and change torch's random state."""

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

    def forward(self, x: Float[Tensor, "r s d"], mask: Shaped[Tensor, "r _ s s"] | None) -> Float[Tensor, "r s d"]:
        """mask: whether a sub-word sees a key; or the numbers that are added to the logits of each head."""
        maps, output = self.attention["self"], self.attention["output"]
        query, key, value = (
            maps[name](x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for name in ("query", "key", "value")
        )
        dropout = self.attention_dropout if self.training else 0.0
        if mask is None or mask.dtype == torch.bool:
            attend: Any = partial(F.scaled_dot_product_attention, query, key, attn_mask=mask, dropout_p=dropout)
        else:  # in the order of the operations of transformers, for the same bits
            logits = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1]) + mask
            attend = F.dropout(torch.softmax(logits, dim=-1), dropout).__matmul__
        if "attention" in self.hooks:
            # `attend` gives no weights, but mixes what it gets: here the rows of a unit matrix.
            unit = torch.eye(key.shape[2], dtype=key.dtype, device=key.device).expand(*key.shape[:3], -1)
            heads = self.hook("attention", attend(unit)) @ value
        else:
            heads = attend(value)
        heads = self.hook("contexts", heads)
        x = output["LayerNorm"](self.dropout(output["dense"](heads.transpose(1, 2).flatten(-2))) + x)
        inner = F.gelu(self.intermediate["dense"](x))
        return self.hook("output", self.output["LayerNorm"](self.dropout(self.output["dense"](inner)) + x))


class Bert(HookedModule):
    """Sub-words -> vectors, called as the models of transformers are. The weights are those of the folder."""

    embeddings: Any
    encoder: Any
    points = {"embeddings": "row sub-word dim"}

    def __init__(self, folder: str | Path, weights: bool = True):
        """weights: read them from the folder. False: leave them unset; those of the parser's own file are put here later."""
        super().__init__()
        self.config = config = SimpleNamespace(**read_json(Path(folder) / "config.json", "Give an encoder's folder."))
        if config.hidden_size % config.num_attention_heads:
            raise ValueError(f"{config.num_attention_heads} heads do not divide {config.hidden_size} numbers")
        if config.num_hidden_layers > MOST_LAYERS:
            raise ValueError(f"it has {config.num_hidden_layers} layers, and {MOST_LAYERS} are the most")
        names = ("word_embeddings", "position_embeddings", "token_type_embeddings")
        rows = config.vocab_size, config.max_position_embeddings, config.type_vocab_size
        table = partial(nn.Embedding.from_pretrained, freeze=False)
        tables = {name: table(torch.empty(size, config.hidden_size)) for name, size in zip(names, rows)}
        tables["word_embeddings"].padding_idx = config.pad_token_id
        norm = nn.LayerNorm(config.hidden_size, eps=float(config.layer_norm_eps))
        self.embeddings = nn.ModuleDict({**tables, "LayerNorm": norm})
        layers = nn.ModuleList(BertLayer(config) for _ in range(config.num_hidden_layers))
        self.encoder, self.dropout = nn.ModuleDict({"layer": layers}), nn.Dropout(config.hidden_dropout_prob)
        if buckets := getattr(config, "relative_attention_num_buckets", 0):  # an MPNet
            bias = torch.empty(buckets, config.num_attention_heads)
            self.encoder["relative_attention_bias"] = table(bias)
        if weights:
            files = sorted(Path(folder).glob("model*.safetensors")) or [Path(folder) / "model.safetensors"]
            read, expected = {}, self.state_dict()
            for file in files:
                read |= load_file(regular(file))
            tensors = {name: tensor for name, tensor in unpack(read).items() if name in expected}
            fill(self, tensors, str(files[0]), "Get the encoder again.")

    def get_input_embeddings(self) -> nn.Module:
        return self.embeddings["word_embeddings"]

    def forward(
        self, input_ids: Int[Tensor, "r s"], attention_mask: Int[Tensor, "r s"], output_hidden_states: bool = False
    ) -> SimpleNamespace:
        words, positions, types, norm = self.embeddings.values()
        places = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
        x = self.dropout(norm(words(input_ids) + types(torch.zeros_like(input_ids)) + positions(places)))
        x = self.hook("embeddings", x)
        seen = attention_mask.bool()
        # `lalkit export`: one sentence, without padding. A GPU would have to wait for the answer.
        full = torch.compiler.is_exporting() or (seen.is_cpu and seen.all())
        mask = None if full else seen[:, None, None].expand(-1, -1, seen.shape[1], -1)
        if "relative_attention_bias" in self.encoder:
            mask = self.bias(places[0]).expand(len(seen), -1, -1, -1).masked_fill(~seen[:, None, None], -torch.inf)
        states = [x]
        for layer in self.encoder["layer"]:
            states.append(layer(states[-1], mask))
        return SimpleNamespace(last_hidden_state=states[-1], hidden_states=states if output_hidden_states else None)

    def bias(self, places: Int[Tensor, "s"]) -> Float[Tensor, "h s s"]:
        """Return the learned number that MPNet adds to a head's logit of query i and key j: it depends on j - i, in all layers.

        Half of the rows of the table are for keys after the query. In each half, half of the rows are for one distance each, and
        the others for ranges that grow, up to 128.
        """
        table, away = self.encoder["relative_attention_bias"], places - places[:, None]
        side, single, size = table.num_embeddings // 2, table.num_embeddings // 4, away.abs()
        ratio = torch.log(size.clamp(min=1).float() / single) / math.log(128 / single)
        far = (single + (ratio * (side - single)).long()).clamp(max=side - 1)
        return table(torch.where(size < single, size, far) + side * (away > 0)).permute(2, 0, 1)


def unpack(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return weights with every matrix of 4 bits as numbers.

    Such a matrix is two tensors. `scale` has one number for 32 weights of a row, [rows, columns / 32, 1]; `pairs` has two weights
    in a byte, [rows, columns / 32, 16]: the low halves of the 16 bytes, then the high ones. A weight is (half - 8) * scale.

    Raises ValueError for other shapes.
    """
    numbers = {name: tensor for name, tensor in weights.items() if ":" not in name}
    for name in {name.partition(":")[0] for name in weights if ":" in name}:
        pairs, scale = weights[f"{name}:pairs"], weights[f"{name}:scale"]
        kinds = pairs.dtype == torch.uint8 and scale.is_floating_point()
        if not kinds or pairs.shape[2:] != (16,) or scale.shape != (*pairs.shape[:2], 1):
            raise ValueError(f"{name} is no matrix of 4 bits")
        numbers[name] = ((torch.cat([pairs & 15, pairs >> 4], dim=-1).float() - 8) * scale.float()).flatten(1)
    return numbers


def in_4_bits(matrix: Float[Tensor, "rows columns"]) -> dict[str, Tensor]:
    """Return a matrix as the two tensors that `whole` reads. Of six scales, every block has the one with the least squared error.

    All sums are in a fixed order, so that every machine writes the same bits.
    """
    blocks = matrix.unflatten(1, (-1, 32))
    high, low = blocks.amax(-1, keepdim=True), blocks.amin(-1, keepdim=True)
    largest = torch.where(high >= -low, high, low)
    kept: tuple = (torch.full_like(largest, torch.inf), torch.zeros_like(largest), torch.zeros_like(blocks))
    for share in (0.8, 0.85, 0.9, 0.95, 1, 1.05):
        scale = (largest / -8 * share).half().float()
        halves = (blocks / scale).nan_to_num(0).round().clamp(-8, 7)
        error = sum((halves * scale - blocks).square().unbind(-1))[..., None]
        kept = tuple(torch.where(error < kept[0], *pair) for pair in zip((error, scale, halves), kept))
    bits = (kept[2] + 8).to(torch.uint8)
    return {"scale": kept[1].half(), "pairs": bits[..., :16] | bits[..., 16:] << 4}


def mpnet_files(archive: bytes) -> dict[str, bytes]:
    """Return the files of mpnet by their names, from a zip of all-mpnet-base-v2 as it was published (Apache-2.0).

    Matrices have 4 bits, but not the tables of positions; these and all vectors have 16. The form and the names are those of a
    BERT: one type of text, of zeros, and no positions of padding.
    """
    with zipfile.ZipFile(BytesIO(archive)) as zipped:
        names = ("config.json", "tokenizer.json", "model.safetensors")
        files = {name: zipped.read(f"all-mpnet-base-v2/{name}") for name in names}
    weights, config = load(files.pop("model.safetensors")), json.loads(files["config.json"])
    saved = {"embeddings.token_type_embeddings.weight": torch.zeros(1, config["hidden_size"]).half()}
    for name, tensor in sorted(weights.items()):
        for theirs, ours in MPNET_NAMES.items():
            name = name.replace(theirs, ours)
        if tensor.dim() == 2 and "position" not in name and "bias" not in name:
            saved |= {f"{name}:{kind}": part for kind, part in in_4_bits(tensor).items()}
        elif tensor.is_floating_point():
            saved[name] = tensor[2 * ("position" in name) :].half()
    saved = {name: part for name, part in saved.items() if not name.startswith("pooler")}
    sizes = list(accumulate(part.nbytes for part in saved.values()))
    first = {name: saved.pop(name) for name, size in zip(list(saved), sizes) if 2 * size <= sizes[-1]}
    positions = config["max_position_embeddings"] - 2
    config |= {"model_type": FOUR_BITS, "type_vocab_size": 1, "max_position_embeddings": positions}
    files["config.json"] = (json.dumps(config, indent=1) + "\n").encode()
    return files | {"model-1.safetensors": save(first), "model-2.safetensors": save(saved)}


class Pieces:
    """A tokenizer by the library tokenizers alone, with the methods that `lalkit.network.alignment` calls."""

    def __init__(self, folder: str | Path):
        self.backend = Tokenizer.from_file(str(regular(Path(folder) / "tokenizer.json")))
        self.backend.no_truncation()
        self.backend.no_padding()
        vocab = self.backend.get_vocab()
        self.pad_token_id, self.unk_token_id = (
            next(vocab[name] for name in names if name in vocab) for names in (("<pad>", "[PAD]"), ("[UNK]", "<unk>"))
        )
        self.model_max_length = 512

    def __call__(self, texts: list[str], add_special_tokens: bool = True) -> dict[str, list[list[int]]]:
        encoded = self.backend.encode_batch_fast(texts, add_special_tokens=add_special_tokens)
        return {"input_ids": [text.ids for text in encoded]}

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return self([text], add_special_tokens)["input_ids"][0]
