"""Split the score of a span into terms, for parsers with label attention inside the span (`model.span_attention`).

    S(i, j, l) = sum_t a_t v_t + B(i, j, l)

The term a_t v_t of a word is its attention times its evidence, for this span and this label. The terms are exact: they add up to
the score. B is one number (boundary scorer `full`), or (`glass`) a term of the first word, a term of the last word,
and a constant. So nothing here is estimated: without a word's evidence, the score is less by the word's term.

The probes see the layer as an `AttentionView`: an example is a span, and its keys are the words of the span. A(i, j, l) = sum_t
a_t v_t: the weights are a, the values are the evidence v (of size 1), and a context is A itself. The scores of all labels are
contexts plus boundaries. So a probe changes weights within the span, and only the sum is computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from lalkit.config import ModelConfig
from lalkit.errors import LalkitError, ModelError, checked
from lalkit.interpret.explanation import BOUNDARY, CONSTANT, FIRST, FIRST_LABEL, LAST, WORD, Parts
from lalkit.interpret.layers import Explainer, Sentences, Spans
from lalkit.interpret.tables import Contributions
from lalkit.network.model import Scored
from lalkit.network.parser import ParserOutput
from lalkit.network.span_attention import EdgeScorer, SpanLabelAttention
from lalkit.probes.view import AttentionView, Outcome, judged

STRIDE = 1_000_000  # The number of a span is the number of its sentence * STRIDE + start * 1000 + end.


class SpanLayer(Explainer):
    """Label attention inside the span: there is one head for each label, and it attends to the words of the span.

    The contribution of a head to a span is its sum A minus the mean of A, also for spans with another label. So one can see
    whether a head contributes to the wrong spans.
    """

    removed = passed = "evidence"

    @staticmethod
    def system(config: ModelConfig) -> str:
        inside = config.span_attention
        attention = {"learned": "", "none": ", no attention"}.get(inside.attention, f", {inside.attention} attention")
        return f"span {inside.boundary}{attention}"

    @property
    def layer(self) -> SpanLabelAttention:
        """Raises ModelError as `check` does."""
        self.check()
        return cast(SpanLabelAttention, self.model.network.spans)

    @property
    def heads(self) -> int:
        return len(self.head_labels)

    @property
    def head_labels(self) -> Sequence[str]:
        return self.model.vocab.labels[1:]

    @property
    def attends(self) -> bool:
        return self.layer.config.attention != "none"

    def weights(self) -> list[Tensor]:
        return [self.layer.key.weight, self.layer.query, self.layer.evidence.weight]

    def check(self) -> None:
        """Raise ModelError for a parser without this layer."""
        if not isinstance(self.model.network.spans, SpanLabelAttention):
            remedy = "Use a parser trained with model.span_attention, such as --preset minilm-span."
            raise ModelError("its spans are not scored by words inside them", remedy=remedy)

    def split(self, output: ParserOutput, b: int, n: int, spans: Int[Tensor, "m 3"]) -> tuple[Parts, np.ndarray]:
        """Split scores into the terms of words and the terms of boundaries."""
        places, which = torch.unique(spans[:, :2], dim=0, return_inverse=True)
        sentence = torch.full_like(places[:, 0], b)
        attention, evidence, boundary, inside = self._inside(output.span_parts, sentence, *places.T)
        terms = attention.double() * evidence.double()
        sums = terms.sum(-1)
        without = (sums + boundary.double())[..., None] - terms
        without[:, : FIRST_LABEL - 1] = -torch.inf  # <H> is not a constituent.
        then_score, then = without.max(1)
        start, end, label = spans.T
        head, size = (label - 1).clamp(min=0), inside.shape[1]
        value, share, proof = (x[which, head] for x in (terms, attention, evidence))
        edges = {BOUNDARY: (0 * end, boundary[which, head].double())}  # number of the word, value
        if self.layer.config.boundary == "glass":
            *_, firsts, lasts = output.span_parts
            constant = cast(EdgeScorer, self.layer.boundary).last.bias[head].double()
            first, last = firsts[b, start, head].double(), lasts[b, end - 1, head].double() - constant
            edges = {FIRST: (start + 1, first), LAST: (end, last), CONSTANT: (0 * end, constant)}
        numbers, values = (torch.stack(columns, 1) for columns in zip(*edges.values()))
        of_words = start[:, None] + torch.arange(1, size + 1, device=spans.device)
        known = {"value": torch.cat([value, values], 1), "effect": value}
        columns = {name: x.masked_fill(label[:, None] == 0, torch.nan) for name, x in known.items()}
        columns |= {"attention": share, "evidence": proof, "then": then[which] + 1, "then_score": then_score[which]}
        part = torch.tensor([*[WORD] * size, *edges], device=spans.device)
        there = F.pad(inside[which], (0, len(edges)), value=True)
        return Parts.flat(part, torch.cat([of_words, numbers], 1), there, columns), sums[which].cpu().numpy()

    def _inside(self, parts: Sequence[Tensor], b: Tensor, start: Tensor, end: Tensor) -> tuple[Tensor, ...]:
        """Compute the parts of the scores of S spans (sentence b, start, end) of at most T words, for H heads.

        Returns: attention and evidence of the words [S, H, T], 0 beyond the span; the scores of boundaries [S, H]; which places
            are words of the span [S, T].
        """
        logits, evidence, *edges = parts
        head = torch.arange(logits.shape[-1], device=logits.device).repeat(len(b))
        every, i, j = (x.repeat_interleave(logits.shape[-1]) for x in (b, start, end))  # each for every head
        words = start[:, None] + torch.arange(max((end - start).tolist(), default=0), device=logits.device)
        inside = words < end[:, None]
        words = words.clamp(max=logits.shape[1] - 1)
        attention = self.layer.attention(logits, every, i, j, head).unflatten(0, (len(b), -1))
        attention = attention.gather(2, words[:, None].expand(-1, attention.shape[1], -1)) * inside[:, None]
        values = (evidence[b[:, None], words] * inside[..., None]).transpose(1, 2).to(attention.dtype)
        boundary = self.layer.boundary.at(tuple(edges), every, i, j, head + 1).unflatten(0, (len(b), -1))
        return attention, values, boundary, inside

    @torch.no_grad()
    @checked
    def view(self, sentences: Sentences, spans: Spans | None = None, examples: Sequence[int] = ()) -> AttentionView:
        """Return the view of the spans of all sentences, in their order. The only unit is the label of the span.

        Returns: weights [B, H, 1, T] for B spans of at most T words and H heads, one for each label (also <H>); values
            [B, H, T, 1].
        Raises: ModelError as `check` does; LalkitError without a span.
        """
        self.check()
        network, index = self.model.network.eval(), self.model.vocab.label_index
        spans = self.parsed(sentences) if spans is None else spans
        places = [(b, *span[:2], index.get(span[2], -2)) for b, several in enumerate(spans) for span in several]
        if not places:
            raise LalkitError("there is no span to look at", remedy="Give at least one sentence with constituents.")
        device = next(network.parameters()).device
        b, start, end, right = torch.tensor(places, device=device).T
        parts = network(self.model.collator(sentences).to(device), chart_gradient=False).span_parts
        weights, values, boundary, inside = self._inside(parts, b, start, end)
        units, values = torch.ones_like(right, dtype=torch.bool)[:, None], values[..., None]

        def from_contexts(contexts: Tensor) -> Outcome:
            scores = contexts[..., 0, 0] + boundary
            probs = torch.softmax(torch.cat([torch.zeros_like(scores[..., :1]), scores], dim=-1).double(), -1)
            return judged(probs[..., None, :], units, right[:, None])

        numbers, heads = examples or range(len(sentences)), [f"span.{name}" for name in self.head_labels]
        of_spans = tuple(numbers[s] * STRIDE + i * 1000 + j for s, i, j, _ in places)
        queries = torch.ones_like(inside[:, :1])
        return AttentionView(weights[:, :, None], values, inside, queries, heads, of_spans, from_contexts)

    def head_of(self, label: str, contributions: Contributions) -> int:
        return self.model.vocab.label_index[label] - 1

    @torch.inference_mode()
    def total(self, scored: Scored) -> tuple[Tensor, int]:
        """Return the sum of A(i, j, l) over all spans of a batch, the chart less the chart without evidence; and their number."""
        logits, evidence, *edges = scored.output.span_parts
        lengths = torch.tensor([len(sentence) for sentence in scored.sentences], device=logits.device)
        without = self.layer.chart((logits, torch.zeros_like(evidence), *edges), lengths)
        sums = (scored.output.label_scores - without)[..., 1:].double().sum((0, 1, 2))
        return sums, int((lengths * (lengths + 1) // 2).sum())

    def mean_of(self, totals: Sequence[tuple[Tensor, int]]) -> Tensor:
        sums, counts = zip(*totals)
        return sum(sums) / sum(counts)

    def mean(self, sentences: Sentences) -> Float[Tensor, "h"]:
        """Return the mean of A(i, j, l), over all spans of the sentences."""
        return self.mean_of([self.total(scored) for scored in self.model.scores(sentences)])

    def controls(self, mean: Tensor) -> dict[str, dict]:
        order = self.order(mean)
        return {
            "uniform attention": {"logits": lambda logits, lengths: torch.zeros_like(logits)},
            "swapped attention": {"logits": of_next},  # The evidence stays.
            "swapped sentences": {"logits": of_next, "evidence": of_next},
            "swapped heads": dict.fromkeys(("logits", "evidence"), lambda x, lengths: x[..., order]),
            "mean": {"evidence": lambda evidence, lengths: mean.to(evidence).expand_as(evidence)},
            "zeroed": {"evidence": lambda evidence, lengths: torch.zeros_like(evidence)},
        }


def of_next(x: Float[Tensor, "b n h"], lengths: Tensor) -> Float[Tensor, "b n h"]:
    """Replace the value at word t by that of the next sentence in the batch.

    A shorter sentence is repeated: the value at word t is that at t modulo its length. A sentence alone in its batch is its own
    next sentence.
    """
    place = torch.arange(x.shape[1], device=x.device)[None] % lengths.roll(-1)[:, None]
    return x.roll(-1, 0).gather(1, place[..., None].expand_as(x))
