"""Name the arcs of dependencies that were derived from an English constituency tree.

The labels are our own, because the treebanks whose heads we reproduce have none. A paper that uses their scores should say so.

An arc arises where a constituent passes its head word on to its parent: the head words of the other children depend on it.
The label of such an arc is the first of these that applies: punctuation; coordination; the role that the function tags of the
dependent name (`ROLES`); the first matching line of `TABLE`, which looks at the parent, the head child, the other child and
its side.

In any phrase:
    ROOT  the head of the sentence
    P     punctuation
    CC    a coordinator, or a part of one (as well as)
    COORD a conjunct that is not the head of its coordination, or one of several equal parts side by side
    APPO  one of two noun phrases with a comma or a dash between them: apposition, address, list of names
    PRN   a parenthesis
From function tags:
    SBJ   the subject of a clause
    LGS   the by-phrase of a passive (logical subject)
    PRD   a predicate that is not a VP: is chairman, seems old
    DTV   the person to whom something is given or for whom something is done: dative and benefactive
    TPC   a fronted phrase: a topic, the sentence before 'he said', the question phrase of a question
    EXT   extent: rose 5 %
    DIR   direction: from Paris
    LOC   place, also the place after 'put' and similar verbs
    MNR   manner
    PRP   purpose or reason
    TMP   time
    ADV   another adverbial: an adverb, a negation, or a phrase tagged -ADV
    CLR   a phrase closely tied to its verb that has no other role
Inside nominals:
    DET   a determiner: the, all
    POSS  a possessor: its, the company 's
    NUM   a number of a noun, or a part of a quantity
    RELC  a clause or verb phrase after its noun: relative, participial, infinitival
    NMOD  any other modifier of a noun, nouns before nouns included
Elsewhere:
    AMOD  a modifier of an adjective, adverb, preposition or conjunction (very old); also 'of' in 'because of'
    PMOD  the phrase that a preposition governs
    OBJ   a noun phrase that is an object of its verb
    VC    the verb phrase under an auxiliary or modal: has been seen
    IM    the 'to' of an infinitive
    PRT   a verb particle: give up
    COMP  a clause that completes a verb or an adjective: said that, able to
    SUB   the clause under its conjunction or relative pronoun: because he left
    VMOD  any other dependent of a verb or clause
    DEP   any arc that no line of the table covers
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from lalkit.treebank.brackets import strip_function
from lalkit.treebank.head_rules import COORDINATORS, PUNCTUATION
from lalkit.treebank.tree import Node

# Function tag -> label, strongest first: grammatical roles, then kinds of adverbial, and CLR, which says least, last.
# Tags of form or style (NOM, TTL, HLN, CLF, IMP, ...) name no relation to the head, so they are not here.
ROLES = {
    "SBJ": "SBJ", "LGS": "LGS", "PRD": "PRD", "DTV": "DTV", "BNF": "DTV", "TPC": "TPC", "EXT": "EXT", "DIR": "DIR",
    "LOC": "LOC", "PUT": "LOC", "MNR": "MNR", "PRP": "PRP", "TMP": "TMP", "ADV": "ADV", "CLR": "CLR",
}  # fmt: skip


class Line(NamedTuple):
    """One line of the table. Categories stand between spaces; side is that of the child as seen from the head; "" fits any."""

    label: str
    parent: str = ""
    head: str = ""
    child: str = ""
    side: str = ""


NOMINAL = "NP NX NML NAC WHNP CIT"
VERBS = "VB VBD VBG VBN VBP VBZ MD TO"
CLAUSE = "S SINV SQ SBARQ VP RRC TOP HEADING TITLE CAPTION"
SENTENCES = "S SBAR SINV SQ SBARQ"
ADVERBS = "RB RBR RBS ADVP WHADVP"
GOVERNED = "NP NX NML WHNP QP ADJP ADVP UCP FRAG VP CD NN NNS NNP " + SENTENCES
QUANTITIES = "CD QP $ #"

TABLE = (
    Line("PRN", child="PRN"),
    Line("PRT", child="PRT RP"),
    Line("TPC", parent="SBARQ", child="WHNP WHADVP WHPP WHADJP", side="left"),
    Line("IM", parent="VP", child="TO", side="left"),
    Line("VC", parent="VP SQ SINV S", head=VERBS, child="VP", side="right"),
    Line("OBJ", parent="VP", child="NP NX NML NN NNS NNP NNPS PRP QP", side="right"),
    Line("COMP", parent="VP", child=SENTENCES, side="right"),
    Line("COMP", parent="SINV", child=SENTENCES),
    Line("ADV", parent=CLAUSE, child=ADVERBS),
    Line("VMOD", parent=CLAUSE),
    Line("SUB", parent="SBAR", child="S SQ SINV FRAG VP", side="right"),
    Line("AMOD", parent="SBAR", child=ADVERBS + " IN NP PP", side="left"),
    Line("PMOD", parent="PP WHPP", child=GOVERNED, side="right"),
    Line("PMOD", parent="PP", head="IN TO VBG VBN RB JJ CC", child="PP", side="right"),
    Line("AMOD", parent="PP WHPP"),
    Line("DET", parent=NOMINAL, child="DT PDT WDT"),
    Line("POSS", parent=NOMINAL, child="PRP$ WP$"),
    Line("NUM", parent=NOMINAL, child=QUANTITIES),
    Line("RELC", parent=NOMINAL, child=SENTENCES + " VP RRC", side="right"),
    Line("NMOD", parent=NOMINAL),
    Line("NUM", parent="QP"),
    Line("COMP", parent="ADJP ADVP", child=SENTENCES, side="right"),
    Line("AMOD", parent="ADJP ADVP WHADJP WHADVP"),
    Line("CC", parent="CONJP"),
)

# Categories that can be conjuncts of each other, although their labels differ.
ALIKE = ("NN NNS NNP NNPS PRP", "NP NX NML", "VB VBD VBG VBN VBP VBZ MD", "JJ JJR JJS", "RB RBR RBS", "S SINV SQ SBARQ")
EQUALS = {name: group for group in ALIKE for name in group.split()}
COMMAS = {",", ":"}
BETWEEN = {"``", "''", "-LRB-", "-RRB-", "RB", "ADVP", "PRN", "INTJ"}  # may stand next to the comma or coordinator


def arc_label(parent: Node, head: int, child: int) -> str:
    """Return the label of the arc from the head word of parent.children[head] to that of parent.children[child]."""
    categories = [strip_function(node.label) for node in parent.children]
    node, category, above = parent.children[child], categories[child], strip_function(parent.label)
    if category in PUNCTUATION:
        return "P"
    if category in COORDINATORS:
        return "CC"
    same_role = role(node) == role(parent.children[head])
    label = _coordination(above, categories, head, child, same_role) or role(node)
    if label and (above, label) != ("PP", "LGS"):  # in (PP by (NP-LGS ...)) the whole PP has the role, see `role`
        return label
    if above in NOMINAL.split() and category in ("NP", "NML") and node.leaves()[-1].label == "POS":
        return "POSS"
    return look_up(TABLE, above, categories[head], category, "left" if child < head else "right")


def role(node: Node) -> str:
    """Return the role that the function tags of a constituent name, or "".

    Two roles stand one level too deep in the treebank. A PP around an -LGS phrase is itself the by-phrase. A clause of which
    only a predicate is left (make it [S [ADJP-PRD easy]], with a trace as subject) is that predicate.
    """
    if node.is_leaf:
        return ""
    tags = _tags(node)
    for tag, label in ROLES.items():
        if tag in tags:
            return label
    category = strip_function(node.label)
    if category == "PP" and any("LGS" in _tags(child) for child in node.children):
        return "LGS"
    if category == "S" and len(node.children) == 1 and "PRD" in _tags(node.children[0]):
        return "PRD"
    return ""


def _tags(node: Node) -> list[str]:
    return re.split(r"[-=|]", node.label)[1:]


def _coordination(parent: str, categories: Sequence[str], head: int, child: int, same_role: bool) -> str:
    """Return COORD or APPO if the child can be a conjunct of the head child, and a coordinator or comma stands next to it;
    else "".

    Next to it: on the side of the head; adverbs and quotes may stand between. A colon counts as a comma. same_role: whether
    child and head child have the same function tag.
    """
    alike = {EQUALS.get(categories[i], categories[i]) for i in (head, child)}
    if parent != "UCP" and len(alike) > 1:
        return ""
    step = 1 if child < head else -1
    neighbours, i = set(), child + step
    while i != head and categories[i] in BETWEEN | COORDINATORS | COMMAS:
        neighbours.add(categories[i])
        i += step
    if neighbours & COORDINATORS:
        return "COORD"
    if not neighbours & COMMAS:
        return ""
    if any(category in COORDINATORS for category in categories[1:]):  # a, b and c: only a comma stands next to b
        return "COORD"
    if not same_role:  # (S (S-ADV ...) , (S ...)) is subordination
        return ""
    return "APPO" if parent in NOMINAL.split() else "COORD"


@cache
def look_up(table: tuple[Line, ...], parent: str, head: str, child: str, side: str) -> str:
    """Return the label of the first line that fits, or DEP if none fits."""
    for label, *patterns in table:
        if all(not pattern or name in pattern.split() for pattern, name in zip(patterns, (parent, head, child, side))):
            return label
    return "DEP"
