"""The shipped parsers: their cards, and how they are shipped and checked."""
