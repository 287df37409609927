"""Places that cannot be written, and disks that are full: one message with the name of the place, and nothing half-written."""

import contextlib
import io
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from lalkit import cli
from lalkit.corpus import Job, from_stream, parse
from lalkit.errors import LalkitError
from lalkit.files import write_bytes, write_json
from lalkit.treebank.tree import Sentence
from tests.command import lalkit
from tests.hostile.table import case, check_refusal, command_refused, files_of, nothing_half_written, refused, table
from tests.treebank.licensed_files import ptb

TRAIN = "train --treebank small --preset tiny --epochs 1 --workers 1 --threads 1 --out {place}"
# Every command that writes files: what is typed, and whether it is asked for a file or a folder.
COMMANDS = {
    "train": TRAIN,
    "evaluate --json": "evaluate {parser} --treebank small --json {place}",
    "evaluate --table": "evaluate {parser} --treebank small --table {place}",
    "evaluate --parses": "evaluate {parser} --treebank small --parses {place}",
    "parse --out": "parse --model {parser} One. --out {place}",
    "parse --out of two forms": "parse --model {parser} One. --to ptb,json --out {place}",
    "parse --svg": "parse --model {parser} One. --svg {place}",
    "explain --html": "explain --model {parser} One. --html {place}",
    "heads": "heads {parser} --treebank small --split dev --label NP --probed 1 --rounds 1 --out {place}",
    "prune": "prune {parser} --treebank small --split dev --closes output --prices 1 --epochs 1 --out {place}",
    "run": "run small.ipynb --out {place}",
    "sweep": "sweep small.yml --out {place}",
    "data import": "data import ptb --path licensed --out {place}",
    "transparent train": "transparent train --data films --epochs 1 --set hidden=8 --set embedding=8 --out {place}",
    "transparent probe": "transparent probe {classifier} --data films --test 2 --out {place}",
    "transparent study": "transparent study --data films --models vanilla --seeds 1 --epochs 1 --out {place}",
    "summarize train": "summarize train --data news --epochs 1 --set d_model=16 --set layers=1 --set heads=2 --out {place}",
    "summarize prune": "summarize prune {summarizer} --data news --lambda 1 --epochs 1 --out {place}",
    "summarize heads": "summarize heads {summarizer} --data news --ablate --test 2 --out {place}",
    "summarize study": "summarize study --data news --variants soft --seeds 1 --epochs 1 --gum -1 --out {place}",
}
PLACES = {  # those that are asked for places only: their work before the first file is too long for these tests
    "report": "report sweeps sweep --out {place}",
    "demo": "demo --out {place}",
}
FILES = (
    "evaluate --json", "evaluate --table", "evaluate --parses", "parse --out", "explain --html", "transparent probe",
    "summarize heads",
)  # fmt: skip
FOLDERS = [name for name in {**COMMANDS, **PLACES} if name not in FILES and not name.startswith("parse --out")]
NOTEBOOK = """{"cells": [{"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": "a: int = 1", "outputs": [],
"execution_count": null}], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}"""
SWEEP = """{name: small, question: q, treebank: small, preset: tiny, seeds: [1], grid: {a: {b: {train.epochs: 1}}}}"""
TREES = "( (S (NP (DT The) (NN end)) (VP (VBD came))) )\n" * 2


@pytest.fixture
def place(tmp_path):
    """A folder with a treebank of two sentences, a notebook, and things that stand in the way of output."""
    (tmp_path / "small").mkdir()
    for part in ("train", "dev"):
        (tmp_path / "small" / f"{part}.trees").write_text(TREES)
    (tmp_path / "small.ipynb").write_text(NOTEBOOK)
    (tmp_path / "small.yml").write_text(SWEEP)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "sweep").mkdir()
    write_companions_data(tmp_path)
    ptb(tmp_path / "licensed")
    return tmp_path


def write_companions_data(folder):
    """Write a few texts of two classes, and a few documents with summaries."""
    (folder / "films").mkdir()
    (folder / "news").mkdir()
    for part, file in (("train", "train"), ("dev", "validation"), ("test", "test")):
        rows = [f"{label}\t{part} {word} {i} film" for i in range(5) for label, word in (("1", "good"), ("0", "bad"))]
        (folder / "films" / f"{part}.tsv").write_text("label\ttext\n" + "\n".join(rows) + "\n")
        documents = [{"article": f"the river {i} rose again today", "highlights": f"river {i} rose"} for i in range(6)]
        (folder / "news" / f"{file}.jsonl").write_text("\n".join(map(json.dumps, documents)))


@pytest.fixture(scope="module")
def runs(tiny_parser, tmp_path_factory):
    """A parser, a classifier and a summarizer."""
    folder = tmp_path_factory.mktemp("companions")
    write_companions_data(folder)
    for name in ("transparent", "summarize"):
        code, _, err = lalkit(*COMMANDS[f"{name} train"].format(place=name).split(" "), cwd=folder)
        assert code == 0, err
    return {"parser": tiny_parser, "classifier": folder / "transparent", "summarizer": folder / "summarize"}


def words(name, runs, place):
    return [part.format(**runs, place=place) for part in {**COMMANDS, **PLACES}[name].split(" ")]


def places(what, names, where, says):
    """Return a case for every command."""
    return [case(f"{name}: {what}", name, where, says) for name in names]


@table(
    ("name", "where", "says"),
    [
        *places("a folder", FILES, "folder", "folder: is a folder"),
        *(
            case(f"{name}: no name", name, "", f"{command.split()[-2]} is empty")
            for name, command in (COMMANDS | PLACES).items()
        ),
        *places("below a file", {**COMMANDS, **PLACES}, "file/x", "file"),
        *places("a file instead of a folder", FOLDERS, "file", "file"),
        *places("a very long name", {**COMMANDS, **PLACES}, "x" * 300, "xxx"),
        *places("a pipe", FILES, "pipe", "pipe: is not a regular file"),
    ],
    sample=False,
)
def test_places_that_cannot_be_written(runs, place, name, where, says):
    if where == "pipe":
        os.mkfifo(place / "pipe")
    command_refused(place, words(name, runs, where), says)


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


@table(
    ("name", "limit"),
    [case(f"{name}: {limit} bytes", name, limit) for name in COMMANDS for limit in (0, 20)],
    sample=False,
)
def test_a_full_disk(runs, place, name, limit):
    before = files_of(place)
    with full_disk(limit):
        code, _, err = lalkit(*words(name, runs, "new"), cwd=place)
    check_refusal(code, err, "new")
    nothing_half_written(place)
    left = files_of(place)
    assert {name: left[name] for name in before} == before


@pytest.fixture
def disk(place):
    """Mount a disk of 64 kB."""
    (place / "disk").mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place / "disk"], capture_output=True)
    if done.returncode:
        pytest.skip("this user may not mount a disk")
    yield place / "disk"
    subprocess.run(["umount", "--lazy", place / "disk"], check=True)


# The commands that write more than 64 kB, or several files: the disk is full in the middle.
LARGE = (
    "train",
    "heads",
    "sweep",
    "transparent train",
    "transparent study",
    "summarize train",
    "summarize prune",
    "summarize study",
)


@table(
    ("name", "space"),
    [*(case(f"{name}: no space", name, 0) for name in COMMANDS), *(case(f"{name}: 16 kB", name, 16) for name in LARGE)],
    sample=False,
)
def test_a_real_full_disk(runs, place, disk, alarm, name, space):
    alarm(120)  # a study trains, and a sweep starts a process
    with contextlib.suppress(OSError), open(disk / "other", "wb", buffering=0) as other:
        while other.tell() < 1024 * (64 - space):
            other.write(b"x" * 4096)
    code, _, err = lalkit(*words(name, runs, "disk/new"), cwd=place)
    if name == "sweep" and code == 1:  # one of its runs failed
        assert "No space left on device" in err
    else:
        check_refusal(code, err, "disk/new")
    nothing_half_written(place)
    for file in disk.rglob("*.json"):
        json.loads(file.read_text())


@table("limit", [case(f"{limit} bytes", limit) for limit in (0, 1, 100)], sample=False)
def test_a_file_that_was_there_is_still_whole(tmp_path, limit):
    write_json(tmp_path / "a.json", {"old": list(range(200))})
    before = files_of(tmp_path)
    with full_disk(limit), refused("a.json"):
        write_bytes(tmp_path / "a.json", b"new" * 1000)
    assert files_of(tmp_path) == before


@contextlib.contextmanager
def standard_output(stream):
    before, sys.stdout = sys.stdout, stream
    try:
        yield
    finally:
        sys.stdout = before


def run(arguments, stream, folder):
    """Call the command line with this standard output; return exit code and standard error. At the end Python flushes it."""
    threads, argv, err = torch.get_num_threads(), sys.argv, io.StringIO()
    sys.argv = ["lalkit", *map(str, arguments)]
    try:
        with contextlib.chdir(folder), standard_output(stream), contextlib.redirect_stderr(err):
            try:
                cli.main()
                code = 0
            except SystemExit as end:
                code = end.code or 0
            if sys.stdout is not None:
                sys.stdout.flush()
    finally:
        sys.argv = argv
        torch.set_num_threads(threads)
    return code, err.getvalue()


PRINTING = {
    "parse": "parse --model {parser} One.",
    "parse --to json": "parse --model {parser} One. --to json",
    "evaluate": "evaluate {parser} --treebank small",
    "evaluate --json -": "evaluate {parser} --treebank small --json -",
    "explain": "explain --model {parser} One.",
    "search": "search NP --treebank small --split dev",
    "data stats": "data stats small",
    "data check": "data check small",
    "models": "models",
    "train --dry-run": "train --treebank small --preset tiny --workers 1 --dry-run",
    "heads": "heads {parser} --treebank small --split dev --label NP --probed 1 --rounds 1",
    "doctor": "doctor",
    "data import": "data import ptb --path licensed",
    "transparent probe": "transparent probe {classifier} --data films --test 2",
    "summarize score": "summarize score {summarizer} --data news --test 2",
    "summarize heads": "summarize heads {summarizer} --data news --ablate --test 2",
    "summarize prune": "summarize prune {summarizer} --data news --lambda 1 --epochs 1 --out new",
    "help": "parse --help",
}


def printing(name, runs):
    return [part.format(**runs) for part in PRINTING[name].split()]


def open_full():
    return open("/dev/full", "w")  # noqa: SIM115


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@table("name", [case(name, name) for name in PRINTING], sample=False)
def test_a_full_standard_output(runs, place, alarm, name):
    alarm(60)
    stream = open_full()
    try:
        code, err = run(printing(name, runs), stream, place)
        check_refusal(code, err, "standard output")
    finally:
        with contextlib.suppress(OSError):
            stream.close()


@table("name", [case(name, name) for name in PRINTING], sample=False)
def test_a_closed_standard_output(runs, place, name):
    """`lalkit parse ... >&-`: Python has no standard output then."""
    code, err = run(printing(name, runs), None, place)
    check_refusal(code, err, "standard output")


@table("name", [case(name, name) for name in PRINTING if name != "help"], sample=False)
def test_a_reader_that_has_gone(runs, place, alarm, name):
    """`lalkit parse ... | head -1`: the command ends without a word."""
    alarm(60)
    read, write = os.pipe()
    os.close(read)
    stream = os.fdopen(write, "w", buffering=1)
    try:
        code, err = run(printing(name, runs), stream, place)
        assert code in (0, 1, 141) and "Traceback" not in err and "lalkit:" not in err
    finally:
        with contextlib.suppress(OSError):
            stream.close()


@table(
    ("text", "encoding"),
    [
        case(f"{name} in {encoding}", text, encoding)
        for name, text in (("an accent", "Café ."), ("Chinese", "我們 ."), ("a smile", "\U0001f600 ."))
        for encoding in ("ascii", "latin-1", "cp1252", "utf-8", "utf-16")
    ],
    sample=False,
)
def test_an_encoding_of_standard_output(tiny_parser, tmp_path, text, encoding):
    """What does not go to a terminal is UTF-8, like a file."""
    data = io.BytesIO()
    stream = io.TextIOWrapper(data, encoding=encoding)
    arguments = ["parse", "--model", tiny_parser, "--form", "tokens", text]
    code, err = run(arguments, stream, tmp_path)
    assert code == 0, err
    assert lalkit(*arguments, "--out", "o", cwd=tmp_path)[0] == 0
    assert text.split()[0].encode() in data.getvalue() and data.getvalue() == (tmp_path / "o").read_bytes()


@table(
    ("text", "encoding", "says"),
    [
        case("an accent in latin-1", "Café .", "latin-1", b"Caf\xe9"),
        case("Chinese in latin-1", "我們 .", "latin-1", rb"\u6211\u5011"),
        case("Chinese in UTF-8", "我們 .", "utf-8", "我們".encode()),
    ],
    sample=False,
)
def test_a_terminal(tiny_parser, tmp_path, text, encoding, says):
    """A terminal is written in its encoding. What it cannot show is an escape."""
    master, slave = os.openpty()
    with os.fdopen(master, "rb", buffering=0) as screen:
        with os.fdopen(slave, "w", encoding=encoding) as stream:
            code, err = run(["parse", "--model", tiny_parser, "--form", "tokens", text], stream, tmp_path)
            assert code == 0, err
            assert says in screen.read(4096)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "code", "says"),
    [
        (">/dev/full", 2, "standard output: cannot be written"),
        (">&-", 2, "standard output: is closed"),
        ("2>/dev/full", 0, ""),
        ("2>&-", 0, ""),
        ("<&-", 0, ""),
    ],
)
def test_streams_of_a_real_process(tiny_parser, tmp_path, alarm, ending, code, says):
    """Python writes what is left when it ends: nothing may be left then."""
    alarm(300)
    command = f'"{sys.executable}" -m lalkit parse --model "{tiny_parser}" --to json "One two." {ending}'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == code and "Traceback" not in done.stderr and "Exception" not in done.stderr, done.stderr
    assert says in done.stderr and (code or json.loads(done.stdout)["words"] == ["One", "two", "."])


@table(
    ("files", "arguments", "says"),
    [
        case("parts of another program", {"o.parts/thesis": b"mine"}, ["One.", "--out", "o"], "o.parts"),
        case("parts that are a file", {"o.parts": b"my thesis"}, ["One.", "--out", "o"], "o.parts"),
        case("the text is the output", {"x": b"One.\n"}, ["--file", "x", "--out", "x"], "x"),
        case("the text is one of two", {"x.json": b"One.\n"}, ["x.json", "--to", "ptb,json", "--out", "x"], "x.json"),
    ],
    sample=False,
)  # fmt: skip
def test_continuing_what_is_not_ours(tiny_parser, tmp_path, files, arguments, says):
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    command_refused(tmp_path, ["parse", "--model", tiny_parser, *arguments], says)


@table("link", [case("a hard link", os.link), case("a symbolic link", os.symlink)], sample=False)
def test_standard_input_that_is_also_an_output(tiny_parser, tmp_path, link):
    """`lalkit parse <o --out o` knows the file whatever its name is."""
    (tmp_path / "text.txt").write_bytes(b"One.\n")
    link(tmp_path / "text.txt", tmp_path / "o")
    before = files_of(tmp_path)
    with open(tmp_path / "text.txt", "rb") as stream, refused("o: is the text itself"):
        parse(Job(tiny_parser), from_stream(stream, "standard input", "stdin"), tmp_path / "o")
    assert files_of(tmp_path) == before


@table(
    ("command", "option"),
    [
        case(f"{command} {option}", command, option)
        for command, option in (
            ("train --treebank small --out new", "--start"), ("train --treebank small --out new", "--task"),
            ("train --out new", "--treebank"), ("train --treebank small --out new", "--preset"),
            ("train --treebank small --out new", "--set"), ("parse", "--file"), ("parse One.", "--model"),
            ("parse One.", "--to"), ("parse One.", "--cluster"), ("explain", "--treebank"), ("explain One.", "--label"),
            ("explain One.", "--profile"), ("heads x --out new", "--treebank"), ("sweep small.yml", "--profile"),
            ("data import ptb", "--path"), ("transparent train --out new", "--data"),
        )
    ],
    sample=False,
)  # fmt: skip
def test_an_option_without_a_value(place, command, option):
    command_refused(place, [*command.split(" "), option, ""], f"{option} is empty")


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_that_is_read_only(runs, place, name):
    (place / "folder").chmod(0o500)
    command_refused(place, words(name, runs, "folder/x"), "folder")


@pytest.mark.slow
def test_an_installation_without_parsers_says_what_to_do(tmp_path, monkeypatch):
    """From a wheel there is no data/models: the table is not just empty, and no name is advised that cannot work."""
    import lalkit as package
    from lalkit.training import named

    monkeypatch.setattr(named, "folder", lambda: tmp_path / "data" / "models")
    code, out, err = lalkit("models", cwd=tmp_path)
    assert code == 0 and "lalkit train" in out + err
    with pytest.raises(LalkitError) as caught:
        package.load("en-news")
    assert "en-craft-x" not in str(caught.value) and "lalkit train" in str(caught.value)


@pytest.mark.slow
def test_evaluation_without_what_cannot_be_read(tiny_parser, place):
    (place / "small" / "dev.trees").write_text(TREES + "(S (A a)\n" + TREES)
    arguments = ["evaluate", tiny_parser, "--treebank", "small", "--json", "-"]
    command_refused(place, arguments, "dev.trees")
    code, out, err = lalkit(*arguments, "--skip-unreadable", cwd=place)
    assert code == 0 and '"sentences": 4' in out and '"unreadable": 1' in out, err
    (place / "small" / "dev.trees").write_text("(S (A a)\n")
    command_refused(place, [*arguments, "--skip-unreadable"], "dev.trees")


def test_a_warning_is_one_line_without_our_code(runs, place):
    before = warnings.showwarning
    code, _, err = lalkit(*words("summarize train", runs, "new"), "--set", "source=5", cwd=place)
    assert code == 0 and warnings.showwarning is before
    assert "a document has more than 5 tokens, and the rest is not read; set `source`" in err.splitlines()
    assert "UserWarning" not in err and ".py" not in err


@pytest.mark.slow
def test_a_very_long_line_is_announced(tiny_parser, tmp_path, monkeypatch, caplog):
    """Before a sentence that takes minutes, its place, its words, its memory and its time are said."""
    from lalkit.network import predict

    monkeypatch.setattr(predict, "LONG", 50)
    arguments = ["parse", "--model", tiny_parser, "--form", "tokens", "a b c " * 30]
    code, _, err = lalkit(*arguments, cwd=tmp_path)
    assert code == 0
    for text in ("sentence 1: 90 words need about 1 s and up to 3 MB", "fourth power", "split the sentence"):
        assert text in err
    monkeypatch.setattr(predict, "decode_output", None)  # the announcement comes before the work
    # While a command runs, its messages do not reach the root, where caplog listens.
    monkeypatch.setattr(predict.logger, "handlers", [caplog.handler])
    with pytest.raises(TypeError):
        lalkit(*arguments, cwd=tmp_path)
    assert "90 words need" in caplog.text
    monkeypatch.setattr(predict.machine, "available_bytes", lambda: 1_000_000)  # refused, and before the work
    command_refused(tmp_path, arguments, ("1: 90 words need", "1,000,000 are available", "cube"))


@pytest.mark.slow
def test_a_progress_line_counts_the_seconds_of_a_very_long_line(monkeypatch):
    from lalkit.network import predict

    steps, done = [], iter([False, False, True])  # after two seconds the sentence is parsed
    bar = SimpleNamespace(update=lambda: steps.append("a second"))
    clock = SimpleNamespace(wait=lambda seconds: next(done), set=lambda: steps.append("parsed"))
    monkeypatch.setattr(predict, "threading", SimpleNamespace(Event=lambda: clock, Thread=threading.Thread))
    monkeypatch.setattr(
        predict.machine, "progress", lambda **options: contextlib.nullcontext(steps.append(options) or bar)
    )
    with predict.announced(Sentence(("a",) * 400)):
        pass
    assert steps[0] == {"total": 3, "desc": "400 words", "unit": " s"}
    assert sorted(steps[1:]) == ["a second", "a second", "parsed"]
