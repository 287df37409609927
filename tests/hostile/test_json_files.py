"""Files of JSON that are damaged, foreign, or hold values of a wrong type: refused with the name of the file."""

import json
import shutil

import pytest

import lalkit
from lalkit.files import read_json
from lalkit.reproduce import sweep_plan, sweep_table
from lalkit.training.named import read_card
from tests.hostile.table import case, command_refused, refused, table

DAMAGES = {
    "empty": b"",
    "null": b"null",
    "a number": b"3",
    "a text": b'"text"',
    "an empty list": b"[]",
    "an empty object": b"{}",
    "cut off": b'{"format": "lalkit-parser-1", "runs": [',
    "a NUL byte": b'{"a": 1}\0',
    "latin-1": b'{"name": "caf\xe9"}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "a comma too many": b'{"a": 1,}',
    "nested deeply": b"[" * 100_000,
    "a number of 5,000 digits": b'{"weights": ' + b"9" * 5000 + b"}",
}


@table(
    ("text", "says"),
    [
        case("a key twice", '{"a": {"b": 1, "c": 2, "b": 1}}', "the key 'b' is there twice"),
        case("a key twice, once escaped", '{"a": 1, "\\u0061": 1}', "the key 'a' is there twice"),
        case("101 levels", '{"a":' * 101 + "1" + "}" * 101, "nested more than 100"),
        case("101 levels of two kinds", '{"a": 1, "b": ' + "[" * 100 + "1" + "]" * 100 + "}", "nested more than 100"),
        case("100,000 levels", "[" * 100_000, "nested more than 100"),
        case("a whole number of 65 bits", '{"a": 9223372036854775808}', "too long"),
        case("a negative whole number of 65 bits", '{"a": -9223372036854775809}', "too long"),
        case("5,000 digits", '{"a": ' + "9" * 5000 + "}", "(5000 digits) is too long"),
        case("NaN", '{"a": NaN}', "the number NaN is not finite"),
        case("minus infinity", '{"a": -Infinity}', "the number -Infinity is not finite"),
        case("1e400", '{"a": 1e400}', "the number 1e400 is not finite"),
        case("half a character", '{"a": "\\ud800"}', "surrogates not allowed"),
        case("half a character in a key", '{"\\udfff": 1}', "surrogates not allowed"),
    ],
)
def test_json_that_python_reads(tmp_path, text, says):
    """Python's reader takes most of these: the last of two keys counts, and numbers of every size. Later steps would fail."""
    (tmp_path / "a.json").write_text(text)
    with refused(["a.json: is damaged", says]):
        read_json(tmp_path / "a.json", "Get it again.")


@pytest.mark.parametrize("text", ['{"a": 9223372036854775807, "b": -1e300}', '{"a":' * 100 + "1" + "}" * 100])
def test_json_that_is_just_within_the_limits(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    assert read_json(tmp_path / "a.json", "") == json.loads(text)


@pytest.fixture
def folder(tiny_parser, tmp_path):
    return shutil.copytree(tiny_parser, tmp_path / "copy")


def damage(file, name):
    if name == "a folder":
        file.unlink(missing_ok=True)
        file.mkdir()
    else:
        file.write_bytes(DAMAGES[name])


def change(file, path, value):
    """Put a value at a place of a JSON file; `...` takes the place out."""
    content = json.loads(file.read_text())
    node, names = content, path.split("/")
    for name in names[:-1]:
        node = node[int(name) if isinstance(node, list) else name]
    if value is ...:
        del node[names[-1]]
    else:
        node[int(names[-1]) if isinstance(node, list) else names[-1]] = value
    file.write_text(json.dumps(content))


def damages():
    """Return a case for every damage."""
    return [case(name, name) for name in (*DAMAGES, "a folder")]


@table("name", damages())
def test_model_json(folder, name):
    damage(folder / "model.json", name)
    with refused("model.json"):
        lalkit.load(folder)


@table("name", damages())
def test_profile_json(folder, name):
    damage(folder / "profile.json", name)
    with refused("profile.json"):
        lalkit.load(folder)


@table("name", damages())
def test_card_json(tmp_path, name):
    damage(tmp_path / "card.json", name)
    with refused("card.json"):
        read_card(tmp_path)


RESUME = ["train", "--treebank", "sample", "--preset", "tiny", "--epochs", "2", "--workers", "1", "--threads", "1",
          "--out", "copy", "--resume"]  # fmt: skip


@table("name", damages(), sample=False)
def test_resume_json(folder, tmp_path, name):
    damage(folder / "resume.json", name)
    command_refused(tmp_path, RESUME, "resume.json")


@table("name", damages())
def test_settings_of_an_interrupted_parse(tiny_parser, tmp_path, name):
    (tmp_path / "text.txt").write_text("One two.\n")
    (tmp_path / "o.parts").mkdir()
    damage(tmp_path / "o.parts" / "run.json", name)
    command_refused(tmp_path, ["parse", "--model", tiny_parser, "--file", "text.txt", "--out", "o"], "o.parts")


@table("name", damages())
def test_notebook(tmp_path, name):
    damage(tmp_path / "a.ipynb", name)
    command_refused(tmp_path, ["run", "a.ipynb", "--out", "o"], "a.ipynb")


@table("name", damages())
def test_plan_of_a_sweep(tmp_path, name):
    (tmp_path / "s").mkdir()
    damage(tmp_path / "s" / "sweep.json", name)
    command_refused(tmp_path, ["report", "sweeps", "s", "--out", "o"], "s")


CELL = {
    "cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": "a: int = 1", "outputs": [], "execution_count": None,
}  # fmt: skip
NOTEBOOK = {"cells": [CELL], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}


def values(path, *choices, defect=""):
    """Return a case for every value at a place of a file; `...` stands for a place that is left out."""
    return [case(f"{path}: {'left out' if v is ... else repr(v)[:40]}", path, v, defect=defect) for v in choices]


@table(
    ("path", "value"),
    [
        *values("nbformat", None, "4", 3, 99, [], ...),
        *values("nbformat_minor", None, "5", [], ...),
        *values("metadata", None, [], 3, ...),
        *values("cells", None, {}, "x", 3, ...),
        *values("cells/0", None, [], "x"),
        *values("cells/0/cell_type", None, 3, "else", ...),
        *values("cells/0/source", None, 3, [1], ...),
        *values("cells/0/metadata", None, [], 3, ...),
        *values("cells/0/metadata/tags", None, 3, {}, "parameters"),
    ],
)
def test_values_of_a_notebook(tmp_path, path, value):
    (tmp_path / "a.ipynb").write_text(json.dumps(NOTEBOOK))
    change(tmp_path / "a.ipynb", path, value)
    command_refused(tmp_path, ["run", "a.ipynb", "--out", "o"], "a.ipynb")


@table(
    ("path", "value"),
    [
        *values("format", None, 3, "lalkit-parser-2", ...),
        *values("weights", None, 3, [], "", ..., "nowhere.safetensors", ".", "..", "../copy", "a\0b"),
        *values("vocab", {}, ...),
        *values("vocab", None, 3, [], "labels"),
        *values("vocab/labels", None, 3, "abc", [1, 2], [None], [["NP"]], {"NP": 1}, ...),
        *values("vocab/labels", []),
        *values("vocab/labels/1", "NP"),
        *values("vocab/labels/2", 3, None, ["NP"], "", "<H>", "VP"),
        *values("vocab/tags", None, 3, "abc", [1, 2]),
        *values("vocab/tags/0", 3, None, ["NN"], "", "N N"),
        *values("vocab/arc_labels/0", 3, None, ""),
        *values("vocab/words", None, "abc", [[]]),
        *values("vocab/words/2", None, 3, []),
        *values("config", None, 3, [], "x", ...),
        *values("config/model", None, 3, []),
        *values("config/model/d_ff", None, "x", [], 2.5, True),
        *values("config/model/d_ff", -1, 0),
        *values("config/model/layers", 0, 2),
        *values("config/model/surprise", 1),
        *values("config/train/lam", 2),
        *values("config/train/lam", "x"),
        *values("config/train/lam", float("nan")),
        *values("info", None, 3, [], "x"),
        *values("frozen_sha256", "0" * 64, 3),
    ],
)
def test_values_of_model_json(folder, path, value):
    change(folder / "model.json", path, value)
    with refused("copy"):
        parser = lalkit.load(folder)
        parser.parse("One two.").explore()


@table(
    ("path", "value"),
    [
        *values("weights", None, ..., "nowhere.safetensors", "../model.json", "a\0b"),
        *values("config", None, [], ...),
        *values("config/train/epochs", 3),
        *values("treebank", None, 3, "craft", ...),
        *values("data_sha256", "0" * 64, 3),
        *values("state", None, 3, [], "x", {"surprise": 1}, ...),
        *values("state", {}),
        *values("state/epoch", None, "2", -1, 1.5, []),
        *values("state/epoch", 10**400),
        *values("state/step", None, "x", -5),
        *values("state/best", None, "x"),
        *values("state/scale", None, "x", -1),
        *values("state/history", None, 3, {}, [3], [{}]),
        *values("state/history", []),
        *values("state/surprise", 1),
    ],
    sample=False,
)
def test_values_of_resume_json(folder, tmp_path, path, value):
    change(folder / "resume.json", path, value)
    command_refused(tmp_path, RESUME, "copy")


@table(
    ("path", "value"),
    [
        *values("corpus", ...),
        *values("corpus", None, 3),
        *values("labels", ...),
        *values("labels", None, 3, "NP", [3]),
        *values("led", None, 3, [], [[]], [["x"]]),
        *values("all", None, 3, [], ["x"]),
        *values("spans", None, "x", 0),
        *values("norm", None, 3, "bogus"),
    ],
)
def test_values_of_profile_json(folder, path, value):
    labels = json.loads((folder / "model.json").read_text())["vocab"]["labels"][2:]
    counts = [1] * len(labels)
    profile = {"corpus": "c", "norm": "exact", "spans": 9, "labels": labels, "led": [counts] * 6, "all": counts}
    (folder / "profile.json").write_text(json.dumps(profile))
    assert "c" in lalkit.load(folder).parse("One two.").explain()
    change(folder / "profile.json", path, value)
    with refused("profile.json"):
        lalkit.load(folder).parse("One two.").explain()


@table(("path", "value"), [*values("licence", None, "", 0, ...), *values("licence", 3, [1])])
def test_values_of_card_json(tmp_path, path, value):
    (tmp_path / "card.json").write_text('{"licence": "CC BY 4.0"}')
    change(tmp_path / "card.json", path, value)
    with refused("card.json"):
        read_card(tmp_path)


# ---------------------------------------------------------------- sweeps

SCORES = {"f1": 80.0, "exact": 50.0, "uas": 90.0, "las": 85.0, "tag_accuracy": None}
RUN = {"status": "ok", "seed": 1, "scores": {"dev": SCORES}, "parameters": 9, "seconds": 1.5, "peak_memory_mb": None,
       "best_epoch": 2, "history": [{"epoch": 1, **SCORES}]}  # fmt: skip
ROWS = "matched,gold,predicted,arcs,arcs_right,labels_right\n3,4,4,9,8,7\n,,,5,4,4\n"


def write_sweep(folder):
    """Write what `lalkit sweep` leaves of two runs, as far as a report reads it. Return the folder."""
    runs = [{"cell": {"a": name}, "seed": 1, "treebank": "sample", "key": name, "folder": name} for name in "xy"]
    claims = [{"says": "x is better", "better": {"a": "x"}, "than": "all others", "by": "f1"}]
    for name in "xy":
        (folder / name).mkdir(parents=True)
        (folder / name / "result.json").write_text(json.dumps(RUN | {"key": name}))
        (folder / name / "dev.csv").write_text(ROWS)
    content = {"name": "s", "profile": None, "file": {"claims": claims}, "runs": runs}
    (folder / "sweep.json").write_text(json.dumps(content))
    return folder


def tables(folder):
    """Return a sweep, after every table of a report was computed."""
    sweep = sweep_table.read_sweep(folder)
    split = sweep_table.split_of(sweep)
    for make in (sweep_table.cell_table, sweep_table.all_pairs, sweep_table.judge):
        make(sweep, split)  # a table may be empty, for example if no two runs have the same seed
    return sweep


@table(
    ("path", "value"),
    [
        *values("name", None, 3, ...),
        *values("profile", 3, [], ...),
        *values("file", None, 3, [], {"surprise": 1}, {"claims": 3}, {"claims": [{}]}, {"paper": []}, ...),
        *values("runs", None, 3, "x", {}, [], [3], [{}], ...),
        *values("runs/0/cell", None, 3, "x", {}, {"b": "x"}, {"a": 3}, {"a": None}, ...),
        *values("runs/0/seed", None, "1", 1.5, True, ...),
        *values("runs/0/key", None, 3, [], ...),
        *values("runs/0/folder", None, 3, [], ...),
    ],
)
def test_values_of_sweep_json(tmp_path, path, value):
    assert tables(write_sweep(tmp_path / "s")).missing == ()
    change(tmp_path / "s" / "sweep.json", path, value)
    with refused(str(tmp_path / "s")):
        tables(tmp_path / "s")


@table(
    ("path", "value"),
    [
        *values("status", None, 3, "running", ...),
        *values("key", None, 3, "z", ...),
        *values("seed", None, "1", 1.5, ...),
        *values("scores", None, 3, [], {}, {"test": SCORES}, {"dev": SCORES, "train": SCORES}, ...),
        *values("scores/dev", None, 3, {}, ...),
        *values("scores/dev/f1", "80", [], {}, ...),
        *values("parameters", None, "9", ...),
        *values("seconds", None, "1", ...),
        *values("peak_memory_mb", "1", [], ...),
        *values("best_epoch", None, "2", ...),
        *values("history", None, {}, [{"epoch": 1}], ...),
    ],
)
def test_values_of_a_result(tmp_path, path, value):
    """The run counts as not done: `lalkit sweep` repeats it, and a report names it."""
    change(write_sweep(tmp_path / "s") / "x" / "result.json", path, value)
    assert tables(tmp_path / "s").missing == ("a: x, seed 1: not run",)


@table("name", [case(name, name) for name in DAMAGES])
def test_result_of_a_run(tmp_path, name):
    damage(write_sweep(tmp_path / "s") / "x" / "result.json", name)
    assert tables(tmp_path / "s").missing == ("a: x, seed 1: not run",)


@table(
    ("data", "says"),
    [
        case("empty", b"", "x/dev.csv"),
        case("binary", bytes(range(256)), "x/dev.csv"),
        case("no columns of counts", b"id,f1\n1,2\n", "x/dev.csv"),
        case("text as a count", ROWS.replace("9,8", "9,many").encode(), "x/dev.csv"),
        case("a sentence fewer", ROWS[: ROWS.index(",,,")].encode(), "equally many"),
    ],
)
def test_counts_of_a_run(tmp_path, data, says):
    (write_sweep(tmp_path / "s") / "x" / "dev.csv").write_bytes(data)
    with refused(says):
        tables(tmp_path / "s")


YAML = "name: a\nquestion: why\ntreebank: sample\npreset: tiny\nseeds: [1]\ngrid: {a: {b: {}}}\n"
CLAIM = "claims: [{{says: {}, better: {{}}, than: {{}}, by: f1}}]\n"
LAUGHS = "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefghi", "bcdefghij")
)


@table(
    ("text", "says"),
    [
        case("20,000 brackets", YAML + CLAIM.format("[" * 20_000), "nested too deeply"),
        case("2,000 lists in lists", "- " * 2_000 + "x", "nested too deeply"),
        case("101 levels", YAML + CLAIM.format("[" * 101 + "x" + "]" * 101), "more than 100 levels"),
        case("a list inside itself", YAML + CLAIM.format("&a [*a]"), "more than 100 levels"),
        case("nine times nine times nine", "a: &a [1, 1]\n" + LAUGHS, "more than 10,000,000 values"),
        case("a day that is not", YAML + CLAIM.format("2001-02-30"), "day is out of range"),
        case("a date", YAML + CLAIM.format("2001-02-03"), "date is not JSON"),
        case("a set", YAML + CLAIM.format("!!set {a, b}"), "set is not JSON"),
        case("NaN", YAML + CLAIM.format(".nan"), "NaN is not finite"),
        case("a number of 30 digits", YAML + CLAIM.format("9" * 30), "too long"),
        case("a number of 5,000 digits", YAML + CLAIM.format("9" * 5000), "a.yml"),
        case("no base64", YAML + CLAIM.format('!!binary "x"'), "a.yml"),
        case("a list as a key", YAML + CLAIM.format("{[a]: b}"), "unhashable"),
        case("a key twice", YAML + "name: b\n", "'name' is there twice"),
        case("a command", YAML + CLAIM.format('!!python/object/apply:os.system ["true"]'), "a.yml, line 7"),
        case("a NUL", YAML + "\0", "a.yml"),
        case("empty", "", "a.yml"),
        case("a text", "text", "a.yml"),
    ],
)
def test_yaml_of_a_sweep(tmp_path, text, says, alarm):
    (tmp_path / "a.yml").write_text(text)
    with refused(["a.yml", says]):
        sweep_plan.plan(tmp_path / "a.yml")
