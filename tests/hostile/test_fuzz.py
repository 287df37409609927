"""Random inputs: whatever is given, the answer is a result or a LalkitError, and never another error.

LALKIT_EXAMPLES sets the number of random inputs of each test.
"""

import json
import os
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lalkit
from lalkit.errors import LalkitError
from lalkit.training.named import read_card
from lalkit.treebank import brackets, conllu
from tests.hostile.test_files import profile_of

EXAMPLES = int(os.environ.get("LALKIT_EXAMPLES", "15"))
FUZZ = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), deadline=None)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


def answered(function, *arguments, **options):
    """Return the result, or None where lalkit refuses; any other error goes on."""
    try:
        return function(*arguments, **options)
    except LalkitError:
        return None


@pytest.fixture(scope="module")
def parser(tiny_parser):
    return lalkit.load(tiny_parser)


@FUZZ
@given(text=st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_text_is_parsed_and_written_in_every_form(parser, text):
    result = answered(parser.parse, text)
    if result is not None:
        assert len(list(brackets.scan_trees(result.to_ptb()))) == 1
        assert len(list(conllu.scan_conll(result.to_conllu()))) == 1
        assert json.loads(result.to_json())["words"] == list(result.sentence.words)
        assert result.draw().startswith("<svg")


@FUZZ
@given(data=st.binary(max_size=60) | st.text(alphabet="() \nNP<>H:1\t_", max_size=60).map(str.encode))
def test_any_file_of_brackets_or_dependencies_is_read(data):
    text = answered(brackets.decode, data, "file")
    if text is None:
        return
    for _, tree in brackets.scan_trees(text):
        if not isinstance(tree, LalkitError):
            answered(lambda tree=tree: brackets.tree_to_sentence(brackets.clean(tree)))
    assert all(isinstance(item, LalkitError | conllu.Dependencies) for item in conllu.scan_conll(text))


def places(content, path=()):
    """Yield the place of every value in a JSON file."""
    for key, part in content.items() if isinstance(content, dict) else enumerate(content):
        yield (*path, key)
        if isinstance(part, dict | list):
            yield from places(part, (*path, key))


@st.composite
def changed(draw, whole):
    """Replace some value by any other, or a few bytes anywhere, so that most of the file is as it was."""
    if draw(st.booleans()):
        start = draw(st.integers(0, len(whole)))
        return whole[:start] + draw(st.binary(max_size=4)) + whole[start + draw(st.integers(0, 12)) :]
    content = node = json.loads(whole)
    *above, last = draw(st.sampled_from(list(places(content))))
    for name in above:
        node = node[name]
    node[last] = draw(VALUES)
    return json.dumps(content).encode()


@pytest.fixture(scope="module")
def files(tiny_parser, tmp_path_factory):
    """What reads each kind of file, and the file."""
    folder = shutil.copytree(tiny_parser, tmp_path_factory.mktemp("files") / "copy")
    (folder / "profile.json").write_text(json.dumps(profile_of(folder)))
    (folder / "card.json").write_text('{"licence": "CC BY 4.0"}')
    explain = lambda: lalkit.load(folder).parse("One two.").explain()  # noqa: E731
    reads = {"model.json": explain, "profile.json": explain, "card.json": lambda: read_card(folder)}
    return {name: (folder / name, read) for name, read in reads.items()}


@pytest.mark.parametrize("name", ["model.json", "profile.json", "card.json"])
@FUZZ
@given(data=st.data())
def test_any_value_and_any_bytes_in_any_json_file(files, name, data):
    file, read = files[name]
    whole = file.read_bytes()
    try:
        file.write_bytes(data.draw(changed(whole)))
        answered(read)
    finally:
        file.write_bytes(whole)
