"""Words' vectors -> a state for every word. Initial states are zero (the authors' program draws them at every pass)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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
