"""Treebanks and texts: every problem is named with its file and line, and what is only unusual is read."""

import copy
import json
import os
import pickle
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lalkit
from lalkit.errors import LalkitError, TreebankError
from lalkit.treebank import brackets
from lalkit.treebank import conllu as conll
from lalkit.treebank.corpora import load
from lalkit.treebank.tree import Sentence
from tests.command import lalkit as run
from tests.hostile.refusals import command_refused, files_of, refused

TREE = b"( (S (NP (DT The) (NN end)) (VP (VBD came))) )\n"
BRACKETS = [  # files of trees, each with the place of its problem
    (b"The end came .\n", "line 1"), (b"( (S (NP (DT The)) )\n", "line 1"), (TREE + b"(S (A a)))\n", "line 2"),
    (b")\n", "line 1"), (b"()\n", "line 1"), (b"( ( ( ) ) )\n", "line 1"), (b"(S (NP ) (VP (V go)))\n", "line 1"),
    (b"(S (NN one two))\n", "line 1"), (b"(S a (NN b))\n", "line 1"), (b"( word )\n", "line 1"),
    (b"( (S (NP (-NONE- *T*))) )\n", "line 1"), (b"( (A::B (DT The) (NN end)) )\n", "::"),
    (b"( (S (<H> (DT The) (NN end)) (VP (VBD came))) )\n", "<H>"), (b"( (<H> (DT The) (NN end)) )\n", "<H>"),
    (b"( (S (<H> (NP (DT The) (NN end))) (VBD came)) )\n", "<H>"), (TREE + b"(S (A a\0))\n", "line 2"),
    (TREE + "(S (A café))\n".encode("latin-1"), "line 2"), ("(S (A a))\n".encode("utf-16"), "utf-16"),
    ("(S (A a))\n".encode("utf-16-le"), "utf-16"), ("(S (A a))\n".encode("utf-32"), "utf-32"),
    (TREE + b"(S (A caf\xc3))\n", "line 2"), (b"(S (A \xed\xa0\x80))\n", "line 1"), (b"\x1f\x8b\x08\x00" + bytes(20), "gunzip"),
]  # fmt: skip
UNUSUAL = [  # trees that are read, and their words
    (b"\xef\xbb\xbf" + TREE, "The end came"), (TREE.replace(b"\n", b"\r\n"), "The end came"),
    (TREE.replace(b" (VP", b"\n  (VP"), "The end came"), (TREE.strip(), "The end came"),
    (b"(S (NP (-NONE- *)) (VP (VB go)))", "go"), ("(S (A a\u00a0b) (B c\u2009d))".encode(), "a\u00a0b c\u2009d"),
    ("(S (A a\u2028b))".encode(), "a\u2028b"), (b"(S (A <H>) (B b))", "<H> b"), (b"(S (<H> a) (B b))", "a b"),
    (b"(S (A 1\\/2) (B \\*\\*) (C a\\b))", "1/2 ** a\\b"), (b"(S\n(A a)\n(B b))\n(S\n(A a)\n(B b))\n", "a b"),
    (b"(S (A a::b) (B b))", "a::b b"), (b"(S (A \\) (B b))", "\\ b"), (b"(S " * 3000 + b"(A a)" + b")" * 3000, "a"),
]  # fmt: skip
# Files of trees in which the brackets of the whole balance, and what is said of each part: "" for a tree.
MOVED = {
    "(S (A a)\n(S (B b)))\n": ["line 1", "", "line 2"],
    "(S (A a))\n(S (B b)\n(S (C c))\n(S (D d)))\n(S (E e))\n": ["", "line 2", "", "", "line 4", ""],
    "(S (A a)))\n(S (B b))\n(S (C c)\n(S (D d))\n": ["", "line 1", "", "line 3", ""],
    "( (S (A a)\n     (B b))\n( (S (A a)) ))\n": ["line 1", "", "line 3"],
    "(S (A a)) (S (B b)) (S (C c)) (S (D d))\n": ["", "", "", ""],
    "(S (A a)) (S (B b) (S (C c)) (S (D d))\n(S (E e))\n": ["", "line 1", ""],
    "(S (A a\\)b))\n(S (B b))\n": ["line 1", ""],
    "(S (A \\)) (B b))\n(S (B b))\n": ["", "", "line 1", ""],
    "(S\n(A a)\n(B b)\n(C c))\n(S (D d))\n": ["", ""],
    "(S (A a))\n\n\n(S (B b))": ["", ""],
}
GOOD = (
    "1\tThe\t_\tDT\tDT\t_\t2\tdet\t_\t_",
    "2\tend\t_\tNN\tNN\t_\t3\tnsubj\t_\t_",
    "3\tcame\t_\tVBD\tVBD\t_\t0\troot\t_\t_",
)


def conllu(*lines):
    return "\n".join(lines) + "\n\n"


def with_heads(*heads):
    return conllu(*(f"{i}\tw{i}\t_\tX\tX\t_\t{head}\tdep\t_\t_" for i, head in enumerate(heads, 1)))


def first_head(head):
    return conllu(GOOD[0].replace("\t2\t", f"\t{head}\t"))


DEPENDENCIES = [  # files of dependencies, each with the place of its problem
    ("", "train"), ("\n\n\n", "train"), ("# sent_id = 1\n\n", "train"),
    (conllu(*(row.replace("\t", " ") for row in GOOD)), "line 1"), (conllu("1\tThe\t_\tDT\tDT\t_\t2"), "line 1"),
    (conllu(GOOD[0], GOOD[2]), "line 2"), (first_head("two"), "two"),
    (conllu(GOOD[0].replace("\t2\t", "\t_\t"), *GOOD[1:]), "'_'"), (first_head("-1"), "-1"),
    (first_head("\u0662"), "\u0662"), (first_head("9" * 5000), "line 1"), (with_heads(0, 9), "head 9"),
    (with_heads(1, 0), "1 -> 1"), (with_heads(2, 1), "1 -> 2"), (with_heads(2, 3, 1, 0), "cycle"), (with_heads(0, 0), "roots"),
    (conllu("1\t\t_\tX\tX\t_\t0\troot\t_\t_"), "line 1"), ("# global.columns = FORM ID\n" + first_head(0), "FORM ID"),
    ("# global.columns = ID FORM HEAD\n" + conllu("1\ta\t0"), "DEPREL"),
    (conllu("1\ta\t_\tX\tX\t_\t0\t\t_\t_"), "line 1"), (conllu("1-2\tThe\t_\tDT\tDT\t_\t2\tdet\t_\t_"), "line 1"),
]  # fmt: skip
BESIDE_TREES = [  # files of dependencies that do not agree with two trees
    conllu(*GOOD), conllu(*GOOD) * 3, conllu(GOOD[0].replace("The", "An"), *GOOD[1:]) * 2,
    conllu(GOOD[0].replace("\t2\tdet", "\t0\tdet")) * 2, conllu(GOOD[0], GOOD[1].replace("\t3\t", "\t1\t"), GOOD[2]) * 2,
    conllu(GOOD[0].replace("\t2\tdet", "\t3\tSPEC"), GOOD[1].replace("\t3\t", "\t0\t"), GOOD[2].replace("\t0\t", "\t2\t")) * 2,
    "\0", conllu(*("\t".join([*row.split("\t")[:6], "_\t_\t_\t_"]) for row in GOOD)) * 2,
]  # fmt: skip
NO_TREEBANKS = [
    "sample+", "+", "sample*0", "sample*-1", "sample*nan", "sample*two", "sample*2*2", "sample:trees", "sample:", "nowhere",
    "a\0b", "", "..",
]  # fmt: skip
FOLDERS = [  # the files of a folder, and the place of the problem
    ({}, "train"), ({"train.trees": b""}, "train.trees"), ({"train.trees": b" \n\n"}, "train.trees"),
    ({"train.conllu": b""}, "train.conllu"), ({"a-train.conllu": b"", "b-train.conllu": b""}, "a-train.conllu"),
    ({"train.trees": "(S (A a))".encode("utf-16")}, "train.trees"), ({"train.trees": b"\0"}, "train.trees"),
]  # fmt: skip
TRAININGS = [  # the files of a treebank, and the place of the problem
    ({"train.trees": TREE}, "dev.trees"), ({"train.trees": TREE, "dev.trees": b""}, "dev"),
    ({"train.trees": b"", "dev.trees": TREE}, "train"),
]  # fmt: skip
NO_SENTENCES = [  # layers that do not fit the words "One two ."
    {"constituents": ((0, 2, "A"), (1, 3, "B"))}, {"constituents": ((0, 9, "A"),)}, {"constituents": ((1, 1, "A"),)},
    {"constituents": ((0, 2, ""),)}, {"constituents": ((0, 2, "A"), (0, 2, "B"))}, {"heads": (0,)}, {"tags": tuple("abcd")},
    {"constituents": ((0, 3, "S"), (0, 2, "<H>"))}, {"heads": ("x", 0, 1)}, {"constituents": ("NP",)},
    {"arc_labels": tuple("abc")}, {"heads": (2, 1, 0)}, {"heads": (0, 0, 1)}, {"heads": (0, 9, 1)}, {"tags": ("a b", "c", "d")},
]  # fmt: skip


def test_files_of_trees(tmp_path, subtests, caplog):
    file = tmp_path / "train.trees"
    for text, place in BRACKETS:
        file.write_bytes(text)
        with subtests.test(repr(text[:40])), refused("train.trees", place):
            load(str(tmp_path), "train")
    for text, expected in MOVED.items():
        with subtests.test(text):
            found = [tree for _, tree in brackets.scan_trees(text)]
            said = [str(tree) if isinstance(tree, TreebankError) else "" for tree in found]
            assert len(said) == len(expected) and all(place in told for place, told in zip(expected, said)), said
            assert [place == "" for place in expected] == [told == "" for told in said]
    assert "3 lines that begin with (" in caplog.text, "a file of MOVED may be four trees"
    for text, words in UNUSUAL:
        file.write_bytes(text)
        with subtests.test(f"{text[:40]!r} is read"):
            assert load(str(tmp_path), "train").sentences[0].words == tuple(words.split(" "))


def test_files_of_dependencies(tmp_path, subtests):
    file = tmp_path / "train.conllu"
    for text, place in DEPENDENCIES:
        file.write_text(text, encoding="utf-8")
        with subtests.test(text[:40]), refused(tmp_path.name, place):
            load(str(tmp_path), "train", task="dependencies")
    (tmp_path / "train.trees").write_bytes(TREE * 2)
    for text in BESIDE_TREES:
        file.write_text(text, encoding="utf-8")
        with subtests.test(f"{text[:40]} beside trees"), refused("train"):
            load(str(tmp_path), "train")


def test_names_and_folders_of_treebanks(tmp_path, subtests):
    for name in NO_TREEBANKS:
        with subtests.test(name), refused():
            load(name, "train")
    check = ["data", "check", "."]
    train = ["train", "--preset", "tiny", "--out", "o", "--treebank", "."]
    rows = [(check, *row) for row in FOLDERS] + [(train, *row) for row in TRAININGS]
    for number, (command, files, place) in enumerate(rows):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, data in files.items():
            (folder / name).write_bytes(data)
        with subtests.test(f"{command[0]} {list(files)}"):
            before = files_of(folder)
            code, out, err = run(*command, cwd=folder)
            assert code in (1, 2) and place in out + err and files_of(folder) == before, (code, out, err)


def test_layers_that_do_not_fit_the_words(subtests):
    for layers in NO_SENTENCES:
        with subtests.test(repr(layers)), refused(error=TreebankError):
            Sentence(("One", "two", "."), id="s", **layers)


def test_a_tree_of_3000_levels():
    """Nothing about trees is recursive."""

    def deep(levels):
        return brackets.parse_tree("(S " * levels + "(A a)" + ")" * levels)

    tree = deep(3000)
    assert brackets.format_tree(tree) and brackets.indent_tree(tree) and repr(tree) and brackets.clean(tree)
    assert tree == deep(3000) and tree != deep(2999) and hash(tree) == hash(deep(3000))
    assert pickle.loads(pickle.dumps(tree)) == tree == copy.deepcopy(tree)
    assert tree.words() == ["a"] and len(list(tree.nodes())) == 3001
    assert brackets.tree_to_sentence(tree).tree == tree


# ---------------------------------------------------------------- named corpora, and where they are looked for

HEADER = "document\tpart\n"
SPLITS_OF_GUM = [
    "GUM_one\ttrain\n", "GUM_news_one\n", "GUM_news_one\ttrain\tx\n", "GUM_news_one\tall\n", "\n", "GUM_a_../b\ttrain\n",
]  # fmt: skip
CLAUSES = "#1:1.[1] S(theme:NP(Head:Nh:a)|Head:VC1:b|goal:NP(Head:Nc:c))#x\n" * 20


def test_damaged_tables_and_archives_of_named_corpora(tmp_path, subtests, monkeypatch):
    for variable in ("LALKIT_DATA", "NLTK_DATA"):
        monkeypatch.setenv(variable, str(tmp_path))
    for name in ("gum/dep", "gum/const", "corpora"):
        (tmp_path / name).mkdir(parents=True)
    for row in SPLITS_OF_GUM:
        (tmp_path / "gum" / "splits.tsv").write_text(HEADER + row)
        with subtests.test(repr(row)), refused("splits.tsv, line 2"):
            load("gum", "train")
    file = tmp_path / "corpora" / "sinica_treebank.zip"
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        archive.writestr("sinica_treebank/parsed", CLAUSES)
    whole = file.read_bytes()
    assert len(load("sinica", "train")) == 16
    for at in range(0, len(whole), 3):
        for data in (whole[:at], whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :]):
            file.write_bytes(data)
            answered(load, "sinica", "train")
    for raw in CLAUSES.encode()[:64], *(bytes([byte]) for byte in b"#():|[]. "):
        for at in range(0, 64, 3):
            text = CLAUSES.encode()
            with ZipFile(file, "w") as archive:
                archive.writestr("sinica_treebank/parsed", text[:at] + raw + text[at + 1 :])
            answered(load, "sinica", "train")


HOMELESS = """
import os, pwd, sys
os.getuid = lambda: int(sys.argv[1])
pwd.getpwuid = {}.__getitem__  # nobody has a name
from lalkit.treebank.corpora import CorpusError, load
for name in ("craft", "sinica", "caf\\udce9"):
    try:
        load(name, "train")
    except CorpusError as error:
        print(error)
print(os.environ["HOME"])
"""


@pytest.mark.skipif(os.name != "posix", reason="Windows always has a home")
def test_without_a_home_a_user_name_and_a_locale(tmp_path):
    """A home that another user has made is not used: what numba has cached in it would be run."""
    environment = {key: value for key, value in os.environ.items() if key not in ("HOME", "LALKIT_DATA", "NLTK_DATA")}
    environment |= {"LC_ALL": "C", "PYTHONPATH": str(Path(lalkit.__file__).parents[1]), "TMPDIR": str(tmp_path)}
    for user, home in ((os.getuid(), tmp_path / f"home-{os.getuid()}"), (os.getuid() + 1, os.devnull)):
        command = [sys.executable, "-c", HOMELESS, str(user)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0 and "'caf\\udce9'" in done.stdout, done
        assert done.stdout.count("not on this machine") == 2 and done.stdout.endswith(f"\n{home}\n")


LINKS = {"mem": "/proc/self/mem", "loop": "loop", "broken": "nowhere"}


@pytest.mark.parametrize("name", LINKS)
def test_an_error_while_a_file_is_read_names_it(tmp_path, tiny_parser, name):
    """The first byte of the memory of a process cannot be read, although the file can be opened. A link may lead nowhere."""
    if name == "mem" and not os.path.exists("/proc/self/mem"):
        pytest.skip("this system has no such file")
    os.symlink(LINKS[name], tmp_path / name)
    command_refused(tmp_path, ["parse", "--model", tiny_parser, name], f"{name}: cannot be read")


# ---------------------------------------------------------------- random texts: LALKIT_EXAMPLES sets their number

FUZZ = settings(max_examples=int(os.environ.get("LALKIT_EXAMPLES", "15")), deadline=None)


def answered(function, *arguments):
    """Return the result, or None where lalkit refuses; any other error goes on."""
    with suppress(LalkitError):
        return function(*arguments)


@FUZZ
@given(text=st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_text_is_parsed_and_written_in_every_form(parser, text):
    result = answered(parser.parse, text)
    if result is not None:
        assert len(list(brackets.scan_trees(result.to_ptb()))) == 1
        assert len(list(conll.scan_conll(result.to_conllu()))) == 1
        assert json.loads(result.to_json())["words"] == list(result.sentence.words)
        assert result.draw().startswith("<svg")


@FUZZ
@given(data=st.binary(max_size=60) | st.text(alphabet="() \nNP<>H:1\t_", max_size=60).map(str.encode))
def test_any_file_of_brackets_or_dependencies_is_read(data):
    text = answered(brackets.decode, data, "file")
    if text is None:
        return
    for _, tree in brackets.scan_trees(text):
        if not isinstance(tree, LalkitError):
            answered(lambda tree=tree: brackets.tree_to_sentence(brackets.clean(tree)))
    assert all(isinstance(item, LalkitError | conll.Dependencies) for item in conll.scan_conll(text))
