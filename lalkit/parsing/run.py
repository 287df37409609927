"""`lalkit parse`: lines in, trees out, window by window, with whoever computes in between.

How far, how fast, how long still: a line of text every few seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Literal, get_args

from lalkit.api import ParseResult
from lalkit.chart.machine import give_back
from lalkit.errors import LalkitError
from lalkit.network.batches import batches, usual
from lalkit.parsing.cluster import Cluster, Ranks
from lalkit.parsing.compute import Compute, Here, Source
from lalkit.parsing.journal import Journal, Part, skip_done
from lalkit.parsing.lines import Lines, Window, windows
from lalkit.parsing.workers import Workers
from lalkit.training.checkpoint import fingerprint
from lalkit.training.parallel import several
from lalkit.treebank.text import Form


class Progress:
    """Counts sentences and words done; says so every `every` seconds, and at the end if it said anything or `always`.

    size: bytes of the input, for the time left; done: sentences, words and bytes of an earlier run, which count as done but
    not for the rate.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        size: int | None = None,
        done: tuple[int, int, int] = (0, 0, 0),
        always: bool = False,
        every: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.say, self.size, self.every, self.clock = say, size, every, clock
        self.sentences, self.words, self.read = done
        self.read_words, self.before = self.words, self.words
        self.started = self.said = clock()
        self.speaks = always

    def window(self, words: int, read: int) -> None:
        """A window has been read: its words, and the bytes of the input up to its end."""
        self.read_words, self.read = self.words + words, read

    def tick(self, sentences: int, words: int) -> None:
        """These have been parsed."""
        self.sentences += sentences
        self.words += words
        if self.clock() - self.said >= self.every:
            self.said, self.speaks = self.clock(), True
            self.say(f"{self._counts()}{self._left()}")

    def end(self) -> None:
        if self.speaks:
            self.say(f"{self._counts()} in {_duration(self.clock() - self.started)}")

    def rate(self) -> float:
        """Words a second in this run."""
        return (self.words - self.before) / max(self.clock() - self.started, 1e-9)

    def _counts(self) -> str:
        return f"{self.sentences} sentences, {self.words} words, {self.rate():.0f} words/s"

    def _left(self) -> str:
        """Words still to come, by the words per byte so far, at the rate so far."""
        if not self.size or not self.read or not self.rate():
            return ""
        left = max(self.size * self.read_words / self.read - self.words, 0)
        return f", {min(100, 100 * self.words * self.read / (self.read_words * self.size)):.0f} %, " + (
            f"{_duration(left / self.rate())} left"
        )


def _duration(seconds: float) -> str:
    """5 s, 4:05 min, 3:07 h."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return (
        f"{int(seconds) // 60}:{int(seconds) % 60:02d} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d} h"
    )


# A window has, for each of those who compute, at least so many words and batches: what is waited for at its end is then a
# small part of it. However many compute, it has no more than MOST times that, so that memory stays bounded.
WINDOW, BATCHES, MOST = 20_000, 10, 10

To = Literal["ptb", "conllu", "json"]


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
    loud: bool = True,
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr),
    window: int | None = None,
    budget: int | None = None,
) -> None:
    """Parse `lines` with the parser in `folder` and write every result in its place, to `out` or standard output.

    to: one form, written to `out` as it is named, or several, each to `out` with the form as its suffix. svg: a folder for
    drawings, named by the number of the line (in running text, and of the sentence in it). loud: say at the end how fast it
    was, even if it was soon.
    window, budget: words in memory and in a batch, None for what is usual. Memory does not grow with the input.
    Raises LalkitError; what was written of `out` before is kept then for `resume`.
    """
    if not out and (resume or len(to) > 1):
        raise LalkitError(f"{'--resume' if resume else 'more than one form'} needs an --out, the name of a file")
    source = Source(str(folder))
    if out or workers or cluster or several():  # more than one process will load it, now or when it is gone on with
        source = Source(str(Path(folder).resolve()), fingerprint(folder))
    with ExitStack() as stack:
        compute = stack.enter_context(closing(who(source, workers, cluster, say)))
        if isinstance(compute, Ranks) and not compute.first:
            return compute.serve()
        kind = ",".join(f"{t} --pretty" if pretty and t == "ptb" else t for t in to)
        wanted = Journal(source.sha256 or "", lines.name, form, kind)
        outs = outputs(out, to) if out else []
        output = stack.enter_context(Part(outs, wanted, resume, say) if out else StandardOutput(wanted))
        done = output.journal
        if output.finished:
            output.finish()
            return say(f"{', '.join(map(str, outs))}: finished already")
        if done.lines:
            say(f"going on after line {done.lines}")
            skip_done(lines, done, str(output.paths[0]))
        progress = Progress(say, lines.size, (done.sentences, done.words, done.read), loud)
        budget = budget or usual(compute.device)
        words = (window or max(WINDOW, BATCHES * budget)) * min(compute.size, MOST)
        for part in windows(lines, form, words):
            writers = [written(t, pretty) for t in to]
            output.commit(parse_window(part, compute, writers, budget, svg, progress), part)
            give_back()
        if not output.journal.sentences:
            raise LalkitError("there is nothing to parse", where=lines.prefix, remedy="Give at least one sentence.")
        output.finish()
    progress.end()
    if output.journal.empty:
        say(f"{output.journal.empty} empty line(s) passed over")
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
    writers: Sequence[Callable[[ParseResult | None], str]],
    budget: int,
    svg: Path | None,
    progress: Progress,
) -> list[str]:
    """The text of a window for every output, in the order of its lines."""
    present = window.present
    lengths = [len(sentence) for sentence in present]
    groups = batches(lengths, budget)
    progress.window(sum(lengths), window.bytes)
    texts = [[write(None) if s is None else None for s in window.sentences] for write in writers]
    places = [place for place, s in enumerate(window.sentences) if s is not None]
    for number, predictions in compute([[present[i] for i in group] for group in groups]):
        for i, prediction in zip(groups[number], predictions):
            result = ParseResult(prediction)
            for text, write in zip(texts, writers):
                text[places[i]] = write(result)
            if svg:
                result.save(svg / f"{_numbers(present[i].id)}.svg")
        progress.tick(len(predictions), sum(lengths[i] for i in groups[number]))
    return ["".join(text) for text in texts]


def _numbers(id: str) -> str:
    """'big.txt:12' -> '0012', 'big.txt:12.3' -> '0012-3'."""
    line, _, sentence = id.rpartition(":")[2].partition(".")
    return f"{int(line):04d}" + (f"-{sentence}" if sentence else "")


def forms(text: str) -> tuple[To, ...]:
    """'ptb,json' -> ('ptb', 'json'). Raises LalkitError for a form there is not."""
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    if unknown := [form for form in found if form not in get_args(To)]:
        raise LalkitError(f"there is no form {unknown[0]!r}", remedy=f"The forms are {', '.join(get_args(To))}.")
    return found


def outputs(out: str | Path, to: Sequence[To]) -> list[Path]:
    """Where every form is written."""
    if len(to) == 1:
        return [Path(out)]
    return [Path(out).with_name(f"{Path(out).name}.{form}") for form in to]


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

    def commit(self, texts: Sequence[str], window: Window) -> None:
        sys.stdout.write("".join(texts))
        sys.stdout.flush()
        self.journal = self.journal.after(window, [])

    def finish(self) -> None:
        pass

    def __enter__(self) -> StandardOutput:
        return self

    def __exit__(self, *error) -> None:
        pass
