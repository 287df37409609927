"""Lines are read in windows, counted, hashed, and refused with file and line."""

import hashlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lalkit.errors import TreebankError
from lalkit.parsing import text_windows as module
from lalkit.parsing.text_windows import Lines, from_arguments, from_stream, open_lines, windows
from lalkit.treebank.brackets import read_text
from lalkit.treebank.text import read_lines


def lines_of(data: bytes) -> Lines:
    return Lines(io.BytesIO(data), "f.txt", "f.txt", len(data))


TEXT = st.lists(st.sampled_from(["", " ", "one", "one two", "a b c d", "é ü"]), min_size=1, max_size=30)


@given(TEXT, st.integers(1, 12), st.integers(1, 7), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_windows_are_the_text_in_pieces(texts, words, most, newline, ends):
    data = newline.join(texts).encode() + (newline.encode() if ends else b"")
    found = list(windows(lines_of(data), "tokens", words, most))
    whole = data.decode().split("\n")
    whole = [line.rstrip("\r") for line in (whole[:-1] if whole[-1] == "" else whole)]
    expected = [s for sentences in read_lines(whole, "tokens", "f.txt") for s in sentences]
    assert [s for window in found for s in window.sentences] == expected
    raw = data.splitlines(keepends=True)
    for window, after in zip(found, [*found[1:], None]):
        count = sum(map(len, window.present))
        assert len(window.sentences) <= most
        assert count - len(window.sentences[-1] or ()) < words, "it ended as soon as it was full"
        assert after is None or count >= words or len(window.sentences) == most
        assert after is None or after.lines == window.lines + len(after.sentences)
        read = b"".join(raw[: window.lines])
        assert (window.bytes, window.sha256) == (len(read), hashlib.sha256(read).hexdigest())


def test_reading_goes_on_behind_what_was_skipped():
    all_, rest = lines_of(b"a\n\nb c\nd"), lines_of(b"a\n\nb c\nd")
    first, *others = windows(all_, "tokens", 1, 2)
    rest.skip(first.lines)
    assert (rest.lines, rest.bytes, rest.sha256) == (first.lines, first.bytes, first.sha256)
    assert list(windows(rest, "tokens", 1, 2)) == others
    assert others[0].sentences[0] is None and others[0].sentences[1].id == "f.txt:3"
    short = lines_of(b"a\n")
    short.skip(5)
    assert short.lines == 1


@pytest.mark.parametrize("data", [b"a\nb\ncaf\xe9 x\nd\n", b"a\nb\0c\nd\n", b"\xff\xfea\0\n\0", b"a\n\xc3"])
def test_bytes_that_are_no_text_have_the_error_of_a_whole_file(tmp_path, data):
    path = tmp_path / "f.txt"
    path.write_bytes(data)
    with pytest.raises(TreebankError) as whole:
        read_text(path)
    with open_lines(path) as lines, pytest.raises(TreebankError) as streamed:
        list(lines)
    assert str(streamed.value) == str(whole.value) and f"{path}, line " in str(whole.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(TreebankError, match="none.txt: cannot be read"), open_lines(tmp_path / "none.txt"):
        pass


def test_a_byte_order_mark_is_dropped_at_the_beginning_only(tmp_path):
    path = tmp_path / "f.txt"
    path.write_text("\ufeffa\n\ufeffb\n", encoding="utf-8")
    with open_lines(path) as lines:
        assert list(lines) == ["a", "\ufeffb"] == read_text(path).split("\n")[:-1]
        assert lines.size == lines.bytes == path.stat().st_size


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LONGEST", 50)
    path = tmp_path / "f.txt"
    path.write_bytes(b"a\n" + b"x" * 50_000)
    with path.open("rb") as stream:
        with pytest.raises(TreebankError, match="line 2: a line of more than 50 bytes"):
            list(from_stream(stream, "f.txt", "f.txt"))
        assert stream.tell() == 2 + 51
    path.write_bytes(b"a\n" + b"x" * 49 + b"\n")
    with open_lines(path) as lines:
        assert len(list(lines)) == 2


def test_arguments_are_lines():
    assert [s.id for w in windows(from_arguments(["One.", "", "Two."]), "raw", 100) for s in w.present] == ["1", "3"]
    with pytest.raises(TreebankError, match="argument, line 2: byte 0xe9 is not utf-8"):
        list(from_arguments(["a", "caf\udce9"]))


def test_a_bad_line_is_named_after_the_windows_before_it():
    found = windows(lines_of(b"a_X\nb_X\nc_X\nd\n"), "tagged", 2)
    assert len(next(found).present) == 2
    with pytest.raises(TreebankError, match="^f.txt:4: 'd' is no word_TAG pair"):
        next(found)
