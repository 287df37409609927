"""Summaries: the best next word each time, or a beam with the constraints of the paper's decoder [C].

ROUGE of summaries, by the rouge-score package; and what it cannot say of generated news.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pandas as pd
import torch
from torch import Tensor

from lalkit.companions.summarizers.documents import Document
from lalkit.companions.summarizers.summarizer import PAD, START, STOP, UNKNOWN, Batch, Change, Summarizer, Vocabulary

KINDS = {"rouge1": "rouge1", "rouge2": "rouge2", "rougeL": "rougeLsum"}


def score(
    documents: Sequence[Document], found: Sequence[Sequence[str]], vocabulary: Vocabulary | None = None
) -> pd.DataFrame:
    """A row per document: id, rouge1, rouge2, rougeL (F, from 0 to 1; an empty summary has 0), exact, and, given a vocabulary,
    unknown (words of the true summary that it lacks but the document has) and copied (those of them that were said).

    Raises ValueError unless there is a summary for every document, and a true one to hold it against.
    """
    from rouge_score.rouge_scorer import RougeScorer

    if len(documents) != len(found) or not all(d.summary for d in documents):
        raise ValueError(f"{len(found)} summaries for {len(documents)} documents, each of which needs a true one")
    scorer = RougeScorer(list(KINDS.values()), use_stemmer=True)
    rows = []
    for document, words in zip(documents, found):
        scores = scorer.score(" ".join(document.summary), " ".join(words))
        row = {"id": document.id, **{name: scores[kind].fmeasure for name, kind in KINDS.items()}}
        row["exact"] = tuple(words) == document.summary
        if vocabulary:
            unknown = [w for w in document.summary if w not in vocabulary.index and w in document.words]
            row |= {"unknown": len(unknown), "copied": sum(w in words for w in unknown)}
        rows.append(row)
    return pd.DataFrame(rows)


FREE = (".", "<t>", "</t>")  # trigrams with these may come again [C]


@dataclass(frozen=True)
class Beam:
    """width 1 without constraints is greedy. least: words before the end; length: Wu et al.'s alpha; coverage: beta of the
    summary coverage penalty, over the copy head's attention; repeat: may a trigram come again?"""

    width: int = 10
    least: int = 35
    most: int = 100
    length: float = 0.9
    coverage: float = 5.0
    repeat: bool = False


GREEDY = Beam(1, 0, 100, 0.0, 0.0, True)


@dataclass(order=True)
class _Hypothesis:
    score: float
    words: list[int] = field(compare=False)  # extended ids
    log: float = field(compare=False)  # of their probability
    covered: Tensor = field(compare=False)  # [T], attention so far


@torch.inference_mode()
def summarize(model: Summarizer, batch: Batch, beam: Beam = GREEDY, change: Change = Change()) -> list[list[str]]:  # noqa: B008
    """The words of every document's summary. change: see `Change`; its weights and copy do not fit what is not yet said."""
    model.eval()
    memory, _ = model.encode(batch, change)
    if replace(beam, most=GREEDY.most) == GREEDY:
        found = _greedy(model, batch, memory, beam.most, change)
    else:
        found = [_search(model, _one(batch, b), memory[b : b + 1], beam, _of(change, b)) for b in range(len(memory))]
    return [[model.vocabulary.word(index, batch) for index in words] for words in found]


def _greedy(model: Summarizer, batch: Batch, memory: Tensor, most: int, change: Change) -> list[list[int]]:
    before = torch.full((len(memory), 1), START)
    said = torch.zeros(len(memory), 0, dtype=torch.long)
    ended = torch.zeros(len(memory), dtype=torch.bool)
    for _ in range(most):
        probs, _, _ = model.decode(batch, memory, before, change)
        word = probs[:, -1].argmax(-1).masked_fill(ended, PAD)
        ended |= word == STOP
        said = torch.cat([said, word[:, None]], 1)
        before = torch.cat([before, _known(model, word)[:, None]], 1)
        if ended.all():
            break
    return [[w for w in row if w not in (PAD, STOP)] for row in said.tolist()]


def _search(model: Summarizer, batch: Batch, memory: Tensor, beam: Beam, change: Change) -> list[int]:
    """Of one document. A beam's hypotheses are all of one length; what has ended waits, and the best of all ends wins."""
    alive, done = [_Hypothesis(0.0, [], 0.0, torch.zeros(batch.source.shape[1], dtype=memory.dtype))], []
    for step in range(beam.most + 1):
        before = torch.tensor([[START, *(int(_known(model, torch.tensor(w))) for w in h.words)] for h in alive])
        wide = _one(batch, 0, len(alive))
        probs, _, weights = model.decode(wide, memory.expand(len(alive), -1, -1), before, change)
        log = torch.log(probs[:, -1])
        if step < beam.least:
            log[:, STOP] = -torch.inf
        if step == beam.most:
            log[:, :STOP] = log[:, STOP + 1 :] = -torch.inf
        copied = weights[f"cross.{model.config.layers - 1}"][:, 0, -1]
        candidates = []
        for row, hypothesis in enumerate(alive):
            if not beam.repeat:
                log[row, _again(model, hypothesis.words, batch)] = -torch.inf
            covered = hypothesis.covered + copied[row]
            values, words = log[row].topk(min(beam.width + 1, log.shape[1]))
            for value, word in zip(values.tolist(), words.tolist()):
                if value > -torch.inf:
                    said = hypothesis.words if word == STOP else [*hypothesis.words, word]
                    total = hypothesis.log + value
                    found = _Hypothesis(_score(total, len(said) + (word == STOP), covered, beam), said, total, covered)
                    (done if word == STOP else candidates).append(found)
        alive = sorted(candidates, reverse=True)[: beam.width]
        best = max(done, default=None)
        # Without penalties a score only falls: nothing alive can overtake what has ended.
        if not alive or (best and not beam.length and not beam.coverage and best.score >= alive[0].score):
            break
    return (best or alive[0]).words if (best or alive) else []


def _score(log: float, length: int, covered: Tensor, beam: Beam) -> float:
    penalty = ((5 + length) / 6) ** beam.length
    return log / penalty - beam.coverage * float((covered.clamp(min=1) - 1).sum())


def _again(model: Summarizer, said: list[int], batch: Batch) -> list[int]:
    """Words that would end a trigram that was said before."""
    last, found = said[-2:], []
    for i in range(len(said) - 2):
        if said[i : i + 2] == last and not any(model.vocabulary.word(w, batch) in FREE for w in said[i : i + 3]):
            found.append(said[i + 2])
    return found


def _known(model: Summarizer, word: Tensor) -> Tensor:
    return word.masked_fill(word >= len(model.vocabulary), UNKNOWN)


def _of(change: Change, b: int) -> Change:
    return change if change.copy is None else replace(change, copy=change.copy[b : b + 1])


def _one(batch: Batch, b: int, times: int = 1) -> Batch:
    """A document, so many times."""
    parts = [
        getattr(batch, name)[b : b + 1].expand(times, -1) for name in ("source", "extended", "mask", "before", "target")
    ]
    return Batch(*parts, batch.unknown)
