"""The score of a span, term by term, for parsers with label attention inside the span (`model.span_attention`).

    S(i, j, l) = sum_t a_t v_t + B(i, j, l)

Every word's part a_t v_t is its attention times its evidence, for this span and this label: exact, nothing is left over. B is one
number (`full`, `lean`), or (`glass`) a part of the first word, one of the last, and a constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import torch

from lalkit.batch.collate import Collator
from lalkit.errors import ModelError
from lalkit.interpret.look import Span
from lalkit.model.parser import Network
from lalkit.model.span_attention import SpanLabelAttention
from lalkit.predict import Prediction, predict_batches
from lalkit.treebank.joint import GROUP
from lalkit.treebank.tree import Sentence

COLUMNS = ("start", "end", "label", "term", "position", "word", "attention", "evidence", "value", "score")


@dataclass(frozen=True)
class Terms:
    """A parsed sentence and the terms of its spans. table: `COLUMNS`, a row per term: term is word, first, last, constant or
    boundary; position 1-based (missing for the last two); value: what it adds to the score; score: their sum."""

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
    if not isinstance(network.spans, SpanLabelAttention):
        raise ModelError(
            "its spans are not scored by words inside them",
            remedy="Use a parser trained with model.span_attention, such as --preset minilm-span.",
        )
    names, index = collator.vocab.labels, collator.vocab.label_index
    found: list[Terms | None] = [None] * len(sentences)
    for group, predictions, output in predict_batches(network, collator, sentences, lam):
        for b, (place, prediction) in enumerate(zip(group, predictions)):
            asked: list[Span] = []
            for span in prediction.spans:
                if span.label != GROUP:
                    scores = output.label_scores[b, span.start, span.end].clone()
                    scores[index[span.label]] = scores[: index[GROUP] + 1] = -torch.inf
                    asked += [(span.start, span.end, label) for label in (span.label, names[int(scores.argmax())])]
            for start, end, label in besides[place] if besides else ():
                if label not in index:
                    raise ModelError(f"there is no label {label!r}", remedy=f"Labels: {', '.join(names[2:])}.")
                asked.append((start, end, label))
            rows = [
                row
                for span in dict.fromkeys(asked)
                for row in _rows(network.spans, output.span_parts, b, span, index[span[2]], prediction.sentence.words)
            ]
            found[place] = Terms(prediction, pd.DataFrame(rows, columns=list(COLUMNS)).astype({"position": "Int64"}))
    return found


@torch.inference_mode()
def _rows(scorer: SpanLabelAttention, parts: tuple, b: int, span: Span, label: int, words: Sequence[str]) -> list[dict]:
    (start, end, name), head = span, label - 1
    logits, evidence, *edges = parts
    at = [torch.tensor([value], device=logits.device) for value in (b, start, end, head)]
    attention = scorer.attention(logits, *at)[0, start:end].double()
    own = evidence[b, start:end, head].double()
    score = float(scorer.at(*parts, b=at[0], i=at[1], j=at[2], label=at[3] + 1))
    inside = attention * own
    rows = [
        {"term": "word", "position": start + k + 1, "word": words[start + k], "attention": float(attention[k]),
         "evidence": float(own[k]), "value": float(inside[k])}
        for k in range(end - start)
    ]  # fmt: skip
    if scorer.config.boundary == "glass":
        constant = float(scorer.boundary.last.bias[head])
        rows.append(
            {"term": "first", "position": start + 1, "word": words[start], "value": float(edges[0][b, start, head])}
        )
        last = float(edges[1][b, end - 1, head]) - constant
        rows.append({"term": "last", "position": end, "word": words[end - 1], "value": last})
        rows.append({"term": "constant", "value": constant})
    else:
        rows.append({"term": "boundary", "value": score - float(inside.sum())})
    return [{"start": start, "end": end, "label": name, **row, "score": score} for row in rows]
