"""Several heads at a glance: measures of each, and the strongest link of those that are worth a look."""

from collections import Counter
from collections.abc import Sequence
from functools import partial

import numpy as np
from rich.cells import cell_len

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import counted
from attnscope.render.kit.words.command import opening
from attnscope.render.kit.words.header import feature_words
from attnscope.render.kit.words.weights import overview_view_words
from attnscope.render.sheet import measured
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.heads import Companion, HeadGrid, each_of
from attnscope.render.sheet.said import Place, at, attention, grid_size, named, proof, read, setting, weight
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Table, as_written
from attnscope.results import HeadScores, Overview
from attnscope.tokens import Tokens

_FEW, _LISTED = 16, 12  # heads that are all listed, and listed where one query or one pair was asked for
_LONGEST = 18  # cells of the name of a token
_MOST_SPECIAL = 0.5  # of a head's weight: what leaves more on special tokens tells little of the text


def sheet(found: Overview, focus: Focus = WHOLE) -> Sheet:
    grids = [_grid(found, each) for each in shown(found)]
    size, names = grid_size(found.layers, found.heads), ", ".join(found.scores)
    one = found.main.description.label if found.aim is not None else found.main.measure
    best = next(iter(ranked(found)), (0, 0))
    return Sheet(
        title=f"{one if len(grids) == 1 else counted(len(grids), 'measure')} by head",
        setting=setting(found, size),
        origins=(found.provenance,),
        answer=_answer(found),
        blocks=(*grids, _links(found)),
        table=lambda: _every(found),
        texts=read(found.kind, found.query_tokens, found.key_tokens),
        notes=(*measured.absent(found.scores), *overview_view_words(found), *feature_words(found)),
        proof=proof((each.verdict for row in found.certificates for each in row), "head"),
        main=grids[0],
        summary=(size, attention(found.kind, found.tower), names if len(grids) > 1 else ""),
        record=tuple((key, each.absent) for key, each in found.scores.items() if each.absent),
        next=f"Open one: {opening(found, found.layers[best[0]], found.heads[best[1]])}",
    )


def shown(found: Overview) -> list[HeadScores]:
    """The measures that have a grid, the main one first."""
    return [each for each in found.scores.values() if not each.absent] or [found.main]


def _of_a_pair(found: Overview) -> bool:
    """Whether every head has the same link."""
    return found.aim is not None and found.aim[1] is not None


def _grid(found: Overview, scores: HeadScores) -> HeadGrid:
    """A measure by layer and head, with the strongest link of each head where it is the only one."""
    alone = len(shown(found)) == 1 and not _of_a_pair(found)
    described, asked = scores.description, found.aim is not None and scores is found.main
    return HeadGrid(
        title=described.label if asked else described.title,
        layers=scores.layers,
        heads=scores.heads,
        values=scores.values,
        scale=measured.scale(scores, len(found.key_tokens)),
        form=measured.form(scores),
        says=measured.classes(scores),
        companion=_companion(found) if alone else None,
        verdicts=tuple(tuple(each.verdict for each in row) for row in found.certificates),
        absent="-",
    )


def _companion(found: Overview) -> Companion:
    if found.aim is not None:
        return Companion("the key that has it", lambda i, j: "", partial(link_words, found))
    return Companion(
        "strongest link, query→key, and its weight",
        lambda i, j: weight(float(found.strongest_weight[i, j])),
        partial(link_words, found),
    )


def link_words(found: Overview, i: int, j: int, cells: int) -> str:
    """`query→key` of layer number `i` and head number `j`, both names cut alike to fit in `cells`.

    Where only one query was asked for, the key alone.
    """
    query, key = (int(position) for position in found.strongest[i, j])
    if query < 0:
        return fit("no valid key", cells)
    if found.aim is not None:
        return fit(f"→{settled(found.key_tokens.labels[key])}", cells)
    names = settled(found.query_tokens.labels[query]), settled(found.key_tokens.labels[key])
    room = cells - 1
    first = min(cell_len(names[0]), max(room // 2, room - cell_len(names[1])))
    return f"{fit(names[0], first)}→{fit(names[1], room - first)}"


def ranked(found: Overview) -> list[Place]:
    """Every head that has a value, the strongest by the main measure first.

    Where links are those of ordinary tokens, heads that leave most of their weight on special ones come last.
    """
    over = _on_special(found)
    return sorted(measured.ranked(found.main), key=lambda place: place in over)


def _on_special(found: Overview) -> set[Place]:
    """The heads that are passed over where there are others; none where just these are looked for."""
    sought = found.main.measure.startswith(("special-tokens", "sink"))
    shares = found.special_shares if found.ordinary and found.aim is None and not sought else None
    return set() if shares is None else {(i, j) for i, j in np.argwhere(shares > _MOST_SPECIAL).tolist()}


def _links(found: Overview) -> Ranking:
    """The strongest link of every head where they are few, else of each layer's strongest one.

    Of one query, or of one pair, the heads of all layers in their order.
    """
    order, described = ranked(found), found.main.description
    places: Sequence[Place]
    if found.aim is not None:
        title, places = described.strongest, order[:_LISTED]
    elif found.main.values.size <= _FEW:
        title = "strongest link of each head"
        places = [(i, j) for i in range(len(found.layers)) for j in range(len(found.heads))]
    else:
        title = f"{described.strongest}, and its strongest link"
        firsts = {i: (i, j) for i, j in reversed(order)}
        places = [firsts[i] for i in sorted(firsts)]
    over = len(_on_special(found) - set(places)) if found.main.values.size > _FEW else 0
    passed = f"passed over: {counted(over, 'head')} with more than half of it on special tokens"
    return Ranking(
        title=title,
        of="head",
        names=tuple(named(found, place) for place in places),
        table=_table(found, places),
        says=passed if over else "",
        hidden=0 if over else found.main.values.size - len(places),
    )


def _table(found: Overview, places: Sequence[Place]) -> Table:
    """What people see of some heads: the measure, if it is not the weight itself, and the strongest link."""
    main, columns = found.main, list[Column]()
    if found.aim is None:
        texts = [measured.written(main, float(main.values[place])) for place in places]
        columns.append(Column("measure", texts, main.measure, as_written))
    if found.aim is None and (shares := found.special_shares) is not None:
        says = f"share of its weight on special tokens{'; links are of the others' * found.ordinary}"
        columns.append(Column("special", each_of(shares, places), "special", weight, says, spared=1))
    columns.append(Column("weight", each_of(found.strongest_weight, places), "weight", weight))
    columns.append(Column("link", [_link(found, place) for place in places], "query → key"))
    return Table(*columns)


def _link(found: Overview, place: Place) -> str:
    """`8 it → 2 cat`."""
    query, key = (int(position) for position in found.strongest[place])
    if query < 0:
        return "no valid key"
    return f"{_at(found.query_tokens, query)} → {_at(found.key_tokens, key)}"


def _at(tokens: Tokens, position: int) -> str:
    return f"{tokens.positions[position]} {fit(settled(tokens.names[position]), _LONGEST)}"


def _answer(found: Overview) -> str:
    """The strongest head by the main measure, beside the head in the middle and what all keys alike give."""
    main, described = found.main, found.main.description
    if not (order := ranked(found)):
        return f"No head has a number: {main.absent}." if main.absent else "No head has a number."
    best, of = order[0], counted(len(order), "head")
    if described.classes:
        (most, count), *_ = Counter(main.class_of(*place) for place in order).most_common()
        return f"Most common is {most}: {count} of {of}."
    written = partial(measured.written, main)
    own = written(float(main.values[best]))
    beside = f"the head in the middle has {written(float(np.nanmedian(main.values)))}"
    if found.aim is not None:
        query = at(found.query_tokens, found.aim[0])
        if found.aim[1] is not None:
            link = f"{query} → {at(found.key_tokens, found.aim[1])}"
            return f"{named(found, best)} gives the most weight to {link} of {of}, {own}; {beside}."
        key = _at(found.key_tokens, int(found.strongest[best][1]))
        return f"{named(found, best)} looks hardest at one key from {query}: {own} to {key}; {beside}."
    end = "least" if described.strong == "low" else "most"
    told = f"{named(found, best)} has the {end} {described.scale} of {of}, {own}; {beside}"
    if main.even is not None and not np.isnan(main.even[best]):
        told += f", all keys alike would give {written(float(main.even[best]))}"
    if main.control is not None:
        told += f", other answers {written(float(main.control[best]))} in the median"
    strongest = weight(float(found.strongest_weight[best]))
    return f"{told}. Its strongest link is {_link(found, best)}, {strongest}."


def _every(found: Overview) -> Table:
    """A row for each head: its measures, their controls, its strongest link, its verdict."""
    places = list(np.ndindex(found.strongest.shape[:2]))
    queries, keys = ([int(found.strongest[place][side]) for place in places] for side in (0, 1))
    held = {f"{key}_others": each.control for key, each in found.scores.items() if each.control is not None}
    # fmt: off
    return Table(
        Column("layer", [found.layers[i] for i, _ in places]),
        Column("head", [found.heads[j] for _, j in places]),
        *(Column(key, [_value(each, i, j) for i, j in places]) for key, each in found.scores.items()),
        *(Column(key, each_of(values, places)) for key, values in held.items()),
        Column("query", [None if each < 0 else each for each in queries]),
        Column("query_token", _labels(found.query_tokens, queries)),
        Column("key", [None if each < 0 else each for each in keys]),
        Column("key_token", _labels(found.key_tokens, keys)),
        Column("weight", each_of(found.strongest_weight, places)),
        Column("verdict", [found.certificates[i][j].verdict.value for i, j in places]),
)
    # fmt: on


def _labels(tokens: Tokens, positions: Sequence[int]) -> list[str]:
    return ["" if each < 0 else tokens.labels[each] for each in positions]


def _value(scores: HeadScores, i: int, j: int) -> float | str:
    """A number, or the class that it stands for."""
    return float(scores.values[i, j]) if (called := scores.class_of(i, j)) is None else called
