"""`lalkit parse`: lines in, trees out, window by window, with whoever computes in between."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Literal

from lalkit.allocator import give_back
from lalkit.api import ParseResult
from lalkit.batch.budget import batches, usual
from lalkit.checkpoint import fingerprint
from lalkit.errors import LalkitError
from lalkit.stream.cluster import Cluster
from lalkit.stream.compute import Compute, Here, Source
from lalkit.stream.journal import Journal, Part, skip_done
from lalkit.stream.lines import Lines, Window, windows
from lalkit.stream.progress import Progress
from lalkit.stream.ranks import Ranks, several
from lalkit.stream.workers import Workers
from lalkit.text import Form

# A window has, for each of those who compute, at least so many words and batches: what is waited for at its end is then a
# small part of it. However many compute, it has no more than MOST times that, so that memory stays bounded.
WINDOW, BATCHES, MOST = 20_000, 10, 10

To = Literal["ptb", "conllu", "json"]


def parse(
    folder: str | Path,
    lines: Lines,
    *,
    form: Form = "raw",
    to: To = "ptb",
    pretty: bool = False,
    out: str | Path | None = None,
    svg: Path | None = None,
    resume: bool = False,
    workers: int | None = None,
    cluster: str | None = None,
    loud: bool = True,
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr),
    window: int | None = None,
    budget: int | None = None,
) -> None:
    """Parse `lines` with the parser in `folder` and write every result in its place, to `out` or standard output.

    svg: a folder for drawings, named by the number of the line. loud: say at the end how fast it was, even if it was soon.
    window, budget: words in memory and in a batch, None for what is usual. Memory does not grow with the input.
    Raises LalkitError; what was written of `out` before is kept then for `resume`.
    """
    if resume and not out:
        raise LalkitError("--resume needs the --out to go on with")
    source = Source(str(folder))
    if out or workers or cluster or several():  # more than one process will load it, now or when it is gone on with
        source = Source(str(Path(folder).resolve()), fingerprint(folder))
    with ExitStack() as stack:
        compute = stack.enter_context(closing(who(source, workers, cluster, say)))
        if isinstance(compute, Ranks) and not compute.first:
            return compute.serve()
        wanted = Journal(source.sha256 or "", lines.name, form, f"{to} --pretty" if pretty and to == "ptb" else to)
        output = stack.enter_context(Part(out, wanted, resume, say) if out else StandardOutput(wanted))
        done = output.journal
        if output.finished:
            output.finish()
            return say(f"{out} was finished already")
        if done.lines:
            say(f"going on after line {done.lines}")
            skip_done(lines, done, str(output.path))
        progress = Progress(say, lines.size, (done.sentences, done.words, done.read), loud)
        budget = budget or usual(compute.device)
        words = (window or max(WINDOW, BATCHES * budget)) * min(compute.size, MOST)
        for part in windows(lines, form, words):
            text = parse_window(part, compute, written(to, pretty), budget, svg, progress)
            output.commit(text, part)
            give_back()
        if not output.journal.sentences:
            raise LalkitError("there is nothing to parse", where=lines.prefix, remedy="Give at least one sentence.")
        output.finish()
    progress.end()
    if empty := output.journal.lines - output.journal.sentences:
        say(f"{empty} empty line(s) passed over")
    if svg:
        say(f"drawings: {svg}")


def who(source: Source, workers: int | None, cluster: str | None, say: Callable[[str], None]) -> Compute:
    """Who computes."""
    if several() + (workers is not None) + (cluster is not None) > 1:
        raise LalkitError("give one of --workers, --cluster and `accelerate launch`")
    if several():
        return Ranks(source)
    if cluster is not None:
        return Cluster(source, cluster)
    if workers is not None:
        return Workers(source, workers, say)
    return Here(source)


def parse_window(
    window: Window,
    compute: Compute,
    write: Callable[[ParseResult | None], str],
    budget: int,
    svg: Path | None,
    progress: Progress,
) -> str:
    """The output of a window, in the order of its lines."""
    present = window.present
    lengths = [len(sentence) for sentence in present]
    groups = batches(lengths, budget)
    progress.window(sum(lengths), window.bytes)
    texts = [write(None) if s is None else None for s in window.sentences]
    places = [place for place, s in enumerate(window.sentences) if s is not None]
    for number, predictions in compute([[present[i] for i in group] for group in groups]):
        for i, prediction in zip(groups[number], predictions):
            result = ParseResult(prediction)
            texts[places[i]] = write(result)
            if svg:
                result.save(svg / f"{window.first + places[i]:04d}.svg")
        progress.tick(len(predictions), sum(lengths[i] for i in groups[number]))
    return "".join(texts)


def written(to: To, pretty: bool = False) -> Callable[[ParseResult | None], str]:
    """How a result is written; None: an empty line, which only brackets keep the place of."""
    return {
        "ptb": lambda r: "\n" if r is None else r.to_ptb(pretty) + "\n",
        "conllu": lambda r: "" if r is None else r.to_conllu(),
        "json": lambda r: "" if r is None else r.to_json() + "\n",
    }[to]


class StandardOutput:
    """Windows are written as they come; there is nothing to go on with after a kill."""

    finished = False

    def __init__(self, journal: Journal):
        self.journal = journal

    def commit(self, text: str, window: Window) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
        self.journal = self.journal.after(window, 0)

    def finish(self) -> None:
        pass

    def __enter__(self) -> StandardOutput:
        return self

    def __exit__(self, *error) -> None:
        pass
