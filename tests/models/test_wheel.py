"""The wheel of lalkit parses, offline and away from the checkout; a wheel of a parser adds its name."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOP = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "MANIFEST.in")
OFFLINE = "import socket\ndef refuse(*a): raise OSError('no network')\nsocket.socket.connect = refuse\n"
PROGRAM = f"""
{OFFLINE}
import json, lalkit
from lalkit.training.named import names
try:
    lalkit.load("en-news")
except lalkit.errors.LalkitError as error:
    refused = str(error)
tree = lalkit.load().parse("The cells grow quickly.").to_ptb()
other = lalkit.load("en-news-span").parse("It works.").to_ptb()
sample = len(lalkit.Treebank.load("sample", "test"))
print(json.dumps([lalkit.__file__, names(), refused, tree, other, sample]))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the content of both wheels; what they need is in the environment of the tests."""
    place = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    # From a copy: setuptools leaves its folder `build` where it works.
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    for name in filter(lambda n: n.startswith(("lalkit/", "data/")) or n in TOP, files):
        target = place / "source" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(ROOT / name)
    subprocess.run([*build, place / "wheels", place / "source"], check=True)
    subprocess.run(
        [sys.executable, ROOT / "tools" / "model_wheel.py", "en-news-span", "--out", place / "wheels"], check=True
    )
    for wheel in (place / "wheels").glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(place / "packages")
    return place


@pytest.mark.slow
def test_a_wheel_parses_offline_away_from_the_checkout(installed):
    environment = {**os.environ, "PYTHONPATH": str(installed / "packages"), "HF_HUB_OFFLINE": "1"}
    run = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(run, cwd=installed, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    file, names, refused, tree, other, sample = json.loads(done.stdout)
    assert Path(file).is_relative_to(installed) and names == ["en-news-span", "en-span"]
    assert "pip install lalkit-models-NAME" in refused and "en-span" in refused
    assert tree.startswith("(S ") and other.startswith("(S ") and sample == 44

    (wheel,) = (installed / "wheels").glob("lalkit-*.whl")
    assert wheel.stat().st_size < 8e6
    assert {file.name for file in (installed / "packages").iterdir() if "-info" not in file.name} == {
        "lalkit",
        "lalkit_models",
    }
