"""The vocabulary of a parser: span labels, tags, arc labels and, for the encoder from scratch, words and characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property

from lalkit.errors import ModelError
from lalkit.files import check_form
from lalkit.treebank.conllu import is_universal
from lalkit.treebank.joint import GROUP
from lalkit.treebank.text import normalise
from lalkit.treebank.tree import Sentence, Span, check_spans, check_token

EMPTY = ""  # span label 0: no constituent
WHOLE = "TOP"
UNKNOWN, PADDING = "<unk>", "<pad>"
# The first entries of these lists.
FIRST = {"labels": (EMPTY, GROUP), "words": (PADDING, UNKNOWN), "chars": (PADDING, UNKNOWN)}


def _index(field: str) -> cached_property[dict[str, int]]:
    return cached_property(lambda vocab: {name: i for i, name in enumerate(getattr(vocab, field))})


@dataclass(frozen=True)
class Vocab:
    """Names by index. labels[0] is the empty label, labels[1] is <H>; words and chars start with padding and unknown.

    Words have the form that `normalise` gives them, which is also used to look them up.
    """

    labels: tuple[str, ...]
    tags: tuple[str, ...]
    arc_labels: tuple[str, ...]
    words: tuple[str, ...] = (PADDING, UNKNOWN)
    chars: tuple[str, ...] = (PADDING, UNKNOWN)

    label_index = _index("labels")  # each of these: the index of every name
    tag_index = _index("tags")
    arc_label_index = _index("arc_labels")
    word_index = _index("words")
    char_index = _index("chars")

    @classmethod
    def build(cls, sentences: Iterable[Sentence], task: str = "joint") -> "Vocab":
        """Collect the names of the training sentences, most frequent first. Raises ModelError if there is no constituent.

        A word that occurs only once counts as unknown: the network reads only its characters. task 'dependencies': there is one
        label, for the whole sentence; the decoder needs it, and no result shows it.
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
            remedy = "See: lalkit data check. For a treebank of dependencies alone: --set model.task=dependencies"
            raise ModelError("no sentence of the training part has constituents", remedy=remedy)
        texts = (PADDING, UNKNOWN, *_ranked(words, 2)), (PADDING, UNKNOWN, *_ranked(chars))
        return cls((EMPTY, GROUP, *_ranked(labels)), _ranked(tags), _ranked(arcs), *texts)

    @cached_property
    def root(self) -> int | None:
        """The arc label that exactly the root of a sentence has, if the labels are those of Universal Dependencies."""
        return self.arc_label_index.get("root") if is_universal(self.arc_labels) else None

    def to_dict(self) -> dict[str, list[str]]:
        return {name: list(values) for name, values in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: dict) -> "Vocab":
        """Read the result of `to_dict`. Raises ValueError, TypeError or TreebankError for anything else."""
        for name, names in values.items():
            check_form(names, list[str])
            first = FIRST.get(name, ())
            free = name in ("words", "chars")
            usable = all(word.split() == [word] or (word and free) for word in names[len(first) :])
            if tuple(names[: len(first)]) != first or len(set(names)) < len(names) or not usable:
                raise ValueError(f"{name} holds a name twice, or one that cannot be a name")
        vocab = cls(**{name: tuple(names) for name, names in values.items()})
        labels = vocab.labels[len(FIRST["labels"]) :]
        check_spans(tuple(Span(i, i + 1, label) for i, label in enumerate(labels)), len(labels))
        for token in (*vocab.tags, *vocab.arc_labels):  # parses are not checked again: see `Sentence.trusted`
            check_token(token, "tag or arc label")
        return vocab


def _ranked(counts: Counter, least: int = 1) -> tuple[str, ...]:
    return tuple(sorted((k for k, c in counts.items() if c >= least), key=lambda k: (-counts[k], k)))
