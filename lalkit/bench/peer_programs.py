"""Train another parser and parse with it: its network, its loss and its decoder, with the encoder and the rates of lalkit.

This file runs in the environment of that parser, where there is no lalkit: python peer_programs.py JOB.json. `lalkit.bench.peers`
writes the job, and reads what comes out: test.trees, test.conllu or both, then report.json with the settings and the times.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}", "-LSB-": "[", "-RSB-": "]"}
RATE, NEW_RATE, WARMUP = 1.5e-4, 1e-3, 0.1  # of lalkit (`lalkit.config`): the encoder, new layers, the share of steps
# Settings, seconds of epochs, what parses the test part.
Trained = tuple[dict, list[float], Callable[[], dict[str, str]]]


def raw(word: str) -> str:
    """Return the word as it stands in raw text, as lalkit's encoder reads it."""
    return BRACKETS.get(word, word)


def clocked(function: Callable, seconds: list[float]) -> Callable:
    """Return the function; each call of it adds its processor time to a list."""

    def call(*args):
        start = time.process_time()
        result = function(*args)
        seconds.append(time.process_time() - start)
        return result

    return call


def lalkit(job: dict) -> Trained:
    """Train lalkit's minilm-span, for both layers at once."""
    from lalkit import config
    from lalkit.network.predict import predict
    from lalkit.training import checkpoint, loop
    from lalkit.treebank import conllu, corpora, tree

    changes = {"train.epochs": job["epochs"], "train.seed": job["seed"], "train.warmup_share": WARMUP}
    settings, seconds = config.override(config.preset("minilm-span"), changes), []
    run: Any = loop.Run(settings, job["data"], Path(job["out"], "model"))
    run.epoch = clocked(run.epoch, seconds)
    run.finish()
    parser, test = checkpoint.load_model(run.out), corpora.load(job["data"], "test").sentences

    def parse() -> dict[str, str]:
        parses = [p.sentence for p in predict(parser.network, parser.collator, test, threads=1)]
        trees = "".join(f"{tree.format_tree(parse.tree)}\n" for parse in parses)
        return {"test.trees": trees, "test.conllu": conllu.format_conllu(parses)}

    return config.to_dict(settings), seconds, parse


def supar(job: dict, kind: str) -> Trained:
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


def benepar(job: dict) -> Trained:
    """Train benepar's chart parser. Its trainer is not in its package, so this loop is ours; its last epoch counts."""
    import nltk
    import torch
    import transformers
    from benepar import decode_chart, nkutil, parse_chart

    def read(part: str, gold: bool) -> list[SimpleNamespace]:
        trees = [nltk.Tree.fromstring(line) for line in Path(job["data"], part).open(encoding="utf-8")]
        words = [[raw(word) for word in tree.leaves()] for tree in trees]
        return [
            SimpleNamespace(words=w, space_after=[True] * len(w), tree=t if gold else None, pos=t.pos)
            for w, t in zip(words, trees)
        ]

    train, test = read("train.trees", True), read("test.trees", False)
    # The defaults of its trainer, with the two layers that it recommends on top of BERT.
    settings = {
        "use_pretrained": True, "pretrained_model": job["encoder"], "use_chars_lstm": False, "use_encoder": True, "d_model": 1024,
        "num_layers": 2, "num_heads": 8, "d_kv": 64, "d_ff": 2048, "encoder_max_len": 512, "morpho_emb_dropout": 0.2,
        "attention_dropout": 0.2, "relu_dropout": 0.1, "residual_dropout": 0.2, "force_root_constituent": True,
        "predict_tags": True, "d_label_hidden": 256, "d_tag_hidden": 256, "tag_loss_scale": 5.0,
    }  # fmt: skip
    tags = {tag: i for i, tag in enumerate(sorted({tag for example in train for _, tag in example.pos()}))}
    labels = decode_chart.ChartDecoder.build_vocab([example.tree for example in train])
    parser = parse_chart.ChartParser(tags, labels, None, nkutil.HParams(**settings))
    rates = [{"params": list(parser.pretrained_model.parameters()), "lr": RATE}]
    new = [weights for name, weights in parser.named_parameters() if not name.startswith("pretrained_model.")]
    optimizer = torch.optim.Adam([*rates, {"params": new, "lr": NEW_RATE}])
    steps = job["epochs"] * -(-len(train) // 32)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, int(WARMUP * steps), steps)
    seconds: list[float] = []

    def epoch() -> None:
        order = random.sample(train, len(train))
        for start in range(0, len(order), 32):
            optimizer.zero_grad()
            for _, batch in parser.encode_and_collate_subbatches(order[start : start + 32], 1000):
                parser.compute_loss(batch).backward()
            torch.nn.utils.clip_grad_norm_(parser.parameters(), 1.0)
            optimizer.step()
            schedule.step()

    parser.train()
    for _ in range(job["epochs"]):
        clocked(epoch, seconds)()

    def parse() -> dict[str, str]:
        trees = parser.parse(test, subbatch_max_tokens=1000)
        return {"test.trees": "".join(f"{tree.pformat(sys.maxsize)}\n" for tree in trees)}

    return settings, seconds, parse


def main(job: dict) -> None:
    """Do one job. The report comes last: where it stands, the job is done."""
    import torch

    random.seed(job["seed"])
    torch.manual_seed(job["seed"])
    torch.set_num_threads(1)
    settings, seconds, parse = PROGRAMS[job["peer"]](job)
    times: list[float] = []
    for _ in range(3):
        parses = clocked(parse, times)()
    for name, text in parses.items():
        Path(job["out"], name).write_text(text, encoding="utf-8")
    report = {"settings": settings, "epoch_seconds": seconds, "parse_seconds": sorted(times)[1]}
    Path(job["out"], "report.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


PROGRAMS: dict[str, Callable[[dict], Trained]] = {
    "lalkit": lalkit, "supar-con": partial(supar, kind="trees"), "supar-dep": partial(supar, kind="conllu"), "benepar": benepar
}  # fmt: skip
if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
