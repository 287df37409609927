"""Random charts and random trees for the tests of this folder."""

import numpy as np

LAMBDAS = (0.5, 0.5, 0.5, 0.0, 1.0, 0.25)


def random_chart(rng: np.random.Generator, n: int, labels: int, kind: str, dtype=np.float64):
    """(label_scores [n+1, n+1, L], arc_scores [n, n+1]).

    kind: 'ties' small integers; 'exact' multiples of 2^-16, which add up exactly in any order and hardly ever tie;
    'real' normal numbers.
    """

    def draw(shape):
        if kind == "ties":
            return rng.integers(-2, 3, shape).astype(dtype)
        values = rng.standard_normal(shape)
        return (np.round(values * 2**16) / 2**16 if kind == "exact" else values).astype(dtype)

    label_scores = draw((n + 1, n + 1, labels))
    label_scores[..., 0] = 0
    return label_scores, draw((n, n + 1))


def random_joint_tree(rng: np.random.Generator, n: int, labels: int) -> tuple[list, list[int]]:
    """Spans (start, end, label, head word) in pre-order and heads of a random derivation, both 1-based."""
    heads, spans = [0] * n, []

    def build(i: int, j: int, h: int, role: str) -> None:
        first = 2 if j - i == 1 or role == "sentence" else 1
        if role == "sentence" or (role == "dependent" and j - i > 1) or rng.random() < 0.5:
            spans.append((i, j, int(rng.integers(first, labels)), h + 1))
        if j - i == 1:
            return
        k = int(rng.integers(i + 1, j))
        for a, b in ((i, k), (k, j)):
            if a <= h < b:
                build(a, b, h, "head")
            else:
                d = int(rng.integers(a, b))
                heads[d] = h + 1
                build(a, b, d, "dependent")

    build(0, n, int(rng.integers(n)), "sentence")
    return spans, heads


def same_tree(a, b) -> bool:
    """Same spans, labels, head words and heads, and the same score to the last bit."""
    return a.score.hex() == b.score.hex() and a.spans == b.spans and a.heads.tolist() == b.heads.tolist()


def same_trees(some, others) -> bool:
    """As many trees on both sides, and each is the same as the other at its place."""
    return len(some) == len(others) and all(map(same_tree, some, others))


def check_joint_tree(tree, n: int) -> None:
    """Every constituent has one word whose arc leaves it, and that word is its head; labels are where they may be."""
    assert sorted(set(tree.heads.tolist()) - set(range(n + 1))) == []
    assert tree.spans[0][:2] == (0, n) and tree.spans[0][2] >= 2
    assert tree.spans == sorted(tree.spans, key=lambda span: (span[0], -span[1]))
    assert len({span[:2] for span in tree.spans}) == len(tree.spans)
    for i, j, label, head in tree.spans:
        leaving = [d for d in range(i + 1, j + 1) if not i + 1 <= tree.heads[d - 1] <= j]
        assert leaving == [head], (i, j, label, head, tree.heads)
        assert label >= (2 if j - i == 1 else 1)
        for a, b, _, _ in tree.spans:
            assert not i < a < j < b, "crossing spans"
