"""Other parsers on the same work: the same treebank, encoder, epochs and seeds, each in its own environment, scored by lalkit.

A job is a folder PEER-EPOCHS-SEED with job.json, what `peer_programs` wrote, and its log. A job with a report is not done again.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import torch

from lalkit.bench import peer_programs
from lalkit.chart.machine import ONE_THREAD
from lalkit.errors import ModelError, ParameterError
from lalkit.evaluation import scores
from lalkit.evaluation.provenance import parts_hash
from lalkit.files import find_json, locked_folder, read_json, write_json, write_text
from lalkit.network.alignment import MINILM, resolve
from lalkit.treebank import check, conllu, corpora, tree

logger = logging.getLogger(__name__)

PROGRAMS = Path(peer_programs.__file__)
# What is installed for each peer; nothing for lalkit itself. Both peers need functions that transformers 5 has removed.
PINS = (f"torch=={torch.__version__.partition('+')[0]}", "transformers==4.46.3")
SUPAR = (*PINS, "supar==1.1.4")
BENEPAR = (*PINS, "torch-struct==0.5", "benepar==0.2.0")
PEERS = {"lalkit": (), "supar-con": SUPAR, "supar-dep": SUPAR, "benepar": BENEPAR}


def measure(names: Sequence[str], treebank: str, epochs: int, seeds: Sequence[int], out: Path) -> pd.DataFrame:
    """Train the named peers. Return one row for each that could be trained and for each seed, as `row` describes.

    Raises ParameterError for a name that is not there, and for a folder with parsers of other data. A peer that cannot be
    installed or trained is left out with a message.
    """
    if unknown := sorted(set(names) - set(PEERS)):
        raise ParameterError(f"there is no peer {unknown[0]!r}", remedy=f"Peers: {', '.join(PEERS)}.")
    rows = []
    with locked_folder(out):
        lessons = check.lessons(treebank, "joint", 150)
        parts = {"train": lessons.sentences, "dev": lessons.dev, "test": corpora.load(treebank, "test").sentences}
        data = {"treebank": treebank, "sha256": parts_hash(parts.items())}
        if find_json(out / "data.json") not in (None, data):
            raise ParameterError("holds parsers of another treebank", where=str(out), remedy="Give another --out.")
        write_json(out / "data.json", data)
        for part, sentences in parts.items():
            trees = "".join(f"(TOP {tree.format_tree(sentence.tree)})\n" for sentence in sentences)
            write_text(out / "data" / f"{part}.trees", trees)
            write_text(out / "data" / f"{part}.conllu", conllu.format_conllu(sentences))
        for seed in seeds:
            done = {}
            for name in names:
                try:
                    done[name] = [run(name, epochs, seed, out)]
                except ModelError as error:
                    logger.warning("%s", error)
            if {"supar-con", "supar-dep"} <= set(done):  # a parser of each layer: together they do what lalkit does
                done["supar, both"] = done["supar-con"] + done["supar-dep"]
            common = {"epochs": epochs, "seed": seed}
            rows += [{"system": name, **common, **row(done[name], parts["test"])} for name in done]
    return pd.DataFrame(rows)


def row(folders: Sequence[Path], test: Sequence[tree.Sentence]) -> dict:
    """Return the scores of the test part that was parsed in these folders, one after the other.

    f1, uas and las in percent, None without that layer; words_per_second and epoch_seconds on one core, by the processor's
    clock; contradictions: in how many of the sentences a constituent has more than one word whose head word is outside.
    """
    reports = [read_json(folder / "report.json", "Delete it, and give the command again.") for folder in folders]
    layers = {
        kind: corpora.load(str(folder), "test", task=task).sentences
        for kind, task in (("trees", "constituents"), ("conllu", "dependencies"))
        for folder in folders
        if (folder / f"test.{kind}").exists()
    }
    summaries = [scores.evaluate(test, parses).summary() for parses in layers.values()]
    return {
        **{key: next((s[key] for s in summaries if s[key] is not None), None) for key in ("f1", "uas", "las")},
        "words_per_second": sum(map(len, test)) / sum(report["parse_seconds"] for report in reports),
        "epoch_seconds": sum(sum(r["epoch_seconds"]) / len(r["epoch_seconds"]) for r in reports),
        "contradictions": scores.contradictions(*layers.values()) if len(layers) == 2 else None,
        "sentences": len(test),
    }


def run(name: str, epochs: int, seed: int, out: Path) -> Path:
    """Do one job if it is not done. Returns its folder. Raises ModelError if it cannot be done."""
    folder = (out / f"{name}-{epochs}-{seed}").resolve()
    if find_json(folder / "report.json") is None:
        job = {"peer": name, "requirements": PEERS[name], "encoder": resolve(MINILM), "epochs": epochs, "seed": seed}
        write_json(folder / "job.json", job | {"data": str(folder.parent / "data"), "out": str(folder)})
        here = [sys.executable, "-m", peer_programs.__name__]
        program = [environment(PEERS[name]), "-P", PROGRAMS] if PEERS[name] else here
        logger.info("%s, seed %d: training", name, seed)
        _do([[*program, folder / "job.json"]], folder / "log", f"{name} could not be trained")
    return folder


def environment(requirements: Sequence[str]) -> Path:
    """Return the Python of an environment of the cache folder that has these packages; it is made if there is none."""
    name = Path(requirements[-1]).name
    folder = corpora.cache_folder() / "peers" / name
    python, installed = folder / "bin" / "python", folder / "installed.json"
    if (find_json(installed) or {}).get("requirements") != list(requirements):
        logger.info("installing %s into %s", " ".join(requirements), folder)
        make = [sys.executable, "-m", "venv", "--without-pip", "--clear", folder]
        install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *requirements]
        _do([make, install], folder.with_name(f"{name}.log"), f"{name} could not be installed")
        write_json(installed, {"requirements": requirements})
    return python


def _do(commands: Sequence[Sequence], log: Path, problem: str) -> None:
    """Run the commands with one thread. Raises ModelError with the last line of their output if one fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as output:
        for command in commands:
            if subprocess.run(command, stdout=output, stderr=output, env={**os.environ, **ONE_THREAD}).returncode:
                last = log.read_text(encoding="utf-8").strip().rpartition("\n")[2]
                raise ModelError(f"{problem}: {last[:200]}", remedy=f"See {log}, or leave it out with --peers.")
