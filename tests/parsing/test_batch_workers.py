"""One batch in one process: memory that runs out, sentences that cannot be parsed, parsers that are exchanged."""

import json
import shutil

import pytest
import torch

from lalkit.errors import LalkitError, ModelError, TooLongError
from lalkit.network.predict import predict
from lalkit.parsing.batch_workers import SPLIT, Source, Task, ThisProcess, answer, in_halves, out_of_memory
from lalkit.training.checkpoint import fingerprint
from lalkit.treebank.tree import Sentence

CPU = "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"
SHORTAGES = [
    MemoryError(),
    torch.OutOfMemoryError("CUDA out of memory"),
    RuntimeError(CPU),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)"),
    TooLongError("9 words need 10 bytes for the joint chart; 1 are available", "Split it.", where="sentence 0"),
]


def sentences(*lengths):
    return [Sentence(("w",) * n, id=f"f:{i}") for i, n in enumerate(lengths, 1)]


class Small:
    """Parses batches of at most so many words."""

    def __init__(self, words, error):
        self.words, self.error, self.sizes = words, error, []

    def __call__(self, group):
        self.sizes.append(len(group))
        if sum(map(len, group)) > self.words:
            raise self.error
        return [s.id for s in group]


@pytest.mark.parametrize("error", SHORTAGES, ids=lambda error: type(error).__name__)
def test_a_batch_is_halved_until_it_fits(error):
    parse = Small(20, error)
    assert in_halves(parse, sentences(*[10] * 5)) == ["f:1", "f:2", "f:3", "f:4", "f:5"]
    assert parse.sizes == [5, 2, 3, 1, 2]


@pytest.mark.parametrize("error", SHORTAGES, ids=lambda error: type(error).__name__)
def test_a_sentence_that_does_not_fit_alone_is_named(error):
    with pytest.raises(TooLongError) as raised:
        in_halves(Small(20, error), sentences(10, 5, 21, 4))
    assert raised.value.where == "f:3" and raised.value.remedy == getattr(error, "remedy", SPLIT)
    assert str(raised.value).startswith("f:3: 21 words" if error is not SHORTAGES[-1] else "f:3: 9 words need 10 bytes")


def test_other_errors_are_not_mistaken_for_a_shortage():
    for error in (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), ValueError("out of memory")):
        assert not out_of_memory(error)
        parse = Small(0, error)
        with pytest.raises(type(error)):
            in_halves(parse, sentences(1, 1))
        assert parse.sizes == [2]


def test_the_sentence_that_cannot_be_parsed_is_found():
    def parse(group):
        if any(len(s) == 7 for s in group):
            raise ModelError("word 1 has 600 sub-words; a row takes 510", remedy="Is this a word?")
        return [s.id for s in group]

    with pytest.raises(ModelError, match="^f:6: word 1 has 600 sub-words.*\n  Is this a word"):
        in_halves(parse, sentences(1, 2, 3, 4, 5, 7, 8))


@pytest.mark.slow
def test_the_trees_of_halves_are_those_of_the_batch(tiny_parser, sample):
    here, calls = ThisProcess(Source(str(tiny_parser)), device="cpu"), []
    expected = [p.sentence for p in predict(here.loaded.network, here.loaded.collator, sample[:13])]
    usual = here.loaded.network.forward

    def forward(batch):
        calls.append(len(batch.lengths))
        if len(batch.lengths) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return usual(batch)

    here.loaded.network.forward = forward
    assert [p.sentence for p in here.parse(sample[:13])] == expected
    assert calls[:3] == [13, 6, 3] and max(c for c in calls if c < 3) == 2


def test_a_batch_is_one_batch(tiny_parser, sample):
    here, calls = ThisProcess(Source(str(tiny_parser)), device="cpu"), []
    usual = here.loaded.network.forward
    here.loaded.network.forward = lambda batch: (calls.append(len(batch.lengths)), usual(batch))[1]
    tasks = [Task(range(40), sample[:40]), Task(range(40, 43), sample[40:43])]
    assert [task for task, _ in here(tasks)] == tasks
    assert calls == [40, 3]


def test_a_parser_is_told_from_every_other(tiny_parser, tmp_path):
    copy = shutil.copytree(tiny_parser, tmp_path / "copy")
    known = fingerprint(tiny_parser)
    assert fingerprint(copy) == known and Source(str(copy), known).load()
    content = json.loads((copy / "model.json").read_text())
    weights = copy / content["weights"]
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    assert fingerprint(copy) != known
    with pytest.raises(ModelError, match="copy: is not the parser that this run started with"):
        Source(str(copy), known).load()
    shutil.copy(tiny_parser / content["weights"], weights)
    (copy / "model.json").write_text(json.dumps({**content, "info": {}}))
    assert fingerprint(copy) != known
    weights.unlink()
    with pytest.raises(ModelError, match=f"{weights.name}: cannot be read"):
        fingerprint(copy)


def test_what_is_wrong_with_the_parser_is_not_blamed_on_a_sentence(tiny_parser, tmp_path):
    with pytest.raises(ModelError, match="model.json: no parser here"):
        ThisProcess(Source(str(tmp_path))).parse(sentences(1, 2))


def test_deaths():
    task = Task([5, 0, 2], sentences(1, 2, 3))
    assert task.again() == [task]
    first, second = task.again()
    assert [(t.places, len(t.sentences), t.deaths) for t in (first, second)] == [([5], 1, 0), ([0, 2], 2, 0)]
    assert first.again() == [first]
    with pytest.raises(TooLongError, match="^f:1: 2 processes died of these 1 words"):
        first.again()


def test_answers_can_be_sent():
    import pickle

    error = TooLongError("9 words", where="f:1", remedy="Split it.")
    sent = pickle.loads(pickle.dumps(answer(lambda: (_ for _ in ()).throw(error))))
    assert (type(sent), str(sent)) == (TooLongError, str(error))
    other = answer(lambda: 1 / 0)
    assert isinstance(other, RuntimeError) and not isinstance(other, LalkitError) and "ZeroDivisionError" in str(other)
    assert answer(lambda: 5) == 5
