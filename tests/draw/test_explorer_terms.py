"""The explorer's page of terms in a browser: what it says is what the data say (the checks are in terms_checks.js)."""

from pathlib import Path

import pytest

from lalkit.draw import explorer
from tests.draw.terms_data import terms_data

CHECKS = (
    "every_word_and_edge_is_listed_for_either_label_and_their_difference",
    "the_second_label_stands_beside_and_what_is_shaded_is_inside_the_span",
    "what_would_be_without_a_word",
)


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS)
def test_terms(open_page, check):
    checks = Path(__file__).with_name("terms_checks.js").read_text(encoding="utf-8")
    assert open_page(explorer(terms_data())).evaluate(checks, check) == []
