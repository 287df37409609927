"""The classifier: words, states, additive attention, a class (Mohankumar et al. 2020, section 2).

Settings of the LSTM classifiers, each with its source: [P] Mohankumar et al. 2020, [C] the authors' program, [D] ours.

Examples -> padded tensors.

Words' vectors -> a state for every word. Initial states are zero (the authors' program draws them at every pass).

The classifier as the shared probes see it: one head, one query, one decision a text.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lalkit.companions.classifiers.examples import Dataset, Example
from lalkit.config import within
from lalkit.errors import ModelError
from lalkit.network.label_attention import OUTSIDE
from lalkit.probes.view import AttentionView, Outcome
from lalkit.probes.weights import diversity_loss

Kind = Literal["vanilla", "orthogonal", "diversity", "mlp"]
KINDS: tuple[str, ...] = ("vanilla", "orthogonal", "diversity", "mlp")
Choice = Literal["accuracy", "roc_auc"]


@dataclass(frozen=True)
class ClassifierConfig:
    """One classifier and how it is trained; saved in its run's folder."""

    model: Kind = "vanilla"
    embedding: int = 100  # [D] learned; [P] has 300, pretrained
    hidden: int = 128  # [D]; [P] 256. The attention has half of it [C]
    diversity: float = 0.5  # [P] weight of the conicity in the loss of 'diversity'
    min_count: int = 2  # rarer words are unknown [D]
    seed: int = 1
    epochs: int = 6  # [D]; [C] 8
    stop_at: float = 1.0  # accuracy on dev at which training ends [D]
    batch: int = 32  # [C]
    rate: float = 1e-3  # [P] Adam, its AMSGrad form [C]
    weight_decay: float = 1e-5  # [C], 0 on the attention's parameters
    choose_by: Choice = "accuracy"  # of dev [P]; [C] roc_auc, for two classes, with which stop_at is of no use
    balanced: bool = False  # the rarer class weighs more; [C] True for two classes
    sentinels: bool = False  # a start and an end around texts and questions, never attended to; [C] True

    def __post_init__(self):
        within(self, 1, inf, "embedding", "hidden", "epochs", "batch")


def usual(data: str, model: str = "vanilla", seed: int = 1) -> ClassifierConfig:
    """The settings for a data set by its name; those of the sentence sets for any other."""
    config = replace(ClassifierConfig(), model=model, seed=seed)
    if data.startswith("babi"):
        hidden = 64 if data.startswith("babi-1") else 128  # [C] for the first, [P] for the others
        return replace(config, embedding=50, hidden=hidden, batch=50, epochs=40, stop_at=0.998)
    if data == "subjectivity":
        # The weight of diversity was chosen on dev, as [P] has one for each data set: with 0.5 states stay above 1.15 times the
        # likeness of random ones (1.16; 1.17 to 1.21 on test), with 1 they are at 0.83 and accuracy is as good (87.3; 86.9).
        return replace(config, epochs=5, diversity=1.0)
    return config


PADDING, UNKNOWN = 0, 1
WINDOW = 50  # batches among which examples are sorted by length, so that little is padded


@dataclass(frozen=True)
class Batch:
    """x [B, T], mask [B, T] (True: a word); question [B, m] and its mask, or None; label [B]; allowed [B, C] or None: the
    classes that an extractive task's text speaks of."""

    examples: tuple[Example, ...]
    x: Tensor
    mask: Tensor
    question: Tensor | None
    question_mask: Tensor | None
    label: Tensor
    allowed: Tensor | None

    def rows(self, index: Tensor) -> Batch:
        """The batch of some of its examples, in the order of index [K], which may repeat."""
        tensors = (self.x, self.mask, self.question, self.question_mask, self.label, self.allowed)
        picked = [None if tensor is None else tensor[index] for tensor in tensors]
        return Batch(tuple(self.examples[i] for i in index.tolist()), *picked)


@dataclass(frozen=True)
class Vocabulary:
    """words: of texts; asked: of questions; both without padding and the unknown word, whose indices are 0 and 1."""

    words: tuple[str, ...]
    asked: tuple[str, ...]
    classes: tuple[str, ...]
    extractive: bool = False

    def __post_init__(self):
        for name in ("words", "asked"):
            index = {word: i for i, word in enumerate(getattr(self, name), 2)}
            object.__setattr__(self, f"_{name}", index)
        object.__setattr__(self, "_classes", {c: i for i, c in enumerate(self.classes)})

    @classmethod
    def build(cls, data: Dataset, config: ClassifierConfig) -> Vocabulary:
        """Of the training part."""
        counts: list[dict[str, int]] = [{}, {}]
        for example in data.train:
            for count, words in zip(counts, (example.words, example.question)):
                for word in words:
                    count[word] = count.get(word, 0) + 1
        kept = [tuple(sorted(w for w, n in count.items() if n >= config.min_count)) for count in counts]
        return cls(*kept, data.classes, data.extractive)

    def collate(self, examples: Sequence[Example]) -> Batch:
        """Raises ModelError for no examples at all, or a class that the classifier does not know."""
        if not examples:
            raise ModelError("a batch of no examples")
        for example in examples:
            if example.label not in self._classes:
                raise ModelError(f"the classifier knows no class {example.label!r}", remedy=f"It knows {self.classes}.")
        x = _pad([[self._words.get(w, UNKNOWN) for w in e.words] for e in examples])
        asked = bool(examples[0].question)
        question = _pad([[self._asked.get(w, UNKNOWN) for w in e.question] for e in examples]) if asked else None
        allowed = None
        if self.extractive:
            allowed = torch.tensor([[c in set(e.words) for c in self.classes] for e in examples])
        return Batch(
            tuple(examples), x, x != PADDING, question, question != PADDING if asked else None,
            torch.tensor([self._classes[e.label] for e in examples]), allowed,
        )  # fmt: skip


def _pad(rows: Sequence[Sequence[int]]) -> Tensor:
    found = torch.full((len(rows), max(map(len, rows))), PADDING)
    for i, row in enumerate(rows):
        found[i, : len(row)] = torch.tensor(row)
    return found


def shuffled(examples: Sequence[Example], size: int, seed: int, epoch: int) -> Iterator[list[Example]]:
    """The batches of an epoch, a function of seed and epoch alone: like lengths together, in a random order."""
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(len(examples))
    groups = []
    for start in range(0, len(order), size * WINDOW):
        window = sorted(order[start : start + size * WINDOW], key=lambda i: len(examples[i].words))
        groups += [window[i : i + size] for i in range(0, len(window), size)]
    for g in rng.permutation(len(groups)):
        yield [examples[i] for i in groups[g]]


def in_order(examples: Sequence[Example], size: int) -> Iterator[list[Example]]:
    for start in range(0, len(examples), size):
        yield list(examples[start : start + size])


TINY = 1e-6  # a norm below which nothing has been summed up yet


class LSTM(nn.Module):
    """x [B, T, e] -> states [B, T, d], from left to right. What stands behind a text cannot reach it."""

    def __init__(self, size: int, hidden: int):
        super().__init__()
        self.lstm = nn.LSTM(size, hidden, batch_first=True)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return self.lstm(x)[0]


class OrthogonalLSTM(LSTM):
    """Mohankumar et al. 2020, eq. 10 to 12: every state is orthogonal to the sum S of those before it,

        h_t = h^_t - (h^_t . S) / (S . S) S        S = sum_{i<t} h_i

    and it is h_t that the recurrence and the attention go on with; the cell c_t is left alone. Departures: the projection
    is on S itself and is applied twice, which in float32 leaves |cos(h_t, S)| at 1e-7 where the authors' program, dividing
    by |mean|^2 + 1e-6, leaves up to 0.99 (small states). Padding neither moves a state nor adds to S.
    """

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        w = self.lstm
        inputs = x @ w.weight_ih_l0.T + (w.bias_ih_l0 + w.bias_hh_l0)
        everywhere = mask.all(0).tolist()  # positions at which no text of the batch has ended
        h = c = total = x.new_zeros(len(x), w.hidden_size)
        states = []
        for t, given in enumerate(inputs.unbind(1)):  # unbound at once: gradients of x[:, t] are as large as x
            gates = torch.addmm(given, h, w.weight_hh_l0.T)
            i, f, _, o = torch.sigmoid(gates).chunk(4, dim=-1)
            cell = f * c + i * torch.tanh(gates.chunk(4, dim=-1)[2])
            state = o * torch.tanh(cell)
            direction = F.normalize(total, dim=-1, eps=TINY)
            for _ in range(2):
                state = state - (state * direction).sum(-1, keepdim=True) * direction
            if everywhere[t]:
                h, c, total = state, cell, total + state
            else:
                real = mask[:, t, None]
                h, c, total = torch.where(real, state, h), torch.where(real, cell, c), total + real * state
            states.append(h)
        return torch.stack(states, dim=1)


class PerToken(nn.Module):
    """The control without context: h_t = ReLU(W e_t + b)."""

    def __init__(self, size: int, hidden: int):
        super().__init__()
        self.linear = nn.Linear(size, hidden)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return torch.relu(self.linear(x))


ENCODERS = {"vanilla": LSTM, "diversity": LSTM, "orthogonal": OrthogonalLSTM, "mlp": PerToken}


def framed(x: Tensor, mask: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
    """A start before every text and an end right behind it [C]: x [B, T, e], ends [2, e] -> [B, T + 2, e] and its mask."""
    length, place = mask.sum(1, keepdim=True), torch.arange(x.shape[1] + 2, device=x.device)
    x = F.pad(x, (0, 0, 1, 1))
    for position, end in zip((0, length + 1), ends):
        x = torch.where((place == position)[..., None].expand(x.shape[:2] + (1,)), end, x)
    return x, place < length + 2


def last(states: Tensor, mask: Tensor) -> Tensor:
    """The state of each text's last word: [B, d]."""
    return states[torch.arange(len(states)), mask.sum(1) - 1]


@dataclass(frozen=True)
class Classified:
    """logits [B, C], attention [B, T] (0 on padding), states [B, T, d]; asked [B, d]: the question's last state, or None."""

    logits: Tensor
    attention: Tensor
    states: Tensor
    asked: Tensor | None


class Classifier(nn.Module):
    """Batch -> Classified. Questions have embeddings and an encoder of their own; what is attended to is the text."""

    def __init__(self, config: ClassifierConfig, vocabulary: Vocabulary):
        super().__init__()
        self.config, self.vocabulary = config, vocabulary
        e, d = config.embedding, config.hidden
        self.words = nn.Embedding(len(vocabulary.words) + 2, e, padding_idx=PADDING)
        self.encoder = ENCODERS[config.model](e, d)
        self.attention = AdditiveAttention(d)
        self.paired = bool(vocabulary.asked)
        if config.sentinels:
            self.ends = nn.Parameter(torch.randn(1 + self.paired, 2, e))  # of texts, of questions: as embeddings begin
        if config.balanced:
            self.register_buffer("weight", torch.ones(len(vocabulary.classes)))
        if self.paired:
            self.asked = nn.Embedding(len(vocabulary.asked) + 2, e, padding_idx=PADDING)
            self.question_encoder = ENCODERS[config.model](e, d)
            self.from_text, self.from_question = nn.Linear(d, d // 2), nn.Linear(d, d // 2, bias=False)
            self.output = nn.Linear(d // 2, len(vocabulary.classes))
        else:
            self.output = nn.Linear(d, len(vocabulary.classes))

    def forward(self, batch: Batch) -> Classified:
        return self.read(self.words(batch.x), batch)

    def read(self, embedded: Tensor, batch: Batch, through_attention: bool = True) -> Classified:
        """From word vectors [B, T, e]. through_attention False: attention is a constant to gradients, as in the authors'
        program, whose integrated gradients therefore do not add up."""
        states, asked = self._framed(self.encoder, embedded, batch.mask, 0)[0], None
        states = states[:, 1:-1] if self.config.sentinels else states
        if self.paired:
            asked = last(*self._framed(self.question_encoder, self.asked(batch.question), batch.question_mask, 1))
        weights = self.attention(states, batch.mask, asked)
        weights = weights if through_attention else weights.detach()
        context = torch.einsum("bt,btd->bd", weights, states)
        return Classified(self.classify(context, asked, batch.allowed), weights, states, asked)

    def _framed(self, encoder: nn.Module, x: Tensor, mask: Tensor, side: int) -> tuple[Tensor, Tensor]:
        """States and what of them is real: sentinels included where there are any."""
        if self.config.sentinels:
            x, mask = framed(x, mask, self.ends[side])
        return encoder(x, mask), mask

    def classify(self, context: Tensor, asked: Tensor | None, allowed: Tensor | None) -> Tensor:
        """Contexts [..., B, d] -> logits [..., B, C]. For pairs tanh(W_p c + W_q h_q) is read out [C], not c [P]."""
        if self.paired:
            context = torch.tanh(self.from_text(context) + self.from_question(asked))
        logits = self.output(context)
        return logits if allowed is None else logits.masked_fill(~allowed, OUTSIDE)

    def loss(self, batch: Batch) -> Tensor:
        """Cross-entropy, and for 'diversity' the weighted mean conicity of absolute cosines. With the paper's signed
        cosines as the loss, training finds one huge state that all others point against."""
        found = self(batch)
        if self.config.balanced:  # each by its class, and the mean over all: not torch's weighted mean
            each = nn.functional.cross_entropy(found.logits, batch.label, reduction="none")
            loss = (self.weight[batch.label] * each).mean()
        else:
            loss = nn.functional.cross_entropy(found.logits, batch.label)
        if self.config.model == "diversity":
            loss = loss + self.config.diversity * diversity_loss(found.states[:, None], batch.mask)
        return loss


class AdditiveAttention(nn.Module):
    """s_t = v . tanh(W1 h_t + W2 h_q + b), a softmax over the words that are there."""

    def __init__(self, size: int):
        super().__init__()
        self.states, self.asked = nn.Linear(size, size // 2), nn.Linear(size, size // 2, bias=False)
        self.score = nn.Linear(size // 2, 1, bias=False)

    def forward(self, states: Tensor, mask: Tensor, asked: Tensor | None) -> Tensor:
        hidden = self.states(states)
        if asked is not None:
            hidden = hidden + self.asked(asked)[:, None]
        scores = self.score(torch.tanh(hidden))[..., 0]
        return torch.softmax(scores.masked_fill(~mask, OUTSIDE), dim=-1)


def exact(model: Classifier) -> Classifier:
    """A copy in float64 for probes: padding then moves no number by more than 1e-12, and near-ties stay what they are."""
    return copy.deepcopy(model).double().eval()


@torch.no_grad()
def view(model: Classifier, batch: Batch, examples: Sequence[int] = ()) -> AttentionView:
    """H = Q = U = 1. weights [B, 1, 1, T] -> contexts -> the output layer, any number of weights at once.

    examples: the number of each example in its data.
    """
    found = model(batch)

    @torch.no_grad()
    def from_contexts(contexts: Tensor) -> Outcome:
        logits = model.classify(contexts[..., 0, 0, :], found.asked, batch.allowed)
        probs = torch.softmax(logits, dim=-1)[..., None, :]
        decision = probs.argmax(-1)
        right = (decision == batch.label[:, None]).to(probs.dtype)
        return Outcome(
            probs, torch.ones_like(batch.mask[:, :1]), decision, torch.cat([right, torch.ones_like(right)], -1)
        )

    def predict(weights: Tensor) -> Outcome:
        return from_contexts(torch.einsum("...bhqt,bhtd->...bhqd", weights, found.states[:, None]))

    return AttentionView(
        found.attention[:, None, None], found.states[:, None], batch.mask, torch.ones_like(batch.mask[:, :1]), ("attention",),
        predict, tuple(examples), from_contexts,
    )  # fmt: skip


def from_words(model: Classifier, batch: Batch, through_attention: bool = True) -> Callable[[Tensor, Tensor], Tensor]:
    """For `attribute`: (embedded [K, T, e], rows of the batch [K]) -> probabilities [K, 1, C]."""

    def function(embedded: Tensor, rows: Tensor) -> Tensor:
        found = model.read(embedded, batch.rows(rows), through_attention)
        return torch.softmax(found.logits, dim=-1)[:, None]

    return function


def from_some_words(model: Classifier, batch: Batch) -> Callable[[Tensor, Tensor], Tensor]:
    """For `rationale`: (embedded [B, t, e], mask [B, t]) of the words that are left -> probabilities [B, C]."""

    @torch.no_grad()
    def function(embedded: Tensor, mask: Tensor) -> Tensor:
        left = Batch(batch.examples, batch.x, mask, batch.question, batch.question_mask, batch.label, batch.allowed)
        return torch.softmax(model.read(embedded, left).logits, dim=-1)

    return function
