"""Texts: splits that share nothing, tags, and made-up news whose headlines must be copied."""

import re

import pytest

from lalkit.errors import CorpusError
from lalkit.studies import texts
from lalkit.studies.classifiers import with_tags
from lalkit.studies.summarizers import SummarizerConfig, Vocabulary
from lalkit.studies.texts import Text, Texts, load, news, split

PASTS = "arrested detained sued prosecuted fired dismissed bought acquired closed shut hired employed left abandoned"
PASTS += " joined entered criticized attacked met received praised applauded visited toured"
WEIGHT = {past: i // 2 for i, past in enumerate(PASTS.split())}
KINDS = "bank club museum airline school union hospital newspaper".split()
TOWNS = "Arlow Benfield Corvale Dunmere Eastry Farholm Gatewick Harrow Ilmouth Kenley Lorne Marwick".split()
PRESENTS = "arrests sues fires buys closes hires leaves joins criticizes meets praises visits".split()


def test_a_split_takes_doubles_once_and_a_shorter_set_has_another_name():
    found = split("d", [Text((f"w{i % 40}", "x"), "xy"[i % 2]) for i in range(100)], 1)
    parts = [{text.words for text in part} for part in (found.train, found.dev, found.test)]
    assert [len(p) for p in parts] == [32, 4, 4] and len(set.union(*parts)) == 40 and len(found.train[0].words) == 1
    data = news()
    assert data.shortened() is data and data.shortened(train=4000) is data
    assert data.shortened(train=3) == Texts("news-3-200-1000", data.train[:3], data.dev, data.test)


def test_tags_are_universal_and_are_those_of_the_tagger(monkeypatch):
    class Tagger:
        def tag(self, words):
            return [(word, "NNP" if word[0].isupper() else "UH") for word in words]

    monkeypatch.setattr("nltk.tag.PerceptronTagger", Tagger)
    tagged = with_tags(Texts("d", (), (), (Text(("Ada", "hm"), "x"),)))
    assert tagged.test == (Text(("Ada", "hm"), "x", tags=("NOUN", "X")),)
    assert {*texts.OF_PENN.values()} | {"X"} == set(texts.UNIVERSAL) and texts.OF_PENN["NNPS"] == "NOUN"


def test_what_is_not_there(tmp_path, monkeypatch):
    with pytest.raises(CorpusError, match="nothing: there is no such corpus"):
        load("nothing")
    import nltk.data

    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    data = Texts("d", (), (), (Text(("a",)),))
    assert with_tags(data) is data, "there is no tagger"
    for given in ({"words": ()}, {"words": ("a", "b"), "tags": ("DET",)}):
        with pytest.raises(CorpusError):
            Text(**given)


@pytest.mark.data
def test_a_real_corpus():
    found = load("subjectivity")
    assert [*map(len, (found.train, found.dev, found.test))] == [8000, 1000, 1000]


# ---------------------------------------------------------------- news


def headline(sentence):
    """What a reader makes of an event's sentence, by its words alone."""
    text = re.sub(r" , a \w+ from \w+(?= [,.]| \w)", "", sentence)  # appositions say where someone is from
    text = re.sub(r"^(?:On \w+|In (?P<at>\w+)) , ", lambda m: f"@{m['at']} " if m["at"] else "", text)
    at = re.match(r"@(\w+) ", text) or re.search(r" in (\w+)", text)
    text = re.sub(r"^@\w+ | (?:on|in) \w+", "", text).replace(" ,", "").removesuffix(" .")
    past = next(word for word in text.split() if word in WEIGHT)
    who, whom = text.split(f" was {past} by ")[::-1] if f" was {past} by " in text else text.split(f" {past} ")
    names = whom.split()[-2:] if whom.split()[-2] in KINDS else whom.split()[-1:]
    return WEIGHT[past], (who.split()[-1], PRESENTS[WEIGHT[past]], *names, "in", at[1])


def test_a_headline_is_the_event_of_most_weight_and_nothing_else():
    passives, mixed = 0, 0
    for document in news().train[:500]:
        sentences = [f"{s} .".strip() for s in " ".join(document.words).split(" .") if s]
        events = [s for s in sentences if set(s.split()) & set(WEIGHT)]
        assert 2 <= len(events) <= 3 and len(events) == len(sentences) - 1
        found = [headline(s) for s in events]
        assert len({weight for weight, _ in found}) == len(found)
        assert min(found)[1] == document.summary and 5 <= len(document.summary) <= 6
        passives += " was " in events[found.index(min(found))]
        mixed += found.index(min(found)) > 0
    assert 0.2 < passives / 500 < 0.4 and 0.4 < mixed / 500 < 0.7, "neither order nor place gives the event away"


def test_the_news_have_tags_and_entities_and_no_headline_twice():
    found = news()
    documents = [*found.train, *found.dev, *found.test]
    assert [*map(len, (found.train, found.dev, found.test))] == [4000, 200, 1000]
    assert len({document.summary for document in documents}) == len(documents)
    for document in documents[::20]:
        assert all((tag == "PROPN") == entity for tag, entity in zip(document.tags, document.entities, strict=True))
        for i, word in enumerate(document.words):
            starts = i == 0 or document.words[i - 1] == "."
            assert word[0].isupper() == (starts or document.tags[i] == "PROPN") or word in ".,"
        assert document.words[-1] == "." and ", ." not in " ".join(document.words)


def test_most_names_can_only_be_copied():
    found = news().shortened(train=1000, test=200)
    vocabulary = Vocabulary.build(found.train, SummarizerConfig())
    assert set(TOWNS) <= set(vocabulary.words), "some are known, and could be written as well"
    words = [(w, d) for d in found.test for w in d.summary]
    unknown = [w in d.words for w, d in words if w not in vocabulary.index]
    assert 0.3 < len(unknown) / len(words) < 0.7 and all(unknown)
