"""Probes of attention that all studies share: tensors and functions in, numbers and tables out."""
