"""Parsers on disk: a folder with `model.json` (config, vocabulary, encoder, results) and the weights file it names.

Weights are safetensors and are written under a new name first; renaming `model.json` into place is the one moment at which
the new checkpoint becomes the checkpoint. A kill at any instant leaves the old one or the new one, whole. What the encoder
keeps frozen is not stored: it comes from the encoder itself, which is recognised by its hash.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from lalkit.batch.collate import Collator
from lalkit.batch.vocab import Vocab
from lalkit.config import Config, from_dict, to_dict
from lalkit.errors import ModelError
from lalkit.files import write_bytes, write_json
from lalkit.model.parser import Network
from lalkit.model.pretrained import load_tokenizer, weights_hash

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


def make_collator(config: Config, vocab: Vocab, remember: bool = False) -> Collator:
    """remember: see `Collator`; for training."""
    encoder = config.model.encoder
    tokenizer = load_tokenizer(encoder.pretrained) if encoder.pretrained else None
    return Collator(vocab, tokenizer, encoder.window, remember)


def save_model(folder: str | Path, network: Network, config: Config, vocab: Vocab, tag: str, info: dict) -> None:
    """tag: what distinguishes these weights (step), part of their file's name. info: results and provenance, JSON."""
    encoder = config.model.encoder.pretrained
    content = {
        "format": FORMAT,
        "config": to_dict(config),
        "encoder_sha256": weights_hash(encoder) if encoder else None,
        "vocab": vocab.to_dict(),
        "info": info,
    }
    save_tensors(folder, "model", tag, trained(network), content)


def load_model(folder: str | Path) -> Loaded:
    """Raises ModelError for anything that is not a whole checkpoint of lalkit's, or whose encoder is not the same."""
    content, tensors = load_tensors(folder, "model")
    if content.get("format") != FORMAT:
        raise ModelError(
            f"is no {FORMAT} checkpoint but {content.get('format')!r}", where=f"{folder}/model.json", remedy=RETRAIN
        )
    config = from_dict(Config, content["config"], f"{folder}/model.json: config")
    encoder = config.model.encoder.pretrained
    found = weights_hash(encoder) if encoder else None
    if found is not None and content["encoder_sha256"] not in (None, found):
        raise ModelError(
            f"the encoder {encoder!r} is not the one this parser was trained with",
            where=str(folder),
            remedy="Install the encoder's version named in constraints.txt.",
        )
    vocab = Vocab.from_dict(content["vocab"])
    network = Network(config.model, vocab, weights=config.model.encoder.freeze_embeddings)
    fill(network, tensors, str(folder))
    network.eval()
    return Loaded(network, vocab, config, make_collator(config, vocab), content.get("info", {}))


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


def fill(network: Network, tensors: dict[str, Tensor], where: str) -> None:
    """Put saved tensors into a network. Raises ModelError unless they are exactly what it needs."""
    expected = trained(network)
    wrong = sorted(set(expected) ^ set(tensors)) or sorted(
        k for k, v in tensors.items() if v.shape != expected[k].shape
    )
    if wrong:
        raise ModelError(f"the weights do not fit the config: {', '.join(wrong[:4])}", where=where, remedy=RETRAIN)
    network.load_state_dict(tensors, strict=False)


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
        content = json.loads(file.read_text())
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
