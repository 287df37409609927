"""The importers of licensed treebanks, on files of the same form with our own sentences, and on broken files."""

import pytest

from lalkit.errors import LalkitError
from lalkit.treebank.check import check
from lalkit.treebank.conllu import format_conllu, scan_conll
from lalkit.treebank.corpora import load
from lalkit.treebank.licensed import import_treebank
from tests.treebank import licensed_files as forms


def sizes(counts):
    return [count["sentences"] for count in counts.values()]


def test_ptb_by_sections_and_one_tree_a_line(tmp_path):
    assert sizes(import_treebank("ptb", forms.ptb(tmp_path / "ptb"), tmp_path / "out")) == [40, 2, 2]
    corpora = {split: load(str(tmp_path / "out"), split) for split in ("train", "dev", "test")}
    assert not any(map(check, corpora.values()))
    first, second = corpora["dev"].sentences
    assert first.words == ("The", "river", "was", "seen", ".") and first.id == "wsj_2201.1"
    assert first.heads == (2, 3, 0, 3, 3), "by our rules"
    assert second.words[3] == "-LRB-" and [c.label for c in second.constituents] == ["S", "NP", "VP", "PRT", "ADVP"]
    assert sizes(import_treebank("ptb", forms.ptb_lines(tmp_path / "lines"), tmp_path / "other")) == [20, 2, 3]
    assert load(str(tmp_path / "other"), "test").sentences[2].id == "23.auto.3"


@pytest.mark.parametrize("encoding", ["gb18030", "utf-8-sig"])
def test_ctb_in_its_own_files(tmp_path, encoding):
    assert sizes(import_treebank("ctb", forms.ctb(tmp_path / "ctb", encoding), tmp_path / "out")) == [8, 4, 4]
    sentences = load(str(tmp_path / "out"), "test").sentences
    assert [s.id for s in sentences] == ["chtb_271.1", "chtb_271.2", "chtb_300.1", "chtb_300.2"]
    assert sentences[1].words == ("你", "写", "的", "信", "到", "了", "。")
    assert sentences[1].heads == (2, 3, 4, 5, 0, 5, 5) and sentences[1].arc_labels[2] == "RELC"
    assert [c.label for c in sentences[1].constituents[1:3]] == ["NP", "CP::CP"]


def converted(folder):
    """The dependencies of an imported folder as three files, with other labels: as another converter would write them."""
    for split in ("train", "dev", "test"):
        items = scan_conll((folder / f"{split}.conllu").read_text())
        rows = [
            [f"{i}\t{w}\t_\tX\tX\t_\t{h}\tdep\t_\t_" for i, (w, h) in enumerate(zip(s.words, s.heads), 1)]
            for s in items
        ]
        (folder / f"{split}.conll").write_text("".join("\n".join(lines) + "\n\n" for lines in rows))
    return [folder / f"{split}.conll" for split in ("train", "dev", "test")]


def test_dependencies_of_another_converter(tmp_path):
    import_treebank("ptb", forms.ptb(tmp_path / "in"), tmp_path / "out")
    files = converted(tmp_path / "out")
    import_treebank("ptb", tmp_path / "in", tmp_path / "again", dependencies=files)
    ours, theirs = load(str(tmp_path / "out"), "dev"), load(str(tmp_path / "again"), "dev")
    assert [s.heads for s in ours] == [s.heads for s in theirs] and set(theirs[0].arc_labels) == {"dep"}
    assert format_conllu(theirs).count("\tNN\t") == format_conllu(ours).count("\tNN\t") == 1
    for wrong in (files[:2], [*files, tmp_path / "test-2.conll"]):
        with pytest.raises(LalkitError, match="test"):
            import_treebank("ptb", tmp_path / "in", tmp_path / "none", dependencies=wrong)
    files[1].write_text(files[1].read_text().replace("river", "stream"))
    with pytest.raises(LalkitError, match="wsj_2201.mrg, line 2: sentence wsj_2201.1: .*'river' against 'stream"):
        import_treebank("ptb", tmp_path / "in", tmp_path / "none", dependencies=files)
    assert not (tmp_path / "none").exists()


def write(name, old, new):
    """Return an edit of the file of that name; old None: replace all of it."""

    def edit(folder):
        (file,) = folder.rglob(name)
        raw = file.read_bytes()
        assert old is None or old.encode() in raw
        file.write_bytes(new if old is None else raw.replace(old.encode(), new.encode(), 1))

    return edit


BROKEN = [  # treebank, edit, place of the error, whether --lenient leaves one sentence out
    ("ptb", write("wsj_0301.mrg", "(. .) ))", "(. .) )"), "wsj_0301.mrg, line 2, tree 1", True),
    ("ptb", write("wsj_0301.mrg", "(NN river)", "river"), "wsj_0301.mrg, line 2, tree 1", True),
    ("ptb", write("wsj_0301.mrg", "( (S (NP-SBJ (PRP", "( (S (-NONE- *)) )\n( (S (NP-SBJ (PRP"), "line 8: the tree", True),
    ("ptb", write("wsj_0301.mrg", "(NP-SBJ-1", "(NP::X"), "wsj_0301.mrg, line 2: .*'::'", True),
    ("ptb", write("wsj_0301.mrg", None, b""), "wsj_0301.mrg", True),
    ("ptb", write("wsj_0301.mrg", "river", "ri\0ver"), "wsj_0301.mrg, line 3", False),
    ("ptb", lambda folder: next(folder.rglob("wsj_1701.mrg")).unlink(), "section 17", False),
    ("ctb", write("bracketed/chtb_301.fid", "(NR 小林)", "(NR 小 林)"), "chtb_301.fid, line 4", True),
    ("ctb", write("bracketed/chtb_301.fid", None, b"( (IP (NN \x81\x20\xff)) )"), "chtb_301.fid.*gb18030", False),
    ("ctb", write("bracketed/chtb_301.fid", None, "小林擦窗户".encode()), "chtb_301.fid.*outside", True),
    ("ctb", lambda folder: [f.unlink() for f in folder.rglob("bracketed/chtb_3[02]*")], "no file of dev", False),
]  # fmt: skip


@pytest.mark.parametrize(("name", "edit", "place", "lenient"), BROKEN)
def test_a_broken_copy_gives_one_error_and_no_files(tmp_path, caplog, name, edit, place, lenient):
    edit({"ptb": forms.ptb, "ctb": lambda folder: forms.ctb(folder, "utf-8")}[name](tmp_path / "in"))
    with pytest.raises(LalkitError, match=place) as caught:
        import_treebank(name, tmp_path / "in", tmp_path / "out")
    assert str(caught.value).count("\n") == 1 and not (tmp_path / "out").exists()
    if lenient:
        counts = import_treebank(name, tmp_path / "in", tmp_path / "out", lenient=True)
        assert sum(count["left out"] for count in counts.values()) == 1
