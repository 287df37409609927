"""Parsers on the Hugging Face hub: get one, put one there, and the metadata that the hub reads from a card."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

from lalkit.errors import ModelError
from lalkit.treebank.corpora import NAMES
from lalkit.treebank.mixture import parts_of, without_genres

HUB = "hf:"
TASK = "token-classification"  # the nearest of the hub's tasks
# Ours -> the hub's. Any other is "other", with its name.
LICENCES = {"CC BY 3.0": "cc-by-3.0", "CC BY 4.0": "cc-by-4.0", "CC BY-SA 4.0": "cc-by-sa-4.0"}
METRICS = {"f1": "F1 of labelled brackets", "uas": "UAS", "las": "LAS", "tag_accuracy": "right tags"}


def download(repository: str, **options) -> Path:
    """Return the folder of a parser from the hub, or from the cache of earlier downloads.

    options: those of `huggingface_hub.snapshot_download`, such as revision and token. Raises ModelError if it cannot be
    downloaded.
    """
    import huggingface_hub

    patterns = ["*.json", "*.safetensors", "README.md"]
    with reached(repository, "downloaded"):
        return Path(huggingface_hub.snapshot_download(repository, allow_patterns=patterns, **options))


def upload(folder: str | Path, repository: str, **options) -> str:
    """Put the files of a folder into a repository of the hub, which is made if there is none. Returns its address.

    options: those of `huggingface_hub.create_repo`, such as private and token. Raises ModelError if it cannot be done.
    """
    import huggingface_hub

    with reached(repository, "uploaded"):
        address = huggingface_hub.create_repo(repository, exist_ok=True, **options)
        huggingface_hub.upload_folder(repo_id=repository, folder_path=folder, token=options.get("token"))
        return str(address)


@contextmanager
def reached(repository: str, done: str):
    """Turn every error of the hub into one ModelError."""
    try:
        yield
    except Exception as error:
        problem = f"cannot be {done} ({type(error).__name__}: {str(error).partition(chr(10))[0][:120]})"
        remedy = "Check the name and the network (`hf auth login` for your own repositories), or use a folder."
        raise ModelError(problem, where=f"{HUB}{repository}", remedy=remedy) from None


def metadata(facts: dict) -> str:
    """Return the front matter of a card: what the hub shows and searches, as YAML between two lines of hyphens.

    facts: card.json. The scores are those of the parser's own seed on test, or else on dev.
    """
    from huggingface_hub import EvalResult, ModelCardData

    own = next((row for row in facts["seeds"] if row["seed"] == facts["seed"]), {})
    split = "test" if own.get("test") else "dev"
    scores = {key: value for key, value in (own.get(split) or {}).items() if key in METRICS and value is not None}
    treebanks = [name for part in parts_of(facts["treebank"]) if (name := without_genres(part.name)) in NAMES]
    licence = LICENCES.get(facts["licence"], "other")
    results = [
        EvalResult(
            TASK, "+".join(treebanks) or "other", facts["treebank"] if treebanks else "other", key, round(value, 2),
            task_name="constituency and dependency parsing", dataset_split=split, metric_name=METRICS[key],
        )
        for key, value in scores.items()
    ]  # fmt: skip
    data = ModelCardData(
        language=facts["language"], license=licence, license_name=facts["licence"] if licence == "other" else None,
        library_name="lalkit", pipeline_tag=TASK, datasets=treebanks or None, metrics=list(scores) or None,
        tags=["parsing", "constituency", "dependency", "label-attention", "interpretability"],
        model_name=facts["name"], eval_results=results or None,
    )  # fmt: skip
    return f"---\n{data.to_yaml()}\n---\n"
