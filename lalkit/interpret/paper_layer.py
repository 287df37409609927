"""Measure what the heads of the paper's layer contribute to the scores of spans.

A span vector is a difference of fenceposts, and each label head has its own slice of it. What a head contributes to a span (Mrini
et al. 2020, section 4.5) is the sum over its slice,

    raw[h] = sum_d s_ij[h, d]        s_ij = f_j - f_i

A difference of sums is a sum of differences, so one number for each fencepost and head is enough for all spans.

`exact` is what the score of the span's label loses if the head's slice is set to zero. One forward pass gives it for all heads.
The span scorer is Linear, LN, ReLU, Linear (eq. 6), and its first step adds up the heads:

    W1 s_ij + b1 = b1 + sum_h W1[:, h] s_ij[h]        s_ij[h] = f_j[h] - f_i[h]

So taking out head h is one subtraction after that step. Each head makes its own slice only; a head has no influence on the
slices of other heads. (A feed-forward layer after the label attention would mix them.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lalkit.config import ModelConfig
from lalkit.errors import LalkitError, ModelError
from lalkit.interpret.attention_views import view_of_paper_layer
from lalkit.interpret.contributions import NORMS, UNITS, Contributions, Heads, Look, Span, contributions, normalise
from lalkit.interpret.source import AttributionSource, Sentences, SpanAttribution, gold_spans, parsed_spans
from lalkit.network.label_attention import LabelAttention
from lalkit.network.parser import ParserOutput
from lalkit.network.predict import Prediction, predict_batches
from lalkit.network.scores import SpanScorer
from lalkit.treebank.joint import GROUP
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
    view = view_of_paper_layer

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
        config = self.network.config
        lal = config.label_attention
        reasons = {
            "it gives dependencies alone": config.task == "dependencies",
            "its label attention is inside the span": config.span_attention,
            "it has no label attention": lal is None,
            "a feed-forward after the label attention mixes its heads": lal is not None and config.feedforward > 0,
            "its heads are projected together": lal and lal.combine == "project",
        }
        return next((reason for reason, holds in reasons.items() if holds), None)

    def check(self) -> None:
        """Raise ModelError for a parser whose heads are mixed, so that the part of one head cannot be separated."""
        if self.mixed:
            raise ModelError(
                f"contributions of label heads are not defined for this parser: {self.mixed}",
                remedy="Its scores are sums of words' terms: ask for these (`Parser.terms`, `lalkit explain`)."
                if self.network.config.span_attention
                else "Use a parser whose heads stay apart: en-news-x, en-craft-x, or one trained with "
                "model.feedforward=0 and model.label_attention.combine=concat.",
            )

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
        text = (
            f"most by {heads[0]}"
            + (f", then {', '.join(heads[1:])}" if heads[1:] else "")
            + f". Head {first} attends most to {word} ({look.attention[first, focus]:.0%}), for this span as for every other "
            "of the sentence."
        )
        same_norm = profile is not None and profile["norm"] == norm
        return text + (_in_corpus(first, span[2], profile) if same_norm else "")

    def page_fields(self, norm: str, profile: dict | None) -> dict:
        return {"norm": norm, "norms": list(self.norms), "profile": profile}

    def page_sentence(self, look: Look) -> dict:
        return {"attention": look.attention.tolist()}

    def page_span(self, look: Look, span: Span) -> dict:
        place = look.spans.index(span)
        return {"values": {norm: normalise(look.raw, look.exact, norm)[place].tolist() for norm in self.norms}}

    def contributions_table(self, looks: Sequence[Look], norm: str) -> pd.DataFrame:
        return contributions(looks).table([norm]).drop(columns=["id", "parsed", "gold"])

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

    def refuse_many_contexts(self) -> None:
        """Raise ModelError or LalkitError for a parser whose heads have not each one context for a whole sentence."""
        self.check()
        if self.layer.config.query != "vector":
            raise LalkitError("a query matrix gives every word contexts of its own", remedy="Use query=vector.")

    def mean(self, sentences: Sentences) -> Float[Tensor, "h d"]:
        """Return the mean of each head's context c_h over sentences."""
        self.refuse_many_contexts()
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
        self.refuse_many_contexts()
        order = self.order(mean)

        def uniform(attention: Tensor, mask: Tensor) -> Tensor:
            return (mask / mask.sum(-1, keepdim=True)).to(attention)[:, None].expand_as(attention)

        return {
            "uniform attention": {"attention": uniform},
            "zeroed": {"contexts": torch.zeros_like},
            "mean": {"contexts": lambda contexts: mean.to(contexts).expand_as(contexts)},
            "swapped sentences": {"contexts": lambda contexts: contexts.roll(1, 0)},
            "swapped heads": {"contexts": lambda contexts: contexts[:, order]},
            "shuffled heads": {"contexts": unchanged, "output": lambda y, attention: (y[:, :, order], attention)},
        }

    def without(self, heads: Heads, mean: Tensor) -> dict[str, dict]:
        """`head out` sets the head's slice to zero. This also removes its constant part, which `head at its mean` leaves."""
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


def notes(look: Look, norm: str = "share") -> dict[tuple[int, int], str]:
    """Return (start, end) -> the top label head of each span and its contribution, as a short text for `draw_tree`."""
    unit = "{:.0%}" if norm == "share" else UNITS[norm]
    return {
        (start, end): f"head {row.argmax()} {unit.format(row.max())}"
        for (start, end, label), row in zip(look.spans, normalise(look.raw, look.exact, norm))
        if label != GROUP
    }


@torch.no_grad()
def without_heads(
    scorer: SpanScorer, posts: Float[Tensor, "f h d"], spans: Int[Tensor, "m 2"]
) -> Float[Tensor, "m h l"]:
    """Return the label scores of each span (start, end) with each head's slice of its vector at zero.

    posts: the fenceposts of one sentence, f = n + 1. The empty label scores 0. This takes m * h * hidden floats of memory.
    """
    weight = scorer.first.weight.unflatten(1, posts.shape[1:]).permute(1, 2, 0)  # [H, d, hidden]
    start, end = spans.unbind(1)
    if len(spans) < len(posts):  # Project whatever is fewer: span vectors or fenceposts.
        each = (posts[end] - posts[start]).transpose(0, 1) @ weight  # W1[:, h] s_ij[h]: [H, m, hidden]
    else:
        projected = posts.transpose(0, 1) @ weight
        each = projected[:, end] - projected[:, start]
    before = (each.sum(0) + scorer.bias) - each
    scores = scorer.second(torch.relu_(scorer.norm(before))).transpose(0, 1)
    return torch.cat([torch.zeros_like(scores[..., :1]), scores], dim=-1)


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
    label = torch.tensor(labels, device=posts.device)
    vectors = (posts[places[:, 1]] - posts[places[:, 0]]).flatten(1)
    whole = scorer.second(torch.relu(scorer.norm(scorer.first(vectors) + scorer.bias)))
    whole = torch.cat([torch.zeros_like(whole[:, :1]), whole], dim=-1).gather(1, label[:, None])
    without = without_heads(scorer, posts, places)
    without = without.gather(2, label[:, None, None].expand(-1, without.shape[1], 1))[..., 0]
    return _to_numpy((whole - without).masked_fill((label == 0)[:, None], torch.nan))


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
