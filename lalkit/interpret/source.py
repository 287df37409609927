"""What both kinds of label attention share when they explain a parse."""

from __future__ import annotations

Span = tuple[int, int, str]  # start, end, label
