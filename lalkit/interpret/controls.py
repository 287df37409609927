"""Measure how much the attention of the paper's layer does for a span: parse again with other contexts, and compare.

A head has one context vector c_h for a whole sentence. A span vector is a difference of fenceposts, so R P c_h would cancel
exactly, and the attention of a head acts on a span through the norm alone:

    y_h[t] = LN(R x_t + R P c_h)        s_ij = f_j - f_i

So before one says that a head's attention means a label, one has to know how much it does. `compare` parses under every control;
`forced` makes heads attend to the root (section 4.6); `cancellation` measures the part of the contexts that is left in the span
vectors of one sentence. A feed-forward after the label attention mixes the heads: then only the contributions are not defined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lalkit.evaluation.scores import Evaluation, evaluate
from lalkit.evaluation.statistics import score_test
from lalkit.interpret.contributions import contributions
from lalkit.interpret.errors import top_heads
from lalkit.interpret.paper_layer import PaperLayer, layer_input, unchanged
from lalkit.interpret.source import Sentences, gold_spans, parsed_spans
from lalkit.interpret.tables import likeness
from lalkit.network.batches import Batch, Collator, batches, usual
from lalkit.network.parser import Network
from lalkit.network.predict import predict
from lalkit.network.scores import fenceposts
from lalkit.probes.perturbation import focus
from lalkit.treebank.tree import Sentence

CONTROLS = {
    "as trained": "the contexts as they are",
    "uniform attention": "every head attends to all words alike",
    "zeroed": "every context at zero",
    "mean": "every head's context at its mean over sentences",
    "swapped sentences": "every sentence has the contexts of another one",
    "swapped heads": "every head has the context of another head",
    "shuffled heads": "the heads' outputs in another order",
}
TESTED = ("f1", "uas")  # the scores that are tested
FORCED = {
    "root of gold": "the root of the gold tree: more than a parser can know",
    "root of the parse": "the root of the tree that the parser gives when it attends as trained",
    "another verb": "a random verb that is not the root of the parse; if there is none, attention stays as trained",
    "random word": "a random word",
}


class Controlled(NamedTuple):
    """The result of `compare`.

    table: a row for each control: contexts (its name), meaning, f1, uas, las (percent), f1_p and uas_p (p of a randomisation
    test over sentences against the parser as trained); for each norm same_top_NORM and rho_NORM (see `tables.likeness`, on the
    spans of both parses), if heads have contributions.
    counts: the counts of every sentence under every control: contexts, and the columns of `Evaluation.table`.
    """

    table: pd.DataFrame
    counts: pd.DataFrame


def compare(
    network: Network, collator: Collator, gold: Sentences, norms: Sequence[str] = ("minmax", "exact"), lam: float = 0.5
) -> Controlled:
    """Parse sentences again under every control of the paper's layer.

    Args: lam: the weight of label scores in the score of a tree.
    Raises: ModelError for a parser whose heads do not have one context each for a sentence.
    """
    source, rows, tables, usual_effects = PaperLayer(network, collator, lam), [], {}, None
    controls = {"as trained": {"contexts": unchanged}, **source.controls(source.mean(gold))}
    for name, hooks in controls.items():
        with source.layer.hooked(**hooks):
            looks = None if source.mixed else source.look(gold)
            predictions = [look.prediction for look in looks] if looks else predict(network, collator, gold, lam=lam)
        evaluation = _scored(source, gold, predictions)
        tables[name] = evaluation.table()
        row = {"contexts": name, "meaning": CONTROLS[name], **_scores(evaluation, tables["as trained"])}
        if looks:
            effects = contributions(looks)
            usual_effects = usual_effects or effects
            for norm in norms:
                a, b = usual_effects.common(effects)
                row[f"same_top_{norm}"], row[f"rho_{norm}"] = likeness(a.by(norm), b.by(norm))
        rows.append(row)
    return Controlled(pd.DataFrame(rows), pd.concat(tables, names=["contexts"]).reset_index("contexts"))


def _scored(source: PaperLayer, gold: Sentences, predictions: Sequence) -> Evaluation:
    parses = [prediction.sentence for prediction in predictions]
    return evaluate(gold, parses, arc_labels=source.collator.vocab.arc_labels)


def _scores(evaluation: Evaluation, trained: pd.DataFrame) -> dict[str, float]:
    """Return the scores that exist, with their tests against the parser as trained (its table of sentences)."""
    summary, table = evaluation.summary(), evaluation.table()
    scores = {name: summary[name] for name in ("f1", "uas", "las") if summary[name] is not None}
    return scores | {f"{name}_p": score_test([trained], [table], name).p for name in TESTED if name in scores}


def forced(
    network: Network,
    collator: Collator,
    gold: Sentences,
    label: str = "S",
    shares: Sequence[float] = (0.25, 0.5, 0.75, 1.0),
    count: int = 9,
    norm: str = "minmax",
    lam: float = 0.5,
) -> pd.DataFrame:
    """Parse again with label heads that are made to attend to the root, as section 4.6 of the paper proposes, or to controls.

    Args: label: its top heads are changed. shares: the parts of their attention that go to the word. count: the number of heads
        that are changed, besides all heads at once. norm: decides which these are. lam: the weight of label scores in the score
        of a tree. The random words are always the same.
    Returns: a row for the parser as trained, and one for each word (a name of FORCED), set of heads and share: to, heads, share;
        the scores of `compare` with their p values; repaired and broken: the gold spans that only this parse has, or only the
        parse as trained; repaired_LABEL and broken_LABEL: those of the label.
    Raises: ModelError for a parser whose heads have no contributions or no single context, LalkitError for a label without spans.
    """
    source, rows, rng = PaperLayer(network, collator, lam), [], np.random.default_rng(0)
    source.check_contexts()
    right = [set(spans) for spans in gold_spans(gold)]
    with words_kept(network):
        with source.layer.hooked(contexts=unchanged):
            looks = source.look(gold)
        trained = [look.prediction for look in looks]
        places = pd.DataFrame([_places(s, p.sentence, rng) for s, p in zip(gold, trained)], columns=list(FORCED))
        before = _scored(source, gold, trained).table()
        kept = [spans & set(parsed_spans(p)) for spans, p in zip(right, trained)]
        groups = {
            f"top {count} of {label}": top_heads(contributions(looks), norm, label, count),
            "all": range(source.heads),
        }
        for to, heads, share in [("as trained", "none", 0.0), *product(FORCED, groups, shares)]:
            predictions = trained
            if to in FORCED:
                lengths = [len(sentence) for sentence in gold]
                with source.layer.hooked(attention=_focus(places[to], groups[heads], share, lengths, network)):
                    predictions = predict(network, collator, gold, lam=lam)
            row = {"to": to, "heads": heads, "share": share, **_scores(_scored(source, gold, predictions), before)}
            correct = [spans & set(parsed_spans(p)) for spans, p in zip(right, predictions)]
            for name, one, other in (("repaired", correct, kept), ("broken", kept, correct)):
                labels = [span[2] for a, b in zip(one, other) for span in a - b]
                row |= {name: len(labels), f"{name}_{label}": labels.count(label)}
            rows.append(row)
    return pd.DataFrame(rows)


def _places(gold: Sentence, parse: Sentence, rng: np.random.Generator) -> list[int]:
    """Return the number of the word that heads are made to attend to, for every name of FORCED; 0: none."""
    roots = [tree.heads.index(0) + 1 for tree in (gold, parse)]
    verbs = [i for i, tag in enumerate(parse.tags or (), 1) if tag.startswith("V") and i != roots[1]]
    return [*roots, int(rng.choice(verbs)) if verbs else 0, int(rng.integers(len(gold))) + 1]


def _focus(
    places: Sequence[int], heads: Sequence[int], share: float, lengths: Sequence[int], network: Network
) -> Callable:
    """Return a hook that moves a share of these heads' attention to one word (0: none) of every sentence, in parsing order."""
    groups = iter(batches(lengths, usual(next(network.parameters()).device.type)))

    def hook(attention: Tensor, mask: Tensor) -> Tensor:
        place = torch.tensor([places[i] for i in next(groups)], device=attention.device)
        which = torch.zeros(attention.shape[1], 1, dtype=torch.bool, device=attention.device)
        which[list(heads)] = True
        moved = focus(attention[:, :, None], place, share)[:, :, 0]
        return torch.where(which & (place > 0)[:, None, None], moved, attention)

    return hook


@contextmanager
def words_kept(network: Network) -> Iterator[None]:
    """Compute the vectors of a batch's words only once inside the `with` block. Controls change only the steps after them."""
    compute = network.words.forward
    kept: dict[tuple, Tensor] = {}

    def forward(batch: Batch) -> Tensor:
        inputs = [x for x in (batch.lengths, batch.subwords, batch.places, batch.words, batch.chars) if x is not None]
        key = tuple(x.cpu().numpy().tobytes() for x in inputs)
        if key not in kept:
            kept[key] = compute(batch)
        return kept[key]

    with patch.object(network.words, "forward", forward):
        yield


@torch.no_grad()
def cancellation(
    network: Network, collator: Collator, sentence: Sentence, others: Sentences, lam: float = 0.5
) -> pd.DataFrame:
    """Measure the parts of the span vector of every constituent of a parse, over all heads together.

    Args: others: the sentences over which mean contexts are taken. lam: the weight of label scores in the score of a tree.
    Returns: start, end, label; words and contexts: the lengths of R x and of R P c before the norm; after: the length of the
        span vector, after the norm; moved: the length of its change if contexts are at their mean; score and score_mean: of the
        label, with the contexts of the sentence and with the mean.
    Raises: ModelError for a parser whose heads have no contributions or no single context.
    """
    source = PaperLayer(network, collator, lam)
    source.check()
    mean, layer = source.mean(others), source.layer
    (parse,) = predict(network, collator, [sentence], lam=lam)
    batch = collator([sentence]).to(mean.device)
    with network.parsing():
        usual_output = network(batch, posts=True)
        x, mask = layer_input(network, batch)
        contexts = layer.contexts(x, layer.attend(x, mask))
        with layer.hooked(**source.controls(mean)["mean"]):
            mean_output = network(batch, posts=True)
    words = layer.reduce(x)
    words = words if words.dim() == 4 else words[:, :, None].expand(-1, -1, source.heads, -1)  # a shared R
    added = layer.reduce.per_head(layer.project.per_head(contexts))[:, None].expand_as(words)
    parts = [fenceposts(part.contiguous(), network.slice)[0] for part in (words, added)]
    parts += [usual_output.posts[0], mean_output.posts[0] - usual_output.posts[0]]
    rows = []
    for start, end, label in parsed_spans(parse):
        lengths = (float((posts[end] - posts[start]).norm()) for posts in parts)
        k = collator.vocab.label_index[label]
        scores = (float(output.label_scores[0, start, end, k]) for output in (usual_output, mean_output))
        rows.append((start, end, label, *lengths, *scores))
    names = ["start", "end", "label", "words", "contexts", "after", "moved", "score", "score_mean"]
    return pd.DataFrame(rows, columns=names)
