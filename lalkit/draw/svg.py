"""The few pieces of SVG that all drawings share: text of a known width, colours, the document. Pure strings.

Which fonts text is drawn in: a plain sans-serif, and for Chinese the first of a list that this machine has.
"""

from __future__ import annotations

import contextlib
import re
import unicodedata
import warnings
from collections.abc import Iterable
from functools import cache

from lalkit.treebank.text import is_chinese

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


FONT = CSS
# From the colour-blind-safe palette of Okabe and Ito (2008); what colour says is also said by weight or shape.
BLACK, GREY, BLUE, VERMILION = "#000000", "#595959", "#0072B2", "#B34700"
LINE = "#8C8C8C"
LONGEST = 32  # characters of a word that are drawn; the rest is in its tooltip

# Widths in em, a little above those of Helvetica and Arial, so that a fallback font still fits.
NARROW, SLIM, BROAD = set("ijl.,:;'`|!Iíìîï·"), set('frt()[]{}-/\\" *'), set("mwMWQO%@&GD—…œæ")
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text_width(text: str, size: float) -> float:
    """A safe estimate, in pixels, of how wide text is in a sans-serif font; a full-width character counts one em."""
    return size * sum(map(_em, text))


def _em(character: str) -> float:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Me", "Mn"):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    if character in NARROW:
        return 0.32
    if character in SLIM:
        return 0.42
    if character in BROAD:
        return 0.95
    return 0.74 if character.isupper() else 0.6


def escape(text: str) -> str:
    """Text that may stand in XML: & < > and quotes escaped, characters that XML cannot hold replaced by U+FFFD."""
    text = NOT_XML.sub("\ufffd", text)
    for plain, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(plain, entity)
    return text


def shorten(word: str) -> str:
    """At most LONGEST characters; what was cut shows as an ellipsis."""
    return word if len(word) <= LONGEST else word[: LONGEST - 1] + "…"


def number(value: float) -> str:
    """A coordinate with at most one decimal: 12, 12.5."""
    return f"{value:.1f}".removesuffix(".0")


def text(
    x: float,
    y: float,
    string: str,
    size: float,
    *,
    colour: str = BLACK,
    bold: bool = False,
    italic: bool = False,
    tip: str = "",
) -> str:
    """Text centred at x with its baseline at y; tip: what a browser shows under the mouse."""
    style = ' font-weight="bold"' if bold else ""
    style += ' font-style="italic"' if italic else ""
    tooltip = f"<title>{escape(tip)}</title>" if tip else ""
    place = f'x="{number(x)}" y="{number(y)}" font-size="{number(size)}" fill="{colour}"'
    return f'<text {place}{style} text-anchor="middle">{tooltip}{escape(string)}</text>'


def path(commands: str, *, colour: str = LINE, width: float = 1.2, kind: str = "") -> str:
    """An open line."""
    kind = f' class="{kind}"' if kind else ""
    return f'<path{kind} d="{commands}" fill="none" stroke="{colour}" stroke-width="{number(width)}"/>'


def document(width: float, height: float, parts: Iterable[str], title: str) -> str:
    """A whole SVG on white, with its title for screen readers; scales down with the page, never up."""
    w, h = number(width), number(height)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="img" '
            f'aria-label="{escape(title)}" font-family="{FONT}">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{w}" height="{h}" fill="white"/>',
            *parts,
            "</svg>\n",
        ]
    )
