"""The attention probes as their definitions say, example by example and number by number, on plain lists without padding."""

import math
from statistics import fmean, median

import numpy as np


def entropy(row):
    return -sum(w * math.log(w) for w in row if w > 0)


def pool(rows):
    """rows: [Q][T] of one head and text -> [T]."""
    total = sum(map(sum, rows))
    return [sum(row[t] for row in rows) / total for t in range(len(rows[0]))]


def pos_kl(pooled, tags):
    words = [t for t in tags if t >= 0]
    mass = sum(m for m, t in zip(pooled, tags) if t >= 0)
    found = 0.0
    for tag in set(words):
        q = sum(m for m, t in zip(pooled, tags) if t == tag) / mass
        p = words.count(tag) / len(words)
        found += q * math.log(q / p) if q > 0 else 0.0
    return found


def relative_position(texts, references, offset):
    """texts: [text][Q][T] of one head; references: [text][Q]."""
    hits = []
    for rows, places in zip(texts, references):
        for row, place in zip(rows, places):
            if place < 0 or not 0 <= place + offset < len(row):
                continue
            best = [t for t, w in enumerate(row) if w == max(row)]
            hits.append((place + offset in best) / len(best))
    return fmean(hits)


def cosine(a, b):
    size = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
    return sum(x * y for x, y in zip(a, b)) / size if size else 0.0


def conicity(vectors, absolute=False):
    mean = [fmean(axis) for axis in zip(*vectors)]
    cosines = [cosine(v, mean) for v in vectors]
    return fmean(map(abs, cosines) if absolute else cosines)


def total_variation(p, q):
    return sum(abs(a - b) for a, b in zip(p, q)) / 2


def permutation_tvd(weights, predict, rounds, heads, seed, example):
    """weights [H, Q, T] of one text; predict: weights -> [U, C]. The random numbers are those of the fast program."""
    h, q, t = weights.shape
    drawn = np.random.default_rng([seed, example]).random((rounds, h, q, t))
    base, found = predict(weights), []
    for one in drawn:
        moved = weights.copy()
        for head in heads:
            for query in range(q):
                for place, source in enumerate(sorted(range(t), key=lambda k: one[head, query, k])):
                    moved[head, query, place] = weights[head, query, source]
        found.append([total_variation(a, b) for a, b in zip(base, predict(moved))])
    return [median(unit) for unit in zip(*found)]


def erasure(weights, predict, scores, heads):
    """(fraction, exhausted) of every unit; weights and scores [H, Q, T]."""
    h, q, t = weights.shape
    base = [int(np.argmax(unit)) for unit in predict(weights)]
    found = [1.0] * len(base)
    exhausted = [False] * len(base)
    for k in range(1, t):
        left, empty = weights.copy(), False
        for head in heads:
            for query in range(q):
                first = sorted(range(t), key=lambda j: (-scores[head, query, j], j))[:k]
                left[head, query, first] = 0.0
                total = left[head, query].sum()
                empty = empty or total <= 0
                left[head, query] /= total or 1.0
        if empty:
            return found, [f == 1.0 for f in found]
        for u, unit in enumerate(predict(left)):
            if found[u] == 1.0 and int(np.argmax(unit)) != base[u]:
                found[u] = k / t
    return found, exhausted


def pearson(a, b):
    x, y = ([v - fmean(row) for v in row] for row in (a, b))
    return sum(i * j for i, j in zip(x, y)) / math.sqrt(sum(i * i for i in x) * sum(j * j for j in y))


def jensen_shannon(a, b):
    middle = [(x + y) / 2 for x, y in zip(a, b)]
    return sum(sum(x * math.log(x / m) for x, m in zip(row, middle) if x > 0) / 2 for row in (a, b))


def agree(attributions, attention):
    total = sum(map(abs, attributions))
    a, b = [abs(x) / total for x in attributions], [x / sum(attention) for x in attention]
    return pearson(a, b), jensen_shannon(a, b)


def removal(p, scores, share):
    """(comprehensiveness, sufficiency) of one text at one share. p: the set of the words that stay -> probability."""
    order = sorted(range(len(scores)), key=lambda t: (-scores[t], t))
    first = set(order[: math.ceil(share * len(scores) - 1e-9)])
    everything = set(order)
    return p(everything) - p(everything - first), p(everything) - p(first)
