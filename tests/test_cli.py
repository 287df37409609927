"""The command line as a person uses it, and as a person misuses it: one clear line, exit code 2, nothing half-written."""

import json
import signal
import subprocess
import sys
from functools import partial
from urllib.request import urlopen

import pytest

from lalkit import __version__, corpus
from lalkit.treebank import brackets, conllu
from tests.command import lalkit


def test_evaluate_prints_one_object(tiny_parser):
    code, out, err = lalkit("evaluate", tiny_parser, "--treebank", "sample", "--split", "dev", "--json", "-")
    assert code == 0, err
    record = json.loads(out)
    wanted = "precision recall f1 exact uas las uas_all las_all tag_accuracy sentences skipped seconds".split()
    assert record["computed_in"] == "fp32"
    assert all(isinstance(record[name], int | float) for name in wanted)
    assert (record["sentences"], record["skipped"]) == (44, 0)
    assert 0 < record["f1"] < 100 and 0 < record["las"] <= record["uas"] < 100


def test_parse_typed_text_in_every_form(tiny_parser, tmp_path):
    parse = ["parse", "--model", tiny_parser]
    code, out, err = lalkit(*parse, "It (still) works, doesn't it?", "Yes")
    assert code == 0, err
    trees = [tree for _, tree in brackets.scan_trees(out)]
    assert trees[0].words() == ["It", "-LRB-", "still", "-RRB-", "works", ",", "does", "n't", "it", "?"]
    assert trees[1].words() == ["Yes"] and not trees[1].is_leaf, "a one-word sentence is a constituent, not a bare leaf"
    code, out, _ = lalkit(*parse, "--form", "tagged", "--to", "conllu", "The_DT end_NN")
    assert next(conllu.scan_conll(out)).words == ("The", "end")
    code, out, _ = lalkit(*parse, "--form", "tokens", "--to", "json", "do n't")
    assert json.loads(out)["words"] == ["do", "n't"]


def test_no_file_is_replaced_that_was_not_named_exactly(tiny_parser, tmp_path, subtests):
    """Files of several forms lie beside the text. A second command is refused, before it works, unless it has --replace."""
    for folder, text in (("a", "One.\n"), ("b", "Two.\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.txt").write_text(text)
    parse = ["parse", "--model", tiny_parser]
    rows = [([*parse, f"{name}/x.txt", "--to", "ptb,json"], f"{name}/x.txt.ptb") for name in "ab"]
    rows += [([*parse, "a/x.txt", "--to", "ptb,json", "--out", "named"], "named.ptb")]
    for command, file in rows:
        with subtests.test(f"{command[3:]}"):
            assert lalkit(*command, cwd=tmp_path)[0] == 0
            before = (tmp_path / file).read_bytes()
            (tmp_path / file).write_bytes(b"mine")
            code, _, err = lalkit(*command, cwd=tmp_path)
            assert code == 2 and file in err and "--replace" in err and (tmp_path / file).read_bytes() == b"mine"
            assert lalkit(*command, "--replace", cwd=tmp_path)[0] == 0 and (tmp_path / file).read_bytes() == before
    assert (tmp_path / "a" / "x.txt.ptb").read_text() != (tmp_path / "b" / "x.txt.ptb").read_text()
    results = {"study heads en": "table.csv"}
    for command, file in results.items():
        (tmp_path / "out").mkdir(exist_ok=True)
        (tmp_path / "out" / file).write_bytes(b"mine")
        with subtests.test(command):
            code, _, err = lalkit(*command.split(), "--out", "out", cwd=tmp_path)
            assert code == 2 and f"out/{file}: is there already" in err and "--replace" in err
        (tmp_path / "out" / file).unlink()


def test_explaining(tiny_parser, tiny_span_parser, tmp_path):
    for parser, words in ((tiny_parser, "label head"), (tiny_span_parser, "of the attention")):
        code, out, err = lalkit("explain", "One two.", "--model", parser, "--html", "page.html", cwd=tmp_path)
        assert code == 0 and words in out and "page.html" in err, err
        assert "<!doctype html>" in (tmp_path / "page.html").read_text(encoding="utf-8").lower()
    for form, count in (("text", 2), ("tokens", 0)):
        code, out, err = lalkit("explain", "One two. Three.", "--model", tiny_parser, "--form", form)
        assert code == 0 and out.count("# ") == count, err


def test_heads_under_controls(tiny_parser, tiny_span_parser, tmp_path):
    code, out, err = lalkit(
        "study", "heads", f"paper={tiny_parser}", tiny_span_parser, "--treebank", "sample", "--split", "dev", "--sentences", "3",
        "--probed", "1", "--rounds", "2", "--out", "found", cwd=tmp_path,
    )  # fmt: skip
    names = {line.rpartition("/")[2] for line in out.split()}
    assert code == 0 and {"table.csv", "tests.csv", "heads.md"} == names, err
    assert "| paper |" in (tmp_path / "found" / "heads.md").read_text(encoding="utf-8")


MISUSE = [  # a command, its standard input, and the place that its one message names; PARSER is a trained parser
    ("parse --model PARSER", b"", "nothing to parse"), ("parse --model PARSER", b"a\nb\0\n", "standard input, line 2"),
    ("explain --model PARSER a.conllu", b"", "no such file"), ("parse --model PARSER", b"%PDF-1.4 x", "pdftotext"),
    ("parse --model PARSER --form text", b"1\n00:00:01,000 --> 00:00:02,000\nHello.\n", "subtitles"),
    ("parse --model PARSER --form text", b"WEBVTT\n\n00:01.000 --> 00:02.000\nHello.\n", "subtitles"),
    ("parse --model PARSER", b"id,text\n1,It rained.\n", "CSV"),
    ("parse --model PARSER", b"---\ntitle: A\n---\nHello.\n", "front matter"),
    ("parse --model PARSER --form text", b"Dear A,\n> Hello.\n> It rained.\nYes.\n", "quoted lines"),
    ("parse PARSER x", b"", "--model"), ("parse --model PARSER --form tagged", b"The_DT end\n", "stdin:1"),
    ("parse --model nowhere x --out o", b"", "nowhere"), ("parse --model PARSER --out o", b"a\nb\0\n", "line 2"),
    ("parse --model PARSER none.txt", b"", "none.txt"), ("parse --model PARSER x --workers 0", b"", "--workers"),
    ("parse -5~degrees", b"", "parse -- '-5 degrees'"), ("parse It --model english", b"", "Did you mean en?"),
    ("parse --model PARSER --require=NP(1,~2) It So", b"", "one typed sentence"),
    ("parse --model PARSER --alternatives 2 It --out x", b"", "one typed sentence"),
    ("parse --model PARSER --attach It --alternatives 2 It", b"", "--attach prints no trees"),
    ("parse --model PARSER --require NP(1,2) It --workers 0", b"", "--workers"), ("parse --confidence It", b"", "ptb"),
    ("parse --model PARSER --alternatives 0 It", b"", "trees is 0"), ("report sweeps none", b"", "holds no sweep"),
    ("parse --model PARSER --to xml x", b"", "xml"), ("serve --model PARSER --host 192.0.2.1", b"", "192.0.2.1"),
    ("explain --model PARSER \u00a0", b"", "sentence 1"), ("explain --model PARSER One. --label ZZ", b"", "ZZ"),
    ("explain --model PARSER --form tagged It_FOO", b"", "FOO"), ("explain 我們看見了", b"", "--form tokens"),
    ("explain --model PARSER One. --against PN", b"", "Did you mean"), ("explain It --model en --device gpu", b"", "gpu"),
    ("train --treebank sample --preset tiny --out new --device gpu", b"", "gpu"), ("serve --device gpu", b"", "gpu"),
    ("sweep none.yml", b"", "none.yml: cannot be read"),
    ("data check ", b"", "after check"), ("parse --model ", b"", "after --model"), ("run none.ipynb", b"", "none.ipynb"),
    ("evaluate PARSER --treebank sample --split tset", b"", "tset"),
    ("data fetch nowhere", b"", "nowhere"), ("bench nothing", b"", "nothing"), ("data check a+b --heads c", b"", "a+b: --heads"),
    ("study heads nowhere --sentences -1", b"", "--sentences"),
    ("parse It --model PARSER --precision bf16", b"", "bf16"),
    ("evaluate PARSER --treebank sample --precision bf16", b"", "bf16"),
]  # fmt: skip


def test_misuse(tiny_parser, tmp_path, subtests):
    for command, stdin, place in MISUSE:
        with subtests.test(command):
            arguments = [part.replace("PARSER", str(tiny_parser)).replace("~", " ") for part in command.split(" ")]
            code, out, err = lalkit(*arguments, stdin=stdin, cwd=tmp_path)
            assert code == 2 and place in err and "Traceback" not in err and "\\n" not in err, err
            assert out == "" and list(tmp_path.iterdir()) == []


def test_conllu_in_and_out(tiny_parser, tmp_path, monkeypatch):
    """A file keeps its lines in blocks of any size, and the parses of a test part alone are scored."""
    monkeypatch.setattr(corpus, "usual", lambda device: 1)
    row = "{}\t{}\tlemma\tX\tX\tA=b\t{}\t{}\t{}:x\tC=d\n"
    words = (("The", 2, "DET"), ("end", 3, "SBJ"), ("10 000", 0, "ROOT"))
    rows = [row.format(i, w, h, a, h) for i, (w, h, a) in enumerate(words, 1)]
    block = "".join(["# a = b\n1-2\tThend\t_\t_\t_\t_\t_\t_\t_\t_\n", *rows])
    (tmp_path / "test.conllu").write_text(f"{block}\n" * 5)
    trees = "(S (NP (X The) (X end)) (X 10\u00a0000))\n" * 4 + "(S (NP (. ,) (. ,)) (. .))\n"
    (tmp_path / "test.trees").write_text(trees)
    text = (tmp_path / "test.conllu").read_text()
    parse = ["parse", "--model", tiny_parser, "--form", "conllu", "--to", "conllu", "test.conllu"]
    code, out, err = lalkit(*parse, cwd=tmp_path)
    assert code == 0, err
    kept = [line for line in out.splitlines() if not line.startswith("# constituency")]
    for old, new in zip(text.splitlines(), kept, strict=True):
        old, new = old.split("\t"), new.split("\t")
        assert len(old) == len(new) and all(old[i] == new[i] for i in (0, 1, 2, 5, 9) if len(old) > 1)
    code, out, err = lalkit("data", "check", ".", cwd=tmp_path)
    assert code == 1 and "test: 4 sentences read, 1 problems" in out.replace(". test", "test"), out
    (tmp_path / "test.conllu").write_text(f"{block}\n" * 4 + "".join(
        row.format(i, w, h, "P", h) for i, (w, h) in enumerate(((",", 3), (",", 3), (".", 0)), 1)) + "\n")  # fmt: skip
    command = ["evaluate", tiny_parser, "--treebank", ".", "--split", "test", "--json", "s.json"]
    code, out, err = lalkit(*command, cwd=tmp_path)
    assert code == 0 and "1 sentences are left out" in err, err
    assert list(json.loads((tmp_path / "s.json").read_text())["left_out"].values()) == [1]


def test_train_from_the_command_line(tmp_path):
    """To train on, and what is refused: tests/hostile/test_trainings.py."""
    command = ["train", "--treebank", "sample", "--preset", "tiny", "--epochs", "1", "--threads", "1", "--set",
              "train.dev_sentences=5", "--set", "model.label_attention.heads=4", "--set", "model.label_attention=none",
              "--out", tmp_path / "run"]  # fmt: skip
    code, _, err = lalkit(*command)
    assert code == 0 and "epoch 1/1" in err, err
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["train"]["dev_sentences"] == 5 and config["model"]["label_attention"] is None  # the last word counts


def test_as_a_process_of_its_own(tmp_path):
    """`python -m lalkit` sets the exit code; every other test calls the command line in this process."""
    command = [sys.executable, "-OO", "-m", "lalkit", "data", "check", "nowhere"]  # without docstrings, too
    done = subprocess.run(command, capture_output=True, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == b"" and b"nowhere" in done.stderr and b"Traceback" not in done.stderr


LOADING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Finder:
    find_spec = lambda self, name, *_: name == "typer" and os.kill(os.getpid(), signal.SIGINT) or None
sys.meta_path.insert(0, Finder())
import lalkit.cli
"""


def test_ctrl_c_while_python_loads_prints_no_traceback():
    done = subprocess.run([sys.executable, "-c", LOADING], capture_output=True)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")


def test_ctrl_c_ends_the_process_before_python_takes_all_apart(monkeypatch):
    calls = []
    monkeypatch.setattr("atexit.register", lambda *call: calls.append(call))
    monkeypatch.setattr("lalkit.training.named.find", lambda *_: signal.default_int_handler(2, None))
    assert lalkit("parse", "It rained.")[0] == calls[-1][1] == 130


@pytest.mark.slow
def test_serving_until_ctrl_c(tiny_span_parser):
    command = [sys.executable, "-m", "lalkit", "serve", "--model", tiny_span_parser, "--port", "0"]
    # A shell that starts the tests in the background makes them, and all their children, ignore Ctrl-C.
    heard = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, preexec_fn=heard) as process:
        address = process.stdout.readline().strip()
        try:
            assert "Type a sentence" in urlopen(address).read().decode()
            assert json.load(urlopen(f"{address}parse?text=One+two.&k=1"))["shown"]["words"] == ["One", "two", "."]
            port = address.rstrip("/").rpartition(":")[2]
            code, _, err = lalkit("serve", "--model", tiny_span_parser, "--port", port)
            assert code == 2 and f"port {port} of 127.0.0.1: cannot be opened: Address already in use" in err
        finally:
            process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, out) == (0, "") and "Ctrl-C ends" in err and "Traceback" not in err


def test_the_doctor_works_beside_a_package_that_is_half_removed(tmp_path, monkeypatch):
    (tmp_path / "half-1.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    code, out, err = lalkit("doctor")
    assert code == 0 and "ok torch" in out, err


def test_what_is_here_as_json_and_the_version():
    code, out, err = lalkit("models", "--json", "-")
    assert code == 0 and "'en-news'" in str(json.loads(out)), err
    assert lalkit("--version") == (0, f"lalkit {__version__}\n", "")
