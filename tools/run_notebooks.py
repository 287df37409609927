"""Execute the notebooks with their defaults, and write the outputs into them.

    python tools/run_notebooks.py             those whose code, or whose tables, changed since they were executed
    python tools/run_notebooks.py 09 primer   these of them (a part of the name is enough), and their solutions; --all: all
    python tools/run_notebooks.py --check     execute nothing; list what is wrong (then exit code 1)

A notebook records, in its metadata under "lalkit", the hash of the code that was executed, the processor's seconds that it took
(other work beside it does not change them), and the hashes of the committed tables that it read. The minutes stand under its
title. The alternative text of a picture is the label of its figure (`set_label`) and the titles of its axes.
"""

import argparse
import atexit
import base64
import hashlib
import io
import json
import math
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

from lalkit.errors import LalkitError
from lalkit.files import write_text
from lalkit.reproduce.notebook import run_notebook

ROOT = Path(__file__).resolve().parent.parent
READ = "read.json"  # file in the run's folder into which the kernel writes which tables it read
TABLES = ("figures/", "data/", "notebooks/sweeps/")  # folders of committed files
ONE, ALL = 1_000_000, 12_000_000  # bytes of a notebook, and of all together
STARTUP = "import sys; sys.path.insert(0, {!r}); import run_notebooks; run_notebooks.prepare_kernel(); sys.path.pop(0)"
MACHINE = re.compile(
    r"(?<![\w.:/<])/(?:home|root|tmp|work|Users|opt|usr|var|mnt)/[\w.]|[A-Z]:\\\\\w|\bat 0x[0-9a-f]{6,}"
)
MINUTES = re.compile(r"\*Running takes about (\d+) minutes? on two cores\.\*")
BAR = re.compile(r"\d+%\|.*\||^USDT:")  # of tqdm, and what torch's profiler says of itself
STYLED = re.compile(r"\bT_[0-9a-f]{5}(?=[\"_])")  # the name that pandas draws for every table
WARNING = re.compile(r"\b\w*Warning\b|Traceback \(most recent")


def text(field) -> str:
    """Return a field of a notebook, which is text or a list of its lines."""
    return field if isinstance(field, str) else "".join(field)


def code_hash(notebook: dict) -> str:
    code = [text(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return hashlib.sha256("\0".join(code).encode()).hexdigest()


def file_hash(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def stale(notebook: dict, root: Path = ROOT) -> list[str]:
    """Return the reasons to execute a notebook again: none if its outputs belong to its present code and tables."""
    record = notebook["metadata"].get("lalkit")
    if record is None:
        return ["it was never executed"]
    changed = [file for file, hashed in record["read"].items() if file_hash(root / file) != hashed]
    code = [] if record["code_sha256"] == code_hash(notebook) else ["its code is not the code that was executed"]
    return code + [f"{file} changed since it was executed" for file in changed]


def problems(path: Path, root: Path = ROOT) -> list[str]:
    """Return the problems of the outputs of a notebook file, each with the remedy or the place."""
    notebook, size = json.loads(path.read_text(encoding="utf-8")), path.stat().st_size
    wrong = [f"{reason}: make notebooks" for reason in stale(notebook, root)]
    wrong += [f"it has {size:,} bytes, more than {ONE:,}"] * (size > ONE)
    wrong += ["it has the state of widgets"] * ("widgets" in notebook["metadata"])
    for cell in notebook["cells"]:
        outputs = cell.get("outputs", [])
        wrong += [f"cell {cell.get('id')}: {what}" for output in outputs for what in _output_problems(output)]
        wrong += [f"cell {cell.get('id')}: it was executed by hand"] * bool(cell.get("execution_count"))
    return wrong


def _output_problems(output: dict) -> list[str]:
    if output["output_type"] == "error":
        return [f"it failed with {output['ename']}"]
    data, metadata = output.get("data", {}), output.get("metadata", {})
    texts = {kind: text(content) for kind, content in data.items() if not kind.startswith(("image/png", "image/jpeg"))}
    written = "\n".join([text(output.get("text", "")), *texts.values()])
    drawn = {tag: text(data.get("text/html", "")).count(f"<{tag} ") for tag in ("img", "svg")}
    html = re.findall(r"<(?:img|svg) [^>]*?(?:\balt|aria-label)=\"[^\"]", text(data.get("text/html", "")))
    svg = texts.get("image/svg+xml", 'aria-label="')
    unnamed = "image/png" in data and not metadata.get("image/png", {}).get("alt")
    return (
        [f"the standard error has {written[:80]!r}"] * (output.get("name") == "stderr")
        + [f"a warning: {match[0]}" for match in WARNING.finditer(written)]
        + [f"a path of a machine: {match[0]}" for match in MACHINE.finditer(written)]
        + ["a widget"] * any("widget" in kind for kind in data)
        + ["a picture without alternative text"]
        * (unnamed or 'aria-label="' not in svg or len(html) < sum(drawn.values()))
    )


def prepare_kernel() -> None:
    """Make pictures sharp and give them alternative text, and note which tables are read. It runs in the kernel."""
    from IPython import get_ipython
    from IPython.core import pylabtools

    opened: set[str] = set()

    def note(event: str, arguments: tuple) -> None:
        if event == "open" and arguments[1] in ("r", "rb") and arguments[0] and isinstance(arguments[0], str):
            opened.add(os.path.relpath(arguments[0], ROOT))

    def write() -> None:
        files = sorted(name for name in opened if name.startswith(TABLES) and name.endswith((".csv", ".json")))
        Path(os.environ["LALKIT_RUN_DIR"], READ).write_text(
            json.dumps({name: file_hash(ROOT / name) for name in files})
        )

    sys.addaudithook(note)
    atexit.register(write)
    before = pylabtools.retina_figure

    def sharp(figure, **options):
        """Draw with twice the pixels. Return the picture, and its size with the alternative text."""
        drawn = before(figure, **options)
        return drawn and (drawn[0], drawn[1] | {"alt": describe(figure)})

    pylabtools.retina_figure = sharp
    get_ipython().config.InlineBackend.figure_formats = {"retina"}


def describe(figure) -> str:
    """Return a matplotlib figure in words: its label if the notebook gave it one, and its titles, axes and legends."""
    panels = []
    for axis in figure.axes:
        title, across, up = (
            axis.get_title() or axis.get_title("left") or axis.get_label(),
            axis.get_xlabel(),
            axis.get_ylabel(),
        )
        legend = [entry.get_text() for entry in axis.get_legend().get_texts()] if axis.get_legend() else []
        names = {"": title, "across: ": across, "up: ": up, "legend: ": ", ".join(legend[:8])}
        names["with: "] = "" if any(names.values()) else ", ".join(part.get_text() for part in axis.texts[:8])
        panels.append("; ".join(name + value for name, value in names.items() if value and value[0] != "<"))
    heading = figure.get_label() or figure.get_suptitle() or "Chart"
    return " ".join(". ".join([heading, *filter(None, panels)]).split())[:600]


def execute(path: Path) -> dict:
    """Return the notebook with the outputs of a new run of it."""
    folder = ROOT / "runs" / path.parent.name / path.stem
    shutil.rmtree(folder, ignore_errors=True)  # a training refuses the folder of another one
    before = os.times()
    with tempfile.TemporaryDirectory() as profile:
        startup = Path(profile, "profile_default", "startup", "prepare.py")
        startup.parent.mkdir(parents=True)
        startup.write_text(STARTUP.format(str(Path(__file__).parent)))
        with patch.dict(os.environ, {"IPYTHONDIR": profile}):
            result = run_notebook(path, out=folder, progress=False)
    notebook, executed = (json.loads(file.read_text(encoding="utf-8")) for file in (path, result.notebook))
    for cell, done in zip(notebook["cells"], executed["cells"], strict=True):
        if cell["cell_type"] == "code":
            outputs = [compact(output) for output in done["outputs"]]
            bars = [output for output in outputs if any("widget" in kind for kind in output.get("data", {}))]
            cell["outputs"] = [output for output in outputs if output.get("text") != [] and output not in bars]
    after, title = os.times(), notebook["cells"][0]
    seconds = round(sum(after[2:4]) - sum(before[2:4]))  # of the kernel, which has ended
    title["source"] = MINUTES.sub(minutes(seconds), text(title["source"])).splitlines(keepends=True)
    record = {"code_sha256": code_hash(notebook), "seconds": seconds}
    notebook["metadata"]["lalkit"] = record | {"read": json.loads((result.folder / READ).read_text())}
    return notebook


def minutes(seconds: float) -> str:
    count = max(1, math.ceil(seconds / 60))
    return f"*Running takes about {count} minute{'s' * (count > 1)} on two cores.*"


def compact(output: dict) -> dict:
    """Return an output with smaller pictures, with paths from the root of the repository, and without numbers that change."""
    if "execution_count" in output:
        output["execution_count"] = None
    data = output.get("data", {})
    for place, kind in [(output, "text"), *((data, kind) for kind in data if kind != "image/png")]:
        if kind in place:
            whole = text(place[kind]).replace(f"{ROOT}{os.sep}", "").replace(str(ROOT), ".")
            name = hashlib.sha256(STYLED.sub("", whole).encode()).hexdigest()[:5]  # the same for the same table
            lines = STYLED.sub(f"T_{name}", whole).splitlines(keepends=True)
            place[kind] = [line for line in lines if line.strip() and not BAR.search(line)] if kind == "text" else lines
    if " at 0x" in text(data.get("text/plain", "")):
        data["text/plain"] = ["a table"]  # beside its HTML
    if "image/png" in data:
        from PIL import Image

        smaller = io.BytesIO()
        picture = Image.open(io.BytesIO(base64.b64decode(text(data["image/png"])))).convert("RGB")
        picture.quantize(128, dither=Image.Dither.NONE).save(smaller, "png", optimize=True)
        data["image/png"] = base64.b64encode(smaller.getvalue()).decode() + "\n"
    return output


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of the names of notebooks; without any, all notebooks")
    parser.add_argument("--all", action="store_true", help="execute also those that did not change")
    parser.add_argument("--check", action="store_true", help="execute nothing; exit with 1 if something is wrong")
    options = parser.parse_args(arguments)
    paths = sorted([*ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("book/solutions/*.ipynb")])
    for name in options.names:
        if not any(name in path.stem for path in paths):
            parser.error(f"no notebook is called {name!r}")
    failed = False
    for path in (p for p in paths if not options.names or any(name in p.stem for name in options.names)):
        if not options.check and (options.all or stale(json.loads(path.read_text(encoding="utf-8")))):
            try:
                notebook = execute(path)
            except LalkitError as error:  # the others do not wait for it
                print(error, flush=True)
                failed = True
                continue
            write_text(path, json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
            print(
                f"{path.name}: {notebook['metadata']['lalkit']['seconds']} s, {path.stat().st_size:,} bytes", flush=True
            )
        wrong = problems(path)
        failed |= bool(wrong)
        print(*(f"{path.name}: {problem}" for problem in wrong), sep="\n", end="\n" if wrong else "", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
