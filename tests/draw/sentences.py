"""Sentences to draw: random ones with both layers, of any length and with words of any script."""

import random

from lalkit.treebank.tree import Sentence, Span

WORDS = ("a", "the", "Illinois", "WWW", "internationalisation", "住在", "<&>", '"', "-LRB-", "ﷺ", "e\u0301")
TAGS = (".", "NN", "NNS", "-LRB-", "WP$")
LABELS = ("S", "NP", "VP", "NP::QP", "WHADVP", "SBARQ::SINV::VERY-LONG-LABEL")
ARCS = ("det", "nsubjpass", "root", "punct", "a:rather:long:relation")


def random_sentence(n: int, seed: int, labelled: float = 0.6) -> Sentence:
    """n random words under a random binary bracketing, of which part is labelled, with one head word per bracket."""
    pick = random.Random(seed)
    heads, spans = [0] * n, []

    def build(start: int, end: int) -> int:
        if (start, end) == (0, n) or pick.random() < (labelled if end - start > 1 else 0.15):
            spans.append(Span(start, end, pick.choice(LABELS)))
        if end - start == 1:
            return start
        middle = pick.randrange(start + 1, end)
        left, right = build(start, middle), build(middle, end)
        head, child = (left, right) if pick.random() < 0.5 else (right, left)
        heads[child] = head + 1
        return head

    build(0, n)
    words, tags, arcs = ([pick.choice(kind) for _ in range(n)] for kind in (WORDS, TAGS, ARCS))
    return Sentence(tuple(words), tuple(tags), tuple(spans), tuple(heads), tuple(arcs), id=f"random {n} {seed}")
