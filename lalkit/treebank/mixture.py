"""Mixtures: several treebanks as one, such as `craft:constituents+ewt+gum/news,voyage+sample:constituents*2`.

A mixture joins treebanks by "+". After the name of a treebank can stand ":" with the one layer to use (constituents or
dependencies; without it, all layers it has), and "*" with how often an epoch of training sees its sentences. With *0.5 each
epoch sees half of them, spread evenly, and the next epoch sees other ones.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from lalkit.errors import CorpusError
from lalkit.treebank.tree import Sentence

LAYERS = ("constituents", "dependencies")
# Which labels each named treebank has in its layers; None: it lacks the layer. Equal names mean one set of labels.
LABELS: dict[str, tuple[str | None, str | None]] = {
    "sample": ("Penn", "our English rules"),
    "sample-zh": ("Chinese Treebank", "our Chinese rules"),
    "ptb-sample": ("Penn", "our English rules"),
    "craft": ("Penn", "Stanford style"),
    "ewt": (None, "Universal Dependencies"),
    "gum": ("Penn", "Universal Dependencies"),
    "sinica": ("Sinica", "Sinica roles"),
}
SILVER = "silver.json"  # in a folder of `lalkit data constituents`: which treebank it is, and which parser added constituents
MOST_TIMES = 1000
FORM = (
    "Write NAME, NAME:constituents or NAME:dependencies for each treebank, with + between them, and *2 to see it twice."
)


class Part(NamedTuple):
    """A treebank of a mixture, the task whose layers are used (joint: all that it has), and how often an epoch sees it."""

    name: str
    task: str
    times: float = 1.0

    @property
    def known_as(self) -> str:
        """The name without genres; of a folder, its whole path."""
        name = without_genres(self.name)
        return name if name in LABELS else os.path.abspath(name)


def without_genres(name: str) -> str:
    """Return the name of the corpus: gum/news,voyage -> gum. Any other name or folder stays as it is."""
    return "gum" if name.startswith("gum/") else name


def parts_of(treebank: str, task: str = "joint") -> list[Part]:
    """Return the treebanks of a mixture, or the one treebank that the text names.

    treebank: a mixture, a name or a folder. task: what the parser learns.
    Raises CorpusError if the text is no mixture, if a treebank comes twice or lacks a layer, or if two treebanks have different
    labels in one layer. Of folders the labels are not known.
    """
    if os.path.isdir(treebank) or not set("+:*") & set(treebank):
        parts = [Part(treebank, task)]
    else:
        parts = [_read(text, task, treebank) for text in treebank.split("+")]
    if twice := [part for i, part in enumerate(parts) if part.known_as in [other.known_as for other in parts[:i]]]:
        remedy = "Name it once, with all its genres (gum/news,voyage); *2 after it lets an epoch see it twice."
        raise CorpusError(f"the mixture names {twice[0].known_as} twice", where=treebank, remedy=remedy)
    for number, layer in enumerate(LAYERS):
        _check_labels(parts, number, layer, treebank)
    return parts


def without_silver(treebank: str) -> str:
    """Return a mixture without the folders in which a parser added constituents to another treebank; scores leave them out."""
    parts = treebank.split("+") if not os.path.isdir(treebank) else []
    return "+".join(part for part in parts if not is_silver(_read(part, "joint", treebank).name)) or treebank


def is_silver(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, SILVER))


def _read(text: str, task: str, where: str) -> Part:
    """Return one part: NAME[:LAYER][*TIMES]."""
    match = re.fullmatch(r"(.+?)(?::(\w*))?(?:\*(.*))?", text.strip())
    if not match:
        raise CorpusError("a treebank of the mixture has no name", where=where, remedy=FORM)
    name, layer, times = match.groups()
    if layer not in (None, *LAYERS):
        raise CorpusError(f"there is no layer {layer!r}", where=where, remedy=FORM)
    if layer and task not in ("joint", layer):
        remedy = f"Leave {name} out of the mixture, or write it without :{layer}."
        raise CorpusError(f"{name}:{layer} has no {task}, which the parser learns alone", where=where, remedy=remedy)
    try:
        number = float(1 if times is None else times)
    except ValueError:
        number = 0.0
    if not 0 < number <= MOST_TIMES:
        remedy = f"Give a number above 0 and at most {MOST_TIMES}, such as *2 or *0.5."
        raise CorpusError(f"an epoch cannot see {name} {times!r} times", where=where, remedy=remedy)
    return Part(name, layer or task, number)


def _check_labels(parts: list[Part], number: int, layer: str, where: str) -> None:
    """Raise CorpusError if a part that is named lacks a layer that it must give, or if parts have different labels in it."""
    labels: dict[str, Part] = {}
    for part in parts:
        known = part.known_as in LABELS
        if known and part.task == layer and not LABELS[part.known_as][number]:
            other = LAYERS[1 - number]
            remedy = f"Use its {other} (--task {other}), or another treebank."
            raise CorpusError(f"{part.name} has no {layer}", where=where, remedy=remedy)
        if known and part.task in ("joint", layer) and (name := LABELS[part.known_as][number]):
            labels.setdefault(name, part)
    if len(labels) > 1:
        (first, one), (second, two) = list(labels.items())[:2]
        other = LAYERS[1 - number]
        usable = [part.name for part in (one, two) if part.task == "joint" and LABELS[part.known_as][1 - number]]
        problem = f"the {layer} of {one.name} and {two.name} have different labels: {first}, and {second}"
        remedy = f"Use the {other} alone of one of them: {usable[0]}:{other}." if usable else "Leave one of them out."
        raise CorpusError(problem, where=where, remedy=remedy)


def layers_of(sentences: Sequence[Sentence], task: str) -> list[Sentence]:
    """Return the sentences with only those layers that a task learns and scores."""
    if task == "dependencies":
        return [replace(s, constituents=None) for s in sentences]
    if task == "constituents":
        return [replace(s, heads=None, arc_labels=None) for s in sentences]
    return list(sentences)


def seen_in(sentences: Sequence[Sentence], times: float, epoch: int) -> list[Sentence]:
    """Return what an epoch sees of these sentences: with `times` 2.5, all of them twice and half of them once more.

    The share is spread evenly, and each epoch takes it one sentence later than the epoch before.
    """
    whole, share = divmod(times, 1)
    count = min(len(sentences), max(round(share * len(sentences)), share > 0))
    some = [sentences[(i * len(sentences) // count + epoch) % len(sentences)] for i in range(count)]
    return [*sentences] * int(whole) + some
