"""Random inputs: whatever is given, the answer is a result or a LalkitError, and never another error."""

import json
import shutil
from collections.abc import Sized

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lalkit
from lalkit.config import Config, from_dict, minilm, override, tiny, to_dict
from lalkit.errors import LalkitError
from lalkit.reproduce.notebook import read_parameters
from lalkit.training.loop import Run
from lalkit.training.named import read_card, read_profile
from lalkit.treebank import brackets, conllu
from lalkit.treebank.text import read_line
from lalkit.treebank.tree import Sentence
from tests.hostile.test_json_files import NOTEBOOK, tables, write_sweep

MANY = settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
NAMES = sorted(
    [f"model.encoder.{name}" for name in to_dict(minilm())["model"]["encoder"]]
    + [f"model.label_attention.{name}" for name in to_dict(minilm())["model"]["label_attention"]]
    + [f"model.{name}" for name in to_dict(minilm())["model"]]
    + [f"train.{name}" for name in to_dict(minilm())["train"]]
)


@pytest.fixture(autouse=True)
def time_for_many_examples(alarm):
    alarm(300)


def answered(function, *arguments, **options):
    """Return the result, or None where lalkit refuses; any other error goes on."""
    try:
        return function(*arguments, **options)
    except LalkitError:
        return None


@pytest.fixture(scope="module")
def parser(tiny_parser):
    return lalkit.load(tiny_parser)


WORDS = st.lists(PLAIN | st.sampled_from(["One", "two", "."]), max_size=4)
ORDERED = st.sampled_from([list, tuple, iter, pd.Series, lambda values: np.array([*values, None], dtype=object)[:-1]])
ANYTHING = (
    VALUES | st.binary(max_size=6) | st.sets(st.text(max_size=4)) | st.sampled_from([pd.NA, ..., len, str, np.nan])
)
FORMS = st.sampled_from(["raw", "tokens", "tagged", "text"]) | PLAIN
NUMBERS = st.none() | st.integers() | st.integers(1, 5) | PLAIN


@pytest.mark.slow
@MANY
@given(text=ANYTHING, form=FORMS)
def test_parse(parser, text, form):
    result = answered(parser.parse, text, form)
    assert result is None or (isinstance(text, str | list) and len(result.sentence) > 0)
    assert result is None or isinstance(text, str) or list(result.sentence.words) == text


@pytest.mark.slow
@MANY
@given(words=WORDS, container=ORDERED)
def test_parse_of_words_in_any_container(parser, words, container):
    result = answered(parser.parse, container(words))
    assert (result is None) == (answered(Sentence, words) is None)
    assert result is None or list(result.sentence.words) == words


@pytest.mark.slow
@MANY
@given(
    texts=ANYTHING | st.builds(lambda texts, container: container(texts), st.lists(WORDS | PLAIN, max_size=3), ORDERED),
    form=FORMS, budget=NUMBERS, threads=NUMBERS,
)  # fmt: skip
def test_parse_all(parser, texts, form, budget, threads):
    count = len(texts) if isinstance(texts, Sized) else None
    results = answered(parser.parse_all, texts, form, budget=budget, threads=threads)
    assert results is None or count in (None, len(results))


@pytest.mark.slow
@MANY
@given(text=st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_text_is_parsed_and_written_in_every_form(parser, text):
    result = answered(parser.parse, text)
    if result is not None:
        assert len(list(brackets.scan_trees(result.to_ptb()))) == 1
        assert len(list(conllu.scan_conll(result.to_conllu()))) == 1
        assert json.loads(result.to_json())["words"] == list(result.sentence.words)
        assert result.draw().startswith("<svg")


@pytest.mark.slow
@MANY
@given(line=st.text(max_size=40), form=st.sampled_from(["text", "raw", "tokens", "tagged"]))
def test_any_line_is_read(line, form):
    answered(read_line, line, form)


@pytest.mark.slow
@MANY
@given(data=st.binary(max_size=60) | st.text(alphabet="() \nNP<>H:1\t_", max_size=60).map(str.encode))
def test_any_file_of_brackets_or_dependencies_is_read(data):
    text = answered(brackets.decode, data, "file")
    if text is None:
        return
    for _, tree in brackets.scan_trees(text):
        if not isinstance(tree, LalkitError):
            answered(lambda tree=tree: brackets.tree_to_sentence(brackets.clean(tree)))
    assert all(isinstance(item, LalkitError | conllu.Dependencies) for item in conllu.scan_conll(text))


@pytest.mark.slow
@MANY
@given(name=st.sampled_from(NAMES), value=VALUES)
def test_any_value_of_a_setting(name, value):
    answered(override, minilm(), {name: value})


@pytest.mark.slow
@MANY
@given(name=st.sampled_from(NAMES), text=st.text(max_size=12) | st.integers().map(str) | st.floats().map(str))
def test_any_text_of_a_setting(name, text):
    config = answered(override, minilm(), {name: text})
    assert config is None or from_dict(Config, json.loads(json.dumps(to_dict(config)))) == config


PLACES = ["format", "weights", "vocab", "vocab/labels", "vocab/tags", "vocab/arc_labels", "vocab/words", "config",
          "config/model", "config/train", "config/model/encoder", "info", "frozen_sha256"]  # fmt: skip


@pytest.mark.slow
@settings(MANY, max_examples=30)
@given(place=st.sampled_from(PLACES), value=VALUES)
def test_any_value_in_model_json(tiny_parser, tmp_path_factory, place, value):
    folder = shutil.copytree(tiny_parser, tmp_path_factory.mktemp("fuzz") / "copy")
    content = json.loads((folder / "model.json").read_text())
    *above, last = place.split("/")
    node = content
    for name in above:
        node = node[name]
    node[last] = value
    (folder / "model.json").write_text(json.dumps(content))
    parser = answered(lalkit.load, folder)
    if parser is not None:
        answered(lambda: parser.parse("One two.").explore())


@pytest.mark.slow
@settings(MANY, max_examples=30)
@given(data=st.binary(max_size=80))
def test_any_bytes_as_model_json(tiny_parser, tmp_path_factory, data):
    folder = shutil.copytree(tiny_parser, tmp_path_factory.mktemp("fuzz") / "copy")
    (folder / "model.json").write_bytes(data)
    assert answered(lalkit.load, folder) is None


def places(content, path=()):
    """Yield the place of every value in a JSON file."""
    for key, part in content.items() if isinstance(content, dict) else enumerate(content):
        yield (*path, key)
        if isinstance(part, dict | list):
            yield from places(part, (*path, key))


def resume(folder):
    """Continue a run, but train no epoch: one that has all its epochs returns its best scores."""
    run = Run(override(tiny(), {"train.epochs": 2}), "sample", folder, resume=True)
    if run.state.epoch >= run.state.planned and "f1" in run.state.history[-1]:
        run.finish()


@pytest.fixture(scope="module")
def files(tiny_parser, tmp_path_factory):
    """One file of every kind, and what reads it."""
    folder = tmp_path_factory.mktemp("kinds")
    labels = json.loads((tiny_parser / "model.json").read_text())["vocab"]["labels"][2:]
    counts = [1] * len(labels)
    profile = {"corpus": "c", "norm": "exact", "spans": 9, "labels": labels, "led": [counts] * 6, "all": counts}
    (folder / "profile.json").write_text(json.dumps(profile))
    (folder / "card.json").write_text('{"licence": "CC BY 4.0"}')
    (folder / "a.ipynb").write_text(json.dumps(NOTEBOOK))
    run = shutil.copytree(tiny_parser, folder / "run")
    sweep = write_sweep(folder / "sweep")
    return {
        folder / "profile.json": lambda: read_profile(folder),
        folder / "card.json": lambda: read_card(folder),
        folder / "a.ipynb": lambda: read_parameters(folder / "a.ipynb"),
        sweep / "sweep.json": lambda: tables(sweep),
        sweep / "x" / "result.json": lambda: tables(sweep),
        run / "resume.json": lambda: resume(run),
    }


@st.composite
def with_another_value(draw, content):
    *above, last = draw(st.sampled_from(list(places(content))))
    node = content
    for name in above:
        node = node[name]
    node[last] = draw(VALUES)
    return json.dumps(content).encode()


@st.composite
def with_other_bytes(draw, whole):
    start = draw(st.integers(0, len(whole)))
    return whole[:start] + draw(st.binary(max_size=4)) + whole[start + draw(st.integers(0, 12)) :]


KINDS = ("profile", "card", "a", "sweep", "result", "resume")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(MANY, max_examples=40)
@given(data=st.data())
def test_any_value_and_any_bytes_in_any_json_file(files, kind, data):
    """Some value is replaced by any other, or a few bytes anywhere are, so that most of the file is as it was."""
    file = next(file for file in files if file.stem == kind)
    whole = file.read_bytes()
    try:
        file.write_bytes(data.draw(st.one_of(with_another_value(json.loads(whole)), with_other_bytes(whole))))
        answered(files[file])
    finally:
        file.write_bytes(whole)
