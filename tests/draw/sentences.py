"""Sentences to draw: random ones with both layers, of any length and with words of any script."""

import random

import numpy as np

from lalkit.treebank.tree import Sentence, Span
from tests.chart.charts import random_joint_tree

WORDS = ("a", "the", "Illinois", "WWW", "internationalisation", "住在", "<&>", '"', "-LRB-", "ﷺ", "e\u0301")
TAGS = (".", "NN", "NNS", "-LRB-", "WP$")
LABELS = ("S", "NP", "VP", "NP::QP", "WHADVP", "SBARQ::SINV::VERY-LONG-LABEL")
ARCS = ("det", "nsubjpass", "root", "punct", "a:rather:long:relation")


def random_sentence(n: int, seed: int) -> Sentence:
    """n random words under a random joint tree, whose groups (<H>) are no constituents."""
    pick = random.Random(seed)
    joint, heads = random_joint_tree(np.random.default_rng(seed), n, 2 + len(LABELS))
    spans = [Span(start, end, LABELS[label - 2]) for start, end, label, _ in joint if label > 1]
    words, tags, arcs = ([pick.choice(kind) for _ in range(n)] for kind in (WORDS, TAGS, ARCS))
    return Sentence(tuple(words), tuple(tags), tuple(spans), tuple(heads), tuple(arcs), id=f"random {n} {seed}")
