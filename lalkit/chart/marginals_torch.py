"""The log-partition of joint trees as a differentiable function of torch: the objective of learning by likelihood."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lalkit.chart.joint_torch import check_shapes
from lalkit.chart.marginals import check_distribution, marginals_batch


def log_partition(
    label_scores: Tensor,
    arc_scores: Tensor,
    lengths: Tensor | Sequence[int],
    lam: float = 0.5,
    temperature: float = 1.0,
    threads: int | None = None,
) -> Tensor:
    """Return the log-partition of every sentence, [B]. Its gradients are the probabilities of `marginals`.

    Args:
        label_scores: [B, N+1, N+1, L]. Padding may contain anything, also NaN.
        arc_scores: [B, N, N+1]. If one of the two is float64, so is the result; otherwise it is float32.
        lengths: [B], the numbers of words, 1..N.
        lam: The weight of labels; arcs have weight 1 - lam.
        temperature: What scores are divided by.
        threads: Threads on the CPU; None: one per core.

    Raises:
        ValueError, TooLongError: As `marginals` does. The message names the sentence.
    """
    check_distribution(lam, temperature)
    lengths = [int(n) for n in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]
    check_shapes(label_scores, arc_scores, lengths)
    dtype = torch.promote_types(torch.promote_types(label_scores.dtype, arc_scores.dtype), torch.float32)
    return _LogPartition.apply(label_scores.to(dtype), arc_scores.to(dtype), lengths, lam, temperature, threads)


class _LogPartition(torch.autograd.Function):
    """Compute probabilities together with the log-partition, and keep them for the backward pass."""

    @staticmethod
    def forward(ctx, label_scores, arc_scores, lengths, lam, temperature, threads):
        pairs = [
            (labels[: n + 1, : n + 1].numpy(), arcs[:n, : n + 1].numpy())
            for labels, arcs, n in zip(label_scores.cpu(), arc_scores.cpu(), lengths)
        ]
        values, labels, arcs = (
            [],
            torch.zeros_like(label_scores, device="cpu"),
            torch.zeros_like(arc_scores, device="cpu"),
        )
        for b, (n, result) in enumerate(zip(lengths, marginals_batch(pairs, lam, temperature, threads=threads))):
            values.append(result.log_partition)
            labels[b, : n + 1, : n + 1] = torch.from_numpy(result.labels)
            arcs[b, :n, : n + 1] = torch.from_numpy(result.arcs)
        labels[..., 0] = 0  # the score of the empty label is always 0
        device = label_scores.device
        ctx.save_for_backward((labels * (lam / temperature)).to(device), (arcs * ((1 - lam) / temperature)).to(device))
        return torch.tensor(values, dtype=label_scores.dtype, device=device)

    @staticmethod
    def backward(ctx, gradient):
        labels, arcs = ctx.saved_tensors
        return labels * gradient[:, None, None, None], arcs * gradient[:, None, None], None, None, None, None
