"""A text with empty lines, and what a parser makes of it when it is given all at once."""

import pytest

from lalkit.api import Parser
from lalkit.treebank.brackets import unescape


@pytest.fixture(scope="session")
def big(sample, tmp_path_factory):
    """60 sentences of data/sample as tokens, empty lines among them, no newline at the end."""
    lines = [" ".join(map(unescape, sentence.words)) for sentence in sample[:60]]
    for place in (0, 7, 7, 30, 50):
        lines.insert(place, "")
    path = tmp_path_factory.mktemp("text") / "big.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def expected(big, tiny_parser):
    """The brackets of `big`, by the parser's plain interface."""
    lines = big.read_text(encoding="utf-8").split("\n")
    results = iter(Parser.load(tiny_parser).parse_all([line for line in lines if line], "tokens"))
    return "".join(next(results).to_ptb() + "\n" if line else "\n" for line in lines)
