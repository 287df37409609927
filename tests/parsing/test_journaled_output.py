"""A part file and its journal: what may be gone on with, and what may not."""

import dataclasses
import io
import json

import pytest

from lalkit.errors import LalkitError
from lalkit.parsing import journaled_output
from lalkit.parsing.journaled_output import Journal, Part, read_journal, skip_done
from lalkit.parsing.text_windows import Lines, windows

WANTED = Journal(parser="p", file="f.txt", form="tokens", to="ptb")
BEGUN = dataclasses.replace(WANTED, written=(0,))
INPUT = b"a b\n\nc\nd e f\n"


def lines_of(data: bytes = INPUT) -> Lines:
    return Lines(io.BytesIO(data), "f.txt", "f.txt")


def window_after(count: int):
    return list(windows(lines_of(), "tokens", 1, 1))[count - 1]


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.ptb"


@pytest.fixture
def killed(out):
    """What a kill leaves behind after two windows, in the middle of writing a third."""
    part = Part([out], WANTED, resume=False)
    part.commit(["(A a)\n"], window_after(1))
    part.commit(["é\n"], window_after(2))
    part.streams[0].write(b"half a wind")
    part.streams[0].close()
    return out


def names(out):
    return sorted(path.name for path in out.parent.iterdir())


def test_a_part_becomes_the_output(out):
    out.write_text("old")
    with Part([out], WANTED, resume=False) as part:
        part.commit(["one\n"], window_after(1))
        assert out.read_text() == "old" and names(out) == ["out.ptb", "out.ptb.part", "out.ptb.part.json"]
        part.commit(["two\n"], window_after(2))
        part.finish()
    assert out.read_text() == "one\ntwo\n" and names(out) == ["out.ptb"]


def test_the_journal_says_what_is_done(killed):
    record = json.loads(killed.with_name("out.ptb.part.json").read_text())
    found = read_journal(killed.with_name("out.ptb.part.json"))
    assert record == {**dataclasses.asdict(found), "written": [9]}
    assert (record["lines"], record["read"], record["written"]) == (2, 5, [9])
    assert (record["sentences"], record["words"], record["sha256"]) == (1, 2, window_after(2).sha256)


def test_going_on_cuts_off_what_the_journal_does_not_know(killed):
    with Part([killed], WANTED, resume=True) as part:
        assert part.paths[0].read_bytes() == "(A a)\né\n".encode()
        part.commit(["more\n"], window_after(3))
        part.finish()
    assert killed.read_text(encoding="utf-8") == "(A a)\né\nmore\n" and names(killed) == ["out.ptb"]


def test_without_resume_a_part_is_left_alone(killed):
    before = killed.with_name("out.ptb.part").read_bytes()
    with pytest.raises(LalkitError, match=r"out.ptb.part: is there already.*\n  Add --resume .* or delete it"):
        Part([killed], WANTED, resume=False)
    assert killed.with_name("out.ptb.part").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"parser": "q"}, "another parser"),
        ({"form": "raw"}, r"another --form \(tokens\)"),
        ({"to": "json"}, r"another --to \(ptb\)"),
        ({"file": "g.txt"}, r"another --file \(f.txt\)"),
        ({"format": "lalkit-parse-3"}, "another version of lalkit"),
    ],
)
def test_another_run_is_not_gone_on_with(killed, change, says):
    before = killed.with_name("out.ptb.part").read_bytes()
    with pytest.raises(LalkitError, match=f"out.ptb.part: was started with {says}\n.*delete"):
        Part([killed], dataclasses.replace(WANTED, **change), resume=True)
    assert killed.with_name("out.ptb.part").read_bytes() == before


@pytest.mark.parametrize("data", [b"a c\n\nc\nd e f\n", b"a b\n\r\nc\n", b"a b", b"", b"\na b\n"])
def test_a_changed_beginning_is_found(data):
    journal = WANTED.after(window_after(2), [])
    with pytest.raises(LalkitError, match="f.txt: has changed: its first 2 lines .*\n.*x.part"):
        skip_done(lines_of(data), journal, "x.part")


def test_what_is_not_read_yet_may_change():
    skip_done(lines_of(b"a b\n\nC\n"), WANTED.after(window_after(2), []), "x.part")


@pytest.mark.parametrize("resume", [True, False])
def test_a_part_that_lost_its_journal_is_left_alone(killed, resume):
    part = killed.with_name("out.ptb.part")
    killed.with_name("out.ptb.part.json").unlink()
    before = part.read_bytes()
    with pytest.raises(LalkitError, match="out.ptb.part: is there already, but not its journal"):
        Part([killed], WANTED, resume=resume)
    assert part.read_bytes() == before and names(killed) == ["out.ptb.part"]


def test_what_could_not_be_opened_leaves_nothing(tmp_path, monkeypatch):
    """The second part cannot be used: the first one and the journal go again."""
    outs = [tmp_path / "a", tmp_path / "b"]
    monkeypatch.setattr(journaled_output, "lock", lambda stream, wait: not stream.name.endswith("b.part"))
    with pytest.raises(LalkitError, match="b.part: is being written by another process"):
        Part(outs, dataclasses.replace(WANTED, to="ptb,json"), resume=False)
    assert names(outs[0]) == []


def test_a_part_that_lost_bytes(killed):
    killed.with_name("out.ptb.part").write_bytes(b"(A")
    with pytest.raises(LalkitError, match="has 2 bytes, but 9 were written"):
        Part([killed], WANTED, resume=True)


@pytest.mark.parametrize("text", ["{", "[]", '{"parser": "p"}'])
def test_a_damaged_journal(killed, text):
    killed.with_name("out.ptb.part.json").write_text(text)
    with pytest.raises(LalkitError, match="part.json: is damaged"):
        Part([killed], WANTED, resume=True)


def test_killed_before_the_first_window(out):
    Part([out], WANTED, resume=False).streams[0].close()
    with Part([out], WANTED, resume=True) as part:
        assert part.journal == BEGUN
        part.commit(["one\n"], window_after(1))
        part.finish()
    assert out.read_text() == "one\n"


def test_killed_between_the_last_two_steps(killed):
    part = Part([killed], WANTED, resume=True)
    part.streams[0].close()
    part.paths[0].replace(killed)
    with Part([killed], WANTED, resume=True) as part:
        assert part.finished
        part.finish()
    assert killed.read_text(encoding="utf-8") == "(A a)\né\n" and names(killed) == ["out.ptb"]


def test_a_finished_output_is_not_parsed_again_by_resume(out):
    out.write_text("done")
    with pytest.raises(LalkitError, match="out.ptb: is there already, and has no part file"):
        Part([out], WANTED, resume=True)
    assert out.read_text() == "done" and names(out) == ["out.ptb"]


def test_the_journal_of_a_part_that_was_deleted_does_not_count(killed):
    killed.with_name("out.ptb.part").unlink()
    with Part([killed], WANTED, resume=True) as part:
        assert part.journal == BEGUN and names(killed) == ["out.ptb.part", "out.ptb.part.json"]


def test_an_error_before_the_first_window_leaves_nothing(out):
    with pytest.raises(ZeroDivisionError), Part([out], WANTED, resume=False):
        raise ZeroDivisionError
    assert names(out) == []


def test_an_error_later_keeps_what_is_good_and_says_so(out, caplog):
    caplog.set_level("INFO", logger="lalkit")
    part = Part([out], WANTED, resume=False)
    part.commit(["one\n"], window_after(1))
    with pytest.raises(ZeroDivisionError), part:
        raise ZeroDivisionError
    assert names(out) == ["out.ptb.part", "out.ptb.part.json"]
    assert caplog.messages == [f"1 lines are done and kept in {part.paths[0]}; --resume continues after them"]


def test_one_process_at_a_time(killed):
    with Part([killed], WANTED, resume=True):
        with pytest.raises(LalkitError, match="is being written by another process"):
            Part([killed], WANTED, resume=True)


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(LalkitError, match="is a folder"):
        Part([tmp_path], WANTED, resume=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(LalkitError, match="cannot be written"):
        Part([tmp_path / "file" / "out"], WANTED, resume=False)


def test_several_outputs_are_one(tmp_path):
    """Killed at any moment, in the end too, they go on together."""
    outs = [tmp_path / "out.ptb", tmp_path / "out.json"]
    wanted = dataclasses.replace(WANTED, to="ptb,json")
    part = Part(outs, wanted, resume=False)
    part.commit(["one\n", "1\n"], window_after(1))
    part.streams[0].write(b"half")
    for stream in part.streams:
        stream.close()
    part = Part(outs, wanted, resume=True)
    assert part.journal.written == (4, 2)
    part.commit(["two\n", "22\n"], window_after(2))
    for stream in part.streams:
        stream.close()
    part.paths[0].replace(outs[0])  # killed in the middle of `finish`
    with Part(outs, wanted, resume=True) as part:
        assert part.finished
        part.finish()
    assert [out.read_text() for out in outs] == ["one\ntwo\n", "1\n22\n"]
    assert names(outs[0]) == ["out.json", "out.ptb"]
