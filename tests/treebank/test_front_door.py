"""What is no plain text is named with what to do; what is only unusual text is read."""

import io

import pytest

from lalkit import corpus
from lalkit.corpus import Text
from lalkit.errors import TreebankError
from lalkit.treebank.text import check_names, read_lines, read_text

CONLLU = "1\tIt\tit\tPRON\tPRP\t_\t2\tnsubj\t_\t_\n"
CHINESE, BIG5 = "我们住在同一条巷子里，他是一个好人。\n", "我們住在同一條巷子，他是一個好人。\n"
# The first bytes of a file that is given as plain text, and a word of the error's remedy or problem.
NO_TEXT = {
    "gzip": (b"\x1f\x8b\x08\x00abc", "gunzip"), "bzip2": (b"BZh91AY", "Unpack"), "xz": (b"\xfd7zXZ\0", "Unpack"),
    "zstd": (b"\x28\xb5\x2f\xfd\x24", "Unpack"), "7z": (b"7z\xbc\xaf\x27\x1c", "Unpack"),
    "zip": (b"PK\x03\x04\x14", "Unpack"), "Word": (b"\xd0\xcf\x11\xe0\xa1", "plain text"),
    "RTF": (b"{\\rtf1 It}", "plain text"), "PDF": (b"%PDF-1.4\n%\xe2", "pdftotext"), "PNG": (b"\x89PNG\r\n", "picture"),
    "JPEG": (b"\xff\xd8\xff\xe0", "picture"), "HTML": (b"<!DOCTYPE html>\n<p>", "tags"),
    "small HTML": (b"\n <p class='a'>It", "tags"), "XML": (b"<?xml version='1.0'?><a/>", "tags"),
    "TEI": (b"<TEI xmlns=''>", "tags"), "CoNLL-U": (CONLLU.encode(), "--form conllu"),
    "its comments": (f"# a\n# b = c\n{CONLLU}".encode(), "--form conllu"),
    "an empty node": (b"0.1\tx\t_\t_\t_\n1-2\tIm\t_\t_\t_\t_\t_\t_\t_\t_\n", "--form conllu"),
    "CRLF": (b"# a\r\n1\tIt\t_\t_\t_\t_\r\n", "--form conllu"),
    "after a BOM": (b"\xef\xbb\xbf" + CONLLU.encode(), "--form conllu"),
    "after blank lines": (b"\n\n" + CONLLU.encode(), "--form conllu"),
    "Penn brackets": (b"( (S (NP (DT The) (NN end)) (VP (VBD came))) )\n", "Treebank.load"),
    "bare brackets": (b"(S (NP (DT The) (NN end)))", "Treebank.load"),
    "TOP": (b"(TOP (S (NP-SBJ-1 (PRP It)) (. .)))", "Treebank.load"),
    "over lines": (b"\n(ROOT\n  (S\n    (NP (PRP It))))", "Treebank.load"),
    "Chinese brackets": ("((IP-HLN (NP-PN (NR \u5c0f) (NN b))))".encode(), "Treebank.load"),
    "JSON": (b'{"text": "It rained."}', "JSON"), "a list of JSON": (b'[\n {"text": "It"}]', "JSON"),
    "CR alone": (b"It rained.\rWe stayed.\r", "tr "),
    "CR alone after a blank line": (b"\rIt rained.\rWe stayed.", "tr "), "GB": (CHINESE.encode("gb18030"), "gb18030"),
    "Big5": (BIG5.encode("big5"), "big5"), "UTF-16": ("It rained.".encode("utf-16"), "utf-16"),
    "KOI8": ("Он дома.".encode("koi8-r"), "ENCODING"), "UTF-16 without BOM": ("It rained.".encode("utf-16-be"), "utf-16"),
    "UTF-32": ("It rained.".encode("utf-32"), "utf-32"), "Latin-1": ("Le café est là.".encode("latin-1"), "cp1252"),
    "Windows": ("It’s a “test”.".encode("cp1252"), "cp1252"), "a NUL": (b"It\0 rained.", "NUL"),
}  # fmt: skip
TEXT = [  # plain text that looks a little like something else
    "(It rained.)", "(see (Smith 2001))", "(NASA (US gov) said so.)", "[It] rained.", "[[1]] It", "{It}", "<3 you",
    "# It rained", "1 It rained", "1\tIt rained", "1\tIt\trained", "PK is a name.", "BZh", "%PDF", "a < b", "<b>It</b>",
    "It rained.\r", "\ufeffIt rained.",
]  # fmt: skip


def lines_of(data, form="raw"):
    return [line for block in corpus.blocks(Text(io.BytesIO(data), "f.txt", "f.txt"), 99, form) for line in block.lines]


@pytest.mark.parametrize("name", NO_TEXT)
def test_another_kind_of_file_is_named(name):
    data, says = NO_TEXT[name]
    for form in ("raw", "text", "tokens"):
        with pytest.raises(TreebankError) as caught:
            lines_of(data, form)
        assert says in str(caught.value) and "f.txt" in caught.value.where and str(caught.value).count("\n") == 1


@pytest.mark.parametrize("text", TEXT)
def test_text_is_text(text):
    assert lines_of(text.encode()) == [text.removeprefix("\ufeff").rstrip("\r")]


def test_conllu_is_read_as_conllu_and_not_cut():
    text = (CONLLU + CONLLU.replace("1\t", "2\t", 1) + "\n") * 9
    sizes = [b.lines.count("") for b in corpus.blocks(Text(io.BytesIO(text.encode()), "f", "f"), 120, "conllu")]
    assert sum(sizes) == 9 and 1 < len(sizes) < 9
    assert [s.place for (s,) in read_lines(text.split("\n"), "conllu", "f", 4)] == [f"f:{4 + 3 * i}" for i in range(9)]


NAMES = "notes.txt notes-2.txt a/b/c.conllu ../x.md ~/big.trees C:\\a.pdf é.html a.b.gz Notes.Txt ./notes /a/b".split()
NO_NAMES = "notes|It.|Yes.No|see notes.txt|http://a.b/c.html|www.a.b/c.html|me@x.md|3.5|e.g.|and/or|U.S.|txt".split("|")


def test_a_name_of_a_file_is_no_sentence(tmp_path):
    for name in (*NAMES, str(tmp_path)):
        with pytest.raises(TreebankError, match="no such file"):
            check_names(["It rained.", name])
    check_names(NO_NAMES)
    (tmp_path / "two words").write_text("It")
    with pytest.raises(TreebankError, match="one file at a time"):
        check_names([str(tmp_path / "two words"), "b"])


WRAPPED = {  # running text, and its sentences with the lines on which they begin
    "It rained all\nday. We stayed\nin.": ["1 It rained all day.", "2 We stayed in."],
    "A heading\n\nIt rained.": ["1 A heading", "3 It rained."],
    "A heading\n \t\n\n\nIt\nrained.": ["1 A heading", "5 It rained."],
    "It rained.\nWe stayed. They\nleft.": ["1 It rained.", "2 We stayed.", "2 They left."],
    "He met Mr.\nBrown.\r\n\r\nSo.": ["1 He met Mr. Brown.", "4 So."],
    "It rained.\n\u00a0\nSo": ["1 It rained.", "3 So"],
    "  It\n  rained.\n  So.": ["1 It rained.", "3 So."],
    "So. So.\nSo.": ["1 So.", "1 So.", "2 So."],
}


@pytest.mark.parametrize("text", WRAPPED)
def test_lines_are_joined_up_to_a_blank_line(text):
    found = [s for line in read_lines(text.split("\n"), "text", "f") for s in line if s]
    assert [f"{s.id[2:].partition('.')[0]} {' '.join(s.text.split())}" for s in found] == WRAPPED[text]
    assert [" ".join(s.text.split()) for s in read_text(text)] == [line[2:] for line in WRAPPED[text]]
    assert len({s.id for s in found}) == len(found)
    assert all(s.words == tuple(s.text[a:b] for a, b in s.offsets) for s in found)
