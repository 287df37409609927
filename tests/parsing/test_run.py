"""A text in windows, as if there had been none; kills in between; lines that are wrong."""

import gc
import json
import subprocess
import sys
import weakref

import pytest

from lalkit.api import Parser
from lalkit.errors import LalkitError, ModelError, TreebankError
from lalkit.parsing import compute, journal, run
from lalkit.parsing.journal import Part
from lalkit.parsing.lines import from_arguments, open_lines
from lalkit.parsing.workers import Workers

SIZES = {"window": 60, "budget": 50}


def parse(folder, path, out=None, to=("ptb",), **options):
    options = {"form": "tokens", "to": to, "say": lambda text: None, **SIZES, **options}
    with open_lines(path) as lines:
        run.parse(folder, lines, out=out, **options)
    return out.read_text(encoding="utf-8") if out else None


@pytest.mark.parametrize(("window", "budget"), [(1, 1), (60, 50), (200, 10_000), (10**9, 100)])
def test_windows_and_batches_do_not_change_a_byte(tiny_parser, big, expected, tmp_path, window, budget):
    assert parse(tiny_parser, big, tmp_path / "out", window=window, budget=budget) == expected
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("to", ["conllu", "json"])
def test_the_other_forms_leave_empty_lines_out(tiny_parser, big, tmp_path, to):
    text = parse(tiny_parser, big, tmp_path / "out", to=(to,))
    lines = big.read_text(encoding="utf-8").split("\n")
    results = Parser.load(tiny_parser).parse_all([line for line in lines if line], "tokens")
    if to == "conllu":
        rows = [line for line in text.splitlines() if not line.startswith("#")]
        wanted = [line for r in results for line in r.to_conllu().splitlines() if not line.startswith("#")]
        assert rows == wanted
        assert text.count(f"{big}:") == 60 and f"{big}:1\n" not in text, (
            "ids say the line, which is empty for the first"
        )
    else:
        records = [json.loads(line) for line in text.splitlines()]
        assert [r["tree"] for r in records] == [r.to_ptb() for r in results]
        assert [r["score"] for r in records] == pytest.approx([r.score for r in results], rel=1e-4)


def test_to_standard_output(tiny_parser, big, expected, capsys):
    parse(tiny_parser, big)
    assert capsys.readouterr().out == expected


def test_brackets_over_several_lines_and_drawings(tiny_parser, tmp_path, capsys):
    run.parse(
        tiny_parser, from_arguments(["", "One two.", "Three."]), pretty=True, svg=tmp_path, say=lambda text: None, window=1
    )  # fmt: skip
    results = Parser.load(tiny_parser).parse_all(["One two.", "Three."])
    assert capsys.readouterr().out == "\n" + "".join(r.to_ptb(pretty=True) + "\n" for r in results)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0002.svg", "0003.svg"]


class Killed(BaseException):
    pass


@pytest.mark.parametrize("place", ["writing", "journal", "between"])
@pytest.mark.parametrize("count", [1, 3])
def test_going_on_after_a_kill(tiny_parser, big, expected, tmp_path, monkeypatch, place, count):
    """Killed in the window after `count`: its output half written, or written and not in the journal, or neither."""
    usual, write_json, out = Part.commit, journal.write_json, tmp_path / "out"

    def commit(part, text, window):
        if part.journal.lines and commits[0] == count:
            if place == "writing":
                part.streams[0].write(text[0].encode()[: len(text[0]) // 2])
            elif place == "journal":
                monkeypatch.setattr(journal, "write_json", kill)
                usual(part, text, window)
            raise Killed
        commits[0] += 1
        usual(part, text, window)

    def kill(*arguments):
        raise Killed

    commits = [0]
    monkeypatch.setattr(Part, "commit", commit)
    with pytest.raises(Killed):
        parse(tiny_parser, big, out)
    assert not out.exists()
    monkeypatch.setattr(Part, "commit", usual)
    monkeypatch.setattr(journal, "write_json", write_json)
    computed = []
    monkeypatch.setattr(run, "parse_window", lambda w, *rest: computed.append(w) or PARSE_WINDOW(w, *rest))
    said = []
    assert parse(tiny_parser, big, out, resume=True, say=said.append) == expected
    first = computed[0].lines - computed[0].count + 1
    assert first > 1 and said[0] == f"going on after line {first - 1}", "what was done is not done again"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


PARSE_WINDOW = run.parse_window
KILLER = """
import os, signal, sys
from pathlib import Path
from lalkit.parsing import compute, journal, run
from lalkit.parsing.lines import open_lines
folder, path, out, place, count, resume = sys.argv[1:]
usual, write_json, replace, seen = journal.Part.commit, journal.write_json, Path.replace, []
die = lambda *rest: os.kill(os.getpid(), signal.SIGKILL)
def commit(part, text, window):
    seen.append(window)
    if len(seen) > int(count):
        if place == "writing":
            part.streams[0].write(text[0].encode()[: len(text[0]) // 2])
            part.streams[0].flush()
            die()
        if place == "journal":
            journal.write_json = die
    usual(part, text, window)
journal.Part.commit = commit
if place == "renamed":
    Path.replace = lambda path, target: (replace(path, target), die() if str(target) == out else None)[0]
with open_lines(path) as lines:
    run.parse(folder, lines, out=out, form="tokens", resume=bool(resume), window=60, budget=50)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("place", "count"), [("writing", 0), ("writing", 2), ("journal", 1), ("renamed", 99)])
def test_going_on_after_sigkill(tiny_parser, big, expected, tmp_path, place, count):
    out = tmp_path / "out"

    def process(place, count, resume):
        command = [sys.executable, "-c", KILLER, *map(str, (tiny_parser, big, out, place, count, resume))]
        return subprocess.run(command, capture_output=True, text=True, timeout=300).returncode

    assert process(place, count, "") == -9
    assert out.exists() == (place == "renamed")
    assert process("nowhere", 99, "yes") == 0
    assert out.read_text(encoding="utf-8") == expected
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_wrong_line_in_the_middle(tiny_parser, tmp_path):
    """One clear error; what is before its window is kept, and mending it is enough."""
    path, out = tmp_path / "f.txt", tmp_path / "out"
    good = [f"The_DT end_NN {i}_CD ._." for i in range(40)]
    path.write_text("\n".join([*good[:25], "The_DT end", *good[25:]]) + "\n")
    said = []
    with pytest.raises(TreebankError, match=f"^{path}:26: 'end' is no word_TAG pair"):
        parse(tiny_parser, path, out, form="tagged", window=20, say=said.append)
    assert not out.exists() and said == [f"25 lines are done and kept in {out}.part; --resume goes on after them"]
    path.write_text("\n".join([*good[:25], "The_DT very_RB end_NN", *good[25:]]) + "\n")
    resumed = parse(tiny_parser, path, out, form="tagged", window=20, resume=True)
    assert resumed == parse(tiny_parser, path, tmp_path / "other", form="tagged")
    assert len(resumed.splitlines()) == 41


def test_a_sentence_that_cannot_be_parsed_names_its_line(tiny_parser, big, tmp_path, monkeypatch):
    usual = compute.predict

    def predict(network, collator, sentences, **options):
        if any(s.id.endswith(":21") for s in sentences):
            raise ModelError("word 1 has too many sub-words")
        return usual(network, collator, sentences, **options)

    monkeypatch.setattr(compute, "predict", predict)
    with pytest.raises(ModelError, match=f"^{big}:21: word 1"):
        parse(tiny_parser, big, tmp_path / "out")
    assert (tmp_path / "out.part").exists()


def test_the_beginning_of_the_input_changed(tiny_parser, tmp_path):
    path, out = tmp_path / "f.txt", tmp_path / "out"
    path.write_text("One two .\nThree \0 four .\n")
    with pytest.raises(TreebankError, match="line 2: a NUL byte"):
        parse(tiny_parser, path, out, window=1)
    path.write_text("One 2 .\nThree four .\n")
    with pytest.raises(LalkitError, match="f.txt: is not what was read before: its first 1 lines have changed"):
        parse(tiny_parser, path, out, window=1, resume=True)
    path.write_text("One two .\nThree four .\n")
    assert len(parse(tiny_parser, path, out, window=1, resume=True).splitlines()) == 2


@pytest.mark.parametrize("text", ["", "\n", " \n\n"])
def test_nothing_to_parse(tiny_parser, tmp_path, text):
    (tmp_path / "f.txt").write_text(text)
    with pytest.raises(LalkitError, match="nothing to parse"):
        parse(tiny_parser, tmp_path / "f.txt", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["f.txt"]


@pytest.mark.slow
def test_nothing_is_remembered(tiny_parser, big, tmp_path, monkeypatch):
    """Neither sub-words nor results stay: what is kept after a window is its number of lines."""
    alive, seen = [], []

    def parse_window(window, *rest):
        gc.collect()
        seen.append(sum(ref() is not None for ref in alive))
        alive.extend(weakref.ref(s) for s in window.present)
        return PARSE_WINDOW(window, *rest)

    monkeypatch.setattr(run, "parse_window", parse_window)
    parse(tiny_parser, big, tmp_path / "out")
    assert len(seen) > 8
    assert max(seen[2:]) <= max(len(alive) // len(seen) * 3, 20), seen


def test_resume_needs_an_output(tiny_parser):
    with pytest.raises(LalkitError, match="--resume needs an --out"):
        run.parse(tiny_parser, from_arguments(["a"]), resume=True)


def test_one_of_those_who_compute(tiny_parser, monkeypatch):
    with pytest.raises(LalkitError, match="give one of --workers, --cluster and"):
        run.parse(tiny_parser, from_arguments(["a"]), workers=1, cluster="tcp://x:1")
    with pytest.raises(LalkitError, match="--workers must be at least 1, not 0"):
        run.parse(tiny_parser, from_arguments(["a"]), workers=0)
    source = run.Source(str(tiny_parser))
    assert isinstance(run.who(source, 3, None, print), Workers)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(LalkitError, match="give one of"):
        run.who(source, 2, None, print)


def test_the_end_is_said_for_files_and_not_for_typed_text(tiny_parser, big, tmp_path, capsys):
    said = []
    parse(tiny_parser, big, tmp_path / "out", say=said.append)
    assert said[0].startswith("60 sentences, ") and said[1:] == ["5 empty line(s) passed over"]
    said.clear()
    run.parse(tiny_parser, from_arguments(["One."]), loud=False, say=said.append)
    assert said == []


def test_several_forms_at_once(tiny_parser, big, expected, tmp_path):
    parse(tiny_parser, big, tmp_path / "json", to=("json",))
    with open_lines(big) as lines:
        run.parse(tiny_parser, lines, form="tokens", to=("ptb", "json"), out=tmp_path / "all", **SIZES)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.json", "all.ptb", "json"]
    assert (tmp_path / "all.ptb").read_text(encoding="utf-8") == expected
    assert (tmp_path / "all.json").read_text() == (tmp_path / "json").read_text()
    with pytest.raises(LalkitError, match="more than one form needs an --out"):
        run.parse(tiny_parser, from_arguments(["a"]), to=("ptb", "json"))
    with pytest.raises(LalkitError, match="there is no form 'xml'"):
        run.forms("ptb, xml")


def test_running_text(tiny_parser, tmp_path, capsys):
    run.parse(
        tiny_parser, from_arguments(["One. Two.", "", "Three."]), form="text", svg=tmp_path, say=lambda text: None
    )
    assert [bool(line) for line in capsys.readouterr().out.split("\n")] == [True, True, False, True, False]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0001-1.svg", "0001-2.svg", "0003-1.svg"]
