"""The two companion studies: LSTM classifiers and summarizers."""
