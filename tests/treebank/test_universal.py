"""Universal Dependencies: parts of speech from Penn tags and arc labels, and files that obey UD's rules for format and tree."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from lalkit.chart.joint import JointTree
from lalkit.network.model import arc_labels
from lalkit.network.vocabulary import Vocab
from lalkit.treebank.conllu import RELATIONS, UPOS, format_conllu, is_universal, scan_conll, universal_tags
from lalkit.treebank.corpora import load
from lalkit.treebank.tree import Sentence

# The subtypes that UD has documented for English.
SUBTYPES = set(
    "acl:relcl advcl:relcl aux:pass cc:preconj compound:prt csubj:outer csubj:pass det:predet flat:foreign nmod:desc nmod:poss "
    "nmod:unmarked nsubj:outer nsubj:pass obl:agent obl:unmarked".split()
)
WORDS = tuple("She did n't say that nobody from New York is here ( that is bad ) .".split())
TAGS = "PRP VBD RB VB IN NN IN NNP NNP VBZ RB -LRB- DT VBZ JJ -RRB- .".split()
HEADS = (4, 4, 4, 0, 11, 11, 9, 9, 6, 11, 4, 15, 15, 15, 4, 15, 4)
LABELS = "nsubj aux advmod root mark nsubj case amod nmod cop ccomp punct nsubj cop parataxis punct punct".split()
EXPECTED = "PRON AUX PART VERB SCONJ PRON ADP ADJ PROPN AUX ADV PUNCT PRON AUX ADJ PUNCT PUNCT".split()


def violations(text: str) -> list[str]:
    """What UD's validation of level 1 (lines, columns, ids) and level 2 (UPOS, relations, tree, metadata) says of a file."""
    found, ids = [], set()
    if not text.endswith("\n\n") or "\n\n\n" in text:
        found.append("an empty line ends each sentence")
    for block in text.rstrip("\n").split("\n\n"):
        lines = block.split("\n")
        comments = dict(re.findall(r"^# (\w+) = (.*)$", block, re.M))
        rows = [line.split("\t") for line in lines if not line.startswith("#")]
        name = comments.get("sent_id", "")
        if not re.fullmatch(r"[^\s/]+", name) or name in ids:
            found.append(f"sent_id {name!r}")
        ids.add(name)
        if any(len(row) != 10 or any(cell == "" or cell != cell.strip() for cell in row) for row in rows):
            found.append("ten columns, none of them empty")
            continue
        if [row[0] for row in rows] != [str(i) for i in range(1, len(rows) + 1)]:
            found.append("ids")
        spaces = "".join(row[1] + ("" if "SpaceAfter=No" in row[9].split("|") else " ") for row in rows)
        if comments.get("text", "") != spaces.rstrip():
            found.append("text")
        heads = [int(row[6]) for row in rows]
        found += [f"UPOS {row[3]}" for row in rows if row[3] not in UPOS]
        found += [f"label {row[7]}" for row in rows if row[7] not in RELATIONS | SUBTYPES]
        found += [f"root {row[0]}" for row in rows if (row[6] == "0") != (row[7] == "root")]
        found += [] if heads.count(0) == 1 else ["one root"]
        for start in range(1, len(rows) + 1):
            word, steps = start, 0
            while word and steps <= len(rows):
                word, steps = heads[word - 1], steps + 1
            found += [f"a cycle with {start}"] if word else []
        found += [f"MISC {row[9]}" for row in rows if not re.fullmatch(r"_|\w+=[^|]+(\|\w+=[^|]+)*", row[9])]
    return found


def test_parts_of_speech_follow_from_tags_labels_and_words():
    assert len(UPOS) == 17 and len(RELATIONS) == 37
    assert list(universal_tags(WORDS, TAGS, LABELS)) == EXPECTED
    cases = {
        ("to", "TO", "mark"): "PART", ("to", "IN", "case"): "ADP", ("which", "WDT", "det"): "DET",
        ("which", "WDT", "obj"): "PRON",
        ("is", "VBZ", "root"): "VERB", ("-", ":", "cc"): "SYM", ("/", "SYM", "punct"): "PUNCT", ("with", "IN", "goeswith"): "X",
        ("$", "$", "obj"): "SYM", ("NOUN", "NOUN", "obj"): "NOUN", ("all", "DT", "nsubj"): "DET", ("ça", "new", "obj"): "X",
    }  # fmt: skip
    for (word, tag, label), upos in cases.items():
        assert universal_tags([word], [tag], [label]) == (upos,), word
    assert universal_tags(["."], None, ["punct"]) == ("PUNCT",)


def test_which_labels_are_universal():
    assert is_universal("nsubj:pass root punct".split())
    assert not any(is_universal(labels.split()) for labels in ("nsubj punct", "SBJ ROOT P", "prep root", ""))


SENTENCE = Sentence(WORDS, TAGS, None, HEADS, LABELS, "a b/c\n1", upos=EXPECTED)


def test_a_file_obeys_the_rules_and_is_read_again():
    notes = [(["tree_probability = 0.5"], ["ArcP=0.5|TagP=1.0"] * len(WORDS))] * 2
    text = format_conllu([SENTENCE, replace(SENTENCE, id="")], notes)
    assert violations(text) == [] and "# sent_id = a_b_c_1\n# text = She did n't" in text and "\t_\tArcP=0.5|" in text
    for there, instead in (("\t4\tnsubj\t", "\t4\tsubj\t"), ("\t0\troot", "\t3\troot"), ("\n6\t", "\n7\t")):
        assert there in text and violations(text.replace(there, instead, 1))
    (read, again) = scan_conll(text)
    assert (read.upos, read.tags, read.heads, read.words) == (SENTENCE.upos, SENTENCE.tags, HEADS, again.words)
    plain = format_conllu([replace(SENTENCE, upos=None, arc_labels=["P"] * len(WORDS))])
    assert plain.startswith("# sent_id = a b/c 1\n1\tShe\t_\t_\tPRP\t_\t4\tP\t_\t_\n") and "# text" not in plain


class Scorer:
    """It likes `root` everywhere but at the root."""

    def arc_labels(self, output, heads):
        return torch.stack([(heads > 0).float(), torch.zeros(heads.shape), (heads == 0).float()], -1)


def test_exactly_the_root_is_called_root():
    scored = SimpleNamespace(output=SimpleNamespace(arc_scores=torch.zeros(1, 3, 4)))
    tree = JointTree(0.0, [], torch.tensor([2, 0, 2]).numpy())
    for labels, expected in ((("root", "obj", "det"), [[1, 0, 1]]), (("ROOT", "OBJ", "DET"), [[0, 2, 0]])):
        model = SimpleNamespace(network=Scorer(), vocab=Vocab((), (), labels))
        assert arc_labels(model, scored, [tree]).argmax(-1).tolist() == expected


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("corpus", ["ewt", "gum"])
def test_gold_is_written_and_read_again(corpus):
    """The rules also give these sentences the universal parts of speech that people gave them."""
    gold = [replace(s, rows=()) for s in load(corpus, "dev").sentences[:200]]  # without ranges
    text = format_conllu(gold)
    assert violations(text) == []
    unescaped = [tuple(re.sub("-LRB-", "(", re.sub("-RRB-", ")", word)) for word in s.words) for s in gold]
    columns = [(words, s.tags, s.heads, s.arc_labels, s.upos) for words, s in zip(unescaped, gold)]
    assert columns == [(s.words, s.tags, s.heads, s.labels, s.upos) for s in scan_conll(text)]
    right = [a == b for s in gold for a, b in zip(s.upos, universal_tags(s.words, s.tags, s.arc_labels))]
    assert 100 * sum(right) / len(right) >= 99.5
