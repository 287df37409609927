"""Run notebooks with parameters."""

from lalkit.reproduce.notebook import read_list, read_profile, run_dir, run_notebook

__all__ = ["read_list", "read_profile", "run_dir", "run_notebook"]
