"""Tag parts of speech: a small tagger, and automatic tags for training data by jackknifing.

The tagger is an averaged perceptron (Collins 2002). It goes from left to right and uses the two tags before a word as
features (cf. Ratnaparkhi 1996). Its other features fit any language: letters at both ends of the word, its shape, its
neighbours, and for Chinese its characters.

Jackknifing gives training data the kind of tags that a parser will meet in new text: the data is divided into ten folds, and
each fold is tagged by a tagger that learned from the other nine. The literature does so for the Penn and the Chinese
Treebank.
"""

from __future__ import annotations

import logging
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import groupby

from lalkit.errors import TreebankError
from lalkit.treebank.text import is_chinese, normalise

logger = logging.getLogger(__name__)

Tagged = tuple[Sequence[str], Sequence[str]]  # words, tags
EDGE = "<edge>"
SURE, OFTEN = 0.99, 20  # a word that occurred at least 20 times, 99 % of them with one tag, always gets this tag


class Tagger:
    """A function from words to tags."""

    def __init__(self, sentences: Sequence[Tagged], epochs: int = 5, seed: int = 1):
        """Learn from tagged sentences. Raises TreebankError if there are none."""
        if not sentences:
            raise TreebankError("there are no tagged sentences to learn from")
        self.known = _known_words(sentences)
        self.tags = sorted({tag for _, tags in sentences for tag in tags})
        self.weights: dict[str, dict[str, float]] = defaultdict(dict)
        self._sums: dict[tuple[str, str], float] = defaultdict(float)
        self._since: dict[tuple[str, str], int] = defaultdict(int)
        self._step = 0
        order, pick = list(sentences), random.Random(seed)
        for _ in range(epochs):
            pick.shuffle(order)
            for words, tags in order:
                self._learn(words, tags)
        self._average()

    def __call__(self, words: Sequence[str]) -> list[str]:
        """Return the tag of every word."""
        contexts, tags = [_Word(word) for word in words], []
        for i, word in enumerate(contexts):
            tags.append(self.known.get(word.form) or self._best(_features(contexts, i, tags)))
        return tags

    def _learn(self, words: Sequence[str], gold: Sequence[str]) -> None:
        contexts, tags = [_Word(word) for word in words], []
        for i, (word, right) in enumerate(zip(contexts, gold)):
            guess = self.known.get(word.form)
            if guess is None:
                features = _features(contexts, i, tags)
                guess = self._best(features)
                self._step += 1
                if guess != right:
                    for feature in features:
                        self._change(feature, right, 1.0)
                        self._change(feature, guess, -1.0)
            tags.append(guess)

    def _best(self, features: list[str]) -> str:
        scores: dict[str, float] = defaultdict(float)
        for feature in features:
            for tag, weight in self.weights.get(feature, {}).items():
                scores[tag] += weight
        return max(self.tags, key=lambda tag: (scores.get(tag, 0.0), tag))

    def _change(self, feature: str, tag: str, by: float) -> None:
        old = self.weights[feature].get(tag, 0.0)
        self._sums[feature, tag] += (self._step - self._since[feature, tag]) * old
        self._since[feature, tag] = self._step
        self.weights[feature][tag] = old + by

    def _average(self) -> None:
        for feature, weights in self.weights.items():
            for tag, weight in weights.items():
                total = self._sums[feature, tag] + (self._step - self._since[feature, tag]) * weight
                weights[tag] = total / max(self._step, 1)
        self._sums.clear()
        self._since.clear()


def jackknife(sentences: Sequence[Tagged], folds: int = 10, epochs: int = 5) -> list[list[str]]:
    """Return automatic tags of every sentence. Sentence i is in fold i modulo `folds`; a tagger of the other folds tags it.

    Raises TreebankError if there are fewer sentences than folds.
    """
    if folds < 2 or len(sentences) < folds:
        raise TreebankError(f"{len(sentences)} sentences cannot be tagged in {folds} folds")
    tags: list[list[str]] = [[] for _ in sentences]
    for fold in range(folds):
        tagger = Tagger([s for i, s in enumerate(sentences) if i % folds != fold], epochs)
        for i in range(fold, len(sentences), folds):
            tags[i] = tagger(sentences[i][0])
        logger.info(f"tagged fold {fold + 1} of {folds}")
    return tags


class _Word:
    """A word with the features that do not depend on its neighbours."""

    def __init__(self, word: str):
        self.form = letters = normalise(word)
        self.features = [f"w {letters}", f"shape {_shape(letters)}"]
        self.features += [f"suffix {letters[-k:]}" for k in (1, 2, 3) if k <= len(letters)]
        self.features += [f"prefix {letters[:k]}" for k in (1, 2) if k <= len(letters)]
        if is_chinese(letters):
            self.features += [f"char {letter}" for letter in letters] + [f"length {min(len(letters), 4)}"]


def _features(words: list[_Word], i: int, tags: list[str]) -> list[str]:
    before = words[i - 1].form if i else EDGE
    after = words[i + 1].form if i + 1 < len(words) else EDGE
    last = tags[-1] if tags else EDGE
    last_two = f"{tags[-2]} {last}" if len(tags) > 1 else f"{EDGE} {last}"
    return [
        "always", *words[i].features, f"t {last}", f"tt {last_two}", f"tw {last} {words[i].form}", f"before {before}",
        f"after {after}", f"before suffix {before[-3:]}", f"after suffix {after[-3:]}",
    ]  # fmt: skip


def _shape(word: str) -> str:
    """Return the shape of a word, one letter for each run of characters of one kind: Xx-d for Mid-80."""
    kinds = ("d" if c.isdigit() else "X" if c.isupper() else "x" if c.isalpha() else c for c in word[:12])
    return "".join(kind for kind, _ in groupby(kinds))


def _known_words(sentences: Sequence[Tagged]) -> dict[str, str]:
    """Return the frequent words that nearly always had one tag, with this tag. Most words of a text are such words."""
    counts: dict[str, Counter] = defaultdict(Counter)
    for words, tags in sentences:
        for word, tag in zip(words, tags):
            counts[normalise(word)][tag] += 1
    known = {}
    for word, tags in counts.items():
        (tag, count), *_ = tags.most_common(1)
        if tags.total() >= OFTEN and count >= SURE * tags.total():
            known[word] = tag
    return known
