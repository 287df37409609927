"""One run of a sweep, from its config to its scores. `python -m lalkit.reproduce.sweep_run FOLDER TASK` is its process.

Training can go on where it was interrupted. The process ends with the one who started it, however that ends: it keeps
the other end of our standard input.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from lalkit.errors import LalkitError, ModelError
from lalkit.files import write_json, write_text
from lalkit.reproduce.sweep_runs import FAILED, RESULT, alone, finished, write_failure

THREADS = 1  # of every run, so that its numbers do not depend on how many run beside it


def carry_out(folder: Path, task: dict) -> dict:
    """Trains, chooses on dev, scores dev and test; returns what result.json then holds.

    task: cell, seed, key, config (as saved), treebank, and the hash of the code it was planned with, `code_sha256`. Leaves
    the parser in folder/parser, the sentences' counts (no text) in dev.csv and test.csv, and result.json at the end. A run
    that is finished is not repeated. Raises what training raises, and ModelError where lalkit's source has changed.
    """
    from lalkit.config import Config, from_dict
    from lalkit.evaluation import provenance
    from lalkit.evaluation.scores import evaluate
    from lalkit.network.predict import predict
    from lalkit.training.checkpoint import load_model, read_content
    from lalkit.training.loop import train
    from lalkit.treebank.corpora import repository

    if done := finished(folder, task["key"]):
        return done
    if provenance.code_hash() != task["code_sha256"]:
        raise ModelError(
            "lalkit's source is not what it was when the sweep was planned", remedy="Start the sweep again."
        )
    parser = folder / "parser"
    _forget_a_finished_training(parser)
    train(from_dict(Config, task["config"]), task["treebank"], parser, resume=True, say=partial(print, flush=True))
    begun = time.perf_counter()
    loaded, state = load_model(parser), read_content(parser, "resume")["state"]
    scores = {}
    for split, gold in provenance.splits(task["treebank"], loaded.config.model.task).items():
        if split != "train":
            lam = loaded.config.train.lam
            parses = predict(loaded.network, loaded.collator, gold, lam=lam, threads=THREADS)
            result = evaluate(gold, [p.sentence for p in parses])
            scores[split] = result.summary()
            write_text(folder / f"{split}.csv", result.table().to_csv(index=False))
    result = {
        **task,
        "status": "ok",
        "error": None,
        "scores": scores,
        "epochs": state["epoch"],
        "best_epoch": loaded.info["epoch"],
        "history": state["history"],
        "parameters": sum(p.numel() for p in loaded.network.parameters() if p.requires_grad),  # those trained
        "seconds": round(state["seconds"] + time.perf_counter() - begun, 1),  # interruptions not counted
        "peak_memory_mb": provenance.peak_memory(),
        "threads": THREADS,
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "git": provenance.git_revision(repository()),
        "versions": provenance.versions(),
        "device": provenance.device(),
    }
    write_json(folder / RESULT, result)
    for weights in parser.glob("resume-*.safetensors"):  # two thirds of the folder, and nobody will go on
        weights.unlink()
    return result


def _forget_a_finished_training(parser: Path) -> None:
    """Where someone has deleted result.json, the weights to go on with are gone too: train again."""
    if not any(parser.glob("resume-*.safetensors")):
        (parser / "resume.json").unlink(missing_ok=True)


def main() -> None:
    """Exit code 0 where result.json says ok, FAILED where it says why not."""
    folder, task = Path(sys.argv[1]), json.loads(sys.argv[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who started us decides
    threading.Thread(target=_end_with_the_other, daemon=True).start()
    import torch

    from lalkit.chart.machine import keep_memory

    keep_memory()
    torch.set_num_threads(THREADS)
    with alone(folder):
        try:
            carry_out(folder, task)
        except Exception as error:
            traceback.print_exc()
            said = str(error) if isinstance(error, LalkitError) else f"{type(error).__name__}: {error}"
            write_failure(folder, task, said)
            sys.exit(FAILED)


def _end_with_the_other() -> None:
    while os.read(0, 1):  # not sys.stdin, whose lock a thread may not hold when Python ends
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
