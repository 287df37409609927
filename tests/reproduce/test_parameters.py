"""The parameters cell: how it is read, how values are converted, and which errors a user sees."""

from pathlib import Path

import nbformat
import pytest

from lalkit.errors import ParameterError
from lalkit.reproduce.parameters import convert_all, parse_declarations, read_parameters

CELL = """\
# what this notebook takes
model: str = "data/models/tiny"  # a folder, or a name
epochs: int = 3
rate: float = 5e-5  # peak
exact: bool = False
limit: int | None = None
title: str | None = None
heads: list[int] = [1, 2]
labels: list[str] = []
"""


def test_declarations_are_read_with_type_default_and_help():
    found = parse_declarations(CELL)
    assert list(found) == ["model", "epochs", "rate", "exact", "limit", "title", "heads", "labels"]
    assert found["model"].help == "a folder, or a name"
    assert (found["limit"].type, found["limit"].default) == ("int | None", None)
    assert found["heads"].default == [1, 2]


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("epochs", "12", 12),
        ("epochs", 12, 12),
        ("rate", "5e-4", 5e-4),
        ("rate", 1, 1.0),
        ("exact", "true", True),
        ("exact", "FALSE", False),
        ("limit", "none", None),
        ("limit", "7", 7),
        ("title", "none", None),
        ("title", "7", "7"),
        ("model", "none", "none"),
        ("model", Path("a") / "b", "a/b"),
        ("heads", "3,4", [3, 4]),
        ("heads", "[3, 4]", [3, 4]),
        ("heads", (3, 4), [3, 4]),
        ("labels", "", []),
        ("labels", "NP, VP", ["NP", "VP"]),
    ],
)
def test_values_become_the_declared_type(name, given, wanted):
    got = convert_all(parse_declarations(CELL), {name: given})[name]
    assert got == wanted
    assert type(got) is type(wanted)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("epochs", "3.5"),
        ("epochs", 3.0),
        ("epochs", True),
        ("epochs", None),
        ("epochs", ""),
        ("rate", "nan"),
        ("rate", "fast"),
        ("exact", "1"),
        ("exact", 1),
        ("limit", "some"),
        ("heads", "1,b"),
        ("heads", "[1"),
        ("heads", 1),
        ("labels", [1]),
        ("model", 3),
    ],
)
def test_the_error_for_a_wrong_type_names_notebook_parameter_type_and_value(name, given):
    declared = parse_declarations(CELL)
    with pytest.raises(ParameterError) as error:
        convert_all(declared, {name: given}, "07_train.ipynb")
    for part in ("07_train.ipynb", name, declared[name].type, repr(given), "Wanted"):
        assert part in str(error.value)


def test_the_error_for_an_unknown_name_suggests_the_nearest_known_one():
    with pytest.raises(ParameterError, match=r"unknown parameter epoch\n.*Did you mean epochs\?.*Known: model, epochs"):
        convert_all(parse_declarations(CELL), {"epoch": "3"})
    with pytest.raises(ParameterError) as error:
        convert_all(parse_declarations(CELL), {"zzz": "3"})
    assert "Did you mean" not in str(error.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("epochs = 3", "declares no parameter: epochs = 3"),
        ("epochs: int", "declares no parameter"),
        ("import os", "declares no parameter"),
        ("epochs: int = 'three'", "declared as int, its default is 'three'"),
        ("epochs: int = True", "declared as int"),
        ("rate: float = 1 / 3", "the default of rate is computed"),
        ("path: Path = 'x'", "the type Path is not one of"),
        ("epochs: int = 1\nepochs: int = 2", "a second time"),
        ("epochs: int = = 3", "line 1 is not Python"),
    ],
)
def test_the_error_for_a_wrong_line_of_the_cell_names_the_line(line, message):
    with pytest.raises(ParameterError, match="line") as error:
        parse_declarations(line, "x.ipynb, cell 2")
    assert message in str(error.value)
    assert "x.ipynb, cell 2" in str(error.value)


def write_notebook(path, *cells):
    """cells: (source, tag or None)."""
    made = [nbformat.v4.new_code_cell(s, metadata={"tags": [t]} if t else {}) for s, t in cells]
    nbformat.write(nbformat.v4.new_notebook(cells=made), path)
    return path


def test_a_notebook_has_exactly_one_parameters_cell(tmp_path):
    none = write_notebook(tmp_path / "none.ipynb", (CELL, None))
    with pytest.raises(ParameterError, match="none.ipynb: has 0 cells tagged 'parameters'"):
        read_parameters(none)
    two = write_notebook(tmp_path / "two.ipynb", (CELL, "parameters"), (CELL, "parameters"))
    with pytest.raises(ParameterError, match="has 2 cells"):
        read_parameters(two)
    one = write_notebook(tmp_path / "one.ipynb", ("1 + 1", None), (CELL, "parameters"))
    assert read_parameters(one)["epochs"].default == 3


def test_a_file_that_is_not_a_notebook_is_an_error(tmp_path):
    (tmp_path / "x.ipynb").write_text("hello")
    with pytest.raises(ParameterError, match="x.ipynb: is damaged"):
        read_parameters(tmp_path / "x.ipynb")
    (tmp_path / "x.ipynb").write_text("[]")
    with pytest.raises(ParameterError, match="x.ipynb: is damaged"):
        read_parameters(tmp_path / "x.ipynb")
    with pytest.raises(ParameterError, match="cannot be read"):
        read_parameters(tmp_path / "missing.ipynb")
