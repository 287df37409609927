"""The public face: `load` a parser, `parse` text, look at the result."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lalkit import draw
from lalkit.checkpoint import Loaded, load_model
from lalkit.errors import LalkitError
from lalkit.files import write_text
from lalkit.predict import Prediction, predict
from lalkit.text import Form, read_line
from lalkit.treebank.brackets import format_tree, indent_tree
from lalkit.treebank.conllu import format_conllu
from lalkit.treebank.joint import JointSpan
from lalkit.treebank.tree import Node, Sentence


@dataclass(frozen=True)
class ParseResult:
    """A parsed sentence: `.tree`, `.dependencies`, `.score`, and its forms on paper."""

    prediction: Prediction

    @property
    def sentence(self) -> Sentence:
        return self.prediction.sentence

    @property
    def tree(self) -> Node:
        return self.sentence.tree

    @property
    def spans(self) -> tuple[JointSpan, ...]:
        """The joint spans with their head words, <H> included."""
        return self.prediction.spans

    @property
    def score(self) -> float:
        """lambda * (label scores) + (1 - lambda) * (arc log-probabilities) of the tree: the maximum over joint trees."""
        return self.prediction.score

    @cached_property
    def dependencies(self) -> list[tuple[int, str, str, int, str]]:
        """(number, word, tag, head, label) of every word; numbers from 1, head 0 is the root."""
        s = self.sentence
        blank = ("_",) * len(s)
        return list(zip(range(1, len(s) + 1), s.words, s.tags or blank, s.heads, s.arc_labels or blank))

    def to_ptb(self, pretty: bool = False) -> str:
        return indent_tree(self.tree) if pretty else format_tree(self.tree)

    def to_conllu(self) -> str:
        return format_conllu([self.sentence])

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_dict(self) -> dict:
        s = self.sentence
        return {
            "id": s.id, "words": s.words, "tags": s.tags, "tree": self.to_ptb(), "heads": s.heads,
            "arc_labels": s.arc_labels, "spans": [span._asdict() for span in self.spans], "score": self.score,
        }  # fmt: skip

    def draw(self) -> str:
        """The joint tree as SVG: constituents above, words between, arcs below."""
        return draw.draw_joint(self.sentence)

    def save(self, path: str | Path) -> Path:
        """Written in the form its suffix names: .svg .json .conllu .ptb .txt. Raises LalkitError for another."""
        forms = {
            ".svg": self.draw,
            ".json": self.to_json,
            ".conllu": self.to_conllu,
            ".ptb": self.to_ptb,
            ".txt": self.__str__,
        }
        suffix = Path(path).suffix
        if suffix not in forms:
            raise LalkitError(
                f"cannot write a result as {suffix!r}", where=str(path), remedy=f"Use one of {' '.join(forms)}."
            )
        return write_text(path, forms[suffix]())

    def _repr_svg_(self) -> str:
        return self.draw()

    def __str__(self) -> str:
        return self.to_ptb(pretty=True)


class Parser:
    """A trained parser.

    >>> parser = lalkit.load("runs/ptb")            # doctest: +SKIP
    >>> print(parser.parse("Select the person driving"))  # doctest: +SKIP
    """

    def __init__(self, loaded: Loaded):
        self.network, self.vocab, self.config, self.collator, self.info = (
            loaded.network, loaded.vocab, loaded.config, loaded.collator, loaded.info,
        )  # fmt: skip

    @classmethod
    def load(cls, folder: str | Path) -> Parser:
        """From a folder written by `lalkit train`. Raises ModelError where it is none, or not whole."""
        return cls(load_model(folder))

    def parse(self, text: str | Sequence[str] | Sentence, form: Form = "raw") -> ParseResult:
        """One sentence: text (raw, 'tokens' or 'tagged'), a list of words, or a Sentence. Raises LalkitError if empty."""
        return self.parse_all([text], form)[0]

    def parse_all(
        self, texts: Iterable[str | Sequence[str] | Sentence], form: Form = "raw", **options
    ) -> list[ParseResult]:
        """Many sentences, in order; options are those of `lalkit.predict.predict`."""
        sentences = [_sentence(text, form, i) for i, text in enumerate(texts, 1)]
        found = predict(self.network, self.collator, sentences, lam=self.config.train.lam, **options)
        return [ParseResult(prediction) for prediction in found]


def _sentence(text: str | Sequence[str] | Sentence, form: Form, number: int) -> Sentence:
    if isinstance(text, Sentence):
        return text
    found = (
        read_line(text, form, str(number))
        if isinstance(text, str)
        else Sentence(tuple(text), id=str(number))
        if text
        else None
    )
    if found is None:
        raise LalkitError("there is nothing to parse", where=f"sentence {number}", remedy="Give at least one word.")
    return found


def load(folder: str | Path) -> Parser:
    """A parser from the folder that `lalkit train` left it in."""
    return Parser.load(folder)
