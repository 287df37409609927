"""What runs said under their controls, a file each: a comparison that was interrupted, or gets another run, goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from lalkit.checkpoint import fingerprint
from lalkit.files import write_json
from lalkit.heads.measure import Row
from lalkit.interpret.controls import TESTED
from lalkit.provenance import code_hash
from lalkit.treebank.tree import Sentence

Measured = tuple[list[Row], dict[str, pd.DataFrame]]  # as `measure` returns; of the tables what tests count
COUNTED = list(dict.fromkeys(column for counts in TESTED.values() for column in counts))


class Kept:
    """Measurements of the same sentences with the same settings, in a folder; None keeps nothing.

    Found again by a hash of all they follow from: the parser, the sentences, the settings and lalkit's code.
    """

    def __init__(
        self, folder: str | Path | None, gold: Sequence[Sentence], train: Sequence[Sentence], settings: Sequence
    ):
        self.folder = None if folder is None else Path(folder)
        self.common = _hash([[repr(s) for s in gold], [repr(s) for s in train], list(settings), code_hash()])

    def path(self, parser: str | Path) -> Path | None:
        return None if self.folder is None else self.folder / f"{_hash([fingerprint(parser), self.common])[:16]}.json"

    def find(self, parser: str | Path) -> Measured | None:
        """None where nothing was kept; what was damaged is measured anew."""
        path = self.path(parser)
        if path is None:
            return None
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            tables = {name: pd.DataFrame(counts) for name, counts in content["tables"].items()}
            return [tuple(row) for row in content["rows"]], tables
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None

    def keep(self, parser: str | Path, measured: Measured) -> None:
        path = self.path(parser)
        if path is not None:
            rows, tables = measured
            counts = {name: table[COUNTED].fillna(0).astype(int).to_dict("list") for name, table in tables.items()}
            write_json(path, {"rows": [(*row[:3], float(row[3])) for row in rows], "tables": counts})


def _hash(parts: list) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
