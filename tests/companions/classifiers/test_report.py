"""The study's tables, on numbers that are known."""

import numpy as np
import pandas as pd

from lalkit.companions.classifiers.classifier_study import (
    erased_if_right,
    erasure,
    expected,
    over_seeds,
    runs,
    undefined,
)


def long(data, system, seed, **values):
    rows = [(data, system, seed, name, i, v) for name, several in values.items() for i, v in enumerate(several)]
    return pd.DataFrame(rows, columns=["data", "system", "seed", "measure", "example", "value"])


def test_seeds_come_first_then_their_mean():
    table = pd.concat([
        long("d", "vanilla", 1, right=[1, 1, 0, 1], erased=[0.1, 0.2, 0.9, 0.3], pearson=[0.5, np.nan, 0.7, np.nan]),
        long("d", "vanilla", 2, right=[1, 0, 0, 0], erased=[1, 1, 1, 1]),
    ])  # fmt: skip
    each = runs(table)
    assert each["accuracy"].tolist() == [75, 25] and each["erased_median"].tolist() == [0.25, 1]
    found = over_seeds(each, ["accuracy"]).iloc[0]
    assert found[["data", "system", "accuracy", "seeds"]].tolist() == ["d", "vanilla", "50.00 ± 35.36", 2]
    assert over_seeds(each[:1], ["accuracy"])["accuracy"].item() == "75.00", "one seed has no spread"
    assert undefined(table).to_dict("records") == [
        {"data": "d", "system": "vanilla", "measure": "pearson", "n": 2, "n_nan": 2}
    ]


def run(data, system, **changed):
    values = {"right": 0.9, "conicity": 0.6, "isotropic": 0.25, "erased": 1.0, "erased_random": 1.0, "tvd": 0.1,
              "pearson_gradient_fixed": 0.1} | changed  # fmt: skip
    return long(data, system, 1, **{name: [value] * 3 for name, value in values.items()})


def test_lines_that_hold_and_lines_that_do_not():
    good = {"conicity": 0.2, "erased": 0.2, "tvd": 0.3, "pearson_gradient_fixed": 0.5}
    table = pd.concat([run("subjectivity", "vanilla"), run("subjectivity", "diversity", **good),
                       run("subjectivity", "orthogonal", right=0.8), run("babi-1", "diversity"), run("else", "vanilla"),
                       run("else", "diversity")])  # fmt: skip
    found = expected(runs(table))
    assert set(zip(found["data"], found["model"])) == {("subjectivity", "diversity"), ("subjectivity", "orthogonal")}
    assert found[found["model"] == "diversity"]["holds"].all() and len(found[found["model"] == "diversity"]) == 7
    poor = found[found["model"] == "orthogonal"].set_index("what")["holds"]
    assert not poor.any() and len(poor) == 6
    table = pd.concat([run("babi-1", "vanilla"), run("babi-1", "orthogonal", right=0.98, conicity=0.3, erased=0.2)])
    assert expected(runs(table))["holds"].tolist() == [True, True, True]


def test_wrong_decisions_are_kept_and_shown_apart():
    texts = pd.DataFrame({"data": "d", "system": "vanilla", "right": [1, 1, 1, 0, 0], "erased": [0.1, 0.2, 0.3, 0.9, 1.0],
                          "erased_random": 1.0})  # fmt: skip
    row = erased_if_right(texts).set_index(["data", "system"]).loc[("d", "vanilla")]
    assert (row["erased, all"], row["erased, right"]) == (0.3, 0.2)
    assert (row["texts, all"], row["texts, right"]) == (5, 3)
    boxes = erasure(texts).set_index("ranking")
    assert boxes.loc["erased", ["low", "median", "high", "n"]].tolist() == [0.2, 0.3, 0.9, 5]
    assert boxes.loc["erased_random", "p5"] == 1.0
