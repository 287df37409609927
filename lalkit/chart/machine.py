"""Use the machine: compiled kernels, threads, memory, and progress bars.

Importing this file is cheap: numba and tqdm are imported when they are first needed.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from lalkit.errors import TooLongError, whole_number

if TYPE_CHECKING:
    from tqdm import tqdm

# Environment of a process that may use one core. It must be set before torch is loaded.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0"}


def compiled(function: Callable, relaxed: Iterable[str] = ()) -> Callable:
    """Compile a kernel with numba. It runs without the interpreter lock.

    The machine code is cached on disk; where no cache folder can be written, in memory only. A kernel calls only kernels
    of its own file, because numba's cache does not notice changes in another file.

    relaxed: LLVM's names of the floating-point rules that the compiler may break. Give none for kernels that add scores:
    additions in another order would change the bits of a sum, and so perhaps which of two equal trees wins.
    """
    from numba import njit

    options = {"nogil": True, "fastmath": set(relaxed)} if relaxed else {"nogil": True}
    try:
        return njit(cache=True, **options)(function)
    except (RuntimeError, OSError):  # numba finds no folder for its cache: a read-only installation or home
        return njit(**options)(function)


def cpu_count() -> int:
    """Return how many cores this process may use. On a cluster these can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_threads(function: Callable, items: Iterable, threads: int | None) -> list:
    """Return [function(item) ...] in order, computed by at most `threads` threads (None: one per core).

    Python handles Ctrl-C only between two of its own steps, and a kernel is a single step. So this thread only waits, and
    Ctrl-C ends the wait at once. The process can then end while kernels still run: their threads are daemons.
    """
    items, results = list(items), {}
    workers = min(cpu_count() if threads is None else whole_number("threads", threads, 1), len(items))
    todo, errors = iter(enumerate(items)), {}

    def work() -> None:
        for place, item in todo:
            try:
                results[place] = function(item)
            except Exception as error:
                errors[place] = error

    team = [Thread(target=work, daemon=True) for _ in range(workers)]
    for thread in team:
        thread.start()
    for thread in team:
        while thread.is_alive():
            thread.join(WAIT)
    if errors:
        raise errors[min(errors)]
    return [results[place] for place in range(len(items))]


def apart(kernel: Callable, *args) -> Any:
    """Return kernel(*args), computed while this thread waits, as `map_threads` does."""
    return map_threads(lambda _: kernel(*args), [None], 1)[0]


def progress(iterable: Iterable | None = None, *, total: int | None = None, desc: str = "", unit: str = "it") -> tqdm:
    """Return a progress bar: live in a notebook or a terminal, else one new line on standard error about every 15 seconds.

    Without an iterable and without a total, no bar is shown.
    """
    from tqdm.auto import tqdm

    live = tqdm.__module__ == "tqdm.auto" or sys.stderr.isatty()  # the class of this module is the one for notebooks
    options = {"mininterval": 0.5} if live else {"mininterval": 15, "delay": 15, "file": _Lines()}
    return tqdm(
        iterable, desc, total, unit=unit, leave=False, ascii=True, miniters=1, dynamic_ncols=live,
        disable=iterable is None and total is None, **options,
    )  # fmt: skip


class _Lines:
    """A stream for tqdm that writes every state of a bar on a line of its own, and nothing else."""

    def write(self, text: str) -> None:
        if line := text.strip():
            print(line, file=sys.stderr, flush=True)

    def flush(self) -> None:
        pass


# Settings of mallopt, from glibc's malloc.h: keep up to 1 GiB of freed memory; take blocks of up to 32 MiB, the most that glibc
# allows, from the heap.
TRIM_THRESHOLD, MMAP_THRESHOLD = (-1, 2**30), (-3, 2**25)


def keep_memory() -> None:
    """Keep freed memory in this process, so that the next training step can use it again (glibc only).

    By default glibc returns freed memory at the top of its heap to the system. The system clears it page by page when the
    process asks for it again. With the memory kept, a step of the label attention at the paper's size takes 47 ms; it
    took 68.
    """
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None:
        mallopt(*MMAP_THRESHOLD)
        mallopt(*TRIM_THRESHOLD)


def give_back() -> None:
    """Return all free memory to the system, also from holes in the heap. For long runs, which see every shape of batch.

    Without it a process that parsed 100,000 words grew by 130 MB; with it, by 8.
    """
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None:
        trim(0)


WAIT = 0.2  # seconds
CGROUP = Path("/sys/fs/cgroup")  # version 2: the limits of a container or a SLURM job
OWN_GROUP = Path("/proc/self/cgroup")  # names the place of this process's group below CGROUP
SMALL = 2**22  # bytes. For smaller charts, free memory is not checked: the check would take longer than decoding.


def available_bytes() -> int:
    """Return how many bytes this process may still use: the least that the machine or one of its control groups has left."""
    import psutil

    place, left = "", [psutil.virtual_memory().available]
    with suppress(OSError, StopIteration):
        place = next(line[4:] for line in OWN_GROUP.read_text().splitlines() if line.startswith("0::/"))
    for group in (CGROUP / place, *(CGROUP / place).parents):
        with suppress(OSError, ValueError, KeyError):  # no such group, or no limit ("max")
            limit, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
            facts = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
            left.append(max(0, limit - used + int(facts["inactive_file"])))  # cached files are free
    return min(left)


def chart_bytes(n: int, itemsize: int) -> int:
    """Return the bytes for decoding n words: chart [n+1, n+1, n], best scores and labels [n+1, n+1], arcs [n, n+1].

    A label takes 8 bytes, everything else itemsize.
    """
    return itemsize * (n + 1) * (n + 1) * n + (itemsize + 8) * (n + 1) * (n + 1) + itemsize * n * (n + 1)


NOT_FINITE = "The weights are damaged, or the training diverged: copy the parser again, or lower train.rate."


def check_fits(n: int, needed: int, limit: int | None, where: str = "") -> None:
    """Raise TooLongError if a chart needs more bytes than the limit, so that a long sentence does not kill the process."""
    if limit is not None and needed > limit:
        problem = f"{n:,} words need {needed:,} bytes for scores and charts; {limit:,} are available"
        fit = int(n * (limit / needed) ** (1 / 3))  # nearly all is a chart, which grows with the cube of n
        remedy = f"Split the sentence (about {fit:,} words fit here), or use a machine with more memory."
        raise TooLongError(problem, where=where, remedy=remedy)
