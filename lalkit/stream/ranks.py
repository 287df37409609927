"""Processes started by `accelerate launch`, one per GPU, on one or several machines: every rank holds the parser and takes
its share of each window; the first reads and writes.

If one dies, its launcher ends all; --resume goes on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from lalkit.compiled import cpu_count
from lalkit.parallel import PATIENCE
from lalkit.predict import Prediction
from lalkit.stream.compute import Group, Here, Source, answer


class Ranks:
    """This process's place among them. Only the first calls it with batches; the others `serve`."""

    def __init__(self, source: Source):
        import torch
        from accelerate import PartialState

        self.state = PartialState(cpu=not torch.cuda.is_available(), timeout=PATIENCE)
        self.size, self.first = self.state.num_processes, self.state.is_main_process
        threads = cpu_count() // int(os.environ.get("LOCAL_WORLD_SIZE", self.size)) or 1
        self.here = Here(source, self.state.device, threads)
        self.device = self.here.device

    def __call__(self, groups: Sequence[Group]) -> Iterator[tuple[int, list[Prediction]]]:
        yield from self._together((self.here.source, groups))

    def serve(self) -> None:
        """What every rank but the first does, until the first closes."""
        while self._together(None) is not None:
            pass

    def close(self) -> None:
        if self.first:
            self._together(None)
        self.state.destroy_process_group()

    def _together(self, task: tuple[Source, Sequence[Group]] | None) -> list[tuple[int, list[Prediction]]] | None:
        """The first rank's groups, shared out, computed and brought together; None where the first has no more."""
        from accelerate.utils import broadcast_object_list, gather_object

        box = [task]
        broadcast_object_list(box)
        if box[0] is None:
            return None
        self.here.source, groups = box[0]  # the first's fingerprint: all must have the same parser
        mine = range(self.state.process_index, len(groups), self.size)
        answers = gather_object([answer(lambda: [(number, self.here.parse(groups[number])) for number in mine])])
        if not self.first:
            return []
        for found in answers:
            if isinstance(found, Exception):
                raise found
        return [item for found in answers for item in found]
