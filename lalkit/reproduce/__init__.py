"""Notebooks and sweeps that run strictly, and the reports made from them."""
