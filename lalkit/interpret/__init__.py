"""Explain a parse by its label heads: what each label head contributes to the score of a span."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lalkit.config import ModelConfig
from lalkit.errors import ModelError
from lalkit.network.model import Model

if TYPE_CHECKING:
    from lalkit.interpret.source import AttributionSource


def layer_of(config: ModelConfig) -> type[AttributionSource] | None:
    """Return the class that answers for a parser's label attention; None for a parser without label attention."""
    from lalkit.interpret.paper_layer import PaperLayer
    from lalkit.interpret.span_layer import SpanLayer

    if config.span_attention:
        return SpanLayer
    return PaperLayer if config.label_attention else None


def source_of(model: Model) -> AttributionSource:
    """Return what answers for a model's label attention. Raises ModelError for a model without label attention."""
    layer = layer_of(model.config.model)
    if layer is None:
        remedy = "Use a parser with label attention, such as en-news or en-news-span."
        raise ModelError("this parser has no label attention, so there are no label heads to ask", remedy=remedy)
    return layer(model)
