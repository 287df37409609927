"""lalkit: the Label Attention Layer parser, and tools to look inside it.

>>> import lalkit
>>> parser = lalkit.load("runs/ptb")                          # doctest: +SKIP
>>> print(parser.parse("Select the person driving").tree)     # doctest: +SKIP
"""

import os
import sys
from contextlib import suppress
from importlib import import_module
from tempfile import gettempdir
from typing import TYPE_CHECKING

# A container may have neither $HOME nor a name for its user; NLTK would not load. Cached files of a home folder are run as
# code, so a folder that another user has made is not used.
if os.name == "posix" and os.path.expanduser("~") == "~":
    os.environ["HOME"] = os.devnull
    with suppress(OSError):
        home = os.path.join(gettempdir(), f"home-{os.getuid()}")
        os.makedirs(home, 0o700, exist_ok=True)
        if os.lstat(home).st_uid == os.getuid():
            os.environ["HOME"] = home

__version__ = "0.2.0"
__all__ = [
    "Explanation", "LabelAttention", "LalkitError", "Model", "ParseResult", "Parser", "SpanLabelAttention", "Treebank", "compare",
    "evaluate", "load", "plan", "read_sweep", "register_layer", "study", "sweep", "train",
]  # fmt: skip

_PLACES = {
    "api": "load compare Parser ParseResult", "treebank.corpora": "Treebank", "evaluation.scores": "evaluate",
    "config": "register_layer", "training.loop": "train", "reproduce.sweep": "plan sweep",
    "reproduce.report": "read_sweep", "studies": "study",
    "errors": "LalkitError", "interpret.explanation": "Explanation", "network.model": "Model",
    "network.label_attention": "LabelAttention", "network.span_attention": "SpanLabelAttention",
}  # fmt: skip


if TYPE_CHECKING:  # a type checker reads the names here, and refuses all others
    from lalkit.api import Parser, ParseResult, compare, load
    from lalkit.config import register_layer
    from lalkit.errors import LalkitError
    from lalkit.evaluation.scores import evaluate
    from lalkit.interpret.explanation import Explanation
    from lalkit.network.label_attention import LabelAttention
    from lalkit.network.model import Model
    from lalkit.network.span_attention import SpanLabelAttention
    from lalkit.reproduce.report import read_sweep
    from lalkit.reproduce.sweep import plan, sweep
    from lalkit.studies import study
    from lalkit.training.loop import train
    from lalkit.treebank.corpora import Treebank
else:

    def __getattr__(name: str):
        """Load a public name when it is first used, so that `import lalkit.treebank` does not load torch."""
        for place, names in _PLACES.items():
            if name in names.split():
                return getattr(import_module(f"lalkit.{place}"), name)
        known = sys.modules[__name__]  # Python names the nearest of its names
        raise AttributeError(f"module 'lalkit' has no attribute {name!r}", name=name, obj=known)


def __dir__() -> list[str]:
    """Return the public names, for completion with the TAB key."""
    return [*__all__, "__version__"]
