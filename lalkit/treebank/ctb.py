"""Head rules and arc labels for Chinese in the style of the Chinese Treebank (Xue et al. 2005; Xia 2000 for its tags).

The treebank's guidelines do not name the head child of every phrase; there we chose it. The verb is the head of its VP, and
so are 把 and 被. Phrases of nouns, measure words, localisers and 的 have their head on the right, a PP has it on the left. The
head of a clause is its VP, or 的 (DEC) if it has one. Punctuation, sentence particles and aspect marks are heads only if there
is no other child.

The rules are in chinese_rules.txt. The arc labels are our own, too: they come from function tags if the tree has them, and
else from categories. A paper that uses their scores should say so. They are:

    ROOT   the head of the sentence
    P      punctuation
    CC     a coordinator, or 等 after a list
    COORD  a conjunct that is not the head of its coordination, or one of several equal clauses
    APPO   an apposition
    PRN    a parenthesis
    SBJ    the subject
    LGS    the person who acts in a passive
    OBJ    an object, a clause too
    IO     the indirect object
    PRD    a predicate after 是
    TPC    a topic
    FOC    a focus: 连 ... 都
    VOC    a person who is addressed
    EXT    extent: how far, how long, how often
    DIR    direction
    LOC    place
    MNR    manner, also everything before 地
    PRP    purpose or reason
    TMP    time
    CND    a condition
    BNF    the person for whom something is done
    ADV    another adverbial
    DET    a determiner
    NUM    a number, or a number with its measure word
    RELC   a clause before its noun
    AMOD   an adjective before its noun, an adverb before an adjective
    NMOD   any other modifier of a noun, with or without 的
    PMOD   the phrase that a preposition, a localiser, 的 or 地 governs
    COMP   the clause or verb phrase under 把, 被, 得 or an auxiliary verb
    ASP    an aspect mark: 了, 着, 过; and 得
    RES    the second part of a compound verb: 擦干净, 去不去
    SERIAL a verb phrase in a series that is not its head
    PTC    a particle at the end of a sentence, and 所
    VMOD   any other dependent of a verb or clause
    DEP    any arc that no line of the table covers
"""

from __future__ import annotations

from lalkit.treebank.arc_labels import Line, look_up
from lalkit.treebank.brackets import strip_function
from lalkit.treebank.head_rules import HeadRule, HeadRules, by_parent, read_tables
from lalkit.treebank.tree import Node

TABLES = read_tables("chinese")
TAGS, TYPICAL_TAGS = (frozenset(dict(TABLES["groups"])[name].split()) for name in ("tags", "typical"))
CHINESE = HeadRules(
    by_parent(TABLES["heads"]),
    other=HeadRule("last"),
    never=frozenset({"PU"}),
    seldom=frozenset("CC SP AS ETC MSP DER LST PRN FLR".split()),
)
TABLE = tuple(Line(*row) for row in TABLES["arcs"])
ALIKE = {tag: group for (group,) in TABLES["alike"] for tag in group.split()}


def is_ctb(tags: set[str]) -> bool:
    """Return whether all tags are tags of the Chinese Treebank, and at least one is found in no other tag set."""
    return tags <= TAGS and bool(tags & TYPICAL_TAGS)


def arc_label(parent: Node, head: int, child: int) -> str:
    """Return the label of the arc from the head word of parent.children[head] to that of parent.children[child]."""
    categories = [strip_function(node.label) for node in parent.children]
    category, above = categories[child], strip_function(parent.label)
    if category in ("PU", "CC"):
        return {"PU": "P", "CC": "CC"}[category]
    if _is_conjunct(categories, head, child):
        return "COORD"
    tags = parent.children[child].label.split("-")[1:]
    role = next((label for tag, label in TABLES["roles"] if tag in tags), "")
    if role and above not in ("PP", "LCP"):
        return role
    return look_up(TABLE, above, categories[head], category, "left" if child < head else "right")


def _is_conjunct(categories: list[str], head: int, child: int) -> bool:
    """Return whether the child is a conjunct of the head child.

    Both must be of the same kind (`ALIKE`). Between them there must be a coordinator or punctuation, and besides only more
    conjuncts and adverbs.
    """
    between = categories[min(head, child) + 1 : max(head, child)]
    alike = {categories[head], *ALIKE.get(categories[head], "").split()}
    return (
        categories[child] in alike
        and not {"CC", "PU"}.isdisjoint(between)
        and set(between) <= alike | {"CC", "PU", "ADVP", "AD"}
    )
