"""A notebook's kernel that says at its end how much memory it took: python -m lalkit.reproduce.kernel FILE -f CONNECTION."""

from __future__ import annotations

import atexit
import runpy
import sys
from pathlib import Path

from lalkit.evaluation.provenance import peak_memory
from lalkit.files import write_text

if __name__ == "__main__":
    file = Path(sys.argv.pop(1))
    atexit.register(lambda: write_text(file, f"{peak_memory()}"))
    runpy.run_module("ipykernel_launcher", run_name="__main__", alter_sys=True)
