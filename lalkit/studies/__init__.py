"""Studies that train and measure systems with attention: LSTM classifiers, summarizers, and both beside parsers."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lalkit.errors import ParameterError

if TYPE_CHECKING:
    from pandas import DataFrame

STUDIES = {"classifiers": "classifiers", "summarizers": "summarizer_heads", "systems": "systems"}


def study(name: str, *args: Any, **options: Any) -> dict[str, DataFrame]:
    """Train and measure the systems of a study, and return its tables by their names. What is finished is not repeated.

    >>> lalkit.study("classifiers", ["subjectivity"], ["vanilla", "diversity"], [1], "runs/lstm")  # doctest: +SKIP

    Args:
        name: classifiers (Mohankumar et al. 2020, lesson 16), summarizers (Baan et al. 2019, lesson 17) or systems (both and
            parsers under the same probes, lesson 18).
        args, options: see `study` in lalkit.studies.classifiers, lalkit.studies.summarizer_heads and lalkit.studies.systems.

    Raises: ParameterError for an unknown name, and what the study raises.
    """
    if name not in STUDIES:
        raise ParameterError(f"there is no study {name!r}", remedy=f"Give one of {', '.join(STUDIES)}.")
    return import_module(f"lalkit.studies.{STUDIES[name]}").study(*args, **options)
