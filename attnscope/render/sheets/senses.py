"""One word in many texts: how alike it is in each pair, and layer by layer how far labels part it."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import counted
from attnscope.render.kit.words.header import model_words
from attnscope.render.sheet.blocks import Curve, Matrix, Names
from attnscope.render.sheet.said import attention, marked_word, number, proof
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Line, Table
from attnscope.results import Senses
from attnscope.results.claims.senses import Usage
from attnscope.tokens import printable

_ALIKE = Scale(-1.0, 1.0, "signed", ("opposite", "the same"))
_AROUND = 38  # characters of a text on each side of the word
_cosine = partial(number, decimals=3)
_PARTS = ("within", "between", "chance", "percentile", "best_chance", "best_percentile")


def sheet(found: Senses, focus: Focus = WHOLE) -> Sheet:
    order = _by_label(found)
    curve = _by_layer(found) if found.separation is None else _parted(found)
    heads = "all heads of a layer as one" if len(found.heads) > 1 else f"H{found.heads[0]}"
    asked = f"“{printable(found.asked)}” in {counted(len(found.usages), 'text')}"
    groups = f", {counted(len(found.labels), 'group')}" if found.labels else ""
    return Sheet(
        title=asked + groups,
        setting=f"{model_words(found.provenance)} · {attention(found.kind, '')} · cosines of the output "
        f"vectors, {heads}",
        origins=(found.provenance,),
        answer=_answer(found),
        blocks=(curve, _pairs(found, order)),
        table=lambda: Table.of("fact layer head text_a text_b value", _facts(found)),
        notes=tuple(_notes(found)),
        proof=proof(found.certified, "head", ", all texts counted"),
        main=curve,
        record=tuple(("text", f"{i} {_in_its_text(each)}") for i, each in enumerate(found.usages, start=1)),
    )


def _by_label(found: Senses) -> list[int]:
    """The texts in the order of their labels, those of one label as they came."""
    ranks = [found.labels.index(each.label) if found.labels else 0 for each in found.usages]
    return list(map(int, np.argsort(ranks, kind="stable")))


def _in_its_text(usage: Usage) -> str:
    """`river “... the «bank» of ...”`: the text around the word, this one marked where it is found."""
    label = f"{printable(usage.label)} " if usage.label else ""
    place = usage.text.find(usage.word)
    if place < 0:
        return f"{label}“{printable(usage.text[: 2 * _AROUND])}”"
    before, after = usage.text[:place], usage.text[place + len(usage.word) :]
    before = before if len(before) <= _AROUND else f"…{before[-_AROUND:]}"
    after = after if len(after) <= _AROUND else f"{after[:_AROUND]}…"
    return f"{label}“{marked_word(before, usage.word, after)}”"


def _pairs(found: Senses, order: list[int]) -> Matrix:
    """The cosines of all pairs in the layer that is shown, texts of one label together."""
    labels, numbers = [found.usages[i].label for i in order], tuple(i + 1 for i in order)
    return Matrix(
        title=f"cosine of each pair of texts, L{found.layers[found.shown]}",
        words=("text", "text"),
        rows=Names(tuple(_in_its_text(found.usages[i]) for i in order), numbers),
        columns=Names(("",) * len(order), numbers),
        values=found.cosines[found.shown][np.ix_(order, order)],
        scale=_ALIKE,
        form=number,
        groups=tuple(i for i in range(1, len(order)) if labels[i] != labels[i - 1]),
    )


def _parted(found: Senses) -> Curve:
    """Of groups the means within and between, and the gap beside that of shuffled labels."""
    parted = found.separation
    assert parted is not None, "only where there are groups"
    within, between, gap, chance = (
        each.tolist() for each in (parted.within, parted.between, parted.gap, parted.chance)
    )
    columns = [
        Column("within", within, "within", _cosine, "mean cosine of pairs with one label", _ALIKE),
        Column("between", between, "between", _cosine, "of pairs with two labels", _ALIKE),
        Column("gap", gap, "gap", _cosine, "the one less the other", _ALIKE),
        Column("chance", chance, "chance", _cosine, "gap of shuffled labels"),
        Column("below", parted.percentile.tolist(), "below", _percent, "how many shuffles have less"),
    ]
    if len(found.heads) > 1:
        best = [_best(found, i) for i in range(len(found.layers))]
        gaps = [float(parted.heads_gap[i, j]) for i, j in enumerate(best)]
        chances, shares = parted.best_chance.tolist(), parted.best_percentile.tolist()
        columns += [
            Column("best", [f"H{found.heads[j]}" for j in best], "best head"),
            Column("best_gap", gaps, "gap", _cosine),
            Column("best_chance", chances, "chance", _cosine, "of the best head of each shuffle", spared=2),
            Column("best_below", shares, "below", _percent, spared=1),
        ]
    lines = (
        Line("line", "query", "pairs of one group", within),
        Line("line", "other", "pairs of two groups", between),
        Line("line", "control", "gap", gap),
        Line("dashed", "peers", "gap of shuffled labels", chance),
    )
    return _curve(found, "how far the groups lie apart", Table(*columns), lines)


def _by_layer(found: Senses) -> Curve:
    """The mean of all pairs, with the pair that is most alike and the one that is least."""
    first, second = np.triu_indices(len(found.usages), 1)
    values = found.cosines[:, first, second]
    means = np.nanmean(values, axis=1).tolist()
    alike = [_extremes(found, i) for i in range(len(found.layers))]
    columns = Column("mean", means, "mean", _cosine, "of all pairs", _ALIKE), Column("texts", alike, "texts")
    lines = (
        Line("band", "query", "all pairs", np.nanmin(values, 1).tolist(), np.nanmax(values, 1).tolist()),
        Line("line", "query", "mean of all pairs", means),
    )
    return _curve(found, "how alike the texts are", Table(*columns), lines)


def _curve(found: Senses, title: str, table: Table, lines: tuple[Line, ...]) -> Curve:
    lowest = min(end for each in lines for end in each.ends())
    return Curve(
        title=f"{title}, layer by layer",
        of="layer",
        names=tuple(f"L{layer}" for layer in found.layers),
        table=table,
        places=tuple(map(float, found.layers)),
        measured="cosine",
        lines=lines,
        axis=(min(lowest - 0.05, 0.0), 1.05),
        chosen=frozenset({found.shown}),
    )


def _best(found: Senses, i: int) -> int:
    """The place of the head of layer number `i` that parts the groups best."""
    assert found.separation is not None, "only where there are groups"
    return int(np.nan_to_num(found.separation.heads_gap[i], nan=-np.inf).argmax())


def _percent(share: float) -> str:
    return f"{share:.1f} %"


def _extremes(found: Senses, i: int) -> str:
    """The two texts that are most alike in layer number `i`, and the two that are least."""
    most, least = found.extremes(i)
    told = (
        f"{word} alike {a + 1} and {b + 1} ({_cosine(float(found.cosines[i, a, b]))})"
        for word, (a, b) in (("most", most), ("least", least))
    )
    return ", ".join(told)


def _answer(found: Senses) -> str:
    """What the layer that is shown in full says."""
    i, layer, parted = found.shown, f"L{found.layers[found.shown]}", found.separation
    if parted is None:
        (a, b), (c, d) = found.extremes(i)
        most, least = (_cosine(float(found.cosines[i, one, two])) for one, two in ((a, b), (c, d)))
        alike = f"texts {a + 1} and {b + 1} are most alike ({most})"
        return f"In {layer} {alike}, {c + 1} and {d + 1} least ({least})."
    told = (
        f"The groups lie furthest apart in {layer}: cosines are {_cosine(parted.within[i])} within and "
        f"{_cosine(parted.between[i])} between them. That gap is {_cosine(parted.gap[i])}, of shuffled "
        f"labels {_cosine(parted.chance[i])}, and {_percent(parted.percentile[i])} of these have less."
    )
    if len(found.heads) < 2:
        return told
    j = _best(found, i)
    return (
        f"{told} H{found.heads[j]} alone has {_cosine(parted.heads_gap[i, j])}, the best head of shuffled "
        f"labels {_cosine(parted.best_chance[i])}, and {_percent(parted.best_percentile[i])} of these have "
        "less."
    )


def _notes(found: Senses) -> Iterator[str]:
    """What must be known to read the numbers."""
    yield "output: of the heads, before the output projection"
    if found.separation is not None:
        shuffled = f"labels are shuffled {found.separation.controls} times (seed {found.separation.seed})"
        best = "; the best head is held against the best head of every shuffling"
        yield shuffled + (best if len(found.heads) > 1 else "")
    if len({each.position for each in found.usages}) > 1:
        yield "the word stands at different places: positions are in its vectors too"
    asked = found.asked.lower()
    other = [
        f"{printable(each.word)} in {i}"
        for i, each in enumerate(found.usages, start=1)
        if each.word.lower() != asked and not asked.lstrip("-").isdigit()
    ]
    if other:
        yield f"other forms: {', '.join(other)}"


def _facts(found: Senses) -> Iterator[tuple[object, ...]]:
    """A fact a row, texts by their number from 1."""
    first, second = np.triu_indices(len(found.usages), 1)
    for i, layer in enumerate(found.layers):
        for a, b in zip(first.tolist(), second.tolist(), strict=True):
            yield "cosine", layer, "together", a + 1, b + 1, float(found.cosines[i, a, b])
        if (parted := found.separation) is None:
            continue
        for name in _PARTS:
            yield name, layer, "together", "", "", float(getattr(parted, name)[i])
        for j, head in enumerate(found.heads):
            yield "within", layer, head, "", "", float(parted.heads_within[i, j])
            yield "between", layer, head, "", "", float(parted.heads_between[i, j])
