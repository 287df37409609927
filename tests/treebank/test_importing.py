"""The importers of licensed treebanks, on files of the same form with our own sentences, and on broken files."""

import csv
import json
import re
import shutil

import pytest

from lalkit.errors import CorpusError, LalkitError
from lalkit.treebank.check import check
from lalkit.treebank.corpora import load
from lalkit.treebank.licensed import TREEBANKS, import_treebank
from tests.command import lalkit
from tests.treebank import licensed_files as forms

PTB_SIZES, CTB_SIZES = {"train": 20, "dev": 1, "test": 1}, {"train": 4, "dev": 2, "test": 2}


def test_ptb_by_sections(tmp_path):
    facts = import_treebank("ptb", forms.ptb(tmp_path / "ptb"), tmp_path / "out")
    assert {split: found["sentences"] for split, found in facts.items()} == {"train": 40, "dev": 2, "test": 2}
    corpora = {split: load(str(tmp_path / "out"), split) for split in facts}
    assert all(check(corpus).clean for corpus in corpora.values())
    first, second = corpora["dev"].sentences
    assert first.words == ("The", "river", "was", "seen", ".") and first.id == "wsj_2201.1"
    assert first.heads == (2, 3, 0, 3, 3), "by our rules"
    assert second.words[3] == "-LRB-" and [c.label for c in second.constituents] == ["S", "NP", "VP", "PRT", "ADVP"]


def test_ptb_one_tree_a_line(tmp_path):
    facts = import_treebank("ptb", forms.ptb_lines(tmp_path / "lines"), tmp_path / "out")
    assert [found["sentences"] for found in facts.values()] == [20, 2, 3]
    assert load(str(tmp_path / "out"), "test").sentences[2].id == "23.auto.3"


@pytest.mark.parametrize("encoding", ["gb18030", "utf-8", "utf-8-sig"])
def test_ctb_in_its_own_files(tmp_path, encoding):
    facts = import_treebank("ctb", forms.ctb(tmp_path / "ctb", encoding), tmp_path / "out")
    assert {split: found["sentences"] for split, found in facts.items()} == {"train": 8, "dev": 4, "test": 4}
    sentences = load(str(tmp_path / "out"), "test").sentences
    assert [s.id for s in sentences] == ["chtb_271.1", "chtb_271.2", "chtb_300.1", "chtb_300.2"]
    assert sentences[1].words == ("你", "写", "的", "信", "到", "了", "。")
    assert sentences[1].heads == (2, 3, 4, 5, 0, 5, 5) and sentences[1].arc_labels[2] == "RELC"
    assert sentences[1].constituents[1].label == "NP" and sentences[1].constituents[2].label == "CP::CP"


def test_ctb_has_another_split_for_dependencies():
    """Zhang and Clark (2008); and Liu and Zhang (2017) for constituents. The edges of every part."""
    edges = {
        "ctb": {"train": (1, 270, 440, 1151), "test": (271, 300), "dev": (301, 325), None: (326, 439, 1152)},
        "ctb-dependencies": {
            "train": (1, 815, 1001, 1136),
            "test": (816, 885, 1137, 1147),
            "dev": (886, 931, 1148, 1151),
            None: (932, 1000, 1152),
        },  # fmt: skip
        "ptb": {"train": (201, 2199), "dev": (2201, 2299), "test": (2301, 2399), None: (199, 2400)},
    }
    for name, parts in edges.items():
        for part, numbers in parts.items():
            assert {TREEBANKS[name].part(number) for number in numbers} == {part}


@pytest.mark.parametrize(
    ("name", "make", "sizes", "text"),
    [("ptb", forms.ptb, PTB_SIZES, forms.PTB_CONLL), ("ctb", forms.ctb, CTB_SIZES, forms.CTB_CONLL)],
)
def test_dependencies_of_another_converter(tmp_path, name, make, sizes, text):
    files = forms.dependency_files(tmp_path, sizes, text)
    facts = import_treebank(name, make(tmp_path / "in"), tmp_path / "out", dependencies=files)
    first = load(str(tmp_path / "out"), "train").sentences[0]
    assert first.arc_labels == (
        ("det", "nsubjpass", "auxpass", "root", "punct") if name == "ptb" else ("SUB", "ROOT", "OBJ")
    )
    rows = list(csv.DictReader((tmp_path / "out" / "joint.csv").open()))
    assert len(rows) == sum(found["sentences"] for found in facts.values())
    assert all(row["constituents"] == row["joint"] for row in rows)


def test_constituents_without_a_joint_form_are_counted(tmp_path):
    """was: the head of the outer VP and root; seen depends on it, but The and river hang apart, so the NP has two heads."""
    text = forms.PTB_CONLL.replace("1\tThe\t_\tDT\tDT\t_\t2\tdet", "1\tThe\t_\tDT\tDT\t_\t4\tdet")
    files = forms.dependency_files(tmp_path, PTB_SIZES, text)
    facts = import_treebank("ptb", forms.ptb(tmp_path / "in"), tmp_path / "out", dependencies=files)
    assert (facts["dev"]["constituents"], facts["dev"]["joint"], facts["dev"]["sentences not joint"]) == (9, 8, 1)
    (row, other) = (r for r in csv.DictReader((tmp_path / "out" / "joint.csv").open()) if r["split"] == "dev")
    assert (row["id"], row["constituents"], row["joint"]) == ("wsj_2201.1", "4", "3") and other["joint"] == "5"


def test_automatic_tags(tmp_path):
    """Heads stay those of the gold tags; the fixture's few words are learned by heart, in every fold."""
    plain = import_treebank("ptb", forms.ptb(tmp_path / "in"), tmp_path / "gold")
    facts = import_treebank("ptb", tmp_path / "in", tmp_path / "auto", automatic_tags=True)
    assert facts["train"]["tags right"] == 100 and "tags right" not in plain["train"]
    assert json.loads((tmp_path / "auto" / "import.json").read_text())["automatic tags"] is True
    assert load(str(tmp_path / "auto"), "dev").sentences == load(str(tmp_path / "gold"), "dev").sentences


def change(pattern, old, new, encoding="utf-8"):
    """Edits the file of that name."""

    def edit(folder):
        (file,) = folder.rglob(pattern)
        text = file.read_bytes().decode(encoding)
        assert old in text
        file.write_bytes(text.replace(old, new, 1).encode(encoding))

    return edit


def remove(pattern):
    return lambda folder: [file.unlink() for file in folder.rglob(pattern)]


def overwrite(pattern, content):
    return lambda folder: next(iter(folder.rglob(pattern))).write_bytes(content)


def copy(pattern, to):
    def edit(folder):
        (file,) = folder.rglob(pattern)
        (folder / to).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, folder / to)

    return edit


SECOND = forms.PTB_CONLL.index("1\tIt")
IT = "( (S (NP-SBJ (PRP"
PTB_BROKEN = {
    "a bracket never closed": (change("wsj_0301.mrg", "(. .) ))", "(. .) )"), r"wsj_0301.mrg, line 2, tree 1: 1 bracket"),
    "a bracket too many": (change("wsj_0301.mrg", "(. .) ))", "(. .) )))"), r"wsj_0301.mrg, line 7, tree 2: a \) without"),
    "an empty constituent": (change("wsj_0301.mrg", "(DT The)", "()"), "wsj_0301.mrg, line 2, tree 1: the constituent"),
    "a word beside constituents": (change("wsj_0301.mrg", "(NN river)", "river"), "wsj_0301.mrg.* mixes words"),
    "text outside brackets": (change("wsj_0301.mrg", "( (S", "Wall Street\n( (S"), "wsj_0301.mrg.*outside brackets: 'Wall'"),
    "only traces": (change("wsj_0301.mrg", IT, f"( (S (-NONE- *)) )\n{IT}"), "line 8: the tree has no words"),
    "a NUL byte": (change("wsj_0301.mrg", "river", "ri\0ver"), "wsj_0301.mrg, line 3: a NUL byte"),
    "an empty file": (overwrite("wsj_0301.mrg", b""), "wsj_0301.mrg: has no trees"),
    "another encoding": (overwrite("wsj_0301.mrg", b"( (S (NN caf\xff)) )"), "wsj_0301.mrg.*neither UTF-8"),
    "a section is missing": (remove("wsj_1701.mrg"), r"no file of section\(s\) 17"),
    "a file twice": (copy("wsj_0301.mrg", "combined/wsj_0301.mrg"), "are both number 301"),
    "a unary mark in a label": (change("wsj_0301.mrg", "(NP-SBJ-1", "(NP::X"), "wsj_0301.mrg, line 2: .*'::'"),
}  # fmt: skip
CTB_BROKEN = {
    "a bracket never closed": (change("chtb_301.fid", "窗户)))) )", "窗户))) )"), "chtb_301.fid, line 9, tree 1: 1 bracket"),
    "a bracket too many": (change("chtb_301.fid", "窗户)))) )", "窗户)))) ))"), r"chtb_301.fid, line 11.*: a \) without"),
    "an empty constituent": (change("chtb_301.fid", "(NR 小林)", "()"), "chtb_301.fid, line 9, tree 1: the constituent"),
    "two words under a tag": (change("chtb_301.fid", "(NR 小林)", "(NR 小 林)"), "chtb_301.fid.*several words"),
    "a tag without a word": (change("chtb_301.fid", "(NR 小林)", "(NR )"), "chtb_301.fid, line 9.*empty"),
    "only traces": (change("chtb_301.fid", "(DEC 的)))", "(DEC 的))) ) )\n( (IP (-NONE- *)"), "line 17"),
    "neither encoding": (overwrite("chtb_301.fid", b"( (IP (NN \x81\x20\xff)) )"), "chtb_301.fid.*neither UTF-8.*nor GB18030"),
    "raw text": (overwrite("chtb_301.fid", "小林擦窗户".encode()), "chtb_301.fid.*outside brackets"),
    "no dev articles": (lambda f: (remove("chtb_301.*")(f), remove("chtb_325.*")(f)), "no file of the dev part"),
    "two encodings": (copy("bracketed/chtb_301.fid", "utf-8/bracketed/chtb_301.fid"), "are both number 301"),
    "an empty file": (overwrite("chtb_301.fid", b"<DOC>\n</DOC>\n"), "chtb_301.fid: has no trees"),
}  # fmt: skip
CONLL_BROKEN = {
    "another word": (change("dev.conll", "river", "stream"), r"wsj_2201.mrg, line 2: sentence wsj_2201.1: .* differ from word 2"),
    "a sentence is missing": (change("dev.conll", forms.PTB_CONLL[:SECOND], ""), "wsj_2201.mrg, line 2: .*differ"),
    "it ends early": (change("dev.conll", forms.PTB_CONLL[SECOND:], ""), "dev.conll: ends before the tree of .*line 8"),
    "it goes on": (change("dev.conll", forms.PTB_CONLL, forms.PTB_CONLL * 2), "dev.conll: has more sentences"),
    "no number": (change("dev.conll", "\t0\troot", "\tx\troot"), "dev.conll, line 1, sentence 1: .*'seen' is 'x'"),
    "spaces for tabs": (change("dev.conll", "river\t_\tNN\tNN\t_", "river _ NN NN _"), "dev.conll, line 1, .*columns"),
    "two roots": (change("dev.conll", "4\tnsubjpass", "0\troot"), "wsj_2201.mrg, line 2: .*2 roots"),
    "a cycle": (change("dev.conll", "\t0\troot", "\t2\tx"), "wsj_2201.mrg, line 2: .*cycle"),
    "crossing arcs": (change("dev.conll", "2\tdet", "5\tdet"), "wsj_2201.mrg, line 2: .*cross"),
    "a head beyond the sentence": (change("dev.conll", "2\tdet", "9\tdet"), "wsj_2201.mrg, line 2: .*head 9"),
    "numbered wrong": (change("dev.conll", "2\triver", "3\triver"), "dev.conll, line 1, sentence 1: line 2 is numbered"),
}  # fmt: skip


@pytest.mark.parametrize("kind", PTB_BROKEN)
def test_a_broken_copy_of_ptb(tmp_path, caplog, kind):
    edit, says = PTB_BROKEN[kind]
    edit(forms.ptb(tmp_path / "in"))
    refused("ptb", tmp_path, caplog, says)


@pytest.mark.parametrize("kind", CTB_BROKEN)
def test_a_broken_copy_of_ctb(tmp_path, caplog, kind):
    edit, says = CTB_BROKEN[kind]
    folder = forms.ctb(tmp_path / "in", "utf-8")
    shutil.rmtree(folder / "data" / "raw")  # the same articles, without trees
    edit(folder)
    refused("ctb", tmp_path, caplog, says)


@pytest.mark.parametrize("kind", CONLL_BROKEN)
def test_broken_dependencies(tmp_path, caplog, kind):
    edit, says = CONLL_BROKEN[kind]
    files = forms.dependency_files(tmp_path, PTB_SIZES, forms.PTB_CONLL)
    forms.ptb(tmp_path / "in")
    edit(tmp_path)
    refused("ptb", tmp_path, caplog, says, dependencies=files)


def refused(name, tmp_path, caplog, says, **options):
    """There is one clear error, and no file is left behind. If one sentence is wrong, a lenient import leaves it out."""
    with pytest.raises(LalkitError) as caught:
        import_treebank(name, tmp_path / "in", tmp_path / "out", **options)
    assert re.search(says, str(caught.value)), str(caught.value)
    assert str(caught.value).count("\n") <= 1 and not (tmp_path / "out").exists()
    single = not isinstance(caught.value, CorpusError) and not re.search("neither|NUL", says)
    if single and "differ" not in says:
        caplog.set_level("INFO", logger="lalkit")
        import_treebank(name, tmp_path / "in", tmp_path / "out", **options, lenient=True)
        assert any(line.startswith("left out: ") and re.search(says, line) for line in caplog.messages)


@pytest.mark.parametrize(
    ("files", "says"),
    [
        (["train.conll", "dev.conll"], "there is no file of dependencies for test"),
        (["train.conll", "dev.conll", "test.conll", "test-2.conll"], "several files of dependencies for test"),
    ],
)
def test_dependency_files_are_told_apart_by_their_names(tmp_path, files, says):
    with pytest.raises(CorpusError, match=says):
        import_treebank(
            "ptb", forms.ptb(tmp_path / "in"), tmp_path / "out", dependencies=[tmp_path / name for name in files]
        )


def test_from_the_command_line(tmp_path):
    forms.ptb_lines(tmp_path / "in")
    code, out, err = lalkit("data", "import", "ptb", "--path", str(tmp_path / "in"), "--out", str(tmp_path / "out"))
    assert code == 0 and out.strip() == str(tmp_path / "out")
    assert "train: 20 sentences (published experiments have 39,832); the joint form represents 100.00%" in err
    code, out, err = lalkit("data", "import", "negra", "--path", str(tmp_path))
    assert code == 2 and "there is no importer for 'negra'" in err
    code, out, err = lalkit("data", "import", "ctb", "--path", str(tmp_path / "nowhere"))
    assert code == 2 and "is no folder" in err and err.count("\n") <= 2
