"""Documents with their summaries, and what their tokens are known to be."""

from __future__ import annotations

from dataclasses import dataclass

from lalkit.errors import CorpusError


@dataclass(frozen=True)
class Document:
    """words, and a summary of words (empty: none is known); tags and entity flags of the words, where they are known.

    Raises CorpusError for a document without words, or tags or flags of another number.
    """

    words: tuple[str, ...]
    summary: tuple[str, ...] = ()
    tags: tuple[str, ...] | None = None
    entities: tuple[bool, ...] | None = None
    id: str = ""

    def __post_init__(self):
        if not self.words:
            raise CorpusError("a document has no words", where=self.id, remedy="Leave it out.")
        for name in ("tags", "entities"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.words):
                raise CorpusError(f"{len(values)} {name} for {len(self.words)} words", where=self.id)


@dataclass(frozen=True)
class Dataset:
    """name and parts; test documents are never trained on, nor chosen by."""

    name: str
    train: tuple[Document, ...]
    dev: tuple[Document, ...]
    test: tuple[Document, ...]
