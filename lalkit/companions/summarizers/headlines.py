"""Summaries, greedily or by a beam search with the constraints of the paper's decoder [C]; and their ROUGE scores.

ROUGE does not tell whether the names of made-up news were copied rightly, so `score` counts exact summaries and copied words too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import pandas as pd
import torch
from torch import Tensor

from lalkit.companions.frame import PADDING, UNKNOWN, in_order
from lalkit.companions.summarizers.documents import Document, sentences
from lalkit.companions.summarizers.summarizer import START, STOP, UNCHANGED, Batch, Change, Summarizer, Vocabulary

KINDS = {"rouge1": "rouge1", "rouge2": "rouge2", "rougeL": "rougeLsum"}
FREE = (".", "<t>", "</t>")  # trigrams with one of these may occur again [C]


def score(
    documents: Sequence[Document], summaries: Sequence[Sequence[str]], vocabulary: Vocabulary | None = None
) -> pd.DataFrame:
    """Return a row for each document: id, rouge1, rouge2, rougeL (F, from 0 to 1; 0 for an empty summary) and exact.

    With a vocabulary also: unknown, the number of words of the true summary that it lacks and the document has; and copied, how
    many of these words the summary has. Raises ValueError unless there is a summary and a true summary for every document.
    """
    from rouge_score.rouge_scorer import RougeScorer

    if len(documents) != len(summaries) or not all(d.summary for d in documents):
        raise ValueError(f"{len(summaries)} summaries for {len(documents)} documents, each of which needs a true one")
    scorer = RougeScorer(list(KINDS.values()), use_stemmer=True)
    rows = []
    for document, words in zip(documents, summaries):
        scores = scorer.score(" ".join(document.summary), " ".join(words))
        row = {"id": document.id, **{name: scores[kind].fmeasure for name, kind in KINDS.items()}}
        row["exact"] = tuple(words) == document.summary
        if vocabulary:
            unknown = [w for w in document.summary if w not in vocabulary.index and w in document.words]
            row |= {"unknown": len(unknown), "copied": sum(w in words for w in unknown)}
        rows.append(row)
    return pd.DataFrame(rows)


def lead(document: Document, count: int) -> list[str]:
    """Return the first `count` sentences of a document: the usual baseline."""
    return list(chain(*sentences(document.words)[:count]))


@dataclass(frozen=True)
class Beam:
    """How summaries are searched. A width of 1 without constraints is greedy.

    least: fewest words before the end; most: the most words; length: alpha of Wu et al.; coverage: beta of the summary coverage
    penalty, over the copy head's attention; repeat: whether a trigram may occur again.
    """

    width: int = 10
    least: int = 35
    most: int = 100
    length: float = 0.9
    coverage: float = 5.0
    repeat: bool = False


GREEDY = Beam(1, 0, 100, 0.0, 0.0, True)


def summarize_all(
    model: Summarizer, documents: Sequence[Document], beam: Beam = GREEDY, size: int = 100
) -> list[list[str]]:
    """Return the words of every document's summary. size: documents in a batch."""
    groups = (model.collate(group) for group in in_order(documents, size))
    return [words for batch in groups for words in summarize(model, batch, beam)]


@torch.inference_mode()
def summarize(model: Summarizer, batch: Batch, beam: Beam = GREEDY, change: Change = UNCHANGED) -> list[list[str]]:
    """Return the words of the summary of every document of a batch.

    change: as for the network, but without `weights`. Its `copy` must have one row for all queries, since the number of words is
    not known yet.
    """
    model.eval()
    memory, _ = model.encode(batch, change)
    if replace(beam, most=GREEDY.most) == GREEDY:
        summaries = _greedy(model, batch, memory, beam.most, change)
    else:
        summaries = []
        for b in range(len(memory)):
            own = change if change.copy is None else replace(change, copy=change.copy[b : b + 1])
            summaries.append(_search(model, _repeated(batch, b), memory[b : b + 1], beam, own))
    return [[model.vocabulary.word(index, batch) for index in words] for words in summaries]


def _greedy(model: Summarizer, batch: Batch, memory: Tensor, most: int, change: Change) -> list[list[int]]:
    before = batch.source.new_full((len(memory), 1), START)
    summary = batch.source.new_zeros(len(memory), 0)
    ended = batch.mask.new_zeros(len(memory))
    for _ in range(most):
        probs, _ = model.decode(batch, memory, before, change)
        word = probs[:, -1].argmax(-1).masked_fill(ended, PADDING)
        ended |= word == STOP
        summary = torch.cat([summary, word[:, None]], 1)
        before = torch.cat([before, _known(model, word)[:, None]], 1)
        if ended.all():
            break
    return [[w for w in row if w not in (PADDING, STOP)] for row in summary.tolist()]


@dataclass(order=True)
class _Hypothesis:
    score: float
    words: list[int] = field(compare=False)  # extended ids
    log: float = field(compare=False)  # of their probability
    covered: Tensor = field(compare=False)  # [T], attention so far


def _search(model: Summarizer, batch: Batch, memory: Tensor, beam: Beam, change: Change) -> list[int]:
    """Summarize one document. All hypotheses of a beam have one length. Those that have ended wait, and the best of them wins."""
    alive, done = [_Hypothesis(0.0, [], 0.0, memory.new_zeros(batch.source.shape[1]))], []
    for step in range(beam.most + 1):
        words = batch.source.new_tensor([hypothesis.words for hypothesis in alive])
        before = torch.cat([words.new_full((len(alive), 1), START), _known(model, words)], 1)
        wide = _repeated(batch, 0, len(alive))
        probs, weights = model.decode(wide, memory.expand(len(alive), -1, -1), before, change)
        log = torch.log(probs[:, -1])
        if step < beam.least:
            log[:, STOP] = -torch.inf
        if step == beam.most:
            log[:, :STOP] = log[:, STOP + 1 :] = -torch.inf
        copied = weights[f"cross.{model.config.layers - 1}"][:, 0, -1]
        candidates = []
        for row, hypothesis in enumerate(alive):
            if not beam.repeat:
                log[row, _repeating(model, hypothesis.words, batch)] = -torch.inf
            covered = hypothesis.covered + copied[row]
            values, ids = log[row].topk(min(beam.width + 1, log.shape[1]))
            for value, word in zip(values.tolist(), ids.tolist()):
                if value > -torch.inf:
                    summary = hypothesis.words if word == STOP else [*hypothesis.words, word]
                    total = hypothesis.log + value
                    penalised = _penalised(total, len(summary) + (word == STOP), covered, beam)
                    (done if word == STOP else candidates).append(_Hypothesis(penalised, summary, total, covered))
        alive = sorted(candidates, reverse=True)[: beam.width]
        best = max(done, default=None)
        # Without penalties a score only falls, so no hypothesis that is alive can overtake one that has ended.
        if not alive or (best and not beam.length and not beam.coverage and best.score >= alive[0].score):
            break
    return (best or alive[0]).words if (best or alive) else []


def _penalised(log: float, length: int, covered: Tensor, beam: Beam) -> float:
    penalty = ((5 + length) / 6) ** beam.length
    return log / penalty - beam.coverage * float((covered.clamp(min=1) - 1).sum())


def _repeating(model: Summarizer, words: list[int], batch: Batch) -> list[int]:
    """Return the words that would repeat a trigram of the summary."""
    trigrams = zip(words, words[1:], words[2:])
    is_free = {word: model.vocabulary.word(word, batch) in FREE for word in words}
    return [t[2] for t in trigrams if [*t[:2]] == words[-2:] and not any(is_free[word] for word in t)]


def _known(model: Summarizer, word: Tensor) -> Tensor:
    """Replace ids that the network does not know by that of the unknown word."""
    return word.masked_fill(word >= len(model.vocabulary), UNKNOWN)


def _repeated(batch: Batch, b: int, times: int = 1) -> Batch:
    """Return a batch of one document, `times` times."""
    names = ("source", "extended", "mask", "before", "target")
    return Batch(**{name: getattr(batch, name)[b : b + 1].expand(times, -1) for name in names}, unknown=batch.unknown)
