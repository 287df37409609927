"""Drawings of results: trees and arcs, as SVG and text; the explorer, a page. They take results, never the parser."""

from lalkit.draw.arcs import draw_arcs, draw_joint, draw_layers
from lalkit.draw.explorer import explorer, explorer_frame
from lalkit.draw.tree import draw_tree, text_tree

__all__ = ["draw_arcs", "draw_joint", "draw_layers", "draw_tree", "explorer", "explorer_frame", "text_tree"]
