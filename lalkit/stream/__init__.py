"""Corpora that are larger than memory: read in windows, parsed by whoever computes, written so that a kill loses little."""
