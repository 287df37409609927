"""What a search shows: a table, a concordance in which matches stand in one column, and the first matches in a notebook."""

from lalkit.treebank.corpora import Treebank
from lalkit.treebank.hits import NAME, SHOWN, search
from lalkit.treebank.patterns import Pattern
from lalkit.treebank.tree import Sentence, Span

MADE = Sentence(
    ("The", "-LRB-", "<b>", "-RRB-"), ("DT", "-LRB-", "NN", "-RRB-"), ((0, 4, "NP"), (1, 4, "PRN")), (3, 3, 0, 3),
    ("DET", "P", "ROOT", "P"), "made",
)  # fmt: skip


def test_the_table_has_the_words_of_matches_head_words_and_captures():
    hits = search([MADE, Sentence(("a",), ("X",), ((0, 1, "PRN"),))], "PRN [< NN=noun | < X]")
    assert hits.table.astype(object).where(hits.table.notna(), None).to_dict("records") == [
        {"sentence": 0, "id": "made", "start": 1, "end": 4, "label": "PRN", "text": "( <b> )", "head": 3, "head_word": "<b>",
         "=noun": "<b>"},
        {"sentence": 1, "id": "", "start": 0, "end": 1, "label": "PRN", "text": "a", "head": None, "head_word": None,
         "=noun": None},
    ]  # fmt: skip
    assert repr(hits) == "2 matches of 'PRN [< NN=noun | < X]' in 2 sentences"
    none = search([MADE], "QP").table
    assert not len(none) and list(none) == list(hits.table)[:-1] and none["start"].dtype == hits.table["start"].dtype


def test_a_treebank_is_searched_with_conditions():
    treebank = Treebank.load("sample", "train")
    hits = treebank.search("SBAR", head="that")
    assert 0 < len(hits) < len(treebank.search("SBAR"))
    assert set(hits.table["head_word"]) == {"that"}
    assert len(search(treebank, Pattern("SBAR", head="that"))) == len(hits)


def test_matches_stand_in_one_column_also_beside_wide_characters():
    chinese = Sentence(("我们", "知道", "你"), None, ((0, 3, "IP"), (2, 3, "NP")), id="一个很长的名字一个很长的名字")
    hits = search([MADE, chinese, Sentence(("x " * 90 + "y").split(), None, (Span(90, 91, "NP"),))], "NP|PRN")
    lines = hits.concordance(100).splitlines()

    def screen(text: str) -> int:
        return sum(2 if "\u2e80" < character < "\uff00" else 1 for character in text)

    columns = {screen(line[: line.index("[")]) for line in lines}
    assert columns == {NAME + 1 + (100 - NAME) // 3 + 1}
    assert all(screen(line) <= 100 for line in lines)
    assert lines[1].split(maxsplit=1) == ["made", "The [( <b> )]"]
    assert "知道 [你]" in lines[2] and "x x x [y]" in lines[3]


def test_a_notebook_shows_the_first_matches_with_their_words_escaped():
    html = search([MADE] * (SHOWN + 5), "PRN")._repr_html_()
    assert html.count("<tr>") == SHOWN and f"{SHOWN + 5} matches" in html
    assert "<b>( &lt;b&gt; )</b>" in html and "<b></b>" not in html.replace("&lt;b&gt;", "")
