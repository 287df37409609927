"""Our drawings as PNG or PDF: their SVG, which has texts, rectangles, polygons and paths only, drawn again by matplotlib."""

from __future__ import annotations

import io
import re
from xml.etree import ElementTree

from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Polygon, Rectangle
from matplotlib.path import Path

from lalkit.draw import svg as fonts

NAMESPACE = "{http://www.w3.org/2000/svg}"
INCH = 72  # pixels of a drawing: a pixel is a point, so that text has the size it has in print
NARROWER = 0.88  # drawings are laid out for Helvetica's widths; matplotlib's own font, DejaVu Sans, is that much wider


def redraw(drawing: str, form: str = "png") -> bytes:
    """An SVG of `draw_tree`, `draw_arcs` or `draw_joint` as a picture: png, three pixels for one, or pdf."""
    written = io.BytesIO()
    as_figure(drawing).savefig(written, format=form, dpi=3 * INCH)
    return written.getvalue()


def as_figure(drawing: str) -> Figure:
    """The same as a matplotlib figure of its size."""
    root = ElementTree.fromstring(drawing)
    fonts.use(item.text or "" for item in root.iter())
    width, height = float(root.get("width")), float(root.get("height"))
    sheet = Figure(figsize=(width / INCH, height / INCH))
    axis = sheet.add_axes((0, 0, 1, 1))
    axis.set(xlim=(0, width), ylim=(height, 0))
    axis.axis("off")
    for item in root:
        get = item.get
        if item.tag == f"{NAMESPACE}rect":
            corner = float(get("x", 0)), float(get("y", 0))
            axis.add_patch(Rectangle(corner, float(get("width")), float(get("height")), color=get("fill"), lw=0))
        elif item.tag == f"{NAMESPACE}polygon":
            corners = [tuple(map(float, pair.split(","))) for pair in get("points").split()]
            axis.add_patch(Polygon(corners, color=get("fill"), lw=0))
        elif item.tag == f"{NAMESPACE}path":
            axis.add_patch(_path(get("d"), get("stroke"), float(get("stroke-width"))))
        elif item.tag == f"{NAMESPACE}text":
            shown = (item.text or "") + "".join(child.tail or "" for child in item)  # a <title> is no text of its own
            axis.text(
                float(get("x")), float(get("y")), shown, size=NARROWER * float(get("font-size")), color=get("fill"), ha="center",
                va="baseline", weight=get("font-weight", "normal"), style=get("font-style", "normal"), parse_math=False,
            )  # fmt: skip
    return sheet


def _path(commands: str, stroke: str, width: float) -> PathPatch:
    """An open line of absolute M, L, H, V and Q."""
    points, codes, x, y = [], [], 0.0, 0.0
    for command, numbers in re.findall(r"([MLHVQ])([^MLHVQ]*)", commands):
        values = [float(value) for value in numbers.replace(",", " ").split()]
        values = {"H": [values[0], y], "V": [x, values[0]]}.get(command, values)
        pairs = list(zip(values[::2], values[1::2]))
        codes += [{"M": Path.MOVETO, "Q": Path.CURVE3}.get(command, Path.LINETO)] * len(pairs)
        points += pairs
        x, y = pairs[-1]
    return PathPatch(Path(points, codes), edgecolor=stroke, facecolor="none", lw=width, capstyle="butt")
