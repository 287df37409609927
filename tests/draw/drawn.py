"""Two pictures are the same, but for a few pixels."""

import io
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.image import imread


def assert_drawn(figure: Figure, path: Path) -> None:
    """The file is the figure, as it is saved at 150 dots an inch."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=150)
    picture.seek(0)
    ours, theirs = imread(picture), imread(path)
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).mean() < 0.01
