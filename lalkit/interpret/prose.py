"""Write explanations in words, one paragraph for each constituent. The words for a part depend on its kind alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lalkit.interpret.explanation import HEAD, WORD, Explained

if TYPE_CHECKING:
    from lalkit.interpret.explanation import Explanation


def text(explanation: Explanation, top: int) -> str:
    """Return the paragraphs of all sentences. top: how many parts to name."""
    texts = []
    for one in explanation.sentences:
        paragraphs = [paragraph(explanation, one, one.places[span], top) for span in one.constituents()]
        if len(explanation.sentences) > 1:
            paragraphs.insert(0, f"# {' '.join(one.words)}")
        texts += filter(None, paragraphs)
    if not any(" score " in line for line in texts):
        explanation.contrast()  # raises: every constituent has the label `against`
    if explanation.profile and not explanation.against:
        texts.append(f"The many sentences are those of {explanation.profile['corpus']}.")
    return "\n\n".join(texts)


def paragraph(explanation: Explanation, one: Explained, place: int, top: int) -> str:
    """Explain one constituent. "" for one that has the label `against`."""
    (start, end, label), score = one.spans[place], one.scores[place]
    if label == explanation.against:
        return ""
    head = next((span.head for span in one.prediction.spans if span[:3] == (start, end, label)), 0)
    begin = f"{label} “{' '.join(one.words[start:end])}”"
    begin += f", head word “{one.words[head - 1]}”" if head else ""
    if sure := one.prediction.confidence:
        probable = {span[:3]: p for span, p in zip(one.prediction.spans, sure.spans)}
        begin += f", probability {probable[start, end, label]:.3g}"
    begin += f", score {score:.2f}: "
    if explanation.against:
        return begin + why_not(one, place, explanation.against, top)
    return begin + reasons(explanation, one, place, top)


def reasons(explanation: Explanation, one: Explained, place: int, top: int) -> str:
    """Name the largest heads or words, all other parts, and the label that comes first without the largest one."""
    parts, label = one.of(place), one.spans[place][2]
    ranked = np.isin(parts.part, [HEAD, WORD])
    order = np.flatnonzero(ranked)[np.argsort(-abs(parts.value[ranked]), kind="stable")]
    largest, first = parts.where(order[:top]), one.names(parts)[order[0]]
    amounts = [f"{value:+.2f}" for value in largest.value]
    if largest.attention is not None:
        amounts = [f"{amount}, {share:.0%} of the attention" for amount, share in zip(amounts, largest.attention)]
    names = [f"{name} ({amount})" for name, amount in zip(one.names(largest), amounts)]
    text = f"most from {names[0]}" + f", then {', '.join(names[1:])}" * (len(names) > 1)
    others = [f"{name} {value:+.2f}" for name, value in zip(one.names(parts.where(~ranked)), parts.value[~ranked])]
    if rest := len(order) - len(names):
        name = {HEAD: "label head", WORD: "word"}[int(largest.part[0])]
        others.insert(0, f"the other {rest} {name}s {parts.value[order[top:]].sum():+.2f}")
    text += f"; {', '.join(others)}."
    if (second := one.second(place)) is not None:
        text += f" {one.spans[second][2]} comes second with {one.scores[second]:.2f}."
    then, still = explanation.labels[parts.then[order[0]]], f" with {parts.then_score[order[0]]:.2f}"
    text += f" Without {first}, {then} would {'still ' * (then == label)}come first{still}."
    return text + (
        of_head(explanation.profile, one, label, int(parts.number[order[0]])) if one.attention is not None else ""
    )


def of_head(profile: dict | None, one: Explained, label: str, head: int) -> str:
    """Say to which word a head attends most, and how often it leads the label in a corpus."""
    focus = int(one.attention[head].argmax())
    word = ("the start", *(f"“{word}”" for word in one.words), "the end")[focus]
    text = (
        f" Label head {head} attends most to {word} ({one.attention[head, focus]:.0%}), in every span of the sentence."
    )
    if profile and label in profile["labels"]:
        k = profile["labels"].index(label)
        part, overall = profile["led"][head][k] / profile["all"][k], sum(profile["led"][head]) / profile["spans"]
        text += f" Over many sentences it is the top head of {part:.0%} of {label}"
        text += f", {part / overall:.1f} times its share of all spans ({overall:.0%})." if overall else "."
    return text


def why_not(one: Explained, place: int, against: str, top: int) -> str:
    """Name the parts that differ most between two labels. With the rest, they add up to the difference."""
    other = one.places[(*one.spans[place][:2], against)]
    parts, values = one.of(place), one.difference(place, against)
    largest = np.argsort(-abs(values), kind="stable")[:top]
    names = [f"{name} {value:+.2f}" for name, value in zip(one.names(parts.where(largest)), values[largest])]
    if rest := len(values) - len(largest):
        names.append(f"{rest} other part{'s' * (rest > 1)} {values.sum() - values[largest].sum():+.2f}")
    text = f"{against} would score {one.scores[other]:.2f}. The difference of {values.sum():+.2f} is the sum of: "
    return f"{text}{', '.join(names)}."
