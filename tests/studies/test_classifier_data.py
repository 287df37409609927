"""Data of classifiers: stories and pairs that mean what they say, splits that share nothing, files that are read or refused."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from lalkit.errors import CorpusError, LalkitError
from lalkit.studies import classifier_data as data
from lalkit.studies.classifier_data import Example, Texts, babi, load, pairs, read_babi, shorten, split, stories


def simulate(lines):
    """Read a story slowly, line by line, and check every answer. Returns the supporting sentences of each question."""
    at, holds, history, needed = {}, {}, {}, []
    for line in lines:
        number, _, rest = line.partition(" ")
        parts = rest.split("\t")
        words = parts[0].rstrip(".?").split()
        if len(parts) == 3:
            facts = [int(n) for n in parts[2].split()]
            if words[1] == "is":
                place = at[words[-1]] if words[-1] in data.PEOPLE else history[words[-1]][-1]
            else:
                trail = history[words[3]]
                place = trail[max(i for i, p in enumerate(trail) if p == words[-1]) - 1]
            assert parts[1] == place and all(n < int(number) for n in facts)
            needed.append([lines[n - 1].split(" ", 1)[1] for n in facts])
            continue
        person, last = words[0], words[-1]
        if last in data.PLACES:
            assert at.get(person) != last
            at[person] = last
            for thing in [t for t, p in holds.items() if p == person]:
                history[thing].append(last)
        elif any(v.split()[0] == words[1] for v in data.WORDS["get"]):
            assert last not in holds
            holds[last] = person
            assert history.setdefault(last, [at[person]])[-1] == at[person]  # it lay where it was got
        else:
            assert holds.pop(last) == person
    return needed


@pytest.mark.parametrize("task", [1, 2, 3])
def test_stories_keep_the_rules_and_their_answers_follow(task):
    rng = np.random.default_rng(0)
    for _ in range(60):
        needed = simulate(list(stories(task, 1, rng)))
        assert len(needed) == data.QUESTIONS and {len(facts) for facts in needed} == {task}
        assert all(any(f.rstrip(".").split()[-1] in data.PLACES for f in facts) for facts in needed)


def test_generated_stories_have_supports_and_tags_and_share_nothing():
    found = babi(1, 200, 50)
    assert found == babi(1, 200, 50)
    seen = {(e.words, e.question) for e in found.train}
    assert not any((e.words, e.question) in seen for e in (*found.dev, *found.test))
    for e in found.test:
        supporting = [e.words[i] for i in e.supports]
        assert e.label in supporting and e.question[2] in supporting and set(e.tags) <= set(data.UNIVERSAL)


@pytest.mark.parametrize(
    "line", ["one Mary went away.", "3 Where is Mary?\toffice", "3 Where is Mary?\toffice\t7", "1 Is it?\ta\t"]
)
def test_a_line_that_is_not_in_babis_form(line):
    lines = ["1 Mary went to the office.", "2 John went to the garden.", line]
    with pytest.raises(CorpusError) as caught:
        list(read_babi(lines, "qa1"))
    assert caught.value.where == "qa1, line 3"
    assert list(read_babi([*lines[:2], "", "3 Where is Mary?\toffice\t1"]))[0].supports == tuple(range(6))


KIND = dict(data.FILLERS["kinds"])
SAME = {synonym: word for word, synonym in data.FILLERS["deeds"] + data.FILLERS["things"]} | {
    "leave": "left",
    "stay": "stayed",
}


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
    words, asked, said = list(question), facts(question), facts(sentence)
    if "is" in words:
        return (said[-1] == asked[-1]) != ("not" in words)
    if "has" in words:
        return KIND[said[-1]] == asked[-1]
    if "did" in words:
        return said[1] != asked[-2]
    return said == asked


@pytest.mark.parametrize("task", data.FORMS)
def test_answers_of_pairs_follow_and_neither_text_tells_them(task):
    found, people = pairs(task, 400, 200), {*data.FILLERS["people"]}
    assert found == pairs(task, 400, 200) and [len(found.train), len(found.dev), len(found.test)] == [400, 200, 200]
    texts = []
    for part in (found.train, found.dev, found.test):
        for e in part:
            asked = [e.words[i] for i in e.supports]
            others = {word for i, word in enumerate(e.words) if i not in e.supports}
            assert follows(asked, e.question) == (e.label == "yes"), e
            assert people & set(e.question) <= set(asked) and not people & set(asked) & others
        for side in ("words", "question"):
            counts = Counter((getattr(e, side), e.label) for e in part)
            assert all(n == counts[text, "no" if label == "yes" else "yes"] for (text, label), n in counts.items())
        texts.append({s.removesuffix(" .") for e in part for s in " ".join(e.words).split(" . ")})
    assert not (texts[0] & texts[1] or texts[0] & texts[2] or texts[1] & texts[2])


GOOD = (Example(("a", "b"), "x"), Example(("c",), "y"))


@pytest.mark.parametrize("parts", [
    (GOOD, (), GOOD), (GOOD, GOOD, (Example(("a",), "z"),)), (GOOD[:1],) * 3, (GOOD, GOOD, (replace(GOOD[0], question=("q",)),)),
], ids=["empty", "new class", "one class", "some questions"])  # fmt: skip
def test_parts_that_are_refused(parts):
    with pytest.raises(CorpusError, match="the part"):
        Texts("d", *parts)
    assert Texts("d", GOOD, GOOD[:1], GOOD[1:]).classes == ("x", "y")  # dev and test need not have every class


@pytest.mark.parametrize("given", [((), "x"), (("a", "b"), "x", (), (), ("NOUN",))])
def test_examples_that_are_refused(given):
    with pytest.raises(CorpusError):
        Example(*given)


def test_a_split_takes_doubles_once_and_a_short_text_keeps_its_supports():
    some = [Example((f"w{i % 40}",), "xy"[i % 2]) for i in range(100)]
    parts = [set(part) for part in (split("d", some).train, split("d", some).dev, split("d", some).test)]
    assert [len(p) for p in parts] == [32, 4, 4] and len(set.union(*parts)) == 40
    e = Example(("a", "b", "c"), "x", supports=(0, 2), tags=("NOUN", "VERB", "X"))
    short = shorten(Texts("d", (e, *GOOD), GOOD, GOOD), words=2, train=3, test=1)
    assert short.train[0] == Example(("a", "b"), "x", supports=(0,), tags=("NOUN", "VERB"))
    assert len(short.test) == 1 and len(short.dev) == 2


def test_folders_of_tables_and_of_babi(tmp_path):
    rows = [{"text": f"It's {w}", "label": w} for w in ("good", "bad")] * 3 + [{"text": "so so", "label": "-"}]
    for part in ("train", "dev", "test"):
        # Within a text, these two characters end no line.
        lines = [json.dumps(r | {"note": "\x85\u2028"}, ensure_ascii=False) for r in rows]
        (tmp_path / f"{part}.jsonl").write_text("\ufeff" + "\r\n".join(lines) + "\n", encoding="utf-8", newline="")
    found = load(str(tmp_path))
    assert found.train[0].words == ("it", "'s", "good") and len(found.train) == 6 and not found.train[0].question
    folder = tmp_path / "snli"
    folder.mkdir()
    table = "sentence1\tsentence2\tgold_label\n" + "".join(f"A {i}\tB\t{i % 2}\n" for i in range(20))
    (folder / "train.tsv").write_text(table)
    (folder / "test.tsv").write_text("sentence1\tsentence2\tgold_label\nA 3\tB\t1\nZ\tB\t0\n")
    found = load(str(folder))
    assert (len(found.train), len(found.dev), len(found.test)) == (18, 1, 2) and found.train[0].question == ("b",)
    (tmp_path / "babi").mkdir()
    for part, seed in (("train", 0), ("test", 1)):
        lines = [line.replace("the", "the\u2028") for line in stories(1, 60, np.random.default_rng(seed))]
        (tmp_path / "babi" / f"qa1_x_{part}.txt").write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    found = load(str(tmp_path / "babi"))
    assert found.name == "babi-1" and len(found.test) == 60 and found.test[0].supports
    (tmp_path / "babi" / "qa2_x_train.txt").write_text("")
    with pytest.raises(CorpusError, match="several files for train"):
        load(str(tmp_path / "babi"))


@pytest.mark.parametrize(("name", "content", "where"), [
    ("train.jsonl", b'{"text": "a", "label": "x"}\n\n{"text": "a", "lab', "train.jsonl, line 3"),
    ("train.jsonl", b'{"text": "a", "label": "x"}\n3\n', "train.jsonl, line 2"),
    ("train.jsonl", b'{"text": "a", "label": "x"}\n{"text": "b"}\n', "train.jsonl, row 2"),
    ("train.jsonl", b"\n\xff", "train.jsonl, line 2"), ("train.csv", b'text,label\na,x\nb,"x\n', "train.csv"),
    ("train.csv", b"text,label\na,b,x,y\nc,d,e,f,g\n", "train.csv"), ("train.tsv", b"", "train.tsv"),
    ("train.csv", b"text,label\n\xff,x\n", "train.csv"), ("train.tsv", b"a\tb\n1\t2\n", "train.tsv"),
    ("train.tsv", b"text\tquestion\tlabel\na\tb\tx\n\tb\tx\n", "train.tsv, row 2"),
])  # fmt: skip
def test_files_that_are_damaged(tmp_path, name, content, where):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LalkitError) as caught:
        load(str(tmp_path))
    assert caught.value.where == str(tmp_path / where) and caught.value.remedy


def test_data_that_are_not_there(tmp_path, monkeypatch):
    for name in ("imdb", str(tmp_path)):
        with pytest.raises(CorpusError):
            load(name)
    import nltk.data

    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    with pytest.raises(CorpusError, match="NLTK's tagger is not on this machine"):
        data.tagged(GOOD)


def test_tags_never_seen_are_x():
    assert {data.universal(t) for t in data.OF_PENN} | {"X"} == set(data.UNIVERSAL)
    assert data.universal("XYZ") == "X" == data.universal("UH") and data.universal("NNPS") == "NOUN"
    assert [data.of_dependencies(t) for t in ("PROPN", "AUX", "PUNCT", "DET", "weird")] == [
        "NOUN",
        "VERB",
        ".",
        "DET",
        "X",
    ]
    known = [replace(e, tags=("X",) * len(e.words)) for e in GOOD]
    assert data.tagged(known) == known


@pytest.mark.data
def test_a_real_corpus():
    try:
        found = load("subjectivity")
    except CorpusError as error:
        pytest.skip(str(error).replace("\n", " "))
    assert (len(found.train), len(found.dev), len(found.test)) == (8000, 1000, 1000) and len(found.classes) == 2
