"""Train other parsers under the same conditions: the same treebank, encoder, epochs and seeds. supar has its own environment.

Example: python tools/peers.py --treebank ptb-sample --seeds 1 2

A job is a folder PEER-EPOCHS-SEED with job.json, what the peer wrote, and its log. This file is the program of the job, too: it
then runs in the environment of the peer, where there is no lalkit. It writes test.trees, test.conllu or both, and last
report.json with the settings and the times. A job with a report is not done again. lalkit scores all of them: peers.csv.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}", "-LSB-": "[", "-RSB-": "]"}
RATE, NEW_RATE, WARMUP = 1.5e-4, 1e-3, 0.1  # of lalkit (`lalkit.config`): the encoder, new layers, the share of steps
# The packages of each peer's environment; lalkit needs none. supar needs functions that transformers 5 has removed.
SUPAR = (f"torch=={version('torch').partition('+')[0]}", "transformers==4.46.3", "supar==1.1.4")
PEERS = {"lalkit": (), "supar-con": SUPAR, "supar-dep": SUPAR}
# Settings, seconds of epochs, and a function that parses the test part.
Trained = tuple[dict, list[float], Callable[[], dict[str, str]]]


# ---------------------------------------------------------------- in the environment of the peer


def raw(word: str) -> str:
    """Return the word in the form of raw text, which lalkit's encoder reads."""
    return BRACKETS.get(word, word)


def clocked(function: Callable, seconds: list[float]) -> Callable:
    """Return the function; each call of it adds its processor time to a list."""

    def call(*args):
        start = time.process_time()
        result = function(*args)
        seconds.append(time.process_time() - start)
        return result

    return call


def train_lalkit(job: dict) -> Trained:
    """Train lalkit's minilm-span, for both layers at once."""
    from lalkit import config
    from lalkit.training import checkpoint, loop
    from lalkit.treebank import conllu, corpora, tree

    changes = {"train.epochs": job["epochs"], "train.seed": job["seed"], "train.warmup": WARMUP}
    settings, seconds = config.override(config.preset("minilm-span"), changes), []
    run: Any = loop.Training(settings, job["data"], Path(job["out"], "model"))
    run.epoch = clocked(run.epoch, seconds)
    run.finish()
    parser, test = checkpoint.load_model(run.out), corpora.load(job["data"], "test").sentences

    def parse() -> dict[str, str]:
        parses = [p.sentence for p in parser.parse(test, threads=1)]
        trees = "".join(f"{tree.format_tree(parse.tree)}\n" for parse in parses)
        return {"test.trees": trees, "test.conllu": conllu.format_conllu(parses)}

    return config.to_dict(settings), seconds, parse


def train_supar(job: dict, kind: str) -> Trained:
    """Train supar's crf-con (kind: trees), or its biaffine-dep with projective decoding (kind: conllu)."""
    import supar
    import torch

    torch.load = partial(torch.load, weights_only=False)  # supar saves objects, which torch 2.6 and later refuse
    parsers: Any = {"trees": supar.CRFConstituencyParser, "conllu": supar.BiaffineDependencyParser}[kind]
    train, dev, test = (f"{job['data']}/{part}.{kind}" for part in ("train", "dev", "test"))
    settings = {"encoder": "bert", "bert": job["encoder"], "n_bert_layers": 4, "encoder_dropout": 0.1, "clip": 5.0}
    settings |= {"lr": RATE, "lr_rate": NEW_RATE / RATE, "warmup": WARMUP, "epochs": job["epochs"], "batch_size": 1000}
    settings |= {"mbr": False} if kind == "trees" else {"tree": True, "proj": True}
    usual = settings | {"path": f"{job['out']}/model", "train": train, "dev": dev, "test": dev, "checkpoint": False}
    parser, seconds = parsers.build(**usual, feat=None, build=True), []
    getattr(parser.transform, "WORD" if kind == "trees" else "FORM")[0].fn = raw
    parser._train = clocked(parser._train, seconds)
    parser.train(**usual, verbose=False)
    best = parsers.load(usual["path"])

    def parse() -> dict[str, str]:
        return {f"test.{kind}": "".join(f"{s}\n" for s in best.predict(test, **settings, verbose=False).sentences)}

    return settings, seconds, parse


def do(job: dict) -> None:
    """Do one job. The report is written last: if it exists, the job is finished."""
    import torch

    random.seed(job["seed"])
    torch.manual_seed(job["seed"])
    torch.set_num_threads(1)
    kinds = {"supar-con": "trees", "supar-dep": "conllu"}
    lalkit = job["peer"] == "lalkit"
    settings, seconds, parse = train_lalkit(job) if lalkit else train_supar(job, kinds[job["peer"]])
    times: list[float] = []
    for _ in range(3):
        parses = clocked(parse, times)()
    for name, text in parses.items():
        Path(job["out"], name).write_text(text, encoding="utf-8")
    report = {"settings": settings, "epoch_seconds": seconds, "parse_seconds": sorted(times)[1]}
    Path(job["out"], "report.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


# ---------------------------------------------------------------- with lalkit


def compare(peers: Sequence[str], treebank: str, epochs: int, seeds: Sequence[int], out: Path) -> list[dict]:
    """Train the named peers. Return one row for each that could be trained and for each seed, as `row` describes."""
    from lalkit.evaluation.provenance import parts_hash
    from lalkit.files import find_json, write_json, write_text
    from lalkit.treebank import check, conllu, corpora, tree

    lessons = check.lessons(treebank, "joint", 150)
    parts = {"train": lessons.sentences, "dev": lessons.dev, "test": corpora.load(treebank, "test").sentences}
    data = {"treebank": treebank, "sha256": parts_hash(parts.items())}
    if find_json(out / "data.json") not in (None, data):
        raise SystemExit(f"{out}: holds parsers of another treebank\n  Give another --out.")
    write_json(out / "data.json", data)
    for part, sentences in parts.items():
        trees = "".join(f"(TOP {tree.format_tree(sentence.tree)})\n" for sentence in sentences)
        write_text(out / "data" / f"{part}.trees", trees)
        write_text(out / "data" / f"{part}.conllu", conllu.format_conllu(sentences))
    rows = []
    for seed in seeds:
        done = {}
        for name in peers:
            try:
                done[name] = [run(name, epochs, seed, out)]
            except subprocess.CalledProcessError as error:
                print(f"{name}, seed {seed}, is left out: {error}. See its log in {out}.", file=sys.stderr)
        if {"supar-con", "supar-dep"} <= set(done):  # a parser for each layer: together they do the work of lalkit
            done["supar, both"] = done["supar-con"] + done["supar-dep"]
        rows += [{"system": name, "epochs": epochs, "seed": seed, **row(done[name], parts["test"])} for name in done]
    return rows


def contradictions(constituents: Sequence, arcs: Sequence) -> int:
    """Return in how many sentences a constituent of the one side contradicts the arcs of the other side.

    Such a constituent has two or more words whose head word is outside. Joint trees have none.
    """
    from lalkit.treebank.joint import external_head

    return sum(
        any(external_head(dependencies.heads, span.start, span.end) is None for span in tree.constituents)
        for tree, dependencies in zip(constituents, arcs, strict=True)
    )


def row(folders: Sequence[Path], test: Sequence) -> dict:
    """Return the scores of the test part that was parsed in these folders, one after the other.

    f1, uas and las in percent, None without that layer; words_per_second and epoch_seconds on one core, by the processor's
    clock; contradictions: in how many of the sentences a constituent has more than one word whose head word is outside.
    """
    from lalkit.evaluation import scores
    from lalkit.treebank import corpora

    reports = [json.loads((folder / "report.json").read_text(encoding="utf-8")) for folder in folders]
    layers = {
        kind: corpora.load(str(folder), "test", task=task).sentences
        for kind, task in (("trees", "constituents"), ("conllu", "dependencies"))
        for folder in folders
        if (folder / f"test.{kind}").exists()
    }
    scored = {kind: scores.evaluate(test, parses).summary() for kind, parses in layers.items()}
    kinds = {"f1": "trees", "uas": "conllu", "las": "conllu"}  # supar copies gold trees in comments
    return {
        **{key: scored[kind][key] if kind in scored else None for key, kind in kinds.items()},
        "words_per_second": sum(map(len, test)) / sum(report["parse_seconds"] for report in reports),
        "epoch_seconds": sum(sum(r["epoch_seconds"]) / len(r["epoch_seconds"]) for r in reports),
        "contradictions": contradictions(*layers.values()) if len(layers) == 2 else None,
        "sentences": len(test),
    }


def run(name: str, epochs: int, seed: int, out: Path) -> Path:
    """Do one job if it is not done. Return its folder."""
    from lalkit.files import write_json
    from lalkit.network.alignment import MINILM, resolve

    folder = (out / f"{name}-{epochs}-{seed}").resolve()
    if not (folder / "report.json").exists():
        job = {"peer": name, "requirements": PEERS[name], "encoder": resolve(MINILM), "epochs": epochs, "seed": seed}
        write_json(folder / "job.json", job | {"data": str(folder.parent / "data"), "out": str(folder)})
        python = environment(PEERS[name]) if PEERS[name] else sys.executable
        logged([python, __file__, folder / "job.json"], folder / "log")
    return folder


def environment(requirements: Sequence[str]) -> Path:
    """Return the Python of an environment of the cache folder that has these packages; it is made if there is none."""
    from lalkit.files import find_json, write_json
    from lalkit.treebank.corpora import cache_folder

    folder = cache_folder() / "peers" / Path(requirements[-1]).name
    python, installed = folder / "bin" / "python", folder / "installed.json"
    if (find_json(installed) or {}).get("requirements") != list(requirements):
        log = folder.with_name(f"{folder.name}.log")
        logged([sys.executable, "-m", "venv", "--without-pip", "--clear", folder], log)
        logged([sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *requirements], log)
        write_json(installed, {"requirements": requirements})
    return python


def logged(command: Sequence, log: Path) -> None:
    """Run a command with one thread, and write its output to a file. Raises CalledProcessError if it fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as output:
        one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run(list(map(str, command)), stdout=output, stderr=output, env=one_thread, check=True)


def main() -> None:
    if sys.argv[1:] and sys.argv[1].endswith("job.json"):
        return do(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    import pandas as pd

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--treebank", default="ptb-sample")
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--epochs", type=int, default=4, help="how often each sees the treebank")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--out", type=Path, default=Path("runs/peers"), help="the folder of the trainings")
    chosen = parser.parse_args()
    table = pd.DataFrame(compare(chosen.peers, chosen.treebank, chosen.epochs, chosen.seeds, chosen.out))
    print(table.to_string(index=False, float_format="%.2f", na_rep=""))
    table.to_csv(chosen.out / "peers.csv", index=False, float_format="%.2f")


if __name__ == "__main__":
    main()
