"""What a model's answer becomes without some of its heads."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal, NamedTuple

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import (
    alike,
    cell,
    chance,
    give_or_take,
    largest_magnitude,
    percent,
    signed_cell,
)
from attnscope.render.kit.words.command import opening_head
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.heads import Companion, HeadGrid, by_head
from attnscope.render.sheet.said import name, setting
from attnscope.render.sheet.scale import Scale, missing
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Mark, Table, Values, both_ways, only
from attnscope.render.sheets import ablation_words as words
from attnscope.results import Ablation
from attnscope.results.claims.ablation import Asks, Effect, Group, HeadEffect, Method

# what numbers of a grid are told in where the largest of them is below so much
_PARTS = {"millionths": 1e-4, "thousandths": 0.1}
_SHOWN, _DRAWN = 12, 8  # heads that are shown, and random ones beside them
_FORETOLD = {
    "patching": "attribution patching",
    "importance": "importance with its sign, Michel et al. 2019",
    "attention-gradient": "weight x gradient that is gone",
    "logit": "what is gone straight from the answer's logit, in logits",
}


class Row(NamedTuple):
    """What was taken away, why it is in the table, what it did, beside what, and what was foretold of it."""

    name: str
    kind: Literal["", "group", "random", "foretold"]
    head: tuple[int, int] | tuple[None, None] = (None, None)
    effect: Effect | None = None
    beside: HeadEffect | Group | None = None
    estimate: float | None = None


def sheet(result: Ablation, focus: Focus = WHOLE) -> Sheet:
    ranking, edge = _ranking(result), result.edge or (None, None)
    best = words.most(result) if result.heads else None
    return Sheet(
        title=f"{words.done_words(result)} · answer {words.answer_words(result)}",
        setting=setting(result),
        origins=(result.provenance,),
        answer=words.answer(result),
        blocks=(ranking, *_grids(result)),
        table=lambda: _table(result, list(_every(result))),
        texts=tuple(words.texts(result)),
        control=words.control(result),
        notes=result.notes,
        legend=tuple(each for each in (result.how, *words.notes(result)) if each),
        proof=((result.verdict, words.proof_words(result)),),
        main=ranking,
        summary=(f"most {name(*best)}",) if best else (),
        record=(("kind", result.kind.value), ("tower", result.tower), ("method", result.method.value)),
        next=Next("what does that head look at?", opening_head(result, *best, *edge)) if best else None,
        opens={"layer": best[0], "head": best[1]} if best else {},
    )


def _head(one: HeadEffect, kind: Literal["", "random"] = "") -> Row:
    named = f"{name(one.layer, one.head)}{' random' if kind else ''}"
    return Row(named, kind, (one.layer, one.head), one, one, one.estimate)


def _group_row(result: Ablation) -> list[Row]:
    """All heads at once, where they were."""
    group = result.group
    return [] if group is None else [Row(words.at_once(group), "group", effect=group.effect, beside=group)]


def _every(result: Ablation) -> Iterator[Row]:
    """Each head by its rank, those drawn at random, all at once, those that were only foretold."""
    yield from map(_head, result.heads)
    yield from (_head(one, "random") for one in result.floor.random)
    yield from _group_row(result)
    ran = {(one.layer, one.head) for one in result.heads}
    for each in result.estimates:
        if (head := (each.layer, each.head)) not in ran:
            yield Row(name(*head), "foretold", head, estimate=each.difference)


def _ranking(result: Ablation) -> Ranking:
    """A bar for each head, to the left where the answer loses; behind it what other heads of its layer do."""
    drawn = sorted(result.floor.random, key=lambda one: -abs(one.difference))[:_DRAWN]
    rows = [*_group_row(result), *map(_head, result.heads[:_SHOWN]), *(_head(one, "random") for one in drawn)]
    table = _table(result, rows)
    values, others = table["difference"].values, table["others_median"].values
    asked, rounding = [row.kind != "random" for row in rows], result.floor.rounding
    marks = (
        Mark("band", "floor", "others of its layer: median", others, [each and -each for each in others]),
        *both_ways(only(values, asked), "the answer loses", "the answer gains"),
        Mark("bar", "faint", "random heads of these layers", only(values, (not own for own in asked))),
        Mark("diamond", "control", "estimate", table["estimate"].values),
        Mark("line", "noise", f"rounding: {give_or_take(rounding, None)}", [-rounding, rounding]),
    )
    return Ranking(
        title="what the answer loses and gains",
        of="head",
        names=tuple(row.name for row in rows),
        table=table,
        measured="difference of log probability, nats",
        marks=tuple(each for each in marks if not all(map(missing, each.at))),
        written="difference",
        faint=frozenset(i for i, own in enumerate(asked) if not own),
        hidden=len(result.heads) - min(len(result.heads), _SHOWN),
    )


def _table(result: Ablation, rows: Sequence[Row]) -> Table:
    places = words.decimals(result)
    digits, change = partial(cell, decimals=places), partial(signed_cell, decimals=places)
    differences = [None if row.effect is None else row.effect.difference for row in rows]
    shares = [None if row.effect is None else words.share(result, row.effect) for row in rows]
    beside = [row.beside if row.beside and row.beside.others else None for row in rows]
    asked = result.answer.asks is Asks.WRITTEN
    whole = "probability of the whole text" if asked else "probability of the answer"
    others = [None if each is None else each.chance for each in beside]
    sizes = ["-" if each is None else give_or_take(each, places) for each in others]
    less = ["-" if each is None else f"{each.beaten} of {each.others}" for each in beside]

    def of_each(field: str) -> Values:
        return [getattr(row.effect, field, None) for row in rows]

    # fmt: off
    return Table(
        Column("layer", [row.head[0] for row in rows]),
        Column("head", [row.head[1] for row in rows]),
        Column("before", of_each("before"), "before", chance, whole, spared=3),
        Column("after", of_each("after"), "after", chance, whole, spared=1),
        Column("difference", differences, "difference", change, "of its logarithm, in nats",
               Scale.around([each or 0.0 for each in differences])),
        Column("kl", of_each("kl"), "KL", digits, "how far all possible answers moved, in nats", spared=2),
        Column("others_median", others, "others",
               says="median size of what other heads do alone",
               told=sizes),
        Column("beaten", [each and each.beaten for each in beside], "do less", told=less,
               says="how many of them do less"),
        Column("others", [each and each.others for each in beside]),
        Column("estimate", [row.estimate for row in rows], "estimate", change, _by(result)),
        Column("drawn", ["" if row.kind == "foretold" else row.kind for row in rows]),
        Column("share", shares, "of the way", percent, "part of what the whole other text makes"),
)
    # fmt: on


def _by(result: Ablation) -> str:
    """What an estimate is."""
    told = f"what one backward pass foretells ({_FORETOLD.get(result.foretold_by, result.foretold_by)})"
    if result.method is Method.ZERO and result.foretold_by == "patching":
        told += ", of zeros the head's importance (Michel et al. 2019) with its sign"
    return told


def _grids(result: Ablation) -> Iterator[HeadGrid]:
    """Layers by heads, where heads of several layers were taken away in turn, or foretold of all."""
    if result.estimates:
        foretold = {(each.layer, each.head): each.difference for each in result.estimates}
        layers = tuple(sorted({layer for layer, _ in foretold}))
        heads = tuple(range(1 + max(head for _, head in foretold)))
        values = by_head(layers, heads, foretold)
        form = alike(values, 2, signed_cell)
        title = "difference foretold by the gradient"
        yield HeadGrid(title, layers, heads, values, Scale.around(values), form, "nats")
    elif len(result.layers) > 1 and len(result.heads) > 1:
        yield _grid(result)


def _grid(result: Ablation) -> HeadGrid:
    """What became of the answer without each head, beside what other heads of its layer do."""
    largest = largest_magnitude(result.grid)
    part = next((each for each, most in _PARTS.items() if 0 < largest < most), "")
    form, size = (_in(part, signed_cell), _in(part, give_or_take)) if part else (signed_cell, give_or_take)
    heads = tuple(range(result.grid.shape[1]))
    others = {(each.layer, each.head): each.chance for each in result.heads if each.chance is not None}
    medians = by_head(result.layers, heads, others)
    return HeadGrid(
        title="difference by layer and head",
        layers=result.layers,
        heads=heads,
        values=result.grid,
        scale=Scale.around(result.grid),
        form=form,
        unit=f"in {part}" if part else "",
        companion=Companion.numbers("median size of other heads of the layer", medians, size),
    )


def _in(part: str, write: Callable[[float, int], str]) -> Callable[[float], str]:
    return lambda value: write((1e6 if part == "millionths" else 1e3) * value, 1)
