"""Parse a text of any size: read a window of lines, parse its batches, write the results, go on with the next window.

Memory does not grow with the text. Results come in the order of the lines, whoever computes them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, cast, get_args

from lalkit.api import ParseResult
from lalkit.chart.machine import give_back, progress
from lalkit.errors import LalkitError
from lalkit.network.batches import batches, usual
from lalkit.network.precision import Precision, resolve
from lalkit.parsing.batch_workers import Compute, Source, Task, ThisProcess, Workers, usual_device
from lalkit.parsing.cluster import Cluster, Ranks
from lalkit.parsing.journaled_output import Journal, Part, StandardOutput, skip_done
from lalkit.parsing.text_windows import Lines, Window, windows
from lalkit.training.checkpoint import fingerprint, read_calibration
from lalkit.training.parallel import launched, several
from lalkit.treebank.text import Form

logger = logging.getLogger(__name__)

# At the end of a window everybody waits for the last batch. So that this costs little, a window has, for each process that
# computes, at least WINDOW words and BATCHES batches. It has at most MOST times that, so that memory stays bounded.
WINDOW, BATCHES, MOST = 20_000, 10, 10

To = Literal["ptb", "conllu", "json", "parquet"]


def parse(
    folder: str | Path,
    lines: Lines,
    *,
    form: Form = "raw",
    to: Sequence[To] = ("ptb",),
    pretty: bool = False,
    out: str | Path | None = None,
    svg: Path | None = None,
    resume: bool = False,
    workers: int | None = None,
    cluster: str | None = None,
    window: int | None = None,
    budget: int | None = None,
    decode: str = "best",
    confidence: bool = False,
    precision: Precision = "fp32",
) -> None:
    """Parse a text and write every result in its place.

    Args:
        folder: the folder of the parser.
        lines: the text.
        form: how a line is to be read, see `lalkit.treebank.text.read_line`.
        to: forms of the output. One form is written to `out`; several are written to `out` with the form as a suffix.
        pretty: whether brackets go over several lines.
        out: the output; None for standard output.
        svg: a folder for drawings, which are named by the line (and in running text by the sentence of the line).
        resume: whether to continue an `out` that was interrupted.
        workers: number of worker processes; None for this process.
        cluster: address of a dask scheduler.
        window: words in memory at the same time; None for the usual number.
        budget: words of a batch; None for the usual number.
        decode: what finds the trees, see `lalkit.interpret.alternatives.decoder`.
        confidence: whether conllu and json also say how probable the parts of each parse are.
        precision: of the scores, see `lalkit.network.precision`. If it is auto, this process chooses for all processes.

    Raises:
        LalkitError: for a text, a parser or an output that cannot be used. The windows that were written before are kept,
            so that the run can be resumed.
    """
    if not out and (resume or len(to) > 1 or "parquet" in to):
        needing = "--resume" if resume else "more than one form" if len(to) > 1 else "a Parquet table"
        problem = f"{needing} needs an --out"
        raise LalkitError(problem, remedy="Give --out the name of a file.")
    precision = resolve(precision, "cpu" if workers or cluster else usual_device(), exact=confidence)
    source = Source(str(folder), None, decode, confidence, precision)
    if out or workers or cluster or several():  # then several processes load the parser, at once or one after the other
        source = Source(str(Path(folder).resolve()), fingerprint(folder), decode, confidence, precision)
    with ExitStack() as stack:
        compute = stack.enter_context(start_compute(source, workers, cluster))
        if isinstance(compute, Ranks) and not compute.first:
            return compute.serve()
        kind = ",".join(f"{t} --pretty" if pretty and t == "ptb" else t for t in to)
        kind += "" if decode == "best" else f" --decode {decode}"
        if precision != "fp32":
            kind += f" --precision {precision}"
            logger.info("computing in %s", precision)
        if confidence:
            kind += f" --confidence {(read_calibration(folder) or {}).get('temperature', 1.0)}"
        task = Journal(source.sha256 or "", lines.name, form, kind)
        outs = outputs(out, to) if out else []
        output = stack.enter_context(Part(outs, task, resume, lines.status)) if out else StandardOutput(task)
        before = output.journal
        if output.finished:
            output.finish()
            return logger.info("%s: finished already", ", ".join(map(str, outs)))
        if before.lines:
            logger.info("resuming after line %d", before.lines)
            skip_done(lines, before, f"{outs[0]}.part")
        start = time.monotonic()
        bar = stack.enter_context(progress(desc="parsing", unit=" words"))
        budget = budget or usual(compute.device)
        words = (window or max(WINDOW, BATCHES * budget)) * min(compute.size, MOST)

        def write_all(result: ParseResult | None) -> list[str]:
            return [write(result, t, pretty) for t in to]

        for part in windows(lines, form, words):
            if lines.size:  # estimate the total number of words from the words per byte so far
                read = bar.n + sum(map(len, part.present))
                bar.total = round(read * (lines.size - before.read) / (part.bytes - before.read))
            output.commit(parse_window(part, compute, write_all, budget, svg, bar.update), part)
            give_back()
        if not output.journal.sentences:
            raise LalkitError("there is nothing to parse", where=lines.prefix, remedy="Give at least one sentence.")
        output.finish()
    done, seconds = output.journal, time.monotonic() - start
    if lines.size is not None:
        rate = (done.words - before.words) / max(seconds, 1e-9)
        logger.info(f"{done.sentences} sentences, {done.words} words, {rate:.0f} words/s in {seconds:.0f} s")
    if done.empty:
        logger.info("%d empty line(s) skipped", done.empty)
    if svg:
        logger.info("drawings: %s", svg)


@contextmanager
def start_compute(source: Source, workers: int | None, cluster: str | None) -> Iterator[Compute]:
    """Yield whatever parses the batches, and stop it afterwards. Raises LalkitError for more than one choice."""
    if several() + (workers is not None) + (cluster is not None) > 1:
        problem = "--workers, --cluster and `accelerate launch` exclude each other"
        raise LalkitError(problem, remedy="Give only one of them.")
    with ExitStack() as stack:
        compute: Compute
        if several():
            compute = Ranks(source, stack.enter_context(launched()))
        elif cluster is not None:
            compute = Cluster(source, cluster)
        else:
            compute = ThisProcess(source) if workers is None else Workers(source, workers)
        yield stack.enter_context(closing(compute))


def parse_window(
    window: Window,
    compute: Compute,
    write_all: Callable[[ParseResult | None], list[str]],
    budget: int,
    svg: Path | None,
    tick: Callable[[int], object],
) -> list[str]:
    """Parse a window.

    Args:
        window: its sentences may include None, for empty lines.
        compute: parses the batches.
        write_all: returns the text of one result in every output.
        budget: words of a batch.
        svg: a folder for drawings, or None.
        tick: is called with the number of words after every batch.

    Returns:
        The text of the window for every output, in the order of its lines.
    """
    places = [place for place, sentence in enumerate(window.sentences) if sentence is not None]
    groups = [[places[i] for i in group] for group in batches([len(s) for s in window.present], budget)]
    texts = [write_all(None)] * len(window.sentences)
    for task, predictions in compute([Task(group, [window.sentences[place] for place in group]) for group in groups]):
        for place, sentence, prediction in zip(task.places, task.sentences, predictions):
            result = ParseResult(prediction)
            texts[place] = write_all(result)
            if svg:
                line, _, part = sentence.id.rpartition(":")[2].partition(".")  # big.txt:12.3 -> 0012-3.svg
                result.save(svg / (f"{int(line):04d}" + (f"-{part}" if part else "") + ".svg"))
        tick(sum(map(len, task.sentences)))
    return ["".join(column) for column in zip(*texts)]


def forms(text: str) -> tuple[To, ...]:
    """Split a list of forms: 'ptb,json' -> ('ptb', 'json').

    Raises LalkitError for an unknown form, and for a Parquet table if pyarrow is not installed.
    """
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    if unknown := [name for name in names if name not in get_args(To)]:
        raise LalkitError(f"there is no form {unknown[0]!r}", remedy=f"The forms are {', '.join(get_args(To))}.")
    if "parquet" in names and find_spec("pyarrow") is None:
        raise LalkitError("a Parquet table needs pyarrow", remedy="Install it: pip install 'lalkit[parquet]'.")
    return cast(tuple[To, ...], names)


def outputs(out: str | Path, to: Sequence[To]) -> list[Path]:
    """Return the file of every form."""
    return [Path(out)] if len(to) == 1 else [Path(f"{out}.{form}") for form in to]


def write(result: ParseResult | None, to: To, pretty: bool) -> str:
    """Return a result as text. None stands for an empty line, which only bracket output keeps."""
    if result is None:
        return "\n" if to == "ptb" else ""
    if to == "conllu":
        return result.to_conllu()
    return (result.to_ptb(pretty) if to == "ptb" else result.to_json()) + "\n"
