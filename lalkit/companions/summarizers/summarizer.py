"""The summarizer: a transformer of pre-norm layers that says words of a vocabulary or copies words of the document.

    g = softmax(W y)    p = sigmoid(w . y + b)    P(word) = (1 - p) g(word) + p sum over the places j of the word of a_j

over the vocabulary extended by the document's unknown words. a is the attention of one head, the first of the decoder's last
layer over the document [C]: so a gate on that head's context leaves what is copied as it is.

Settings of the summarizers, each with its source: [P] Baan et al. 2019, [C] OpenNMT's page for the model, [D] ours.

Documents -> ids, in two kinds: those the network knows, and those of an extended vocabulary, to which a batch's unknown words
are added so that they can be copied.

Multi-head attention of which everything can be asked: any normaliser, a gate on every head, given weights in the place of its
own, and always its weights. (torch's own can do none of these.)

One attention of the summarizer as the shared probes see it: the decisions are the words of the true summary, each given those
before it.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lalkit.companions.summarizers.documents import Document
from lalkit.config import within
from lalkit.errors import ModelError
from lalkit.network.label_attention import normalise
from lalkit.probes.view import AttentionView, Outcome

Normaliser = Literal["softmax", "sparsemax", "entmax15"]
# Where attention is sparse: nowhere, in the encoder, everywhere but in the last layer's cross heads, everywhere but in the
# copy head, everywhere ([P] section 5).
SPARSE = ("none", "encoder", "but-top", "but-copy", "all")


@dataclass(frozen=True)
class SummarizerConfig:
    """One summarizer and how it is trained; saved in its run's folder. The defaults fit a CPU [D]."""

    layers: int = 2  # of the encoder, and of the decoder; [P] 4
    heads: int = 4  # [P] 8
    d_model: int = 64  # [P] 512; 96 costs half as much again, and the news are learned with 64
    d_ff: int = 256  # [C] 2048
    dropout: float = 0.0  # [C] 0.2; a third of a step on a CPU, and made-up news need none
    sparse: Literal["none", "encoder", "but-top", "but-copy", "all"] = "none"
    normaliser: Normaliser = "sparsemax"  # of the heads that `sparse` names; all others: softmax
    vocabulary: int = 50_000  # [C] most frequent words; all others can only be copied
    min_count: int = 4  # [D] words that are rarer in the training part are unknown too
    source: int = 400  # [C] tokens of a document; what is beyond is cut
    target: int = 100  # [C]
    seed: int = 1
    epochs: int = 12  # [D]
    batch: int = 50  # [D]
    rate: float = 1e-3  # [D] Adam; [C] noam 2, warm-up 8000
    clip: float = 1.0  # [D]

    def __post_init__(self):
        within(self, 1, inf, "layers", "heads", "d_model", "d_ff", "source", "target", "epochs", "batch")


def paper() -> SummarizerConfig:
    """[P] 4 + 4 layers of 8 heads, 512 wide."""
    return SummarizerConfig(layers=4, heads=8, d_model=512, d_ff=2048, dropout=0.2, min_count=1)


PAD, UNKNOWN, START, STOP = range(4)
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")


@dataclass(frozen=True)
class Batch:
    """b documents of at most t words, summaries of at most q - 1, V known words, o unknown ones in the whole batch.

    source [B, T] known ids; extended [B, T] ids below V + o; mask [B, T]; before [B, Q] known ids of START and the summary;
    target [B, Q] extended ids of the summary and STOP, PAD beyond; unknown: the o words, by their order.
    """

    source: Tensor
    extended: Tensor
    mask: Tensor
    before: Tensor
    target: Tensor
    unknown: tuple[str, ...]

    @property
    def target_mask(self) -> Tensor:
        return self.target != PAD


@dataclass(frozen=True)
class Vocabulary:
    """Words with ids, the four special ones first."""

    words: tuple[str, ...]

    def __post_init__(self):
        object.__setattr__(self, "index", {word: i for i, word in enumerate(self.words)})

    @classmethod
    def build(cls, documents: Sequence[Document], config: SummarizerConfig) -> Vocabulary:
        """The words of documents and summaries, the most frequent first; equals in the order of the alphabet."""
        counts = Counter(word for d in documents for word in (*d.words, *d.summary) if word not in SPECIAL)
        frequent = sorted((word for word, n in counts.items() if n >= config.min_count), key=lambda w: (-counts[w], w))
        return cls((*SPECIAL, *frequent[: config.vocabulary]))

    def __len__(self) -> int:
        return len(self.words)

    def collate(self, documents: Sequence[Document], config: SummarizerConfig) -> Batch:
        """Raises ModelError for no document. What is longer than the config's source or target is cut, with a warning."""
        if not documents:
            raise ModelError("there is no document", remedy="Give at least one.")
        sources = [_cut(d.words, config.source, f"{d.id}: the document") for d in documents]
        targets = [_cut(d.summary, config.target, f"{d.id}: the summary") for d in documents]
        unknown = tuple(dict.fromkeys(w for words in sources for w in words if w not in self.index))
        extra = {word: len(self) + i for i, word in enumerate(unknown)}
        known = [[self.index.get(w, UNKNOWN) for w in words] for words in sources]
        extended = [[self.index.get(w, extra.get(w, UNKNOWN)) for w in words] for words in sources]
        before = [[START, *(self.index.get(w, UNKNOWN) for w in words)] for words in targets]
        # A word that is unknown and not in this document cannot be said: <unk> is wanted there.
        wanted = [
            [*(self.index.get(w, extra.get(w, UNKNOWN) if w in own else UNKNOWN) for w in words), STOP]
            for words, own in zip(targets, map(set, sources))
        ]
        source = _pad(known)
        return Batch(source, _pad(extended), source != PAD, _pad(before), _pad(wanted), unknown)

    def word(self, index: int, batch: Batch) -> str:
        """Of an extended id."""
        return self.words[index] if index < len(self) else batch.unknown[index - len(self)]


def _cut(words: Sequence[str], most: int, what: str) -> Sequence[str]:
    if len(words) > most:
        warnings.warn(f"{what} has {len(words)} tokens; {most} of them are read", stacklevel=3)
    return words[:most]


def _pad(rows: Sequence[Sequence[int]]) -> Tensor:
    found = torch.full((len(rows), max(map(len, rows))), PAD)
    for i, row in enumerate(rows):
        found[i, : len(row)] = torch.tensor(row)
    return found


class MultiHeadAttention(nn.Module):
    """softmax(Q K^T / sqrt(d_h)) V of every head, side by side through a matrix. normalisers: one for each head."""

    def __init__(self, d_model: int, normalisers: tuple[str, ...], dropout: float):
        super().__init__()
        self.normalisers, self.heads, self.dropout = normalisers, len(normalisers), dropout
        self.query, self.key, self.value, self.output = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(
        self, x: Tensor, y: Tensor, mask: Tensor, gate: Tensor | None = None, weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """x [B, Q, d] asks, y [B, T, d] is attended to where mask ([B, 1 or Q, T]) is True -> ([B, Q, d], weights [B, H, Q, T]).

        gate: [H], what every head's context is multiplied by; weights: [B, H, Q, T], to be used instead of its own.
        """
        query, key, value = (
            layer(z).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer, z in ((self.query, x), (self.key, y), (self.value, y))
        )
        if weights is None:
            scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
            weights = self._normalise(scores, mask[:, None].expand_as(scores))
        contexts = F.dropout(weights, self.dropout, self.training) @ value
        if gate is not None:
            contexts = contexts * gate[:, None, None]
        return self.output(contexts.transpose(1, 2).flatten(-2)), weights

    def _normalise(self, scores: Tensor, mask: Tensor) -> Tensor:
        kinds = set(self.normalisers)
        if len(kinds) == 1:
            return normalise(scores, mask, *kinds)
        found = scores.new_empty(scores.shape)
        for kind in kinds:
            own = [h for h, name in enumerate(self.normalisers) if name == kind]
            found[:, own] = normalise(scores[:, own], mask[:, own], kind)
        return found


LEAST = 1e-20  # is added to a probability before its logarithm: an impossible word costs 46.05, not infinity


@dataclass(frozen=True)
class Output:
    """probs [B, Q, V + o] over the extended vocabulary; copying [B, Q], p; weights: block ('enc.0', 'cross.1', ...) ->
    [B, H, Q or T, T]."""

    probs: Tensor
    copying: Tensor
    weights: dict[str, Tensor]


@dataclass(frozen=True)
class Change:
    """What is to be other than the network's own. gates: block -> [H], on contexts; weights: block -> [B, H, Q, T]; copy:
    [B, 1 or Q, T] in the place of the copy head's attention, for copying alone."""

    gates: Mapping[str, Tensor] | None = None
    weights: Mapping[str, Tensor] | None = None
    copy: Tensor | None = None

    def of(self, block: str) -> tuple[Tensor | None, Tensor | None]:
        return (self.gates or {}).get(block), (self.weights or {}).get(block)


class Layer(nn.Module):
    """Self-attention, in the decoder attention over the document, and a feed-forward; norms first."""

    def __init__(self, config: SummarizerConfig, own: tuple[str, ...], cross: tuple[str, ...] | None):
        super().__init__()
        d = config.d_model
        self.own = MultiHeadAttention(d, own, config.dropout)
        self.cross = MultiHeadAttention(d, cross, config.dropout) if cross else None
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(3 if cross else 2))
        self.feedforward = nn.Sequential(
            nn.Linear(d, config.d_ff), nn.ReLU(), nn.Dropout(config.dropout), nn.Linear(config.d_ff, d)
        )
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x, mask, own=(None, None), memory=None, memory_mask=None, cross=(None, None)):
        """own, cross: (gate, weights) of the two attentions -> (x, weights, weights over the document or None)."""
        normed = self.norms[0](x)
        found, weights = self.own(normed, normed, mask, *own)
        x, over = x + self.dropout(found), None
        if self.cross is not None:
            found, over = self.cross(self.norms[1](x), memory, memory_mask, *cross)
            x = x + self.dropout(found)
        return x + self.dropout(self.feedforward(self.norms[-1](x))), weights, over


class Summarizer(nn.Module):
    """Documents -> probabilities of every word of their summaries, given the words before."""

    def __init__(self, config: SummarizerConfig, vocabulary: Vocabulary):
        """Raises ModelError where d_model is no multiple of heads."""
        super().__init__()
        self.config, self.vocabulary = config, vocabulary
        d = config.d_model
        if d % config.heads:
            raise ModelError(
                f"{d} units cannot be shared by {config.heads} heads", remedy="Give d_model a multiple of heads."
            )
        self.embed = nn.Embedding(len(vocabulary), d, padding_idx=PAD)
        nn.init.normal_(self.embed.weight, std=d**-0.5)
        self.dropout = nn.Dropout(config.dropout)
        plain = ("softmax",) * config.heads
        encoder, cross = normalisers(config)
        self.encoder = nn.ModuleList(Layer(config, kinds, None) for kinds in encoder)
        self.decoder = nn.ModuleList(Layer(config, plain, kinds) for kinds in cross)
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(2))
        self.say = nn.Linear(d, len(vocabulary))
        self.copy = nn.Linear(d, 1)

    @property
    def blocks(self) -> tuple[str, ...]:
        """Where heads are measured and gated; the decoder's attention to itself is left out [P]."""
        layers = range(self.config.layers)
        return (*(f"enc.{i}" for i in layers), *(f"cross.{i}" for i in layers))

    @property
    def heads(self) -> tuple[str, ...]:
        return tuple(f"{block}.{h}" for block in self.blocks for h in range(self.config.heads))

    def forward(self, batch: Batch, change: Change = Change()) -> Output:  # noqa: B008 (frozen)
        memory, weights = self.encode(batch, change)
        probs, copying, over = self.decode(batch, memory, batch.before, change)
        return Output(probs, copying, weights | over)

    def encode(self, batch: Batch, change: Change = Change()) -> tuple[Tensor, dict[str, Tensor]]:  # noqa: B008
        """(memory [B, T, d], the encoder's weights)."""
        x, weights = self._embed(batch.source), {}
        for i, layer in enumerate(self.encoder):
            x, weights[f"enc.{i}"], _ = layer(x, batch.mask[:, None], change.of(f"enc.{i}"))
        return self.norms[0](x), weights

    def decode(
        self,
        batch: Batch,
        memory: Tensor,
        before: Tensor,
        change: Change = Change(),  # noqa: B008
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Probabilities of what follows each of the words before [B, Q] -> ([B, Q, V + o], p [B, Q], cross weights)."""
        q = before.shape[1]
        past = torch.ones(q, q, dtype=torch.bool, device=before.device).tril()[None]
        x, weights = self._embed(before), {}
        for i, layer in enumerate(self.decoder):
            block = f"cross.{i}"
            x, _, weights[block] = layer(x, past, (None, None), memory, batch.mask[:, None], change.of(block))
        y = self.norms[1](x)
        scores = self.say(y)
        scores[..., [PAD, START]] = -torch.inf  # never wanted
        copying = torch.sigmoid(self.copy(y))
        attention = weights[block][:, 0] if change.copy is None else change.copy.expand(-1, q, -1)
        probs = torch.zeros(
            *scores.shape[:2], len(self.vocabulary) + len(batch.unknown), dtype=x.dtype, device=x.device
        )
        probs[..., : len(self.vocabulary)] = (1 - copying) * torch.softmax(scores, -1)
        places = batch.extended[:, None].expand(-1, q, -1)
        return probs.scatter_add(2, places, copying * attention), copying[..., 0], weights

    def loss(self, batch: Batch, change: Change = Change()) -> Tensor:  # noqa: B008
        """Mean of -log P of every word of the summaries and of their ends."""
        probs = self(batch, change).probs.gather(2, batch.target[..., None])[..., 0]
        return -torch.log(probs + LEAST)[batch.target_mask].mean()

    def _embed(self, ids: Tensor) -> Tensor:
        x = self.embed(ids) * math.sqrt(self.config.d_model)
        return self.dropout(x + positions(ids.shape[1], self.config.d_model, x))


def normalisers(config: SummarizerConfig) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Of every head of the encoder's layers and of the decoder's attention over the document."""
    kinds = (config.normaliser, "softmax")

    def layer(dense: int) -> tuple[str, ...]:
        return (kinds[1],) * dense + (kinds[0],) * (config.heads - dense)

    dense = {"none": config.heads, "encoder": config.heads}.get(config.sparse, 0)
    top = {"none": config.heads, "encoder": config.heads, "but-top": config.heads, "but-copy": 1}.get(config.sparse, 0)
    encoder = [layer(config.heads if config.sparse == "none" else 0)] * config.layers
    return encoder, [layer(dense)] * (config.layers - 1) + [layer(top)]


def positions(length: int, size: int, like: Tensor) -> Tensor:
    """[length, size]: sinusoids (Vaswani et al. 2017)."""
    place = torch.arange(length, device=like.device, dtype=like.dtype)[:, None]
    rate = torch.exp(torch.arange(0, size, 2, device=like.device, dtype=like.dtype) * (-math.log(10_000.0) / size))
    return torch.stack([torch.sin(place * rate), torch.cos(place * rate)], -1).flatten(-2)[:, :size]


COPY = "copy"


def exact(model: Summarizer) -> Summarizer:
    """A copy in float64 for probes, as of the classifiers: near-ties stay what they are."""
    return copy.deepcopy(model).double().eval()


@torch.no_grad()
def view(model: Summarizer, batch: Batch, block: str, examples: Sequence[int] = ()) -> AttentionView:
    """weights [B, H, Q, T] of a block ('enc.0', 'cross.1'); U steps of the summary, its end too; C the extended vocabulary.

    Other weights are used wherever the block's are: where its first head is the one that copies, for copying too. block "copy":
    that head alone, and only what is copied changes. Raises ModelError for a block there is not.
    """
    if block not in (*model.blocks, COPY):
        raise ModelError(f"there is no attention {block!r}", remedy=f"One of {', '.join((*model.blocks, COPY))}.")
    top = f"cross.{model.config.layers - 1}"
    inside = top if block == COPY else block
    found, values = _values(model, batch, inside)
    weights, heads = found.weights[inside], [f"{inside}.{h}" for h in range(model.config.heads)]
    if block == COPY:
        weights, values, heads = weights[:, :1], values[:, :1], [COPY]
    memory = None if block.startswith("enc") else model.encode(batch)[0]

    @torch.no_grad()
    def one(given: Tensor) -> Tensor:
        change = Change(copy=given[:, 0]) if block == COPY else Change(weights={block: given})
        if memory is None:
            return model(batch, change).probs
        return model.decode(batch, memory, batch.before, change)[0]

    def predict(given: Tensor) -> Outcome:
        given = given.to(weights.dtype)
        probs = one(given) if given.dim() == 4 else torch.stack([one(w) for w in given])
        decision = probs.argmax(-1)
        right = ((decision == batch.target) & batch.target_mask).sum(-1)
        score = torch.stack([right, batch.target_mask.sum(-1).expand_as(right)], dim=-1).double()
        return Outcome(probs, batch.target_mask, decision, score)

    asking = batch.mask if block.startswith("enc") else batch.target_mask
    return AttentionView(weights, values, batch.mask, asking, heads, predict, tuple(examples))


def _values(model: Summarizer, batch: Batch, block: str):
    """(the output, what the block's heads mix [B, H, T, d / H])."""
    kind, number = block.split(".")
    layer = model.encoder[int(number)].own if kind == "enc" else model.decoder[int(number)].cross
    kept: list[Tensor] = []
    hook = layer.value.register_forward_hook(lambda module, given, out: kept.append(out))
    try:
        found = model(batch)
    finally:
        hook.remove()
    return found, kept[0].unflatten(-1, (layer.heads, -1)).transpose(1, 2)
