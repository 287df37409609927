"""The old place of these names."""

from lalkit.interpret.layers import gold_spans, parsed_spans  # noqa: F401
