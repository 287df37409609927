"""Data: stories that mean what they say, splits that share nothing, files that are read or refused with the reason."""

import json
from dataclasses import replace

import nltk
import numpy as np
import pytest
from nltk.corpus.reader import CategorizedPlaintextCorpusReader, ReviewsCorpusReader, TwitterCorpusReader
from nltk.corpus.util import LazyCorpusLoader

from lalkit.companions.classifiers import babi
from lalkit.companions.classifiers import text_corpora as corpora
from lalkit.companions.classifiers.examples import (
    OF_PENN,
    UNIVERSAL,
    Dataset,
    Example,
    shorten,
    split,
    tagged,
    universal,
)
from lalkit.errors import CorpusError, LalkitError
from lalkit.files import write_text


def simulate(lines):
    """A slow reading of a story: (place of every person and thing over time, one entry a line) -> checks every answer."""
    at, holds, history, needed = {}, {}, {}, []
    for line in lines:
        number, _, rest = line.partition(" ")
        parts = rest.split("\t")
        words = parts[0].rstrip(".?").split()
        if len(parts) == 3:
            thing, facts = parts[0].split(), [int(n) for n in parts[2].split()]
            if words[0] == "Where" and words[1] == "is":
                who = words[-1]
                place = at[who] if who in babi.PEOPLE else history[who][-1]
            else:
                who, place = words[3], words[-1]
                trail = history[who]
                place = trail[max(i for i, p in enumerate(trail) if p == place) - 1]
            assert parts[1] == place, thing
            assert all(n < int(number) for n in facts)
            needed.append([lines[n - 1].split(" ", 1)[1] for n in facts])
            continue
        person, last = words[0], words[-1]
        if last in babi.PLACES:
            assert at.get(person) != last
            at[person] = last
            for thing in [t for t, p in holds.items() if p == person]:
                history[thing].append(last)
        elif any(v.split()[0] == words[1] for v in babi.WORDS["get"]):
            assert last not in holds
            holds[last] = person
            trail = history.setdefault(last, [at[person]])
            assert trail[-1] == at[person]  # it lay where it was got
        else:
            assert holds.pop(last) == person
    return needed


@pytest.mark.parametrize("task", [1, 2, 3])
def test_stories_keep_the_rules_and_their_answers_follow(task):
    rng = np.random.default_rng(0)
    for _ in range(60):
        lines = babi.one_move_story(rng) if task == 1 else babi.story(task, rng)
        needed = simulate(lines)
        assert len(needed) == babi.QUESTIONS and {len(facts) for facts in needed} == {task}
        for facts in needed:
            assert any(f.rstrip(".").split()[-1] in babi.PLACES for f in facts)


def test_generated_data_keep_supports_and_tags_and_share_no_story():
    data = babi.generate(1, 200, 50)
    assert data == babi.generate(1, 200, 50) and data.paired
    seen = {(e.words, e.question) for e in data.train}
    assert not any((e.words, e.question) in seen for e in (*data.dev, *data.test))
    for e in data.test:
        supporting = [e.words[i] for i in e.supports]
        assert e.label in supporting and e.question[2] in supporting
        assert set(e.tags) <= set(UNIVERSAL)
    with pytest.raises(CorpusError, match="no generator for bAbI 4"):
        babi.generate(4)


def test_babi_by_name_has_the_papers_size():
    data = corpora.load("babi-1")
    assert len(data.train) + 0.15 * 10_000 == 10_000 and len(data.dev) > 1400 and len(data.test) > 950


@pytest.mark.parametrize(("line", "problem"), [
    ("one Mary went to the office.", "is not a line"), ("3 Where is Mary?\toffice", "is not a line"),
    ("3 Where is Mary?\toffice\t7", "does not have"),
])  # fmt: skip
def test_a_line_that_is_not_babis(line, problem):
    lines = ["1 Mary went to the office.", "2 John went to the garden.", line]
    with pytest.raises(CorpusError, match=rf"qa1, line 3: .*{problem}"):
        list(babi.read(lines, "qa1"))
    assert list(babi.read([*lines[:2], "", "3 Where is Mary?\toffice\t1"]))[0].supports == tuple(range(6))


PUBLISHED = {
    "snli_1.0_{part}.jsonl": '{{"gold_label": "{label}", "sentence1": "A man {n} runs.", "sentence2": "He moves."}}\n',
    "SICK_{sick}.txt": "{n}\tA man {n} runs\tHe moves\t4.5\t{label}\n",
}
HEADERS = {"snli": "", "SICK": "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"}


@pytest.mark.parametrize("form", PUBLISHED)
def test_published_files_are_read_under_their_own_names(form, tmp_path):
    labels = ["NEUTRAL", "ENTAILMENT", "-"]
    for k, (part, sick) in enumerate({"train": "train", "dev": "trial", "test": "test_annotated"}.items()):
        rows = "".join(PUBLISHED[form].format(n=9 * k + n, label=label) for n, label in enumerate(labels))
        (tmp_path / form.format(part=part, sick=sick)).write_text(HEADERS[form[:4]] + rows)
    data = corpora.load(str(tmp_path))
    assert [len(part) for part in (data.train, data.dev, data.test)] == [2, 2, 2], "without those that have no class"
    assert data.classes == ("ENTAILMENT", "NEUTRAL") and data.name == ("snli" if form[0] == "s" else tmp_path.name)
    assert data.test[0].words[:3] == ("a", "man", "18") and data.test[0].question[:2] == ("he", "moves")


def test_published_files_that_hold_all_parts_are_read(tmp_path):
    rows = [f'"{n}"\t"1"\t"2"\t"What is {n} ""x""?"\t"Who?"\t"{n % 2}"\n' for n in range(20)]
    header = '"id"\t"qid1"\t"qid2"\t"question1"\t"question2"\t"is_duplicate"\n'
    (tmp_path / "quora_duplicate_questions.tsv").write_text(header + "".join(rows))
    data = corpora.load(str(tmp_path))
    assert [len(part) for part in (data.train, data.dev, data.test)] == [16, 2, 2] and data.train[0].question == (
        "who",
        "?",
    )
    sick = tmp_path / "sick"
    sick.mkdir()
    parts = ["TRAIN", "TRAIN", "TRIAL", "TEST"]
    rows = [f"{n}\tA {n}\tB\t{'YN'[n % 2]}\t{part}\n" for n, part in enumerate(parts)]
    header = "pair_ID\tsentence_A\tsentence_B\tentailment_label\tSemEval_set\n"
    (sick / "SICK.txt").write_text(header + "".join(rows))
    data = corpora.load(str(sick))
    assert [[e.words[1] for e in part] for part in (data.train, data.dev, data.test)] == [["0", "1"], ["2"], ["3"]]
    (sick / "SICK.txt").write_text(header.replace("SemEval_set", "set") + "".join(rows))
    with pytest.raises(CorpusError, match="SICK.txt: has no column part"):
        corpora.load(str(sick))


def texts(*rows):
    return tuple(Example(tuple(words.split()), label) for words, label in rows)


GOOD = texts(("a b", "x"), ("c", "y"))


def test_data_that_cannot_be():
    with pytest.raises(CorpusError, match="an empty text"):
        Example((), "x")
    with pytest.raises(CorpusError, match="2 words with 1 tags"):
        Example(("a", "b"), "x", tags=("NOUN",))
    with pytest.raises(CorpusError, match="the dev part of d is empty"):
        Dataset("d", GOOD, (), GOOD)
    with pytest.raises(CorpusError, match="the class 'z' is in test and not in train"):
        Dataset("d", GOOD, GOOD, texts(("a", "z")))
    with pytest.raises(CorpusError, match="one class only: 'x'"):
        Dataset("d", GOOD[:1], GOOD[:1], GOOD[:1])
    with pytest.raises(CorpusError, match="have a question and others do not"):
        Dataset("d", GOOD, GOOD, (replace(GOOD[0], question=("q",)),))
    assert Dataset("d", GOOD, GOOD[:1], GOOD[1:]).classes == ("x", "y")  # dev and test need not have every class


def test_a_split_takes_doubles_once_and_is_the_same_every_time():
    some = texts(*((f"w{i % 40}", "xy"[i % 2]) for i in range(100)))
    data = split("d", some)
    parts = [set(part) for part in (data.train, data.dev, data.test)]
    assert [len(p) for p in parts] == [32, 4, 4] and len(set.union(*parts)) == 40
    assert data == split("d", some)


def test_shortening_keeps_supports_that_are_left():
    e = Example(("a", "b", "c"), "x", supports=(0, 2), tags=("NOUN", "VERB", "X"))
    data = Dataset("d", (e, *GOOD), GOOD, GOOD)
    short = shorten(data, words=2, train=3, test=1)
    assert short.train[0] == Example(("a", "b"), "x", supports=(0,), tags=("NOUN", "VERB"))
    assert len(short.test) == 1 and len(short.dev) == 2


def test_folders_of_tables_and_of_babi(tmp_path):
    rows = [{"text": f"It's {w}", "label": w} for w in ("good", "bad")] * 3 + [{"text": "so so", "label": "-"}]
    for part in ("train", "dev", "test"):
        # Within a text, these two characters end no line.
        lines = [json.dumps(r | {"note": "\x85\u2028"}, ensure_ascii=False) for r in rows]
        (tmp_path / f"{part}.jsonl").write_text("\ufeff" + "\r\n".join(lines) + "\n", encoding="utf-8", newline="")
    data = corpora.load(str(tmp_path))
    assert data.train[0].words == ("it", "'s", "good") and len(data.train) == 6 and not data.paired

    folder = tmp_path / "pairs"
    folder.mkdir()
    table = "sentence1\tsentence2\tgold_label\n" + "".join(f"A {i}\tB\t{i % 2}\n" for i in range(20))
    (folder / "train.tsv").write_text(table)
    (folder / "test.tsv").write_text("sentence1\tsentence2\tgold_label\nA 3\tB\t1\nZ\tB\t0\n")
    data = corpora.load(str(folder))
    assert (len(data.train), len(data.dev), len(data.test)) == (18, 1, 2) and data.train[0].question == ("b",)

    (folder / "test.tsv").write_text("sentence1\tsentence2\tgold_label\nA\tB\t0\n\tB\t1\n")
    with pytest.raises(CorpusError, match=r"test.tsv, row 2: has no sentence1"):
        corpora.load(str(folder))
    (folder / "test.tsv").write_text("sentence1\tsentence2\tgold_label\nA\tB\t0\nA\tB\t\n")
    with pytest.raises(CorpusError, match=r"test.tsv, row 2: has no gold_label"):
        corpora.load(str(folder))
    (folder / "test.tsv").write_text("a\tb\n1\t2\n")
    with pytest.raises(CorpusError, match="test.tsv: has no column label"):
        corpora.load(str(folder))

    stories = tmp_path / "stories"
    stories.mkdir()
    for part, seed in (("train", 0), ("test", 1)):
        lines = [line.replace("the", "the\u2028") for line in babi.stories(1, 60, np.random.default_rng(seed))]
        (stories / f"qa1_x_{part}.txt").write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    data = corpora.load(str(stories))
    assert not data.extractive and data.name == "babi-1" and len(data.test) == 60 and data.test[0].supports
    (stories / "qa2_x_train.txt").write_text("")
    with pytest.raises(CorpusError, match="(?s)has files of several bAbI tasks.*a folder of their own"):
        corpora.load(str(stories))


@pytest.mark.parametrize(("name", "content", "says"), [
    ("train.jsonl", b'{"text": "a", "label": "x"}\n\n{"text": "a", "lab', "train.jsonl, line 3: is no JSON object"),
    ("train.jsonl", b'{"text": "a", "label": "x"}\n3\n', "train.jsonl, line 2: is no JSON object"),
    ("train.jsonl", b'{"text": "a", "label": "x"}\n{"text": "b"}\n', "train.jsonl, row 2: has no label"),
    ("train.jsonl", b"\n\xff", "train.jsonl, line 2: byte 0xff is not utf-8"),
    ("train.csv", b'text,label\na,x\nb,"x\n', "train.csv: cannot be read .*EOF"),
    ("train.csv", b"text,label\na,b,x,y\nc,d,e,f,g\n", "train.csv: cannot be read .*line 3"),
    ("train.tsv", b"", "train.tsv: cannot be read .*No columns"),
    ("train.csv", b"text,label\n\xff,x\n", "train.csv: cannot be read .*utf-8"),
])  # fmt: skip
def test_files_that_are_damaged(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LalkitError, match=says):
        corpora.load(str(tmp_path))


def test_what_is_not_there(tmp_path, monkeypatch):
    with pytest.raises(CorpusError, match="there are no data 'imdb'"):
        corpora.load("imdb")
    with pytest.raises(CorpusError, match="no data that can be read"):
        corpora.load(str(tmp_path))
    import nltk.data

    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    with pytest.raises(CorpusError, match="NLTK's tagger is not on this machine"):
        tagged(GOOD)


def test_tags_never_seen_are_x():
    assert {universal(t) for t in OF_PENN} | {"X"} == set(UNIVERSAL)
    assert universal("XYZ") == "X" == universal("UH") and universal("NNPS") == "NOUN"
    known = [replace(e, tags=("X",) * len(e.words)) for e in GOOD]
    assert tagged(known) == known


@pytest.mark.data
@pytest.mark.parametrize(("name", "sizes", "classes"), [
    ("subjectivity", (8000, 1000, 1000), 2), ("qc", (4833, 536, 500), 6),
])  # fmt: skip
def test_the_real_corpora(name, sizes, classes):
    try:
        data = corpora.load(name)
    except CorpusError as error:
        pytest.skip(str(error).replace("\n", " "))
    assert (len(data.train), len(data.dev), len(data.test)) == sizes and len(data.classes) == classes
    seen = {(e.words, e.question) for e in data.train}
    assert not any((e.words, e.question) in seen for e in data.test)


STORY = "( @entity1 ) {n} went to @entity2 . {more} @entity3"
QUESTION = f"http://web.archive.org/{{k}}\n\n{STORY}\n\n{{asked}}\n\n{{answer}}\n\n@entity1:CNN\n@entity2:Rome\n"


def test_the_question_files_of_cnn(tmp_path):
    """A look-alike of the published files. What the text no longer names after a cut cannot be its answer."""
    asked = "@placeholder is where {n} went"
    for k, part in enumerate(("training", "validation", "test")):
        (tmp_path / part).mkdir()
        for n, answer in enumerate(("@entity2", "@entity3")):
            words = {"k": n, "n": f"he{k}", "more": "then ," * n, "asked": asked.format(n=n), "answer": answer}
            (tmp_path / part / f"{n:03}.question").write_text(QUESTION.format(**words))
    data = corpora.load(str(tmp_path))
    assert [len(data.train), len(data.dev), len(data.test)] == [2, 2, 2] and data.extractive
    assert data.name == "cnn"
    assert data.classes == ("@entity2", "@entity3") and data.train[1].label == "@entity3"
    assert data.dev[0].words == tuple("( @entity1 ) he1 went to @entity2 . @entity3".split())
    assert data.dev[0].question == tuple("@placeholder is where 0 went".split())
    with pytest.raises(CorpusError, match="has one class only"):
        shorten(data, words=7)
    for wrong in ("", "only an address", QUESTION.format(k=0, n=1, more="", asked="who ?", answer="@entity2"),
                  QUESTION.format(k=0, n=1, more="", asked=asked, answer="@entity9")):  # fmt: skip
        (tmp_path / "test" / "001.question").write_text(wrong)
        with pytest.raises(CorpusError, match="001.question.*has no question"):
            corpora.load(str(tmp_path))


SAD, GLAD = ["so sad", "no no no", "rain"], ["great day", "@bob love it", "sun"]
PRAISE, BLAME = ["a bright screen .", *(f"it costs {n} ." for n in range(4))], ["it dies fast ."]
NEWS = {"training/1": "acq", "training/2": "earn", "training/3": "earn grain", "training/4": "earn", "test/5": "acq"}


@pytest.fixture
def like_nltk(tmp_path, monkeypatch):
    """Small files that look like three corpora of NLTK, which are not on this machine."""
    tweets = {"negative": [":(", *(f"{text} :(" for text in SAD)], "positive": [f"{text.upper()} :D" for text in GLAD]}
    for kind, texts in tweets.items():
        lines = [json.dumps({"id": i, "text": text}) for i, text in enumerate(texts)]
        write_text(tmp_path / "corpora" / "twitter_samples" / f"{kind}_tweets.json", "\n".join(lines) + "\n")
    lines = [f"screen[+2], weight[-1]##{text}" for text in PRAISE] + [f"battery[-3]##{text}" for text in BLAME]
    lines = ["[t] A phone", *lines, "##I bought it .", "size[+1], price[-1]##Small and dear ."]
    write_text(tmp_path / "corpora" / "product_reviews_1" / "Phone.txt", "\n".join(lines) + "\n")
    for file in NEWS:
        write_text(tmp_path / "corpora" / "reuters" / file, f"TITLE {file[-1]}\n  It said so.\n" + "word " * 300)
    write_text(tmp_path / "corpora" / "reuters" / "cats.txt", "".join(f"{f} {topics}\n" for f, topics in NEWS.items()))
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    for name, reader, files, options in (
        ("twitter_samples", TwitterCorpusReader, r".*\.json", {}),
        ("product_reviews_1", ReviewsCorpusReader, r"^(?!.*README).*\.txt", {}),
        ("reuters", CategorizedPlaintextCorpusReader, "(training|test).*", {"cat_file": "cats.txt"}),
    ):  # as in NLTK, whose own reader keeps the files that it found first
        monkeypatch.setattr(nltk.corpus, name, LazyCorpusLoader(name, reader, files, **options))


@pytest.mark.parametrize(
    ("name", "good", "bad"), [("twitter_samples", GLAD, SAD), ("product_reviews_1", PRAISE, BLAME)]
)
def test_tweets_and_reviews_of_nltk(name, good, bad, like_nltk):
    """Tweets lose the emoticons that sorted them; a sentence that neither praises nor blames is left out."""
    data = corpora.load(name)
    found = {(" ".join(e.words), e.label) for part in (data.train, data.dev, data.test) for e in part}
    assert found == {(text, "pos") for text in good} | {(text, "neg") for text in bad}


def test_reuters_of_nltk(like_nltk):
    data = corpora.load("reuters")
    assert {e.label for e in data.train + data.dev} == {"acq", "earn"} and [e.label for e in data.test] == ["acq"]
    assert len(data.train + data.dev) == 3, "an article on two topics is left out"
    assert all(len(e.words) == 200 for e in data.test)
