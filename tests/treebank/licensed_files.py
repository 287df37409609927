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
ARTICLES = (1, 270, 271, 300, 301, 325, 440, 1151)


def ptb(folder: Path) -> Path:
    """Sections 00 to 24, one file each, as parsed/mrg/wsj has them."""
    for section in range(25):
        file = folder / "parsed" / "mrg" / "wsj" / f"{section:02d}" / f"wsj_{section:02d}01.mrg"
        file.parent.mkdir(parents=True)
        file.write_text(MRG)
        file.with_suffix(".pos").write_text("no tree")
    return folder


def ptb_lines(folder: Path) -> Path:
    """One tree a line, a file a part."""
    folder.mkdir(exist_ok=True)
    for name, count in (("02-21.10way.clean", 20), ("22.auto.clean", 2), ("23.auto.clean", 3)):
        (folder / name).write_text("(TOP (S (NP (DT The) (NN river)) (VP (VBD rose)) (. .)))\n" * count)
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
