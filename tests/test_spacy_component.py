"""lalkit in a spaCy pipeline: what a Doc says is what the parser says, also in bytes and from other processes."""

import subprocess
import sys
import tomllib
from importlib import import_module
from itertools import product
from pathlib import Path

import pytest

import lalkit
from lalkit.errors import LalkitError, ModelError

spacy = pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'lalkit[spacy]'")
from spacy.tokens import Doc, DocBin  # noqa: E402

from lalkit import spacy_component  # noqa: E402
from lalkit.treebank.text import read_text  # noqa: E402

TEXT = " Dr. Smith counted the ballots (twice).  He came back\n and left.  \n"


def pipeline(folder, first=(), **options):
    nlp = spacy.blank("en")
    for name in first:
        nlp.add_pipe(name)
    nlp.add_pipe("lalkit", config={"model": str(folder), **options})
    return nlp


@pytest.fixture(scope="module")
def nlp(tiny_parser):
    return pipeline(tiny_parser, confidence=True)


def facts(doc):
    """Return all that the component wrote into a Doc."""
    tokens = [(t.text, t.head.i, t.dep_, t.tag_, t.is_sent_start) for t in doc]
    spans = [(s.start, s.end, s.label_) for s in doc.spans.get("constituents", [])]
    chances = [x._.confidence for x in (*doc, *doc.spans.get("constituents", []))]
    return tokens, spans, [p and round(p, 4) for p in chances]  # sums of a batch differ in their last bits


def test_a_doc_says_what_the_parser_says(nlp, tiny_parser):
    doc, parser = nlp(TEXT), lalkit.load(tiny_parser)
    sentences = list(doc.sents)
    assert [s[0].text for s in sentences] == [" ", "He"]  # a space before the first word; the others end a sentence
    assert "".join(s.text_with_ws for s in sentences) == TEXT
    for sentence in sentences:
        words = [token for token in sentence if not token.is_space]
        result = parser.parse([t.text for t in words]).with_confidence()
        parse, chances = result.sentence, result.prediction.confidence
        assert sentence._.parse_string == result.to_ptb()
        heads = [words[h - 1] if h else token for token, h in zip(words, parse.heads)]
        assert [t.head for t in words] == heads and tuple(t.tag_ for t in words) == parse.tags
        labels = [label if head else "ROOT" for label, head in zip(parse.arc_labels, parse.heads)]
        assert [t.dep_ for t in words] == labels
        assert [t._.confidence for t in words] == pytest.approx(chances.arcs)
        known = {span[:3]: p for span, p in zip(result.spans, chances.spans)}
        spans = [s for s in sentence._.constituents if s._.labels]
        place = {token.i: k for k, token in enumerate(words)}
        told = {(place[s.start], place[s.end - 1] + 1, "::".join(s._.labels)): s._.confidence for s in spans}
        assert list(told) == [tuple(span) for span in parse.constituents]
        assert told == pytest.approx({span: known[span] for span in told})
        assert sentence._.confidence == told[0, len(words), "::".join(sentence._.labels)]
    spaces = [t for t in doc if t.is_space]
    assert [t.tag_ for t in spaces] == ["_SP"] * len(spaces) and spaces[0].head.text == "Dr."
    assert {t.head.is_space for t in doc} == {False}


def test_children_and_parents_fit_together(nlp):
    for sentence in nlp(TEXT).sents:
        assert sentence._.parent is None
        for span in sentence._.constituents:
            below = span._.children
            words = [token for token in span if not token.is_space]
            assert [t for child in below for t in child if not t.is_space] == (words if below else [])
            assert below or len(words) == 1
            assert [(c._.parent.start, c._.parent.end) for c in below] == [(span.start, span.end)] * len(below)
            inner = " ".join(child._.parse_string for child in below)
            top = "".join(f"({label} " for label in span._.labels) + inner + ")" * len(span._.labels)
            assert not below or span._.parse_string == (top if span._.labels else f"(TOP {inner})")
    token = nlp("So .")[0]
    assert token._.parse_string == token.doc[0:1]._.parse_string and token._.parent


def test_batches_processes_and_bytes_change_nothing(nlp):
    texts = [TEXT, "", " \n ", "So it does.", "Yes", *["It works. It works."] * 3]
    alone = [facts(nlp(text)) for text in texts]
    docs = list(nlp.pipe(texts, batch_size=3))
    assert [facts(doc) for doc in docs] == alone
    assert [facts(doc) for doc in nlp.pipe(texts, batch_size=3, n_process=2)] == alone
    assert [facts(Doc(nlp.vocab).from_bytes(doc.to_bytes())) for doc in docs] == alone
    kept = DocBin(docs=docs, store_user_data=True, attrs=["HEAD", "DEP", "TAG"]).to_bytes()
    assert [facts(doc)[1:] for doc in DocBin().from_bytes(kept).get_docs(nlp.vocab)] == [told[1:] for told in alone]


def test_boundaries_of_spacy_are_kept(tiny_parser):
    text = "Dr. Smith left. He came back."  # the rule of spaCy's sentencizer: a sentence ends with a stop, a token of its own
    nlp = pipeline(tiny_parser, ["sentencizer"])
    assert [s.text for s in nlp(text).sents] == ["Dr. Smith left.", "He came back."]
    doc = nlp.make_doc("He left . Then he came")
    for token in doc:
        token.is_sent_start = token.i in (0, 1)
    assert [s.text for s in nlp.get_pipe("lalkit")(doc).sents] == ["He", "left . Then he came"]


def test_a_pipeline_is_saved_by_the_name_of_its_parser(nlp, tmp_path):
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    assert facts(again("It works.")) == facts(nlp("It works."))


def test_merged_tokens_are_words(tiny_parser):
    nlp = pipeline(tiny_parser)
    doc = nlp.make_doc("New York is big.")
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    assert "New_York" in next(nlp.get_pipe("lalkit")(doc).sents)._.parse_string


def test_tokens_that_change_after_the_parse(nlp):
    for parts in ([], ["bi", "g"]):  # with a split, there are as many tokens as before
        doc = nlp("New York is big. It works.")
        with doc.retokenize() as retokenizer:
            retokenizer.merge(doc[0:2])
            if parts:
                retokenizer.split(doc[3], parts, heads=[doc[2], doc[2]])
        names = "labels constituents parse_string children parent".split()
        for span, name in product((doc[0:2], next(doc.sents)), names):
            with pytest.raises(LalkitError, match="merged or split after it was parsed\n"):
                getattr(span._, name)
    assert next(nlp.get_pipe("lalkit")(doc).sents)._.labels


def test_the_tokenizer_splits_as_lalkit_does(nlp):
    for text in ("We didn\u2019t see Ann\u2019s  well-known car.\nIt rained :-)", " a@b.org ", "", "\u200b", "\ufeffI"):
        doc = spacy_component.Tokenizer(nlp.vocab)(text)
        words = [word for sentence in read_text(text) for word in sentence.words]
        assert doc.text == text and [part for token in doc if (part := token.text.strip("\ufeff\u200b \n"))] == words


def test_nothing_to_parse_passes_through(nlp):
    assert facts(nlp("")) == ([], [], []) and [t.dep_ for t in nlp(" \n ")] == [""]
    with pytest.raises(LalkitError, match="is white space, and has no constituents\n"):
        nlp(" \n ")[:]._.labels  # noqa: B018


def test_what_is_refused(nlp, tiny_parser):
    with pytest.raises(ModelError, match="nowhere: no parser here.*\n.*Give a folder"):
        pipeline("nowhere")
    with pytest.raises(LalkitError, match="the Doc 'It works.' has no sentence boundaries\n.*sentencizer"):
        pipeline(tiny_parser, split_sentences=False)("It works.")
    with pytest.raises(LalkitError, match="was not parsed by lalkit\n.*add_pipe"):
        spacy.blank("en")("It works.")[0]._.labels  # noqa: B018
    doc = nlp("The clerk counted the ballots in the hall.")
    crossing = next(doc[i:j] for i in range(9) for j in range(i + 2, 9) if not any(s == doc[i:j] for s in doc.sents)
                    and (i, j) not in {(s.start, s.end) for s in doc.spans["constituents"]})  # fmt: skip
    with pytest.raises(LalkitError, match="is no constituent\n"):
        crossing._.parse_string  # noqa: B018


def test_the_example_of_the_page_runs(tiny_parser, capsys):
    page = (Path(__file__).parents[1] / "notebooks" / "coming-from-benepar.md").read_text(encoding="utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    exec(code.replace("en-news-span", str(tiny_parser)), {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and all("telescope" in line for line in lines)


def test_spacy_finds_the_component_by_the_entry_point():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, name = project["entry-points"]["spacy_factories"]["lalkit"].partition(":")
    assert getattr(import_module(module), name) is spacy_component.SpacyComponent


@pytest.mark.slow
def test_pipelines_without_lalkit_do_not_load_its_parser():
    """spaCy imports every component that an installed package names, whenever a pipeline is made."""
    program = "import sys, lalkit.spacy_component; sys.exit('lalkit.api' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
