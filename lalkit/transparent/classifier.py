"""The classifier: words, states, additive attention, a class (Mohankumar et al. 2020, section 2)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lalkit.normalisers import OUTSIDE
from lalkit.probes.conicity import diversity_loss
from lalkit.transparent.batch import PADDING, Batch, Vocabulary
from lalkit.transparent.config import ClassifierConfig
from lalkit.transparent.encoders import ENCODERS, framed, last


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
