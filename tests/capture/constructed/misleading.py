"""Constructions that mislead: what is shown of a head is not what acts, or acts elsewhere.

Each list below is a product of deeds, ways to write them, places and routes; a new deed is a line in `rows`
or `others`, a new place a word here.
"""

from collections.abc import Iterable, Iterator, Mapping

import torch

from tests.capture.constructed import kept, others
from tests.capture.constructed.construction import Construction, Parts, by_name, on_routes
from tests.capture.constructed.model import HEADS, LAYERS, VALUE_DIM, Part, Place
from tests.capture.constructed.rows import (
    BY_MATRIX,
    LOSSES,
    MIXTURES,
    ORDERS,
    PICKS,
    WAYS,
    beyond,
    of_head,
    rows,
)

EVERY = ("eager", "fused", "named", "traced", "tiled")
SPREAD = ("fused", "traced", "tiled")
SOME = ("eager", "traced")
OWN = ("eager", "named", "traced", "tiled")  # the kernel is the model's own function


def _rows(
    deeds: Iterable[str], places: Iterable[Place], routes: Iterable[str], ways: Iterable[str] = (BY_MATRIX,)
) -> Iterator[Construction]:
    for deed in deeds:
        for way in ways:
            told = "" if way == BY_MATRIX else f" {way}"
            for place in places:
                yield from on_routes(f"rows {deed}{told} {place}", {place: rows(deed, way)}, routes)


def _together(deeds: Iterable[str], routes: Iterable[str]) -> Iterator[Construction]:
    for deed in deeds:
        both = {Place.KEY: rows(deed), Place.VALUE: rows(deed)}
        yield from on_routes(f"rows {deed} on keys and values", both, routes)
        apart = {Place.KEY: rows(deed), Place.VALUE: rows("last two swapped")}
        yield from on_routes(f"rows {deed} on keys, other ones on values", apart, routes)


def _sometimes(deeds: Iterable[str]) -> Iterator[Construction]:
    """In the first layer, in every layer, in one head, in long texts alone."""
    for deed in deeds:
        answer: Parts = {Place.ANSWER: rows(deed)}
        yield from on_routes(f"rows {deed} in the first layer", answer, SPREAD, layers=(0,))
        yield from on_routes(f"rows {deed} in every layer", answer, SPREAD, layers=tuple(range(LAYERS)))
        for head in range(HEADS):
            alone = {Place.ANSWER: of_head(head, rows(deed))}
            yield from on_routes(f"rows of head {head} {deed}", alone, ("eager",) if head else SPREAD)
        values = {Place.VALUE: of_head(1, rows(deed))}
        yield from on_routes(f"values of head 1 {deed}", values, SPREAD)
        long = {Place.ANSWER: beyond(8, rows(deed))}
        yield from on_routes(f"rows {deed} beyond 8 tokens", long, SPREAD, tokens=11)


def _long() -> Iterator[Construction]:
    """In texts alone that are longer than the beginning that anything is tried on."""
    deeds = ("flipped", "first two swapped", "averaged", "zeroed")
    for place, deed in [
        *((Place.ANSWER, deed) for deed in deeds),
        (Place.VALUE, "rolled"),
        (Place.KEY, "rolled"),
    ]:
        like = Construction("eager", f"rows {deed} {place}", {place: rows(deed)})
        parts = {place: beyond(512, rows(deed))}
        what = f"rows {deed} {place} beyond 512 tokens"
        yield from on_routes(what, parts, ["tiled"], tokens=520, like=like)


def _parts(
    made: Mapping[str, Part], places: Iterable[Place], routes: Iterable[str]
) -> Iterator[Construction]:
    for what, part in made.items():
        for place in places:
            yield from on_routes(f"{what} {place}", {place: part}, routes)


def _in_other_models(deeds: Iterable[str]) -> Iterator[Construction]:
    """The same where masks, shared keys, norms, numbers of other precision are."""
    for what, shape in {
        "causal": {"causal": True},
        "key heads shared": {"key_heads": 1},
        "norms behind": {"norm_behind": True},
        "crossing": {"crossing": True},
    }.items():
        for deed in deeds:
            for place in (Place.ANSWER, Place.VALUE, Place.RESULT, Place.PASSED):
                parts = {place: rows(deed)}
                yield from on_routes(f"{what}, rows {deed} {place}", parts, SPREAD, shape=shape)
    for what, change in {
        "quantised": kept.quantised,
        "compiled": kept.compiled,
        "bfloat16": kept.precision(torch.bfloat16),
        "float16": kept.precision(torch.float16),
    }.items():
        for deed in ("shuffled", "averaged", "zeroed"):
            parts = {Place.ANSWER: rows(deed)}
            yield from on_routes(f"{what}, rows {deed}", parts, SPREAD, change=change, weak="float" in what)


def _beside_what_is_right() -> Iterator[Construction]:
    """Behind or before something that models rightly do."""
    for what in ("a layer scale of 1e-5", "a norm of the row", "a gate of its own row", "in NumPy", "cubed"):
        for deed in ("first two swapped", "leaking"):
            parts = {Place.ANSWER: rows(deed), Place.RESULT: kept.ANYWHERE[what]}
            yield from on_routes(f"rows {deed}, then {what}", parts, SPREAD)
    for there, back in (("rolled", "rolled"), ("flipped", "rolled"), ("shuffled", "shuffled")):
        parts = {Place.GIVEN: rows(there), Place.RESULT: rows(back)}
        yield from on_routes(f"rows {there} before and {back} behind", parts, SPREAD)


def _windows() -> Iterator[Construction]:
    exchanged: Part = lambda own, x, place: kept.joined(2)(own, x.flip(0), place)  # noqa: E731
    for what, cut, joined in (
        ("rolled and not rolled back", kept.cut(2, 2), kept.joined(2)),
        ("rolled back alone", kept.cut(2), kept.joined(2, 2)),
        ("exchanged", kept.cut(2), exchanged),
    ):
        parts = {Place.GIVEN: cut, Place.RESULT: joined}
        yield from on_routes(f"windows {what}", parts, SPREAD, tokens=8)


def _crossing() -> Iterator[Construction]:
    shape = {"crossing": True}
    for place in (Place.KEY, Place.QUERY):
        yield from on_routes(f"crossing, rows rolled {place}", {place: rows("rolled")}, SPREAD, shape=shape)
    for name in ("the values of one token in its place", "a gate of zero"):
        part = others.REPLACED_ANSWERS[name]
        yield from on_routes(f"crossing, {name}", {Place.ANSWER: part}, SPREAD, shape=shape)
    swapped = {Place.ANSWER: others.HEADS_MOVED["first two heads swapped"]}
    yield from on_routes("crossing, first two heads swapped", swapped, SPREAD, shape=shape)


def _texts() -> Iterator[Construction]:
    for place in (Place.ANSWER, Place.VALUE, Place.RESULT, Place.GIVEN):
        parts = {place: others.TEXTS_EXCHANGED}
        yield from on_routes(f"texts exchanged {place}", parts, SPREAD, texts=2)


def _calls() -> Iterator[Construction]:
    for what, twice in others.SECOND_CALLS.items():
        yield from on_routes(what, {}, SPREAD, shape={"twice": twice})


def _made() -> Iterator[Construction]:
    # what comes out of the kernel goes to other rows, to several, to none
    yield from _rows(ORDERS | PICKS | MIXTURES, [Place.ANSWER], EVERY)
    yield from _rows(LOSSES, [Place.ANSWER], SPREAD)
    other_ways = [way for way in WAYS if way != BY_MATRIX]
    yield from _rows(["shuffled", "neighbours swapped"], [Place.ANSWER], SOME, other_ways)
    yield from _rows(
        ["averaged", "zeroed"], [Place.ANSWER], SOME, ["in NumPy", "in place", "behind the back"]
    )
    yield from _rows(["rolled", "averaged", "leaking", "zeroed"], [Place.RESULT, Place.HOOK], SPREAD)
    yield from _rows(["last two swapped", "every other row zeroed"], [Place.RESULT, Place.HOOK], SOME)
    yield from _rows(["flipped", "averaged in pairs", "zeroed"], [Place.COLUMNS, Place.PROJECTED], SPREAD)
    yield from _rows(["flipped", "averaged", "zeroed", "first row zeroed"], [Place.PASSED], SPREAD)
    yield from _parts(others.SORTED, [Place.ANSWER, Place.VALUE, Place.RESULT], SPREAD)
    # what goes into it is of other rows
    yield from _rows(["rolled", "flipped", "last two swapped"], [Place.BEFORE, Place.GIVEN], SPREAD)
    yield from _rows(["flipped", "shuffled"], [Place.PRE_HOOK], SOME)
    yield from _rows(["rolled", "first two swapped", "shuffled"], [Place.QUERY, Place.KEY], SPREAD)
    orders = ["rolled", "first two swapped", "shuffled"]
    yield from _rows([*orders, "one row for all", "averaged"], [Place.VALUE], EVERY)
    yield from _rows(["leaking", "averaged so far", "moved on by one"], [Place.VALUE], SPREAD)
    yield from _together(["rolled", "flipped", "softly rolled", "mostly rolled"], SPREAD)
    # what meets the values are not the weights of the queries and keys
    yield from _parts(others.WEIGHTS_CHANGED, [Place.WEIGHTS], OWN)
    yield from _rows(["rolled", "averaged"], [Place.WEIGHTS, Place.CONTEXT], OWN)
    # it is not used, or another head's is
    yield from _parts(others.REPLACED_ANSWERS, [Place.ANSWER], SPREAD)
    yield from _parts(others.REPLACED, [Place.RESULT, Place.PASSED], SPREAD)
    given = {"what was given in its place": others.REPLACED["what was given in its place"]}
    yield from _parts(given, [Place.STREAM], SPREAD)
    yield from _parts(others.REPLACED, [Place.HOOK], SOME)
    yield from _parts(others.HEADS_MOVED, [Place.ANSWER], SPREAD)
    rolled: Part = lambda own, x, place: x.roll(VALUE_DIM, -1)  # noqa: E731
    yield from _parts({"heads rolled": rolled}, [Place.COLUMNS], EVERY)
    # only sometimes, in other models, beside something else
    yield from _sometimes(["flipped", "averaged"])
    yield from _in_other_models(["flipped", "moved on by one"])
    yield from _beside_what_is_right()
    yield from _windows()
    yield from _texts()
    yield from _crossing()
    yield from _calls()


MISLEADING = by_name(_made())
LONG = by_name(_long())
