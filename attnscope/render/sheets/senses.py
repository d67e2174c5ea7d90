"""One word in many texts: how alike it is in each pair, and layer by layer how far labels part it."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import cell, counted, number, per_hundred
from attnscope.render.kit.words.header import model_words
from attnscope.render.sheet.blocks import Curve, Matrix, Names
from attnscope.render.sheet.said import attention, marked_word, proof
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Line, Table
from attnscope.results import Senses
from attnscope.results.claims.senses import Usage

_ALIKE = Scale(-1.0, 1.0, "signed", ("opposite", "the same"))
_AROUND = 38  # characters of a text on each side of the word
_cosine = partial(number, decimals=3)
_PARTS = ("within", "between", "chance", "percentile", "best_chance", "best_percentile")


def sheet(result: Senses, focus: Focus = WHOLE) -> Sheet:
    order = _by_label(result)
    curve = _by_layer(result) if result.separation is None else _parted(result)
    heads = "all heads of a layer as one" if len(result.heads) > 1 else f"H{result.heads[0]}"
    asked = f"“{result.asked}” in {counted(len(result.usages), 'text')}"
    groups = f", {counted(len(result.labels), 'group')}" if result.labels else ""
    return Sheet(
        title=asked + groups,
        setting=f"{model_words(result.provenance)} · {attention(result.kind, '')} · cosines of the output "
        f"vectors, {heads}",
        origins=(result.provenance,),
        answer=_answer(result),
        blocks=(curve, _pairs(result, order)),
        table=lambda: Table.of("fact layer head text_a text_b value", _facts(result)),
        control=_control(result),
        notes=tuple(_notes(result)),
        legend=("output: of the heads, before the output projection",),
        proof=proof(result.certified, "head", ", all texts counted"),
        main=curve,
        record=tuple(("text", f"{i} {_in_its_text(each)}") for i, each in enumerate(result.usages, start=1)),
    )


def _by_label(result: Senses) -> list[int]:
    """The texts in the order of their labels, those of one label as they came."""
    ranks = [result.labels.index(each.label) if result.labels else 0 for each in result.usages]
    return list(map(int, np.argsort(ranks, kind="stable")))


def _in_its_text(usage: Usage) -> str:
    """`river “... the «bank» of ...”`: the text around the word, this one marked where it is found."""
    label = f"{usage.label} " if usage.label else ""
    place = usage.text.find(usage.word)
    if place < 0:
        return f"{label}“{usage.text[: 2 * _AROUND]}”"
    before, after = usage.text[:place], usage.text[place + len(usage.word) :]
    before = before if len(before) <= _AROUND else f"…{before[-_AROUND:]}"
    after = after if len(after) <= _AROUND else f"{after[:_AROUND]}…"
    return f"{label}“{marked_word(before, usage.word, after)}”"


def _pairs(result: Senses, order: list[int]) -> Matrix:
    """The cosines of all pairs in the layer that is shown, texts of one label together."""
    labels, numbers = [result.usages[i].label for i in order], tuple(i + 1 for i in order)
    return Matrix(
        title=f"cosine of each pair of texts, L{result.layers[result.shown]}",
        words=("text", "text"),
        rows=Names(tuple(_in_its_text(result.usages[i]) for i in order), numbers),
        columns=Names(("",) * len(order), numbers),
        values=result.cosines[result.shown][np.ix_(order, order)],
        scale=_ALIKE,
        form=cell,
        groups=tuple(i for i in range(1, len(order)) if labels[i] != labels[i - 1]),
    )


def _parted(result: Senses) -> Curve:
    """Of groups the means within and between, and the gap beside that of shuffled labels."""
    parted = result.separation
    assert parted is not None, "only where there are groups"
    within, between, gap, chance = (
        each.tolist() for each in (parted.within, parted.between, parted.gap, parted.chance)
    )
    columns = [
        Column("within", within, "within", _cosine, "mean cosine of pairs with one label", _ALIKE),
        Column("between", between, "between", _cosine, "of pairs with two labels", _ALIKE),
        Column("gap", gap, "gap", _cosine, "the one less the other", _ALIKE),
        Column("chance", chance, "chance", _cosine, "gap of shuffled labels"),
        Column("below", parted.percentile.tolist(), "below", per_hundred, "how many shuffles have less"),
    ]
    if len(result.heads) > 1:
        best = [_best(result, i) for i in range(len(result.layers))]
        gaps = [float(parted.heads_gap[i, j]) for i, j in enumerate(best)]
        chances, shares = parted.best_chance.tolist(), parted.best_percentile.tolist()
        columns += [
            Column("best", [f"H{result.heads[j]}" for j in best], "best head"),
            Column("best_gap", gaps, "gap", _cosine),
            Column("best_chance", chances, "chance", _cosine, "of the best head of each shuffle", spared=2),
            Column("best_below", shares, "below", per_hundred, spared=1),
        ]
    lines = (
        Line("line", "query", "pairs of one group", within),
        Line("line", "other", "pairs of two groups", between),
        Line("line", "control", "gap", gap),
        Line("dashed", "peers", "gap of shuffled labels", chance),
    )
    return _curve(result, "how far the groups lie apart", Table(*columns), lines)


def _by_layer(result: Senses) -> Curve:
    """The mean of all pairs, with the pair that is most alike and the one that is least."""
    first, second = np.triu_indices(len(result.usages), 1)
    values = result.cosines[:, first, second]
    means = np.nanmean(values, axis=1).tolist()
    alike = [_extremes(result, i) for i in range(len(result.layers))]
    columns = Column("mean", means, "mean", _cosine, "of all pairs", _ALIKE), Column("texts", alike, "texts")
    lines = (
        Line("band", "query", "all pairs", np.nanmin(values, 1).tolist(), np.nanmax(values, 1).tolist()),
        Line("line", "query", "mean of all pairs", means),
    )
    return _curve(result, "how alike the texts are", Table(*columns), lines)


def _curve(result: Senses, title: str, table: Table, lines: tuple[Line, ...]) -> Curve:
    lowest = min(end for each in lines for end in each.ends())
    return Curve(
        title=f"{title}, layer by layer",
        of="layer",
        names=tuple(f"L{layer}" for layer in result.layers),
        table=table,
        places=tuple(map(float, result.layers)),
        measured="cosine",
        lines=lines,
        axis=(min(lowest - 0.05, 0.0), 1.05),
        chosen=frozenset({result.shown}),
    )


def _best(result: Senses, i: int) -> int:
    """The place of the head of layer number `i` that parts the groups best."""
    assert result.separation is not None, "only where there are groups"
    return int(np.nan_to_num(result.separation.heads_gap[i], nan=-np.inf).argmax())


def _extremes(result: Senses, i: int) -> str:
    """The two texts that are most alike in layer number `i`, and the two that are least."""
    most, least = result.extremes(i)
    told = (
        f"{word} alike {a + 1} and {b + 1} ({_cosine(float(result.cosines[i, a, b]))})"
        for word, (a, b) in (("most", most), ("least", least))
    )
    return ", ".join(told)


def _answer(result: Senses) -> str:
    """What the layer that is shown in full says."""
    i, layer, parted = result.shown, f"L{result.layers[result.shown]}", result.separation
    if parted is None:
        (a, b), (c, d) = result.extremes(i)
        most, least = (_cosine(float(result.cosines[i, one, two])) for one, two in ((a, b), (c, d)))
        alike = f"texts {a + 1} and {b + 1} are most alike ({most})"
        return f"In {layer} {alike}, {c + 1} and {d + 1} least ({least})."
    told = (
        f"The groups lie furthest apart in {layer}: cosines are {_cosine(parted.within[i])} within and "
        f"{_cosine(parted.between[i])} between them. That gap is {_cosine(parted.gap[i])}, of shuffled "
        f"labels {_cosine(parted.chance[i])}, and {per_hundred(parted.percentile[i])} of these have less."
    )
    if len(result.heads) < 2:
        return told
    j = _best(result, i)
    return (
        f"{told} H{result.heads[j]} alone has {_cosine(parted.heads_gap[i, j])}, the best head of shuffled "
        f"labels {_cosine(parted.best_chance[i])}, and {per_hundred(parted.best_percentile[i])} of these "
        "have less."
    )


def _control(result: Senses) -> str:
    if result.separation is None:
        return ""
    shuffled = f"labels are shuffled {result.separation.controls} times (seed {result.separation.seed})"
    best = "; the best head is held against the best head of every shuffling"
    return shuffled + (best if len(result.heads) > 1 else "")


def _notes(result: Senses) -> Iterator[str]:
    """What must be known to read the numbers."""
    if len({each.position for each in result.usages}) > 1:
        yield "the word stands at different places: positions are in its vectors too"
    asked = result.asked.lower()
    other = [
        f"{each.word} in {i}"
        for i, each in enumerate(result.usages, start=1)
        if each.word.lower() != asked and not asked.lstrip("-").isdigit()
    ]
    if other:
        yield f"other forms: {', '.join(other)}"


def _facts(result: Senses) -> Iterator[tuple[object, ...]]:
    """A fact a row, texts by their number from 1."""
    first, second = np.triu_indices(len(result.usages), 1)
    for i, layer in enumerate(result.layers):
        for a, b in zip(first.tolist(), second.tolist(), strict=True):
            yield "cosine", layer, "together", a + 1, b + 1, float(result.cosines[i, a, b])
        if (parted := result.separation) is None:
            continue
        for name in _PARTS:
            yield name, layer, "together", "", "", float(getattr(parted, name)[i])
        for j, head in enumerate(result.heads):
            yield "within", layer, head, "", "", float(parted.heads_within[i, j])
            yield "between", layer, head, "", "", float(parted.heads_between[i, j])
