"""Made-up news: the same for a seed, headlines that must be copied from the event and from nothing else."""

from lalkit.summarize.batch import Vocabulary
from lalkit.summarize.config import SummarizerConfig
from lalkit.summarize.news import VERBS, news


def test_a_seed_is_a_data_set():
    assert news(20, 5, 5, seed=3) == news(20, 5, 5, seed=3) != news(20, 5, 5, seed=4)
    found = news(200, 50, 50)
    parts = [{d.summary for d in part} for part in (found.train, found.dev, found.test)]
    assert [len(part) for part in parts] == [200, 50, 50] and not parts[0] & parts[1] and not parts[1] & parts[2]


def test_headlines_name_who_did_what_to_whom_and_where():
    for document in news(300, 0, 0).train:
        present = {verb for _, verb, _ in VERBS}
        who, verb, *whom, where = [w for w in document.summary if w != "in"]
        assert verb in present and whom and 5 <= len(document.summary) <= 6
        past = next(past for past, now, _ in VERBS if now == verb)
        assert past in document.words
        event = document.words.index(past)
        assert document.words.index(who) < event < document.words.index(whom[-1])
        assert where in document.words


def test_tags_and_entities_are_of_the_words():
    found = news(200, 0, 0).train
    lengths = [len(d.words) for d in found]
    assert 20 < sum(lengths) / len(lengths) < 35
    for document in found:
        assert len(document.tags) == len(document.entities) == len(document.words)
        assert all(tag == "PROPN" for tag, entity in zip(document.tags, document.entities) if entity)
        assert document.words[-1] == "." and document.tags[-1] == "PUNCT"


def test_most_names_can_only_be_copied():
    found = news(1000, 0, 200)
    vocabulary = Vocabulary.build(found.train, SummarizerConfig())
    words = [w for d in found.test for w in d.summary]
    unknown = [w for w in words if w not in vocabulary.index]
    assert 0.3 < len(unknown) / len(words) < 0.7
    own = [w for d in found.test for w in d.summary if w not in vocabulary.index and w in d.words]
    assert len(own) == len(unknown)
    others = [sum(w not in vocabulary.index and w not in d.summary for w in set(d.words)) for d in found.test]
    assert sum(n > 0 for n in others) / len(others) > 0.8, "there is something else to copy by mistake"
