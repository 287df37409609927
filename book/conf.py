"""Settings of the book: Sphinx makes it from the notebooks with their outputs, the texts beside them, and the docstrings.

`make book` runs it. The source folder is the root of the repository, so that a link means the same here and in the files
themselves. Nothing is loaded from a network: formulas are MathML, fonts are the reader's, and the search is local.
"""

import base64
import importlib
import re
import struct
import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from myst_nb.core.render import NbElementRenderer

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
# Before autodoc does it with TYPE_CHECKING set, which fails inside spaCy.
importlib.import_module("lalkit.spacy_component")

MODULES = ["lalkit", *(f"lalkit.{n}" for n in "treebank chart evaluation interpret probes reproduce draw".split())]
SECTION = re.compile(r"(Args|Returns|Raises|Yields|Attributes|Example|Examples|Note):\s*$")

project, author = "lalkit", "The lalkit authors"
copyright = "The lalkit authors, Apache-2.0"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
root_doc = "book/index"
include_patterns = [
    "book/*.md", "book/reference/*.rst", "book/solutions/*.ipynb", "notebooks/*.ipynb", "notebooks/*.md", "data/README.md",
    "data/models/**.md", "data/sample*/README.md", "figures/**.md", "tests/hostile/README.md", "README.md", "CHANGELOG.md",
    "CONTRIBUTING.md", "RESULTS.md",
]  # fmt: skip
exclude_patterns = [".venv", "runs"]
templates_path = []

nb_execution_mode = "off"  # the outputs are committed
myst_enable_extensions = ["dollarmath", "attrs_inline"]
myst_heading_anchors = 4
myst_links_external_new_tab = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
default_role = "literal"
add_module_names = False
suppress_warnings = ["ref.python"]  # two classes have a field `set`, and two rooms a class `Text`

html_theme = "furo"
pygments_dark_style = "monokai"
html_title = "lalkit"
html_static_path = ["static"]
html_extra_path = ["pages"]
html_css_files = ["book.css"]
html_copy_source = False
html_show_sphinx = False
copybutton_exclude = ".linenos, .gp, .go"


def render_image(self, data, before=NbElementRenderer.render_image):
    """Give a picture of a notebook the alternative text that its output carries, or the title of the SVG.

    A picture with a width is also a link to itself in full size, where small labels can be read.
    """
    images = before(self, data)
    for image in images if data.mime_type == "image/png" else ():
        image.attributes.pop("height", None)  # it follows the width, also where the page is narrower
        if "width" not in image:
            (width,) = struct.unpack(">I", base64.b64decode(data.content)[16:20])  # in the header of a PNG
            image["width"] = f"{width}px"
    title = re.search(r"<title>(.*?)</title>", data.content) if data.mime_type == "image/svg+xml" else None
    alt = data.output_metadata.get(data.mime_type, {}).get("alt") or (title and title[1])
    for image in images if alt else ():
        image["alt"] = alt
    return images


NbElementRenderer.render_image = render_image


def write_formula(self, node, as_block: bool) -> None:
    """Write a formula as MathML, which browsers draw themselves. It knows no sizes of brackets (big)."""
    formula = tex2mathml(re.sub(r"\\[bB]igg?[lr]?(?![a-z])", "", node.astext()), as_block=as_block)
    self.body.append(f'<div class="math">{formula}</div>' if as_block else formula)
    raise nodes.SkipNode


def write_plainly(app, what, name, thing, options, lines: list[str]) -> None:
    """Make a docstring valid for Sphinx: tables and indented lines stay as they are, and | * _ are signs like others."""
    paragraphs, inside = "\n".join(lines).split("\n\n"), False
    for k, paragraph in enumerate(paragraphs):
        rows = paragraph.strip("\n").split("\n")
        inside = bool(SECTION.match(rows[0])) or (inside and rows[0].startswith(" "))
        if rows[0].lstrip().startswith((">>>", "```")):
            continue
        if rows[0].lstrip().startswith("|"):
            paragraphs[k] = "::\n\n" + "\n".join("    " + row for row in rows)
            continue
        codes = re.split(r"(`[^`]+`)", paragraph)
        codes[::2] = [re.sub(r"(\||\*|_(?=\W|$))", r"\\\1", text) for text in codes[::2]]
        paragraphs[k] = "".join(codes)
        indents = {len(row) - len(row.lstrip()) for row in rows}
        if not inside and max(indents) > 0 and not rows[0].lstrip().startswith(("- ", "1. ")):
            paragraphs[k] = "\n".join(f"| {row}" for row in paragraphs[k].strip("\n").split("\n"))
    lines[:] = "\n\n".join(paragraphs).split("\n")


def link_to_pages(app, docname: str, source: list[str]) -> None:
    """Let links (a text or a picture) to book/pages lead to the folder of the finished book, where Sphinx copies these pages."""
    quote = '\\"' if source[0].startswith("{") else '"'  # a notebook is JSON
    place = "../" * docname.count("/")

    def anchor(link: re.Match) -> str:
        return f"<a href={quote}{place}{link[2]}{quote}>{link[1]}</a>"

    shown = r"\[(!\[[^\]\n]+\]\([^)\n]+\)|[^\[\]\n]+)\]"
    source[0] = re.sub(r'<picture>.*<img alt="(.*?)" src="(.*?)"></picture>', r"![\1](\2)", source[0])  # for GitHub
    source[0] = re.sub(shown + r"\((?:(?:\.\./)*book/)?pages/([^)\s]+)\)", anchor, source[0])


def write_reference(app) -> None:
    """Write one page for each public module of lalkit, with the names of its `__all__`."""
    folder = ROOT / "book" / "reference"
    folder.mkdir(exist_ok=True)
    for page in folder.glob("*.rst"):
        if page.stem not in MODULES:  # of an earlier version
            page.unlink()
    for name in MODULES:
        module = importlib.import_module(name)  # autodoc does not see names that are loaded when they are first used
        vars(module).update({public: getattr(module, public) for public in module.__all__})
        text = f"{name}\n{'=' * len(name)}\n\n.. automodule:: {name}\n   :members:\n   :imported-members:\n"
        page = folder / f"{name}.rst"
        if not page.exists() or page.read_text() != text:
            page.write_text(text)


def look_again(app, error) -> None:
    """Check the finished pages: every link leads somewhere, nothing comes from a network, every function is there."""
    if error or app.builder.name != "html":
        return
    site, broken, remote, ids = Path(app.outdir), [], [], {}
    pages = {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    for page, html in pages.items():
        ids[page] = set(re.findall(r'\bid="([^"]+)"', html))
    for page, html in pages.items():
        html = re.sub(r"<(script|iframe)\b[^>]*>.*?</\1>|srcdoc=\"[^\"]*\"", "", html, flags=re.DOTALL)
        for tag, link in re.findall(r'<(\w+)\s[^>]*?\b(?:href|src)="([^"]+)"', html):
            if re.match(r"\w+:", link):
                remote += [f"{page.name}: {link}"] * (tag != "a" and not link.startswith("data:"))
                continue
            file, _, anchor = link.partition("#")
            target = (page.parent / file.partition("?")[0]).resolve() if file else page
            is_place = anchor and "=" not in anchor  # text=... is the state of a page
            wrong = not target.exists() or (is_place and target in ids and anchor not in ids[target])
            broken += [f"{page.relative_to(site)}: {link}"] * bool(wrong)
    names = [f"{module}.{name}" for module in MODULES for name in importlib.import_module(module).__all__]
    known = app.env.domains["py"].objects
    absent = [name for name in names if name not in known and not name.rpartition(".")[2].isupper()]  # no constants
    print(f"{len(pages)} pages, {len(names)} public names")
    counts = {"broken links": broken, "parts from a network": remote, "names left out": absent}
    print(*(f"{len(things)} {name}: {things[:20]}" for name, things in counts.items()), sep="\n")
    if any(counts.values()):
        app.statuscode = 1


def setup(app) -> None:
    app.connect("builder-inited", write_reference)
    app.connect("source-read", link_to_pages)
    app.connect("autodoc-process-docstring", write_plainly, priority=100)  # before napoleon reads the sections
    app.connect("build-finished", look_again)
    app.add_node(nodes.math, override=True, html=(lambda self, node: write_formula(self, node, False), None))
    app.add_node(nodes.math_block, override=True, html=(lambda self, node: write_formula(self, node, True), None))
