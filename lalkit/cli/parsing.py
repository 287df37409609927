"""`lalkit parse` and `lalkit evaluate`."""

from __future__ import annotations

import json
import os
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from lalkit.cli.options import Model, Parser, Treebank, bar, say, set_threads
from lalkit.errors import ParameterError


class Form(StrEnum):
    text = "text"
    raw = "raw"
    tokens = "tokens"
    tagged = "tagged"


def evaluate(
    parser: Parser,
    treebank: Treebank,
    split: Annotated[str, typer.Option(help="train, dev or test")] = "dev",
    json_: Annotated[
        str | None, typer.Option("--json", help="write one JSON object here (- for standard output)")
    ] = None,
    rows: Annotated[Path | None, typer.Option("--table", help="write a row per sentence here (CSV)")] = None,
    parses: Annotated[Path | None, typer.Option(help="write the predicted trees here")] = None,
    by: Annotated[str | None, typer.Option(help="length or label: where the errors are")] = None,
    lam: Annotated[float | None, typer.Option(help="weight of labels against arcs in decoding")] = None,
    threads: Annotated[int | None, typer.Option()] = None,
) -> None:
    """Scores of a parser on a treebank: EVALB brackets, UAS and LAS."""
    from lalkit import breakdown
    from lalkit.checkpoint import load_model
    from lalkit.evaluate import evaluate as evaluate_
    from lalkit.files import can_be_written, write_json, write_text
    from lalkit.models import find
    from lalkit.predict import predict
    from lalkit.treebank.brackets import format_tree
    from lalkit.treebank.corpora import load
    from lalkit.treebank.trainable import layers_of

    if by not in (None, "length", "label"):
        raise ParameterError(f"--by is length or label, not {by!r}")
    if lam is not None and not 0 <= lam <= 1:
        raise ParameterError(f"--lam is {lam}", remedy="Give 0 (arcs alone) to 1 (labels alone).")
    can_be_written(rows, parses, None if json_ == "-" else json_)
    set_threads(threads)
    started = time.perf_counter()
    loaded = load_model(find(parser))
    task = loaded.config.model.task
    corpus = load(treebank, split, task=task)
    if corpus.problems:
        say(f"{len(corpus.problems)} sentences cannot be read and are left out: lalkit data check {treebank}")
    gold = layers_of(corpus.sentences, task)
    if (parses and task == "dependencies") or (by == "label" and any(s.constituents is None for s in gold)):
        asked = "--by label" if by == "label" else "--parses"
        raise ParameterError(
            f"there are no constituents for {asked}", remedy="Leave it out: arcs are scored all the same."
        )
    weight = loaded.config.train.lam if lam is None else lam
    progress = bar(len(gold), "parsing")
    found = [p.sentence for p in predict(loaded.network, loaded.collator, gold, lam=weight, tick=progress.update)]
    progress.close()
    result = evaluate_(gold, found)
    summary = {**result.summary(), "seconds": round(time.perf_counter() - started, 2)}
    record = {**summary, "treebank": treebank, "split": split, "parser": parser, "lam": weight}
    if rows:
        write_text(rows, result.table().to_csv(index=False))
        say(f"a row per sentence: {rows}")
    if parses:
        write_text(parses, "".join(f"{format_tree(s.tree)}\n" for s in found))
        say(f"predicted trees: {parses}")
    if json_ == "-":
        print(json.dumps(record))
    elif json_:
        write_json(json_, record)
        say(f"scores: {json_}")
    else:
        _print_scores(summary, f"{treebank} {split}")
    if by:
        table = breakdown.by_length(result) if by == "length" else breakdown.by_label(gold, found)
        print(table.to_string(index=False, float_format="%.2f"), file=sys.stderr if json_ == "-" else sys.stdout)


def _print_scores(summary: dict, title: str) -> None:
    print(title)
    for name, value in summary.items():
        if value is not None:
            print(f"  {name:14}{value:>8.2f}" if isinstance(value, float) else f"  {name:14}{value:>8}")


def parse(
    text: Annotated[
        list[str] | None, typer.Argument(help="sentences, or a file; none: standard input", show_default=False)
    ] = None,
    model: Model = "en-news",
    file: Annotated[Path | None, typer.Option(help="a file, UTF-8, whatever its name looks like")] = None,
    form: Annotated[
        Form,
        typer.Option(
            "--form",
            help="a line is: raw, one sentence; text, running text that is split into sentences; tokens between spaces; "
            "tagged, word_TAG pairs",
        ),
    ] = Form.raw,
    to: Annotated[str, typer.Option("--to", help="ptb, conllu, json, or several: ptb,json")] = "ptb",
    pretty: Annotated[bool, typer.Option("--pretty", help="brackets over several lines")] = False,
    out: Annotated[
        Path | None, typer.Option(help="write here; several forms of FILE are written to FILE.ptb and so on by default")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with an --out that was interrupted")] = False,
    workers: Annotated[int | None, typer.Option(help="processes of one core each; default this one, all cores")] = None,
    cluster: Annotated[str | None, typer.Option(help="a dask scheduler whose workers compute: tcp://host:8786")] = None,
    svg: Annotated[Path | None, typer.Option(help="folder for a drawing per sentence")] = None,
) -> None:
    """Parse text of any size. An empty line stays an empty line in PTB output and is left out of the other forms."""
    from contextlib import nullcontext

    from lalkit.models import find
    from lalkit.stream import lines
    from lalkit.stream import run as stream

    if text and os.path.exists(os.path.join(text[0], "model.json")):  # False for a text too long to be a path
        raise ParameterError(f"{text[0]} is a parser, not a text", remedy=f"Say so: --model {text[0]}")
    if file is None and text and len(text) == 1 and os.path.isfile(text[0]):
        text, file = None, Path(text[0])
    forms = stream.forms(to)
    if file and text:
        raise ParameterError("give sentences or a --file, not both")
    if text:
        opened = nullcontext(lines.from_arguments(text))
    elif file:
        opened = lines.open_lines(file)
        out = out or (Path(file.name) if len(forms) > 1 else None)
        for written in stream.outputs(out, forms) if out else ():
            if written.exists() and written.samefile(file):
                raise ParameterError(f"{written} is the text itself", remedy="Give --out another name.")
    else:
        opened = nullcontext(lines.from_stream(sys.stdin.buffer, "standard input", "stdin"))
    with opened as source:
        stream.parse(
            find(model), source, form=form.value, to=forms, pretty=pretty, out=out, svg=svg, resume=resume,
            workers=workers, cluster=cluster, loud=file is not None, say=say,
        )  # fmt: skip
