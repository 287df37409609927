"""lalkit: the Label Attention Layer parser, and tools to look inside it.

>>> import lalkit
>>> parser = lalkit.load("runs/ptb")                          # doctest: +SKIP
>>> print(parser.parse("Select the person driving").tree)     # doctest: +SKIP
"""

import os
from importlib import import_module
from tempfile import gettempdir

if (
    os.name == "posix" and os.path.expanduser("~") == "~"
):  # a container may have neither $HOME nor a name for its user; NLTK would not load
    os.environ["HOME"] = os.path.join(gettempdir(), f"home-{os.getuid()}")

__version__ = "0.2.0"
__all__ = ["LabelAttention", "ParseResult", "Parser", "SpanLabelAttention", "Treebank", "compare", "load"]

_PLACES = {
    "load": "api",
    "compare": "api",
    "Parser": "api",
    "ParseResult": "api",
    "Treebank": "treebank.corpora",
    "LabelAttention": "network.label_attention",
    "SpanLabelAttention": "network.span_attention",
}


def __getattr__(name: str):
    """Load a public name when it is first used, so that `import lalkit.treebank` does not load torch."""
    if name in _PLACES:
        return getattr(import_module(f"lalkit.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'lalkit' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Name what there is to use, for the completion by the TAB key."""
    return [*__all__, "__version__"]
