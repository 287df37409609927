"""Tree patterns: the same spans as NLTK's own tgrep, conditions on words and arcs, and patterns that cannot be read."""

import random
import re
from pathlib import Path

import pytest
from nltk.tgrep import tgrep_compile, tgrep_positions
from nltk.tree import ParentedTree

from lalkit.errors import ParameterError, TreebankError
from lalkit.treebank.brackets import parse_tree
from lalkit.treebank.corpora import load
from lalkit.treebank.head_words import dependencies
from lalkit.treebank.hits import search
from lalkit.treebank.patterns import Pattern
from lalkit.treebank.tree import Node, Sentence, Span
from tests.corpora import needs

# Without the two kinds that differ from NLTK's own results: a word at the left of a relation, and >>, or >>'.
PATTERNS = """
NP
"."
/^VB/
i@"np"
NP|VP
NN < __
NP < DT
S < NP < VP
NP <, DT
NP <' NN
NP <2 JJ
NP <-2 NN
NP <: NNP
S << that
SBAR < (IN < that)
VP <<, VBD
NP <<' NN
S <<: VP
NN > NP
NN >> VP
DT >, NP
NN >' NP
S >: SBAR
DT . NN
NN , DT
NP .. VP
VP ,, NP
DT $ NN
JJ $. NN
NP $.. VP & !<< PRP
VP [< VBD | < VBZ] !< NP
@ SUBJECT /^NP/; @ VERB /^VP/; S < (@SUBJECT $.. @VERB)
@ N /^NP/; @ S /^S/; @S=s < @N=n : =n !< PRP : =s << NN
N(0,)
""".strip().split("\n")


def nltk_spans(pattern, tree: Node) -> list[tuple[int, int]]:
    """The spans that NLTK's own tgrep finds in the tree as it stands in a file."""
    theirs = ParentedTree.fromstring(str(tree))
    leaves = theirs.treepositions("leaves")
    (positions,) = tgrep_positions(pattern, [theirs])
    inside = [[i for i, leaf in enumerate(leaves) if leaf[: len(position)] == position] for position in positions]
    return sorted((places[0], places[-1] + 1) for places in inside)


def compare(pattern: str, trees) -> int:
    compiled, theirs, count = Pattern(pattern), tgrep_compile(pattern), 0
    for tree in trees:
        spans = [(match.start, match.end) for match in compiled.find(tree)]
        assert sorted(spans) == nltk_spans(theirs, tree.tree if isinstance(tree, Sentence) else tree)
        count += len(spans)
    return count


def made_tree(rng: random.Random, depth: int = 0) -> Node:
    """A tree with few labels, so that patterns match; with unary chains, brackets and signs."""
    if depth > 5 or rng.random() < 0.25:
        tag = rng.choice(["DT", "NN", "JJ", "VBD", "VBZ", "PRP", "IN", ".", "-LRB-", "NNP"])
        return Node(tag, word=rng.choice(["that", "the", "(", "]", ".", "'s", "1/2"]))
    children = tuple(made_tree(rng, depth + 1) for _ in range(rng.choice([1, 2, 2, 3])))
    return Node(rng.choice(["S", "NP", "VP", "SBAR"]), children)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_spans_are_those_of_nltk_on_made_trees(pattern):
    rng = random.Random(PATTERNS.index(pattern))
    assert (
        compare(pattern, [Node("S", (made_tree(rng), made_tree(rng))) for _ in range(20)])
        or pattern == "SBAR < (IN < that)"
    )


@pytest.mark.slow
@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_spans_are_those_of_nltk_on_300_sentences(pattern, sample):
    rng = random.Random(1)
    trees = [*sample, *load("sample", "dev"), *load("sample", "test")]
    trees += [Node("S", (made_tree(rng), made_tree(rng))) for _ in range(300 - len(trees))]
    assert compare(pattern, trees)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_spans_are_those_of_nltk_on_news(pattern):
    assert compare(pattern, needs("ptb-sample", "dev").sentences[::4])


def test_a_word_is_a_node_and_equal_subtrees_are_two():
    tree = parse_tree("(S (NP (PRP it)) (VP (VBD bit) (NP (PRP it))))")
    assert spans("it > PRP", tree) == [(0, 1, "it"), (2, 3, "it")]  # NLTK: a word has no parent
    assert spans("NP >>, S", tree) == [(0, 1, "NP")]  # NLTK also finds the second one, which looks like the first
    assert nltk_spans("it > PRP", tree) == [] and nltk_spans("NP >>, S", tree) == [(0, 1), (2, 3)]


def spans(pattern: str, tree, **conditions) -> list[tuple[int, int, str]]:
    return [(m.start, m.end, m.label) for m in Pattern(pattern, **conditions).find(tree)]


TREE = parse_tree("(S (NP (DT the) (NN dog)) (VP (VBZ says) (SBAR (IN that) (S (NP (PRP it)) (VP (VBD bit))))) (. .))")
HEADS, ARCS = dependencies(TREE)
WORDS, TAGS = zip(*((leaf.word, leaf.label) for leaf in TREE.leaves()))
SAYS = Sentence(
    WORDS,
    TAGS,
    ((0, 7, "S"), (0, 2, "NP"), (2, 6, "VP"), (3, 6, "SBAR"), (4, 6, "S"), (4, 5, "NP"), (5, 6, "VP")),
    HEADS,
    ARCS,
)


def test_matches_come_with_head_words_and_captures():
    (match,) = Pattern("SBAR < (IN=that $. S=clause)").find(SAYS)
    assert (match.start, match.end, match.label, match.head) == (3, 6, "SBAR", 4)
    assert match.captures == {"that": Span(3, 4, "IN"), "clause": Span(4, 6, "S")}
    assert Pattern("S=a < VP=b : =b < NP=c").names == ("a", "b", "c")


@pytest.mark.parametrize(
    ("pattern", "conditions", "expected"),
    [
        ("NP", {"head": "dog"}, [(0, 2)]),
        ("NP", {"head": "/^(it|dog)$/"}, [(0, 2), (4, 5)]),
        ("NP", {"arc": ARCS[1]}, [(0, 2), (4, 5)]),
        ("NP", {"arc": ARCS[1], "word": "it"}, [(4, 5)]),
        ("S", {"word": "that"}, [(0, 7)]),
        ("S", {"tag": "/^VB[DZ]/"}, [(0, 7), (4, 6)]),
        ("S", {"word": "bit", "tag": "VBZ"}, []),  # of one word, not of two
        ("IN", {"head": "that"}, [(3, 4)]),
        ("that", {"head": "that"}, [(3, 4)]),
        ("VP", {"head": "/"}, []),
    ],
)
def test_conditions_on_words_and_arcs(pattern, conditions, expected):
    assert [span[:2] for span in spans(pattern, SAYS, **conditions)] == expected


def test_a_tree_alone_has_words_and_tags_but_no_arcs():
    assert [span[:2] for span in spans("S", TREE, word="that", tag="IN")] == [(0, 7)]
    for conditions in ({"head": "dog"}, {"arc": "SBJ"}):
        with pytest.raises(ParameterError, match="need dependencies"):
            list(Pattern("NP", **conditions).find(TREE))
    with pytest.raises(TreebankError, match="no constituents"):
        list(Pattern("NP").find(Sentence(("a",), None, None, (0,))))


def test_each_node_of_a_unary_chain_is_found_and_brackets_have_their_names():
    chain = Sentence(("(", "go", ")"), ("-LRB-", "VB", "-RRB-"), ((0, 3, "FRAG"), (1, 2, "S::VP")))
    assert spans("S <: VP", chain) == [(1, 2, "S")]
    assert spans("VP >: S", chain) == [(1, 2, "VP")]
    assert spans("-LRB- < -LRB-", chain) == [(0, 1, "-LRB-")]


@pytest.mark.parametrize("pattern", [*PATTERNS, "NN < NP=n", 'S < "."', "NP $ DT|NN", "TOP", "XX < a"])
def test_the_first_look_at_words_and_labels_leaves_nothing_out(pattern):
    sentences = [*load("sample", "test")[:20], SAYS, Sentence(("a", "b"), None, ())]
    compiled = Pattern(pattern)
    before = search(sentences, compiled).matches
    compiled._needed = set()
    assert search(sentences, compiled).matches == before


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("", "", "the pattern is ''"),
        (None, "", "the pattern is None"),
        ("NP <", "character 4", "cannot be read"),
        ("NP < ,", "character 4", "cannot be read"),
        ("NP < (VP", "character 6", "never closed"),
        ("NP < VP)", "character 8", "closes no bracket"),
        ("NP [< VP)", "character 9", "closes no bracket"),
        ("NP <<~ VP", "character 8", "cannot be read"),
        ("NP <9. VP", "character 4", "cannot interpret tgrep operator"),
        ("S < NP=n : =m < VP", "character 12", "names no node 'm'"),
        ("S < @SUBJECT", "character 5", "defines no macro 'SUBJECT'"),
        ("NP < /(/", "character 7", "missing )"),
        ('NP < "the', "", "never closed"),
        ("(" * 60 + "NP" + ")" * 60, "character 51", "more than 50 brackets"),
    ],
)
def test_a_pattern_that_cannot_be_read_names_the_place(text, place, problem):
    with pytest.raises(ParameterError) as error:
        Pattern(text)
    assert place in error.value.where and problem in error.value.problem and "SBAR < (IN < that)" in error.value.remedy


def test_a_condition_that_cannot_be_read_is_refused():
    for condition in ("", 3, "/(/"):
        with pytest.raises(ParameterError):
            Pattern("NP", head=condition)


def test_a_regular_expression_without_end_and_a_tree_without_end_are_refused(monkeypatch):
    deep = Node("NN", word="x")
    for _ in range(3000):
        deep = Node("NP", (deep,))
    assert len(list(Pattern("NP").find(deep))) == 3000
    with pytest.raises(ParameterError, match="too deep"):
        list(Pattern("NP << NN").find(deep))
    monkeypatch.setattr("nltk.redos.DEFAULT_TIMEOUT", 0.05)
    with pytest.raises(ParameterError, match="time limit"):
        list(Pattern("/^(a|a)*$/").find(Node("NN", word="a" * 60 + "b")))


def test_a_name_that_is_not_bound_in_a_match_is_an_error():
    with pytest.raises(ParameterError, match="not bound"):
        list(Pattern("S [< SBAR=n | < VP] : =n < IN").find(TREE))


def test_each_example_of_the_page_finds_its_words():
    page = (Path(__file__).parents[2] / "notebooks" / "patterns.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(.*)` \| .* \| (.*) \|$", page, re.M)
    assert len(rows) == 10
    for pattern, text in rows:
        assert text in set(search(load("sample", "train"), pattern.replace("\\|", "|")).table["text"])


def test_the_patterns_in_the_text_of_the_page_can_be_read():
    page = (Path(__file__).parents[2] / "notebooks" / "patterns.md").read_text(encoding="utf-8")
    for pattern in re.findall(r'`((?:S=s|@ CLAUSE|NP < "|VP <<|S < VP|i@)[^`]*)`', page):
        assert search(load("sample", "train"), pattern.replace("\\|", "|")).matches
