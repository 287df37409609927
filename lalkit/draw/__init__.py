"""Drawings of results: trees and arcs as SVG; the explorer, a page. They take results, never the parser."""

from lalkit.draw.explorer import explorer, explorer_frame
from lalkit.draw.tree import draw_arcs, draw_joint, draw_layers, draw_tree

__all__ = ["draw_arcs", "draw_joint", "draw_layers", "draw_tree", "explorer", "explorer_frame"]
