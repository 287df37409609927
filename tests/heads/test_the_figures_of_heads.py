"""figures/heads: the page, the figure and what notebook 13 says are of the tables."""

import json
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest

from lalkit.draw.label_heads import drawn, heads_figure
from lalkit.heads.compare import Compared
from lalkit.heads.measure import TRAINED
from lalkit.heads.page import page
from lalkit.treebank.corpora import SPLITS
from tests.corpora import needs
from tests.draw.drawn import assert_drawn

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "figures" / "heads"
HEADS = sorted(path.parent for path in FOLDER.glob("*/table.csv"))
CHINESE = json.loads((ROOT / "data" / "models" / "zh-sinica" / "card.json").read_text(encoding="utf-8"))
PAPER, UNIFORM = "paper's layer", "uniform attention"


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
    cells, claims = report_of("biomedical")
    mean, tests, looks = measured_on("biomedical")
    none, ours, theirs = (cells.loc[name] for name in ("span full, none", "span full", PAPER))
    own, others, before = removals(mean)
    pieces = [
        *lead(ours, theirs, claims, "reaches "),
        f"it reaches {none['f1']:.2f}: {claims.loc['heads: span full, none', 'difference']:.2f} less",
        "uniform attention: at most {:.2f} of F1".format(tests.loc[["mean", "swapped sentences", UNIFORM]].max()),
        f"At zero, or of another head: {tests['zeroed']:.2f} and {tests['swapped heads']:.2f} (p = 0.013)",
        f"At its mean NP loses {own['NP']:.1f} of its {before['NP']:.1f}",
        *(f"{label} {own[label]:.1f} of {before[label]:.1f}" for label in ("PRN", "NML", "PP")),
        f"together {others.max():.1f} at most. S loses {own['S']:.1f} and VP {own['VP']:.1f}.",
        "in {} of PP, {} of S, {} of PRN, {} of NP, {} of VP".format(*map(looks, ("PP", "S", "PRN", "NP", "VP"))),
        f"NML is at {looks('NML')}, chance {mean['span full', TRAINED, 'NML', 'on_head_word_chance']:.0f}.",
    ]
    assert not [piece for piece in pieces if piece not in said]
    assert claims["p_holm"].max() < 0.001 and claims["least"].min() > 0
    p = controls_of("biomedical")["p_holm"]
    assert p[["mean", "swapped sentences", UNIFORM]].min() > 0.9 and set(p[["zeroed", "swapped heads"]].round(3)) == {
        0.013
    }


def test_notebook_13_says_what_the_runs_on_sinica_say():
    said = " ".join(seen_on("Sinica").split())
    cells, claims = report_of("chinese")
    mean, tests, looks = measured_on("chinese")
    none, glass, ours, theirs = (cells.loc[name] for name in ("span full, none", "span glass", "span full", PAPER))
    own, others, before = removals(mean)
    inside = mean.xs(("span full", "", "f1"), level=("system", "label", "measure"))
    pieces = [
        *lead(ours, theirs, claims, "reaches "),
        f"`glass` reaches {glass['f1']:.2f}. ",
        f"reaches {none['f1']:.2f}: {claims.loc['heads: span full, none', 'difference']:.2f} of the six points",
        f"uniform attention {tests[UNIFORM]:.2f} of F1, contexts at zero {tests['zeroed']:.2f}, at their mean "
        f"{tests['mean']:.2f}, of another sentence {tests['swapped sentences']:.2f}, of another head "
        f"{tests['swapped heads']:.2f}.",
        f"uniform attention costs {inside[TRAINED] - inside[UNIFORM]:.2f}, "
        f"A of another sentence {inside[TRAINED] - inside['swapped sentences']:.2f}.",
        f"(a noun with 的) loses {own['N‧的']:.1f} of its {before['N‧的']:.1f}",
        *(f"{label} {own[label]:.1f} of {before[label]:.1f}" for label in ("VP‧的", "NP", "PP")),
        f"together {others.max():.1f} at most; VP {own['VP']:.1f}, and S nothing.",
        f"in {looks('PP')}, N‧的's in {looks('N‧的')[:-2]} (the 的); S's in {looks('S')}.",
        f"hardly ever ({looks('NP')}, chance {mean['span full', TRAINED, 'NP', 'on_head_word_chance']:.0f})",
    ]
    long, own_seeds = sixteen(), [row["test"]["f1"] for row in CHINESE["seeds"]]
    pieces += [
        f"`full` has {long['span']['f1']:.2f} (two seeds), the paper's layer {np.mean(own_seeds):.2f} (three)",
        f"behind by {-long['span']['difference']:.2f} over the seeds that both have (p < .001)",
        f"attention of any kind has {long['none']['f1']:.2f} (one seed)",
    ]
    assert not [piece for piece in pieces if piece not in said]
    assert long["span"]["p"] < 0.001 and len(own_seeds) == 3
    assert [long[name]["seeds"] for name in ("span", "none")] == [2, 1]
    assert {row["epochs"] for row in CHINESE["seeds"]} | long["span"]["epochs"] | long["none"]["epochs"] == {16}
    assert claims["p_holm"].max() < 0.001 and set(controls_of("chinese")["p_holm"].round(3)) == {0.004}
    assert own["S"] < 0


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "title", "said"),
    [
        ("ptb-sample", "the PTB sample", "on the {test} sentences of the test part"),
        ("craft", "CRAFT", "epochs of {train} sentences, 3 seeds, scored on the {dev} sentences"),
        (
            "sinica",
            "Sinica",
            "encoder; {train} to train on, four epochs, 3 seeds, the {test} sentences of the test part",
        ),
    ],
)
def test_notebook_13_says_how_many_sentences_there_are(name, title, said):
    counts = {part: f"{len(needs(name, part)):,}" for part in SPLITS if f"{{{part}}}" in said}
    assert said.format(**counts) in " ".join(seen_on(title).split())


def test_the_readme_says_what_the_tables_say():
    said = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    for profile, row in (
        ("sample", "PTB sample, test, 8 epochs"), ("biomedical", "CRAFT, dev, 2 epochs"),
        ("chinese", "Sinica, test, 4 epochs, no pretrained encoder"),
    ):  # fmt: skip
        f1 = report_of(profile)[0]["f1"]
        assert f"| {row} | {f1['span full']:.1f} | {f1['span full, none']:.1f} | {f1[PAPER]:.1f} |" in said
    assert (
        f"on Sinica another sentence's costs {controls_of('chinese').loc['swapped sentences', 'difference']:.1f}."
        in said
    )
    own = np.mean([row["test"]["f1"] for row in CHINESE["seeds"]])
    assert f"on Sinica it is {sixteen()['span']['f1']:.1f} inside the span, {own:.1f} with the paper's layer, " in said
    assert f"and {sixteen()['none']['f1']:.1f} (one seed) without any label attention" in said
    tests = pd.read_csv(FOLDER / "ptb-sample" / "tests.csv")
    lost = tests[(tests["family"] == "control") & (tests["measure"] == "f1") & (tests["system"] != PAPER)]["difference"]
    assert f"label attention inside the span up to {lost.max():.0f} points]" in said
    terms = pd.read_csv(ROOT / "figures" / "explorer-span.csv")
    longest = terms[(terms["label"] == "SBAR") & (terms["role"] == "parse")].nlargest(2, "value")
    assert list(longest["term"]) == ["boundary", "word"] and longest["word"].iloc[1] == "will"
    assert 'the boundaries\' the longest, then the word "will"' in said


def report_of(profile):
    """What `lalkit report` wrote: cells by name, and the claims that could be judged, by what they were judged against."""
    claims = pd.read_csv(FOLDER / f"heads-{profile}-claims.csv").set_index("against")
    return pd.read_csv(FOLDER / f"heads-{profile}-cells.csv").set_index("heads"), claims[claims["seeds"].notna()]


def measured_on(folder):
    """What `lalkit heads` wrote: means over seeds, what each control costs the paper's layer in F1, and a function of a label:
    in how many spans the head of `full` looks at the head word, least and most of the seeds."""
    table = pd.read_csv(FOLDER / folder / "table.csv", keep_default_na=False, na_values={"value": [""]})
    mean = table.groupby(["system", "what", "label", "measure"])["value"].mean()
    own = table[(table["measure"] == "on_head_word") & (table["system"] == "span full")].groupby("label")["value"]
    return (
        mean,
        controls_of(folder)["difference"],
        lambda label: f"{own.min()[label]:.0f} to {own.max()[label]:.0f} %",
    )


def sixteen():
    """Of the controls in the card of zh-sinica: inside the span, and no label attention."""
    return {
        "span" if "model.span_attention.boundary" in control["differs"] else "none": {
            "f1": np.mean([row["test"]["f1"] for row in control["seeds"]]),
            "seeds": len(control["seeds"]),
            "epochs": {row["epochs"] for row in control["seeds"]},
            **control["tests"]["test"]["f1"],
        }
        for control in CHINESE["controls"]
    }


def controls_of(folder):
    tests = pd.read_csv(FOLDER / folder / "tests.csv")
    of_paper = (tests["system"] == PAPER) & (tests["measure"] == "f1") & (tests["family"] == "control")
    return tests[of_paper].set_index("what")


def removals(mean):
    """By label, of `full`: the F1 that it loses with its head at its mean, that all others lose, and what it had."""
    lost = mean["span full"].unstack("what").eval(f"`{TRAINED}` - `head at its mean`")
    own, others = (lost.xs(name, level="measure") for name in ("label_f1", "label_f1_of_others"))
    return own, others, mean["span full", TRAINED].xs("label_f1", level="measure")


def lead(ours, theirs, claims, verb):
    first = claims.loc[f"heads: {PAPER}"]
    assert first["seeds"] == 3
    return [
        f"`full` {verb}F1 {ours['f1']:.2f}, the paper's layer {theirs['f1']:.2f}; it is ahead with every seed, "
        f"by {first['least']:.2f} to {first['most']:.2f} (p < .001",
        f"UAS {ours['uas']:.2f} and {theirs['uas']:.2f}.",
    ]


def seen_on(treebank):
    book = nbformat.read(ROOT / "notebooks" / "13_heads_that_mean_it.ipynb", as_version=4)
    return next(cell.source for cell in book.cells if cell.source.startswith(f"### On {treebank}"))
