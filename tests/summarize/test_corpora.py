"""Documents by name; files of one's own; and the commands over them."""

import json

import pytest

from lalkit.errors import CorpusError
from lalkit.summarize.corpora import load
from lalkit.summarize.news import news
from tests.test_cli import lalkit


def write(folder, name, rows):
    (folder / f"{name}.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")


@pytest.fixture
def own(tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    found = news(30, 8, 8)
    for name, part in (("train", found.train), ("validation", found.dev), ("test", found.test)):
        write(
            folder, name, [{"article": " ".join(d.words), "highlights": " ".join(d.summary), "id": d.id} for d in part]
        )
    return folder


def test_a_folder_of_ones_own(own):
    found = load(str(own))
    assert (len(found.train), len(found.dev), len(found.test)) == (30, 8, 8)
    assert found.test[0].summary and found.test[0].id == "news-0-38"


def test_what_is_wrong_is_named(own, tmp_path):
    with pytest.raises(CorpusError, match="no documents 'nothing'"):
        load("nothing")
    with pytest.raises(CorpusError, match="has no train.jsonl"):
        load(str(tmp_path))
    write(own, "dev", [{"article": "a"}])
    with pytest.raises(CorpusError, match="dev.jsonl, line 1.*no article with highlights"):
        load(str(own))
    (own / "dev.jsonl").write_text("{")
    with pytest.raises(CorpusError, match="line 1: is no JSON"):
        load(str(own))


def test_train_score_measure_take_away_and_prune(own, tmp_path):
    run, size = tmp_path / "run", ["--set", "d_model=16", "--set", "d_ff=32", "--set", "layers=1", "--set", "heads=2"]
    code, _, err = lalkit("summarize", "train", "--data", own, "--out", run, "--epochs", "1", *size)
    assert code == 0 and "epoch 1/1" in err
    code, out, err = lalkit("summarize", "score", run, "--data", own, "--show", "1")
    assert code == 0 and "rouge1" in out and out.count("true:") == 1, err
    code, out, err = lalkit("summarize", "heads", run, "--data", own, "--ablate", "--test", "4")
    assert code == 0 and "enc.0.1" in out and "p_holm" in out, err
    code, out, err = lalkit(
        "summarize", "prune", run, "--data", own, "--out", tmp_path / "p", "--lambda", "1", "--epochs", "1"
    )
    assert code == 0 and "cross.0.0" in out, err
    code, out, err = lalkit("summarize", "heads", run, "--data", own)
    assert code == 2 and "tags, entities and summaries" in err
    code, out, err = lalkit("summarize", "score", tmp_path, "--data", own)
    assert code == 2 and "no summarizer here" in err
