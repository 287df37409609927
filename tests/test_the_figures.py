"""figures/: every file says which command makes it, and the cheap ones are made again."""

import io
import re
from pathlib import Path

import pandas as pd
import pytest

import lalkit
from lalkit.draw.figures import seed_points
from lalkit.interpret.contributions import contributions
from lalkit.reproduce.sweep_table import COUNTED, SCORES
from lalkit.treebank.corpora import load
from tests.draw.drawn import assert_drawn

FOLDER = Path(__file__).resolve().parent.parent / "figures"
README = (FOLDER / "README.md").read_text(encoding="utf-8")
SWEEPS = sorted(path for place in ("sweeps", "heads") for path in (FOLDER / place).glob("*-runs.csv"))


def test_every_file_is_in_the_table_or_below_it():
    named = set(re.findall(r"`([^`\s]+)`", README))
    assert all("`" in row.split("|")[2] for row in re.findall(r"^\| `.*$", README, re.M)), "a command makes each"
    for path in FOLDER.rglob("*"):
        if path.is_file() and path.name != "README.md":
            place = path.relative_to(FOLDER).as_posix()
            own = {place, re.sub(r"\.csv$", ".svg", place), re.sub(r"\.csv$", ".png", place), f"{place.split('/')[0]}/"}
            assert own & named, f"{place} is not in figures/README.md"


def test_the_joint_tree_is_made_again(tmp_path):
    words = pd.read_csv(FOLDER / "joint-tree.csv")["word"].tolist()
    assert " ".join(words) in README
    result = lalkit.load("en-news").parse(words)
    assert result.save(tmp_path / "joint-tree.svg").read_text() == (FOLDER / "joint-tree.svg").read_text()
    table = pd.DataFrame(result.dependencies, columns=["number", "word", "tag", "head", "label"])
    pd.testing.assert_frame_equal(table, pd.read_csv(FOLDER / "joint-tree.csv"))


def test_the_contributions_that_the_explorer_shows_are_those_of_the_shipped_parser():
    """The picture is of a browser; what it shows is checked as numbers."""
    treebank, split, number = re.search(
        r"`explorer.png` \| `lalkit explain --treebank (\S+) --split (\S+) --sentence (\d+)", README
    ).groups()
    sentence = load(treebank, split).sentences[int(number)]
    kept = pd.read_csv(FOLDER / "explorer.csv")
    ours = contributions(lalkit.load("en-news").look([sentence])).table(("exact",))[list(kept)]
    pd.testing.assert_frame_equal(ours, kept, atol=2e-4, check_dtype=False)


def test_the_terms_that_the_explorer_shows_are_those_of_the_shipped_parser():
    command = re.search(r"`explorer-span.png` \| `(lalkit explain .*?)`", README)[1]
    result = lalkit.load("en-news-span").parse(re.search(r'"(.*)"', command)[1], "tokens")
    ours = pd.read_csv(io.StringIO(result.terms.table.to_csv(index=False)))
    pd.testing.assert_frame_equal(ours, pd.read_csv(FOLDER / "explorer-span.csv"), atol=2e-4)


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.stem)
def test_the_tables_and_figures_of_sweeps_are_of_their_runs(path):
    folder, name = path.parent, path.name.removesuffix("-runs.csv")
    runs, cells = pd.read_csv(path), pd.read_csv(folder / f"{name}-cells.csv")
    axes = list(runs.columns[: runs.columns.get_loc("seed")])
    runs = runs[runs["split"] == ("test" if "test" in set(runs["split"]) else "dev")]
    found = runs.groupby(axes, sort=False)[list(SCORES)].agg(["mean", "std"]).reset_index()
    for score in SCORES:
        assert found[score]["mean"].to_numpy() == pytest.approx(cells[score].to_numpy(), rel=1e-4)
        assert found[score]["std"].to_numpy() == pytest.approx(
            cells[f"{score} sd"].to_numpy(), rel=1e-3, abs=1e-3, nan_ok=True
        )
    assert_drawn(seed_points(runs, axes, COUNTED), folder / f"{name}.png")
