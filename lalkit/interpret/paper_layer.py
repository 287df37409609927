"""Measure the contributions of the heads of the paper's layer to the scores of spans.

A span vector is a difference of fenceposts, and each label head has its own slice of it. The contribution of a head to a span
(Mrini et al. 2020, section 4.5) is the sum over its slice,

    raw[h] = sum_d s_ij[h, d]        s_ij = f_j - f_i

A difference of sums is a sum of differences, so one number for each fencepost and head is enough for all spans.

`exact` is the loss in the score of the span's label if the head's slice is set to zero. One forward pass gives it for all heads.
The span scorer is Linear, LN, ReLU, Linear (eq. 6), and its first step adds up the heads:

    W1 s_ij + b1 = b1 + sum_h W1[:, h] s_ij[h]        s_ij[h] = f_j[h] - f_i[h]

So removing head h is one subtraction after that step. Each head makes its own slice only; a head has no influence on the slices
of other heads. A feed-forward after the label attention mixes the slices. Then there are no contributions, but the contexts of
the heads can still be changed: all controls are defined.

The probes see the layer as an `AttentionView`: an example is a sentence, and each head has one query for it. y_h[t] = LN(R (x_t +
P c_h)), so other weights give other contexts c_h. The view computes the outputs, the fenceposts and the scores again from the
same x. It computes only once all that comes before the label attention.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lalkit.config import ModelConfig
from lalkit.errors import LalkitError, ModelError
from lalkit.interpret.contributions import NORMS, UNITS, Contributions, Heads, Look, Span, contributions, normalise
from lalkit.interpret.source import AttributionSource, Sentences, SpanAttribution, Spans, gold_spans, parsed_spans
from lalkit.network.batches import Batch
from lalkit.network.label_attention import LabelAttention
from lalkit.network.parser import Network, ParserOutput
from lalkit.network.predict import Prediction, predict_batches
from lalkit.network.scores import SpanScorer, fenceposts
from lalkit.probes.view import AttentionView, Outcome, by_mixing, judged
from lalkit.treebank.tree import Sentence


class PaperLayer(AttributionSource):
    """The paper's layer: each head has one attention for the whole sentence.

    The head of a label is the head that most often contributes most to the label's gold spans (exact effects). It is chosen on
    the sentences on which it is then judged. This favours the layer.
    """

    question = "Which label heads made this?"
    content = "contributions of all spans, every norm"
    norms = tuple(NORMS)
    top_norm = "exact"
    passed_on = "contexts"
    needs = {"attention": True, "posts": True}

    @staticmethod
    def system(config: ModelConfig) -> str:
        return "paper's layer"

    @property
    def layer(self) -> LabelAttention:
        return self.network.label_attention

    @property
    def heads(self) -> int:
        return self.layer.config.heads

    @property
    def mixed(self) -> str | None:
        """The reason why the part of one head in the score of a span cannot be separated; None if it can."""
        reasons = {
            "it gives dependencies alone": self.network.config.task == "dependencies",
            "its label attention is inside the span": self.network.config.span_attention,
            "it has no label attention": self.layer is None,
            "a feed-forward after the label attention mixes its heads": self.network.feedforward,
            "its heads are projected together": self.layer is not None and self.layer.config.combine == "project",
        }
        return next((reason for reason, holds in reasons.items() if holds), None)

    def check(self) -> None:
        """Raise ModelError for a parser that has no contributions of single heads."""
        if self.mixed:
            problem = f"contributions of label heads are not defined for this parser: {self.mixed}"
            remedy = "Use a parser such as en-news, with model.feedforward=0 and model.label_attention.combine=concat."
            inside = "Its scores are sums of words' terms: ask for these (`Parser.terms`, `lalkit explain`)."
            raise ModelError(problem, remedy=inside if self.network.config.span_attention else remedy)

    def check_contexts(self) -> None:
        """Raise ModelError for a parser whose heads do not have one context each for a whole sentence."""
        if self.layer is None:
            remedy = "Use a parser with the paper's layer, such as en-news."
            raise ModelError("this parser has no label attention with one context a sentence", remedy=remedy)
        if self.layer.config.query != "vector":
            raise ModelError("a query matrix gives every word its own contexts", remedy="Use query=vector.")

    def weights(self) -> list[Tensor]:
        return list(self.layer.parameters())

    def look_at(self, prediction: Prediction, output: ParserOutput, b: int, besides: Sequence[Span]) -> Look:
        """Keep the attention and the contributions of one sentence."""
        n, spans = len(prediction.sentence), parsed_spans(prediction)
        spans += [span for span in besides if span not in spans]
        labels = [self.collator.vocab.label_index.get(label, 0) for _, _, label in spans]
        chart, posts = output.label_scores[b], output.posts[b, : n + 1]
        sums = _to_numpy(posts.sum(-1))
        scores = [float(chart[start, end, k]) if k else np.nan for (start, end, _), k in zip(spans, labels)]
        return Look(
            prediction,
            tuple(spans),
            _to_numpy(output.attention[b, :, : n + 2]),
            sums[[end for _, end, _ in spans]] - sums[[start for start, _, _ in spans]],
            np.array(scores, dtype=np.float32),
            exact_effects(cast(SpanScorer, self.network.spans), posts, spans, labels),
        )

    def score(self, look: Look, span: Span) -> float:
        return look.scores[look.spans.index(span)]

    def reasons(self, look: Look, span: Span, norm: str, top: int, profile: dict | None) -> str:
        values = normalise(look.raw, look.exact, norm)[look.spans.index(span)]
        order = np.argsort(-values, kind="stable")[:top]
        heads = [f"label head {head} ({UNITS[norm].format(values[head])})" for head in order]
        first = int(order[0])
        focus = int(look.attention[first].argmax())
        word = ("the start", *(f"“{word}”" for word in look.sentence.words), "the end")[focus]
        text = f"most by {heads[0]}" + (f", then {', '.join(heads[1:])}" if heads[1:] else "")
        text += (
            f". Head {first} attends most to {word} ({look.attention[first, focus]:.0%}), for this span as for every "
        )
        same_norm = profile is not None and profile["norm"] == norm
        return text + "other of the sentence." + (_in_corpus(first, span[2], profile) if same_norm else "")

    def page_fields(self, norm: str, profile: dict | None) -> dict:
        return {"norm": norm, "norms": list(self.norms), "profile": profile}

    def page_sentence(self, look: Look) -> dict:
        return {"attention": look.attention.tolist()}

    def page_span(self, look: Look, span: Span) -> dict:
        place = look.spans.index(span)
        return {"values": {norm: normalise(look.raw, look.exact, norm)[place].tolist() for norm in self.norms}}

    def contributions_table(self, looks: Sequence[Look], norm: str) -> pd.DataFrame:
        return contributions(looks).table(norm).drop(columns=["id", "parsed", "gold"])

    def attention_table(self, looks: Sequence[Look], label: str | None = None) -> pd.DataFrame:
        parts = []
        for place, look in enumerate(looks):
            words = ["<START>", *look.sentence.words, "<STOP>"]
            spans = [(*span, span[0] + 1, span[1] + 1) for span in look.spans if span[2] == label]
            for start, end, name, first, last in spans if label else [(0, len(look.sentence), None, 0, len(words))]:
                part, heads = look.attention[:, first:last], len(look.attention)
                columns = {"sentence": place, "start": start, "end": end, "label": name}
                columns |= {"head": np.repeat(np.arange(heads), last - first)}
                columns |= {"position": np.tile(np.arange(first, last), heads), "word": words[first:last] * heads}
                parts.append(pd.DataFrame({**columns, "attention": part.ravel()}))
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["label"])

    def ranked(self, looks: Sequence[Look]) -> Contributions:
        return contributions(looks)

    @torch.no_grad()
    def view(self, sentences: Sentences, spans: Spans | None = None, examples: Sequence[int] = ()) -> AttentionView:
        """Return the view of a batch of sentences. A unit is a span.

        Returns: weights [B, H, 1, T], over T positions with START and STOP; values [B, H, T, d_kv], V_h x. If the heads are not
            mixed, there is `without_slices`, which sets a head's output to zero at every word.
        Raises: ModelError as `check_contexts` does; LalkitError without a sentence.
        """
        if not sentences:
            raise LalkitError("there is no sentence to look at", remedy="Give at least one.")
        self.check_contexts()
        network, layer = self.network.eval(), self.layer
        x, mask = layer_input(network, self.collator(sentences).to(next(network.parameters()).device))
        weights, values = layer.attend(x, mask)[:, :, None], layer.value(x).transpose(1, 2)
        decisions = self.span_decisions(self.parsed(sentences) if spans is None else spans)

        @torch.no_grad()
        def outcome(contexts: Tensor, without: Sequence[int] = ()) -> Outcome:
            y = layer.combine(x, contexts[:, :, 0].to(x.dtype), None)
            if len(without):
                y = y.clone()
                y[:, :, list(without)] = 0
            return decisions(y if network.feedforward is None else network.feedforward(y))

        def from_contexts(contexts: Tensor) -> Outcome:
            if contexts.dim() == 4:
                return outcome(contexts)
            several = [outcome(one) for one in contexts]
            probs, decision, score = (
                torch.stack([getattr(o, key) for o in several]) for key in ("probs", "decision", "score")
            )
            return Outcome(probs, several[0].unit_mask, decision, score)

        def without_slices(heads: Sequence[int]) -> Outcome:
            return outcome(torch.einsum("bhqt,bhtd->bhqd", weights, values), heads)

        return AttentionView(
            weights, values, mask, torch.ones_like(mask[:, :1]), [f"lal.{h:03d}" for h in range(weights.shape[1])],
            by_mixing(values, from_contexts), tuple(examples), from_contexts, None if self.mixed else without_slices,
        )  # fmt: skip

    def span_decisions(self, spans: Spans) -> Callable[[Tensor], Outcome]:
        """Return a function from y [B, T, H, d] to the labels of these spans."""
        most, scorer = max(1, *map(len, spans)), cast(SpanScorer, self.network.spans)
        places = torch.zeros(len(spans), most, 2, dtype=torch.long)
        label = torch.full((len(spans), most), -1)  # -1: padding
        for b, in_sentence in enumerate(spans):
            for u, (first, last, name) in enumerate(in_sentence):
                places[b, u] = torch.tensor([first, last])
                label[b, u] = self.collator.vocab.label_index.get(name, -2)  # -2: a label that is never right
        label = label.to(scorer.bias.device)
        start, end = places.to(label.device).unbind(-1)
        sentence = torch.arange(len(spans), device=label.device)[:, None]

        def decide(y: Tensor) -> Outcome:
            projected, _ = scorer.project(fenceposts(y, self.network.slice))
            hidden = torch.relu(scorer.norm(projected[sentence, end] - projected[sentence, start] + scorer.bias))
            scores = _with_empty(scorer.second(hidden))
            return judged(torch.softmax(scores.double(), -1), label != -1, label)

        return decide

    def measure(self, sentences: Sentences, mean: Tensor) -> SpanAttribution:
        """Measure exact contributions. The attention is that of the whole sentence, at the words of the span."""
        spans = gold_spans(sentences)
        looks = self.look(sentences, besides=spans)
        everything = contributions(looks, sentences)
        attention = [
            (b, span, look.attention[:, span[0] + 1 : span[1] + 1]) for b, look in enumerate(looks) for span in spans[b]
        ]
        known = np.isfinite(everything.exact).all(1)  # a label that the parser does not know has no effects
        return SpanAttribution(everything.where(everything.spans["gold"].to_numpy(bool) & known), attention)

    def head_of(self, label: str, attribution: SpanAttribution) -> int:
        top = attribution.contributions.top(self.top_norm)[attribution.contributions.labelled(label)]
        return int(np.bincount(top).argmax()) if len(top) else 0

    def mean(self, sentences: Sentences) -> Float[Tensor, "h d"]:
        """Return the mean of each head's context c_h over sentences."""
        self.check_contexts()
        total = torch.zeros(())

        def remember(contexts: Tensor) -> Tensor:
            nonlocal total
            total = total + contexts.double().sum(0)
            return contexts

        with self.layer.hooked(contexts=remember):
            for _ in predict_batches(self.network, self.collator, sentences):
                pass
        return (total / len(sentences)).to(next(self.layer.parameters()).dtype)

    def controls(self, mean: Tensor) -> dict[str, dict]:
        """The heads' outputs can be shuffled only if each head has its own slice of the output (combine=concat)."""
        self.check_contexts()
        order = self.order(mean)

        def uniform(attention: Tensor, mask: Tensor) -> Tensor:
            return (mask / mask.sum(-1, keepdim=True)).to(attention)[:, None].expand_as(attention)

        shuffled = {"contexts": unchanged, "output": lambda y, attention: (y[:, :, order], attention)}
        return {
            "uniform attention": {"attention": uniform},
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
        if self.layer is None or self.layer.config.combine == "project":
            self.check()
        this = self.chosen(heads)
        return {
            "head out": {"output": lambda y, attention: (y.masked_fill(this, 0), attention)},
            "head at its mean": {"contexts": lambda contexts: torch.where(this, mean.to(contexts), contexts)},
        }

    def of_sentence(self, sentence: Sentence) -> dict:
        return self.controls(self.mean([sentence]))["mean"]

    def chosen(self, heads: Heads) -> Bool[Tensor, "h 1"]:
        return super().chosen(heads)[:, None]


def unchanged(contexts: Tensor) -> Tensor:
    """Return the contexts as they are. With this hook the layer takes the same steps, and rounds the same, as under a control."""
    return contexts


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


@torch.inference_mode()
def exact_effects(
    scorer: SpanScorer, posts: Float[Tensor, "f h d"], spans: Sequence[Span], labels: Sequence[int]
) -> np.ndarray:
    """Return the score of each span's label, less its score without each head: [m, H].

    labels: the index of each span's label; 0 stands for an unknown label, whose effects are nan.
    """
    if not spans:
        return np.zeros((0, posts.shape[1]), dtype=np.float32)
    places = torch.tensor([(start, end) for start, end, _ in spans], device=posts.device)
    label = torch.tensor(labels, device=posts.device)[:, None]
    vectors = (posts[places[:, 1]] - posts[places[:, 0]]).flatten(1)
    scores = _with_empty(scorer.second(torch.relu(scorer.norm(scorer.first(vectors) + scorer.bias)))).gather(1, label)
    without = without_heads(scorer, posts, places)
    without = without.gather(2, label[:, None].expand(-1, without.shape[1], 1))[..., 0]
    return _to_numpy((scores - without).masked_fill(label == 0, torch.nan))


def layer_input(network: Network, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the inputs of the label attention: the vectors x and the mask."""
    inputs: list[tuple[Tensor, Tensor]] = []
    hook = network.label_attention.register_forward_pre_hook(lambda module, arguments: inputs.append(arguments[:2]))
    try:
        network(batch, chart_gradient=False)
    finally:
        hook.remove()
    return inputs[0]


def _with_empty(scores: Tensor) -> Tensor:
    """Put the score of the empty label, 0, before the scores of all other labels."""
    return torch.cat([torch.zeros_like(scores[..., :1]), scores], dim=-1)


def _in_corpus(head: int, label: str, profile: dict) -> str:
    """Say how often the head leads the label in a corpus."""
    if label not in profile["labels"]:
        return ""
    k, all_led = profile["labels"].index(label), sum(profile["led"][head])
    share, overall = profile["led"][head][k] / profile["all"][k], all_led / profile["spans"]
    lift = f", {share / overall:.1f} times its share of all spans ({overall:.0%})" if all_led else ""
    return f" In {profile['corpus']} it is on top of {share:.0%} of {label}{lift}."


def _to_numpy(x: Tensor) -> np.ndarray:
    """Copy a tensor to numpy. A view would keep the whole batch in memory."""
    return x.float().cpu().numpy().copy()
