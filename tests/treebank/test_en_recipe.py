"""The recipe of a shipped parser: its stages in order, and constituents that agree with the arcs of a treebank."""

import pytest

from lalkit.api import Parser
from lalkit.errors import CorpusError
from lalkit.treebank.check import lessons
from lalkit.treebank.corpora import load
from lalkit.treebank.joint import to_joint
from tests.mixed import mixed  # noqa: F401
from tools import en_recipe


def test_constituents_agree_with_the_arcs(mixed, tiny_parser, tmp_path):  # noqa: F811
    en_recipe.constituents("ewt", str(tiny_parser), tmp_path / "silver")
    gold, silver = {s.id: s for s in load("ewt", "train")}, load(str(tmp_path / "silver"), "train").sentences
    assert len(silver) == 7 and all(s.words == gold[s.id].words and s.heads == gold[s.id].heads for s in silver)
    assert all(map(to_joint, silver)) and load(str(tmp_path / "silver"), "dev")[0].constituents is None
    assert len(lessons(f"{tmp_path}/silver+sample:constituents", "joint", 150).sentences) == 7 + 176
    parser = Parser.load(tiny_parser)
    for sentence in (s for s in silver if len(s) <= 5):
        free = parser.parse(list(sentence.words), require=[f"{h}->{d}" for d, h in enumerate(sentence.heads, 1)])
        assert free.sentence.constituents == sentence.constituents
    (tmp_path / "silver" / "dev.conllu").unlink()
    with pytest.raises(CorpusError, match="dev"):
        en_recipe.constituents(str(tmp_path / "silver"), str(tiny_parser), tmp_path / "half")
    assert not (tmp_path / "half").exists()
