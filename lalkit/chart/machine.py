"""Will a chart fit? Asked before it is allocated, so that a long sentence gives an error and not a killed process.

How kernels are compiled (numba) and run over the sentences of a batch (threads).

Memory that a step gives back and the next step takes again stays with the process.

By default glibc returns freed memory at the top of its heap to the system, which clears it page by page when it is asked for
again. Kept instead, a step of the label attention at the paper's size takes 47 ms where it took 68.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from numba import njit

from lalkit.errors import TooLongError


def compiled(function: Callable, relaxed: Iterable[str] = ()) -> Callable:
    """njit without the interpreter lock, cached on disk where a cache folder can be written, else in memory only.

    relaxed: LLVM's names of floating-point rules that may be broken. None where sums are made: reordered additions would
    give trees of equal score other bits elsewhere. A kernel calls only kernels of its own file: numba's cache does not
    notice changes in another file.
    """
    options = {"nogil": True, "fastmath": set(relaxed)} if relaxed else {"nogil": True}
    try:
        return njit(cache=True, **options)(function)
    except (RuntimeError, OSError):  # "no locator available": a read-only installation, a home that cannot be written
        return njit(**options)(function)


# The environment of a process that is to use one core: set before torch is loaded.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0"}


def cpu_count() -> int:
    """The cores this process may use (on a cluster fewer than the machine has)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_threads(function: Callable, items: Iterable, threads: int | None) -> list:
    """[function(item) ...] in order, over at most `threads` threads (None: one per core). The first error is raised."""
    if threads is not None and threads < 1:
        raise ValueError(f"threads must be at least 1, not {threads}")
    items = list(items)
    workers = min(threads or cpu_count(), len(items))
    if workers <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, items))


TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # mallopt's names of its settings
HEAP = 2**30  # bytes kept at most
LARGEST = 2**25  # bytes of a block that still comes from the heap: the most that glibc allows
MAPPED = 2**20  # bytes from which a block is mapped on its own, where memory must not grow


def _glibc(name: str):
    """A function of glibc's, or None on other systems."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None


def keep_memory() -> bool:
    """Asks glibc for it, for this process; False on other systems, where nothing happens."""
    mallopt = _glibc("mallopt")
    return bool(mallopt and mallopt(MMAP_THRESHOLD, LARGEST) and mallopt(TRIM_THRESHOLD, HEAP))


def map_large() -> bool:
    """Asks for the opposite: large blocks go back to the system when they are freed, whatever lies behind them.

    Two workers that parse 200,000 words then grow by 20 MB and not by 100 to 180, at up to a sixth less speed; with a
    threshold of 8 MB they grow as without. False on other systems.
    """
    mallopt = _glibc("mallopt")
    return bool(mallopt and mallopt(MMAP_THRESHOLD, MAPPED))


def give_back() -> None:
    """Returns what is free to the system, holes in the heap included: for long runs, which see every shape of batch.

    Without it a process that parsed 100,000 words grew by 130 MB, with it by 8.
    """
    if trim := _glibc("malloc_trim"):
        trim(0)


MEMINFO = Path("/proc/meminfo")
SMALL = 2**22  # bytes of charts that nobody asks the system about: asking takes longer than decoding them
CGROUP = Path("/sys/fs/cgroup")  # version 2: what a container or a SLURM job may use


def available_bytes() -> int | None:
    """Memory this process may still take, in bytes; None where the system does not say (then nothing is refused).

    Linux counts the page cache as used in SC_AVPHYS_PAGES, so MemAvailable is preferred where it can be read.
    """
    limits = [limit for limit in (_free_memory(), _free_in_group()) if limit is not None]
    return min(limits) if limits else None


def _free_memory() -> int | None:
    try:
        for line in MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    for name in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):  # macOS has only the second: all there is, the best it can say
        try:
            return os.sysconf(name) * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, ValueError, OSError):
            continue
    return None


def _free_in_group() -> int | None:
    try:
        limit, used = ((CGROUP / name).read_text().strip() for name in ("memory.max", "memory.current"))
        return None if limit == "max" else max(0, int(limit) - int(used))
    except (OSError, ValueError):
        return None


def chart_bytes(n: int, itemsize: int) -> int:
    """What decoding n words takes: the chart [n+1, n+1, n], best scores and 8-byte labels [n+1, n+1], arcs [n, n+1]."""
    return itemsize * (n + 1) * (n + 1) * n + (itemsize + 8) * (n + 1) * (n + 1) + itemsize * n * (n + 1)


def check_fits(n: int, needed: int, limit: int | None, where: str = "") -> None:
    """Raises TooLongError, naming the words, the bytes needed and the limit, if needed > limit."""
    if limit is not None and needed > limit:
        raise TooLongError(
            f"{n} words need {needed:,} bytes for the joint chart; {limit:,} are available",
            where=where,
            remedy="Split the sentence, or decode on a machine with more memory (the chart grows with the cube of n).",
        )
