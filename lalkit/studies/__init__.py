"""Studies of attention outside the parser: LSTM classifiers, summarizers, and all three systems under the same probes."""
