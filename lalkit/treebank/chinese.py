"""Chinese text: what is Chinese, and which ways of writing a word are one."""

from __future__ import annotations

import re
import unicodedata

HAN = re.compile("[\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
# A hyphenation point, a bullet, a Katakana dot: all are written between the parts of a foreign name.
DOTS = dict.fromkeys(map(ord, "\u2027\u2022\u2219\u22c5\u30fb\uff65"), "·")


def is_chinese(text: str) -> bool:
    """Whether a Han character is in it (Japanese Kanji too)."""
    return HAN.search(text) is not None


def normalise(word: str) -> str:
    """One form for a word that can be written in several: full-width letters, digits and signs as half-width ones, compatibility
    ideographs as those they stand for, one middle dot. Simplified and traditional characters are different words.

    For looking a word up; in trees and results words stay as they were written.
    """
    if word.isascii():
        return word
    narrow = "".join(chr(ord(c) - 0xFEE0) if "\uff01" <= c <= "\uff5e" else c for c in word)
    return unicodedata.normalize("NFC", narrow).translate(DOTS)
