"""The summarizer: a transformer that writes words of its vocabulary or copies words of the document (Baan et al. 2019).

    g = softmax(W y)    p = sigmoid(w . y + b)    P(word) = (1 - p) g(word) + p sum over the places j of the word of a_j

The probabilities are over the vocabulary and the unknown words of the documents. a is the attention of the copy head, which is
the first head over the document in the decoder's last layer [C]. So a gate on its context does not change what is copied.

This file has the model, the view that the probes have of it, and its training. Sources: [P] Baan et al. 2019
[C] OpenNMT's page for the model, [D] our decision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, cast

import torch
from torch import Tensor, nn

from lalkit.config import Count, CountOrZero, Layers, Number, Seed, Settings, Size
from lalkit.errors import ModelError
from lalkit.network.batches import pad
from lalkit.network.encoder import Change, HookedModule, sinusoids
from lalkit.network.label_attention import normalise
from lalkit.probes.view import AttentionView, Outcome, judged
from lalkit.studies import frame
from lalkit.studies.frame import PADDING, UNKNOWN, Trained, in_order
from lalkit.studies.texts import Text

# Where attention is sparse: nowhere; in the encoder; everywhere except in the last layer's heads over the document; everywhere
# except in the copy head; everywhere ([P] section 5).
Sparse = Literal["none", "encoder", "but-top", "but-copy", "all"]
START, STOP = UNKNOWN + 1, UNKNOWN + 2
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")  # by their ids
LEAST = 1e-20  # added to a probability before its logarithm: an impossible word costs 46.05 instead of infinity
COPY = "copy"  # the name of the copying in views
GROUP = 100  # documents in a batch of measuring


@dataclass(frozen=True)
class SummarizerConfig(Settings):
    """The settings of one summarizer and of its training. They are saved in the folder of its run. The defaults fit a CPU [D]."""

    layers: Layers = 2  # of the encoder, and of the decoder; [P] 4
    heads: Size = 4  # [P] 8
    d_model: Size = 64  # [P] 512; with 96 training takes 1.5 times as long, and 64 is enough for the news
    d_ff: Size = 256  # [C] 2048
    sparse: Sparse = "none"
    # Of the heads that `sparse` names. All others have softmax.
    normaliser: Literal["softmax", "sparsemax", "entmax15"] = "sparsemax"
    min_count: CountOrZero = 4  # [D] rarer words of the training part are unknown: they can only be copied
    seed: Seed = 1
    epochs: Count = 12  # [D]
    batch: Count = 50  # [D]
    rate: Number = 1e-3  # [D] Adam; [C] noam 2, warm-up 8000
    clip: Number = 1.0  # [D]


# ---------------------------------------------------------------- batches


@dataclass(frozen=True)
class Batch:
    """B documents of at most T words with summaries of at most Q - 1 words.

    There are V words in the vocabulary and o unknown words in the batch. Extended ids are below V + o, so that unknown
    words can be copied. source [B, T]: known ids; extended [B, T]: extended ids; mask [B, T]: True where there is a word;
    before [B, Q]: known ids of START and the summary; target [B, Q]: extended ids of the summary and STOP, then padding;
    unknown: the o words, in the order of their ids.
    """

    source: Tensor
    extended: Tensor
    mask: Tensor
    before: Tensor
    target: Tensor
    unknown: tuple[str, ...]

    @property
    def target_mask(self) -> Tensor:
        return self.target != PADDING

    @property
    def words(self) -> Tensor:
        """[B, Q], True for the words of the summary, without its end."""
        return self.target_mask & (self.target != STOP)


@dataclass(frozen=True)
class Vocabulary:
    """Words in the order of their ids. The four special ones are first."""

    words: tuple[str, ...]

    @cached_property
    def index(self) -> dict[str, int]:
        """The ids of words. A word of a document that looks like a special one, such as </s>, is not in it, and can be copied."""
        return {word: i for i, word in enumerate(self.words) if i >= len(SPECIAL)}

    @classmethod
    def build(cls, documents: Sequence[Text], config: SummarizerConfig) -> Vocabulary:
        """Collect the words of documents and summaries: the most frequent first, equally frequent ones by the alphabet."""
        counts = frame.frequent((text for d in documents for text in (d.words, d.summary)), config.min_count)
        words = sorted(counts.keys() - set(SPECIAL), key=lambda word: (-counts[word], word))
        return cls((*SPECIAL, *words))

    def __len__(self) -> int:
        return len(self.words)

    def word(self, index: int, batch: Batch) -> str:
        """Return the word of an extended id."""
        return self.words[index] if index < len(self) else batch.unknown[index - len(self)]


# ---------------------------------------------------------------- the model


class MultiHeadAttention(HookedModule):
    """softmax(Q K^T / sqrt(d_h)) V of every head, side by side, times a matrix. normalisers: one for each head.

    It always returns its weights, and lets other code change them, the values and the contexts. torch's layer does not.
    """

    points = {"attention": "batch head query key", "values": "batch head key dim", "contexts": "batch head query dim"}

    def __init__(self, d_model: int, normalisers: tuple[str, ...]):
        super().__init__()
        self.normalisers, self.heads = normalisers, len(normalisers)
        self.query, self.key, self.value, self.output = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x: Tensor, y: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return ([B, Q, d], weights [B, H, Q, T]) of queries x [B, Q, d] that attend to y [B, T, d].

        mask: [B, 1 or Q, T], True where a query may attend.
        """
        pairs = zip((self.query, self.key, self.value), (x, y, y))
        query, key, value = (layer(z).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer, z in pairs)
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        mask, weights = mask[:, None].expand_as(scores), scores.new_empty(scores.shape)
        for kind in set(self.normalisers):
            heads = [h for h, name in enumerate(self.normalisers) if name == kind]
            weights[:, heads] = normalise(scores[:, heads], mask[:, heads], kind)
        weights, value = self.hook("attention", weights), self.hook("values", value)
        contexts = self.hook("contexts", weights @ value)
        return self.output(contexts.transpose(1, 2).flatten(-2)), weights


class Output(NamedTuple):
    """probs [B, Q, V + o] over the extended vocabulary; weights: [B, H, Q or T, T] of each block ('enc.0', 'cross.1' ...)."""

    probs: Tensor
    weights: dict[str, Tensor]


class Layer(nn.Module):
    """Self-attention, in the decoder also attention over the document, then a feed-forward layer. Each begins with its norm."""

    def __init__(self, config: SummarizerConfig, own: tuple[str, ...], cross: tuple[str, ...] | None):
        super().__init__()
        d, wide = config.d_model, config.d_ff
        self.own = MultiHeadAttention(d, own)
        self.cross = MultiHeadAttention(d, cross) if cross else None
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(3 if cross else 2))
        self.feedforward = nn.Sequential(nn.Linear(d, wide), nn.ReLU(), nn.Linear(wide, d))

    def forward(self, x, mask, memory=None, memory_mask=None):
        """Return (x, weights): those over the document, where there are any."""
        normed = self.norms[0](x)
        context, weights = self.own(normed, normed, mask)
        x = x + context
        if self.cross is not None:
            context, weights = self.cross(self.norms[1](x), memory, memory_mask)
            x = x + context
        return x + self.feedforward(self.norms[-1](x)), weights


class Summarizer(Trained):
    """Documents -> probabilities of every word of their summaries, given the words before it.

    copied: the attention by which words are copied, that of the copy head. Raises ModelError if d_model is not a multiple of
    heads.
    """

    form, Config, Vocabulary = "lalkit-summarizer-3", SummarizerConfig, Vocabulary
    points = {"copied": "batch query key"}

    def __init__(self, config: SummarizerConfig, vocabulary: Vocabulary):  # type: ignore[valid-type]
        super().__init__(config, vocabulary)
        d = config.d_model
        if d % config.heads:
            problem = f"{d} units cannot be shared by {config.heads} heads"
            raise ModelError(problem, remedy="Give d_model a multiple of heads.")
        self.embed = nn.Embedding(len(vocabulary), d, padding_idx=PADDING)
        nn.init.normal_(self.embed.weight, std=d**-0.5)
        encoder, cross = normalisers(config)
        self.encoder = nn.ModuleList(Layer(config, kinds, None) for kinds in encoder)
        self.decoder = nn.ModuleList(Layer(config, ("softmax",) * config.heads, kinds) for kinds in cross)
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(2))
        self.say = nn.Linear(d, len(vocabulary))
        self.copy = nn.Linear(d, 1)

    @property
    def blocks(self) -> tuple[str, ...]:
        """The blocks whose heads are measured and gated. The decoder's attention to itself is left out [P]."""
        layers = range(self.config.layers)
        return (*(f"enc.{i}" for i in layers), *(f"cross.{i}" for i in layers))

    @property
    def heads(self) -> tuple[str, ...]:
        return tuple(f"{block}.{h}" for block in self.blocks for h in range(self.config.heads))

    @property
    def copying(self) -> str:
        """The block whose first head copies."""
        return self.blocks[-1]

    def collate(self, documents: Sequence[Text]) -> Batch:
        """Return a batch of documents, where the weights are."""
        size, index = len(self.vocabulary), self.vocabulary.index
        unknown = tuple(dict.fromkeys(w for d in documents for w in d.words if w not in index))
        ids = index | {word: size + i for i, word in enumerate(unknown)}
        known = [[index.get(w, UNKNOWN) for w in d.words] for d in documents]
        extended = [[ids[w] for w in d.words] for d in documents]
        before = [[START, *(index.get(w, UNKNOWN) for w in d.summary)] for d in documents]
        # An unknown word that is not in this document cannot be written. The target is then <unk>.
        wanted = [[*(ids[w] if w in index or w in d.words else UNKNOWN for w in d.summary), STOP] for d in documents]
        device = self.say.weight.device
        source, places, words, target = (pad(rows, device=device) for rows in (known, extended, before, wanted))
        return Batch(source, places, source != PADDING, words, target, unknown)

    def attention(self, block: str) -> MultiHeadAttention:
        """Return the attention layer of a block."""
        kind, number = block.split(".")
        layer = self.encoder[int(number)].own if kind == "enc" else self.decoder[int(number)].cross
        return cast(MultiHeadAttention, layer)

    def forward(self, batch: Batch) -> Output:
        memory, weights = self.encode(batch)
        probs, over = self.decode(batch, memory, batch.before)
        return Output(probs, weights | over)

    def encode(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Return (memory [B, T, d], the weights of the encoder)."""
        x, weights = self._embed(batch.source), {}
        for i, layer in enumerate(self.encoder):
            x, weights[f"enc.{i}"] = layer(x, batch.mask[:, None])
        return self.norms[0](x), weights

    def decode(self, batch: Batch, memory: Tensor, before: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Return (probabilities [B, Q, V + o] of the words that follow `before`, weights over the document)."""
        q = before.shape[1]
        past = torch.ones(q, q, dtype=torch.bool, device=before.device).tril()[None]
        x, weights = self._embed(before), {}
        for i, layer in enumerate(self.decoder):
            x, weights[f"cross.{i}"] = layer(x, past, memory, batch.mask[:, None])
        y = self.norms[1](x)
        scores = self.say(y)
        scores[..., [PADDING, START]] = -torch.inf  # never wanted
        copying = torch.sigmoid(self.copy(y))
        attention = self.hook("copied", weights[self.copying][:, 0])
        probs = x.new_zeros(*scores.shape[:2], len(self.vocabulary) + len(batch.unknown))
        probs[..., : len(self.vocabulary)] = (1 - copying) * torch.softmax(scores, -1)
        places = batch.extended[:, None].expand(-1, q, -1)
        return probs.scatter_add(2, places, copying * attention), weights

    def loss(self, batch: Batch) -> Tensor:
        """Return the mean of -log P over every word of the summaries and their ends."""
        probs = self(batch).probs.gather(2, batch.target[..., None])[..., 0]
        return -torch.log(probs + LEAST)[batch.target_mask].mean()

    @torch.inference_mode()
    def score(self, documents: Sequence[Text]) -> float:
        """Return the geometric mean of the probabilities of all words of the true summaries, their ends included."""
        self.eval()
        total, words = 0.0, 0
        for group in in_order(documents, GROUP):
            batch = self.collate(group)
            count = int(batch.target_mask.sum())
            total, words = total + float(self.loss(batch)) * count, words + count
        return math.exp(-total / words)

    def optimizer(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), self.config.rate, fused=True)

    def _embed(self, ids: Tensor) -> Tensor:
        x = self.embed(ids) * math.sqrt(self.config.d_model)
        return x + sinusoids(ids.shape[1], self.config.d_model, x)

    @torch.inference_mode()
    def summarize(self, batch: Batch, most: int = 100) -> list[list[str]]:
        """Return the words of the summary of every document of a batch, at most `most`, each the likeliest after those before."""
        self.eval()
        memory, _ = self.encode(batch)
        before = batch.source.new_full((len(memory), 1), START)
        summary = batch.source.new_zeros(len(memory), 0)
        ended = batch.mask.new_zeros(len(memory))
        for _ in range(most):
            probs, _ = self.decode(batch, memory, before)
            word = probs[:, -1].argmax(-1).masked_fill(ended, PADDING)
            ended |= word == STOP
            summary = torch.cat([summary, word[:, None]], 1)
            before = torch.cat([before, word.masked_fill(word >= len(self.vocabulary), UNKNOWN)[:, None]], 1)
            if ended.all():
                break
        return [[self.vocabulary.word(w, batch) for w in row if w not in (PADDING, STOP)] for row in summary.tolist()]


def normalisers(config: SummarizerConfig) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Return the normaliser of every head: of the encoder's layers, and of the decoder's attention over the document."""

    def layer(dense: int) -> tuple[str, ...]:
        return ("softmax",) * dense + (config.normaliser,) * (config.heads - dense)

    everything, sparse = config.heads, config.sparse
    encoder = layer(everything if sparse == "none" else 0)
    below = layer(everything if sparse in ("none", "encoder") else 0)
    top = layer({"but-copy": 1, "all": 0}.get(sparse, everything))
    return [encoder] * config.layers, [below] * (config.layers - 1) + [top]


# ---------------------------------------------------------------- the model as the probes see it


@torch.no_grad()
def view(model: Summarizer, batch: Batch, block: str, examples: Sequence[int] = ()) -> AttentionView:
    """Return one block of heads as the probes see it. The decisions are the words of the true summary, each given those before.

    weights [B, H, Q, T] of a block ('enc.0', 'cross.1'); U steps of the summary, its end included; C extended ids. Other
    weights replace those of the block everywhere. If its first head is the copy head, they also change what is copied. The block
    "copy" is that head alone, and only what is copied changes.
    """
    inside, in_encoder = model.copying if block == COPY else block, block.startswith("enc")
    layer, values = model.attention(inside), []
    with layer.hooked(values=lambda value: values.append(value) or value):
        weights = model(batch).weights[inside]
    heads, memory = [f"{inside}.{h}" for h in range(layer.heads)], None if in_encoder else model.encode(batch)[0]
    if block == COPY:
        weights, values, heads = weights[:, :1], [values[0][:, :1]], [COPY]

    @torch.no_grad()
    def probabilities(given: Tensor) -> Tensor:
        changed = (model, {"copied": lambda _: given[:, 0]}), (layer, {"attention": lambda _: given})
        with Change([changed[block != COPY]]):
            return model(batch).probs if in_encoder else model.decode(batch, memory, batch.before)[0]

    def predict(given: Tensor) -> Outcome:
        given = given.to(weights.dtype)
        probs = probabilities(given) if given.dim() == 4 else torch.stack([probabilities(w) for w in given])
        return judged(probs, batch.target_mask, batch.target)

    queries = batch.mask if in_encoder else batch.target_mask
    return AttentionView(weights, values[0], batch.mask, queries, heads, tuple(examples), None, predict)
