"""Options that several commands have, and how they speak."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from lalkit.errors import ParameterError

Treebank = Annotated[
    str,
    typer.Option(
        "--treebank", help="sample, sample-zh, ptb-sample, craft, sinica, or a folder of .trees and .conllu files"
    ),
]
Model = Annotated[str, typer.Option("--model", help="a shipped parser, a folder, or hf:owner/name")]
Parser = Annotated[str, typer.Argument(help="a shipped parser, a folder, or hf:owner/name")]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="a setting, e.g. model.label_attention.heads=32 (repeatable)")
]


def pairs(texts: list[str]):
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ParameterError(f"{text!r} is not name=value")
        yield name.strip(), value


def set_threads(count: int | None) -> None:
    import torch

    from lalkit.chart.machine import cpu_count

    if count is not None and count < 0:
        raise ParameterError(f"--threads is {count}", remedy="Give 1 or more; 0: one for every core.")
    torch.set_num_threads(count or cpu_count())


def bar(total: int, what: str):
    from tqdm import tqdm

    return tqdm(total=total, desc=what, ascii=True, mininterval=1 if sys.stderr.isatty() else 10, leave=False)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
