"""Made-up news: the same for a seed; headlines that one sentence of several gives, and that must be copied."""

import re

import pytest

from lalkit.companions.summarizers.documents import NEWS, VERBS, Document, extracts, news
from lalkit.companions.summarizers.summarizer import SummarizerConfig, Vocabulary
from lalkit.errors import CorpusError

WEIGHT = {past: i for i, verb in enumerate(VERBS) for past in verb["past"]}


def test_a_seed_is_a_data_set():
    assert news(20, 5, 5, seed=3) == news(20, 5, 5, seed=3) != news(20, 5, 5, seed=4)
    found = news(200, 50, 50)
    parts = [{d.summary for d in part} for part in (found.train, found.dev, found.test)]
    assert [len(part) for part in parts] == [200, 50, 50] and not parts[0] & parts[1] and not parts[1] & parts[2]


def headline(sentence):
    """What a reader makes of an event's sentence, by its words alone."""
    text = re.sub(r" , a \w+ from \w+(?= [,.]| \w)", "", sentence)  # appositions say where someone is from
    text = re.sub(r"^(?:On \w+|In (?P<at>\w+)) , ", lambda m: f"@{m['at']} " if m["at"] else "", text)
    at = re.match(r"@(\w+) ", text) or re.search(r" in (\w+)", text)
    text = re.sub(r"^@\w+ | (?:on|in) \w+", "", text).replace(" ,", "").removesuffix(" .")
    past = next(word for word in text.split() if word in WEIGHT)
    who, whom = text.split(f" was {past} by ")[::-1] if f" was {past} by " in text else text.split(f" {past} ")
    names = whom.split()[-2:] if whom.split()[-2] in NEWS["kinds"] else whom.split()[-1:]
    return WEIGHT[past], (who.split()[-1], VERBS[WEIGHT[past]]["present"], *names, "in", at[1])


def sentences(document):
    return [f"{s} ." for s in " ".join(document.words).split(" .") if s]


def test_a_headline_is_the_event_of_most_weight_and_nothing_else():
    passives, mixed = 0, 0
    for document in news(500, 0, 0).train:
        told = [s.strip() for s in sentences(document) if set(s.split()) & set(WEIGHT)]
        assert 2 <= len(told) <= 3 and len(told) == len(sentences(document)) - 1
        found = [headline(s) for s in told]
        assert len({weight for weight, _ in found}) == len(found)
        assert min(found)[1] == document.summary and 5 <= len(document.summary) <= 6
        passives += " was " in told[found.index(min(found))]
        mixed += found.index(min(found)) > 0
    assert 0.2 < passives / 500 < 0.4 and 0.4 < mixed / 500 < 0.7, "neither order nor place gives the event away"


def test_tags_and_entities_are_of_the_words():
    found = news(200, 0, 0).train
    lengths = [len(d.words) for d in found]
    assert 33 < sum(lengths) / len(lengths) < 42
    for document in found:
        assert len(document.tags) == len(document.entities) == len(document.words)
        assert all(tag == "PROPN" for tag, entity in zip(document.tags, document.entities) if entity)
        for i, word in enumerate(document.words):
            starts = i == 0 or document.words[i - 1] == "."
            assert word[0].isupper() == (starts or document.tags[i] == "PROPN") or word in ".,"
        assert document.words[-1] == "." and document.tags[-1] == "PUNCT" and ", ." not in " ".join(document.words)


def test_most_names_can_only_be_copied():
    found = news(1000, 0, 200)
    vocabulary = Vocabulary.build(found.train, SummarizerConfig())
    assert set(NEWS["towns"]) <= set(vocabulary.words), "some are known, and could be said as well"
    words = [w for d in found.test for w in d.summary]
    unknown = [w for w in words if w not in vocabulary.index]
    assert 0.3 < len(unknown) / len(words) < 0.7
    own = [w for d in found.test for w in d.summary if w not in vocabulary.index and w in d.words]
    assert len(own) == len(unknown)
    others = [sum(w not in vocabulary.index and w not in d.summary for w in set(d.words)) for d in found.test]
    assert min(others) > 0 and sum(others) / len(others) > 3, "there is something else to copy by mistake"


def test_the_passages_of_a_document_are_its_words_and_each_copies_a_sentence_of_its_own():
    words = "The mill closed . It was old . A river ran there . Nobody saw the mill again ! Why".split()
    document = Document(tuple(words), ("the", "old", "mill"), id="d")
    passages = list(extracts(document, most=9))
    assert [word for passage in passages for word in passage.words] == words
    assert [(len(p.words), " ".join(p.summary), p.id) for p in passages] == [
        (8, "The mill closed .", "d"),
        (11, "Nobody saw the mill again !", "d"),
        (1, "Why", "d"),
    ]
    assert [len(p.words) for p in extracts(document, most=1)] == [8, 11, 1], "two sentences, however long"
    with pytest.raises(CorpusError, match="d: has no summary"):
        list(extracts(Document(tuple(words), id="d")))
