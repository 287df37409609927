"""Run notebooks with parameters."""

from lalkit.reproduce.notebook import committed, read_list, read_profile, run_dir, run_notebook

__all__ = ["committed", "read_list", "read_profile", "run_dir", "run_notebook"]
