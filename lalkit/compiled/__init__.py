"""How kernels are compiled (numba) and run over the sentences of a batch (threads)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from numba import njit


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
