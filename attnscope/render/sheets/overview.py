"""Several heads at a glance: measures of each, and the strongest link of those that are worth a look."""

from collections import Counter
from collections.abc import Sequence
from functools import partial

import numpy as np
from rich.cells import cell_len

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import counted, weight
from attnscope.render.kit.words.command import opening
from attnscope.render.kit.words.weights import overview_view_words
from attnscope.render.sheet import measured
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.guard import by_head
from attnscope.render.sheet.heads import Companion, HeadGrid, each_of
from attnscope.render.sheet.said import (
    Place,
    at,
    attention,
    departures,
    features,
    grid_size,
    limits,
    named,
    proof,
    read,
    setting,
)
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Table, as_written
from attnscope.results import HeadScores, Overview
from attnscope.tokens import Tokens

_FEW, _LISTED = 16, 12  # heads that are all listed, and listed where one query or one pair was asked for
_LONGEST = 18  # cells of the name of a token
_MOST_SPECIAL = 0.5  # of a head's weight: what leaves more on special tokens tells little of the text


def sheet(result: Overview, focus: Focus = WHOLE) -> Sheet:
    certificates = ((each.verdict for each in row) for row in result.certificates)
    verdicts = by_head(result.layers, result.heads, certificates)
    grids = [_grid(result, each) for each in shown(result)]
    size, names = grid_size(result.layers, result.heads), ", ".join(result.scores)
    one = result.main.description.label if result.aim is not None else result.main.measure
    best = next(iter(ranked(result)), (0, 0))
    return Sheet(
        title=f"{one if len(grids) == 1 else counted(len(grids), 'measure')} by head",
        setting=setting(result, size),
        origins=(result.provenance,),
        answer=_answer(result),
        blocks=(*grids, _links(result)),
        table=lambda: _every(result),
        texts=read(result.kind, result.query_tokens, result.key_tokens),
        notes=limits(result),
        legend=(*overview_view_words(result), *features(result)),
        details=tuple(measured.absent(result.scores)),
        departs=departures(result.words, result.special),
        verdicts=verdicts,
        proof=proof(verdicts.values(), "head"),
        main=grids[0],
        summary=(size, attention(result.kind, result.tower), names if len(grids) > 1 else ""),
        record=tuple((key, each.absent) for key, each in result.scores.items() if each.absent),
        next=Next("look into one", opening(result, result.layers[best[0]], result.heads[best[1]])),
    )


def shown(result: Overview) -> list[HeadScores]:
    """The measures that have a grid, the main one first."""
    return [each for each in result.scores.values() if not each.absent] or [result.main]


def _of_a_pair(result: Overview) -> bool:
    """Whether every head has the same link."""
    return result.aim is not None and result.aim[1] is not None


def _grid(result: Overview, scores: HeadScores) -> HeadGrid:
    """A measure by layer and head, with the strongest link of each head where it is the only one."""
    alone = len(shown(result)) == 1 and not _of_a_pair(result)
    described, asked = scores.description, result.aim is not None and scores is result.main
    return HeadGrid(
        title=described.label if asked else described.title,
        layers=scores.layers,
        heads=scores.heads,
        values=scores.values,
        scale=measured.scale(scores, len(result.key_tokens)),
        form=measured.form(scores),
        says=measured.classes(scores),
        companion=_companion(result) if alone else None,
        verdicts=tuple(tuple(each.verdict for each in row) for row in result.certificates),
        absent="-",
    )


def _companion(result: Overview) -> Companion:
    if result.aim is not None:
        return Companion("the key that has it", lambda i, j: "", partial(link_words, result))
    return Companion(
        "strongest link, query→key, and its weight",
        lambda i, j: weight(float(result.strongest_weight[i, j])),
        partial(link_words, result),
    )


def link_words(result: Overview, i: int, j: int, cells: int) -> str:
    """`query→key` of layer number `i` and head number `j`, both names cut alike to fit in `cells`.

    Where only one query was asked for, the key alone.
    """
    query, key = (int(position) for position in result.strongest[i, j])
    if query < 0:
        return fit("no valid key", cells)
    if result.aim is not None:
        return fit(f"→{settled(result.key_tokens.labels[key])}", cells)
    names = settled(result.query_tokens.labels[query]), settled(result.key_tokens.labels[key])
    room = cells - 1
    first = min(cell_len(names[0]), max(room // 2, room - cell_len(names[1])))
    return f"{fit(names[0], first)}→{fit(names[1], room - first)}"


def ranked(result: Overview) -> list[Place]:
    """Every head that has a value, the strongest by the main measure first.

    Where links are those of ordinary tokens, heads that leave most of their weight on special ones come last.
    """
    over = _on_special(result)
    return sorted(measured.ranked(result.main), key=lambda place: place in over)


def _on_special(result: Overview) -> set[Place]:
    """The heads that are passed over where there are others; none where just these are looked for."""
    sought = result.main.measure.startswith(("special-tokens", "sink"))
    shares = result.special_shares if result.ordinary and result.aim is None and not sought else None
    return set() if shares is None else {(i, j) for i, j in np.argwhere(shares > _MOST_SPECIAL).tolist()}


def _links(result: Overview) -> Ranking:
    """The strongest link of every head where they are few, else of each layer's strongest one.

    Of one query, or of one pair, the heads of all layers in their order.
    """
    order, described = ranked(result), result.main.description
    places: Sequence[Place]
    if result.aim is not None:
        title, places = described.strongest, order[:_LISTED]
    elif result.main.values.size <= _FEW:
        title = "strongest link of each head"
        places = [(i, j) for i in range(len(result.layers)) for j in range(len(result.heads))]
    else:
        title = f"{described.strongest}, and its strongest link"
        firsts = {i: (i, j) for i, j in reversed(order)}
        places = [firsts[i] for i in sorted(firsts)]
    over = len(_on_special(result) - set(places)) if result.main.values.size > _FEW else 0
    passed = f"passed over: {counted(over, 'head')} with more than half of it on special tokens"
    return Ranking(
        title=title,
        of="head",
        names=tuple(named(result, place) for place in places),
        table=_table(result, places),
        says=passed if over else "",
        hidden=0 if over else result.main.values.size - len(places),
    )


def _table(result: Overview, places: Sequence[Place]) -> Table:
    """What people see of some heads: the measure, if it is not the weight itself, and the strongest link."""
    main, columns = result.main, list[Column]()
    if result.aim is None:
        texts = [measured.written(main, float(main.values[place])) for place in places]
        columns.append(Column("measure", texts, main.measure, as_written))
    if result.aim is None and (shares := result.special_shares) is not None:
        says = f"share of its weight on special tokens{'; links are of the others' * result.ordinary}"
        columns.append(Column("special", each_of(shares, places), "special", weight, says, spared=1))
    columns.append(Column("weight", each_of(result.strongest_weight, places), "weight", weight))
    columns.append(Column("link", [_link(result, place) for place in places], "query → key"))
    return Table(*columns)


def _link(result: Overview, place: Place) -> str:
    """`8 it → 2 cat`."""
    query, key = (int(position) for position in result.strongest[place])
    if query < 0:
        return "no valid key"
    return f"{_at(result.query_tokens, query)} → {_at(result.key_tokens, key)}"


def _at(tokens: Tokens, position: int) -> str:
    return f"{tokens.positions[position]} {fit(settled(tokens.names[position]), _LONGEST)}"


def _answer(result: Overview) -> str:
    """The strongest head by the main measure, beside the head in the middle and what all keys alike give."""
    main, described = result.main, result.main.description
    if not (order := ranked(result)):
        return f"No head has a number: {main.absent}." if main.absent else "No head has a number."
    best, of = order[0], counted(len(order), "head")
    if described.classes:
        (most, count), *_ = Counter(main.class_of(*place) for place in order).most_common()
        return f"Most common is {most}: {count} of {of}."
    written = partial(measured.written, main)
    own = written(float(main.values[best]))
    beside = f"the head in the middle has {written(float(np.nanmedian(main.values)))}"
    if result.aim is not None:
        query = at(result.query_tokens, result.aim[0])
        if result.aim[1] is not None:
            link = f"{query} → {at(result.key_tokens, result.aim[1])}"
            return f"{named(result, best)} gives the most weight to {link} of {of}, {own}; {beside}."
        key = _at(result.key_tokens, int(result.strongest[best][1]))
        return f"{named(result, best)} looks hardest at one key from {query}: {own} to {key}; {beside}."
    end = "least" if described.strong == "low" else "most"
    told = f"{named(result, best)} has the {end} {described.scale} of {of}, {own}; {beside}"
    if main.even is not None and not np.isnan(main.even[best]):
        told += f", all keys alike would give {written(float(main.even[best]))}"
    if main.control is not None:
        told += f", other answers {written(float(main.control[best]))} in the median"
    strongest = weight(float(result.strongest_weight[best]))
    return f"{told}. Its strongest link is {_link(result, best)}, {strongest}."


def _every(result: Overview) -> Table:
    """A row for each head: its measures, their controls, its strongest link, its verdict."""
    places = list(np.ndindex(result.strongest.shape[:2]))
    queries, keys = ([int(result.strongest[place][side]) for place in places] for side in (0, 1))
    held = {f"{key}_others": each.control for key, each in result.scores.items() if each.control is not None}
    # fmt: off
    return Table(
        Column("layer", [result.layers[i] for i, _ in places]),
        Column("head", [result.heads[j] for _, j in places]),
        *(Column(key, [_value(each, i, j) for i, j in places]) for key, each in result.scores.items()),
        *(Column(key, each_of(values, places)) for key, values in held.items()),
        Column("query", [None if each < 0 else each for each in queries]),
        Column("query_token", _labels(result.query_tokens, queries)),
        Column("key", [None if each < 0 else each for each in keys]),
        Column("key_token", _labels(result.key_tokens, keys)),
        Column("weight", each_of(result.strongest_weight, places)),
        Column("verdict", [result.certificates[i][j].verdict.value for i, j in places]),
)
    # fmt: on


def _labels(tokens: Tokens, positions: Sequence[int]) -> list[str]:
    return ["" if each < 0 else tokens.labels[each] for each in positions]


def _value(scores: HeadScores, i: int, j: int) -> float | str:
    """A number, or the class that it stands for."""
    return float(scores.values[i, j]) if (called := scores.class_of(i, j)) is None else called
