"""The public face: `load` a parser, `parse` text, look at the result."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pandas as pd

from lalkit import draw
from lalkit.config import SpanAttentionConfig
from lalkit.errors import LalkitError
from lalkit.files import write_bytes, write_json, write_text
from lalkit.interpret.contributions import attention_table, contributions
from lalkit.interpret.explain import explain, explain_terms, page, page_of_terms
from lalkit.interpret.paper_layer import Look, look, view
from lalkit.interpret.span_layer import Terms, span_terms
from lalkit.network.predict import Prediction, predict
from lalkit.probes.view import AttentionView
from lalkit.training import named as models
from lalkit.training.checkpoint import Loaded, load_model, save_model
from lalkit.treebank.brackets import format_tree, indent_tree
from lalkit.treebank.conllu import format_conllu
from lalkit.treebank.joint import JointSpan
from lalkit.treebank.text import Form, read_line, read_text
from lalkit.treebank.tree import Node, Sentence

PICTURES = (".png", ".pdf")


@dataclass(frozen=True)
class ParseResult:
    """A parsed sentence: `.tree`, `.dependencies`, `.score`, and its forms on paper."""

    prediction: Prediction
    parser: Parser | None = field(default=None, repr=False, compare=False)  # who made it, and can say why
    # What it was made of: its tags may be others than those of the parse.
    given: Sentence | None = field(default=None, repr=False, compare=False)

    @property
    def sentence(self) -> Sentence:
        return self.prediction.sentence

    @property
    def tree(self) -> Node:
        """Raises LalkitError where the parser gives dependencies alone."""
        if self.sentence.constituents is None:
            raise LalkitError(
                "this parser was trained on dependencies alone: it gives no constituents",
                remedy="Use .dependencies and .to_conllu(), or --to conllu.",
            )
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
        """(number, word, tag, head, label) of every word; numbers from 1, head 0 is the root. Raises LalkitError where the
        parser gives constituents alone."""
        s = self._with_heads()
        blank = ("_",) * len(s)
        return list(zip(range(1, len(s) + 1), s.words, s.tags or blank, s.heads, s.arc_labels or blank))

    @cached_property
    def look(self) -> Look:
        """The parse from within: attention and contributions. Raises ModelError for a parser whose heads are mixed."""
        return self._maker.look([self._bare])[0]

    @cached_property
    def terms(self) -> Terms:
        """Every constituent's score, word by word (`.terms.table`), for a parser with label attention inside the span. Raises
        ModelError for another."""
        return self._maker.terms([self._bare])[0]

    @property
    def _maker(self) -> Parser:
        if self.parser is None:
            raise LalkitError(
                "the parser of this result is not at hand", remedy="Parse the sentence with `Parser.parse`."
            )
        return self.parser

    @property
    def _bare(self) -> Sentence:
        return replace(self.given or self.sentence, constituents=None, heads=None, arc_labels=None)

    def contributions(self, norm: str = "exact") -> pd.DataFrame:
        """What each label head contributes to each constituent: start, end, label, head, norm, value (`NORMS` says how)."""
        return contributions([self.look]).table([norm]).drop(columns=["sentence", "id", "parsed", "gold"])

    def attention(self) -> pd.DataFrame:
        """What each label head attends to: head, position (0 START, n + 1 STOP), word, attention."""
        return attention_table([self.look]).drop(columns=["sentence", "id"])

    def explain(self, label: str | None = None, norm: str = "exact", top: int = 3) -> str:
        """Which label heads made the constituents of this label (None: all), and what they attend to, in words; for a parser
        with label attention inside the span, which words did (it has no norms: its terms are exact)."""
        if self._maker.inside:
            return explain_terms(self.terms, label, top)
        return explain(self.look, label, norm, top, self.parser.profile)

    def explore(self, gold: Sentence | None = None, norm: str = "exact") -> Exploration:
        """A page on which one points at a constituent and sees its label heads, or words: shown in a notebook, or saved.

        gold: the same sentence with its gold trees, to mark what differs.
        """
        shown = {
            "title": " ".join(self.sentence.words[:12]),
            "model": self._maker.info.get("name", "a parser"),
            "gold": [gold] if gold else None,
        }
        if self.parser.inside:
            data = page_of_terms([self.terms], boundary=self.parser.inside.boundary, **shown)
        else:
            data = page([self.look], profile=self.parser.profile, norm=norm, **shown)
        return Exploration(draw.explorer(data))

    def to_ptb(self, pretty: bool = False) -> str:
        return indent_tree(self.tree) if pretty else format_tree(self.tree)

    def to_conllu(self) -> str:
        return format_conllu([self._with_heads()])

    def _with_heads(self) -> Sentence:
        if self.sentence.heads is None:
            raise LalkitError(
                "this parser was trained on constituents alone: it gives no dependencies",
                remedy="Use .tree and .to_ptb(), or --to ptb.",
            )
        return self.sentence

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_dict(self) -> dict:
        s = self.sentence
        return {
            "id": s.id, "words": s.words, "tags": s.tags, "heads": s.heads,
            "tree": None if s.constituents is None else self.to_ptb(),
            "arc_labels": s.arc_labels, "spans": [span._asdict() for span in self.spans], "score": self.score,
        }  # fmt: skip

    def draw(self) -> str:
        """The joint tree as SVG: constituents above, words between, arcs below; or the one layer there is."""
        s = self.sentence
        return (
            draw.draw_arcs(s)
            if s.constituents is None
            else draw.draw_tree(s)
            if s.heads is None
            else draw.draw_joint(s)
        )

    def save(self, path: str | Path) -> Path:
        """Written in the form its suffix names: .svg .png .pdf .json .conllu .ptb .txt. Raises LalkitError for another."""
        forms = {
            ".svg": self.draw,
            ".json": self.to_json,
            ".conllu": self.to_conllu,
            ".ptb": self.to_ptb,
            ".txt": self.__str__,
        }
        suffix = Path(path).suffix
        if suffix in PICTURES:
            from lalkit.draw.svg import redraw

            return write_bytes(path, redraw(self.draw(), suffix[1:]))
        if suffix not in forms:
            known = " ".join((*forms, *PICTURES))
            raise LalkitError(f"cannot write a result as {suffix!r}", where=str(path), remedy=f"Use one of {known}.")
        return write_text(path, forms[suffix]())

    def _repr_svg_(self) -> str:
        return self.draw()

    def __str__(self) -> str:
        return self.to_conllu() if self.sentence.constituents is None else self.to_ptb(pretty=True)


@dataclass(frozen=True)
class Exploration:
    """An explorer page: displayed in JupyterLab in a frame of its own, or saved as one HTML file."""

    html: str = field(repr=False)

    def save(self, path: str | Path) -> Path:
        return write_text(path, self.html)

    def _repr_html_(self) -> str:
        return draw.explorer_frame(self.html)


class Parser:
    """A trained parser.

    >>> parser = lalkit.load("en-news")                   # doctest: +SKIP
    >>> print(parser.parse("Select the person driving"))  # doctest: +SKIP
    """

    def __init__(self, loaded: Loaded, profile: dict | None = None):
        """profile: how often each label head leads each label in a corpus (`interpret.tables.profile`)."""
        self.profile = profile
        self.network, self.vocab, self.config, self.collator, self.info = (
            loaded.network, loaded.vocab, loaded.config, loaded.collator, loaded.info,
        )  # fmt: skip

    @classmethod
    def load(cls, name: str | Path) -> Parser:
        """By the name it is shipped under, from a folder written by `lalkit train` or `save`, or 'hf:owner/name' from the
        hub. Raises ModelError where there is none, or it is not whole, or its encoder is missing or another."""
        folder = models.find(name)
        return cls(load_model(folder), models.read_profile(folder))

    def save(self, folder: str | Path, half: bool = False) -> Path:
        """Writes what `load` reads. half: weights in 16 bits, half the size."""
        save_model(folder, self.network, self.config, self.vocab, "0", self.info, half)
        if self.profile:
            write_json(Path(folder) / "profile.json", self.profile)
        return Path(folder)

    def parse(self, text: str | Sequence[str] | Sentence, form: Form = "raw") -> ParseResult:
        """One sentence: text (raw, 'tokens' or 'tagged'), a list of words, or a Sentence. Raises LalkitError if empty."""
        return self.parse_all([text], form)[0]

    def parse_text(self, text: str) -> list[ParseResult]:
        """Running text, split into sentences. Raises LalkitError if there is none."""
        sentences = read_text(text)
        if not sentences:
            raise LalkitError("there is nothing to parse", remedy="Give at least one word.")
        return self.parse_all(sentences)

    def parse_all(
        self, texts: Iterable[str | Sequence[str] | Sentence], form: Form = "raw", **options
    ) -> list[ParseResult]:
        """Many sentences, in order; options are those of `lalkit.network.predict.predict`."""
        sentences = [_sentence(text, form, i) for i, text in enumerate(texts, 1)]
        found = predict(self.network, self.collator, sentences, lam=self.config.train.lam, **options)
        return [ParseResult(prediction, self, given) for prediction, given in zip(found, sentences)]

    def look(self, sentences: Sequence[Sentence], **options) -> list[Look]:
        """Parse and keep what the label attention did; options are those of `lalkit.interpret.paper_layer.look`."""
        return look(self.network, self.collator, sentences, lam=self.config.train.lam, **options)

    @property
    def inside(self) -> SpanAttentionConfig | None:
        """Its label attention inside the span, if that is what it has."""
        return self.config.model.span_attention

    def terms(self, sentences: Sequence[Sentence], **options) -> list[Terms]:
        """Parse and keep every score's terms; options are those of `lalkit.interpret.span_layer.span_terms`."""
        return span_terms(self.network, self.collator, sentences, lam=self.config.train.lam, **options)

    def view(self, sentences: Sequence[Sentence], **options) -> AttentionView:
        """The label attention for the probes of `lalkit.probes`; options are those of `lalkit.interpret.paper_layer.view`."""
        return view(self.network, self.collator, sentences, lam=self.config.train.lam, **options)


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


def load(name: str | Path = "en-news") -> Parser:
    """A parser by name, from a folder, or from the hub: see `Parser.load`."""
    return Parser.load(name)
