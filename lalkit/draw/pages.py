"""Write pages: Markdown and HTML from templates, tables as Markdown, and figures as the bytes of a PNG file."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

PACKAGE = Path(__file__).parents[1]


def render(template: str, **values) -> str:
    """Return the text of a jinja template.

    Args:
        template: its path in the package, such as "models/card.md.jinja". HTML is escaped if the name says .html.
        values: the variables of the template. A missing one is an error. In the template, the filter `markdown` is
            `markdown_table`.
    """
    environment = Environment(
        loader=FileSystemLoader(PACKAGE), autoescape=".html" in template, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters["markdown"] = markdown_table
    return environment.get_template(template).render(values)


def asset(name: str) -> str:
    """Return the text of a file of this folder."""
    return (PACKAGE / "draw" / name).read_text(encoding="utf-8")


def markdown_table(table: pd.DataFrame) -> str:
    """Return a table as Markdown. Bars inside the cells are escaped, and a missing value is an empty cell."""
    cells = table.astype(object).where(table.notna(), "")
    lines = [table.columns, ["---"] * len(table.columns), *cells.itertuples(index=False)]
    texts = ([" ".join(str(cell).split()).replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in texts)


def png(figure: Figure) -> bytes:
    """Return a figure as a PNG file of 150 dots per inch, and close it: pyplot would keep every open figure in memory."""
    from matplotlib import pyplot as plt

    stream = BytesIO()
    figure.savefig(stream, format="png", dpi=150)
    plt.close(figure)
    return stream.getvalue()
