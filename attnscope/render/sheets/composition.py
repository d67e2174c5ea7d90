"""Which heads read what others write, from weights alone, beside random circuits."""

from collections.abc import Sequence
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
from attnscope.render.sheets import composition_words as words
from attnscope.results import Composition
from attnscope.results.claims.composition import Pair, Through

_ONE_INPUT = 15  # pairs where there is only one input
_SIDE, _MOST = 3, 60  # of one head those before it, and as many after it; of all that stand out, under -v
Ranked = dict[Through, list[Pair]]


def sheet(result: Composition, focus: Focus = WHOLE) -> Sheet:
    most = words.SHOWN if len(result.through) > 1 else _ONE_INPUT
    shown = {
        each: max(most, min(result.standing_out(each), _MOST)) if focus.verbose else most
        for each in result.through
    }
    ranked = {each: pairs for each in result.through if (pairs := result.ranked(each, most=shown[each]))}
    rankings = [_ranking(result, each, ranked, focus.verbose) for each in ranked]
    grids = [_grid(result, each, ranked) for each in ranked] if result.shown else []
    rows: list[Beside] = [Beside(tuple(each)) for each in (rankings, grids) if each]
    title = f"composition of {counted(result.heads, 'head')}"
    if result.shown:
        title = f"composition of {name(*result.shown)} with the heads before and after it"
    first = None if result.best is None else list(ranked).index(result.best.through)
    return Sheet(
        title=title,
        setting=setting(result),
        origins=(result.provenance,),
        answer=words.answer(result),
        blocks=tuple(rows),
        table=lambda: _every(result),
        control=words.control(result),
        notes=tuple(words.notes(result)),
        legend=tuple(words.legend(result)),
        departs=(f"seed {result.seed}",) if result.seed else (),
        proof=proof(result.certified, "head", ", and their matrices give the q, k and v of a run"),
        main=None if result.shown or first is None else rankings[first],
        whole="one head has a grid for each input",
        summary=(counted(len(result.pairs), "pair"),),
        next=words.following(result),
    )


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


def _table(result: Composition, pairs: Sequence[Pair], whole: bool) -> Table:
    """What people see of some pairs, or the `whole` of it; the shades are those of all."""
    scale, change = Scale(0.0, float(np.nanmax(result.scores))), Scale.around(result.scores - result.chance)
    digits, under = words.decimals(result), "random circuits"
    share = partial(weight, decimals=digits)

    def more(heading: str) -> str:
        return heading if whole else ""

    # fmt: off
    return Table(
        Column("score", [each.score for each in pairs], "score", share,
               "how much of what the later head reads is along what the earlier one writes, 0 to 1", scale),
        Column("chance", [each.chance for each in pairs], "mean", share,
               "mean score where directions are random and singular values are kept", under=under),
        Column("spread", [each.spread for each in pairs], more("sd"), share, "standard deviation of these",
               under=under),
        Column("below", [each.below for each in pairs], more("below"), "{:,.0f}".format,
               f"how many of {result.draws:,} random circuits score less", under=under),
        Column("limit", [each.limit for each in pairs], "needed", share,
               "to stand out: the best of all pairs looked at scores as much by chance in at most 1 of 20 "
               "models", under=under),
        Column("above_control", [each.difference for each in pairs], more("above control"),
               partial(signed, decimals=digits), "score less the mean of random circuits",
               change),
        Column("beside", [each.beside for each in pairs], "other pairs", share,
               "median of the other pairs of the same two layers", spared=1),
    )
    # fmt: on


def _ranking(result: Composition, through: Through, ranked: Ranked, whole: bool) -> Ranking:
    """The strongest pairs by one input beside chance; of one head what it reads, then what reads it."""
    pairs, sections = ranked[through], list[tuple[int, str]]()
    if result.shown is not None:
        side = _SIDE * (4 if whole else 1)
        before, after = (result.ranked(through, before=each, most=side) for each in (True, False))
        pairs, own = [*before, *after], name(*result.shown)
        sections += [(0, f"what {own} reads")] if before else []
        sections += [(len(before), f"what reads {own}")] if after else []
    table = _table(result, pairs, whole)
    reach = [(each.chance - 2 * each.spread, each.chance + 2 * each.spread) for each in pairs]
    top = max(float(np.nanmax(result.scores)), *(each.limit for each in pairs))
    return Ranking(
        title=words.title(result, through),
        of="pair",
        names=tuple(map(words.named, pairs)),
        table=table,
        sections=tuple(sections),
        measured="composition score",
        marks=(
            Mark("span", "control", "", [low for low, _ in reach], [high for _, high in reach]),
            Mark("tick", "peers", "other pairs of both layers: median", table["beside"].values),
            Mark("ring", "control", "random circuits: mean, 2 sd", table["chance"].values),
            Mark("dot", "own", "score", table["score"].values),
            Mark("tick", "limit", "needed to stand out", table["limit"].values),
        ),
        axis=(0.0, 1.06 * top),
        hidden=result.looked_at(through) - len(pairs),
    )


def _grid(result: Composition, through: Through, ranked: Ranked) -> HeadGrid:
    """The partners of one head, on one scale for all inputs."""
    assert result.shown is not None, "grids are of one head"
    values = result.grid(through)
    own = name(*result.shown)
    return HeadGrid(
        title=f"score less that of random circuits, through {through.plural}",
        layers=result.layers,
        heads=tuple(range(values.shape[1])),
        values=values,
        scale=Scale.around(np.array([result.grid(each) for each in ranked])),
        form=cell,
        itself=(result.layers.index(result.shown[0]), result.shown[1]),
        says=f"above the row of {own} what it reads, below it what reads it",
    )
