"""Settings of `make slides`: nbconvert makes slides (reveal) of a notebook with its outputs.

A heading begins a slide, other text a slide below it. Pictures and tables appear on the next key, so that a question can be
answered before; code is left out. A browser that shows the slides loads reveal.js and MathJax from the web.
"""

from nbconvert.preprocessors import Preprocessor

c = get_config()  # noqa: F821 (nbconvert supplies it)


class SlideTypes(Preprocessor):
    def preprocess_cell(self, cell, resources, index):
        kind = "fragment" if cell.get("outputs") else "skip"
        if cell.cell_type == "markdown":
            kind = "slide" if cell.source.startswith(("# ", "## ")) else "subslide"
        cell.metadata["slideshow"] = {"slide_type": kind}
        return cell, resources


c.SlidesExporter.preprocessors = [SlideTypes]
c.SlidesExporter.exclude_input = True
c.SlidesExporter.reveal_scroll = True
