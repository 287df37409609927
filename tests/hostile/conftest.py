"""No hostile input may keep the tests waiting."""

import signal

import pytest

SECONDS = 20


@pytest.fixture(autouse=True)
def alarm(tiny_parser, tiny_span_parser):
    """End a test that hangs. The parsers are trained before the clock starts."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def ring(*_):
        raise TimeoutError(f"this input was not answered within {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
