"""The sentences of parts that were taken away, layer by layer or token by token."""

from collections.abc import Sequence
from itertools import groupby

from attnscope.errors import listed
from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import (
    counted,
    percent,
    signed,
    significant,
)
from attnscope.render.sheet.said import name
from attnscope.render.sheets import ablation_labels as labels
from attnscope.render.sheets.ablation_measured import (
    is_share,
    only,
    other_ways,
    pair,
    share,
    subject,
    told_share,
    value,
)
from attnscope.render.sheets.ablation_words import (
    closes,
    closes_no_gap,
    factor,
    goes,
    measured_of,
    one_text,
    then,
    typical,
)
from attnscope.results import Ablation
from attnscope.results.claims.ablation import Case
from attnscope.results.claims.effect import PlaceEffect
from attnscope.results.claims.intervention import Part
from attnscope.spelling import spelled, told
from attnscope.tokens import Tokens


def tokens_of(result: Ablation) -> Tokens:
    """What the positions of places are of: of a link the keys, else what the part is at."""
    return result.key_tokens if result.link is not None else result.query_tokens


def largest(result: Ablation) -> PlaceEffect:
    """The place that moves the answer most."""
    most = result.moves_most
    assert isinstance(most, PlaceEffect), "places were changed, not heads"
    return most


def at_words(result: Ablation, place: PlaceEffect) -> str:
    return settled(told(tokens_of(result), place.positions)) if place.positions else ""


def named(result: Ablation, place: PlaceEffect) -> str:
    """`the MLP of layer 3 at 8 opened`, `what layer 2 hands on`, `the link [MASK] → opened in layer 3`."""
    at = at_words(result, place)
    if result.link is not None:
        query = settled(
            spelled(result.query_tokens, result.link_spans[0] if result.link_spans else result.link[:1])
        )
        where = f"layer {place.layer}" if place.head is None else name(place.layer, place.head)
        return f"the link {query} → {at} in {where}"
    if result.part is Part.POSITION:
        return f"the position of {at}"
    layer = f"layer {place.layer}"
    what = {
        Part.MLP: f"the MLP of {layer}",
        Part.ATTENTION: f"the attention of {layer}",
        Part.RESIDUAL: f"what {layer} hands on",
    }.get(result.part) or name(place.layer, place.head or 0)
    return f"{what} at {at}" if at else what


def _query(result: Ablation, link: tuple[int, int]) -> str:
    return settled(spelled(result.query_tokens, result.link_spans[0] if result.link_spans else link[:1]))


def short(result: Ablation, place: PlaceEffect) -> str:
    """`L3 at 8 opened`."""
    row = row_words(result, place)
    return (
        f"{row} at {at_words(result, place)}" if place.positions and row else row or at_words(result, place)
    )


def row_words(result: Ablation, place: PlaceEffect) -> str:
    if result.part is Part.POSITION:
        return ""
    return f"L{place.layer}" if place.head is None else name(place.layer, place.head)


def _counted_places(result: Ablation) -> str:
    count = len(result.places)
    if result.part is Part.POSITION:
        return counted(count, "position")
    if result.of_several_tokens:
        return counted(count, "link" if result.link is not None else "place")
    plain = {Part.MLP: "MLP", Part.HEAD: "head"}
    return counted(count, plain.get(result.part, "layer"))


def done_words(result: Ablation) -> str:
    what = {
        Part.MLP: "MLPs",
        Part.ATTENTION: "attention of layers",
        Part.RESIDUAL: "what layers hand on",
        Part.POSITION: "vectors of positions",
        Part.HEAD: "heads",
    }[result.part]
    if result.link is not None:
        what = f"links of {_query(result, result.link)}"
    by = "token by token" if result.of_several_tokens else "in turn"
    at = at_words(result, result.places[0])
    where = f" at {at}" if at and not result.of_several_tokens else ""
    told = f"{labels.done(result)}, {only(result)}," if result.path is not None else labels.done(result)
    return f"{what}{where} {told} {by}"


def answer(result: Ablation) -> str:
    """One sentence for the case that it is, and along a path what all ways do."""
    return _said(result) + other_ways(result, short(result, largest(result))) + one_text(result)


def _said(result: Ablation) -> str:
    best = largest(result)
    if result.case is Case.NO_GAP:
        return closes_no_gap(result)
    if result.case is Case.CLOSES:
        return _closes(result)
    if result.case is Case.ROUNDING:
        change, floor = significant(abs(best.change)), significant(result.floor.rounding)
        return (
            f"This run cannot tell what any of {_counted_places(result)} does to {subject(result)}: a "
            f"change of {change} {result.unit} is no more than rounding makes ({floor})."
        )
    if len(result.places) == 1:
        return _one(result, best)
    count, alone = _counted_places(result), labels.alone(result)
    if any(map(result.is_the_answers_own, result.places)):
        alone += ", beside the answer's own token"
    if result.case is Case.LITTLE:
        told_most = f"{pair(result, best)} at most ({short(result, best)}).{then(best)}"
        return f"None of {count}, {alone}, moves {subject(result)} by much: {told_most}"
    beside = f" ({typical_of(result)}: {typical(result, best)})" if best.controls else ""
    told = f"Of {count}, {alone}, {named(result, best)} moves {subject(result)} most"
    if result.case is Case.FLAT:
        second = result.comes_next
        assert isinstance(second, PlaceEffect), "places are compared"
        told += (
            f", {pair(result, best)}{beside}, but does not stand out: {short(result, second)} comes next, "
        )
        return f"{told}{pair(result, second)}.{then(best, labels.without(result, named(result, best)))}"
    return f"{told}: {pair(result, best)}{beside}.{then(best)}"


def typical_of(result: Ablation) -> str:
    """Beside what a place stands, one of them."""
    one = result.beside.removeprefix("the other ").removeprefix("other ").partition(",")[0]
    first, space, rest = one.partition(" ")
    first = "stretch" if first == "stretches" else first.removesuffix("s")
    return f"the typical other {first}{space}{rest}"


def _one(result: Ablation, one: PlaceEffect) -> str:
    said = f"{labels.without(result, named(result, one))} {subject(result)} "
    little = abs(one.change) < result.measured.little
    said += f"hardly moves: {pair(result, one)}" if little else goes(result, one)
    if not one.controls:
        return f"{said}; there is nothing alike to hold it against.{then(one)}"
    more = one.controls - one.below
    if more:
        moves = "moves" if more == 1 else "move"
        return f"{said}; {more} of {one.controls} {result.beside} {moves} it more.{then(one)}"
    times, size = "", one.typical or 0.0
    if size > result.floor.rounding:
        times = f", {factor(abs(one.change) / size)} x as much as the typical one"
    return f"{said}{times}, more than any of {one.controls} {result.beside}.{then(one)}"


def _closes(result: Ablation) -> str:
    total = result.total
    assert total is not None, "the case says so"
    here, there = (value(result, each) for each in (total.before, total.after))
    ends = f"{measured_of(result)} is {here} here and {there} there"
    best = max(result.places, key=lambda each: each.change / total.change)
    if best.change / total.change <= 0:
        return f"No place alone closes any of the gap between the two texts: {ends}."
    if result.part is Part.RESIDUAL and result.of_several_tokens:
        said = _where_it_stands(result)
    else:
        said = f"{named(result, best)} alone {closes(result, best)}"
        said = f"{said[0].upper()}{said[1:]}"
    most = max(result.places, key=lambda each: -(each.enough or 0.0) / total.change)
    back = enough(result, most)
    if back is None:
        return f"{said}: {ends}."
    if back <= 0:
        there = "no place alone brings any of it back in the other text"
    elif is_share(back):
        there = f"{named(result, most)} brings back {percent(back)} of it in the other text"
    else:
        moved = f"{signed(most.enough or 0.0)} {result.unit}"
        there = f"{named(result, most)} moves it by {moved} in the other text, beyond the gap"
    return f"{said}: {ends}. The other way round, {there}."


def _where_it_stands(result: Ablation) -> str:
    total = result.total
    assert total is not None, "there is another text"
    best: list[tuple[int, str, PlaceEffect]] = []
    for layer, places in groupby(result.places, key=lambda each: each.layer):
        one = max(places, key=lambda each: each.change / total.change)
        best.append((layer, at_words(result, one), one))
    stretches = [list(rows) for _, rows in groupby(best, key=lambda each: each[1])]
    said = [
        f"at {rows[0][1]} in {'layer' if len(rows) == 1 else 'layers'} {listed([row[0] for row in rows])} "
        f"({_range(result, [row[2] for row in rows])})"
        for rows in stretches[:4]
    ]
    where = ", then ".join(said) + (", ..." if len(stretches) > 4 else "")
    return f"Patched at one token alone, most of the gap between the two texts closes {where}"


def _range(result: Ablation, places: Sequence[PlaceEffect]) -> str:
    ends = sorted(places, key=lambda one: share(result, one.change) or 0.0)
    low, high = (told_share(result, share(result, one.change), one.change) for one in (ends[0], ends[-1]))
    return low if low == high else f"{low} to {high}"


def enough(result: Ablation, place: PlaceEffect) -> float | None:
    """Which part of the gap a place brings back where it is put in the other text."""
    if place.enough is None or result.total is None or not result.total.change:
        return None
    return -place.enough / result.total.change


def closed(result: Ablation, place: PlaceEffect) -> float | None:
    """Which part of the gap closes with a place's part of the other text."""
    return share(result, place.change)
