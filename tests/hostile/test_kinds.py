"""The README of this folder counts the attacks by kind. `python -m tests.hostile.test_kinds` writes its table."""

import math
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from tests.hostile.table import DEFECTS

FOLDER = Path(__file__).parent
README = FOLDER / "README.md"
TABLE = re.compile(r"(?<=<!--kinds-->\n).*(?=\n<!--/-->)", re.S)
LEAST = 300


def kinds() -> Iterator[tuple[str, str, dict[str, int]]]:
    """Yield for every file of tests its name, the first line of its docstring, and the number of cases of every test."""
    for path in sorted(FOLDER.glob("test_*.py")):
        if path != Path(__file__):
            module = import_module(f"tests.hostile.{path.stem}")
            tests = {name: test for name, test in vars(module).items() if name.startswith("test_")}
            yield path.name, module.__doc__.split("\n")[0], {name: cases(test) for name, test in tests.items()}


def cases(test) -> int:
    """Return how often a test runs: the product of the lengths of its tables."""
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    return math.prod(len(list(mark.args[1])) for mark in marks)


def with_kinds(text: str) -> str:
    """Return the README with a table of the kinds as they are now."""
    total, rows = 0, []
    for file, promise, counts in kinds():
        total += sum(counts.values())
        names = "; ".join(f"{name.removeprefix('test_').replace('_', ' ')} {count}" for name, count in counts.items())
        rows.append(f"| `{file}` | {promise} | {sum(counts.values())} | {names} |")
    head = ["| file | what must happen | cases | by kind |", "|---|---|---|---|"]
    return TABLE.sub(lambda _: "\n".join([*head, *rows, f"| all | | {total:,} | |"]), text)


def test_the_readme_counts_the_attacks_by_kind():
    text = README.read_text(encoding="utf-8")
    assert text == with_kinds(text), "write the table again: python -m tests.hostile.test_kinds"
    assert sum(sum(counts.values()) for *_, counts in kinds()) >= LEAST


def test_every_known_defect_has_a_case_and_a_row():
    rows = re.findall(r"^\| (`.*?) \| ", README.read_text(encoding="utf-8").partition("| defect |")[2], re.M)
    assert sorted(re.findall("`(.*?)`", " ".join(rows))) == sorted(DEFECTS)
    tests = "".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("test_*.py"))
    assert [name for name in DEFECTS if f'"{name}"' not in tests] == []


if __name__ == "__main__":
    README.write_text(with_kinds(README.read_text(encoding="utf-8")), encoding="utf-8")
