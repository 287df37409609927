"""The whole way in a minute, on what the repository ships."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lalkit.api import Parser
from lalkit.evaluate import evaluate
from lalkit.files import write_text
from lalkit.notebooks import run_notebook
from lalkit.treebank.corpora import load, repository

TYPED = (
    "Select the person driving.",
    "Fed Ready to Inject Big Funds",
    "She saw the man with the telescope, didn't she?",
)


def run_demo(out: Path, model: str, say: Callable[[str], None]) -> None:
    """Parses three sentences of data/sample and three typed ones with a shipped parser, scores it on the dev and test parts
    of data/sample, runs notebook 00; trees (text and SVG) are left in `out`."""
    parser = Parser.load(model)
    say(f"==> 1/3 parsing three sentences of data/sample and three typed ones with {model}")
    chosen = [s.words for s in load("sample", "test").sentences if 6 <= len(s) <= 14][:3]
    results = parser.parse_all([*chosen, *TYPED])
    for number, result in enumerate(results, 1):
        print(f"\n{' '.join(result.sentence.words)}\n{result.to_ptb(pretty=True)}")
        result.save(out / f"tree-{number}.svg")
    write_text(out / "trees.txt", "".join(f"{r}\n\n" for r in results))
    write_text(out / "trees.conllu", "".join(r.to_conllu() for r in results))

    say("\n==> 2/3 scores on our own treebank (six registers; the parser has never seen it)")
    for split in ("dev", "test"):
        gold = load("sample", split).sentences
        s = evaluate(gold, [r.sentence for r in parser.parse_all([g.words for g in gold])]).summary()
        say(
            f"    sample {split:5} {s['sentences']} sentences: F1 {s['f1']:.1f}  exact {s['exact']:.1f}  "
            f"UAS {s['uas']:.1f}  LAS {s['las']:.1f}  tags {s['tag_accuracy']:.1f}"
        )

    say("\n==> 3/3 running notebooks/00_quickstart.ipynb")
    ran = run_notebook(repository() / "notebooks" / "00_quickstart.ipynb", {"parser": model}, out / "00_quickstart")
    say(
        f"\ndone. The trees: {out}/trees.txt, trees.conllu, tree-1.svg ... tree-{len(results)}.svg"
        f"   the notebook: {ran.notebook}\n"
        'next: .venv/bin/lalkit parse "Your own sentence."   or train one yourself, in three minutes:\n'
        "      .venv/bin/lalkit train --treebank sample --preset minilm --max-minutes 3 --out runs/first"
    )
