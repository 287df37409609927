"""Summarizers with multi-head attention (Baan et al. 2019)."""
