"""The command line: one call each. Bad input ends with one clear line on standard error and exit code 2."""

from __future__ import annotations

import json
import os
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

# Threads that spin while they wait for work are 3-7 times slower on shared cores; must be set before torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("GOMP_SPINCOUNT", "0")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # a sentence is too little to share
os.environ.setdefault("KINETO_LOG_LEVEL", "9")  # the profiler that measures memory in `bench` announces itself

import typer

from lalkit.allocator import keep_memory
from lalkit.errors import LalkitError, ParameterError

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__.split(".")[0] + "."
)
data = typer.Typer(no_args_is_help=True, help="Corpora: fetch, count, check.")
app.add_typer(data, name="data")

Treebank = Annotated[
    str, typer.Option("--treebank", help="sample, ptb-sample, craft, or a folder of .trees and .conllu files")
]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="a setting, e.g. model.label_attention.heads=32 (repeatable)")
]


class Form(StrEnum):
    raw = "raw"
    tokens = "tokens"
    tagged = "tagged"


class Format(StrEnum):
    ptb = "ptb"
    conllu = "conllu"
    json = "json"


def main() -> None:
    """The entry point."""
    keep_memory()
    try:
        app()
    except LalkitError as error:
        print(f"lalkit: {error}", file=sys.stderr)
        sys.exit(2)


@app.command()
def train(
    treebank: Treebank,
    out: Annotated[Path, typer.Option(help="folder of the run")],
    preset: Annotated[str, typer.Option(help="tiny, minilm, paper-english, paper-chinese")] = "minilm",
    seed: Annotated[int | None, typer.Option()] = None,
    epochs: Annotated[int | None, typer.Option()] = None,
    max_minutes: Annotated[float | None, typer.Option(help="plan the schedule to end in this time")] = None,
    workers: Annotated[
        int | None, typer.Option(help="processes of one core each; default one per core, at most 4 (from scratch: 1)")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="of the process, with one worker; default all cores")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with the run in --out")] = False,
    set_: Set = None,
) -> None:
    """Train a parser; the best on dev is kept in --out."""
    from lalkit import config
    from lalkit.parallel import usual_size
    from lalkit.training import train as train_

    settings = dict(_pairs(set_ or []))
    for name, value in (("seed", seed), ("epochs", epochs), ("max_minutes", max_minutes)):
        if value is not None:
            settings[f"train.{name}"] = value
    chosen = config.override(config.preset(preset), settings)
    if "train.workers" not in settings:
        settings["train.workers"] = workers or (1 if threads else usual_size(chosen))
        chosen = config.override(chosen, settings)
    _threads(threads)
    train_(chosen, treebank, out, resume=resume, say=_say)


@app.command()
def evaluate(
    run: Annotated[Path, typer.Argument(help="folder of a trained parser")],
    treebank: Treebank,
    split: Annotated[str, typer.Option(help="train, dev or test")] = "dev",
    json_: Annotated[
        str | None, typer.Option("--json", help="write one JSON object here (- for standard output)")
    ] = None,
    table: Annotated[Path | None, typer.Option(help="write a row per sentence here (CSV)")] = None,
    parses: Annotated[Path | None, typer.Option(help="write the predicted trees here")] = None,
    lam: Annotated[float | None, typer.Option(help="weight of labels against arcs in decoding")] = None,
    threads: Annotated[int | None, typer.Option()] = None,
) -> None:
    """Scores of a parser on a treebank: EVALB brackets, UAS and LAS."""
    from lalkit.checkpoint import load_model
    from lalkit.evaluate import evaluate as evaluate_
    from lalkit.files import write_json, write_text
    from lalkit.predict import predict
    from lalkit.treebank.brackets import format_tree
    from lalkit.treebank.corpora import load

    _threads(threads)
    started = time.perf_counter()
    loaded = load_model(run)
    gold = load(treebank, split).sentences
    weight = loaded.config.train.lam if lam is None else lam
    bar = _bar(len(gold), "parsing")
    found = [p.sentence for p in predict(loaded.network, loaded.collator, gold, lam=weight, tick=bar.update)]
    bar.close()
    result = evaluate_(gold, found)
    summary = {**result.summary(), "seconds": round(time.perf_counter() - started, 2)}
    record = {**summary, "treebank": treebank, "split": split, "parser": str(run), "lam": weight}
    if table:
        write_text(table, result.table().to_csv(index=False))
        _say(f"a row per sentence: {table}")
    if parses:
        write_text(parses, "".join(f"{format_tree(s.tree)}\n" for s in found))
        _say(f"predicted trees: {parses}")
    if json_ == "-":
        print(json.dumps(record))
    elif json_:
        write_json(json_, record)
        _say(f"scores: {json_}")
    else:
        _print_scores(summary, f"{treebank} {split}")


@app.command()
def parse(
    run: Annotated[Path, typer.Argument(help="folder of a trained parser")],
    text: Annotated[
        list[str] | None, typer.Argument(help="sentences; none: one a line from --file or standard input")
    ] = None,
    file: Annotated[Path | None, typer.Option(help="UTF-8 text, one sentence a line")] = None,
    form: Annotated[Form, typer.Option("--form", help="raw text, tokens between spaces, or word_TAG pairs")] = Form.raw,
    to: Annotated[Format, typer.Option("--to")] = Format.ptb,
    pretty: Annotated[bool, typer.Option("--pretty", help="brackets over several lines")] = False,
    out: Annotated[Path | None, typer.Option(help="write here instead of standard output")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with an --out that was interrupted")] = False,
    workers: Annotated[int | None, typer.Option(help="processes of one core each; default this one, all cores")] = None,
    cluster: Annotated[str | None, typer.Option(help="a dask scheduler whose workers compute: tcp://host:8786")] = None,
    svg: Annotated[Path | None, typer.Option(help="folder for a drawing per sentence")] = None,
) -> None:
    """Parse text of any size. An empty line stays an empty line in PTB output and is left out of the other forms."""
    from contextlib import nullcontext

    from lalkit.stream import lines
    from lalkit.stream import run as stream

    if text:
        opened = nullcontext(lines.from_arguments(text))
    elif file:
        opened = lines.open_lines(file)
    else:
        opened = nullcontext(lines.from_stream(sys.stdin.buffer, "standard input", "stdin"))
    with opened as source:
        stream.parse(
            run, source, form=form.value, to=to.value, pretty=pretty, out=out, svg=svg, resume=resume,
            workers=workers, cluster=cluster, loud=file is not None, say=_say,
        )  # fmt: skip


@data.command("fetch")
def data_fetch(name: str) -> None:
    """Download a corpus from its owners."""
    from lalkit.treebank.fetch import fetch

    print(fetch(name))


@data.command("stats")
def data_stats(name: str) -> None:
    """Count a corpus, split by split."""
    from lalkit.treebank.check import stats

    columns = {split: stats(corpus) for split, corpus in _splits(name)}
    print(f"{name:28}" + "".join(f"{split:>10}" for split in columns))
    for row in next(iter(columns.values())):
        print(f"{row:28}" + "".join(f"{column[row]:>10}" for column in columns.values()))


@data.command("check")
def data_check(name: str) -> None:
    """Name every problem of a corpus, and every sentence the joint form cannot represent. Exit code 1 if there is any."""
    from lalkit.treebank.check import check

    clean = True
    for split, corpus in _splits(name):
        report = check(corpus)
        clean &= report.clean
        for error in (*report.problems, *report.not_joint):
            print(f"{split}: {error}")
        print(
            f"{name} {split}: {report.sentences} sentences read, {len(report.problems)} problems, "
            f"{len(report.not_joint)} without a joint form"
        )
    raise typer.Exit(0 if clean else 1)


@app.command()
def doctor() -> None:
    """Say what is installed and found, and how to get what is missing."""
    from lalkit.doctor import diagnose

    for what, finding, fine in diagnose():
        print(f"{'ok ' if fine else '-- '}{what:24}{finding}")


@app.command()
def run(
    notebook: Annotated[Path, typer.Argument(help="e.g. notebooks/00_quickstart.ipynb")],
    parameter: Annotated[
        list[str] | None, typer.Option("-p", help="name=value, as the notebook's parameters cell declares")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="folder of the run; default runs/NOTEBOOK/...")] = None,
) -> None:
    """Run a notebook strictly: its output, figures and run.json land in a folder under runs/."""
    from lalkit.notebooks import run_notebook

    result = run_notebook(notebook, dict(_pairs(parameter or [])), out)
    _say(f"done in {result.seconds:.0f} s: {result.folder}")


@app.command()
def bench(
    routines: Annotated[
        list[str] | None, typer.Argument(help="layer, spans, decode, contributions, parse, train; none: all")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda")] = "cpu",
    threads: Annotated[int | None, typer.Option()] = 1,
    repeats: Annotated[int, typer.Option(help="rounds of each comparison")] = 7,
    preset: Annotated[str, typer.Option(help="the network of parse and train")] = "minilm",
    random_weights: Annotated[
        bool, typer.Option("--random-weights", help="an encoder of the preset's shape, not downloaded")
    ] = False,
    json_: Annotated[str | None, typer.Option("--json", help="- for a list of rows on standard output")] = None,
) -> None:
    """Speed and memory as ratios: fast routines against their literal twins, the whole parser against its bare encoder."""
    from lalkit.bench import bench as bench_
    from lalkit.bench import table
    from lalkit.bench.measure import Settings

    _threads(threads)
    rows = bench_(routines or [], Settings(device, repeats, preset, random_weights), _say)
    print(json.dumps(rows) if json_ == "-" else table(rows))


@app.command()
def demo(
    out: Annotated[Path, typer.Option()] = Path("runs/demo"),
    minutes: Annotated[float, typer.Option(help="for training")] = 3.0,
) -> None:
    """The whole way in minutes, on what the repository ships: train, evaluate, parse, draw, run the first notebook."""
    from lalkit.demo import run_demo

    _threads(None)
    run_demo(out, minutes, _say)


def _splits(name: str):
    from lalkit.errors import CorpusError
    from lalkit.treebank.corpora import SPLITS, load

    found = 0
    for split in SPLITS:
        try:
            corpus = load(name, split, lenient=True)
        except CorpusError as error:
            if split == "train" or not found:
                raise
            _say(f"{split}: {error.problem}")
            continue
        found += 1
        yield split, corpus


def _pairs(texts: list[str]):
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ParameterError(f"{text!r} is not name=value")
        yield name.strip(), value


def _threads(count: int | None) -> None:
    import torch

    from lalkit.compiled import cpu_count

    torch.set_num_threads(count or cpu_count())


def _bar(total: int, what: str):
    from tqdm import tqdm

    return tqdm(total=total, desc=what, ascii=True, mininterval=1 if sys.stderr.isatty() else 10, leave=False)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _print_scores(summary: dict, title: str) -> None:
    print(title)
    for name, value in summary.items():
        if value is not None:
            print(f"  {name:14}{value:>8.2f}" if isinstance(value, float) else f"  {name:14}{value:>8}")
