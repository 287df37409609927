"""Generated pairs: their answers follow, and neither text alone can tell them."""

from collections import Counter

import pytest
import torch

from lalkit.companions.classifiers import text_corpora as corpora
from lalkit.companions.classifiers.classifier_training import accuracy
from lalkit.companions.classifiers.pairs import FORMS, WORDS, alone, generate
from lalkit.errors import CorpusError
from tests.companions.classifiers.small import untrained

PEOPLE = {*WORDS["people"]}
KIND = dict(WORDS["kinds"])
SAME = {synonym: word for word, synonym in WORDS["deeds"] + WORDS["things"]} | {"leave": "left", "stay": "stayed"}


def facts(sentence):
    """(who, what they did, to what) of a sentence or a question, read word by word; synonyms are one word."""
    words = [SAME.get(word, word) for word in sentence if word not in ("the", "a", ".", "in", "to", "up")]
    if "was" in words:
        thing, _, verb, _, who = words
        return who, verb, thing
    if words[1] == "gave":
        return words[0], words[3], words[2]
    if "from" in words:
        who, _, thing, _, giver = words
        return giver, who, thing
    return tuple(words)


def follows(sentence, question):
    """Whether the question follows from the one sentence that it asks about. A slow twin of the rule by which pairs are made."""
    words, asked = list(question), facts(question)
    said = facts(sentence)
    if "is" in words:
        return (said[-1] == asked[-1]) != ("not" in words)
    if "has" in words:
        return KIND[said[-1]] == asked[-1]
    if "did" in words:
        assert said[2] == asked[-1]
        return said[1] != asked[-2]
    return said == asked


@pytest.mark.parametrize("task", FORMS)
def test_answers_follow_and_neither_text_tells_them(task):
    data = generate(task, 400, 200)
    assert data == generate(task, 400, 200) and [len(data.train), len(data.dev), len(data.test)] == [400, 200, 200]
    sentences = []
    for part in (data.train, data.dev, data.test):
        for e in part:
            asked = [e.words[i] for i in e.supports]
            others = [word for i, word in enumerate(e.words) if i not in e.supports]
            assert follows(asked, e.question) == (e.label == "yes"), e
            assert PEOPLE & set(e.question) <= set(asked) and not PEOPLE & set(asked) & set(others)
        for side in ("words", "question"):
            counts = Counter((getattr(e, side), e.label) for e in part)
            assert all(n == counts[text, "no" if label == "yes" else "yes"] for (text, label), n in counts.items())
        sentences.append({s for e in part for s in " ".join(e.words).split(" . ")})
    whole = [{s.removesuffix(" .") for s in some} for some in sentences]
    assert not (whole[0] & whole[1] or whole[0] & whole[2] or whole[1] & whole[2])


@pytest.mark.parametrize("side", ["text", "question"])
def test_a_classifier_of_one_text_is_right_in_half_of_the_pairs(side):
    torch.manual_seed(0)
    data = alone(generate("entailment", 80, 80), side)
    assert not data.paired and accuracy(untrained("vanilla", data), data.test) == 0.5


def test_pairs_and_their_controls_have_names():
    assert not corpora.load("paraphrase-text").paired
    with pytest.raises(CorpusError, match="there are no data 'entailment-both'"):
        corpora.load("entailment-both")
