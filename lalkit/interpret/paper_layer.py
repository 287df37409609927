"""Measure the contributions of the heads of the paper's layer to the scores of spans.

A span vector is a difference of fenceposts, and each label head has its own slice of it. The contribution of a head to a span
(Mrini et al. 2020, section 4.5) is the sum over its slice,

    raw[h] = sum_d s_ij[h, d]        s_ij = f_j - f_i

A difference of sums is a sum of differences, so one number for each fencepost and head is enough for all spans.

The *effect* of a head (the norm `exact` of tables) is the loss in the score of the span's label if the head's slice is set to
zero. One forward pass gives it for all heads.
The span scorer is Linear, LN, ReLU, Linear (eq. 6), and its first step adds up the heads:

    W1 s_ij + b1 = b1 + sum_h W1[:, h] s_ij[h]        s_ij[h] = f_j[h] - f_i[h]

So removing head h is one subtraction after that step. Each head makes its own slice only; a head has no influence on the slices
of other heads. A feed-forward after the label attention mixes the slices. Then there are no contributions, but the contexts of
the heads can still be changed: all controls are defined. A head has one context c_h for a whole sentence, and R P c_h would
cancel in a difference of fenceposts: the attention of a head acts on a span through the norm alone. The controls measure how
strong this effect is.

The probes see the layer as an `AttentionView`: an example is a sentence, and each head has one query for it. y_h[t] = LN(R (x_t +
P c_h)), so other weights give other contexts c_h. The view computes the outputs, the fenceposts and the scores again from the
same x. Everything before the label attention is computed only once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lalkit.config import ModelConfig
from lalkit.errors import LalkitError, ModelError, checked
from lalkit.interpret.explanation import FIRST_LABEL, HEAD, NO_HEAD, Parts
from lalkit.interpret.layers import Explainer, Sentences, Spans
from lalkit.interpret.tables import Contributions, Heads
from lalkit.network.batches import pad
from lalkit.network.label_attention import LabelAttention, normalise
from lalkit.network.parser import ParserOutput
from lalkit.network.scores import SpanScorer, fenceposts
from lalkit.probes.view import AttentionView, Outcome, judged


class PaperLayer(Explainer):
    """The paper's layer: each head has one attention for the whole sentence.

    The head of a label is the head that most often contributes most to the label's gold spans (exact effects). It is chosen on
    the same sentences on which it is then measured. This favours the layer.
    """

    removed, passed = "output", "contexts"

    @staticmethod
    def system(config: ModelConfig) -> str:
        layer = config.label_attention
        halves = getattr(layer, "partition", "") == "all"
        name = getattr(layer, "layer", "layer in halves" if halves else "paper's layer")
        return f"{name} with feed-forward" if config.feedforward else name

    @property
    def layer(self) -> LabelAttention:
        return cast(LabelAttention, self.model.network.label_attention)

    @property
    def heads(self) -> int:
        return self.layer.config.heads

    @property
    def mixed(self) -> bool:  # type: ignore[override]
        """Whether the part of one head in the score of a span cannot be separated."""
        network, layer = self.model.network, self.layer
        together = layer is None or getattr(layer.config, "combine", "concat") == "project"
        heads_alone = not together and network.feedforward is None
        return not heads_alone or network.config.task == "dependencies"

    def check(self) -> None:
        """Raise ModelError for a parser that has no contributions of single heads."""
        if self.mixed:
            needed = "constituents, model.feedforward=0 and model.label_attention.combine=concat"
            problem = f"contributions of label heads are defined only for the paper's layer, with {needed}"
            raise ModelError(problem, remedy="Use a parser such as en-news.")

    def check_contexts(self) -> None:
        """Raise ModelError for a parser whose heads do not have one context each for a whole sentence."""
        if getattr(self.model.config.model.label_attention, "query", None) != "vector":
            super().check_contexts()

    def weights(self) -> list[Tensor]:
        return list(self.layer.parameters())

    def split(self, output: ParserOutput, b: int, n: int, spans: Int[Tensor, "m 3"]) -> tuple[Parts, np.ndarray]:
        """Split scores by head: its effect, its raw contribution (the paper's own measure), and its part of the sum (`value`).

        The parts of all heads and a last one, of no head, add up to the score: see `parts_of`.
        """
        scorer, posts = cast(SpanScorer, self.model.network.spans), output.posts[b, : n + 1]
        sums, heads, (start, end, label) = posts.sum(-1), posts.shape[1], spans.T
        scores = output.label_scores[b, start, end, label][:, None]
        without = without_heads(scorer, posts, spans[:, :2])
        effects = scores - without.gather(2, label[:, None, None].expand(-1, heads, 1))[..., 0]
        then_score, then = without[..., FIRST_LABEL:].max(-1)
        raw, values = sums[end] - sums[start], parts_of(scorer, posts[end] - posts[start], label)
        numbers = {"value": values, "effect": effects, "then_score": then_score}
        columns = {name: x.masked_fill(label[:, None] == 0, torch.nan).float() for name, x in numbers.items()}
        columns |= {"then": then + FIRST_LABEL, "raw": raw.float()}
        part = torch.tensor([*[HEAD] * heads, NO_HEAD], device=spans.device)
        number = torch.arange(heads + 1, device=spans.device).expand(len(spans), -1)
        parts = Parts.flat(part, number, torch.ones_like(number, dtype=torch.bool), columns)
        return parts, raw.float().cpu().numpy().copy()

    @torch.inference_mode()
    def vectors(self, x: Tensor) -> Tensor:
        """Return the contexts [B, H, d_kv] of sentences of one length, as hooks change them.

        x: the vectors [B, T, d] that the layer reads.
        """
        layer, mask = self.layer, torch.ones_like(x[..., 0], dtype=torch.bool)
        attention = layer.hook("attention", layer.attend(x, mask), mask)
        return layer.hook("contexts", layer.contexts(x, attention))

    @torch.no_grad()
    @checked
    def view(self, sentences: Sentences, spans: Spans | None = None, examples: Sequence[int] = ()) -> AttentionView:
        """Return the view of a batch of sentences. A unit is a span.

        Returns: weights [B, H, 1, T], over T positions with START and STOP; values [B, H, T, d_kv], V_h x.
        Raises: ModelError as `check_contexts` does; LalkitError without a sentence.
        """
        if not sentences:
            raise LalkitError("there is no sentence to look at", remedy="Give at least one.")
        self.check_contexts()
        network, layer = self.model.network.eval(), self.layer
        batch = self.model.collator(sentences).to(next(network.parameters()).device)
        x, mask = network(batch, chart=False).x, batch.mask
        weights, values = layer.attend(x, mask)[:, :, None], layer.value(x).transpose(1, 2)
        label, of_spans = self.span_labels(self.parsed(sentences) if spans is None else spans)

        def probabilities(contexts: Tensor) -> Tensor:
            y = layer.combine(x, contexts[:, :, 0].to(x.dtype), None)
            return of_spans(y if network.feedforward is None else network.feedforward(y))

        @torch.no_grad()
        def from_contexts(contexts: Tensor) -> Outcome:
            one = contexts.dim() == 4  # or several contexts of the same sentences
            probs = probabilities(contexts) if one else torch.stack([*map(probabilities, contexts)])
            return judged(probs, label != -1, label)

        heads, queries = [f"lal.{h:03d}" for h in range(weights.shape[1])], torch.ones_like(mask[:, :1])
        return AttentionView(weights, values, mask, queries, heads, tuple(examples), from_contexts)

    def span_labels(self, spans: Spans) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Return the labels of spans [B, U], and a function from y [B, T, H, d] to the probabilities of labels [B, U, L]."""
        scorer, index = cast(SpanScorer, self.model.network.spans), self.model.vocab.label_index
        most, device = max(1, *map(len, spans)), scorer.bias.device
        start = pad([[span[0] for span in several] for several in spans], most, device=device)
        end = pad([[span[1] for span in several] for several in spans], most, device=device)
        labels = [[index.get(span[2], -2) for span in several] for several in spans]  # -2: a label that is never right
        label = pad(labels, most, -1, device=device)  # -1: padding
        sentence = torch.arange(len(spans), device=device)[:, None]

        def of_spans(y: Tensor) -> Tensor:
            projected, _ = scorer.project(fenceposts(y, self.model.network.slice))
            hidden = torch.relu(scorer.norm(projected[sentence, end] - projected[sentence, start] + scorer.bias))
            return torch.softmax(_with_empty(scorer.second(hidden)).double(), -1)

        return label, of_spans

    def head_of(self, label: str, contributions: Contributions) -> int:
        top = contributions.top("exact")[contributions.labelled(label)]
        return int(np.bincount(top).argmax()) if len(top) else 0

    def mean(self, sentences: Sentences) -> Float[Tensor, "h d"]:
        """Return the mean of each head's context c_h over sentences."""
        self.check_contexts()
        seen: list[Tensor] = []
        with self.layer.hooked(contexts=lambda contexts: seen.append(contexts) or contexts):
            for _ in self.model.scores(sentences):
                pass
        return torch.cat(seen).cpu().double().mean(0).to(seen[0])  # mps has no float64

    def controls(self, mean: Tensor) -> dict[str, dict]:
        """Return the controls by name. The control `shuffled heads` needs a slice for each head (combine=concat)."""
        self.check_contexts()
        order = self.order(mean)
        # With unchanged contexts the layer takes the same steps, and rounds the same, as under the other controls.
        shuffled = {"contexts": lambda contexts: contexts, "output": lambda y, attention: y[:, :, order]}
        return {
            "uniform attention": {"attention": lambda attention, mask: normalise(attention, mask[:, None], "uniform")},
            "zeroed": {"contexts": torch.zeros_like},
            "mean": {"contexts": lambda contexts: mean.to(contexts).expand_as(contexts)},
            "swapped sentences": {"contexts": lambda contexts: contexts.roll(1, 0)},
            "swapped heads": {"contexts": lambda contexts: contexts[:, order]},
            **({"shuffled heads": shuffled} if self.layer.config.combine == "concat" else {}),
        }

    def without(self, heads: Heads, mean: Tensor) -> dict[str, dict]:
        """`head out` sets the head's slice to zero. This also removes its constant part, which `head at its mean` leaves.

        Raises ModelError if the heads are projected together, so that they have no slices.
        """
        if self.layer is None or getattr(self.layer.config, "combine", "concat") == "project":
            self.check()
        return super().without(heads, mean)

    def chosen(self, heads: Heads) -> Bool[Tensor, "h 1"]:
        return super().chosen(heads)[:, None]


@torch.no_grad()
def without_heads(
    scorer: SpanScorer, posts: Float[Tensor, "f h d"], spans: Int[Tensor, "m 2"]
) -> Float[Tensor, "m h l"]:
    """Return the label scores of each span (start, end) with each head's slice of its vector at zero.

    posts: the fenceposts of one sentence, f = n + 1. The empty label scores 0. This takes m * h * hidden floats of memory.
    """
    weight = scorer.first.weight.unflatten(1, posts.shape[1:]).permute(1, 2, 0)  # [H, d, hidden]
    start, end = spans.unbind(1)
    if len(spans) < len(posts):  # Project whichever is fewer: span vectors or fenceposts.
        each = (posts[end] - posts[start]).transpose(0, 1) @ weight  # W1[:, h] s_ij[h]: [H, m, hidden]
    else:
        projected = posts.transpose(0, 1) @ weight
        each = projected[:, end] - projected[:, start]
    before = (each.sum(0) + scorer.bias) - each
    return _with_empty(scorer.second(torch.relu_(scorer.norm(before))).transpose(0, 1))


@torch.no_grad()
def parts_of(scorer: SpanScorer, slices: Float[Tensor, "m h d"], label: Int[Tensor, "m"]) -> Float[Tensor, "m parts"]:
    """Split the score of each span for a label into a part of each head and a last part that belongs to no head.

    The parts add up to the score: the division of the layer norm and the choice of the ReLU stay as they are for the whole
    span, and then the score is a sum over slices. slices: the span vectors, f_j - f_i.
    """
    each = torch.einsum("mhd,khd->mhk", slices, scorer.first.weight.unflatten(1, slices.shape[1:]))
    each = torch.cat([each, scorer.bias.expand(len(each), 1, -1)], 1)
    each = each - each.mean(-1, keepdim=True)
    gain = scorer.norm.weight * (each.sum(1).square().mean(-1, keepdim=True) + scorer.norm.eps).rsqrt()
    passed = scorer.second.weight[label - 1] * (each.sum(1) * gain + scorer.norm.bias > 0)
    parts = torch.einsum("mhk,mk->mh", each, passed * gain)
    parts[:, -1] += (passed * scorer.norm.bias).sum(-1) + scorer.second.bias[label - 1]
    return parts


def _with_empty(scores: Tensor) -> Tensor:
    """Put the score of the empty label, 0, before the scores of all other labels."""
    return torch.cat([torch.zeros_like(scores[..., :1]), scores], dim=-1)
