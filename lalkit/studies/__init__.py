"""Studies that train and measure systems with attention: LSTM classifiers and summarizers."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lalkit.errors import ParameterError

if TYPE_CHECKING:
    from pandas import DataFrame

STUDIES = {"classifiers": "classifiers", "summarizers": "summarizer_heads"}


def study(name: str, *args: Any, **options: Any) -> dict[str, DataFrame]:
    """Train and measure the systems of a study, and return its tables by their names. Finished runs are not repeated.

    >>> lalkit.study("classifiers", ["subjectivity"], ["vanilla", "diversity"], [1], "runs/lstm")  # doctest: +SKIP

    Args:
        name: classifiers (Mohankumar et al. 2020, lesson 16) or summarizers (Baan et al. 2019, lesson 17).
        args, options: see `study` in lalkit.studies.classifiers and lalkit.studies.summarizer_heads.

    Raises: ParameterError for an unknown name, and the errors of the study.
    """
    if name not in STUDIES:
        raise ParameterError(f"there is no study {name!r}", remedy=f"Give one of {', '.join(STUDIES)}.")
    return import_module(f"lalkit.studies.{STUDIES[name]}").study(*args, **options)
