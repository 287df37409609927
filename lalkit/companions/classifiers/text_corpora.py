"""The data sets of the study, by name or by path.

| name              | from                  | train / dev / test                          | stands for the paper's   |
|-------------------|-----------------------|---------------------------------------------|--------------------------|
| babi-1, -2, -3    | generated             | 8,500 / up to 1,500 / up to 1,000 questions | bAbI 1, 2, 3             |
| sentence_polarity | NLTK                  | 8 : 1 : 1, ours                             | SST (they overlap)       |
| subjectivity      | NLTK                  | 8 : 1 : 1, ours                             | 20News, Tweets           |
| movie_reviews     | NLTK, first 200 words | 8 : 1 : 1, ours                             | IMDB                     |
| product_reviews_1 | NLTK                  | 8 : 1 : 1, ours                             | Yelp, Amazon             |
| twitter_samples   | NLTK                  | 8 : 1 : 1, ours                             | Tweets                   |
| reuters           | NLTK, first 200 words | 9 : 1 of train, ours / as published         | 20News                   |
| qc                | NLTK                  | 9 : 1 of train, ours / as published         |                          |
| entailment        | generated             | 6,000 / 1,000 / 1,000 pairs                 | SNLI                     |
| paraphrase        | generated             | 6,000 / 1,000 / 1,000 pairs                 | QQP                      |
| rte               | NLTK                  | 9 : 1 of all other sets, ours / RTE-3 test  | SNLI, QQP (at chance)    |

No question of bAbI is in two parts with the same story.

A folder has train, dev and test as .csv, .tsv or .jsonl files, or files with the names that they were published with:
qaN_..._train.txt and qaN_..._test.txt of bAbI, snli_1.0_train.jsonl (_dev, _test) of SNLI, quora_duplicate_questions.tsv of QQP,
SICK.txt, or SICK_train.txt, SICK_trial.txt and SICK_test_annotated.txt, and the folders training, validation and test of CNN.
The data of bAbI, SNLI and CNN are named babi-N, snli and cnn, whatever the folder, because their settings depend on their name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from lalkit.companions.classifiers import babi, pairs
from lalkit.companions.classifiers.examples import Dataset, Example, shorten, split, unseen
from lalkit.companions.frame import json_lines, text_lines
from lalkit.errors import CorpusError
from lalkit.treebank.brackets import read_text

NLTK = (
    "sentence_polarity", "subjectivity", "movie_reviews", "product_reviews_1", "twitter_samples", "reuters", "qc", "rte",
)  # fmt: skip
REUTERS = ("acq", "earn")  # the two most frequent topics of Reuters: articles that have one of them and no other
NAMES = ("babi-1", "babi-2", "babi-3", *pairs.FORMS, *NLTK)
# The names that files give to our columns: our own, and those of SNLI, QQP and others.
COLUMNS = {
    "label": ("label", "gold_label", "is_duplicate", "entailment_label", "entailment_judgment", "class", "sentiment"),
    "text": ("text", "sentence", "sentence1", "sentence_A", "premise", "question1"),
    "question": ("question", "sentence2", "sentence_B", "hypothesis", "question2"),
}
# The files of a part, in a folder: our own names, then those that SNLI and SICK were published with.
FILES = {
    "train": ("train.csv", "train.tsv", "train.jsonl", "snli_1.0_train.jsonl", "SICK_train.txt"),
    "dev": ("dev.csv", "dev.tsv", "dev.jsonl", "snli_1.0_dev.jsonl", "SICK_trial.txt"),
    "test": ("test.csv", "test.tsv", "test.jsonl", "snli_1.0_test.jsonl", "SICK_test_annotated.txt"),
}


def load(name: str) -> Dataset:
    """Return a data set. Raises CorpusError if it is unknown, not on this machine, or damaged."""
    if name.startswith("babi-") and name in NAMES:
        return babi.generate(int(name[-1]))
    task, _, side = name.partition("-")
    if task in pairs.FORMS and side in ("", "text", "question"):
        return pairs.alone(pairs.generate(task), side)
    if name in NLTK:
        try:
            return _nltk(name)
        except LookupError:
            remedy = f"Get it with: python -m nltk.downloader {name}   (or set NLTK_DATA to the folder that has it)"
            raise CorpusError(f"NLTK's corpus {name} is not on this machine", remedy=remedy) from None
    if Path(name).is_dir():
        return read_folder(Path(name))
    raise CorpusError(f"there are no data {name!r}", remedy=f"Give one of {', '.join(NAMES)}, or a folder of files.")


def tokens(text: str) -> tuple[str, ...]:
    """Return the tokens of a text by the rules of the Penn Treebank, in small letters."""
    from nltk.tokenize import TreebankWordTokenizer

    return tuple(word.lower() for word in TreebankWordTokenizer().tokenize(text))


def _without_smileys(text: str) -> tuple[str, ...]:
    """Return the tokens of a tweet without emoticons: the tweets of NLTK were sorted by these."""
    from nltk.tokenize.casual import EMOTICON_RE, TweetTokenizer

    words = TweetTokenizer(preserve_case=False).tokenize(text)
    return tuple(word for word in words if not EMOTICON_RE.fullmatch(word))


def _nltk(name: str) -> Dataset:
    from nltk import corpus

    reader = getattr(corpus, name)
    if name in ("sentence_polarity", "subjectivity"):
        return split(name, [Example(tuple(s), c) for c in reader.categories() for s in reader.sents(categories=c) if s])
    if name == "movie_reviews":
        documents = [Example(tuple(reader.words(file)), file.split("/")[0]) for file in reader.fileids()]
        return shorten(split(name, documents), words=200)
    if name == "twitter_samples":
        files = {"neg": "negative_tweets.json", "pos": "positive_tweets.json"}
        tweets = ((_without_smileys(text), label) for label, file in files.items() for text in reader.strings(file))
        return split(name, [Example(words, label) for words, label in tweets if words])
    if name == "product_reviews_1":  # a sentence has numbers such as +2 for what it says of each feature of the product
        lines = [
            (line.sent, sum(int(number) for _, number in line.features))
            for r in reader.reviews()
            for line in r.review_lines
        ]
        return split(name, [Example(tuple(map(str.lower, s)), "pos" if n > 0 else "neg") for s, n in lines if n and s])
    if name == "reuters":
        train, test = (
            [
                Example(tuple(word.lower() for word in reader.words(file)), topics[0])
                for file in reader.fileids()
                if file.startswith(part) and (topics := reader.categories(file))[0] in REUTERS and len(topics) == 1
            ]
            for part in ("train", "test")
        )
        return shorten(_with_dev(name, train, test), words=200)
    if name == "qc":
        train, test = (
            [Example(tokens(question), label.partition(":")[0]) for label, question in reader.tuples(file)]
            for file in reader.fileids()
        )
    else:
        train, test = (
            [Example(tokens(p.text), str(p.value), tokens(p.hyp)) for p in reader.pairs(files)]
            for files in ([f for f in reader.fileids() if f != "rte3_test.xml"], ["rte3_test.xml"])
        )
    return _with_dev(name, train, test)


def _with_dev(name: str, train: Iterable[Example], test: Sequence[Example]) -> Dataset:
    """Make a tenth of train the dev part. Examples of the test part are left out of both."""
    once = list(dict.fromkeys(unseen(train, test)))
    order = np.random.default_rng(0).permutation(len(once))
    dev, rest = np.split(order, [max(len(once) // 10, 1)])
    return Dataset(name, tuple(once[i] for i in rest), tuple(once[i] for i in dev), tuple(test))


def read_folder(folder: Path) -> Dataset:
    """Read a folder of tables, or published files with their own names. Without a dev part, a tenth of train becomes it."""
    texts = {part: sorted(folder.glob(f"qa*_{part}.txt")) for part in ("train", "test")}
    if all(len(files) == 1 for files in texts.values()):
        train, test = (list(babi.read(text_lines(file), str(file))) for (file,) in texts.values())
        task = re.match("qa([0-9]*)", texts["train"][0].name)[1]
        return _with_dev(f"babi-{task}", train, test)
    if any(len(files) > 1 for files in texts.values()):
        remedy = "Copy the two files of one task, such as qa1_..._train.txt and qa1_..._test.txt, into a folder of their own."
        raise CorpusError("has files of several bAbI tasks", where=str(folder), remedy=remedy)
    if (folder / "training").is_dir():
        fitted, chosen, tested = (tuple(read_questions(folder / part)) for part in ("training", "validation", "test"))
        return Dataset("cnn", fitted, chosen, tested, extractive=True)
    if (whole := folder / "quora_duplicate_questions.tsv").exists():
        return split(folder.name, _examples(read_table(whole), whole))
    if (whole := folder / "SICK.txt").exists():
        table = read_table(whole)
        sets = table[_column(table, "part", ("SemEval_set",), whole)]
        of_set = {name: tuple(_examples(table[sets == name], whole)) for name in ("TRAIN", "TRIAL", "TEST")}
        return Dataset(folder.name, of_set["TRAIN"], of_set["TRIAL"], of_set["TEST"])
    files = {part: [f for name in names if (f := folder / name).exists()] for part, names in FILES.items()}
    fitted, chosen, tested = (tuple(_examples(read_table(f[0]), f[0])) if f else () for f in files.values())
    if not fitted or not tested:
        remedy = "Give train, test and perhaps dev as .csv, .tsv or .jsonl, or as bAbI, SNLI, QQP, SICK or CNN were published."
        raise CorpusError("has no data that can be read", where=str(folder), remedy=remedy)
    name = "snli" if files["train"][0].name.startswith("snli") else folder.name
    return Dataset(name, fitted, chosen, tested) if chosen else _with_dev(name, fitted, tested)


def read_questions(folder: Path) -> Iterator[Example]:
    """Read the .question files of one part of CNN (Hermann et al. 2015): address, story, question, answer and names, with
    empty lines between. Names stay anonymous, so that only the story can tell the answer, such as @entity3.
    """
    for file in sorted(folder.glob("*.question")):
        story, question, answer = [tuple(block.split()) for block in (read_text(file) + 4 * "\n\n").split("\n\n")[1:4]]
        if "@placeholder" not in question or len(answer) != 1 or answer[0] not in story:
            raise CorpusError("has no question that its story answers", where=str(file), remedy="Compare with others.")
        yield Example(story, answer[0], question)


def read_table(file: Path) -> pd.DataFrame:
    """Read a table of texts. Raises CorpusError with the name of the file if it is not a table."""
    if file.suffix == ".jsonl":
        return pd.DataFrame([row for _, row in json_lines(file)])
    try:
        return pd.read_csv(file, sep="," if file.suffix == ".csv" else "\t", dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:  # it is not UTF-8, or not a table
        problem = " ".join(str(error).split())
        raise CorpusError(f"cannot be read ({problem})", where=str(file), remedy="Is it whole, and UTF-8?") from None


def _column(table: pd.DataFrame, ours: str, theirs: Sequence[str], file: Path) -> str:
    """Return the name that a file gives to one of our columns."""
    if not (names := [name for name in theirs if name in table]):
        raise CorpusError(f"has no column {ours}", where=str(file), remedy=f"Name it one of {', '.join(theirs)}.")
    return names[0]


def _examples(table: pd.DataFrame, file: Path) -> Iterator[Example]:
    columns = {ours: _column(table, ours, COLUMNS[ours], file) for ours in ("label", "text")}
    if asked := [name for name in COLUMNS["question"] if name in table]:
        columns["question"] = asked[0]
    for row, record in enumerate(table.to_dict("records"), 1):
        if lacking := [c for c in columns.values() if record[c] in (None, "") or record[c] != record[c]]:  # nan
            where, remedy = f"{file}, row {row}", "Give it, or leave the row out."
            raise CorpusError(f"has no {lacking[0]}", where=where, remedy=remedy)
        label = str(record[columns["label"]])
        if label == "-":  # in SNLI: the annotators did not agree
            continue
        question = tokens(str(record[columns["question"]])) if "question" in columns else ()
        try:
            yield Example(tokens(str(record[columns["text"]])), label, question)
        except CorpusError as error:
            raise error.at(f"{file}, row {row}") from None
