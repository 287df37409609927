"""The score of a span, term by term, for parsers with label attention inside the span (`model.span_attention`).

    S(i, j, l) = sum_t a_t v_t + B(i, j, l)

Every word's part a_t v_t is its attention times its evidence, for this span and this label: exact, nothing is left over. B is one
number (`full`, `lean`), or (`glass`) a part of the first word, one of the last, and a constant.

Label attention inside the span as the shared probes see it: an example is a span, its keys are the words of the span.

A(i, j, l) = sum_t a_t v_t,l: weights are a, values the evidence v (of size 1), a context is A itself, and the scores of all
labels are contexts plus boundaries. So whatever a probe does to weights it does within the span, and nothing is computed anew
but the sum. Arcs see nothing of this attention.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import pandas as pd
import torch
from torch import Tensor

from lalkit.errors import ModelError
from lalkit.interpret.source import Span
from lalkit.network.batches import Collator
from lalkit.network.parser import Network
from lalkit.network.predict import Prediction, predict, predict_batches
from lalkit.network.span_attention import SpanLabelAttention
from lalkit.probes.view import AttentionView, Outcome
from lalkit.treebank.joint import GROUP
from lalkit.treebank.tree import Sentence

COLUMNS = (
    "start", "end", "label", "role", "term", "position", "word", "attention", "evidence", "value", "score", "then",
    "then_score",
)  # fmt: skip
ROLES = {"parse": "the parse's own label", "second": "the label that comes second there", "asked": "asked for besides"}


@dataclass(frozen=True)
class Terms:
    """A parsed sentence and the terms of its spans. table: `COLUMNS`, a row per term. role: of `ROLES`; term: word, first, last,
    constant or boundary; position: 1-based (missing for the last two); value: what it adds to the score, score: their sum.
    then, then_score: which label would come first over the span if the word had no evidence for any, and its score."""

    prediction: Prediction
    table: pd.DataFrame


def span_terms(
    network: Network,
    collator: Collator,
    sentences: Sequence[Sentence],
    *,
    besides: Sequence[Sequence[Span]] | None = None,
    lam: float = 0.5,
) -> list[Terms]:
    """Parse sentences, in order; the terms of the parse's constituents (not <H>), each for its own label and for the label that
    comes second there, then of the spans asked for besides.

    Raises ModelError for a parser without label attention inside the span, or for a label it does not know.
    """
    refuse_outside(network)
    names, index = collator.vocab.labels, collator.vocab.label_index
    found: list[Terms | None] = [None] * len(sentences)
    for group, predictions, output in predict_batches(network, collator, sentences, lam):
        for b, (place, prediction) in enumerate(zip(group, predictions)):
            asked: dict[Span, str] = {}
            for span in prediction.spans:
                if span.label != GROUP:
                    scores = output.label_scores[b, span.start, span.end].clone()
                    scores[index[span.label]] = scores[: index[GROUP] + 1] = -torch.inf
                    asked[span.start, span.end, span.label] = "parse"
                    if scores.max() > -torch.inf:
                        asked[span.start, span.end, names[int(scores.argmax())]] = "second"
            for start, end, label in besides[place] if besides else ():
                if label not in index:
                    raise ModelError(f"there is no label {label!r}", remedy=f"Labels: {', '.join(names[2:])}.")
                asked.setdefault((start, end, label), "asked")
            words, rows = prediction.sentence.words, []
            for (start, end), some in groupby(asked, key=lambda span: span[:2]):
                everything = _everything(network.spans, output.span_parts, b, start, end)
                for span in some:
                    for row in _rows(network.spans, output.span_parts, b, span, index[span[2]] - 1, words, everything):
                        rows.append({"role": asked[span], **row, "then": row.get("then") and names[row["then"]]})
            table = pd.DataFrame(rows, columns=list(COLUMNS)).astype({"position": "Int64"})
            found[place] = Terms(prediction, table)
    return found


def refuse_outside(network: Network) -> None:
    """Raises ModelError unless the label attention is inside the span."""
    if not isinstance(network.spans, SpanLabelAttention):
        raise ModelError(
            "its spans are not scored by words inside them",
            remedy="Use a parser trained with model.span_attention, such as --preset minilm-span.",
        )


@torch.inference_mode()
def _everything(scorer: SpanLabelAttention, parts: tuple, b: int, start: int, end: int) -> tuple[Tensor, ...]:
    """Of one span by all H heads, for its k words: (attention [H, k], evidence [H, k], scores [H])."""
    logits, evidence, *_ = parts
    head = torch.arange(evidence.shape[-1], device=evidence.device)
    at = [torch.full_like(head, value) for value in (b, start, end)]
    attention = scorer.attention(logits, *at, head)[:, start:end].double()
    scores = scorer.at(*parts, b=at[0], i=at[1], j=at[2], label=head + 1)
    return attention, evidence[b, start:end].T.double(), scores.double()


@torch.inference_mode()
def _rows(
    scorer: SpanLabelAttention, parts: tuple, b: int, span: Span, head: int, words: Sequence[str], everything: tuple
) -> list[dict]:
    (start, end, name), (attention, evidence, scores) = span, everything
    values = attention * evidence
    without = scores[:, None] - values
    without[0] = -torch.inf  # <H> is no constituent
    then_score, then = without.max(0)
    score = float(scores[head])
    rows = [
        {"term": "word", "position": start + k + 1, "word": words[start + k], "attention": float(attention[head, k]),
         "evidence": float(evidence[head, k]), "value": float(values[head, k]), "then": int(then[k]) + 1,
         "then_score": float(then_score[k])}
        for k in range(end - start)
    ]  # fmt: skip
    if scorer.config.boundary == "glass":
        _, _, first, last = parts
        constant = float(scorer.boundary.last.bias[head])
        edges = (
            ("first", start + 1, float(first[b, start, head])), ("last", end, float(last[b, end - 1, head]) - constant),
        )  # fmt: skip
        rows += [{"term": term, "position": at, "word": words[at - 1], "value": value} for term, at, value in edges]
        rows.append({"term": "constant", "value": constant})
    else:
        rows.append({"term": "boundary", "value": score - float(values[head].sum())})
    return [{"start": start, "end": end, "label": name, **row, "score": score} for row in rows]


def balance(found: Sequence[Terms]) -> pd.DataFrame:
    """What puts a constituent's label before the one that comes second: its words, or its edges? A row per label, the most
    frequent first: label, spans, lead (mean of the first score less the second), by_words and by_edges (which add up to it),
    words_alone and edges_alone (percent of spans whose own label would be ahead by these alone)."""
    leads = []
    for terms in found:
        table = terms.table[terms.table["role"] != "asked"]
        words = table["term"] == "word"
        parts = {"by_words": table["value"].where(words, 0.0), "by_edges": table["value"].where(~words, 0.0)}
        sums = table.assign(**parts).groupby(["start", "end", "role"])[list(parts)].sum().unstack("role").dropna()
        labels = table[table["role"] == "parse"].groupby(["start", "end"])["label"].first()
        if len(sums):
            differences = {name: sums[name]["parse"] - sums[name]["second"] for name in parts}
            leads.append(pd.DataFrame({"label": labels.reindex(sums.index), **differences}))
    if not leads:
        return pd.DataFrame(columns=["label", "spans", "lead", "by_words", "by_edges", "words_alone", "edges_alone"])
    every = pd.concat(leads, ignore_index=True)
    every["lead"] = every["by_words"] + every["by_edges"]
    groups = every.groupby("label")
    means = groups[["lead", "by_words", "by_edges"]].mean()
    alone = (every[["by_words", "by_edges"]] > 0).groupby(every["label"]).mean() * 100
    means[["words_alone", "edges_alone"]] = alone.to_numpy()
    means.insert(0, "spans", groups.size())
    return means.sort_values("spans", ascending=False, kind="stable").reset_index()


STRIDE = 1_000_000  # an example's number: its sentence's times this, and its place among the spans (start * 1000 + end)


@torch.no_grad()
def span_view(
    network: Network,
    collator: Collator,
    sentences: Sequence[Sentence],
    spans: Sequence[Sequence[Span]] | None = None,
    examples: Sequence[int] = (),
    lam: float = 0.5,
) -> AttentionView:
    """weights [B, H, 1, T], B spans of at most T words, sentence by sentence in the order given (by default those of the parse);
    H heads, one per label, <H> among them; values [B, H, T, 1].

    Its only unit is the label of the span, of all labels with the empty one; its score counts (label as given, 1). A head's slice
    is its sum: the boundaries of its label stay. examples: the sentences' numbers. Use some tens of sentences at a time.

    Raises ModelError for a parser without label attention inside the span.
    """
    refuse_outside(network)
    scorer, device = network.spans, next(network.parameters()).device
    network.eval()
    if spans is None:
        parsed = predict(network, collator, sentences, lam=lam)
        spans = [[(s.start, s.end, s.label) for s in p.spans] for p in parsed]
    places = [(b, *span) for b, some in enumerate(spans) for span in some]
    b, start, end = (torch.tensor([place[k] for place in places], device=device) for k in range(3))
    right = torch.tensor([collator.vocab.label_index.get(label, -2) for *_, label in places], device=device)
    parts = network(collator(sentences).to(device), chart_gradient=False).span_parts
    logits, evidence, *_ = parts
    heads = torch.arange(logits.shape[-1], device=device)

    def every(x: Tensor) -> Tensor:
        return x.repeat_interleave(len(heads))

    label = heads.repeat(len(b))
    most = int((end - start).max())
    words = start[:, None] + torch.arange(most, device=device)
    inside = words < end[:, None]
    words = words.clamp(max=logits.shape[1] - 1)
    weights = scorer.attention(logits, every(b), every(start), every(end), label).unflatten(0, (len(b), len(heads)))
    weights = weights.gather(2, words[:, None].expand(-1, len(heads), -1)) * inside[:, None]
    values = (evidence[b[:, None], words] * inside[..., None]).transpose(1, 2)[..., None].to(weights.dtype)
    scores = scorer.at(*parts, b=every(b), i=every(start), j=every(end), label=label + 1).unflatten(0, (len(b), -1))
    boundary = scores - (weights * values[..., 0]).sum(-1)

    def from_contexts(contexts: Tensor) -> Outcome:
        found = contexts[..., 0, 0] + boundary
        probs = torch.softmax(torch.cat([torch.zeros_like(found[..., :1]), found], dim=-1).double(), -1)[..., None, :]
        decision, ones = probs.argmax(-1), torch.ones_like(right)[:, None]
        count = (decision == right[:, None]).double().sum(-1)
        return Outcome(probs, ones.bool(), decision, torch.stack([count, torch.ones_like(count)], dim=-1))

    def from_weights(given: Tensor) -> Outcome:
        return from_contexts(torch.einsum("...bhqt,bhtd->...bhqd", given.to(values.dtype), values))

    def without_slices(out: Sequence[int]) -> Outcome:
        contexts = torch.einsum("bht,bhtd->bhd", weights, values)[:, :, None]
        contexts[:, list(out)] = 0
        return from_contexts(contexts)

    numbers = examples or range(len(sentences))
    return AttentionView(
        weights[:, :, None], values, inside, torch.ones_like(inside[:, :1]),
        [f"span.{name}" for name in collator.vocab.labels[1:]], from_weights,
        tuple(numbers[s] * STRIDE + i * 1000 + j for s, i, j, _ in places), from_contexts, without_slices,
    )  # fmt: skip


def of_spans(values: Sequence[Sequence[int]], spans: Sequence[Sequence[Span]]) -> Tensor:
    """[B, T], as the keys of a view of these spans: a number of every word (such as its tag), -1 on padding."""
    rows = [list(own[start:end]) for own, some in zip(values, spans, strict=True) for start, end, _ in some]
    most = max(map(len, rows))
    return torch.tensor([row + [-1] * (most - len(row)) for row in rows])
