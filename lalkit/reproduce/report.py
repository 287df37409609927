"""Report sweeps: one tidy table with a row for each run, the tests of every pair of cells, the claims, and a figure.

A cell is one combination of the grid's values. Its runs differ only in their seed, so the unit of every test of cells is the
run: Welch's t test over the seeds, with the 95 % interval of the difference, corrected by Holm. Beside it stands an equivalence
test, because "not significant" does not mean "equal". The p of claims are corrected over their family: the claims of one file in
all sweeps that are reported together.

A report has these files; `read_sweep` reads a sweep from them as well as from the folder of its runs:

    NAME.csv                a row for each run: its cell, seed, scores, weights, minutes, best epoch and learning curve
    NAME-sentences.csv.gz   the counts of every sentence in every run, for tests over sentences
    NAME.json               the description of the sweep, with its claims as they were written before the runs; the full
                            settings of every cell (`check` compares them with those of the present file)
    NAME.md, NAME.png       the report; the picture is optional
"""

from __future__ import annotations

import glob
import gzip
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lalkit.config import override, to_dict
from lalkit.draw.figures import sweep_figure
from lalkit.draw.pages import png, render
from lalkit.errors import ParameterError
from lalkit.evaluation import statistics
from lalkit.evaluation.statistics import COUNTS
from lalkit.files import check_new, read_json, write_bytes, write_json, write_text
from lalkit.reproduce.sweep import Description, Same, describe, finished, read_description, read_result
from lalkit.treebank.corpora import repository, shipped

SCORES = ("f1", "exact", "uas", "las", "tag_accuracy")
COUNTED = tuple(COUNTS)  # the scores that are compared
KEPT = list(dict.fromkeys(column for columns in COUNTS.values() for column in columns))  # the counts of a sentence
SETTINGS = ("config", "treebank", "scored", "vocabulary", "parameters")  # of a cell, which its first run gives
NAMES = {"f1": "F1", "uas": "UAS", "las": "LAS", "tag_accuracy": "tags"}
LEVEL = 0.05
SHOWN = 6  # of the runs that are missing
MARGIN = 0.3  # points: cells that differ by less are called equal
COMPARED = ["seeds", "difference", "low", "high", "p", "equal_p"]
COMPARISON = ["sweep", "cell", "against", "by", "tested"]  # rows with equal values here are one comparison
HOLDS, NOT, UNKNOWN, ABSENT = "holds", "does not hold", "not significant at this size", "not in this sweep"
FEW = "too few runs to test"
REMEDY = "Give the folder that `lalkit sweep` wrote, such as runs/sweeps/trial-sample, or the NAME.csv of a report."
PICTURE = "F1, UAS and LAS of every run with the interval of each cell, and the scores on dev by epoch"
JUDGED = """*Better*: Welch's t test over seeds. *The same*: the equivalence test, with the margin that the claim states. p is
corrected (Holm) for all claims of: {}. The level is 5 %."""


@dataclass(frozen=True)
class Sweep:
    """A sweep with its results.

    record: name, profile, file (the description as it was read) and missing (a few words for each run without a result);
    description: the file with the values of the profile; runs: a row for each run; counts: name of a run -> a row for each
    sentence of the part that is reported.
    """

    record: dict
    description: Description
    runs: pd.DataFrame
    counts: dict[str, pd.DataFrame]

    @property
    def name(self) -> str:
        return "-".join(filter(None, (self.record["name"], self.record["profile"])))

    @property
    def axes(self) -> list[str]:
        return list(self.runs.columns[: self.runs.columns.get_loc("seed")])

    @cached_property
    def groups(self) -> dict[str, pd.DataFrame]:
        """Return the runs of every cell that has one, in the plan's order, by the description of the cell."""
        names = self.runs[self.axes].apply(lambda row: describe(dict(row)), axis=1)
        return dict(list(self.runs.groupby(names, sort=False)))

    def cell(self, values: dict) -> str:
        """Return the description of a cell that a claim names, whose axes may stand in another order."""
        return describe(dict(sorted(values.items(), key=lambda item: [*self.axes, item[0]].index(item[0]))))

    def curves(self) -> pd.DataFrame:
        """Return a row for each run and epoch with the scores on dev: the axes, seed, epoch, f1, uas, las."""
        rows = [
            {**{name: row[name] for name in (*self.axes, "seed")}, **epoch}
            for row in self.runs.to_dict("records")
            for epoch in json.loads(row["curve"] or "[]")
        ]
        return pd.DataFrame(rows, columns=[*self.axes, "seed", "epoch", *COUNTED])

    def figure(self) -> Figure:
        """Draw the runs with the interval of each cell, and the scores on dev by epoch."""
        return sweep_figure(self.runs, self.curves(), self.axes, COUNTED)

    def cells(self) -> pd.DataFrame:
        """Return a row for each cell: the axes, the number of seeds, and for each score its mean, standard deviation (n - 1) and
        95 % interval over the seeds (SCORE, SCORE sd, SCORE low, SCORE high); the means of weights, minutes and peak MB; and
        `paper f1` and so on where the description names a row of the paper."""
        rows = []
        for runs in self.groups.values():
            row = {**runs.iloc[0][self.axes], "seeds": len(runs)}
            for score in SCORES:
                values = runs[score].astype(float)
                row[score], row[f"{score} low"], row[f"{score} high"] = statistics.mean_of_runs(values)
                row[f"{score} sd"] = values.std(ddof=1)
            row |= {size: runs[size].astype(float).mean() for size in ("parameters", "minutes", "peak_mb")}
            rows.append(row | paper_scores(self.description, row))
        return pd.DataFrame(rows)

    def compare(self, first: str, second: str, measure: str, margin: float = MARGIN) -> dict | None:
        """Compare two cells by one measure over their seeds.

        Returns:
            seeds (of the cell that has fewer); difference (of the means in points, first minus second), low, high and p of
            Welch's test; equal_p of the equivalence test with this margin. None if one of the cells has no such score: a parser
            of one layer lacks the scores of the other.
        """
        sides = [self.groups.get(cell, self.runs[:0])[measure].dropna().astype(float) for cell in (first, second)]
        if not all(map(len, sides)):
            return None
        return {"seeds": min(map(len, sides)), **asdict(statistics.welch(sides[0], sides[1], margin))}

    def pairs(self) -> pd.DataFrame:
        """Compare every pair of cells by every measure, as `compare` does, with p corrected within each measure (p_holm)."""
        rows = [
            {"first": first, "second": second, "measure": measure, **compared}
            for measure in COUNTED
            for first, second in combinations(self.groups, 2)
            if (compared := self.compare(first, second, measure))
        ]
        table = pd.DataFrame(rows, columns=["first", "second", "measure", *COMPARED])
        return table.assign(p_holm=table.groupby("measure")["p"].transform(_corrected))

    def claims(self, family: Iterable[Sweep] = ()) -> pd.DataFrame:
        """Return a row for each claim of the description, with its verdict.

        The columns are says, by, against (the cell it is compared with; of all others, the closest), those of `compare`, p_holm
        and verdict. A claim that a cell is better is judged by Welch's p; a claim that two cells are the same by the p of the
        equivalence test with its own margin. A claim about all others holds if it holds against each of them, and does not hold
        if it does not hold against one.

        family: The other sweeps over whose claims p is corrected, see `comparisons`.
        """
        table, judged = comparisons([self, *family]), []
        for number, claim in enumerate(self.description.claims):
            mine = table[(table["sweep"] == self.name) & (table["claim"] == number)]
            against = mine.sort_values("difference").to_dict("records")
            verdicts = {verdict(claim, comparison) for comparison in against}
            together = next((v for v in (NOT, FEW, UNKNOWN, HOLDS) if v in verdicts), ABSENT)
            judged.append({**(against or [{}])[0], "says": claim.says, "by": claim.by, "verdict": together})
        return pd.DataFrame(judged, columns=["says", "by", "against", *COMPARED, "p_holm", "verdict"])

    def false_alarms(self, measure: str = "f1", rounds: int = 1000) -> tuple[list[bool], list[bool]]:
        """Test groups of runs of the *same* cell at 5 %: about 5 of 100 such tests should be significant.

        Returns:
            For all splits of the seeds of a cell into two groups (`split_tests`), whether p < 0.05; and the same for the test
            over sentences (`f1_test`) between every two seeds of a cell, if the counts of sentences were kept.
        """
        over_seeds, over_sentences = [], []
        for runs in self.groups.values():
            runs = runs.dropna(subset=[measure])
            over_seeds += [p < LEVEL for p in statistics.split_tests(runs[measure].astype(float))]
            if self.counts and len(runs):
                pairs = combinations((self.counts[run][COUNTS[measure]].to_numpy() for run in runs["run"]), 2)
                over_sentences += [statistics.f1_test(first, second, rounds).p < LEVEL for first, second in pairs]
        return over_seeds, over_sentences


def comparisons(sweeps: Iterable[Sweep]) -> pd.DataFrame:
    """Compare the cells that the claims of a family of sweeps name.

    Returns: a row for each comparison: sweep, claim (its number), cell, against, by, the columns of `Sweep.compare`, tested (the
        p that judges it) and p_holm. p is corrected for all rows; a comparison that is there twice counts once.
    """
    rows = []
    for sweep in {sweep.name: sweep for sweep in sweeps}.values():
        for number, claim in enumerate(sweep.description.claims):
            cell = sweep.cell(claim.same if isinstance(claim, Same) else claim.better)
            other = claim.as_ if isinstance(claim, Same) else claim.than
            for against in [c for c in sweep.groups if c != cell] if isinstance(other, str) else [sweep.cell(other)]:
                if found := sweep.compare(cell, against, claim.by, getattr(claim, "within", MARGIN)):
                    row = {"sweep": sweep.name, "claim": number, "cell": cell, "against": against, "by": claim.by}
                    rows.append({**row, **found, "tested": found["equal_p" if isinstance(claim, Same) else "p"]})
    table = pd.DataFrame(rows, columns=[*COMPARISON, "claim", *COMPARED])
    once = _corrected(table["tested"].mask(table.duplicated(COMPARISON)))
    return table.assign(p_holm=table.assign(once=once).groupby(COMPARISON, dropna=False)["once"].transform("first"))


def read_sweep(path: str | Path) -> Sweep:
    """Read a sweep from the folder of its runs, or from the NAME.csv of a report.

    >>> lalkit.read_sweep("figures/sweeps/trial.csv").cells()  # doctest: +SKIP

    Raises ParameterError if it holds no sweep, or a damaged one, or if none of its runs ended well.
    """
    path = Path(path)
    try:
        if (path / "sweep.json").exists():
            return _read_runs(path, read_json(path / "sweep.json", REMEDY, ParameterError))
        if path.suffix == ".csv" and path.exists():
            return _read_tables(path, read_json(path.with_suffix(".json"), REMEDY, ParameterError))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ParameterError(f"is damaged: {error}", where=str(path), remedy=REMEDY) from None
    raise ParameterError("holds no sweep", where=str(path), remedy=REMEDY)


def _read_runs(folder: Path, plan: dict) -> Sweep:
    description = Description.check(plan["file"], f"{folder}/sweep.json: file").of(plan["profile"])
    results, missing, cells = [], [], {}
    for run in plan["runs"]:
        if result := finished(folder / run["folder"], run["key"]):
            results.append((run, result))
            cells.setdefault(describe(run["cell"]), {key: result.get(key) for key in SETTINGS})
        else:
            failed = read_result(folder / run["folder"]).get("status") == "failed"
            missing.append(f"{describe(run['cell'])}, seed {run['seed']}: {'failed' if failed else 'not run'}")
    if not results:
        raise ParameterError("no run of it has ended well", where=str(folder), remedy="Run `lalkit sweep` again.")
    split, rows, counts = "test" if all("test" in result["scores"] for _, result in results) else "dev", [], {}
    for run, result in results:
        name, curve_of = Path(run["folder"]).name, ("epoch", *COUNTED)
        curve = [{key: _rounded(epoch.get(key)) for key in curve_of} for epoch in result["history"]]
        rows.append(
            {
                **{axis: run["cell"][axis] for axis in description.grid}, "seed": run["seed"], "run": name, "split": split,
                **{score: _rounded(result["scores"][split][score]) for score in SCORES},
                "parameters": result["parameters"], "minutes": round(result["seconds"] / 60, 1),
                "peak_mb": result["peak_memory_mb"], "epochs": result["epochs"], "best_epoch": result["best_epoch"],
                "device": result["device"], "commit": result["git"] or "", "curve": json.dumps(curve),
            }
        )  # fmt: skip
        table = pd.read_csv(folder / run["folder"] / f"{split}.csv", usecols=KEPT, dtype=float)
        counts[name] = table[KEPT].fillna(0).astype(int)
    record = {key: plan[key] for key in ("name", "profile", "file")} | {"cells": cells, "missing": missing}
    return Sweep(record, description, pd.DataFrame(rows), counts)


def _read_tables(path: Path, record: dict) -> Sweep:
    description = Description.check(record["file"], f"{path.with_suffix('.json')}: file").of(record["profile"])
    texts = dict.fromkeys([*description.grid, "run", "split", "device", "commit", "curve"], str)
    runs = pd.read_csv(path, dtype=texts, keep_default_na=False, na_values=dict.fromkeys((*SCORES, "peak_mb"), [""]))
    sentences = path.with_name(f"{path.stem}-sentences.csv.gz")
    tables = pd.read_csv(sentences, dtype={"run": str}).groupby("run", sort=False) if sentences.exists() else ()
    return Sweep(record, description, runs, {name: table[KEPT].reset_index(drop=True) for name, table in tables})


def _rounded(score: float | None) -> float | None:
    """Return a score as the files of a report hold it, so that a report can be made again from them."""
    return None if score is None else round(score, 4)


def check(path: str | Path, profile: str | None = None) -> list[str]:
    """Compare the committed table of a sweep, NAME.csv or NAME-PROFILE.csv in figures/, with its file as it is now.

    Returns:
        A line for each setting and number of weights of a cell that differs; nothing if the networks and trainings are the same.
        A setting that lalkit no longer has is not compared: the table keeps its value.

    Raises:
        ParameterError: The file is not a sweep, or has no committed table.
    """
    from lalkit.network.parser import Network
    from lalkit.network.vocabulary import Vocab

    now = read_description(path)[1].of(profile)
    name = "-".join(filter(None, (now.name, profile)))
    table = next((repository() / "figures").glob(f"*/{name}.csv"), f"figures/sweeps/{name}.csv")
    before, lines = read_sweep(table).record.get("cells", {}), []
    for cell, config, treebank in now.cells():
        if not (was := before.pop(describe(cell), None)):
            lines.append(f"{describe(cell)}: only in the file")
            continue
        names = {name: tuple(map(str, range(size))) for name, size in was.pop("vocabulary").items()}
        weights = Network(config.model, Vocab(**names), weights=False).size()
        config = override(config, {"train.seed": now.seeds[0]})
        is_ = {"config": to_dict(config), "treebank": treebank, "scored": now.treebank, "parameters": weights}
        old, new = (pd.json_normalize(side).to_dict("records")[0] for side in (was, is_))  # by their full names
        changed = [name for name in new if old.get(name) != new.get(name)]
        lines += [f"{describe(cell)}: {name} was {old.get(name)}, is {new.get(name)}" for name in changed]
    return lines + [f"{cell}: only in the table" for cell in before]


def paper_scores(description: Description, cell: dict) -> dict[str, float]:
    """Return the paper's f1, uas and las for a cell, as `paper f1` and so on; nothing if it has no such row.

    Raises ParameterError if the table of the paper, or a column of it, is not there.
    """
    if description.paper is None:
        return {}
    file = shipped() / "paper" / f"{description.paper.table}.csv"
    try:
        table = pd.read_csv(file, dtype=str)
        for axis, place in description.paper.rows.items():
            wanted = {str(name): str(value) for name, value in place.values.items()}.get(cell.get(axis))
            table = table[table[place.column] == wanted]
        return {f"paper {name}": float(table[name].iloc[0]) for name in COUNTED} if len(table) == 1 else {}
    except (OSError, KeyError) as error:
        remedy = "`paper: table` names a file of data/paper, and `rows` its columns."
        raise ParameterError(f"{file.name}: {error}", where=f"{description.name}: paper", remedy=remedy) from None


def _corrected(p: pd.Series) -> pd.Series:
    """Return the p values corrected for their number; a missing one stays missing and does not count."""
    corrected, known = p.astype(float), p.notna()
    corrected[known] = statistics.holm(p[known])
    return corrected


def verdict(claim, comparison: dict) -> str:
    """Judge one comparison of a claim by its corrected p, which is missing if a cell has a single run."""
    if np.isnan(comparison["p"]):
        return FEW
    if isinstance(claim, Same):
        if comparison["p_holm"] < LEVEL:
            return HOLDS
        return NOT if max(comparison["low"], -comparison["high"]) > claim.within else UNKNOWN
    if not comparison["p_holm"] < LEVEL:
        return UNKNOWN
    return HOLDS if comparison["difference"] > 0 else NOT


def report(places: Sequence[str | Path], out: str | Path, replace: bool = True, picture: bool = True) -> list[Path]:
    """Write the report of sweeps into a folder, and return its files (see the top of this module).

    places: folders of runs, or the NAME.csv of reports. replace: whether an earlier report of the same name may be replaced.
    picture: write NAME.png, too; without it the page says how to draw it. Raises ParameterError as `read_sweep` does, and for
    two sweeps of one name, before it writes. Sweeps of one file are a family: see `comparisons`.
    """
    sweeps: dict[str, Sweep] = {}
    for sweep in map(read_sweep, places):
        if sweep.name in sweeps:
            remedy = "Report them one by one, each with its own --out."
            raise ParameterError(f"two sweeps are called {sweep.name}, and files are named so", remedy=remedy)
        check_new(out, f"{glob.escape(sweep.name)}.csv", replace)
        sweeps[sweep.name] = sweep
    out, written = Path(out), []
    for name, sweep in sweeps.items():
        parts = _parts(sweep, [other for other in sweeps.values() if other.record["name"] == sweep.record["name"]])
        first = f"![{PICTURE}]({name}.png)" if picture else f'{PICTURE}: `lalkit.read_sweep("{name}.csv").figure()`.'
        page = render("reproduce/report.md.jinja", title=sweep.description.question, first=first, parts=parts)
        written.append(write_json(out / f"{name}.json", sweep.record))
        if sweep.counts:
            tables = [table.assign(run=run, sentence=range(len(table))) for run, table in sweep.counts.items()]
            text = pd.concat(tables)[["run", "sentence", *KEPT]].to_csv(index=False)
            written.append(write_bytes(out / f"{name}-sentences.csv.gz", gzip.compress(text.encode(), 9, mtime=0)))
        if picture:
            written.append(write_bytes(out / f"{name}.png", png(sweep.figure())))
        written.append(write_text(out / f"{name}.md", page))
        # The last one means that the report has ended.
        written.append(write_text(out / f"{name}.csv", sweep.runs.to_csv(index=False, float_format="%.6g")))
    return written


def _parts(sweep: Sweep, family: Sequence[Sweep]) -> dict[str, pd.DataFrame | str]:
    """Return the parts of the page: heading -> a table of text, or a sentence."""
    runs, description = sweep.runs, sweep.description
    seeds, epochs, devices = (", ".join(map(str, sorted(set(runs[name])))) for name in ("seed", "epochs", "device"))
    parts: dict[str, pd.DataFrame | str] = {
        "Setting": f"{description.treebank}, {runs['split'].iloc[0]}; {len(runs)} runs; seeds: {seeds}; epochs: {epochs}; one "
        f"thread, {devices}. Percent; the mean, and its 95 % interval over seeds by t. The paper's figures are of other "
        "treebanks, encoders and sizes: compare differences at most."
    }
    if sweep.record["missing"]:
        missing = sweep.record["missing"]
        more = f"; and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        parts["Not in the tables"] = "; ".join(missing[:SHOWN]) + more + "."
    cells = sweep.cells()
    shown = cells[[*sweep.axes, "seeds"]].astype(str)
    for name in SCORES:
        shown[NAMES.get(name, name)] = _text(cells, name, f"{name} low", f"{name} high")
    shown["weights"] = [f"{value / 1e6:.2f} M" for value in cells["parameters"]]
    shown["minutes"] = _text(cells, "minutes", form=".1f")
    for name in COUNTED:
        if f"paper {name}" in cells:
            shown[f"paper {NAMES[name]}"] = _text(cells, f"paper {name}")
    parts["Scores of the cells"] = shown
    if len(claims := sweep.claims(family)):
        shown = pd.DataFrame({"claim": claims["says"], "by": claims["by"].map(NAMES), "closest": claims["against"]})
        shown["difference (95 %)"] = _text(claims, "difference", "low", "high", "+.2f")
        shown["p (Holm)"], shown["verdict"] = _text(claims, "p_holm", form=".3f"), claims["verdict"]
        parts["Claims, as they were written before the runs"] = shown
        parts["How claims are judged"] = JUDGED.format(", ".join(one.name for one in family))
    for measure, pairs in sweep.pairs().groupby("measure", sort=False):
        shown = pairs[["first", "second"]].copy()
        shown["difference (95 %)"] = _text(pairs, "difference", "low", "high", "+.2f")
        for name, p in (("p", "p"), ("p (Holm)", "p_holm"), (f"p (equal within {MARGIN})", "equal_p")):
            shown[name] = _text(pairs, p, form=".3f")
        parts[f"Every pair, by {NAMES[measure]}"] = shown
    rows = [(axis, value, describe(cell)) for axis, cells in description.grid.items() for value, cell in cells.items()]
    parts["Settings of the cells"] = pd.DataFrame(rows, columns=["axis", "value", "settings"])
    parts["Settings of all cells"] = f"preset: {description.preset}, {describe(description.set)}"
    return parts


def _text(table: pd.DataFrame, name: str, low: str = "", high: str = "", form: str = ".2f") -> list[str]:
    """Return a column of numbers as text, with the interval of two other columns behind it; a missing number is empty."""
    texts = ["" if pd.isna(value) else f"{value:{form}}" for value in table[name]]
    ends = zip(table[low], table[high]) if low else ()
    intervals = ["" if pd.isna(start) else f" ({start:{form}} to {end:{form}})" for start, end in ends]
    return ["".join(parts) for parts in zip(texts, intervals or [""] * len(texts))]
