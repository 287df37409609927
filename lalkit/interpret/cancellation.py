"""What is left of a context in a span: nothing before the norm, little after it.

    y_h[t] = LN(R x_t + R P c_h)        s_ij = f_j - f_i

Fenceposts hold halves of y, and c_h is the same for every t: without the norm R P c_h would be taken from itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import torch
from torch import Tensor

from lalkit.batch.collate import Collator
from lalkit.interpret.controls import changed, mean_contexts
from lalkit.interpret.look import refuse_mixed
from lalkit.model.parser import Network
from lalkit.model.scores import fenceposts
from lalkit.predict import predict
from lalkit.treebank.joint import GROUP
from lalkit.treebank.tree import Sentence


@torch.no_grad()
def cancellation(
    network: Network, collator: Collator, sentence: Sentence, others: Sequence[Sentence], lam: float = 0.5
) -> pd.DataFrame:
    """Of every constituent of the sentence's parse, lengths of parts of its span vector over all heads together.

    start, end, label; words, contexts: of R x and of R P c before the norm; after: of the span vector as it is, after the
    norm; moved: of what it changes by when contexts are at their mean over `others`; score, score_mean: of the label, with
    the sentence's own contexts and with these. Raises ModelError for a parser whose heads cannot be told apart.
    """
    refuse_mixed(network)
    (parse,) = predict(network, collator, [sentence], lam=lam)
    network.eval()
    layer, batch, given = network.label_attention, collator([sentence]), []
    hook = layer.register_forward_pre_hook(lambda module, arguments: given.append(arguments[:2]))
    own = network(batch, posts=True)
    hook.remove()
    x, mask = given[0]
    contexts = layer.contexts(x, layer.attend(x, mask))
    parts = per_head(layer.reduce(x), contexts.shape[1]), layer.reduce.per_head(layer.project.per_head(contexts))
    before = [fenceposts(part.expand(-1, x.shape[1], -1, -1).contiguous(), network.slice)[0] for part in
              (parts[0], parts[1][:, None])]  # fmt: skip
    mean = mean_contexts(network, collator, others)
    with changed(network, lambda c: mean.to(c.dtype).expand_as(c)):
        other = network(batch, posts=True)
    rows = []
    for start, end, label, _ in parse.spans:
        if label == GROUP:
            continue
        words, context, span, there = (posts[end] - posts[start] for posts in (*before, own.posts[0], other.posts[0]))
        k = collator.vocab.label_index[label]
        rows.append(
            (start, end, label, *(float(v.norm()) for v in (words, context, span, there - span)),
             float(own.label_scores[0, start, end, k]), float(other.label_scores[0, start, end, k]))
        )  # fmt: skip
    names = ["start", "end", "label", "words", "contexts", "after", "moved", "score", "score_mean"]
    return pd.DataFrame(rows, columns=names)


def per_head(rx: Tensor, heads: int) -> Tensor:
    """[B, T, H, d]: R x of every head, where R is shared [B, T, d]."""
    return rx[:, :, None].expand(-1, -1, heads, -1) if rx.dim() == 3 else rx
