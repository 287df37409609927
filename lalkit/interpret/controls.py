"""Ask how much the attention of the paper's layer does for a span: parse again with other contexts, and compare.

A head has one context vector c_h for a whole sentence. A span vector is a difference of fenceposts, so R P c_h would cancel
exactly, and the attention of a head acts on a span through the norm alone:

    y_h[t] = LN(R x_t + R P c_h)        s_ij = f_j - f_i

So before one says what a head's attention means for a label, one has to know how much it does. `compare` parses under every
control; `forced` makes heads attend to the root (section 4.6); `cancellation` measures what is left of the contexts in the span
vectors of one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from scipy.stats import rankdata
from torch import Tensor

from lalkit.evaluation.scores import evaluate
from lalkit.evaluation.statistics import score_test
from lalkit.interpret.attention_views import layer_input
from lalkit.interpret.contributions import Contributions, contributions
from lalkit.interpret.errors import top_heads
from lalkit.interpret.paper_layer import PaperLayer, unchanged
from lalkit.interpret.source import gold_spans, parsed_spans
from lalkit.interpret.tables import correlation
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


def compare(
    network: Network,
    collator: Collator,
    gold: Sequence[Sentence],
    norms: Sequence[str] = ("minmax", "exact"),
    lam: float = 0.5,
) -> pd.DataFrame:
    """Parse sentences again under every control of the paper's layer.

    Args: lam: the weight of label scores in the score of a tree.
    Returns: a row for each control: contexts (its name), meaning, f1, uas, las (percent), f1_p and uas_p (p of a randomisation
        test over sentences against the parser as trained); for each norm same_top_NORM and rho_NORM (see `likeness`).
    Raises: ModelError for a parser whose heads are mixed.
    """
    source, rows, trained = PaperLayer(network, collator, lam), [], None
    controls = {"as trained": {"contexts": unchanged}, **source.controls(source.mean(gold))}
    for name, meaning in CONTROLS.items():
        with source.layer.hooked(**controls[name]):
            looks = source.look(gold)
        evaluation, effects = evaluate(gold, [look.sentence for look in looks]), contributions(looks)
        trained = trained or (evaluation.table(), effects)
        scores = evaluation.summary()
        row = {"contexts": name, "meaning": meaning, **{key: scores[key] for key in ("f1", "uas", "las")}}
        for score in TESTED:
            row[f"{score}_p"] = score_test([trained[0]], [evaluation.table()], score).p
        for norm in norms:
            row[f"same_top_{norm}"], row[f"rho_{norm}"] = likeness(trained[1], effects, norm)
        rows.append(row)
    return pd.DataFrame(rows)


def forced(
    network: Network,
    collator: Collator,
    gold: Sequence[Sentence],
    label: str = "S",
    shares: Sequence[float] = (0.25, 0.5, 0.75, 1.0),
    count: int = 9,
    norm: str = "minmax",
    lam: float = 0.5,
) -> pd.DataFrame:
    """Parse again with label heads that are made to attend to the root, as section 4.6 of the paper proposes, or to controls.

    Args: label: the label whose top heads are changed. shares: of their attention, that go to the word. count: how many heads
        are changed, besides all heads at once. norm: decides which these are. lam: the weight of label scores in the score of a
        tree. The random words are always the same.
    Returns: a row for the parser as trained, and one for each word (a name of FORCED), set of heads and share: to, heads, share;
        f1, uas (percent), f1_p, uas_p (against the parse as trained, see `compare`); repaired and broken: the gold spans that
        only this parse has, or only the parse as trained; repaired_LABEL and broken_LABEL: those of the label.
    Raises: ModelError for a parser whose heads are mixed, LalkitError for a query matrix and for a label without spans.
    """
    source, rows, rng = PaperLayer(network, collator, lam), [], np.random.default_rng(0)
    source.refuse_many_contexts()
    with words_kept(network):
        with source.layer.hooked(contexts=unchanged):
            looks = source.look(gold)
        trained = [look.sentence for look in looks]
        places = pd.DataFrame([_places(*pair, rng) for pair in zip(gold, trained)], columns=list(FORCED))
        before, right = evaluate(gold, trained).table(), [set(spans) for spans in gold_spans(gold)]
        kept = [spans & set(own) for spans, own in zip(right, gold_spans(trained))]

        def add(to: str, heads: str, share: float, parses: Sequence[Sentence]) -> None:
            evaluation, row = evaluate(gold, parses), {"to": to, "heads": heads, "share": share}
            for score in TESTED:
                row[score] = evaluation.summary()[score]
                row[f"{score}_p"] = score_test([before], [evaluation.table()], score).p
            correct = [spans & set(own) for spans, own in zip(right, gold_spans(parses))]
            for name, one, other in (("repaired", correct, kept), ("broken", kept, correct)):
                only = [span for a, b in zip(one, other) for span in a - b]
                row |= {name: len(only), f"{name}_{label}": sum(span[2] == label for span in only)}
            rows.append(row)

        add("as trained", "none", 0.0, trained)
        groups = {
            f"top {count} of {label}": top_heads(contributions(looks), norm, label, count),
            "all": range(source.heads),
        }
        for to, (heads, chosen), share in product(FORCED, groups.items(), shares):
            with source.layer.hooked(attention=_focus(places[to], chosen, share, [len(s) for s in gold], network)):
                add(to, heads, share, [parse.sentence for parse in predict(network, collator, gold, lam=lam)])
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


def likeness(first: Contributions, second: Contributions, norm: str) -> tuple[float, float]:
    """Compare two sets of contributions on the spans that both have.

    Returns: the percent of spans with the same top head, and the mean Spearman correlation of contributions over heads. A span
        has no correlation if all its heads are alike on one side; the mean is nan if no span has one.
    """
    keys = ["sentence", "start", "end", "label"]
    both = first.spans[keys].reset_index().merge(second.spans[keys].reset_index(), on=keys)
    a, b = first.by(norm)[both["index_x"]], second.by(norm)[both["index_y"]]
    rho = correlation(rankdata(a, axis=1), rankdata(b, axis=1))
    same = 100 * (a.argmax(1) == b.argmax(1)).mean()
    return same, np.nanmean(rho) if np.isfinite(rho).any() else np.nan


@contextmanager
def words_kept(network: Network) -> Iterator[None]:
    """Compute the vectors of a batch's words only once inside the `with` block. Controls change only what comes after them."""
    usual = network.words.forward
    kept: dict[tuple, Tensor] = {}

    def forward(batch: Batch) -> Tensor:
        inputs = [x for x in (batch.lengths, batch.subwords, batch.places, batch.words, batch.chars) if x is not None]
        key = tuple(x.cpu().numpy().tobytes() for x in inputs)
        if key not in kept:
            kept[key] = usual(batch)
        return kept[key]

    with patch.object(network.words, "forward", forward):
        yield


@torch.no_grad()
def cancellation(
    network: Network, collator: Collator, sentence: Sentence, others: Sequence[Sentence], lam: float = 0.5
) -> pd.DataFrame:
    """Measure the parts of the span vector of every constituent of a parse, over all heads together.

    Args: others: the sentences over which mean contexts are taken. lam: the weight of label scores in the score of a tree.
    Returns: start, end, label; words and contexts: the lengths of R x and of R P c before the norm; after: the length of the
        span vector, after the norm; moved: the length of its change if contexts are at their mean; score and score_mean: of the
        label, with the sentence's own contexts and with the mean.
    Raises: ModelError for a parser whose heads are mixed.
    """
    source = PaperLayer(network, collator, lam)
    mean = source.mean(others)
    (parse,) = predict(network, collator, [sentence], lam=lam)
    layer, batch = source.layer, collator([sentence]).to(mean.device)
    with network.parsing():
        own = network(batch, posts=True)
        x, mask = layer_input(network, batch)
        contexts = layer.contexts(x, layer.attend(x, mask))
        with layer.hooked(**source.controls(mean)["mean"]):
            other = network(batch, posts=True)
    words = layer.reduce(x)
    if words.dim() == 3:  # R is shared: R x is the same for every head.
        words = words[:, :, None].expand(-1, -1, contexts.shape[1], -1)
    heads = layer.reduce.per_head(layer.project.per_head(contexts))[:, None]
    before = [fenceposts(part.expand(-1, x.shape[1], -1, -1).contiguous(), network.slice)[0] for part in (words, heads)]
    rows = []
    for start, end, label in parsed_spans(parse):
        word, context, span, there = (posts[end] - posts[start] for posts in (*before, own.posts[0], other.posts[0]))
        lengths = (float(vector.norm()) for vector in (word, context, span, there - span))
        k = collator.vocab.label_index[label]
        scores = (float(output.label_scores[0, start, end, k]) for output in (own, other))
        rows.append((start, end, label, *lengths, *scores))
    names = ["start", "end", "label", "words", "contexts", "after", "moved", "score", "score_mean"]
    return pd.DataFrame(rows, columns=names)
