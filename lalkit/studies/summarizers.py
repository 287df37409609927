"""The summarizer: a transformer that writes words of its vocabulary or copies words of the document (Baan et al. 2019).

    g = softmax(W y)    p = sigmoid(w . y + b)    P(word) = (1 - p) g(word) + p sum over the places j of the word of a_j

The probabilities are over the vocabulary and the unknown words of the documents. a is the attention of the copy head, which is
the first head over the document in the decoder's last layer [C]. So a gate on its context does not change what is copied.

This file has the model, the view that the probes have of it, its training and its pruning by gates. Sources: [P] Baan et al.
2019, [C] OpenNMT's page for the model, [D] our decision.
"""

from __future__ import annotations

import copy
import hashlib
import math
import random
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

import pandas as pd
import torch
import torch.nn.functional as F
from safetensors.torch import save
from torch import Tensor, nn

from lalkit.config import Count, CountOrZero, Layers, Number, Seed, Settings, Share, Size, from_dict, to_dict
from lalkit.errors import CorpusError, ModelError
from lalkit.evaluation.provenance import parts_hash
from lalkit.network.label_attention import normalise
from lalkit.probes.view import AttentionView, Outcome, judged
from lalkit.studies import frame
from lalkit.studies.frame import PADDING, UNKNOWN, in_order, pad
from lalkit.studies.summarizer_data import Document, Documents

# Where attention is sparse: nowhere; in the encoder; everywhere except in the last layer's heads over the document; everywhere
# except in the copy head; everywhere ([P] section 5).
Sparse = Literal["none", "encoder", "but-top", "but-copy", "all"]
START, STOP = UNKNOWN + 1, UNKNOWN + 2
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")  # by their ids
LEAST = 1e-20  # added to a probability before its logarithm: an impossible word costs 46.05 instead of infinity
COPY = "copy"  # the name of the copying in views
FORMAT, GATED_FORMAT = "lalkit-summarizer-1", "lalkit-gated-summarizer-1"
GROUP = 100  # documents in a batch of measuring


@dataclass(frozen=True)
class SummarizerConfig(Settings):
    """The settings of one summarizer and of its training. They are saved in the folder of its run. The defaults fit a CPU [D]."""

    layers: Layers = 2  # of the encoder, and of the decoder; [P] 4
    heads: Size = 4  # [P] 8
    d_model: Size = 64  # [P] 512; with 96 training takes 1.5 times as long, and 64 is enough for the news
    d_ff: Size = 256  # [C] 2048
    dropout: Share = 0.0  # [C] 0.2; it takes a third of a step on a CPU, and made-up news need none
    sparse: Sparse = "none"
    # Of the heads that `sparse` names. All others have softmax.
    normaliser: Literal["softmax", "sparsemax", "entmax15"] = "sparsemax"
    vocabulary: CountOrZero = 50_000  # [C] the most frequent words; all others can only be copied
    min_count: CountOrZero = 4  # [D] rarer words of the training part are unknown too
    source: Size = 400  # [C] tokens of a document; more are cut off
    target: Size = 100  # [C]
    seed: Seed = 1
    epochs: Count = 12  # [D]
    batch: Count = 50  # [D]
    rate: Number = 1e-3  # [D] Adam; [C] noam 2, warm-up 8000
    clip: Number = 1.0  # [D]


SMALL = SummarizerConfig()
# The paper's size. Adam's rate stays constant, where the paper lets it rise and fall.
PAPER = SummarizerConfig(layers=4, heads=8, d_model=512, d_ff=2048, dropout=0.2, min_count=0)


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


@dataclass(frozen=True)
class Vocabulary:
    """Words in the order of their ids. The four special ones are first."""

    words: tuple[str, ...]

    @cached_property
    def index(self) -> dict[str, int]:
        """The ids of words. A word of a document that looks like a special one, such as </s>, is not in it, and can be copied."""
        return {word: i for i, word in enumerate(self.words) if i >= len(SPECIAL)}

    @classmethod
    def build(cls, documents: Sequence[Document], config: SummarizerConfig) -> Vocabulary:
        """Collect the words of documents and summaries: the most frequent first, equally frequent ones by the alphabet."""
        counts = frame.frequent((text for d in documents for text in (d.words, d.summary)), config.min_count)
        words = sorted(counts.keys() - set(SPECIAL), key=lambda word: (-counts[word], word))
        return cls((*SPECIAL, *words[: config.vocabulary]))

    def __len__(self) -> int:
        return len(self.words)

    def word(self, index: int, batch: Batch) -> str:
        """Return the word of an extended id."""
        return self.words[index] if index < len(self) else batch.unknown[index - len(self)]


def _cut(words: Sequence[str], most: int, setting: str) -> Sequence[str]:
    if len(words) > most:  # the text is always the same, so that Python shows it once
        warnings.warn(f"a text has more than {most} tokens, and the rest is not read; set `{setting}`", stacklevel=2)
    return words[:most]


# ---------------------------------------------------------------- the model


class MultiHeadAttention(nn.Module):
    """softmax(Q K^T / sqrt(d_h)) V of every head, side by side, times a matrix. normalisers: one for each head.

    It always returns its weights, every head can have a gate, and other weights can replace its own. torch's layer cannot.
    """

    def __init__(self, d_model: int, normalisers: tuple[str, ...], dropout: float):
        super().__init__()
        self.normalisers, self.heads, self.dropout = normalisers, len(normalisers), dropout
        self.query, self.key, self.value, self.output = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(
        self, x: Tensor, y: Tensor, mask: Tensor, gate: Tensor | None = None, weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return ([B, Q, d], weights [B, H, Q, T]).

        Args:
            x: The queries [B, Q, d].
            y: What they attend to [B, T, d].
            mask: [B, 1 or Q, T], True where a query may attend.
            gate: Factors [H] of the heads' contexts.
            weights: [B, H, Q, T], used instead of the layer's own weights.
        """
        pairs = zip((self.query, self.key, self.value), (x, y, y))
        query, key, value = (layer(z).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer, z in pairs)
        if weights is None:
            scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
            mask, weights = mask[:, None].expand_as(scores), scores.new_empty(scores.shape)
            for kind in set(self.normalisers):
                heads = [h for h, name in enumerate(self.normalisers) if name == kind]
                weights[:, heads] = normalise(scores[:, heads], mask[:, heads], kind)
        contexts = F.dropout(weights, self.dropout, self.training) @ value
        if gate is not None:
            contexts = contexts * gate[:, None, None]
        return self.output(contexts.transpose(1, 2).flatten(-2)), weights


@dataclass(frozen=True)
class Output:
    """probs [B, Q, V + o] over the extended vocabulary; weights: [B, H, Q or T, T] of each block ('enc.0', 'cross.1' ...)."""

    probs: Tensor
    weights: dict[str, Tensor]


@dataclass(frozen=True)
class Change:
    """Values that replace those of the network.

    gates: factors [H] of a block's contexts; weights: [B, H, Q, T] of a block; copy: [B, 1 or Q, T], used instead of the copy
    head's attention, but only for copying.
    """

    gates: Mapping[str, Tensor] | None = None
    weights: Mapping[str, Tensor] | None = None
    copy: Tensor | None = None

    def of(self, block: str) -> tuple[Tensor | None, Tensor | None]:
        return (self.gates or {}).get(block), (self.weights or {}).get(block)


UNCHANGED = Change()


class Layer(nn.Module):
    """Self-attention, in the decoder also attention over the document, then a feed-forward layer. Each begins with its norm."""

    def __init__(self, config: SummarizerConfig, own: tuple[str, ...], cross: tuple[str, ...] | None):
        super().__init__()
        d, wide = config.d_model, config.d_ff
        self.own = MultiHeadAttention(d, own, config.dropout)
        self.cross = MultiHeadAttention(d, cross, config.dropout) if cross else None
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(3 if cross else 2))
        self.dropout = nn.Dropout(config.dropout)
        self.feedforward = nn.Sequential(nn.Linear(d, wide), nn.ReLU(), nn.Dropout(config.dropout), nn.Linear(wide, d))

    def forward(self, x, mask, own=(None, None), memory=None, memory_mask=None, cross=(None, None)):
        """Return (x, weights, weights over the document or None). own, cross: (gate, weights) of the two attentions."""
        normed = self.norms[0](x)
        context, weights = self.own(normed, normed, mask, *own)
        x, over = x + self.dropout(context), None
        if self.cross is not None:
            context, over = self.cross(self.norms[1](x), memory, memory_mask, *cross)
            x = x + self.dropout(context)
        return x + self.dropout(self.feedforward(self.norms[-1](x))), weights, over


class Summarizer(nn.Module):
    """Documents -> probabilities of every word of their summaries, given the words before it.

    Raises ModelError if d_model is not a multiple of heads.
    """

    def __init__(self, config: SummarizerConfig, vocabulary: Vocabulary):
        super().__init__()
        self.config, self.vocabulary = config, vocabulary
        d = config.d_model
        if d % config.heads:
            problem = f"{d} units cannot be shared by {config.heads} heads"
            raise ModelError(problem, remedy="Give d_model a multiple of heads.")
        self.embed = nn.Embedding(len(vocabulary), d, padding_idx=PADDING)
        nn.init.normal_(self.embed.weight, std=d**-0.5)
        self.dropout = nn.Dropout(config.dropout)
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

    def collate(self, documents: Sequence[Document]) -> Batch:
        """Return a batch of documents, where the weights are.

        Texts longer than the config's source or target are cut, with a warning. Raises ModelError without documents.
        """
        if not documents:
            raise ModelError("there is no document", remedy="Give at least one.")
        size, index = len(self.vocabulary), self.vocabulary.index
        sources = [_cut(d.words, self.config.source, "source") for d in documents]
        targets = [_cut(d.summary, self.config.target, "target") for d in documents]
        unknown = tuple(dict.fromkeys(w for words in sources for w in words if w not in index))
        ids = index | {word: size + i for i, word in enumerate(unknown)}
        known = [[index.get(w, UNKNOWN) for w in words] for words in sources]
        extended = [[ids[w] for w in words] for words in sources]
        before = [[START, *(index.get(w, UNKNOWN) for w in words)] for words in targets]
        # An unknown word that is not in this document cannot be written. The target is then <unk>.
        wanted = [
            [*(ids[w] if w in index or w in source else UNKNOWN for w in words), STOP]
            for words, source in zip(targets, map(set, sources))
        ]
        device = self.say.weight.device
        source, places, words, target = (pad(rows, device=device) for rows in (known, extended, before, wanted))
        return Batch(source, places, source != PADDING, words, target, unknown)

    def attention(self, block: str) -> MultiHeadAttention:
        """Return the attention layer of a block."""
        kind, number = block.split(".")
        layer = self.encoder[int(number)].own if kind == "enc" else self.decoder[int(number)].cross
        return cast(MultiHeadAttention, layer)

    def forward(self, batch: Batch, change: Change = UNCHANGED) -> Output:
        memory, weights = self.encode(batch, change)
        probs, over = self.decode(batch, memory, batch.before, change)
        return Output(probs, weights | over)

    def encode(self, batch: Batch, change: Change = UNCHANGED) -> tuple[Tensor, dict[str, Tensor]]:
        """Return (memory [B, T, d], the weights of the encoder)."""
        x, weights = self._embed(batch.source), {}
        for i, layer in enumerate(self.encoder):
            x, weights[f"enc.{i}"], _ = layer(x, batch.mask[:, None], change.of(f"enc.{i}"))
        return self.norms[0](x), weights

    def decode(
        self, batch: Batch, memory: Tensor, before: Tensor, change: Change = UNCHANGED
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return (probabilities [B, Q, V + o] of the words that follow `before`, weights over the document)."""
        q = before.shape[1]
        past = torch.ones(q, q, dtype=torch.bool, device=before.device).tril()[None]
        x, weights = self._embed(before), {}
        for i, layer in enumerate(self.decoder):
            block = f"cross.{i}"
            x, _, weights[block] = layer(x, past, (None, None), memory, batch.mask[:, None], change.of(block))
        y = self.norms[1](x)
        scores = self.say(y)
        scores[..., [PADDING, START]] = -torch.inf  # never wanted
        copying = torch.sigmoid(self.copy(y))
        attention = weights[self.copying][:, 0] if change.copy is None else change.copy.expand(-1, q, -1)
        probs = x.new_zeros(*scores.shape[:2], len(self.vocabulary) + len(batch.unknown))
        probs[..., : len(self.vocabulary)] = (1 - copying) * torch.softmax(scores, -1)
        places = batch.extended[:, None].expand(-1, q, -1)
        return probs.scatter_add(2, places, copying * attention), weights

    def loss(self, batch: Batch, change: Change = UNCHANGED) -> Tensor:
        """Return the mean of -log P over every word of the summaries and their ends."""
        probs = self(batch, change).probs.gather(2, batch.target[..., None])[..., 0]
        return -torch.log(probs + LEAST)[batch.target_mask].mean()

    def _embed(self, ids: Tensor) -> Tensor:
        x = self.embed(ids) * math.sqrt(self.config.d_model)
        return self.dropout(x + positions(ids.shape[1], self.config.d_model, x))

    @torch.inference_mode()
    def summarize(self, batch: Batch, most: int = 100, change: Change = UNCHANGED) -> list[list[str]]:
        """Return the words of the summary of every document of a batch, each the likeliest after those before it.

        most: the most words; change: without `weights`, and with one row of `copy` for all queries.
        """
        self.eval()
        memory, _ = self.encode(batch, change)
        before = batch.source.new_full((len(memory), 1), START)
        summary = batch.source.new_zeros(len(memory), 0)
        ended = batch.mask.new_zeros(len(memory))
        for _ in range(most):
            probs, _ = self.decode(batch, memory, before, change)
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


def positions(length: int, size: int, like: Tensor) -> Tensor:
    """Return the sinusoids of positions, [length, size] (Vaswani et al. 2017)."""
    place = torch.arange(length, device=like.device, dtype=like.dtype)[:, None]
    rate = torch.exp(torch.arange(0, size, 2, device=like.device, dtype=like.dtype) * (-math.log(10_000.0) / size))
    return torch.stack([torch.sin(place * rate), torch.cos(place * rate)], -1).flatten(-2)[:, :size]


# ---------------------------------------------------------------- the model as the probes see it


@torch.no_grad()
def view(model: Summarizer, batch: Batch, block: str, examples: Sequence[int] = ()) -> AttentionView:
    """Return one block of heads as the probes see it. The decisions are the words of the true summary, each given those before.

    weights [B, H, Q, T] of a block ('enc.0', 'cross.1'); U steps of the summary, its end included; C extended ids. Other
    weights replace those of the block everywhere. If its first head is the copy head, they also change what is copied. The block
    "copy" is that head alone, and only what is copied changes. Raises ModelError for an unknown block.
    """
    if block not in (*model.blocks, COPY):
        raise ModelError(f"there is no attention {block!r}", remedy=f"One of {', '.join((*model.blocks, COPY))}.")
    inside = model.copying if block == COPY else block
    values, hook = [], lambda layer, inputs, output: values.append(output)
    with model.attention(inside).value.register_forward_hook(hook):
        weights = model(batch).weights[inside]
    value = values[0].unflatten(-1, (model.config.heads, -1)).transpose(1, 2)
    heads = [f"{inside}.{h}" for h in range(model.config.heads)]
    if block == COPY:
        weights, value, heads = weights[:, :1], value[:, :1], [COPY]
    in_encoder = block.startswith("enc")
    memory = None if in_encoder else model.encode(batch)[0]

    @torch.no_grad()
    def probabilities(given: Tensor) -> Tensor:
        change = Change(copy=given[:, 0]) if block == COPY else Change(weights={block: given})
        return model(batch, change).probs if in_encoder else model.decode(batch, memory, batch.before, change)[0]

    def predict(given: Tensor) -> Outcome:
        given = given.to(weights.dtype)
        probs = probabilities(given) if given.dim() == 4 else torch.stack([probabilities(w) for w in given])
        return judged(probs, batch.target_mask, batch.target)

    queries = batch.mask if in_encoder else batch.target_mask
    return AttentionView(weights, value, batch.mask, queries, heads, predict, tuple(examples))


def views(model: Summarizer, batch: Batch) -> Iterator[tuple[str, AttentionView]]:
    """Yield the name and the view of every block of heads, and then of the copying."""
    return ((block, view(model, batch, block)) for block in (*model.blocks, COPY))


# ---------------------------------------------------------------- training


def train(config: SummarizerConfig, data: Documents, out: str | Path, *, resume: bool = False) -> dict:
    """Leave the best summarizer in `out`, and return the state and history of the run (see `frame.fit`).

    It is chosen on dev by the probabilities of the words of true summaries. resume: Continue the run in `out`, if there is one.
    Raises ModelError if `out` holds a run with other settings or documents, and CorpusError for data without train or dev.
    """
    task = _task(FORMAT, data, to_dict(config))
    torch.manual_seed(config.seed)
    model = Summarizer(config, Vocabulary.build(data.train, config))
    optimizer = torch.optim.Adam(model.parameters(), config.rate, fused=True)

    def run_epoch(number: int) -> float:
        torch.manual_seed((config.seed << 20) + number)
        batches, clip = shuffled(data.train, config.batch, config.seed, number), ([*model.parameters()], config.clip)
        return frame.one_epoch(optimizer, batches, lambda group: model.loss(model.collate(group)), clip)

    return frame.fit(
        model, optimizer, out, task, epochs=config.epochs, run_epoch=run_epoch, score=lambda: likelihood(model, data.dev),
        kept={"vocabulary": model.vocabulary.words}, resume=resume,
    )  # fmt: skip


def _task(format: str, data: Documents, config: dict) -> dict:
    """Return what must be equal for a run to continue. It does not depend on where the documents are kept."""
    if not data.train or not data.dev:
        remedy = "Train on news, hf:NAME, or a folder of files."
        raise CorpusError("has no train part, or no dev part", where=data.name, remedy=remedy)
    texts = [(part, [(d.words, d.summary) for d in getattr(data, part)]) for part in ("train", "dev")]
    return {"format": format, "data": data.name, "data_sha256": parts_hash(texts), "config": config}


def shuffled(documents: Sequence[Document], size: int, seed: int, epoch: int) -> Iterator[list[Document]]:
    """Yield the batches of an epoch in a random order. Documents of similar length are together.

    The batches depend on the seed and on the number of the epoch alone.
    """
    draw = random.Random(f"{seed}-{epoch}")
    order = sorted(range(len(documents)), key=lambda i: (len(documents[i].words) + draw.random() * 4, i))
    groups = list(in_order(order, size))
    draw.shuffle(groups)
    yield from ([documents[i] for i in group] for group in groups)


@torch.inference_mode()
def likelihood(model: Summarizer, documents: Sequence[Document]) -> float:
    """Return the geometric mean of the probabilities of all words of the true summaries, their ends included."""
    model.eval()
    total, words = 0.0, 0
    for group in in_order(documents, GROUP):
        batch = model.collate(group)
        count = int(batch.target_mask.sum())
        total, words = total + float(model.loss(batch)) * count, words + count
    return math.exp(-total / words)


def load_summarizer(folder: str | Path) -> Summarizer:
    """Return the summarizer of a run. Raises ModelError unless the folder holds a complete summarizer of lalkit."""
    content, tensors = frame.read_run(folder, FORMAT)
    config = from_dict(SummarizerConfig, content["config"], f"{folder}/model.json: config")
    return frame.fill(Summarizer(config, Vocabulary(tuple(content["vocabulary"]))), tensors, folder)


# ---------------------------------------------------------------- pruning: a gate on every head, and a price for open gates

BETA, LOW, HIGH = 0.33, -0.1, 1.1  # the temperature, and the two ends to which the concrete distribution is stretched
EDGE = 1e-6  # the uniform draw is from EDGE to 1 - EDGE
FIRST_EPOCH = 10_000  # pruning numbers its epochs from here, so that its random numbers are not those of the training


class HardConcreteGate(nn.Module):
    """Gates [n] in [0, 1] that can close exactly, and can be learned by gradients (hard-concrete, Louizos et al. 2018).

    In training they are drawn, once for each batch. In evaluation a gate is clip(1.2 sigmoid(log a) - 0.1, 0, 1): exactly 0 if
    log a <= -log 11, and exactly 1 if log a >= log 11 (2.398).
    """

    def __init__(self, size: int):
        super().__init__()
        self.log_a = nn.Parameter(torch.full((size,), 2.0))

    def forward(self) -> Tensor:
        """Return the gates [n]."""
        s = torch.sigmoid(self.log_a)
        if self.training:
            u = torch.rand_like(self.log_a).clamp(EDGE, 1 - EDGE)
            s = torch.sigmoid((torch.log(u) - torch.log1p(-u) + self.log_a) / BETA)
        return (s * (HIGH - LOW) + LOW).clamp(0, 1)

    def open(self) -> Tensor:
        """Return P(gate > 0) = sigmoid(log a + beta log 11), [n]. A loss adds lambda times its mean."""
        return torch.sigmoid(self.log_a - BETA * math.log(-LOW / HIGH))


@dataclass(frozen=True)
class PruneConfig(Settings):
    """lam: the price of an open head; None: no gates, the control. All other settings are those of the summarizer."""

    lam: Number | None = 0.3
    epochs: Count = 6  # [D]
    rate: Number = 5e-4  # [D] of the weights: half of the rate in training
    gate_rate: Number = 0.05  # [D] of log a
    seed: Seed = 1


class Gated(nn.Module):
    """A summarizer with a gate on every head that is measured. Its `forward` is the summarizer's, through the gates."""

    def __init__(self, summarizer: Summarizer, gated: bool = True):
        super().__init__()
        self.summarizer = summarizer
        blocks = summarizer.blocks if gated else ()
        with summarizer.say.weight.device:  # the name of a module cannot have a dot
            gates = {b.replace(".", "-"): HardConcreteGate(summarizer.config.heads) for b in blocks}
        self.gates = nn.ModuleDict(gates)

    def change(self) -> Change:
        """Return the gates as they are now: drawn in training, fixed in evaluation."""
        return Change(gates={name.replace("-", "."): gate() for name, gate in self.gates.items()})

    def forward(self, batch: Batch) -> Output:
        return self.summarizer(batch, self.change())

    def price(self) -> Tensor:
        """Return the mean over all gated heads of P(open). It is 0 without gates."""
        opened = [cast(Any, gate).open() for gate in self.gates.values()]
        return torch.cat(opened).mean() if opened else self.summarizer.say.weight.new_zeros(())

    @torch.no_grad()
    def table(self) -> pd.DataFrame:
        """Return head, gate (its fixed value), and kept (whether that is above 0)."""
        gates = self.eval().change().gates
        rows = [(f"{b}.{h}", float(g), bool(g > 0)) for b, values in gates.items() for h, g in enumerate(values)]
        return pd.DataFrame(rows, columns=["head", "gate", "kept"])

    @torch.no_grad()
    def cut(self) -> Summarizer:
        """Return a summarizer without gates. The outputs of closed heads are removed, those of other heads are scaled."""
        self.eval()
        model = copy.deepcopy(self.summarizer)
        size = model.config.d_model // model.config.heads
        for block, values in self.change().gates.items():
            model.attention(block).output.weight *= values.repeat_interleave(size)[None]
        return model.eval()


def prune(
    summarizer: Summarizer, data: Documents, out: str | Path, config: PruneConfig, *, resume: bool = False
) -> Gated:
    """Continue the training of a copy of the summarizer with gates, and leave the last state in `out` (see `frame.fit`).

        loss = -log P + lambda * mean over all gated heads of P(gate open)

    The gates are open at first (log a = 2), and have a learning rate of their own. A control is trained for the same number of
    steps without gates, because what pruning seems to gain may come from the training alone. Our lambda multiplies a mean over
    heads, so it cannot be compared with that of another paper. Raises the errors of `train`, also for another summarizer.
    """
    task = _task(GATED_FORMAT, data, to_dict(config) | {"summarizer": to_dict(summarizer.config)})
    task["summarizer_sha256"] = hashlib.sha256(save(summarizer.state_dict())).hexdigest()
    model = Gated(copy.deepcopy(summarizer), config.lam is not None)
    weights = [*model.summarizer.parameters()]
    parts = [{"params": weights, "lr": config.rate}, {"params": [*model.gates.parameters()], "lr": config.gate_rate}]
    optimizer = torch.optim.Adam([part for part in parts if part["params"]], fused=True)

    def loss(group: Sequence[Document]) -> Tensor:
        says = model.summarizer.loss(model.summarizer.collate(group), model.change())
        return says + (config.lam or 0.0) * model.price()

    def run_epoch(number: int) -> float:
        torch.manual_seed((config.seed << 20) + FIRST_EPOCH + number)
        batches = shuffled(data.train, summarizer.config.batch, config.seed, FIRST_EPOCH + number)
        return frame.one_epoch(optimizer, batches, loss, (weights, summarizer.config.clip))

    frame.fit(
        model, optimizer, out, task, epochs=config.epochs, run_epoch=run_epoch,
        score=lambda: likelihood(model.cut(), data.dev), last=True,  # gates close late, after the best likelihood
        kept={"vocabulary": summarizer.vocabulary.words}, resume=resume,
    )  # fmt: skip
    return load_gated(out)


def load_gated(folder: str | Path) -> Gated:
    """Return the gated summarizer of a run. Raises ModelError unless the folder holds a complete one of lalkit."""
    content, tensors = frame.read_run(folder, GATED_FORMAT)
    config = from_dict(SummarizerConfig, content["config"]["summarizer"], f"{folder}/model.json: config")
    summarizer = Summarizer(config, Vocabulary(tuple(content["vocabulary"])))
    return frame.fill(Gated(summarizer, content["config"]["lam"] is not None), tensors, folder)
