"""Hard cases of EVALB, worked out by hand from the rules of the C program; never regenerate them from the code.

Each case: gold tree, predicted tree (None = empty parse), then either (gold, predicted, matched) brackets or the status
of a sentence that is left out, and the reason in a line. Unless given, words (not deleted) and tags (right) are
not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

from lalkit.evaluation.evalb import EMPTY, LENGTH, WORDS


@dataclass(frozen=True)
class Case:
    name: str
    gold: str
    predicted: str | None
    expected: tuple[int, int, int] | str
    reason: str
    words: int | None = None
    tags: int | None = None


DOG = "(S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .))"
GO = "(S (VP (VB Go)))"
AB = "(S (NP (NN a)) (VP (VB b)))"
LEFT = "(S (NP (NN a) (NN b)) (NN c))"
DEEP = 3000


def chain(depth: int) -> str:
    return "(X " * depth + "(NN a)" + ")" * depth


CASES = [
    # -- nothing special
    Case("identical", DOG, DOG, (3, 3, 3), "S NP VP, the stop is no word", words=3, tags=3),
    Case("wrong label", AB, "(S (NP (NN a)) (NP (VB b)))", (3, 3, 2), "VP against NP over the same word"),
    Case("flat", AB, "(S (NN a) (VB b))", (3, 1, 1), "only S is found"),
    Case("unknown label", AB, "(S (NP (NN a)) (XYZZY (VB b)))", (3, 3, 2), "a label gold never has is just wrong"),
    Case("case of labels", "(NP (NN a))", "(np (NN a))", (1, 1, 0), "labels are compared as written"),
    Case("deep nesting", chain(DEEP), chain(DEEP - 1), (DEEP, DEEP - 1, DEEP - 1), "no recursion limit, one X missing"),
    # -- words deleted by their tag
    Case(
        "stop attached low", DOG, "(S (NP (DT the) (NN dog)) (VP (VBZ barks) (. .)))", (3, 3, 3),
        "where a deleted word hangs does not matter", words=3,
    ),
    Case(
        "quotes at both edges", "(S (`` ``) (NP (PRP I)) (VP (VBP know)) ('' ''))",
        "(S (NP (`` ``) (PRP I)) (VP (VBP know) ('' '')))", (3, 3, 3), "both quotes go, spans shrink", words=2,
    ),
    Case(
        "comma inside", "(NP (NP (NNS cats)) (, ,) (NP (NNS dogs)))", "(NP (NP (NNS cats) (, ,)) (NP (NNS dogs)))",
        (3, 3, 3), "NP(0,1) on both sides once the comma is gone",
    ),
    Case(
        "stop inside", "(S (NP (NNP Mr)) (. .) (VP (VBD left)))", "(S (NP (NNP Mr) (. .)) (VP (VBD left)))", (3, 3, 3),
        "the same for a stop in the middle",
    ),
    Case(
        "deletion hides no structure", "(S (NP (NNP Ann)) (, ,) (VP (VBD left)))",
        "(S (NP (NNP Ann) (, ,) (VBD left)))", (3, 2, 1), "NP(0,2) is neither NP(0,1) nor VP(1,2)",
    ),
    Case(
        "phrase of deleted words only", "(S (NP (PRP He)) (VP (VBD left)) (: --) (. .))",
        "(S (NP (PRP He)) (VP (VBD left)) (PRN (: --) (. .)))", (3, 3, 3), "PRN covers no word: no bracket",
    ),
    Case(
        "semicolon between clauses", "(S (S (VP (VB Go))) (: ;) (S (VP (VB stay))))",
        "(S (VP (VB Go)) (: ;) (S (VP (VB stay))))", (5, 4, 4), "gold has one S(0,1) more",
    ),
    Case(
        "unary through deletion", "(NP (NP (NN dog)) (, ,))", "(NP (NN dog) (, ,))", (2, 1, 1),
        "without the comma gold is NP NP over one word",
    ),
    Case(
        "comma tagged as a noun", "(NP (NN a) (NN ,) (NN b))", "(NP (NP (NN a) (NN ,)) (NN b))", (1, 2, 1),
        "the tag decides, not the word: this comma stays", words=3,
    ),
    Case(
        "noun tagged as a stop", "(S (NP (NN dog)) (. runs))", "(S (NP (NN dog)) (. runs))", (2, 2, 2),
        "the tag decides, not the word: runs goes", words=1,
    ),
    Case(
        "other words, but deleted", "(S (VP (VB Go)) (. .))", "(S (VP (VB Go)) (. !))", (2, 2, 2),
        "words are compared after deletion",
    ),
    Case("deleted word on one side only", GO, "(S (VP (VB Go)) (. .))", (2, 2, 2), "lengths too"),
    Case(
        "phrase with a deleted label", "(S (: (NN x)) (VB y))", "(S (NN x) (VB y))", (1, 1, 1),
        "one list for tags and phrases: the bracket goes, x stays", words=2,
    ),
    # -- ? and !
    Case(
        "? tagged as a stop", "(SQ (VP (VB Go)) (. ?))", "(SQ (VP (VB Go) (. ?)))", (2, 2, 2), "'.' is deleted",
        words=1,
    ),
    Case(
        "? tagged ?", "(SQ (VP (VB Go)) (? ?))", "(SQ (VP (VB Go) (? ?)))", (2, 2, 1),
        "COLLINS keeps it: VP(0,1) against VP(0,2)", words=2,
    ),
    Case("! tagged !", "(S (INTJ (UH Oh)) (! !))", "(S (INTJ (UH Oh) (! !)))", (2, 2, 1), "COLLINS keeps it"),
    Case(
        "? kept on one side", "(SQ (VP (VB Go)) (. ?))", "(SQ (VP (VB Go)) (? ?))", LENGTH,
        "each side by its own tags: 1 word against 2",
    ),
    # -- ADVP = PRT
    Case("PRT as ADVP", "(VP (VB give) (PRT (RP up)))", "(VP (VB give) (ADVP (RP up)))", (2, 2, 2), "equal labels"),
    Case("ADVP as PRT", "(VP (VB give) (ADVP (RP up)))", "(VP (VB give) (PRT (RP up)))", (2, 2, 2), "both ways"),
    Case(
        "ADVP-DIR as PRT", "(VP (VB come) (ADVP-DIR (RB back)))", "(VP (VB come) (PRT (RB back)))", (2, 2, 2),
        "cut first, then equal",
    ),
    Case("PRT as ADJP", "(VP (VB give) (PRT (RP up)))", "(VP (VB give) (ADJP (RP up)))", (2, 2, 1), "no other pair"),
    Case("PRT ADVP twice", "(ADVP (PRT (RP up)))", "(ADVP (ADVP (RP up)))", (2, 2, 2), "two of one class each"),
    Case("PRT counts once", "(PRT (RP up))", "(ADVP (PRT (RP up)))", (1, 2, 1), "one gold cannot match two"),
    Case("PRT as a tag", "(NP (PRT up))", "(NP (ADVP up))", (1, 1, 1), "tags know the pair too", words=1, tags=1),
    Case(
        "ADVP|PRT", "(VP (VB come) (ADVP|PRT (RB in)))", "(VP (VB come) (ADVP (RB in)))", (2, 2, 1),
        "a bar does not cut a label",
    ),
    # -- multisets and unary chains
    Case("NP NP", "(NP (NP (NN dog)))", "(NP (NP (NN dog)))", (2, 2, 2), "a repeated unary counts twice"),
    Case("NP NP missed once", "(NP (NP (NN dog)))", "(NP (NN dog))", (2, 1, 1), "2 against 1"),
    Case("NP invented once", "(NP (NN dog))", "(NP (NP (NN dog)))", (1, 2, 1), "1 against 2"),
    Case("2 against 3", "(NP (NP (NN dog)))", "(NP (NP (NP (NN dog))))", (2, 3, 2), "the smaller count matches"),
    Case("1 against 3", "(NP (NN dog))", "(NP (NP (NP (NN dog))))", (1, 3, 1), "the smaller count matches"),
    Case("3 against 2", "(NP (NP (NP (NN dog))))", "(NP (NP (NN dog)))", (3, 2, 2), "the smaller count matches"),
    Case("chain turned over", GO, "(VP (S (VB Go)))", (2, 2, 2), "order inside one span is not looked at"),
    Case("shorter chain", "(S (NP (QP (CD 5))))", "(S (NP (CD 5)))", (3, 2, 2), "QP is missing"),
    Case("longer chain", "(S (VB Go))", "(S (VP (NP (VB Go))))", (1, 3, 1), "VP and NP are invented"),
    # -- cutting labels
    Case(
        "NP-SBJ=2 in gold", "(S (NP-SBJ=2 (PRP He)) (VP (VBD left)))", "(S (NP (PRP He)) (VP (VBD left)))", (3, 3, 3),
        "cut at the first - or =",
    ),
    Case(
        "function tags on both sides", "(S (NP-SBJ-1 (PRP He)) (VP (VBD left)))",
        "(S (NP=3 (PRP He)) (VP-X (VBD left)))", (3, 3, 3), "predictions are cut too",
    ),
    Case("= before -", "(NP=2-SBJ (NN a))", "(NP (NN a))", (1, 1, 1), "whichever comes first"),
    Case(
        "labels that start with -", "(S (-X (NN a)) (NN b))", "(S (-Y (NN a)) (NN b))", (2, 2, 2),
        "both are cut to nothing, as the C program does",
    ),
    Case("-X is not X", "(S (-X (NN a)) (NN b))", "(S (X (NN a)) (NN b))", (2, 2, 1), "nothing against X"),
    Case(
        "phrase labelled -NONE-", "(S (-NONE- (NN x)) (VB y))", "(S (NN x) (VB y))", (2, 1, 1),
        "cut to nothing before deletion is asked: it counts",
    ),
    Case("TOP-X", "(TOP-X (NN a))", "(NP (NN a))", (0, 1, 0), "cut before deletion: TOP-X is TOP"),
    # -- brackets as words, tags
    Case(
        "-LRB- is a word", "(PRN (-LRB- -LRB-) (NP (NN x)) (-RRB- -RRB-))",
        "(PRN (-LRB- -LRB-) (NP (NN x) (-RRB- -RRB-)))", (2, 2, 1), "not deleted: NP(1,2) against NP(1,3)",
        words=3, tags=3,
    ),
    Case(
        "-LRB- is not -RRB-", "(NP (-LRB- -LRB-) (NN x))", "(NP (-RRB- -LRB-) (NN x))", (1, 1, 1), "tags are never cut",
        words=2, tags=1,
    ),
    Case(
        "only tags wrong", "(S (NP (NN time)) (VP (VBZ flies)))", "(S (NP (VB time)) (VP (NNS flies)))", (3, 3, 3),
        "brackets do not look at tags that stay", words=2, tags=0,
    ),
    Case(
        "wrong tag on a deleted word", "(NP (NN a) (, ,) (NN b))", "(NP (NN a) (: ,) (NN b))", (1, 1, 1),
        "both tags are deleted: not a tag error", words=2, tags=2,
    ),
    # -- the top
    Case("TOP in gold", "(TOP (S (VP (VB Go))))", GO, (2, 2, 2), "TOP is deleted"),
    Case("TOP in prediction", GO, "(TOP (S (VP (VB Go))))", (2, 2, 2), "on either side"),
    Case("TOP over two", "(TOP (NP (NN a)) (VP (VB b)))", AB, (2, 3, 2), "TOP is no S"),
    Case("S1", "(S1 (S (VP (VB Go))))", GO, (3, 2, 2), "COLLINS counts S1"),
    Case("ROOT", "(ROOT (S (VB Go)))", "(ROOT (S (VB Go)))", (2, 2, 2), "ROOT counts"),
    Case("ROOT in gold only", "(ROOT (S (VB Go)))", "(S (VB Go))", (2, 1, 1), "ROOT counts on one side, too"),
    Case("unlabelled top in gold", "( (S (VP (VB Go))))", GO, (3, 2, 2), "the empty label is not on the list"),
    Case("unlabelled top twice", "( (S (VP (VB Go))))", "( (S (VP (VB Go))))", (3, 3, 3), "and equals itself"),
    # -- sentences that are left out, and small ones that are not
    Case("words missing", DOG, "(S (NP (DT the) (NN dog)))", LENGTH, "3 words against 2"),
    Case("another word", DOG, "(S (NP (DT the) (NN cat)) (VP (VBZ barks)))", WORDS, "dog against cat"),
    Case("case of words", "(NP (NN Dog))", "(NP (NN dog))", WORDS, "words are compared as written"),
    Case("other words left", "(NP (NN a) (, b))", "(NP (, a) (NN b))", WORDS, "one word each, but a against b"),
    Case(
        "dash tagged as a noun", "(NP (NN profit) (: --) (NN loss))", "(NP (NN profit) (NN --) (NN loss))", LENGTH,
        "each side by its own tags: 2 words against 3",
    ),
    Case("empty parse", DOG, None, EMPTY, "an empty line"),
    Case("nothing left of the prediction", "(S (VB Go) (. .))", "(S (. .))", EMPTY, "asked before length"),
    Case("nothing left of either", "(FRAG (: --))", "(FRAG (: --))", EMPTY, "no word left of the prediction"),
    Case("nothing left of gold", "(FRAG (. go))", "(FRAG (VB go))", LENGTH, "0 words against 1 is no empty parse"),
    Case("bare leaves", "(NN dog)", "(NN dog)", (0, 0, 0), "no bracket, still a sentence", words=1, tags=1),
    Case("bare leaf predicted", "(NP (NN dog))", "(NN dog)", (1, 0, 0), "the NP is missed", words=1),
    Case("bare leaf in gold", "(NN dog)", "(NP (NN dog))", (0, 1, 0), "the NP is invented"),
    Case("bare deleted leaf", "(NP (. .))", "(. .)", EMPTY, "no word left"),
    Case("one word, all wrong", GO, "(NP (NN Go))", (2, 1, 0), "NP is neither S nor VP", words=1, tags=0),
    # -- traces
    Case("trace in gold", "(S (NP-SBJ (-NONE- *)) (VP (VB Go)))", GO, (2, 2, 2), "NP-SBJ covers no word", words=1),
    Case(
        "traces in other places", "(S (NP-SBJ-1 (NNP Ann)) (VP (VBD left) (NP (-NONE- *T*-1))))",
        "(S (NP (NNP Ann)) (VP (NP (-NONE- *)) (VBD left)))", (3, 3, 3), "neither trace takes room",
    ),
    Case(
        "empty relative clause", "(VP (VB eat) (NP (NP (NN food)) (SBAR (-NONE- 0) (S (-NONE- *T*-2)))))",
        "(VP (VB eat) (NP (NN food)))", (3, 2, 2), "SBAR and S go, NP NP over food stays",
    ),
    # -- crossing
    Case("crossing", LEFT, "(S (NN a) (NP (NN b) (NN c)))", (2, 2, 1), "NP(0,2) and NP(1,3)"),
    Case(
        "one crosses two", "(S (NP (NN a) (NN b)) (NP (NN c) (NN d)))", "(S (NN a) (VP (NN b) (NN c)) (NN d))",
        (3, 2, 1), "VP(1,3) matches neither NP",
    ),
    Case(
        "two cross one", "(S (NN a) (NP (NN b) (NN c)) (NN d))", "(S (X (NN a) (NN b)) (Y (NN c) (NN d)))", (2, 3, 1),
        "X(0,2) and Y(2,4) both cross NP(1,3)",
    ),
    Case(
        "crossing twice over", LEFT, "(S (NN a) (NP (NP (NN b) (NN c))))", (2, 3, 1), "a repeated unary crosses twice",
    ),
    Case("deleted label crosses nothing", LEFT, "(S (NN a) (TOP (NN b) (NN c)))", (2, 1, 1), "TOP is not there"),
    Case(
        "crossing at a comma", "(S (NP (NN a) (, ,)) (VP (VB b)))", "(S (NP (NN a)) (VP (, ,) (VB b)))", (3, 3, 3),
        "what crossed is deleted",
    ),
    # -- quotes that one side deletes
    Case("possessive", "(NP (NNS boys) ('' '))", "(NP (NNS boys) (POS '))", LENGTH, "there is no repair of quotes"),
]  # fmt: skip
