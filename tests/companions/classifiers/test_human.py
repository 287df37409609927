"""Tables 3 and 5: rationales of a frozen classifier, and pairs whose sides are drawn by lot."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from lalkit.companions.classifiers.faithfulness import blinded, preferred, rationales
from lalkit.draw.companion_figures import preference_page
from lalkit.errors import ModelError
from tests.companions.classifiers.small import questions, sentences, untrained

DATA = sentences()


def always_right(kind, seed):
    """An untrained classifier of texts that are all of the class it gives them."""
    model = untrained(kind, DATA)
    torch.manual_seed(seed)
    torch.nn.init.normal_(model.words.weight)
    torch.nn.init.zeros_(model.output.weight)
    model.output.bias.data = torch.tensor([5.0, 0.0]).to(model.output.bias)
    return model


def test_sides_are_drawn_by_lot_and_the_key_knows_them():
    first, second = always_right("vanilla", 1), always_right("diversity", 2)
    some = [replace(e, label="bad") for e in DATA.test]
    items, key = blinded(first, second, some, 15, seed=3)
    assert [item["item"] for item in items] == list(range(1, 16)) and key["example"].is_unique
    assert set(key["left"]) == {"vanilla", "diversity"} and (key["left"] != key["right"]).all()
    for item, row in zip(items, key.itertuples()):
        example = some[row.example]
        models = {"vanilla": first, "diversity": second}
        for side in ("left", "right"):
            model = models[getattr(row, side)]
            weights = model(model.vocabulary.collate([example])).attention[0]
            assert item[side] == pytest.approx(weights.tolist())
    assert "vanilla" not in preference_page(items)
    assert blinded(first, second, some, 15, seed=3)[0] == items
    answers = pd.DataFrame({"item": [1, 2, 3], "choice": ["left", "right", "both"]})
    found = preferred(answers, key).set_index("choice")["answers"]
    wanted = pd.Series([key["left"][0], key["right"][1], "both"]).value_counts()
    assert found.to_dict() == wanted.to_dict()
    with pytest.raises(ModelError, match="no item 99"):
        preferred(pd.DataFrame({"item": [99], "choice": ["left"]}), key)
    with pytest.raises(ModelError, match="no text that both"):
        blinded(first, second, [replace(e, label="good") for e in DATA.test])
    with pytest.raises(ModelError, match="both classifiers are vanilla"):
        blinded(first, first, some)


@pytest.mark.parametrize("data", [DATA, questions()], ids=["sentences", "questions"])
def test_rationales_have_a_row_for_every_text(data):
    model = untrained("vanilla", data).float()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    found = rationales(model, data, epochs=1, hidden=4)
    assert len(found) == len(data.test) and (found["length"] > 0).all() and (found["length"] <= 1).all()
    assert found["attention"].between(0, 1 + 1e-6).all() and not found["attention"].isna().any()
    whole = np.isclose(found["length"], 1)
    assert not found["changed"][whole].any()  # all of a text is the text
    assert (found["words"].str.split().str.len() == (found["length"] * [len(e.words) for e in data.test]).round()).all()
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())  # the classifier is frozen
