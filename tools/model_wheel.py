"""Build wheels of shipped parsers: `pip install lalkit-models-NAME` then brings a parser to where there is no checkout.

python tools/model_wheel.py [NAME ...] [--out dist]     without names: all parsers in data/models
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory

MODELS = Path(__file__).resolve().parents[1] / "data" / "models"
PROJECT = """
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "lalkit-models-{name}"
version = "{version}"
description = "A parser for lalkit, trained on {treebank}. Licence of the weights: {licence}"
readme = "lalkit_models/{package}/README.md"
requires-python = ">=3.11"

[tool.setuptools]
packages = ["lalkit_models.{package}"]
package-data = {{ "*" = ["*"] }}
"""


def build(name: str, out: Path) -> None:
    """Build the wheel of one parser. Its version is that of lalkit which wrote the card."""
    card = json.loads((MODELS / name / "card.json").read_text(encoding="utf-8"))
    with TemporaryDirectory() as place:
        package = name.replace("-", "_")
        copytree(MODELS / name, Path(place, "lalkit_models", package))
        facts = {"version": card["lalkit"], "treebank": card["treebank"], "licence": card["licence"]}
        Path(place, "pyproject.toml").write_text(PROJECT.format(name=name, package=package, **facts), encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
        subprocess.run([*pip, "--wheel-dir", out, place], check=True)


if __name__ == "__main__":
    known = sorted(file.parent.name for file in MODELS.glob("*/card.json"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(known)}")
    parser.add_argument("--out", type=Path, default=Path("dist"))
    chosen = parser.parse_args()
    if unknown := sorted(set(chosen.names) - set(known)):
        parser.error(f"there is no parser {unknown[0]}; there are {', '.join(known)}")
    for name in chosen.names or known:
        build(name, chosen.out)
