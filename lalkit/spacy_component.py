"""lalkit in a spaCy pipeline: heads, arc labels, tags and sentences of a Doc, and its constituents.

    nlp = spacy.blank("en")
    nlp.add_pipe("lalkit", config={"model": "en-news-span"})
    print(next(nlp("She saw the man.").sents)._.parse_string)

Constituents are a group of spans in pre-order, `doc.spans["constituents"]`, so spaCy keeps them by itself: in bytes, in a
DocBin and between processes. The label of a unary chain is S::VP. spaCy keeps white space as tokens. They are not words: a
constituent neither begins nor ends with one, and their head is the word before them. With
`nlp.tokenizer = lalkit.spacy_component.Tokenizer(nlp.vocab)` the tokens are those of `lalkit parse`, which the parsers learned.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from multiprocessing import parent_process
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from spacy.attrs import DEP, HEAD
from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup, Token
from spacy.util import DummyTokenizer, get_words_and_spaces, minibatch
from spacy.vocab import Vocab

from lalkit.errors import LalkitError
from lalkit.training.named import find
from lalkit.treebank.text import read_text, split_sentences
from lalkit.treebank.tree import UNARY, Sentence, format_tree
from lalkit.treebank.tree import Span as LabelledSpan

if TYPE_CHECKING:
    from lalkit.network.model import Prediction

KEY = "constituents"  # the name of the group of spans


class Tokenizer(DummyTokenizer):
    """Split English text into the tokens of `lalkit parse`. hyphens: whether they split words, as in the treebanks of `en`."""

    def __init__(self, vocab: Vocab, hyphens: bool = True):
        self.vocab, self.hyphens = vocab, hyphens

    def __call__(self, text: str) -> Doc:
        """Return a Doc. Characters between two tokens, such as invisible ones, belong to the first of the two."""
        starts, place = [], 0
        for word in (word for sentence in read_text(text, hyphens=self.hyphens) for word in sentence.words):
            starts.append(place := text.index(word, place))
            place += len(word)
        ends = [*starts[1:], len(text)]
        words = [text[start:end].strip() for start, end in zip([0, *ends], ends)] if text.strip() else []
        return Doc(self.vocab, *get_words_and_spaces(words, text))


@Language.factory(
    "lalkit",
    assigns=["doc.spans", "doc.sents", "token.head", "token.dep", "token.tag", "token.pos", "span._.constituents"],
    default_config={"model": "default", "confidence": False, "split_sentences": True},
)
class SpacyComponent:
    """Parse the sentences of Docs. The parser is loaded when the first Doc comes, in each process by itself."""

    def __init__(self, nlp: Language | None, name: str, model: str, confidence: bool, split_sentences: bool):
        """Find the parser.

        Args:
            nlp, name: The pipeline and the component's name in it, from spaCy.
            model: The parser, as for `lalkit.load`.
            confidence: Also say how probable constituents and arcs are: `span._.confidence` and `token._.confidence`.
            split_sentences: Split a Doc without sentence boundaries by lalkit's rules for English.

        Raises:
            ModelError: There is no such parser.
        """
        self.options = model, confidence, split_sentences
        self.folder = find(model)

    def __reduce__(self):
        return SpacyComponent, (None, "", *self.options)

    @cached_property
    def parser(self):
        """The parser, a `lalkit.Parser`, which can also explain sentences."""
        # Not before: spaCy imports this file for every pipeline, also for those without lalkit.
        from lalkit.api import Parser

        return Parser.load(self.folder)

    def __call__(self, doc: Doc) -> Doc:
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Parse Docs, all sentences of `batch_size` Docs together. A Doc without words stays as it is.

        Raises LalkitError for a Doc without sentence boundaries if split_sentences is False.
        """
        for docs in minibatch(stream, batch_size):
            parts = [[(span, words_of(span)) for span in self.sentences(doc)] for doc in docs]
            predictions = iter(self.predictions([words for spans in parts for _, words in spans if words]))
            for doc, spans in zip(docs, parts):
                if spans:
                    annotate(doc, [(span, words, next(predictions) if words else None) for span, words in spans])
                yield doc

    def predictions(self, sentences: list[list[Token]]) -> "list[Prediction]":
        """Parse lists of words."""
        options: dict[str, Any] = {"temperature": self.parser.model.temperature} if self.options[1] else {}
        # Each process of n_process has one core. After a fork, torch may wait for its threads for ever.
        if parent_process():
            torch.set_num_threads(1)
            options["threads"] = 1
        results = self.parser.parse_all([list(map(text_of, words)) for words in sentences], **options)
        return [result.prediction for result in results]

    def sentences(self, doc: Doc) -> list[Span]:
        """Return the sentences of a Doc: by the boundaries that it has, or else by lalkit's rules."""
        words = words_of(doc)
        if not words or doc.has_annotation("SENT_START"):
            return list(doc.sents) if words else []
        if not self.options[2]:
            remedy = 'Put a "sentencizer" before lalkit, or give lalkit the setting split_sentences=True.'
            raise LalkitError(f"the Doc {doc.text[:40]!r} has no sentence boundaries", remedy=remedy)
        starts, place = [], 0
        for part in split_sentences(doc.text):
            place = max(place, doc.text.find(part, place))
            starts.append(place)
            place += len(part)
        numbers = [bisect_right(starts, token.idx) for token in words]
        firsts = {token.i for token, number, last in zip(words[1:], numbers[1:], numbers) if number != last}
        for token in doc:
            token.is_sent_start = token.i in firsts or token.i == 0
        return list(doc.sents)


def annotate(doc: Doc, parses: "list[tuple[Span, list[Token], Prediction | None]]") -> None:
    """Write parses into a Doc. parses: (sentence, its words, their parse; None for a sentence without words)."""
    heads, spans = np.zeros(len(doc), np.int64), []
    kind = next(prediction.sentence for *_, prediction in parses if prediction)
    for span, words, prediction in parses:
        last = (words or span)[0]
        for token in span:
            if token.is_space:
                heads[token.i], token.tag_, token.dep_ = last.i - token.i, "_SP", "dep" if kind.heads else ""
                token.pos_ = "SPACE" if kind.upos else token.pos_
            else:
                last = token
        if prediction is None:
            continue
        parse, confidence = prediction.sentence, prediction.confidence
        for k, token in enumerate(words):
            token.tag_ = parse.tags[k] if parse.tags else token.tag_
            token.pos_ = parse.upos[k] if parse.upos else token.pos_
            if parse.heads:
                head = parse.heads[k]
                heads[token.i] = words[head - 1].i - token.i if head else 0
                token.dep_ = "ROOT" if not head else parse.arc_labels[k] if parse.arc_labels else "dep"
            if confidence and confidence.arcs:
                token._.confidence = confidence.arcs[k]
        chances = {tuple(span[:2]): p for span, p in zip(prediction.spans, confidence.spans)} if confidence else {}
        for start, end, label in parse.constituents or ():
            spans.append(Span(doc, words[start].i, words[end - 1].i + 1, label))
            spans[-1]._.lalkit_probability = chances.get((start, end))
    if kind.heads:  # with both columns, spaCy also sets the boundaries of sentences
        values: Any = np.stack([heads.astype(np.uint64), doc.to_array(DEP)], axis=1)
        doc.from_array([HEAD, DEP], values)
    doc.spans[KEY] = SpanGroup(doc, name=KEY, attrs={"places": [token.idx for token in doc]}, spans=spans)


def words_of(tokens: Iterable[Token]) -> list[Token]:
    """Return the tokens that are not white space."""
    return [token for token in tokens if not token.is_space]


def text_of(token: Token) -> str:
    """Return the text of a token for the parser, without the spaces that merged tokens have."""
    return "_".join(token.text.split())


def order(span: Span) -> tuple[int, int]:
    """Return the key that sorts spans into pre-order."""
    return span.start, -span.end


def constituents(span: Span) -> list[Span]:
    """Return a constituent, or a word, and all constituents and words in it, in pre-order.

    Raises LalkitError for a span that is not a constituent, and in a Doc that was not parsed.
    """
    words = words_of(span)
    if not words:
        raise LalkitError(f"{span.text!r} is white space, and has no constituents", remedy="Ask for a span with words.")
    if KEY not in span.doc.spans:
        remedy = 'Put lalkit into the pipeline, nlp.add_pipe("lalkit"), and make the Doc again.'
        raise LalkitError(f"the Doc of {span.text!r} was not parsed by lalkit", remedy=remedy)
    group, whole = span.doc.spans[KEY], span.doc[words[0].i : words[-1].i + 1]
    places = group.attrs.get("places")  # Doc.from_docs drops them
    if places and (len(places) != len(span.doc) or any(places[token.i] != token.idx for token in whole)):
        problem = f"the tokens of the Doc of {span.text!r} were merged or split after it was parsed"
        raise LalkitError(problem, remedy='Parse it again: nlp.get_pipe("lalkit")(doc).')
    place = bisect_left(group, order(whole), key=order)
    inside = []
    while place < len(group) and group[place].start < whole.end:
        inside.append(group[place])
        place += 1
    if not inside or order(inside[0]) != order(whole):
        if len(words) > 1 and words != words_of(words[0].sent):
            problem = f"{span.text!r} is no constituent"
            raise LalkitError(problem, remedy="The constituents are in doc.spans and sentence._.constituents.")
        inside.insert(0, whole)
    alone = {span.start for span in inside if len(span) == 1}
    return sorted([*inside, *(whole.doc[t.i : t.i + 1] for t in words if t.i not in alone)], key=order)


def labels(span: Span) -> tuple[str, ...]:
    """Return the labels of a constituent, the top one first: one, or several of a unary chain; none for a bare word."""
    label = constituents(span)[0].label_
    return tuple(label.split(UNARY)) if label else ()


def parse_string(span: Span) -> str:
    """Return the brackets of a constituent, on one line."""
    first, *inside = constituents(span)
    words = words_of(first)
    place = {token.i: k for k, token in enumerate(words)}
    spans = (LabelledSpan(place[s.start], place[s.end - 1] + 1, s.label_) for s in (first, *inside) if s.label_)
    tags = tuple(token.tag_ or "XX" for token in words)
    return format_tree(Sentence(tuple(map(text_of, words)), tags, tuple(spans)).tree)


def children(span: Span) -> list[Span]:
    """Return the constituents and words right below a constituent."""
    first, *inside = constituents(span)
    below: list[Span] = []
    for part in inside:
        if not below or part.start >= below[-1].end:
            below.append(part)
    return below


def parent(span: Span) -> Span | None:
    """Return the smallest constituent around a constituent or word; None for the top of a sentence."""
    whole = constituents(span)[0]
    around = [s for s in constituents(whole.sent) if s.start <= whole.start and whole.end <= s.end]
    return max((s for s in around if order(s) != order(whole)), key=order, default=None)


def confidence(span: Span) -> float | None:
    """Return the probability of a constituent; None for a bare word, and if the component has confidence=False."""
    return constituents(span)[0]._.lalkit_probability


# The names are those of benepar. force: benepar, if it was imported before, has them already.
for function in (constituents, labels, parse_string, children, parent):
    Span.set_extension(function.__name__, getter=function, force=True)
    word = lambda token, of=function: of(token.doc[token.i : token.i + 1])  # noqa: E731
    Token.set_extension(function.__name__, getter=word, force=True)
Span.set_extension("confidence", getter=confidence, force=True)
Span.set_extension("lalkit_probability", default=None, force=True)
Token.set_extension("confidence", default=None, force=True)  # of its arc
