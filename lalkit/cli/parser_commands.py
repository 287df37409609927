"""`lalkit train`, `evaluate`, `parse`, `explain`, `search`, `export` and `serve`: the commands for one parser."""

from __future__ import annotations

import logging
import os
import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from lalkit.cli import options
from lalkit.cli.options import command
from lalkit.errors import ParameterError

logger = logging.getLogger(__name__)
COMPILING = 40  # seconds of one core
SHOWN = 5  # ids of sentences that scores leave out


@command()
def train(
    treebank: options.Treebank,
    out: Annotated[Path | None, options.FOLDER] = None,
    preset: str = "minilm",
    task: str | None = None,
    seed: int | None = None,
    epochs: int | None = None,
    max_minutes: float | None = None,
    device: options.Device = "auto",
    threads: options.Threads = None,
    resume: bool = False,
    dry_run: bool = False,
    start: str | None = None,
    heads: options.Heads = None,
    drop_tags: options.Drop = None,
    set_: options.Set = None,
) -> None:
    """Train a parser, and keep in --out its state after the epoch that is best on the dev part.

    Example: lalkit train --treebank sample --preset minilm --max-minutes 3 --out runs/first

    Args:
        out: The folder of the run, which will hold the parser.
        preset: A set of settings: tiny, minilm, minilm-span, chinese, paper-english, paper-best or paper-chinese.
        task: The trees that the parser gives: joint (both layers), dependencies, or constituents.
        seed: The number that all random choices depend on.
        epochs: How often the training sentences are seen.
        max_minutes: Plan the training so that it ends in this time.
        resume: Continue the run in --out.
        dry_run: Do not train and write nothing; estimate the number of weights, the memory and the time.
        start: Begin with the weights of a trained parser, a name or a folder: see book/parsers.md.
    """
    from lalkit import config
    from lalkit.training import loop
    from lalkit.treebank.corpora import load

    if out is None and not dry_run:
        raise ParameterError("a training needs --out", remedy="Give --out FOLDER, or --dry-run for an estimate.")
    named = {"seed": seed, "epochs": epochs, "max_minutes": max_minutes, "start": start}
    named = {"model.task": task} | {f"train.{name}": value for name, value in named.items()}
    settings = options.pairs(set_) | {name: value for name, value in named.items() if value is not None}
    chosen = config.override(config.preset(preset), settings)
    treebank = options.read_as(treebank, heads, drop_tags)
    if chosen.model.task == "joint" and "model.task" not in settings:
        dev = load(treebank, "dev")
        if dev.notes and all(sentence.heads is None for sentence in dev):
            logger.info("a parser of constituents alone is trained (--task constituents)")
            chosen = config.override(chosen, {"model.task": "constituents"})
    if dry_run:
        print(loop.estimate(chosen, treebank))
    else:
        loop.train(chosen, treebank, out, resume=resume, device=device)


@command()
def evaluate(
    parser: options.Parser,
    treebank: options.Treebank,
    split: options.Split = "dev",
    json_: options.Json = None,
    by: Literal["length", "label"] | None = None,
    heads: options.Heads = None,
    drop_tags: options.Drop = None,
    precision: options.Precision = "fp32",
    device: options.Device = "cpu",
    threads: options.Threads = None,
) -> None:
    """Score a parser on a treebank: brackets as EVALB counts them, UAS and LAS.

    UAS and LAS leave out punctuation by the gold tags. For Universal Dependencies a table adds its own conventions.

    Example: lalkit evaluate default --treebank sample --split test

    Args:
        by: Also give scores by sentence length or by label.
    """
    from lalkit.api import Parser
    from lalkit.evaluation import scores
    from lalkit.network.model import find_device, resolve_precision
    from lalkit.treebank import corpora

    start, treebank = time.perf_counter(), options.read_as(treebank, heads, drop_tags)
    resolve_precision(precision, find_device(device).type)  # a wrong one is named before the parser works
    loaded = Parser.load(parser, precision, device)
    corpus = corpora.load(treebank, split, task=loaded.config.model.task)
    if problems := len(corpus.problems):
        logger.info("%d sentences cannot be read and are left out: lalkit data check %s", problems, treebank)
    gold = corpora.layers_of(corpus.sentences, loaded.config.model.task)
    if by == "label" and any(sentence.constituents is None for sentence in gold):
        raise ParameterError("--by label needs constituents", remedy="Leave it out: arcs are scored without it.")
    results = loaded.parse_all(gold, progress=True)
    parsed = [result.sentence for result in results]
    result = scores.evaluate(gold, parsed, arc_labels=loaded.vocab.arc_labels, tags=loaded.vocab.tags)
    left_out = result.left_out()
    for reason, ids in left_out.items():
        shown = ", ".join(ids[:SHOWN]) + (", ..." if len(ids) > SHOWN else "")
        logger.info("%d sentences are left out of brackets and tags, %s: %s", len(ids), reason, shown)
    for line in result.others.values():
        logger.warning(line)
    if "arcs" in result.others:
        gold = corpora.layers_of(gold, "constituents")
    summary = {**result.summary(), "unreadable": problems, "seconds": round(time.perf_counter() - start, 2)}
    crossing, beyond = scores.out_of_reach(gold)
    if crossing:
        text = "%d sentences have crossing arcs, which count; %d of their arcs no projective parser can find"
        logger.info(text, crossing, beyond)
        summary |= {"crossing": crossing, "out_of_reach": beyond}
    tables = {"universal": scores.universal_scores(gold, parsed)}
    if by:
        tables[by] = scores.by_length(result) if by == "length" else scores.by_label(gold, parsed)
    counts = {reason: len(ids) for reason, ids in left_out.items()}
    record = {**summary, "left_out": counts, "treebank": treebank, "split": split, "parser": parser}
    record |= {"lam": loaded.config.train.lam, "computed_in": results[0].prediction.precision}
    record |= {name: table.to_dict(orient="records") for name, table in tables.items() if len(table)}
    if options.given(record, json_):
        return
    print(f"{treebank} {split}")
    for name, value in summary.items():
        if value is not None:
            print(f"  {name:14}{value:>8.2f}" if isinstance(value, float) else f"  {name:14}{value:>8}")
    for name, table in tables.items():
        if len(table):
            print("Universal Dependencies, labels without subtypes:" if name == "universal" else f"by {name}:")
            print(table.to_string(index=False, float_format="%.2f"))


@command()
def parse(
    text: Annotated[list[str] | None, typer.Argument(show_default=False)] = None,
    model: options.Model = "default",
    form: Literal["text", "raw", "tokens", "tagged", "conllu"] = "raw",
    to: str = "ptb",
    out: Path | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    require: list[str] | None = None,
    forbid: list[str] | None = None,
    alternatives: int | None = None,
    attach: str | None = None,
    confidence: bool = False,
    precision: options.Precision = "fp32",
    device: options.Device = "auto",
    replace: options.Replace = False,
) -> None:
    """Parse text of any size. Every sentence gets a tree.

    An empty line stays an empty line in PTB output; other forms leave it out.

    Example: lalkit parse "Select the person driving." --to conllu

    For one typed sentence: --require and --forbid, such as "NP(3,5)" or "2->4", --alternatives and --attach.

    Args:
        text: Sentences, or a file, which must be UTF-8; by default standard input is read.
        form: The form of a line: raw (one or more sentences), text (part of a running text; a blank line ends a paragraph),
            tokens (words between spaces), tagged (word_TAG pairs) or conllu (a file, written back with our tags and arcs).
        to: The form of the output: ptb, conllu, or json, or several with commas between them.
        out: Write to this file (several forms: to OUT.ptb and so on); by default to standard output, several forms of FILE to
            FILE.ptb and so on. If the command was interrupted, the same command continues.
        workers: The number of processes, one core each; needs --out. By default this process uses all cores.
        cluster: Compute on the workers of this dask scheduler, e.g. tcp://host:8786.
        require: A part that the tree must have: NP(3,5), 2->4 (an arc) or 3_NN (a tag); words count from 1. Repeat it for more.
        forbid: A part that the tree must not have, in the same notation. Repeat it for more.
        alternatives: Print this many readings, the best first, with their probabilities and their differences from the best: in
            each, some word has another head word. `result.alternatives(k, differ)` in Python has other ways to differ.
        attach: Print the five most probable head words of this phrase, with their exact probabilities, and no tree.
        confidence: Also write, in conllu and json, how probable the parts of each parse are.
    """
    from lalkit import corpus
    from lalkit.api import Parser
    from lalkit.network.model import resolve_precision
    from lalkit.training.named import find
    from lalkit.treebank.text import check_names

    if text and os.path.exists(os.path.join(text[0], "model.json")):  # False for a text that is too long for a path
        raise ParameterError(f"{text[0]} is a parser, not a text", remedy=f"Write: --model {text[0]}")
    named = text and len(text) == 1 and (os.path.isfile(text[0]) or os.path.islink(text[0]))  # a link may lead nowhere
    file, text = (Path(text[0]), []) if named else (None, text)
    check_names(text or ())
    forms = corpus.forms(to)
    if confidence and "ptb" in forms:
        remedy = "Give --to conllu or --to json."
        raise ParameterError("brackets have no place for probabilities: --confidence is not for ptb", remedy=remedy)
    if not (require or forbid or alternatives is not None or attach is not None):
        out = out or (file if file and len(forms) > 1 else None)
        job = corpus.Job(find(model), form, forms, confidence, precision)
        with ExitStack() as stack:
            if file:
                lines = stack.enter_context(corpus.open_lines(file))
            elif text:
                lines = corpus.from_arguments(text)
            else:
                lines = corpus.from_stream(sys.stdin.buffer, "standard input", "stdin")
            return corpus.parse(job, lines, out, workers, cluster, replace, device)
    beside = attach is not None and (alternatives is not None or confidence or to != "ptb")
    if len(text or ()) != 1 or any((out, workers is not None, cluster, beside)):
        problem = "constraints, alternatives and --attach are for one typed sentence, and are printed"
        remedy = "Give one sentence between quotes, without --out, --workers or --cluster; --attach prints no trees."
        raise ParameterError(problem, remedy=remedy)
    parser = Parser.load(model, resolve_precision(precision, "cpu", exact=True), device)
    result = parser.parse(text[0], form, require=require or (), forbid=forbid or ())
    if attach is not None:
        for row in result.attachments(attach).head(5).itertuples():
            print(f"{row.probability:.4f}  {row[3]} ({row.head}) -> {row.phrase}")
        return
    trees = [result] if alternatives is None else result.alternatives(alternatives)
    for tree in trees:
        tree = tree.with_confidence() if confidence else tree
        for to in forms:
            reading = f"{tree.reading}\n" if tree.reading and to != "json" else ""
            print(reading, corpus.write(tree, to), sep="", end="")
    if alternatives is not None:
        share = sum(tree.reading.probability for tree in trees)
        logger.info("these %d have %.4g of the probability; %.2g is left", len(trees), share, max(0.0, 1 - share))
    if result.constraints.items:
        logger.info("the constraints cost %.4f in score; the log-probability to obey is %.4f", *result.price)


@command()
def explain(
    text: list[str],
    model: options.Model = "default",
    form: Literal["text", "tokens", "tagged"] = "text",
    label: str | None = None,
    against: str | None = None,
    html: Annotated[Path | None, options.FILE] = None,
    device: options.Device = "cpu",
) -> None:
    """Explain which words, or which label heads, made a constituent: in words, and with --html as a page.

    Parsers with label attention inside the span, such as the default one, are explained word by word. The sums are exact.

    Example: lalkit explain "She saw the man with the telescope." --html page.html
    Why NP and not S? lalkit explain "She saw the man with the telescope." --label NP --against S

    Args:
        text: Text to explain, sentence by sentence.
        form: text is split into sentences and words; tokens is one sentence, words between spaces; tagged has word_TAG pairs.
        label: Explain only constituents of this label, e.g. NP.
        against: Compare with this other label. The parts add up to the difference of both scores.
        html: Write an interactive page to this file.
    """
    from lalkit.api import Parser
    from lalkit.draw.explorer import explorer
    from lalkit.files import write_text
    from lalkit.interpret.explanation import page
    from lalkit.treebank.text import check_names, read_lines, read_sentence

    check_names(text)
    options.set_threads(None)
    parser = Parser.load(model, device=device)
    by_part = read_lines(text, form, hyphens=parser.reader.hyphens)
    sentences = parser.reader.prepared([s or read_sentence("") for part in by_part for s in part], form)
    explanation = parser.explain(sentences, against=against, probabilities=parser.config.model.task == "joint")
    print(explanation.of(label), end="\n\n")
    if html:
        logger.info("to explore: %s", write_text(html, explorer(page(explanation, str(model)))))


@command()
def export(
    parser: options.Parser,
    out: Annotated[Path, options.FOLDER],
    to: Literal["onnx"] = "onnx",
    precision: Literal["fp32", "fp16", "int8"] = "fp32",
    replace: options.Replace = False,
) -> None:
    """Write a parser as a network that runs without torch: model.onnx, the tokenizer, and parser.json, which explains them.

    Example: lalkit export en-span --to onnx --precision int8 --out runs/onnx

    Args:
        out: The folder to write to.
        to: The form of the network.
        precision: The precision of the stored weights. Computation uses 32 bits.
    """
    from lalkit.files import locked_folder
    from lalkit.training.export import export

    with locked_folder(out):
        print(export(parser, out, precision, replace))


@command()
def serve(
    model: options.Model = "default",
    port: int = 8642,
    host: str = "127.0.0.1",
    open_: Annotated[bool, typer.Option("--open")] = False,
    device: options.Device = "cpu",
    threads: options.Threads = None,
) -> None:
    """Serve a page on which you type a sentence, explore its tree, and give the parser constraints. Ctrl-C ends it.

    Example: lalkit serve --open

    Args:
        port: The port of the page; 0 means any free one.
        host: The address to listen to; by default only this machine can reach the page.
        open_: Open the page in a browser.
    """
    import webbrowser

    from lalkit.api import Parser

    server = Parser.load(model, device=device).playground(host=host, port=port)
    logger.info("starting; the first time on a machine, this compiles for about %d seconds", COMPILING)
    for page in ("/parse", "/explore"):  # so that the first sentence that is typed need not wait
        server.computing.submit(server.pages[page], {"text": ["It rained."]}).result()  # type: ignore[arg-type]
    logger.info("type a sentence at this address; Ctrl-C ends the server")
    print(server.address, flush=True)
    if open_:
        webbrowser.open(server.address)
    server.wait()


@command()
def search(
    pattern: str,
    treebank: options.Treebank,
    split: options.Split = "test",
    model: str | None = None,
    device: options.Device = "cpu",
) -> None:
    """Search trees for a pattern of tgrep, and print each match between its neighbouring words.

    Patterns are explained in notebooks/patterns.md. For tables, and to search other texts: `Parser.search` in Python.

    Example: lalkit search "SBAR < (IN < that)" --treebank sample

    Args:
        pattern: The pattern, e.g. "NP << who".
        model: Search the parses of this parser, a name or a folder, instead of the gold trees.
    """
    from lalkit.api import Parser
    from lalkit.treebank.corpora import load

    sentences = load(treebank, split)
    options.set_threads(None)
    find = partial(Parser.load(model, device=device).search, sentences) if model else sentences.search
    hits = find(pattern)
    logger.info("%r", hits)
    print(hits, end="")
