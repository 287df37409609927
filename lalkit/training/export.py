"""Write a parser as a network in ONNX, which runs without torch and without lalkit: in a browser, or on a telephone.

The network is exported up to the scores that cost little in a long sentence. A program that reads them adds up the attention in
the spans and finds the tree. `parser.json` describes the scores. It is written last: a folder without it is incomplete.

Weights of 16 or 8 bits are stored so, and become numbers of 32 bits when a program loads them. An 8-bit weight is a whole number
times the scale of its row.
"""

from __future__ import annotations

import logging
import warnings
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, cast

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn.utils import parametrize

from lalkit import __version__
from lalkit.errors import LalkitError, ModelError, checked
from lalkit.files import check_new, find_json, write_bytes, write_json
from lalkit.network.alignment import files_of, is_ours, special_tokens
from lalkit.network.batches import IGNORE, Batch
from lalkit.network.parser import Network
from lalkit.network.scores import SpanScorer, with_one
from lalkit.network.span_attention import FLOOR
from lalkit.training.checkpoint import load_model
from lalkit.training.named import common_words, find
from lalkit.treebank.text import FOREIGN, token_pattern

OUTPUTS = ["logits", "evidence", "boundary", "arcs", "arc_labels", "tags"]
Stored = Literal["fp32", "fp16", "int8"]


class Scores(nn.Module):
    """The part of the network that ONNX computes: the scores of one sentence, without padding."""

    def __init__(self, network: Network):
        super().__init__()
        self.network = network

    def forward(self, subwords: Int[Tensor, "1 s"], last: Int[Tensor, "t"]) -> tuple[Tensor, ...]:
        """Return the scores in the order of OUTPUTS. last: for START, every word and STOP, the place of its last sub-word."""
        words, places = last.shape[0] - 2, torch.stack([torch.zeros_like(last), last, last], dim=-1)[None]
        tags, mask, seen = torch.full((1, words), IGNORE), (last >= 0)[None], subwords >= 0  # all of them
        batch = Batch(torch.full((1,), words), mask, tags, subwords, seen, places)
        output = self.network(batch, chart=False)
        logits, evidence, posts, _ = output.span_parts
        scorer = cast(SpanScorer, self.network.spans.boundary)
        boundary = scorer.second(torch.relu(scorer.norm(posts[0] + scorer.bias - posts[0, :, None])))
        dependents, heads = with_one(output.arc_parts[2][0, 1:-1]), with_one(output.arc_parts[3][0, :-1])
        arc_labels = torch.einsum("nk,akl,ml->nma", dependents, self.network.arcs.label, heads)
        return logits[0], evidence[0], boundary, output.arc_scores[0], arc_labels, output.tag_scores[0]


@checked
@torch.no_grad()
def export(name: str, folder: Path, precision: Stored = "fp32", replace: bool = False) -> Path:
    """Write a parser to a folder: the network, the tokenizer, the card and parser.json. Return the path of parser.json.

    name: the parser, its name or its folder. precision: how weights are stored. replace: replace an earlier export.

    Raises LalkitError if a package is missing, if an exported parser is in the folder, and if this one cannot be exported.
    """
    if missing := [package for package in ("onnx", "onnxscript") if not find_spec(package)]:
        raise LalkitError(f"an export needs {missing[0]}", remedy="Install it: pip install 'lalkit[export]'.")
    check_new(folder, "parser.json", replace)
    source = find(name)
    loaded = load_model(source)
    model, network, vocab, tokenizer = loaded.config.model, loaded.network, loaded.vocab, loaded.collator.tokenizer
    joint, encoder = model.task == "joint" and model.tag_input != "given", model.encoder.pretrained or "none"
    if not (joint and isinstance(getattr(network.spans, "boundary", None), SpanScorer) and is_ours(encoder)):
        problem = "only a parser of joint trees by MiniLM, with label attention inside the span, can be exported"
        raise ModelError(problem, where=name, remedy="Give en-span, or one trained with --preset minilm-span.")
    if precision != "fp32":
        shrink(network, precision)
    files = {"model.onnx": to_onnx(network), "tokenizer.json": files_of(encoder)["tokenizer.json"]}
    files |= {card.name: card.read_bytes() for card in source.glob("README.md")}
    (before, after), hyphens = special_tokens(tokenizer), loaded.info.get("hyphens", True)
    card = find_json(source / "card.json") or {}
    about = {
        "format": "lalkit-onnx-1", "lalkit": __version__, "name": card.get("name", source.name), "precision": precision,
        "licence": card.get("licence"), "encoder": {"name": encoder, "licence": "Apache-2.0"},
        "lam": loaded.config.train.lam, "temperature": loaded.temperature, "floor": FLOOR, "root": vocab.root,
        "hyphens": hyphens, "words": token_pattern(hyphens).pattern, "longest": tokenizer.model_max_length,
        "before": before, "after": after, "unknown": tokenizer.unk_token_id,
        "labels": vocab.labels, "heads": vocab.labels[1:], "arc_labels": vocab.arc_labels, "tags": vocab.tags,
        "common": sorted(common_words(loaded.info)), "foreign": FOREIGN,
        "files": {f: {"sha256": sha256(data).hexdigest(), "bytes": len(data)} for f, data in files.items()},
    }  # fmt: skip
    (folder / "parser.json").unlink(missing_ok=True)
    for file, data in files.items():
        write_bytes(folder / file, data)
    return write_json(folder / "parser.json", about)


def to_onnx(network: Network) -> bytes:
    """Return the network in ONNX, for sentences of any length."""
    example = torch.zeros(1, 6, dtype=torch.long), torch.tensor([0, 1, 3, 4, 5])
    lengths = {"subwords": {1: torch.export.Dim("s", min=3)}, "last": {0: torch.export.Dim("t", min=3)}}
    options: dict = {"dynamo": True, "dynamic_shapes": lengths, "output_names": OUTPUTS, "verbose": False}
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(action="ignore"):
        model = torch.onnx.export(Scores(network).eval(), example, **options).model_proto
    for part in (model.graph, *model.graph.node, *model.graph.input, *model.graph.output):
        part.ClearField("metadata_props")  # they have the paths of this machine
    return model.SerializeToString()


class InBits(nn.Module):
    """Keep a matrix in fewer bits: as numbers of 16 bits, or as whole numbers of 8 bits, with one scale for each row."""

    def __init__(self, precision: Stored):
        super().__init__()
        self.precision = precision

    def forward(self, numbers: Tensor, scale: Tensor) -> Tensor:
        return numbers.float() * scale

    def right_inverse(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Return what `forward` takes. The name is that of torch's parametrizations."""
        if self.precision == "fp16":
            return weights.half(), torch.ones(())
        scale = (weights.abs().amax(-1, keepdim=True) / 127).clamp(min=1e-30)
        return (weights / scale).round().to(torch.int8), scale


def shrink(network: Network, precision: Stored) -> None:
    """Store the matrices of a network in fewer bits."""
    for module in list(network.modules()):
        for name, weights in list(module.named_parameters(recurse=False)):
            if weights.dim() > 1:
                weights.requires_grad_(False)
                parametrize.register_parametrization(module, name, InBits(precision), unsafe=True)
