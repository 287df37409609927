"""Write SVG as plain strings, and turn a finished drawing into PNG or PDF.

All drawings of sentences use the pieces of this file: one function for an element, colours, and text whose width is known in
advance, so that a layout can leave room for it. The fonts are a plain sans-serif and, for Chinese, the first font of a list
that the machine has. Matplotlib is imported only where it is needed, so that drawing an SVG stays fast.
"""

from __future__ import annotations

import contextlib
import io
import re
import unicodedata
import warnings
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING
from xml.etree import ElementTree
from xml.sax import saxutils

from lalkit.treebank.text import is_chinese

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# From the colour-blind-safe palette of Okabe and Ito (2008). Where a colour has a meaning, a weight or a shape has it, too.
BLACK, GREY, BLUE, VERMILION = "#000000", "#595959", "#0072B2", "#B34700"
LINE = "#8C8C8C"
LONGEST = 32  # a longer word is cut to this many characters; its tooltip has all of it

# Widths of characters in em. They are a little larger than those of Helvetica and Arial, so that a fallback font still fits.
WIDTHS = (("ijl.,:;'`|!Iíìîï·", 0.32), ('frt()[]{}-/\\" *', 0.42), ("mwMWQO%@&GD—…œæ", 0.95))
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

LATIN = ("Helvetica", "Arial", "Noto Sans")
# Fonts of Debian and other free ones, then of macOS and Windows. Matplotlib knows only the first name of a collection (.ttc)
# of fonts; of Noto's collection that is the Japanese one, which has the Chinese characters too.
CHINESE = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Source Han Sans SC", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei",
    "Droid Sans Fallback", "PingFang SC", "PingFang TC", "Heiti SC", "Hiragino Sans GB", "Microsoft YaHei",
    "Microsoft JhengHei", "SimHei",
)  # fmt: skip
INSTALL = "install Noto Sans CJK (Debian, Ubuntu: apt install fonts-noto-cjk; or from fonts.google.com/noto)"
CSS = ", ".join(f"'{name}'" if " " in name else name for name in (*LATIN, *CHINESE)) + ", sans-serif"  # for any browser

NAMESPACE = "{http://www.w3.org/2000/svg}"
INCH = 72  # pixels of a drawing per inch of paper: one pixel is one point, so text is printed in its own size
NARROWER = 0.88  # drawings are laid out for Helvetica, which is narrower than matplotlib's DejaVu Sans by this factor


def element(tag: str, *content: str, **attributes: str | float | None) -> str:
    """Return one SVG element.

    Args:
        tag: its name.
        content: markup inside the element; without any, the element closes itself.
        attributes: in the order in which they are written. An underscore becomes a hyphen (`font_size`), and one at the end is
            dropped (`class_`). Numbers are written by `number`; strings are escaped; None leaves the attribute out.
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(value) if isinstance(value, str) else number(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{written}>{''.join(content)}</{tag}>" if content else f"<{tag}{written}/>"


def document(width: float, height: float, parts: Iterable[str], title: str) -> str:
    """Return a complete SVG on a white ground, with a title for screen readers."""
    ground = element("rect", width=width, height=height, fill="white")
    content = "\n".join(["", element("title", escape(title)), ground, *parts, ""])
    view = f"0 0 {number(width)} {number(height)}"
    return element(
        "svg", content, xmlns=NAMESPACE[1:-1], width=width, height=height, viewBox=view, role="img", aria_label=title,
        font_family=CSS,
    ) + "\n"  # fmt: skip


def text(x: float, y: float, value: str, size: float, *, colour: str = BLACK, bold: bool = False, tip: str = "") -> str:
    """Return text that is centred at x and has its baseline at y. tip: shown where a pointer rests."""
    title = element("title", escape(tip)) if tip else ""
    weight = "bold" if bold else None
    return element(
        "text", title, escape(value), x=x, y=y, font_size=size, fill=colour, font_weight=weight, text_anchor="middle",
    )  # fmt: skip


def path(commands: str, *, colour: str = LINE, width: float = 1.2, kind: str = "") -> str:
    """Return an open line. kind: its class, for style sheets."""
    return element("path", class_=kind or None, d=commands, fill="none", stroke=colour, stroke_width=width)


def number(value: float) -> str:
    """Write a coordinate with at most one decimal: 12, 12.5."""
    return f"{value:.1f}".removesuffix(".0")


def escape(string: str) -> str:
    """Return the text as XML: & < > and quotes escaped, and U+FFFD for characters that XML cannot hold."""
    return saxutils.escape(NOT_XML.sub("\ufffd", string), {'"': "&quot;"})


def shorten(word: str) -> str:
    """Return at most LONGEST characters of a word, with an ellipsis in place of the rest."""
    return word if len(word) <= LONGEST else word[: LONGEST - 1] + "…"


def text_width(string: str, size: float) -> float:
    """Estimate the width of a text in pixels, in a sans-serif font. The estimate is too large more often than too small."""
    return size * sum(map(_em, string))


def _em(character: str) -> float:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Me", "Mn"):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    usual = 0.74 if character.isupper() else 0.6
    return next((width for characters, width in WIDTHS if character in characters), usual)


@cache
def chinese() -> str | None:
    """Return the name of the font in which matplotlib draws Chinese, or None if the machine has none of the list."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    # Matplotlib's list of fonts is as old as its first use on this machine.
    for file in set(findSystemFonts()) - {font.fname for font in fontManager.ttflist}:
        with contextlib.suppress(Exception):  # skip a damaged file
            fontManager.addfont(file)
    names = {font.name for font in fontManager.ttflist}
    return next((name for name in CHINESE if name in names), None)


def use_fonts(words: Iterable[str] = ()) -> None:
    """Set matplotlib's fonts: its own first, then the one for Chinese characters.

    Warns, and says what to install, if the words need a font for Chinese and there is none.
    """
    from matplotlib import rcParams

    font = chinese()
    if font is None and any(map(is_chinese, words)):
        warnings.warn(f"there is no font for Chinese, so boxes are drawn instead; {INSTALL}", stacklevel=3)
    rcParams["font.family"] = ["DejaVu Sans", *filter(None, [font])]


def redraw(drawing: str, form: str = "png") -> bytes:
    """Return an SVG of `draw_tree`, `draw_arcs` or `draw_joint` as the bytes of a "pdf", or of a "png" of 3 times its size."""
    picture = io.BytesIO()
    as_figure(drawing).savefig(picture, format=form, dpi=3 * INCH)
    return picture.getvalue()


def as_figure(drawing: str) -> Figure:
    """Return a drawing as a matplotlib figure of the same size. It may hold texts, rectangles, polygons and paths only."""
    from matplotlib.figure import Figure
    from matplotlib.patches import PathPatch, Polygon, Rectangle

    root = ElementTree.fromstring(drawing)
    use_fonts(item.text or "" for item in root.iter())
    width, height = float(root.get("width")), float(root.get("height"))
    figure = Figure(figsize=(width / INCH, height / INCH))
    axis = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axis.axis("off")
    for item in root:
        get = item.get
        x, y, fill = float(get("x", 0)), float(get("y", 0)), get("fill")
        match item.tag.removeprefix(NAMESPACE):
            case "rect":
                axis.add_patch(Rectangle((x, y), float(get("width")), float(get("height")), color=fill, lw=0))
            case "polygon":
                corners = [tuple(map(float, pair.split(","))) for pair in get("points").split()]
                axis.add_patch(Polygon(corners, color=fill, lw=0))
            case "path":
                line = {"edgecolor": get("stroke"), "facecolor": "none", "lw": float(get("stroke-width"))}
                axis.add_patch(PathPatch(_matplotlib_path(get("d")), capstyle="butt", **line))
            case "text":
                visible = (item.text or "") + "".join(child.tail or "" for child in item)  # a <title> is a tooltip
                size, weight = NARROWER * float(get("font-size")), get("font-weight", "normal")
                place = {"ha": "center", "va": "baseline"}
                axis.text(x, y, visible, place, color=fill, size=size, weight=weight, parse_math=False)
    return figure


def _matplotlib_path(commands: str):
    """Return matplotlib's Path for an open line of the absolute commands M, L, H, V and Q."""
    from matplotlib.path import Path

    points, codes, x, y = [], [], 0.0, 0.0
    for command, numbers in re.findall(r"([MLHVQ])([^MLHVQ]*)", commands):
        values = [float(value) for value in numbers.replace(",", " ").split()]
        values = {"H": [values[0], y], "V": [x, values[0]]}.get(command, values)
        pairs = list(zip(values[::2], values[1::2]))
        codes += [{"M": Path.MOVETO, "Q": Path.CURVE3}.get(command, Path.LINETO)] * len(pairs)
        points += pairs
        x, y = pairs[-1]
    return Path(points, codes)
