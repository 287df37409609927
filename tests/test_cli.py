"""The command line as a person uses it, and as a person misuses it: one clear line, exit code 2, nothing half-written."""

import json
import signal
import subprocess
import sys
from functools import partial
from urllib.request import urlopen

import pytest
import typer

from lalkit import cli
from lalkit.cli.options import documented
from lalkit.corpus import Parts
from lalkit.treebank import brackets, conllu
from tests.command import lalkit


def test_evaluate_prints_one_object(tiny_parser, tmp_path):
    code, out, err = lalkit(
        "evaluate", tiny_parser, "--treebank", "sample", "--split", "dev", "--json", "-", "--table", tmp_path / "t.csv"
    )
    assert code == 0, err
    record = json.loads(out)
    wanted = "precision recall f1 exact uas las uas_all las_all tag_accuracy sentences skipped seconds".split()
    assert record["computed_in"] == "fp32"
    assert all(isinstance(record[name], int | float) for name in wanted)
    assert (record["sentences"], record["skipped"]) == (44, 0)
    assert 0 < record["f1"] < 100 and 0 < record["las"] <= record["uas"] < 100
    assert len((tmp_path / "t.csv").read_text().splitlines()) == 45
    code, _, err = lalkit("evaluate", tiny_parser, "--treebank", "sample", "--parses", "-", cwd=tmp_path)
    assert code == 2 and "- is not the name of a file" in err and "--json" in err


def test_parse_typed_text_in_every_form(tiny_parser, tmp_path):
    code, out, err = lalkit("parse", "--model", tiny_parser, "It (still) works, doesn't it?", "Yes")
    assert code == 0, err
    trees = [tree for _, tree in brackets.scan_trees(out)]
    assert trees[0].words() == ["It", "-LRB-", "still", "-RRB-", "works", ",", "does", "n't", "it", "?"]
    assert trees[1].words() == ["Yes"] and not trees[1].is_leaf, "a one-word sentence is a constituent, not a bare leaf"
    code, out, _ = lalkit("parse", "--model", tiny_parser, "--form", "tagged", "--to", "conllu", "The_DT end_NN")
    assert next(conllu.scan_conll(out)).words == ("The", "end")
    code, out, _ = lalkit(
        "parse", "--model", tiny_parser, "--form", "tokens", "--to", "json", "do n't", "--svg", tmp_path
    )
    assert json.loads(out)["words"] == ["do", "n't"]
    assert (tmp_path / "0001.svg").read_text().startswith("<svg")


def test_a_file_by_its_name_in_several_forms(tiny_parser, tmp_path):
    (tmp_path / "two.txt").write_text("One. Two.\n")
    code, out, err = lalkit("parse", "--model", tiny_parser, "--form", "text", "two.txt", cwd=tmp_path)
    assert code == 0 and len(out.splitlines()) == 2, err
    code, more, err = lalkit(
        "parse", "--model", tiny_parser, "--form", "text", "--to", "ptb,conllu,json", "two.txt", cwd=tmp_path
    )
    assert code == 0 and more == "", err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["two.txt", "two.txt.conllu", "two.txt.json", "two.txt.ptb"]
    assert (tmp_path / "two.txt.ptb").read_text() == out


def test_explaining(tiny_parser, tmp_path):
    code, out, err = lalkit("explain", "One two.", "--model", tiny_parser, "--html", "page.html", cwd=tmp_path)
    assert code == 0 and "most by label head" in out and "to explore: page.html" in err, err
    assert "<!doctype html>" in (tmp_path / "page.html").read_text(encoding="utf-8").lower()
    code, out, err = lalkit(
        "explain", "--treebank", "sample", "--sentence", "3", "--sentence", "4", "--model", tiny_parser, "--norm", "share",
        "--profile", "sample",
    )  # fmt: skip
    assert code == 0 and out.count("# ") == 2 and "In sample dev it is on top of" in out, err


def test_explaining_by_words(tiny_span_parser, tmp_path):
    code, out, err = lalkit("explain", "One two.", "--model", tiny_span_parser, "--html", "page.html", cwd=tmp_path)
    assert code == 0 and "its words give" in out and "a constant" in out and "to explore: page.html" in err, err
    assert "Terms of scores" in (tmp_path / "page.html").read_text(encoding="utf-8")
    code, _, err = lalkit("explain", "One two.", "--model", tiny_span_parser, "--norm", "share")
    assert code == 2 and "what words add is exact" in err and "Leave --norm and --profile out" in err


def test_heads_under_controls(tiny_parser, tiny_span_parser, tmp_path):
    code, out, err = lalkit(
        "heads", f"paper={tiny_parser}", tiny_span_parser, "--treebank", "sample", "--split", "dev", "--sentences", "3",
        "--label", "NP", "--probed", "1", "--rounds", "2", "--out", "found", cwd=tmp_path,
    )  # fmt: skip
    assert code == 0 and "span glass, seed 1 ..." in err, err
    assert [line.rpartition("/")[2] for line in out.split()] == [
        "table.csv",
        "tests.csv",
        "heads.md",
        "heads.csv",
        "heads.png",
    ]
    assert "| paper |" in (tmp_path / "found" / "heads.md").read_text(encoding="utf-8")
    code, _, err = lalkit("heads", "nowhere", cwd=tmp_path)
    assert code == 2 and "no parser here" in err
    for option, value in (("--sentences", "-1"), ("--probed", "0"), ("--rounds", "0")):
        code, _, err = lalkit("heads", "nowhere", option, value, cwd=tmp_path)
        assert code == 2 and option in err


def test_an_empty_line_keeps_its_place(tiny_parser):
    code, out, err = lalkit("parse", "--model", tiny_parser, stdin=b"One.\n\n \nTwo.\n")
    assert code == 0 and "2 empty line(s)" in err
    lines = out.split("\n")
    assert lines[1] == lines[2] == "" and lines[0] and lines[3]


def test_a_file_is_parsed_and_gone_on_with(tiny_parser, tmp_path, monkeypatch):
    (tmp_path / "big.txt").write_text("One two.\n\nThree.\n")
    common = ["parse", "--model", tiny_parser, "--file", "big.txt", "--out", "big.ptb"]
    code, out, err = lalkit(*common, cwd=tmp_path)
    assert code == 0 and out == "", err
    assert err.startswith("2 sentences, 5 words in ") and err.endswith("1 empty line(s) skipped\n")
    text = (tmp_path / "big.ptb").read_text()
    assert len(text.split("\n")) == 4 and sorted(p.name for p in tmp_path.iterdir()) == ["big.ptb", "big.txt"]
    with monkeypatch.context() as patch:
        patch.setattr(
            Parts, "join", lambda *parts: {"sentences": 2, "empty": 0, "words": 5}
        )  # interrupted before this step
        assert lalkit(*common, cwd=tmp_path)[0] == 0 and (tmp_path / "big.ptb.parts").is_dir()
    code, _, err = lalkit(*common, "--to", "json", cwd=tmp_path)
    assert code == 2 and "big.ptb.parts: " in err
    code, _, err = lalkit(*common, cwd=tmp_path)
    assert code == 0 and (tmp_path / "big.ptb").read_text() == text, err
    code, _, err = lalkit("parse", "--model", tiny_parser, "big.txt", "--out", "./big.txt", cwd=tmp_path)
    assert code == 2 and "big.txt: is the text itself" in err and (tmp_path / "big.txt").read_text().startswith("One")


@pytest.mark.parametrize("typed", [True, False])
def test_a_300_word_sentence(tiny_parser, typed):
    text = "word " * 300 + "\n"
    given = {"stdin": b""} if typed else {"stdin": text.encode()}
    code, out, err = lalkit("parse", "--model", tiny_parser, "--form", "tokens", *[text] * typed, **given)
    assert code == 0, err
    assert len(brackets.parse_tree(out).leaves()) == 300


@pytest.mark.parametrize(
    ("arguments", "stdin", "says"),
    [
        (["parse", "--model", "{parser}"], b"", "nothing to parse"),
        (["parse", "--model", "{parser}"], b"caf\xe9\n", "standard input, line 1: byte 0xe9 is not utf-8"),
        (["parse", "--model", "{parser}"], b"a\nb\0\n", "standard input, line 2: a NUL byte"),
        (["parse", "--model", "{parser}", "--form", "tagged"], b"The_DT end\n", "stdin:1: 'end' is no word_TAG pair"),
        (["parse", "--model", "{parser}", "--file", "none.txt"], b"", "none.txt: cannot be read"),
        (["parse", "--model", "nowhere", "x"], b"", "nowhere: no parser here"),
        (["parse", "--model", "nowhere", "x", "--out", "o"], b"", "nowhere: no parser here"),
        (["parse", "--model", "{parser}", "--out", "o"], b"a\nb\0\n", "standard input, line 2: a NUL byte"),
        (["parse", "--model", "{parser}", "x", "--workers", "0"], b"", "--workers is 0"),
        (["parse", "{parser}", "x"], b"", "is a parser, not a text\n  Write: --model"),
        (["parse", "--model", "{parser}", "--file", "f", "x"], b"", "there are sentences and a --file"),
        (["parse", "--model", "{parser}", "--to", "xml", "x"], b"", "no form 'xml'"),
        (["serve", "--model", "{parser}", "--port", "65536"], b"", "--port is 65536\n  Give 0 to 65535"),
        (["serve", "--model", "{parser}", "--host", "192.0.2.1"], b"", "of 192.0.2.1: cannot be opened"),
        (["explain", "--model", "{parser}"], b"", "Give either sentences or a --treebank"),
        (["explain", "--model", "{parser}", ""], b"", "a sentence has no words"),
        (["explain", "--model", "{parser}", "One.", "--label", "ZZ"], b"", "there is no ZZ in this parse"),
        (
            ["explain", "--model", "{parser}", "--treebank", "sample", "--sentence", "44"],
            b"",
            "there is no sentence 44",
        ),
        (["evaluate", "{parser}", "--treebank", "nowhere"], b"", "there is no treebank 'nowhere'"),
        (["evaluate", "{parser}", "--treebank", "sample", "--split", "tset"], b"", "there is no split 'tset'"),
        (["train", "--treebank", "sample", "--out", "o", "--preset", "big"], b"", "there is no preset 'big'"),
        (["train", "--treebank", "sample", "--out", "o", "--set", "train.sed=1"], b"", "no setting 'train.sed'"),
        (["train", "--treebank", "sample", "--out", "o", "--set", "train.seed"], b"", "is not name=value"),
        (["evaluate", "{parser}", "--treebank", "sample", "--lam", "2"], b"", "Invalid value for '--lam'"),
        (["evaluate", "{parser}", "--treebank", "sample", "--threads", "-1"], b"", "--threads is -1"),
        (["evaluate", "{parser}", "--treebank", "sample", "--json", "."], b"", "is a folder"),
        (
            ["train", "--treebank", "sample", "--preset", "tiny", "--out", "{parser}/model.json"],
            b"",
            "model.json is a file and not a folder",
        ),
        (["run", "none.ipynb"], b"", "none.ipynb"),
        (["data", "stats", "nowhere"], b"", "there is no treebank 'nowhere'"),
        (["data", "fetch", "nowhere"], b"", "nothing to fetch"),
    ],
)
def test_misuse(tiny_parser, tmp_path, arguments, stdin, says):
    code, out, err = lalkit(*[a.format(parser=tiny_parser) for a in arguments], stdin=stdin, cwd=tmp_path)
    assert code == 2 and says in err and "Traceback" not in err, err
    assert out == "" and list(tmp_path.iterdir()) == []


def test_evaluation_meets_an_unknown_label(tiny_parser, tmp_path):
    (tmp_path / "dev.trees").write_text("( (ZZZ (QQ a) (NN b)) )\n( (S (VP (VB Go))) )\n")
    code, out, err = lalkit("evaluate", tiny_parser, "--treebank", tmp_path, "--json", "-")
    assert code == 0, err
    assert json.loads(out)["sentences"] == 2 and json.loads(out)["skipped"] == 0


def test_check_names_every_problem(tmp_path):
    (tmp_path / "train.trees").write_text("( (S (A a) )\n( (S (A a)) )\n")
    code, out, _ = lalkit("data", "check", tmp_path)
    assert code == 1 and "line 1, tree 1" in out and "1 sentences read, 1 problems" in out


def test_doctor():
    code, out, _ = lalkit("doctor")
    assert code == 0 and "corpus sample" in out and "torch" in out


def test_train_and_resume_from_the_command_line(tmp_path):
    common = ["train", "--treebank", "sample", "--preset", "tiny", "--epochs", "1", "--threads", "1", "--set",
              "train.dev_sentences=5", "--set", "model.label_attention.heads=4", "--set", "model.label_attention=none",
              "--out", tmp_path / "run"]  # fmt: skip
    code, _, err = lalkit(*common)
    assert code == 0 and "epoch 1/1" in err, err
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["train"]["dev_sentences"] == 5 and config["model"]["label_attention"] is None  # the last word counts
    code, _, err = lalkit(*common)
    assert code == 2 and "--resume" in err
    code, _, err = lalkit(*common, "--resume")
    assert code == 0, err


def test_bench_prints_rows():
    code, out, err = lalkit("bench", "spans", "--repeats", "1", "--json", "-")
    assert code == 0, err
    rows = json.loads(out)
    assert [r["case"] for r in rows] == ["20 words", "40 words", "80 words"]
    assert all(r["ours_ms"] > 0 and r["ratio_min"] <= r["ratio"] <= r["ratio_max"] for r in rows)
    code, _, err = lalkit("bench", "nothing")
    assert code == 2 and "contributions" in err


def test_sweep_speaks_of_what_is_wrong(tmp_path):
    code, out, err = lalkit("sweep", tmp_path / "a.yml")
    assert (code, out) == (2, "") and "a.yml: cannot be read" in err
    code, _, err = lalkit("sweep", tmp_path / "a.yml", "--jobs", 2, "--cluster", "tcp://127.0.0.1:1")
    assert code == 2 and "Give one of the two" in err
    assert not list(tmp_path.iterdir())


def test_as_a_process_of_its_own(tmp_path):
    """`python -m lalkit` sets the exit code and leaves no traceback; every other test calls the command line in this process."""
    done = subprocess.run(
        [sys.executable, "-m", "lalkit", "data", "stats", "nowhere"], capture_output=True, cwd=tmp_path
    )
    assert done.returncode == 2 and done.stdout == b""
    assert b"there is no treebank 'nowhere'" in done.stderr and b"Traceback" not in done.stderr


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


def commands(group, path="lalkit"):
    """Yield (name, command) for every command of a group and of the groups in it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


@pytest.mark.parametrize(("name", "command"), list(commands(typer.main.get_command(cli.app))))
def test_every_command_has_an_example_and_every_option_a_sentence(name, command):
    assert f"Example: {name}" in command.help
    texts = {option.name: option.help or "" for option in command.params}
    assert [option for option, text in texts.items() if not text.endswith(".")] == []


def test_an_option_without_a_sentence_is_refused():
    def command(out: str = "x") -> None:
        """Do something.

        Args:
            other: Something else.
        """

    with pytest.raises(KeyError, match="out"):
        documented(command)
