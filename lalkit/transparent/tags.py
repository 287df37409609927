"""Universal parts of speech (Petrov et al. 2012) for texts that have none: NLTK's tagger, and a table from the Penn tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lalkit.errors import CorpusError
from lalkit.transparent.examples import Example

UNIVERSAL = ("NOUN", "VERB", "ADJ", "ADV", "PRON", "DET", "ADP", "NUM", "CONJ", "PRT", ".", "X")
_PENN = {
    "NOUN": "NN NNS NNP NNPS", "VERB": "VB VBD VBG VBN VBP VBZ MD", "ADJ": "JJ JJR JJS", "ADV": "RB RBR RBS WRB",
    "PRON": "PRP PRP$ WP WP$", "DET": "DT EX PDT WDT", "ADP": "IN", "NUM": "CD", "CONJ": "CC", "PRT": "RP TO POS",
    ".": ". , : `` '' # $ -LRB- -RRB- ( ) -NONE-",
}  # fmt: skip
OF_UD = {
    "PROPN": "NOUN", "AUX": "VERB", "PUNCT": ".", "SYM": ".", "PART": "PRT", "CCONJ": "CONJ", "SCONJ": "ADP", "INTJ": "X",
}  # fmt: skip
OF_PENN = {penn: tag for tag, several in _PENN.items() for penn in several.split()}


def universal(penn: str) -> str:
    """The universal tag of a Penn tag; X for what the table has not (FW, LS, SYM, UH, and tags never seen)."""
    return OF_PENN.get(penn, "X")


def of_dependencies(tag: str) -> str:
    """The universal tag (of twelve) of a tag of Universal Dependencies (of seventeen)."""
    return OF_UD.get(tag, tag if tag in UNIVERSAL else "X")


def tagged(examples: Sequence[Example]) -> list[Example]:
    """Examples with tags; those that have some keep them. Raises CorpusError where NLTK's tagger is not on this machine."""
    if all(example.tags for example in examples):
        return list(examples)
    from nltk.tag import PerceptronTagger

    try:
        tagger = PerceptronTagger()
    except LookupError:
        raise CorpusError(
            "NLTK's tagger is not on this machine",
            remedy="Get it with: python -m nltk.downloader averaged_perceptron_tagger_eng",
        ) from None
    return [
        example if example.tags else replace(example, tags=tuple(universal(t) for _, t in tagger.tag(example.words)))
        for example in examples
    ]
