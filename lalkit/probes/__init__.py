"""Measuring instruments that all studies share: numbers, tensors and functions in, tables out."""
