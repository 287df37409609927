"""The importers of licensed treebanks, on files of the same form with our own sentences, and on broken files."""

import pytest

from lalkit.errors import LalkitError
from lalkit.treebank.check import check
from lalkit.treebank.corpora import load
from lalkit.treebank.licensed import import_treebank

MRG = """
( (S
    (NP-SBJ-1 (DT The) (NN river) )
    (VP (VBD was)
      (VP (VBN seen)
        (NP (-NONE- *-1) )))
    (. .) ))
( (S (NP-SBJ (PRP It)) (VP (VBD rained) (PRT|ADVP (RP on)) (-LRB- -LRB-) (ADVP (RB there)) (-RRB- -RRB-)) (. .)))
"""
CTB = """<DOC>
<DOCID>{number}</DOCID>
<S ID=1>
((IP-HLN (NP-PN-SBJ (NR 小林))
         (VP (VV 擦)
             (NP-OBJ (NN 窗户)))) )
</S>
<S ID=2>
( (IP (NP-SBJ (-NONE- *pro*))
 (NP-SBJ (CP (WHNP-1 (-NONE- *OP*)) (CP (IP (NP-SBJ (PN 你)) (VP (VV 写) (NP-OBJ (-NONE- *T*-1)))) (DEC 的)))
 (NP (NN 信))) (VP (VV 到) (AS 了)) (PU 。)) )
</S>
</DOC>
"""


def ptb(folder):
    """Write sections 00 to 24, one file each, as parsed/mrg/wsj has them."""
    for section in range(25):
        file = folder / "parsed" / "mrg" / "wsj" / f"{section:02d}" / f"wsj_{section:02d}01.mrg"
        file.parent.mkdir(parents=True)
        file.write_text(MRG)
        file.with_suffix(".pos").write_text("no tree")
    return folder


def ctb(folder, encoding="utf-8"):
    """Write eight articles as data/bracketed has them, and the raw text beside them."""
    for number in (1, 270, 271, 300, 301, 325, 440, 1151):
        name = f"chtb_{number:03d}.fid" if number < 1000 else f"chtb_{number}.mz"
        for kind, text in (("bracketed", CTB.format(number=number)), ("raw", "小林擦窗户")):
            file = folder / "data" / kind / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode(encoding))
    return folder


def sizes(counts):
    return [count["sentences"] for count in counts.values()]


def test_ptb_by_sections(tmp_path):
    assert sizes(import_treebank("ptb", ptb(tmp_path / "ptb"), tmp_path / "out")) == [40, 2, 2]
    corpora = {split: load(str(tmp_path / "out"), split) for split in ("train", "dev", "test")}
    assert not any(map(check, corpora.values()))
    first, second = corpora["dev"].sentences
    assert first.words == ("The", "river", "was", "seen", ".") and first.id == "wsj_2201.1"
    assert first.heads == (2, 3, 0, 3, 3), "by our rules"
    assert second.words[3] == "-LRB-" and [c.label for c in second.constituents] == ["S", "NP", "VP", "PRT", "ADVP"]


@pytest.mark.parametrize("encoding", ["gb18030", "utf-8-sig"])
def test_ctb_in_its_own_files(tmp_path, encoding):
    assert sizes(import_treebank("ctb", ctb(tmp_path / "ctb", encoding), tmp_path / "out")) == [8, 4, 4]
    sentences = load(str(tmp_path / "out"), "test").sentences
    assert [s.id for s in sentences] == ["chtb_271.1", "chtb_271.2", "chtb_300.1", "chtb_300.2"]
    assert sentences[1].words == ("你", "写", "的", "信", "到", "了", "。")
    assert sentences[1].heads == (2, 3, 4, 5, 0, 5, 5) and sentences[1].arc_labels[2] == "RELC"
    assert [c.label for c in sentences[1].constituents[1:3]] == ["NP", "CP::CP"]


SECTION_3, ARTICLE = "wsj_0301.mrg", "bracketed/chtb_301.fid"
BROKEN = [  # treebank, file, a text in it (None: all of it), what takes its place, place of the error, whether --lenient helps
    ("ptb", SECTION_3, "(. .) ))", "(. .) )", "wsj_0301.mrg, line 2, tree 1", True),
    ("ptb", SECTION_3, "(NN river)", "river", "wsj_0301.mrg, line 2, tree 1", True),
    ("ptb", SECTION_3, "( (S (NP-SBJ (PRP", "( (S (-NONE- *)) )\n( (S (NP-SBJ (PRP", "line 8: the tree", True),
    ("ptb", SECTION_3, "(NP-SBJ-1", "(NP::X", "wsj_0301.mrg, line 2: .*'::'", True),
    ("ptb", SECTION_3, None, "", "wsj_0301.mrg", True),
    ("ptb", SECTION_3, "river", "ri\0ver", "wsj_0301.mrg, line 3", False),
    ("ptb", SECTION_3, None, None, "section 03", False),
    ("ctb", ARTICLE, "(NR 小林)", "(NR 小 林)", "chtb_301.fid, line 4", True),
    ("ctb", ARTICLE, None, b"( (IP (NN \x81\x20\xff)) )", "chtb_301.fid.*gb18030", False),
    ("ctb", ARTICLE, None, "小林擦窗户", "chtb_301.fid.*outside", True),
]


@pytest.mark.parametrize(("name", "file", "old", "new", "place", "lenient"), BROKEN)
def test_a_broken_copy_gives_one_error_and_no_files(tmp_path, name, file, old, new, place, lenient):
    (path,) = {"ptb": ptb, "ctb": ctb}[name](tmp_path / "in").rglob(file)
    raw, changed = path.read_bytes(), new if isinstance(new, bytes) else (new or "").encode()
    path.write_bytes(raw.replace(old.encode(), changed, 1) if old else changed)
    if new is None:
        path.unlink()
    with pytest.raises(LalkitError, match=place) as caught:
        import_treebank(name, tmp_path / "in", tmp_path / "out")
    assert str(caught.value).count("\n") == 1 and not (tmp_path / "out").exists()
    if lenient:
        counts = import_treebank(name, tmp_path / "in", tmp_path / "out", lenient=True)
        assert sum(count["left out"] for count in counts.values()) == 1
