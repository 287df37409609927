"""Parse texts that are larger than memory, block by block, in one process or in several.

A block is a number of neighbouring lines. Its results are one file in the folder OUT.parts, which gets its name when it is
complete. When all blocks are there, they are joined to OUT, and the folder is removed. A run that is killed loses only the
blocks that it was parsing, and the same command continues. The blocks, and every byte of the results, are the same for one
process, for worker processes (--workers) and for a dask cluster (--cluster).
"""

from __future__ import annotations

import glob
import hashlib
import json
import logging
import multiprocessing
import os
import signal
import stat
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, ProcessPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import count, islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, cast, get_args

import torch
from tqdm import tqdm

from lalkit import files
from lalkit.api import Parser, ParseResult
from lalkit.chart.machine import give_back, progress
from lalkit.chart.sums import Temperature
from lalkit.config import MOST_PROCESSES, import_modules, modules
from lalkit.errors import LalkitError, ModelError, ParameterError, TreebankError, safe, whole_number
from lalkit.network.batches import usual
from lalkit.network.model import Precision, find_device, resolve_precision
from lalkit.training.checkpoint import fingerprint, read_calibration
from lalkit.treebank.brackets import decode as decode_bytes
from lalkit.treebank.text import Form, check_look, read_lines

logger = logging.getLogger(__name__)

To = Literal["ptb", "conllu", "json"]
LOOKED_AT = 4_000  # bytes at the beginning of a file that show what it is
LONGEST = 1_000_000  # bytes of a line; a longer one is not a sentence or paragraph, but another kind of file
BATCHES, WORD = 10, 6  # a block has about 10 batches, with 6 bytes for each word
SILENCE = 60  # seconds to wait for a dask scheduler and for its first worker
RUN = "run.json"
LOCK = threading.Lock()  # a dask worker may have several threads, but a tokenizer serves one at a time


# ---------------------------------------------------------------- texts and blocks


class Text(NamedTuple):
    """The lines of a text, as bytes, which are read once.

    name: the name of the text in errors about its bytes. prefix: the beginning of the ids of its sentences. status: the
    os.stat of the file; None without a file. start: the byte of the file with which the text begins.
    """

    raw: Iterable[bytes]
    name: str
    prefix: str
    status: os.stat_result | None = None
    start: int = 0

    @property
    def size(self) -> int | None:
        """The number of bytes; None if it is unknown."""
        return self.status.st_size - self.start if self.status and stat.S_ISREG(self.status.st_mode) else None


def from_stream(stream: BinaryIO, name: str, prefix: str) -> Text:
    """Return the lines of an open file or of standard input. At most `LONGEST` bytes of a line are held in memory."""

    def line() -> bytes:
        with files.reading(name, kind=TreebankError):
            return stream.readline(LONGEST + 1)

    start = stream.tell() if stream.seekable() else 0
    return Text(iter(line, b""), name, prefix, os.fstat(stream.fileno()), start)


@contextmanager
def open_lines(path: str | Path) -> Iterator[Text]:
    """Open a file and yield it as a `Text`. Raises TreebankError if the file cannot be read."""
    with files.reading(path, kind=TreebankError):
        stream = Path(path).open("rb")
    name = safe(files.in_utf8(path))  # it goes into the results
    with stream:
        yield from_stream(stream, name, name)


def from_arguments(texts: Iterable[str]) -> Text:
    """Return sentences of the command line as lines. Their bytes need not be valid text; reading them checks that."""
    return Text((text.encode("utf-8", "surrogateescape") for text in texts), "argument", "")


class Block(NamedTuple):
    """Neighbouring lines of a text. first: the number of the first line. bytes, sha256: the size and the hash of all lines."""

    number: int
    first: int
    lines: list[str]
    bytes: int
    sha256: str


def blocks(text: Text, size: int, form: Form = "raw") -> Iterator[Block]:
    """Yield a text in blocks that end with the line that fills them. size: bytes of a block.

    A block of running text or of CoNLL-U ends with the next blank line, or after `LONGEST` bytes.

    Raises TreebankError with file and line for bytes that are not UTF-8, for a NUL byte, for a line that is too long, for another
    kind of file, and at the end of a file that has become shorter since it was opened.
    """
    lines, first, left = iter(text.raw), 1, text.size or 0
    whole = form in ("text", "conllu")
    for number in count():
        block, length = [], 0
        while length < size or (whole and length < LONGEST and block[-1].strip()):
            if (raw := next(lines, None)) is None:
                break
            block.append(raw)
            length += max(1, len(raw))
            if len(raw) > LONGEST:
                break
        if not number and text.name != "argument":
            check_look(b"".join(block)[:LOOKED_AT], form, text.name)
        if block and len(block[-1]) > LONGEST:
            problem, where = f"a line of more than {LONGEST:,} bytes", f"{text.name}, line {first + len(block) - 1}"
            raise TreebankError(problem, where=where, remedy="Put one sentence on a line.")
        if not block:
            if left > 0:
                problem, where = f"became shorter while it was parsed: {left} bytes are missing", text.name
                raise TreebankError(problem, where=where, remedy="Parse a copy that no other program changes.")
            return
        decoded = [decode_bytes(raw, text.name, first_line=place) for place, raw in enumerate(block, first)]
        stripped = [line.removesuffix("\n").rstrip("\r") for line in decoded]
        yield Block(number, first, stripped, length, hashlib.sha256(b"".join(block)).hexdigest())
        first, left = first + len(block), left - sum(map(len, block))


# ---------------------------------------------------------------- one block


@dataclass(frozen=True)
class Job:
    """The parser and the options of a run, as other processes get them. The last three are set by `parse`.

    form: How a line is to be read, see `lalkit.treebank.text.read_line`. to: Forms of the output.
    confidence: Whether conllu and json also say how probable the parts of each parse are. precision: Of the
    scores, see `lalkit.network.model`; if it is auto, the first process chooses for all. prefix: The beginning of the ids of
    sentences. sha256: The fingerprint of the parser, which is compared. temperature: That of the parser's probabilities.
    """

    folder: str | Path
    form: Form = "raw"
    to: tuple[To, ...] = ("ptb",)
    confidence: bool = False
    precision: Precision = "fp32"
    prefix: str = ""
    sha256: str | None = None
    temperature: Temperature = 1.0


@lru_cache(maxsize=1)
def load(job: Job, device: str) -> Parser:
    """Load the parser, once in each process. Raises ModelError if it is not the one with which the run started."""
    parser = Parser.load(job.folder, job.precision, device)
    if job.sha256 and fingerprint(job.folder) != job.sha256:
        remedy = "Perhaps it was trained in the meantime. Copy a parser before you parse with it, and start again."
        raise ModelError("is not the parser that this run started with", where=str(job.folder), remedy=remedy)
    return parser


def parse_block(job: Job, block: Block, device: str = "cpu") -> dict[str, Any]:
    """Parse a block. Return its record: the hash of its lines, counts, and its text in every form of the output."""
    with LOCK:
        parser = load(job, device)
        by_line = read_lines(block.lines, job.form, job.prefix, block.first, parser.reader.hyphens)
        sentences = [sentence for of_line in by_line for sentence in of_line]
        present = [sentence for sentence in sentences if sentence is not None]
        if job.form == "tagged":
            parser.reader.check_tags(present)
        temperature = job.temperature if job.confidence else None
        results = iter(parser.parse_all(present, temperature=temperature))
        in_order = [None if sentence is None else next(results) for sentence in sentences]
    texts = {to: "".join(write(result, to) for result in in_order) for to in job.to}
    give_back()
    counts = {"sentences": len(present), "words": sum(map(len, present)), "empty": len(sentences) - len(present)}
    return {"sha256": block.sha256, "counts": counts, "texts": texts}


def write(result: ParseResult | None, to: To) -> str:
    """Return a result as text. None stands for an empty line, which only bracket output keeps."""
    if result is None:
        return "\n" if to == "ptb" else ""
    if to == "conllu":
        return result.to_conllu()
    return (result.to_ptb() if to == "ptb" else result.to_json()) + "\n"


# ---------------------------------------------------------------- several processes


def start_worker(known: dict[str, str]) -> None:
    """Prepare a worker process. It ends with Ctrl-C, and with its parent, also when that one is killed. known: see `modules`."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    torch.set_num_threads(1)
    os.environ.update(known)
    import_modules()

    def end_with_parent() -> None:
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


def connect(address: str, patience: float = SILENCE):
    """Connect to a dask scheduler and return the client.

    patience: seconds. Raises LalkitError if dask is not installed, if no scheduler answers, or if it has no workers.
    """
    try:
        from distributed import Client

        client = Client(address, timeout=patience, set_as_default=False)
        client.wait_for_workers(1, timeout=patience)
    except (ImportError, OSError, ValueError, TimeoutError) as error:
        remedy = f"Install it: pip install 'lalkit[cluster]'. Start: dask scheduler; dask worker {address} --nthreads 1"
        raise LalkitError(f"no dask scheduler with workers answers ({error})", where=address, remedy=remedy) from None
    return client


def computed(job: Job, todo: Iterator[Block], workers: int | None, cluster: str | None) -> Iterator[tuple[Block, dict]]:
    """Yield blocks with their records, as worker processes or a dask cluster finish them.

    At most two blocks for each worker are computed or wait. Raises LalkitError if a worker dies; dask first gives its blocks to
    other workers.
    """
    with ExitStack() as stack:
        if cluster:
            client = stack.enter_context(connect(cluster))
            pool, workers = client.get_executor(pure=False), len(client.nthreads())
        else:
            pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), start_worker, (modules(),))
            stack.callback(pool.shutdown, cancel_futures=True)
        futures: dict[Any, Block] = {}
        try:
            while True:
                for block in islice(todo, 2 * workers - len(futures)):
                    futures[pool.submit(parse_block, job, block)] = block
                if not futures:
                    return
                for future in wait(futures, return_when=FIRST_COMPLETED).done:
                    yield futures.pop(future), future.result()
        except Exception as error:
            if not isinstance(error, BrokenExecutor | CancelledError) and type(error).__name__ != "KilledWorker":
                raise
            remedy = "Give the same command again, with fewer workers if the memory is too small for so many."
            raise LalkitError(f"a worker died ({type(error).__name__})", where=cluster or "", remedy=remedy) from None


# ---------------------------------------------------------------- the folder of finished blocks


class Parts:
    """The folder OUT.parts: a file for each finished block, and run.json with the settings of the run."""

    def __init__(self, folder: Path, job: Job):
        self.folder = folder
        self.settings = {name: value for name, value in asdict(job).items() if name != "folder"}

    def check(self) -> None:
        """Raise LalkitError if the folder holds anything but the blocks of a run with the same settings."""
        remedy = f"Give the same command as before, or delete {self.folder} to start again."
        if any(self.folder.glob("[!.]*")):
            before = files.read_json(self.folder / RUN, remedy)
            if before != json.loads(json.dumps(self.settings)):
                raise LalkitError("holds blocks of another run", where=str(self.folder), remedy=remedy)

    def path(self, number: int) -> Path:
        return self.folder / f"{number:06d}"

    def has(self, block: Block) -> bool:
        """Return whether a block is finished, and its lines have not changed."""
        return (files.find_json(self.path(block.number)) or {}).get("sha256") == block.sha256

    def add(self, block: Block, record: dict[str, Any]) -> None:
        """Write the record of a block. After this call a kill does not lose it."""
        if not (self.folder / RUN).exists():
            files.write_json(self.folder / RUN, self.settings)
        files.write_json(self.path(block.number), record)

    def join(self, number: int, outs: dict[To, Path]) -> Counter:
        """Join this many blocks into the outputs, empty the folder, and return the sums of all counts.

        If there are no sentences, the folder is emptied and nothing is written.
        """
        records = [self.path(place) for place in range(number)]
        totals = sum((Counter(files.read_json(path, "")["counts"]) for path in records), Counter())
        for to, out in outs.items() if totals["sentences"] else ():
            files.remove_parts(out.parent, out.name)
            texts = (files.read_json(path, "")["texts"][to] for path in records)
            with files.growing_file(out) as stream:
                stream.writelines(text.encode() for text in texts)
        # RUN comes last: without it the blocks would be of unknown settings.
        for path in [*sorted(self.folder.glob("[0-9]*")), *self.folder.glob(".*.part"), self.folder / RUN]:
            path.unlink(missing_ok=True)
        return totals


# ---------------------------------------------------------------- a whole text


def forms(text: str) -> tuple[To, ...]:
    """Split a list of forms: 'ptb,json' -> ('ptb', 'json'). Raises LalkitError for an unknown form."""
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    if unknown := [name for name in names if name not in get_args(To)]:
        raise LalkitError(f"there is no form {unknown[0]!r}", remedy=f"The forms are {', '.join(get_args(To))}.")
    return cast(tuple[To, ...], names)


def parse(
    job: Job, text: Text, out: str | Path | None = None, workers: int | None = None, cluster: str | None = None,
    replace_files: bool = False, device: str = "auto",
) -> None:  # fmt: skip
    """Parse a text, and write the results in the order of its sentences.

    Args:
        job: The parser and the options.
        text: The text.
        out: The output, with the form as a suffix if there are several forms; None for standard output.
        workers: The number of worker processes; None for this process.
        cluster: The address of a dask scheduler. Its workers need the parser under the same path.
        replace_files: Replace existing files OUT.FORM, if there are several forms.
        device: Where this process computes, see `find_device`. Worker processes compute on the CPU.

    Raises:
        LalkitError: A text, a parser or an output cannot be used. The blocks that are finished are kept, and the same command
            continues after them.
    """
    outs = places(job, text, out, workers, cluster)
    with ExitStack() as stack:
        here = find_device("cpu" if workers or cluster else device)
        found = (read_calibration(job.folder) or {}).get("temperature", 1.0)
        job = replace(
            job, folder=str(Path(job.folder).resolve()), prefix=text.prefix,
            precision=resolve_precision(job.precision, here.type, job.confidence, (text.size or 0) // WORD),
            sha256=fingerprint(job.folder) if out else None,
            temperature=tuple(found) if isinstance(found, list) else found,  # a job is the key of a cache
        )  # fmt: skip
        parts = Parts(Path(f"{out}.parts"), job) if out else None
        continues = bool(parts and parts.folder.exists())
        for path in outs.values() if len(outs) > 1 else ():
            files.check_new(path.parent, glob.escape(path.name), replace_files or continues)
        if parts:
            stack.enter_context(files.locked_folder(parts.folder))
            parts.check()
        start, totals, last = time.monotonic(), Counter(), -1
        bar = stack.enter_context(progress(total=text.size, desc="parsing", unit="B"))

        def todo() -> Iterator[Block]:
            """Yield the blocks that are not finished."""
            nonlocal last
            for block in blocks(text, BATCHES * WORD * usual(here.type), job.form):
                last = block.number
                if parts and parts.has(block):
                    bar.update(block.bytes)
                else:
                    yield block

        try:
            alone = ((block, parse_block(job, block, str(here))) for block in todo())
            for block, record in computed(job, todo(), workers, cluster) if workers or cluster else alone:
                if parts:
                    parts.add(block, record)
                else:
                    totals += Counter(record["counts"])
                    with files.writing("standard output"), tqdm.external_write_mode():  # a bar there moves aside
                        sys.stdout.write(record["texts"][job.to[0]])
                        sys.stdout.flush()
                bar.update(block.bytes)
        except LalkitError:
            if parts and any(parts.folder.glob("[!.]*")):
                logger.info("finished blocks are kept in %s; the same command continues", parts.folder)
            raise
        totals = parts.join(last + 1, outs) if parts else totals
    if not totals["sentences"]:
        raise LalkitError("there is nothing to parse", where=text.prefix, remedy="Give at least one sentence.")
    if text.size is not None:
        numbers = totals["sentences"], totals["words"], job.precision, time.monotonic() - start, totals["empty"]
        logger.info("%d sentences, %d words in %s, %.0f s; %d empty line(s) skipped", *numbers)


def places(job: Job, text: Text, out: str | Path | None, workers: int | None, cluster: str | None) -> dict[To, Path]:
    """Return the file of each form. Raises LalkitError for options that do not fit, and for a file that cannot be written."""
    processes = (workers is not None) + (cluster is not None)
    if processes > 1 or (not out and (processes or len(job.to) > 1)):
        problem = "these options exclude each other, or need --out"
        remedy = "Give one of --workers and --cluster; several processes and forms need --out."
        raise ParameterError(problem, remedy=remedy)
    if workers is not None:
        whole_number("--workers", workers, 1, MOST_PROCESSES)
    outs = {to: Path(f"{out}.{to}" if len(job.to) > 1 else str(out)) for to in job.to if out}
    files.check_writable(*outs.values())
    for path in outs.values():
        if text.status and path.exists() and os.path.samestat(text.status, path.stat()):
            raise LalkitError("is the text itself", where=str(path), remedy="Give --out another name.")
    return outs
