"""Split the score of a span into terms, for parsers with label attention inside the span (`model.span_attention`).

    S(i, j, l) = sum_t a_t v_t + B(i, j, l)

The term a_t v_t of a word is its attention times its evidence, for this span and this label. The terms are exact: they add up to
the score. B is one number (boundary scorers `full` and `lean`), or (`glass`) a term of the first word, a term of the last word,
and a constant. So nothing here is estimated: without a word's evidence, the score is less by the word's term.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from lalkit.config import ModelConfig
from lalkit.errors import ModelError
from lalkit.interpret.attention_views import check_decision, view_of_span_layer
from lalkit.interpret.contributions import Contributions
from lalkit.interpret.source import (
    AttributionSource,
    Hooks,
    Span,
    SpanAttribution,
    derangement,
    gold_spans,
    head_of_span,
    opening,
    parsed_spans,
)
from lalkit.network.parser import ParserOutput
from lalkit.network.predict import Prediction, predict_batches
from lalkit.network.span_attention import SpanLabelAttention
from lalkit.probes.view import AttentionView
from lalkit.treebank.joint import GROUP

COLUMNS = (
    "start", "end", "label", "role", "term", "position", "word", "attention", "evidence", "value", "score", "then",
    "then_score",
)  # fmt: skip
ROLES = {"parse": "the parse's own label", "second": "the label that comes second there", "asked": "asked for besides"}
EDGES = {"first": "its first word", "last": "its last word", "constant": "a constant", "boundary": "its boundaries"}
VIEWED = 20  # sentences measured at a time


@dataclass(frozen=True)
class Terms:
    """Hold the terms of the scores of one parsed sentence.

    table has the `COLUMNS`, and a row for each term. role: see `ROLES`. term: word, first, last, constant or boundary. position:
    of the word, from 1 (missing for constant and boundary). value: what the term adds to the score. score: the sum of the values.
    then, then_score: the label that would come first over the span without any evidence of the word, and its score.
    """

    prediction: Prediction
    table: pd.DataFrame

    @property
    def spans(self) -> tuple[Span, ...]:
        """The constituents of the parse."""
        return tuple(parsed_spans(self.prediction))

    def of(self, span: Span, role: str = "parse") -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the rows of a span in one role, split into the terms of words and the other terms.

        For the role `second`, the span's label is not used: the rows have the label that comes second.
        """
        table = self.table[(self.table["start"] == span[0]) & (self.table["end"] == span[1])]
        table = table[table["role"] == role]
        words = table["term"] == "word"
        return table[words], table[~words]


class SpanLayer(AttributionSource):
    """Label attention inside the span: there is one head for each label, and it attends to the words of the span.

    What a head contributes to a span is its sum A above the mean of A, also for spans with another label. So a head that
    contributes where it should not is seen.
    """

    question = "Which words made this?"
    content = "terms of all constituents"
    top_norm = "raw"

    @staticmethod
    def system(config: ModelConfig) -> str:
        inside = config.span_attention
        attention = {"learned": "", "none": ", no attention"}.get(inside.attention, f", {inside.attention} attention")
        return f"span {inside.boundary}{attention}"

    @property
    def layer(self) -> SpanLabelAttention:
        """Raises ModelError for a parser without this layer."""
        if not isinstance(self.network.spans, SpanLabelAttention):
            raise ModelError(
                "its spans are not scored by words inside them",
                remedy="Use a parser trained with model.span_attention, such as --preset minilm-span.",
            )
        return self.network.spans

    @property
    def attends(self) -> bool:
        return self.layer.config.attention != "none"

    def weights(self) -> list[Tensor]:
        return [self.layer.key.weight, self.layer.query, self.layer.evidence.weight]

    def look(self, sentences: Sentences, besides: Spans | None = None) -> list[Terms]:
        """Parse sentences, in order, and keep the terms of scores.

        Each constituent has the terms of its own label and of the label that comes second there. besides: more spans of each
        sentence. Raises ModelError for a label that the parser does not know.
        """
        layer, vocab = self.layer, self.collator.vocab
        looks: list[Terms | None] = [None] * len(sentences)
        for group, predictions, output in predict_batches(self.network, self.collator, sentences, self.lam):
            for b, (place, prediction) in enumerate(zip(group, predictions)):
                roles = self._roles(prediction, output.label_scores[b], besides[place] if besides else ())
                rows = []
                for (start, end), spans in groupby(roles, key=lambda span: span[:2]):
                    all_heads = _all_heads(layer, output, b, start, end)
                    for span in spans:
                        head = vocab.label_index[span[2]] - 1
                        terms = _terms(layer, output, b, span, head, prediction.sentence.words, all_heads)
                        rows += [
                            {"role": roles[span], **row, "then": row.get("then") and vocab.labels[row["then"]]}
                            for row in terms
                        ]
                table = pd.DataFrame(rows, columns=list(COLUMNS)).astype({"position": "Int64"})
                looks[place] = Terms(prediction, table)
        return looks

    def _roles(self, prediction: Prediction, scores: Tensor, besides: Sequence[Span]) -> dict[Span, str]:
        """Return the spans to look at, each with its role."""
        names, index = self.collator.vocab.labels, self.collator.vocab.label_index
        roles: dict[Span, str] = {}
        for start, end, label in parsed_spans(prediction):
            others = scores[start, end].clone()
            others[index[label]] = others[: index[GROUP] + 1] = -torch.inf
            roles[start, end, label] = "parse"
            if others.max() > -torch.inf:
                roles[start, end, names[int(others.argmax())]] = "second"
        for start, end, label in besides:
            if label not in index:
                raise ModelError(f"there is no label {label!r}", remedy=f"Labels: {', '.join(names[2:])}.")
            roles.setdefault((start, end, label), "asked")
        return roles

    def paragraph(self, look: Terms, span: Span, norm: str, top: int, profile: dict | None) -> str:
        """Name the words with the largest terms, and compare with the label that comes second."""
        words, rest = look.of(span)
        label, score = span[2], words["score"].iloc[0]
        best = words.loc[words["value"].abs().sort_values(ascending=False, kind="stable").index[:top]]
        largest = [f"“{r.word}” {r.value:+.2f} ({r.attention:.0%} of the attention)" for r in best.itertuples()]
        edges = ", ".join(f"{EDGES[r.term]} {r.value:+.2f}" for r in rest.itertuples())
        text = opening(look.prediction, span, score)
        text += f"its words give {words['value'].sum():+.2f} ({', '.join(largest)}), {edges}."
        second, _ = look.of(span, "second")
        if not len(second):
            return text
        first, other = best.iloc[0], second["label"].iloc[0]
        there = second[second["position"] == first["position"]].iloc[0]
        return text + (
            f" {other} comes second with {there['score']:.2f}. Without the evidence of “{first['word']}” {label} would "
            f"score {score - first['value']:.2f} and {other} {there['score'] - there['value']:.2f}: {first['then']} would "
            + ("still " * (first["then"] == label))
            + ("come first." if first["then"] in (label, other) else f"come first with {first['then_score']:.2f}.")
        )

    def page_fields(self, looks: Sequence[Terms], norm: str, profile: dict | None) -> dict:
        return {"boundary": self.layer.config.boundary}

    def page_sentence(self, look: Terms) -> dict:
        """Return for each constituent its two readings: its own label, then the label that comes second."""
        spans = []
        for span in look.spans:
            (words, rest), second = look.of(span), look.of(span, "second")
            readings = [_reading(*terms) for terms in ((words, rest), second) if len(terms[0])]
            then = list(zip(words["then"], _rounded(words["then_score"])))
            head = head_of_span(look.prediction, span) or None
            place = {"start": span[0], "end": span[1], "label": span[2], "head": head}
            spans.append({**place, "readings": readings, "then": then})
        return {"spans": spans}

    def view(
        self, sentences: Sentences, decide: str = "spans", spans: Spans | None = None, examples: Sequence[int] = ()
    ) -> AttentionView:
        check_decision(decide)
        if decide == "arcs":
            raise ValueError("arcs see nothing of label attention inside the span: decide spans")
        return view_of_span_layer(self, sentences, spans, examples)

    def measure(self, sentences: Sentences, mean: Tensor) -> SpanAttribution:
        spans, rows, values, attention = gold_spans(sentences), [], [], []
        for first in range(0, len(sentences), VIEWED):
            part = slice(first, first + VIEWED)
            places = [(first + b, span) for b, in_sentence in enumerate(spans[part]) for span in in_sentence]
            if places:
                view = self.view(sentences[part], spans=spans[part])
                weights = view.weights[:, :, 0]
                values.append((weights * view.values[..., 0]).sum(-1).cpu().numpy())
                for (b, span), row in zip(places, weights.cpu().numpy(), strict=True):
                    rows.append((b, sentences[b].id, *span, True, True))
                    attention.append((b, span, row[:, : span[1] - span[0]]))
        table = pd.DataFrame(rows, columns=["sentence", "id", "start", "end", "label", "parsed", "gold"])
        return SpanAttribution(Contributions(table, np.concatenate(values) - mean.cpu().numpy(), None), attention)

    def head_of(self, label: str, attribution: SpanAttribution) -> int:
        return self.collator.vocab.label_index[label] - 1

    @torch.inference_mode()
    def mean(self, sentences: Sentences) -> Float[Tensor, "h"]:
        """Return the mean of A(i, j, l), over all spans of the sentences: the chart less the chart without evidence."""
        total, count = 0.0, 0
        for group, _, output in predict_batches(self.network, self.collator, sentences):
            logits, evidence, *edges = output.span_parts
            lengths = torch.tensor([len(sentences[i]) for i in group], device=logits.device)
            without = self.layer.chart(logits, torch.zeros_like(evidence), *edges, lengths=lengths)
            total = total + (output.label_scores - without)[..., 1:].double().sum((0, 1, 2))
            count += int((lengths * (lengths + 1) // 2).sum())
        return total / count

    def controls(self, mean: Tensor, seed: int = 0) -> dict[str, Hooks]:
        order = derangement(len(mean), seed).to(mean.device)

        def uniform(logits: Tensor, lengths: Tensor) -> Tensor:
            return torch.zeros_like(logits)

        def swapped(x: Tensor, lengths: Tensor) -> Tensor:
            return x[..., order]

        return {
            "uniform attention": {"logits": uniform},
            "swapped attention": {"logits": of_next},  # The evidence stays.
            "swapped sentences": {"logits": of_next, "evidence": of_next},
            "swapped heads": {"logits": swapped, "evidence": swapped},
            "mean": {"evidence": lambda evidence, lengths: mean.to(evidence).expand_as(evidence)},
            "zeroed": {"evidence": lambda evidence, lengths: torch.zeros_like(evidence)},
        }

    def without(self, head: int, mean: Tensor) -> dict[str, Hooks]:
        return {"head out": only(head), "head at its mean": only(head, mean[head])}


def only(head: int, value: float | Tensor = 0.0) -> Hooks:
    """Replace the evidence of one head. With 0 the head is out; with its mean it says the same of every span."""

    def change(evidence: Tensor, lengths: Tensor) -> Tensor:
        evidence = evidence.clone()
        evidence[..., head] = value
        return evidence

    return {"evidence": change}


def of_next(x: Float[Tensor, "b n h"], lengths: Tensor) -> Float[Tensor, "b n h"]:
    """Replace the value at word t by that of the next sentence in the batch.

    A shorter sentence is repeated: the value at word t is that at t modulo its length. A sentence alone in its batch is its own
    next sentence.
    """
    place = torch.arange(x.shape[1], device=x.device)[None] % lengths.roll(-1)[:, None]
    return x.roll(-1, 0).gather(1, place[..., None].expand_as(x))


def balance(looks: Sequence[Terms]) -> pd.DataFrame:
    """Compare what puts a constituent's label before the label that comes second: its words, or its edges.

    Returns: a row for each label, the most frequent first: label, spans, lead (the mean of the first score less the second),
        by_words and by_edges (they add up to lead), words_alone and edges_alone (percent of spans whose own label would be
        ahead by these alone).
    """
    columns, place = ["lead", "by_words", "by_edges"], ["sentence", "start", "end"]
    if not looks:
        return pd.DataFrame(columns=["label", "spans", *columns, "words_alone", "edges_alone"])
    table = pd.concat([look.table for look in looks], keys=range(len(looks)), names=["sentence"])
    table = table.assign(part=np.where(table["term"] == "word", "by_words", "by_edges"))[table["role"] != "asked"]
    sums = table.groupby([*place, "part", "role"])["value"].sum().unstack("role").dropna()
    leads = (sums["parse"] - sums["second"]).unstack("part")
    leads["lead"] = leads["by_words"] + leads["by_edges"]
    leads["label"] = table[table["role"] == "parse"].groupby(place)["label"].first()
    leads["words_alone"], leads["edges_alone"] = leads["by_words"] > 0, leads["by_edges"] > 0
    groups = leads.groupby("label")
    means = groups[[*columns, "words_alone", "edges_alone"]].mean()
    means[["words_alone", "edges_alone"]] *= 100
    means.insert(0, "spans", groups.size())
    return means.sort_values("spans", ascending=False, kind="stable").reset_index()


@torch.inference_mode()
def _all_heads(scorer: SpanLabelAttention, output: ParserOutput, b: int, start: int, end: int) -> tuple[Tensor, ...]:
    """Return for one span of k words and all H heads: (attention [H, k], evidence [H, k], scores [H])."""
    logits, evidence, *_ = output.span_parts
    head = torch.arange(evidence.shape[-1], device=evidence.device)
    sentence, starts, ends = (torch.full_like(head, value) for value in (b, start, end))
    attention = scorer.attention(logits, sentence, starts, ends, head)[:, start:end].double()
    scores = scorer.at(*output.span_parts, b=sentence, i=starts, j=ends, label=head + 1)
    return attention, evidence[b, start:end].T.double(), scores.double()


@torch.inference_mode()
def _terms(
    scorer: SpanLabelAttention, output: ParserOutput, b: int, span: Span, head: int, words: Sequence[str],
    all_heads: tuple[Tensor, ...],
) -> list[dict]:  # fmt: skip
    """Return the rows of one span and one head. all_heads: what `_all_heads` returns for the span."""
    (start, end, name), (attention, evidence, scores) = span, all_heads
    values = attention * evidence
    without = scores[:, None] - values
    without[0] = -torch.inf  # <H> is not a constituent.
    then_score, then = without.max(0)
    score = float(scores[head])
    rows = [
        {"term": "word", "position": start + k + 1, "word": words[start + k], "attention": float(attention[head, k]),
         "evidence": float(evidence[head, k]), "value": float(values[head, k]), "then": int(then[k]) + 1,
         "then_score": float(then_score[k])}
        for k in range(end - start)
    ]  # fmt: skip
    if scorer.config.boundary == "glass":
        _, _, first, last = output.span_parts
        constant = float(scorer.boundary.last.bias[head])
        edges = {"first": (start + 1, float(first[b, start, head]))}
        edges["last"] = end, float(last[b, end - 1, head]) - constant
        rows += [
            {"term": term, "position": at, "word": words[at - 1], "value": value} for term, (at, value) in edges.items()
        ]
        rows.append({"term": "constant", "value": constant})
    else:
        rows.append({"term": "boundary", "value": score - float(values[head].sum())})
    return [{"start": start, "end": end, "label": name, **row, "score": score} for row in rows]


def _reading(words: pd.DataFrame, rest: pd.DataFrame) -> dict:
    """Return one label of a span as the page shows it."""
    return {
        "label": words["label"].iloc[0], "score": round(float(words["score"].iloc[0]), 6),
        **{key: _rounded(words[key]) for key in ("attention", "evidence", "value")},
        "rest": dict(zip(rest["term"], _rounded(rest["value"]))),
    }  # fmt: skip


def _rounded(values: pd.Series) -> list[float]:
    """Round to six digits after the point, so that the terms still add up."""
    return [round(float(value), 6) for value in values]
