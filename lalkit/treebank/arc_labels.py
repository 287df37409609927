"""Name the arcs of dependencies that were derived from an English constituency tree.

The labels are our own, because the treebanks whose heads we reproduce have none. A paper that uses their scores should say so.

An arc arises where a constituent passes its head word on to its parent: the head words of the other children depend on it.
The label of such an arc is the first of these that applies: punctuation; coordination; the role that the function tags of the
dependent name (`ROLES`); the first matching line of `TABLE`, which looks at the parent, the head child, the other child and
its side. Both tables are in english_rules.txt.

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
from lalkit.treebank.head_rules import COORDINATORS, PUNCTUATION, read_tables
from lalkit.treebank.tree import Node


class Line(NamedTuple):
    """One line of the table. Categories stand between spaces; side is that of the child as seen from the head; "" fits any."""

    label: str
    parent: str
    head: str
    child: str
    side: str


TABLES = read_tables("english")
ROLES = dict(TABLES["roles"])
TABLE = tuple(Line(*row) for row in TABLES["arcs"])
EQUALS = {name: group for (group,) in TABLES["alike"] for name in group.split()}
NOMINAL = dict(TABLES["groups"])["nominal"].split()
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
    if above in NOMINAL and category in ("NP", "NML") and node.leaves()[-1].label == "POS":
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
    return "APPO" if parent in NOMINAL else "COORD"


@cache
def look_up(table: tuple[Line, ...], parent: str, head: str, child: str, side: str) -> str:
    """Return the label of the first line that fits, or DEP if none fits."""
    for label, *patterns in table:
        if all(not pattern or name in pattern.split() for pattern, name in zip(patterns, (parent, head, child, side))):
            return label
    return "DEP"
