"""Measure speed and memory as ratios: each fast routine against its equations, the parser against its bare encoder.

A ratio measures the algorithm. Milliseconds depend more on the machine and its other work. Both programs of a pair run in turn,
in one process. The slow twins at the end of this file are written straight from the equations, and read their weights from the
fast modules. Tests compare the results of both.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import math
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain
from statistics import median
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lalkit.chart import joint, joint_torch
from lalkit.chart import loss as losses_of_charts
from lalkit.chart.machine import compiled
from lalkit.chart.sums import marginals
from lalkit.config import LabelAttentionConfig, preset
from lalkit.errors import ParameterError, whole_number
from lalkit.network import model as modelling
from lalkit.network import parser as assembly
from lalkit.network.alignment import after_space, special_tokens
from lalkit.network.batches import IGNORE, Batch, batches, usual
from lalkit.network.label_attention import LabelAttention, Masks
from lalkit.network.model import Model, Precision, Prediction, Scored, bf16_is_fast, find_device, resolve_precision
from lalkit.network.parser import Network
from lalkit.network.scores import SpanScorer
from lalkit.reproduce.notebook import read_list
from lalkit.training.objective import MAX_LENGTH, losses, make_optimizer, milliseconds
from lalkit.treebank.check import trainable
from lalkit.treebank.corpora import find, load
from lalkit.treebank.text import script, script_of_letters
from lalkit.treebank.tree import Sentence

logger = logging.getLogger(__name__)

# The ratio of these routines is our time / the baseline's; that of the others is the baseline's time / ours.
MULTIPLES = ("probabilities", "parse", "parts", "train")
HEADS = LABELS = 112  # label heads of the paper's layer; labels of its scorer
HOST = (10, 25, 60)  # words of the sentences of `host`
STEPS = 4  # batches of a measured training, evenly spread over lengths


@dataclass(frozen=True)
class Settings:
    """device: cpu or cuda. repeats: rounds of each comparison. preset: the network of `parse`, `host` and `train`."""

    device: str = "cpu"
    repeats: int = 7
    preset: str = "minilm"


def bench(names: Sequence[str] | str, settings: Settings) -> list[dict]:
    """Return the rows of the named routines, or of all if no name is given. A text is read as papermill writes a list.

    Raises ParameterError for an unknown routine, for a device that is not there, and for fewer than one round.
    """
    names = read_list(names)
    if unknown := sorted(set(names) - set(ROUTINES)):
        raise ParameterError(f"there is no routine {unknown[0]!r}", remedy=f"Routines: {', '.join(ROUTINES)}.")
    find_device(settings.device)
    whole_number("--repeats", settings.repeats, 1)
    rows = []
    for name in names or ROUTINES:
        logger.info("%s ...", name)
        rows += ROUTINES[name](settings)
    return rows


def table(rows: list[dict]) -> str:
    """Return the rows as text."""
    frame = pd.DataFrame(rows).drop(columns=["device", "baseline_ms"])
    unit = np.where(frame["routine"].isin(MULTIPLES), "x as long", "x as fast")
    return frame.assign(unit=unit).to_string(index=False, na_rep="", float_format="%.2f")


# ---------------------------------------------------------------- how it is measured


def compare(
    settings: Settings, routine: str, case: str, mode: str, baseline: str, ours: Callable, theirs: Callable, memory=True
) -> dict:
    """Return a row that compares two functions; see `row`.

    memory: also compare the peaks of memory, as ours / baseline; never for `MULTIPLES`, whose baseline is a part of ours.
    """
    compared = row(settings, routine, case, mode, baseline, alternate(settings, ours, theirs))
    if memory and routine not in MULTIPLES:
        compared["memory_ratio"] = round(peak_bytes(ours, settings.device) / peak_bytes(theirs, settings.device), 3)
    return compared


def alternate(settings: Settings, *functions: Callable, clock: Callable = time.perf_counter) -> list[tuple[float, ...]]:
    """Return the milliseconds of each function, called in turn `repeats` times. A first call of each is not counted."""
    rounds = [tuple(milliseconds(f, settings.device, clock) for f in functions) for _ in range(settings.repeats + 1)]
    return rounds[1:]


def row(settings: Settings, routine: str, case: str, mode: str, baseline: str, pairs: Sequence[tuple]) -> dict:
    """Return a row of the table from the milliseconds (ours, baseline) of each round: medians, and the range of ratios."""
    ratios = [a / b if routine in MULTIPLES else b / a for a, b in pairs]
    found = {"routine": routine, "case": case, "mode": mode, "device": settings.device, "baseline": baseline}
    numbers = {"ours_ms": median(a for a, _ in pairs), "baseline_ms": median(b for _, b in pairs)}
    numbers |= {"ratio": median(ratios), "ratio_min": min(ratios), "ratio_max": max(ratios)}
    return found | {name: round(number, 4) for name, number in numbers.items()} | {"memory_ratio": None}


def peak_bytes(function: Callable, device: str = "cpu") -> int:
    """Return the most bytes that torch holds at once while the function runs, beyond what it held before; at least 1."""
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        function()
        return max(1, torch.cuda.max_memory_allocated() - before)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        function()
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    changes = [event.nbytes() for event in sorted(events, key=lambda e: e.start_ns())]
    return max(1, *accumulate(changes, initial=0))


# ---------------------------------------------------------------- single routines


def layer(settings: Settings) -> list[dict]:
    """Compare the label attention layer with its equations: forward, forward and backward, and from its cache."""
    modes = ("forward", "forward+backward", "cached")
    return [layer_row(settings, *size, HEADS, mode) for size in ((8, 30), (32, 30), (1, 60)) for mode in modes]


def layer_row(settings: Settings, count: int, words: int, heads: int, mode: str) -> dict:
    """Return the row of one batch: d_model 1024, d_kv = d_out = 128, no dropout. START and STOP come in addition."""
    case = f"{count}x{words}"
    torch.manual_seed(0)
    config = LabelAttentionConfig(heads=heads)
    module = LabelAttention(config, 512, 512).to(settings.device).train(mode != "cached")
    x = torch.randn(count, words + 2, 1024, device=settings.device, requires_grad=mode == "forward+backward")
    mask = torch.ones(count, words + 2, dtype=torch.bool, device=settings.device)
    gradient = torch.randn(count, words + 2, heads, 128, device=settings.device)

    def run(function) -> None:
        with torch.set_grad_enabled(x.requires_grad):
            y = function(x, mask)[0]
        if x.requires_grad:
            y.backward(gradient)
            module.zero_grad(set_to_none=True)  # after the pass: memory that was held before it is not counted
            x.grad = None

    both = partial(run, partial(module, dropout=Masks())), partial(run, partial(label_attention_twin, module))
    return compare(settings, "layer", case, mode, "the equations, batched", *both)


@torch.no_grad()
def spans(settings: Settings) -> list[dict]:
    """Compare the scores of all spans of a sentence with equations 5 and 6, which form every span vector first."""
    torch.manual_seed(0)
    scorer, rows = SpanScorer(HEADS * 128, 250, LABELS, 0.0).to(settings.device).eval(), []
    for words in (20, 40, 80):
        posts = torch.randn(1, words + 1, HEADS, 128, device=settings.device)
        both = (lambda: scorer.chart(scorer.project(posts))), partial(span_scores_twin, scorer, posts)  # noqa: B023
        rows.append(compare(settings, "spans", f"{words} words", "forward", "every span vector formed", *both))
    return rows


def random_chart(words: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    labels = rng.normal(size=(words + 1, words + 1, LABELS)).astype(np.float32)
    labels[..., 0] = 0
    return labels, rng.normal(size=(words, words + 1)).astype(np.float32)


def on_charts(settings: Settings, lengths: Sequence[int], name: str, mode: str, baseline: str, *both) -> list[dict]:
    """Compare two functions of a chart, for sentences of these lengths."""
    rows = []
    for words in lengths:
        fast, slow = (partial(function, *random_chart(words), 0.5) for function in both)
        rows.append(compare(settings, name, f"{words} words", mode, baseline, fast, slow, memory=False))
    return rows


def decode(settings: Settings) -> list[dict]:
    """Compare joint decoding of one random chart, O(n^4), with O(n^5). Both are compiled; only ours builds the tree."""
    return on_charts(settings, (10, 20, 40, 80), "decode", "numba", "O(n^5), numba", joint.decode, best_score_twin)


def probabilities(settings: Settings) -> list[dict]:
    """Compare the probabilities of all parts of a sentence with decoding it. They take at most 12 times as long."""
    return on_charts(settings, (20, 40, 80), "probabilities", "inside and outside", "decoding", marginals, joint.decode)


# ---------------------------------------------------------------- the whole parser


def model_and_sentences(settings: Settings) -> tuple[Model, list[Sentence], str]:
    """Return (model with new upper layers, sentences of a test part, the name of these sentences).

    The sentences are the test part of the PTB sample, or of our own sample where that corpus is missing. Raises ParameterError
    for an encoder that is not a pretrained one, which is the baseline.
    """
    config = preset(settings.preset)
    if config.model.encoder.pretrained is None:
        problem = f"the preset {settings.preset} has no pretrained encoder to compare with"
        raise ParameterError(problem, remedy="Try --preset minilm.")
    treebank, name = ("ptb-sample", "PTB sample test") if find("ptb-sample") else ("sample", "sample test")
    train, test = (list(load(treebank, part).sentences) for part in ("train", "test"))
    model = Model.new(config, train, settings.device)
    model.network.eval()
    return model, test, name


def parse(settings: Settings) -> list[dict]:
    """Compare parsing, from sentences to checked trees, with the bare encoder in fp32 on the same batches.

    Returns one row for each precision that the hardware has, with words per second and the processor's name; one row for
    each part of the parser in fp32 against the whole; and one for the sum of the parts.
    """
    model, sentences, name = model_and_sentences(settings)
    network = model.network
    groups = batches([len(s) for s in sentences], usual(settings.device))
    ready = [model.collator([sentences[i] for i in group]).to(settings.device) for group in groups]
    parse_all = partial(model.parse, sentences)

    @torch.inference_mode()
    def encode() -> None:
        for batch in ready:
            network.words.transformer(input_ids=batch.subwords, attention_mask=batch.subword_mask.long())  # type: ignore[operator]

    device = settings.device
    baseline = torch.cuda.get_device_name(device) if device != "cpu" else torch.cpu.get_capabilities().get("cpu_name")
    usable: list[Precision] = ["fp32"]
    with contextlib.suppress(ParameterError):
        usable.append(resolve_precision("bf16", device))
    models = (replace(model, precision=precision) for precision in usable)
    rounds = alternate(settings, *(partial(each.parse, sentences) for each in models), encode)
    rows = []
    for place, precision in enumerate(usable):
        pairs = [(times[place], times[-1]) for times in rounds]
        speed = 1000 * sum(map(len, sentences)) / median(ours for ours, _ in pairs)
        mode = f"{settings.preset}, {precision}, {speed:,.0f} words/s"
        rows.append(row(settings, "parse", name, mode, f"bare encoder on {baseline or platform.processor()}", pairs))

    decoding = [(modelling, "decode_batch"), (modelling, "start_batch"), (joint_torch, "map_charts")]
    timed = network_parts(network) | {"decoding": decoding}
    return rows + part_rows(settings, f"{settings.preset}, {name}", "whole parser", parse_all, timed)


def network_parts(network: Network) -> dict[str, list[tuple]]:
    """Return the functions of each part of the network, each as its owner and its name."""
    return {
        "encoder": [(network.words.transformer, "forward")],
        "self-attention": [(network.encoder, "forward")],
        "label attention": [(network.label_attention, "forward"), (network.feedforward, "forward")],
        "spans": [(assembly, "fenceposts"), (network.spans, "project"), (network.spans, "chart")],
        "arcs": [(network.arcs, name) for name in ("parts", "arcs", "labels")],
    }


def part_rows(settings: Settings, mode: str, base: str, whole: Callable, timed: dict[str, list[tuple]]) -> list[dict]:
    """Return one row for each part of `whole` against all of it, and one for their sum. timed: as in `clocks`."""
    clocked = []  # the milliseconds of each part, in each round

    def with_clocks() -> None:
        with clocks(timed, settings.device) as spent:
            total = milliseconds(whole, settings.device)
        clocked.append({**spent, "everything else": total - sum(spent.values()), "sum": total})

    totals = [total for total, _ in alternate(settings, whole, with_clocks)]
    pairs = {part: [(times[part], total) for times, total in zip(clocked[1:], totals)] for part in clocked[0]}
    return [row(settings, "parts", part, mode, base, pairs[part]) for part in pairs]


@contextlib.contextmanager
def clocks(timed: dict[str, list[tuple]], device: str) -> Iterator[dict[str, float]]:
    """Count the milliseconds spent in the functions of each part while the block runs. No part may call another one."""
    spent = dict.fromkeys(timed, 0.0)

    def call(function: Callable, part: str, /, *args, **kwargs):
        results = []
        spent[part] += milliseconds(lambda: results.append(function(*args, **kwargs)), device)
        return results[0]

    with contextlib.ExitStack() as undo:
        for part, places in timed.items():
            for owner, name in places:
                if owner is not None:
                    undo.enter_context(patch.object(owner, name, partial(call, getattr(owner, name), part)))
        yield spent


def host(settings: Settings) -> list[dict]:
    """Compare the processor's work outside the network with slow twins: milliseconds for 1,000 words, part by part.

    The network's outputs are computed once. The sentences have 10, 25 and 60 words, or are those of the test part. Python's
    garbage collector is off meanwhile, as in timeit: the moment at which it runs depends on everything else in memory.
    """
    model, sentences, name = model_and_sentences(settings)
    words = [iter([word for sentence in sentences for word in sentence.words]) for _ in HOST]
    cases = {f"{n} words": [*map(Sentence, zip(*[each] * n))] for n, each in zip(HOST, words)} | {name: sentences}
    rows = []
    for case, chosen in cases.items():
        of_part = host_parts(settings, model, chosen)
        for part, (baseline, *both) in of_part.items():
            gc.disable()
            pairs = alternate(settings, *both, clock=time.process_time)
            gc.enable()
            of_part[part] = baseline, [tuple(1000 * ms / sum(map(len, chosen)) for ms in pair) for pair in pairs]
        for first in ("collation, warm", "collation, cold"):
            parts = [of_part[part][1] for part in (first, "preparing", "decoding", "assembling")]
            sums = [tuple(map(sum, zip(*pairs))) for pairs in zip(*parts)]
            of_part[first.replace("collation", "these four")] = "their slow twins", sums
        rows += [row(settings, "host", case, part, *measured) for part, measured in of_part.items()]
    return rows


@torch.inference_mode()
def host_parts(settings: Settings, model: Model, sentences: list[Sentence]) -> dict[str, tuple]:
    """Return, for each part of the host's work, the name of its baseline, our function and the baseline."""
    collator, lam = model.collator, model.config.train.lam
    groups = [[sentences[i] for i in group] for group in batches([len(s) for s in sentences], usual(settings.device))]
    scored = list(model.scores(sentences))
    trees = [model.decode(batch) for batch in scored]
    labels = [modelling.arc_labels(model, *pair) for pair in zip(scored, trees)]

    def collate(cold: bool) -> list[Batch]:
        collator.subwords.seen = {} if cold else collator.subwords.seen
        return [collator(group) for group in groups]

    def prepare(script_of: Callable) -> list[str]:
        return [script_of("".join(sentence.words)) for sentence in sentences]

    def decode(function: Callable, threads: int) -> list[list[joint.JointTree]]:
        return [function(batch, threads) for batch in scored]

    def best_by_torch(batch: Scored, threads: int) -> list[joint.JointTree]:
        lengths = [len(sentence) for sentence in batch.sentences]
        output = batch.output
        return joint_torch.start_batch(output.label_scores, output.arc_scores, lengths, lam, threads=threads)()

    def assemble(one: Callable) -> list[Prediction]:
        tags = [batch.output.tag_scores.argmax(-1).tolist() for batch in scored]
        of = zip((batch.sentences for batch in scored), trees, (x.argmax(-1).tolist() for x in labels), tags)
        rows = chain.from_iterable(zip(*batch) for batch in of)
        return [one(model, *row, None, "fp32") for row in rows]

    def as_lists() -> list[tuple[Tensor, ...]]:
        return [collate_twin(collator.tokenizer, group) for group in groups]

    ours = partial(decode, model.decode)
    return {
        "collation, cold": ("lists, word by word", partial(collate, True), as_lists),
        "collation, warm": ("lists, word by word", partial(collate, False), as_lists),
        "preparing": ("letter by letter", partial(prepare, script), partial(prepare, script_of_letters)),
        "decoding": ("best labels by torch", partial(ours, 1), partial(decode, best_by_torch, 1)),
        "decoding, 2 threads": ("1 thread", partial(ours, 2), partial(ours, 1)),
        "assembling": ("every layer checked", partial(assemble, modelling.assemble), partial(assemble, assemble_twin)),
    }


def train(settings: Settings) -> list[dict]:
    """Compare training steps of the whole parser with steps of its bare encoder, fine-tuned to tag words.

    Both collate, run forward and backward, clip and update (AdamW), in bf16 where that is faster. Then come the parts of our
    steps. "everything else" is mostly the host's work between two steps.
    """
    model, sentences, name = model_and_sentences(settings)
    network, config = model.network, model.config.train
    encoder: nn.Module = network.words.transformer  # type: ignore[assignment]
    tagger = nn.Linear(network.words.project.in_features, len(model.vocab.tags)).to(settings.device)
    short, _ = trainable(sentences, MAX_LENGTH)
    groups = batches([len(s) for s in short], config.batch_tokens)
    count = min(STEPS, len(groups))
    chosen = [[short[i] for i in groups[step * len(groups) // count]] for step in range(count)]
    autocast = config.autocast and bf16_is_fast(settings.device)

    def tagging_loss(batch: Batch) -> Tensor:
        hidden = encoder(input_ids=batch.subwords, attention_mask=batch.subword_mask.long()).last_hidden_state
        line, _, last = batch.places[:, 1:-1].unbind(-1)
        scores = tagger(hidden[line, last])
        return F.cross_entropy(scores.float().flatten(0, 1), batch.tags.flatten(), ignore_index=IGNORE)

    def parsing_loss(batch: Batch) -> Tensor:
        network.train()
        return losses(model, batch)["loss"]

    def update(parameters: list, optimizer) -> None:
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    stages = SimpleNamespace(collate=model.collator, backward=Tensor.backward, update=update)

    def steps(gold: bool, loss_of: Callable[[Batch], Tensor], parameters: list, optimizer) -> None:
        for group in chosen:
            batch = stages.collate(group, gold=gold).to(settings.device)
            with torch.autocast(settings.device, torch.bfloat16, enabled=autocast):
                loss = loss_of(batch)
            stages.backward(loss)
            stages.update(parameters, optimizer)

    trained = [p for p in network.parameters() if p.requires_grad]
    tuned = [p for p in (*encoder.parameters(), *tagger.parameters()) if p.requires_grad]
    whole = partial(steps, True, parsing_loss, trained, make_optimizer(network, config))
    bare = partial(steps, False, tagging_loss, tuned, torch.optim.AdamW(tuned, config.encoder_rate, fused=True))
    case = f"{len(chosen)} batches of {config.batch_tokens} words, {name}"
    timed = {
        "collation": [(stages, "collate")],
        **network_parts(network),
        "best wrong trees": [(losses_of_charts, "best_brackets")],
    }
    timed |= {"backward": [(stages, "backward")], "clip and update": [(stages, "update")]}
    compared = compare(settings, "train", case, settings.preset, "bare encoder, fine-tuned", whole, bare)
    return [compared, *part_rows(settings, f"{settings.preset}, {case}", "training steps", whole, timed)]


# In the order of the rows.
ROUTINES = {f.__name__: f for f in (layer, spans, decode, probabilities, parse, host, train)}


# ---------------------------------------------------------------- the slow twins


def label_attention_twin(layer, x, mask):
    """Compute the label attention layer for a batch without folding any matrices.

    Returns (y, attention) as `LabelAttention.forward` does without dropout. The layer must have a query vector, shared
    projections and concatenated heads.
    """
    config = layer.config
    keys, values = layer.key(x), layer.value(x)  # [B, T, H, d_kv]
    logits = torch.einsum("hk,bthk->bht", layer.query, keys) / math.sqrt(config.d_kv)
    attention = torch.softmax(logits.masked_fill(~mask[:, None], -1e9), dim=-1)
    contexts = torch.einsum("bht,bthk->bhk", attention, values)
    residual = x[:, :, None] + layer.project(contexts)[:, None]  # [B, T, H, d_model]
    return F.layer_norm(layer.reduce(residual), (config.d_out,), layer.gain, layer.offset), attention


def span_scores_twin(scorer, posts):
    """Score all spans, [B, F, H, d] -> [B, F, F, L]: every span vector s = f_j - f_i (equation 5), then equation 6.

    Equation 6 is W2 ReLU(LN(W1 s + b1)) + b2. The empty label scores 0.
    """
    flat = posts.flatten(-2)
    vectors = flat[:, None] - flat[:, :, None]
    hidden = torch.relu(scorer.norm(vectors @ scorer.first.weight.T + scorer.bias))
    return F.pad(scorer.second(hidden), (1, 0))


def collate_twin(tokenizer, sentences: Sequence[Sentence]) -> tuple[Tensor, ...]:
    """Return the tensors of `SubWords`, made word by word from lists, for sentences of one row each."""
    (before, after), padding = special_tokens(tokenizer), tokenizer.pad_token_id or 0
    rows, places = [], []
    for b, sentence in enumerate(sentences):
        words = [after_space(word, tokenizer) for word in sentence.words]
        row, spots = list(before), []
        for ids in tokenizer(words, add_special_tokens=False)["input_ids"]:
            spots.append((b, len(row), len(row) + max(0, len(ids) - 1)))
            row += ids or [tokenizer.unk_token_id]
        rows.append(row + after)
        stop = len(rows[-1]) - 1
        places.append([(b, 0, 0) if before else spots[0], *spots, (b, stop, stop)])
    width, count = max(map(len, rows)), max(map(len, places))
    padded = [[*row, *[padding] * (width - len(row))] for row in rows]
    mask = [[column < len(row) for column in range(width)] for row in rows]
    return tuple(map(torch.tensor, (padded, mask, [[*one, *[(0, 0, 0)] * (count - len(one))] for one in places])))


def assemble_twin(model: Model, sentence: Sentence, *parse) -> Prediction:
    """Assemble with checks: of every layer when the sentence is built, and again when its text is added."""
    prediction = modelling.assemble(model, sentence, *parse)
    checked = Sentence(**{**vars(prediction.sentence), "text": None})
    return replace(prediction, sentence=replace(checked, text=sentence.text))


def best_score_twin(label_scores: np.ndarray, arc_scores: np.ndarray, lam: float) -> float:
    """Return the score of the best joint tree in O(n^5): try every span, head word, split and dependent in turn.

    This is the recurrence of `lalkit.chart.joint` before the optimisation. It is compiled like the decoder, and checks its
    input. It does not build the tree. Raises ValueError for a wrong shape, or a score that is not finite.
    """
    label_scores, arc_scores = joint.as_arrays(label_scores, arc_scores, "")
    number, shape = arc_scores.dtype.type, label_scores.shape[:2]
    best, label = np.zeros(shape, number), np.zeros(shape, np.int64)
    if not joint.best_labels(label_scores, number(lam), best, label):
        raise ValueError("not finite")
    # [head, dependent]: the innermost loop runs along memory.
    arcs = np.ascontiguousarray(number(1 - lam) * arc_scores.T)
    np.fill_diagonal(arcs[1:], 0)
    return float(_best_score(best, arcs))


@compiled
def _best_score(best, arcs):
    n, dtype = arcs.shape[1], best.dtype
    zero, least = dtype.type(0), dtype.type(-np.inf)
    content = np.zeros((n + 1, n + 1, n), dtype)  # U[i, j, h]
    for width in range(2, n + 1):
        for i in range(n + 1 - width):
            j = i + width
            for h in range(i, j):
                top = least
                for k in range(i + 1, j):
                    a, b, c, d = (k, j, i, k) if h < k else (i, k, k, j)  # the dependent's side, and the head's
                    obligatory = best[a, b] if b - a > 1 else max(zero, best[a, b])
                    attached = least
                    for m in range(a, b):
                        attached = max(attached, (content[a, b, m] + obligatory) + arcs[h + 1, m])
                    top = max(top, (content[c, d, h] + max(zero, best[c, d])) + attached)
                content[i, j, h] = top
    score = least
    for h in range(n):
        score = max(score, (content[0, n, h] + best[0, n]) + arcs[0, h])
    return score
