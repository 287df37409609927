"""Will a chart fit? Asked before it is allocated, so that a long sentence gives an error and not a killed process."""

from __future__ import annotations

import os
from pathlib import Path

from lalkit.errors import TooLongError

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
