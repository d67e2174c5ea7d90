"""The sheet of `compose`: pairs of heads by their composition scores, beside random circuits."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from attnscope.printable import word
from attnscope.render.kit.command import asking_of_model
from attnscope.render.kit.numbers import cell, counted, signed, weight
from attnscope.render.script import Told, of_model
from attnscope.render.sheet.blocks import Beside, Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.said import name, proof
from attnscope.render.sheet.sheet import Next, Sheet, saying
from attnscope.render.sheet.table import Column, Mark, Scale, Table
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import Kind
from attnscope.verbs.compose.result import STRONGEST, Composition, Pair, Through

_ONE_INPUT = 15  # pairs where there is only one input
_SIDE, _MOST = 3, 60  # of one head those before it, and as many after it; of all that stand out, under -v
Ranked = dict[Through, list[Pair]]
_SHOWN = 5  # pairs by each input
_DIGITS = 6  # of a score at most
_ROTARY = "rotary positions"
_FULL = {"spread", "below", "above_control"}  # columns that are shown under -v


def sheet(result: Composition, focus: Focus = WHOLE) -> Sheet:
    say, most = said(result), _SHOWN if len(result.through) > 1 else _ONE_INPUT
    shown = {
        each: max(most, min(result.standing_out(each), _MOST)) if focus.verbose else most
        for each in result.through
    }
    ranked = {each: pairs for each in result.through if (pairs := result.ranked(each, most=shown[each]))}
    rankings = [_ranking(result, say, each, ranked, focus.verbose) for each in ranked]
    grids = [_grid(result, say, each, ranked) for each in ranked] if result.shown else []
    rows: list[Beside] = [Beside(tuple(each)) for each in (rankings, grids) if each]
    first = None if result.best is None else list(ranked).index(result.best.through)
    return saying(
        say,
        blocks=tuple(rows),
        table=lambda: _every(result),
        notes=(*say.lines("notes"), *_lacking(result, say)),
        departs=(f"seed {result.seed}",) if result.seed else (),
        proof=proof(result.certified, "head", say("proved")),
        main=None if result.shown or first is None else rankings[first],
        whole=say("a_page"),
        summary=(counted(len(result.pairs), "pair"),),
        next=_following(result, say),
    )


def _every(result: Composition) -> Table:
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


def _table(result: Composition, say: Said, pairs: Sequence[Pair], whole: bool) -> Table:
    scale, change = Scale(0.0, float(np.nanmax(result.scores))), Scale.around(result.scores - result.chance)
    digits, under = _decimals(result), say("under")
    share = partial(weight, decimals=digits)
    columns = (
        Column("score", [each.score for each in pairs], form=share, scale=scale),
        Column("chance", [each.chance for each in pairs], form=share, under=under),
        Column("spread", [each.spread for each in pairs], form=share, under=under),
        Column("below", [each.below for each in pairs], form="{:,.0f}".format, under=under),
        Column("limit", [each.limit for each in pairs], form=share, under=under),
        Column(
            "above_control",
            [each.difference for each in pairs],
            form=partial(signed, decimals=digits),
            scale=change,
        ),
        Column("beside", [each.beside for each in pairs], form=share, spared=1),
    )
    named = {each.name for each in columns} - (set() if whole else _FULL)
    return Table(
        *(
            replace(
                each,
                heading=say("heading", each.name) if each.name in named else "",
                says=say("says", each.name),
            )
            for each in columns
        )
    )


def _ranking(result: Composition, say: Said, through: Through, ranked: Ranked, whole: bool) -> Ranking:
    pairs, sections = ranked[through], list[tuple[int, str]]()
    if result.shown is not None:
        side = _SIDE * (4 if whole else 1)
        before, after = (result.ranked(through, before=each, most=side) for each in (True, False))
        pairs = [*before, *after]
        sections += [(0, say("before"))] if before else []
        sections += [(len(before), say("after"))] if after else []
    table = _table(result, say, pairs, whole)
    reach = [(each.chance - 2 * each.spread, each.chance + 2 * each.spread) for each in pairs]
    top = max(float(np.nanmax(result.scores)), *(each.limit for each in pairs))
    return Ranking(
        title=say("ranking", through.plural, result.standing_out(through), result.looked_at(through)),
        of=say("rows"),
        names=tuple(say("pair", name(*each.early), name(*each.late)) for each in pairs),
        table=table,
        sections=tuple(sections),
        measured=say("measured"),
        marks=(
            Mark("span", "control", "", [low for low, _ in reach], [high for _, high in reach]),
            Mark("tick", "peers", say("mark", "beside"), table["beside"].values),
            Mark("ring", "control", say("mark", "chance"), table["chance"].values),
            Mark("dot", "own", say("mark", "score"), table["score"].values),
            Mark("tick", "limit", say("mark", "limit"), table["limit"].values),
        ),
        axis=(0.0, 1.06 * top),
        hidden=result.looked_at(through) - len(pairs),
    )


def _grid(result: Composition, say: Said, through: Through, ranked: Ranked) -> HeadGrid:
    assert result.shown is not None, "grids are of one head"
    values = result.grid(through)
    return HeadGrid(
        title=say("grid", through.plural),
        layers=result.layers,
        heads=tuple(range(values.shape[1])),
        values=values,
        scale=Scale.around(np.array([result.grid(each) for each in ranked])),
        form=cell,
        itself=(result.layers.index(result.shown[0]), result.shown[1]),
        says=say("grid_says"),
    )


def said(result: Composition) -> Said:
    """A `Said` that fills the sentence templates of `compose` with the facts of this result."""
    best, rotary = result.best, any(each.startswith(_ROTARY) for each in result.outside)
    reading, there = (0, 0) if best is None else result.readers(best)
    facts = {
        "best": best
        and {
            "early": name(*best.early),
            "late": name(*best.late),
            "layer": best.late[0],
            "through": best.through.plural,
            "score": best.score,
            "chance": best.chance,
            "limit": best.limit,
        },
        "reading": reading,
        "there": there,
        "out": sum(map(result.standing_out, result.through)),
        "pairs": sum(map(result.looked_at, result.through)),
        "shown": None if result.shown is None else name(*result.shown),
        "digits": _decimals(result),
        "rotary": rotary and best is not None and best.stands_out and best.through is not Through.VALUE,
        "inside": ", ".join(result.inside),
        "outside": "; ".join(result.outside),
    }
    return Said("compose", result, facts)


def _decimals(result: Composition) -> int:
    """Decimals that tell the best pairs' scores from their limits, three at least."""
    best = [pair for each in result.through for pair in result.ranked(each, most=_SHOWN)]

    def tell(digits: int) -> bool:
        return all(cell(pair.score, digits) != cell(pair.limit, digits) for pair in best)

    return next(filter(tell, range(3, _DIGITS)), _DIGITS)


def _lacking(result: Composition, say: Said) -> Iterator[str]:
    """Notes on why an input, or a pair of layers, has no score."""
    lacking = [each.plural for each in result.through if not result.looked_at(each)]
    for each in lacking:
        why = (told.partition(f"{say('through', each)} ")[2] for told in result.reasons)
        yield say("no_pair", each, next(filter(None, why), ""))
    ways = [say("through", each) for each in lacking]
    yield from (say("unscored", each) for each in result.reasons if not any(way in each for way in ways))


def _following(result: Composition, say: Said) -> Next | None:
    """The next command: of all pairs on the best one or on its later head, of one head on its text.

    Not every encoder answers anything, which a result of weights does not tell.
    """
    pair, run = result.best, result.provenance
    if pair is None:
        return None
    layer, head = pair.late if result.shown is None else result.shown
    own = "--layer", str(layer), "--head", str(head)
    if result.shown is None and result.kind is Kind.DECODER and result.read_back_in:
        both = ",".join(f"L{layer}H{head}" for layer, head in (pair.early, pair.late))
        asked = asking_of_model(f"ablate {word(result.read_back_in)}", run, "--heads", both)
        return Next(say("needs_link"), asked)
    if result.shown is None:
        return Next(say("with_which"), asking_of_model("compose", run, *own))
    if not result.read_back_in:
        return None
    opened = asking_of_model(f"heads {word(result.read_back_in)}", run, *own)
    return Next(say("looks_at"), opened)


def figures(result: Composition) -> Told:
    pairs = [pair for through in result.through for pair in result.ranked(through, most=STRONGEST)]
    layers = {layer for pair in pairs for layer in (pair.early[0], pair.late[0])}
    between = {(pair.early[0], pair.late[0], pair.through) for pair in pairs}
    return of_model(result.provenance, result.tower) | {
        "norms": [(each.module, each.weight, each.one, each.centred) for each in result.norms],
        "matrices": {
            f"{each.side} of L{each.layer}": (each.module, each.firsts, each.size, each.reader)
            for each in result.matrices
            if each.layer in layers
        },
        "ways": {
            f"L{each.early} to {each.through.value} of L{each.late}": each.norms
            for each in result.ways
            if (each.early, each.late, each.through) in between
        },
        "hidden": result.hidden,
        "draws": result.draws,
        "seed": result.seed,
        "pairs": [
            (*pair.early, *pair.late, pair.through.value, pair.score, pair.chance, pair.below)
            for pair in pairs
        ],
    }
