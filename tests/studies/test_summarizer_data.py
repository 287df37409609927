"""Documents: made-up news whose headlines must be found and copied, and files of one's own."""

import json
import re

import pytest

from lalkit.errors import CorpusError
from lalkit.studies.summarizer_data import NEWS, VERBS, annotated, load, news
from lalkit.studies.summarizers import SummarizerConfig, Vocabulary
from tests.studies.small import write_articles

WEIGHT = {past: i for i, verb in enumerate(VERBS) for past in verb["past"]}


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


def test_a_headline_is_the_event_of_most_weight_and_nothing_else():
    passives, mixed = 0, 0
    for document in news(500, 0, 0).train:
        sentences = [f"{s} .".strip() for s in " ".join(document.words).split(" .") if s]
        events = [s for s in sentences if set(s.split()) & set(WEIGHT)]
        assert 2 <= len(events) <= 3 and len(events) == len(sentences) - 1
        found = [headline(s) for s in events]
        assert len({weight for weight, _ in found}) == len(found)
        assert min(found)[1] == document.summary and 5 <= len(document.summary) <= 6
        passives += " was " in events[found.index(min(found))]
        mixed += found.index(min(found)) > 0
    assert 0.2 < passives / 500 < 0.4 and 0.4 < mixed / 500 < 0.7, "neither order nor place gives the event away"


def test_a_seed_is_a_data_set_with_tags_and_entities():
    assert news(20, 5, 5, seed=3) == news(20, 5, 5, seed=3) != news(20, 5, 5, seed=4)
    found = news(200, 50, 50)
    parts = [{d.summary for d in part} for part in (found.train, found.dev, found.test)]
    assert [len(part) for part in parts] == [200, 50, 50] and not parts[0] & parts[1] and not parts[1] & parts[2]
    assert 33 < sum(len(d.words) for d in found.train) / 200 < 42
    for document in found.train:
        assert all(tag == "PROPN" for tag, entity in zip(document.tags, document.entities, strict=True) if entity)
        for i, word in enumerate(document.words):
            starts = i == 0 or document.words[i - 1] == "."
            assert word[0].isupper() == (starts or document.tags[i] == "PROPN") or word in ".,"
        assert document.words[-1] == "." and ", ." not in " ".join(document.words)


def test_most_names_can_only_be_copied():
    found = news(1000, 0, 200)
    vocabulary = Vocabulary.build(found.train, SummarizerConfig())
    assert set(NEWS["towns"]) <= set(vocabulary.words), "some are known, and could be written as well"
    words = [(w, d) for d in found.test for w in d.summary]
    unknown = [w in d.words for w, d in words if w not in vocabulary.index]
    assert 0.3 < len(unknown) / len(words) < 0.7 and all(unknown)
    others = [sum(w not in vocabulary.index and w not in d.summary for w in set(d.words)) for d in found.test]
    assert min(others) > 0 and sum(others) / len(others) > 3, "there is something else to copy by mistake"


@pytest.fixture
def folder(tmp_path):
    return write_articles(tmp_path / "own", news(30, 8, 8))


def write_test(folder, *rows):
    (folder / "test.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def test_documents_of_a_folder_keep_their_tags_and_names_and_others_are_found(folder, monkeypatch):
    found = load(str(folder))
    assert (len(found.train), len(found.dev), len(found.test)) == (30, 8, 8) and found.test[0].id == "news-0-38"
    article = {"article": "Ada met Ben . She left .", "highlights": "Ada left", "tags": list("NVN.NV."), "id": "one"}
    write_test(folder, article | {"entities": [1, 0, 0, 0, 0, 0, 0]}, article | {"tags": None, "id": "two"})

    class Tagger:
        def tag(self, words):
            return [(word, "." if word == "." else "NNP" if word[0].isupper() else "VBD") for word in words]

    monkeypatch.setattr("nltk.tag.PerceptronTagger", Tagger)
    known, bare = annotated(load(str(folder)).test)
    assert "".join(known.tags) == "NVN.NV." and known.entities == (1, 0, 0, 0, 0, 0, 0)
    assert bare.tags == ("NOUN", "VERB", "NOUN", ".", "NOUN", "VERB", ".")
    assert bare.entities == (False, False, True, False, False, False, False), "a capital begins every sentence"


@pytest.mark.parametrize("wrong", [
    {"highlights": 1}, {"tags": ["N"]}, {"tags": 5}, {"tags": [1] * 4}, {"tags": "NVN."}, {"entities": ["no"] * 4},
    {"entities": {"0": 1}}, {"article": ""},
])  # fmt: skip
def test_rows_that_are_not_documents(folder, wrong):
    write_test(folder, {"article": "Ada met Ben .", "highlights": "Ada", "id": "x"} | wrong)
    with pytest.raises(CorpusError) as caught:
        load(str(folder))
    assert caught.value.where in (f"{folder / 'test.jsonl'}, line 1", "x")


def test_documents_that_are_not_there(tmp_path):
    for name in ("nothing", str(tmp_path)):
        with pytest.raises(CorpusError, match="no documents in train, dev or test"):
            load(name)
