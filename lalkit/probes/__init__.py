"""Probes of attention, the same for a parser, a classifier and a summarizer: each takes an `AttentionView`."""

from lalkit.probes.perturbation import ablate, ask, erasure_flip, focus, permutation_tvd
from lalkit.probes.view import AttentionView, linear_view
from lalkit.probes.weights import agree, attribute, conicity, look_at, relative_position

__all__ = [
    "AttentionView", "ablate", "agree", "ask", "attribute", "conicity", "erasure_flip", "focus", "linear_view", "look_at",
    "permutation_tvd", "relative_position",
]  # fmt: skip
