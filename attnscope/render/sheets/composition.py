"""Which heads read what others write, from weights alone, beside random circuits."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from attnscope.printable import word
from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import cell, counted, signed, weight
from attnscope.render.kit.words.command import asking_of_model
from attnscope.render.sheet.blocks import Beside, Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.said import name, proof, setting
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Mark, Table
from attnscope.results import Composition, Kind
from attnscope.results.claims.composition import Case, Pair, Through

_ONE_INPUT = 15  # pairs where there is only one input
_SIDE, _MOST = 3, 60  # of one head those before it, and as many after it; of all that stand out, under -v
Ranked = dict[Through, list[Pair]]
_NOT_USED = "Wired does not mean used: ablate tells."
_SHOWN = 5  # pairs by each input
_DIGITS = 6  # of a score at most
_ROTARY = "rotary positions"


def sheet(result: Composition, focus: Focus = WHOLE) -> Sheet:
    most = _SHOWN if len(result.through) > 1 else _ONE_INPUT
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
        answer=_answer(result),
        blocks=tuple(rows),
        table=lambda: _every(result),
        control=_control(result),
        notes=tuple(_notes(result)),
        legend=tuple(_legend(result)),
        departs=(f"seed {result.seed}",) if result.seed else (),
        proof=proof(result.certified, "head", ", and their matrices give the q, k and v of a run"),
        main=None if result.shown or first is None else rankings[first],
        whole="one head has a grid for each input",
        summary=(counted(len(result.pairs), "pair"),),
        next=_following(result),
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


def _table(result: Composition, pairs: Sequence[Pair], whole: bool) -> Table:
    scale, change = Scale(0.0, float(np.nanmax(result.scores))), Scale.around(result.scores - result.chance)
    digits, under = _decimals(result), "random circuits"
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
        title=_title(result, through),
        of="pair",
        names=tuple(map(_named, pairs)),
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


def _answer(result: Composition) -> str:
    """The pair that lies farthest above chance, how many stand out, and that it is no sign of use."""
    return _SAID[result.case](result)


def _wired(result: Composition) -> str:
    pair, of = _best(result), counted(sum(map(result.looked_at, result.through)), "pair")
    layer, number = pair.early
    reading, there = result.readers(pair)
    told, plural = name(*pair.late), pair.through.plural
    numbers = f"{_score(result, pair.score)}, random circuits {_score(result, pair.chance)}, and "
    numbers += f"{_score(result, pair.limit)} is needed to stand out"
    if reading > 1:
        own = f"{reading} of {there} heads of layer {pair.late[0]} read"
        first = f"By their weights, {own} as {plural} what {name(layer, number)} writes: {told} scores "
    else:
        first = f"By their weights, {told} reads as {plural} what {name(layer, number)} writes: it scores "
    count = sum(map(result.standing_out, result.through))
    many = f"In all {count:,} of {of} stand out." if count > 1 else f"No other of {of} stands out."
    return " ".join(each for each in (f"{first}{numbers}.", many, _left_out(result, pair), _NOT_USED) if each)


def _nothing(result: Composition) -> str:
    pair, of = _best(result), counted(sum(map(result.looked_at, result.through)), "pair")
    return (
        f"No two heads are wired beyond chance. Nearest is {_named(pair)} through {pair.through.plural}: "
        f"{_score(result, pair.score)}, random circuits {_score(result, pair.chance)}, and "
        f"{_score(result, pair.limit)} is needed to stand out of {of}."
    )


def _cannot_tell(result: Composition) -> str:
    of = counted(sum(map(result.looked_at, result.through)), "pair")
    return (
        f"This model is too small to tell: in {counted(result.hidden, 'dimension')} random circuits score so "
        f"high that no pair could stand out of {of}."
    )


_SAID: dict[Case, Callable[[Composition], str]] = {
    Case.NO_SCORE: lambda result: "No pair of heads has a score.",
    Case.CANNOT_TELL: _cannot_tell,
    Case.NOTHING: _nothing,
    Case.ONE: _wired,
    Case.SEVERAL: _wired,
}


def _best(result: Composition) -> Pair:
    assert result.best is not None, "there is one in every case that tells of one"
    return result.best


def _left_out(result: Composition, pair: Pair) -> str:
    turned = any(each.startswith(_ROTARY) for each in result.outside)
    if not turned or pair.through is Through.VALUE:
        return ""
    return "Rotary positions are left out."


def _named(pair: Pair) -> str:
    return f"{name(*pair.early)} → {name(*pair.late)}"


def _score(result: Composition, value: float) -> str:
    return weight(value, _decimals(result))


def _decimals(result: Composition) -> int:
    """As many as tell the best pairs from what they need, three at least."""
    best = [pair for each in result.through for pair in result.ranked(each, most=_SHOWN)]

    def tell(digits: int) -> bool:
        return all(cell(pair.score, digits) != cell(pair.limit, digits) for pair in best)

    return next(filter(tell, range(3, _DIGITS)), _DIGITS)


def _title(result: Composition, through: Through) -> str:
    """`keys: 51 of 864 pairs stand out`."""
    out, of = result.standing_out(through), counted(result.looked_at(through), "pair")
    return f"{through.plural}: {out:,} of {of} {'stands' if out == 1 else 'stand'} out"


def _control(result: Composition) -> str:
    draws = counted(result.draws, "draw")
    return f"random circuits: matrices as strong that point anywhere ({draws} in {result.hidden} dimensions)"


def _notes(result: Composition) -> Iterator[str]:
    """What the numbers of one head count, whose pairs are no several findings, and why there is no score."""
    if result.shown is not None:
        own = name(*result.shown)
        yield f"needed: of the pairs of {own} alone; more is, where it was picked out of all heads"
    if result.repeated:
        of = counted(result.repeated + result.layers_paired, "pair")
        yield (
            f"weights are shared: {result.repeated} of {of} of layers have the matrices of an earlier "
            "pair and the same norms between them, so the earlier one stands for all"
        )
    if result.sharing > 1:
        yield (
            f"up to {result.sharing} heads share their keys and values here: their pairs are not "
            f"{result.sharing} findings"
        )
    lacking = [each for each in result.through if not result.looked_at(each)]
    for each in lacking:
        begins = f"through {each.plural}: "
        why = (told.partition(begins)[2] for told in result.reasons)
        yield f"no pair through {each.plural}: {next(filter(None, why), 'no path between layers is proved')}"
    told = tuple(f": through {each.plural}: " for each in lacking)
    yield from (f"no score, {each}" for each in result.reasons if not any(part in each for part in told))


def _legend(result: Composition) -> Iterator[str]:
    inside, outside = ", ".join(result.inside), "; ".join(result.outside)
    yield (
        "from weights alone, no text (Elhage et al. 2021, A Mathematical Framework for Transformer "
        f"Circuits); with {inside}; left out: {outside}"
    )
    yield "pairs: first those that go farthest beyond what is needed"
    yield "a score above chance: two heads are wired for each other, not that the model makes use of it"


def _following(result: Composition) -> Next | None:
    """Of all pairs whether an answer needs the best one, or what its later head reads; of one its text.

    Not every encoder answers anything, which a result of weights does not tell.
    """
    pair, run = result.best, (result.provenance, result.kind, result.tower)
    if pair is None:
        return None
    layer, head = pair.late if result.shown is None else result.shown
    own = "--layer", str(layer), "--head", str(head)
    if result.shown is None and result.kind is Kind.DECODER and result.read_back_in:
        both = ",".join(f"L{layer}H{head}" for layer, head in (pair.early, pair.late))
        asked = asking_of_model(f"ablate {word(result.read_back_in)}", *run, "--heads", both)
        return Next("does an answer need that link?", asked)
    if result.shown is None:
        return Next("with which others is that head wired?", asking_of_model("compose", *run, *own))
    if not result.read_back_in:
        return None
    opened = asking_of_model(f"heads {word(result.read_back_in)}", *run, *own)
    return Next("what does that head look at?", opened)
