"""LSTM classifiers with attention (Mohankumar et al. 2020)."""
