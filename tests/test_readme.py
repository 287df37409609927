"""The Python blocks and the cheap lalkit commands of README and the course run. The links of all pages lead somewhere."""

import re
import shlex
from pathlib import Path

import nbformat
import pandas as pd
import pytest

from tests.command import lalkit

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted(ROOT.glob("*.md")) + sorted((ROOT / "notebooks").glob("*.ipynb"))
PAGES += sorted(path for room in ("book", "data", "figures", "notebooks") for path in (ROOT / room).rglob("*.md"))
PAGES = [path for path in PAGES if "made" not in path.parts]  # make book copies a card
TEACHING = (ROOT / "book" / "teaching.md").read_text(encoding="utf-8")
COMMANDS = re.findall("`(lalkit [^`]+)`", TEACHING) + [
    line.split("  #")[0].strip()
    for block in re.findall(r"```sh\n(.*?)```", README, re.S)
    for line in block.splitlines()
    if line.startswith("lalkit ")
]
LONG = (
    "train", "data fetch", "data import", "evaluate runs/ptb --treebank ptb-sample", "run", "sweep", "report sweeps", "study",
    "bench", "serve", "parse big.txt", "parse notes.txt",
)  # fmt: skip
EXPENSIVE = tuple(f"lalkit {name}" for name in LONG)
# A part of a command of the course, and what its page promises: both readings, their probabilities, what is installed, why.
PROMISED = {
    "--alternatives 5": "(NP (NP (DT the) (NN man)) (PP (IN with)|(NP (DT the) (NN man)) (PP (IN with)|+7->2  -7->4",
    "--attach": "-> man (4)|-> saw (2)", "doctor": "ok torch|ok corpus sample", "explain": "head word",
    "--against": "is the sum of", "demo": "done",
}  # fmt: skip
DEMO = pytest.param("lalkit demo", marks=pytest.mark.slow)
# The course's other commands: `make demo` is `lalkit demo`; test_the_book.py makes slides, test_course.py the assignments.
OTHERS = "make demo|make slides|make course|nbgrader autograde|nbgrader export|source .venv|pip install"


@pytest.mark.parametrize("command", [c for c in COMMANDS if not c.startswith(EXPENSIVE)] + [DEMO])
def test_cheap_commands_run(command, tiny_parser, tiny_span_parser, tmp_path):
    command = command.replace("runs/ptb", str(tiny_parser)).replace("runs/span", str(tiny_span_parser))
    code, out, err = lalkit(*shlex.split(command)[1:], cwd=tmp_path)
    assert code == 0, err
    promised = "|".join(PROMISED[part] for part in PROMISED if part in command)
    assert out and all(words in out + err for words in promised.split("|"))


def test_the_other_commands_of_the_course_are_known():
    found = re.findall(r"(?:^|`)((?:make|nbgrader|source|pip) (?!is)[\w.]+)", TEACHING, re.M)
    assert set(found) == set(OTHERS.split("|"))


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
    blocks = "\n".join(re.findall(r"```python\n(.*?)```", README, re.S))
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


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


# Rows of README and RESULTS, and their cells of the trial.
ROWS = {"the paper's layer": "layer", "the paper's layer and its feed-forward (the authors' best)": "layer + PFL",
        "inside the span": "inside the span", "no label attention": "none"}  # fmt: skip
LOST = [("RESULTS.md", "inside the span, uniform attention | {:.2f} (", "span full"),
        ("RESULTS.md", "the paper's layer, uniform attention | {:.2f} (", "paper's layer")]  # fmt: skip


@pytest.mark.parametrize(("row", "cell"), ROWS.items())
def test_what_the_trial_found_stands_in_the_documents(row, cell):
    report = (ROOT / "figures/sweeps/trial.md").read_text(encoding="utf-8")
    f1 = re.search(rf"^\| {re.escape(cell)} \| 5 \| ([^|]+\)) ", report, re.MULTILINE)[1]
    tests = pd.read_csv(ROOT / "figures/heads/trial/tests.csv").query("measure == 'f1' and system == @cell")
    tests = tests[tests["what"].isin(["uniform attention", "swapped sentences", "zeroed"])]
    lost = [f"{x.difference:.2f} ({x.low:.2f} to {x.high:.2f})" for x in tests.itertuples()]
    assert f"| {row} | {f1} | {lost[0] if lost else ''}".rstrip() + " |" in README
    assert all(x in (ROOT / "RESULTS.md").read_text(encoding="utf-8") for x in lost)


def test_the_trial_and_the_calibration_in_the_results_are_those_of_their_tables():
    results, readme = (" ".join((ROOT / page).read_text().split()) for page in ("RESULTS.md", "README.md"))
    report = (ROOT / "figures/sweeps/trial.md").read_text(encoding="utf-8")
    for cell in ("none", r"none \+ feed-forward", r"layer \+ PFL", "inside the span"):
        assert re.search(rf"^\| {cell} \| 5 \| ([^|]+\)) ", report, re.MULTILINE)[1] in results
    claims = re.findall(r"[a-z]\. \| \w+ \| [^|]+ \| [+-](\S+) \(\+?(\S+) to \+?(\S+)\) \| (\S+)", report)
    for difference, low, high, p in claims[:7]:  # the two claims of equality are the same differences
        assert re.search(rf"{difference} [^(]*\({low} to {high}", results) and (p > "0.2" or f"p = {p[1:]}" in results)
    assert f"+{claims[0][0]} F1 over none ({claims[0][1]} to {claims[0][2]}, p = {claims[0][3][1:]})" in readme
    points = pd.read_csv(ROOT / "figures/calibration.csv").query("curve == 'ece'")
    table = points.pivot_table("y", ["parser", "kind"], "fitted")
    for parser in ("en", "en-news", "zh-sinica"):
        rows = table.loc[parser].loc[["span", "arc", "tree"]].to_numpy()
        cells = " | ".join(f"{before:.1f} to {fitted:.1f}" for before, fitted in rows)
        assert f"| {parser} | {cells} |" in results


@pytest.mark.parametrize(("document", "text", "system"), LOST)
def test_losses_of_documents_are_those_of_the_tests(document, text, system):
    tests = pd.read_csv(ROOT / "figures/heads/ptb-sample/tests.csv").set_index(["measure", "what", "system"])
    lost = tests.loc[("f1", "uniform attention", system), "difference"]
    assert text.format(lost) in (ROOT / document).read_text(encoding="utf-8")


def test_readme_is_short_and_hides_nothing():
    assert README.count("\n") <= 150 and "<!--" not in README
