"""Speed and memory as ratios: each fast routine against its slow twin, the whole parser against its bare encoder.

A ratio says what the algorithm costs. Milliseconds say more about the machine and what else it was doing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import torch

from lalkit.bench import routines, whole_parser
from lalkit.bench.measure import MULTIPLES, Settings
from lalkit.errors import ParameterError

logger = logging.getLogger(__name__)

# The names that the command line knows, in the order of its rows.
ROUTINES: dict[str, Callable[[Settings], list[dict]]] = {
    "layer": routines.layer,
    "spans": routines.spans,
    "inside": routines.inside,
    "decode": routines.decode,
    "probabilities": routines.probabilities,
    "contributions": routines.contributions,
    "look": whole_parser.look,
    "parse": whole_parser.parse,
    "start": whole_parser.start,
    "train": whole_parser.train,
    "together": whole_parser.together,
    "beside": whole_parser.beside,
}


def bench(names: list[str], settings: Settings) -> list[dict]:
    """Return the rows of the named routines, or of all if no name is given.

    Raises ParameterError for an unknown routine, for a device that is not there, and for fewer than one round.
    """
    unknown = sorted(set(names) - set(ROUTINES))
    if unknown:
        raise ParameterError(f"there is no routine {unknown[0]!r}", remedy=f"Routines: {', '.join(ROUTINES)}.")
    if settings.device != "cpu" and not torch.cuda.is_available():
        raise ParameterError(f"there is no device {settings.device!r} here", remedy="Leave --device out.")
    if settings.repeats < 1:
        raise ParameterError(f"--repeats is {settings.repeats}", remedy="Give 1 or more.")
    rows = []
    for name in names or ROUTINES:
        logger.info("%s ...", name)
        rows += ROUTINES[name](settings)
    return rows


def table(rows: list[dict]) -> str:
    """Return the rows as text. x: how many times as fast as the baseline; of it: ours as a multiple of the baseline."""
    lines = []
    for r in rows:
        unit = "" if "exponent" in r["mode"] else "of it" if r["routine"] in MULTIPLES else "x"
        memory = "" if r["memory_ratio"] is None else f"  memory {r['memory_ratio']:.3f}"
        what = f"{r['routine']:14} {r['case']}, {r['mode']}"
        lines.append(
            f"{what:66} {r['ours_ms']:>9.2f} ms {r['ratio']:>8.2f} {unit:5} ({r['ratio_min']:.2f} to {r['ratio_max']:.2f}) "
            f"{r['baseline']}{memory}"
        )
    return "\n".join(lines)
