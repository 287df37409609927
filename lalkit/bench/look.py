"""Parsing with a look inside (attention, every label head's contributions by all norms, exact ones too) against parsing."""

from __future__ import annotations

from dataclasses import replace

from lalkit.bench.measure import Settings, share
from lalkit.bench.networks import network_and_sentences
from lalkit.interpret.contributions import NORMS, contributions
from lalkit.interpret.look import look
from lalkit.predict import predict


def rows(settings: Settings) -> list[dict]:
    """One row: below 2, the contributions of all spans cost less than their parse."""
    network, collator, sentences, name = network_and_sentences(settings)
    network.eval()
    few = replace(settings, repeats=min(settings.repeats, 3))

    def looked() -> None:
        found = contributions(look(network, collator, sentences))
        for norm in NORMS:
            found.by(norm)

    case = f"{len(sentences)} sentences, {name}"
    parsed = lambda: predict(network, collator, sentences)  # noqa: E731
    return [share(few, "look", case, "contributions of all spans, every norm", "parsing", looked, parsed)]
