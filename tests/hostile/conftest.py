"""No hostile input may keep the tests waiting."""

import signal

import pytest

from tests.hostile.refusals import TREES

SECONDS = 600  # far more than any test needs, because the cores may be busy with other work


@pytest.fixture
def small(tmp_path):
    """A folder with a treebank of two sentences, `small`."""
    (tmp_path / "small").mkdir()
    for part in ("train", "dev"):
        (tmp_path / "small" / f"{part}.trees").write_text(TREES)
    return tmp_path


@pytest.fixture(autouse=True)
def alarm(tiny_parser, tiny_span_parser):
    """End a test that hangs. The parsers are trained before the clock starts. A test may ask for more seconds."""
    if not hasattr(signal, "SIGALRM"):
        yield lambda seconds: None
        return

    def ring(*_):
        pytest.fail("this input was not answered in time")  # no error of Python: lalkit could turn that into a message

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    yield signal.alarm
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
