"""The sheet of one word on two sides: its attention rows, and how alike its vectors are by layer."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
from jaxtyping import Float

from attnscope.errors import listed
from attnscope.render.kit.cells import settled
from attnscope.render.kit.command import looked_at, opening_head
from attnscope.render.kit.numbers import cell, counted, number, weight
from attnscope.render.kit.palette import by_root
from attnscope.render.kit.words import (
    CROSS_ROWS,
    SPANS,
    WITHOUT_SPECIAL,
    attention_words,
    certificate_line,
    certificate_words,
    joined_words,
    key_groups,
    model_words,
    spans,
)
from attnscope.render.sheet.blocks import Beside, Curve, Passage, Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.said import departures, marked_word, proof
from attnscope.render.sheet.sheet import Next, Sheet, saying
from attnscope.render.sheet.table import Column, Line, Mark, Scale, Table, Tint
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import Kind, Special, Verdict
from attnscope.verbs.compare.result import Between, Comparison, Side

MOST_KEYS = 16
_MATTERS = 0.05  # of the largest weight of a row: a bar of less is hardly one
_ALIKE, _APART = Scale(-1.0, 1.0, "signed"), Scale(0.0, math.log(2))
_FACTS = "fact side layer_a layer_b head key token value"
_AROUND = 160  # characters of a long text on each side of the word
_thousandth = partial(number, decimals=3)
_weight = partial(weight, decimals=3)  # beside its bar


def sheet(result: Comparison, focus: Focus = WHOLE) -> Sheet:
    say, looks = said(result), departures(result.by, result.special)
    kinds = " and ".join(dict.fromkeys(attention_words(side.head.kind) for side in result.sides))
    layered = result.similarities or (result.divergence is not None and len(result.layers) > 1)
    curve = _by_layer(result, say) if layered else None
    by_head = () if curve or len(result.heads) < 2 or result.divergence is None else (_by_head(result, say),)
    rows = [_row(result, say, letter, side) for letter, side in zip("AB", result.sides, strict=True)]
    origins = tuple(side.head.provenance for side in result.sides)
    # of two models, or of two ways of running one; not of two texts
    several = origins[0].of_no_text != origins[1].of_no_text
    return saying(
        say,
        title=" · ".join((say("subject"), *looks)),
        setting=f"{kinds} · {models(result)}",
        origins=origins[: 1 + several],
        blocks=(*by_head, Beside((*((curve,) if curve else ()), *rows))),
        table=lambda: Table.of(_FACTS, _records(result)),
        texts=tuple(_texts(result, say)),
        notes=(*say.lines("notes"), *say.lines("view_notes"), *say.lines("notes_of_rows")),
        proof=tuple(_proof(result, focus.verbose)),
        main=curve,
        whole=say("no_curve"),
        summary=(heads(result),),
        record=tuple(_record(result)),
        departs=looks,
        more=(*_shaded(result, say), *_grids(result)),
        next=_following(result, say),
    )


def said(result: Comparison) -> Said:
    """A `Said` that fills the sentence templates about one word on two sides with its facts."""
    (i, j), rows, output = result.shown, result.divergence, result.similarity("output")
    least, texts = result.least_alike, result.between is Between.TEXTS
    cosine = output and float(output.heads[i, j])
    closest = None
    if output is not None and least is not None:
        closest = int(np.nanargmax(output.together))
    if texts and output is not None:
        cosine = float(output.together[least or 0])
    spanned = any(spans(side.view) for side in result.sides if side.view is not None)
    sinking = any(side.head.sink is not None for side in result.sides)
    facts = {
        # which heads
        "shown": heads(result),
        "several": len(result.heads) > 1,
        # how alike their vectors are; of texts those of all heads of a layer
        "cosine": cosine,
        "typical_cosine": None if output is None else _typical(output.heads),
        "layer": result.layers[least or 0][0],
        "closest": None if closest is None else result.layers[closest][0],
        "closest_cosine": None if output is None or closest is None else float(output.together[closest]),
        # how far their rows are apart
        "moved": None if rows is None else float(rows.total_variation[i, j]),
        "typical": None if rows is None else _typical(rows.total_variation),
        # where two models part
        "others": len(result.heads) - len(result.begins),
        "before": i * len(result.heads),
        # how it is looked at
        "spans": SPANS if spanned else "",
        "joined": joined_words(result.by) if result.by.joins else "",
        "without_special": WITHOUT_SPECIAL,
        "cross_rows": CROSS_ROWS if any(side.head.kind is Kind.CROSS for side in result.sides) else "",
        "sinking": rows is not None and sinking and result.special is not Special.RENORMALISE,
        "from_embedding": texts and result.a.head.kind is not Kind.CROSS and (0, 0) in result.layers,
    }
    return Said("compare", result, facts)


def _typical(values: Float[np.ndarray, "layer head"]) -> float | None:
    return None if np.isnan(values).all() else float(np.nanmedian(values))


def _by_layer(result: Comparison, say: Said) -> Curve:
    i, j = result.shown
    several, output, rows = len(result.heads) > 1, result.similarity("output"), result.divergence
    columns, lines = list[Column](), list[Line]()
    tint: Tint = "output" if result.similarities else "own"
    for each in result.similarities:
        name, values = each.vector, each.together.tolist()
        columns.append(Column(name, values, name, _thousandth, scale=_ALIKE))
        lines.append(Line("line", cast("Tint", name), name, values))
    if several and output is not None:
        least = [_extreme(result, -each, each) for each in output.heads]
        columns.append(Column("least", least, "least alike", says=say("least_alike")))
    if rows is not None and several:
        most = [_extreme(result, each, each) for each in rows.jensen_shannon]
        columns.append(Column("apart", most, "furthest apart", says=say("furthest_apart")))
    elif rows is not None:
        apart = rows.jensen_shannon[:, 0].tolist()
        columns.append(Column("apart", apart, "rows apart", _thousandth, f"by {say('divergence')}", _APART))
    if result.similarities:
        dots = result.similarities[-1].heads
    else:
        assert rows is not None, "drawn only where there is something to draw"
        dots = rows.jensen_shannon
    if several:
        lines.append(Line("points", tint, say("each_head"), dots.tolist()))
    elif not result.similarities:
        lines.append(Line("line", tint, "", dots[:, 0].tolist()))
    shown = [float(dots[i, j]) if row == i else None for row in range(len(result.layers))]
    lines.append(Line("ring", "control", say("ring"), shown))
    lowest = min((end for each in lines for end in each.ends()), default=0.0)
    return by_layer(
        [layer for layer, _ in result.layers],
        say("curve_title"),
        say("curve_measured"),
        columns,
        lines,
        axis=(min(lowest, 0.0) - 0.07, 1.05) if result.similarities else (-0.02, math.log(2) + 0.02),
        chosen=frozenset({i}),
    )


def _grids(result: Comparison) -> Iterator[HeadGrid]:
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
    if np.isnan(differing).all():
        return "-"
    j = int(np.nanargmax(differing))
    return f"H{result.heads[j]} {_thousandth(float(shown[j]))}"


def _by_head(result: Comparison, say: Said) -> Ranking:
    assert result.divergence is not None, "one text gives one sequence of tokens"
    nats, moved = (
        each[0].tolist() for each in (result.divergence.jensen_shannon, result.divergence.total_variation)
    )
    return Ranking(
        title=say("by_head_title"),
        of="head",
        names=tuple(f"H{head}" for head in result.heads),
        table=Table(
            Column("apart", nats, "divergence", _thousandth, say("divergence"), _APART),
            Column("moved", moved, "moved", _thousandth, say("share_moved")),
        ),
        measured="divergence in nats",
        marks=(Mark("bar", "own", "", nats),),
        written="apart",
        axis=(0.0, math.log(2)),
        chosen=frozenset({result.shown[1]}),
    )


def _row(result: Comparison, say: Said, letter: str, side: Side) -> Ranking:
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
        title=say("row_title", letter, side.head.name, _placed(side)),
        of="key",
        names=tuple(names),
        table=Table(Column("weight", [*weights, *rest], "weight", _weight)),
        says=" · ".join(say.lines("remarks", *_remarks(side))),
        measured="attention weight",
        marks=(Mark("bar", "own", "", [*weights, *([None] * len(rest))]),),
        written="weight",
        axis=(0.0, full),
        faint=frozenset({*masked, *([len(keys)] if others else [])}),
        chosen=frozenset(keys.index(key) for key in _own(side)),
    )


def _keys(side: Side) -> list[int]:
    weights = np.nan_to_num(side.weights)
    if len(weights) <= MOST_KEYS or not side.allowed.any():
        return sorted({*range(len(weights))[:MOST_KEYS], *_own(side)})
    least, order = _MATTERS * float(weights.max()), np.argsort(-weights, kind="stable")[:MOST_KEYS]
    return sorted({*(int(key) for key in order if weights[key] >= least), *_own(side)})


def _own(side: Side) -> list[int]:
    return [side.row] if side.query_tokens is side.key_tokens else []


def _proof(result: Comparison, verbose: bool) -> Iterator[tuple[Verdict, str]]:
    every = [each.verdict for side in result.sides for each in side.every_certificate]
    yield from proof(every, "head", ", both sides counted")
    for letter, side in zip("AB", result.sides, strict=True):
        own = side.head.certificate
        if verbose or not own.verdict.proved:
            yield own.verdict, f"{letter} {side.head.name} {certificate_line(own, verbose).plain}"


def _record(result: Comparison) -> Iterator[tuple[str, object]]:
    yield "verdict", result.verdict.value
    for letter, side in zip("ab", result.sides, strict=True):
        yield f"{letter} head", side.head.name
        yield f"{letter} word", _placed(side)
        yield f"{letter} certificate", certificate_words(side.head.certificate)
        yield f"{letter} model", f"{side.head.provenance.model} {side.head.provenance.source}"


def _records(result: Comparison) -> Iterator[tuple[object, ...]]:
    measured = [(f"cosine {each.vector}", each.heads) for each in result.similarities]
    if (rows := result.divergence) is not None:
        measured += [("jensen-shannon nats", rows.jensen_shannon), ("total variation", rows.total_variation)]
    for i, pair in enumerate(result.layers):
        for each in result.similarities:
            yield f"cosine {each.vector}", "", *pair, "together", "", "", float(each.together[i])
        for j, head in enumerate(result.heads):
            for fact, values in measured:
                yield fact, "", *pair, head, "", "", float(values[i, j])
    layers = result.a.head.layer, result.b.head.layer
    for letter, side in zip("ab", result.sides, strict=True):
        firsts = [group[0] for group in key_groups(side.looked_at)]
        for key, label, value in zip(firsts, side.key_tokens.labels, side.weights, strict=True):
            yield "weight", letter, *layers, side.head.head, key, label, float(value)


def _shaded(result: Comparison, say: Said) -> Iterator[Passage]:
    """The word's attention weights, shaded in the text of either side."""
    for letter, side in zip("AB", result.sides, strict=True):
        if side.key_tokens.texts:
            yield Passage(
                say("row_title", letter, side.head.name, _placed(side)),
                side.key_tokens,
                np.where(side.allowed, side.weights, math.nan),
                by_root(),
                _weight,
                frozenset({side.row}) if side.query_tokens is side.key_tokens else frozenset(),
            )


def _texts(result: Comparison, say: Said) -> Iterator[str]:
    """Lines for each side: its name, its text with the word marked, and the keys' text in cross-attention.

    Text that both sides share stands once, before them.
    """
    read = []
    for side in result.sides:
        keys = side.head.key_tokens.sentence if side.head.kind is Kind.CROSS else ""
        read.append((sentence(side), say("keys_of", keys) if keys else ""))
    apart = result.between is Between.TEXTS
    both = [a if a == b and not apart else "" for a, b in zip(*read, strict=True)]
    yield from filter(None, both)
    for letter, side, told in zip("AB", result.sides, read, strict=True):
        text, keys = ("" if shared else own for own, shared in zip(told, both, strict=True))
        yield f"{letter} " + " · ".join(filter(None, (side_words(result, side), text)))
        if keys:
            yield f"  {keys}"


def _following(result: Comparison, say: Said) -> Next | None:
    """The next command: opens the shown head on the second text, or under the first model."""
    head = (result.b if result.between is Between.TEXTS else result.a).head
    if result.between is not Between.TEXTS and head.kind is Kind.CROSS:
        return None
    opened = opening_head(head, head.layer, head.head)
    return Next(say("other_tokens"), f"{opened}{looked_at(result.by, result.special)}")


def _remarks(side: Side) -> tuple[str, int, float | None, float | None]:
    """Facts about a row: why it is empty, masked keys, weight on hidden special tokens, the sink's weight."""
    there = side.weights[side.allowed]
    row = there if side.view is None else side.whole_row
    sink = None if side.head.sink is None else float(1 - row.sum())
    nothing = "" if side.view is None or np.nan_to_num(there).any() else "left"
    if not side.allowed.any() and side.special_weight is None:
        nothing = "keys"
    return nothing, int((~side.allowed).sum()), side.special_weight, sink


def heads(result: Comparison) -> str:
    """Names of the heads shown in full: `L3 H11`, or `L1 H11 and L3 H11`."""
    return " and ".join(dict.fromkeys(side.head.name for side in result.sides))


def models(result: Comparison) -> str:
    """The name of the model, or of both models."""
    return " and ".join(dict.fromkeys(model_words(side.head.provenance) for side in result.sides))


def side_words(result: Comparison, side: Side) -> str:
    """The name of this side's layer or model, where sides differ in it; empty for texts."""
    if result.between is Between.LAYERS:
        return side.head.name
    return model_words(side.head.provenance) if result.between is Between.MODELS else ""


def _placed(side: Side) -> str:
    """Position and word: `5 door`, for a span `4-5 the door`."""
    several = side.view is not None and spans(side.view)
    return f"{listed(side.pieces) if several else side.position} {settled(side.word)}"


def sentence(side: Side) -> str:
    """The text with the word marked in it; without a text, the notes on what was read."""
    tokens, token = side.query_tokens, side.query_tokens.items[side.row]
    if not tokens.texts:
        return ", ".join(side.head.notes)
    if token.span is None or token.part >= len(tokens.texts) or not token.text.strip():
        return f"“{tokens.sentence}”"
    start, end = token.span
    text = tokens.texts[token.part]
    start += len(text[start:end]) - len(text[start:end].lstrip())
    word = text[start:end].rstrip()
    first, last = tokens.texts[: token.part], tokens.texts[token.part + 1 :]
    parts = (*first, in_its_text(text, word, start, _AROUND, " "), *last)
    return " | ".join(f"“{part}”" for part in parts)


def by_layer(
    layers: Sequence[int],
    title: str,
    measured: str,
    columns: Sequence[Column],
    lines: Sequence[Line],
    **more: Any,
) -> Curve:
    """A curve over layers with its table; `more` are further fields of `Curve`."""
    names, places = tuple(f"L{layer}" for layer in layers), tuple(map(float, layers))
    table = Table(*columns)
    return Curve(title, "layer", names, table, places=places, measured=measured, lines=(*lines,), **more)


def in_its_text(text: str, word: str, start: int, most: int, gap: str = "") -> str:
    """The text with the word at `start` marked, and at most `most` characters on each side."""
    before, after = text[:start], text[start + len(word) :]
    before = before if len(before) <= most else f"…{gap}{before[-most:]}"
    after = after if len(after) <= most else f"{after[:most]}{gap}…"
    return marked_word(before, word, after)
