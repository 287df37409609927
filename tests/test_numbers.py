"""Numbers in documents are written by tools/write_numbers.py: they are up to date, and a changed table changes the sentence."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SPECIFICATION = importlib.util.spec_from_file_location("write_numbers", ROOT / "tools" / "write_numbers.py")
numbers = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(numbers)

TABLE = "system,seed,f1,note\nours,1,90.04,NA\nours,2,91.06,NA\ntheirs,1,80.0,\n"
TEXT = """# A document

<!--let
table = scores.csv
ours = table ; system == "ours" ; mean f1
f1(system, seed) = table ; system == "{system}" and seed == {seed} ; f1
-->

Theirs has <!--n table ; system == "theirs" ; f1 ; .1f-->?<!--/-->, ours <!--n ours ; .2f-->?<!--/--> and
the lead is <!--n f1("ours", 2) - f1("theirs", 1) ; .1f-->?<!--/-->. Seeds: <!--n table ; system == "ours" ;
all f1 ; each .0f-->?<!--/-->, <!--n scores.csv ; ; all f1 ; range .0f-->?<!--/-->, <!--n table ; seed == 1 ; count ;
d-->?<!--/-->; card: <!--n card.json ; max seeds.*.f1 ; spread .1f-->?<!--/-->. `<!--n kept ; s-->as it is<!--/-->`
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "scores.csv").write_text(TABLE)
    (tmp_path / "card.json").write_text(json.dumps({"seeds": [{"f1": 1.0}, {"f1": 3.0}], "p": 0.0004}))
    return tmp_path


def run(folder, text, *options):
    """Write a document, run the tool on it, and return the exit code and the document."""
    path = folder / "page.md"
    path.write_text(text)
    return numbers.main([str(path), "--root", str(folder), *options]), path.read_text()


def one(folder, source):
    """Return what stands between the comments after a run."""
    code, text = run(folder, f"is <!--n {source}-->?<!--/-->")
    assert code == 0
    return text.split("-->")[1].split("<!--")[0]


def test_the_documents_are_up_to_date(capsys):
    code = numbers.main(["--check"])
    assert code == 0, capsys.readouterr().out


def test_the_number_changes_with_its_table(folder):
    code, text = run(folder, TEXT.replace("spread .1f", ".1f"))
    assert code == 0
    for piece in (
        "-->80.0<!--/-->, ours", "-->90.55<!--/-->", "-->11.1<!--/-->. Seeds", "-->90 and 91<!--/-->, ", "-->80 to 91<!",
        "-->2<!--/-->; card", "-->3.0<!--/-->. `<!--n kept ; s-->as it is<!--/-->`",
    ):  # fmt: skip
        assert piece in text
    assert run(folder, text, "--check") == (0, text)
    (folder / "scores.csv").write_text(TABLE.replace("80.0", "81.0"))
    assert run(folder, text, "--check") == (1, text)
    code, new = run(folder, text)
    assert code == 0
    assert new == text.replace("-->80.0<", "-->81.0<").replace("-->11.1<", "-->10.1<").replace("80 to", "81 to")


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("card.json ; all seeds.*.f1 ; spread .1f", "2.0 ± 1.4"),
        ("card.json ; p ; p", "p < .001"),
        ("scores.csv ; f1 < 85 ; f1 ; ,.0f", "80"),
        ('scores.csv ; note == "NA" ; count ; d', "2"),
        ('scores.csv ; note == "" ; system ; s', "theirs"),
        ("1000 * abs(-3) ; ,d", "3,000"),
    ],
)
def test_formats(folder, source, shown):
    assert one(folder, source) == shown


MISTAKES = [
    ('is <!--n scores.csv ; system == "x" ; f1 ; .1f-->1<!--/-->', "no row matches"),
    ('is <!--n scores.csv ; system == "ours" ; f1 ; .1f-->1<!--/-->', "2 rows match"),
    ("is <!--n scores.csv ; seed == 2 ; f2 ; .1f-->1<!--/-->", "f2"),
    ("is <!--n nothing.csv ; ; f1 ; .1f-->1<!--/-->", "nothing.csv"), ("is <!--n unknown ; .1f-->1<!--/-->", "unknown"),
    ("is <!--n 1 ; .1f-->1 and no end", "partner"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_mistakes_are_errors_and_change_nothing(folder, text, message, capsys):
    text = f"old <!--n 1 ; d-->2<!--/-->\n{text}\n"
    assert run(folder, text) == (1, text)
    output = capsys.readouterr().out
    assert "page.md:2: ERROR" in output and message in output
