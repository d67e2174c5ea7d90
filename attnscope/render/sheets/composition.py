"""Which heads read what others write, from weights alone, beside random circuits."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import cell, counted, signed, weight
from attnscope.render.sheet.blocks import Beside, Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.said import name, proof, setting
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Mark, Table
from attnscope.results import Composition
from attnscope.results.claims.composition import Pair, Through

_SHOWN, _SIDE = 12, 6  # pairs by each input; of one head those before it, and as many after it
_INPUTS = {Through.QUERY: "queries (Q)", Through.KEY: "keys (K)", Through.VALUE: "values (V)"}
Ranked = dict[Through, list[Pair]]


def sheet(result: Composition, focus: Focus = WHOLE) -> Sheet:
    ranked = {each: pairs for each in result.through if (pairs := result.ranked(each, most=_SHOWN))}
    rankings = [_ranking(result, each, ranked) for each in ranked]
    grids = [_grid(result, each, ranked) for each in ranked] if result.shown else []
    best = max(ranked, key=lambda each: ranked[each][0].excess, default=None)
    rows: list[Beside] = [Beside(tuple(each)) for each in (grids, rankings) if each]
    title = f"composition of {counted(result.heads, 'head')}"
    if result.shown:
        title = f"composition of {name(*result.shown)} with the heads before and after it"
    return Sheet(
        title=title,
        setting=setting(result),
        origins=(result.provenance,),
        answer=_answer(result, ranked),
        blocks=tuple(rows),
        table=lambda: _every(result),
        control=_control(result),
        notes=tuple(_notes(result, ranked)),
        legend=tuple(_legend(result)),
        proof=proof(result.certified, "head", " in the run that their matrices were read back in"),
        main=None if result.shown or best is None else rankings[list(ranked).index(best)],
        whole="one head has a grid for each input",
        summary=(counted(len(result.pairs), "pair"),),
    )


def _named(pair: Pair) -> str:
    return f"{name(*pair.early)} → {name(*pair.late)}"


def _every(result: Composition) -> Table:
    """Every pair by every input, in the order of the model."""
    inputs, pairs = len(result.through), result.pairs.tolist()
    columns = [list(each) for each in zip(*pairs, strict=True)]
    places = "early_layer", "early_head", "late_layer", "late_head"
    numbers = {
        "score": result.scores,
        "chance": result.chance,
        "spread": result.spread,
        "below": result.below,
        "above_control": result.scores - result.chance,
        "limit": result.limit,
    }
    return Table(
        Column("through", [each.value for each in result.through for _ in pairs]),
        *(Column(each, inputs * column) for each, column in zip(places, columns, strict=True)),
        *(Column(each, values.ravel().tolist()) for each, values in numbers.items()),
    )


def _table(result: Composition, pairs: Sequence[Pair]) -> Table:
    """What people see of some pairs; the shades are those of all."""
    score = Scale(0.0, float(np.nanmax(result.scores)))
    difference = Scale.around(result.scores - result.chance)
    share, change = partial(weight, decimals=3), partial(signed, decimals=3)
    # fmt: off
    return Table(
        Column("score", [each.score for each in pairs], "score", share,
               "how much of what the later head reads is along what the earlier one writes, 0 to 1", score),
        Column("chance", [each.chance for each in pairs], "chance", share,
               "its mean where directions are random and singular values are kept"),
        Column("spread", [each.spread for each in pairs], "sd", share, "standard deviation of chance",
               spared=2),
        Column("above_control", [each.difference for each in pairs], "diff", change, "score less chance",
               difference),
        Column("beside", [each.beside for each in pairs], "others", share,
               "median of the other pairs of the same two layers", spared=1),
        Column("limit", [each.limit for each in pairs], "needed", share,
               "to stand out: the best of all pairs looked at scores as much by chance in at most 1 of 20 "
               "models"),
    )
    # fmt: on


def _title(result: Composition, through: Through) -> str:
    return f"through {_INPUTS[through]}: {counted(result.looked_at(through), 'pair')} looked at"


def _ranking(result: Composition, through: Through, ranked: Ranked) -> Ranking:
    """The strongest pairs by one input beside chance; of one head what it reads, then what reads it."""
    pairs = ranked[through]
    says = f"{result.standing_out(through):,} of {counted(result.looked_at(through), 'pair')} stand out"
    if result.shown is not None:
        before, after = (result.ranked(through, before=side, most=_SIDE) for side in (True, False))
        pairs = [*before, *after]
    table = _table(result, pairs)
    reach = [(each.chance - 2 * each.spread, each.chance + 2 * each.spread) for each in pairs]
    top = max(float(np.nanmax(result.scores)), *(each.limit for each in pairs))
    return Ranking(
        title=_title(result, through),
        of="pair",
        names=tuple(map(_named, pairs)),
        table=table,
        measured="composition score",
        marks=(
            Mark("span", "control", "", [low for low, _ in reach], [high for _, high in reach]),
            Mark("tick", "peers", "others of both layers: median", table["beside"].values),
            Mark("ring", "control", "chance: mean, 2 sd", table["chance"].values),
            Mark("dot", "own", "score", table["score"].values),
            Mark("tick", "limit", "needed to stand out", table["limit"].values),
        ),
        axis=(0.0, 1.06 * top),
        says=says,
        hidden=result.looked_at(through) - len(pairs),
    )


def _grid(result: Composition, through: Through, ranked: Ranked) -> HeadGrid:
    """The partners of one head, on one scale for all inputs."""
    assert result.shown is not None, "grids are of one head"
    values = result.grid(through)
    own = name(*result.shown)
    return HeadGrid(
        title=f"score less chance, through {_INPUTS[through]}",
        layers=result.layers,
        heads=tuple(range(values.shape[1])),
        values=values,
        scale=Scale.around(np.array([result.grid(each) for each in ranked])),
        form=cell,
        itself=(result.layers.index(result.shown[0]), result.shown[1]),
        says=f"above the row of {own} what it reads, below it what reads it",
    )


def _answer(result: Composition, ranked: Ranked) -> str:
    """The pair that lies farthest above chance."""
    if not ranked:
        return "No pair of heads has a score."
    pair = max((pairs[0] for pairs in ranked.values()), key=lambda each: each.excess)
    looked_at = counted(sum(map(result.looked_at, result.through)), "pair")
    count = sum(map(result.standing_out, result.through))
    how_many = f"{count:,} of {looked_at} of heads" if count else f"None of {looked_at} of heads"
    return (
        f"{how_many} {'stands' if count < 2 else 'stand'} out. Farthest above chance lies {_named(pair)} "
        f"through {_INPUTS[pair.through]}: it scores {weight(pair.score, 3)} where chance gives "
        f"{weight(pair.chance, 3)}, and {weight(pair.limit, 3)} is needed to stand out of so many."
    )


def _control(result: Composition) -> str:
    return (
        f"{result.draws} draws of circuits without a plan, seed {result.seed}, in {result.hidden} dimensions"
    )


def _legend(result: Composition) -> Iterator[str]:
    if result.shown is not None:
        yield f"pairs: first what {name(*result.shown)} reads, then what reads it"
    inside, outside = ", ".join(result.inside), "; ".join(result.outside)
    yield f"from weights alone, no text; with {inside}; left out: {outside}"
    yield "a score above chance: two heads are wired for each other, not that the model makes use of it"


def _notes(result: Composition, ranked: Ranked) -> Iterator[str]:
    lacking = (each for each in result.through if each not in ranked)
    yield from (f"no pair composes through its {_INPUTS[each]}" for each in lacking)
    yield from (f"no score, {each}" for each in result.reasons)
