"""Treebanks in the wild, a small made-up file of each kind: what `data check`, `train --dry-run` and `evaluate` say."""

import pytest

from lalkit.errors import LalkitError, warn_once
from lalkit.treebank.corpora import CORPORA, find, load
from lalkit.treebank.foreign import annotation
from lalkit.treebank.text import COMMON, Reader
from lalkit.treebank.tree import Sentence
from tests.command import lalkit

FRENCH = "( (SENT (NP (DET Le) (NC chat)) (VN (CLR se) (V repose)) (PP (P sur) (NP (DET un) (NC toit))) (PONCT .)) )\n"
ICELANDIC = (
    "( (IP-MAT (NP-SBJ (PRO-N Hún-hún)) (VBDI sá-sjá) (CP-THT (C 0) (IP-SUB (NP-SBJ *con*) (VBDI kom-koma))) (. .-.))"
    " (ID 2026.OWN,.1))\n( (CODE <heading>))\n"
)
OF_2009 = (
    "1\tIt\tit\tit\tPRP\tPRP\t_\t_\t2\t2\tSBJ\tSBJ\t_\t_\n"
    "2\trained\train\train\tVBD\tVBD\t_\t_\t0\t0\tROOT\tROOT\tY\train.01\n\n"
)
RULES = "[heads]\nSENT VN | last | VN V\nNP | last | NC\nPP | first | P\n\n[groups]\nnever | PONCT\n"
ALONE = "a parser of constituents alone is trained"
# File, text, switches; what `data check` says, what `train --dry-run` says (None: that it can be trained), its exit code
KINDS = {
    "French": ("trees", FRENCH, "", "100% of the constituents (NP PP VN SENT) have no head rule", ALONE, 0),
    "TIGER in brackets": ("trees", "(S (NP-SB (ART-NK Der) (NN-NK Hund)) (VVFIN-HD bellt) ($. .))\n", "",
                          "75% of the tags (ART VVFIN $.) have no head rule", ALONE, 0),
    "French with rules": ("trees", FRENCH, "--heads rules.txt", "1 sentences read, 0 problems, 0 without", "weights", 0),
    "Icelandic": ("trees", ICELANDIC, "", "words are numbers and notes of the editors: ID CODE", "--drop-tags CODE,ID", 0),
    "its traces": ("trees", ICELANDIC, "", "2 words are traces and other empty elements: 0 *con*", "--drop-tags traces", 0),
    "its lemmas": ("trees", ICELANDIC, "--drop-tags ID,CODE,traces", "3 words have their lemma", ALONE, 0),
    "sentiment": ("trees", "(3 (2 (2 The) (2 film)) (4 (2 is) (4 (2 so) (3 good))))\n", "",
                  "of the constituents (4 2 3) have no head rule", ALONE, 0),
    "words in brackets": ("trees", "(S (NN (Kera)) (VP (VB (is))))\n", "", "2 words stand in brackets of their own", "sed", 2),
    "other labels": ("trees", "(S (NP@1 (DT A) (NN b)) (VP^S (VB is) (ADJP*OC (JJ c) (JJ d))))\n", "",
                     "3 constituents have labels of another program: NP@1 VP^S ADJP*OC", "sed", 0),
    "halves": ("trees", "(S-A (NP (NN a)) (S-A|<VP-.> (VP (VB is) (NP (NN c)) (NP (DT e) (NN f))) (S|<.> (. .))))\n", "",
               "NLTK made: S-A|<VP-.> S|<.>", "un_chomsky", 0),
    "Chinese": ("trees", "((IP (NP-SBJ (NR-SHORT 沪) (NN 股)) (VP (VV 涨) (X 啊)) (PU 。)))\n", "", " 0 problems", "weights", 0),
    "NeGra export": ("trees", "%% Word\n#FORMAT 3\n#BOS 1 1 0 1\nDas\tART\t--\tNK\t500\n", "",
                     "export format of NeGra", "treetools", 2),
    "discbracket": ("trees", "(S (NP (DT 0=The) (NN 2=end)) (VP (VB 1=is)))\n", "", "discbracket", "discodop", 2),
    "TIGER-XML": ("trees", "<?xml version='1.0'?>\n<corpus id='x'>\n", "", "XML, such as TIGER-XML", "brackets", 2),
    "without words": ("conllu", "1\tIt\t_\tX\tX\t_\t0\troot\t_\t_\n\n1\t_\t_\tX\tX\t_\t0\troot\t_\t_\n\n", "",
                      "1 of 2 words are missing", "Add the words", 2),
    "CoNLL-2009": ("conllu", OF_2009, "", "is CoNLL-2009", "--task", 2),
    "CoNLL-2008": ("conllu", "1\tRain\train\tNN\t_\tRain\train\tNN\t0\tROOT\train.01\t_\n\n", "", "CoNLL-2008", "U first", 2),
    "OntoNotes": ("conllu", "#begin document (a/b); part 000\nx 0 0 It PRP (S*) -\n", "", "CoNLL-2012", ".parse", 2),
    "trees as rows": ("conllu", FRENCH, "", "trees in a file of dependencies", ".trees", 2),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_treebank_in_the_wild_is_understood_or_refused(kind, tiny_parser, tmp_path):
    suffix, text, switches, says, in_training, code = KINDS[kind]
    warn_once.cache_clear()
    for split in ("train", "dev"):
        (tmp_path / f"{split}.{suffix}").write_text(text, encoding="utf-8")
    (tmp_path / "rules.txt").write_text(RULES)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / f"one.{suffix}").write_text(text, encoding="utf-8")
    for place in (tmp_path, f"own/one.{suffix}"):
        _, out, err = lalkit("data", "check", place, *switches.split(), cwd=tmp_path)
        assert says in out + err and (out + err).count(says) <= 2, out + err
    warn_once.cache_clear()
    options = ["--treebank", tmp_path, *switches.split()]
    trained, out, err = lalkit("train", *options, "--preset", "tiny", "--dry-run", cwd=tmp_path)
    assert trained == code and in_training in out + err and (says in err or "problems" in says), out + err
    evaluated, out, err = lalkit("evaluate", tiny_parser, *options, cwd=tmp_path)
    assert evaluated == (code if kind != "CoNLL-2009" else 0) and "Traceback" not in err
    assert ("uas" in out) == (kind in ("French with rules", "halves", "Chinese", "CoNLL-2009")), "heads were guessed"


def test_a_wrong_line_of_rules_is_named(tmp_path):
    (tmp_path / "own.trees").write_text(FRENCH)
    wrong = {"[heads]\nNP | middle | NC\n": "line 2", "NP | last | NC\n": "line 1", "[arcs]\n": "rules.txt"}
    for text, place in wrong.items():
        (tmp_path / "rules.txt").write_text(text)
        with pytest.raises(LalkitError, match=f"rules.txt.*{place}|{place}: there are no head rules"):
            load(f"{tmp_path}/own.trees@heads={tmp_path}/rules.txt", "")


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["sample", "ptb-sample", "craft", "ewt", "gum", "masc"])
def test_no_treebank_of_english_is_taken_for_another_language(name, caplog):
    from lalkit.api import Parser

    parser, treebank = Parser.load("en"), load(name, "dev", lenient=True)
    assert find(name) and name in CORPORA and not treebank.notes and not [*annotation(treebank)]
    for start in range(0, len(treebank), 300):
        assert not parser.reader.is_unlearned(treebank[start : start + 300])
    assert sum(parser.reader.is_unlearned([sentence]) for sentence in treebank) <= 0.002 * len(treebank)
    assert parser.reader.common and not caplog.text


@pytest.mark.parametrize(
    ("text", "unlearned"),
    [
        ("Merci beaucoup monsieur", True), ("El gato duerme", True), ("le cats me des", True), ("qwer zxcv uiop", True),
        ("Qwer Zxcv Uiop said", False), ("the qwer zxcv uiop", False), ("qwer zxcv", False), ("ES cell El Salvador", False),
        ("cats chase le mice of the", False), ("qwer Tyuo Tyuo " * 9, False), ("qwer zxcv " * 12, True),
    ],
)  # fmt: skip
def test_a_typed_sentence_in_another_language(text, unlearned):
    """Names, which have many sub-words, too, do not count."""
    reader = Reader(common=COMMON, pieces=lambda words: [[0] * (1 if "c" in word else 4) for word in words])
    assert reader.is_unlearned([Sentence(tuple(text.split()))]) == unlearned
