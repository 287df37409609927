"""Losses on charts: maximum margin for labelled spans (Mrini et al. 2020, eq. 7-9), likelihood for arcs (eq. 11).

Beside them, not in the paper: the likelihood of trees of labelled spans. All return a sum over sentences, which the caller
divides by their number, as the released program does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from lalkit.chart.cky import FIRST_REAL, SUBHEAD, best_brackets

Gold = Sequence[Sequence[tuple[int, int, int]]]


def span_margin_loss(
    label_scores: Tensor,
    lengths: Tensor | Sequence[int],
    gold: Gold,
    threads: int | None = None,
    scores_at: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] | None = None,
) -> Tensor:
    """Return the sum over sentences of max(0, max_T (s(T) + distance(T, gold)) - s(gold)), a scalar.

    T is any binary tree of `cky`. distance(T, gold) counts the spans of T whose label differs from gold's label of this span,
    which is the empty label where gold has no span. So the loss is 0 exactly if gold scores at least as much as every
    tree plus its distance.

    The best tree is found without gradients: the maximum over labels on the scores' device, CKY on the CPU, to which only a
    [B, N+1, N+1] chart is copied. Gradients then flow through the spans of this tree and of gold.

    Args:
        label_scores: [B, N+1, N+1, L]; index 0 is the empty label, which scores 0. Half precision is computed in float32.
        lengths: [B], the numbers of words.
        gold: The labelled spans (start, end, label index) of every sentence.
        threads: Threads for CKY; None: one per core.
        scores_at: A function (sentence, start, end, label), [m] each -> the same scores [m], through which the gradients
            flow instead of label_scores.
    """
    lengths = torch.as_tensor(lengths).tolist()
    if label_scores.dtype not in (torch.float32, torch.float64):
        label_scores = label_scores.float()
    device = label_scores.device
    at = [(b, i, j, k) for b, spans in enumerate(gold) for i, j, k in spans]
    gold_at = torch.tensor(at, dtype=torch.long).to(device).T
    gold_label = torch.zeros(label_scores.shape[:3], dtype=torch.long, device=device)
    gold_label[gold_at[0], gold_at[1], gold_at[2]] = gold_at[3]

    with torch.no_grad():
        best, label = augmented_maximum(label_scores.detach(), gold_label, lengths)
        brackets = best_brackets(best.cpu().numpy(), lengths, threads)
        rows = [torch.from_numpy(spans) for spans in brackets]
        sentence = torch.repeat_interleave(torch.tensor([len(row) for row in rows]))
        sentence, start, end = torch.cat([sentence[:, None], torch.cat(rows)], dim=1).to(device).unbind(1)
        predicted = label[sentence, start, end]
        distance = (predicted != gold_label[sentence, start, end]).to(label_scores.dtype)

    margin = label_scores.new_zeros(len(lengths))
    read = scores_at or (lambda *at: label_scores[at])
    both = torch.cat([torch.stack([sentence, start, end, predicted]), gold_at], dim=1)
    best_scores, gold_scores = read(*both).to(label_scores.dtype).split([len(sentence), gold_at.shape[1]])
    margin = margin.index_add(0, sentence, best_scores + distance).index_add(0, gold_at[0], -gold_scores)
    return margin.clamp(min=0).sum()


def augmented_maximum(label_scores: Tensor, gold_label: Tensor, lengths: list[int]) -> tuple[Tensor, Tensor]:
    """Add 1 to every label except gold's. Return the best allowed score of every span and its label, two [B, N+1, N+1]."""
    augmented = label_scores + 1
    augmented.scatter_add_(-1, gold_label[..., None], torch.full_like(augmented[..., :1], -1))
    n = augmented.shape[1] - 1
    words = torch.arange(n, device=augmented.device)
    augmented[:, words, words + 1, SUBHEAD] = -torch.inf
    sentences = torch.arange(len(lengths), device=augmented.device)
    augmented[sentences, 0, torch.tensor(lengths, device=augmented.device), :FIRST_REAL] = -torch.inf
    return augmented.max(-1)


def span_likelihood_loss(label_scores: Tensor, lengths: Tensor | Sequence[int], gold: Gold) -> Tensor:
    """Return the sum over sentences of -log p(gold), a scalar, at least float32. Gradients flow through all spans.

    p(tree) is proportional to exp(the sum of its labels' scores). A tree is a set of nested labelled spans; one is the sentence.
    Every tree counts exactly once, because a span takes its parts one by one, from the first to the last:

        N(i, j) = U(i, j) sum_l e^score(i, j, l)     a labelled span; for a single word: 1 + its labels
        S(i, j) = N(i, j) + U(i, j)                  one part, or several parts side by side
        U(i, j) = sum_k N(i, k) S(k, j)              two parts or more: the content of a span; 1 for a single word

    Stern et al. 2017 (A Minimal Span-Based Neural Constituency Parser) use the margin; the likelihood of span trees is in
    Zhang et al. 2020 (Fast and Accurate Neural CRF Constituency Parsing), for binary trees and with labels apart [D].

    Args:
        label_scores: [B, N+1, N+1, L]; index 0 is the empty label, which scores 0. Half precision is computed in float32.
        lengths: [B], the numbers of words.
        gold: The labelled spans (start, end, label index) of every sentence.
    """
    lengths = torch.as_tensor(lengths).tolist()
    scores, n = label_scores.to(torch.promote_types(label_scores.dtype, torch.float32)), max(lengths)
    word, sentence, last = (torch.tensor(x, device=scores.device) for x in (range(n), range(len(lengths)), lengths))
    # Lists over widths, each entry [B, start], in logarithms. Cells beyond a sentence's end are computed, but not read.
    single = F.softplus(scores[:, word, word + 1, FIRST_REAL:].logsumexp(-1))
    contents, parts, sequences = [torch.zeros_like(single)], [single], [single]  # U, N, S
    for width in range(2, n + 1):
        starts = n + 1 - width
        left = torch.stack([part[:, :starts] for part in parts])
        right = torch.stack([sequences[width - k - 1][:, k : k + starts] for k in range(1, width)])
        labels = scores[:, word[:starts], word[:starts] + width, SUBHEAD:].logsumexp(-1)
        contents.append((left + right).logsumexp(0))
        parts.append(contents[-1] + labels)
        sequences.append(contents[-1] + F.softplus(labels))
    whole = torch.stack([content[:, 0] for content in contents])[last - 1, sentence]
    whole = whole + scores[sentence, 0, last, FIRST_REAL:].logsumexp(-1)  # the whole sentence has a real label
    gold_at = torch.tensor([(b, *span) for b, spans in enumerate(gold) for span in spans], device=scores.device).T
    return whole.sum() - scores[tuple(gold_at)].sum()


def arc_loss(log_probabilities: Tensor, heads: Tensor, mask: Tensor) -> Tensor:
    """Return the negative log-likelihood of every word's head (eq. 11), summed over words: a scalar, at least float32.

    log_probabilities: [B, N, N+1] over the heads that a word may have; column 0 is the root, h+1 is word h.
    heads: [B, N], 1-based, 0 is the root. mask: bool [B, N], True for words; heads are read there only.
    """
    mask = mask.bool()
    gold = log_probabilities.gather(2, heads.masked_fill(~mask, 0)[..., None])[..., 0]
    gold = gold.to(torch.promote_types(gold.dtype, torch.float32))
    return -gold.masked_fill(~mask, 0).sum()
