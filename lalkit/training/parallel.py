"""The processes that `accelerate launch` started, one per GPU, on one or several machines."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch

from lalkit.chart.machine import cpu_count
from lalkit.errors import LalkitError

PATIENCE = timedelta(hours=6)  # how long a process waits for the others, which may wait for standard input


@dataclass(frozen=True)
class Team:
    """This process among the others."""

    rank: int = 0
    size: int = 1
    device: torch.device | None = None

    def from_first(self, value: Any) -> Any:
        """Return the value that the first process has."""
        box = [value]
        if self.size > 1:
            torch.distributed.broadcast_object_list(box, src=0, device=self.device)
        return box[0]


def several() -> bool:
    """Return whether `accelerate launch` started this process as one of several."""
    return os.environ.get("WORLD_SIZE", "1") not in ("", "1") and "RANK" in os.environ


@contextlib.contextmanager
def launched() -> Iterator[Team]:
    """Yield the team of the processes that `accelerate launch` started.

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
