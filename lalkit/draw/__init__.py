"""Drawings of results: trees and arcs, as SVG and text. They take what a parser returns, never the parser."""

from lalkit.draw.arcs import draw_arcs
from lalkit.draw.joint import draw_joint
from lalkit.draw.tree import draw_tree, text_tree

__all__ = ["draw_arcs", "draw_joint", "draw_tree", "text_tree"]
