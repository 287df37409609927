"""The notebooks that we ship: their form, and that they run from the first cell to the last and save what they promise."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest
import yaml

from lalkit.reproduce.notebook import read_parameters, run_notebook
from tools import run_notebooks as tool

FOLDER = Path(__file__).parent.parent / "notebooks"
BOOKS = sorted(FOLDER.glob("*.ipynb"))
LESSONS = ("01_primer", "02_trees_and_measures", "03_scores_by_hand", "05_decoding_by_hand", "06_learning_by_hand")
PICTURES = (".png", ".svg")


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_the_form_that_the_house_asks_for(path):
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    text = [cell.source for cell in book.cells if cell.cell_type == "markdown"]
    code = [cell for cell in book.cells if cell.cell_type == "code"]

    assert book.cells[0].cell_type == "markdown" and re.match(r"# .*\?$", book.cells[0].source, re.MULTILINE)
    if record := book.metadata.get("lalkit"):
        assert tool.minutes(record["seconds"]) in book.cells[0].source
    assert {"## What was seen", "## Exercises"} <= {line for source in text for line in source.splitlines()}

    declared = read_parameters(path)  # raises unless there is exactly one cell, with nothing but declarations
    lines = next(cell.source for cell in code if cell.metadata.get("tags")).splitlines()
    assert declared and all("  # " in line for line in lines), "each parameter has its help"
    assert all(line.count("=") == 1 for line in lines), "papermill takes another = in a comment for a second parameter"

    assert all(cell.metadata == {"tags": ["parameters"]} or cell.metadata == {} for cell in code)
    assert book.metadata.kernelspec.name == "python3" and len({cell.id for cell in book.cells}) == len(book.cells)
    program = "\n".join(cell.source for cell in code)
    both = ".csv" in program and any(f'{suffix}"' in program for suffix in PICTURES)
    assert "run_dir()" in program and (both or "draw.save(" in program)


def test_the_outputs_are_those_of_the_source_and_fit_for_readers():
    assert [f"{path.name}: {problem}" for path in BOOKS for problem in tool.problems(path)] == []
    assert sum(path.stat().st_size for path in BOOKS) < tool.ALL
    for path in BOOKS:
        code = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
        assert any(cell["outputs"] for cell in code)


def runs_of_words(text):
    """All runs of five words, with anything but a number between them."""
    words = re.findall(r"[A-Za-z]+|\d", text)
    runs = set(zip(words, words[1:], words[2:], words[3:], words[4:]))
    return {run for run in runs if len(set(run)) > 2 and "".join(run).isalpha()}  # not "S S S S S", a column of labels


@pytest.mark.data
def test_no_output_has_a_sentence_of_a_corpus():
    shared, nltk_data = Path(os.environ.get("LALKIT_DATA", "absent")), Path(os.environ.get("NLTK_DATA", "absent"))
    leaves, column = re.compile(r" ([^\s()]+)\)"), re.compile(r"^\d+\t([^\t]+)", re.MULTILINE)
    files = [(path, leaves) for pattern in ("craft/**/*.tree", "gum/const/*.ptb") for path in shared.glob(pattern)]
    texts = [(path.read_text(encoding="utf-8"), form) for path, form in files]
    texts += [(path.read_text(encoding="utf-8"), column) for path in shared.glob("*/*.conllu")]
    for archive in nltk_data.glob("corpora/treebank.zip"):
        with zipfile.ZipFile(archive) as opened:
            texts += [(opened.read(name).decode(), leaves) for name in opened.namelist() if name.endswith(".mrg")]
    assert texts, "it is not on this machine: a corpus in LALKIT_DATA or NLTK_DATA"
    books = [json.loads(path.read_text(encoding="utf-8")) for path in BOOKS]
    outputs = [output for book in books for cell in book["cells"] for output in cell.get("outputs", [])]
    fields = [{**output.get("data", {}), "text": output.get("text", "")} for output in outputs]
    shown = [tool.text(field) for parts in fields for kind, field in parts.items() if kind != "image/png"]
    shown = runs_of_words(" ".join(re.sub(r"<[^>]*>", " ", text) for text in shown))
    data = FOLDER.parent / "data"
    ours = [*data.glob("sample/*"), *data.glob("paper/*"), FOLDER.parent / "README.md", *FOLDER.glob("*.md")]
    known = runs_of_words(" ".join(path.read_text(encoding="utf-8") for path in ours if path.is_file()))
    sources = runs_of_words(" ".join(tool.text(cell["source"]) for book in books for cell in book["cells"]))
    suspect = shown - known - sources
    assert [run for text, form in texts for run in suspect & runs_of_words(" ".join(form.findall(text)))] == []


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_asks_before_it_shows_and_ends_with_exercises(path):
    cells = nbformat.read(path, as_version=4).cells
    questions = [k for k, cell in enumerate(cells) if "> **Predict.**" in cell.source]
    assert len(questions) >= (3 if path.stem in LESSONS else 2)
    assert all(cells[k].cell_type == "markdown" and cells[k + 1].cell_type == "code" for k in questions)
    _, exercises = cells[-1].source.split("## Exercises\n\n")
    numbered = re.findall(r"^(\d)\. ", exercises, re.MULTILINE)
    assert numbered == [str(k + 1) for k in range(len(numbered))] and len(numbered) >= 3
    hints = re.findall(r"\n\n<details><summary>Hint</summary>\n\n\S.*?\n\n</details>", exercises, re.DOTALL)
    assert len(hints) == len(numbered) == exercises.count("<details>")
    assert all(re.search(r"\*(Check|Rubric):\*", one) for one in re.split(r"^\d\. ", exercises, flags=re.MULTILINE)[1:])
    if re.match(r"09|1[015-9]", path.stem):  # cells write what was seen, as it depends on the parameters
        text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        seen = text.split("## What was seen")[1].split("## Exercises")[0].replace("head 52 is S", "")
        assert not re.findall(r"\d+(?:\.\d+)?%|\b\d+\.\d\b|\b(?:NP|VP|PP|S|SBAR)\b", seen)


def test_the_order_of_the_lessons_has_their_words_and_fits_its_weeks():
    page = (FOLDER.parent / "book" / "teaching.md").read_text(encoding="utf-8")
    form = r"^\| .*?/(\w+)\.ipynb\).*? \| (\d+) \| ([\d,]+) \| (.*) \| (.*) \| (.*) \|$"
    rows = [(name, int(minutes), *row) for name, minutes, *row in re.findall(form, page, re.MULTILINE)]
    assert sorted(row[0] for row in rows) == sorted(RUNS) == [path.stem for path in BOOKS]
    for name, _, said, *_ in rows:
        cells = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells
        text = " ".join(cell.source for cell in cells if cell.cell_type == "markdown")
        words = sum(bool(re.search("[A-Za-z]", word)) for word in text.split())
        assert words <= 1500 and abs(words - int(said.replace(",", ""))) <= 50, (name, words)
    for plan, most in ((3, 180), (4, 90), (5, 90)):  # minutes of the sessions of a week
        weeks = {row[plan] for row in rows if not row[plan].startswith("home")}
        assert all(sum(row[1] for row in rows if row[plan] == week) <= most for week in weeks)


# Parameters that make every notebook fast, and some files that it saves. PAPER and SPAN are trained parsers, TMP is a new folder.
# The notebooks by hand (02 to 06) and 16 hold assertions that stop them where a loop and lalkit differ.
RUNS = {
    "00_quickstart": ({"parser": "PAPER", "sentence": "The clerk counted ballots", "second": "PAPER", "third": "SPAN",
                          "heads": [0, 1]},
                      "joint_tree.svg joint_tree_arcs.csv scores_sample_dev.csv top_heads.csv hits.csv"),
    "01_primer": ({"number": 3}, "labels.csv attention.png"),
    "02_trees_and_measures": ({"sentence": 2, "rounds": 300, "tests": 20}, "bells.trees exchanges.png power.png"),
    "03_scores_by_hand": ({"paper": "PAPER", "sentence": "She saw old friends", "label": "NP"},
                          "similarity.png attention.png chart.png arcs.png"),
    "04_label_attention_by_hand": ({"heads": 4, "seed": 7}, "attention_heat.png pairing_by_place.csv"),
    "05_decoding_by_hand": ({"longest": 40}, "all_trees.png cky.png eisner.png weights.csv"),
    "06_learning_by_hand": ({"step": 0.6}, "wrong.png augmented.png gradients.png step.png training.csv"),
    "07_train": ({"preset": "tiny", "epochs": 2, "minutes": 0}, "curves.png f1_by_length.csv"),
    "08_ordinary_heads": ({"parser": "PAPER", "inside": "SPAN", "sentences": 9, "least": 3, "pairs": 2, "seeds": 2},
                          "heads.png arcs.csv patched_words.csv layers.csv"),
    "09_head_contributions": ({"model": "PAPER", "profile": "five-minutes", "seeds": ["PAPER", "PAPER"], "split": "dev",
                               "labels": ["NP", "VP"], "sentences": 12, "rounds": 20},
                               "led_labels.csv agreement.csv controls.csv seeds.csv relations.csv"),
    "10_error_tracing": ({"profile": "five-minutes", "model": "PAPER", "split": "dev", "sentences": 12, "count": 3, "error": 1},
                         "errors.csv classes.csv traced.csv forced.csv"),
    "11_heads_that_mean_it": ({"profile": "five-minutes", "papers": "PAPER", "inside": "SPAN", "split": "dev", "sentences": 8,
                               "labels": ["NP", "VP"]}, "cancellation.csv table.csv heads.png where.csv balance.csv"),
    "12_build_it": ({"epochs": 1, "preset": "tiny"}, "controls.png controls.csv near.csv training.csv"),
    "13_garden_paths": ({"parser": "PAPER", "count": 1}, "root.png surprise.png heads.png garden_paths.csv"),
    "14_how_sure_is_it": ({"parser": "PAPER", "texts": ["She slept."], "k": 3, "words": "She saw stars", "labels": ["NP"],
                           "parsers": ["en-news"], "judged": "PAPER"},
                          "alternatives.png calibration.png confidence.csv temperatures.csv heads-know.png own-position.png"),
    "15_ablation_tables": ({"table": "TMP/two.yml", "profile": "five-minutes", "folder": "TMP/sweep",
                            "parsers": ["en-news", "en-news-span"]}, "cells.csv runs.csv seeds.png claims.csv spread.csv"),
    "16_transparent_lstm": ({"profile": "five-minutes", "data": ["subjectivity"], "models": ["vanilla", "diversity"],
                             "seeds": [1], "train": 120, "test": 30, "epochs": 1, "folder": "TMP/runs",
                             "parser": "PAPER"}, "known.csv parser.csv"),
    "17_summarization_heads": ({"profile": "five-minutes", "variants": ["soft", "sparse-tl"], "seeds": [1], "train": 50, "dev": 5,
                                "test": 6, "epochs": 1, "ablated": 3, "folder": "TMP/runs"}, ""),
    "18_three_systems": ({"parsers": ["PAPER", "SPAN"], "sentences": 2, "rounds": 2, "example": 26},
                          "now.csv measures-graded.png"),
    "19_across_languages": ({"languages": ["fr"]}, "across-languages.png across-languages-arcs.csv"),
}  # fmt: skip
OF_CORPORA = ("16_transparent_lstm",)
MARKS = {name: [pytest.mark.slow, *[pytest.mark.data] * (name in OF_CORPORA)] for name in RUNS} | {"00_quickstart": []}


@pytest.fixture
def fast(name, tiny_parser, tiny_span_parser, tmp_path):
    """The parameters that make the notebook of a test fast."""
    parameters = json.dumps(RUNS[name][0])
    for word, path in (("PAPER", tiny_parser), ("SPAN", tiny_span_parser), ("TMP", tmp_path)):
        parameters = parameters.replace(word, str(path))
    if name == "15_ablation_tables":  # two of the four systems of a sweep
        control = yaml.safe_load((FOLDER / "sweeps" / "control.yml").read_text(encoding="utf-8"))
        axis = control["grid"]["last layer"]
        control["grid"]["last layer"] = {name: axis[name] for name in ("label attention", "none")}
        settings = {"model.encoder.freeze_layers": 0, "train.epochs": 1}
        control["profiles"]["five-minutes"] |= {"preset": "tiny", "set": settings}
        (tmp_path / "two.yml").write_text(yaml.safe_dump(control, sort_keys=False), encoding="utf-8")
    return json.loads(parameters)


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks) for name, marks in MARKS.items()])
def test_a_notebook_runs_and_saves_its_pictures_beside_their_tables(name, fast, tmp_path):
    parameters, names = fast, RUNS[name][1]
    result = run_notebook(FOLDER / f"{name}.ipynb", parameters, tmp_path / "run", progress=False)
    done = json.loads(result.notebook.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in done for output in cell.get("outputs", [])]
    parts = [{"text": output.get("text", ""), **output.get("data", {})} for output in outputs]
    written = [tool.text(part.get(kind, "")) for part in parts for kind in ("text", "text/html", "text/markdown")]
    said = "\n".join(written)
    assert not tool.WARNING.search(said) and not re.search(r"\bnan to|\bnan%|(?<!not defined): nan", said)
    for table in written:
        if "only_second" in table:  # two parses that are equal have nothing of their own
            continue
        rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>.*?</tr>", table, re.S)]
        assert all({*column} - {"NaN", "nan", "<NA>", ""} for column in zip(*filter(None, rows)))
    files = [path for path in result.folder.iterdir() if path.is_file() and path != result.notebook]
    pictures = [path for path in files if path.suffix in PICTURES]
    assert pictures and set(names.split()) <= {path.name for path in files}
    for picture in pictures:  # the tables it draws have its name, with more behind it where there are several
        assert picture.stat().st_size > 1000
        assert any(path.suffix == ".csv" and path.stem.startswith(picture.stem) for path in files), picture.name


BOTH = [(name, way) for name in RUNS for way in ("nbconvert", "papermill")]  # all of them take half an hour
SOME = ("04_label_attention_by_hand-nbconvert", "05_decoding_by_hand-papermill")


@pytest.mark.parametrize(
    ("name", "way"),
    [pytest.param(*b, marks=MARKS[b[0]] + [pytest.mark.release] * ("-".join(b) not in SOME)) for b in BOTH],
)
def test_a_notebook_runs_as_jupyter_runs_it(name, way, fast, tmp_path):
    """With its defaults in its own folder; as a copy in another one, where a list is passed as text."""
    book, done = FOLDER / f"{name}.ipynb", tmp_path / "done.ipynb"
    command = ["jupyter", "nbconvert", "--to", "notebook", "--execute", book.name, "--output", done]
    if way == "papermill":
        book, command = Path(shutil.copy(book, tmp_path)), ["papermill", book.name, done]
        for key, value in fast.items():
            command += ["-p", key, json.dumps(value) if isinstance(value, list) else str(value)]
    environment = {**os.environ, "LALKIT_RUN_DIR": str(tmp_path / "run"), "PYTHONPATH": str(FOLDER.parent)}
    options = {"cwd": book.parent, "env": environment, "capture_output": True, "text": True}
    ended = subprocess.run([sys.executable, "-m", *command], **options)
    assert ended.returncode == 0, ended.stderr[-2000:]
