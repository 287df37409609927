"""Parsing with a look inside (attention, every label head's contributions by all norms, exact ones too; or, inside the span,
every term of every constituent's scores) against parsing."""

from __future__ import annotations

from dataclasses import replace

from lalkit.bench.measure import Settings, share
from lalkit.bench.networks import network_and_sentences
from lalkit.interpret.contributions import NORMS, contributions
from lalkit.interpret.paper_layer import look
from lalkit.interpret.span_layer import span_terms
from lalkit.network.predict import predict


def rows(settings: Settings) -> list[dict]:
    """One row: below 2, the contributions of all spans cost less than their parse."""
    network, collator, sentences, name = network_and_sentences(settings)
    network.eval()
    few = replace(settings, repeats=min(settings.repeats, 3))

    def looked() -> None:
        if network.config.span_attention:
            span_terms(network, collator, sentences)
            return
        found = contributions(look(network, collator, sentences))
        for norm in NORMS:
            found.by(norm)

    case = f"{len(sentences)} sentences, {name}"
    what = "terms of all constituents" if network.config.span_attention else "contributions of all spans, every norm"
    parsed = lambda: predict(network, collator, sentences)  # noqa: E731
    return [share(few, "look", case, what, "parsing", looked, parsed)]
