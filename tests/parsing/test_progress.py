"""What is said about the progress, by a clock that the test sets."""

import pytest

from lalkit.parsing.run import Progress, _duration


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_line_every_ten_seconds_with_the_time_left():
    said, clock = [], Clock()
    progress = Progress(said.append, size=10_000, clock=clock)
    progress.window(words=100, read=1000)  # ten bytes a word: 1000 words in all
    clock.now = 9.0
    progress.tick(2, 40)
    assert said == []
    clock.now = 10.0
    progress.tick(3, 60)
    assert said == ["5 sentences, 100 words, 10 words/s, 10 %, 1:30 min left"]
    clock.now = 19.0
    progress.tick(1, 10)
    assert len(said) == 1
    clock.now = 20.0
    progress.end()
    assert said[1:] == ["6 sentences, 110 words, 6 words/s in 20 s"]


def test_an_earlier_run_counts_as_done_but_not_for_the_rate():
    said, clock = [], Clock()
    progress = Progress(said.append, size=1000, done=(10, 500, 500), clock=clock)
    progress.window(words=300, read=800)
    clock.now = 10.0
    progress.tick(1, 100)
    assert said == ["11 sentences, 600 words, 10 words/s, 60 %, 40 s left"]


def test_without_a_size_there_is_no_end_to_foretell():
    said, clock = [], Clock()
    progress = Progress(said.append, clock=clock)
    progress.window(10, 100)
    clock.now = 10.0
    progress.tick(1, 10)
    assert said == ["1 sentences, 10 words, 1 words/s"]


@pytest.mark.parametrize("always", [True, False])
def test_what_is_soon_done_is_done_quietly(always):
    said, clock = [], Clock()
    progress = Progress(said.append, size=10, always=always, clock=clock)
    progress.window(10, 10)
    clock.now = 2.0
    progress.tick(1, 10)
    progress.end()
    assert said == (["1 sentences, 10 words, 5 words/s in 2 s"] if always else [])


def test_durations():
    assert [_duration(s) for s in (0.4, 59, 61, 3599, 3600, 11220)] == [
        "0 s", "59 s", "1:01 min", "1:00 h", "1:00 h", "3:07 h",
    ]  # fmt: skip
