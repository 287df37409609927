"""Table 3: does attention fall on the words that suffice? A generator is trained for a frozen classifier, then asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pandas as pd
import torch

from lalkit.probes.rationale import RationaleGenerator, attention_on, compact, rationale, share, train_rationale
from lalkit.transparent.batch import in_order, shuffled
from lalkit.transparent.classifier import Classifier
from lalkit.transparent.examples import Dataset
from lalkit.transparent.view import from_some_words


def rationales(
    model: Classifier, data: Dataset, weight: float = 0.2, epochs: int = 3, hidden: int = 64, seed: int = 0,
    say: Callable[[str], None] = print,
) -> pd.DataFrame:  # fmt: skip
    """One row a text of the test part: length |Z| / T, attention of the whole text on Z, right from Z, right from all of it,
    changed (whether Z's class is another), and the rationale's words. weight: a, what a whole text costs; it and hidden are
    the same for every model that is compared."""
    model.eval()
    torch.manual_seed(seed)
    generator = RationaleGenerator(model.config.embedding, hidden)

    def batches(epoch: int) -> Iterator[tuple]:
        for group in shuffled(data.train, model.config.batch, seed, epoch):
            batch = model.vocabulary.collate(group)
            yield model.words(batch.x).detach(), batch.mask, batch.label, from_some_words(model, batch)

    for row in train_rationale(generator, batches, weight, epochs, seed=seed):
        say(f"rationales of {model.config.model}: epoch {row['epoch']}/{epochs}  reward {row['reward']:.3f}  "
            f"length {row['length']:.2f}")  # fmt: skip
    rows = []
    with torch.no_grad():
        for group in in_order(data.test, 100):
            batch = model.vocabulary.collate(group)
            embedded, whole = model.words(batch.x), model(batch)
            keep = rationale(generator, embedded, batch.mask)
            decided = from_some_words(model, batch)(*compact(embedded, keep)).argmax(-1)
            first = whole.logits.argmax(-1)
            columns = {
                "length": share(keep, batch.mask), "attention": attention_on(whole.attention, keep),
                "right": decided == batch.label, "right_whole": first == batch.label, "changed": decided != first,
            }  # fmt: skip
            table = pd.DataFrame({name: column.tolist() for name, column in columns.items()})
            table["words"] = [" ".join(w for w, k in zip(e.words, row) if k) for e, row in zip(group, keep.tolist())]
            rows.append(table)
    found = pd.concat(rows, ignore_index=True)
    return found.assign(system=model.config.model, seed=model.config.seed)
