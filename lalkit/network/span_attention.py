"""Label attention inside the span [D]: one label head per label, which attends to the words of the span that it scores.

    S(i, j, l) = A(i, j, l) + B(i, j, l)      A(i, j, l) = sum_t a_t v_t,l      v_t,l = w_l . x_t  (the evidence)
    a = softmax over t in (i, j] of s_t,l     s_t,l = q_l . K x_t / sqrt(d_key)

Why: in the paper's layer a head has one context per sentence, and a span is the difference of two fenceposts. So what a head
attends to reaches the span's score only through a norm. Here it is a term of the score.

B scores the boundary of the span. `full` is the two-layer scorer of fenceposts. `glass` is linear in the first and the last word,
so that a score is a sum of named terms: the attention of every word times its evidence, two edges, and a constant.

All spans are computed at once: for every start, numerators and denominators are running sums in float64. Logits are taken
relative to the greatest one of the sentence, but not lower than FLOOR below it. Differences of sums from the sentence's
start would be cheaper, but would lose spans far from the greatest logit. Training needs few spans, so it computes them
directly (`at`).
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lalkit.config import SpanAttentionConfig, from_dict
from lalkit.errors import ModelError
from lalkit.network.encoder import HookedModule, xavier
from lalkit.network.scores import Parts, SpanScorer, at_least_float, without_padding

FLOOR = 600.0  # e^-600 is far above the least float64, so no span divides by 0


class EdgeScorer(nn.Module):
    """B(i, j) = W_f x_i+1 + W_l x_j + b, from the first and the last word of a span."""

    def __init__(self, features: int, labels: int):
        super().__init__()
        self.first, self.last = nn.Linear(features, labels, bias=False), nn.Linear(features, labels)

    def project(self, words: Float[Tensor, "b n d"]) -> Parts:
        """Return the words as the first and as the last words of spans, two [B, N, labels]."""
        return self.first(words), self.last(words)

    def chart(self, parts: Parts, lengths: Int[Tensor, "b"] | None = None) -> Float[Tensor, "b f f l"]:
        """Return the scores of all spans; 0 where i >= j. Cells beyond the end of a sentence have no meaning."""
        first, last = parts
        chart = F.pad((first[:, :, None] + last[:, None]).to(at_least_float(first)), (1, 0, 1, 0, 0, 1))
        places = torch.arange(chart.shape[1], device=chart.device)
        return chart.masked_fill((places[:, None] >= places)[..., None], 0.0)

    def at(self, parts: Parts, b: Tensor, i: Tensor, j: Tensor, label: Tensor) -> Float[Tensor, "m"]:
        """Return the scores of m spans (sentence b, start i, end j), each for one label."""
        first, last = parts
        return (first[b, i] + last[b, j - 1]).gather(1, label.clamp(min=1)[:, None] - 1)[:, 0]


class SpanLabelAttention(HookedModule):
    """Score spans for each label: each has its attention over the words of the span. Label 0 is empty, its score is 0.

    >>> layer = lalkit.SpanLabelAttention({"boundary": "glass"}, 64, 0, 4, 0.0)
    >>> layer(torch.zeros(1, 7, 64)).shape
    torch.Size([1, 8, 8, 4])

    Hook points: logits(logits [B, N, L - 1], lengths [B]) -> logits; evidence(evidence [B, N, L - 1], lengths) -> evidence.
    """

    points = {"logits": "batch word label", "evidence": "batch word label"}
    boundary: SpanScorer | EdgeScorer

    def __init__(self, config: SpanAttentionConfig | dict, features: int, hidden: int, labels: int, dropout: float):
        """features: of a word's vector. hidden: of the full boundary scorer. labels: their number, with the empty one."""
        super().__init__()
        config = from_dict(SpanAttentionConfig, config, "settings") if isinstance(config, dict) else config
        self.config, heads = config, labels - 1
        self.key = nn.Linear(features, config.d_key, bias=False)
        self.query = nn.Parameter(xavier(heads, config.d_key))
        self.evidence = nn.Linear(features, heads, bias=False)
        if config.boundary == "full":
            self.boundary = SpanScorer(features, hidden, labels, dropout)
        else:
            self.boundary = EdgeScorer(features, heads)

    def forward(self, words: Tensor, lengths: Tensor | None = None, spans: Tensor | None = None) -> Tensor:
        """Return the scores of all labels for all spans, [B, N + 1, N + 1, L], or for m spans, [m, L], which costs less.

        Args:
            words: Vectors of words, [B, N, features].
            lengths: The number of words of each sentence, [B]; None: all are as long.
            spans: Sentence, start and end of each span, [m, 3].

        Raises:
            ModelError: The boundary is `full`. It needs fenceposts: call `project`, and then `chart` or `at`.
        """
        if self.config.boundary == "full":
            remedy = "Choose the boundary glass, or call project with fenceposts, and then chart."
            raise ModelError("the boundary full needs fenceposts, not words", remedy=remedy)
        around = F.pad(words, (0, 0, 1, 1))  # START and STOP, which this boundary does not look at
        parts = self.project(around, around[:, :, None], lengths)
        if spans is None:
            return self.chart(parts, lengths)
        labels = torch.arange(len(self.query) + 1, device=words.device).repeat(len(spans))
        b, i, j = spans.repeat_interleave(len(self.query) + 1, dim=0).T
        return self.at(parts, b, i, j, labels).view(len(spans), -1)

    def project(
        self, x: Float[Tensor, "b t d"], posts: Float[Tensor, "b f h d"], lengths: Int[Tensor, "b"] | None = None
    ) -> Parts:
        """Return logits and evidence, both [B, N, L - 1], and what the boundary scorer needs.

        x: the vectors of START, the words and STOP. posts: the fenceposts between them.
        """
        words = x[:, 1:-1]
        logits = self.key(words) @ self.query.T / math.sqrt(self.config.d_key)
        evidence = self.evidence(words)
        if self.config.attention == "uniform":
            logits = torch.zeros_like(logits)
        elif self.config.attention == "none":
            logits, evidence = torch.zeros_like(logits), torch.zeros_like(evidence)
        logits, evidence = self.hook("logits", logits, lengths), self.hook("evidence", evidence, lengths)
        return logits, evidence, *self.boundary.project(posts if self.config.boundary == "full" else words)

    def chart(self, parts: Parts, lengths: Int[Tensor, "b"] | None = None) -> Float[Tensor, "b f f l"]:
        """Return the scores of all spans; 0 where i >= j and, with lengths, beyond the end of a sentence."""
        logits, evidence, *edges = parts
        scores = self.boundary.chart(tuple(edges), lengths)
        n = logits.shape[1]
        powers, values = self._powers(logits, lengths), evidence.double()
        weighted = powers * values
        for i in range(n):
            inside = weighted[:, i:].cumsum(1) / powers[:, i:].cumsum(1)
            scores[:, i, i + 1 :, 1:] += inside.to(scores.dtype)
        return without_padding(scores, lengths)

    def at(self, parts: Parts, b: Tensor, i: Tensor, j: Tensor, label: Tensor) -> Float[Tensor, "m"]:
        """Return the scores of m spans (sentence b, start i, end j), each for one label: the same as in the chart."""
        logits, evidence, *edges = parts
        head = label.clamp(min=1) - 1
        attention = self.attention(logits, b, i, j, head)
        inside = (attention * evidence[b, :, head].to(attention.dtype)).sum(-1)
        edge = self.boundary.at(tuple(edges), b, i, j, label)
        return (inside + edge.to(inside.dtype)).masked_fill(label == 0, 0.0)

    @staticmethod
    def attention(logits: Tensor, b: Tensor, i: Tensor, j: Tensor, head: Tensor) -> Float[Tensor, "m n"]:
        """Return the attention of one label head inside each of m spans: 0 outside the span, with sum 1."""
        place = torch.arange(logits.shape[1], device=logits.device)
        inside = (place >= i[:, None]) & (place < j[:, None])
        chosen = logits[b, :, head].to(at_least_float(logits))
        return torch.softmax(chosen.masked_fill(~inside, -torch.inf), dim=-1)

    def _powers(self, logits: Float[Tensor, "b n l"], lengths: Int[Tensor, "b"] | None) -> Float[Tensor, "b n l"]:
        logits = logits.double()
        if lengths is not None:
            beyond = torch.arange(logits.shape[1], device=logits.device)[None] >= lengths[:, None]
            logits = logits.masked_fill(beyond[..., None], -torch.inf)
        return torch.exp((logits - logits.amax(1, keepdim=True)).clamp(min=-FLOOR))
