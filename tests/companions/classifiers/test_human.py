"""Tables 1, 3 and 5: samples, rationales of a frozen classifier, and pairs whose sides are drawn by lot."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from lalkit.companions.classifiers.faithfulness import CHOICES, CRITERIA, blinded, preferred, rationales, samples
from lalkit.draw.companion_figures import preference_page
from lalkit.draw.companion_figures import samples as draw
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
    page = preference_page(items)
    assert (
        "vanilla" not in page
        and all(f"{name}:" in page for name in CRITERIA)
        and str([*CHOICES]).replace("'", '"') in page
    )
    assert blinded(first, second, some, 15, seed=3)[0] == items
    second.vocabulary = replace(second.vocabulary, classes=second.vocabulary.classes[::-1])
    second.output.bias.data = second.output.bias.flip(0)
    assert blinded(first, second, some, 15, seed=3)[0] == items, "each classifier numbers the classes in its own way"
    with pytest.raises(ModelError, match="no text that both"):
        blinded(first, second, [replace(e, label="good") for e in DATA.test])
    with pytest.raises(ModelError, match="both classifiers are vanilla"):
        blinded(first, first, some)


KEY = pd.DataFrame({"item": [1, 2, 3], "example": [4, 9, 6], "left": ["a", "b", "a"], "right": ["b", "a", "b"]})


def answered(*choices, items=(1, 2, 3), criterion="overall"):
    return pd.DataFrame({"item": items, "criterion": criterion, "choice": choices})


def test_the_majority_of_judges_counts():
    judges = [answered("left", "left", "left"), answered("left", "right", "right"), answered("right", "skip", "left")]
    judges[0] = pd.concat([judges[0], answered("right", items=(2,), criterion="correctness")])
    table = preferred(judges, KEY).set_index("criterion")
    # Overall: a a b, then b a (and one who skipped), then a b a.
    assert table.loc["overall"].drop("kappa").to_dict() == {
        "texts": 2, "a": 100, "b": 0, "ties": 1, "answers": 8, "skipped": 1,
    }  # fmt: skip
    agreed, chance = (1 / 3 + 0 + 1 / 3) / 3, (5 / 8) ** 2 + (3 / 8) ** 2
    assert table.loc["overall", "kappa"] == pytest.approx((agreed - chance) / (1 - chance))
    assert table.loc["correctness", ["texts", "a"]].tolist() == [1, 100] and np.isnan(table.loc["correctness", "kappa"])
    assert table.loc["completeness", "texts"] == 0 and np.isnan(table.loc["completeness", "a"])


@pytest.mark.parametrize(("judge", "says"), [
    (answered("left", items=(99,)), "judge 2: the key has no item 99"), (answered("both", items=(1,)), "no choice both"),
    (answered("left", items=(1,), criterion="beauty"), "no criterion beauty"),
    (answered("left", "skip", items=(1, 1)), "item 1 is answered twice"),
    (answered("left", items=(1,))[["item"]], "no column c"),
])  # fmt: skip
def test_answers_to_another_page_are_refused(judge, says):
    with pytest.raises(ModelError, match=says):
        preferred([answered("left", "left", "left"), judge], KEY)
    with pytest.raises(ModelError, match="the key lacks"):
        preferred([judge], judge)


def test_samples_have_the_attention_of_each_model_on_each_word():
    data = questions()
    models = [untrained(kind, data) for kind in ("vanilla", "diversity")]
    table = samples(models, data.test[:2])
    assert len(table) == 2 * sum(len(e.words) for e in data.test[:2])
    for (i, system), rows in table.groupby(["example", "system"]):
        model, e = models[system == "diversity"], data.test[i]
        found = model(model.vocabulary.collate([e]))
        assert rows["word"].tolist() == list(e.words) and rows["question"].iloc[0] == " ".join(e.question)
        assert torch.allclose(torch.tensor(rows["attention"].tolist()), found.attention[0].float())
        assert set(rows["said"]) == {data.classes[int(found.logits.argmax())]} and set(rows["label"]) == {e.label}
    axis = draw(table, wide=7).axes[0]
    shown = [t.get_text() for t in axis.get_yticklabels()]
    assert shown.count("right answer") == 2 and sum(name.startswith("vanilla: ") for name in shown) == 2
    assert " ".join(t.get_text() for t in axis.texts).count(" ".join(data.test[1].words)) == 2


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
