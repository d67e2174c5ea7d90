"""One word held against itself: what it attends to on both sides, and how alike its vectors are by layer."""

import math
from collections.abc import Iterator
from typing import cast

import numpy as np
from jaxtyping import Float

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import counted, weight_text
from attnscope.render.kit.words.certificate import certificate_line, certificate_words
from attnscope.render.kit.words.header import attention_words
from attnscope.render.kit.words.weights import key_groups
from attnscope.render.sheet.blocks import Beside, Curve, Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.said import number, proof
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Line, Mark, Table, Tint
from attnscope.render.sheets import comparison_words as words
from attnscope.render.sheets.comparison_words import cosine
from attnscope.results import Comparison, Side, Verdict

MOST_KEYS = 16
_MATTERS = 0.05  # of the largest weight of a row: a bar of less is hardly one
_ALIKE, _APART = Scale(-1.0, 1.0, "signed"), Scale(0.0, math.log(2))
_FACTS = "fact side layer_a layer_b head key token value"
_DIVERGENCE = "Jensen-Shannon divergence in nats, 0 to 0.693"


def sheet(found: Comparison, focus: Focus = WHOLE) -> Sheet:
    kinds = " and ".join(dict.fromkeys(attention_words(side.head.kind) for side in found.sides))
    curve = _by_layer(found) if found.similarities or len(found.layers) > 1 else None
    by_head = () if curve or len(found.heads) < 2 or found.divergence is None else (_by_head(found),)
    rows = [_row(found, letter, side) for letter, side in zip("AB", found.sides, strict=True)]
    return Sheet(
        title=" · ".join((words.subject(found), *words.looks(found))),
        setting=f"{kinds} · {words.models(found)}",
        origins=tuple(side.head.provenance for side in found.sides[: 1 + words.two_origins(found)]),
        answer=words.answer(found),
        blocks=(*by_head, Beside((*((curve,) if curve else ()), *rows))),
        table=lambda: Table.of(_FACTS, _facts(found)),
        texts=tuple(words.texts(found)),
        notes=tuple(words.notes(found)),
        proof=tuple(_proof(found, focus.verbose)),
        main=curve,
        whole="only one layer is compared, there is no curve to draw: this picture has several panels",
        summary=(words.heads(found),),
        record=tuple(_record(found)),
        more=tuple(_grids(found)),
    )


def _together(found: Comparison) -> str:
    """Which heads of a layer the cosines take as one vector."""
    count = len(found.heads)
    if count == 1:
        return f"H{found.heads[0]}"
    return (
        "all heads of a layer together" if count == found.a.head.heads else f"{count} chosen heads together"
    )


def _by_layer(found: Comparison) -> Curve:
    """Cosines of the vectors layer by layer, or where there are none how far the rows are apart."""
    i, j = found.shown
    several, output, rows = len(found.heads) > 1, found.similarity("output"), found.divergence
    columns = [
        Column(each.vector, each.together.tolist(), each.vector, cosine, scale=_ALIKE)
        for each in found.similarities
    ]
    if several and output is not None:
        least = [_extreme(found, -each, each) for each in output.heads]
        columns.append(
            Column("least", least, "least alike", says="the head whose outputs have the smallest cosine")
        )
    if rows is not None and several:
        most = [_extreme(found, each, each) for each in rows.jensen_shannon]
        says = f"the head whose rows differ most, by {_DIVERGENCE}"
        columns.append(Column("apart", most, "furthest apart", says=says))
    elif rows is not None:
        apart = rows.jensen_shannon[:, 0].tolist()
        columns.append(Column("apart", apart, "rows apart", cosine, f"by {_DIVERGENCE}", _APART))
    lines = [
        Line("line", _tint(each.vector), each.vector, each.together.tolist()) for each in found.similarities
    ]
    dots, tint = _dots(found), _tint("output") if found.similarities else _tint("own")
    if several:
        of = "the output of each head" if found.similarities else "each head"
        lines.append(Line("points", tint, of, dots.tolist()))
    elif not found.similarities:
        lines.append(Line("line", tint, "", dots[:, 0].tolist()))
    shown = [float(dots[i, j]) if row == i else None for row in range(len(found.layers))]
    lines.append(Line("ring", "control", "the head whose rows are shown", shown))
    lowest = min((end for each in lines for end in each.ends()), default=0.0)
    return Curve(
        title=f"cosine between the vectors of A and B, {_together(found)}"
        if found.similarities
        else "how far the rows of A and B are apart",
        of="layer",
        names=tuple(f"L{layer}" for layer, _ in found.layers),
        table=Table(*columns),
        places=tuple(float(layer) for layer, _ in found.layers),
        measured="cosine between A and B" if found.similarities else "Jensen-Shannon in nats",
        lines=tuple(lines),
        axis=(min(lowest, 0.0) - 0.07, 1.05) if found.similarities else (-0.02, math.log(2) + 0.02),
        chosen=frozenset({i}),
    )


def _tint(vector: str) -> Tint:
    """The colour of a vector is that of its name."""
    return cast("Tint", vector)


def _dots(found: Comparison) -> Float[np.ndarray, "layer head"]:
    """The number of every head that is drawn beside the lines: of its output, else of its rows."""
    if found.similarities:
        return found.similarities[-1].heads
    assert found.divergence is not None, "drawn only where there is something to draw"
    return found.divergence.jensen_shannon


def _grids(found: Comparison) -> Iterator[HeadGrid]:
    """Every head: how far apart its rows are, and how alike its vectors; layers are those of side A."""
    layers = tuple(a for a, _ in found.layers)
    if (rows := found.divergence) is not None:
        apart, moved = rows.jensen_shannon, rows.total_variation
        yield HeadGrid("divergence of the rows", layers, found.heads, apart, _APART, number, "nats")
        yield HeadGrid("total variation of the rows", layers, found.heads, moved, Scale(0.0, 1.0), number)
    for each in found.similarities:
        title = f"cosine of the {each.vector} vectors"
        yield HeadGrid(title, layers, found.heads, each.heads, _ALIKE, number)


def _extreme(
    found: Comparison, differing: Float[np.ndarray, " head"], shown: Float[np.ndarray, " head"]
) -> str:
    """`H3 .912`: the head that differs most."""
    if np.isnan(differing).all():
        return "-"
    j = int(np.nanargmax(differing))
    return f"H{found.heads[j]} {cosine(float(shown[j]))}"


def _by_head(found: Comparison) -> Ranking:
    """How far apart the rows of two layers are, head by head."""
    assert found.divergence is not None, "one text gives one sequence of tokens"
    nats, moved = (
        each[0].tolist() for each in (found.divergence.jensen_shannon, found.divergence.total_variation)
    )
    return Ranking(
        title="how far the rows of the two layers are apart",
        of="head",
        names=tuple(f"H{head}" for head in found.heads),
        table=Table(
            Column("apart", nats, "divergence", cosine, _DIVERGENCE, _APART),
            Column("moved", moved, "moved", cosine, "share of the weight, total variation"),
        ),
        measured="divergence in nats",
        marks=(Mark("bar", "own", "", nats),),
        written="apart",
        axis=(0.0, math.log(2)),
        chosen=frozenset({found.shown[1]}),
    )


def _row(found: Comparison, letter: str, side: Side) -> Ranking:
    """A bar for each key in the order of the text, on the scale of both sides; of many those that matter."""
    keys, places = _keys(side), [group[0] for group in key_groups(side.looked_at)]
    digits = len(str(max((places[key] for key in keys), default=0)))
    names = [f"{places[key]:>{digits}} {settled(side.key_tokens.names[key])}" for key in keys]
    weights = [float(side.weights[key]) if side.allowed[key] else math.nan for key in keys]
    others = [key for key in range(len(side.weights)) if key not in keys and side.allowed[key]]
    rest = [float(np.nansum(side.weights[others]))] if others else []
    names += [f"{' ' * digits} {counted(len(others), 'other')}"] if others else []
    full = max(float(np.nan_to_num(each.weights).max(initial=0.0)) for each in found.sides) or 1.0
    masked = [row for row, key in enumerate(keys) if not side.allowed[key]]
    return Ranking(
        title=f"{letter}: {side.position} {settled(side.word)} attends to",
        of="key",
        names=tuple(names),
        table=Table(Column("weight", [*weights, *rest], "weight", lambda value: weight_text(value, 3))),
        says=" · ".join(words.remarks(side)),
        measured="attention weight",
        marks=(Mark("bar", "own", "", [*weights, *([None] * len(rest))]),),
        written="weight",
        axis=(0.0, full),
        faint=frozenset({*masked, *([len(keys)] if others else [])}),
        chosen=frozenset(keys.index(key) for key in _own(side)),
    )


def _keys(side: Side) -> list[int]:
    """All of few keys; of many the strongest that have a bar to speak of, and the word itself."""
    weights = np.nan_to_num(side.weights)
    if len(weights) <= MOST_KEYS or not side.allowed.any():
        return sorted({*range(len(weights))[:MOST_KEYS], *_own(side)})
    least, order = _MATTERS * float(weights.max()), np.argsort(-weights, kind="stable")[:MOST_KEYS]
    return sorted({*(int(key) for key in order if weights[key] >= least), *_own(side)})


def _own(side: Side) -> list[int]:
    """The word itself among the keys; in cross-attention it is none of them."""
    return [side.row] if side.query_tokens is side.key_tokens else []


def _proof(found: Comparison, verbose: bool) -> Iterator[tuple[Verdict, str]]:
    """Every head that a number was taken from by verdict, then the two that are shown, unless that is all."""
    every = [each.verdict for side in found.sides for each in side.every_certificate]
    yield from proof(every, "head", ", both sides counted")
    for letter, side in zip("AB", found.sides, strict=True):
        own = side.head.certificate
        if verbose or own.verdict is not Verdict.CERTIFIED:
            yield own.verdict, f"{letter} {side.head.name} {certificate_line(own, verbose).plain}"


def _record(found: Comparison) -> Iterator[tuple[str, object]]:
    """The verdict, then head, word, certificate and model of each side."""
    yield "verdict", found.verdict.value
    for letter, side in zip("ab", found.sides, strict=True):
        yield f"{letter} head", side.head.name
        yield f"{letter} word", f"{side.position} {side.word}"
        yield f"{letter} certificate", certificate_words(side.head.certificate)
        yield f"{letter} model", f"{side.head.provenance.model} {side.head.provenance.source}"


def _facts(found: Comparison) -> Iterator[tuple[object, ...]]:
    """A fact a row: a cosine or a divergence of two layers, or a weight of one side.

    Of a word or a token of a view `key` is the position of its first token in the head.
    """
    for i, pair in enumerate(found.layers):
        for each in found.similarities:
            yield f"cosine {each.vector}", "", *pair, "together", "", "", float(each.together[i])
        for j, head in enumerate(found.heads):
            for each in found.similarities:
                yield f"cosine {each.vector}", "", *pair, head, "", "", float(each.heads[i, j])
            if found.divergence is not None:
                nats, moved = found.divergence.jensen_shannon[i, j], found.divergence.total_variation[i, j]
                yield "jensen-shannon nats", "", *pair, head, "", "", float(nats)
                yield "total variation", "", *pair, head, "", "", float(moved)
    layers = found.a.head.layer, found.b.head.layer
    for letter, side in zip("ab", found.sides, strict=True):
        firsts = [group[0] for group in key_groups(side.looked_at)]
        for key, label, weight in zip(firsts, side.key_tokens.labels, side.weights, strict=True):
            yield "weight", letter, *layers, side.head.head, key, label, float(weight)
