"""What README says can be run: the snippet in full, and every lalkit command that is cheap; links lead somewhere."""

import re
import shlex
from pathlib import Path

import pytest

from tests.test_cli import lalkit

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
COMMANDS = [
    line.split("  #")[0].strip()
    for block in re.findall(r"```sh\n(.*?)```", README, re.S)
    for line in block.splitlines()
    if line.startswith("lalkit ")
]
DEAR = (
    "lalkit train",
    "lalkit data fetch",
    "lalkit data import",
    "lalkit evaluate runs/ptb --treebank ptb-sample",
    "lalkit run",
    "lalkit sweep",
    "lalkit report",
    "lalkit transparent",
    "lalkit heads",
    "lalkit summarize",
    "lalkit bench",
    "lalkit parse big.txt",
    "lalkit parse notes.txt",
)


def test_there_is_something_to_run():
    assert len(COMMANDS) >= 6


@pytest.mark.parametrize("command", [c for c in COMMANDS if not c.startswith(DEAR)])
def test_cheap_commands_run(command, tiny_parser, tiny_span_parser, tmp_path):
    command = command.replace("runs/ptb", str(tiny_parser)).replace("runs/span", str(tiny_span_parser))
    code, out, err = lalkit(*shlex.split(command)[1:], cwd=tmp_path)
    assert code == 0, err
    assert out


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith(DEAR)])
def test_dear_commands_are_spelled_right(command):
    """Every option exists (the work itself is tested elsewhere)."""
    words = shlex.split(command)[1:]
    name = words[:2] if words[0] in ("data", "transparent", "summarize") else words[:1]
    code, out, err = lalkit(*name, "--help")
    assert code == 0
    for option in (w for w in words if w.startswith("-") and w != "-"):
        assert option in out, f"{option} in: {command}"


def test_the_snippet(tiny_parser, tmp_path, monkeypatch, capsys):
    (snippet,) = re.findall(r"```python\n(.*?)```", README, re.S)
    assert 8 <= sum(bool(line.strip()) for line in snippet.splitlines()) <= 10
    monkeypatch.chdir(tmp_path)
    exec(snippet.replace("runs/ptb", str(tiny_parser)), {})  # noqa: S102
    assert "(1, 'Select'" in capsys.readouterr().out
    assert (tmp_path / "runs" / "tree.svg").read_text().startswith("<svg")


def test_links_lead_somewhere():
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
