"""Exact joint decoding of a batch whose scores are on a GPU: the best label of every span is found there, the tree on the host.

A decoder of torch kernels waits for one kernel after the other: it was slower than compiled code on one core of the host. Most
scores are scores of labels, and only the best label of a span counts. So the device takes the maximum over labels, and only a
small part of the scores is copied. Products and comparisons are as in `joint`, so trees and scores are equal, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from lalkit.chart.cky import FIRST_REAL, SUBHEAD
from lalkit.chart.joint import JointTree, check_scores, check_weight, fill_and_unwind, map_charts, tree_of
from lalkit.chart.machine import chart_bytes


@torch.no_grad()
def start_batch(
    label_scores: Tensor,
    arc_scores: Tensor,
    lengths: Tensor | Sequence[int],
    lam: float,
    names: Sequence[str] | None = None,
    threads: int | None = None,
) -> Callable[[], list[JointTree]]:
    """Let the device find the best labels. Return a function that waits for them, and returns the best joint trees, see `joint`.

    Args:
        label_scores: [B, N+1, N+1, L]. Padding may contain anything, also NaN.
        arc_scores: [B, N, N+1]. If one of the two is float64, everything is computed in float64, otherwise in float32.
        lengths: [B], the numbers of words, 1..N.
        lam: The weight of labels; arcs have weight 1 - lam.
        names: How errors name the sentences; None: by their numbers in the batch.
        threads: See `decode_batch`.

    Raises:
        ValueError: lam is outside [0, 1].
        ScoreError: A score is NaN or infinite.
        TooLongError: The chart of one sentence would not fit into memory.
    """
    check_weight(lam)
    sizes = torch.as_tensor(lengths).tolist()
    names = names or [f"sentence {b}" for b in range(len(sizes))]
    arrays = start_copy(*reduce(label_scores, arc_scores, to_device(torch.tensor(sizes), arc_scores.device), lam))

    def finish() -> list[JointTree]:
        best, label, arcs, wrong = arrays()
        for b in wrong.nonzero()[0].tolist():
            n = sizes[b]
            scores = label_scores[b, : n + 1, : n + 1], arc_scores[b, :n, : n + 1]
            check_scores(scores[0].cpu().numpy(), scores[1].cpu().numpy(), names[b])

        def decode(b: int) -> JointTree:
            n = sizes[b]
            cells = (best[b, : n + 1, : n + 1], label[b, : n + 1, : n + 1], arcs[b, :n, : n + 1])
            return tree_of(names[b], *fill_and_unwind(*map(np.ascontiguousarray, cells)))

        return map_charts(decode, sizes, [chart_bytes(n, arcs.itemsize) for n in sizes], threads, names)

    return finish


def to_device(tensor: Tensor, device: str | torch.device) -> Tensor:
    """Copy a tensor to a device: to a GPU from pinned memory, so that the host does not wait."""
    cuda = torch.device(device).type == "cuda"
    return (tensor.pin_memory() if cuda and tensor.is_cpu else tensor).to(device, non_blocking=cuda)


def start_copy(*tensors: Tensor) -> Callable[[], list[np.ndarray]]:
    """Start to copy tensors of a device to the host. Return a function that waits for the copies, and returns arrays."""
    cuda = tensors[0].is_cuda
    copies = [tensor.to("cpu", non_blocking=cuda) for tensor in tensors]
    event = torch.cuda.current_stream(tensors[0].device).record_event() if cuda else None

    def wait() -> list[np.ndarray]:
        if event:
            event.synchronize()
        return [copy.numpy() for copy in copies]

    return wait


def reduce(label_scores: Tensor, arc_scores: Tensor, lengths: Tensor, lam: float) -> tuple[Tensor, ...]:
    """Reduce the scores to the part that the decoder needs, on their device.

    Returns the weighted score [B, N+1, N+1] of the best allowed label of every span, its index, the weighted arc scores
    [B, N, N+1], and bool [B]: True if a score of the sentence is wrong (`check_scores`). Of equal labels the first wins. <H> is
    allowed for spans of several words that are not the whole sentence.
    """
    kind = torch.float64 if torch.float64 in (label_scores.dtype, arc_scores.dtype) else torch.float32
    label_scores, arc_scores = label_scores.to(kind), arc_scores.to(kind)
    posts = torch.arange(label_scores.shape[1], device=label_scores.device)
    width, inside = posts - posts[:, None], posts <= lengths[:, None, None]
    spans = (width > 0) & inside
    pairs = (posts[1:, None] <= lengths[:, None, None]) & inside & (posts != posts[1:, None])
    wrong_labels = ~label_scores.isfinite().all(-1) | (label_scores[..., 0] != 0)
    wrong = (wrong_labels & spans).flatten(1).any(1) | (~arc_scores.isfinite() & pairs).flatten(1).any(1)

    weighted = label_scores * label_scores.new_full((), lam)
    best, label = weighted[..., FIRST_REAL:].max(-1)
    subhead = weighted[..., SUBHEAD]
    wins = (width > 1) & (width != lengths[:, None, None]) & (subhead >= best)
    best, label = torch.where(wins, subhead, best), torch.where(wins, SUBHEAD, label + FIRST_REAL)
    arcs = torch.where(pairs, arc_scores, 0) * arc_scores.new_full((), 1 - lam)
    return best, label, arcs, wrong
