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
    against   the label with which the page compares that of each constituent
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from lalkit.chart.constraints import items_of
from lalkit.config import PAGE_CHARACTERS, PAGE_TREES, PAGE_WORDS
from lalkit.errors import LalkitError, ModelError, ParameterError, checked, shown, whole_number
from lalkit.network.batches import subwords_of_words
from lalkit.network.encoder import Change
from lalkit.network.model import Prediction, check_joint
from lalkit.network.parser import READING
from lalkit.treebank.text import Form, read_line, read_sentence, read_sentences, split_sentences
from lalkit.treebank.tree import Sentence

if TYPE_CHECKING:
    import pandas as pd

    from lalkit.interpret.source import AttributionSource, Heads
    from lalkit.interpret.tables import SelfAttention
    from lalkit.treebank.search import Hits

logger = logging.getLogger(__name__)
WORD_AXES, HEAD_AXES = ("word", "position", "place", "sub-word"), ("head", "label")  # of which words= and heads= choose
Texts = str | Sentence | Iterable[str | Sequence[str] | Sentence]

CAUSES = ("top_head", "probability", "gold")

DEFAULTS = {"text": "", "sentence": "1", "form": "raw", "require": "", "forbid": ""}
DEFAULTS |= {"without": "", "k": "5", "tree": "1", "against": ""}
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
    prepared: Callable
    network: Any
    vocab: Any
    info: dict
    config: Any
    model: Any

    @property
    def attribution(self) -> AttributionSource:
        """The object that answers for the parser's label attention."""

    def contributions(self, texts: Texts, norm: str = "exact", against: str | None = None, **options) -> pd.DataFrame:
        """Return the parts of each constituent's score, by label head: see `tables.contributions_with_words`.

        >>> table = parser.contributions("It rained.", against="NP")
        >>> table.groupby("label")["value"].sum().map("{:.1f}".format).to_dict()  # the differences of the scores
        {'S': '2.9', 'VP': '7.3'}

        against: compare with this label: why NP and not S?
        """
        from lalkit.interpret import tables

        looks = self._looks(texts, {**options, "against": against})
        return tables.contributions_with_words(self.attribution, *looks, norm, against)

    def attention(self, texts: Texts, label: str | None = None, **options) -> pd.DataFrame:
        """Return the words to which label heads attend: see `tables.attention_with_words`.

        >>> parser.attention("It rained.").groupby("head")["attention"].sum().round(3).unique().tolist()
        [1.0]

        label: look at the words of the constituents of this label.
        """
        from lalkit.interpret import tables

        return tables.attention_with_words(self.attribution, *self._looks(texts, options), label)

    def top_heads(
        self, texts: Texts, label: str | None = None, norm: str | None = None, count: int = 1, **options
    ) -> pd.DataFrame:
        """Return the `count` label heads that contribute most to each constituent: see `tables.top_heads_with_words`.

        >>> parser.top_heads("It rained.")[["label", "head"]].values.tolist()
        [['S', 1], ['NP', 62], ['VP', 5]]
        """
        from lalkit.interpret import tables

        return tables.top_heads_with_words(self.attribution, *self._looks(texts, options), label, norm, count)

    def errors(self, gold: Iterable[Sentence], **options) -> pd.DataFrame:
        """Return a row for each error in the parses of a treebank: see `lalkit.interpret.errors.errors`.

        >>> parser.errors(treebank)["class"].value_counts().to_dict()
        {'wrong arc': 8, 'attachment': 4, 'relabelled': 1, 'missing': 1, 'extra': 1, 'wrong arc label': 1}
        """
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
            batch_words, progress: as in `lalkit.network.model.Model.predict`.

        Raises:
            ModelError: "head", and the parser does not have the paper's layer.
            LalkitError: "span", and the parser has no constituents.
        """
        import pandas as pd

        from lalkit.interpret import tables
        from lalkit.interpret.source import parsed_spans

        layer, sentences = self.attribution if at == "head" else None, sentences_of(texts, self.hyphens)
        if layer:
            layer.check_contexts()
        if not sentences or (at == "span" and self.network.config.task == "dependencies"):
            raise LalkitError("there is nothing to have a vector", "Give sentences; for spans, use another parser.")
        seen: list[Any] = [None] * len(sentences)
        for scored, predictions in self.model.exact.predict(sentences, batch_words=batch_words, progress=progress):
            output = scored.output
            for b, (place, prediction) in enumerate(zip(scored.places, predictions)):
                n, spans = len(prediction.sentence), parsed_spans(prediction)
                x, posts = output.x[b : b + 1, : n + 2], output.posts[b, : n + 1].flatten(1)
                found = {"word": x[0, 1:-1], "boundary": posts}.get(at)
                if layer:
                    found = layer.vectors(x)[0]
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

    def without(self, heads: int | str | Iterable[int | str]) -> Change:
        """Remove label heads inside the `with` block: `with parser.without(heads=[3, 7]):`. In nested blocks, all changes hold.

        >>> with parser.without(heads=[3, 7]):
        ...     changed = parser.parse("It rained.")

        A change holds in the thread that entered the block. A new thread starts without changes.

        Joint ablation: without the four heads that most often lead an NP.

        >>> top = parser.top_heads(treebank, "NP")["head"].value_counts().index[:4]
        >>> with parser.without(heads=top):
        ...     scores = parser.evaluate(treebank)

        heads: numbers, or labels if each label has its own head. Paper's layer: the head's slice of the output is 0. Label
        attention inside the span: the head's evidence is 0; the boundary score of its label stays. A result belongs to the
        network that parsed it: ask for its explanations inside the same block.
        """
        source = self.attribution
        return Change([(source.layer, source.without(heads, torch.zeros(source.heads))["head out"])], self)

    def hooks(self) -> pd.DataFrame:
        """Return the points where `activations` reads values and `patched` changes them: point, axes of the value.

        >>> parser.hooks().iloc[0].tolist()
        ['words', 'batch position dim']

        pretrained.K and encoder.K are layers of self-attention. words= chooses on the axis position (0 is START), word, place
        (between words) or sub-word (the word's), and heads= on the axis head or label.
        """
        import pandas as pd

        rows = [(name, axes) for name, (*_, axes) in self.network.hook_points().items()]
        return pd.DataFrame(rows, columns=["point", "axes"])

    def activations(self, texts: Texts, points: str | Iterable[str]) -> list[dict[str, Tensor]]:
        """Return the values at these hook points, for each sentence alone: `patched` puts them into another sentence.

        >>> parser.activations("It rained.", "words")[0]["words"].shape
        torch.Size([1, 5, 256])

        Raises ParameterError for an unknown point, and at `pretrained` for a sentence that this encoder reads in parts.
        """
        names = [points] if isinstance(points, str) else list(points)
        return [self._record(sentence, names)[1] for sentence in self._sentences(texts)]

    def patched(
        self, points: Mapping[str, Any], words: int | Iterable[int] | None = None, heads: Heads | None = None
    ) -> Change:
        """Change values inside the `with` block, at the hook points that `hooks` lists (activation patching).

        >>> saved = parser.activations("We left.", "encoder.0.contexts")[0]
        >>> with parser.patched(saved, heads=3):
        ...     changed = parser.parse("It rained.")

        Args:
            points: At each point a function of the value, or a tensor to put there, such as a value that `activations` saved.
            words: Change only these words, by their numbers from 1; None: all.
            heads: Change only these heads, by number, or by label if each label has its own head; None: all.

        Raises:
            ParameterError: There is no such point, word or head, the tensor has another shape than the value, or a function
                returns no numbers or parses with this parser.
        """
        known = self.network.hook_points()
        if unknown := [name for name in points if name not in known]:
            raise ParameterError(f"there is no hook point {unknown[0]!r}", remedy="`parser.hooks()` lists them.")
        for kinds, items in ((WORD_AXES, words), (HEAD_AXES, heads)):
            if items is not None and (bare := [name for name in points if not {*kinds} & {*known[name][-1].split()}]):
                raise ParameterError(f"there is no {kinds[0]} to choose at {bare[0]!r}", remedy="See `parser.hooks()`.")
        choose = partial(_patch, partial(_chosen, self.vocab.labels[1:]), words, heads)
        parts = []
        for name, change in points.items():
            layer, point, axes = known[name]
            parts.append((layer, {point: partial(choose, name, axes, change)}))
        return Change(parts, self)

    def self_attention(self, texts: Texts, layer: Literal["encoder", "pretrained"] = "encoder") -> SelfAttention:
        """Return the attention between words of every self-attention head: see `tables.SelfAttention`.

        >>> parser.self_attention("It rained.").arrays[0].shape  # layers, heads; START, 3 words and STOP
        (1, 8, 5, 5)

        layer: the encoder of the parser, or the pretrained encoder before it (as the parser has trained it).

        Raises:
            ModelError: The parser has no such layers, or they give no attention.
            LalkitError: There is no sentence, or one is too long for the pretrained encoder.
        """
        from lalkit.interpret.tables import SelfAttention

        given, parses, arrays = self._sentences(texts), [], []
        names = [name for name in self.network.hook_points() if re.fullmatch(rf"{layer}\.\d+\.attention", name)]
        if not names:
            raise ModelError(f"there is no self-attention to show at {layer!r}", remedy="Choose the other layer.")
        for sentence in given:
            of_word = subwords_of_words(self.model.collator([sentence])).float() if layer == "pretrained" else None
            prediction, values = self._record(sentence, names)
            attention = torch.cat(list(values.values())).cpu()
            if of_word is not None:
                attention = (of_word / of_word.sum(1, keepdim=True)) @ attention @ of_word.T
            parses.append(prediction.sentence)
            arrays.append(attention.numpy())
        return SelfAttention(parses, given, arrays)

    def _record(self, sentence: Sentence, names: Iterable[str]) -> tuple[Prediction, dict[str, Tensor]]:
        """Parse a sentence, and keep the values at hook points."""
        values: dict[str, Tensor] = {}
        if any(name.startswith("pretrained.") for name in names):
            subwords_of_words(self.model.collator([sentence]))  # refuses a sentence that this encoder reads in parts
        with self.patched({name: lambda value, name=name: values.update({name: value}) or value for name in names}):
            (prediction,) = self.model.exact.parse([sentence])
        return prediction, {name: value.clone() for name, value in values.items()}

    def _looks(self, texts: Texts, options: dict) -> tuple[list, list[Sentence]]:
        sentences = self._sentences(texts)
        return self.attribution.look(sentences, **options), sentences

    def _sentences(self, texts: Texts) -> list[Sentence]:
        if sentences := self.prepared(sentences_of(texts, self.hyphens)):
            return sentences
        raise LalkitError("there is nothing to parse", remedy="Give at least one sentence.")


def sentences_of(texts: Texts, hyphens: bool = True) -> list[Sentence]:
    """Return the sentences of a treebank, of a list of texts, or of one text."""
    return read_sentences([texts] if isinstance(texts, str | Sentence) else texts, "raw", hyphens)


def _patch(
    choose: Callable, words: Any, heads: Any, name: str, axes: str, change: Any, value: Tensor, *context: Tensor
) -> Tensor:
    """Return a value with a change in the chosen words and heads. name: of the hook point."""
    try:
        given = change(value) if callable(change) else change
    except (StopIteration, RecursionError) as error:
        problem = f"the function at {name!r} raised {type(error).__name__}"
        raise ParameterError(problem, remedy="It must not parse with the parser that it changes.") from None
    try:
        new = torch.as_tensor(given)
        if new.is_meta or new.is_complex() or new.isnan().any():
            raise ValueError
    except (RuntimeError, TypeError, ValueError):
        problem = f"the function at {name!r} returned" if callable(change) else f"the value at {name!r} is"
        remedy = "Give a tensor of numbers, or a function that returns one."
        raise ParameterError(f"{problem} {shown(given)}", remedy=remedy) from None
    try:
        new = new.to(value).expand_as(value)
    except RuntimeError:
        problem = f"a value of shape {list(new.shape)} does not fit where {list(value.shape)} stands"
        raise ParameterError(problem, remedy="Take it from a sentence with as many words and sub-words.") from None
    for kinds, items in ((WORD_AXES, words), (HEAD_AXES, heads)):
        if items is not None:
            axis = next(k for k, kind in enumerate(axes.split()) if kind in kinds)
            here = choose(axes.split()[axis], items, value.shape[axis]).to(value.device)
            new = torch.where(here.view(-1, *[1] * (value.dim() - axis - 1)), new, value)
    return new


def _chosen(labels: Sequence[str], kind: str, items: Any, size: int) -> Tensor:
    """Return which places of an axis are chosen, [size]."""
    from lalkit.interpret.source import chosen

    if kind == "sub-word":
        of_words = subwords_of_words(READING.get())
        return of_words[chosen(items, len(of_words), "word")].any(0)
    return chosen(items, size, kind, int(kind == "word"), labels if kind == "label" else ())


class TypedSentences:
    """Parse typed sentences, each as the parameters of an address ask.

    Heads that are switched off for one answer are switched off in its thread alone: see `lalkit.network.encoder.Change`.
    """

    def __init__(self, parser: Questions):
        """Raises LalkitError for a parser without joint trees, or without label attention."""
        check_joint(parser.network.config.task)
        self.heads, labels = parser.attribution.heads, parser.attribution.head_labels
        self.example = ", ".join(labels[1:3]) or "3, 7"  # 0 is <H>
        self.ready: tuple[Mapping, str] | None = None  # the last question, and its page
        self.parser: Any = parser

    def trees(self, arguments: Mapping[str, Sequence[str]]) -> dict:
        """Return the sentences, the best structures, the probabilities of the tree that is shown, and what changes cost.

        The page that explores the tree is made, too: it is asked for next.
        """
        with self._parsed(arguments) as (usual, results, number, parts):
            shown, changed = results[number], None
            if usual:
                before, after = (items_of(r.spans, r.sentence.heads) for r in (usual, results[0]))
                changed = {"added": sorted(map(str, after - before)), "missing": sorted(map(str, before - after))}
            self.ready = arguments, self._explored(usual, shown, arguments)
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
            return self._explored(usual, results[number], arguments)

    def data(self, request: Any) -> dict:
        """Answer {"texts": [text or list of words, ...], "form": "raw"} with {"results": [...]}, each as `to_dict` gives it."""
        texts, form = (request.get("texts"), request.get("form", "raw")) if isinstance(request, dict) else (None, "")
        right = isinstance(texts, list) and all(isinstance(text, str | list) for text in texts)
        if not right or not 0 < len(texts) <= PAGE_TREES or request.keys() - {"texts", "form"}:
            problem = f'the request is not {{"texts": [...], "form": ...}} with 1 to {PAGE_TREES} texts'
            raise ParameterError(problem, remedy='Send for example {"texts": ["It works."]}.')
        for text in texts:
            check_length(text if isinstance(text, str) else " ".join(map(str, text)), form)
        return {"results": [result.to_dict() for result in self.parser.parse_all(texts, form)]}

    def _explored(self, usual: Any, shown: Any, arguments: Mapping[str, Sequence[str]]) -> str:
        against = arguments.get("against", [""])[-1].strip() or None
        return (usual or shown).explore(beside=usual and shown, constrain=True, against=against).html

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
            # Now, because its explanation belongs to the network as it is.
            usual.explore(constrain=True, against=values["against"].strip() or None)
            parser = copy(parser)
            what = f"without head{'s' * (len(heads) > 1)} {', '.join(map(str, heads))}"
            info = {**parser.info, "name": f"{parser.info.get('name', 'a parser')} {what}"}
            parser.model = replace(parser.model, info=info)
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
