"""Parsers on disk: a folder with `model.json` (config, vocabulary, encoder, results) and the weights file it names.

Weights are safetensors and are written under a new name first; renaming `model.json` into place is the one moment at which
the new checkpoint becomes the checkpoint. A kill at any instant leaves the old one or the new one, whole. What the encoder
keeps frozen is not stored: it comes from the encoder itself, and is recognised by its hash.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from lalkit.config import Config, from_dict, to_dict
from lalkit.errors import ModelError
from lalkit.files import write_bytes, write_json
from lalkit.network.batches import Collator
from lalkit.network.parser import Network
from lalkit.network.vocabulary import Vocab

FORMAT = "lalkit-parser-1"
RETRAIN = "Give a folder written by `lalkit train`; if the file was damaged, copy or train it again."


@dataclass
class Loaded:
    """A parser as it was saved."""

    network: Network
    vocab: Vocab
    config: Config
    collator: Collator
    info: dict


def save_model(
    folder: str | Path, network: Network, config: Config, vocab: Vocab, tag: str, info: dict, half: bool = False
) -> None:
    """tag: what distinguishes these weights (step), part of their file's name. info: results and provenance, JSON. half:
    in 16 bits (they are loaded as 32)."""
    content = {
        "format": FORMAT,
        "config": to_dict(config),
        "frozen_sha256": frozen_hash(network),
        "vocab": (vocab.without_words() if config.model.encoder.pretrained else vocab).to_dict(),
        "info": info,
    }
    tensors = trained(network)
    save_tensors(folder, "model", tag, _halved(tensors) if half else tensors, content)


def _halved(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k: v.half() if v.is_floating_point() else v for k, v in tensors.items()}


def load_model(folder: str | Path) -> Loaded:
    """Raises ModelError for anything that is not a whole checkpoint of lalkit's, or whose encoder is not the same."""
    content, tensors = load_tensors(folder, "model")
    if content.get("format") != FORMAT:
        raise ModelError(
            f"is no {FORMAT} checkpoint but {content.get('format')!r}", where=f"{folder}/model.json", remedy=RETRAIN
        )
    config = from_dict(Config, content.get("config"), f"{folder}/model.json: config")
    try:
        vocab = Vocab.from_dict(content["vocab"])
    except (KeyError, TypeError):
        raise ModelError("has no whole vocabulary", where=f"{folder}/model.json", remedy=RETRAIN) from None
    network = Network(config.model, vocab, weights=config.model.encoder.keeps_weights)
    if content.get("frozen_sha256") != frozen_hash(network):
        raise ModelError(
            f"the encoder {config.model.encoder.pretrained!r} is not the one this parser was trained with",
            where=str(folder),
            remedy="Install the encoder's version named in constraints.txt.",
        )
    fill(network, tensors, str(folder))
    network.eval()
    return Loaded(network, vocab, config, Collator(vocab, config.model.encoder), content.get("info", {}))


def fingerprint(folder: str | Path) -> str:
    """What tells one parser from every other, wherever it lies: a SHA-256 of its two files. Raises ModelError if it is none."""
    content = read_content(folder, "model")
    found = hashlib.sha256()
    for name in ("model.json", Path(content["weights"]).name):
        file = Path(folder) / name
        try:
            with file.open("rb") as stream:
                found.update(hashlib.file_digest(stream, "sha256").digest())
        except OSError as error:
            raise ModelError(f"cannot be read ({error.strerror})", where=str(file), remedy=RETRAIN) from None
    return found.hexdigest()


def trained(network: Network) -> dict[str, Tensor]:
    """The state to keep: all but frozen parameters."""
    frozen = {name for name, p in network.named_parameters() if not p.requires_grad}
    return {k: v.detach().cpu().contiguous() for k, v in network.state_dict().items() if k not in frozen}


def frozen_hash(network: Network) -> str | None:
    """SHA-256 of the parameters that stay as the encoder has them, wherever it came from; None if there are none."""
    frozen = sorted((name, p) for name, p in network.named_parameters() if not p.requires_grad)
    found = hashlib.sha256()
    for name, p in frozen:
        found.update(f"{name} {p.dtype} {[*p.shape]}".encode())
        found.update(p.detach().cpu().contiguous().numpy().data)
    return found.hexdigest() if frozen else None


def fill(network: Network, tensors: dict[str, Tensor], where: str) -> None:
    """Put saved tensors into a network. Raises ModelError unless they are exactly what it needs."""
    expected = trained(network)
    wrong = sorted(set(expected) ^ set(tensors)) or sorted(
        k for k, v in tensors.items() if v.shape != expected[k].shape
    )
    if wrong:
        raise ModelError(f"the weights do not fit the config: {', '.join(wrong[:4])}", where=where, remedy=RETRAIN)
    network.load_state_dict(tensors, strict=False)


# Parameters with a row (after the first `skipped`) for every label, tag, arc label, or word and character from scratch.
ROWS = {
    "words.word.": ("words", 0),
    "words.char.": ("chars", 0),
    "spans.second.": ("labels", 1),
    "spans.boundary.second.": ("labels", 1),
    "spans.query": ("labels", 1),
    "spans.evidence.": ("labels", 1),
    "tag_scorer.": ("tags", 0),
    "tags.": ("tags", 0),
    "arcs.label": ("arc_labels", 0),
}
# With linear boundaries the edges have a row for every label too.
GLASS = {"spans.boundary.first.": ("labels", 1), "spans.boundary.last.": ("labels", 1)}


def start_from(network: Network, vocab: Vocab, folder: str | Path) -> None:
    """Give a new network the weights of a trained parser; labels, tags, words and characters are matched by their
    names, and what is new keeps its random row. Raises ModelError unless all else is of the same config."""
    loaded = load_model(folder)
    theirs, inside = trained(loaded.network), network.config.span_attention
    glass = inside is not None and inside.boundary == "glass"
    with torch.no_grad():
        for name, p in network.named_parameters():
            if not p.requires_grad:
                continue
            rows = ROWS | GLASS if glass else ROWS
            kind = next((names for prefix, names in rows.items() if name.startswith(prefix)), None)
            if name not in theirs or theirs[name].shape[bool(kind) :] != p.shape[bool(kind) :]:
                raise ModelError(
                    f"cannot be started from: its {name} is not of this config",
                    where=str(folder),
                    remedy="Start from a parser of the same sizes (its model.json has them).",
                )
            if kind is None:
                p.copy_(theirs[name])
                continue
            skipped = kind[1]
            old = {label: i for i, label in enumerate(getattr(loaded.vocab, kind[0])[skipped:])}
            for row, label in enumerate(getattr(vocab, kind[0])[skipped:]):
                if label in old:
                    p[row] = theirs[name][old[label]]


def save_tensors(folder: str | Path, name: str, tag: str, tensors: dict[str, Tensor], content: dict) -> None:
    """folder/name.json (committed by rename, last) + folder/name-tag.safetensors; older weights are removed after that."""
    folder = Path(folder)
    weights = folder / f"{name}-{tag}.safetensors"
    write_bytes(weights, save(tensors))
    write_json(folder / f"{name}.json", {**content, "weights": weights.name})
    for old in [*folder.glob(f"{name}-*.safetensors"), *folder.glob(f".{name}*.part")]:
        if old != weights and not _being_written(old):
            old.unlink(missing_ok=True)


def _being_written(path: Path) -> bool:
    """A part file of a process that still runs is not ours to remove."""
    pid = path.name.rsplit(".", 2)[-2] if path.name.endswith(".part") else ""
    return pid.isdigit() and Path(f"/proc/{pid}").exists() and int(pid) != os.getpid()


def read_content(folder: str | Path, name: str) -> dict:
    """name.json. Raises ModelError where it is missing, damaged, or names no weights."""
    file = Path(folder) / f"{name}.json"
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        Path(content["weights"])
    except OSError as error:
        raise ModelError(f"no parser here ({error.strerror})", where=str(file), remedy=RETRAIN) from None
    except (ValueError, KeyError, TypeError):
        raise ModelError("is damaged or not lalkit's", where=str(file), remedy=RETRAIN) from None
    return content


def load_tensors(folder: str | Path, name: str) -> tuple[dict, dict[str, Tensor]]:
    """(content of name.json, tensors). Raises ModelError naming the file that is missing, truncated or foreign."""
    content = read_content(folder, name)
    weights = Path(folder) / Path(content["weights"]).name
    try:
        return content, load_file(weights)
    except (OSError, SafetensorError) as error:
        raise ModelError(f"cannot be read: {error}", where=str(weights), remedy=RETRAIN) from None
