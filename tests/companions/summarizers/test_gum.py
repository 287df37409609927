"""GUM's documents: tags and named entities as they are annotated; on files of our own, and on the corpus where it is."""

import os
from pathlib import Path

import pytest

from lalkit.companions.summarizers.documents import gum, read
from lalkit.errors import CorpusError, TreebankError

LINES = [
    ("Mary", "PROPN", "Entity=(1-person-new-nnnnn-cf1-1-coref-Mary_Ray"),
    ("Ray", "PROPN", "Entity=1)"),
    ("saw", "VERB", "_"),
    ("the", "DET", "Discourse=x|Entity=(2-place-new-nnnnn-cf2-2-sgl"),
    ("house", "NOUN", "_"),
    ("of", "ADP", "_"),
    ("Kent", "PROPN", "Entity=(3-place-new-nnnnn-cf3-1-sgl-Kent)2)|SpaceAfter=No"),
    (".", "PUNCT", "_"),
]


def write(path, lines=LINES, head=("# meta::summary1 = (human) Mary saw it.", "# meta::summary2 = (x) No.")):
    rows = [f"{i}\t{w}\t{w}\t{t}\tX\t_\t0\troot\t_\t{m}" for i, (w, t, m) in enumerate(lines, 1)]
    path.write_text("\n".join([*head, *rows, ""]), encoding="utf-8")
    return path


def test_names_are_the_mentions_that_are_linked(tmp_path):
    document = read(write(tmp_path / "GUM_a.conllu"))
    assert document.words == tuple(word for word, *_ in LINES)
    assert document.tags == tuple(tag for _, tag, _ in LINES)
    assert document.entities == (True, True, False, False, False, False, True, False)
    assert document.summary == ("Mary", "saw", "it", ".")
    assert document.id == "GUM_a"


def test_damaged_files_are_named(tmp_path):
    with pytest.raises(CorpusError, match="GUM is not here\n.*Download"):
        gum(tmp_path)
    with pytest.raises(CorpusError, match="b.conllu, line 3: mention '9' ends before it begins"):
        read(write(tmp_path / "b.conllu", [("a", "DET", "Entity=9)")]))
    (tmp_path / "c.conllu").write_text("1\ta\n")
    with pytest.raises(CorpusError, match="c.conllu, line 1: 2 columns instead of 10"):
        read(tmp_path / "c.conllu")
    (tmp_path / "d.conllu").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TreebankError, match="d.conllu, line 1: byte 0xff is not utf-8"):
        read(tmp_path / "d.conllu")


@pytest.mark.data
def test_the_corpus():
    folder = Path(os.environ.get("LALKIT_DATA", "")) / "gum" / "dep"
    if not any(folder.glob("*.conllu")):
        pytest.skip("GUM is not here: set LALKIT_DATA")
    documents = gum()
    assert len(documents) == len({d.id for d in documents}) >= 100
    assert all(d.summary and d.tags for d in documents)
    assert sum(not any(d.entities) for d in documents) < 10, "documents without names are few"
    tokens = sum(len(d.words) for d in documents)
    share = sum(sum(d.entities) for d in documents) / tokens
    assert 0.02 < share < 0.2
    proper = [t == "PROPN" for d in documents for t, e in zip(d.tags, d.entities) if e]
    assert sum(proper) / len(proper) > 0.4, "names are mostly proper nouns"
