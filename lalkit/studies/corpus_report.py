"""Answer the usual questions about parsers and a treebank: which label heads lead which labels, and where the errors are.

Each report is a folder with tables (CSV), figures and one page. The notebooks ask the same functions step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from lalkit.api import Parser
from lalkit.draw.figures import error_flow, head_bars, top_heads_of_seeds
from lalkit.draw.pages import png, render
from lalkit.errors import LalkitError, ParameterError
from lalkit.evaluation.scores import by_label, by_length, evaluate
from lalkit.files import write_bytes, write_text
from lalkit.interpret.contributions import Look, contributions
from lalkit.interpret.errors import at_root_and_nouns, errors, missed, trace
from lalkit.interpret.paper_layer import PaperLayer
from lalkit.interpret.source import AttributionSource, gold_spans
from lalkit.interpret.tables import averages, chosen, led_labels, match, matched_by_chance, survival, top_shares
from lalkit.studies.label_heads import name_and_place, with_constituents
from lalkit.treebank.check import subset
from lalkit.treebank.corpora import load
from lalkit.treebank.tree import Sentence

LABELS = 6  # the most frequent labels are drawn
SHOWN = 4  # rows of a label on the page; the tables have all
REPORTED = ("minmax", "exact")  # the paper's measure, and the exact one; a layer may have one measure alone
HEADINGS = {
    "heads": "Which label heads lead a label (percent of its constituents; overall: of all constituents)",
    "means": "The mean contribution of each head to the constituents of a label (figure 8 of the paper)",
    "labels": "Which labels these heads lead",
    "tags": "What the top head of a label attends to, by part of speech (percent; words: of the words it can see)",
    "matched": "The heads of each parser paired with those of the first (by half of the sentences; alike in the other half)",
    "again": "The top head of each label in the first parser, and its pair in the others (other_overall: by chance)",
    "chance": "The number of labels whose top heads are a pair, and the number if one parser's labels are exchanged at random",
}
ERROR_HEADINGS = {
    "classes": "Kinds of errors",
    "labels": "Constituents by label (percent)",
    "lengths": "Sentences by their number of words (percent)",
    "missed": "Gold constituents with another label in the parse, or missed, that a top head of their label leads (percent)",
    "roots": "How many of the nine top heads of right and wrong spans attend most to the root of the gold tree, or to a noun",
    "renamed": "Gold constituents S to which the parse gives another label, and how many of their nine top heads do so",
    "traced": "The top heads of the typed sentence, and the word to which each attends most",
}
Tables = dict[str, tuple[str, pd.DataFrame]]  # name of the file -> heading on the page, table


def report_heads(
    models: Sequence[str], treebank: str, split: str, out: str | Path, *, sentences: int = 0, labels: Sequence[str] = ()
) -> list[Path]:
    """Report which label heads lead the constituents of each label, with lift and intervals, and what they attend to.

    These are the tables of section 4.5 and figure 8 of the paper, by its measure and by the exact one.

    Args:
        models: parsers (name, folder or NAME=FOLDER), such as one for each seed. Heads of the later ones are matched with those
            of the first, by the norms that both have. Seeds that started from one trained parser share its heads: then a match
            says little.
        treebank: its sentences are parsed. split: its part.
        out: the folder for a table (CSV) of each of HEADINGS, the last three of them for several parsers, for a figure of each
            parser and measure, one of all parsers, and report.html.
        sentences: the number of sentences, evenly spread; 0 means all.
        labels: labels to report; by default the most frequent ones.

    Returns: the files.
    Raises: LalkitError for a parser without label heads, and for a label that no constituent has.
    """
    gold, pictures = subset(load(treebank, split).sentences, sentences), {}
    rows: dict[str, list[pd.DataFrame]] = {name: [] for name in HEADINGS}
    first, first_norms = None, set()
    for name, model in _named(models).items():
        source = Parser.load(model).attribution
        looks = source.look(gold)
        ranked = source.ranked(looks)
        names = list(labels) or chosen(ranked, None)
        norms = [norm for norm in source.norms if norm in REPORTED] or [source.top_norm]
        for norm in norms:
            heads = top_shares(ranked, norm, names)
            tops = heads.groupby("label", sort=False)["head"].first()
            parts = {"heads": heads, "means": averages(ranked, norm, names)}
            parts["labels"] = led_labels(ranked, norm, sorted(set(tops)))
            parts["tags"] = attention_by_tag(source, looks, tops).assign(norm=norm)
            if first is not None and norm in first_norms:
                common = [name for name in names if first.labelled(name).any()]
                parts["matched"] = match(first, ranked, norm).assign(norm=norm)
                parts["again"] = survival(first, ranked, norm, common)
                chance = matched_by_chance(top_shares(first, norm, common), heads)
                parts["chance"] = chance.to_frame().T.assign(norm=norm)
            for table, part in parts.items():
                rows[table].append(part.assign(model=name))
            picture = pictures[f"{name}-{norm}"] = head_bars(heads, "share", names[:LABELS], SHOWN, beside="overall")
            picture.suptitle(f"{name}: percent of a label's constituents that a head leads, by {norm}", fontsize=10)
        if first is None:
            first, first_norms = ranked, {*source.norms, source.top_norm}
    tables = {name: (HEADINGS[name], pd.concat(parts, ignore_index=True)) for name, parts in rows.items() if parts}
    if len(models) > 1:
        heads = tables["heads"][1]
        pictures["seeds"] = top_heads_of_seeds(heads, list(heads["label"].unique())[:LABELS])
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
        tags_of = (looks[s].prediction.sentence.tags for s in table["sentence"])
        table = table.assign(tag=[tags[p - 1] if tags else "_" for tags, p in zip(tags_of, table["position"])])
        shares = table.groupby("tag")["attention"].agg(attention="sum", words="size")
        shares = (100 * shares / shares.sum()).sort_values("attention", ascending=False).reset_index()
        tables.append(shares.assign(label=label, head=table["head"].iloc[0]))
    if not tables:
        raise LalkitError("no constituent has attention to report", remedy="Give a parser with learned attention.")
    return pd.concat(tables, ignore_index=True)[["label", "head", "tag", "attention", "words"]]


def report_errors(
    models: Sequence[str], treebank: str, split: str, out: str | Path, *, sentences: int = 0, typed: str = ""
) -> list[Path]:
    """Report where parsers are wrong: by class of error, by label, by the length of the sentence, and by label head.

    The part about label heads is section 4.6 of the paper. It is for parsers whose heads stay apart.

    Args:
        models, treebank, split, sentences: as in `report_heads`.
        out: the folder for errors.csv (a row for each error), a table of each of ERROR_HEADINGS, a figure of each parser (spans
            that were taken for others), and report.html.
        typed: a sentence, its words separated by spaces, whose whole span is traced to its top heads.

    Returns: the files.
    """
    gold = with_constituents(treebank, split, sentences)
    traced = [Sentence(id="typed", words=tuple(typed.split()))] if typed.split() else []
    rows: dict[str, list[pd.DataFrame]] = {name: [] for name in ("errors", *ERROR_HEADINGS)}
    pictures = {}
    for name, model in _named(models).items():
        parser, parts = Parser.load(model), {}
        source = PaperLayer(parser.network, parser.collator, parser.config.train.lam)
        if not source.mixed:
            looks = source.look([*gold, *traced], besides=[*gold_spans(gold), *([] for _ in traced)])
            parses = [look.sentence for look in looks[: len(gold)]]
            parts = _heads_of_errors(looks, gold)
        else:
            parses = [result.sentence for result in parser.parse_all(gold)]
        every = parts["errors"] = errors(gold, parses, parser.vocab.arc_labels)
        parts["classes"] = every["class"].value_counts().rename_axis("class").reset_index(name="errors")
        parts |= {
            "labels": by_label(gold, parses),
            "lengths": by_length(evaluate(gold, parses, arc_labels=parser.vocab.arc_labels)),
        }
        for table, part in parts.items():
            rows[table].append(part.assign(model=name))
        pictures[name] = error_flow(every)
    tables = {name: pd.concat(parts, ignore_index=True) for name, parts in rows.items() if parts}
    written = [write_text(Path(out) / "errors.csv", tables.pop("errors").to_csv(index=False))]
    title = f"Errors of {', '.join(pictures)} on {treebank} {split}"
    named = {name: (ERROR_HEADINGS[name], table) for name, table in tables.items()}
    return written + _write(title, named, pictures, Path(out))


def _heads_of_errors(looks: Sequence[Look], gold: Sequence[Sentence]) -> dict[str, pd.DataFrame]:
    """Return the tables of section 4.6, by the paper's measure and by the exact one. The looks after those of gold are traced."""
    parsed, everything = contributions(looks[: len(gold)], gold), contributions(looks)
    parts: dict[str, list[pd.DataFrame]] = {"missed": [], "roots": [], "renamed": [], "traced": []}
    for norm in REPORTED:
        for among in ("relabelled", "missed"):
            parts["missed"].append(missed(parsed, norm, among=among).assign(heads_of="parsed"))
            correct = missed(parsed, norm, count=4, chosen_from="correct", among=among)
            parts["missed"].append(correct.assign(heads_of="correct"))
        spans = at_root_and_nouns(looks, parsed, norm, gold=gold).assign(norm=norm)
        numbers = ["root", "root_by_chance", "noun", "noun_by_chance"]
        parts["roots"].append(spans.groupby(["norm", "gold"], as_index=False)[numbers].mean())
        gold_s, parsed_s = (
            spans[name].str.split("::").map(lambda parts: "S" in parts) for name in ("gold_label", "label")
        )
        parts["renamed"].append(spans[gold_s & ~parsed_s])
        for place, look in enumerate(looks[len(gold) :], len(gold)):
            span = next(span for span in look.spans if span[:2] == (0, len(look.sentence)))
            parts["traced"].append(trace(looks, everything, norm, place, span).assign(norm=norm, label=span[2]))
    return {name: pd.concat(tables, ignore_index=True) for name, tables in parts.items() if tables}


def _named(models: Sequence[str]) -> dict[str, str]:
    """Return the place of each model by its name. NAME=FOLDER gives a name; else it is that of the folder."""
    pairs = [(name or Path(place).name, place) for name, place in map(name_and_place, models)]
    if len(named := dict(pairs)) < len(pairs):
        name = next(name for name, _ in pairs if [n for n, _ in pairs].count(name) > 1)
        raise ParameterError(f"two parsers are called {name}", remedy="Give each a name: NAME=FOLDER.")
    return named


def _write(title: str, tables: Tables, pictures: dict, out: Path) -> list[Path]:
    """Write every table and figure, and a page of all: the first rows of each label or head, where a table has many."""
    shown = {name: png(figure) for name, figure in pictures.items()}
    images = [(f"{title}: {name}", picture) for name, picture in shown.items()]
    parts = {heading: _shown(table) for heading, table in tables.values()}
    page = {"question": title, "pictures": images, "parts": parts}
    texts = {name: table.to_csv(index=False, float_format="%.6g") for name, (_, table) in tables.items()}
    return [
        *(write_text(out / f"{name}.csv", text) for name, text in texts.items()),
        *(write_bytes(out / f"{name}.png", picture) for name, picture in shown.items()),
        write_text(out / "report.html", render("reproduce/report.html.jinja", title=title, sweeps=[page])),
    ]


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    """Return what the page shows: of a table of several parsers the first rows of each label or head; numbers with two digits."""
    rows = table.groupby(["model", table.columns[0]], sort=False).head(SHOWN) if "model" in table else table
    return rows.assign(**{name: rows[name].map("{:.2f}".format) for name in rows.select_dtypes("float")})
