"""Speed and memory as ratios: each fast routine against its slow twin, the whole parser against its bare encoder.

A ratio says what the algorithm costs. Milliseconds say more about the machine and what else it was doing.
"""

from __future__ import annotations

import logging

import torch

from lalkit.bench import routines, whole_parser
from lalkit.bench.measure import MULTIPLES, Settings
from lalkit.errors import ParameterError, whole_number

logger = logging.getLogger(__name__)

# In the order of the rows. The command line knows them by their names.
FUNCTIONS = (
    routines.layer, routines.spans, routines.inside, routines.decode, routines.probabilities, routines.contributions,
    whole_parser.look, whole_parser.parse, whole_parser.start, whole_parser.train, whole_parser.together, whole_parser.beside,
)  # fmt: skip
ROUTINES = {function.__name__: function for function in FUNCTIONS}


def bench(names: list[str], settings: Settings) -> list[dict]:
    """Return the rows of the named routines, or of all if no name is given.

    Raises ParameterError for an unknown routine, for a device that is not there, and for fewer than one round.
    """
    unknown = sorted(set(names) - set(ROUTINES))
    if unknown:
        raise ParameterError(f"there is no routine {unknown[0]!r}", remedy=f"Routines: {', '.join(ROUTINES)}.")
    if settings.device != "cpu" and not torch.cuda.is_available():
        raise ParameterError(f"there is no device {settings.device!r} here", remedy="Leave --device out.")
    whole_number("--repeats", settings.repeats, 1)
    rows = []
    for name in names or ROUTINES:
        logger.info("%s ...", name)
        rows += ROUTINES[name](settings)
    return rows


def table(rows: list[dict]) -> str:
    """Return the rows as text. A ratio says how many times as fast as the baseline ours is, or how many times as long."""
    lines = []
    for r in rows:
        unit = "" if "exponent" in r["mode"] else "x as long" if r["routine"] in MULTIPLES else "x as fast"
        memory = "" if r["memory_ratio"] is None else f"  memory {r['memory_ratio']:.3f}"
        what = f"{r['routine']:14} {r['case']}, {r['mode']}"
        lines.append(
            f"{what:66} {r['ours_ms']:>9.2f} ms {r['ratio']:>8.2f} {unit:9} ({r['ratio_min']:.2f} to {r['ratio_max']:.2f}) "
            f"{r['baseline']}{memory}"
        )
    return "\n".join(lines)
