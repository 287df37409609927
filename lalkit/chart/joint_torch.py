"""Exact joint decoding of a padded batch with torch, on any device: the chart of `joint`, one span width at a time.

One broadcast sum and one maximum compute all spans of one width, for all sentences, splits and heads. Only maxima are
computed here. The charts are then copied to the CPU once, where `joint.unwind` finds which splits and dependents won, so
that nothing waits for the device inside a loop. The additions are those of `joint`, in the same order: the trees are the
same, and the scores have the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from lalkit.chart import machine as memory
from lalkit.chart.cky import FIRST_REAL, SUBHEAD
from lalkit.chart.joint import JointTree, check_scores, check_weight, unwind

CHUNK = 2**24  # elements of the largest temporary: 64 MB of float32, while a width has up to B * N^3 / 4


@torch.no_grad()
def decode_batch_torch(
    label_scores: Tensor,
    arc_scores: Tensor,
    lengths: Tensor | Sequence[int],
    lam: float,
    names: Sequence[str] | None = None,
) -> list[JointTree]:
    """Return the best joint tree of every sentence, see `joint`.

    Args:
        label_scores: [B, N+1, N+1, L]. Padding may contain anything, also NaN.
        arc_scores: [B, N, N+1]. If one of the two is float64, everything is computed in float64, otherwise in float32.
        lengths: [B], the numbers of words, 1..N.
        lam: The weight of labels; arcs have weight 1 - lam.
        names: How errors name the sentences; None: by their numbers in the batch.

    A batch whose charts do not fit into memory together is decoded in parts.

    Raises:
        ValueError: A shape is wrong, or lam is outside [0, 1].
        ScoreError: A score is NaN or infinite.
        TooLongError: The chart of one sentence would not fit into memory.
    """
    check_weight(lam)
    lengths = [int(n) for n in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]
    check_shapes(label_scores, arc_scores, lengths)
    names = names or [f"sentence {b}" for b in range(len(lengths))]
    dtype = torch.promote_types(label_scores.dtype, arc_scores.dtype)
    dtype = torch.float64 if dtype == torch.float64 else torch.float32

    trees: list[JointTree] = []
    limit = available_bytes(arc_scores.device)
    for n, name in zip(lengths, names):
        memory.check_fits(n, memory.chart_bytes(n, dtype.itemsize), limit, name)
    for start, end in parts(lengths, dtype.itemsize, limit):
        n = max(lengths[start:end])  # this part's padding
        labels = label_scores[start:end, : n + 1, : n + 1].to(dtype)
        arcs = arc_scores[start:end, :n, : n + 1].to(dtype)
        trees += _decode(labels, arcs, lengths[start:end], lam, names[start:end])
    return trees


def _decode(
    label_scores: Tensor, arc_scores: Tensor, lengths: list[int], lam: float, names: Sequence[str]
) -> list[JointTree]:
    device, dtype = arc_scores.device, arc_scores.dtype
    lengths_there = torch.tensor(lengths, device=device)
    spans, pairs = used_cells(lengths_there, arc_scores.shape[1])
    wrong_labels = (~label_scores.isfinite()).any(-1) | (label_scores[..., 0] != 0)
    wrong = (wrong_labels & spans).flatten(1).any(1) | (~arc_scores.isfinite() & pairs).flatten(1).any(1)

    best, label = best_labels(label_scores, lengths_there, torch.tensor(lam, dtype=dtype, device=device))
    arcs = arc_scores * torch.tensor(1 - lam, dtype=dtype, device=device)
    chart = fill(best, arcs)

    for b in wrong.nonzero()[:, 0].tolist():
        n = lengths[b]
        check_scores(
            label_scores[b, : n + 1, : n + 1].cpu().numpy(), arc_scores[b, :n, : n + 1].cpu().numpy(), names[b]
        )
    sentences = zip(*(tensor.cpu().numpy() for tensor in (chart, best, label, arcs)), lengths)
    return [unwind(t, s, k, a, n, name) for (t, s, k, a, n), name in zip(sentences, names)]


def used_cells(lengths: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    """Return which cells belong to a sentence: spans [B, N+1, N+1] (i < j <= n), arcs [B, N, N+1] (root or another word)."""
    posts = torch.arange(longest + 1, device=lengths.device)
    words = posts[:longest]
    spans = (posts[:, None] < posts) & (posts <= lengths[:, None, None])
    inside = (words[:, None] < lengths[:, None, None]) & (posts <= lengths[:, None, None])
    return spans, inside & (posts != words[:, None] + 1)


def best_labels(label_scores: Tensor, lengths: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weighted score and the index of the best allowed label of every span, two [B, N+1, N+1].

    <H> is allowed for spans of several words that are not the whole sentence. Of equal labels torch.max returns the first.
    """
    weighted = label_scores * weight
    best, label = weighted[..., FIRST_REAL:].max(-1)
    label = label + FIRST_REAL
    posts = torch.arange(best.shape[1], device=best.device)
    width = posts - posts[:, None]
    subhead = weighted[..., SUBHEAD]
    allowed = (width > 1) & (width != lengths[:, None, None])
    wins = allowed & (subhead >= best)
    return torch.where(wins, subhead, best), torch.where(wins, SUBHEAD, label)


def fill(best: Tensor, arcs: Tensor) -> Tensor:
    """Return the chart T [B, N+1, N+1, N] of `joint`, from the weighted best [B, N+1, N+1] and arcs [B, N, N+1].

    Cells i >= j are not set. Cells of a sentence depend only on cells of the same sentence. Therefore padding needs no mask:
    it computes cells beyond the sentence, perhaps NaN, which nobody reads.
    """
    size, n = arcs.shape[:2]
    heads = arcs[:, :, 1:].contiguous()
    chart = arcs.new_empty(size, n + 1, n + 1, n)
    sentence, start, end, head = chart.stride()
    words = torch.arange(n, device=arcs.device)
    for width in range(1, n + 1):
        count = n + 1 - width  # spans (i, i + width), i < count
        cells = chart.as_strided((size, count, n), (sentence, start + end, head), width * end)
        label = best.diagonal(width, 1, 2)
        optional = label.clamp(min=0)
        obligatory = optional if width == 1 else label

        content = arcs.new_zeros(size, count, n) if width == 1 else None
        for low, high in chunks(1, width, size * count * n):  # splits i + low .. i + high - 1
            shape = (size, count, high - low, n)
            left = chart.as_strided(shape, (sentence, start + end, end, head), low * end)
            right = chart.as_strided(shape, (sentence, start + end, start, head), low * start + width * end)
            content = _larger(content, (left + right).amax(2))

        subtrees = content.contiguous().as_strided((size, count, width), (count * n, n + 1, 1)) + obligatory[..., None]
        attached = None
        for low, high in chunks(0, width, size * count * n):  # dependents i + low .. i + high - 1
            rows = heads.as_strided((size, count, high - low, n), (n * n, n, n, 1), low * n)
            attached = _larger(attached, (subtrees[:, :, low:high, None] + rows).amax(2))

        inside = (words >= words[:count, None]) & (words < words[:count, None] + width)
        cells.copy_(torch.where(inside, content + optional[..., None], attached))
    return chart


def _larger(a: Tensor | None, b: Tensor) -> Tensor:
    return b if a is None else torch.maximum(a, b)


def chunks(start: int, stop: int, elements: int) -> Iterator[tuple[int, int]]:
    """Cut start..stop into pieces so that a piece times `elements` is at most about CHUNK."""
    step = max(1, CHUNK // elements)
    for low in range(start, stop, step):
        yield low, min(low + step, stop)


def available_bytes(device: torch.device) -> int | None:
    """Return the bytes that charts may take. They are computed on the device and then copied to the CPU."""
    limit = memory.available_bytes()
    if device.type == "cuda":
        free = torch.cuda.mem_get_info(device)[0]
        # Torch keeps some blocks that it does not use.
        free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        limit = free if limit is None else min(limit, free)
    return limit


def parts(lengths: list[int], itemsize: int, limit: int | None) -> Iterator[tuple[int, int]]:
    """Yield ranges (start, end) of sentences whose padded charts fit into memory together, with their temporary tensors."""
    extra = 4 * CHUNK * itemsize  # sums and maxima of one chunk
    start = longest = 0
    for end, n in enumerate(lengths):
        longest = max(longest, n)
        needed = (end + 1 - start) * memory.chart_bytes(longest, itemsize)
        if end > start and limit is not None and needed + extra > limit:
            yield start, end
            start, longest = end, n
    if lengths:
        yield start, len(lengths)


def check_shapes(label_scores: Tensor, arc_scores: Tensor, lengths: list[int]) -> None:
    """Raise ValueError unless the shapes are [B, N+1, N+1, L >= 3], [B, N, N+1] and B lengths within 1..N."""
    size, n = arc_scores.shape[:2] if arc_scores.dim() == 3 else (len(lengths), 0)
    if arc_scores.shape != (size, n, n + 1):
        raise ValueError(f"arc_scores must be [B, N, N+1], not {list(arc_scores.shape)}")
    if label_scores.shape[:-1] != (size, n + 1, n + 1) or label_scores.shape[-1] <= FIRST_REAL:
        raise ValueError(f"label_scores must be [{size}, {n + 1}, {n + 1}, L >= 3], not {list(label_scores.shape)}")
    if len(lengths) != size:
        raise ValueError(f"{len(lengths)} lengths for {size} sentences")
    for b, length in enumerate(lengths):
        if not 1 <= length <= n:
            raise ValueError(f"sentence {b}: length {length} is not in 1..{n}")
