"""The parameters of a notebook: what its one `parameters` cell declares, and values checked against that.

The cell holds lines of the form `name: type = literal  # help`, and nothing else but comments. Types: str, int,
float, bool, list[T], and unions of these with None (`int | None`). papermill itself only warns about unknown names
and never checks types.
"""

from __future__ import annotations

import ast
import io
import json
import math
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from lalkit.errors import ParameterError

TAG = "parameters"
FORM = "Write each line as: name: type = value  # help, for example: epochs: int = 3  # passes over the data"
SCALARS = {"str": str, "int": int, "float": float, "bool": bool, "None": type(None)}
Type = tuple[str, tuple["Type", ...]]  # ("int", ()), ("list", (item,)), ("|", members)


@dataclass(frozen=True)
class Parameter:
    """One declared parameter; `type` is as the notebook writes it, `default` is a Python value of that type."""

    name: str
    type: str
    default: object
    help: str = ""

    def convert(self, value: object, notebook: str = "") -> object:
        """value as the declared type. Text, as on a command line, is read: 3, 5e-5, true, none, a,b,c or ['a'].

        Raises ParameterError naming the notebook, the parameter, its declared type and the value.
        """
        try:
            return _convert(value, _read_type(ast.parse(self.type, mode="eval").body))
        except ValueError as error:
            problem = f"parameter {self.name} is declared as {self.type}, but was given {value!r}"
            raise ParameterError(problem, where=notebook, remedy=str(error)) from None


def read_parameters(path: str | Path) -> dict[str, Parameter]:
    """The parameters a notebook declares, in its order.

    Raises ParameterError if the file is no notebook, if it has not exactly one cell tagged `parameters`, or if that
    cell has a line of another form, an unknown type, a default of another type, or a name twice.
    """
    path = Path(path)
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        tagged = [(i, c) for i, c in enumerate(cells, 1) if TAG in c.get("metadata", {}).get("tags", [])]
    except OSError as error:
        raise ParameterError(f"cannot be read ({error.strerror})", where=str(path), remedy="Check the path.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ParameterError("is not a Jupyter notebook (version 4)", where=str(path)) from None
    if len(tagged) != 1:
        raise ParameterError(
            f"has {len(tagged)} cells tagged '{TAG}', wants exactly one",
            where=str(path),
            remedy="Tag one code cell in JupyterLab: Property Inspector (gear), Cell Tags.",
        )
    number, cell = tagged[0]
    source = cell.get("source", "")
    return parse_declarations(source if isinstance(source, str) else "".join(source), f"{path}, cell {number}")


def parse_declarations(source: str, where: str = "") -> dict[str, Parameter]:
    """The parameters a cell's text declares; raises ParameterError as `read_parameters` does."""
    try:
        statements = ast.parse(source).body
    except SyntaxError as error:
        raise ParameterError(f"line {error.lineno} is not Python ({error.msg})", where=where, remedy=FORM) from None
    comments = _comments(source)
    found: dict[str, Parameter] = {}
    for statement in statements:
        here = f"{where}, line {statement.lineno}" if where else f"line {statement.lineno}"
        if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value):
            raise ParameterError(f"declares no parameter: {ast.unparse(statement)[:60]}", where=here, remedy=FORM)
        name, declared = statement.target.id, ast.unparse(statement.annotation)
        if name in found:
            raise ParameterError(f"declares {name} a second time", where=here)
        try:
            type_ = _read_type(statement.annotation)
        except ValueError as error:
            raise ParameterError(f"parameter {name}: {error}", where=here, remedy=FORM) from None
        try:
            default = ast.literal_eval(statement.value)
        except ValueError:
            problem = f"the default of {name} is computed: {ast.unparse(statement.value)[:60]}"
            raise ParameterError(
                problem, where=here, remedy="Defaults are literals; compute in a later cell."
            ) from None
        if not _fits(default, type_):
            raise ParameterError(f"parameter {name} is declared as {declared}, its default is {default!r}", where=here)
        found[name] = Parameter(name, declared, default, comments.get(statement.end_lineno, ""))
    return found


def convert_all(
    declared: Mapping[str, Parameter], given: Mapping[str, object], notebook: str = ""
) -> dict[str, object]:
    """The given values, converted. Raises ParameterError for a wrong type or an unknown name (with a near one)."""
    for name in given:
        if name not in declared:
            raise ParameterError(f"unknown parameter {name}", where=notebook, remedy=suggest(name, declared))
    return {name: declared[name].convert(value, notebook) for name, value in given.items()}


def suggest(name: str, known: Iterable[str]) -> str:
    """A remedy for an unknown name: the nearest of those that are known, and all of them."""
    known = list(known)
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"{f'Did you mean {near[0]}? ' if near else ''}Known: {', '.join(known) or 'none'}."


def _comments(source: str) -> dict[int, str]:
    """Line -> the comment that ends it."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {t.start[0]: t.string.lstrip("#").strip() for t in tokens if t.type == tokenize.COMMENT}


def _read_type(node: ast.expr) -> Type:
    """An annotation's syntax tree -> Type; ValueError for anything but the types named at the top."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        left, right = _read_type(node.left), _read_type(node.right)
        return "|", tuple(member for t in (left, right) for member in (t[1] if t[0] == "|" else (t,)))
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "list":
        return "list", (_read_type(node.slice),)
    name = "None" if isinstance(node, ast.Constant) and node.value is None else getattr(node, "id", "")
    if name not in SCALARS:
        raise ValueError(f"the type {ast.unparse(node)} is not one of {', '.join(SCALARS)}, list[...] and X | None")
    return name, ()


def _fits(value: object, type_: Type) -> bool:
    """Whether a Python value is of the type; True is no int, 3 is a float, NaN and infinity are no floats."""
    kind, inner = type_
    if kind == "|":
        return any(_fits(value, member) for member in inner)
    if kind == "list":
        return isinstance(value, list) and all(_fits(item, inner[0]) for item in value)
    if kind == "float":
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return type(value) is SCALARS[kind]


def _convert(value: object, type_: Type) -> object:
    """value as the type, read from text where it is text; ValueError says what the type wants."""
    kind, inner = type_
    if kind == "|":
        # str takes any text, so it comes last: for `str | None`, none is None.
        for member in sorted(inner, key=lambda member: member[0] == "str"):
            try:
                return _convert(value, member)
            except ValueError:
                continue
        raise ValueError("Wanted: " + " or ".join(_describe(member) for member in inner) + ".")
    if isinstance(value, Path):
        value = str(value)
    if kind == "list":
        items = _split(value) if isinstance(value, str) else value
        if isinstance(items, list | tuple):
            return [_convert(item, inner[0]) for item in items]
    elif isinstance(value, str) and kind != "str":
        text = value.strip()
        if kind == "bool" and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if kind == "None" and text.lower() == "none":
            return None
        if kind in ("int", "float"):
            try:
                number = SCALARS[kind](text)
            except ValueError:
                number = None
            if _fits(number, type_):
                return number
    elif _fits(value, type_):
        return float(value) if kind == "float" else value
    raise ValueError(f"Wanted: {_describe(type_)}.")


def _split(text: str) -> list:
    """A list as text: a Python literal ['a', 'b'], or items between commas; empty text is the empty list."""
    if text.strip().startswith("["):
        try:
            items = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError):
            raise ValueError("Wanted: a list such as a,b or ['a', 'b'].") from None
        return items
    return [item.strip() for item in text.split(",")] if text.strip() else []


def _describe(type_: Type) -> str:
    kind, inner = type_
    words = {
        "str": "text",
        "int": "a whole number",
        "float": "a finite number",
        "bool": "true or false",
        "None": "none",
    }
    return words[kind] if kind in words else f"a list, between commas, of: {' or '.join(map(_describe, inner))}"
