"""Label attention inside the span: terms add up to scores, and probes and controls do what a direct computation gives."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lalkit.api import Parser
from lalkit.config import override, tiny
from lalkit.draw import explorer
from lalkit.errors import LalkitError, ModelError, ParameterError
from lalkit.network.parser import Network
from lalkit.probes.perturbation import ablate
from lalkit.training.loop import train


@pytest.fixture(scope="module", params=["full", "glass"])
def parser(request, tiny_span_parser, tmp_path_factory):
    if request.param == "glass":
        return Parser.load(tiny_span_parser)
    inside = {"d_key": 8, "boundary": request.param}
    folder = tmp_path_factory.mktemp("runs") / request.param
    settings = {"model.label_attention": "none", "train.epochs": 1, "model.span_attention": inside}
    train(override(tiny(), settings), "sample", folder)
    return Parser.load(folder)


def random_spans(sentences, labels, count):
    torch.manual_seed(0)
    asked = [[] for _ in sentences]
    for k in range(count):
        place = k % len(sentences)
        start = int(torch.randint(0, len(sentences[place]), ()))
        end = int(torch.randint(start + 1, len(sentences[place]) + 1, ()))
        asked[place].append((start, end, labels[int(torch.randint(2, len(labels), ()))]))
    return asked


# ---------------------------------------------------------------- terms


def test_the_terms_of_scores_add_up(parser, sample):
    sentences, found = sample[:12], 0
    for terms in parser.terms(sentences, besides=random_spans(sentences, parser.vocab.labels, 200)):
        place, words = ["start", "end", "label"], terms.table[terms.table["term"] == "word"]
        spans = terms.table.groupby(place)
        assert spans["value"].sum().to_numpy() == pytest.approx(spans["score"].first().to_numpy(), abs=1e-5)
        assert words.groupby(place)["attention"].sum().to_numpy() == pytest.approx(np.ones(len(spans)), abs=1e-5)
        found += len(spans)
        parse = {(s.start, s.end, s.label) for s in terms.prediction.spans if s.label != "<H>"}
        assert all({"parse", "second"} <= set(terms.table[terms.table["start"] == s]["role"]) for s, _, _ in parse)
    assert found >= 200
    if parser.config.model.span_attention.boundary == "glass":
        assert set(terms.table["term"]) == {"word", "first", "last", "constant"}, "nothing is hidden"


def test_without_a_words_evidence_the_score_is_less_by_its_term(parser, sample):
    """Really taken out: the evidence is set to zero for every label, and spans are scored again."""
    sentence = next(s for s in sample if len(s) == 8)
    (terms,) = parser.terms([sentence])
    scorer, labels = parser.network.spans, parser.vocab.labels
    with torch.inference_mode():
        logits, evidence, *edges = parser.network.eval()(parser.model.collator([sentence])).span_parts
        for row in terms.table[terms.table["term"] == "word"].itertuples():
            changed = evidence.clone()
            changed[0, row.position - 1] = 0
            scores = scorer.chart((logits, changed, *edges))[0, row.start, row.end]
            assert float(scores[labels.index(row.label)]) == pytest.approx(row.score - row.value, abs=1e-5)
            # <H> and the empty label are not constituents.
            assert row.then_score == pytest.approx(float(scores[2:].max()), abs=1e-5)
            assert row.then == labels[2 + int(scores[2:].argmax())]


def test_the_text_has_the_numbers_of_the_table(parser, sample):
    """Also the label that comes first without the word: the own label, the second, or another one with its score."""
    endings = set()
    for terms in parser.terms(sample[:5]):
        texts = parser.attribution.explain(terms, top=1).split("\n\n")
        rows = terms.table[terms.table["role"] == "parse"].groupby(["start", "end", "label"], sort=False)
        assert len(texts) == len(rows)
        for text, ((start, end, label), some) in zip(texts, rows):
            there = terms.table[(terms.table["start"] == start) & (terms.table["end"] == end)]
            second = there.loc[there["role"] == "second", "label"].to_list()[:1]
            words = some[some["term"] == "word"]
            best = words.sort_values("value", key=abs, ascending=False).iloc[0]
            assert f"score {best['score']:.2f}: its words give {words['value'].sum():+.2f}" in text
            assert f"(“{best['word']}” {best['value']:+.2f} ({best['attention']:.0%} of the attention))" in text
            kind = "still" if best["then"] == label else "second" if best["then"] in second else "third"
            wanted = {"still": "would still come first.", "second": "would come first."}
            third = f"would come first with {best['then_score']:.2f}."
            assert not second or text.endswith(f": {best['then']} {wanted.get(kind, third)}")
            endings.add(kind)
    assert "still" in endings and len(endings) > 1


def test_a_result_has_the_text_and_the_page(parser, tmp_path):
    result = parser.parse("The clerk counted the ballots in the hall.")
    seen = parser.attribution.look([result.sentence], probabilities=True)
    assert result.explain(top=2) == parser.attribution.explain(*seen, top=2) and "probability" in result.explain()
    html = result.explore(gold=result.sentence).save(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "ballots" in html and "Terms of scores" in html
    with pytest.raises(ModelError, match="inside the span"):
        result.look  # noqa: B018
    explorer(data := parser.attribution.page([result.terms], title="t", model="m"))  # checks that terms add up
    table, (shown,) = result.terms.table, data["sentences"]
    assert len(shown["spans"]) == len(result.terms.spans)
    for span in shown["spans"]:
        rows = table[(table["start"] == span["start"]) & (table["end"] == span["end"])]
        for reading, role in zip(span["readings"], ("parse", "second"), strict=True):
            words = rows[(rows["role"] == role) & (rows["term"] == "word")]
            assert reading["label"] == words["label"].iloc[0]
            assert reading["value"] == pytest.approx(words["value"].tolist(), abs=1e-6)
        assert [label for label, _ in span["then"]] == words["then"].tolist()


def test_unknown_labels_are_refused(parser, sample):
    with pytest.raises(ParameterError, match="'ZZ'"):
        parser.terms([sample[0]], besides=[[(0, 1, "ZZ")]])


# ---------------------------------------------------------------- the view of the probes


def larger(folder, factor):
    """Barely trained, attention is even; larger weights make differences that can be seen."""
    found = Parser.load(folder)
    with torch.no_grad():
        for p in (found.network.spans.query, found.network.spans.evidence.weight):
            p.mul_(factor)
    return found


@pytest.fixture(scope="module")
def probed(tiny_span_parser):
    found = larger(tiny_span_parser, 12)
    found.network.double()
    return found


@pytest.fixture(scope="module")
def some(sample):
    return sorted(sample, key=len)[40::40][:4]


def spans_of(sentence):
    n = len(sentence)
    return [(0, n, "S"), (0, 1, "NP"), (n // 2, n, "VP"), (n - 1, n, "no such label")]


@pytest.fixture(scope="module")
def seen(probed, some):
    return probed.view(some, spans=[spans_of(s) for s in some])


@pytest.fixture(scope="module")
def parts(probed, some):
    """For each span: (start, end, label), the logits and the evidence of its words, and its scores by the parser."""
    found = []
    for sentence in some:
        with torch.no_grad():
            output = probed.network.eval()(probed.model.collator([sentence]))
        for start, end, label in spans_of(sentence):
            logits, evidence = (part[0][start:end] for part in output.span_parts[:2])
            found.append(((start, end, label), logits, evidence, output.label_scores[0, start, end]))
    return found


def probabilities(scores):
    return torch.softmax(scores.double(), -1).tolist()


def test_the_view_has_the_decisions_of_the_parser(probed, some, seen, parts):
    outcome = seen.predict(seen.weights)
    assert seen.heads[0] == "span.<H>" and len(seen.heads) == len(probed.vocab.labels) - 1
    for k, ((start, end, label), logits, evidence, scores) in enumerate(parts):
        weights = seen.weights[k, :, 0]
        assert torch.allclose(weights[:, : end - start], torch.softmax(logits, 0).T)
        assert (weights[:, end - start :] == 0).all()
        assert torch.allclose(seen.values[k, :, : end - start, 0], evidence.T)
        assert outcome.probs[k, 0].tolist() == pytest.approx(probabilities(scores), abs=1e-9)
        assert outcome.score[k].tolist() == [probed.vocab.label_index.get(label, -2) == int(scores.argmax()), 1]
    several = seen.predict(torch.stack([seen.weights] * 2))
    assert torch.allclose(several.probs[1], outcome.probs)
    assert len(probed.view(some).weights) == sum(len(r.spans) for r in probed.parse_all(some)), "the spans of the parse"
    with pytest.raises(LalkitError):
        probed.view([])


def test_a_view_is_the_same_alone_and_in_a_batch(probed, some, seen):
    alone, place = probed.view(some[3:], spans=[spans_of(some[3])], examples=[3]), len(spans_of(some[3]))
    torch.testing.assert_close(alone.weights, seen.weights[-place:, ..., : alone.weights.shape[-1]], rtol=0, atol=1e-9)
    assert alone.examples == seen.examples[-place:]


def test_ablations_are_sums_without_a_head(probed, seen, parts):
    head = probed.vocab.label_index["NP"] - 1
    mean = torch.randn(len(seen.heads), 1, dtype=torch.float64)
    for mode in ("context", "uniform", "mean"):
        found = ablate(seen, head, mode, mean).probs
        for k, (_, logits, evidence, scores) in enumerate(parts):
            changed = scores.clone()
            changed[head + 1] -= torch.softmax(logits[:, head], 0) @ evidence[:, head]
            changed[head + 1] += {"uniform": evidence[:, head].mean(), "mean": mean[head, 0]}.get(mode, 0)
            assert found[k, 0].tolist() == pytest.approx(probabilities(changed), abs=1e-9)


# ---------------------------------------------------------------- controls


@pytest.fixture
def changed(tiny_span_parser):
    return larger(tiny_span_parser, 6)


def scores_of(parser, sentences, **hooks):
    with torch.inference_mode(), parser.network.spans.hooked(**hooks):
        return parser.network.eval()(parser.model.collator(sentences)).label_scores


def same(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)


def test_every_control_changes_scores_inside_its_block_only(changed, sample):
    before = scores_of(changed, sample[:3])
    controls = changed.attribution.controls(changed.attribution.mean(sample[:20]))
    assert len(controls) == 6
    for name, hooks in controls.items():
        assert not torch.equal(scores_of(changed, sample[:3], **hooks), before), name
    same(scores_of(changed, sample[:3]), before)
    alike = [sample[2]] * 3
    for name in ("swapped sentences", "swapped attention"):
        same(scores_of(changed, alike, **controls[name]), scores_of(changed, alike))
    # Two sentences of one length exchange the sums of their words, and keep their boundaries.
    pair = [s for s in sample if len(s) == 9][:2]
    edges = scores_of(changed, pair, **controls["zeroed"])
    inside = scores_of(changed, pair) - edges
    same(scores_of(changed, pair, **controls["swapped sentences"]), edges + inside[[1, 0]])
    network = Network(override(changed.config, {"model.span_attention.attention": "uniform"}).model, changed.vocab)
    network.load_state_dict(changed.network.state_dict())
    uniform = scores_of(changed, sample[:3], **controls["uniform attention"])
    changed.model = replace(changed.model, network=network)
    same(scores_of(changed, sample[:3]), uniform)  # as of a parser that was trained with it


def test_removing_a_head_is_zero_evidence(changed, sample):
    head, before = changed.vocab.label_index["NP"] - 1, scores_of(changed, sample[:3])
    hooks = changed.attribution.without(head, torch.zeros(before.shape[-1] - 1))["head out"]
    without = scores_of(changed, sample[:3], **hooks)
    assert not torch.allclose(without, before, atol=1e-2)
    with torch.no_grad():
        changed.network.spans.evidence.weight[head] = 0
    same(scores_of(changed, sample[:3]), without)


def test_the_mean_is_over_all_spans_in_any_batches(changed, sample):
    """Against the terms of every span, summed one by one."""
    some, labels, sums = sorted(sample, key=len)[20:24], changed.vocab.labels, []
    asked = [[(i, j, "NP") for i in range(len(s)) for j in range(i + 1, len(s) + 1)] for s in some]
    for terms in changed.terms(some, besides=asked):
        words = terms.table[(terms.table["term"] == "word") & (terms.table["label"] == "NP")]
        sums += words.groupby(["start", "end"])["value"].sum().tolist()
    head = labels.index("NP") - 1
    assert len(sums) == sum(map(len, asked))
    assert float(changed.attribution.mean(some)[head]) == pytest.approx(sum(sums) / len(sums), abs=1e-5)
    hooks = changed.attribution.without(head, torch.full((len(labels) - 1,), 1.5))["head at its mean"]
    with changed.network.spans.hooked(**hooks):
        assert float(changed.attribution.mean(some)[head]) == pytest.approx(1.5)
