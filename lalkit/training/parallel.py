"""Data-parallel training: one process per core of one machine, or those that `accelerate launch` started, one per GPU.

Most of a parser's operations are too small to be shared by threads; whole sentences are not. Every worker holds the whole
network, takes every k-th sentence of each batch, and adds up the gradients; all make the same update, so all hold the same
weights. Worker 0 is the caller; it alone evaluates and writes.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.nn  # noqa: F401  before any group: what is first imported later keeps the group of that moment for good

from lalkit.chart.machine import ONE_THREAD, cpu_count, keep_memory
from lalkit.config import Config
from lalkit.errors import LalkitError

PATIENCE = timedelta(hours=6)  # of a process for the others, who may evaluate, or wait for standard input


@dataclass(frozen=True)
class Team:
    """This process's place among the workers; a team of one does nothing. device: where what they exchange must be."""

    rank: int = 0
    size: int = 1
    device: torch.device | None = None

    def share(self, items: Sequence) -> Sequence:
        """This worker's part of a batch; may be empty."""
        return items[self.rank :: self.size]

    def add_gradients(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        """Every gradient becomes the sum over workers, the same bits in all of them."""
        if self.size == 1:
            return
        zero = [p.grad if p.grad is not None else torch.zeros_like(p) for p in parameters]
        flat = torch.cat([g.flatten() for g in zero])
        dist.all_reduce(flat)
        for p, g in zip(parameters, flat.split([p.numel() for p in parameters])):
            p.grad = g.view_as(p)

    def add(self, values: Sequence[float]) -> list[float]:
        """Sums of numbers over workers."""
        if self.size == 1:
            return list(values)
        total = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(total)
        return total.tolist()

    def from_first(self, value: Any) -> Any:
        """Worker 0's value, in every worker."""
        box = [value]
        if self.size > 1:
            dist.broadcast_object_list(box, src=0, device=self.device)
        return box[0]


def several() -> bool:
    """Does the environment say that this process is one of several, started by `accelerate launch`?"""
    return os.environ.get("WORLD_SIZE", "1") not in ("", "1") and "RANK" in os.environ


@contextlib.contextmanager
def launched() -> Iterator[Team]:
    """The team of the processes that `accelerate launch` started, on one or several machines. Only the first says what is wrong
    with the input, since all find it; the others exit with 2."""
    from accelerate import PartialState

    state = PartialState(cpu=not torch.cuda.is_available(), timeout=PATIENCE)
    torch.set_num_threads(cpu_count() // int(os.environ.get("LOCAL_WORLD_SIZE", state.num_processes)) or 1)
    try:
        yield Team(state.process_index, state.num_processes, state.device)
    except LalkitError:
        if state.is_main_process:
            raise
        sys.exit(2)
    finally:
        state.destroy_process_group()


def usual_size(config: Config) -> int:
    """One worker per core, at most 4, where a batch is enough work to share (a pretrained encoder) and no GPU does it all."""
    shared = config.model.encoder.pretrained is not None and not torch.cuda.is_available()
    return min(cpu_count(), 4) if shared else 1


def join(meeting: str, rank: int, size: int) -> Team:
    """Meet the other workers at a file."""
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=size)
    return Team(rank, size)


@contextlib.contextmanager
def gather(size: int, program: str, task: dict) -> Iterator[Team]:
    """Starts size - 1 workers, each `python -m program`, which calls `serve`, with `task` (JSON); yields worker 0's team.

    The workers end with the caller: when it leaves this block, and when it is killed, since they then lose their connection.
    """
    if size == 1:
        yield Team()
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        meeting = str(Path(folder) / "meeting")
        command = [sys.executable, "-m", program, meeting, str(size), json.dumps(task)]
        workers = [subprocess.Popen([*command, str(rank)], env={**os.environ, **ONE_THREAD}) for rank in range(1, size)]
        try:
            yield join(meeting, 0, size)
        finally:
            dist.destroy_process_group()
            for worker in workers:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    worker.wait(5)
                worker.kill()
            torch.set_num_threads(threads)


def serve(work: Callable[[dict, Team], None]) -> None:
    """A worker's life: python -m PROGRAM MEETING SIZE TASK RANK."""
    meeting, size, task, rank = sys.argv[1:]
    keep_memory()
    torch.set_num_threads(1)
    team = join(meeting, int(rank), int(size))
    # The caller was killed, or meets the same error and says it.
    with contextlib.suppress(RuntimeError, KeyboardInterrupt, LalkitError):
        work(json.loads(task), team)
