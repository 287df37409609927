"""The orthogonal LSTM with torch's own cell and Gram-Schmidt on the sum of all states before, in float64, one text at a time."""

import torch


def orthogonal(lstm, x):
    """x [T, e] -> [T, d], with the weights of an nn.LSTM of one layer."""
    cell = torch.nn.LSTMCell(lstm.input_size, lstm.hidden_size).double()
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(cell, name).data = getattr(lstm, f"{name}_l0").data.double()
    h = c = torch.zeros(lstm.hidden_size, dtype=torch.float64)
    states = []
    for word in x.double():
        h, c = cell(word, (h, c))
        if states:
            total = sum(states)
            h = h - (h @ total) / (total @ total) * total
        states.append(h)
    return torch.stack(states)
