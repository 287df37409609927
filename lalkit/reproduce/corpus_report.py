"""Answer the usual questions about parsers and a treebank: which label heads lead which labels, and where the errors are.

Each report is a folder with tables (CSV), figures and one page. The notebooks ask the same functions step by step.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from lalkit.api import Parser
from lalkit.draw.figures import error_flow, head_bars
from lalkit.draw.pages import png, render
from lalkit.errors import LalkitError, ParameterError
from lalkit.evaluation.scores import by_label, by_length, evaluate
from lalkit.files import write_bytes, write_text
from lalkit.interpret.errors import errors
from lalkit.interpret.source import AttributionSource
from lalkit.interpret.tables import chosen, led_labels, match, top_shares
from lalkit.treebank.check import subset
from lalkit.treebank.corpora import load
from lalkit.treebank.tree import Sentence

LABELS = 6  # the most frequent labels are drawn
SHOWN = 4  # rows of a label on the page; the tables have all
Tables = dict[str, tuple[str, pd.DataFrame]]  # name of the file -> heading on the page, table


def report_heads(
    models: Sequence[str], treebank: str, split: str, out: str | Path, *, sentences: int = 0, labels: Sequence[str] = ()
) -> list[Path]:
    """Report which label heads lead the constituents of each label, with lift and intervals, and what they attend to.

    Args:
        models: parsers by name or folder, such as one for each seed. Heads of the second and later ones are matched with those
            of the first.
        treebank: its sentences are parsed. split: its part.
        out: the folder for heads.csv, labels.csv, tags.csv, matched.csv (of several parsers), a figure of each parser, and
            report.html.
        sentences: so many, evenly spread; 0 means all.
        labels: labels to report; by default the most frequent ones.

    Returns: the files.
    Raises: LalkitError for a parser without label heads, and for a label that no constituent has.
    """
    gold, pictures = subset(load(treebank, split).sentences, sentences), {}
    rows: dict[str, list[pd.DataFrame]] = {"heads": [], "labels": [], "tags": [], "matched": []}
    first = None
    for model in models:
        source = Parser.load(model).attribution
        looks = source.look(gold)
        ranked = source.ranked(looks)
        norm, names = source.top_norm, list(labels) or chosen(ranked, None)
        heads = top_shares(ranked, norm, names)
        name = Path(model).name
        tops = heads.groupby("label", sort=False)["head"].first()
        rows["heads"].append(heads.assign(model=name))
        rows["labels"].append(led_labels(ranked, norm, sorted(set(tops))).assign(model=name))
        rows["tags"].append(attention_by_tag(source, looks, tops).assign(model=name))
        if first is None:
            first = ranked
        else:
            rows["matched"].append(match(first, ranked, norm).assign(model=name))
        if name in pictures:
            raise ParameterError(f"two parsers are called {name}", remedy="Give each folder a name of its own.")
        pictures[name] = head_bars(heads, "share", names[:LABELS], SHOWN, beside="overall")
        pictures[name].suptitle(f"{name}: percent of a label's constituents that a head leads, by {norm}", fontsize=10)
    titles = {
        "heads": "Which label heads lead a label (percent of its constituents; overall: of all constituents)",
        "labels": "Which labels these heads lead",
        "tags": "What the top head of a label attends to, by part of speech (percent; words: of the words it can see)",
        "matched": "The heads of each parser paired with those of the first",
    }
    tables = {name: (titles[name], pd.concat(parts, ignore_index=True)) for name, parts in rows.items() if parts}
    return _write(f"Label heads on {treebank} {split}", tables, pictures, Path(out))


def attention_by_tag(source: AttributionSource, looks: Sequence, tops: pd.Series) -> pd.DataFrame:
    """Return the attention of the top head of each label over the words of the label's constituents, by part of speech.

    tops: label -> head; label attention inside the span looks with the label's own head instead.
    Returns: label, head, tag, attention and words (percent of the attention, and of these words).
    """
    tables = []
    for label, head in tops.items():
        table = source.attention_table(looks, label)
        table = table[table["head"] == head] if not source.head_labels else table
        if table.empty:
            continue
        tags = [looks[s].prediction.sentence.tags for s in table["sentence"]]
        table = table.assign(tag=[own[p - 1] if own else "_" for own, p in zip(tags, table["position"])])
        shares = table.groupby("tag")["attention"].agg(["sum", "size"])
        shares = 100 * shares / shares.sum()
        columns = {"sum": "attention", "size": "words"}
        shares = shares.rename(columns=columns).sort_values("attention", ascending=False).reset_index()
        tables.append(shares.assign(label=label, head=table["head"].iloc[0]))
    if not tables:
        raise LalkitError("no constituent has attention to report", remedy="Give a parser with learned attention.")
    return pd.concat(tables, ignore_index=True)[["label", "head", "tag", "attention", "words"]]


def report_errors(model: str, treebank: str, split: str, out: str | Path, *, sentences: int = 0) -> list[Path]:
    """Report where a parser is wrong: by class of error, by label, and by the length of the sentence.

    out: the folder for errors.csv (a row for each error), classes.csv, labels.csv, lengths.csv, a figure of spans that were
    taken for others, and report.html. The other arguments are as in `report_heads`. Returns the files.
    """
    gold: Sequence[Sentence] = subset(load(treebank, split).sentences, sentences)
    parses = [result.sentence for result in Parser.load(model).parse_all(gold)]
    every = errors(gold, parses)
    classes = every["class"].value_counts().rename_axis("class").reset_index(name="errors")
    tables = {
        "classes": ("Kinds of errors", classes),
        "labels": ("Constituents by label (percent)", by_label(gold, parses)),
        "lengths": ("Sentences by their number of words (percent)", by_length(evaluate(gold, parses))),
    }
    written = [write_text(Path(out) / "errors.csv", every.to_csv(index=False))]
    title = f"Errors of {Path(model).name} on {treebank} {split}"
    return written + _write(title, tables, {"flow": error_flow(every)}, Path(out))


def _write(title: str, tables: Tables, pictures: dict, out: Path) -> list[Path]:
    """Write every table and figure, and a page of all: the first rows of each label or head, where a table has many."""
    written, images = [], []
    for name, (_, table) in tables.items():
        written.append(write_text(out / f"{name}.csv", table.to_csv(index=False, float_format="%.6g")))
    for name, figure in pictures.items():
        picture = png(figure)
        written.append(write_bytes(out / f"{name}.png", picture))
        images.append((f"{title}: {name}", base64.b64encode(picture).decode()))
    parts = {heading: _shown(table) for heading, table in tables.values()}
    page = {"question": title, "pictures": images, "parts": parts}
    return [
        *written,
        write_text(out / "report.html", render("reproduce/report.html.jinja", title=title, sweeps=[page])),
    ]


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    """Return what the page shows: of a table of several parsers the first rows of each label or head; numbers with two digits."""
    rows = table.groupby(["model", table.columns[0]], sort=False).head(SHOWN) if "model" in table else table
    return rows.assign(**{name: rows[name].map("{:.2f}".format) for name in rows.select_dtypes("float")})
