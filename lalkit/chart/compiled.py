"""How chart kernels are compiled (numba) and run over the sentences of a batch (threads)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from numba import njit


def compiled(function: Callable) -> Callable:
    """njit without the interpreter lock, cached on disk where a cache folder can be written, else in memory only.

    No fastmath: it would allow reordered additions, and equal trees would no longer have bit-equal scores everywhere.
    A kernel calls only kernels of its own file: numba's cache does not notice changes in another file.
    """
    try:
        return njit(nogil=True, cache=True)(function)
    except (RuntimeError, OSError):  # "no locator available": a read-only installation, a home that cannot be written
        return njit(nogil=True)(function)


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
