"""`lalkit search`: find places in trees by a pattern, with conditions on words and arcs."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Literal

from lalkit.cli import options
from lalkit.cli.options import documented
from lalkit.errors import ParameterError

logger = logging.getLogger(__name__)
SHOWN = 100  # sentences on a page


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
        columns: Columns to add to the table, with commas between: top_head, share, effect, probability, margin, gold.
        out: Write a table (.csv), or a page to explore (.html) with the first 100 sentences that match.
    """
    from lalkit.api import Parser
    from lalkit.draw.explorer import explorer, tree_page
    from lalkit.files import write_text
    from lalkit.interpret.causes import check_columns
    from lalkit.treebank import search as trees
    from lalkit.treebank.corpora import load

    if bool(treebank) == bool(file):
        raise ParameterError("nothing to search, or too much", remedy="Give either a --treebank or a --file.")
    asked = [name.strip() for name in columns.split(",")] if columns else []
    check_columns(asked)
    if asked and not out:
        raise ParameterError("--columns are written to a table", remedy="Give --out the name of a .csv file.")
    if out and out.suffix not in (".csv", ".html"):
        raise ParameterError(f"cannot write matches as {out.suffix!r}", where=str(out), remedy="Use .csv or .html.")
    if file and file.suffix == ".conllu":
        remedy = "Give brackets (.trees, .ptb), or what `lalkit parse --to json` wrote (.json)."
        raise ParameterError("dependencies alone have no constituents to search", where=str(file), remedy=remedy)
    if file and file.suffix in trees.TREES + trees.RESULTS and (model or asked):
        problem = "this file holds trees, so that nothing is parsed: --model and --columns are for texts"
        raise ParameterError(problem, where=str(file), remedy="Leave them out, or give the text.")
    if asked and treebank and not model:
        raise ParameterError("--columns say what a parser did", remedy="Give its name: --model default.")
    compiled = trees.Pattern(pattern, head=head, arc=arc, word=word, tag=tag)
    options.set_threads(None)
    sentences = trees.read_file(file, form) if file else load(treebank, split).sentences
    if not sentences:
        raise ParameterError("there is nothing to search", remedy="Give at least one sentence.")
    if file and file.suffix not in trees.TREES + trees.RESULTS:
        model = model or "default"
    hits = Parser.load(model).search(sentences, compiled, asked) if model else trees.search(sentences, compiled)
    logger.info("%r", hits)
    if out is None:
        print(hits, end="")
    elif out.suffix == ".csv":
        write_text(out, hits.table.to_csv(index=False))
    else:
        shown = hits.first(SHOWN)
        if model or not shown.sentences:
            page = shown.explore().html
        else:
            page = explorer(shown.mark(tree_page(shown.sentences.values(), pattern, "trees without a parser")))
        write_text(out, page)
