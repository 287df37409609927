"""The log-partition of joint trees as a differentiable function of torch: the objective of learning by likelihood.

On the CPU, `marginals` computes it. On other devices this file does, for a padded batch, one span width at a time, by the same
sums with the same scales. A sentence for which these are not exact is computed by `marginals`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lalkit.chart import machine as memory
from lalkit.chart.cky import FIRST_REAL, SUBHEAD
from lalkit.chart.inside_outside import LOG2, TINY
from lalkit.chart.joint_torch import available_bytes, check_shapes, chunks, parts, used_cells
from lalkit.chart.marginals import check_distribution, marginals_batch

NUMBER = 8  # bytes of a float64
CHARTS = 4  # as large as the decoder's: two for each pass


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
        device = label_scores.device
        if device.type in ("cpu", "mps"):  # mps has no float64
            values, labels, arcs = by_numba(label_scores, arc_scores, lengths, lam, temperature, threads)
        else:
            values, labels, arcs = by_torch(label_scores, arc_scores, lengths, lam, temperature, threads)
        labels[..., 0] = 0  # the score of the empty label is always 0
        ctx.save_for_backward(labels.mul_(lam / temperature).to(device), arcs.mul_((1 - lam) / temperature).to(device))
        return values.to(label_scores)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        labels, arcs = ctx.saved_tensors
        return labels * gradient[:, None, None, None], arcs * gradient[:, None, None], None, None, None, None


def by_numba(label_scores, arc_scores, lengths, lam, temperature, threads, names=None) -> tuple[Tensor, Tensor, Tensor]:
    """Return (log-partition [B], labels [B, N+1, N+1, L], arcs [B, N, N+1]) on the CPU; 0 in the padding."""
    pairs = [
        (labels[: n + 1, : n + 1].numpy(), arcs[:n, : n + 1].numpy())
        for labels, arcs, n in zip(label_scores.cpu(), arc_scores.cpu(), lengths)
    ]
    labels, arcs = torch.zeros_like(label_scores, device="cpu"), torch.zeros_like(arc_scores, device="cpu")
    results = marginals_batch(pairs, lam, temperature, threads=threads, names=names)
    for b, (n, result) in enumerate(zip(lengths, results)):
        labels[b, : n + 1, : n + 1] = torch.from_numpy(result.labels)
        arcs[b, :n, : n + 1] = torch.from_numpy(result.arcs)
    return torch.tensor([result.log_partition for result in results], dtype=torch.float64), labels, arcs


@torch.no_grad()
def by_torch(label_scores, arc_scores, lengths, lam, temperature, threads=None) -> tuple[Tensor, Tensor, Tensor]:
    """Return the same as `by_numba`, computed on the device of the scores, in parts that fit into its memory."""
    values = torch.zeros(len(lengths), dtype=torch.float64, device=label_scores.device)
    labels, arcs = torch.zeros_like(label_scores), torch.zeros_like(arc_scores)
    limit, itemsize = available_bytes(label_scores.device), CHARTS * NUMBER
    for b, n in enumerate(lengths):
        memory.check_fits(n, memory.chart_bytes(n, itemsize), limit, f"sentence {b}")
    for start, end in parts(lengths, itemsize, limit):
        n = max(lengths[start:end])
        there = torch.tensor(lengths[start:end], device=label_scores.device)
        label_weights, arc_weights = label_scores[start:end, : n + 1, : n + 1], arc_scores[start:end, :n, : n + 1]
        label_weights, arc_weights = _weighted(label_weights, arc_weights, there, lam, temperature)
        log_z, spans, pairs, exact = _both_passes(label_weights.logsumexp(-1), arc_weights, there)
        values[start:end], arcs[start:end, :n, : n + 1] = log_z, pairs.to(arcs.dtype)
        shares = torch.nan_to_num(label_weights.softmax(-1)) * spans[..., None]
        shares[..., 0] = torch.triu(1 - spans, 1) * (torch.arange(n + 1, device=there.device) <= there[:, None, None])
        labels[start:end, : n + 1, : n + 1] = shares.to(labels.dtype)
        for b in (start + (~exact).nonzero()[:, 0]).tolist():
            alone = label_scores[b : b + 1], arc_scores[b : b + 1], lengths[b : b + 1], lam, temperature, threads
            for whole, part in zip((values, labels, arcs), by_numba(*alone, [f"sentence {b}"])):
                whole[b : b + 1] = part
    return values, labels, arcs


def _weighted(labels: Tensor, arcs: Tensor, lengths: Tensor, lam: float, temperature: float) -> tuple[Tensor, Tensor]:
    """Return the weighted scores in float64, with -inf for what no tree can have, and NaN where an empty label is not 0."""
    spans, pairs = used_cells(lengths, arcs.shape[1])
    posts = torch.arange(spans.shape[1], device=spans.device)
    width = posts - posts[:, None]
    wrong = torch.where(labels[..., :1] == 0, 0.0, torch.nan)
    allowed = spans[..., None].repeat(1, 1, 1, labels.shape[-1])
    allowed[..., :SUBHEAD] = False
    allowed[..., SUBHEAD:FIRST_REAL] &= ((width > 1) & (width != lengths[:, None, None]))[..., None]
    labels = torch.where(allowed & (labels != -torch.inf), labels.double() * (lam / temperature) + wrong, -torch.inf)
    return labels, torch.where(pairs & (arcs != -torch.inf), arcs.double() * ((1 - lam) / temperature), -torch.inf)


def _both_passes(total: Tensor, arcs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return log Z [B], the probabilities of spans [B, N+1, N+1] and arcs [B, N, N+1], and whether they are exact [B].

    total: the log of each span's sum over labels, [B, N+1, N+1]; arcs: [B, N, N+1]. The names are those of `marginals`.
    """
    size, n = arcs.shape[:2]
    sentences, words = torch.arange(size, device=arcs.device), torch.arange(n, device=arcs.device)
    tops = arcs.amax(-1, keepdim=True)
    tops = torch.where(tops == -torch.inf, 0.0, tops)
    root, to_head = (arcs - tops).exp().split([1, n], -1)
    root = root[..., 0]
    after, before = arcs.new_zeros(2, size, n + 1, n + 1, n)
    scale, base, name, one, share = arcs.new_zeros(5, size, n + 1, n + 1)
    exact = torch.ones_like(lengths, dtype=torch.bool)

    def inside(width: int) -> Tensor:
        start = words[: n + 1 - width, None]
        return (words >= start) & (words < start + width)

    def splits(width: int):
        """Yield views of the left parts and of the right parts, their factors, and where h belongs to the left part."""
        start, shifts = words[: n + 1 - width, None, None], base.diagonal(width, 1, 2)
        for low, high in chunks(1, width, size * (n + 1 - width) * n):
            both = _split(scale, width, low, high)[0] + _split(scale, width, low, high)[1]
            yield low, high, (both - shifts[..., None]).exp2()[..., None], words < start + words[low:high, None]

    for width in range(1, n + 1):
        if width == 1:
            right, content = (
                arcs.new_zeros(size, n, n),
                torch.eye(n, dtype=arcs.dtype, device=arcs.device).expand(size, n, n),
            )
        else:
            left_scale, right_scale = _split(scale, width, 1, width)
            base.diagonal(width, 1, 2).copy_((left_scale + right_scale).amax(2))
            right = content = arcs.new_zeros(())
            for low, high, factor, is_left in splits(width):
                terms = _split(after, width, low, high)[0] * _split(before, width, low, high)[1] * factor
                right, content = right + (terms * is_left).sum(2), content + terms.sum(2)
        names = total.diagonal(width, 1, 2)
        power = torch.where(names == -torch.inf, 0.0, (names / LOG2).round())
        shift = power.clamp(min=0) + torch.frexp(content.amax(-1)).exponent
        names, ones = (names - power * LOG2).exp() * (power - shift).exp2(), (-shift).exp2()
        bare = ones * ((lengths > 1) if width == 1 else torch.zeros_like(lengths))[:, None]  # a word needs no label
        labelled = (names + bare)[..., None] * content
        attached, here = labelled @ to_head, inside(width)
        tail = words >= words[: n + 1 - width, None] + width
        content = ones[..., None] * content if width > 1 else torch.zeros_like(right)
        _cells(after, width).copy_(torch.where(here, ones[..., None] * right + labelled, attached * tail))
        _cells(before, width).copy_(torch.where(here, content + labelled, attached * ~tail))
        shares = names / (ones + names) if width > 1 else torch.ones_like(names)
        for table, values in zip((scale, name, one, share), (base.diagonal(width, 1, 2) + shift, names, ones, shares)):
            table.diagonal(width, 1, 2).copy_(values)
        checked = (words[: n + 1 - width] + width <= lengths[:, None]) & (lengths[:, None] != width)
        checked = checked[..., None] & (words < lengths[:, None, None])
        exact &= ~(checked & ~(torch.where(here, labelled, attached) >= TINY)).flatten(1).any(1)

    z = ((before[sentences, 0, lengths] * share[sentences, 0, lengths, None]) * root).sum(-1)
    exact &= z >= TINY
    log_z = z.log() + scale[sentences, 0, lengths] * LOG2 + tops.sum((1, 2))

    after_slope, before_slope = arcs.new_zeros(2, size, n + 1, n + 1, n)
    spans, roots, arc_slopes = torch.zeros_like(scale), torch.zeros_like(root), torch.zeros_like(to_head)
    for width in range(n, 0, -1):
        here, names, ones = inside(width), *(table.diagonal(width, 1, 2)[..., None] for table in (name, one))
        a, b = _cells(after_slope, width), _cells(before_slope, width)
        attached = torch.where(here, 0.0, torch.where(words < words[: n + 1 - width, None], b, a))
        slope = torch.where(here, a + b + attached @ to_head.mT, 0.0)
        whole = (lengths == width)[:, None]
        slope[:, 0] = torch.where(whole, root / z[:, None], slope[:, 0])
        labelled = torch.where(here, _cells(before, width) * share.diagonal(width, 1, 2)[..., None], 0.0)
        arc_slopes += labelled.mT @ attached
        probability = (labelled if width > 1 else here * names) * slope
        spans.diagonal(width, 1, 2).copy_(probability.sum(-1))
        roots = torch.where(whole, probability[:, 0], roots)
        if width > 1:
            to_left = torch.where(here, names * slope + ones * b, 0.0)[:, :, None]
            to_right = to_left + torch.where(here, ones * a, 0.0)[:, :, None]
            for low, high, factor, is_left in splits(width):
                both = torch.where(is_left, to_right, to_left) * factor
                _split(after_slope, width, low, high)[0].add_(both * _split(before, width, low, high)[1])
                _split(before_slope, width, low, high)[1].add_(both * _split(after, width, low, high)[0])
    return log_z, spans, torch.cat([roots[..., None], arc_slopes * to_head], -1), exact


def _cells(chart: Tensor, width: int) -> Tensor:
    """Return a view of the spans (i, i + width) of a chart [B, N+1, N+1, N]: [B, N+1-width, N]."""
    sentence, start, end, head = chart.stride()
    shape = (len(chart), chart.shape[1] - width, chart.shape[3])
    return chart.as_strided(shape, (sentence, start + end, head), chart.storage_offset() + width * end)


def _split(chart: Tensor, width: int, low: int, high: int) -> tuple[Tensor, Tensor]:
    """Return views of the parts (i, k) and (k, i + width), k in i+low..i+high-1: [B, N+1-width, high-low, ...] each."""
    (sentence, start, end, *head), first = chart.stride(), chart.storage_offset()
    shape = (len(chart), chart.shape[1] - width, high - low, *chart.shape[3:])
    left = chart.as_strided(shape, (sentence, start + end, end, *head), first + low * end)
    return left, chart.as_strided(shape, (sentence, start + end, start, *head), first + low * start + width * end)
