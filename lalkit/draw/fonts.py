"""Which fonts text is drawn in: a plain sans-serif, and for Chinese the first of a list that this machine has."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable
from functools import cache

from lalkit.treebank.chinese import is_chinese

LATIN = ("Helvetica", "Arial", "Noto Sans")
# Debian's and other free ones, macOS, Windows. Of a collection (.ttc) matplotlib knows the first name only, the Japanese one.
CHINESE = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Source Han Sans SC", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei",
    "Droid Sans Fallback", "PingFang SC", "PingFang TC", "Heiti SC", "Hiragino Sans GB", "Microsoft YaHei",
    "Microsoft JhengHei", "SimHei",
)  # fmt: skip
INSTALL = "install Noto Sans CJK (Debian, Ubuntu: apt install fonts-noto-cjk; or from fonts.google.com/noto)"
CSS = ", ".join(f"'{name}'" if " " in name else name for name in (*LATIN, *CHINESE)) + ", sans-serif"  # any browser


@cache
def chinese() -> str | None:
    """The font that matplotlib draws Chinese in, or None where it finds none."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    found = _first({font.name for font in fontManager.ttflist})
    if found is None:  # matplotlib remembers which fonts there were when it was first used
        known = {font.fname for font in fontManager.ttflist}
        for path in set(findSystemFonts()) - known:
            with contextlib.suppress(Exception):  # a damaged file is no font
                fontManager.addfont(path)
        found = _first({font.name for font in fontManager.ttflist})
    return found


def _first(names: set[str]) -> str | None:
    return next((name for name in CHINESE if name in names), None)


def use(words: Iterable[str] = ()) -> list[str]:
    """Sets matplotlib's fonts, character by character: its own, then that for Chinese. Warns, with what to install, where there
    is none and the words need one."""
    from matplotlib import rcParams

    found = chinese()
    if found is None and any(map(is_chinese, words)):
        warnings.warn(f"no font for Chinese is found, so boxes are drawn; {INSTALL}", stacklevel=3)
    rcParams["font.family"] = ["DejaVu Sans", *filter(None, [found])]
    return rcParams["font.family"]
