"""Speed and memory as ratios: each fast routine against its literal twin, the whole parser against its bare encoder.

A ratio says what the algorithm costs; milliseconds say what this machine was doing.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from lalkit.bench import beside, contributions, decode, inside, layer, look, parse, spans, together, train
from lalkit.bench.measure import Settings
from lalkit.errors import ParameterError

ROUTINES: dict[str, Callable[[Settings], list[dict]]] = {
    "layer": layer.rows,
    "spans": spans.rows,
    "inside": inside.rows,
    "decode": decode.rows,
    "contributions": contributions.rows,
    "look": look.rows,
    "parse": parse.rows,
    "train": train.rows,
    "together": together.rows,
    "beside": beside.rows,
}


def bench(names: list[str], settings: Settings, say: Callable[[str], None] = lambda text: None) -> list[dict]:
    """Rows of the named routines (none named: all). Raises ParameterError for an unknown one, or a device that is not there."""
    unknown = sorted(set(names) - set(ROUTINES))
    if unknown:
        raise ParameterError(f"there is no routine {unknown[0]!r}", remedy=f"Routines: {', '.join(ROUTINES)}.")
    if settings.device != "cpu" and not torch.cuda.is_available():
        raise ParameterError(f"there is no device {settings.device!r} here", remedy="Leave --device out.")
    if settings.repeats < 1:
        raise ParameterError("--repeats must be at least 1")
    rows = []
    for name in names or list(ROUTINES):
        say(f"{name} ...")
        rows += ROUTINES[name](settings)
    return rows


def table(rows: list[dict]) -> str:
    """The rows for people. x: how many times as fast as the baseline; of it: ours as a multiple of the baseline."""
    lines = []
    for r in rows:
        unit = (
            "of it"
            if r["routine"] in ("look", "parse", "parts", "train", "beside")
            else ""
            if "exponent" in r["mode"]
            else "x"
        )
        memory = "" if r["memory_ratio"] is None else f"  memory {r['memory_ratio']:.3f}"
        what = f"{r['routine']:14} {r['case']}, {r['mode']}"
        lines.append(
            f"{what:66} {r['ours_ms']:>9.2f} ms {r['ratio']:>8.2f} {unit:5} ({r['ratio_min']:.2f} to {r['ratio_max']:.2f}) "
            f"{r['baseline']}{memory}"
        )
    return "\n".join(lines)
