"""The parameters of a notebook: what its one `parameters` cell declares, and the check of values against it.

The cell holds lines of the form `name: type = literal  # help` and comments, nothing else. The types are str, int, float,
bool, list[T], and unions of these with None, such as `int | None`. Pydantic checks the values. We read the cell ourselves:
papermill's own inspection skips lines that it does not understand, and papermill only warns about unknown names.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, Literal, Union

from pydantic import AllowInfNan, TypeAdapter, ValidationError

from lalkit.errors import ParameterError
from lalkit.files import check_form, read_json

TAG = "parameters"
FORM = "Write each line as: name: type = value  # help, for example: epochs: int = 3  # passes over the data"
SCALARS: dict[str, Any] = {
    "str": str, "int": int, "float": Annotated[float, AllowInfNan(False)], "bool": bool, "None": None
}  # fmt: skip
# How an error describes each part of a type.
WORDS = {
    "str": "text", "int": "a whole number", "float": "a finite number", "bool": "true or false", "None": "none",
    "list": "a list (a,b or ['a', 'b']) of ", " | ": " or ", "[": "", "]": "",
}  # fmt: skip
CONSTANTS = {"true": True, "false": False, "none": None}


@dataclass(frozen=True)
class Parameter:
    """One declared parameter; `type` is as the notebook writes it, `default` is a Python value of that type."""

    name: str
    type: str
    default: object
    help: str = ""

    def convert(self, value: object, notebook: str = "") -> object:
        """Return the value as the declared type. Text from a command line is read: 3, 5e-5, true, none, a,b,c or ['a'].

        Raises ParameterError naming the notebook, the parameter, its declared type and the value.
        """
        kind = TypeAdapter(_read_type(ast.parse(self.type, mode="eval").body))
        value = str(value) if isinstance(value, Path) else list(value) if isinstance(value, tuple) else value
        for reading in _readings(value) if isinstance(value, str) else (value,):
            with suppress(ValidationError):
                return kind.validate_python(reading, strict=True)
        wanted = re.sub("|".join(map(re.escape, WORDS)), lambda part: WORDS[part[0]], self.type)
        problem = f"parameter {self.name} is declared as {self.type}, but was given {value!r}"
        raise ParameterError(problem, where=notebook, remedy=f"Wanted: {wanted}.")


def _readings(text: str) -> Iterator[object]:
    """Yield what a text may mean. The first meaning that is of the declared type counts, so text itself comes late."""
    word = text.strip()
    if word.lower() in CONSTANTS:
        yield CONSTANTS[word.lower()]
    for number in (int, float):
        with suppress(ValueError):
            yield number(word)
    yield text
    if word.startswith("["):
        with suppress(ValueError, SyntaxError):
            yield ast.literal_eval(word)
    else:
        items = [item.strip() for item in word.split(",")] if word else []
        yield [next(_readings(item)) for item in items]
        yield items


@dataclass
class _CellMetadata:
    tags: list[str] = field(default_factory=list)


@dataclass
class _Cell:
    cell_type: Literal["code", "markdown", "raw"]
    source: str | list[str]
    metadata: _CellMetadata


@dataclass
class _Notebook:
    """What a notebook needs so that papermill can run it. nbformat's own check also refuses notebooks that run."""

    cells: list[_Cell]
    metadata: dict
    nbformat: Literal[4]
    nbformat_minor: int


def read_parameters(path: str | Path) -> dict[str, Parameter]:
    """Return the parameters that a notebook declares, in its order.

    Raises ParameterError if the file is not a notebook, if it has not exactly one cell tagged `parameters`, or if that cell
    has a line of another form, an unknown type, a default of another type, or a name twice.
    """
    path = Path(path)
    remedy = "Give an .ipynb file that Jupyter can open."
    notebook = read_json(path, remedy, ParameterError, nan=True)
    try:
        check_form(notebook, _Notebook)
    except ValueError as error:
        problem = f"is not a Jupyter notebook (version 4): {error}"
        raise ParameterError(problem, where=str(path), remedy=remedy) from None
    tagged = [(i, cell) for i, cell in enumerate(notebook["cells"], 1) if TAG in cell["metadata"].get("tags", [])]
    if len(tagged) != 1:
        problem = f"has {len(tagged)} cells tagged '{TAG}', wants exactly one"
        remedy = "Tag one code cell in JupyterLab: Property Inspector (gear), Cell Tags."
        raise ParameterError(problem, where=str(path), remedy=remedy)
    ((number, cell),) = tagged
    return parse_declarations("".join(cell["source"]), f"{path}, cell {number}")


def parse_declarations(source: str, where: str = "") -> dict[str, Parameter]:
    """Return the parameters that the text of a cell declares. Raises ParameterError as `read_parameters` does."""
    try:
        statements = ast.parse(source).body
    except SyntaxError as error:
        raise ParameterError(f"line {error.lineno} is not Python ({error.msg})", where=where, remedy=FORM) from None
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {t.start[0]: t.string.lstrip("#").strip() for t in tokens if t.type == tokenize.COMMENT}
    parameters: dict[str, Parameter] = {}
    for statement in statements:
        try:
            parameter = _declared(statement, comments.get(statement.end_lineno, ""))
            if parameter.name in parameters:
                raise ParameterError(f"declares {parameter.name} a second time", remedy="Keep one of the two lines.")
        except ParameterError as error:
            raise error.at(", ".join(filter(None, (where, f"line {statement.lineno}")))) from None
        parameters[parameter.name] = parameter
    return parameters


def _declared(statement: ast.stmt, comment: str) -> Parameter:
    """Return the parameter that a statement declares; its comment is the parameter's help."""
    if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value):
        raise ParameterError(f"declares no parameter: {ast.unparse(statement)[:60]}", remedy=FORM)
    name, declared = statement.target.id, ast.unparse(statement.annotation)
    try:
        kind = TypeAdapter(_read_type(statement.annotation))
    except ValueError as error:
        raise ParameterError(f"parameter {name}: {error}", remedy=FORM) from None
    try:
        default = ast.literal_eval(statement.value)
        kind.validate_python(default, strict=True)
    except ValidationError:
        problem = f"parameter {name} is declared as {declared}, its default is {default!r}"
        raise ParameterError(problem, remedy="Change the type or the default, so that they agree.") from None
    except ValueError:
        problem = f"the default of {name} is computed: {ast.unparse(statement.value)[:60]}"
        raise ParameterError(problem, remedy="Write the default as a value; compute in a later cell.") from None
    return Parameter(name, declared, default, comment)


def _read_type(node: ast.expr) -> Any:
    """Return the type that an annotation's syntax tree writes; ValueError for all but the types named at the top."""
    match node:
        case ast.BinOp(op=ast.BitOr()):
            return Union[_read_type(node.left), _read_type(node.right)]  # noqa: UP007 (Python cannot say `None | None`)
        case ast.Subscript(value=ast.Name(id="list")):
            return GenericAlias(list, (_read_type(node.slice),))
        case ast.Name() | ast.Constant(value=None) if ast.unparse(node) in SCALARS:
            return SCALARS[ast.unparse(node)]
    raise ValueError(f"the type {ast.unparse(node)} is not one of {', '.join(SCALARS)}, list[...] and X | None")


def convert_all(
    declared: Mapping[str, Parameter], values: Mapping[str, object], notebook: str = ""
) -> dict[str, object]:
    """Return the values, converted. Raises ParameterError for a wrong type or an unknown name, and suggests a near one."""
    for name in values:
        if name not in declared:
            raise ParameterError(f"unknown parameter {name}", where=notebook, remedy=suggest(name, declared))
    return {name: declared[name].convert(value, notebook) for name, value in values.items()}


def suggest(name: str, known: Iterable[str]) -> str:
    """Return a remedy for an unknown name: the nearest known one, and a list of all."""
    known = list(known)
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"{f'Did you mean {near[0]}? ' if near else ''}Known: {', '.join(known) or 'none'}."
