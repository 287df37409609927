"""The inventories of a parser: span labels, tags, arc labels and, for the encoder from scratch, words and characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property

from lalkit.errors import ModelError
from lalkit.treebank.joint import GROUP
from lalkit.treebank.text import normalise
from lalkit.treebank.tree import Sentence

EMPTY = ""  # span label 0: no constituent
WHOLE = "TOP"
UNKNOWN, PADDING = "<unk>", "<pad>"


@dataclass(frozen=True)
class Vocab:
    """Names by index. labels[0] is the empty label, labels[1] is <H>; words and chars start with padding, unknown.

    Words are those of `normalise`, by which every word is looked up.
    """

    labels: tuple[str, ...]
    tags: tuple[str, ...]
    arc_labels: tuple[str, ...]
    words: tuple[str, ...] = (PADDING, UNKNOWN)
    chars: tuple[str, ...] = (PADDING, UNKNOWN)

    @cached_property
    def label_index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.labels)}

    @cached_property
    def tag_index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.tags)}

    @cached_property
    def arc_label_index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.arc_labels)}

    @cached_property
    def word_index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.words)}

    @cached_property
    def char_index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.chars)}

    @classmethod
    def build(cls, sentences: Iterable[Sentence], min_count: int = 2, task: str = "joint") -> "Vocab":
        """From the training part, most frequent first. A label seen only elsewhere cannot be predicted, and says so.

        task 'dependencies': the only label is one for the whole sentence, which the decoder asks for and nobody sees.
        """
        labels, tags, arcs, words, chars = Counter(), Counter(), Counter(), Counter(), Counter()
        for sentence in sentences:
            labels.update(span.label for span in sentence.constituents or ())
            tags.update(sentence.tags or ())
            arcs.update(sentence.arc_labels or ())
            forms = [*map(normalise, sentence.words)]
            words.update(forms)
            chars.update("".join(forms))
        if task == "dependencies":
            labels = Counter([WHOLE])
        if not labels:
            raise ModelError(
                "no sentence of the training part has constituents",
                remedy="See: lalkit data check. For a treebank of dependencies alone: --set model.task=dependencies",
            )
        return cls(
            (EMPTY, GROUP, *_ranked(labels)),
            _ranked(tags),
            _ranked(arcs),
            (PADDING, UNKNOWN, *_ranked(words, min_count)),
            (PADDING, UNKNOWN, *_ranked(chars)),
        )

    def without_words(self) -> "Vocab":
        """As much of it as a pretrained encoder needs: a corpus's words are not ours to pass on with a parser."""
        return Vocab(self.labels, self.tags, self.arc_labels)

    def to_dict(self) -> dict[str, list[str]]:
        return {name: list(values) for name, values in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: dict) -> "Vocab":
        return cls(**{name: tuple(names) for name, names in values.items()})


def _ranked(counts: Counter, min_count: int = 1) -> tuple[str, ...]:
    return tuple(sorted((k for k, c in counts.items() if c >= min_count), key=lambda k: (-counts[k], k)))
