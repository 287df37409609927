"""Treebank files: every problem is named by `data check` and by training, with file, line and what to do."""

import copy
import pickle

import pytest

from lalkit.errors import TreebankError
from lalkit.treebank import brackets, licensed
from lalkit.treebank.check import lessons
from lalkit.treebank.conllu import scan_conll
from lalkit.treebank.corpora import build, load
from lalkit.treebank.tree import Sentence
from tests.command import lalkit
from tests.hostile.table import case, command_refused, refused, table

TREE = b"( (S (NP (DT The) (NN end)) (VP (VBD came))) )\n"


@table(
    ("text", "says"),
    [
        case("no bracket", b"The end came .\n", "line 1"),
        case("a bracket is missing", b"( (S (NP (DT The)) )\n", "line 1"),
        case("a bracket too many", TREE + b"(S (A a)))\n", "line 2"),
        case("only a closing bracket", b")\n", "line 1"),
        case("an empty bracket", b"()\n", "line 1"),
        case("empty brackets in brackets", b"( ( ( ) ) )\n", "line 1"),
        case("a label without words", b"(S (NP ) (VP (V go)))\n", "line 1"),
        case("two words in one bracket", b"(S (NN one two))\n", "line 1"),
        case("words beside constituents", b"(S a (NN b))\n", "line 1"),
        case("a word without a label", b"( word )\n", "line 1"),
        case("only traces", b"( (S (NP (-NONE- *T*))) )\n", "line 1"),
        case("a label with ::", b"( (A::B (DT The) (NN end)) )\n", "::"),
        case("a constituent called <H>", b"( (S (<H> (DT The) (NN end)) (VP (VBD came))) )\n", "<H>"),
        case("a sentence called <H>", b"( (<H> (DT The) (NN end)) )\n", "<H>"),
        case("<H> in a unary chain", b"( (S (<H> (NP (DT The) (NN end))) (VBD came)) )\n", "<H>"),
        case("a NUL byte", TREE + b"(S (A a\0))\n", "line 2"),
        case("latin-1", TREE + "(S (A café))\n".encode("latin-1"), "line 2"),
        case("UTF-16 with a mark", "(S (A a))\n".encode("utf-16"), "utf-16"),
        case("UTF-16 without a mark", "(S (A a))\n".encode("utf-16-le"), "utf-16"),
        case("UTF-32", "(S (A a))\n".encode("utf-32"), "utf-32"),
        case("half a character", TREE + b"(S (A caf\xc3))\n", "line 2"),
        case("a surrogate in UTF-8", b"(S (A \xed\xa0\x80))\n", "line 1"),
        case("a gzip file", b"\x1f\x8b\x08\x00" + bytes(20), "train.trees"),
    ],
)
def test_brackets(tmp_path, text, says):
    (tmp_path / "train.trees").write_bytes(text)
    with refused(("train.trees", says)):
        load(str(tmp_path), "train")


@table(
    ("trees", "words"),
    [
        case("a mark of UTF-8", b"\xef\xbb\xbf" + TREE, ("The", "end", "came")),
        case("line ends of Windows", TREE.replace(b"\n", b"\r\n"), ("The", "end", "came")),
        case("a tree over several lines", TREE.replace(b" (VP", b"\n  (VP"), ("The", "end", "came")),
        case("no line end at the end", TREE.strip(), ("The", "end", "came")),
        case("a trace", b"(S (NP (-NONE- *)) (VP (VB go)))", ("go",)),
        case("unusual spaces in a word", "(S (A a\u00a0b) (B c\u2009d))".encode(), ("a\u00a0b", "c\u2009d")),
        case("a line separator in a word", "(S (A a\u2028b))".encode(), ("a\u2028b",)),
        case("a word called <H>", b"(S (A <H>) (B b))", ("<H>", "b")),
        case("a tag called <H>", b"(S (<H> a) (B b))", ("a", "b")),
        case("a word with ::", b"(S (A a::b) (B b))", ("a::b", "b")),
        case("a word that is a backslash", b"(S (A \\) (B b))", ("\\", "b")),
        case("3,000 levels", b"(S " * 3000 + b"(A a)" + b")" * 3000, ("a",)),
    ],
)
def test_unusual_trees_are_read(tmp_path, trees, words):
    (tmp_path / "train.trees").write_bytes(trees)
    assert load(str(tmp_path), "train").sentences[0].words == words


GOOD = (
    "1\tThe\t_\tDT\tDT\t_\t2\tdet\t_\t_",
    "2\tend\t_\tNN\tNN\t_\t3\tnsubj\t_\t_",
    "3\tcame\t_\tVBD\tVBD\t_\t0\troot\t_\t_",
)


def conllu(*lines):
    return "\n".join(lines) + "\n\n"


def with_heads(*heads):
    rows = [f"{i}\tw{i}\t_\tX\tX\t_\t{head}\tdep\t_\t_" for i, head in enumerate(heads, 1)]
    return conllu(*rows)


@table(
    ("text", "says"),
    [
        case("nothing", "", "train"),
        case("only empty lines", "\n\n\n", "train"),
        case("only comments", "# sent_id = 1\n\n", "train"),
        case("spaces instead of tabs", conllu(*(row.replace("\t", " ") for row in GOOD)), "line 1"),
        case("a column is missing", conllu("1\tThe\t_\tDT\tDT\t_\t2"), "line 1"),
        case("wrong numbers of words", conllu(GOOD[0], GOOD[2]), "line 2"),
        case("a head that is text", conllu(GOOD[0].replace("\t2\t", "\ttwo\t")), "two"),
        case("a head that is _", conllu(GOOD[0].replace("\t2\t", "\t_\t")), "_"),
        case("a negative head", conllu(GOOD[0].replace("\t2\t", "\t-1\t")), "-1"),
        case("a head in another script", conllu(GOOD[0].replace("\t2\t", "\t\u0662\t")), "\u0662"),
        case("a head of 5,000 digits", conllu(GOOD[0].replace("\t2\t", "\t" + "9" * 5000 + "\t")), "line 1"),
        case("a head beyond the end", with_heads(0, 9), "head 9"),
        case("a word that is its own head", with_heads(1, 0), "1 -> 1"),
        case("no root", with_heads(2, 1), "1 -> 2"),
        case("a cycle", with_heads(2, 3, 1, 0), "cycle"),
        case("two roots", with_heads(0, 0), "2 roots"),
        case("an empty word", conllu("1\t\t_\tX\tX\t_\t0\troot\t_\t_"), "line 1"),
        case("a word with a space", conllu("1\ta b\t_\tX\tX\t_\t0\troot\t_\t_"), "a b"),
        case("an empty arc label", conllu("1\ta\t_\tX\tX\t_\t0\t\t_\t_"), "line 1"),
        case("only ranges", conllu("1-2\tThe\t_\tDT\tDT\t_\t2\tdet\t_\t_"), "line 1"),
    ],
)
def test_dependencies_alone(tmp_path, text, says):
    (tmp_path / "train.conllu").write_text(text, encoding="utf-8")
    with refused((tmp_path.name, says)):
        load(str(tmp_path), "train", task="dependencies")


@table(
    ("text", "says"),
    [
        case("fewer sentences than trees", conllu(*GOOD), "line 2"),
        case("more sentences than trees", conllu(*GOOD) * 3, "train"),
        case("another word", conllu(GOOD[0].replace("The", "An"), *GOOD[1:]) * 2, "An"),
        case("another number of words", conllu(GOOD[0].replace("\t2\tdet", "\t0\tdet")) * 2, "1"),
        case("a cycle", conllu(GOOD[0], GOOD[1].replace("\t3\t", "\t1\t"), GOOD[2]) * 2, "cycle"),
        case(
            "crossing arcs", conllu(GOOD[0].replace("\t2\t", "\t3\t"), GOOD[1].replace("\t3\t", "\t0\t"),
                                    GOOD[2].replace("\t0\t", "\t2\t")) * 2, "cross: ",
        ),
        case("an unreadable file", "\0", "train.conllu"),
    ],
)  # fmt: skip
def test_trees_and_dependencies_that_do_not_agree(tmp_path, text, says):
    (tmp_path / "train.trees").write_bytes(TREE * 2)
    (tmp_path / "train.conllu").write_text(text, encoding="utf-8")
    with refused(("train", says)):
        load(str(tmp_path), "train")


@table(
    ("treebank", "task", "says"),
    [
        case("arc labels that clash", "ewt+sample", "joint", ("Universal Dependencies", "sample:constituents")),
        case("arc labels of two conversions", "craft+ptb-sample*2", "dependencies", ("craft and", "Leave one")),
        case("constituents that clash", "sample+sinica:constituents", "joint", ("Penn", "sample:dependencies")),
        case("constituents that are not there", "sample+ewt:constituents", "joint", ("ewt has no constituents",)),
        case("constituents of dependencies alone", "ewt", "constituents", ("ewt has no constituents", "--task")),
        case("another layer than the parser learns", "sample:constituents+ewt", "dependencies", "sample:constituents"),
        case("an unknown layer", "sample:trees", "joint", "'trees'"),
        case("an empty layer", "sample:", "joint", "''"),
        case("the same treebank twice", "sample:constituents+sample:dependencies", "joint", "sample twice"),
        case("two genres apart", "gum/news+gum/bio", "joint", ("gum twice", "gum/news,voyage")),
        case("the same folder twice", "./x+x", "joint", "twice"),
        case("a treebank that is not there", "sample+absent", "joint", "'absent'"),
        case("no name", "sample++ewt", "joint", "no name"),
        case("only a plus", "+", "joint", "no name"),
        case("a weight of 0", "sample*0", "joint", "'0'"),
        case("a negative weight", "sample*-1", "joint", "'-1'"),
        case("a weight that is not a number", "sample*nan", "joint", "'nan'"),
        case("an endless weight", "sample*inf", "joint", "'inf'"),
        case("a weight that is text", "sample*two", "joint", "'two'"),
        case("an empty weight", "sample*", "joint", "''"),
        case("weights of thousands", "sample*1e9", "joint", "'1e9'"),
        case("two weights", "sample*2*2", "joint", "'2*2'"),
    ],
)
def test_mixtures_that_are_none(treebank, task, says):
    with refused(says):
        load(treebank, "train", task=task)


@table(
    ("treebank", "task", "says"),
    [
        case("one layer for a joint parser", "sample:constituents", "joint", "no dependencies"),
        case("no constituents in any part", "sample:dependencies*2", "joint", "no constituents"),
    ],
    sample=False,
)
def test_mixtures_that_lack_a_layer(treebank, task, says):
    with refused((treebank, says)):
        lessons(treebank, task, 99)


@table(
    ("tree", "dependency"),
    [
        case("closing quotes", "''", '"'),
        case("opening quotes", "``", '"'),
        case("plain quotes in the tree", '"', "''"),
        case("a bracket", "-LRB-", "("),
        case("a curly bracket", "-RCB-", "}"),
    ],
)
def test_two_names_of_one_token(tree, dependency):
    line = f"1\t{dependency}\t_\tX\tX\t_\t0\troot\t_\t_\n\n"
    sentence = build(brackets.parse_tree(f"(S (X {tree}))"), next(scan_conll(line)), "1")
    assert sentence.words == (tree,) and sentence.heads == (0,)


@table(
    ("files", "says"),
    [
        case("an empty folder", {}, "train"),
        case("an empty train file", {"train.trees": b""}, "train.trees"),
        case("a train file of white space", {"train.trees": b" \n\n"}, "train.trees"),
        case("an empty dependency file", {"train.conllu": b""}, "train.conllu"),
        case("two files for one part", {"a-train.conllu": b"", "b-train.conllu": b""}, "a-train.conllu"),
        case("a file in UTF-16", {"train.trees": "(S (A a))".encode("utf-16")}, "train.trees"),
        case("a file with a NUL byte", {"train.trees": b"\0"}, "train.trees"),
    ],
)
def test_data_check(tmp_path, files, says):
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    code, out, err = lalkit("data", "check", tmp_path)
    assert code in (1, 2) and says in out + err, (code, out, err)


@table(
    ("options", "files", "says"),
    [
        case("a treebank that is a file", ["--treebank", "train.trees"], {"train.trees": TREE}, "train.trees"),
        case("no dev part", ["--treebank", "."], {"train.trees": TREE}, "dev.trees"),
        case("an empty dev part", ["--treebank", "."], {"train.trees": TREE, "dev.trees": b""}, "dev"),
        case("an empty train part", ["--treebank", "."], {"train.trees": b"", "dev.trees": TREE}, "train"),
        case(
            "no sentence that is short enough", ["--treebank", ".", "--set", "train.max_length=2"],
            {"train.trees": TREE, "dev.trees": TREE}, "max_length",
        ),
        case("an empty name", ["--treebank", ""], {}, "treebank"),
        case("a name with a NUL byte", ["--treebank", "a\0b"], {}, "treebank"),
    ],
    sample=False,
)  # fmt: skip
def test_training_on_what_is_no_treebank(tmp_path, options, files, says):
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    command_refused(tmp_path, ["train", "--preset", "tiny", "--out", "o", "--workers", "1", *options], says)


@table(
    "name",
    [
        case("a newline", "a\nb.txt"),
        case("a line of a sentence", "a\n1\tx.txt"),
        case("a carriage return", "a\rb.txt"),
        case("a tab", "a\tb.txt"),
    ],
)
def test_a_newline_in_a_file_name_stays_in_its_comment(tiny_parser, tmp_path, name):
    (tmp_path / name).write_text("One two.\n")
    code, out, _ = lalkit("parse", "--model", tiny_parser, "--to", "conllu", "--file", name, cwd=tmp_path)
    lines = out.split("\n")
    assert code == 0 and lines[0].startswith("# sent_id") and lines[1].startswith("1\tOne\t") and "\r" not in lines[0]


def deep(levels):
    return brackets.parse_tree("(S " * levels + "(A a)" + ")" * levels)


@table(
    "use",
    [
        case("written", lambda tree: brackets.format_tree(tree)),
        case("written over several lines", lambda tree: brackets.indent_tree(tree)),
        case("compared", lambda tree: tree == deep(3000)),
        case("compared with another", lambda tree: tree != deep(2999)),
        case("hashed", lambda tree: hash(tree)),
        case("shown", lambda tree: repr(tree)),
        case("pickled", lambda tree: pickle.loads(pickle.dumps(tree))),
        case("copied", copy.deepcopy),
        case("its words", lambda tree: tree.words()),
        case("its nodes", lambda tree: list(tree.nodes())),
        case("as a sentence", lambda tree: brackets.tree_to_sentence(tree)),
        case("as a sentence and back", lambda tree: brackets.tree_to_sentence(tree).tree),
        case("cleaned", lambda tree: brackets.clean(tree)),
        case("with other tags", lambda tree: licensed._with_tags(tree, ["X"]).words()),
    ],
)
def test_a_tree_of_3000_levels(use):
    assert use(deep(3000))


@table(
    "values",
    [
        case("crossing constituents", {"constituents": ((0, 2, "A"), (1, 3, "B"))}),
        case("a constituent outside", {"constituents": ((0, 9, "A"),)}),
        case("a constituent of no words", {"constituents": ((1, 1, "A"),)}),
        case("a constituent without a label", {"constituents": ((0, 2, ""),)}),
        case("two constituents over the same words", {"constituents": ((0, 2, "A"), (0, 2, "B"))}),
        case("a constituent called <H>", {"constituents": ((0, 3, "S"), (0, 2, "<H>"))}),
        case("too few heads", {"heads": (0,)}),
        case("too many tags", {"tags": tuple("abcd")}),
        case("a head that is text", {"heads": ("x", 0, 1)}),
        case("a constituent that is text", {"constituents": ("NP",)}),
        case("arc labels without heads", {"arc_labels": tuple("abc")}),
        case("a cycle", {"heads": (2, 1, 0)}),
        case("two roots", {"heads": (0, 0, 1)}),
        case("a head beyond the end", {"heads": (0, 9, 1)}),
        case("a tag with a space", {"tags": ("a b", "c", "d")}),
    ],
)
def test_sentences_that_are_none(values):
    with refused(""):
        Sentence(("One", "two", "."), id="s", **values)


def test_errors_of_trees_are_errors_of_lalkit():
    with pytest.raises(TreebankError):
        brackets.parse_tree("(S")
