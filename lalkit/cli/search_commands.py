"""`lalkit search`: find places in trees by a pattern, with conditions on words and arcs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from lalkit.cli import options
from lalkit.cli.options import documented
from lalkit.errors import ParameterError


@documented
def search(
    pattern: str,
    treebank: str | None = None,
    split: options.Split = "test",
    file: Path | None = None,
    form: Literal["text", "raw", "tokens", "tagged"] = "raw",
    model: str | None = None,
    head: str | None = None,
    arc: str | None = None,
    word: str | None = None,
    tag: str | None = None,
    columns: str | None = None,
    out: Annotated[Path | None, options.FILE] = None,
) -> None:
    """Search trees for a pattern of tgrep, and print each match between its neighbouring words.

    Patterns are explained in notebooks/patterns.md. A condition is a text, or a regular expression between slashes.

    Example: lalkit search "SBAR < (IN < that)" --treebank sample --head that

    Args:
        pattern: The pattern, e.g. "NP << who".
        treebank: Search the gold trees of this treebank, or with --model its parses.
        file: Search this file: brackets (.trees, .ptb), results of `lalkit parse --to json` (.json), or a text, which is parsed.
        form: What a line of a text is: raw (one sentence), text (any number of sentences), tokens or tagged.
        model: The parser, a name or a folder; for a text, default if none is given.
        head: The head word of the match.
        arc: The label of the arc from the head word to its own head.
        word: A word of the match.
        tag: The tag of a word of the match; with --word, of the same word.
        columns: What to say of each match, with commas between: top_head, share, effect, probability, margin, gold.
        out: Write a table (.csv), or a page to explore (.html).
    """
    from lalkit.api import Parser
    from lalkit.interpret.causes import check_columns
    from lalkit.parsing.search_corpus import BLOCK, search_file, search_parts, write
    from lalkit.treebank.corpora import load
    from lalkit.treebank.patterns import Pattern

    if bool(treebank) == bool(file):
        raise ParameterError("nothing to search, or too much", remedy="Give either a --treebank or a --file.")
    asked = [name.strip() for name in columns.split(",")] if columns else []
    check_columns(asked)
    if asked and not out:
        raise ParameterError("--columns are written to a table", remedy="Give --out the name of a .csv file.")
    compiled = Pattern(pattern, head, arc, word, tag)
    options.set_threads(None)
    if file:
        return write(search_file(file, compiled, model, asked, form), compiled, out)
    if asked and not model:
        raise ParameterError("--columns say what a parser did", remedy="Give its name: --model default.")
    sentences = load(treebank, split).sentences
    parts = (sentences[first : first + BLOCK] for first in range(0, len(sentences), BLOCK))
    write(search_parts(parts, compiled, Parser.load(model) if model else None, asked), compiled, out)
