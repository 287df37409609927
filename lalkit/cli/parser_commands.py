"""`lalkit parse` and `lalkit evaluate`.

`lalkit train`.

`lalkit explain`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from lalkit.cli.options import Model, Parser, Set, Treebank, bar, pairs, say, set_threads
from lalkit.errors import ParameterError


def train(
    treebank: Treebank,
    out: Annotated[Path | None, typer.Option(help="folder of the run")] = None,
    preset: Annotated[
        str, typer.Option(help="tiny, minilm, minilm-span, chinese, paper-english, paper-chinese")
    ] = "minilm",
    task: Annotated[str | None, typer.Option(help="joint, or one layer alone: dependencies, constituents")] = None,
    seed: Annotated[int | None, typer.Option()] = None,
    start: Annotated[str | None, typer.Option(help="name or folder of a trained parser to begin with")] = None,
    epochs: Annotated[int | None, typer.Option()] = None,
    max_minutes: Annotated[float | None, typer.Option(help="plan the schedule to end in this time")] = None,
    workers: Annotated[
        int | None, typer.Option(help="processes of one core each; default one per core, at most 4 (from scratch: 1)")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="of the process, with one worker; default all cores")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with the run in --out")] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="say how many weights, how much memory and time it would take; train nothing"),
    ] = False,
    random_weights: Annotated[
        bool, typer.Option("--random-weights", help="in a dry run: an encoder of the preset's shape, not downloaded")
    ] = False,
    set_: Set = None,
) -> None:
    """Train a parser; the best on dev is kept in --out."""
    from lalkit.config import override
    from lalkit.config import preset as preset_
    from lalkit.training.loop import train as train_
    from lalkit.training.parallel import usual_size

    if (out is None) != dry_run:
        raise ParameterError("a run needs a folder, --out; a dry run leaves nothing behind, and has none")
    if random_weights and not dry_run:
        raise ParameterError("--random-weights are for a --dry-run: nothing would come of training on them")
    settings = dict(pairs(set_ or []))
    for name, value in (("seed", seed), ("start", start), ("epochs", epochs), ("max_minutes", max_minutes)):
        if value is not None:
            settings[f"train.{name}"] = value
    if task is not None:
        settings["model.task"] = task
    chosen = override(preset_(preset), settings)
    if "train.workers" not in settings:
        chosen = override(chosen, {"train.workers": workers or (1 if threads else usual_size(chosen))})
    set_threads(threads)
    if dry_run:
        from lalkit.training.estimate import estimate

        print("\n".join(estimate(chosen, treebank, random_weights=random_weights, say=say).lines(chosen)))
        return
    train_(chosen, treebank, out, resume=resume, say=say)


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
    from lalkit.evaluation import scores as breakdown
    from lalkit.evaluation.scores import evaluate as evaluate_
    from lalkit.files import check_writable, write_json, write_text
    from lalkit.network.predict import predict
    from lalkit.training.checkpoint import load_model
    from lalkit.training.named import find
    from lalkit.treebank.brackets import format_tree
    from lalkit.treebank.check import layers_of
    from lalkit.treebank.corpora import load

    if by not in (None, "length", "label"):
        raise ParameterError(f"--by is length or label, not {by!r}")
    if lam is not None and not 0 <= lam <= 1:
        raise ParameterError(f"--lam is {lam}", remedy="Give 0 (arcs alone) to 1 (labels alone).")
    check_writable(rows, parses, None if json_ == "-" else json_)
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

    from lalkit.parsing import parse_corpus as stream
    from lalkit.parsing import text_windows as lines
    from lalkit.training.named import find

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
            workers=workers, cluster=cluster,
        )  # fmt: skip


def explain(
    text: Annotated[list[str] | None, typer.Argument(help="sentences", show_default=False)] = None,
    model: Model = "en-news-x",
    form: Annotated[
        Literal["raw", "tokens", "tagged"],
        typer.Option(help="of a sentence: raw, tokens between spaces, word_TAG pairs"),
    ] = "raw",
    treebank: Annotated[
        str | None, typer.Option(help="explain sentences of a treebank, beside their gold trees")
    ] = None,
    split: Annotated[str, typer.Option(help="train, dev or test")] = "dev",
    sentence: Annotated[
        list[int] | None, typer.Option(help="which of them, from 0 (repeatable); default the first ten")
    ] = None,
    label: Annotated[str | None, typer.Option(help="of the constituents in question, e.g. NP; default all")] = None,
    norm: Annotated[str, typer.Option(help="raw, minmax (the paper's), softmax, share, exact")] = "exact",
    top: Annotated[int, typer.Option(help="label heads, or words, to name")] = 3,
    html: Annotated[Path | None, typer.Option(help="write a page to explore here, one file")] = None,
    profile: Annotated[
        str | None,
        typer.Option(help="a treebank: count on its dev part which labels each head leads (shipped parsers know)"),
    ] = None,
) -> None:
    """Which label heads made a constituent, and what they attend to: in words, and with --html as a page to explore.

    A parser with label attention inside the span is explained word by word; its terms are exact, and it has no norms.
    """
    from lalkit.api import Parser
    from lalkit.draw.explorer import explorer
    from lalkit.files import write_text
    from lalkit.interpret.contributions import contributions
    from lalkit.interpret.explain import explain as explain_
    from lalkit.interpret.explain import explain_terms, page, page_of_terms
    from lalkit.interpret.tables import profile as profile_
    from lalkit.treebank.corpora import load
    from lalkit.treebank.text import read_line

    if bool(text) == bool(treebank):
        raise ParameterError("give sentences, or a --treebank")
    set_threads(None)
    parser, gold = Parser.load(model), None
    if treebank:
        corpus = load(treebank, split).sentences
        wanted = sentence or range(min(10, len(corpus)))
        wrong = [number for number in wanted if not 0 <= number < len(corpus)]
        if wrong:
            raise ParameterError(
                f"there is no sentence {wrong[0]}", remedy=f"{treebank} {split} has 0 to {len(corpus) - 1}."
            )
        chosen = gold = [corpus[number] for number in wanted]
    else:
        chosen = [read_line(line, form, str(number)) for number, line in enumerate(text, 1)]
        if None in chosen:
            raise ParameterError("a sentence has no words")
    if parser.inside and (profile or norm != "exact"):
        raise ParameterError(
            "its label attention is inside the span: what words add is exact, and every head has one label",
            remedy="Leave --norm and --profile out.",
        )
    counts = parser.profile
    if profile:
        looks = parser.look(load(profile, "dev").sentences)
        counts = profile_(contributions(looks), norm, f"{profile} dev")
    found = parser.terms(chosen) if parser.inside else parser.look(chosen)
    for seen in found:
        if len(found) > 1:
            print(f"# {' '.join(seen.prediction.sentence.words)}")
        print(
            explain_terms(seen, label, top) if parser.inside else explain_(seen, label, norm, top, counts), end="\n\n"
        )
    if html:
        if parser.inside:
            boundary = parser.inside.boundary
            data = page_of_terms(found, title="Which words made this?", model=str(model), gold=gold, boundary=boundary)
        else:
            data = page(
                found, title="Which label heads made this?", model=str(model), gold=gold, profile=counts, norm=norm
            )
        write_text(html, explorer(data))
        say(f"to explore: {html}")
