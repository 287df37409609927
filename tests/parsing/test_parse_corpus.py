"""A text in windows, as if there had been none; kills in between; lines that are wrong."""

import gc
import io
import json
import subprocess
import sys
import weakref

import pandas as pd
import pytest
from tqdm import tqdm

from lalkit.api import Parser
from lalkit.errors import LalkitError, ModelError, TreebankError
from lalkit.parsing import batch_workers, journaled_output, parse_corpus
from lalkit.parsing.batch_workers import Workers
from lalkit.parsing.journaled_output import Part
from lalkit.parsing.text_windows import from_arguments, open_lines

SIZES = {"window": 60, "budget": 50}


def parse(folder, path, out=None, to=("ptb",), **options):
    options = {"form": "tokens", "to": to, **SIZES, **options}
    with open_lines(path) as lines:
        parse_corpus.parse(folder, lines, out=out, **options)
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


@pytest.mark.slow
def test_a_parquet_table_holds_what_json_holds(tiny_parser, tmp_path, monkeypatch):
    """Also from a part that was complete when the process was killed. A word that looks like a time stays a word."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'lalkit[parquet]'")
    text, out = tmp_path / "text.txt", tmp_path / "out"
    text.write_text("2026-01-01\n\nIt works .\n" * 40)
    with monkeypatch.context() as patch:
        patch.setattr(journaled_output, "write_parquet", lambda *paths: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            parse(tiny_parser, text, tmp_path / "out.parquet", to=("parquet",), confidence=True)
    with pytest.raises(UnicodeDecodeError):  # the table is no text
        parse(tiny_parser, text, tmp_path / "out.parquet", to=("parquet",), confidence=True, resume=True)
    parse(tiny_parser, text, out, to=("json",), confidence=True)
    table = pd.read_parquet(tmp_path / "out.parquet")
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(table) == 80 and {path.name for path in tmp_path.iterdir()} == {"text.txt", "out", "out.parquet"}
    for row, told in zip(rows, table.to_dict("records")):
        assert {name: row[name] for name in ("id", "tree", "score")} == {
            name: told[name] for name in ("id", "tree", "score")
        }
        assert all(row[name] == list(told[name]) for name in ("words", "tags", "heads", "arc_labels", "spans"))
        assert row["confidence"]["arcs"] == list(told["confidence"]["arcs"])
    parse_corpus.parse(tiny_parser, from_arguments(["2026-01-01"]), to=("parquet",), out=tmp_path / "one.parquet")
    assert list(pd.read_parquet(tmp_path / "one.parquet")["words"][0]) == ["2026-01-01"]


def test_a_table_needs_a_file_and_pyarrow(tiny_parser, big, monkeypatch):
    with pytest.raises(LalkitError, match="a Parquet table needs an --out\n"):
        parse(tiny_parser, big, to=("parquet",))
    monkeypatch.setattr(parse_corpus, "find_spec", lambda name: None)
    with pytest.raises(LalkitError, match=r"needs pyarrow\n.*lalkit\[parquet\]"):
        parse_corpus.forms("ptb,parquet")


def test_to_standard_output(tiny_parser, big, expected, capsys):
    parse(tiny_parser, big)
    assert capsys.readouterr().out == expected


def test_brackets_over_several_lines_and_drawings(tiny_parser, tmp_path, capsys):
    parse_corpus.parse(
        tiny_parser, from_arguments(["", "One two.", "Three."]), pretty=True, svg=tmp_path, window=1
    )  # fmt: skip
    results = Parser.load(tiny_parser).parse_all(["One two.", "Three."])
    assert capsys.readouterr().out == "\n" + "".join(r.to_ptb(pretty=True) + "\n" for r in results)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0002.svg", "0003.svg"]


class Killed(BaseException):
    pass


@pytest.mark.parametrize("place", ["writing", "journal", "between"])
@pytest.mark.parametrize("count", [1, 3])
def test_going_on_after_a_kill(tiny_parser, big, expected, tmp_path, monkeypatch, caplog, place, count):
    """Killed in the window after `count`: its output half written, or written and not in the journal, or neither."""
    usual, write_json, out = Part.commit, journaled_output.write_json, tmp_path / "out"

    def commit(part, text, window):
        if part.journal.lines and commits[0] == count:
            if place == "writing":
                part.streams[0].write(text[0].encode()[: len(text[0]) // 2])
            elif place == "journal":
                monkeypatch.setattr(journaled_output, "write_json", kill)
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
    monkeypatch.setattr(journaled_output, "write_json", write_json)
    computed = []
    monkeypatch.setattr(parse_corpus, "parse_window", lambda w, *rest: computed.append(w) or PARSE_WINDOW(w, *rest))
    caplog.clear()
    caplog.set_level("INFO", logger="lalkit")
    assert parse(tiny_parser, big, out, resume=True) == expected
    first = computed[0].lines - len(computed[0].sentences) + 1
    assert first > 1 and caplog.messages[0] == f"resuming after line {first - 1}", "what was done is not done again"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


PARSE_WINDOW = parse_corpus.parse_window
KILLER = """
import os, signal, sys
from pathlib import Path
from lalkit.parsing import journaled_output, parse_corpus
from lalkit.parsing.text_windows import open_lines
folder, path, out, place, count = sys.argv[1:]
usual, write_json, replace, seen = journaled_output.Part.commit, journaled_output.write_json, Path.replace, []
die = lambda *rest: os.kill(os.getpid(), signal.SIGKILL)
def commit(part, text, window):
    seen.append(window)
    if len(seen) > int(count):
        if place == "writing":
            part.streams[0].write(text[0].encode()[: len(text[0]) // 2])
            part.streams[0].flush()
            die()
        if place == "journal":
            journaled_output.write_json = die
    usual(part, text, window)
journaled_output.Part.commit = commit
if place == "renamed":
    Path.replace = lambda path, target: (replace(path, target), die() if str(target) == out else None)[0]
with open_lines(path) as lines:
    parse_corpus.parse(folder, lines, out=out, form="tokens", window=60, budget=50)
"""


def test_what_a_kill_left_of_a_journal_is_cleared_away(tiny_parser, big, expected, tmp_path):
    (tmp_path / ".out.part.json.4194305.part").write_text("half")
    assert parse(tiny_parser, big, tmp_path / "out", resume=True) == expected
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.slow
@pytest.mark.parametrize(("place", "count"), [("writing", 2), ("journal", 1), ("renamed", 99)])
def test_going_on_after_sigkill(tiny_parser, big, expected, tmp_path, place, count):
    out = tmp_path / "out"
    command = [sys.executable, "-c", KILLER, *map(str, (tiny_parser, big, out, place, count))]
    assert subprocess.run(command, capture_output=True, text=True, timeout=300).returncode == -9
    assert out.exists() == (place == "renamed")
    assert parse(tiny_parser, big, out, resume=True) == expected
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_wrong_line_in_the_middle(tiny_parser, tmp_path, caplog):
    """One clear error; what is before its window is kept, and mending it is enough."""
    path, out = tmp_path / "f.txt", tmp_path / "out"
    good = [f"The_DT end_NN {i}_CD ._." for i in range(40)]
    path.write_text("\n".join([*good[:25], "The_DT end", *good[25:]]) + "\n")
    caplog.set_level("INFO", logger="lalkit")
    with pytest.raises(TreebankError, match=f"^{path}:26: 'end' is no word_TAG pair"):
        parse(tiny_parser, path, out, form="tagged", window=20)
    assert not out.exists()
    assert caplog.messages == [f"25 lines are done and kept in {out}.part; --resume continues after them"]
    path.write_text("\n".join([*good[:25], "The_DT very_RB end_NN", *good[25:]]) + "\n")
    resumed = parse(tiny_parser, path, out, form="tagged", window=20, resume=True)
    assert resumed == parse(tiny_parser, path, tmp_path / "other", form="tagged")
    assert len(resumed.splitlines()) == 41


def test_a_sentence_that_cannot_be_parsed_names_its_line(tiny_parser, big, tmp_path, monkeypatch):
    usual = batch_workers.predict

    def predict(network, collator, sentences, **options):
        if any(s.id.endswith(":21") for s in sentences):
            raise ModelError("word 1 has too many sub-words", "Split it.")
        return usual(network, collator, sentences, **options)

    monkeypatch.setattr(batch_workers, "predict", predict)
    with pytest.raises(ModelError, match=f"^{big}:21: word 1"):
        parse(tiny_parser, big, tmp_path / "out")
    assert (tmp_path / "out.part").exists()


def test_the_beginning_of_the_input_changed(tiny_parser, tmp_path):
    path, out = tmp_path / "f.txt", tmp_path / "out"
    path.write_text("One two .\nThree \0 four .\n")
    with pytest.raises(TreebankError, match="line 2: a NUL byte"):
        parse(tiny_parser, path, out, window=1)
    path.write_text("One 2 .\nThree four .\n")
    with pytest.raises(LalkitError, match="f.txt: has changed: its first 1 lines"):
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

    monkeypatch.setattr(parse_corpus, "parse_window", parse_window)
    parse(tiny_parser, big, tmp_path / "out")
    assert len(seen) > 8
    assert max(seen[2:]) <= max(len(alive) // len(seen) * 3, 20), seen


def test_resume_needs_an_output(tiny_parser):
    with pytest.raises(LalkitError, match="--resume needs an --out"):
        parse_corpus.parse(tiny_parser, from_arguments(["a"]), resume=True)


def test_one_of_those_who_compute(tiny_parser, monkeypatch):
    with pytest.raises(LalkitError, match="--workers, --cluster and .* exclude each other"):
        parse_corpus.parse(tiny_parser, from_arguments(["a"]), workers=1, cluster="tcp://x:1")
    with pytest.raises(LalkitError, match="--workers is 0"):
        parse_corpus.parse(tiny_parser, from_arguments(["a"]), workers=0)
    source = batch_workers.Source(str(tiny_parser))
    with parse_corpus.start_compute(source, 3, None) as compute:
        assert isinstance(compute, Workers)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(LalkitError, match="exclude each other"), parse_corpus.start_compute(source, 2, None):
        pass


def test_counts_are_reported_for_files_and_not_for_typed_text(tiny_parser, big, tmp_path, caplog):
    caplog.set_level("INFO", logger="lalkit")
    parse(tiny_parser, big, tmp_path / "out")
    assert caplog.messages[0].startswith("60 sentences, ") and caplog.messages[1:] == ["5 empty line(s) skipped"]
    caplog.clear()
    parse_corpus.parse(tiny_parser, from_arguments(["One."]))
    assert caplog.messages == []


@pytest.mark.parametrize("done", [0, 20])
def test_the_bar_counts_words_and_foretells_their_number(tiny_parser, tmp_path, monkeypatch, done):
    """Lines of like length: the number is right from the first window on. What an earlier run did is not counted."""
    path, bars, totals = tmp_path / "f.txt", [], []
    path.write_text("one two three\n" * 40)

    def progress(**options):
        bars.append(tqdm(**options, disable=False, file=io.StringIO()))
        return bars[-1]

    def parse_window(window, *rest):
        if window.lines > stop:
            raise Killed
        totals.append(bars[-1].total)
        return PARSE_WINDOW(window, *rest)

    stop = done
    monkeypatch.setattr(parse_corpus, "progress", progress)
    monkeypatch.setattr(parse_corpus, "parse_window", parse_window)
    with pytest.raises(Killed):
        parse(tiny_parser, path, tmp_path / "out", window=12)
    stop = 40
    totals.clear()
    parse(tiny_parser, path, tmp_path / "out", window=12, resume=done > 0)
    words = 3 * (40 - done)
    assert bars[-1].n == words and totals == [words] * (words // 12)


def test_several_forms_at_once(tiny_parser, big, expected, tmp_path):
    parse(tiny_parser, big, tmp_path / "json", to=("json",))
    with open_lines(big) as lines:
        parse_corpus.parse(tiny_parser, lines, form="tokens", to=("ptb", "json"), out=tmp_path / "all", **SIZES)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.json", "all.ptb", "json"]
    assert (tmp_path / "all.ptb").read_text(encoding="utf-8") == expected
    assert (tmp_path / "all.json").read_text() == (tmp_path / "json").read_text()
    with pytest.raises(LalkitError, match="more than one form needs an --out"):
        parse_corpus.parse(tiny_parser, from_arguments(["a"]), to=("ptb", "json"))
    with pytest.raises(LalkitError, match="there is no form 'xml'"):
        parse_corpus.forms("ptb, xml")


def test_running_text(tiny_parser, tmp_path, capsys):
    parse_corpus.parse(tiny_parser, from_arguments(["One. Two.", "", "Three."]), form="text", svg=tmp_path)
    assert [bool(line) for line in capsys.readouterr().out.split("\n")] == [True, True, False, True, False]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0001-1.svg", "0001-2.svg", "0003-1.svg"]
