"""A small part-of-speech tagger, and tags as a parser will meet them: automatic ones, by jackknifing.

An averaged perceptron (Collins 2002) that goes from left to right with the two tags before as features (cf. Ratnaparkhi 1996). It
needs no features of a language: letters at both ends, the shape, neighbours, and for Chinese the characters of the word. Training
treebanks of the Penn and the Chinese Treebank have automatic tags in the literature: of every tenth of the training part those of
a tagger trained on the other nine.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence

from lalkit.errors import TreebankError
from lalkit.treebank.text import is_chinese, normalise

Tagged = tuple[Sequence[str], Sequence[str]]  # words, tags
EDGE = "<edge>"
SURE, OFTEN = 0.99, 20  # a word that had one tag so often keeps it


class Tagger:
    """Words -> tags."""

    def __init__(self, sentences: Sequence[Tagged], epochs: int = 5, seed: int = 1):
        """Raises TreebankError where there is nothing to learn from."""
        if not sentences:
            raise TreebankError("there are no tagged sentences to learn from")
        self.known = _sure(sentences)
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
        """The tag of every word."""
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


def jackknife(
    sentences: Sequence[Tagged], folds: int = 10, epochs: int = 5, say: Callable[[str], None] = lambda text: None
) -> Iterator[list[str]]:
    """Automatic tags of every sentence, in order: those of a tagger that was trained on the other folds (every k-th sentence is
    one). Raises TreebankError for fewer sentences than folds."""
    if folds < 2 or len(sentences) < folds:
        raise TreebankError(f"{len(sentences)} sentences cannot be tagged in {folds} folds")
    found: list[list[str]] = [[] for _ in sentences]
    for fold in range(folds):
        tagger = Tagger([s for i, s in enumerate(sentences) if i % folds != fold], epochs)
        for i in range(fold, len(sentences), folds):
            found[i] = tagger(sentences[i][0])
        say(f"tagged fold {fold + 1} of {folds}")
    yield from found


class _Word:
    """What of a word is looked at, worked out once."""

    def __init__(self, word: str):
        self.form = normalise(word)
        letters = self.form
        self.own = [f"w {letters}", f"shape {_shape(letters)}"]
        self.own += [f"suffix {letters[-k:]}" for k in (1, 2, 3) if k <= len(letters)]
        self.own += [f"prefix {letters[:k]}" for k in (1, 2) if k <= len(letters)]
        if is_chinese(letters):
            self.own += [f"char {letter}" for letter in letters] + [f"length {min(len(letters), 4)}"]


def _features(words: list[_Word], i: int, tags: list[str]) -> list[str]:
    before = words[i - 1].form if i else EDGE
    after = words[i + 1].form if i + 1 < len(words) else EDGE
    last = tags[-1] if tags else EDGE
    last_two = f"{tags[-2]} {last}" if len(tags) > 1 else f"{EDGE} {last}"
    return [
        "always", *words[i].own, f"t {last}", f"tt {last_two}", f"tw {last} {words[i].form}", f"before {before}",
        f"after {after}", f"before suffix {before[-3:]}", f"after suffix {after[-3:]}",
    ]  # fmt: skip


def _shape(word: str) -> str:
    """Xx-d for Mid-80: runs of one kind of character are one letter."""
    kinds = ["d" if c.isdigit() else "X" if c.isupper() else "x" if c.isalpha() else c for c in word[:12]]
    return "".join(kind for i, kind in enumerate(kinds) if i == 0 or kind != kinds[i - 1])


def _sure(sentences: Sequence[Tagged]) -> dict[str, str]:
    """Words that nearly always had one tag: most of a text, and no need to compute."""
    counts: dict[str, Counter] = defaultdict(Counter)
    for words, tags in sentences:
        for word, tag in zip(words, tags):
            counts[normalise(word)][tag] += 1
    best = {word: found.most_common(1)[0] for word, found in counts.items() if found.total() >= OFTEN}
    return {word: tag for word, (tag, count) in best.items() if count >= SURE * counts[word].total()}
