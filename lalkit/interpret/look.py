"""Sentences parsed with what the label attention did kept: attention, and each label head's part in every span's score.

What a head contributes to a span (Mrini et al. 2020, section 4.5) is the sum over its slice of the span vector,

    raw[h] = sum_d s_ij[h, d]        s_ij = f_j - f_i

and since a difference of sums is a sum of differences, one number a fencepost and head is enough for all spans. `exact` is
what the score of the span's label loses when the head's slice is taken out (`effects`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lalkit.batch.collate import Collator
from lalkit.errors import ModelError
from lalkit.interpret.effects import without_heads
from lalkit.model.parser import Network
from lalkit.model.scores import SpanScorer
from lalkit.predict import Prediction, predict_batches
from lalkit.treebank.joint import GROUP
from lalkit.treebank.tree import Sentence

Span = tuple[int, int, str]  # start, end, label


@dataclass(frozen=True)
class Look:
    """A parsed sentence from within. H label heads, n words, m spans; m_f = n + 1 fenceposts.

    spans: the parse's constituents (not <H>), then those asked for besides. attention [H, n + 2]: START, words, STOP.
    sums [n + 1, H]: of each head's slice of each fencepost. scores [m], exact [m, H]: of spans' own labels, nan for a label
    the parser does not know; exact is None if not asked for.
    """

    prediction: Prediction
    spans: tuple[Span, ...]
    attention: np.ndarray = field(repr=False)
    sums: np.ndarray = field(repr=False)
    scores: np.ndarray = field(repr=False)
    exact: np.ndarray | None = field(repr=False)

    @property
    def sentence(self) -> Sentence:
        return self.prediction.sentence

    @property
    def raw(self) -> np.ndarray:
        """[m, H]."""
        starts, ends = [s for s, _, _ in self.spans], [e for _, e, _ in self.spans]
        return self.sums[ends] - self.sums[starts]


def look(
    network: Network,
    collator: Collator,
    sentences: Sequence[Sentence],
    *,
    besides: Sequence[Sequence[Span]] | None = None,
    exact: bool = True,
    lam: float = 0.5,
    budget: int | None = None,
    threads: int | None = None,
    tick: Callable[[int], None] = lambda done: None,
) -> list[Look]:
    """Parse sentences, in order, and look into the parser as it does; the same alone and in any batch.

    besides: for each sentence, spans to look at beside those of the parse. Raises ModelError for a parser in which a label
    head's part cannot be told from the others'.
    """
    refuse_mixed(network)
    found: list[Look | None] = [None] * len(sentences)
    asked = {"attention": True, "posts": True}
    for group, predictions, output in predict_batches(network, collator, sentences, lam, budget, threads, **asked):
        sums = output.posts.sum(-1)
        for b, (index, prediction) in enumerate(zip(group, predictions)):
            n = len(prediction.sentence)
            spans = [(s.start, s.end, s.label) for s in prediction.spans if s.label != GROUP]
            spans += [span for span in (besides[index] if besides else ()) if span not in spans]
            posts = output.posts[b, : n + 1]
            known = [collator.vocab.label_index.get(label, 0) for _, _, label in spans]
            found[index] = Look(
                prediction,
                tuple(spans),
                _numbers(output.attention[b, :, : n + 2]),
                _numbers(sums[b, : n + 1]),
                own_scores(output.label_scores[b], spans, known),
                exact_effects(network.spans, posts, spans, known) if exact else None,
            )
        tick(len(group))
    return found


def own_scores(chart: Float[Tensor, "f f l"], spans: Sequence[Span], known: Sequence[int]) -> np.ndarray:
    """[m]: the score of each span's label, by its index; nan where that is 0."""
    found = [float(chart[start, end, k]) if k else np.nan for (start, end, _), k in zip(spans, known)]
    return np.array(found, dtype=np.float32)


@torch.inference_mode()
def exact_effects(
    scorer: SpanScorer, posts: Float[Tensor, "f h d"], spans: Sequence[Span], known: Sequence[int]
) -> np.ndarray:
    """[m, H]: the score of each span's label, by its index, less its score without each head; nan where that is 0."""
    if not spans:
        return np.zeros((0, posts.shape[1]), dtype=np.float32)
    places = torch.tensor([(start, end) for start, end, _ in spans], device=posts.device)
    label = torch.tensor(known, device=posts.device)
    vectors = (posts[places[:, 1]] - posts[places[:, 0]]).flatten(1)
    whole = scorer.second(torch.relu(scorer.norm(scorer.first(vectors) + scorer.bias)))
    whole = torch.cat([torch.zeros_like(whole[:, :1]), whole], dim=-1).gather(1, label[:, None])
    without = without_heads(scorer, posts, places)
    without = without.gather(2, label[:, None, None].expand(-1, without.shape[1], 1))[..., 0]
    return _numbers((whole - without).masked_fill((label == 0)[:, None], torch.nan))


def _numbers(x: Tensor) -> np.ndarray:
    """On its own, not a view of a batch that would be kept with it."""
    return x.float().cpu().numpy().copy()


def refuse_mixed(network: Network) -> None:
    """Raises ModelError where a head's part ends before the spans are scored."""
    lal = network.config.label_attention
    reason = (
        "it gives dependencies alone" if network.config.task == "dependencies"
        else "its label attention is inside the span" if network.config.span_attention
        else "it has no label attention" if lal is None
        else "a feed-forward after the label attention mixes its heads" if lal.feedforward
        else "its heads are projected together" if lal.combine == "project"
        else None
    )  # fmt: skip
    if reason:
        raise ModelError(
            f"contributions of label heads are not defined for this parser: {reason}",
            remedy="Its scores are sums of words' terms: ask for these (`Parser.terms`, `lalkit explain`)."
            if network.config.span_attention
            else "Use a parser whose heads stay apart: en-news-x, en-craft-x, or one trained with "
            "model.label_attention.feedforward=false and combine=concat.",
        )
