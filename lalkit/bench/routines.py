"""Measure single routines of the parser, each against its slow twin (see `lalkit.bench.twins`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from lalkit.bench import twins
from lalkit.bench.measure import Settings, alternate, compare, growth, row
from lalkit.chart.joint import decode as decode_joint
from lalkit.chart.joint import decode_batch
from lalkit.chart.joint_torch import decode_batch_torch
from lalkit.chart.sums import marginals
from lalkit.config import LabelAttentionConfig, SpanAttentionConfig
from lalkit.interpret.paper_layer import without_heads
from lalkit.network.label_attention import LabelAttention
from lalkit.network.scores import SpanScorer, fenceposts
from lalkit.network.span_attention import SpanLabelAttention
from lalkit.treebank.corpora import load
from lalkit.treebank.joint import to_joint

HEADS = LABELS = 112  # label heads of the paper's layer; labels of its scorer
SHAPES = ((8, 30), (20, 25), (1, 60))  # sentences x words
GROWTH = ((8, 15, HEADS), (8, 60, HEADS), (2, 30, HEADS), (32, 30, HEADS), (8, 30, 28), (8, 30, 56))
SPAN_LABELS = 51
PARTS = (256, 128)  # features of a word in the preset minilm-span


def layer(settings: Settings) -> list[dict]:
    """Compare the label attention layer with its equations, batched: forward, forward and backward, and from its cache."""
    rows = []
    for count, words in SHAPES:
        rows += layer_rows(settings, count, words, HEADS, ("forward", "forward+backward", "cached"))
    for count, words, heads in GROWTH:
        rows += layer_rows(settings, count, words, heads, ("forward",))
    return rows


def layer_rows(settings: Settings, count: int, words: int, heads: int, modes: tuple[str, ...]) -> list[dict]:
    """Return one row per mode for one batch: d_model 1024, d_kv = d_out = 128, no dropout. START and STOP come on top."""
    case = f"{count}x{words}" if heads == HEADS else f"{count}x{words}, {heads} heads"
    torch.manual_seed(0)
    config = LabelAttentionConfig(heads=heads, attention_dropout=0.0, residual_dropout=0.0)
    module = LabelAttention(config, 512, 512).to(settings.device)
    x = torch.randn(count, words + 2, 1024, device=settings.device)
    mask = torch.ones(count, words + 2, dtype=torch.bool, device=settings.device)
    gradient = torch.randn(count, words + 2, heads, 128, device=settings.device)
    leaf = x.clone().requires_grad_()

    def run(function, mode: str) -> None:
        module.train(mode != "cached")
        if mode == "forward+backward":
            function(leaf, mask)[0].backward(gradient)
            module.zero_grad(set_to_none=True)  # after the pass: memory that was held before it is not counted
            leaf.grad = None
        else:
            with torch.no_grad():
                function(x, mask)

    return [
        compare(
            settings, "layer", case, mode, "the equations, batched",
            partial(run, module, mode), partial(run, partial(twins.label_attention, module), mode),
        )
        for mode in modes
    ]  # fmt: skip


@torch.no_grad()
def spans(settings: Settings) -> list[dict]:
    """Compare the scores of all spans of a sentence with equations 5 and 6, which form every span vector first."""
    torch.manual_seed(0)
    scorer, rows = SpanScorer(HEADS * 128, 250, LABELS, 0.0).to(settings.device).eval(), []
    for words in (20, 40, 80):
        posts = torch.randn(1, words + 1, HEADS, 128, device=settings.device)
        both = partial(scorer, posts), partial(twins.span_scores, scorer, posts)
        rows.append(compare(settings, "spans", f"{words} words", "forward", "every span vector formed", *both))
    return rows


def inside(settings: Settings) -> list[dict]:
    """Compare label attention inside the span, by running sums, with a softmax over the words of every span."""
    torch.manual_seed(0)
    # Linear boundaries: what is compared is the attention, and not the scorer of fenceposts that both would run.
    module = SpanLabelAttention(SpanAttentionConfig(boundary="glass"), sum(PARTS), 250, SPAN_LABELS, 0.0)
    module = module.to(settings.device)
    return [
        inside_row(settings, *size, module, mode)
        for size in ((8, 20), (8, 40), (1, 80)) for mode in ("forward", "forward+backward")
    ]  # fmt: skip


def inside_row(settings: Settings, count: int, words: int, module: SpanLabelAttention, mode: str) -> dict:
    """Return one row for `count` sentences of `words` words.

    Training computes gradients for a few spans; here all spans have them.
    """
    x = torch.randn(count, words + 2, sum(PARTS), device=settings.device)
    inputs = tuple(part.detach().requires_grad_() for part in module.project(x, fenceposts(x[:, :, None], PARTS)))
    gradient = torch.randn(count, words + 1, words + 1, SPAN_LABELS, device=settings.device)

    def run(chart) -> None:
        with torch.set_grad_enabled(mode != "forward"):
            scores = chart(inputs)
        if mode != "forward":
            scores.backward(gradient)
            for part in inputs:
                part.grad = None

    both = partial(run, module.chart), partial(run, partial(twins.span_attention, module))
    return compare(settings, "inside", f"{count}x{words}", mode, "a softmax for every span", *both)


def decode(settings: Settings) -> list[dict]:
    """Compare joint decoding of one random chart, O(n^4), with O(n^5). Both are compiled and check their input."""
    rows = []
    for words in (10, 20, 40, 80):
        chart = random_chart(words)
        both = partial(decode_joint, *chart), partial(twins.decode_n5, *chart)
        rows.append(compare(settings, "decode", f"{words} words", "numba", "O(n^5), numba", *both, memory=False))
    return [*rows, _growth_row(settings, "decode", decode_joint), _batch_row(settings)]


def probabilities(settings: Settings) -> list[dict]:
    """Compare the probabilities of all parts of a sentence, inside and outside, with decoding it. At most 6 times as long."""
    rows = []
    for words in (20, 40, 80):
        chart = random_chart(words)
        both = partial(marginals, *chart), partial(decode_joint, *chart)
        rows.append(compare(settings, "probabilities", f"{words} words", "inside and outside", "decoding", *both))
    return [*rows, _growth_row(settings, "probabilities", marginals)]


def random_chart(words: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.normal(size=(words + 1, words + 1, LABELS)).astype(np.float32)
    labels[..., 0] = 0
    return labels, rng.normal(size=(words, words + 1)).astype(np.float32)


def _growth_row(settings: Settings, routine: str, function: Callable) -> dict:
    """Return a row whose ratio is the exponent of n between 40 and 120 words, from the fastest of the rounds."""
    sizes = (40, 120)
    times = alternate(settings, *(partial(function, *random_chart(words)) for words in sizes))
    exponents = [growth(*zip(sizes, both)) for both in times]
    pairs = [(long, short) for short, long in times]
    fastest = growth(*zip(sizes, map(min, zip(*times))))
    compared = row(settings, routine, "40 to 120 words", "growth exponent", "40 words", pairs, exponents)
    return compared | {"device": "cpu", "ratio": round(fastest, 4)}


def _batch_row(settings: Settings) -> dict:
    """Compare decoding 64 sentences of 40 words by torch on the device with numba over the cores of the CPU.

    Both start from scores where the network leaves them.
    """
    pairs = [random_chart(40, seed) for seed in range(64)]
    labels, arcs = (torch.from_numpy(np.stack(part)).to(settings.device) for part in zip(*pairs))

    def by_numba() -> None:
        decode_batch(list(zip(labels.cpu().numpy(), arcs.cpu().numpy())))

    return compare(
        settings.at_most(3), "decode", "64 x 40 words", f"torch on {settings.device}", "numba over the cores",
        partial(decode_batch_torch, labels, arcs, [40] * len(pairs)), by_numba, memory=False,
    )  # fmt: skip


def contributions(settings: Settings) -> list[dict]:
    """Compare what each label head adds to span scores, from one pass, with running the scorer once without each head.

    The sentence has 20 words and the sizes are the paper's. 'parse' takes the labelled spans of one tree of our sample: the
    baseline scores the whole chart and reads these spans off, as one must who has nothing but the scorer. 'chart' takes
    every span.
    """
    torch.manual_seed(0)
    words = 20
    sentence = next(s for s in load("sample", "train").sentences if len(s) == words)
    scorer = SpanScorer(HEADS * 128, 250, LABELS, 0.0).to(settings.device).eval()
    posts = torch.randn(words + 1, HEADS, 128, device=settings.device)
    everything = torch.triu_indices(words + 1, words + 1, 1, device=settings.device).T
    tree = torch.tensor([(span.start, span.end) for span in to_joint(sentence)], device=settings.device)

    @torch.no_grad()
    def once_per_head() -> None:
        twins.span_scores_without_heads(scorer, posts)

    return [
        compare(
            settings.at_most(3), "contributions", f"{words} words, {mode}", "all heads, all labels",
            "the chart scored without each head", partial(without_heads, scorer, posts, spans), once_per_head,
        )
        for mode, spans in ((f"the {len(tree)} spans of a parse", tree), ("every span", everything))
    ]  # fmt: skip
