"""EVALB against hand-made cases and a slow twin; attachment, corpus totals, and the table with a row per sentence."""

import dataclasses
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lalkit.errors import LalkitError
from lalkit.evaluation import scores
from lalkit.evaluation.evalb import COLLINS, score_brackets
from lalkit.evaluation.scores import attachment, by_label, by_length, evaluate
from lalkit.treebank.brackets import parse_tree, tree_to_sentence
from lalkit.treebank.corpora import load
from lalkit.treebank.tree import Node, Sentence, Span
from tests.reference.evalb import count_brackets

ROWS = (Path(__file__).parent / "evalb_cases.txt").read_text(encoding="utf-8").splitlines()
CASES = [row.split(" | ") for row in ROWS if not row.startswith("#")]
DOG = "(S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .))"


def score(gold: str, predicted: str):
    return score_brackets(parse_tree(gold), parse_tree(predicted) if predicted else None)


# ---------------------------------------------------------------------------------------------------------- EVALB


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_hand_made_case(case):
    _, gold, predicted, expected, words, tags, reason = case
    count = score(gold, predicted)
    counted = f"{count.gold} {count.predicted} {count.matched}" if count.status == "ok" else count.status
    assert counted == expected, reason
    assert words in ("", str(count.words)) and tags in ("", str(count.tags_right)), reason


def test_more_cases():
    """A tree without a limit of depth; a round bracket is its escape, in words, as CRAFT has both."""
    count = score("(X " * 3000 + "(NN a)" + ")" * 3000, "(X " * 2999 + "(NN a)" + ")" * 2999)
    assert (count.gold, count.predicted, count.matched) == (3000, 2999, 2999)
    plain = Node("NP", (Node("-LRB-", word="("), Node("NN", word="f(x)")))
    assert score_brackets(plain, parse_tree("(NP (-LRB- -LRB-) (NN f-LRB-x-RRB-))")).matched == 1


TAGS = ["NN", "NN", "VB", ",", ".", "-NONE-"]
LABELS = ["NP", "NP-SBJ", "VP", "TOP", "ADVP", "PRT"]


def random_tree(pick: random.Random, leaves: list[tuple[str, str]]) -> Node:
    """Return a random tree over (tag, word), with unary chains."""
    if len(leaves) > 1:
        cut = pick.randrange(1, len(leaves))
        node = Node(pick.choice(LABELS), (random_tree(pick, leaves[:cut]), random_tree(pick, leaves[cut:])))
    else:
        node = Node(leaves[0][0], word=leaves[0][1])
    return Node(pick.choice(LABELS), (node,)) if pick.random() < 0.4 else node


@given(st.randoms(use_true_random=False))
def test_the_slow_twin_agrees(pick):
    words = ["w1", "w2", "w3", "w4"][: pick.randint(1, 4)]
    sides = [pick.choices(TAGS, k=len(words)) for _ in words[:2]]
    pair = [random_tree(pick, [*zip(tags, words)]) for tags in (sides[0], sides[-1])]
    count = score_brackets(*pair)
    expected = count_brackets(*pair, set(COLLINS.deleted), {"ADVP", "PRT"})
    if isinstance(expected, str):
        assert count.status.endswith(expected)
    else:
        assert (count.matched, count.gold, count.predicted) == expected


# ----------------------------------------------------------------------------------------------------- attachment

#            1    2    3      4    5      6
WORDS = ("``", "the", "dog", "barks", "loudly", ".")
TAGGED = ("``", "DT", "NN", "VBZ", "RB", ".")
RELATIONS = ("punct", "det", "nsubj", "root", "advmod", "punct")
GOLD = Sentence(WORDS, TAGGED, heads=(4, 3, 4, 0, 4, 4), arc_labels=RELATIONS, id="g1")


def changed(**layers):
    return dataclasses.replace(GOLD, **layers)


BARE = Sentence(WORDS, heads=GOLD.heads)
# The head of the opening quote, the label of the subject and the head of the stop are wrong.
WRONG = changed(heads=(3, 3, 4, 0, 4, 5), arc_labels="punct det obj root advmod punct".split())


@pytest.mark.parametrize(
    ("gold", "found", "punctuation", "counts"),
    [
        (GOLD, WRONG, False, (4, 4, 3)), (GOLD, WRONG, True, (6, 4, 3)),
        (GOLD, changed(heads=(4, 4, 4, 0, 4, 4)), False, (4, 3, 3)),  # a label is right only with its head
        (GOLD, changed(arc_labels=("xyzzy",) * 6), True, (6, 6, 0)),  # unknown labels are wrong, no error
        (GOLD, changed(tags=(",",) * 6), False, (4, 4, 4)), (changed(tags=(",",) * 6), GOLD, False, (0, 0, 0)),
        (changed(tags=("-LRB-", "#", "POS", "$", "SYM", "PU")), GOLD, False, (5, 5, 5)),
        (BARE, GOLD, False, (6, 6, None)), (GOLD, BARE, True, (6, 6, 0)),  # without gold tags all words count
        (GOLD, None, True, (6, 0, 0)), (GOLD, Sentence(WORDS), True, (6, 0, 0)),
        (GOLD, Sentence(WORDS[:-1], heads=GOLD.heads[:-1]), True, (6, 0, 0)), (GOLD, changed(words=WORDS[::-1]), True, (6, 0, 0)),
    ],
)  # fmt: skip
def test_attachment(gold, found, punctuation, counts):
    assert attachment(gold, found, punctuation) == counts


# ------------------------------------------------------------------------------------------------------- a corpus


def joint(tree: str, heads=None, labels=None, id="") -> Sentence:
    return dataclasses.replace(tree_to_sentence(parse_tree(tree), id), heads=heads, arc_labels=labels)


def corpus() -> tuple[list[Sentence], list[Sentence | None]]:
    """Four sentences: right; one bracket, one tag, one head and one label wrong; not parsed; other words."""
    dog = joint(DOG, (2, 3, 0, 3), ("det", "nsubj", "root", "punct"), "dog")
    left = joint("(S (NP (NN a) (NN b)) (NN c))", (3, 3, 0), ("x", "y", "root"), "left")
    right = joint("(S (NN a) (NP (VB b) (NN c)))", (2, 3, 0), ("x", "z", "root"))
    go = joint("(S (VP (VB Go)) (. .))", (0, 1), ("root", "punct"), "go")
    stay = joint("(S (VP (VB Stay)) (. .))", (0, 1), ("root", "punct"), "stay")
    return [dog, left, go, stay], [dog, right, None, go]


def test_summary_of_a_corpus():
    summary = evaluate(*corpus()).summary()
    assert summary == {
        **dict.fromkeys(("precision", "recall", "f1"), 80.0),  # S NP VP of dog, S of left: 4 of 5
        "exact": 50.0,  # dog, of dog and left
        "uas": pytest.approx(100 * 5 / 8),  # 3 of 3, 2 of 3, 0 of 1, 0 of 1
        "las": pytest.approx(100 * 4 / 8),
        "uas_all": pytest.approx(100 * 6 / 11),  # 4 of 4, 2 of 3, 0 of 2, 0 of 2
        "las_all": pytest.approx(100 * 5 / 11),
        "tag_accuracy": pytest.approx(100 * 5 / 6),  # 3 of 3, 2 of 3
        "sentences": 4,
        "skipped": 2,
    }


def test_table_has_a_row_per_sentence_and_adds_up_to_the_summary():
    evaluation = evaluate(*corpus())
    table, summary = evaluation.table(), evaluation.summary()
    columns = "length arcs arcs_right labels_right".split()
    assert list(table.columns) == list(scores.COLUMNS) and table["id"].tolist() == ["dog", "left", "go", "stay"]
    assert table[columns].values.tolist() == [[4, 3, 3, 3], [3, 3, 2, 1], [2, 1, 0, 0], [2, 1, 0, 0]]
    assert table["status"].tolist() == ["ok", "ok", "skipped: empty", "error: words"]
    columns = "matched gold predicted f1 exact tags_right".split()
    assert table.loc[:1, columns].values.tolist() == [[3, 3, 3, 100, True, 3], [1, 2, 2, 50, False, 2]]
    assert table.loc[2:, columns].isna().all(axis=None)
    assert 100 * table["matched"].sum() / table["predicted"].sum() == summary["precision"]
    assert 100 * table["arcs_right"].sum() / table["arcs"].sum() == summary["uas"]


def without(sentence: Sentence | None, *layers: str) -> Sentence | None:
    return sentence and dataclasses.replace(sentence, **dict.fromkeys(layers))


@pytest.mark.parametrize(
    ("layers", "missing"),
    [
        (("constituents",), {"precision", "recall", "f1", "exact"}),
        (("heads", "arc_labels"), {"uas", "las", "uas_all", "las_all"}),
        (("arc_labels",), {"las", "las_all"}),
    ],
)
@pytest.mark.parametrize("side", ["gold", "predicted"])
def test_scores_of_a_missing_layer_are_none_and_the_others_stay(layers, missing, side):
    gold, found = corpus()
    full, sides = evaluate(gold, found).summary(), {"gold": gold, "predicted": found}
    sides[side] = [without(sentence, *layers) for sentence in sides[side]]
    evaluation = evaluate(*sides.values())
    assert evaluation.summary() == full | dict.fromkeys(missing)
    assert len(evaluation.table()) == 4


def test_missing_tags_trees_and_sentences():
    gold, found = corpus()
    summary = evaluate(gold, [without(s, "tags") for s in found]).summary()  # a comma must not cost a sentence
    assert (summary["tag_accuracy"], summary["f1"], summary["skipped"]) == (None, 80.0, 2)
    evaluation = evaluate([without(s, "tags") for s in gold], found)
    summary = evaluation.summary()
    assert (summary["tag_accuracy"], summary["uas"], summary["f1"], summary["skipped"]) == (None, None, 80.0, 2)
    assert summary["uas_all"] == pytest.approx(100 * 6 / 11) and list(evaluation.table()["arcs"]) == [4, 3, 2, 2]
    bare_gold, bare = ([side[0], without(side[1], "constituents")] for side in (gold, found))
    for pair, status in (((bare_gold, found[:2]), "no gold tree"), ((gold[:2], bare), "empty")):
        evaluation = evaluate(*pair)
        assert list(evaluation.table()["status"]) == ["ok", f"skipped: {status}"] and evaluation.summary()["f1"] == 100
        (reason,) = evaluation.left_out()
        assert evaluation.left_out()[reason] == [gold[1].id] and reason in scores.REASONS.values()
    summary = evaluate(gold, [None] * 4).summary()
    assert (summary["skipped"], summary["f1"], summary["uas"], summary["las"]) == (4, 0.0, 0.0, 0.0)
    assert evaluate([], []).summary()["f1"] is None and len(evaluate([], []).table()) == 0
    word = Sentence(("Hm",), ("UH",), constituents=())
    table = evaluate([word], [word]).table()  # a bare leaf is exact, and has no F1
    assert table.loc[0, "exact"] and table[["precision", "recall", "f1"]].isna().all(axis=None)
    for wrong in (lambda: evaluate(gold, found[:3]), lambda: attachment(Sentence(WORDS), GOLD, True)):
        pytest.raises(LalkitError, wrong)


def test_by_label_and_by_length():
    gold = [joint("(S (NP (DT a) (NN b)) (VP (VB c) (NP (NN d))))"), joint("(NP (NP (NN a)) (, ,) (NP (NN b)))")]
    found = [joint("(S (NP (DT a) (NN b)) (VP (VB c) (PP (NN d))))"), joint("(NP (NN a) (, ,) (NP (NN b)))")]
    table = by_label(gold, found, least=0).set_index("label")
    assert table.loc["NP"].tolist() == [5, 3, 3, 100, 60, 75]
    assert table.loc["PP", ["gold", "predicted"]].tolist() == [0, 1]
    assert by_label(gold, found, least=2).label.tolist() == ["NP"]
    table = by_length(evaluate(gold, found), lengths=(3,))
    assert table.words.tolist() == ["1 to 3", "over 3"] and table.f1.tolist() == [80, 75] and table.uas.isna().all()
    sample = load("sample", "dev").sentences
    whole = evaluate(sample, [dataclasses.replace(s, constituents=s.constituents[:-1]) for s in sample])
    assert by_label(sample, sample).matched.sum() == whole.brackets.gold
    lengths = by_length(whole)
    assert lengths.sentences.sum() == len(sample)
    assert lengths.f1.min() <= whole.summary()["f1"] <= lengths.f1.max() < 100


# ------------------------------------------------------------------------------------------------- a real treebank


def test_no_sentence_is_left_out_because_of_a_wrong_punctuation_tag():
    """Brackets under the gold tags; tag accuracy under the parser's own. Each side under its own tags: as the C program."""
    spans = (Span(0, 4, "S"), Span(0, 2, "NP"))
    gold = Sentence(("The", "end", "came", "."), ("DT", "NN", "VBD", "."), spans)
    predicted = Sentence(gold.words, ("DT", "NN", "VBN", "NN"), spans)
    ours = evaluate([gold], [predicted])
    assert (ours.summary()["f1"], ours.summary()["skipped"]) == (100.0, 0)
    assert ours.summary()["tag_accuracy"] == pytest.approx(100 * 2 / 3)  # DT NN right, VBN wrong, the stop not counted
    theirs = evaluate([gold], [predicted], retag=False)
    assert theirs.summary()["skipped"] == 1


# -------------------------------------------------------------------------------------- Universal Dependencies


def conll18(gold, system, punctuation):
    """UAS and LAS as conll18_ud_eval.py counts words that are aligned one to one, written as a loop."""
    words = heads = labels = 0
    for right, found in zip(gold, system):
        for i in range(len(right)):
            label = right.arc_labels[i].split(":")[0]
            if punctuation or label != "punct":
                words += 1
                attached = found is not None and right.heads[i] == found.heads[i]
                heads += attached
                labels += attached and label == found.arc_labels[i].split(":")[0]
    return [words, 100 * heads / words, 100 * labels / words]


def test_universal_dependencies_by_their_own_conventions():
    rng, gold, found = random.Random(1), [], []
    for n in range(3, 12):
        for side in (gold, found):
            heads = [0, *(rng.randint(1, i) for i in range(1, n))]
            labels = ["root", *rng.choices(["nsubj", "nsubj:pass", "punct", "obj"], k=n - 1)]
            # Tags that say nothing of punctuation: a full stop that is an object, and punctuation that is a noun.
            tags, upos = rng.choices([".", "NN"], k=n), rng.choices("XY", k=n)
            side.append(Sentence(["w"] * n, tags, None, heads, labels, upos=upos, free_arcs=True))
    found[3] = None
    table = scores.universal_scores(gold, found)
    assert table[["arcs", "uas", "las"]].values.tolist() == [conll18(gold, found, True), conll18(gold, found, False)]
    assert list(table.words) == ["all (CoNLL 2018)", "without punctuation"] and "upos" not in table
    table = scores.universal_scores(gold[:3], found[:3])
    rows = [row for a, b in zip(gold[:3], found[:3]) for row in zip(a.upos, b.upos, a.arc_labels)]
    for kept, upos in ((rows, table.upos[0]), ([row for row in rows if row[2] != "punct"], table.upos[1])):
        assert upos == 100 * sum(a == b for a, b, _ in kept) / len(kept)
    other = dataclasses.replace(gold[0], arc_labels=["SBJ"] * len(gold[0]))
    assert len(scores.universal_scores([other], found[:1])) == 0


OURS = "DET P NMOD PMOD SBJ ROOT OBJ COORD CC NUM".split()
UNIVERSAL = "punct case det nsubj root advmod amod obj obl conj".split()
STANFORD = "punct prep pobj dobj amod det root nsubjpass auxpass possessive".split()


def with_labels(labels):
    heads = (2, 0, *[2] * (len(labels) - 2))
    words, tags = tuple(f"w{i}" for i in range(len(labels))), ("X",) * len(labels)
    return Sentence(words, tags=tags, heads=heads, arc_labels=tuple(labels), constituents=(Span(0, len(labels), "S"),))


@pytest.mark.parametrize(
    ("gold", "parse", "known", "scored"),
    [
        (OURS, OURS[::-1], None, True), (OURS, UNIVERSAL, None, False), (UNIVERSAL, OURS, None, False),
        (UNIVERSAL, STANFORD, None, False), (OURS, ["DEP"] * 10, OURS, True), (OURS, ["DEP"] * 10, None, True),
        (OURS, OURS, UNIVERSAL, False), (OURS[:3], UNIVERSAL[:3], None, True),
    ],
)  # fmt: skip
def test_arcs_of_another_convention_are_not_scored(gold, parse, known, scored):
    """A poor parser with few labels, and a sentence with few, say nothing about conventions."""
    pair = [with_labels(gold)], [with_labels(parse)]
    result = evaluate(*pair, arc_labels=known)
    summary = result.summary()
    other = result.others.get("arcs", "")
    assert bool(other) != scored and other == scores.other_arc_labels(*pair, known)
    assert (summary["uas"] is not None) == (summary["las"] is not None) == scored and summary["f1"] == 100
    assert result.table()["arcs"].notna().all() == scored
