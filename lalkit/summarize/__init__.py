"""Summarizers with copying whose heads are measured, ablated, pruned and made sparse (Baan et al. 2019)."""
