"""Data of classifiers: splits that share nothing, files that are read or refused, and tags."""

import json
from dataclasses import replace

import pytest

from lalkit.errors import CorpusError, LalkitError
from lalkit.studies import classifier_data as data
from lalkit.studies.classifier_data import Example, Texts, load, shorten, split

GOOD = (Example(("a", "b"), "x"), Example(("c",), "y"))


@pytest.mark.parametrize("parts", [
    (GOOD, (), GOOD), (GOOD, GOOD, (Example(("a",), "z"),)), (GOOD[:1],) * 3, (GOOD, GOOD, (replace(GOOD[0], question=("q",)),)),
], ids=["empty", "new class", "one class", "some questions"])  # fmt: skip
def test_parts_that_are_refused(parts):
    with pytest.raises(CorpusError, match="the part"):
        Texts("d", *parts)
    assert Texts("d", GOOD, GOOD[:1], GOOD[1:]).classes == ("x", "y")  # dev and test need not have every class


def test_examples_that_are_refused():
    for given in ((), "x"), (("a", "b"), "x", (), ("NOUN",)):
        with pytest.raises(CorpusError):
            Example(*given)


def test_a_split_takes_doubles_once_and_a_short_text_keeps_its_tags():
    some = [Example((f"w{i % 40}",), "xy"[i % 2]) for i in range(100)]
    parts = [set(part) for part in (split("d", some).train, split("d", some).dev, split("d", some).test)]
    assert [len(p) for p in parts] == [32, 4, 4] and len(set.union(*parts)) == 40
    e = Example(("a", "b", "c"), "x", tags=("NOUN", "VERB", "X"))
    short = shorten(Texts("d", (e, *GOOD), GOOD, GOOD), words=2, train=3, test=1)
    assert short.train[0] == Example(("a", "b"), "x", tags=("NOUN", "VERB"))
    assert len(short.test) == 1 and len(short.dev) == 2


@pytest.fixture
def folder(tmp_path):
    rows = [{"text": f"It's {w}", "label": w} for w in ("good", "bad")] * 3
    for part in ("train", "dev", "test"):
        # Within a text, these two characters end no line.
        lines = [json.dumps(r | {"note": "\x85\u2028"}, ensure_ascii=False) for r in rows]
        (tmp_path / f"{part}.jsonl").write_text("\ufeff" + "\r\n".join(lines) + "\n", encoding="utf-8", newline="")
    return tmp_path


def test_folders_of_tables(folder):
    found = load(str(folder))
    assert found.train[0].words == ("it", "'s", "good") and len(found.train) == 6 and not found.train[0].question
    for part in ("train", "dev", "test"):
        (folder / f"{part}.jsonl").unlink()
        (folder / f"{part}.tsv").write_text(
            "text\tquestion\tlabel\n" + "".join(f"A {i}\tB\t{i % 2}\n" for i in range(4))
        )
    assert load(str(folder)).train[1] == Example(("a", "1"), "1", ("b",))
    (folder / "dev.csv").write_text("")
    with pytest.raises(CorpusError, match="2 files for dev"):
        load(str(folder))


@pytest.mark.parametrize(("name", "content", "where"), [
    ("train.jsonl", b'{"text": "a", "label": "x"}\n\n{"text": "a", "lab', "train.jsonl, line 3"),
    ("train.jsonl", b'{"text": "a", "label": "x"}\n3\n', "train.jsonl, line 2"),
    ("train.jsonl", b'{"text": "a", "label": "x"}\n{"text": "b"}\n', "train.jsonl, row 2"),
    ("train.jsonl", b"\n\xff", "train.jsonl, line 2"), ("train.csv", b'text,label\na,x\nb,"x\n', "train.csv"),
    ("train.tsv", b"", "train.tsv"), ("train.csv", b"text,label\n\xff,x\n", "train.csv"),
    ("train.tsv", b"a\tb\n1\t2\n", "train.tsv"), ("train.tsv", b"text\tquestion\tlabel\na\tb\tx\n\tb\tx\n", "train.tsv, row 2"),
])  # fmt: skip
def test_files_that_are_damaged(folder, name, content, where):
    (folder / "train.jsonl").unlink()
    (folder / name).write_bytes(content)
    with pytest.raises(LalkitError) as caught:
        load(str(folder))
    assert caught.value.where == str(folder / where) and caught.value.remedy


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
    theirs = ("PROPN", "AUX", "PUNCT", "DET", "weird")
    assert [data.of_dependencies(t) for t in theirs] == ["NOUN", "VERB", ".", "DET", "X"]
    known = [replace(e, tags=("X",) * len(e.words)) for e in GOOD]
    assert data.tagged(known) == known


@pytest.mark.data
def test_a_real_corpus():
    try:
        found = load("subjectivity")
    except CorpusError as error:
        pytest.skip(str(error).replace("\n", " "))
    assert (len(found.train), len(found.dev), len(found.test)) == (8000, 1000, 1000) and len(found.classes) == 2
