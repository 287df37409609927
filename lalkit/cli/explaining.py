"""`lalkit explain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from lalkit.cli.options import Model, say, set_threads
from lalkit.errors import ParameterError


def explain(
    text: Annotated[list[str] | None, typer.Argument(help="sentences", show_default=False)] = None,
    model: Model = "en-news-x",
    form: Annotated[
        Literal["raw", "tokens", "tagged"],
        typer.Option(help="of a sentence: raw, tokens between spaces, word_TAG pairs"),
    ] = "raw",
    treebank: Annotated[
        str | None, typer.Option(help="explain sentences of a treebank, beside their gold trees")
    ] = None,
    split: Annotated[str, typer.Option(help="train, dev or test")] = "dev",
    sentence: Annotated[
        list[int] | None, typer.Option(help="which of them, from 0 (repeatable); default the first ten")
    ] = None,
    label: Annotated[str | None, typer.Option(help="of the constituents in question, e.g. NP; default all")] = None,
    norm: Annotated[str, typer.Option(help="raw, minmax (the paper's), softmax, share, exact")] = "exact",
    top: Annotated[int, typer.Option(help="label heads, or words, to name")] = 3,
    html: Annotated[Path | None, typer.Option(help="write a page to explore here, one file")] = None,
    profile: Annotated[
        str | None,
        typer.Option(help="a treebank: count on its dev part which labels each head leads (shipped parsers know)"),
    ] = None,
) -> None:
    """Which label heads made a constituent, and what they attend to: in words, and with --html as a page to explore.

    A parser with label attention inside the span is explained word by word; its terms are exact, and it has no norms.
    """
    from lalkit.api import Parser
    from lalkit.draw.explorer import explorer
    from lalkit.files import write_text
    from lalkit.interpret.contributions import contributions
    from lalkit.interpret.explain import explain as explain_
    from lalkit.interpret.explain import page
    from lalkit.interpret.span_explain import explain_terms, page_of_terms
    from lalkit.interpret.tables import profile as profile_
    from lalkit.text import read_line
    from lalkit.treebank.corpora import load

    if bool(text) == bool(treebank):
        raise ParameterError("give sentences, or a --treebank")
    set_threads(None)
    parser, gold = Parser.load(model), None
    if treebank:
        corpus = load(treebank, split).sentences
        wanted = sentence or range(min(10, len(corpus)))
        wrong = [number for number in wanted if not 0 <= number < len(corpus)]
        if wrong:
            raise ParameterError(
                f"there is no sentence {wrong[0]}", remedy=f"{treebank} {split} has 0 to {len(corpus) - 1}."
            )
        chosen = gold = [corpus[number] for number in wanted]
    else:
        chosen = [read_line(line, form, str(number)) for number, line in enumerate(text, 1)]
        if None in chosen:
            raise ParameterError("a sentence has no words")
    if parser.inside and (profile or norm != "exact"):
        raise ParameterError(
            "its label attention is inside the span: what words add is exact, and every head has one label",
            remedy="Leave --norm and --profile out.",
        )
    counts = parser.profile
    if profile:
        looks = parser.look(load(profile, "dev").sentences)
        counts = profile_(contributions(looks), norm, f"{profile} dev")
    found = parser.terms(chosen) if parser.inside else parser.look(chosen)
    for seen in found:
        if len(found) > 1:
            print(f"# {' '.join(seen.prediction.sentence.words)}")
        print(
            explain_terms(seen, label, top) if parser.inside else explain_(seen, label, norm, top, counts), end="\n\n"
        )
    if html:
        if parser.inside:
            boundary = parser.inside.boundary
            data = page_of_terms(found, title="Which words made this?", model=str(model), gold=gold, boundary=boundary)
        else:
            data = page(
                found, title="Which label heads made this?", model=str(model), gold=gold, profile=counts, norm=norm
            )
        write_text(html, explorer(data))
        say(f"to explore: {html}")
