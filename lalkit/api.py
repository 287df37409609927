"""Use lalkit from Python: `load` a parser, `parse` text, look at the result."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

import torch

from lalkit.chart.constraints import Constraints, Item
from lalkit.chart.sums import Temperature
from lalkit.config import PAGE_CHARACTERS, PAGE_TREES
from lalkit.errors import LalkitError, ModelError, ParameterError, checked, shown
from lalkit.files import write_bytes, write_json, write_text
from lalkit.interpret import explainer, layer_of, patching
from lalkit.interpret.alternatives import Differ, Price, Reading, Readings, tree_of
from lalkit.network.alignment import SCRIPTS
from lalkit.network.encoder import Change
from lalkit.network.model import Model, Precision, Prediction, check_joint, resolve_precision
from lalkit.network.parser import same_state
from lalkit.network.vocabulary import FIRST
from lalkit.training import named as models
from lalkit.training.checkpoint import CALIBRATION, load_model, read_content, save_model
from lalkit.treebank.brackets import format_tree, indent_tree
from lalkit.treebank.conllu import format_conllu
from lalkit.treebank.joint import JointSpan
from lalkit.treebank.text import Form, Reader, read_sentences, read_text, script
from lalkit.treebank.tree import Node, Sentence, in_order

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from torch import Tensor

    from lalkit.draw.playground import LocalServer
    from lalkit.evaluation.scores import Comparison
    from lalkit.interpret.explanation import Explanation
    from lalkit.interpret.layers import Explainer, Heads
    from lalkit.interpret.patching import Vectors
    from lalkit.interpret.tables import SelfAttention
    from lalkit.probes.view import AttentionView
    from lalkit.treebank.search import Hits, Pattern

logger = logging.getLogger(__name__)
Texts = str | Sentence | Iterable[str | Sequence[str] | Sentence]
PICTURES = (".png", ".pdf")
PLAYGROUNDS: WeakKeyDictionary[Parser, LocalServer] = WeakKeyDictionary()
close = partial(math.isclose, rel_tol=1e-3, abs_tol=1e-3)  # of the scores of one tree, computed twice


@checked
@dataclass(frozen=True, repr=False)
class ParseResult:
    """A parsed sentence: its `.tree`, `.dependencies` and `.score`, its explanations, its texts and its pictures.

    >>> parser.parse("It rained.")
    ParseResult((S (NP (PRP It)) (VP (VBD rained)) (. .)), score 2.21)
    """

    prediction: Prediction
    # The parser that made it, and can explain it.
    parser: Parser | None = field(default=None, repr=False, compare=False)
    # The sentence as it was given. Its tags may differ from those of the parse.
    given: Sentence | None = field(default=None, repr=False, compare=False)
    # `Model.state` of the model that parsed.
    state: Sequence | None = field(default=None, repr=False, compare=False)
    constraints: Constraints = Constraints()  # the parts that the tree must have, and must not have
    reading: Reading | None = field(default=None, repr=False)  # of one of several trees: how it differs from the best

    @property
    def sentence(self) -> Sentence:
        """The words with their tags and both layers.

        >>> result.sentence.words
        ('She', 'saw', 'the', 'man', '.')
        """
        return self.prediction.sentence

    @property
    def tree(self) -> Node:
        """The constituency tree. Raises LalkitError for a parser of dependencies alone.

        >>> print(result.tree)
        (S (NP (PRP She)) (VP (VBD saw) (NP (DT the) (NN man))) (. .))
        """
        if self.sentence.constituents is None:
            remedy = "Use .dependencies and .to_conllu(), or --to conllu."
            raise LalkitError("this parser was trained on dependencies alone: it gives no constituents", remedy=remedy)
        return self.sentence.tree

    @property
    def offsets(self) -> tuple[tuple[int, int], ...] | None:
        """(start, end) of each word in `sentence.text`, which has no white space around it. None without running text.

        >>> result.offsets[:2]
        ((0, 3), (4, 7))
        """
        return self.sentence.offsets

    @property
    def spans(self) -> tuple[JointSpan, ...]:
        """The joint spans with their head words, including those with the group label <H>.

        >>> result.spans[0]
        JointSpan(start=0, end=5, label='S', head=2)
        """
        return self.prediction.spans

    @property
    def score(self) -> float:
        """lambda * (label scores) + (1 - lambda) * (arc log-probabilities) of this tree. The best tree has the highest score.

        >>> round(result.score, 2)
        3.27
        """
        return self.prediction.score

    @cached_property
    def dependencies(self) -> list[tuple[int, str, str, int, str]]:
        """(number, word, tag, head, arc label) of every word. Numbers start from 1; head 0 is the root.

        >>> result.dependencies[0]
        (1, 'She', 'PRP', 2, 'SBJ')

        Raises LalkitError for a parser of constituents alone.
        """
        s = self._with_heads()
        blank = ("_",) * len(s)
        return list(zip(range(1, len(s) + 1), s.words, s.tags or blank, s.heads, s.arc_labels or blank))

    @cached_property
    def _explained(self) -> dict[str | None, Explanation]:
        return {}

    def _explain(self, against: str | None = None) -> Explanation:
        """Score this tree again, and split its scores. Raises ModelError if the network has changed.

        A change of a weight through `.data`, which torch does not count, is noticed only if it changes the spans or the score.
        """
        if against not in self._explained:
            parser, before = self._current_parser(), self.prediction
            joint = parser.config.model.task == "joint"
            bare = replace(self.given or self.sentence, constituents=None, heads=None, arc_labels=None)
            trees = [tree_of(before, parser.vocab)] if joint else None
            again = parser.attribution.explain([bare], against=against, trees=trees, probabilities=joint)
            (one,) = again.sentences
            if one.prediction.spans != before.spans or not close(one.prediction.score, before.score):
                raise self._changed()
            one = replace(one, prediction=replace(before, confidence=one.prediction.confidence or before.confidence))
            self._explained[against] = replace(again, sentences=[one], given=[self.given], profile=parser.profile)
        return self._explained[against]

    def _current_parser(self) -> Parser:
        """Return the parser. Raises LalkitError if the scores are not in fp32, or if the network has changed."""
        if (lower := self.prediction.precision) != "fp32":
            problem = f"explanations and probabilities are of scores in fp32, but this was parsed in {lower}"
            raise LalkitError(problem, remedy='Parse it again with precision="fp32".')
        if not (self.state is None or same_state(self.state, self._parser.model.state())):
            raise self._changed()
        return self._parser

    def _changed(self) -> ModelError:
        problem = "the network has changed since it parsed this sentence, or this is not its best tree"
        remedy = "Parse it again, and explain it before a weight or a hook changes (inside the `with` block)."
        return ModelError(problem, where=f"sentence {self.sentence.id}", remedy=remedy)

    def __getstate__(self) -> dict:
        """Return the fields for a pickle: without the parser, whose weights are large, and without cached results."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {"parser": None, "state": None}

    def __copy__(self, memo: dict | None = None) -> ParseResult:
        return self  # nothing in it changes

    __deepcopy__ = __copy__

    @property
    def _parser(self) -> Parser:
        if self.parser is None:
            raise LalkitError("this result has no parser attached", remedy="Parse the sentence again.")
        return self.parser

    @cached_property
    def readings(self) -> Readings:
        """The joint trees that obey the constraints, with scores and probabilities. Raises LalkitError as `explain` does.

        >>> result.readings.best.heads.tolist()
        [2, 0, 4, 2, 2]
        """
        readings = self._current_parser().readings(self.given or self.sentence, self.constraints)
        if not close(readings.score(self.prediction), self.score):
            raise self._changed()
        return readings

    def alternatives(self, k: int = 5, differ: Differ = "structure") -> list[ParseResult]:
        """Return k readings of the sentence, the best tree first, each with its `.reading`: probability and differences.

        >>> print(result.alternatives(2)[1].reading)
        # probability of these arcs 8.332e-05, score -14.9460: +2->3  +3->4  -2->4  -4->3

        After the best tree come the most probable structures, with their differences from it. All obey the constraints.

        differ: "structure": some word that is not punctuation has another head word. "any": all trees. See
        `interpret.alternatives.Readings.alternatives`.
        """
        readings = self.readings
        return [self._parser.result(readings, reading) for reading in readings.alternatives(k, differ)]

    def attachments(self, phrase: str | int | tuple[int, int]) -> pd.DataFrame:
        """Return every head word that a phrase could have, with its probability: phrase, head, head word, probability.

        >>> result.attachments("the man")["head word"].tolist()
        ['saw', '.', 'She', 'root']

        The phrase is attached by its own head word: the word whose head is outside the phrase in this parse. Head 0 is the
        root. The most probable head comes first. Heads inside the phrase are left out, so the sum can be less than 1.

        Args:
            phrase: The words of the phrase, as text; or the number of a word, from 1; or the first and the last number.

        Raises:
            ParameterError: The sentence has no such phrase, or has it twice, or not exactly one word has its head outside.
        """
        return self.readings.attachments(self.prediction, phrase)

    @property
    def price(self) -> Price:
        """The score that the constraints cost, and the log-probability that a tree obeys them; both 0 without constraints.

        >>> result.price
        Price(score=0.0, log_probability=0.0)
        """
        return self.readings.price

    def confidence(self) -> pd.DataFrame:
        """Return how probable each part of the parse is: kind, start, end, label, head, probability.

        >>> result.confidence()["kind"].value_counts().to_dict()
        {'arc': 5, 'arc label': 5, 'tag': 5, 'span': 4, 'tree': 1}

        kind: span (that these words have this label), arc (that this is the head word), arc label (if the arc is right), tag, or
        tree (all constituents and arcs). Probabilities are among all joint trees of the sentence, also under constraints; those
        of tags are among the tags that obey.
        """
        prediction = self.with_confidence().prediction
        return prediction.confidence.table(prediction.sentence, prediction.spans)

    def with_confidence(self) -> ParseResult:
        """Return the result with the probabilities of its parts, which `to_json` and `to_conllu` then write.

        >>> round(result.with_confidence().prediction.confidence.probability, 1)
        0.9
        """
        if self.prediction.confidence:
            return self
        return replace(self, prediction=self.readings.with_confidence(self.prediction))

    def explain(self, label: str | None = None, against: str | None = None) -> Explanation:
        """Explain the constituents of a label (None: all): the label heads, or the words, whose parts add up to each score.

        >>> print(str(result.explain("VP", against="S")).partition(": ")[2][:20])
        S would score -3.18.

        `print` shows it in words, a notebook its `.table`. See `lalkit.Explanation`.

        against: also compare with this label. LalkitError: no such constituent or label attention, bf16, a changed network.
        """
        return self._explain(against).of(label)

    def explore(
        self, beside: ParseResult | Sentence | None = None, constrain: bool = False, against: str | None = None,
        layer: Literal["encoder", "pretrained"] | None = None,
    ) -> Exploration:  # fmt: skip
        """Return a page to explore: point at a constituent to see its label heads, or its words.

        >>> result.explore(against="S").save("page.html")  # doctest: +SKIP

        Args:
            beside: the tree of a second pane: the result of another parser for the same sentence; this result again, to look at
                two label heads; or a gold Sentence. Each pane marks the parts that the other pane does not have.
            constrain: show the five most probable heads of a phrase, and offer to forbid or require constituents. The page
                sends these to the page around its frame.
            against: compare the label of each constituent with this label.
            layer: "encoder" or "pretrained", to also show the self-attention of `Parser.self_attention`.

        Raises:
            LalkitError: `beside` has other words, a tree lacks a layer, or the parser has no label attention.
        """
        from lalkit.draw.explorer import explorer, tree_page

        data = {**self._page(constrain, against), "constrain": constrain}
        if layer:
            (arrays,) = self._parser.self_attention([self.given or self.sentence], layer).arrays
            layers = {f"{layer} {number}": array.round(3).tolist() for number, array in enumerate(arrays)}
            data["sentences"][0]["layers"] = layers
        if isinstance(beside, Sentence):
            return Exploration(explorer(data, tree_page([beside], data["title"], "gold")))
        return Exploration(explorer(data, beside._page(constrain, against) if beside else None))

    def _page(self, attachments: bool, against: str | None) -> dict:
        from lalkit.interpret.explanation import page as page_of

        name, title = self._parser.info.get("name", "a parser"), " ".join(self.sentence.words[:12])
        page = page_of(self._explain(against), name, title)
        for span in page["sentences"][0]["spans"] if attachments else ():
            table = self.attachments((span["start"] + 1, span["end"]))
            span["attachments"] = table[["head", "head word", "probability"]].head(5).round(6).values.tolist()
        return page

    def arc_probabilities(self) -> np.ndarray:
        """Return the exact probability of every arc: row i is word i + 1, column h is its head word h, and column 0 the root.

        Each row adds up to 1. Probabilities are among all joint trees of the sentence, also under constraints.

        >>> parser.parse("It works.").arc_probabilities().shape  # doctest: +SKIP
        (3, 4)
        """
        return self.readings.arc_probabilities

    def to_ptb(self, pretty: bool = False) -> str:
        """Return the constituents in brackets. pretty: on several lines. Raises LalkitError without constituents.

        >>> result.to_ptb()
        '(S (NP (PRP She)) (VP (VBD saw) (NP (DT the) (NN man))) (. .))'
        """
        return indent_tree(self.tree) if pretty else format_tree(self.tree)

    def to_conllu(self) -> str:
        """Return the dependencies in the form CoNLL-U. Raises LalkitError for a parser of constituents alone.

        >>> result.to_conllu().splitlines()[1]
        '# text = She saw the man.'
        """
        confidence = self.prediction.confidence
        return format_conllu([self._with_heads()], [confidence.conllu()] if confidence else None)

    def _with_heads(self) -> Sentence:
        if self.sentence.heads is None:
            remedy = "Use .tree and .to_ptb(), or --to ptb."
            raise LalkitError("this parser was trained on constituents alone: it gives no dependencies", remedy=remedy)
        return self.sentence

    def to_json(self) -> str:
        """Return `to_dict` as JSON.

        >>> result.to_json()[:40]
        '{"id": "1", "text": "She saw the man.", '
        """
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_dict(self) -> dict:
        """Return the whole parse as plain tuples, lists, texts and numbers, which JSON can hold.

        >>> result.to_dict()["heads"]
        (2, 0, 4, 2, 2)
        """
        s = self.sentence
        return {
            "id": s.id, "text": s.text, "offsets": s.offsets, "words": s.words, "tags": s.tags,
            **({"upos": s.upos} if s.upos else {}), "heads": s.heads,
            "tree": None if s.constituents is None else self.to_ptb(),
            "arc_labels": s.arc_labels, "spans": [span._asdict() for span in self.spans], "score": self.score,
            **(self.reading.to_dict() if self.reading else {}),
            **({"confidence": self.prediction.confidence.to_dict()} if self.prediction.confidence else {}),
        }  # fmt: skip

    def draw(self) -> str:
        """Return the joint tree as SVG: constituents above, words between, arcs below. Draws one layer if there is only one.

        >>> result.draw()[:4]
        '<svg'
        """
        from lalkit.draw import draw_layers

        return draw_layers(self.sentence)

    def save(self, path: str | Path) -> Path:
        """Write the result in the form that the suffix names: .svg .png .pdf .json .conllu .ptb .txt.

        >>> result.save("tree.pdf")  # doctest: +SKIP

        Raises LalkitError for another suffix.
        """
        forms = {
            ".svg": self.draw, ".json": self.to_json, ".conllu": self.to_conllu, ".ptb": self.to_ptb, ".txt": self.__str__,
        }  # fmt: skip
        suffix = Path(path).suffix
        if suffix in PICTURES:
            from lalkit.draw.svg import redraw

            return write_bytes(path, redraw(self.draw(), suffix[1:]))
        if suffix not in forms:
            known = " ".join((*forms, *PICTURES))
            remedy = f"Give a name that ends with one of {known}."
            raise LalkitError(f"cannot write a result as {suffix!r}", where=repr(path), remedy=remedy)
        return write_text(path, forms[suffix]())

    def _repr_svg_(self) -> str:
        return self.draw()

    def __repr__(self) -> str:
        """Show the tree on one line, shortened, and the score."""
        text = " ".join(self.sentence.words) if self.sentence.constituents is None else self.to_ptb()
        return f"ParseResult({shorten(text, 100, placeholder=' ...')}, score {self.score:.2f})"

    def __str__(self) -> str:
        text = self.to_conllu() if self.sentence.constituents is None else self.to_ptb(pretty=True)
        return f"{self.reading}\n{text}" if self.reading else text


@checked
@dataclass(frozen=True)
class Exploration:
    """A page to explore. JupyterLab displays it in a frame of its own; `save` writes it as one HTML file."""

    html: str = field(repr=False)

    def save(self, path: str | Path) -> Path:
        return write_text(path, self.html)

    def _repr_html_(self) -> str:
        from lalkit.draw import explorer_frame

        return explorer_frame(self.html)


@checked
class Parser:
    """A trained parser.

    >>> parser = lalkit.load()                            # doctest: +SKIP
    >>> print(parser.parse("Select the person driving"))  # doctest: +SKIP
    """

    network = property(lambda self: self.model.network, doc="The network.\n\n>>> parser.network.training\nFalse")
    vocab = property(lambda self: self.model.vocab, doc="Labels, tags and words.\n\n>>> len(parser.vocab.tags)\n45")
    config = property(lambda self: self.model.config, doc="All settings.\n\n>>> parser.config.train.lam\n0.5")
    info = property(lambda self: self.model.info, doc="Results, and the origin.\n\n>>> parser.info['name']\n'en-news'")

    def __init__(self, model: Model, profile: dict | None = None, folder: Path | None = None):
        """profile: how often each label head leads each label in a corpus. folder: the one from which the model was loaded."""
        self.model, self.profile, self.folder = model, profile, folder

    @property
    def facts(self) -> dict[str, str]:
        """The known facts, as texts: name, task, label attention, label heads, changed at, treebank, scores on dev.

        >>> parser.facts["label heads"]
        '64'
        """
        layer, scores = layer_of(self.config.model), self.info.get("dev") or {}
        known = {name.upper(): scores.get(name) for name in ("f1", "uas", "las")}
        facts = {
            "name": self.info.get("name", ""),
            "task": self.config.model.task,
            "label attention": layer.system(self.config.model) if layer else "none",
            "label heads": str(self.attribution.heads) if layer else "",
            "changed at": ", ".join(self.network.changed),
            "treebank": self.info.get("treebank", ""),
            "scores on dev": ", ".join(f"{name} {score:.2f}" for name, score in known.items() if score is not None),
        }
        return {name: fact for name, fact in facts.items() if fact}

    def __repr__(self) -> str:
        return f"Parser({', '.join(f'{name}: {fact}' for name, fact in self.facts.items())})"

    def _repr_html_(self) -> str:
        import pandas as pd

        return pd.Series(self.facts).to_frame("Parser").to_html()

    @cached_property
    def reader(self) -> Reader:
        """The `Reader` of texts for this parser: it splits words as in training, and warns of an unknown language or script.

        >>> parser.reader.hyphens, sorted(parser.reader.scripts)
        (False, ['LATIN'])
        """
        info, vocab, collator = self.info, self.vocab, self.model.collator
        encoder = SCRIPTS.get(self.config.model.encoder.pretrained)
        scripts = {encoder} if encoder else set(map(script, vocab.chars[len(FIRST["chars"]) :]))
        common = models.common_words(info) if collator.subwords else ()
        tags = vocab.tags, self.config.model.tag_input == "given"
        return Reader(info.get("hyphens", True), scripts, common, collator.pieces, info.get("marks"), *tags)

    @classmethod
    def load(cls, name: str | Path, precision: Precision = "fp32", device: str = "cpu", **hub) -> Parser:
        """Load a parser by the name of a shipped one, from a folder, or from the hub with 'hf:owner/name'.

        >>> lalkit.Parser.load("en-news", device="auto").info["name"]
        'en-news'

        A folder is one that `lalkit train` or `save` wrote. Raises ModelError if there is no parser, if it is incomplete, or
        if its encoder is missing or a different one. precision: fp32, bf16 or auto. bf16 is faster on some hardware, but its
        results cannot be explained. auto means fp32, or bf16 for more than 10,000 words where that is faster. device: see `to`.
        hub: options of `huggingface_hub.snapshot_download`: revision, token, cache_dir, local_files_only.
        """
        folder = models.find(name, **hub)
        model = replace(load_model(folder), precision=precision)
        return cls(model, models.read_profile(folder), folder).to(device)

    @property
    def device(self) -> torch.device:
        """The device on which the parser computes.

        >>> parser.device
        device(type='cpu')
        """
        return self.model.device

    def to(self, device: str) -> Parser:
        """Move the parser to a device, on which it then parses and explains, and return it.

        >>> parser = lalkit.load().to("auto")  # doctest: +SKIP

        device: "cpu", "cuda", "cuda:1" or "mps"; "auto" is cuda if there is one, else cpu. Scores on another device can differ in
        their last digits. The CPU finds the trees. With cuda, the device first finds the best label of each span.

        Raises: ParameterError for a device that is not here. ModelError for "mps" if label attention is inside the span: it adds
            up in float64, which mps does not have.
        """
        self.model.to(device)
        return self

    def save(self, folder: str | Path, half: bool = False) -> Path:
        """Write a folder that `load` reads. half: write the weights in 16 bits, which takes half the space.

        >>> parser.save("runs/copy")  # doctest: +SKIP
        """
        folder = Path(folder)
        # Never over weights that model.json may still name.
        tag = next(str(n) for n in count() if not (folder / f"model-{n}.safetensors").exists())
        save_model(self.model, folder, tag, half)
        calibration = self.model.calibration
        calibration = calibration and {**calibration, "weights": read_content(folder, "model")["weights"]}
        for name, content in (("profile.json", self.profile), (CALIBRATION, calibration)):
            if content:
                write_json(folder / name, content)
            else:
                (folder / name).unlink(missing_ok=True)  # the file of an earlier parser in this folder
        return folder

    def parse(
        self, text: str | Iterable[str] | Sentence, form: Form = "raw", *,
        require: Iterable[str | Item] = (), forbid: Iterable[str | Item] = (), **options,
    ) -> ParseResult:  # fmt: skip
        """Parse one sentence.

        >>> parser.parse("She saw the man.", forbid=["NP(1,1)"])
        ParseResult((S (PRP She) (VP (VBD saw) (NP (DT the) (NN man))) (. .)), score 2.22)

        Args:
            text: Text, a list of words, or a Sentence.
            form: The form of text: 'raw' or 'text'; 'tokens' (words between spaces); 'tagged' (word_TAG); or 'conllu'.
            require: Parts that the tree must have, such as "NP(3,5)" or "2->4", see `lalkit.chart.constraints`.
            forbid: Parts that it must not have.
            options: All options of `parse_all` except errors; with constraints, only precision.

        Raises:
            LalkitError: There are no words, or several sentences, or the constraints contradict each other.
        """
        constraints = Constraints.read(require, forbid)
        sentences = self.reader.read([text], form, one=True)
        if not constraints.items:
            return self._parsed(sentences, **options)[0]
        resolve_precision(options.pop("precision", self.model.precision), "cpu", exact=True)
        if options:
            remedy = "Leave the options out. For probabilities, call .with_confidence() of the result."
            raise LalkitError("only the option precision can be combined with constraints", remedy=remedy)
        readings = self.readings(sentences[0], constraints)
        return replace(self.result(readings, readings.readings([readings.best])[0]), reading=None)

    def readings(self, sentence: Sentence, constraints: Constraints = Constraints()) -> Readings:  # noqa: B008
        """Return the joint trees of a sentence that obey the constraints, with their scores and probabilities.

        >>> parser.readings(treebank[0]).trees(2)[0].heads.tolist()
        [2, 4, 4, 0, 4, 4, 4]
        """
        return Readings(self.model, sentence, constraints)

    def result(self, readings: Readings, reading: Reading) -> ParseResult:
        """Return one of the trees of a sentence as a result with its `.reading`.

        >>> readings = parser.readings(treebank[0])
        >>> parser.result(readings, readings.alternatives(1)[0]).score == readings.best.score
        True
        """
        return ParseResult(reading.prediction, self, readings.sentence, readings.state, readings.constraints, reading)

    def parse_text(self, text: str) -> list[ParseResult]:
        """Split running text into sentences, and parse them. Raises LalkitError for a text without sentences.

        >>> len(parser.parse_text("It rained. We left."))
        2
        """
        sentences = read_text(text, hyphens=self.reader.hyphens)
        if not sentences:
            raise LalkitError("there is nothing to parse", remedy="Give at least one word.")
        return self.parse_all(sentences)

    def parse_all(
        self, texts: Iterable[str | Sequence[str] | Sentence], form: Form = "raw",
        errors: Literal["raise", "skip"] = "raise", *, temperature: Temperature | None = None,
        precision: Precision | None = None, **options,
    ) -> list[ParseResult | None] | pd.Series:  # fmt: skip
        """Parse many sentences, in order: of a list, an array, a column of a table (a pandas Series) or an iterator.

        >>> parser.parse_all(["It rained.", ""], errors="skip")
        [ParseResult((S (NP (PRP It)) (VP (VBD rained)) (. .)), score 2.21), None]

        Returns a list; for a Series, a Series with the same index (`table["parse"] = parser.parse_all(table["text"])`).
        errors: "skip" puts None in the place of a value that is missing or has no words. temperature: also compute the
        probabilities of all parts, with scores divided by this number (or two: of labels, of arcs). precision: instead of the
        parser's own. options: batch_words, threads and progress, as in `lalkit.network.model.Model.predict`. Raises LalkitError
        for a value that is not a sentence. The message has its number. form: of the texts, as in `parse`.
        """
        entries = self.reader.read(texts, form, errors == "skip")
        sentences = [entry for entry in entries if entry is not None]
        parsed = iter(self._parsed(sentences, temperature, precision, **options))
        results = [None if entry is None else next(parsed) for entry in entries]
        if not hasattr(texts, "iloc"):
            return results
        import pandas as pd

        return pd.Series(results, texts.index, object, "parse") if isinstance(texts, pd.Series) else results

    def _parsed(
        self, sentences: Sequence[Sentence], temperature: Temperature | None = None, precision: Precision | None = None, **options
    ) -> list[ParseResult]:  # fmt: skip
        model = self.model if precision is None else replace(self.model, precision=precision)
        model = model if temperature is None else replace(model, temperature=temperature)
        predictions = model.parse(sentences, probabilities=temperature is not None, **options)
        state = model.state()  # afterwards: in its first run the encoder of transformers adds hooks of its own
        return [ParseResult(p, self, sentence, state) for p, sentence in zip(predictions, sentences)]

    def search(self, texts: Iterable[str | Sequence[str] | Sentence], pattern: str | Pattern) -> Hits:
        """Parse sentences, and search the parses with a pattern of tgrep, see notebooks/patterns.md.

        >>> parser.search(treebank, "PP < IN")
        7 matches of 'PP < IN' in 2 sentences

        texts: a treebank, or sentences as for `parse_all`.
        """
        from lalkit.treebank.search import search

        compiled = search((), pattern).pattern  # a wrong pattern is named before the parser works
        return search((result.sentence for result in self.parse_all(texts)), compiled)

    @cached_property
    def attribution(self) -> Explainer:
        """The object that explains the parser's label attention. Raises ModelError for a parser without label attention.

        >>> parser.attribution.heads
        64
        """
        return explainer(self.model)

    def explain(
        self, texts: Texts, label: str | None = None, gold: bool = False, against: str | None = None, **options
    ) -> Explanation:
        """Parse, and explain the constituents of a label (None: all): the parts that add up to the score of each.

        >>> parser.explain(treebank, gold=True)
        Explanation(sentences: 3, constituents: 52)

        Args:
            texts: The sentences to parse.
            label: Explain only constituents of this label.
            gold: Also explain the constituents of the gold trees.
            against: Also explain each constituent under this label: why NP and not S?
            options: Those of `lalkit.network.model.Model.predict`: probabilities, batch_words, progress.

        Raises:
            ModelError: The scores of this parser cannot be split into the parts of label heads or of words.
            LalkitError: No constituent has the label, a gold tree is missing, or the parser does not know `against`.
        """
        found = self.attribution.explain(self._sentences(texts), gold, against, **options)
        return replace(found, profile=self.profile).of(label)

    def errors(self, gold: Iterable[Sentence], **options) -> pd.DataFrame:
        """Return a row for each error in the parses of a treebank: see `lalkit.interpret.errors.errors`.

        >>> parser.errors(treebank)["class"].value_counts().to_dict()
        {'wrong arc': 8, 'attachment': 4, 'relabelled': 1, 'missing': 1, 'extra': 1, 'wrong arc label': 1}
        """
        from lalkit.interpret import errors

        return errors.errors(*self._with_gold(gold, options), self.vocab.arc_labels)

    def evaluate(
        self, gold: Iterable[Sentence], by: Literal["all", "sentence", "length", "label"] = "all", **options
    ) -> pd.DataFrame:
        """Score the parses of a treebank: see `lalkit.evaluation.scores`.

        >>> parser.evaluate(lalkit.Treebank.load("own.conllu"))  # doctest: +SKIP

        by: "all" gives one row with the name of the parser (`Evaluation.summary`). The others give a row for each sentence, for
            each group of lengths, or for each label of constituents.
        Raises: LalkitError for a sentence without a gold tree. options: those of `parse_all`.
        """
        import pandas as pd

        from lalkit.evaluation import scores

        trees, parses = self._with_gold(gold, options)
        if by == "label":
            return scores.by_label(trees, parses)
        found = scores.evaluate(trees, parses, arc_labels=self.vocab.arc_labels, tags=self.vocab.tags)
        for line in found.others.values():
            logger.warning(line)
        if by != "all":
            return found.table() if by == "sentence" else scores.by_length(found)
        return pd.DataFrame(found.summary(), [self.info.get("name", "")])

    def _with_gold(self, gold: Iterable[Sentence], options: dict) -> tuple[list[Sentence], list[Sentence]]:
        """Return gold sentences and their parses."""
        gold = read_sentences(gold)
        if bare := [sentence for sentence in gold if sentence.constituents is None and sentence.heads is None]:
            raise LalkitError("has no gold tree", where=bare[0].where, remedy="Give the sentences of a treebank.")
        return gold, [result.sentence for result in self.parse_all(gold, **options)]

    def vectors(
        self, texts: Texts, at: Literal["word", "boundary", "span", "head"] = "word", *, layer: str | None = None,
        batch_words: int | None = None, progress: bool = False,
    ) -> Vectors:  # fmt: skip
        """Return (array [rows, size], index): vectors of the network, and a table that describes the vector of each row.

        >>> array, index = parser.vectors(treebank, at="head")  # doctest: +SKIP
        >>> array[index["head"] == 3]                           # doctest: +SKIP

        Args:
            texts: the sentences to parse.
            at: "word": the vectors of words that the last layer reads. "boundary": the vectors of the places between words,
                before the first and after the last word, of all heads together. "span": for each constituent of the parse, the
                last boundary minus the first, which is scored. "head": the context of each label head of the paper's layer.
            layer: the vectors of words at another layer: "embeddings" (which the first layer of the pretrained encoder reads), a
                layer such as "pretrained.0" or "encoder.0", or a point of `hooks`. A word's last sub-word stands for it.
            batch_words, progress: as in `lalkit.network.model.Model.predict`. With `layer`, sentences are parsed one by one.

        Raises:
            ModelError: "head", and the parser does not have the paper's layer.
            LalkitError: "span", and the parser has no constituents. Or `layer` is unknown, or has no vectors for this `at`.
        """
        if layer is not None:
            if at != "word":
                raise ParameterError(f"a layer has no vectors at {at!r}", remedy='Leave layer out, or give at="word".')
            return patching.vectors_of_layer(self.model, self._sentences(texts), layer, progress)
        return patching.vectors(self.model, self._sentences(texts), at, batch_words, progress)

    def without(self, heads: int | str | Iterable[int | str]) -> Change:
        """Remove label heads inside the `with` block: `with parser.without(heads=[3, 7]):`. In nested blocks, all changes hold.

        >>> with parser.without(heads=[3, 7]):
        ...     changed = parser.parse("It rained.")

        A change holds in the thread that entered the block. A new thread starts without changes.

        Joint ablation: without the four heads that most often lead an NP.

        >>> top = parser.explain(treebank, "NP").top()["head"].value_counts().index[:4]
        >>> with parser.without(heads=top):
        ...     scores = parser.evaluate(treebank)

        heads: numbers, or labels if each label has its own head. Paper's layer: the head's slice of the output is 0. Label
        attention inside the span: the head's evidence is 0; the boundary score of its label stays. A result belongs to the
        network that parsed it: explain it inside the same block. Raises ParameterError for a head that does not exist.
        """
        source = self.attribution
        return Change([(source.layer, source.without(heads, torch.zeros(source.heads))["head out"])], self)

    def hooks(self) -> pd.DataFrame:
        """Return the points where `activations` reads values and `patched` changes them: point, axes of the value.

        >>> parser.hooks().iloc[0].tolist()
        ['words', 'batch position dim']

        pretrained.K and encoder.K are layers of self-attention; some pretrained encoders lack some points. In `patched`, words=
        chooses on the axis position (0 is START), word, place (between words) or sub-word; heads= on the axis head or label.
        """
        return patching.hooks(self.model)

    def activations(self, texts: Texts, points: str | Iterable[str]) -> list[dict[str, Tensor]]:
        """Return the values at these hook points, for each sentence alone: `patched` puts them into another sentence.

        >>> parser.activations("It rained.", "words")[0]["words"].shape
        torch.Size([1, 5, 256])

        Raises ParameterError for an unknown point, and at `pretrained` for a sentence that this encoder reads in parts.
        """
        return patching.activations(self.model, self._sentences(texts), points)

    def patched(
        self, points: Mapping[str, Any], words: int | Iterable[int] | None = None, heads: Heads | None = None
    ) -> Change:
        """Change values inside the `with` block, at the hook points that `hooks` lists (activation patching).

        >>> saved = parser.activations("We left.", "encoder.0.contexts")[0]
        >>> with parser.patched(saved, heads=3):
        ...     changed = parser.parse("It rained.")

        Args:
            points: At each point a function of the value, or a tensor to put there, such as a value that `activations` saved.
            words: Change only these words, by number from 1; on the axis place, these places, from 0; None: all.
            heads: Change only these heads, by number, or by label if each label has its own head; None: all.

        Raises:
            ParameterError: There is no such point, word or head, the tensor has another shape than the value, or a function
                fails (as when it parses with this parser) or returns something else than numbers.
        """
        return patching.patched(self.model, points, words, heads, self)

    def self_attention(self, texts: Texts, layer: Literal["encoder", "pretrained"] = "encoder") -> SelfAttention:
        """Return the attention between words of every self-attention head: see `tables.SelfAttention`.

        >>> parser.self_attention("It rained.").arrays[0].shape  # layers, heads; START, 3 words and STOP
        (1, 8, 5, 5)

        layer: the encoder of the parser, or the pretrained encoder before it (as the parser has trained it).

        Raises:
            ModelError: The parser has no such layers, or they give no attention.
            LalkitError: There is no sentence, or one is too long for the pretrained encoder.
        """
        return patching.self_attention(self.model, self._sentences(texts), layer)

    def _sentences(self, texts: Texts) -> list[Sentence]:
        if sentences := self.reader.prepared(sentences_of(texts, self.reader.hyphens)):
            return sentences
        raise LalkitError("there is nothing to parse", remedy="Give at least one sentence.")

    def playground(self, height: int = 900, host: str = "127.0.0.1", port: int = 0) -> LocalServer:
        """Serve a page on which sentences are typed and parsed; in a notebook, show it in a frame. `.close()` ends it.

        >>> parser.playground()  # doctest: +SKIP

        There is one server for each parser: a later call returns it, and changes only its height. The browser must run on the
        same machine as Python: for a remote machine, forward the port (`ssh -L`).

        Args:
            height: Of the frame, in pixels.
            host: The address to listen to; by default only this machine can reach the page.
            port: Its port; 0 means any free one.

        Raises:
            LalkitError: The parser has no joint trees or no label attention, or the port is in use.
        """
        from lalkit.draw.pages import asset, render
        from lalkit.draw.playground import LocalServer, TypedSentences

        server = PLAYGROUNDS.get(self)
        if server is None or not server.thread.is_alive():
            check_joint(self.config.model.task)
            typed = TypedSentences(self)
            first = render(
                "draw/playground.html.jinja", model=self.info.get("name", "a parser"), heads=typed.heads, example=typed.example,
                characters=PAGE_CHARACTERS, trees=PAGE_TREES,
            )  # fmt: skip
            files = {f"/{name}": asset(name) for name in ("playground.css", "playground.js", "typing.js")}
            answers: dict = {"/parse": typed.trees, "/explore": typed.page}
            server = LocalServer({"/": first, **files, **answers}, host, port)
            PLAYGROUNDS[self] = server
        server.height = height
        return server

    def view(self, texts: Texts, **options) -> AttentionView:
        """Return the label attention in the form that `lalkit.probes` measures. options: those of `Explainer.view`.

        >>> parser.view("It rained.").weights.shape
        torch.Size([1, 64, 1, 5])
        """
        return self.attribution.view(self._sentences(texts), **options)


@checked
def load(name: str | Path = "default", precision: Precision = "fp32", device: str = "cpu") -> Parser:
    """Load a parser by name, from a folder, or from the hub: see `Parser.load`. Without a name, the usual English parser.

    >>> lalkit.load("en-news").device
    device(type='cpu')
    """
    return Parser.load(name, precision, device)


@checked
def compare(first: Any, second: Any, texts: Texts | None = None) -> Comparison:
    """Compare two parsers on the same sentences, two lists of results, or a parser or list of results with gold trees.

    >>> lalkit.compare(parser, lalkit.load("en-news-span"), treebank)
    Comparison of 3 sentences: 1 differ

    Args:
        first: A parser; or a result, a Sentence, a list of these, or a treebank.
        second: As first.
        texts: The sentences that parsers parse; two parsers need them. None: those of the other side.

    Returns:
        A `Comparison`. A notebook displays its `.table`, which has a row for each sentence.

    Raises:
        LalkitError: The sentences are not the same, or there are none.
    """
    from lalkit.evaluation.scores import Comparison

    sides = [side if isinstance(side, Parser) else _trees(side) for side in (first, second)]
    if texts is None:
        texts = next((side for side in sides if not isinstance(side, Parser)), [])
    sentences = sentences_of(texts, all(side.reader.hyphens for side in sides if isinstance(side, Parser)))
    trees = (_trees(side.parse_all(sentences)) if isinstance(side, Parser) else side for side in sides)
    return Comparison(*map(tuple, trees))


def sentences_of(texts: Texts, hyphens: bool = True) -> list[Sentence]:
    """Return the sentences of a treebank, of a list of texts, or of one text."""
    return read_sentences([texts] if isinstance(texts, str | Sentence) else texts, "raw", hyphens)


def _trees(items: Any) -> list[Sentence]:
    items = [items] if isinstance(items, ParseResult | Sentence) else in_order(items, "results")
    trees = [item.sentence if isinstance(item, ParseResult) else item for item in items]
    if wrong := [tree for tree in trees if not isinstance(tree, Sentence)]:
        raise LalkitError(f"{shown(wrong[0])} is no result", remedy="Give parsers, results or Sentences.")
    return trees
