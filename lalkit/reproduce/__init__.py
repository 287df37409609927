"""Run notebooks with parameters, and find the files that they read."""

from lalkit.reproduce.notebook import committed, read_list, read_profile, run_dir, run_notebook

__all__ = ["committed", "read_list", "read_profile", "run_dir", "run_notebook"]
