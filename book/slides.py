"""Settings of `make slides`: nbconvert makes slides (reveal) of a notebook with its outputs.

A heading begins a slide, other text a slide below it. Pictures and tables appear on the next key, so that a question can be
answered before; code is left out. Nothing is loaded from a network: reveal.js lies beside the slides (book/slides.txt says
where it comes from), and formulas are MathML.
"""

import re

from docutils.utils.math.latex2mathml import tex2mathml
from nbconvert.preprocessors import Preprocessor

c = get_config()  # noqa: F821 (nbconvert supplies it)
FORMULA = re.compile(r"(```.*?```|`[^`\n]*`)|\$\$(.+?)\$\$|\$([^$\n]+?)\$", re.DOTALL)


def write_formula(match: re.Match) -> str:
    """Return code as it is, and a formula as MathML on one line, where Markdown leaves it alone."""
    if match[1]:
        return match[1]
    formula = re.sub(r"\\[bB]igg?[lr]?(?![a-z])", "", match[2] or match[3])
    return " ".join(tex2mathml(formula, as_block=bool(match[2])).split())


class SlideTypes(Preprocessor):
    def preprocess_cell(self, cell, resources, index):
        kind = "fragment" if cell.get("outputs") else "skip"
        if cell.cell_type == "markdown":
            kind = "slide" if cell.source.startswith(("# ", "## ")) else "subslide"
            cell.source = FORMULA.sub(write_formula, cell.source)
        cell.metadata["slideshow"] = {"slide_type": kind}
        return cell, resources


c.SlidesExporter.preprocessors = [SlideTypes]
c.SlidesExporter.exclude_input = True
c.SlidesExporter.extra_template_basedirs = ["book"]
c.SlidesExporter.template_name = "offline"
c.SlidesExporter.reveal_scroll = True  # a slide that is longer than the screen can be scrolled
c.SlidesExporter.reveal_theme = "white"  # it has its own fonts
c.SlidesExporter.reveal_url_prefix = "sphinx_revealjs/_static/revealjs"
