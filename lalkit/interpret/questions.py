"""The questions about many sentences that a parser answers in one line, its changed label heads, and the page to type into.

`causes` says for each match of a search why the parser has it, in columns that are computed only if they are asked for:

| column      | of the constituent over the words of the match                                                           |
|-------------|----------------------------------------------------------------------------------------------------------|
| top_head    | the label head that contributes most; its label, with label attention inside the span                    |
| probability | that these words have this label                                                                         |
| gold        | "right", or the class of the error (`interpret.errors`); missing for a sentence without a gold tree       |

The columns are found by the words of the match. A word that is a constituent by itself, such as a pronoun under NP, has the
values of that constituent. A match over other words has none.

The changes act at the named hook points of the layer: `with source.layer.hooked(**hooks):`.

`TypedSentences` answers for a sentence that is typed into a page: the parameters of an address in, and trees and a page to
explore out. The parameters, each a text:

    text      the sentence, or several sentences of raw text
    sentence  which of them to parse, from 1
    form      raw, tokens or tagged
    require   parts that the tree must have: NP(3,5); 4->2 (see `lalkit.chart.constraints`), with spaces or semicolons between
    forbid    parts that it must not have
    without   label heads that are switched off, by number or by label: 3, 7
    k         how many of the best structures to list
    tree      which of them to show, from 1
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from lalkit.chart.constraints import items_of
from lalkit.config import PAGE_CHARACTERS, PAGE_TREES, PAGE_WORDS
from lalkit.errors import LalkitError, ParameterError, checked, whole_number
from lalkit.network.predict import check_joint, predict_batches
from lalkit.treebank.text import Form, read_line, read_sentence, read_sentences, split_sentences
from lalkit.treebank.tree import Sentence

if TYPE_CHECKING:
    import pandas as pd

    from lalkit.interpret.source import AttributionSource
    from lalkit.treebank.search import Hits

logger = logging.getLogger(__name__)
CONTEXTS = {"uniform": "uniform attention", "mean": "mean", "swapped": "swapped sentences"}  # the names of the controls
EXAMPLE = "Give of=, some tens of sentences such as those of lalkit.Treebank.load('sample', 'train'); for swapped, one."
Texts = str | Sentence | Iterable[str | Sequence[str] | Sentence]

CAUSES = ("top_head", "probability", "gold")

DEFAULTS = {"text": "", "sentence": "1", "form": "raw", "require": "", "forbid": ""}
DEFAULTS |= {"without": "", "k": "5", "tree": "1"}
BETWEEN = re.compile(r"[;\s]+(?![^(]*\))")  # constraints: not the spaces inside NP( 3, 5 )


class Vectors(NamedTuple):
    """Vectors, one in each row of `array`, and the table `index` with the same rows."""

    array: np.ndarray
    index: pd.DataFrame


@checked
class Questions:
    """The part of `lalkit.Parser` that answers questions about its label heads.

    texts: a treebank, a list of texts, of lists of words or of Sentences, a column of a table, or one text. It is parsed, and the
    tables describe the constituents of the parses; `lalkit.interpret.tables` describes their columns. options: batch_words= and
    progress=, as for `lalkit.Parser.parse_all`.
    """

    parse_all: Callable
    network: Any
    vocab: Any
    info: dict
    config: Any
    collator: Any

    @property
    def attribution(self) -> AttributionSource:
        """The object that answers for the parser's label attention."""

    def contributions(self, texts: Texts, norm: str = "exact", **options) -> pd.DataFrame:
        """Return the parts of each constituent's score, by label head: see `tables.contributions_with_words`."""
        from lalkit.interpret import tables

        return tables.contributions_with_words(self.attribution, *self._looks(texts, options), norm)

    def attention(self, texts: Texts, label: str | None = None, **options) -> pd.DataFrame:
        """Return the words to which label heads attend: see `tables.attention_with_words`.

        label: look at the words of the constituents of this label.
        """
        from lalkit.interpret import tables

        return tables.attention_with_words(self.attribution, *self._looks(texts, options), label)

    def top_heads(
        self, texts: Texts, label: str | None = None, norm: str | None = None, count: int = 1, **options
    ) -> pd.DataFrame:
        """Return the `count` label heads that contribute most to each constituent: see `tables.top_heads_with_words`."""
        from lalkit.interpret import tables

        return tables.top_heads_with_words(self.attribution, *self._looks(texts, options), label, norm, count)

    def errors(self, gold: Iterable[Sentence], **options) -> pd.DataFrame:
        """Return a row for each error in the parses of a treebank: see `lalkit.interpret.errors.errors`."""
        from lalkit.interpret import errors

        return errors.errors(*self._with_gold(gold, options), self.vocab.arc_labels)

    def evaluate(
        self, gold: Iterable[Sentence], by: Literal["all", "sentence", "length", "label"] = "all", **options
    ) -> pd.DataFrame:
        """Score the parses of a treebank: see `lalkit.evaluation.scores`.

        >>> parser.evaluate(lalkit.Treebank.load("own.conllu"))  # doctest: +SKIP

        by: "all" gives one row with the name of the parser (`Evaluation.summary`). The others give a row for each sentence, for
            each group of lengths, or for each label of constituents.
        Raises: LalkitError for a sentence without a gold tree.
        """
        import pandas as pd

        from lalkit.evaluation import scores

        trees, parses = self._with_gold(gold, options)
        if by == "label":
            return scores.by_label(trees, parses)
        found = scores.evaluate(trees, parses, arc_labels=self.vocab.arc_labels)
        if found.other_arcs:
            logger.warning(found.other_arcs)
        if by != "all":
            return found.table() if by == "sentence" else scores.by_length(found)
        return pd.DataFrame(found.summary(), [self.info.get("name", "")])

    def vectors(
        self, texts: Texts, at: Literal["word", "boundary", "span", "head"] = "word", *, batch_words: int | None = None,
        progress: bool = False,
    ) -> Vectors:  # fmt: skip
        """Return the vectors of the network at many places, and a table that says what each of them stands for.

        >>> array, index = parser.vectors(treebank, at="head")  # doctest: +SKIP
        >>> array[index["head"] == 3]                           # doctest: +SKIP

        Args:
            texts: what is parsed.
            at: "word": what the last layer reads of each word. "boundary": the vectors of the places between words, before the
                first and after the last among them, of all heads together. "span": of each constituent of the parse, the last
                boundary less the first: what is scored. "head": the context of each label head of the paper's layer.
            batch_words, progress: as in `lalkit.network.predict.predict_batches`.

        Raises:
            ModelError: "head", and the parser does not have the paper's layer.
            LalkitError: "span", and the parser has no constituents.
        """
        import pandas as pd

        from lalkit.interpret import tables
        from lalkit.interpret.paper_layer import PaperLayer
        from lalkit.interpret.source import parsed_spans

        layer, sentences = PaperLayer(self.network, self.collator), sentences_of(texts, self.hyphens)
        if at == "head":
            layer.check_contexts()
        if not sentences or (at == "span" and self.network.config.task == "dependencies"):
            raise LalkitError(
                "there is nothing to have a vector", remedy="Give sentences; for spans, use another parser."
            )
        seen: list[Any] = [None] * len(sentences)
        for group, predictions, output in predict_batches(
            self.network, self.collator, sentences, self.config.train.lam,
            posts=True, batch_words=batch_words, progress=progress,
        ):  # fmt: skip
            for b, (place, prediction) in enumerate(zip(group, predictions)):
                n, spans = len(prediction.sentence), parsed_spans(prediction)
                x, posts = output.x[b : b + 1, : n + 2], output.posts[b, : n + 1].flatten(1)
                found = {"word": x[0, 1:-1], "boundary": posts}.get(at)
                if at == "head":
                    found = layer.vectors(x)[0][0]
                if at == "span":
                    found = posts[[end for _, end, _ in spans]] - posts[[start for start, _, _ in spans]]
                seen[place] = prediction.sentence, spans, found.float().cpu().numpy()
        parses, spans_of, arrays = zip(*seen)
        if at == "word":
            index = tables.words(parses)
        elif at == "span":
            rows = [(place, *span) for place, spans in enumerate(spans_of) for span in spans]
            index = tables.with_words(pd.DataFrame(rows, columns=[*tables.PLACE, "label"]), parses, sentences)
        else:
            rows = [(place, s.id, len(s), k) for place, s in enumerate(parses) for k in range(len(arrays[place]))]
            index = pd.DataFrame(rows, columns=["sentence", "id", "length", at])
        if at == "boundary":
            index["before"] = [word for s in parses for word in (None, *s.words)]
            index["after"] = [word for s in parses for word in (*s.words, None)]
        return Vectors(np.concatenate(arrays), index)

    def _with_gold(self, gold: Iterable[Sentence], options: dict) -> tuple[list[Sentence], list[Sentence]]:
        """Return gold sentences and their parses."""
        gold = read_sentences(gold)
        if bare := [sentence for sentence in gold if sentence.constituents is None and sentence.heads is None]:
            raise LalkitError("has no gold tree", where=bare[0].where, remedy="Give the sentences of a treebank.")
        return gold, [result.sentence for result in self.parse_all(gold, **options)]

    @contextmanager
    def without(self, heads: int | str | Iterable[int | str]) -> Iterator[Questions]:
        """Remove label heads inside the `with` block: `with parser.without(heads=[3, 7]):`. In nested blocks, all changes hold.

        heads: numbers, or labels if each label has its own head. Paper's layer: the head's slice of the output is 0. Label
        attention inside the span: the head's evidence is 0; the boundary score of its label stays. A result belongs to the
        network that parsed it: ask for its explanations inside the same block.
        """
        source = self.attribution
        with source.layer.hooked(**source.without(heads, torch.zeros(source.heads))["head out"]):
            yield self

    @contextmanager
    def with_contexts(
        self, contexts: str, heads: int | str | Iterable[int | str] | None = None, of: Texts = ()
    ) -> Iterator[Questions]:
        """Replace the values that label heads pass on inside the `with` block, of all heads or of some.

        Args:
            contexts: "uniform": the heads attend to all words alike. "mean": they pass on their mean over the sentences `of`.
                "swapped": they pass on their values of another sentence, the first of `of`.
            heads: as in `without`; None: all.
            of: other sentences, for "mean" and "swapped".

        Raises:
            ParameterError: another name, or a head that the layer does not have.
            LalkitError: sentences are needed.
        """
        source, others = self.attribution, sentences_of(of, self.hyphens)
        chosen = None if heads is None else source.chosen(heads)
        if contexts not in CONTEXTS:
            raise ParameterError(f"there are no contexts {contexts!r}", remedy=f"Give one of {', '.join(CONTEXTS)}.")
        if contexts != "uniform" and not others:
            raise LalkitError(f"{contexts} contexts need sentences to take them from", remedy=EXAMPLE)
        if contexts == "swapped":
            hooks = source.of_sentence(others[0])
        else:
            mean = source.mean(others) if contexts == "mean" else torch.zeros(source.heads)
            hooks = source.controls(mean)[CONTEXTS[contexts]]
        if chosen is not None:
            hooks = {point: _only(chosen, change) for point, change in hooks.items()}
        with source.layer.hooked(**hooks):
            yield self

    def _looks(self, texts: Texts, options: dict) -> tuple[list, list[Sentence]]:
        sentences = sentences_of(texts, self.hyphens)
        if not sentences:
            raise LalkitError("there is nothing to parse", remedy="Give at least one sentence.")
        return self.attribution.look(sentences, **options), sentences


def sentences_of(texts: Texts, hyphens: bool = True) -> list[Sentence]:
    """Return the sentences of a treebank, of a list of texts, or of one text."""
    return read_sentences([texts] if isinstance(texts, str | Sentence) else texts, "raw", hyphens)


def _only(chosen: Tensor, change: Callable) -> Callable:
    return lambda value, *context: torch.where(chosen.to(value.device), change(value, *context), value)


class TypedSentences:
    """Parse typed sentences, each as the parameters of an address ask.

    The answers come from a copy of the network that shares its weights. So heads that are switched off here are not switched off
    for anyone who uses the parser at the same time.
    """

    def __init__(self, parser: Questions):
        """Raises LalkitError for a parser without joint trees, or without label attention."""
        check_joint(parser.network.config.task)
        self.heads, labels = parser.attribution.heads, parser.attribution.head_labels
        self.example = ", ".join(labels[1:3]) or "3, 7"  # 0 is <H>
        shared = {id(weight): weight for weight in (*parser.network.parameters(), *parser.network.buffers())}
        self.ready: tuple[Mapping, str] | None = None  # the last question, and its page
        self.parser: Any = copy(parser)
        self.parser.network = deepcopy(parser.network, shared)
        vars(self.parser).pop("attribution")

    def trees(self, arguments: Mapping[str, Sequence[str]]) -> dict:
        """Return the sentences, the best structures, the probabilities of the tree that is shown, and what changes cost.

        The page that explores the tree is made, too: it is asked for next.
        """
        with self._parsed(arguments) as (usual, results, number, parts):
            shown, changed = results[number], None
            if usual:
                before, after = (items_of(r.spans, r.sentence.heads) for r in (usual, results[0]))
                changed = {"added": sorted(map(str, after - before)), "missing": sorted(map(str, before - after))}
            self.ready = arguments, self._explored(usual, shown)
            return {
                "sentences": parts,
                "trees": [result.to_dict() for result in results],
                "shown": {"number": number + 1, **shown.with_confidence().to_dict()},
                "price": shown.price._asdict() if shown.constraints.items else None,
                "changed": changed,
            }

    def page(self, arguments: Mapping[str, Sequence[str]]) -> str:
        """Return the page that explores the tree. If heads are switched off, the usual tree stands before it."""
        if self.ready and self.ready[0] == arguments:
            return self.ready[1]
        with self._parsed(arguments) as (usual, results, number, _):
            return self._explored(usual, results[number])

    def _explored(self, usual: Any, shown: Any) -> str:
        return (usual or shown).explore(beside=usual and shown, constrain=True).html

    @contextmanager
    def _parsed(self, arguments: Mapping[str, Sequence[str]]) -> Iterator[tuple[Any, list, int, list[str]]]:
        """Give the usual parse if heads are switched off, the best trees, the place of the one to show, and the sentences.

        Raises ParameterError for a parameter that is unknown, too long or wrong.
        """
        if unknown := sorted(arguments.keys() - DEFAULTS.keys()):
            raise ParameterError("is not a parameter", where=unknown[0][:40], remedy=f"Use {', '.join(DEFAULTS)}.")
        values = DEFAULTS | {name: texts[-1] for name, texts in arguments.items() if texts}
        k, form = whole_number("k", _number(values["k"]), 1, PAGE_TREES), cast(Form, values["form"])
        if len(values["text"]) > PAGE_CHARACTERS:
            problem = f"the text has {len(values['text']):,} characters"
            raise ParameterError(problem, remedy=f"Give at most {PAGE_CHARACTERS:,} characters.")
        parts = split_sentences(values["text"]) if form == "raw" else []
        parts = parts or [values["text"]]
        text: Any = parts[whole_number("sentence", _number(values["sentence"]), 1, len(parts)) - 1]
        check_length(text, form)
        text = read_sentence(text, form, 1, self.parser.hyphens) if form == "raw" else text
        lists = {name: list(filter(None, BETWEEN.split(values[name]))) for name in ("require", "forbid")}
        heads = [_number(head) for head in re.split(r"[;,\s]+", values["without"]) if head]
        parser = self.parser
        usual = parser.parse(text, form, **lists) if heads else None
        if usual:
            usual.explore(constrain=True)  # now: its explanation belongs to the network as it is
            parser = copy(parser)
            what = f"without head{'s' * (len(heads) > 1)} {', '.join(map(str, heads))}"
            parser.info = {**parser.info, "name": f"{parser.info.get('name', 'a parser')} {what}"}
        with parser.without(heads) if heads else nullcontext():
            results = parser.parse(text, form, **lists).alternatives(k)
            yield usual, results, whole_number("tree", _number(values["tree"]), 1, len(results)) - 1, parts


def _number(text: str) -> int | str:
    return int(text) if re.fullmatch("-?[0-9]{1,20}", text) else text


def check_length(text: str, form: str) -> None:
    """Raise ParameterError for a sentence that is too long to be parsed while someone waits."""
    sentence = read_line(text, cast(Form, form))
    if sentence is not None and len(sentence) > PAGE_WORDS:
        raise ParameterError(f"the sentence has {len(sentence)} words", remedy=f"Give at most {PAGE_WORDS} words.")


def check_columns(columns: Collection[str]) -> None:
    """Raise ParameterError for a column that there is not."""
    if unknown := [name for name in columns if name not in CAUSES]:
        raise ParameterError(f"columns cannot be {unknown[0]!r}", remedy=f"Give a list of these: {', '.join(CAUSES)}.")


def causes(
    hits: Hits,
    results: Mapping[int, Any],
    given: Mapping[int, Sentence],
    source: Callable[[], AttributionSource],
    columns: Sequence[str],
) -> pd.DataFrame:
    """Return a row for each match, with these columns.

    Args:
        hits: The matches in parses.
        results: The results of the sentences with matches (`lalkit.ParseResult`), by their numbers.
        given: All sentences as they were given, some perhaps with gold trees.
        source: It returns what answers for the parser's label attention.
        columns: Some of `CAUSES`.
    """
    import pandas as pd

    from lalkit.interpret.errors import classify
    from lalkit.interpret.source import gold_spans

    parses = {number: result.sentence for number, result in results.items() if result.sentence.constituents}
    values: dict[str, dict] = {name: {} for name in CAUSES}  # of each: number of the sentence, start, end -> value
    if parses and "top_head" in columns:
        layer, numbers = source(), list(parses)
        ranked = layer.ranked(layer.look(list(parses.values())))
        tops = [layer.head_labels[head] if layer.head_labels else int(head) for head in ranked.top(layer.top_norm)]
        spans = ranked.spans[["sentence", "start", "end"]].itertuples(index=False, name=None)
        values["top_head"] = {(numbers[place], *span): top for (place, *span), top in zip(spans, tops)}
    for number, parse in parses.items():
        if "probability" in columns:
            sure = results[number].with_confidence().prediction
            probabilities = zip(sure.spans, sure.confidence.spans)
            values["probability"] |= {(number, *span[:2]): p for span, p in probabilities}
        if "gold" in columns and given[number].constituents is not None:
            expected, predicted = (set(spans) for spans in gold_spans([given[number], parse]))
            classes = {here: kind for kind, _, here in classify(expected - predicted, predicted - expected) if here}
            values["gold"] |= {(number, *span[:2]): classes.get(span, "right") for span in predicted}
    rows = [[values[name].get((n, m.start, m.end)) for name in columns] for n, _, m in hits.matches]
    return pd.DataFrame(rows, columns=list(columns))
