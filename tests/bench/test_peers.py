"""`lalkit bench peers` with a tiny program in place of a parser. No network: what is installed is a wheel made here."""

import csv
import json
import zipfile

import pytest

from lalkit import config
from lalkit.bench import peer_programs, peers
from lalkit.treebank.corpora import load
from tests.command import lalkit

PROGRAM = """
import json, pathlib, sys
import stub
job = json.loads(pathlib.Path(sys.argv[1]).read_text())
data, out = pathlib.Path(job["data"]), pathlib.Path(job["out"])
for kind in stub.LAYERS[job["peer"]]:
    (out / f"test.{kind}").write_text((data / f"test.{kind}").read_text())
(out / "runs").write_text("x" + (out / "runs").read_text() if (out / "runs").exists() else "x")
(out / "report.json").write_text(json.dumps({"epoch_seconds": [1, 3], "parse_seconds": 2}))
"""
STUB = 'LAYERS = {"supar-con": ["trees"], "supar-dep": ["conllu"]}'


def test_each_peer_has_its_environment_and_is_trained_once(tmp_path, monkeypatch):
    wheel, program, out = tmp_path / "stub-1-py3-none-any.whl", tmp_path / "program.py", tmp_path / "out"
    program.write_text(PROGRAM)
    facts = "Metadata-Version: 2.1\nName: stub\nVersion: 1\n"
    files = {"stub.py": STUB, "stub-1.dist-info/METADATA": facts, "stub-1.dist-info/RECORD": ""}
    files["stub-1.dist-info/WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(peers, "PROGRAMS", program)
    absent = str(tmp_path / "absent-1-py3-none-any.whl")
    kept = {"supar-con": (str(wheel),), "supar-dep": (str(wheel),), "benepar": (absent,)}
    monkeypatch.setattr(peers, "PEERS", kept)
    for names in ("supar-con,benepar", "supar-con,supar-dep"):
        code, shown, errors = lalkit("bench", "peers", "--treebank", "sample", "--out", out, "--peers", names)
        assert code == 0 and "supar-con" in shown
        assert ("absent-1-py3-none-any.whl could not be installed" in errors) == ("benepar" in names)
    rows = {row["system"]: row for row in csv.DictReader((out / "peers.csv").open())}
    assert set(rows) == {"supar-con", "supar-dep", "supar, both"}
    assert rows["supar-con"]["f1"] == "100.00" and rows["supar-con"]["uas"] == ""
    both, words = rows["supar, both"], sum(map(len, load("sample", "test").sentences))
    assert (both["f1"], both["las"], both["contradictions"]) == ("100.00", "100.00", "0.00")
    assert (both["epoch_seconds"], both["words_per_second"]) == ("4.00", f"{words / 4:.2f}")
    assert (out / "supar-con-4-1" / "runs").read_text() == "x"
    assert json.loads((out / "supar-con-4-1" / "job.json").read_text())["requirements"] == [str(wheel)]
    code, _, errors = lalkit("bench", "peers", "--treebank", "sample-zh", "--out", out, "--peers", "supar-con")
    assert code == 2 and f"{out}: holds parsers of another treebank" in errors


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [("--peers", "spacy", "there is no peer 'spacy'"), ("--epochs", "0", "--epochs is 0")],
)
def test_a_wrong_option_is_refused(tmp_path, option, value, problem):
    code, _, errors = lalkit("bench", "peers", "--treebank", "sample", "--out", tmp_path / "out", option, value)
    assert code == 2 and problem in errors
    assert not (tmp_path / "out").exists()


def test_the_peers_learn_with_the_rates_of_lalkit():
    """Their program cannot import lalkit, so it repeats two numbers."""
    rates = config.preset("minilm-span").train
    assert (peer_programs.RATE, peer_programs.NEW_RATE) == (rates.encoder_rate, rates.rate)
