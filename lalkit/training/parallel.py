"""Training in several processes: one per core of this machine, or those that `accelerate launch` started, one per GPU.

Most operations of a parser are too small to be shared by threads, but whole sentences can be shared. Every worker has the
whole network and takes every k-th sentence of each batch. The gradients are added up, so that all workers make the same
update and keep the same weights. Worker 0 is the caller. Only it evaluates and writes files.
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
import torch.distributed.nn  # noqa: F401  If imported after a process group exists, it would keep that group for ever.

from lalkit.chart.machine import ONE_THREAD, cpu_count, keep_memory
from lalkit.config import Config
from lalkit.errors import LalkitError

PATIENCE = timedelta(hours=6)  # how long a process waits for the others, which may evaluate or wait for standard input


@dataclass(frozen=True)
class Team:
    """This process among the workers. In a team of one, nothing is exchanged.

    device: the device of the tensors that workers exchange.
    """

    rank: int = 0
    size: int = 1
    device: torch.device | None = None

    def share(self, items: Sequence) -> Sequence:
        """Return this worker's part of a batch, which may be empty."""
        return items[self.rank :: self.size]

    def add_gradients(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        """Replace every gradient by its sum over workers, which has the same bits in all of them."""
        if self.size == 1:
            return
        gradients = [p.grad if p.grad is not None else torch.zeros_like(p) for p in parameters]
        flat = torch.cat([g.flatten() for g in gradients])
        dist.all_reduce(flat)
        for p, g in zip(parameters, flat.split([p.numel() for p in parameters])):
            p.grad = g.view_as(p)

    def add(self, values: Sequence[float]) -> list[float]:
        """Return the sum of each number over workers."""
        if self.size == 1:
            return list(values)
        total = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(total)
        return total.tolist()

    def from_first(self, value: Any) -> Any:
        """Return the value that worker 0 has."""
        box = [value]
        if self.size > 1:
            dist.broadcast_object_list(box, src=0, device=self.device)
        return box[0]


def several() -> bool:
    """Return whether `accelerate launch` started this process as one of several."""
    return os.environ.get("WORLD_SIZE", "1") not in ("", "1") and "RANK" in os.environ


@contextlib.contextmanager
def launched() -> Iterator[Team]:
    """Yield the team of the processes that `accelerate launch` started, on one or several machines.

    All of them meet the same error in the input. Only the first raises it; the others exit with code 2.
    """
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
    """Return the default number of workers: one per core, at most 4; only 1 with a GPU or without a pretrained encoder."""
    shared = config.model.encoder.pretrained is not None and not torch.cuda.is_available()
    return min(cpu_count(), 4) if shared else 1


def join(meeting: str, rank: int, size: int) -> Team:
    """Wait for the other workers, which know the same file, and return the team."""
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=size, timeout=PATIENCE)
    return Team(rank, size)


@contextlib.contextmanager
def gather(size: int, program: str, task: dict) -> Iterator[Team]:
    """Start size - 1 workers with `task` (JSON), and yield the team of worker 0, the caller.

    program: a module that calls `serve` when it is run. The workers end when the caller leaves this block, and also when it
    is killed, because they then lose their connection.
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
    """Run a worker: python -m PROGRAM MEETING SIZE TASK RANK."""
    meeting, size, task, rank = sys.argv[1:]
    keep_memory()
    torch.set_num_threads(1)
    team = join(meeting, int(rank), int(size))
    # Either the caller was killed, or it meets the same error and shows it.
    with contextlib.suppress(RuntimeError, KeyboardInterrupt, LalkitError):
        work(json.loads(task), team)
