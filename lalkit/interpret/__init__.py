"""Explain parses by their label heads: the parts of scores, which heads lead which labels, and where errors come from."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from lalkit.config import ModelConfig
from lalkit.errors import ModelError
from lalkit.network.model import Model

if TYPE_CHECKING:
    from lalkit.interpret.errors import missed, trace
    from lalkit.interpret.layers import Explainer
    from lalkit.interpret.tables import NORMS, Contributions, agreement, matched_by_chance, top_shares

__all__ = ["NORMS", "Contributions", "agreement", "matched_by_chance", "missed", "top_shares", "trace"]


def __getattr__(name: str):
    """Load a public name when it is first used: parsing does not need the tables."""
    if name in __all__:
        return getattr(import_module(f"lalkit.interpret.{'errors' if name in ('missed', 'trace') else 'tables'}"), name)
    raise AttributeError(f"module 'lalkit.interpret' has no attribute {name!r}")


def layer_of(config: ModelConfig) -> type[Explainer] | None:
    """Return the class that explains a parser's label attention; None for a parser without label attention."""
    from lalkit.interpret.paper_layer import PaperLayer
    from lalkit.interpret.span_layer import SpanLayer

    if config.span_attention:
        return SpanLayer
    return PaperLayer if config.label_attention else None


def explainer(model: Model) -> Explainer:
    """Return the `Explainer` of a model's label attention. Raises ModelError for a model without label attention."""
    layer = layer_of(model.config.model)
    if layer is None:
        remedy = "Use a parser with label attention, such as en-news or en-news-span."
        raise ModelError("this parser has no label attention, so there are no label heads to ask", remedy=remedy)
    return layer(model)
