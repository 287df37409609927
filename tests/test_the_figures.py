"""The files of figures/ are listed in its README with their commands, and agree with their tables and parsers."""

import io
import json
import re
from pathlib import Path

import pandas as pd
import pytest

import lalkit
from lalkit.training.checkpoint import CALIBRATION
from lalkit.training.named import find, places
from lalkit.treebank.corpora import load
from tests.draw.pictures import assert_drawn
from tools.ship import calibration_figure

FOLDER = Path(__file__).resolve().parent.parent / "figures"
README = (FOLDER / "README.md").read_text(encoding="utf-8")


def test_readme_lists_every_file():
    named = set(re.findall(r"`([^`\s]+)`", README))
    assert all("`" in row.split("|")[3] for row in re.findall(r"^\| `.*$", README, re.M)), "each row has a command"
    for path in FOLDER.rglob("*"):
        if path.is_file() and path.name != "README.md":
            place = path.relative_to(FOLDER).as_posix()
            names = {place, f"{place.split('/')[0]}/", *(re.sub(r"\.csv$", end, place) for end in (".svg", ".png"))}
            assert names & named, f"{place} is not in figures/README.md"


def test_the_joint_tree_comes_from_the_shipped_parser(tmp_path):
    words = pd.read_csv(FOLDER / "joint-tree.csv")["word"].tolist()
    assert " ".join(words) in README
    result = lalkit.load("en-news").parse(words)
    light, dark = ((FOLDER / f"joint-tree{form}.svg").read_text() for form in ("", "-dark"))
    assert result.save(tmp_path / "joint-tree.svg").read_text() == light
    assert len({re.sub(r'="(white|#\w{6})"', "", svg) for svg in (light, dark)}) == 1 and '"white"' not in dark
    table = pd.DataFrame(result.dependencies, columns=["number", "word", "tag", "head", "label"])
    pd.testing.assert_frame_equal(table, pd.read_csv(FOLDER / "joint-tree.csv"))


def test_the_contributions_in_the_explorer_come_from_the_shipped_parser():
    """The picture was taken in a browser, so we compare the numbers that it shows."""
    command = r"`explorer.png` \| .*Treebank.load\(\"(\w+)\", \"(\w+)\"\)\[(\d+)\]"
    treebank, split, number = re.search(command, README).groups()
    sentence = load(treebank, split).sentences[int(number)]
    committed = pd.read_csv(FOLDER / "explorer.csv")
    table = lalkit.load("en-news").explain([sentence]).heads().table("exact")[list(committed)]
    pd.testing.assert_frame_equal(table, committed, atol=2e-4, check_dtype=False)


def test_the_terms_in_the_explorer_come_from_the_shipped_parser():
    command = re.search(r"`explorer-span.png` .*`(lalkit explain .*?)`", README)[1]
    result = lalkit.load("en-news-span").parse(re.search(r'"(.*)"', command)[1], "tokens")
    committed = pd.read_csv(FOLDER / "explorer-span.csv")
    table = pd.read_csv(io.StringIO(result.explain().table[list(committed)].to_csv(index=False)))
    pd.testing.assert_frame_equal(table, committed, atol=2e-4)


def test_the_readings_come_from_the_shipped_parser():
    committed, parser = pd.read_csv(FOLDER / "alternatives.csv"), lalkit.load("en")
    for text, rows in committed.groupby("sentence", sort=False):
        results = parser.parse(text).alternatives(len(rows))
        assert [result.to_ptb() for result in results] == rows["tree"].tolist()
        found = [result.reading.probability for result in results]
        assert found == pytest.approx((rows["percent"] / 100).tolist(), rel=2e-3)


def test_the_reliability_of_the_shipped_parsers_is_drawn_with_their_temperatures():
    table = pd.read_csv(FOLDER / "calibration.csv")
    assert set(table["parser"]) == set(places())
    for name, rows in table[table["fitted"]].groupby("parser"):
        fitted = rows[["temperature", "arc_temperature"]].drop_duplicates().values.tolist()
        assert fitted == [json.loads((find(name) / CALIBRATION).read_text())["temperature"]]
    assert_drawn(calibration_figure(table), FOLDER / "calibration.png")
