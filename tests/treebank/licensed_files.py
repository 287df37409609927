"""Folders of files in the form of the Penn and the Chinese Treebank, with our own sentences."""

from pathlib import Path

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
<HEADER>
<DATE>19940101</DATE>
</HEADER>
<BODY>
<HEADLINE>
<S ID=1>
((IP-HLN (NP-PN-SBJ (NR 小林))
         (VP (VV 擦)
             (NP-OBJ (NN 窗户)))) )
</S>
</HEADLINE>
<TEXT>
<P>
<S ID=2>
( (IP (NP-SBJ (-NONE- *pro*))
 (NP-SBJ (CP (WHNP-1 (-NONE- *OP*)) (CP (IP (NP-SBJ (PN 你)) (VP (VV 写) (NP-OBJ (-NONE- *T*-1)))) (DEC 的)))
 (NP (NN 信))) (VP (VV 到) (AS 了)) (PU 。)) )
</S>
</P>
</TEXT>
</BODY>
</DOC>
"""
ARTICLES = (1, 270, 271, 300, 301, 325, 440, 1151)


def ptb(folder: Path) -> Path:
    """Sections 00 to 24, one file each, as parsed/mrg/wsj has them."""
    for section in range(25):
        file = folder / "parsed" / "mrg" / "wsj" / f"{section:02d}" / f"wsj_{section:02d}01.mrg"
        file.parent.mkdir(parents=True)
        file.write_text(MRG)
    (folder / "parsed" / "mrg" / "wsj" / "02" / "wsj_0201.pos").write_text("no tree")
    return folder


def ptb_lines(folder: Path) -> Path:
    """One tree a line, a file a part."""
    folder.mkdir(exist_ok=True)
    line = "(TOP (S (NP (DT The) (NN river)) (VP (VBD rose)) (. .)))\n"
    for name, count in (("02-21.10way.clean", 20), ("22.auto.clean", 2), ("23.auto.clean", 3)):
        (folder / name).write_text(line * count)
    return folder


def ctb(folder: Path, encoding: str = "gb18030") -> Path:
    """Eight articles as data/bracketed has them, and the raw text beside them."""
    for number in ARTICLES:
        name = f"chtb_{number:03d}.fid" if number < 1000 else f"chtb_{number}.mz"
        for kind, text in (("bracketed", CTB.format(number=number)), ("raw", "小林擦窗户")):
            file = folder / "data" / kind / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode(encoding))
    return folder


def conll(words: str, heads: list[int], labels: str, tags: str) -> str:
    rows = zip(words.split(), tags.split(), heads, labels.split())
    return "".join(f"{i}\t{w}\t_\t{t}\t{t}\t_\t{h}\t{x}\t_\t_\n" for i, (w, t, h, x) in enumerate(rows, 1)) + "\n"


PTB_CONLL = conll(
    "The river was seen .", [2, 4, 4, 0, 4], "det nsubjpass auxpass root punct", "DT NN VBD VBN ."
) + conll(
    "It rained on ( there ) .",
    [2, 0, 2, 5, 2, 5, 2],
    "nsubj root prt punct advmod punct punct",
    "PRP VBD RP -LRB- RB -RRB- .",
)
CTB_CONLL = conll("小林 擦 窗户", [2, 0, 2], "SUB ROOT OBJ", "NR VV NN") + conll(
    "你 写 的 信 到 了 。", [2, 3, 4, 5, 0, 5, 5], "SUB IP REL SUB ROOT VMOD P", "PN VV DEC NN VV AS PU"
)


def dependency_files(folder: Path, sizes: dict[str, int], text: str) -> list[Path]:
    """train.conll, dev.conll and test.conll: the text so many times."""
    files = []
    for split, count in sizes.items():
        file = folder / f"{split}.conll"
        file.write_text(text * count, encoding="utf-8")
        files.append(file)
    return files
