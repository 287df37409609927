"""A page on which people choose between two shadings of the same text, and save what they chose as a CSV. One HTML file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

PAGE = Path(__file__).with_name("preference.html")
NEEDED = ("item", "words", "question", "label", "left", "right")


def preference_page(items: Sequence[dict]) -> str:
    """items: item (number), words, question, label, left and right (a weight for every word). Whose side is whose it cannot
    tell, for it is not told: only these fields are written. Raises ValueError for items that lack one, or whose weights are
    not one for each word."""
    for item in items:
        missing = [name for name in NEEDED if name not in item]
        if missing or not len(item["words"]) == len(item["left"]) == len(item["right"]):
            raise ValueError(f"item {item.get('item')}: {missing or 'weights for other words'}")
    data = json.dumps([{name: item[name] for name in NEEDED} for item in items])
    return PAGE.read_text(encoding="utf-8").replace("ITEMS", data.replace("<", "\\u003c"))
