"""One word held against itself: what it attends to on both sides, and how alike its vectors are by layer."""

import math
from collections.abc import Iterator
from functools import partial
from typing import cast

import numpy as np
from jaxtyping import Float

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import cell, counted, weight
from attnscope.render.kit.words.certificate import certificate_line, certificate_words
from attnscope.render.kit.words.header import attention_words
from attnscope.render.kit.words.weights import key_groups
from attnscope.render.sheet.blocks import Beside, Curve, Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.said import proof
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Line, Mark, Table, Tint
from attnscope.render.sheets import comparison_words as words
from attnscope.render.sheets.comparison_words import cosine
from attnscope.render.sheets.passages import of_comparison
from attnscope.results import Comparison, Side, Verdict

MOST_KEYS = 16
_MATTERS = 0.05  # of the largest weight of a row: a bar of less is hardly one
_ALIKE, _APART = Scale(-1.0, 1.0, "signed"), Scale(0.0, math.log(2))
_FACTS = "fact side layer_a layer_b head key token value"
_DIVERGENCE = "Jensen-Shannon divergence in nats, 0 to .693"


def sheet(result: Comparison, focus: Focus = WHOLE) -> Sheet:
    kinds = " and ".join(dict.fromkeys(attention_words(side.head.kind) for side in result.sides))
    curve = _by_layer(result) if result.similarities or len(result.layers) > 1 else None
    by_head = () if curve or len(result.heads) < 2 or result.divergence is None else (_by_head(result),)
    rows = [_row(result, letter, side) for letter, side in zip("AB", result.sides, strict=True)]
    return Sheet(
        title=" · ".join((words.subject(result), *words.looks(result))),
        setting=f"{kinds} · {words.models(result)}",
        origins=tuple(side.head.provenance for side in result.sides[: 1 + words.two_origins(result)]),
        answer=words.answer(result),
        blocks=(*by_head, Beside((*((curve,) if curve else ()), *rows))),
        table=lambda: Table.of(_FACTS, _facts(result)),
        texts=tuple(words.texts(result)),
        control=words.control(result),
        notes=tuple(words.notes(result)),
        legend=tuple(words.legend(result)),
        proof=tuple(_proof(result, focus.verbose)),
        main=curve,
        whole="only one layer is compared, there is no curve to draw: this picture has several panels",
        summary=(words.heads(result),),
        record=tuple(_record(result)),
        departs=tuple(words.looks(result)),
        more=(*of_comparison(result), *_grids(result)),
        next=words.following(result),
    )


def _together(result: Comparison) -> str:
    """Which heads of a layer the cosines take as one vector."""
    count = len(result.heads)
    if count == 1:
        return f"H{result.heads[0]}"
    return (
        "all heads of a layer together" if count == result.a.head.heads else f"{count} chosen heads together"
    )


def _by_layer(result: Comparison) -> Curve:
    """Cosines of the vectors layer by layer, or where there are none how far the rows are apart."""
    i, j = result.shown
    several, output, rows = len(result.heads) > 1, result.similarity("output"), result.divergence
    columns = [
        Column(each.vector, each.together.tolist(), each.vector, cosine, scale=_ALIKE)
        for each in result.similarities
    ]
    if several and output is not None:
        least = [_extreme(result, -each, each) for each in output.heads]
        columns.append(
            Column("least", least, "least alike", says="the head whose outputs have the smallest cosine")
        )
    if rows is not None and several:
        most = [_extreme(result, each, each) for each in rows.jensen_shannon]
        says = f"the head whose rows differ most, by {_DIVERGENCE}"
        columns.append(Column("apart", most, "furthest apart", says=says))
    elif rows is not None:
        apart = rows.jensen_shannon[:, 0].tolist()
        columns.append(Column("apart", apart, "rows apart", cosine, f"by {_DIVERGENCE}", _APART))
    lines = [
        Line("line", _tint(each.vector), each.vector, each.together.tolist()) for each in result.similarities
    ]
    dots, tint = _dots(result), _tint("output") if result.similarities else _tint("own")
    if several:
        of = "the output of each head" if result.similarities else "each head"
        lines.append(Line("points", tint, of, dots.tolist()))
    elif not result.similarities:
        lines.append(Line("line", tint, "", dots[:, 0].tolist()))
    shown = [float(dots[i, j]) if row == i else None for row in range(len(result.layers))]
    lines.append(Line("ring", "control", "the head whose rows are shown", shown))
    lowest = min((end for each in lines for end in each.ends()), default=0.0)
    return Curve(
        title=f"cosine between the vectors of A and B, {_together(result)}"
        if result.similarities
        else "how far the rows of A and B are apart",
        of="layer",
        names=tuple(f"L{layer}" for layer, _ in result.layers),
        table=Table(*columns),
        places=tuple(float(layer) for layer, _ in result.layers),
        measured="cosine between A and B" if result.similarities else "Jensen-Shannon in nats",
        lines=tuple(lines),
        axis=(min(lowest, 0.0) - 0.07, 1.05) if result.similarities else (-0.02, math.log(2) + 0.02),
        chosen=frozenset({i}),
    )


def _tint(vector: str) -> Tint:
    """The colour of a vector is that of its name."""
    return cast("Tint", vector)


def _dots(result: Comparison) -> Float[np.ndarray, "layer head"]:
    """The number of every head that is drawn beside the lines: of its output, else of its rows."""
    if result.similarities:
        return result.similarities[-1].heads
    assert result.divergence is not None, "drawn only where there is something to draw"
    return result.divergence.jensen_shannon


def _grids(result: Comparison) -> Iterator[HeadGrid]:
    """Every head: how far apart its rows are, and how alike its vectors; layers are those of side A."""
    layers = tuple(a for a, _ in result.layers)
    if (rows := result.divergence) is not None:
        apart, moved = rows.jensen_shannon, rows.total_variation
        yield HeadGrid("divergence of the rows", layers, result.heads, apart, _APART, cell, "nats")
        yield HeadGrid("total variation of the rows", layers, result.heads, moved, Scale(0.0, 1.0), cell)
    for each in result.similarities:
        title = f"cosine of the {each.vector} vectors"
        yield HeadGrid(title, layers, result.heads, each.heads, _ALIKE, cell)


def _extreme(
    result: Comparison, differing: Float[np.ndarray, " head"], shown: Float[np.ndarray, " head"]
) -> str:
    """`H3 .912`: the head that differs most."""
    if np.isnan(differing).all():
        return "-"
    j = int(np.nanargmax(differing))
    return f"H{result.heads[j]} {cosine(float(shown[j]))}"


def _by_head(result: Comparison) -> Ranking:
    """How far apart the rows of two layers are, head by head."""
    assert result.divergence is not None, "one text gives one sequence of tokens"
    nats, moved = (
        each[0].tolist() for each in (result.divergence.jensen_shannon, result.divergence.total_variation)
    )
    return Ranking(
        title="how far the rows of the two layers are apart",
        of="head",
        names=tuple(f"H{head}" for head in result.heads),
        table=Table(
            Column("apart", nats, "divergence", cosine, _DIVERGENCE, _APART),
            Column("moved", moved, "moved", cosine, "share of the weight, total variation"),
        ),
        measured="divergence in nats",
        marks=(Mark("bar", "own", "", nats),),
        written="apart",
        axis=(0.0, math.log(2)),
        chosen=frozenset({result.shown[1]}),
    )


def _row(result: Comparison, letter: str, side: Side) -> Ranking:
    """A bar for each key in the order of the text, on the scale of both sides; of many those that matter."""
    keys, places = _keys(side), [group[0] for group in key_groups(side.looked_at)]
    places = list(side.key_tokens.positions) if side.key_tokens.of_sentences else places
    digits = len(str(max((places[key] for key in keys), default=0)))
    names = [f"{places[key]:>{digits}} {settled(side.key_tokens.names[key])}" for key in keys]
    weights = [float(side.weights[key]) if side.allowed[key] else math.nan for key in keys]
    others = [key for key in range(len(side.weights)) if key not in keys and side.allowed[key]]
    rest = [float(np.nansum(side.weights[others]))] if others else []
    names += [f"{' ' * digits} {counted(len(others), 'other')}"] if others else []
    full = max(float(np.nan_to_num(each.weights).max(initial=0.0)) for each in result.sides) or 1.0
    masked = [row for row, key in enumerate(keys) if not side.allowed[key]]
    return Ranking(
        title=f"{letter}, {side.head.name}: {words.placed(side)} attends to",
        of="key",
        names=tuple(names),
        table=Table(Column("weight", [*weights, *rest], "weight", partial(weight, decimals=3))),
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


def _proof(result: Comparison, verbose: bool) -> Iterator[tuple[Verdict, str]]:
    """Every head that a number was taken from by verdict, then the two that are shown, unless that is all."""
    every = [each.verdict for side in result.sides for each in side.every_certificate]
    yield from proof(every, "head", ", both sides counted")
    for letter, side in zip("AB", result.sides, strict=True):
        own = side.head.certificate
        if verbose or not own.verdict.proved:
            yield own.verdict, f"{letter} {side.head.name} {certificate_line(own, verbose).plain}"


def _record(result: Comparison) -> Iterator[tuple[str, object]]:
    """The verdict, then head, word, certificate and model of each side."""
    yield "verdict", result.verdict.value
    for letter, side in zip("ab", result.sides, strict=True):
        yield f"{letter} head", side.head.name
        yield f"{letter} word", words.placed(side)
        yield f"{letter} certificate", certificate_words(side.head.certificate)
        yield f"{letter} model", f"{side.head.provenance.model} {side.head.provenance.source}"


def _facts(result: Comparison) -> Iterator[tuple[object, ...]]:
    """A fact a row: a cosine or a divergence of two layers, or a weight of one side.

    Of a word or a token of a view `key` is the position of its first token in the head.
    """
    for i, pair in enumerate(result.layers):
        for each in result.similarities:
            yield f"cosine {each.vector}", "", *pair, "together", "", "", float(each.together[i])
        for j, head in enumerate(result.heads):
            for each in result.similarities:
                yield f"cosine {each.vector}", "", *pair, head, "", "", float(each.heads[i, j])
            if result.divergence is not None:
                nats, moved = result.divergence.jensen_shannon[i, j], result.divergence.total_variation[i, j]
                yield "jensen-shannon nats", "", *pair, head, "", "", float(nats)
                yield "total variation", "", *pair, head, "", "", float(moved)
    layers = result.a.head.layer, result.b.head.layer
    for letter, side in zip("ab", result.sides, strict=True):
        firsts = [group[0] for group in key_groups(side.looked_at)]
        for key, label, value in zip(firsts, side.key_tokens.labels, side.weights, strict=True):
            yield "weight", letter, *layers, side.head.head, key, label, float(value)
