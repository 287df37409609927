"""An exported parser gives lalkit's trees: the program in book/parsers.md reads it, without torch."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import lalkit
from lalkit.network.alignment import surface
from tests.hostile.refusals import check_refusal

ROOT = Path(__file__).parents[2]


def run(*arguments):
    command = [sys.executable, "-m", "lalkit", "export", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.slow
def test_the_program_of_the_book_gives_the_trees_of_lalkit(tmp_path, sample):
    """A second export would replace the first: it is refused."""
    assert run("en-span", "--out", tmp_path).stderr == ""
    assert str(ROOT).encode() not in (tmp_path / "model.onnx").read_bytes()
    program, *_ = re.findall(r"```python\n(.*?)```", (ROOT / "book/parsers.md").read_text(encoding="utf-8"), re.DOTALL)
    exec(program.replace("runs/onnx", str(tmp_path)), names := {})
    for result in lalkit.load("en-span").parse_all(sample[:100]):
        s, found = result.sentence, names["parse"](list(map(surface, result.sentence.words)))
        assert found == ([*map(tuple, result.spans)], [*s.heads], [*s.arc_labels], [*s.tags]), s.id
    again, other = run("en-span", "--out", tmp_path), run("en-news", "--out", tmp_path / "x")
    check_refusal(again.returncode, again.stderr, "parser.json: is there already", "--replace")
    check_refusal(other.returncode, other.stderr, "en-news: only a parser of joint trees", "minilm-span")
