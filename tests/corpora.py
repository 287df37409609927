"""Corpora for tests: loaded once, or the test is skipped with the reason."""

from functools import lru_cache

import pytest

from lalkit.errors import CorpusError
from lalkit.treebank.corpora import Treebank, load


@lru_cache(maxsize=8)
def needs(name: str, split: str) -> Treebank:
    try:
        return load(name, split, lenient=True)
    except CorpusError as error:
        pytest.skip(str(error).replace("\n", " "))
