"""Change what label heads do while a parser parses: take heads out, or replace what they pass on.

The changes act at the named hook points of the layer: `with source.layer.hooked(**hooks):`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lalkit.errors import LalkitError, ParameterError
from lalkit.interpret.contributions import Heads
from lalkit.interpret.source import AttributionSource, Hooks
from lalkit.treebank.tree import Sentence

CONTEXTS = {"uniform": "uniform attention", "mean": "mean", "swapped": "swapped sentences"}  # the names of the controls
EXAMPLE = "Give of=, some tens of sentences such as those of lalkit.Treebank.load('sample', 'train'); for swapped, one."


def without(source: AttributionSource, heads: Heads) -> Hooks:
    """Return the hooks that take label heads out. Raises ParameterError for a head that the layer does not have."""
    return source.without(heads, torch.zeros(source.heads))["head out"]


def with_contexts(
    source: AttributionSource, contexts: str | Callable[[Tensor], Tensor], heads: Heads | None, of: Sequence[Sentence]
) -> Hooks:
    """Return the hooks that replace what label heads pass on.

    Args:
        contexts: uniform, mean, swapped, or a function of the tensor, see `lalkit.Parser.with_contexts`.
        heads: the heads that change; None: all of them.
        of: the sentences from which other contexts are taken.

    Raises:
        ParameterError: another name, or a head that the layer does not have.
        LalkitError: sentences are needed, or the function returns another shape than it got.
    """
    chosen = None if heads is None else source.chosen(heads)
    if callable(contexts):
        hooks = {source.passed_on: _same_shape(contexts)}
    elif contexts not in [*CONTEXTS]:
        raise ParameterError(f"there are no contexts {contexts!r}", remedy=f"Give {', '.join(CONTEXTS)} or a function.")
    elif contexts != "uniform" and not of:
        raise LalkitError(f"{contexts} contexts need sentences to take them from", remedy=EXAMPLE)
    elif contexts == "swapped":
        hooks = source.of_sentence(of[0])
    else:
        mean = source.mean(of) if contexts == "mean" else torch.zeros(source.heads)
        hooks = source.controls(mean)[CONTEXTS[contexts]]
    return hooks if chosen is None else {point: _only(chosen, change) for point, change in hooks.items()}


def _only(chosen: Tensor, change: Callable) -> Callable:
    return lambda value, *context: torch.where(chosen.to(value.device), change(value, *context), value)


def _same_shape(function: Callable[[Tensor], Tensor]) -> Callable:
    def change(value: Tensor, *context: Tensor) -> Tensor:
        other = function(value)
        if not isinstance(other, Tensor) or other.shape != value.shape:
            remedy = f"Return a tensor of the shape that it got: {tuple(value.shape)}."
            raise LalkitError(f"the function returned {getattr(other, 'shape', other)!r}", remedy=remedy)
        return other.to(value)

    return change
