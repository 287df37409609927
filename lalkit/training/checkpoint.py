"""Parsers on disk: a folder with `model.json` (config, vocabulary, encoder, results) and the file of weights that it names.

Weights (safetensors) are written under a new name first. The new checkpoint counts from the moment at which `model.json` is
renamed. If the process is killed at any time, the old or the new checkpoint is left, complete. Frozen weights of an encoder that
has a name of ours, such as minilm, are not stored: they come from the encoder itself, and their hash is checked. Any other
encoder travels with its parser: the folder `encoder` has its config and its tokenizer, and all its weights are stored.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, load_file, save
from torch import Tensor, nn

from lalkit.config import Config, EncoderConfig, Temperature, from_dict, override, to_dict
from lalkit.errors import ModelError
from lalkit.files import check_form, in_utf8, read_json, reading, regular, remove_parts, write_bytes, write_json
from lalkit.network.alignment import NAMED, files_of
from lalkit.network.batches import Collator
from lalkit.network.encoder import check_numbers, fill
from lalkit.network.model import Model
from lalkit.network.parser import Network
from lalkit.network.vocabulary import Vocab

FORMAT = "lalkit-parser-1"
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # the state of Adam for a parameter
BUILDING = threading.RLock()  # held while a network is built
CALIBRATION, ENCODER = "calibration.json", "encoder"
RETRAIN = "Give a folder written by `lalkit train`; if the file was damaged, copy or train it again."


@dataclass(frozen=True)
class Calibration:
    """The entries that calibration.json must have: the temperature, and the file of weights that it belongs to."""

    temperature: Temperature | tuple[Temperature, Temperature]  # of all scores; or of labels and of arcs
    weights: str


@dataclass(frozen=True)
class Info:
    """The optional entries of the info of model.json for `Parser.reader`: see `lalkit.treebank.text.habits`."""

    hyphens: bool = True
    marks: list[str] | None = None
    common: list[str] | None = None


def save_model(model: Model, folder: str | Path, tag: str, half: bool = False) -> None:
    """Save a parser, without its calibration.

    Args:
        model: The parser. Its info holds JSON values.
        folder: The folder to write to.
        tag: A part of the name of the weights' file that tells these weights from others, such as the step.
        half: Save the weights in 16 bits. They are loaded as 32 bits.
    """
    config, vocab = model.config, model.vocab
    # With a pretrained encoder, no words: a shipped parser must not contain the words of a corpus.
    kept = Vocab(vocab.labels, vocab.tags, vocab.arc_labels) if config.model.encoder.pretrained else vocab
    content = {"format": FORMAT, "config": to_dict(config), "frozen_sha256": frozen_hash(model.network)}
    content |= {"vocab": kept.to_dict(), "info": model.info}
    if travels(config.model.encoder):
        for name, data in files_of(config.model.encoder.pretrained).items():
            write_bytes(Path(folder) / ENCODER / name, data)
    tensors = {k: v.half() if half and v.is_floating_point() else v for k, v in trained(model.network).items()}
    save_tensors(folder, "model", tag, tensors, content)


@contextmanager
def untouched() -> Iterator[None]:
    """Build a network as in a new process, with float32 on the CPU, and leave torch's defaults and random numbers as they are.

    The default dtype belongs to the whole process, so one thread builds at a time.
    """
    with BUILDING, torch.random.fork_rng(devices=[]), torch.device("cpu"), torch.inference_mode(False):
        dtype = torch.get_default_dtype()
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)


@untouched()
def load_model(folder: str | Path) -> Model:
    """Load a parser. Raises ModelError if it is not a complete checkpoint of lalkit, or if its encoder has changed."""
    content, tensors = load_tensors(folder, "model")
    file = f"{folder}/model.json"
    if content.get("format") != FORMAT:
        raise ModelError(f"is no {FORMAT} checkpoint but {content.get('format')!r}", where=file, remedy=RETRAIN)
    config = from_dict(Config, content.get("config"), f"{file}: config")
    try:
        vocab = Vocab.from_dict(content["vocab"])
        check_form(content.get("info", {}), Info)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"has no whole vocabulary, or no results: {error}"
        raise ModelError(problem, where=file, remedy=RETRAIN) from None
    if moved := travels(config.model.encoder) and (Path(folder) / ENCODER).is_dir():
        config = override(config, {"model.encoder.pretrained": str(Path(folder) / ENCODER)})
    network = Network(config.model, vocab, weights=not moved)
    if content.get("frozen_sha256") != frozen_hash(network):
        problem = f"the encoder {config.model.encoder.pretrained!r} is not the one this parser was trained with"
        remedy = "Install the encoder's version of this parser; constraints.txt names that of minilm."
        raise ModelError(problem, where=str(folder), remedy=remedy)
    fill(network, tensors, str(folder), RETRAIN, trained(network))
    network.eval()
    collator, calibration = Collator(vocab, config.model.encoder), read_calibration(folder, content["weights"])
    temperature = calibration["temperature"] if calibration else 1.0
    return Model(network, vocab, collator, config, content.get("info", {}), calibration, temperature)


def read_calibration(folder: str | Path, weights: str | None = None) -> dict | None:
    """Return calibration.json, which holds the temperature of a parser and where it comes from; None if there is none.

    weights: the name of the parser's file of weights. Raises ModelError if calibration.json is damaged, or was fitted to other
    weights.
    """
    file = Path(folder) / CALIBRATION
    if not file.exists():
        return None
    remedy = "Run tools/ship.py calibrate again, or delete the file."
    facts = read_json(file, remedy, ModelError, form=Calibration)
    if weights not in (None, facts["weights"]):
        problem = f"was fitted to other weights: {facts['weights']}, not {weights}"
        raise ModelError(problem, where=str(file), remedy=remedy)
    return facts


def fingerprint(folder: str | Path) -> str:
    """Return the SHA-256 of a parser's two files, which identifies it in any folder.

    Raises ModelError if one of the files is missing or cannot be read.
    """
    digest = hashlib.sha256()
    for name in ("model.json", Path(read_content(folder, "model")["weights"]).name):
        file = Path(folder) / name
        with reading(file, RETRAIN, ModelError), regular(file).open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def travels(encoder: EncoderConfig) -> bool:
    """Return whether a parser's folder holds its whole encoder: if there is one, and it has no name of ours."""
    return encoder.pretrained is not None and encoder.pretrained not in NAMED


def trained(network: Network) -> dict[str, Tensor]:
    """Return the tensors to save: everything except the frozen parameters of an encoder with a name of ours."""
    whole = travels(network.config.encoder)
    frozen = {name for name, p in network.named_parameters() if not (whole or p.requires_grad)}
    return {k: v.detach().cpu().contiguous() for k, v in network.state_dict().items() if k not in frozen}


def frozen_hash(network: Network) -> str | None:
    """Return the SHA-256 of the parameters that are not saved (frozen parameters of the encoder); None if all are saved."""
    saved = trained(network)
    frozen = sorted((name, p) for name, p in network.named_parameters() if name not in saved)
    digest = hashlib.sha256()
    for name, p in frozen:
        digest.update(f"{name} {p.dtype} {[*p.shape]}".encode())
        digest.update(p.detach().cpu().contiguous().numpy().data)
    return digest.hexdigest() if frozen else None


# The parameters that have a row for every entry of a vocabulary, by the beginning of their names.
ROWS = {
    "words.word.": "words", "words.char.": "chars", "spans.second.": "labels", "spans.boundary.second.": "labels",
    "spans.query": "labels", "spans.evidence.": "labels", "tag_scorer.": "tags", "tags.": "tags", "arcs.label": "arc_labels",
}  # fmt: skip
# With a `glass` boundary, the edges have a row for every label, too.
GLASS = {"spans.boundary.first.": "labels", "spans.boundary.last.": "labels"}
LAST_LAYER = ("label_attention.", "spans.", "arcs.project.")


@torch.no_grad()
def start_from(model: Model, folder: str | Path) -> None:
    """Initialise a new model from the weights of a trained parser.

    Labels, tags, words and characters are matched by their names; new ones keep their random rows. If the parser has another
    last layer, that layer and the maps that read its vectors stay random. Raises ModelError if anything else has another shape.
    """
    loaded, inside = load_model(folder), model.config.model.span_attention
    kinds = {(bool(m.label_attention), bool(m.span_attention)) for m in (loaded.config.model, model.config.model)}
    anew = LAST_LAYER if len(kinds) == 2 else ()
    remedy = "Give the sizes, and the settings model.encoder, of its model.json."
    weights, own = trained(loaded.network), dict(model.network.words.named_parameters())
    for name, p in loaded.network.words.named_parameters():
        if name not in own or not (own[name].requires_grad or torch.equal(own[name].cpu().half(), p.half())):
            raise ModelError(f"cannot be a start: its words.{name} would be lost", where=str(folder), remedy=remedy)
    rows = ROWS | GLASS if inside is not None and inside.boundary == "glass" else ROWS
    for name, p in model.network.named_parameters():
        if not p.requires_grad or name.startswith(anew):
            continue
        kind = next((kind for beginning, kind in rows.items() if name.startswith(beginning)), None)
        if name not in weights or weights[name].shape[bool(kind) :] != p.shape[bool(kind) :]:
            problem = f"cannot be a start: its {name} does not fit this config"
            raise ModelError(problem, where=str(folder), remedy=remedy)
        if kind is None:
            p.copy_(weights[name])
            continue
        first = int(kind == "labels")  # the empty label has no row
        old = {label: row for row, label in enumerate(getattr(loaded.vocab, kind)[first:])}
        pairs = [(row, old[n]) for row, n in enumerate(getattr(model.vocab, kind)[first:]) if n in old]
        ours, theirs = zip(*pairs) if pairs else ((), ())
        p[list(ours)] = weights[name][list(theirs)]


def adam_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the state of Adam for every parameter, by the names that the tensors of resume.json have."""
    return {
        f"adam.{key}.{name}": value.detach().cpu().contiguous()
        for name, p in model.named_parameters()
        for key, value in optimizer.state.get(p, {}).items()
    }


def restore_adam(model: nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor], where: str) -> None:
    """Give Adam back the saved tensors of `adam_tensors`.

    The fused Adam counts its steps on the device of the parameter, any other on the CPU. A parameter has all its moments, or none
    if it never had a gradient. Raises ModelError if some are missing, or do not fit their parameter.
    """
    left = {name: values for name, values in tensors.items() if name.startswith("adam.")}
    check_numbers(left, math.inf, where, RETRAIN)
    for name, p in model.named_parameters():
        saved = {key: left.pop(f"adam.{key}.{name}") for key in MOMENTS if f"adam.{key}.{name}" in left}
        shapes = {key: values.shape for key, values in saved.items()}
        negative = any((values < 0).any() for key, values in saved.items() if key != "exp_avg")
        if saved and (negative or shapes != dict.fromkeys(MOMENTS, p.shape) | {"step": ()}):
            left[name] = p
        elif saved:
            steps = saved["step"].to(p.device if optimizer.defaults["fused"] else "cpu")
            optimizer.state[p] = {key: values.to(p) for key, values in saved.items()} | {"step": steps}
    if left or not optimizer.state:
        raise ModelError("the moments of Adam do not fit the parameters", where=where, remedy=RETRAIN)


def save_tensors(folder: str | Path, name: str, tag: str, tensors: dict[str, Tensor], content: dict) -> None:
    """Write folder/name-tag.safetensors, then rename folder/name.json into place, then remove older files of weights.

    Without tensors, the weights of this tag are on the disk already.
    """
    folder = Path(folder)
    weights = folder / f"{name}-{tag}.safetensors"
    if tensors:
        write_bytes(weights, save(tensors))
    write_json(folder / f"{name}.json", {**content, "weights": weights.name})
    for old in folder.glob(f"{name}-*.safetensors"):
        if old != weights:
            old.unlink(missing_ok=True)
    remove_parts(folder)


def read_content(folder: str | Path, name: str) -> dict:
    """Read name.json. Raises ModelError if it is missing or damaged, or names no weights."""
    file = Path(folder) / f"{name}.json"
    if not file.exists():
        raise ModelError("no parser here", where=str(file), remedy=RETRAIN)
    content = read_json(file, RETRAIN, ModelError)
    if not isinstance(content.get("weights"), str):
        raise ModelError("is damaged: it names no weights", where=str(file), remedy=RETRAIN)
    return content


def load_tensors(folder: str | Path, name: str) -> tuple[dict, dict[str, Tensor]]:
    """Return (content of name.json, tensors). Raises ModelError for a file that is missing or cannot be read."""
    content = read_content(folder, name)
    weights = Path(folder) / Path(content["weights"]).name
    try:
        # Through the memory where the path is not UTF-8: safetensors opens no such file.
        odd = in_utf8(weights) != str(weights)
        return content, load(regular(weights).read_bytes()) if odd else load_file(regular(weights))
    except (OSError, SafetensorError) as error:
        raise ModelError(f"cannot be read: {error}", where=str(weights), remedy=RETRAIN) from None
