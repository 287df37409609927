"""Companion study 1 (Mohankumar et al. 2020): LSTM classifiers whose attention may be believed, and when not."""
