"""Search: the spans of NLTK's own tgrep, conditions on words and arcs, what is shown, columns of causes, and the command."""

import random
import re
from pathlib import Path

import pytest
from nltk.tgrep import tgrep_compile, tgrep_positions
from nltk.tree import ParentedTree

from lalkit.errors import LalkitError, ParameterError
from lalkit.treebank.brackets import parse_tree
from lalkit.treebank.corpora import load
from lalkit.treebank.head_words import dependencies
from lalkit.treebank.search import Pattern, search
from lalkit.treebank.tree import Node, Sentence, Span
from tests.command import lalkit

PAGE = (Path(__file__).parents[1] / "notebooks" / "patterns.md").read_text(encoding="utf-8")

# ---------------------------------------------------------------- patterns

# Without the two kinds that differ from NLTK's own results: a word at the left of a relation, and >>, or >>'.
PATTERNS = [
    "NP", '"."', "/^VB/", "S < NP < VP", "NP <, DT", "NP <-2 NN", "VP <<, VBD", "S <<: VP", "NN >> VP", "NN >' NP",
    "VP ,, NP", "DT $ NN", "NP $.. VP & !<< PRP", "VP [< VBD | < VBZ] !< NP",
    "@ SUBJECT /^NP/; @ VERB /^VP/; S < (@SUBJECT $.. @VERB)", "@ N /^NP/; @ S /^S/; @S=s < @N=n : =n !< PRP : =s << NN",
]  # fmt: skip


def nltk_spans(pattern, tree):
    """Return the spans that NLTK's own tgrep finds in the tree as it stands in a file."""
    theirs = ParentedTree.fromstring(str(tree))
    leaves = theirs.treepositions("leaves")
    (positions,) = tgrep_positions(pattern, [theirs])
    inside = [[i for i, leaf in enumerate(leaves) if leaf[: len(position)] == position] for position in positions]
    return sorted((places[0], places[-1] + 1) for places in inside)


def made_tree(rng, depth=0):
    """Return a tree with few labels, so that patterns match; with unary chains, brackets and signs."""
    if depth > 5 or rng.random() < 0.25:
        tag = rng.choice(["DT", "NN", "JJ", "VBD", "VBZ", "PRP", "IN", ".", "-LRB-", "NNP"])
        return Node(tag, word=rng.choice(["that", "the", "(", "]", ".", "'s", "1/2"]))
    children = tuple(made_tree(rng, depth + 1) for _ in range(rng.choice([1, 2, 2, 3])))
    return Node(rng.choice(["S", "NP", "VP", "SBAR"]), children)


@pytest.mark.parametrize(("count", "splits"), [(20, ()), pytest.param(300, ("dev", "test"), marks=pytest.mark.slow)])
def test_the_spans_are_those_of_nltk(count, splits):
    rng = random.Random(1)
    trees = [sentence.tree for split in splits for sentence in load("sample", split)]
    trees += [Node("S", (made_tree(rng), made_tree(rng))) for _ in range(count - len(trees))]
    for pattern in PATTERNS:
        compiled, theirs, matches = Pattern(pattern), tgrep_compile(pattern), 0
        for tree in trees:
            spans = sorted((match.start, match.end) for match in compiled.find(tree))
            assert spans == nltk_spans(theirs, tree), pattern
            matches += len(spans)
        assert matches, pattern


def spans(pattern, tree):
    return [(m.start, m.end, m.label) for m in Pattern(pattern).find(tree)]


def test_a_word_is_a_node_and_each_node_is_only_equal_to_itself():
    tree = parse_tree("(S (NP (PRP it)) (VP (VBD bit) (NP (PRP it))))")
    assert spans("it > PRP", tree) == [(0, 1, "it"), (2, 3, "it")]  # NLTK: a word has no parent
    assert spans("NP >>, S", tree) == [(0, 1, "NP")]  # NLTK also finds the second one, which looks like the first
    chain = Sentence(("(", "go", ")"), ("-LRB-", "VB", "-RRB-"), ((0, 3, "FRAG"), (1, 2, "S::VP")))
    assert spans("S <: VP", chain) == [(1, 2, "S")] and spans("VP >: S", chain) == [(1, 2, "VP")]
    assert spans("-LRB- < -LRB-", chain) == [(0, 1, "-LRB-")]


TREE = parse_tree("(S (NP (DT the) (NN dog)) (VP (VBZ says) (SBAR (IN that) (S (NP (PRP it)) (VP (VBD bit))))) (. .))")
HEADS, ARCS = dependencies(TREE)
WORDS, TAGS = zip(*((leaf.word, leaf.label) for leaf in TREE.leaves()))
SPANS = ((0, 7, "S"), (0, 2, "NP"), (2, 6, "VP"), (3, 6, "SBAR"), (4, 6, "S"), (4, 5, "NP"), (5, 6, "VP"))
SAYS = Sentence(WORDS, TAGS, SPANS, HEADS, ARCS)


def test_matches_come_with_head_words_and_captures():
    (match,) = Pattern("SBAR < (IN=that $. S=clause)").find(SAYS)
    assert (match.start, match.end, match.label, match.head) == (3, 6, "SBAR", 4)
    assert match.captures == {"that": Span(3, 4, "IN"), "clause": Span(4, 6, "S")}
    assert Pattern("S=a < VP=b : =b < NP=c").names == ("a", "b", "c")
    with pytest.raises(LalkitError, match="this sentence has no constituents\n"):
        search([Sentence(("It", "rained"), heads=(2, 0))], "NP")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "pattern"), ("(" * 60 + "NP" + ")" * 60, "pattern"), ("NP <", "character 4"),
        ("NP < ,", "character 4"), ("NP < VP)", "character 8"), ("NP <<~ VP", "character 8"), ("NP <9. VP", "NP <9."),
        ("NP < /(/", "NP < /"), ('NP < "the', "NP < "),
        # What can only be found in a tree: a name or a macro without its node, a tree or an expression without end.
        ("S < NP=n : =m < VP", "NP=n"), ("S < @SUBJECT", "@SUBJECT"), ("S [< SBAR=n | < VP] : =n < IN", "SBAR=n"),
        ("NP << NN", "NP <<"), ("/^(a|a)*$/", "a|a"),
    ],
)  # fmt: skip
def test_a_pattern_that_cannot_be_used_names_the_place(text, place, monkeypatch):
    monkeypatch.setattr("nltk.redos.DEFAULT_TIMEOUT", 0.05)
    deep = Node("NN", word="a" * 60 + "b")
    for _ in range(3000 if text == "NP << NN" else 0):
        deep = Node("NP", (deep,))
    with pytest.raises(ParameterError) as error:
        list(Pattern(text).find(deep if text in ("NP << NN", "/^(a|a)*$/") else TREE))
    assert place in error.value.where and "SBAR < (IN < that)" in error.value.remedy


def test_the_examples_of_the_page():
    rows = re.findall(r"^\| `(.*)` \| .* \| (.*) \|$", PAGE, re.M)
    assert len(rows) == 10
    for pattern, text in rows:
        assert text in set(load("sample", "train").search(pattern.replace("\\|", "|")).table["text"])
    for pattern in re.findall(r'`((?:S=s|@ CLAUSE|NP < "|VP <<|S < VP|i@)[^`]*)`', PAGE):
        assert load("sample", "train").search(pattern).matches


# ---------------------------------------------------------------- matches

TAGGED = ("DT", "-LRB-", "NN", "-RRB-"), ((0, 4, "NP"), (1, 4, "PRN")), (3, 3, 0, 3), ("DET", "P", "ROOT", "P")
MADE = Sentence(("The", "-LRB-", "<b>", "-RRB-"), *TAGGED, "made")


def test_the_table_has_the_words_of_matches_head_words_and_captures():
    hits = search([MADE, Sentence(("a",), ("X",), ((0, 1, "PRN"),))], "PRN [< NN=noun | < X]")
    first, second = hits.table.astype(object).where(hits.table.notna(), None).to_numpy().tolist()
    assert list(hits.table) == "sentence id start end label text head head_word =noun".split()
    assert first == [0, "made", 1, 4, "PRN", "( <b> )", 3, "<b>", "<b>"]
    assert second == [1, "", 0, 1, "PRN", "a", None, None, None]
    assert repr(hits) == "2 matches of 'PRN [< NN=noun | < X]' in 2 sentences"
    none = search([MADE], "QP").table
    assert not len(none) and none["start"].dtype == hits.table["start"].dtype
    html = search([MADE] * 60, "PRN")._repr_html_()
    assert html.count("made") == 50 and "60 matches" in html and "[( &lt;b&gt; )]" in html


# ---------------------------------------------------------------- the command


def test_the_command_prints_a_concordance(tiny_parser, parser):
    command = ["search", "SBAR < (IN < that)", "--treebank", "sample", "--split"]
    code, out, err = lalkit(*command, "train")
    lines = out.splitlines()
    assert code == 0 and len(lines) == 16 and len({line.index("[") for line in lines}) == 1
    assert all("that " in line[line.index("[") :] for line in lines) and "matches of 'SBAR < (IN < that)'" in err
    code, out, err = lalkit("search", "NP", *command[2:], "test", "--model", tiny_parser)
    assert code == 0 and out == str(parser.search(load("sample", "test"), "NP"))
