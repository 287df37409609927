"""Parsers made ready for others: chosen among runs, halved, described by a card whose figures can be checked."""
