"""Words and characters without a pretrained encoder."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lalkit.batch.collate import PAD, UNK, Batch
from lalkit.config import EncoderConfig


class ScratchEncoder(nn.Module):
    """Word embedding + characters (a convolution of width 3, maximum over the word) -> [B, T, d_content]."""

    def __init__(self, config: EncoderConfig, d_content: int, words: int, chars: int):
        super().__init__()
        self.word_dropout = config.word_dropout
        self.word = nn.Embedding(words, config.word_dim, padding_idx=PAD)
        self.char = nn.Embedding(chars, config.char_dim, padding_idx=PAD)
        self.convolution = nn.Conv1d(config.char_dim, config.char_hidden, kernel_size=3, padding=1)
        self.edges = nn.Parameter(torch.randn(2, config.word_dim + config.char_hidden) * 0.1)  # START and STOP
        self.project = nn.Linear(config.word_dim + config.char_hidden, d_content, bias=False)

    def forward(self, batch: Batch) -> Float[Tensor, "b t c"]:
        words = batch.words
        if self.training and self.word_dropout:
            drop = torch.rand(words.shape, device=words.device) < self.word_dropout
            words = words.masked_fill(drop & (words != PAD), UNK)
        b, n, c = batch.chars.shape
        letters = self.convolution(self.char(batch.chars).flatten(0, 1).transpose(1, 2))
        # Padding must not win the maximum: a word of its own gives the same vector as in a batch with longer ones.
        padding = (batch.chars == PAD).flatten(0, 1)[:, None]
        padding = padding & ~padding.all(-1, keepdim=True)
        letters = letters.masked_fill(padding, -torch.inf).amax(-1).unflatten(0, (b, n))
        vectors = torch.cat([self.word(words), torch.relu(letters)], dim=-1)
        out = vectors.new_zeros(b, n + 2, vectors.shape[-1])
        out[:, 1:-1] = vectors
        out[:, 0] = self.edges[0]
        out[torch.arange(b, device=out.device), batch.lengths + 1] = self.edges[1].to(out.dtype)
        return self.project(out)
