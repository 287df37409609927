"""Alternatives of another structure, and the heads that a phrase could have, are those of the exact probabilities."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

import lalkit
from lalkit.errors import ParameterError

TELESCOPE = "She saw the man with the telescope."


@pytest.fixture(scope="module")
def parse():
    return lalkit.load("en").parse(TELESCOPE)


def test_probabilities_of_structures_add_up_to_those_of_arcs(parse):
    """Every structure has one head for each word, so the structures with an arc have its probability together."""
    found, arcs = parse.alternatives(60), parse.attachments("with the telescope")
    for head in (2, 4):
        total = sum(result.reading.probability for result in found if result.sentence.heads[6] == head)
        assert total == pytest.approx(arcs.set_index("head")["probability"][head], rel=1e-3)
    probable = [result.reading.probability for result in found[1:]]
    assert probable == sorted(probable, reverse=True) and len({result.sentence.heads[:-1] for result in found}) == 60


def test_one_temperature_for_both_layers_was_too_sure_of_arcs(parse):
    """The number of notebook 12: before, the parser had one temperature, 0.2154."""
    once = replace(parse, parser=copy(parse.parser))
    once.parser.model = replace(once.parser.model, temperature=0.2154)
    for result, probability in ((parse, 0.027), (once, 0.00004)):
        of_head = result.attachments("telescope").set_index("head")["probability"]
        assert of_head[2] == pytest.approx(probability, rel=0.15)


def test_alternatives_of_labels_keep_the_arcs(parse):
    found = parse.alternatives(4, "labels")
    assert {result.sentence.heads for result in found} == {parse.sentence.heads}
    assert len({result.spans for result in found}) == 4 and found[0].reading.probability > found[1].reading.probability
    (structure,) = parse.alternatives(1)
    assert sum(result.reading.probability for result in found) < structure.reading.probability


@pytest.mark.parametrize("phrase", ["with the telescope", "withthetelescope", 7, (5, 7), np.int64(7)])
def test_attachments_of_a_phrase(parse, phrase):
    table = parse.attachments(phrase)
    assert table["head word"].tolist()[:2] == ["man", "saw"] and table["probability"].is_monotonic_decreasing
    assert 0.99 < table["probability"].sum() < 1 + 1e-9, "a head inside the phrase has the rest"
    assert "root" in set(table["head word"]) and 7 not in set(table["head"])


WRONG = {"the": "2 times", "a dog": "not in the sentence", (4, 5): "2 have a head outside"}


@pytest.mark.parametrize(("phrase", "words"), WRONG.items())
def test_wrong_phrases(parse, phrase, words):
    with pytest.raises(ParameterError, match=words):
        parse.attachments(phrase)
