"""What is claimed of a sweep's cells, judged by its runs: holds, does not hold, or cannot be told at this size.

One cell is better than another where the difference of their corpus scores, over the seeds both have, has the same sign for
every seed, and the randomisation test over sentences (the counts of all seeds added up sentence by sentence) finds it
significant at 5% after Holm's correction for all comparisons made. The first asks whether another training would say the
same, the second whether other sentences would; neither alone is enough.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from lalkit.probes.statistics import f1_test, holm
from lalkit.sweep.read import ALL_OTHERS
from lalkit.sweep.table import COUNTED, Sweep, counts

LEVEL = 0.05
HOLDS, NOT, UNKNOWN, ABSENT = "holds", "does not hold", "cannot be told at this size", "not in this sweep"


def compare(sweep: Sweep, first: dict, second: dict, measure: str, split: str) -> dict | None:
    """{seeds, difference (of mean scores, points, first minus second), least, most (of the seeds' differences), p}; None where
    no seed has both cells, with this score: a parser of one layer lacks the other's."""
    one, other = sweep.of(first), sweep.of(second)
    both = sorted(set(one) & set(other))
    seeds = [s for s in both if all(runs[s]["scores"][split][measure] is not None for runs in (one, other))]
    if not seeds:
        return None
    own = [counts(sweep, one[seed], split, measure) for seed in seeds]
    their = [counts(sweep, other[seed], split, measure) for seed in seeds]
    differences = [one[s]["scores"][split][measure] - other[s]["scores"][split][measure] for s in seeds]
    found = f1_test(sum(own), sum(their))
    return {
        "seeds": len(seeds), "difference": float(np.mean(differences)), "least": min(differences),
        "most": max(differences), "p": found.p,
    }  # fmt: skip


def all_pairs(sweep: Sweep, split: str) -> pd.DataFrame:
    """Every pair of cells by every measure: as `compare`, with the cells' names and p corrected within each measure."""
    rows = []
    for measure in COUNTED:
        for first, second in combinations(sweep.cells, 2):
            if found := compare(sweep, first, second, measure, split):
                rows.append({"first": name(first), "second": name(second), "measure": measure, **found})
    table = pd.DataFrame(rows, columns=["first", "second", "measure", "seeds", "difference", "least", "most", "p"])
    table["p_holm"] = table.groupby("measure")["p"].transform(lambda p: holm(p.to_numpy()))
    return table


def judge(sweep: Sweep, split: str) -> pd.DataFrame:
    """A row per claim of the sweep's file: says, by, against (the cell in `than`; of all others, the closest), seeds, difference,
    least, most, p, p_holm, verdict.

    A claim about all others holds if it holds against each of them, and does not hold if it does not against one.
    """
    claims = sweep.content.get("claims") or []
    compared = [
        (i, other, compare(sweep, c["better"], other, c["by"], split)) for i, c, other in _against(sweep, claims)
    ]
    compared = [(i, other, found) for i, other, found in compared if found]
    corrected = holm([found["p"] for _, _, found in compared]) if compared else []
    for (_, _, found), p in zip(compared, corrected):
        found["p_holm"] = float(p)
    rows = []
    for i, claim in enumerate(claims):
        own = [(other, found) for j, other, found in compared if j == i]
        row = {"says": claim["says"], "by": claim["by"]}
        if own:
            other, closest = min(own, key=lambda pair: pair[1]["difference"])
            row |= {"against": name(other), **closest}
        rows.append(row | {"verdict": _together([verdict(found) for _, found in own])})
    columns = ["says", "by", "against", "seeds", "difference", "least", "most", "p", "p_holm", "verdict"]
    return pd.DataFrame(rows).reindex(columns=columns)


def verdict(found: dict) -> str:
    """Of one comparison with its corrected p. One seed shows nothing of what another training would say."""
    sure = found["p_holm"] < LEVEL and found["seeds"] > 1
    if sure and found["least"] > 0:
        return HOLDS
    return NOT if sure and found["most"] < 0 else UNKNOWN


def name(cell: dict) -> str:
    return ", ".join(f"{axis}: {value}" for axis, value in cell.items())


def _against(sweep: Sweep, claims: list[dict]):
    """(claim's number, claim, a cell that it is held against)."""
    for i, claim in enumerate(claims):
        better = {str(axis): str(value) for axis, value in claim["better"].items()}
        others = [c for c in sweep.cells if c != better] if claim["than"] == ALL_OTHERS else [claim["than"]]
        yield from ((i, claim, other) for other in others)


def _together(verdicts: list[str]) -> str:
    if not verdicts:
        return ABSENT
    if NOT in verdicts:
        return NOT
    return HOLDS if set(verdicts) == {HOLDS} else UNKNOWN
