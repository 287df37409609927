"""Places that cannot be written, full disks and closed streams: one message with the place, and nothing half-written."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lalkit.chart import machine
from lalkit.files import locked_folder, remove_parts, write_bytes, write_json
from lalkit.network.parser import Network
from tests.command import lalkit
from tests.hostile.refusals import check_refusal, command_refused, files_of, nothing_half_written, refused

resource = pytest.importorskip("resource", reason="this system limits no sizes of files, and has no pipes with names")

WRITING = {  # commands that write files
    "train": "train --treebank small --preset tiny --epochs 1 --threads 1 --out {out}",
    "evaluate": "evaluate {parser} --treebank small --json {out}",
    "parse": "parse --model {parser} One. --out {out}",
    "explain": "explain --model {parser} One. --html {out}",
    "sweep": "sweep small.yml --out {out}",
}
PRINTING = ["parse --model {parser} One. --to json", "evaluate {parser} --treebank small --json -", "models"]
SWEEP = "{name: small, question: q, treebank: small, preset: tiny, seeds: [1], grid: {a: {b: {train.epochs: 1}}}}"
CODES = ["\x1b[31m", "\x9b2J", "\a", "\b", "\x7f", "\u202e", "\u2028"]  # for a terminal


@pytest.fixture
def place(small):
    """The folder of `small`, with a sweep, and things that stand in the way of output."""
    (small / "small.yml").write_text(SWEEP)
    (small / "folder").mkdir()
    (small / "folder" / "mine.txt").write_text("mine")
    (small / "file").write_text("mine")
    return small


def words(text, parser, out=""):
    return [part.format(parser=parser, out=out) for part in text.split(" ")]


def test_places_that_cannot_be_written(tiny_parser, place, subtests):
    os.mkfifo(place / "pipe")
    for name, command in WRITING.items():
        kind = "file" if name in ("train", "sweep") else "folder"
        for out in ("file/x", "x" * 300, kind):
            with subtests.test(f"{name} {out[:9]}"):
                command_refused(place, words(command, tiny_parser, out), out[:3])
    with subtests.test("a pipe"):
        command_refused(place, words(WRITING["parse"], tiny_parser, "pipe"), "pipe")


def test_what_is_not_an_output_of_ours(tiny_parser, tmp_path, subtests):
    """The text itself, also by another name, and parts of another program."""
    (tmp_path / "text.txt").write_bytes(b"One.\n")
    os.link(tmp_path / "text.txt", tmp_path / "hard")
    os.symlink(tmp_path / "text.txt", tmp_path / "soft")
    (tmp_path / "folder.parts").mkdir()
    (tmp_path / "folder.parts" / "thesis").write_bytes(b"mine")
    (tmp_path / "file.parts").write_bytes(b"mine")
    for out in ("text.txt", "./text.txt", "hard", "soft", "folder", "file"):
        with subtests.test(out):
            arguments = ["parse", "--model", tiny_parser, "text.txt", "--out", out]
            command_refused(tmp_path, arguments, out.removeprefix("./"))


# ---------------------------------------------------------------- full disks


@contextlib.contextmanager
def full_disk(limit):
    """Let every write beyond so many bytes of a file fail, as on a full disk: the system's error has no file name."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("name", WRITING)
def test_a_full_disk(tiny_parser, place, name):
    before = files_of(place)
    for limit in (0, 20):
        with full_disk(limit):
            code, _, err = lalkit(*words(WRITING[name], tiny_parser, f"new{limit}"), cwd=place)
        check_refusal(code, err, "new")
        nothing_half_written(place)
        left = files_of(place)
        assert {name: left[name] for name in before} == before


def test_a_file_that_was_there_is_still_whole(tmp_path):
    write_json(tmp_path / "a.json", {"old": list(range(200))})
    before = files_of(tmp_path)
    for limit in (0, 1, 100):
        with full_disk(limit), refused("a.json"):
            write_bytes(tmp_path / "a.json", b"new" * 1000)
        assert files_of(tmp_path) == before


def test_what_a_live_process_writes_is_left_alone(tmp_path, monkeypatch):
    """On every system, also where there is no /proc."""
    stays = {f".a.{pid}.part": pid in (os.getppid(), "x") for pid in (os.getppid(), os.getpid(), 4194305, "x")}
    for make, name in zip((Path.touch, Path.mkdir) * 2, stays, strict=True):
        make(tmp_path / name)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "exists", lambda path: False)
        remove_parts(tmp_path)
    assert {name: (tmp_path / name).exists() for name in stays} == stays


def test_a_name_as_long_as_the_system_takes(tmp_path):
    for size in (199, 200, 249, 255):
        write_bytes(tmp_path / ("x" * size), b"new")
    assert len(files_of(tmp_path)) == 4


def test_two_commands_with_one_out(tiny_parser, tmp_path, subtests):
    """The second is refused before it works: one result would be lost."""
    with locked_folder(tmp_path / "out"):
        for command in ("study heads PARSER", "export PARSER", "run none.ipynb"):
            arguments = [*command.replace("PARSER", str(tiny_parser)).split(), "--out", "out"]
            with subtests.test(command):
                command_refused(tmp_path, arguments, "out: is being written by another process")


def test_a_lock_leaves_nothing(tmp_path):
    """Not a file, nor a folder in which nothing was left; an empty folder of the user stays."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / ".lock").touch()  # the process that held it was killed
    for name in ("mine", "new/deep", "killed"):
        with locked_folder(tmp_path / name), refused(name), locked_folder(tmp_path / name):
            pass
    assert files_of(tmp_path) == {"mine": None}


# ---------------------------------------------------------------- standard output


@pytest.mark.parametrize("command", PRINTING)
def test_standard_output_is_full_or_closed_or_its_reader_has_gone(tiny_parser, place, command):
    arguments = words(command, tiny_parser)
    code, _, err = lalkit(*arguments, cwd=place, stdout=None)  # `lalkit ... >&-`: Python has no standard output then
    check_refusal(code, err, "standard output")
    read, write = os.pipe()
    os.close(read)  # `lalkit ... | head -1`: the command ends without a word
    for stream in (open("/dev/full", "w"), os.fdopen(write, "w", buffering=1)):  # noqa: SIM115
        code, _, err = lalkit(*arguments, cwd=place, stdout=stream)
        if stream.name == "/dev/full":
            check_refusal(code, err, "standard output")
        else:
            assert code in (0, 1, 141) and "Traceback" not in err and "lalkit:" not in err
        with contextlib.suppress(OSError):
            stream.close()


@pytest.mark.parametrize(
    ("text", "encoding", "shown"),
    [
        ("Café .", "latin-1", b"Caf\xe9"), ("我們 .", "latin-1", rb"\u6211\u5011"), ("我們 .", "utf-8", "我們".encode()),
        *((f"a{code}b .", "utf-8", rf"a{code!a}b".replace("'", "").encode()) for code in CODES),
    ],
)  # fmt: skip
def test_a_terminal(tiny_parser, tmp_path, text, encoding, shown):
    """A terminal is written in its encoding. What it cannot show, and what would control it, is an escape; files keep it."""
    master, slave = os.openpty()
    with os.fdopen(master, "rb", buffering=0) as screen, os.fdopen(slave, "w", encoding=encoding) as stream:
        code, _, err = lalkit("parse", "--model", tiny_parser, "--form", "tokens", text, stdout=stream)
        assert code == 0, err
        assert shown in screen.read(4096)
    _, out, _ = lalkit("parse", "--model", tiny_parser, "--form", "tokens", text)
    assert text.removesuffix(" .") in out


def test_no_name_controls_the_terminal_or_forges_a_line(tiny_parser, tmp_path, subtests):
    rows = [("a parser", ["parse", "One.", "--model"])]
    rows += [("a form", ["parse", "One.", "--to"]), ("a rule", ["parse", "One.", "--model", tiny_parser, "--forbid"])]
    rows += [("a treebank", ["data", "check"]), ("a setting", [*words(WRITING["train"], "", "o"), "--set"])]
    rows += [("a sweep", ["sweep"]), ("a pattern", ["search", "--treebank", "sample"]), ("a study", ["study", "gates"])]
    for kind, arguments in rows:
        for code in (*CODES, "\nforged: "):
            with subtests.test(f"{kind} {code!a}"):
                status, out, err = lalkit(*arguments, f"x{code}y", cwd=tmp_path)
                assert code not in out + err and "Traceback" not in err, (status, out, err)
    (tmp_path / "x\x1b[2J\ny").write_text("One.\n")
    arguments = ["parse", "--model", tiny_parser, "x\x1b[2J\ny", "--out", "z\x1b[2J\ny", "--to", "conllu"]
    code, _, err = lalkit(*arguments, cwd=tmp_path)
    assert code == 0 and "\x1b" not in err + (tmp_path / "z\x1b[2J\ny").read_text() and "\ny" not in err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "code", "says"),
    [(">/dev/full", 2, "standard output"), (">&-", 2, "standard output"), ("2>&- <&-", 0, ""), ("2>/dev/full", 0, "")],
)
def test_streams_of_a_real_process(tiny_parser, tmp_path, ending, code, says):
    """Python writes what is left when it ends: nothing may be left then."""
    command = f'"{sys.executable}" -m lalkit parse --model "{tiny_parser}" --to json "One two." {ending}'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == code and "Traceback" not in done.stderr and "Exception" not in done.stderr, done.stderr
    assert says in done.stderr and (code or json.loads(done.stdout)["words"] == ["One", "two", "."])


@pytest.mark.parametrize("words", [90, 5_000, 100_000])
def test_a_very_long_line_is_refused_before_the_network_reads_it(tiny_parser, tmp_path, monkeypatch, words):
    monkeypatch.setattr(machine, "SMALL", 0)
    monkeypatch.setattr(machine, "available_bytes", lambda: 1_000_000)
    monkeypatch.setattr(Network, "forward", lambda *_: pytest.fail("the network reads it"))
    (tmp_path / "a.txt").write_text("a " * words + "\n")
    command = ["parse", "--model", tiny_parser, "--form", "tokens", "a.txt"]
    command_refused(tmp_path, command, f"a.txt:1: {words:,} words need", "words fit here")
