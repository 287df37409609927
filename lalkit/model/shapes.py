"""Encoders of a published shape with random weights: what costs memory and time is there, and nothing is downloaded."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import replace

from lalkit.config import ModelConfig
from lalkit.errors import ModelError
from lalkit.model.pretrained import resolve


@contextlib.contextmanager
def random_encoder(model: ModelConfig) -> Iterator[ModelConfig]:
    """The model with an encoder of the same published shape and new weights, described in a folder of its own.

    Raises ModelError for an encoder whose shape is not known here.
    """
    from transformers import AutoConfig, BertConfig, XLNetConfig
    from transformers.utils import logging

    logging.set_verbosity_error()
    shapes = {
        "xlnet-large-cased": lambda: XLNetConfig(),  # 24 layers of 1024, 16 heads, 4096: the defaults
        "bert-base-chinese": lambda: BertConfig(vocab_size=21128),
        "minilm": lambda: AutoConfig.from_pretrained(resolve("minilm")),
    }
    name = model.encoder.pretrained
    if name not in shapes:
        raise ModelError(
            f"the shape of {name!r} is not known here", remedy=f"--random-weights is for {', '.join(shapes)}."
        )
    with tempfile.TemporaryDirectory() as folder:
        shapes[name]().save_pretrained(folder)
        yield replace(model, encoder=replace(model.encoder, pretrained=folder))
