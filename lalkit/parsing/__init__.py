"""Parsing files that are larger than memory: windows, a journal, and who computes."""
