"""Look at values inside a network, and change them: at hook points, as vectors of places, as attention between words.

The functions take a `Model`. `lalkit.Parser` has a method for each of them, which says more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lalkit.chart import machine
from lalkit.errors import LalkitError, ModelError, ParameterError, shown
from lalkit.network.batches import subwords_of_words
from lalkit.network.encoder import Change
from lalkit.network.model import Model, Prediction
from lalkit.network.parser import READING
from lalkit.treebank.tree import Sentence

if TYPE_CHECKING:
    import pandas as pd

    from lalkit.interpret.layers import Heads
    from lalkit.interpret.tables import SelfAttention

LISTED = "`parser.hooks()` lists them."
WORD_AXES, HEAD_AXES = ("word", "position", "place", "sub-word"), ("head", "label")  # of which words= and heads= choose


def hooks(model: Model) -> pd.DataFrame:
    """Return the hook points of a network: point, axes of the value."""
    import pandas as pd

    rows = [(name, axes) for name, (*_, axes) in model.network.hook_points().items()]
    return pd.DataFrame(rows, columns=["point", "axes"])


def patched(
    model: Model, points: Mapping[str, Any], words: Any = None, heads: Heads | None = None, value: Any = None
) -> Change:
    """Return the `with` block in which values at hook points are changed. value: the value that `with ... as` assigns."""
    known = model.network.hook_points()
    if unknown := [name for name in points if name not in known]:
        raise ParameterError(f"there is no hook point {unknown[0]!r}{_missing(model, unknown[0])}", remedy=LISTED)
    for kinds, items in ((WORD_AXES, words), (HEAD_AXES, heads)):
        if items is not None and (bare := [name for name in points if not {*kinds} & {*known[name][-1].split()}]):
            raise ParameterError(f"there is no {kinds[0]} to choose at {bare[0]!r}", remedy="See `parser.hooks()`.")
    choose = partial(_patch, partial(_chosen, model.vocab.labels[1:]), words, heads)
    parts = []
    for name, change in points.items():
        layer, point, axes = known[name]
        parts.append((layer, {point: partial(choose, name, axes, change)}))
    return Change(parts, value)


def activations(model: Model, sentences: Iterable[Sentence], points: str | Iterable[str]) -> list[dict[str, Tensor]]:
    """Return the values at hook points, for each sentence alone."""
    names = [points] if isinstance(points, str) else list(points)
    return [_record(model, sentence, names)[1] for sentence in sentences]


def self_attention(model: Model, given: list[Sentence], layer: str) -> SelfAttention:
    """Return the attention between words of every self-attention head: see `tables.SelfAttention`."""
    from lalkit.interpret.tables import SelfAttention

    parses, arrays = [], []
    names = [name for name in model.network.hook_points() if re.fullmatch(rf"{layer}\.\d+\.attention", name)]
    if not names:
        problem = f"there is no self-attention to show at {layer!r}{_missing(model, layer)}"
        raise ModelError(problem, remedy="Choose the other layer.")
    for sentence in given:
        of_word = subwords_of_words(model.collator([sentence])).float() if layer == "pretrained" else None
        prediction, values = _record(model, sentence, names)
        attention = torch.cat(list(values.values())).cpu()
        if of_word is not None:
            attention = (of_word / of_word.sum(1, keepdim=True)) @ attention @ of_word.T
        parses.append(prediction.sentence)
        arrays.append(attention.numpy())
    return SelfAttention(parses, given, arrays)


def _missing(model: Model, name: str) -> str:
    """Return why a pretrained encoder lacks a hook point, for the end of a message."""
    points = getattr(model.network.words, "points", None)
    return f": {points.missing}" if points and name.startswith("pretrained") else ""


def _record(model: Model, sentence: Sentence, names: Iterable[str]) -> tuple[Prediction, dict[str, Tensor]]:
    """Parse a sentence, and keep the values at hook points."""
    values: dict[str, Tensor] = {}
    if any(name.startswith("pretrained.") for name in names):
        subwords_of_words(model.collator([sentence]))  # refuses a sentence that this encoder reads in parts
    with patched(model, {name: lambda value, name=name: values.update({name: value}) or value for name in names}):
        (prediction,) = model.exact.parse([sentence])
    return prediction, {name: value.clone() for name, value in values.items()}


def _patch(
    choose: Callable, words: Any, heads: Any, name: str, axes: str, change: Any, value: Tensor, *context: Tensor
) -> Tensor:
    """Return a value with a change in the chosen words and heads. name: of the hook point."""
    try:
        given = change(value.clone()) if callable(change) else change  # it may change its argument
    except LalkitError:
        raise
    except Exception as error:
        problem = f"the function at {name!r} raised {type(error).__name__}{shown(error.args)}"
        raise ParameterError(problem, remedy="Mend it; it must not parse with the parser that it changes.") from error
    try:
        new = torch.as_tensor(given)
        if new.is_meta or new.is_complex() or new.layout != torch.strided or new.isnan().any():
            raise ValueError
    except (RuntimeError, TypeError, ValueError):
        problem = f"the function at {name!r} returned" if callable(change) else f"the value at {name!r} is"
        remedy = "Give a tensor of numbers, or a function that returns one."
        raise ParameterError(f"{problem} {shown(given)}", remedy=remedy) from None
    try:
        new = new.to(value).expand_as(value)
    except RuntimeError:
        problem = f"a value of shape {list(new.shape)} does not fit where {list(value.shape)} stands"
        raise ParameterError(problem, remedy="Take it from a sentence with as many words and sub-words.") from None
    for kinds, items in ((WORD_AXES, words), (HEAD_AXES, heads)):
        if items is not None:
            axis = next(k for k, kind in enumerate(axes.split()) if kind in kinds)
            here = choose(axes.split()[axis], items, value.shape[axis]).to(value.device)
            new = torch.where(here.view(-1, *[1] * (value.dim() - axis - 1)), new, value)
    return new


def _chosen(labels: Sequence[str], kind: str, items: Any, size: int) -> Tensor:
    """Return which places of an axis are chosen, [size]."""
    from lalkit.interpret.layers import chosen

    if kind == "sub-word":
        of_words = subwords_of_words(READING.get())
        return of_words[chosen(items, len(of_words), "word")].any(0)
    return chosen(items, size, kind, int(kind == "word"), labels if kind == "label" else ())


class Vectors(NamedTuple):
    """Vectors, one in each row of `array`, and the table `index` with the same rows."""

    array: np.ndarray
    index: pd.DataFrame


def vectors_of_layer(model: Model, sentences: list[Sentence], layer: str, progress: bool = False) -> Vectors:
    """Return the vectors of words at a layer or a hook point, and the table of words."""
    from lalkit.interpret import tables

    points = model.network.hook_points()
    name = next((name for name in (f"pretrained.{layer}", f"{layer}.output", layer) if name in points), layer)
    axes = points[name][-1].split() if name in points else ["key"]
    axis = next((k for k, kind in enumerate(axes) if kind in ("word", "position", "sub-word")), None)
    if axis is None or "key" in axes:
        raise ParameterError(f"there are no vectors of words at {layer!r}{_missing(model, layer)}", remedy=LISTED)
    parses, arrays = [], []
    for sentence in machine.progress(sentences, desc="parsing", unit=" sentences") if progress else sentences:
        prediction, values = _record(model, sentence, [name])
        value = values[name].movedim(axis, 0)
        if axes[axis] == "sub-word":
            value = value[model.collator([sentence]).places[0, :, 2]]
        arrays.append((value if axes[axis] == "word" else value[1:-1]).flatten(1).float().cpu().numpy())
        parses.append(prediction.sentence)
    return Vectors(np.concatenate(arrays), tables.words(parses))


def vectors(
    model: Model, sentences: list[Sentence], at: str, batch_words: int | None = None, progress: bool = False
) -> Vectors:
    """Return vectors of the network, and a table that describes the vector of each row: see `Parser.vectors`."""
    import pandas as pd

    from lalkit.interpret import explainer, tables
    from lalkit.interpret.layers import parsed_spans

    layer = explainer(model) if at == "head" else None
    if layer:
        layer.check_contexts()
    if not sentences or (at == "span" and model.config.model.task == "dependencies"):
        raise LalkitError("there is nothing to have a vector", "Give sentences; for spans, use another parser.")
    seen: list[Any] = [None] * len(sentences)
    for scored, predictions in model.exact.predict(sentences, batch_words=batch_words, progress=progress):
        output = scored.output
        for b, (place, prediction) in enumerate(zip(scored.places, predictions)):
            n, spans = len(prediction.sentence), parsed_spans(prediction)
            x, posts = output.x[b : b + 1, : n + 2], output.posts[b, : n + 1].flatten(1)
            found = {"word": x[0, 1:-1], "boundary": posts}.get(at)
            if layer:
                found = layer.vectors(x)[0]  # type: ignore[attr-defined]
            if at == "span":
                found = posts[[end for _, end, _ in spans]] - posts[[start for start, _, _ in spans]]
            seen[place] = prediction.sentence, spans, found.float().cpu().numpy()
    parses, spans_of, arrays = zip(*seen)
    if at == "word":
        index = tables.words(parses)
    elif at == "span":
        rows = [(place, *span) for place, spans in enumerate(spans_of) for span in spans]
        index = tables.with_words(pd.DataFrame(rows, columns=[*tables.PLACE, "label"]), parses, sentences)
    else:
        rows = [(place, s.id, len(s), k) for place, s in enumerate(parses) for k in range(len(arrays[place]))]
        index = pd.DataFrame(rows, columns=["sentence", "id", "length", at])
    if at == "boundary":
        index["before"] = [word for s in parses for word in (None, *s.words)]
        index["after"] = [word for s in parses for word in (*s.words, None)]
    return Vectors(np.concatenate(arrays), index)
