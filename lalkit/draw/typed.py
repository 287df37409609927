"""Answer for a sentence that is typed into a page: the parameters of an address in, and trees and a page to explore out.

The parameters, each a text:

    text      the sentence, or several sentences of raw text
    sentence  which of them to parse, from 1
    form      raw, tokens or tagged
    require   parts that the tree must have: NP(3,5); 2->4 (see `lalkit.chart.constraints`), with spaces or semicolons between
    forbid    parts that it must not have
    without   label heads that are switched off, by number or by label: 3, 7
    k         how many of the best structures to list
    tree      which of them to show, from 1
    against   the label with which the page compares that of each constituent
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import replace
from typing import Any, cast

from lalkit.chart.constraints import items_of
from lalkit.config import PAGE_CHARACTERS, PAGE_TREES, PAGE_WORDS
from lalkit.errors import ParameterError, whole_number
from lalkit.treebank.text import Form, read_line, read_sentence, split_sentences

DEFAULTS = {"text": "", "sentence": "1", "form": "raw", "require": "", "forbid": ""}
DEFAULTS |= {"without": "", "k": "5", "tree": "1", "against": ""}
BETWEEN = re.compile(r"[;\s]+(?![^(]*\))")  # constraints: not the spaces inside NP( 3, 5 )


class TypedSentences:
    """Parse typed sentences, each as the parameters of an address ask.

    Heads that are switched off for one answer are switched off in its thread alone: see `lalkit.network.encoder.Change`.
    """

    def __init__(self, parser: Any):
        """parser: a `lalkit.Parser` of joint trees. Raises ModelError for one without label attention."""
        self.heads, labels = parser.attribution.heads, parser.attribution.head_labels
        self.example = ", ".join(labels[1:3]) or "3, 7"  # 0 is <H>
        self.ready: tuple[Mapping, str] | None = None  # the last question, and its page
        self.parser = parser

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
