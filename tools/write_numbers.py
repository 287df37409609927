"""Write the numbers of our documents from the committed tables they come from.

    python tools/write_numbers.py             rewrite what changed, in .md files and in the markdown cells of notebooks
    python tools/write_numbers.py --check     change nothing; list what is out of date, by file and line (then exit code 1)

A number stands between two comments that a reader of the rendered page does not see. The first says where the number comes
from, in parts separated by semicolons:

    F1 is <!--n figures/systems.csv ; group == "LSTM" ; max conicity ; .2f-->0.64<!--/--> at most.

    <!--n TABLE.csv ; QUERY ; COLUMN ; FORMAT-->      one column of the one row for which the query is true
    <!--n FILE.json ; PATH ; FORMAT-->                a value of a JSON file: seeds.0.test.f1 (0: the first; *: every one)
    <!--n EXPRESSION ; FORMAT-->                      a formula of names, in Python: full - paper, 100 * min(share)

QUERY is what `pandas.DataFrame.query` reads; empty, it means all rows. A column name with a space stands in backticks there.
COLUMN and PATH may begin with a word for several rows: mean, sd, min, max, sum, or all (a tuple). `count` is the number of rows.
FORMAT is a Python format (.1f or ,d), `p` ("p < .001" or "p = 0.013"), `s` (text as it is); or, for a tuple, `each .1f`
("1.0, 2.0 and 3.0"), `range .1f` ("1.0 to 3.0") or `spread .1f` (mean ± standard deviation: "2.0 ± 1.0").

Names are given in a comment of their own, between two paragraphs, before their first use in the document. One name a line; a
name may stand for a file, for the rows of a table that a query keeps, for a number, or for a formula. With parameters, each
{parameter} is replaced in the line:

    <!--let
    table = figures/heads/ptb-sample/table.csv
    trained = table ; system == "span full" and what == "as trained"
    f1(label) = trained ; measure == "label_f1" and label == "{label}" ; mean value
    -->
    NP has <!--n f1("NP") ; .1f-->91.0<!--/-->, which is <!--n f1("NP") - f1("PP") ; .1f-->4.9<!--/--> more than PP.

File names are relative to the root of the repository. Code (in backticks or in a fenced block) is left alone. A line must not
begin with a number's comment, because Markdown takes such a line for HTML. In a table of Markdown, use `or` instead of a bar.
"""

import argparse
import importlib
import io
import json
import re
import statistics
import sys
from pathlib import Path

import pandas as pd

from lalkit.files import write_text

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ("*.md", "data/**/*.md", "figures/*.md", "notebooks/*.md", "notebooks/*.ipynb")
PIECES = re.compile(
    r"(?P<code>^ *```.*?^ *```|`[^`\n]*`)"
    r"|<!--let\s(?P<let>.*?)-->"
    r"|(?P<open><!--n\s(?P<source>.*?)-->)(?P<text>(?:(?!<!--).)*)<!--/-->"
    r"|(?P<stray><!--(?:n|let|/)(?:\s.*?)?-->)",
    re.DOTALL | re.MULTILINE,
)
SUMMARIES = {"mean": statistics.fmean, "sd": statistics.stdev, "min": min, "max": max, "sum": sum, "all": tuple}
FUNCTIONS = {"abs": abs, "min": min, "max": max, "sum": sum, "len": len, "round": round, "mean": statistics.fmean}
# Tables that are computed from the files of a sweep: figures/sweeps/NAME-cells.csv is `cell_table` of NAME.csv.
SWEPT = {"runs": "", "cells": "cell_table", "tests": "pair_table", "claims": "claim_table", "curves": "curve_table"}
EXPECTED = "expected TABLE.csv ; QUERY ; COLUMN ; FORMAT, or FILE.json ; PATH ; FORMAT, or EXPRESSION ; FORMAT"


class NumberError(Exception):
    """A comment that cannot be understood, or that finds no value or several."""


class Names:
    """The names that a document has defined so far, and the files that were read."""

    def __init__(self, root: Path):
        self.root, self.known, self.files = root, dict(FUNCTIONS), {}

    def define(self, lines: str) -> None:
        for line in filter(str.strip, lines.splitlines()):
            match = re.fullmatch(r"\s*(\w+)(?:\(([\w, ]+)\))?\s*=(?!=)\s*(.+?)\s*", line)
            if not match:
                raise NumberError(f"expected NAME = SOURCE: {line.strip()}")
            name, parameters, source = match.groups()
            if parameters:
                self.known[name] = self._function(re.findall(r"\w+", parameters), source)
            else:
                self.known[name] = self.value(split(source))

    def _function(self, parameters: list[str], source: str):
        def call(*arguments):
            if len(arguments) != len(parameters):
                raise NumberError(f"expected {len(parameters)} arguments: {source}")
            text = source
            for parameter, argument in zip(parameters, arguments):
                text = text.replace(f"{{{parameter}}}", str(argument))
            return self.value(split(text))

        return call

    def value(self, parts: list[str]):
        """Return what the parts describe: a number, a text or a tuple; for a name, also a table or the content of a file."""
        source, *rest = self._source(parts[0]), *parts[1:]
        if isinstance(source, pd.DataFrame) and 1 <= len(rest) <= 2:
            rows = source.query(rest[0]) if rest[0] else source
            return of_rows(rows, rest[1], f"{parts[0]} ; {rest[0]}") if len(rest) == 2 else rows
        if isinstance(source, (dict, list)) and len(rest) == 1:
            return of_json(source, rest[0])
        if rest:
            raise NumberError(EXPECTED)
        return source

    def _source(self, text: str):
        if not text.endswith((".csv", ".json")):
            return eval(text, {"__builtins__": {}} | self.known)  # noqa: S307 (our own documents)
        if text not in self.files:
            path = self.root / text
            name, _, kind = path.stem.rpartition("-")
            if not path.exists() and kind in SWEPT and path.with_name(f"{name}.json").exists():
                report = importlib.import_module("lalkit.reproduce.report")
                sweep = report.read_sweep(path.with_name(f"{name}.csv"))
                text_ = (sweep.runs if kind == "runs" else getattr(report, SWEPT[kind])(sweep)).to_csv(index=False)
                table = pd.read_csv(io.StringIO(text_), keep_default_na=False, na_values=[""])
                texts = [name for name in table if not pd.api.types.is_numeric_dtype(table[name])]
                self.files[text] = table.fillna(dict.fromkeys(texts, ""))
            elif path.suffix == ".json":
                self.files[text] = json.loads(path.read_text(encoding="utf-8"))
            else:
                table = pd.read_csv(path, keep_default_na=False, na_values=[""])  # "NA" may be a label
                texts = [name for name in table if not pd.api.types.is_numeric_dtype(table[name])]
                self.files[text] = table.fillna(dict.fromkeys(texts, ""))
        return self.files[text]


def split(source: str) -> list[str]:
    return [" ".join(part.split()) for part in source.split(";")]


def of_rows(rows: pd.DataFrame, column: str, where: str):
    if column == "count":
        return len(rows)
    summary, column = summary_of(column)
    if column not in rows:
        raise NumberError(f"there is no column {column!r}: {where}")
    return summarised(rows[column].tolist(), summary, where)


def of_json(content, path: str):
    summary, keys = summary_of(path)
    values = [content]
    for key in keys.split("."):
        if key == "*":
            values = [item for value in values for item in (value.values() if isinstance(value, dict) else value)]
        else:
            values = [value[int(key)] if isinstance(value, list) else value[key] for value in values]
    return summarised(values, summary, path)


def summary_of(text: str) -> tuple[str | None, str]:
    first, _, rest = text.partition(" ")
    return (first, rest.strip()) if first in SUMMARIES and rest else (None, text)


def summarised(values: list, summary: str | None, where: str):
    if not values:
        raise NumberError(f"no row matches: {where}")
    if summary is None and len(values) > 1:
        raise NumberError(f"{len(values)} rows match, and no word says how to take them together: {where}")
    if any(value is None or value != value for value in values):
        raise NumberError(f"a value is missing: {where}")
    return SUMMARIES[summary](values) if summary else values[0]


def formatted(value, form: str) -> str:
    how, _, rest = form.partition(" ")
    if isinstance(value, tuple):
        if how == "spread":
            return f"{statistics.fmean(value):{rest}} ± {statistics.stdev(value):{rest}}"
        if how == "range":
            least, most = format(min(value), rest), format(max(value), rest)
            return least if least == most else f"{least} to {most}"
        if how == "each":
            *first, last = (format(item, rest) for item in value)
            return f"{', '.join(first)} and {last}" if first else last
        raise NumberError("several values need the format each, range or spread, or min(...), mean(...) around them")
    if isinstance(value, (pd.DataFrame, dict, list)) or callable(value):
        raise NumberError(EXPECTED)
    if form == "p":
        return "p < .001" if value < 0.001 else f"p = {value:.3f}"
    return format(round(value) if form.endswith("d") else value, form)


def renew(text: str, names: Names, where) -> tuple[str, list[str]]:
    """Return the text with its numbers renewed, and what was wrong or out of date.

    Args:
        text: Markdown.
        names: the names defined so far in this document; this text may define more.
        where: a function from a line number of the text to what a message calls the place.
    """
    messages = []

    def replaced(match: re.Match) -> str:
        line = text.count("\n", 0, match.start())
        try:
            if match["stray"]:
                raise NumberError(f"{match['stray']} has no partner")
            if match["let"] is not None:
                names.define(match["let"])
            if match["open"]:
                if not text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip():
                    raise NumberError("a line begins with a number's comment; put a word before it")
                *parts, form = split(match["source"])
                new = formatted(names.value(parts), form)
                if new != " ".join(match["text"].split()):
                    messages.append(f"{where(line + 1)}: {match['text']!r} is now {new!r}")
                    return f"{match['open']}{new}<!--/-->"
        except Exception as error:  # every kind of mistake in a comment is shown with its place
            reason = str(error) if isinstance(error, NumberError) else f"{type(error).__name__}: {error}"
            messages.append(f"{where(line + 1)}: ERROR: {reason} (in {' '.join(match[0].split())[:200]})")
        return match[0]

    return PIECES.sub(replaced, text), messages


def renewed(path: Path, root: Path) -> tuple[str, list[str]]:
    """Return the content of a document with its numbers renewed, and the messages."""
    content, names, place = path.read_text(encoding="utf-8"), Names(root), path.relative_to(root).as_posix()
    if path.suffix != ".ipynb":
        return renew(content, names, lambda line: f"{place}:{line}")
    notebook, messages = json.loads(content), []
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "markdown":
            new, more = renew("".join(cell["source"]), names, lambda line, n=number: f"{place}, cell {n}, line {line}")
            messages += more
            if more:
                cell["source"] = new.splitlines(keepends=True)
    return (json.dumps(notebook, indent=1, ensure_ascii=False) + "\n" if messages else content), messages


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("documents", nargs="*", type=Path, help="files to renew; without any, all documents")
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a number is out of date")
    parser.add_argument("--root", type=Path, default=ROOT, help="the folder that file names are relative to")
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    failed = False
    for path in options.documents or sorted({path for pattern in DOCUMENTS for path in root.glob(pattern)}):
        content, messages = renewed(path.resolve(), root)
        wrong = [message for message in messages if "ERROR: " in message]
        print(*messages, sep="\n", end="\n" if messages else "")
        failed |= bool(wrong or (options.check and messages))
        if messages and not options.check and not wrong:
            write_text(path, content)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
