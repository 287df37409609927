"""Sweeps: a grid over settings and seeds, a process a run, nothing finished is repeated."""
