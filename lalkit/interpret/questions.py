"""What a parser can be asked about many sentences, and how its label heads can be changed for a while, in one line each.

The changes act at the named hook points of the layer: `with source.layer.hooked(**hooks):`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lalkit.errors import LalkitError, ParameterError
from lalkit.treebank.text import read_sentences
from lalkit.treebank.tree import Sentence

if TYPE_CHECKING:
    import pandas as pd

    from lalkit.interpret.contributions import Heads
    from lalkit.interpret.source import AttributionSource, Hooks

CONTEXTS = {"uniform": "uniform attention", "mean": "mean", "swapped": "swapped sentences"}  # the names of the controls
EXAMPLE = "Give of=, some tens of sentences such as those of lalkit.Treebank.load('sample', 'train'); for swapped, one."
Texts = str | Sentence | Iterable[str | Sequence[str] | Sentence]


class Questions:
    """The part of `lalkit.Parser` that asks its label heads.

    texts: a treebank, a list of texts, of lists of words or of Sentences, a column of a table, or one text. It is parsed, and the
    tables describe the constituents of the parses; `lalkit.interpret.words_of_spans` says what the columns are.
    """

    parse_all: Callable

    @property
    def attribution(self) -> AttributionSource:
        """What answers for the parser's label attention."""

    def contributions(self, texts: Texts, norm: str = "exact") -> pd.DataFrame:
        """Return what made the score of each constituent, by label head: see `words_of_spans.contributions`."""
        from lalkit.interpret import words_of_spans

        return words_of_spans.contributions(self.attribution, *self._looks(texts), norm)

    def attention(self, texts: Texts, label: str | None = None) -> pd.DataFrame:
        """Return which words label heads attend to: see `words_of_spans.attention`.

        label: look at the words of the constituents of this label.
        """
        from lalkit.interpret import words_of_spans

        return words_of_spans.attention(self.attribution, *self._looks(texts), label)

    def top_heads(
        self, texts: Texts, label: str | None = None, norm: str | None = None, count: int = 1
    ) -> pd.DataFrame:
        """Return the `count` label heads that contribute most to each constituent: see `words_of_spans.top_heads`."""
        from lalkit.interpret import words_of_spans

        return words_of_spans.top_heads(self.attribution, *self._looks(texts), label, norm, count)

    def errors(self, gold: Iterable[Sentence]) -> pd.DataFrame:
        """Return a row for each error in the parses of a treebank: see `lalkit.interpret.errors.errors`."""
        from lalkit.interpret import errors

        gold = read_sentences(gold)
        return errors.errors(gold, [result.sentence for result in self.parse_all(gold)])

    @contextmanager
    def without(self, heads: Heads) -> Iterator[Questions]:
        """Take label heads out inside the `with` block: `with parser.without(heads=[3, 7]):`. In nested blocks, all changes hold.

        heads: numbers, or labels if each label has a head of its own. Paper's layer: the head's slice of the output is 0. Label
        attention inside the span: the head's evidence is 0; what the boundaries give to its label stays. A result belongs to the
        network that parsed it: ask for its explanations inside the same block.
        """
        source = self.attribution
        with source.layer.hooked(**source.without(heads, torch.zeros(source.heads))["head out"]):
            yield self

    @contextmanager
    def with_contexts(
        self, contexts: str | Callable[[Tensor], Tensor], heads: Heads | None = None, of: Texts = ()
    ) -> Iterator[Questions]:
        """Replace what label heads pass on inside the `with` block, of all heads or of some.

        Args:
            contexts: "uniform": the heads attend to all words alike. "mean": they pass on their mean over the sentences `of`.
                "swapped": they pass on their values of another sentence, the first of `of`. Or a function from a tensor
                to one of the same shape: of contexts [sentences, heads, size] in the paper's layer, of evidence
                [sentences, words, heads] in label attention inside the span.
            heads: as in `without`; None: all.
            of: other sentences, for "mean" and "swapped".
        """
        with self.attribution.layer.hooked(**_with_contexts(self.attribution, contexts, heads, _sentences(of))):
            yield self

    def _looks(self, texts: Texts) -> tuple[list, list[Sentence]]:
        sentences = _sentences(texts)
        if not sentences:
            raise LalkitError("there is nothing to parse", remedy="Give at least one sentence.")
        return self.attribution.look(sentences), sentences


def _sentences(texts: Texts) -> list[Sentence]:
    return read_sentences([texts] if isinstance(texts, str | Sentence) else texts)


def _with_contexts(
    source: AttributionSource, contexts: str | Callable[[Tensor], Tensor], heads: Heads | None, of: Sequence[Sentence]
) -> Hooks:
    """Return the hooks that replace what label heads pass on.

    Args:
        contexts: uniform, mean, swapped, or a function of the tensor, see `lalkit.Parser.with_contexts`.
        heads: the heads that change; None: all of them.
        of: the sentences from which other contexts are taken.

    Raises:
        ParameterError: another name, or a head that the layer does not have.
        LalkitError: sentences are needed, or the function returns another shape than it got.
    """
    chosen = None if heads is None else source.chosen(heads)
    if callable(contexts):
        hooks = {source.passed_on: _same_shape(contexts)}
    elif contexts not in [*CONTEXTS]:
        raise ParameterError(f"there are no contexts {contexts!r}", remedy=f"Give {', '.join(CONTEXTS)} or a function.")
    elif contexts != "uniform" and not of:
        raise LalkitError(f"{contexts} contexts need sentences to take them from", remedy=EXAMPLE)
    elif contexts == "swapped":
        hooks = source.of_sentence(of[0])
    else:
        mean = source.mean(of) if contexts == "mean" else torch.zeros(source.heads)
        hooks = source.controls(mean)[CONTEXTS[contexts]]
    return hooks if chosen is None else {point: _only(chosen, change) for point, change in hooks.items()}


def _only(chosen: Tensor, change: Callable) -> Callable:
    return lambda value, *context: torch.where(chosen.to(value.device), change(value, *context), value)


def _same_shape(function: Callable[[Tensor], Tensor]) -> Callable:
    def change(value: Tensor, *context: Tensor) -> Tensor:
        other = function(value)
        if not isinstance(other, Tensor) or other.shape != value.shape:
            remedy = f"Return a tensor of the shape that it got: {tuple(value.shape)}."
            raise LalkitError(f"the function returned {getattr(other, 'shape', other)!r}", remedy=remedy)
        return other.to(value)

    return change
