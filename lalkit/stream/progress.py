"""How far, how fast, how long still: a line of text every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable


class Progress:
    """Counts sentences and words done; says so every `every` seconds, and at the end if it said anything or `always`.

    size: bytes of the input, for the time left; done: sentences, words and bytes of an earlier run, which count as done but
    not for the rate.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        size: int | None = None,
        done: tuple[int, int, int] = (0, 0, 0),
        always: bool = False,
        every: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.say, self.size, self.every, self.clock = say, size, every, clock
        self.sentences, self.words, self.read = done
        self.read_words, self.before = self.words, self.words
        self.started = self.said = clock()
        self.speaks = always

    def window(self, words: int, read: int) -> None:
        """A window has been read: its words, and the bytes of the input up to its end."""
        self.read_words, self.read = self.words + words, read

    def tick(self, sentences: int, words: int) -> None:
        """These have been parsed."""
        self.sentences += sentences
        self.words += words
        if self.clock() - self.said >= self.every:
            self.said, self.speaks = self.clock(), True
            self.say(f"{self._counts()}{self._left()}")

    def end(self) -> None:
        if self.speaks:
            self.say(f"{self._counts()} in {_duration(self.clock() - self.started)}")

    def rate(self) -> float:
        """Words a second in this run."""
        return (self.words - self.before) / max(self.clock() - self.started, 1e-9)

    def _counts(self) -> str:
        return f"{self.sentences} sentences, {self.words} words, {self.rate():.0f} words/s"

    def _left(self) -> str:
        """Words still to come, by the words per byte so far, at the rate so far."""
        if not self.size or not self.read or not self.rate():
            return ""
        left = max(self.size * self.read_words / self.read - self.words, 0)
        return f", {min(100, 100 * self.words * self.read / (self.read_words * self.size)):.0f} %, " + (
            f"{_duration(left / self.rate())} left"
        )


def _duration(seconds: float) -> str:
    """5 s, 4:05 min, 3:07 h."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return (
        f"{int(seconds) // 60}:{int(seconds) % 60:02d} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d} h"
    )
