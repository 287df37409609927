"""Drawings of results: trees and arcs as SVG; the explorer, a page; figures. They take results, never the parser."""

from importlib import import_module
from typing import TYPE_CHECKING

from lalkit.draw.explorer import explorer, explorer_frame
from lalkit.draw.tree import draw_arcs, draw_joint, draw_layers, draw_tree

__all__ = [
    "COLOURS", "draw_arcs", "draw_joint", "draw_layers", "draw_tree", "explorer", "explorer_frame", "save",
    "side_by_side", "span_triangle", "sweep_figure",
]  # fmt: skip

if TYPE_CHECKING:
    from lalkit.draw.figures import COLOURS, save, side_by_side, span_triangle, sweep_figure
else:

    def __getattr__(name: str):
        """Load a figure when it is first used: a tree needs no matplotlib."""
        if name in __all__:
            return getattr(import_module("lalkit.draw.figures"), name)
        raise AttributeError(f"module 'lalkit.draw' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
