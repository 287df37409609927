"""The whole way in a few minutes, on what the repository ships."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from lalkit.api import Parser
from lalkit.config import minilm, override
from lalkit.evaluate import evaluate
from lalkit.files import write_text
from lalkit.notebooks import run_notebook
from lalkit.parallel import usual_size
from lalkit.predict import predict
from lalkit.training import train
from lalkit.treebank.corpora import load, repository

TYPED = (
    "Select the person driving.",
    "Fed Ready to Inject Big Funds",
    "She saw the man with the telescope, didn't she?",
)


def run_demo(out: Path, minutes: float, say: Callable[[str], None]) -> None:
    """Trains on data/sample, evaluates on its dev and test parts, parses three of its test sentences and three typed ones,
    runs notebook 00; trees (text and SVG) are left in `out`."""
    say(f"==> 1/4 training a small parser on our own treebank (data/sample), at most {minutes:g} minutes")
    model = out / "parser"
    shutil.rmtree(model, ignore_errors=True)
    settings = {"epochs": 20, "max_minutes": minutes, "batch_tokens": 300, "warmup": 40, "evaluate_every": 4}
    config = override(minilm(), {f"train.{name}": value for name, value in settings.items()})
    config = override(config, {"train.workers": usual_size(config)})
    train(config, "sample", model, say=say)
    parser = Parser.load(model)

    say("==> 2/4 scores of the parser that was best on dev (training read 176 sentences: do not expect more)")
    for split in ("dev", "test"):
        gold = load("sample", split).sentences
        found = [p.sentence for p in predict(parser.network, parser.collator, gold, lam=parser.config.train.lam)]
        s = evaluate(gold, found).summary()
        say(
            f"    sample {split:5} {s['sentences']} sentences: F1 {s['f1']:.1f}  exact {s['exact']:.1f}  "
            f"UAS {s['uas']:.1f}  LAS {s['las']:.1f}  tags {s['tag_accuracy']:.1f}"
        )

    say("==> 3/4 parsing three sentences of the test part and three typed ones")
    chosen = [s.words for s in load("sample", "test").sentences if 6 <= len(s) <= 14][:3]
    results = parser.parse_all([*chosen, *TYPED])
    for number, result in enumerate(results, 1):
        print(f"\n{' '.join(result.sentence.words)}\n{result.to_ptb(pretty=True)}")
        result.save(out / f"tree-{number}.svg")
    write_text(out / "trees.txt", "".join(f"{r}\n\n" for r in results))
    write_text(out / "trees.conllu", "".join(r.to_conllu() for r in results))

    say("\n==> 4/4 running notebooks/00_quickstart.ipynb with this parser")
    ran = run_notebook(
        repository() / "notebooks" / "00_quickstart.ipynb", {"parser": str(model.resolve())}, out / "00_quickstart"
    )
    say(
        f"\ndone. The parser: {model}   the trees: {out}/trees.txt, trees.conllu, tree-1.svg ... tree-{len(results)}.svg"
        f'   the notebook: {ran.notebook}\nnext: .venv/bin/lalkit parse {model} "Your own sentence."'
    )
