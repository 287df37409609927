"""What a drawing says, read back from its SVG: texts with the boxes they fill, lines as straight pieces."""

import io
import re
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from matplotlib.figure import Figure
from matplotlib.image import imread

from lalkit.draw.pages import png
from lalkit.draw.svg import text_width

SVG = "{http://www.w3.org/2000/svg}"


@dataclass(frozen=True)
class Box:
    text: str
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


def read(drawing: str) -> tuple[ElementTree.Element, list[Box]]:
    """The parsed document and the box of every visible text: from the top of its capitals to its baseline."""
    root = ElementTree.fromstring(drawing)
    boxes = []
    for item in root.iter(f"{SVG}text"):
        shown = "".join([item.text or "", *(child.tail or "" for child in item)])
        x, y, size = (float(item.get(key)) for key in ("x", "y", "font-size"))
        half = text_width(shown, size) / 2
        boxes.append(Box(shown, x - half, y - 0.72 * size, x + half, y))
    return root, boxes


def lines(root: ElementTree.Element) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Every straight piece of every path; a rounded corner counts as the line between its ends."""
    pieces = []
    for item in root.iter(f"{SVG}path"):
        x = y = 0.0
        for command, numbers in re.findall(r"([MLHVQ])([^MLHVQ]*)", item.get("d")):
            values = [float(v) for v in numbers.replace(",", " ").split()]
            new = (values[-1], y) if command == "H" else (x, values[-1]) if command == "V" else tuple(values[-2:])
            if command != "M":
                pieces.append(((x, y), new))
            x, y = new
    return pieces


def crosses(piece, box: Box) -> bool:
    """Whether a straight piece passes through a box (Liang and Barsky's clipping)."""
    (x1, y1), (x2, y2) = piece
    near, far = 0.0, 1.0
    for delta, low, high in ((x2 - x1, box.left - x1, box.right - x1), (y2 - y1, box.top - y1, box.bottom - y1)):
        if abs(delta) < 1e-9:
            if low >= 0 or high <= 0:
                return False
            continue
        a, b = sorted((low / delta, high / delta))
        near, far = max(near, a), min(far, b)
    return near < far


MOST = 0.0002  # of the pixels; a point that is drawn in another place changes more than twice as many


def assert_drawn(figure: Figure, path: Path, most: float = MOST) -> None:
    """Check that the file is the figure, as it is saved at 150 dots an inch: at most this share of its pixels may differ."""
    ours, theirs = imread(io.BytesIO(png(figure))), imread(path)
    assert ours.shape == theirs.shape
    assert (np.abs(ours - theirs).max(axis=-1) > 0.1).mean() < most
