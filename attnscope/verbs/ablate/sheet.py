"""What a model's answer becomes without heads, or parts of layers, layer by layer or token by token."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from attnscope.printable import printable, word
from attnscope.render.kit.command import asking, finding, opening_head
from attnscope.render.kit.numbers import alike, give_or_take, largest_magnitude, number, signed, signed_cell
from attnscope.render.sheet.blocks import Beside, Heap, Matrix, Names, Ranking
from attnscope.render.sheet.heads import HeadGrid, by_head
from attnscope.render.sheet.said import name
from attnscope.render.sheet.sheet import Next, Sheet, saying
from attnscope.render.sheet.table import Column, Mark, Scale, Table, Values, both_ways, missing, only
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import Kind
from attnscope.results.claims.effect import LITTLE, Effect, Group, HeadEffect, Method, Part, PlaceEffect
from attnscope.spelling import spelled
from attnscope.verbs.ablate import words_sheet as words
from attnscope.verbs.ablate.result import Ablation, Case

_SHOWN, _PLACES_SHOWN = 12, 16  # heads, and places, that are shown
_OF_HEADS, _OF_PLACES = {"predicted", "drawn"}, {"position", "token", "enough", "share_enough"}  # columns
_HEADED = {
    "after",
    "change",
    "kl",
    "typical",
    "below",
    "predicted",
    "whole",
    "share",
    "share_enough",
    "instead",
}


class Row(NamedTuple):
    """What was taken away, why it is in the table, what it did, beside what, and what was foretold of it."""

    name: str
    kind: Literal["", "group", "random", "foretold"]
    layer: int | None = None
    head: int | None = None
    effect: Effect | None = None
    beside: HeadEffect | PlaceEffect | Group | None = None
    predicted: float | None = None
    positions: tuple[int, ...] = ()
    enough: float | None = None


_FEW_OTHERS = 3  # of which a heap says something


def sheet(result: Ablation, focus: Focus = WHOLE) -> Sheet:
    say = words.said(result)
    best = result.moves_most if result.places else result.heads[0] if result.heads else None
    blocks = tuple(_blocks(result, say, focus.verbose))
    opens = {} if best is None or result.places else {"layer": best.layer, "head": best.head}
    position = result.answer.position
    if opens and result.kind is not Kind.CROSS and position is not None:
        opens["query"] = position
    part = (("part", result.part.value),) if result.places else ()
    path = () if result.path is None else (("via", words.via(result)),)
    return saying(
        say,
        answer=words.answer(result, say),
        blocks=blocks,
        table=lambda: _table(result, say, list(_every(result, say)), True),
        texts=tuple(words.texts(result)),
        details=tuple(say.lines("details")),
        departs=(f"seed {result.floor.seed}",) if result.floor.seed else (),
        proof=((result.verdict, say("proof")),),
        main=next((each for each in blocks if not isinstance(each, Beside)), None),
        whole=say("both_directions"),
        summary=(say("summary", words.short(result, say, best)),) if best is not None else (),
        record=(
            ("kind", result.kind.value),
            ("tower", result.tower),
            ("method", result.method.value),
            *part,
            *path,
        ),
        next=_next_of_places(result, say) if result.places else _next(result, say),
        more=tuple(_heap(result, say)),
        opens=opens,
    )


def _next(result: Ablation, say: Said) -> Next | None:
    if not result.heads:
        return None
    asked, first = words.asked_again(result), result.heads[0]
    if result.case in (Case.NO_GAP, Case.LITTLE, Case.ROUNDING):
        if result.case is Case.NO_GAP or len(result.heads) < 2:
            return Next(say("which_heads"), asking(result, "ablate", *asked))
    elif result.link is not None:
        return Next(say("because_of_words"), _finding(result, *result.link))
    elif result.case in (Case.EACH, Case.FLAT):
        two = ",".join(f"L{each.layer}H{each.head}" for each in result.heads[:2])
        means = ("--with", "mean") if result.method is Method.MEAN else ()
        return Next(say("without_both"), asking(result, "ablate", "--heads", two, *means, *asked))
    query = result.answer.position if result.kind is not Kind.CROSS else None
    opened = opening_head(result, first.layer, first.head, query)
    return Next(say("looks_at", name(first.layer, first.head)), opened)


def _finding(result: Ablation, query: int, key: int) -> str:
    if not result.link_spans:
        return finding(result, query, key)
    sides = zip((result.query_tokens, result.key_tokens), result.link_spans, strict=True)
    asked, given = (word(f"{spelled(tokens, span)}@{span[0]}") for tokens, span in sides)
    return asking(result, "find", "--from", asked, "--to", given)


def _next_of_places(result: Ablation, say: Said) -> Next | None:
    best = result.moves_most
    if best.layer < 0 or result.link is not None or not isinstance(best, PlaceEffect):
        return None
    asked = words.asked_again(result)
    if result.method is Method.MEAN:
        asked = (*asked, "--with", "mean")
    if result.other is not None and result.other.texts:
        asked = (*asked, "--patch-from", word(result.other.texts[0]))
    if not best.positions:
        ran = asking(result, "ablate", "--part", result.part.value, "--at", "pos:each", *asked)
        return Next(say("which_token"), ran)
    if result.part in (Part.ATTENTION, Part.RESIDUAL):
        ran = asking(result, "ablate", "--layer", str(best.layer), *asked)
        return Next(say("heads_of_layer", best.layer), ran)
    if best.head is not None:
        query = best.positions[0] if len(best.positions) == 1 else None
        opened = opening_head(result, best.layer, best.head, query)
        return Next(say("looks_at", name(best.layer, best.head)), opened)
    return None


def _head(say: Said, one: HeadEffect, kind: Literal["", "random"] = "") -> Row:
    named = name(one.layer, one.head)
    named = say("drawn", named) if kind else named
    return Row(named, kind, one.layer, one.head, one, one if one.controls else None, one.predicted)


def _group_row(result: Ablation, say: Said) -> list[Row]:
    group = result.group
    if group is None:
        return []
    return [Row(say("at_once"), "group", effect=group.effect, beside=group if group.controls else None)]


def _place(result: Ablation, say: Said, one: PlaceEffect) -> Row:
    layer, named = None if one.layer < 0 else one.layer, words.short(result, say, one)
    return Row(named, "", layer, one.head, one, one, positions=one.positions, enough=one.enough)


def _every(result: Ablation, say: Said) -> Iterator[Row]:
    yield from (_place(result, say, one) for one in result.places)
    yield from (_head(say, one) for one in result.heads)
    yield from (_head(say, one, "random") for one in result.floor.random)
    yield from _group_row(result, say)
    ran = {(one.layer, one.head) for one in result.heads}
    for each in result.predicted:
        if (each.layer, each.head) not in ran:
            named = name(each.layer, each.head)
            yield Row(named, "foretold", each.layer, each.head, predicted=each.change)


def _blocks(result: Ablation, say: Said, whole: bool) -> Iterator[Ranking | HeadGrid | Matrix | Beside]:
    if not result.places:
        shown = result.heads if whole else result.heads[:_SHOWN]
        drawn = sorted(result.floor.random, key=lambda one: -abs(one.change)) if whole else []
        rows = [*_group_row(result, say), *(_head(say, one) for one in shown)]
        rows += [_head(say, one, "random") for one in drawn]
        ordered = len(shown) > 1 and any(each.controls for each in shown)
        yield _ranking(result, say, rows, len(result.heads) - len(shown), ordered, whole)
        yield from grids(result, say)
    elif result.of_several_tokens and result.part is not Part.POSITION:
        yield from matrices(result, say)
    else:
        places = result.places
        if not whole and len(places) > _PLACES_SHOWN:
            places = tuple(sorted(places, key=lambda each: -abs(each.change))[:_PLACES_SHOWN])
        rows, hidden = [_place(result, say, one) for one in places], len(result.places) - len(places)
        yield _ranking(result, say, rows, hidden, hidden > 0, whole)


def _ranking(
    result: Ablation, say: Said, rows: Sequence[Row], hidden: int, ordered: bool, whole: bool
) -> Ranking:
    table = _table(result, say, rows, whole)
    values, others = table["change"].values, table["typical"].values
    asked, rounding = [row.kind != "random" for row in rows], result.floor.rounding
    random = only(values, (not own for own in asked))
    predicted = Mark("diamond", "control", say("predicted_mark"), [row.predicted for row in rows])
    marks = (
        Mark("band", "floor", say("typical"), others, [each and -each for each in others]),
        *both_ways(only(values, asked), say("loses"), say("gains")),
        Mark("bar", "faint", say("random_mark"), random),
        predicted,
        Mark("line", "noise", say("rounding_mark", give_or_take(rounding, None)), [-rounding, rounding]),
    )
    return Ranking(
        title=say("ordered") if ordered else "",
        of=say("rows"),
        names=tuple(row.name for row in rows),
        table=table,
        measured=say("measured_words"),
        marks=tuple(each for each in marks if not all(map(missing, each.at))),
        written="change",
        faint=frozenset(i for i, own in enumerate(asked) if not own),
        hidden=hidden,
        unshown=say("hidden", hidden) if hidden else "",
    )


def _table(result: Ablation, say: Said, rows: Sequence[Row], whole: bool) -> Table:
    extent = max((abs(each.change) for each in result.alone), default=0.0)
    places = 3 if extent >= LITTLE else 4 if extent >= LITTLE / 10 else 5  # so that two digits say something
    digits, change = partial(number, decimals=places), partial(signed_cell, decimals=places)

    def of_each(field: str) -> Values:
        return [getattr(row.effect, field, None) for row in rows]

    def beside(field: str) -> Values:
        return [getattr(row.beside, field, None) for row in rows]

    changes, back = of_each("change"), [row.enough for row in rows]
    shares = [words.share(result, each) for each in changes]
    shares_back = [words.share(result, each, True) for each in back]
    pairs = [
        "" if each is None else say("pair", each.before, each.after) for each in (row.effect for row in rows)
    ]
    ranks = [
        say("rank", 1 + of.controls - of.below, of.controls + 1, isinstance(of, Group))
        if of and of.controls
        else ""
        for of in (row.beside for row in rows)
    ]
    below = [row.beside and row.beside.controls and row.beside.below for row in rows]
    # fmt: off
    columns = (
        Column("layer", [row.layer for row in rows]),
        Column("head", [row.head for row in rows]),
        Column("position", [",".join(map(str, row.positions)) for row in rows]),
        Column("token", [printable(spelled(words.tokens_of(result), row.positions)) for row in rows]),
        Column("before", of_each("before")),
        Column("after", of_each("after"), told=pairs),
        Column("change", changes, form=change, scale=Scale.around([each or 0.0 for each in changes])),
        Column("kl", of_each("kl"), form=digits, spared=3),
        Column("typical", beside("typical"), form=digits, spared=1),
        Column("below", below, told=ranks),
        Column("controls", beside("controls")),
        Column("predicted", [row.predicted for row in rows], form=change),
        Column("drawn", ["" if row.kind == "foretold" else row.kind for row in rows]),
        Column("enough", back),
        Column("whole", of_each("whole"), form=change, spared=1),
        Column("share", shares, told=words.share_words(say, shares, changes)),
        Column("share_enough", shares_back, told=words.share_words(say, shares_back, back)),
        Column("instead", of_each("instead"), spared=2),
    )
    # fmt: on
    without = _OF_HEADS if result.places else _OF_PLACES
    brief = set() if whole else {"kl"} if result.places else {"kl", "instead"}
    headed = _HEADED - brief
    return Table(
        *(
            replace(each, heading=say("heading", each.name), says=say("says", each.name))
            if each.name in headed
            else each
            for each in columns
            if each.name not in without
        )
    )


# what numbers of a grid are told in where the largest of them is below so much, and how many go into one
_PARTS = {"millionths": (1e-4, 1e6), "thousandths": (0.1, 1e3)}


def grids(result: Ablation, say: Said) -> Iterator[HeadGrid]:
    """The grid of layers and heads: what was predicted of all, or what came out where there are several."""
    if result.predicted:
        foretold = {(each.layer, each.head): each.change for each in result.predicted}
        layers = tuple(sorted({layer for layer, _ in foretold}))
        heads = tuple(range(1 + max(head for _, head in foretold)))
        values = by_head(layers, heads, foretold)
        form = alike(values, 2, signed_cell)
        yield HeadGrid(say("grid_title"), layers, heads, values, Scale.around(values), form)
    elif len(result.layers) > 1 and len(result.heads) > 1:
        values, largest = result.grid, largest_magnitude(result.grid)
        heads = tuple(range(values.shape[1]))
        fine = (each for each, (most, _) in _PARTS.items() if 0 < largest < most)
        part = next(fine, "")
        form = _in(_PARTS[part][1]) if part else signed_cell
        unit = say("in_parts", part) if part else ""
        yield HeadGrid(say("grid_title"), result.layers, heads, values, Scale.around(values), form, unit)


def _in(many: float) -> Callable[[float], str]:
    return lambda value: signed_cell(many * value, 1)


def matrices(result: Ablation, say: Said) -> Iterator[Matrix | Beside]:
    """The grid of layers and tokens; between two texts shares of the gap, of both directions."""
    changes = [each.change for each in result.places]
    if result.case is not Case.CLOSES:
        yield _matrix(result, say, say("grid_title"), changes)
        return
    yield _direction(result, say, "needed_title", changes, False)
    if any(each.enough is not None for each in result.places):
        yield _direction(result, say, "enough_title", [each.enough for each in result.places], True)


def _direction(
    result: Ablation, say: Said, title: str, changes: Sequence[float | None], back: bool
) -> Matrix:
    shares = [words.share(result, each, back) for each in changes]
    if all(words.is_share(each) for each in shares if each is not None):
        return _matrix(result, say, say(title, True), shares)
    return _matrix(result, say, say(title, False), changes)


def _matrix(result: Ablation, say: Said, title: str, values: Sequence[float | None]) -> Matrix:
    tokens = words.tokens_of(result)
    rows = list(dict.fromkeys(words.row_words(result, each) for each in result.places))
    heads = any(each.head is not None for each in result.places)
    layers = tuple(dict.fromkeys(each.layer for each in result.places))
    cells = np.full((len(rows), len(tokens)), np.nan)
    for place, each in zip(result.places, values, strict=True):
        row = rows.index(words.row_words(result, place))
        cells[row, list(place.positions)] = np.nan if each is None else each
    return Matrix(
        title=title,
        words=("head" if heads else "layer", "key" if result.link is not None else "token"),
        rows=Names(tuple(rows), tuple(range(len(rows)))) if heads else Names(("",) * len(rows), layers),
        columns=tokens,
        values=cells,
        scale=Scale.around(cells[np.isfinite(cells)] if np.isfinite(cells).any() else [1.0]),
        form=alike(cells, 2, signed_cell),
        unanswered=say("unchanged"),
        blank=say("unchanged"),
    )


def _heap(result: Ablation, say: Said) -> Iterator[Heap]:
    """What the answer becomes without each other head that was tried alone; none of few."""
    if not result.heads:
        return
    first, *others = result.heads
    tried = {(each.layer, each.head): each.change for each in (*others, *result.floor.random)}
    tried.pop((first.layer, first.head), None)
    if len(tried) < _FEW_OTHERS:
        return
    head = name(first.layer, first.head)
    larger = sum(abs(each) > abs(first.change) for each in tried.values())
    yield Heap(
        title=say("heap_title", head, larger, len(tried)),
        dots=say("heap_dots"),
        values=tuple(tried.values()),
        name=head,
        own=first.change,
        measured=say("measured_words"),
        form=signed,
    )
