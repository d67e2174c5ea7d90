"""The words of several heads at a glance: the sharpest, or those that look hardest where it was asked."""

from collections import Counter
from functools import partial

import numpy as np
from jaxtyping import Float

from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import cell, counted, weight
from attnscope.render.sheet import measured
from attnscope.render.sheet.said import Place, in_sentence, named
from attnscope.render.sheets.looking import SINK, distance_words, link, many, mostly, seen_of
from attnscope.render.sheets.telling import aside_words
from attnscope.results import Kind, Overview
from attnscope.results.base.strongest import rest_of
from attnscope.vocabulary import Unit

_NO_CONTROL = "No control yet."
_NAMED = 4  # of these heads


def in_tokens(result: Overview) -> bool:
    """Whether its one measure is the entropy, which is shown as so many tokens."""
    there = [each for each in result.scores.values() if not each.absent]
    return result.aim is None and len(there) == 1 and result.main.measure == "entropy"


def form_of_tokens(tokens: float) -> str:
    """`1.2`, `11.8`, `143`: so many tokens, all of them with a decimal where there are few."""
    return "-" if np.isnan(tokens) else cell(tokens, 1 if tokens < 99.95 else 0)


def over_words(result: Overview, text: str) -> str:
    return text.replace("token", result.by.value)


def same_distance(result: Overview) -> Float[np.ndarray, "layer head"] | None:
    """Of a pair, what each head gives at the same distance elsewhere; None where there is no such."""
    return None if result.aimed is None else result.aimed.elsewhere


def answer(result: Overview, order: list[Place], passed: set[Place], tokens: bool) -> str:
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


def first_told(result: Overview, order: list[Place]) -> Place:
    """The first of an order; of heads whose number reads the same one that is proved, if there is such."""
    values = result.main.values
    first = many(float(np.exp(values[order[0]])))
    alike = [place for place in order if many(float(np.exp(values[place]))) == first]
    proved = (place for place in alike if result.certificates[place[0]][place[1]].verdict.proved)
    return next(proved, order[0])


def _sharpest(result: Overview, order: list[Place], passed: set[Place]) -> str:
    """The head that looks at fewest tokens, and whether position alone can do that."""
    best, keys = first_told(result, order), len(result.key_tokens)
    entropy = result.main.values
    own, middle = (float(np.exp(each)) for each in (entropy[best], np.nanmedian(entropy)))
    seen = seen_of(result.kind, keys, _masked(result))
    told = f"The sharpest of {counted(len(order), 'head')} is {named(result, best)}"
    sharper = [each for each in (float(np.exp(entropy[place])) for place in passed) if each < own]
    if any(many(each) != many(own) for each in sharper):
        rest = counted(len(order) - len(passed), "head")
        told = f"Of {rest} that give {taking(result)} no more than half {named(result, best)} is the sharpest"
    told += f": it looks at about {many(own)} of {seen}"
    if result.distances is not None and mostly(distance := result.distances.of(best)):
        where = distance_words(distance)
        told += f", for {distance.rows} of {distance.of} {where}, so position alone can do it"
    told = over_words(result, f"{told}. Half of all heads look at {many(middle)} tokens or more.")
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
    """The tokens that take more than half of a head's weight alone, with their heads, the most first."""
    return (
        []
        if result.heaviest is None
        else Counter(result.heaviest[result.heaviest >= 0].tolist()).most_common()
    )


def taking(result: Overview) -> str:
    """What heads were passed over for: `special tokens`, `“When”` or both."""
    sinks, shares = _sinks(result), result.special_shares
    kinds = ["special tokens"] * (shares is not None and bool((shares > SINK).any()))
    if sinks:
        kinds.append(in_sentence(result.key_tokens, sinks[0][0]) if len(sinks) == 1 else "one token")
    return " or ".join(kinds)


def _aimed(result: Overview, order: list[Place], query: int, key: int | None) -> str:
    """What heads give from one query, to one key or each to its own."""
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
    distances = same_distance(result)
    if distances is None or np.isnan(distances[best]):
        value = f"{weight(own)}{f'; {alike}' if alike else ''}"
        told += f"{asked + ', ' if not told else ''}{named(result, best)} gives it most ({value})."
    else:
        away = weight(float(distances[best]))
        told += f"{named(result, best)} gives it {weight(own)}, and {away} at the same distance elsewhere in "
        told += f"the text{f' ({alike})' if alike else ''}: no head lies farther above that."
    return f"{told} One text: position could do this."


def _measured(result: Overview, order: list[Place]) -> str:
    """The strongest head by the main measure, beside the median head and even attention."""
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
    """What is passed over, as of the head alone; of weights that are not there its share."""
    if not result.ordinary or result.aside is None:
        return ""
    if result.weights is None:
        share = weight(float(result.aside[place]))
        return f", apart from {share} of its weight on {passed_over(result)}" if share.strip("0.") else ""
    weights, queries, keys = result.weights[place[0]][place[1]], result.query_tokens, result.key_tokens
    rest = rest_of(weights, queries, keys, crosses=result.kind is Kind.CROSS)
    return aside_words(rest, keys, float(result.strongest_weight[place]))


def passed_over(result: Overview) -> str:
    """What cannot be a strongest link: `a token with more than half of it and the query itself`."""
    kinds = ["special tokens"] * any(each.special for each in result.key_tokens.items)
    kinds += ["a token with more than half of it"]
    kinds += ["the query itself"] * (result.kind is not Kind.CROSS)
    return kinds[0] if len(kinds) == 1 else f"{', '.join(kinds[:-1])} and {kinds[-1]}"


def control(result: Overview) -> str:
    """Of a pair what the same text gives elsewhere, which is no other text."""
    if same_distance(result) is None:
        return ""
    return "the other pairs of this text at the same distance; no other text was read"


def notes(result: Overview) -> tuple[str, ...]:
    """The heads that look at one distance nearly always."""
    if not in_tokens(result) or result.distances is None:
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
