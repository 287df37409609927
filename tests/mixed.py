"""Small made-up treebanks in the forms of UD English EWT and of GUM."""

import pytest


def rows(text: str, id: str) -> str:
    """'She PRP 2 nsubj; reads VBZ 0 root' -> a sentence of CoNLL-U."""
    lines = [word.split() for word in text.split("; ")]
    columns = (f"{i}\t{w}\t_\t_\t{tag}\t_\t{h}\t{label}\t_\t_\n" for i, (w, tag, h, label) in enumerate(lines, 1))
    return f"# sent_id = {id}\n" + "".join(columns) + "\n"


READS = "She PRP 2 nsubj; reads VBZ 0 root; books NNS 2 obj; . . 2 punct"
CROSSING = "A DT 2 det; hearing NN 4 nsubj; is VBZ 4 aux; set VBN 0 root; on IN 6 case; it PRP 2 nmod; . . 4 punct"
GOES = "He PRP 2 nsubj; goes VBZ 0 root; far RB 2 advmod; today NN 2 obl; . . 2 punct"
READS_TREE = "(ROOT\n  (S\n    (NP-SBJ (PRP She))\n    (VP (VBZ reads) (NP (NNS books)))\n    (. .)))\n\n"
CROSSING_TREE = "(ROOT (S (NP (DT A) (NN hearing)) (VP (VBZ is) (VP (VBN set) (PP (IN on) (NP (PRP it))))) (. .)))\n\n"
# The NP 'far today' has two words with a head outside it.
GOES_TREE = "(ROOT (S (NP-SBJ (PRP He)) (VP (VBZ goes) (NP (RB far) (NN today))) (. .)))\n\n"
DOCUMENTS = {"GUM_news_one": "train", "GUM_voyage_two": "train", "GUM_news_three": "dev", "GUM_bio_four": "test"}
RANGE = "1-2\tSheread\t" + "_\t" * 7 + "_\n"
EMPTY_NODE = "2.1\treads\t" + "_\t" * 7 + "_\n"


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A folder for LALKIT_DATA. EWT: 8 sentences to train on, one with crossing arcs. GUM: 3 in each of four documents."""
    folder = tmp_path_factory.mktemp("corpora")
    (folder / "ewt").mkdir()
    reads = rows(READS, "r").replace("1\tShe", RANGE + "1\tShe").replace("3\tbooks", EMPTY_NODE + "3\tbooks")
    for split, times in (("train", 4), ("dev", 1)):
        texts = [reads, rows(GOES, "g")] * times
        (folder / "ewt" / f"{split}.conllu").write_text("".join([*texts[1:], rows(CROSSING, "x")]), encoding="utf-8")
    for part in ("dep", "const"):
        (folder / "gum" / part).mkdir(parents=True)
    table = "".join(f"{document}\t{part}\n" for document, part in DOCUMENTS.items())
    (folder / "gum" / "splits.tsv").write_text("document\tpart\n" + table)
    for name in DOCUMENTS:
        conllu = "".join(rows(text, f"{name}-{i}") for i, text in enumerate((READS, CROSSING, GOES), 1))
        (folder / "gum" / "dep" / f"{name}.conllu").write_text(conllu, encoding="utf-8")
        (folder / "gum" / "const" / f"{name}.ptb").write_text(READS_TREE + CROSSING_TREE + GOES_TREE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LALKIT_DATA", str(folder))
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        yield folder
