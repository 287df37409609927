"""Large texts: the same bytes for every size of block and for everybody who computes, and nothing lost after a kill."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lalkit import corpus
from lalkit.api import Parser
from lalkit.corpus import Job, Parts, Text, blocks, from_arguments, from_stream, open_lines
from lalkit.errors import LalkitError, ParameterError, TreebankError
from lalkit.treebank.brackets import unescape

SMALL = 200  # bytes of a block


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(corpus, "usual", lambda device: SMALL / corpus.BATCHES / corpus.WORD)


@pytest.fixture(scope="session")
def big(sample, tmp_path_factory):
    """60 sentences of data/sample as tokens, empty lines among them, no newline at the end."""
    lines = [" ".join(map(unescape, sentence.words)) for sentence in sample[:60]]
    for place in (0, 7, 7, 30, 50):
        lines.insert(place, "")
    path = tmp_path_factory.mktemp("text") / "big.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def expected(big, tiny_parser):
    """The brackets of `big`, by the parser's plain interface."""
    lines = big.read_text(encoding="utf-8").split("\n")
    results = iter(Parser.load(tiny_parser).parse_all([line for line in lines if line], "tokens"))
    return "".join(next(results).to_ptb() + "\n" if line else "\n" for line in lines)


def parse(folder, path, out=None, workers=None, cluster=None, **options):
    job = Job(str(folder), **{"form": "tokens", **options})
    with open_lines(path) as lines:
        corpus.parse(job, lines, out, workers, cluster)
    return out.read_text(encoding="utf-8") if out and out.exists() else None


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# ---------------------------------------------------------------- blocks


@given(
    st.lists(st.sampled_from(["", " ", "one", "a b c d", "é ü", "\r"]), min_size=1, max_size=30),
    st.integers(1, 40), st.sampled_from(["\n", "\r\n"]), st.booleans(),
)  # fmt: skip
def test_blocks_are_the_text_in_pieces(texts, size, newline, ends):
    data = newline.join(texts).encode() + newline.encode() * ends
    found = list(blocks(Text(io.BytesIO(data), "f", "f"), size))
    lines = data.decode().split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    assert [line for block in found for line in block.lines] == [line.rstrip("\r") for line in lines]
    assert [block.number for block in found] == list(range(len(found)))
    assert sum(block.bytes for block in found) == len(data)
    assert all(block.bytes >= size for block in found[:-1])
    assert all(b.first == a.first + len(a.lines) for a, b in zip(found, found[1:]))
    assert len({block.sha256 for block in found}) >= len({tuple(block.lines) for block in found})


def test_what_cannot_be_read_is_refused(tmp_path, monkeypatch):
    with pytest.raises(TreebankError, match="none.txt"), open_lines(tmp_path / "none.txt"):
        pass
    with pytest.raises(TreebankError, match="argument, line 2"):
        list(blocks(from_arguments(["a", "caf\udce9"]), 99))
    monkeypatch.setattr(corpus, "LONGEST", 50)
    (tmp_path / "f").write_bytes(b"a\n" + b"x" * 50_000)
    with (tmp_path / "f").open("rb") as stream:
        with pytest.raises(TreebankError, match="f.txt, line 2: a line of more than 50 bytes"):
            list(blocks(from_stream(stream, "f.txt", "f.txt"), 99))
        assert stream.tell() == 2 + 51, "the memory does not grow with the line"


def test_a_text_that_becomes_shorter_is_refused(tiny_parser, big, tmp_path, monkeypatch):
    """But what of a file was read before it was given to us is not missing."""
    text, usual = shutil.copy(big, tmp_path / "t"), corpus.parse_block
    with text.open("rb") as stream:
        stream.readline()
        assert sum(block.bytes for block in blocks(from_stream(stream, "t", "t"), 99)) < big.stat().st_size

    def parse_and_cut(*arguments):
        os.truncate(text, 300)
        return usual(*arguments)

    monkeypatch.setattr(corpus, "parse_block", parse_and_cut)
    with pytest.raises(TreebankError, match="t: became shorter"):
        parse(tiny_parser, text, tmp_path / "out")
    assert not (tmp_path / "out").exists()


# ---------------------------------------------------------------- results


@pytest.mark.parametrize("size", [1, 200, 10**9])
def test_blocks_do_not_change_a_byte(tiny_parser, big, expected, tmp_path, monkeypatch, caplog, size):
    monkeypatch.setattr(sys.modules[__name__], "SMALL", size)
    caplog.set_level("INFO", logger="lalkit")
    assert parse(tiny_parser, big, tmp_path / "out") == expected
    assert names(tmp_path) == ["out"]
    assert caplog.messages[0].startswith("60 sentences, ") and "5 empty line(s)" in caplog.text


def test_several_forms_at_once(tiny_parser, big, expected, tmp_path, capsys):
    parse(tiny_parser, big, tmp_path / "all", to=("ptb", "json", "conllu"))
    assert names(tmp_path) == ["all.conllu", "all.json", "all.ptb"]
    parse(tiny_parser, big)
    assert (tmp_path / "all.ptb").read_text(encoding="utf-8") == expected == capsys.readouterr().out
    lines = [line for line in big.read_text(encoding="utf-8").split("\n") if line]
    results = Parser.load(tiny_parser).parse_all(lines, "tokens")
    records = [json.loads(line) for line in (tmp_path / "all.json").read_text(encoding="utf-8").splitlines()]
    assert [r["tree"] for r in records] == [r.to_ptb() for r in results]
    assert [r["score"] for r in records] == pytest.approx([r.score for r in results], rel=1e-4)
    text = (tmp_path / "all.conllu").read_text(encoding="utf-8")
    wanted = [line for r in results for line in r.to_conllu().splitlines() if not line.startswith("#")]
    assert [line for line in text.splitlines() if not line.startswith("#")] == wanted
    assert text.count(f"{big}:") == 60 and f"{big}:1\n" not in text, "ids have the line; the first one is empty"


def test_running_text(tiny_parser, capsys):
    corpus.parse(Job(tiny_parser, "text"), from_arguments(["One. Two.", "", "Three."]))
    one, two, three = Parser.load(tiny_parser).parse_all(["One.", "Two.", "Three."])
    shown = [r.to_ptb() if r else "" for r in (one, two, None, three)]
    assert capsys.readouterr().out == "\n".join(shown) + "\n"


@pytest.mark.parametrize("options", [{"workers": 1, "cluster": "tcp://x:1"}, {"workers": 1}, {"to": ("ptb", "json")}])
def test_options_that_do_not_fit(tiny_parser, big, options):
    with pytest.raises(ParameterError, match="--out"):
        parse(tiny_parser, big, **options)


# ---------------------------------------------------------------- errors


def test_a_wrong_line_in_the_middle(tiny_parser, tmp_path, caplog):
    """One clear error; the blocks before it are kept, and mending it is enough."""
    path, out = tmp_path / "f.txt", tmp_path / "out"
    good = [f"The_DT end_NN {i}_CD ._." for i in range(40)]
    path.write_text("\n".join([*good[:25], "The_DT end", *good[25:]]) + "\n")
    caplog.set_level("INFO", logger="lalkit")
    with pytest.raises(TreebankError, match=f"^{path}:26: "):
        parse(tiny_parser, path, out, form="tagged")
    assert names(tmp_path) == ["f.txt", "out.parts"] and "out.parts" in caplog.text
    path.write_text("\n".join([*good[:25], "The_DT very_RB end_NN", *good[25:]]) + "\n")
    assert parse(tiny_parser, path, out, form="tagged") == parse(tiny_parser, path, tmp_path / "other", form="tagged")


# ---------------------------------------------------------------- kills


class Killed(BaseException):
    pass


@pytest.fixture
def killed(tiny_parser, big, tmp_path, monkeypatch):
    """The output of a run that was killed after three blocks."""
    usual, added = Parts.add, []

    def add(parts, block, record):
        if len(added) == 3:
            raise Killed
        added.append(block)
        usual(parts, block, record)

    with monkeypatch.context() as patch:
        patch.setattr(Parts, "add", add)
        with pytest.raises(Killed):
            parse(tiny_parser, big, tmp_path / "out")
    assert names(tmp_path / "out.parts") == ["000000", "000001", "000002", "run.json"]
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr("lalkit.network.model.has_bf16", lambda device: True)
    return tmp_path / "out"


def test_the_same_command_continues(tiny_parser, big, killed, tmp_path, monkeypatch):
    """Finished blocks are not parsed again, but a damaged one is, and one whose lines have changed."""
    parts = killed.with_name("out.parts")
    (parts / "000001").write_text("{")
    (parts / ".000003.4194305.part").write_text("half")
    first = json.loads((parts / "000000").read_text())
    (parts / "000000").write_text(json.dumps({**first, "sha256": "that of other lines"}))
    usual, computed = corpus.parse_block, []
    note = lambda job, block, *d: computed.append(block.number) or usual(job, block, *d)  # noqa: E731
    monkeypatch.setattr(corpus, "parse_block", note)
    assert parse(tiny_parser, big, killed) and names(killed.parent) == ["out"]
    assert computed == [0, 1, *range(3, computed[-1] + 1)]
    assert killed.read_text(encoding="utf-8") == parse(tiny_parser, big, tmp_path / "new")


CHANGES = [{"form": "raw"}, {"precision": "bf16"}, "file", "parser", "foreign", "running"]


@pytest.mark.parametrize("change", CHANGES)
def test_the_blocks_of_another_run_are_left_alone(tiny_parser, tiny_span_parser, big, killed, tmp_path, change):
    parts = killed.with_name("out.parts")
    if change == "foreign":
        (parts / "run.json").unlink()
    before = {path.name: path.read_bytes() for path in parts.iterdir()}
    options = change if isinstance(change, dict) else {}
    folder, text = tiny_span_parser if change == "parser" else tiny_parser, big
    if change == "file":
        text = shutil.copy(big, tmp_path / "other.txt")
    if change == "running":
        with corpus.files.locked_folder(parts), pytest.raises(LalkitError, match="another process"):
            parse(folder, text, killed)
    else:
        with pytest.raises(LalkitError, match=f"out.parts.*\n.*delete {parts}"):
            parse(folder, text, killed, **options)
    assert {path.name: path.read_bytes() for path in parts.iterdir()} == before and not killed.exists()


@pytest.mark.parametrize(("place", "name"), [("growing_file", "out.json"), ("unlink", "000002")])
def test_a_kill_at_the_end(tiny_parser, big, expected, tmp_path, monkeypatch, place, name):
    """Killed when the first of two outputs has its name, or when the first blocks are removed."""
    owner = corpus.files if place == "growing_file" else Path
    usual = getattr(owner, place)

    def die(path, **options):
        if path.name == name:
            raise Killed
        return usual(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(owner, place, die)
        with pytest.raises(Killed):
            parse(tiny_parser, big, tmp_path / "out", to=("ptb", "json"))
    parse(tiny_parser, big, tmp_path / "out", to=("ptb", "json"))
    assert (tmp_path / "out.ptb").read_text(encoding="utf-8") == expected and names(tmp_path) == ["out.json", "out.ptb"]


# ---------------------------------------------------------------- several processes


def workers_of(pid):
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text()]


@pytest.mark.slow
def test_workers_write_the_same_bytes_and_end_with_their_parent(tiny_parser, big, tmp_path):
    for name, workers in (("here", None), ("one", 1)):
        parse(tiny_parser, big, tmp_path / name, workers, to=("ptb", "json"))
    program = f"""
from tests.test_corpus import *
corpus.usual = lambda device: {SMALL / corpus.BATCHES / corpus.WORD}
parse({str(tiny_parser)!r}, {str(big)!r}, Path({str(tmp_path / "two")!r}), 2, to=("ptb", "json"))
"""
    for end in ("kill -9", "Ctrl-C", "kill -9 of a worker", None):
        done, workers = len(list(tmp_path.glob("two.parts/00*"))), []
        with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, start_new_session=True) as run:
            while end and len(list(tmp_path.glob("two.parts/00*"))) == done and run.poll() is None:
                time.sleep(0.01)
            if end:
                workers = workers_of(run.pid)
                assert len(workers) == 2
            if end == "Ctrl-C":
                os.killpg(run.pid, signal.SIGINT)
            elif end:
                os.kill(workers[0] if "worker" in end else run.pid, signal.SIGKILL)
            told = run.communicate()[1].decode()
        assert (run.returncode == 0) == (end is None), told
        assert end != "kill -9 of a worker" or "a worker died" in told
        limit = time.monotonic() + 60
        while any(Path(f"/proc/{pid}").exists() for pid in workers):
            assert time.monotonic() < limit, end
            time.sleep(0.01)
    for suffix in ("ptb", "json"):
        assert len({(tmp_path / f"{name}.{suffix}").read_bytes() for name in ("here", "one", "two")}) == 1
    assert not (tmp_path / "two.parts").exists()


@pytest.mark.slow
def test_a_cluster_loses_a_worker_and_nothing_else(tiny_parser, big, expected, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed: lalkit[cluster]")
    flag = tmp_path / "one has died"

    def die_once(job, block):  # in the worker, where nothing is patched
        from lalkit.corpus import parse_block

        try:
            flag.touch(exist_ok=False)
        except FileExistsError:
            return parse_block(job, block)
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(corpus, "parse_block", die_once)
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0", "silence_logs": 50}
    with distributed.LocalCluster(2, **options) as local:
        assert parse(tiny_parser, big, tmp_path / "out", cluster=local.scheduler_address) == expected and flag.exists()
        local.scheduler.allowed_failures = 0
        flag.unlink()
        with pytest.raises(LalkitError, match="a worker died"):
            parse(tiny_parser, big, tmp_path / "again", cluster=local.scheduler_address)
