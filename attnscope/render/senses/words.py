"""What is said about a word in many texts, the same in a terminal and in a picture."""

import numpy as np

from attnscope.render.comparison.words import CLOSE, OPEN, cosine_text
from attnscope.render.kit.numbers import counted
from attnscope.render.kit.words.header import attention_words, model_words
from attnscope.results import Senses, Verdict
from attnscope.results.claims.senses import Usage
from attnscope.tokens import printable

_AROUND = 38  # characters of a text on each side of the word


def subject(result: Senses) -> str:
    """`“bank” in 12 texts, 2 senses`."""
    told = f"“{printable(result.asked)}” in {counted(len(result.usages), 'text')}"
    return f"{told}, {counted(len(result.labels), 'group')}" if result.labels else told


def setting(result: Senses) -> str:
    """Model, attention, and whose vectors these are."""
    heads = "all heads of a layer as one" if len(result.heads) > 1 else f"H{result.heads[0]}"
    model = model_words(result.provenance)
    return f"{model} · {attention_words(result.kind)} · cosines of the output vectors, {heads}"


def usage_words(usage: Usage, number: int) -> str:
    """`3 river “... the «bank» of ...”`."""
    label = f"{printable(usage.label)} " if usage.label else ""
    return f"{number} {label}{in_sentence(usage)}"


def in_sentence(usage: Usage) -> str:
    """The text around the word, this one marked where it is found in the text."""
    text, place = usage.text, usage.text.find(usage.word)
    if place < 0:
        return f"“{printable(text[: 2 * _AROUND])}”"
    before, after = text[:place], text[place + len(usage.word) :]
    before = before if len(before) <= _AROUND else f"…{before[-_AROUND:]}"
    after = after if len(after) <= _AROUND else f"{after[:_AROUND]}…"
    return f"“{printable(before)}{OPEN}{printable(usage.word)}{CLOSE}{printable(after)}”"


def shown_words(result: Senses) -> str:
    """What the layer that is shown in full says."""
    i, layer = result.shown, f"L{result.layers[result.shown]}"
    if result.separation is None:
        return f"{layer}: {extremes_words(result, i)}"
    found = result.separation
    told = (
        f"{layer}, where the groups lie furthest apart: cosine within {cosine_text(found.within[i])}, "
        f"between {cosine_text(found.between[i])}, gap {cosine_text(found.gap[i])}; "
        f"shuffled labels {cosine_text(found.chance[i])}, {percentile_words(found.percentile[i])} below"
    )
    if len(result.heads) < 2:
        return told
    j = best_head(result, i)
    gap, chance = found.heads_gap[i, j], found.best_chance[i]
    return (
        f"{told} · H{result.heads[j]} alone: gap {cosine_text(gap)}; best head of shuffled labels "
        f"{cosine_text(chance)}, {percentile_words(found.best_percentile[i])} below"
    )


def best_head(result: Senses, i: int) -> int:
    """The place of the head of layer number `i` that parts the groups best."""
    assert result.separation is not None, "only where there are groups"
    return int(np.nan_to_num(result.separation.heads_gap[i], nan=-np.inf).argmax())


def percentile_words(percentile: float) -> str:
    return f"{percentile:.1f} %"


def extremes_words(result: Senses, i: int) -> str:
    """The two texts that are most alike in layer number `i`, and the two that are least."""
    most, least = result.extremes(i)
    told = (
        f"{word} alike {a + 1} and {b + 1} ({cosine_text(result.cosines[i, a, b])})"
        for word, (a, b) in (("most", most), ("least", least))
    )
    return ", ".join(told)


def remarks(result: Senses) -> list[str]:
    """What must be known to read the numbers."""
    told = ["output: of the heads, before the output projection"]
    if result.separation is not None:
        found = result.separation
        told.append(
            "gap: mean cosine of pairs with one label less that of pairs with two; chance: the same of "
            f"labels shuffled {found.controls} times (seed {found.seed}), and how many of these stay below"
        )
        if len(result.heads) > 1:
            told.append("the best head is held against the best head of every shuffling")
    if len({usage.position for usage in result.usages}) > 1:
        told.append("the word stands at different places: positions are in its vectors too")
    return told


def other_forms(result: Senses) -> str:
    """Which texts have another form of the word."""
    other = [
        f"{printable(usage.word)} in {i}"
        for i, usage in enumerate(result.usages, start=1)
        if usage.word.lower() != result.asked.lower() and not result.asked.lstrip("-").isdigit()
    ]
    return f"other forms: {', '.join(other)}" if other else ""


def certified_words(result: Senses) -> list[tuple[Verdict, str]]:
    """How many heads have each verdict, all texts counted."""
    total = counted(sum(result.certified.values()), "head")
    return [
        (
            verdict,
            f"{verdict.value}: {result.certified[verdict.value]} of {total}, all texts counted",
        )
        for verdict in Verdict
        if result.certified.get(verdict.value)
    ]
