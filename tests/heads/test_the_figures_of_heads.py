"""figures/heads: the page, the figure and what notebook 13 says are of the tables."""

from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest

from lalkit.draw.label_heads import drawn, heads_figure
from lalkit.heads.compare import Compared
from lalkit.heads.measure import TRAINED
from lalkit.heads.page import page
from tests.draw.drawn import assert_drawn

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "figures" / "heads"
HEADS = sorted(path.parent for path in FOLDER.glob("*/table.csv"))
PAPER = "paper's layer"


@pytest.mark.parametrize("folder", HEADS, ids=lambda folder: folder.name)
def test_the_page_and_the_figure_of_heads_are_of_their_table(folder):
    table, kept = (
        pd.read_csv(folder / name, keep_default_na=False, na_values={"value": [""]})
        for name in ("table.csv", "heads.csv")
    )
    text = (folder / "heads.md").read_text(encoding="utf-8")
    assert page(Compared(table, pd.read_csv(folder / "tests.csv")), text.splitlines()[0][2:]) == text
    pd.testing.assert_frame_equal(drawn(table).reset_index(drop=True), kept)
    assert_drawn(heads_figure(drawn(table)), folder / "heads.png")


def test_notebook_13_says_what_the_tables_say():
    """Every number of its section on the PTB sample."""
    said = " ".join(seen_on("the PTB sample").split())
    table = pd.read_csv(FOLDER / "ptb-sample" / "table.csv", keep_default_na=False, na_values={"value": [""]})
    tests = pd.read_csv(FOLDER / "ptb-sample" / "tests.csv")
    claims = pd.read_csv(FOLDER / "heads-sample-claims.csv").set_index("against")
    mean = table.groupby(["system", "what", "label", "measure"])["value"].mean()
    f1 = mean.xs(("", "f1"), level=("label", "measure"))
    full, paper, glass = (f1[name, TRAINED] for name in ("span full", PAPER, "span glass"))
    lost = mean.unstack("what").eval(f"`{TRAINED}` - `head at its mean`")
    own, others = (lost["span full"].xs(name, level="measure") for name in ("label_f1", "label_f1_of_others"))
    before = mean["span full", TRAINED].xs("label_f1", level="measure")
    looks = table[table["measure"] == "on_head_word"].groupby(["system", "label"], sort=False)["value"]
    taught = looks.agg(["min", "max"]).loc["span full, taught"]
    habits = pd.concat([looks.get_group((f"span {grade}", "NP")) for grade in ("lean", "glass")])
    chance = mean["span full", TRAINED, "NP", "on_head_word_chance"]
    first, of_paper = claims.loc[f"heads: {PAPER}"], tests[(tests["system"] == PAPER) & (tests["measure"] == "f1")]
    controls, systems = (of_paper[of_paper["family"] == name].set_index("what") for name in ("control", "system"))
    pieces = [
        f"`full` has F1 {full:.2f}, the paper's layer {paper:.2f}; it is ahead with every seed, by {first['least']:.2f} to "
        f"{first['most']:.2f} (p < .001 over sentences, {systems.loc['span full', 'seeds_p']:.3f} by a t-test",
        f"boundaries, {claims.loc['heads: span full, none', 'difference']:.2f} of F1",
        f"uniform attention {claims.loc['heads: span full, uniform', 'difference']:.2f}; ",
        f"in its place {claims.loc['heads: none, one more layer', 'difference']:.2f}.",
        f"at its mean costs {full - f1['span full', 'mean']:.2f} at test",
        f"six controls at test none costs more than {controls['difference'].max():.2f} of F1",
        f"a lift of up to {mean[PAPER, TRAINED].xs('lift', level='measure').max():.1f}.",
        f"ADVP loses {own['ADVP']:.1f} of its {before['ADVP']:.1f}",
        *(f"{label} {own[label]:.1f} of {before[label]:.1f}" for label in ("PP", "NP", "SBAR")),
        f"together {others.max():.1f} at most. VP loses {own['VP']:.1f} and S {own['S']:.1f}:",
        "SBAR's in {:.0f}, {:.0f} and {:.0f} %".format(*looks.get_group(("span full", "SBAR"))),
        "PP's does in {:.0f}, {:.0f} and {:.0f} %".format(*looks.get_group(("span full", "PP"))),
        "head word in {:.0f} % of spans with each seed, S's in {:.0f} to {:.0f} %".format(
            *set(looks.get_group(("span full", "NP")).round()), *np.sort(looks.get_group(("span full", "S")))[[0, -1]]
        ),
        f"hardly ever ({habits.min():.0f} to {habits.max():.0f} %, chance {chance:.0f})",
        f"there in {taught['min'].drop('ADVP').min():.0f} to {taught['max'].max():.0f} % "
        "(ADVP {:.0f} to {:.0f}), ".format(*taught.loc["ADVP"])
        + f"and F1 is {f1['span full, taught', TRAINED]:.2f}.",
        f"F1 {glass:.2f}: {full - glass:.2f} behind `full`, ahead of the paper's layer by {glass - paper:.2f}",
    ]
    assert not [piece for piece in pieces if piece not in said]
    assert claims["p_holm"].max() < 0.001 and claims["least"].min() > 0
    assert len(controls) == 6 and controls["p_holm"].min() > 0.05 and systems.loc["span glass", "p_holm"] > 0.05
    assert lost[PAPER].abs().max() < 0.1, "nothing happens"


def test_notebook_13_says_what_the_runs_on_craft_say():
    said = " ".join(seen_on("CRAFT").split())
    cells = pd.read_csv(FOLDER / "heads-biomedical-cells.csv").set_index("heads")
    claim = pd.read_csv(FOLDER / "heads-biomedical-claims.csv").set_index("against").loc[f"heads: {PAPER}"]
    ours, theirs = cells.loc["span full"], cells.loc[PAPER]
    assert f"`full` reaches F1 {ours['f1']:.2f}, the paper's layer {theirs['f1']:.2f}; it is ahead" in said
    assert (
        f"by {claim['least']:.2f} to {claim['most']:.2f} (p < .001). UAS {ours['uas']:.2f} and {theirs['uas']:.2f}."
        in said
    )
    assert f"{claim['seeds']:.0f} seeds" in said and claim["p_holm"] < 0.001


def test_the_readme_says_what_the_tables_say():
    said = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    sample, craft = (
        pd.read_csv(FOLDER / f"heads-{name}-cells.csv").set_index("heads")["f1"] for name in ("sample", "biomedical")
    )
    assert f"F1 {sample['span full']:.1f} inside the span, {sample[PAPER]:.1f} with the paper's layer, " in said
    assert f"{sample['span full, none']:.1f} with the same boundaries and no label attention; " in said
    assert f"3 seeds: {craft['span full']:.1f} and {craft[PAPER]:.1f}." in said
    tests = pd.read_csv(FOLDER / "ptb-sample" / "tests.csv")
    lost = tests[(tests["family"] == "control") & (tests["measure"] == "f1") & (tests["system"] != PAPER)]["difference"]
    assert f"label attention inside the span up to {lost.max():.0f} points]" in said
    terms = pd.read_csv(ROOT / "figures" / "explorer-span.csv")
    longest = terms[(terms["label"] == "SBAR") & (terms["role"] == "parse")].nlargest(2, "value")
    assert list(longest["term"]) == ["boundary", "word"] and longest["word"].iloc[1] == "will"
    assert 'the boundaries\' the longest, then the word "will"' in said


def seen_on(treebank):
    book = nbformat.read(ROOT / "notebooks" / "13_heads_that_mean_it.ipynb", as_version=4)
    return next(cell.source for cell in book.cells if cell.source.startswith(f"### On {treebank}"))
