"""Processes, a cluster, ranks: the same trees as this process, and nothing lost when one of them dies."""

import os
import signal
import sys
from contextlib import closing
from pathlib import Path

import pytest

from lalkit.api import ParseResult
from lalkit.errors import LalkitError, ModelError, TooLongError
from lalkit.network.batches import batches
from lalkit.parsing import cluster, parse_corpus
from lalkit.parsing.batch_workers import Source, Task, Worker, Workers
from lalkit.parsing.cluster import Cluster
from lalkit.parsing.text_windows import open_lines
from lalkit.training.checkpoint import fingerprint
from lalkit.training.parallel import several
from lalkit.treebank.text import read_lines
from tests.launch import launch

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def sentences(big):
    return [s for (s,) in read_lines(big.read_text(encoding="utf-8").split("\n"), "tokens", "f") if s]


@pytest.fixture
def source(tiny_parser):
    return Source(str(tiny_parser), fingerprint(tiny_parser))


def trees(compute, sentences, budget=40):
    """Brackets by a compute, an empty line never."""
    groups = batches([len(s) for s in sentences], budget)
    lines = [None] * len(sentences)
    for task, predictions in compute([Task(group, [sentences[i] for i in group]) for group in groups]):
        for i, prediction in zip(task.places, predictions, strict=True):
            assert lines[i] is None, "a sentence came twice"
            lines[i] = ParseResult(prediction).to_ptb() + "\n"
    return "".join(lines)


@pytest.fixture
def wanted(expected):
    return "".join(line + "\n" for line in expected.split("\n") if line)


# ---------------------------------------------------------------- processes


@pytest.mark.slow
def test_a_worker_that_dies_loses_nothing(source, sentences, wanted, monkeypatch, caplog):
    caplog.set_level("INFO", logger="lalkit")
    give, tasks = Worker.give, []

    def kill_the_third(worker, task):
        give(worker, task)
        tasks.append(task)
        if len(tasks) == 3:
            os.kill(worker.process.pid, signal.SIGKILL)

    monkeypatch.setattr(Worker, "give", kill_the_third)
    workers = Workers(source, 2)
    try:
        assert trees(workers, sentences) == wanted
        assert caplog.messages == ["a worker died (exit code -9); another takes its place"]
        first = [worker.process.pid for worker in workers.workers]
        assert trees(workers, sentences[:9]) == "".join(wanted.splitlines(keepends=True)[:9])
        assert [worker.process.pid for worker in workers.workers] == first, "the parser is loaded once"
    finally:
        workers.close()
    assert not any(Path(f"/proc/{pid}").exists() for pid in first)


@pytest.mark.slow
def test_a_sentence_that_kills_is_named(source, sentences, monkeypatch):
    give = Worker.give

    def kill_for_the_tenth(worker, task):
        give(worker, task)
        if sentences[9] in task.sentences:
            os.kill(worker.process.pid, signal.SIGKILL)

    monkeypatch.setattr(Worker, "give", kill_for_the_tenth)
    workers = Workers(source, 1)
    try:
        with pytest.raises(TooLongError, match=f"^{sentences[9].id}: 2 processes died .* perhaps memory ran out"):
            list(workers([Task([9, 10], sentences[9:11])]))
    finally:
        workers.close()


@pytest.mark.slow
def test_workers_report_errors(source, sentences):
    """One error stands for all: tests/parsing/test_batch_workers.py has the errors themselves."""
    workers = Workers(Source(source.folder, "0" * 64), 1)
    with pytest.raises(ModelError, match="is not the parser"):
        list(workers([Task([0, 1], sentences[:2])]))
    workers.close()


@pytest.mark.slow
def test_workers_that_cannot_live(source, sentences, monkeypatch):
    class Dying(Worker):
        def __init__(self, source):
            super().__init__(source)
            os.kill(self.process.pid, signal.SIGKILL)

    monkeypatch.setattr("lalkit.parsing.batch_workers.Worker", Dying)
    workers = Workers(source, 1)
    with pytest.raises(LalkitError, match="3 workers died before they had loaded the parser"):
        list(workers([Task([0, 1], sentences[:2])]))
    workers.close()


# ---------------------------------------------------------------- a cluster


def test_without_dask(source, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(LalkitError, match=r"needs dask.distributed\n  Install it: pip install 'lalkit\[cluster\]'"):
        Cluster(source, "tcp://127.0.0.1:1")


@pytest.fixture
def local_cluster():
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed: lalkit[cluster]")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as local:
        yield local


@pytest.mark.slow
def test_a_cluster_loses_a_worker_and_nothing_else(source, big, expected, local_cluster, tmp_path, monkeypatch):
    flag = tmp_path / "one has died"

    def die_once(source, sentences):  # in the worker, where nothing is patched
        from lalkit.parsing.cluster import compute

        try:
            flag.touch(exist_ok=False)
        except FileExistsError:
            return compute(source, sentences)
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(cluster, "compute", die_once)
    address, out = local_cluster.scheduler_address, tmp_path / "out"
    with open_lines(big) as lines:
        parse_corpus.parse(source.folder, lines, form="tokens", out=out, cluster=address, window=100, budget=40)
    assert out.read_text(encoding="utf-8") == expected and flag.exists()


@pytest.mark.slow
def test_a_cluster_reports_errors(source, sentences, local_cluster, monkeypatch):
    with closing(Cluster(Source(source.folder, "0" * 64), local_cluster.scheduler_address)) as compute:
        assert compute.size == 2
        with pytest.raises(ModelError, match="is not the parser that this run started with"):
            list(compute([Task([0, 1], sentences[:2])]))
        submit = Cluster._submit

        def submit_in_vain(compute, task):  # a scheduler that goes away cancels what it has
            future = submit(compute, task)
            future.cancel()
            return future

        monkeypatch.setattr(Cluster, "_submit", submit_in_vain)
        with pytest.raises(LalkitError, match="the scheduler is gone"):
            list(compute([Task(range(len(sentences)), sentences)]))


@pytest.mark.slow
def test_a_sentence_that_kills_the_cluster_is_named(source, sentences, local_cluster, monkeypatch):
    poison = sentences[10]

    def die(source, sentences):
        from lalkit.parsing.cluster import compute

        if poison in sentences:
            os.kill(os.getpid(), signal.SIGKILL)
        return compute(source, sentences)

    monkeypatch.setattr(cluster, "compute", die)
    local_cluster.scheduler.allowed_failures = 0
    with closing(Cluster(source, local_cluster.scheduler_address)) as compute:
        with pytest.raises(TooLongError, match=f"^{poison.id}: 2 processes died"):
            list(compute([Task([9, 10], sentences[9:11])]))


@pytest.mark.slow
def test_a_cluster_that_is_not_there(source):
    pytest.importorskip("distributed", reason="dask.distributed is not installed: lalkit[cluster]")
    with pytest.raises(LalkitError, match="^tcp://127.0.0.1:1: no dask scheduler answers"):
        Cluster(source, "tcp://127.0.0.1:1", patience=0.5)


# ---------------------------------------------------------------- ranks


def test_one_rank_is_none(monkeypatch):
    for name in ("WORLD_SIZE", "RANK"):
        monkeypatch.delenv(name, raising=False)
    assert not several()
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("RANK", "0")
    assert not several()
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert several()


@pytest.mark.slow
def test_two_ranks_write_one_output(tiny_parser, big, expected, tmp_path):
    out = tmp_path / "out"
    code, err = launch(
        "parse", "--model", tiny_parser, "--file", big, "--form", "tokens", "--precision", "fp32", "--out", out
    )
    assert code == 0, err
    assert out.read_text(encoding="utf-8") == expected
    assert err.count("60 sentences, ") == 1
    code, err = launch("parse", "--model", tiny_parser, "--file", big, "--form", "tagged", "--out", tmp_path / "other")
    assert code != 0 and err.count("is no word_TAG pair") == 1, err
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
