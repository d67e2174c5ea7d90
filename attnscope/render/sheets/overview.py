"""Several heads at a glance: measures of each, and the strongest link of those that are worth a look."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from jaxtyping import Float
from rich.cells import cell_len

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import cell, counted, weight
from attnscope.render.kit.words.command import finding, looked_at, opening
from attnscope.render.kit.words.weights import overview_view_words
from attnscope.render.sheet import measured
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.guard import by_head
from attnscope.render.sheet.heads import Companion, HeadGrid, each_of, ordered
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
    read,
    setting,
    span_notes,
)
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Table, as_written
from attnscope.render.sheets.looking import SINK, distance_words, link, many, mostly, seen_of
from attnscope.render.sheets.telling import aside_words
from attnscope.results import HeadScores, Kind, Overview
from attnscope.results.base.strongest import rest_of
from attnscope.tokens import Tokens
from attnscope.vocabulary import Unit

_TOLD = 6  # heads of a pair, which the grid has all
_FEW, _LISTED = 16, 12  # heads that are all listed, and listed where one query or one pair was asked for
_LAYERS = 15  # whose strongest heads are all listed
_LONGEST = 18  # cells of the name of a token
_NO_CONTROL = "No control yet."
_NAMED = 4  # of these heads


def sheet(result: Overview, focus: Focus = WHOLE) -> Sheet:
    certificates = ((each.verdict for each in row) for row in result.certificates)
    verdicts = by_head(result.layers, result.heads, certificates)
    in_tokens = _in_tokens(result) and not focus.in_nats
    grids = [_grid(result, each, in_tokens) for each in shown(result)]
    size, names = grid_size(result.layers, result.heads), ", ".join(result.scores)
    one = result.main.description.label if result.aim is not None else result.main.measure
    order = ranked(result)
    best = (_first_told(result, order) if in_tokens else order[0]) if order else (0, 0)
    return Sheet(
        title=f"{one if len(grids) == 1 else counted(len(grids), 'measure')} by head",
        setting=setting(result, size),
        origins=(result.provenance,),
        answer=_answer(result, order, _passed(result), in_tokens),
        blocks=(*grids, _links(result, in_tokens, focus.verbose)),
        table=lambda: _every(result),
        texts=read(result.kind, result.query_tokens, result.key_tokens),
        control=_control(result),
        notes=(*_spans(result), *_notes(result), *limits(result)),
        legend=(*overview_view_words(result), *features(result)),
        details=tuple(measured.absent(result.scores)),
        departs=departures(result.by, result.special),
        verdicts=verdicts,
        proof=proof(verdicts.values(), "head"),
        main=grids[0],
        summary=(size, attention(result.kind, result.tower), names if len(grids) > 1 else ""),
        record=tuple((key, each.absent) for key, each in result.scores.items() if each.absent),
        next=_next(result, best),
    )


def _spans(result: Overview) -> Iterator[str]:
    if result.aim is None or not result.aim_spans:
        return iter(())
    (query, key), (asked, *given) = result.aim, result.aim_spans
    looked = "" if key is None else result.key_tokens.names[key]
    return span_notes(result.query_tokens.names[query], asked, looked, given[0] if given else ())


def _next(result: Overview, best: Place) -> Next:
    if (
        _of_a_pair(result)
        and result.aim is not None
        and result.query_tokens.texts
        and result.key_tokens.texts
    ):
        query, key = result.aim
        assert key is not None, "a pair has both"
        looking = looked_at(result.by, result.special)
        return Next("which of them do it because of the words?", finding(result, query, key) + looking)
    return Next("look into one", opening(result, result.layers[best[0]], result.heads[best[1]]))


def shown(result: Overview) -> list[HeadScores]:
    """The measures that have a grid, the main one first."""
    return [each for each in result.scores.values() if not each.absent] or [result.main]


def _of_a_pair(result: Overview) -> bool:
    return result.aim is not None and result.aim[1] is not None


def _grid(result: Overview, scores: HeadScores, in_tokens: bool) -> HeadGrid:
    alone = len(shown(result)) == 1 and not _of_a_pair(result)
    described, asked = scores.description, result.aim is not None and scores is result.main
    keys = len(result.key_tokens)
    if in_tokens:
        title = f"tokens each head looks at (1 = one token, {keys:,} = all alike)"
        title = _over_words(result, title)
    else:
        title = described.label if asked else described.title
    return HeadGrid(
        title=title,
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

    Heads that leave most of their weight on special tokens, or on one token, come last.
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
    order, described = ranked(result), result.main.description
    places: Sequence[Place]
    unlisted = 0  # layers
    if result.aim is not None:
        title, places = described.strongest, order[:_LISTED]
        if _same_distance(result) is not None:
            title, places = "farthest above the same distance elsewhere in the text", order[:_TOLD]
    elif result.main.values.size <= _FEW:
        title = "strongest link of each head"
        places = [(i, j) for i in range(len(result.layers)) for j in range(len(result.heads))]
    else:
        title = "sharpest of its layer" if in_tokens else f"{described.strongest}, and its strongest link"
        firsts = {i: (i, j) for i, j in reversed(order)}
        places = [firsts[i] for i in sorted(firsts)]
        if len(places) > _LAYERS and not every:
            places = [place for place in order if firsts[place[0]] == place][:_LISTED]
            unlisted = len(firsts) - len(places)
    over = len(_passed(result) - set(places)) if result.main.values.size > _FEW else 0
    passed = f"passed over: {counted(over, 'head')} with more than half of it on {_taking(result)}"
    return Ranking(
        title=title,
        of="head",
        names=tuple(named(result, place) for place in places),
        table=_table(result, places, in_tokens),
        says=passed if over else "",
        unshown=f"{counted(unlisted, 'more layer')} (-v)"
        if unlisted
        else f"the grid has all {counted(result.main.values.size, 'head')}",
        hidden=unlisted or (0 if over else result.main.values.size - len(places)),
    )


def _table(result: Overview, places: Sequence[Place], in_tokens: bool) -> Table:
    main, columns = result.main, list[Column]()
    if result.aim is None:
        texts = [measured.written(main, float(main.values[place])) for place in places]
        texts = (
            [form_of_tokens(float(np.exp(main.values[place]))) for place in places] if in_tokens else texts
        )
        columns.append(Column("measure", texts, result.by.several if in_tokens else main.measure, as_written))
    if result.aim is None and result.ordinary and result.aside is not None:
        says = f"share of its weight on {_passed_over(result)}: links are of the rest"
        columns.append(Column("aside", each_of(result.aside, places), "aside", weight, says, spared=1))
    elif result.aim is None and (shares := result.special_shares) is not None:
        says = "share of its weight on special tokens"
        columns.append(Column("special", each_of(shares, places), "special", weight, says, spared=1))
    columns.append(Column("weight", each_of(result.strongest_weight, places), "weight", weight))
    if (elsewhere := _same_distance(result)) is not None:
        says = "mean weight of the other queries on the key at the same distance"
        columns.append(Column("elsewhere", each_of(elsewhere, places), "elsewhere", weight, says))
        return Table(*columns)
    columns.append(Column("link", [_link(result, place) for place in places], "query → key"))
    return Table(*columns)


def _link(result: Overview, place: Place) -> str:
    query, key = (int(position) for position in result.strongest[place])
    if query < 0:
        return "no valid key"
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
    """Whether its one measure is the entropy, which is shown as so many tokens."""
    there = [each for each in result.scores.values() if not each.absent]
    return result.aim is None and len(there) == 1 and result.main.measure == "entropy"


def form_of_tokens(tokens: float) -> str:
    """`1.2`, `11.8`, `143`: so many tokens, all of them with a decimal where there are few."""
    return "-" if np.isnan(tokens) else cell(tokens, 1 if tokens < 99.95 else 0)


def _over_words(result: Overview, text: str) -> str:
    return text.replace("token", result.by.value)


def _same_distance(result: Overview) -> Float[np.ndarray, "layer head"] | None:
    """Of a pair, what each head gives at the same distance elsewhere; None where there is no such."""
    return None if result.aimed is None else result.aimed.elsewhere


def _answer(result: Overview, order: list[Place], passed: set[Place], tokens: bool) -> str:
    """The head that comes first, of those not `passed` over, beside the one in the middle."""
    main = result.main
    if not order:
        return f"No head has a number: {main.absent}." if main.absent else "No head has a number."
    if main.description.classes:
        (most, count), *_ = Counter(main.class_of(*place) for place in order).most_common()
        return f"Most common is {most}: {count} of {counted(len(order), 'head')}."
    if result.aim is not None:
        return _aimed(result, order, *result.aim)
    return _sharpest(result, order, passed) if tokens else _measured(result, order)


def _first_told(result: Overview, order: list[Place]) -> Place:
    """The first of an order; of heads whose number reads the same one that is proved, if there is such."""
    values = result.main.values
    first = many(float(np.exp(values[order[0]])))
    alike = [place for place in order if many(float(np.exp(values[place]))) == first]
    proved = (place for place in alike if result.certificates[place[0]][place[1]].verdict.proved)
    return next(proved, order[0])


def _sharpest(result: Overview, order: list[Place], passed: set[Place]) -> str:
    best, keys = _first_told(result, order), len(result.key_tokens)
    entropy = result.main.values
    own, middle = (float(np.exp(each)) for each in (entropy[best], np.nanmedian(entropy)))
    seen = seen_of(result.kind, keys, _masked(result))
    told = f"The sharpest of {counted(len(order), 'head')} is {named(result, best)}"
    sharper = [each for each in (float(np.exp(entropy[place])) for place in passed) if each < own]
    if any(many(each) != many(own) for each in sharper):
        rest = counted(len(order) - len(passed), "head")
        told = (
            f"Of {rest} that give {_taking(result)} no more than half {named(result, best)} is the sharpest"
        )
    told += f": it looks at about {many(own)} of {seen}"
    if result.distances is not None and mostly(distance := result.distances.of(best)):
        where = distance_words(distance)
        told += f", for {distance.rows} of {distance.of} {where}, so position alone can do it"
    told = _over_words(result, f"{told}. Half of all heads look at {many(middle)} tokens or more.")
    if result.by in (Unit.SENTENCE, Unit.PASSAGE) and any(each.special for each in result.key_tokens.items):
        told += f" Each special token counts as a {result.by}."
    if (mass := result.special_mass) is not None and mass.total >= SINK:
        most = max(mass.by_name, key=lambda each: mass.by_name[each])
        shares = result.special_shares
        over = 0 if shares is None else int((shares > SINK).sum())
        told += f" Special tokens take {weight(mass.total)} of all weight ({settled(most)} most); "
        told += f"{counted(over, 'head')} {'gives' if over == 1 else 'give'} them more than half."
    if sinks := _sinks(result):
        beside = " and other tokens" if len(sinks) > 1 else ""
        most, heads = in_sentence(result.key_tokens, sinks[0][0]), counted(sum(dict(sinks).values()), "head")
        told += f" {most}{beside} takes more than half of the weight of {heads}."
    return f"{told} {_NO_CONTROL}"


def _sinks(result: Overview) -> list[tuple[int, int]]:
    return (
        []
        if result.heaviest is None
        else Counter(result.heaviest[result.heaviest >= 0].tolist()).most_common()
    )


def _taking(result: Overview) -> str:
    """What heads were passed over for: `special tokens`, `“When”` or both."""
    sinks, shares = _sinks(result), result.special_shares
    kinds = ["special tokens"] * (shares is not None and bool((shares > SINK).any()))
    if sinks:
        kinds.append(in_sentence(result.key_tokens, sinks[0][0]) if len(sinks) == 1 else "one token")
    return " or ".join(kinds)


def _aimed(result: Overview, order: list[Place], query: int, key: int | None) -> str:
    asked, best, unit = in_sentence(result.query_tokens, query), order[0], result.by.value
    own = float(result.main.values[best])
    if result.kind is Kind.CROSS and result.query_tokens.texts:
        asked = f"When the decoder reads {asked}"
    else:
        asked = f"From {asked}"
    alike = "" if result.aimed is None else f"even attention: {weight(result.aimed.even_attention)}"
    if key is None:
        if result.ordinary and any(each.special for each in result.key_tokens.items):
            asked += ", special tokens aside"
        where = in_sentence(result.key_tokens, int(result.strongest[best][1]))
        middle = weight(float(np.nanmedian(result.main.values)))
        told = f"{asked}, {named(result, best)} looks hardest at one {unit}: {where} {weight(own)}"
        return f"{told}; half of {counted(len(order), 'head')} give theirs {middle} or less. {_NO_CONTROL}"
    looked = in_sentence(result.key_tokens, key)
    first = None if result.aimed is None else result.aimed.largest
    if first == 0:
        told = f"{asked}, no head looks at {looked} more than at every other {unit}; the most is "
        most = max(order, key=lambda place: float(result.main.values[place]))
        value = weight(float(result.main.values[most]))
        return f"{told}{named(result, most)} with {value}{f' ({alike})' if alike else ''}. {_NO_CONTROL}"
    heads = counted(len(order), "head")
    told = f"{asked}, {first} of {heads} look at {looked} more than at any other {unit}. " if first else ""
    distances = _same_distance(result)
    if distances is None or np.isnan(distances[best]):
        value = f"{weight(own)}{f'; {alike}' if alike else ''}"
        told += f"{asked + ', ' if not told else ''}{named(result, best)} gives it most ({value})."
    else:
        away = weight(float(distances[best]))
        told += f"{named(result, best)} gives it {weight(own)}, and {away} at the same distance elsewhere in "
        told += f"the text{f' ({alike})' if alike else ''}: no head lies farther above that."
    return f"{told} One text: position could do this."


def _measured(result: Overview, order: list[Place]) -> str:
    main, described, best = result.main, result.main.description, order[0]
    written = partial(measured.written, main)
    end = "least" if described.strong == "low" else "most"
    own, of = written(float(main.values[best])), counted(len(order), "head")
    told = f"{named(result, best)} has the {end} {described.amount} of {of}, {own}; the median head has "
    told += written(float(np.nanmedian(main.values)))
    if main.even_attention is not None and not np.isnan(main.even_attention[best]):
        told += f", even attention would give {written(float(main.even_attention[best]))}"
    if main.control is not None:
        told += f", other answers {written(float(main.control[best]))} in the median"
    query, key = (int(position) for position in result.strongest[best])
    if query >= 0:
        strongest = weight(float(result.strongest_weight[best]))
        pair = link(result.query_tokens, result.key_tokens, query, key)
        told += f". Its strongest link is {pair}, {strongest}{_aside(result, best)}"
    return f"{told}."


def _aside(result: Overview, place: Place) -> str:
    if not result.ordinary or result.aside is None:
        return ""
    if result.weights is None:
        share = weight(float(result.aside[place]))
        return f", apart from {share} of its weight on {_passed_over(result)}" if share.strip("0.") else ""
    weights, queries, keys = result.weights[place[0]][place[1]], result.query_tokens, result.key_tokens
    rest = rest_of(weights, queries, keys, crosses=result.kind is Kind.CROSS)
    return aside_words(rest, keys, float(result.strongest_weight[place]))


def _passed_over(result: Overview) -> str:
    """What cannot be a strongest link: `a token with more than half of it and the query itself`."""
    kinds = ["special tokens"] * any(each.special for each in result.key_tokens.items)
    kinds += ["a token with more than half of it"]
    kinds += ["the query itself"] * (result.kind is not Kind.CROSS)
    return kinds[0] if len(kinds) == 1 else f"{', '.join(kinds[:-1])} and {kinds[-1]}"


def _control(result: Overview) -> str:
    """Of a pair what the same text gives elsewhere, which is no other text."""
    if _same_distance(result) is None:
        return ""
    return "the other pairs of this text at the same distance; no other text was read"


def _notes(result: Overview) -> tuple[str, ...]:
    """The heads that look at one distance nearly always."""
    if not _in_tokens(result) or result.distances is None:
        return ()
    found = list[str]()
    for i, j in np.ndindex(result.main.values.shape):
        distance = result.distances.of((i, j))
        if mostly(distance):
            found.append(f"{named(result, (i, j))} ({distance_words(distance)})")
    if not found:
        return ()
    more = f" and {counted(len(found) - _NAMED, 'head')} more" if len(found) > _NAMED else ""
    told = f"at one distance for at least 80 % of the {result.by.several}"
    return (f"{told}: {', '.join(found[:_NAMED])}{more}",)


def _masked(result: Overview) -> bool:
    return result.kind is Kind.DECODER
