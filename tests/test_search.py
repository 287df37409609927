"""Search in parses: columns of causes against slow twins, pages with marked matches, files in streams, and the command."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lalkit.api import Parser
from lalkit.errors import LalkitError, ParameterError
from lalkit.interpret.causes import CAUSES
from lalkit.parsing import search_corpus
from lalkit.parsing.search_corpus import read_parses, search_file
from lalkit.parsing.text_windows import open_lines
from lalkit.treebank.corpora import load
from lalkit.treebank.hits import search
from lalkit.treebank.patterns import Pattern
from tests.command import lalkit

SENTENCES = load("sample", "test").sentences[:6]


@pytest.fixture(scope="module")
def paper(tiny_parser):
    return Parser.load(tiny_parser)


@pytest.fixture(scope="module")
def span(tiny_span_parser):
    return Parser.load(tiny_span_parser)


@pytest.fixture(scope="module")
def hits(paper):
    return paper.search(SENTENCES, "__", CAUSES)


def test_the_matches_are_those_of_the_parses(paper, hits):
    parses = [result.sentence for result in paper.parse_all(SENTENCES)]
    assert hits.matches == search(parses, "__").matches
    assert paper.search(SENTENCES, "NP", word="the").matches == search(parses, "NP", word="the").matches
    assert (
        list(hits.results) == list(range(6)) and len(hits.table) == len(hits) and list(hits.table)[-6:] == list(CAUSES)
    )


def test_the_columns_of_the_papers_layer_are_those_of_single_results(hits):
    rows = [row for row in hits.table.to_dict("records") if row["top_head"] == row["top_head"]]
    assert len(rows) > 20
    for row in rows[::7]:
        result = hits.results[row["sentence"]]
        place = [span[:2] for span in result.look.spans].index((row["start"], row["end"]))
        exact, raw = result.look.exact[place], np.abs(result.look.raw[place])
        assert row["top_head"] == exact.argmax()
        assert row["effect"] == pytest.approx(exact.max(), abs=1e-4)
        assert row["share"] == pytest.approx(raw[exact.argmax()] / raw.sum(), abs=1e-4)
        assert row["margin"] == pytest.approx(result.margin)
        parts = result.confidence()
        same = parts[(parts["kind"] == "span") & (parts["start"] == row["start"]) & (parts["end"] == row["end"])]
        assert row["probability"] == pytest.approx(same["probability"].item(), abs=1e-4)


def test_gold_says_right_or_the_class_of_the_error(paper, hits):
    errors = paper.errors(SENTENCES)
    classes = errors[errors["class"].isin(["relabelled", "unary", "attachment", "extra"])]
    of_spans = hits.table.dropna(subset=["gold"]).drop_duplicates(["sentence", "start", "end"])
    wrong = of_spans[of_spans["gold"] != "right"]
    keys = ["sentence", "start", "end"]
    assert len(wrong) == len(classes) and len(of_spans) > len(wrong)
    together = wrong.merge(classes, on=keys)
    assert len(together) == len(wrong) and (together["gold"] == together["class"]).all()
    assert paper.search([" ".join(SENTENCES[0].words)], "__", ["gold"]).table["gold"].isna().all()


def test_the_columns_of_label_attention_inside_the_span_are_its_terms(span):
    table = span.search(SENTENCES[:2], "__", ["top_head", "share", "effect"]).table.dropna()
    results = span.parse_all(SENTENCES[:2])
    assert len(table)
    for row in table.drop_duplicates(["sentence", "start", "end"]).itertuples():
        terms = results[row.sentence].terms
        label = next(name for start, end, name in terms.spans if (start, end) == (row.start, row.end))
        words, _ = terms.of((row.start, row.end, label))
        assert row.effect == pytest.approx(words["value"].sum(), abs=1e-4)
        assert row.top_head in span.vocab.labels and 0 < row.share <= 1


def test_only_what_is_asked_for_is_computed(paper, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError

    monkeypatch.setattr(type(paper.attribution), "look", refuse)
    monkeypatch.setattr(Parser, "readings", refuse)
    assert list(paper.search(SENTENCES, "NP").table)[-1] == "head_word"
    assert set(paper.search(SENTENCES, "S", ["gold"]).table["gold"]) <= {
        "right",
        "relabelled",
        "unary",
        "attachment",
        "extra",
    }


def test_a_column_or_pattern_that_there_is_not_is_refused_before_parsing(paper, monkeypatch):
    monkeypatch.setattr(Parser, "parse_all", None)
    for columns in (["heads"], "gold"):
        with pytest.raises(ParameterError, match="top_head, share"):
            paper.search(SENTENCES, "NP", columns)
    with pytest.raises(ParameterError, match="never closed"):
        paper.search(SENTENCES, "NP < (")


def test_the_page_marks_the_matches(paper):
    hits = paper.search(SENTENCES, "NP")
    html = hits.explore().html
    for number in hits.sentences:
        marked = re.findall(r'"matches":(\[\[.*?\]\])', html)
        assert len(marked) == len(hits.sentences)
        spans = [[match.start, match.end] for place, _, match in hits.matches if place == number]
        assert str(spans).replace(" ", "") in marked
    with pytest.raises(LalkitError, match="nothing matches"):
        paper.search(SENTENCES, "QQ").explore()


def test_a_file_is_searched_in_parts_with_the_same_matches(tmp_path, tiny_parser, paper, monkeypatch):
    file = tmp_path / "text.txt"
    file.write_text("\n".join(" ".join(s.words) for s in SENTENCES) + "\n\n", encoding="utf-8")
    monkeypatch.setattr(search_corpus, "WINDOW", 30)
    parts = list(search_file(file, Pattern("NP"), str(tiny_parser), ["margin"], "tokens"))
    table = pd.concat([part.table for part in parts], ignore_index=True)
    whole = paper.search([s.words for s in SENTENCES], "NP", ["margin"]).table
    assert len(parts) > 1 and len(whole)
    pd.testing.assert_frame_equal(table.drop(columns="id"), whole.drop(columns="id"), atol=1e-4, check_dtype=False)


def test_trees_are_read_also_over_several_lines_and_results_with_their_arcs(tmp_path, paper, monkeypatch):
    trees, results = tmp_path / "a.trees", tmp_path / "b.json"
    parses = paper.parse_all(SENTENCES)
    trees.write_text("\n".join(r.to_ptb(pretty=True) for r in parses), encoding="utf-8")
    results.write_text("\n".join(r.to_json() for r in parses) + "\n", encoding="utf-8")
    monkeypatch.setattr(search_corpus, "BLOCK", 4)
    with open_lines(trees) as lines:
        assert [s.constituents for s in read_parses(lines, ".trees")] == [r.sentence.constituents for r in parses]
    with open_lines(results) as lines:
        assert list(read_parses(lines, ".json")) == [r.sentence for r in parses]
    for file in (trees, results):
        parts = list(search_file(file, Pattern("NP"), None))
        assert len(parts) == 2 and [n for part in parts for n, _, _ in part.matches] == [
            n for n, _, _ in search([r.sentence for r in parses], "NP").matches
        ]


@pytest.mark.parametrize(
    ("name", "text", "options", "problem"),
    [
        ("a.trees", "(S (NN a))\n(S (NN b)\n", "", "a.trees, line 2: 1 bracket(s) never closed"),
        ("a.trees", "", "", "there is nothing to search"),
        ("a.json", '{"words": ["a"]}\n', "", "a.json, line 1: this is no result of a parse"),
        ("a.json", "[]\n", "", "a.json, line 1: this is no result of a parse"),
        ("a.conllu", "1\ta\n", "", "dependencies alone have no constituents"),
        ("a.trees", "(S (NN a))\n", "--model en-news", "nothing is parsed"),
        ("a.trees", "(S (NN a))\n", "--out x.png", "cannot write matches as '.png'"),
        ("a.trees", "(S (NN a))\n", "--out x.html", "nothing matches 'NP'"),
        ("a.trees", "(S (NN a))\n", "--treebank sample", "Give either a --treebank or a --file"),
        ("a.trees", "(S (NN a))\n", "--columns gold", "--columns are written to a table"),
        ("a.trees", "(S (NN a))\n", "--columns golden --out x.csv", "columns cannot be 'golden'"),
        ("a.trees", "(S (NN a))\n", "--head /(/", "missing )"),
    ],
)
def test_what_cannot_be_searched_is_refused(tmp_path, name, text, options, problem):
    (tmp_path / name).write_text(text, encoding="utf-8")
    code, out, err = lalkit("search", "NP", "--file", name, *options.split(), cwd=tmp_path)
    assert code == 2 and problem in err and not out and err.count("lalkit: ") == 1
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_trees_without_head_rules_are_searched_for_constituents(tmp_path):
    """A search needs no heads, and there are no head rules for these Chinese tags."""
    (tmp_path / "zh.trees").write_text("(S (NP (Nh 他)) (VP (VK 知道)))\n", encoding="utf-8")
    with open_lines(tmp_path / "zh.trees") as lines:
        (sentence,) = read_parses(lines, ".trees")
    assert sentence.heads is None and len(search([sentence], "NP").matches) == 1


def test_the_command_prints_a_concordance_and_writes_tables_and_pages(tmp_path, tiny_parser):
    code, out, err = lalkit(
        "search", "SBAR < (IN < that)", "--treebank", "sample", "--split", "train", "--head", "that"
    )
    lines = out.splitlines()
    assert code == 0 and len(lines) == 16 and len({line.index("[") for line in lines}) == 1
    assert all("that " in line[line.index("[") :] for line in lines) and "matches of 'SBAR < (IN < that)'" in err
    table, page = tmp_path / "hits.csv", tmp_path / "hits.html"
    options = "--treebank", "sample", "--model", tiny_parser
    assert lalkit("search", "S", *options, "--columns", "gold, probability", "--out", table)[0] == 0
    assert {"gold", "probability"} < set(pd.read_csv(table)) and len(pd.read_csv(table)) > 5
    assert lalkit("search", "S", *options, "--out", page)[0] == 0 and '"matches":[[' in page.read_text(encoding="utf-8")
    assert lalkit("search", "S", "--treebank", "sample", "--out", page)[0] == 0
    assert "trees without a parser" in Path(page).read_text(encoding="utf-8")
