"""A figure and a picture of it are the same, but for a few pixels."""

import io
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.image import imread

from lalkit.draw.pages import png

MOST = 0.0002  # of the pixels; a point that is drawn in another place changes more than twice as many


def assert_drawn(figure: Figure, path: Path, most: float = MOST) -> None:
    """Check that the file is the figure, as it is saved at 150 dots an inch: at most this share of its pixels may differ."""
    ours, theirs = imread(io.BytesIO(png(figure))), imread(path)
    assert ours.shape == theirs.shape
    assert (np.abs(ours - theirs).max(axis=-1) > 0.1).mean() < most
