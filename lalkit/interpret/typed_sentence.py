"""Answer for a sentence that is typed into a page: the parameters of an address in, and trees and a page to explore out.

The parameters, each a text:

    text      the sentence
    form      raw, tokens, tagged or brackets
    require   what the tree must have: NP(3,5); 4->2 (see `lalkit.chart.constraints`), with spaces or semicolons between
    forbid    what it must not have
    without   label heads that are switched off, by number or by label: 3, 7
    k         how many of the best trees to list
    tree      which of them to show, from 1
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy, deepcopy
from functools import partial
from typing import TYPE_CHECKING, cast

from lalkit.chart.constraints import items_of, read_brackets
from lalkit.errors import ParameterError, whole_number
from lalkit.network.confidence import check_joint
from lalkit.treebank.text import Form, read_line

if TYPE_CHECKING:
    from lalkit.api import Parser, ParseResult

DEFAULTS = {"text": "", "form": "raw", "require": "", "forbid": "", "without": "", "k": "5", "tree": "1"}
MOST_CHARACTERS, MOST_WORDS, MOST_TREES = 2_000, 150, 20
BETWEEN = re.compile(r"[;\s]+(?![^(]*\))")  # constraints: not the spaces inside NP( 3, 5 )


class TypedSentences:
    """Parse typed sentences, each as the parameters of an address ask.

    The answers come from a copy of the network that shares its weights. So heads that are switched off here are not switched off
    for anyone who uses the parser at the same time.
    """

    def __init__(self, parser: Parser):
        """Raises LalkitError for a parser without joint trees, or without label attention."""
        check_joint(parser.config.model.task)
        self.heads, labels = parser.attribution.heads, parser.attribution.head_labels
        self.example = ", ".join(labels[1:3]) or "3, 7"  # 0 is <H>
        shared = {id(weight): weight for weight in (*parser.network.parameters(), *parser.network.buffers())}
        self.parser = copy(parser)
        self.parser.network = deepcopy(parser.network, shared)
        vars(self.parser).pop("attribution")

    def trees(self, arguments: Mapping[str, Sequence[str]]) -> dict:
        """Return the best trees, the probabilities of the one that is shown, what constraints cost, and what heads change."""
        with self._parsed(arguments) as (usual, results, number):
            shown, changed = results[number], None
            if usual:
                before, after = (items_of(r.spans, r.sentence.heads) for r in (usual, results[0]))
                changed = {"added": sorted(map(str, after - before)), "missing": sorted(map(str, before - after))}
            return {
                "trees": [result.to_dict() for result in results],
                "shown": {"number": number + 1, **shown.with_confidence().to_dict()},
                "price": shown.price._asdict() if shown.constraints.items else None,
                "changed": changed,
            }

    def page(self, arguments: Mapping[str, Sequence[str]]) -> str:
        """Return the page that explores the tree. If heads are switched off, the usual tree stands before it."""
        with self._parsed(arguments) as (usual, results, number):
            shown = results[number]
            return (usual or shown).explore(beside=usual and shown, constrain=True).html

    @contextmanager
    def _parsed(self, arguments: Mapping[str, Sequence[str]]) -> Iterator[tuple[ParseResult | None, list, int]]:
        """Give the usual parse if heads are switched off, the best trees, and the place of the one to show among them.

        Raises ParameterError for a parameter that is unknown, too long or wrong.
        """
        if unknown := sorted(arguments.keys() - DEFAULTS.keys()):
            raise ParameterError("is no parameter", where=unknown[0][:40], remedy=f"Use {', '.join(DEFAULTS)}.")
        values = DEFAULTS | {name: texts[-1] for name, texts in arguments.items() if texts}
        k = whole_number("k", _number(values["k"]), 1, MOST_TREES)
        check_length(values["text"], values["form"])
        lists = {name: list(filter(None, BETWEEN.split(values[name]))) for name in ("require", "forbid")}
        parse = partial(self.parser.parse, values["text"], cast(Form, values["form"]), **lists)
        heads = [_number(head) for head in re.split(r"[;,\s]+", values["without"]) if head]
        usual = parse() if heads else None
        if usual:
            usual.explore()  # now: its explanation belongs to the network as it is
        with self.parser.without(heads) if heads else nullcontext():
            results = parse().alternatives(k)
            yield usual, results, whole_number("tree", _number(values["tree"]), 1, len(results)) - 1


def _number(text: str) -> int | str:
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else text


def check_length(text: str, form: str) -> None:
    """Raise ParameterError for a text that is too long to be parsed while someone waits."""
    remedy = f"Give one sentence of at most {MOST_WORDS} words and {MOST_CHARACTERS:,} characters."
    if len(text) > MOST_CHARACTERS:
        raise ParameterError(f"the text has {len(text):,} characters", remedy=remedy)
    sentence = read_brackets(text)[0] if form == "brackets" else read_line(text, cast(Form, form))
    if sentence is not None and len(sentence) > MOST_WORDS:
        raise ParameterError(f"the sentence has {len(sentence)} words", remedy=remedy)
