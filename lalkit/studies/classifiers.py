"""LSTM classifiers whose attention explains more (Mohankumar et al. 2020): models, training, measures, study.

word vectors e_t -> a state h_t for every word -> additive attention alpha -> context c = sum alpha_t h_t -> a class

Sources: [P] Mohankumar et al. 2020, [C] the authors' program, [D] our decision.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lalkit.config import Count, CountOrZero, Number, Seed, Settings, Size, override
from lalkit.errors import ModelError
from lalkit.evaluation.provenance import parts_hash
from lalkit.network.batches import pad
from lalkit.network.label_attention import NORMALISERS, OUTSIDE
from lalkit.probes.perturbation import ask
from lalkit.probes.view import AttentionView, Outcome, judged, tidy
from lalkit.probes.weights import agree, attribute, diversity_loss, look_at
from lalkit.studies import frame
from lalkit.studies.frame import PADDING, UNKNOWN, Trained, exact, in_order
from lalkit.studies.texts import OF_PENN, Text, Texts, load

logger = logging.getLogger(__name__)

Kind = Literal["vanilla", "orthogonal", "diversity", "mlp", "sparsemax"]  # the last is ours [D]
KINDS = get_args(Kind)
TINY = 1e-6  # a sum of states with a smaller norm has no direction yet
SIZE = 100  # texts in a batch of measuring
BINS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the largest weight
QUANTILES = {"p5": 0.05, "low": 0.25, "median": 0.5, "high": 0.75, "p95": 0.95}
ROUNDS = 100  # permutations
# Texts for which each method computes gradients, which takes the most time
ATTRIBUTED = {"gradient": 300, "integrated": 100}


@dataclass(frozen=True)
class ClassifierConfig(Settings):
    """The settings of one classifier and of its training. They are saved in the folder of its run."""

    model: Kind = "vanilla"
    embedding: Size = 100  # [D] learned; [P] has 300, pretrained
    hidden: Size = 128  # [D]; [P] 256. The attention has half of it [C]
    diversity: Number = 0.5  # [P] weight (lambda) of the conicity in the loss of 'diversity'
    min_count: CountOrZero = 2  # rarer words are unknown [D]
    seed: Seed = 1
    epochs: Count = 6  # [D]; [C] 8
    stop_at: Number = 1.0  # training ends at this accuracy on dev [D]
    batch: Count = 32  # [C]
    rate: Number = 1e-3  # [P] Adam, in its AMSGrad form [C]
    weight_decay: Number = 1e-5  # [C]; 0 on the parameters of the attention


# Settings other than the defaults, by the beginning of the data's name. As [P], we chose the weight of diversity on dev. On
# subjectivity, with 0.5, the conicity of the states is still 1.16 times that of random states (above 1.15). With 1.0 it is 0.83
# times that, and the accuracy is as good (87.3 on dev).
USUAL = {"subjectivity": {"epochs": 5, "diversity": 1.0}}


# ---------------------------------------------------------------- batches


class Batch(NamedTuple):
    """B texts as padded tensors: x [B, T], the ids of their words; mask [B, T]; label [B]."""

    x: Tensor
    mask: Tensor
    label: Tensor


@dataclass(frozen=True)
class Vocabulary:
    """The words of texts, and the classes. The ids of words begin after the unknown word."""

    words: tuple[str, ...]
    classes: tuple[str, ...]

    @cached_property
    def ids(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words, UNKNOWN + 1)}

    @classmethod
    def build(cls, texts: Sequence[Text], config: ClassifierConfig) -> Vocabulary:
        """Collect the words and the classes of the training part."""
        words = frame.frequent((text.words for text in texts), config.min_count)
        return cls(tuple(sorted(words)), tuple(sorted({text.label for text in texts})))


# ---------------------------------------------------------------- the model


class LSTM(nn.Module):
    """Read word vectors x [B, T, e] from left to right into states [B, T, d]. Padding after a text cannot change them.

    The first state is zero (the authors' program draws it at random in every pass).
    """

    def __init__(self, size: int, hidden: int):
        super().__init__()
        self.lstm = nn.LSTM(size, hidden, batch_first=True)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return self.lstm(x)[0]


class OrthogonalLSTM(LSTM):
    """Make every state orthogonal to the sum S of the states before it (Mohankumar et al. 2020, eq. 1 and 2):

        h_t = h^_t - (h^_t . S) / (S . S) S        S = sum_{i<t} h_i

    The recurrence and the attention use h_t. The cell c_t stays as it is. We depart from the paper's program: we project on S
    itself, and do it twice. In float32 this leaves |cos(h_t, S)| at 1e-7. The authors' program divides by |mean|^2 + 1e-6,
    which leaves up to 0.99 for small states. Padding neither changes a state nor adds to S.
    """

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        from_x, from_h, bias_x, bias_h = self.lstm.all_weights[0]
        inputs = x @ from_x.T + (bias_x + bias_h)
        h = c = total = x.new_zeros(len(x), self.lstm.hidden_size)
        states = []
        for t, step in enumerate(inputs.unbind(1)):  # unbound at once: the gradient of each x[:, t] is as large as x
            gates = torch.addmm(step, h, from_h.T)
            i, f, _, o = torch.sigmoid(gates).chunk(4, dim=-1)
            cell = f * c + i * torch.tanh(gates.chunk(4, dim=-1)[2])
            state = o * torch.tanh(cell)
            direction = F.normalize(total, dim=-1, eps=TINY)
            for _ in range(2):
                state = state - (state * direction).sum(-1, keepdim=True) * direction
            real = mask[:, t, None]
            h, c, total = torch.where(real, state, h), torch.where(real, cell, c), total + real * state
            states.append(h)
        return torch.stack(states, dim=1)


class PerToken(nn.Module):
    """The control without context: h_t = ReLU(W e_t + b)."""

    def __init__(self, size: int, hidden: int):
        super().__init__()
        self.linear = nn.Linear(size, hidden)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return torch.relu(self.linear(x))


ENCODERS = dict.fromkeys(KINDS, LSTM) | {"orthogonal": OrthogonalLSTM, "mlp": PerToken}


class AdditiveAttention(nn.Module):
    """s_t = v . tanh(W h_t + b), then a softmax (or sparsemax) over the words of the text."""

    def __init__(self, size: int, normaliser: str = "softmax"):
        super().__init__()
        self.normalise = NORMALISERS[normaliser]
        self.states = nn.Linear(size, size // 2)
        self.score = nn.Linear(size // 2, 1, bias=False)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        scores = self.score(torch.tanh(self.states(states)))[..., 0]
        return self.normalise(scores.masked_fill(~mask, OUTSIDE), dim=-1)


class Classified(NamedTuple):
    """logits [B, C]; attention [B, T], 0 on padding; states [B, T, d]."""

    logits: Tensor
    attention: Tensor
    states: Tensor


class Classifier(Trained):
    """Batch -> Classified."""

    form, Config, Vocabulary = "lalkit-classifier-1", ClassifierConfig, Vocabulary

    def __init__(self, config: ClassifierConfig, vocabulary: Any):
        super().__init__(config, vocabulary)
        self.words = nn.Embedding(len(vocabulary.words) + 2, config.embedding, padding_idx=PADDING)
        self.encoder = ENCODERS[config.model](config.embedding, config.hidden)
        self.attention = AdditiveAttention(config.hidden, "sparsemax" if config.model == "sparsemax" else "softmax")
        self.output = nn.Linear(config.hidden, len(vocabulary.classes))

    def collate(self, texts: Sequence[Text]) -> Batch:
        """Return a batch. Raises ModelError without texts, and for an unknown class."""
        ids, classes = self.vocabulary.ids, self.vocabulary.classes
        if not texts or not {text.label for text in texts} <= set(classes):
            raise ModelError("the classifier cannot read these texts", remedy=f"Give texts of {classes}.")
        x = pad([[ids.get(word, UNKNOWN) for word in text.words] for text in texts])
        return Batch(x, x != PADDING, torch.tensor([classes.index(text.label) for text in texts]))

    def forward(self, batch: Batch) -> Classified:
        return self.read(self.words(batch.x), batch.mask)

    def read(self, embedded: Tensor, mask: Tensor, through_attention: bool = True) -> Classified:
        """Classify from word vectors [B, T, e].

        through_attention: False makes the attention a constant for gradients. The authors' program does so, and therefore its
        integrated gradients do not add up.
        """
        states = self.encoder(embedded, mask)
        weights = self.attention(states, mask)
        weights = weights if through_attention else weights.detach()
        return Classified(self.output(torch.einsum("bt,btd->bd", weights, states)), weights, states)

    def loss(self, batch: Batch) -> Tensor:
        """Return the cross-entropy. For 'diversity' add the weighted mean conicity, with absolute cosines.

        The paper's cosines are signed. With those, training finds one huge state to which all others are opposite.
        """
        output = self(batch)
        loss = F.cross_entropy(output.logits, batch.label)
        if self.config.model == "diversity":
            loss = loss + self.config.diversity * diversity_loss(output.states[:, None], batch.mask)
        return loss

    @torch.inference_mode()
    def score(self, texts: Sequence[Text]) -> float:
        """Return the share of texts whose class is predicted correctly."""
        self.eval()
        batches = map(self.collate, in_order(texts, SIZE))
        return sum(int((self(batch).logits.argmax(-1) == batch.label).sum()) for batch in batches) / len(texts)

    def optimizer(self) -> torch.optim.Optimizer:
        attention = set(self.attention.parameters())
        others = [p for p in self.parameters() if p not in attention]
        groups: list[dict[str, Any]] = [{"params": others}, {"params": [*attention], "weight_decay": 0.0}]  # [C]
        return torch.optim.Adam(groups, self.config.rate, weight_decay=self.config.weight_decay, amsgrad=True)


# ---------------------------------------------------------------- the model as the probes see it


@torch.no_grad()
def view(model: Classifier, batch: Batch, examples: Sequence[int] = ()) -> AttentionView:
    """Return the classifier as the probes see it: one head, one query and one decision for each text.

    weights [B, 1, 1, T] -> contexts -> the output layer, for any number of weights at once. examples: the number of each text
    in its data.
    """
    output, query = model(batch), torch.ones_like(batch.mask[:, :1])

    @torch.no_grad()
    def from_contexts(contexts: Tensor) -> Outcome:
        logits = model.output(contexts[..., 0, 0, :])
        return judged(torch.softmax(logits, dim=-1)[..., None, :], query, batch.label[:, None])

    weights, values = output.attention[:, None, None], output.states[:, None]
    return AttentionView(weights, values, batch.mask, query, ("attention",), tuple(examples), from_contexts)


def from_words(model: Classifier, batch: Batch, through_attention: bool = True) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the function for `attribute`: (embedded [K, T, e], rows of the batch [K]) -> probabilities [K, C]."""
    return lambda words, rows: torch.softmax(model.read(words, batch.mask[rows], through_attention).logits, dim=-1)


# ---------------------------------------------------------------- measures


def measure(model: Classifier, texts: Sequence[Text]) -> pd.DataFrame:
    """Return the long table of all probes; its system is the kind of model, its seed that of the training.

    Measures besides those of `look_at` and `ask`: right, length, isotropic, and pearson_ and jsd_ of each method of `ATTRIBUTED`,
    with gradients that go through the attention, and with fixed attention (_fixed), as in the authors' program and table 4.
    """
    model, tables = exact(model), []
    labels: dict[str, Any] = {"system": model.config.model, "seed": model.config.seed}
    for group in in_order(range(len(texts)), SIZE):
        batch = model.collate([texts[i] for i in group])
        seen = view(model, batch, group)
        outcome, length = seen.predict(seen.weights), seen.key_mask.sum(1).double()
        tables += [look_at(seen, **labels), ask(seen, ROUNDS, **labels)]
        simple = {"right": outcome.score[:, 0], "length": length, "isotropic": length.rsqrt()}
        tables += [tidy(value, "b", name, seen, **labels) for name, value in simple.items()]
        embedded, rows = model.words(batch.x).detach(), torch.arange(len(group))
        for method, through in product(ATTRIBUTED, (True, False)):
            name = method if through else f"{method}_fixed"
            wanted = (torch.tensor(group) < ATTRIBUTED[method])[:, None]
            if wanted.any():
                found = attribute(from_words(model, batch, through), embedded, outcome.decision[:, 0], method, rows)
                for kind, value in zip(("pearson", "jsd"), agree(found[:, None], seen.weights[:, 0, 0], batch.mask)):
                    tables.append(tidy(value, "bu", f"{kind}_{name}", seen, wanted, **labels))
    return pd.concat(tables, ignore_index=True)


@torch.no_grad()
def samples(models: Sequence[Classifier], texts: Sequence[Text]) -> pd.DataFrame:
    """Return a row for each word of some texts, with the attention of each model (table 1).

    Columns: example, label, system, seed, said (the class of the model), place, word, tag, attention.
    """
    tables = []
    for model, (i, text) in ((model, pair) for pair in enumerate(texts) for model in models):
        output = model(model.collate([text]))
        about = {"example": i, "label": text.label, "system": model.config.model, "seed": model.config.seed}
        about |= {"said": model.vocabulary.classes[int(output.logits.argmax())], "place": range(len(text.words))}
        about |= {"word": text.words, "tag": text.tags or "", "attention": output.attention[0].tolist()}
        tables.append(pd.DataFrame(about))
    return pd.concat(tables, ignore_index=True)


def attention_by_tag(words: pd.DataFrame) -> pd.DataFrame:
    """Return for each universal tag its share of all attention and of all words, in percent, and its number of words (figure 5).

    words: from `samples`. Words without tags are left out.
    """
    groups = words[words["tag"] != ""].groupby(["system", "seed", "tag"], sort=False)["attention"].agg(["sum", "count"])
    shares = 100 * groups / groups.groupby(["system", "seed"]).transform("sum")
    table = shares.set_axis(["attention", "words"], axis=1).assign(n=groups["count"])
    return table.reset_index().sort_values(["system", "seed", "tag"], ignore_index=True)


# ---------------------------------------------------------------- the study


def study(
    data: Sequence[str], kinds: Sequence[str], seeds: Sequence[int], folder: str | Path, *,
    train: int = 0, test: int = 0, settings: dict[str, str] | None = None,
) -> dict[str, pd.DataFrame]:  # fmt: skip
    """Train and measure every kind of classifier on every data set with every seed. Runs are in FOLDER/DATA/KIND-SEED.

    A finished run is read and not repeated, as long as its settings, data and classifier are the same.

    Args:
        data: Corpora of NLTK, see `texts.load`.
        kinds: Of `KINDS`.
        train, test: Number of texts of these parts; 0 means all.
        settings: Settings of ClassifierConfig that replace the usual ones.

    Returns: the tables of notebook 16: runs, `quantiles`, tags (attention by tag), and words (the attention of all models on one
        text of the last data set).

    Raises: ModelError for an unknown kind or a run of other data, CorpusError for data that are not here.
    """
    sets = [load(name).shortened(train, test=test) for name in dict.fromkeys(data)]
    measures, attention, folders = [], [], []

    def measured(run: Path, texts: Texts) -> dict[str, pd.DataFrame]:
        model = Classifier.load(run)
        tags = attention_by_tag(samples([exact(model)], texts.test))
        return {"measures": measure(model, texts.test), "tags": tags}

    for texts in map(with_tags, sets):
        folders, task = [], [ROUNDS, ATTRIBUTED, parts_hash([("test", texts.test)])]
        for seed, kind in frame.grid(kinds, KINDS, seeds):
            run, epochs = trained(folder, texts, kind, seed, settings)
            folders.append(run)
            tables = frame.kept_tables(run, task, partial(measured, run, texts))
            measures.append(tables["measures"].assign(data=texts.name, train=len(texts.train), epochs=epochs))
            attention.append(tables["tags"].assign(data=texts.name))
    table, one = pd.concat(measures, ignore_index=True), min(sets[-1].test, key=lambda text: abs(len(text.words) - 12))
    words = samples([Classifier.load(run) for run in folders], [one]).assign(data=sets[-1].name, question="")
    tags = pd.concat(attention, ignore_index=True)
    return {"runs": runs(table), "quantiles": quantiles(table), "tags": tags, "words": words}


def trained(
    folder: str | Path, data: Texts, kind: str, seed: int, settings: dict[str, str] | None = None
) -> tuple[Path, int]:
    """Train a classifier of the study, unless that is done already. Return its folder and the number of its epochs."""
    run, usual = Path(folder, data.name, f"{kind}-{seed}"), USUAL.get(data.name.partition("-")[0], {})
    config = override(replace(ClassifierConfig(kind, seed=seed), **usual), settings or {})  # type: ignore[arg-type]
    return run, frame.train(Classifier, config, data, run)["epoch"]


def with_tags(data: Texts) -> Texts:
    """Return the data with the universal parts of speech of NLTK's tagger in the test part.

    Without the tagger, log how to get it, and return the data as they are.
    """
    from nltk.tag import PerceptronTagger

    try:
        tagger = PerceptronTagger()
    except LookupError:
        logger.info("%s gets no parts of speech: python -m nltk.downloader averaged_perceptron_tagger_eng", data.name)
        return data
    tags = (tuple(OF_PENN.get(tag, "X") for _, tag in tagger.tag(text.words)) for text in data.test)
    return replace(data, test=tuple(replace(text, tags=own) for text, own in zip(data.test, tags)))


def runs(measures: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each run, with the mean of every measure over texts (MEASURE) and its median (MEASURE_median).

    Texts for which a measure is not defined are left out of it. The accuracy is in percent. measures: of `measure`.
    """
    groups = measures.groupby(["data", "system", "seed", "train", "epochs", "measure"], sort=False)["value"]
    mean, median = groups.mean().unstack("measure"), groups.median().unstack("measure").add_suffix("_median")
    table = mean.join(median).reset_index()
    return table.assign(accuracy=100 * table["right"])


def quantiles(measures: pd.DataFrame) -> pd.DataFrame:
    """Return how erasure and permutation (figures 3 and 4) are spread over the texts of all seeds.

    Texts of one word are left out of permutation. A bin without texts has nan.

    Returns: data, system, measure, texts (all; right: those that are classified correctly; for tvd the texts are grouped by their
        largest weight), n, and the quantiles p5, low, median, high, p95.
    """
    index = ["data", "system", "seed", "example"]
    wide = measures.dropna(subset="example").pivot_table("value", index, "measure", sort=False).reset_index()
    several = wide[wide["length"] > 1]
    names = [f"[{a:g}, {b:g}{']' if b == 1 else ')'}" for a, b in zip(BINS, BINS[1:])]
    bins = pd.cut(several["max_attention"], [*BINS[:-1], np.inf], right=False, labels=names).rename("texts")
    spread = several.groupby([*index[:2], bins], sort=False, observed=False)["tvd"].describe()
    spread = spread[["count", "25%", "50%", "75%"]].set_axis(["n", "low", "median", "high"], axis=1)
    tvd = spread.reset_index().astype({"n": int, "texts": str})
    parts = [tvd.assign(measure="tvd")]
    for texts, rows in (("all", wide), ("right", wide[wide["right"] == 1])):
        for name in ("erased", "erased_random"):
            values = rows.groupby(index[:2], sort=False)[name]
            columns = {column: values.quantile(q) for column, q in QUANTILES.items()}
            table = pd.DataFrame({"n": values.count(), **columns}).reset_index()
            parts.append(table.assign(measure=name, texts=texts))
    return pd.concat(parts, ignore_index=True).reindex(columns=[*index[:2], "measure", "texts", "n", *QUANTILES])
