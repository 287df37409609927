"""Search files of any size: texts, which are parsed on the way, or trees. Memory does not grow with the file."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from lalkit.api import ParsedHits, Parser
from lalkit.chart.machine import progress
from lalkit.draw.explorer import explorer, tree_page
from lalkit.errors import LalkitError, ParameterError, TreebankError
from lalkit.files import growing_file, parse_json, write_text
from lalkit.parsing.text_windows import Lines, open_lines, windows
from lalkit.treebank.brackets import scan_trees
from lalkit.treebank.corpora import build
from lalkit.treebank.hits import Hits, search
from lalkit.treebank.patterns import Pattern
from lalkit.treebank.text import Form
from lalkit.treebank.tree import GROUP, Sentence, Span

logger = logging.getLogger(__name__)
TREES, RESULTS = (".trees", ".ptb", ".mrg"), (".json", ".jsonl")  # files that hold trees already
WINDOW = 20_000  # words of text in memory at the same time
BLOCK = 500  # sentences with trees that are in memory at the same time
SHOWN = 100  # sentences on a page


def search_file(
    path: Path, pattern: Pattern, model: str | None, columns: Sequence[str] = (), form: Form = "raw"
) -> Iterator[Hits]:
    """Yield what a pattern finds in a file, part by part. A file with one of the suffixes above is not parsed again.

    Args:
        path: The file.
        pattern: The pattern.
        model: The parser of a text; None: the default.
        columns: As in `Parser.search`.
        form: What a line of a text is.

    Raises:
        LalkitError: The file cannot be read; there is a parser, or there are columns, for a file that is not parsed again.
    """
    parsed = path.suffix in TREES + RESULTS
    if path.suffix == ".conllu":
        remedy = "Give brackets (.trees, .ptb), or what `lalkit parse --to json` wrote (.json)."
        raise ParameterError("dependencies alone have no constituents to search", where=str(path), remedy=remedy)
    if parsed and (model or columns):
        problem = "this file holds trees, so that nothing is parsed: --model and --columns are for texts"
        raise ParameterError(problem, where=str(path), remedy="Leave them out, or give the text.")
    with open_lines(path) as lines, progress(total=lines.size, desc="searching", unit="B") as bar:
        sentences = read_parses(lines, path.suffix)
        texts = (window.present for window in windows(lines, form, WINDOW))
        parts = iter(lambda: list(islice(sentences, BLOCK)), []) if parsed else texts
        for hits in search_parts(parts, pattern, None if parsed else Parser.load(model or "default"), columns):
            bar.update(lines.bytes - bar.n)
            yield hits


def search_parts(
    parts: Iterable[Sequence[Sentence]], pattern: Pattern, parser: Parser | None, columns: Sequence[str] = ()
) -> Iterator[Hits]:
    """Yield what a pattern finds in each part of a corpus: in the parses, or without a parser in the trees."""
    first = 0
    for part in parts:
        yield parser.search(part, pattern, columns, first) if parser else search(part, pattern, first)
        first += len(part)
    if not first:
        raise LalkitError("there is nothing to search", remedy="Give at least one sentence.")


def write(parts: Iterable[Hits], pattern: Pattern, out: Path | None) -> None:
    """Print each match between its neighbouring words; or write a table (.csv), or a page to explore (.html)."""
    if out and out.suffix not in (".csv", ".html"):
        raise ParameterError(f"cannot write matches as {out.suffix!r}", where=str(out), remedy="Use .csv or .html.")
    counted = _counted(parts, pattern)
    if out and out.suffix == ".html":
        write_text(out, _page(counted, pattern))
    elif out:
        with growing_file(out) as stream:
            for number, hits in enumerate(counted):
                stream.write(hits.table.to_csv(index=False, header=number == 0).encode())
    else:
        for hits in counted:
            print(hits, end="")


def _counted(parts: Iterable[Hits], pattern: Pattern) -> Iterator[Hits]:
    matches = sentences = 0
    for hits in parts:
        matches, sentences = matches + len(hits), sentences + len(hits.sentences)
        yield hits
    logger.info("%d matches of %r in %d sentences", matches, pattern.text, sentences)


def _page(parts: Iterable[Hits], pattern: Pattern) -> str:
    """Return a page of the first sentences with matches."""
    kept, shown, results, left = [], set(), {}, 0
    for hits in parts:
        for match in hits.matches:
            if match[0] in shown or len(shown) < SHOWN:
                shown.add(match[0])
                kept.append(match)
            else:
                left += 1
        results |= {number: result for number, result in getattr(hits, "results", {}).items() if number in shown}
    if left:
        logger.info("the page shows the first %d sentences with matches; a table (.csv) holds all", SHOWN)
    if results or not kept:
        return ParsedHits(pattern, tuple(kept), None, results).explore().html
    hits = Hits(pattern, tuple(kept))
    return explorer(hits.mark(tree_page(hits.sentences.values(), pattern.text, "trees without a parser")))


def read_parses(lines: Lines, suffix: str) -> Iterator[Sentence]:
    """Yield the sentences of a file with trees. Raises TreebankError with the line of the first that cannot be read."""
    blocks = _blocks(lines) if suffix in TREES else enumerate(lines, 1)
    for number, text in blocks:
        where = f"{lines.name}, line {number}"
        try:
            if suffix in RESULTS and text.strip():
                yield _from_json(text, where)
            elif suffix in TREES:
                for count, (_, tree) in enumerate(scan_trees(text), 1):
                    if isinstance(tree, TreebankError):
                        raise tree
                    id = f"{lines.name}:{number}" + (f".{count}" if count > 1 else "")
                    try:
                        sentence = build(tree, None, id, place=where)
                    except TreebankError:  # no head rules for these tags: search the constituents alone
                        sentence = build(tree, None, id, rules=None, place=where)
                    yield sentence
        except TreebankError as error:
            raise TreebankError(error.problem, where=where, remedy=error.remedy) from None


def _blocks(lines: Lines) -> Iterator[tuple[int, str]]:
    """Yield the lines from each '(' in the first column to the next one, with the number of the first."""
    start, block = 1, []
    for number, line in enumerate(lines, 1):
        if line.startswith("(") and block:
            yield start, "\n".join(block)
            block = []
        start = number if not block else start
        block.append(line)
    yield start, "\n".join(block)


def _from_json(line: str, where: str) -> Sentence:
    try:
        value = parse_json(line)
        spans = tuple(Span(s["start"], s["end"], s["label"]) for s in value["spans"] if s["label"] != GROUP)
        constituents = spans if value["tree"] else None
        return Sentence(
            value["words"], value["tags"], constituents, value["heads"], value["arc_labels"], str(value["id"]), where
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, TreebankError):
            raise
        remedy = "A line is what `lalkit parse --to json` writes."
        raise TreebankError(f"this is no result of a parse ({error})", where=where, remedy=remedy) from None
