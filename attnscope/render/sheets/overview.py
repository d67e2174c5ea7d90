"""Sheet of several heads: grids of measures, and the strongest links."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from jaxtyping import Float
from rich.cells import cell_len

from attnscope.render.kit.cells import fit, settled
from attnscope.render.kit.command import finding, looked_at, opening
from attnscope.render.kit.numbers import cell, weight
from attnscope.render.kit.words import SINK, many, mostly, overview_view_words
from attnscope.render.sheet import measured
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.heads import Companion, HeadGrid, each_of
from attnscope.render.sheet.said import (
    Place,
    attention,
    departures,
    features,
    grid_size,
    in_sentence,
    limits,
    named,
    proof,
    setting,
    span_notes,
)
from attnscope.render.sheet.sheet import Next, Sheet, by_head, saying
from attnscope.render.sheet.table import Column, Scale, Table, as_written
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import HeadScores, Kind, Overview
from attnscope.results.overview import Case
from attnscope.results.scores import ordered
from attnscope.tokens import Tokens

_TOLD = 6  # heads of a pair, which the grid has all
_FEW, _LISTED = 16, 12  # heads that are all listed, and listed where one query or one pair was asked for
_LAYERS = 15  # whose strongest heads are all listed
_LONGEST = 18  # cells of the name of a token
_NAMED = 4  # of these heads


def sheet(result: Overview, focus: Focus = WHOLE) -> Sheet:
    certificates = ((each.verdict for each in row) for row in result.certificates)
    verdicts = by_head(result.layers, result.heads, certificates)
    in_tokens = _in_tokens(result) and not focus.in_nats
    grids = [_grid(result, each, in_tokens) for each in shown(result)]
    size, names = grid_size(result.layers, result.heads), ", ".join(result.scores)
    say = said(result)
    return saying(
        say,
        result,
        title=say("title", len(grids)),
        setting=setting(result, size),
        blocks=(*grids, _links(result, in_tokens, focus.verbose)),
        table=lambda: _every(result),
        notes=(*_spans(result), *say.lines("notes"), *limits(result)),
        legend=(*overview_view_words(result), *features(result)),
        details=tuple(measured.absent(result.scores)),
        departs=departures(result.by, result.special),
        verdicts=verdicts,
        proof=proof(verdicts.values(), "head"),
        main=grids[0],
        summary=(size, attention(result.kind, result.tower), names if len(grids) > 1 else ""),
        record=tuple((key, each.absent) for key, each in result.scores.items() if each.absent),
        next=_next(result, say),
    )


def _spans(result: Overview) -> Iterator[str]:
    if result.aim is None or not result.aim_spans:
        return iter(())
    (query, key), (asked, *given) = result.aim, result.aim_spans
    looked = "" if key is None else result.key_tokens.names[key]
    return span_notes(result.query_tokens.names[query], asked, looked, given[0] if given else ())


def _next(result: Overview, say: Said) -> Next:
    if (
        _of_a_pair(result)
        and result.aim is not None
        and result.query_tokens.texts
        and result.key_tokens.texts
    ):
        query, key = result.aim
        assert key is not None, "a pair has both"
        looking = looked_at(result.by, result.special)
        return Next(say("by_words"), finding(result, query, key) + looking)
    i, j = _first_named(result) or (0, 0)
    return Next(say("one_of_them"), opening(result, result.layers[i], result.heads[j]))


def shown(result: Overview) -> list[HeadScores]:
    """The measures that have a grid, the main one first."""
    return [each for each in result.scores.values() if not each.absent] or [result.main]


def _of_a_pair(result: Overview) -> bool:
    return result.aim is not None and result.aim[1] is not None


def _grid(result: Overview, scores: HeadScores, in_tokens: bool) -> HeadGrid:
    alone = len(shown(result)) == 1 and not _of_a_pair(result)
    described, asked = scores.description, result.aim is not None and scores is result.main
    keys = len(result.key_tokens)
    title = described.label if asked else described.title
    return HeadGrid(
        title=said(result)("in_tokens") if in_tokens else title,
        layers=scores.layers,
        heads=scores.heads,
        values=np.exp(scores.values) if in_tokens else scores.values,
        scale=Scale(1.0, float(max(keys, 2)), "falling") if in_tokens else measured.scale(scores, keys),
        form=form_of_tokens if in_tokens else measured.form(scores),
        says=measured.classes(scores),
        companion=_companion(result) if alone else None,
        verdicts=tuple(tuple(each.verdict for each in row) for row in result.certificates),
        absent="-",
    )


def _companion(result: Overview) -> Companion:
    say, of_link = said(result), partial(link_words, result)
    if result.aim is not None:
        return Companion(say("key_of_it"), lambda i, j: "", of_link)
    return Companion(say("link_of_it"), lambda i, j: weight(float(result.strongest_weight[i, j])), of_link)


def link_words(result: Overview, i: int, j: int, cells: int) -> str:
    """`query→key` of the head at row `i` and column `j`, cut to fit `cells`.

    Only the key where one query was asked for.
    """
    query, key = (int(position) for position in result.strongest[i, j])
    if query < 0:
        return fit(said(result)("no_key"), cells)
    if result.aim is not None:
        return fit(f"→{settled(result.key_tokens.labels[key])}", cells)
    names = settled(result.query_tokens.labels[query]), settled(result.key_tokens.labels[key])
    room = cells - 1
    first = min(cell_len(names[0]), max(room // 2, room - cell_len(names[1])))
    return f"{fit(names[0], first)}→{fit(names[1], room - first)}"


def ranked(result: Overview) -> list[Place]:
    """Places of all heads with a value, the strongest by the main measure first.

    Heads with most of their weight on special tokens, or on one token, come last.
    """
    over = _passed(result)
    if (elsewhere := _same_distance(result)) is not None:
        return ordered(np.where(np.isnan(elsewhere), result.main.values, result.main.values - elsewhere))
    return sorted(measured.ranked(result.main), key=lambda place: place in over)


def _passed(result: Overview) -> set[Place]:
    sought = result.main.measure.startswith(("special-tokens", "sink", "first"))
    passed = result.ordinary and result.aim is None and not sought
    return {(i, j) for i, j in np.argwhere(result.taken_up).tolist()} if passed else set()


def _links(result: Overview, in_tokens: bool, every: bool) -> Ranking:
    order, say, size = ranked(result), said(result), result.main.values.size
    places: Sequence[Place]
    unlisted = 0  # layers
    if _same_distance(result) is not None:
        title, places = say("above_elsewhere"), order[:_TOLD]
    elif result.aim is not None:
        title, places = result.main.description.strongest, order[:_LISTED]
    elif size <= _FEW:
        title = say("link_of_each")
        places = [(i, j) for i in range(len(result.layers)) for j in range(len(result.heads))]
    else:
        title = say("first_of_layer", in_tokens)
        firsts = {i: (i, j) for i, j in reversed(order)}
        places = [firsts[i] for i in sorted(firsts)]
        if len(places) > _LAYERS and not every:
            places = [place for place in order if firsts[place[0]] == place][:_LISTED]
            unlisted = len(firsts) - len(places)
    over = len(_passed(result) - set(places)) if size > _FEW else 0
    return Ranking(
        title=title,
        of="head",
        names=tuple(named(result, place) for place in places),
        table=_table(result, places, in_tokens, say),
        says=say("passed", over) if over else "",
        unshown=say("more_layers", unlisted) if unlisted else say("in_grid"),
        hidden=unlisted or (0 if over else size - len(places)),
    )


def _table(result: Overview, places: Sequence[Place], in_tokens: bool, say: Said) -> Table:
    main, columns, elsewhere = result.main, list[Column](), _same_distance(result)
    if result.aim is None:
        values = (float(main.values[place]) for place in places)
        texts = [
            form_of_tokens(float(np.exp(each))) if in_tokens else measured.written(main, each)
            for each in values
        ]
        heading = result.by.several if in_tokens else main.measure
        columns.append(Column("measure", texts, heading, as_written))
        if result.ordinary and result.aside is not None:
            aside = each_of(result.aside, places)
            columns.append(Column("aside", aside, "aside", weight, say("aside"), spared=1))
        elif (shares := result.special_shares) is not None:
            special = each_of(shares, places)
            columns.append(Column("special", special, "special", weight, say("on_special"), spared=1))
    columns.append(Column("weight", each_of(result.strongest_weight, places), "weight", weight))
    if elsewhere is not None:
        away = each_of(elsewhere, places)
        return Table(*columns, Column("elsewhere", away, "elsewhere", weight, say("elsewhere")))
    return Table(*columns, Column("link", [_link(result, place, say) for place in places], "query → key"))


def _link(result: Overview, place: Place, say: Said) -> str:
    query, key = (int(position) for position in result.strongest[place])
    if query < 0:
        return say("no_key")
    return f"{_at(result.query_tokens, query)} → {_at(result.key_tokens, key)}"


def _at(tokens: Tokens, position: int) -> str:
    return f"{tokens.positions[position]} {fit(settled(tokens.names[position]), _LONGEST)}"


def _every(result: Overview) -> Table:
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
    return float(scores.values[i, j]) if (called := scores.class_of(i, j)) is None else called


def _in_tokens(result: Overview) -> bool:
    """True where the only measure is the entropy, which is shown as a number of tokens."""
    there = [each for each in result.scores.values() if not each.absent]
    return result.aim is None and len(there) == 1 and result.main.measure == "entropy"


def form_of_tokens(tokens: float) -> str:
    """A number of tokens in a grid, `1.2`, `11.8`, `143`: with a decimal below 100."""
    return "-" if np.isnan(tokens) else cell(tokens, 1 if tokens < 99.95 else 0)


def _same_distance(result: Overview) -> Float[np.ndarray, "layer head"] | None:
    """For a pair, each head's weight at the same distance elsewhere; None where there is none."""
    return None if result.aimed is None else result.aimed.elsewhere


def said(result: Overview) -> Said:
    """Sentences of `heads` about several heads."""
    main, aimed, order, best = result.main, result.aimed, ranked(result), _first_named(result)
    passed, sinks, shares = _passed(result), _sinks(result), result.special_shares
    mass = None if result.special_mass is None or result.special_mass.total < SINK else result.special_mass
    queries, keys = result.query_tokens, result.key_tokens
    asked, looked = result.aim or (None, None)
    special = any(each.special for each in keys.items)
    own = None if best is None else _written(result, float(main.values[best]))
    sharper = (place for place in passed if best is not None and main.values[place] < main.values[best])
    kept = result.case is Case.FOCUSED and any(_written(result, main.values[each]) != own for each in sharper)
    rows = None if result.distances is None or best is None else result.distances.of(best)
    rows = rows if rows is not None and mostly(rows) else None
    steady = _steady(result)
    classes = Counter(main.class_of(*place) for place in order).most_common(1)

    def of_best(values: np.ndarray | None) -> float | None:
        return None if values is None or best is None or np.isnan(values[best]) else float(values[best])

    def number(value: float | None) -> str | None:
        return None if value is None else measured.written(main, value)

    facts = {
        # what was asked
        "asked": None if asked is None else in_sentence(queries, asked),
        "looked": None if looked is None else in_sentence(keys, looked),
        "decoder": result.kind is Kind.CROSS and bool(queries.texts),
        "measure": main.measure,
        "amount": main.description.label or main.measure,
        "measured_in": main.description.unit,
        "end": "least" if main.description.strong == "low" else "most",
        "strongest": main.description.strongest,
        "one": main.description.label if result.aim is not None else main.measure,
        # what is read
        "unit": result.by.value,
        "units": result.by.several,
        "counted_as": result.by.value if special and result.by.is_long else None,
        "size": main.values.size,
        "keys": len(keys),
        "cross": result.kind is Kind.CROSS,
        "masked": result.kind is Kind.DECODER,
        "special": special,
        # what came out
        "best": None if best is None else named(result, best),
        "own": own,
        "kept": kept,
        "heads": len(order) - len(passed) if kept else len(order),
        "middle": _written(result, float(np.nanmedian(main.values))) if len(order) > 1 else None,
        "spans": bool(result.aim_spans),  # of tokens, which are what is alike then
        "even": None if aimed is None else aimed.even_attention,
        "even_number": number(of_best(main.even_attention)),
        "others": number(of_best(main.control)),
        "first": None if aimed is None else aimed.largest,
        "away": of_best(_same_distance(result)),
        "apart": _same_distance(result) is not None,
        "choice": None if best is None else in_sentence(keys, int(result.strongest[best][1])),
        "most_class": classes[0][0] if classes else None,
        "class_count": classes[0][1] if classes else None,
        "absent": main.absent,
        "rows": rows and rows.rows,
        "rows_of": rows and rows.of,
        "offset": rows and rows.offset,
        "steady": steady[:_NAMED],
        "steady_more": len(steady[_NAMED:]),
        # what takes most of the weight
        "special_share": None if mass is None else mass.total,
        "special_most": None
        if mass is None
        else settled(max(mass.by_name, key=lambda name: mass.by_name[name])),
        "special_heads": 0 if shares is None else int((shares > SINK).sum()),
        "sinks": len(sinks),
        "sink": in_sentence(keys, sinks[0][0]) if sinks else None,
        "sink_heads": sum(count for _, count in sinks),
    }
    return Said("heads", result, facts)


def _first_named(result: Overview) -> Place | None:
    """The head that the answer names: the first in rank, or an equal one that is proved."""
    values, order = result.main.values, ranked(result)
    if result.case is Case.FIRST_OF_NONE:
        return max(order, key=lambda place: float(values[place]))
    if result.case is not Case.FOCUSED:
        return next(iter(order), None)
    first = _written(result, float(values[order[0]]))
    alike = [place for place in order if _written(result, float(values[place])) == first]
    proved = (place for place in alike if result.certificates[place[0]][place[1]].verdict.proved)
    return next(proved, order[0])


def _written(result: Overview, value: float) -> str:
    """Text of a main measure's value in a sentence; an entropy as a number of tokens."""
    if result.case is Case.FOCUSED:
        return many(float(np.exp(value)))
    return weight(value) if result.aim is not None else measured.written(result.main, value)


def _steady(result: Overview) -> list[tuple[str, int]]:
    if not _in_tokens(result) or result.distances is None:
        return []
    places = np.ndindex(*result.main.values.shape[:2])
    found = [((i, j), result.distances.of((i, j))) for i, j in places]
    return [(named(result, place), distance.offset) for place, distance in found if mostly(distance)]


def _sinks(result: Overview) -> list[tuple[int, int]]:
    if result.heaviest is None or result.aim is not None:
        return []
    return Counter(result.heaviest[result.heaviest >= 0].tolist()).most_common()
