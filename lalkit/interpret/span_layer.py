"""Split the score of a span into terms, for parsers with label attention inside the span (`model.span_attention`).

    S(i, j, l) = sum_t a_t v_t + B(i, j, l)

The term a_t v_t of a word is its attention times its evidence, for this span and this label. The terms are exact: they add up to
the score. B is one number (boundary scorers `full` and `lean`), or (`glass`) a term of the first word, a term of the last word,
and a constant. So nothing here is estimated: without a word's evidence, the score is less by the word's term.

The probes see the layer as an `AttentionView`: an example is a span, and its keys are the words of the span. A(i, j, l) = sum_t
a_t v_t: the weights are a, the values are the evidence v (of size 1), and a context is A itself. The scores of all labels are
contexts plus boundaries. So a probe changes weights within the span, and only the sum is computed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from lalkit.config import ModelConfig
from lalkit.errors import LalkitError, ModelError, checked
from lalkit.interpret.contributions import Contributions, Span
from lalkit.interpret.source import AttributionSource, Sentences, SpanAttribution, Spans, gold_spans, parsed_spans
from lalkit.network.model import Prediction
from lalkit.network.parser import ParserOutput
from lalkit.network.span_attention import EdgeScorer, SpanLabelAttention
from lalkit.probes.view import AttentionView, Outcome, by_mixing, judged
from lalkit.treebank.joint import GROUP

COLUMNS = "start end label role term position word attention evidence value score then then_score".split()
EDGES = {"first": "its first word", "last": "its last word", "constant": "a constant", "boundary": "its boundaries"}
VIEWED = 20  # sentences measured at a time
STRIDE = 1_000_000  # The number of a span is the number of its sentence * STRIDE + start * 1000 + end.


@dataclass(frozen=True)
class Terms:
    """Hold the terms of the scores of one parsed sentence.

    table has the `COLUMNS`, and a row for each term. role: "parse" for the parse's own label, "second" for the label that comes
    second there, "asked" for a span asked for besides. term: word, first, last, constant or boundary. position: of the word, from
    1 (missing for constant and boundary). value: what the term adds to the score. score: the sum of the values.
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
        place, nothing = (*span[:2], role), self.table.iloc[:0]
        return self._parts.get((*place, True), nothing), self._parts.get((*place, False), nothing)

    @cached_property
    def _parts(self) -> dict[tuple[int, int, str, bool], pd.DataFrame]:
        """The rows of each span in each role, split into words and other terms."""
        return dict(iter(self.table.groupby(["start", "end", "role", self.table["term"] == "word"])))


class SpanLayer(AttributionSource):
    """Label attention inside the span: there is one head for each label, and it attends to the words of the span.

    The contribution of a head to a span is its sum A above the mean of A, also for spans with another label. So a head that
    contributes where it should not is seen.
    """

    question = "Which words made this?"
    content = "terms of all constituents"
    removed = passed = "evidence"
    top_norm = "raw"

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

    def look_at(self, prediction: Prediction, output: ParserOutput, b: int, besides: Sequence[Span]) -> Terms:
        """Keep the terms of the scores of one sentence.

        Each constituent has the terms of its own label and of the label that comes second there. Raises
        ParameterError for a label that the parser does not know.
        """
        roles = self._roles(prediction, output.label_scores[b], besides)
        rows = self._rows(output, b, prediction.sentence.words, roles) if roles else ()
        return Terms(prediction, pd.DataFrame(rows, columns=COLUMNS).astype({"position": "Int64"}))

    def _roles(self, prediction: Prediction, scores: Tensor, besides: Sequence[Span]) -> dict[Span, str]:
        """Return the spans to look at, each with its role."""
        names, index = self.model.vocab.labels, self.model.vocab.label_index
        roles: dict[Span, str] = {}
        for start, end, label in parsed_spans(prediction):
            others = scores[start, end].clone()
            others[index[label]] = others[: index[GROUP] + 1] = -torch.inf
            roles[start, end, label] = "parse"
            if others.max() > -torch.inf:
                roles[start, end, names[int(others.argmax())]] = "second"
        for start, end, label in besides:
            self.check_label(label)
            roles.setdefault((start, end, label), "asked")
        return roles

    @torch.inference_mode()
    def _rows(self, output: ParserOutput, b: int, words: Sequence[str], roles: dict[Span, str]) -> Iterator[dict]:
        """Yield the rows of the table. b: the place of the sentence in the batch."""
        labels, (_, _, *edges) = self.model.vocab.labels, output.span_parts
        places = {place: k for k, place in enumerate(dict.fromkeys(span[:2] for span in roles))}
        start, end = torch.tensor(list(places), device=output.label_scores.device).T
        attention, evidence, boundary, _ = self._inside(output.span_parts, torch.full_like(start, b), start, end)
        values = attention.double() * evidence.double()
        scores = values.sum(-1) + boundary.double()
        without = scores[..., None] - values
        without[:, 0] = -torch.inf  # <H> is not a constituent.
        then_score, then = without.max(1)
        for (first, last, label), role in roles.items():
            k, head = places[first, last], self.model.vocab.label_index[label] - 1
            span = {"start": first, "end": last, "label": label, "role": role, "score": float(scores[k, head])}
            numbers = (attention[k, head], evidence[k, head], values[k, head], then_score[k])
            columns = zip(words[first:last], *(x.tolist() for x in (*numbers, then[k])))
            for position, (word, a, v, value, other_score, other) in enumerate(columns, first + 1):
                yield {
                    **span, "term": "word", "position": position, "word": word, "attention": a, "evidence": v, "value": value,
                    "then": labels[other + 1], "then_score": other_score,
                }  # fmt: skip
            if self.layer.config.boundary != "glass":
                yield {**span, "term": "boundary", "value": float(boundary[k, head])}
                continue
            constant = float(cast(EdgeScorer, self.layer.boundary).last.bias[head])
            of_first, of_last = float(edges[0][b, first, head]), float(edges[1][b, last - 1, head]) - constant
            yield {**span, "term": "first", "position": first + 1, "word": words[first], "value": of_first}
            yield {**span, "term": "last", "position": last, "word": words[last - 1], "value": of_last}
            yield {**span, "term": "constant", "value": constant}

    def _inside(self, parts: Sequence[Tensor], b: Tensor, start: Tensor, end: Tensor) -> tuple[Tensor, ...]:
        """Look into S spans (sentence b, start, end) of at most T words, for H heads.

        Returns: attention and evidence of the words [S, H, T], 0 beyond the span; the scores of boundaries [S, H]; which places
            are words of the span [S, T].
        """
        logits, evidence, *edges = parts
        head = torch.arange(logits.shape[-1], device=logits.device).repeat(len(b))
        spans = [x.repeat_interleave(logits.shape[-1]) for x in (b, start, end)]  # each for every head
        words = start[:, None] + torch.arange(int((end - start).max()), device=logits.device)
        inside = words < end[:, None]
        words = words.clamp(max=logits.shape[1] - 1)
        attention = self.layer.attention(logits, *spans, head).unflatten(0, (len(b), -1))
        attention = attention.gather(2, words[:, None].expand(-1, attention.shape[1], -1)) * inside[:, None]
        values = (evidence[b[:, None], words] * inside[..., None]).transpose(1, 2).to(attention.dtype)
        boundary = self.layer.boundary.at(tuple(edges), *spans, head + 1).unflatten(0, (len(b), -1))
        return attention, values, boundary, inside

    def parts(self, look: Terms, span: Span) -> pd.DataFrame:
        table = look.table[(look.table[["start", "end", "label"]] == list(span)).all(axis=1)]
        names = [EDGES.get(row.term) or f"“{row.word}”" for row in table.itertuples()]
        return table[["term", "position", "word", "value"]].assign(part=names).reset_index(drop=True)

    def score(self, look: Terms, span: Span) -> float:
        return look.of(span)[0]["score"].iloc[0]

    def reasons(self, look: Terms, span: Span, norm: str, top: int, profile: dict | None) -> str:
        """Name the words with the largest terms, and compare with the label that comes second."""
        words, rest = look.of(span)
        label, score = span[2], self.score(look, span)
        best = words.loc[words["value"].abs().sort_values(ascending=False, kind="stable").index[:top]]
        largest = [f"“{r.word}” {r.value:+.2f} ({r.attention:.0%} of the attention)" for r in best.itertuples()]
        edges = ", ".join(f"{EDGES[r.term]} {r.value:+.2f}" for r in rest.itertuples())
        text = f"its words give {words['value'].sum():+.2f} ({', '.join(largest)}), {edges}."
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

    def page_fields(self, norm: str, profile: dict | None) -> dict:
        return {"boundary": self.layer.config.boundary}

    def page_span(self, look: Terms, span: Span) -> dict:
        """Return two readings of the span: its own label, and one that was asked besides, or comes second."""
        readings = []
        for words, rest in (look.of(span), look.of(span, "asked"), look.of(span, "second")):
            if len(words):
                reading = {"label": words["label"].iloc[0], "score": _rounded(words["score"])[0]}
                reading |= {key: _rounded(words[key]) for key in ("attention", "evidence", "value")}
                readings.append({**reading, "rest": dict(zip(rest["term"], _rounded(rest["value"])))})
        words, _ = look.of(span)
        return {"readings": readings[:2], "then": list(zip(words["then"], _rounded(words["then_score"])))}

    def contributions_table(self, looks: Sequence[Terms], norm: str) -> pd.DataFrame:
        """Return the terms of each score: also term, position, word, attention and evidence. They are exact: no other norms."""
        if norm != "exact":
            raise LalkitError(f"there is no norm {norm!r} for terms of words: they are exact", remedy="Leave norm out.")
        tables = {place: look.table[look.table["role"] == "parse"] for place, look in enumerate(looks)}
        table = pd.concat(tables, names=["sentence"]).reset_index("sentence").reset_index(drop=True)
        table["head"], table["norm"] = table["label"].map(list(self.head_labels).index), norm
        return table[[*"sentence start end label head norm value term position word attention evidence".split()]]

    def attention_table(self, looks: Sequence[Terms], label: str | None = None) -> pd.DataFrame:
        table = self.contributions_table(looks, "exact")
        table = table[(table["term"] == "word") & (table["label"] == label if label else True)]
        return table[[*"sentence start end label head position word attention".split()]].reset_index(drop=True)

    def ranked(self, looks: Sequence[Terms]) -> Contributions:
        """Measure, for every head, its sum A above its mean over all spans of these sentences."""
        parses = [look.prediction.sentence for look in looks]
        return self.measure(parses, self.mean(parses)).contributions

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
        places = [(b, *span) for b, in_sentence in enumerate(spans) for span in in_sentence]
        if not places:
            raise LalkitError("there is no span to look at", remedy="Give at least one sentence with constituents.")
        device = next(network.parameters()).device
        b, start, end, right = torch.tensor(
            [(*place[:3], index.get(place[3], -2)) for place in places], device=device
        ).T
        parts = network(self.model.collator(sentences).to(device), chart_gradient=False).span_parts
        weights, values, boundary, inside = self._inside(parts, b, start, end)
        units, values = torch.ones_like(right, dtype=torch.bool)[:, None], values[..., None]

        def from_contexts(contexts: Tensor) -> Outcome:
            scores = contexts[..., 0, 0] + boundary
            probs = torch.softmax(torch.cat([torch.zeros_like(scores[..., :1]), scores], dim=-1).double(), -1)
            return judged(probs[..., None, :], units, right[:, None])

        numbers, heads = examples or range(len(sentences)), [f"span.{name}" for name in self.head_labels]
        of_spans = tuple(numbers[s] * STRIDE + i * 1000 + j for s, i, j, _ in places)
        queries, predict = torch.ones_like(inside[:, :1]), by_mixing(values, from_contexts)
        return AttentionView(weights[:, :, None], values, inside, queries, heads, predict, of_spans, from_contexts)

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
        return self.model.vocab.label_index[label] - 1

    @torch.inference_mode()
    def mean(self, sentences: Sentences) -> Float[Tensor, "h"]:
        """Return the mean of A(i, j, l), over all spans of the sentences: the chart less the chart without evidence."""
        total, count = torch.zeros(()), 0
        for _, group, output in self.model.scores(sentences):
            logits, evidence, *edges = output.span_parts
            lengths = torch.tensor([len(sentence) for sentence in group], device=logits.device)
            without = self.layer.chart((logits, torch.zeros_like(evidence), *edges), lengths)
            total = total + (output.label_scores - without)[..., 1:].double().sum((0, 1, 2))
            count += int((lengths * (lengths + 1) // 2).sum())
        return total / count

    def controls(self, mean: Tensor) -> dict[str, dict]:
        order = self.order(mean)

        def swapped(x: Tensor, lengths: Tensor) -> Tensor:
            return x[..., order]

        return {
            "uniform attention": {"logits": lambda logits, lengths: torch.zeros_like(logits)},
            "swapped attention": {"logits": of_next},  # The evidence stays.
            "swapped sentences": {"logits": of_next, "evidence": of_next},
            "swapped heads": {"logits": swapped, "evidence": swapped},
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


def _rounded(values: pd.Series) -> list[float]:
    """Round to six digits after the point, so that the terms still add up."""
    return [round(float(value), 6) for value in values]
