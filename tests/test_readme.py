"""The Python and the cheap commands of README, its pages and the course run; links lead somewhere; the book names its pages."""

import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from pydoc import locate
from shutil import which

import nbformat
import pandas as pd
import pytest

from lalkit.evaluation.statistics import mean_of_runs, welch
from lalkit.reproduce import report
from tests.command import commands, lalkit

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# The commands and Python of README go on in these pages.
BLOCKS = README + "".join((ROOT / "book" / page).read_text("utf-8") for page in ("commands.md", "reproduce.md"))
PAGES = sorted(ROOT.glob("*.md")) + sorted((ROOT / "notebooks").glob("*.ipynb"))
PAGES += sorted(path for room in ("book", "data", "figures", "notebooks") for path in (ROOT / room).rglob("*.md"))
PAGES = [path for path in PAGES if "made" not in path.parts]  # make book copies a card
TEACHING = (ROOT / "book" / "teaching.md").read_text(encoding="utf-8")
COMMANDS = re.findall("`(lalkit [^`]+)`", TEACHING) + [
    line.split("  #")[0].strip()
    for block in re.findall(r"```sh\n(.*?)```", BLOCKS, re.S)
    for line in block.splitlines()
    if line.startswith("lalkit ")
]
LONG = (
    "train", "data fetch", "evaluate runs/ptb --treebank ptb-sample", "run", "sweep", "report sweeps", "study",
    "bench", "serve", "parse big.txt", "parse notes.txt",
)  # fmt: skip
EXPENSIVE = tuple(f"lalkit {name}" for name in LONG)
# A part of a command of the course, and what its page promises: both readings, their probabilities, what is installed, why.
PROMISED = {
    "--alternatives 5": "(NP (NP (DT the) (NN man)) (PP (IN with)|(NP (DT the) (NN man)) (PP (IN with)|+2->7  -4->7",
    "--attach": "man (4) ->|saw (2) ->", "doctor": "ok torch|ok corpus sample|ok default parser          en\n",
    "explain": "head word",
    "--against": "is the sum of", "demo": "done",
}  # fmt: skip
DEMO = pytest.param("lalkit demo", marks=pytest.mark.slow)


@pytest.mark.parametrize("command", [c for c in COMMANDS if not c.startswith(EXPENSIVE)] + [DEMO])
def test_cheap_commands_run(command, tiny_parser, tiny_span_parser, tmp_path):
    command = command.replace("runs/ptb", str(tiny_parser)).replace("runs/span", str(tiny_span_parser))
    code, out, err = lalkit(*shlex.split(command)[1:], cwd=tmp_path)
    assert code == 0, err
    promised = "|".join(PROMISED[part] for part in PROMISED if part in command)
    assert out and all(words in out + err for words in promised.split("|"))
    for program in re.findall(r"next: (\S+) parse", err):
        assert which(program) or (tmp_path / program).exists()


# Ways to use lalkit in the folder that contains the checkout, and what they print.
BESIDE = {
    ("-c", "import lalkit; print(lalkit.load().parse('It rained.'))"): "(VBD rained)",
    ("-m", "nbconvert", "--execute", "--to", "markdown", "--stdout", "book.ipynb"): "(VBD rained)",
    ("-m", "mypy", "--strict", "program.py"): "no issues found in 1 source file",
}


@pytest.mark.slow
@pytest.mark.parametrize("way", BESIDE, ids=" ".join)
def test_lalkit_is_found_beside_its_checkout(way, tmp_path, monkeypatch):
    """Python would take the folder of the checkout for a package. program.py: the Python blocks of README."""
    (tmp_path / "lalkit").symlink_to(ROOT)
    (tmp_path / "program.py").write_text("\n".join(re.findall(r"```python\n(.*?)```", README, re.S)), encoding="utf-8")
    cell = nbformat.v4.new_code_cell("import lalkit\nprint(lalkit.load().parse('It rained.'))")
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "book.ipynb")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    done = subprocess.run([sys.executable, *way], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and BESIDE[way] in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith(EXPENSIVE)])
def test_expensive_commands_have_these_options(command):
    """Every option exists (other tests do the work itself)."""
    words = shlex.split(command)[1:]
    name = words[:2] if words[0] in ("data", "study", "report") else words[:1]
    code, out, err = lalkit(*name, "--help")
    assert code == 0
    for option in (w for w in words if w.startswith("-") and w != "-"):
        assert option in out, f"{option} in: {command}"


def test_the_python_blocks_run(tiny_parser, tmp_path, monkeypatch, capsys):
    blocks = "\n".join(re.findall(r"```python\n(.*?)```", BLOCKS, re.S))
    monkeypatch.chdir(tmp_path)
    exec(blocks.replace("runs/ptb", str(tiny_parser)), {})  # noqa: S102
    assert "(1, 'Select'" in capsys.readouterr().out
    assert (tmp_path / "runs" / "tree.svg").read_text().startswith("<svg")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        text = "\n".join(cell.source for cell in nbformat.reads(text, 4).cells if cell.cell_type == "markdown")
        for name in re.findall(r"`((?:lalkit|tests|data|figures|notebooks)/[^`\s]+)`", text):
            assert any(ROOT.glob(name)), f"there is no {name}"
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)
    for name, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)", text):
        target = page.parent / name if name else page
        assert target.exists(), name
        if anchor and target.suffix != ".html":  # what stands after # in the address of a page is its state
            assert anchor in anchors(target), f"{name}#{anchor}"


def test_what_contributing_names_is_there():
    """Commands; and paths, modules, functions and other words of the code."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    targets = re.findall(r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"))
    named = re.findall("`(make [a-z-]+|lalkit (?:(?:study|report|data) )?[a-z]+)", text)
    assert set(named) <= {f"make {target}" for target in targets} | {name for name, _ in commands()}
    files = [ROOT / "pyproject.toml", *(path for room in ("lalkit", "tests") for path in (ROOT / room).rglob("*.py"))]
    code = "".join(path.read_text(encoding="utf-8") for path in files)
    for name in sorted({name.removesuffix("()") for name in re.findall(r"`([\w./-]+(?:\(\))?)`", text)} - {"v0.2.0"}):
        there = any((room / name).exists() for room in (ROOT, ROOT / "lalkit"))
        assert there or locate(name) or locate(f"lalkit.{name}") or re.search(rf"\b{name}\b(?![/.]\w)", code), name


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


DOCUMENTS = " ".join(" ".join((ROOT / page).read_text("utf-8") for page in ("README.md", "RESULTS.md")).split())


def csv(name: str) -> pd.DataFrame:
    return pd.read_csv(ROOT / "figures" / f"{name}.csv")


def sweeps(name: str) -> list[report.Sweep]:
    """Return the tables of one file; of `stronger`, also those that the same parsers have for other texts."""
    files = sorted((ROOT / "figures").glob(f"*/{name}*.json"), key=lambda file: file.stem.replace("-sample", ""))
    found = [report.read_sweep(file.with_suffix(".csv")) for file in files]
    for text, f1 in csv("stronger-elsewhere").groupby("text", sort=False) if name == "stronger" else ():
        runs = found[0].runs.drop(columns="f1").merge(f1, "left")
        found.append(replace(found[0], record={**found[0].record, "profile": text}, runs=runs))
    return found


def cells() -> pd.DataFrame:
    tables = [sweep.cells().rename(columns={"last layer": "cell"}) for sweep in sweeps("trial")]
    return pd.concat(tables[:3])


def family(name: str) -> pd.DataFrame:
    """Return the comparisons of the claims of one file, over all treebanks and each once, with p corrected for all of them."""
    table = report.comparisons(sweeps(name)).dropna(subset="tested").drop_duplicates(report.COMPARISON)
    axes = "|".join(sweeps(name)[0].axes)
    pairs = (table["cell"] + " > " + table["against"]).str.replace(f"({axes}): ", "", regex=True)
    return table.assign(pair=pairs, same=table["tested"] != table["p"], p=table["p_holm"])


def test_the_counts_of_significant_claims_are_those_of_the_families():
    stated = re.findall(r"(\d+) of (\d+) in `([a-z0-9-]+)`", DOCUMENTS)
    tables = {name: family(name) for *_, name in stated}
    assert len(stated) == 11
    assert stated == [(str((table["p"] < 0.05).sum()), str(len(table)), name) for name, table in tables.items()]


def over_seeds(name: str, keys: str, value: str) -> pd.DataFrame:
    """Return the mean of a table of the PTB sample and CRAFT over its seeds, with its interval by t."""
    rows = csv(name).groupby(keys.split(), sort=False)[value].apply(mean_of_runs)
    table = pd.DataFrame(rows.tolist(), rows.index, ["mean", "low", "high"]).reset_index()
    return table[table["treebank"] != "our sample"].sort_values("treebank", ascending=False, kind="stable")


def taken_out() -> pd.DataFrame:
    lost = csv("joint-ablation").groupby(["label", "heads", "chosen"])["lost"]
    table = lost.agg(mean="mean", low="min", high="max").reset_index()
    return table.query("heads == 9 and chosen != 'alone' or heads == 32 and chosen == 'largest'")


def calibration() -> pd.DataFrame:
    table = csv("calibration").query("curve == 'ece'").pivot_table("y", ["parser", "kind"], "fitted")
    return table.reindex(["span", "arc", "tree"], level="kind").reset_index()


def beside() -> pd.DataFrame:
    ours, theirs = (csv("peers/peers").query(f"system == '{name}'") for name in ("lalkit", "supar, both"))
    return pd.DataFrame({key: vars(welch(ours[key], theirs[key], 0.3)) for key in ("f1", "las")}).T


MEAN, PFL = "{:.2f} ({:.2f} to {:.2f})", "the paper's layer, with feed-forward"
CELL = "cell == '{}'", "f1,f1 low,f1 high", MEAN
CLAIM = 'pair == "{}" and not same and by == "f1"', "difference,low,high,p", "{:+.2f} ({:.2f} to {:.2f}), p = {:.3f}"
SAME = CLAIM[0].replace("not same", "same"), CLAIM[1], CLAIM[2].replace("+", "z")
LOST = "what == ['uniform attention', 'zeroed', 'swapped sentences'] and measure == 'f1' and system == '{}'"
LOST = LOST, "difference,low,high", MEAN
PLACE = "way + group == '{}'", "mean,low,high", "{:.0f} ({:.0f} to {:.0f})"
JUDGE = "measure != 'risk' and of == '{}' and treebank == 'PTB sample'", "mean,low,high", "{:.3f} ({:.3f} to {:.3f})"
ERASER = "truth == '{}' and target + removal + extent == 'probabilityleft outcomprehensiveness'", "mean,low,high", MEAN
PEER = "epoch_seconds,f1,uas,las,words_per_second,contradictions", "{:.0f}" + 3 * " | {:.1f}" + " | {:,.0f} | {:.0f}"
# A table; the rows, columns and form that are read; and the starts of lines in tables of README or RESULTS, or pieces of their
# text with {0}, each with the value for the gap in the rows.
NUMBERS = [
    (cells, CELL, {
        "F1: none": "none", "F1: none, with feed-forward": "none + feed-forward", f"F1: {PFL}": "layer + PFL",
        "F1: inside the span": "inside the span", "F1: the same, released split | {0} |": "layer + PFL, released",
        "| no label attention | {0} | |": "none", "| no label attention, with feed-forward | {0} | |": "none + feed-forward",
        f"| {PFL} | {{0}} |": "layer + PFL",
        "| inside the span | {0} | 2": "inside the span", "the paper's layer | {0} | 0": "layer"}),
    (lambda: family("trial"), CLAIM, {
        f"{PFL}, less none": "layer + PFL > none", f"inside the span, less {PFL}": "inside the span > layer + PFL",
        "inside the span, less none": "inside the span > none", "better than none, {1}.": "inside the span > none",
        "is {0} over none on the PTB sample": "layer + PFL > none"}),
    (lambda: family("trial"), SAME, {"the released split less ours is {0}": "layer + PFL, released > layer + PFL"}),
    (lambda: family("stronger"), CLAIM, {
        **dict.fromkeys(["inside the span, less none", "is {0}, and on everyday English (MASC) {1}."], "inside the span > none"),
        "inside the span, less the released split": "inside the span > layer + PFL, released"}),
    (lambda: family("uniform"), SAME, dict.fromkeys(["feed-forward differs by {0}", "it differs by {0}"], "uniform > learned")),
    (lambda: family("heads"), CLAIM, {
        "`heads`: inside the span, less the layer in halves": "span full > paper's layer",
        "`heads`: inside the span, less none": "span full > span full, none"}),
    (lambda: family("control"), CLAIM, {
        "on CRAFT {0} and **": "inside the span > label attention", "and {0}, on Sinica": "inside the span > none"}),
    (lambda: csv("heads/trial/tests"), LOST, {
        "PTB sample, 5 runs: the paper's layer": "layer", PFL: "layer + PFL", "inside the span": "inside the span",
        ") | {0} | | inside the span": "layer + PFL", "(88.98 to 89.62) | {0} |": "layer",
        "(89.36 to 90.01) | {0} |": "inside the span",
        "inside the span it costs {0} F1": "inside the span"}),
    (lambda: csv("heads/trial-chinese/tests"), LOST, {
        f"Sinica, 3 runs: {PFL}": "layer + PFL", "made uniform later costs {0} F1": "layer + PFL",
        "inside the span": "inside the span"}),
    (taken_out, ("label == '{}'", "mean,low,high", MEAN), {label: label for label in ("NP", "VP", "S", "PP")}),
    (lambda: over_seeds("heads-know", "measure of system treebank", "value"), JUDGE, {
        "heads alone": "heads", "heads add to the probability": "probability + heads less probability"}),
    (lambda: over_seeds("own-position", "way group treebank system", "percent"), PLACE, {
        "| at the edge of the constituent | {1} |": "encoderedge", "| inside it | {1} |": "encoderinside"}),
    (lambda: over_seeds("measures-graded", "truth treebank target removal extent", "value"), ERASER, {
        "the probability": "probability", "the contrast with the second label": "contrast"}),
    (lambda: family("ablation-1"), CLAIM, {
        "table 1, F1: feed-forward without residual dropout, less neither": "with, without > without, without"}),
    (lambda: family("ablation-2"), CLAIM, {"table 2, F1: a vector, less a matrix": "vector, concatenated > matrix, concatenated",
        "table 2, F1: heads concatenated, less projected": "vector, concatenated > vector, projected",
        "table 2, F1: vector, concatenated, less matrix, projected": "vector, concatenated > matrix, projected"}),
    (lambda: family("layers").iloc[::-1], CLAIM, {"table 5, F1: three self-attention layers, less two | {0}": "3 > 2"}),
    (lambda: family("objectives"), CLAIM, {"CRAFT, F1: likelihood of joint trees, less margin | {1}": "likelihood > margin"}),
    (lambda: pd.DataFrame([mean_of_runs(csv("sweeps/trial-layers").pivot_table(
        "f1", "seed", ["last layer", "self-attention layers"]) @ [1, 0, -1, -1, 0, 1])]), ("index == 0", "0,1,2", MEAN), {
        "abstract, F1: two more layers, without less with label attention": ""}),
    (lambda: csv("peers/peers").groupby("system").mean().reset_index(), ("system == '{}'", *PEER), {
        "lalkit, `minilm-span`: both in one parser": "lalkit",
        "supar 1.1.4: `crf-con` and `biaffine-dep` in turn": "supar, both"}),
    (beside, ("index == '{}'", "difference,low,high", MEAN), {
        "less supar: F1 {0}, LAS": "f1", "0.22), LAS {0}.": "las"}),
    (calibration, ("parser == '{}'", "False,True", "{:.1f} to {:.1f}"), {"en": "en", "zh-sinica": "zh-sinica"}),
]  # fmt: skip


@pytest.mark.parametrize(("table", "read", "places"), NUMBERS)
def test_numbers_of_documents_are_those_of_their_tables(table, read, places):
    (rows, columns, form), table = read, table().rename(columns=str)
    for place, value in places.items():
        found = table.query(rows.format(value), engine="python")[columns.split(",")].to_numpy(float)
        shown = [form.format(*row).replace("p = 1.000", "p = 1").replace("p = 0.", "p = .") for row in found]
        if "p = {" in form:
            shown = [f"**{cell}**" if row[3] < 0.05 else cell for cell, row in zip(shown, found)]
        line = place.format(*shown) if "{" in place else f"| {place} | {' | '.join(shown)} |"
        assert shown and line in DOCUMENTS, line


def test_readme_is_short_and_hides_nothing():
    assert README.count("\n") <= 101 and "<!--" not in README and len(DOCUMENTS.split()) <= 3_360


BOOK = ROOT / "book"


def named_in_contents():
    """Every file that a table of contents of a page names, with its patterns expanded."""
    files = set()
    for page in BOOK.glob("*.md"):
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for entry in (line for line in block.splitlines() if line and line[0] != ":"):
                place = (BOOK / entry).resolve().relative_to(ROOT).as_posix()
                found = {file for suffix in (".md", ".ipynb", ".rst") for file in ROOT.glob(place + suffix)}
                # make book writes book/reference
                assert found or "reference/" in entry, f"{page.name}: there is no {entry}"
                files |= found
    return files


def test_the_contents_name_every_notebook_card_and_page():
    wanted = [*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "notebooks").glob("*.md"), *BOOK.glob("*.md")]
    wanted += [*BOOK.glob("solutions/*"), *(ROOT / "data").rglob("README.md"), *(ROOT / "figures").rglob("*.md")]
    assert {path.relative_to(ROOT).as_posix() for path in {*wanted} - named_in_contents()} == {"book/index.md"}
