"""ROUGE of summaries, by the rouge-score package; and what it cannot say of generated news."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from lalkit.summarize.batch import Vocabulary
from lalkit.summarize.documents import Document

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
