"""Figures of heads show what their tables say."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lalkit.draw.companion_figures import attention_of_heads, head_grids, price_lines, system_points, tag_bars


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def heads(scale=1.0):
    rows = [
        {"head": f"{block}.{h}", "pos_kl": scale * (i + h / 10), "ne_ratio": 0.1, "position": 0.5,
         "difference": -10.0 * h + 5, "p_holm": 0.01 if h else 0.9, "cut": (block, h) == ("cross.0", 1)}
        for i, block in enumerate(("enc.0", "cross.0")) for h in range(2)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_a_square_a_head():
    figure = head_grids([("one", heads()), ("two", heads(2.0))])
    panels = [axis for axis in figure.axes if axis.get_images() and axis.get_ylim()[0] > axis.get_ylim()[1]]
    assert len(panels) == 8
    first, last = panels[0], panels[3]
    assert first.get_title() == "POS-KL (nats)" and first.get_ylabel() == "one"
    values = first.get_images()[0].get_array()
    assert np.allclose(values.filled(np.nan), [[0.0, 0.1], [1.0, np.nan]], equal_nan=True)
    assert [t.get_text() for t in first.texts] == ["0.00", "0.10", "1.00", "×"], "what was cut out is crossed out"
    assert [t.get_text() for t in last.texts] == ["-5.00", "5.00*", "-5.00", "×"], (
        "losses are positive; a star: no chance"
    )
    limits = [panels[i].get_images()[0].get_clim() for i in (0, 4)]
    assert limits[0] == limits[1] == (0.0, 2.0), "one scale for a panel's rows"


def test_without_ablation_a_panel_is_empty():
    figure = head_grids([("one", heads().drop(columns=["difference", "p_holm"]))])
    texts = [t.get_text() for t in figure.axes[3].texts]
    assert texts == ["", "", "", "×"]


def test_bars_of_tags():
    rows = [(h, t, s, w) for h, a in (("enc.0.1", 0.7), ("enc.1.0", 0.1)) for t, s, w in
            (("NOUN", a, 0.6), ("VERB", 1 - a, 0.4))]  # fmt: skip
    axis = tag_bars([("enc", pd.DataFrame(rows, columns=["head", "tag", "share", "tokens"]))]).axes[0]
    assert [t.get_text() for t in axis.get_yticklabels()] == ["NOUN", "VERB"]
    assert sorted(round(p.get_width()) for p in axis.patches) == [10, 30, 70, 90]
    assert list(axis.lines[-1].get_xdata()) == [60, 40]


def test_lines_of_prices_and_their_control():
    table = pd.DataFrame({"seed": 1, "price": [0.1, 1.0, np.nan], "kept": [9, 4, np.nan], "rouge1": [95.0, 90.0, 97.0]})
    left, right = price_lines(table).axes
    assert list(left.lines[0].get_ydata()) == [9, 4] and list(right.lines[0].get_ydata()) == [95, 90]
    assert right.lines[1].get_ydata()[0] == 97 and [t.get_text() for t in left.get_xticklabels()] == ["0.1", "1"]
    lines = price_lines(pd.concat(table.assign(seed=seed) for seed in range(8))).axes[0].lines
    assert len({(line.get_color(), line.get_marker()) for line in lines}) == 8, "every seed has a look of its own"


def test_attention_of_heads_names_what_asks():
    rows = [("enc.0.0", q, a, k, w, float(q == k)) for q, a in enumerate("ab") for k, w in enumerate("ab")]
    rows += [("cross.1.0", 0, "c", 0, "a", 0.25), ("cross.1.0", 0, "c", 1, "a", 0.75)]
    figure = attention_of_heads(pd.DataFrame(rows, columns=["head", "row", "asks", "column", "word", "weight"]))
    assert [axis.get_title() for axis in figure.axes] == ["enc.0.0", "cross.1.0"]
    assert [t.get_text() for t in figure.axes[1].get_yticklabels()] == ["c"]
    assert [t.get_text() for t in figure.axes[1].get_xticklabels()] == ["a", "a"], "a word that occurs twice"
    shades = [axis.get_images()[0].get_array().tolist() for axis in figure.axes]
    assert shades == [[[1, 0], [0, 1]], [[0.25, 0.75]]]


def test_a_point_a_system():
    table = pd.DataFrame({"system": ["p", "l", "s"], "group": ["parser", "LSTM", "LSTM"], "tvd": [0.1, 0.2, 0.3]})
    figure = system_points(table, [("tvd", "TVD")])
    assert [line.get_xdata().tolist() for line in figure.axes[0].lines[:2]] == [[0.1], [0.2, 0.3]]
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["p", "l", "s"]
    figure = system_points(pd.concat(table.assign(group=i) for i in range(8)), [("tvd", "TVD")])
    assert len(figure.axes[0].get_legend_handles_labels()[1]) == 8, "no group is left out"
