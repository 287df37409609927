"""Answer the usual questions about parsers and a treebank: which label heads lead which labels, and where the errors are.

Each report is a folder of tables (CSV), with a row for each parser, and a short text of their beginnings. The notebooks ask the
same functions step by step, and draw the answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from lalkit.api import Parser
from lalkit.errors import LalkitError, ParameterError
from lalkit.evaluation.scores import by_label, by_length, evaluate
from lalkit.files import write_text
from lalkit.interpret.contributions import contributions
from lalkit.interpret.errors import at_root_and_nouns, errors, missed, trace
from lalkit.interpret.paper_layer import PaperLayer
from lalkit.interpret.source import AttributionSource, gold_spans
from lalkit.interpret.tables import averages, chosen, led_labels, top_shares
from lalkit.studies.label_heads import name_and_place, with_constituents
from lalkit.treebank.check import subset
from lalkit.treebank.corpora import load
from lalkit.treebank.tree import Sentence

SHOWN = 3  # rows of each label or head in the text; the tables have all
REPORTED = ("minmax", "exact")  # the paper's measure, and the exact one; a layer may have one measure alone
HEADINGS = {
    "heads": "Which label heads lead a label (percent of its constituents; overall: of all constituents)",
    "labels": "Which labels these heads lead",
    "tags": "What the top head of a label attends to, by part of speech (percent; words: of the words it can see)",
    "means": "The mean contribution of each head to the constituents of a label (figure 8 of the paper)",
    "classes": "Kinds of errors",
    "by_label": "Constituents by label (percent)",
    "lengths": "Sentences by their number of words (percent)",
    "missed": "Gold constituents with another label in the parse, or missed, that a top head of their label leads (percent)",
    "roots": "How many of the nine top heads of right and wrong spans attend most to the root of the gold tree, or to a noun",
    "traced": "The top heads of the typed sentence, and the word to which each attends most",
}
Tables = dict[str, pd.DataFrame]


def report_heads(
    models: Sequence[str], treebank: str, split: str, out: str | Path, *, sentences: int = 0, labels: Sequence[str] = ()
) -> list[Path]:
    """Report which label heads lead the constituents of each label, with lift and intervals, and what they attend to.

    These are the tables of section 4.5 and figure 8 of the paper, by its measure and by the exact one.

    Args:
        models: parsers (name, folder or NAME=FOLDER), such as one for each seed.
        treebank: its sentences are parsed. split: its part.
        out: the folder for the tables heads, labels, tags and means, and for report.txt.
        sentences: the number of sentences, evenly spread; 0 means all.
        labels: labels to report; by default the most frequent ones.

    Returns: the files.
    Raises: LalkitError for a parser without label heads, and for a label that no constituent has.
    """
    gold = subset(load(treebank, split).sentences, sentences)
    tables: list[Tables] = []
    for name, model in _named(models).items():
        source = Parser.load(model).attribution
        looks = source.look(gold)
        ranked = source.ranked(looks)
        names = list(labels) or chosen(ranked, None)
        for norm in [norm for norm in source.norms if norm in REPORTED] or [source.top_norm]:
            heads = top_shares(ranked, norm, names)
            tops = heads.groupby("label", sort=False)["head"].first()
            found = {"heads": heads, "labels": led_labels(ranked, norm, sorted(set(tops)))}
            found |= {"tags": attention_by_tag(source, looks, tops), "means": averages(ranked, norm, names)}
            tables.append({table: part.assign(norm=norm, model=name) for table, part in found.items()})
    return _write(f"Label heads on {treebank} {split}", tables, Path(out))


def attention_by_tag(source: AttributionSource, looks: Sequence, tops: pd.Series) -> pd.DataFrame:
    """Return the attention of the top head of each label over the words of the label's constituents, by part of speech.

    tops: label -> head; label attention inside the span looks with the label's own head instead.
    Returns: label, head, tag, attention and words (percent of the attention, and of these words).
    """
    tables = []
    for label, head in tops.items():
        table = source.attention_table(looks, label)
        table = table if source.head_labels else table[table["head"] == head]
        sentences = [looks[s].prediction.sentence for s in table["sentence"]]
        tags = [s.tags[place - 1] if s.tags else "_" for s, place in zip(sentences, table["position"])]
        tables.append(table[["head", "attention"]].assign(label=label, tag=tags))
    table = pd.concat(tables, ignore_index=True)
    if table.empty:
        raise LalkitError("no constituent has attention to report", remedy="Give a parser with learned attention.")
    sums = table.groupby(["label", "head", "tag"], sort=False)["attention"].agg(attention="sum", words="size")
    shares = 100 * sums / sums.groupby("label").transform("sum")
    return shares.reset_index().sort_values(["label", "attention"], ascending=[True, False], ignore_index=True)


def report_errors(
    models: Sequence[str], treebank: str, split: str, out: str | Path, *, sentences: int = 0, typed: str = ""
) -> list[Path]:
    """Report where parsers are wrong: by class of error, by label, by the length of the sentence, and by label head.

    The part about label heads is section 4.6 of the paper. It is for parsers whose heads stay apart.

    Args:
        models, treebank, split, sentences: as in `report_heads`.
        out: the folder for the tables errors (a row for each error), classes, by_label, lengths, missed, roots and traced, and
            for report.txt.
        typed: a sentence, its words separated by spaces, whose whole span is traced to its top heads.

    Returns: the files.
    """
    gold = with_constituents(treebank, split, sentences)
    tables: list[Tables] = []
    for name, model in _named(models).items():
        parser = Parser.load(model)
        parses = [result.sentence for result in parser.parse_all(gold)]
        every, arc_labels = errors(gold, parses, parser.vocab.arc_labels), parser.vocab.arc_labels
        found = {"classes": every["class"].value_counts().rename_axis("class").reset_index(name="errors")}
        found |= {"by_label": by_label(gold, parses), "errors": every}
        found["lengths"] = by_length(evaluate(gold, parses, arc_labels=arc_labels))
        source = PaperLayer(parser.model)
        if not source.mixed:
            found |= _heads_of_errors(source, gold, tuple(typed.split()))
        tables.append({table: part.assign(model=name) for table, part in found.items()})
    return _write(f"Errors on {treebank} {split}", tables, Path(out))


def _heads_of_errors(source: PaperLayer, gold: Sequence[Sentence], typed: tuple[str, ...]) -> Tables:
    """Return the tables of section 4.6, by the paper's measure and by the exact one."""
    parts: dict[str, list[pd.DataFrame]] = {"missed": [], "roots": [], "traced": []}
    looks = source.look(gold, besides=gold_spans(gold))
    parsed = contributions(looks, gold)
    traced = source.look([Sentence(id="typed", words=typed)]) if typed else []
    for norm in REPORTED:
        for among in ("relabelled", "missed"):
            parts["missed"].append(missed(parsed, norm, among=among))
        spans = at_root_and_nouns(looks, parsed, norm, gold=gold).assign(norm=norm)
        numbers = ["root", "root_by_chance", "noun", "noun_by_chance"]
        parts["roots"].append(spans.groupby(["norm", "gold"], as_index=False)[numbers].mean())
        for look in traced:
            span = next(span for span in look.spans if span[:2] == (0, len(typed)))
            parts["traced"].append(trace(traced, contributions(traced), norm, 0, span).assign(norm=norm, label=span[2]))
    return {name: pd.concat(tables, ignore_index=True) for name, tables in parts.items() if tables}


def _named(models: Sequence[str]) -> dict[str, str]:
    """Return the place of each model by its name. NAME=FOLDER gives a name; else it is that of the folder."""
    named = {name or Path(place).name: place for name, place in map(name_and_place, models)}
    if len(named) < len(models):
        raise ParameterError("two parsers have the same name", remedy="Give each a name: NAME=FOLDER.")
    return named


def _write(title: str, parts: Sequence[Tables], out: Path) -> list[Path]:
    """Write every table, of all parsers, and the text: of each table the first rows of each label or head."""
    names = list(dict.fromkeys(name for tables in parts for name in tables))
    tables = {name: pd.concat([part[name] for part in parts if name in part], ignore_index=True) for name in names}
    texts = [title]
    for name, heading in HEADINGS.items():
        if name in tables:
            first = [column for column in ("model", "norm", tables[name].columns[0]) if column in tables[name]]
            rows = tables[name].groupby(first, sort=False).head(SHOWN).head(40)
            texts.append(f"{heading}: {name}.csv\n\n{rows.to_string(index=False, float_format='{:.2f}'.format)}")
    csv = {name: table.to_csv(index=False, float_format="%.6g") for name, table in tables.items()}
    files = [write_text(out / f"{name}.csv", text) for name, text in csv.items()]
    return [*files, write_text(out / "report.txt", "\n\n\n".join(texts) + "\n")]
