"""Constructions that mislead: what is shown of a head is not what acts, or acts elsewhere.

First deeds that are no matrix over tokens, then products of all deeds, places and routes; a new deed is a
line here or in `rows`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import torch
from torch import Tensor

from tests.capture.constructed import harmless
from tests.capture.constructed.construction import (
    EVERY,
    OWN,
    SOME,
    SPREAD,
    Construction,
    Parts,
    by_name,
    on_routes,
)
from tests.capture.constructed.model import HEADS, LAYERS, VALUE_DIM, Attention, Part, Place
from tests.capture.constructed.rows import (
    BY_MATRIX,
    LOSSES,
    MIXTURES,
    ORDERS,
    PICKS,
    TEXTS_EXCHANGED,
    WAYS,
    beyond,
    of_head,
    rows,
    values_of,
)


def _uniform(own: Attention, answer: Tensor, _place: Place) -> Tensor:
    """An attention that looks at everything alike."""
    return values_of(own).mean(1, keepdim=True).expand_as(answer)


def _another(own: Attention, _answer: Tensor, _place: Place) -> Tensor:
    """An attention by another scale, past the kernel."""
    query, key = (own.now[name] for name in ("query", "key"))
    scores = torch.matmul(query, key.transpose(2, 3)) * 0.2
    chances = scores.sub(scores.amax(-1, keepdim=True)).exp()
    met = torch.matmul(chances / chances.sum(-1, keepdim=True), own.now["value"])
    return met.transpose(1, 2)


def _silent_gate(own: Attention, x: Tensor, place: Place) -> Tensor:
    """A learned gate that has come to be exactly zero."""
    return x * own.learned(f"gate_{place.name}", x.shape[-1], times=0)


def _written_over_unseen(own: Attention, answer: Tensor, _place: Place) -> Tensor:
    answer.detach().numpy()[...] = values_of(own).detach().numpy()
    return answer


REPLACED_ANSWERS: dict[str, Part] = {
    "the values in its place": lambda own, answer, place: values_of(own),
    "equal attention in its place": _uniform,
    "another attention in its place": _another,
    "the values written over it unseen": _written_over_unseen,
    "zeros in its place": lambda own, answer, place: torch.zeros_like(answer),
    "a learned row in its place": lambda own, answer, place: own.learned("row", *answer.shape[2:]).expand_as(
        answer
    ),
    "a gate of zero": _silent_gate,
    "rounded to nothing": lambda own, answer, place: (answer * 1e-3).round() + values_of(own),
}
REPLACED: dict[str, Part] = {
    "what was given in its place": lambda own, x, place: own.now["entered"].clone(),
    "zeros in its place": lambda own, x, place: torch.zeros_like(x),
    "a gate of zero": _silent_gate,
}


def _ordered(order: list[int]) -> Part:
    return lambda own, x, place: x.index_select(place.heads, torch.tensor(order))


def _one_zeroed(head: int) -> Part:
    kept = torch.ones(HEADS, 1)
    kept[head] = 0
    return lambda own, answer, place: answer * kept.to(answer)


HEADS_MOVED: dict[str, Part] = {
    "heads rolled": _ordered([2, 0, 1]),
    "first two heads swapped": _ordered([1, 0, 2]),
    "one head for all": _ordered([1, 1, 1]),
    "heads averaged": lambda own, answer, place: answer.mean(2, keepdim=True).expand_as(answer),
    "head 2 zeroed": _one_zeroed(2),
}


def _sharpened(weights: Tensor) -> Tensor:
    squared = weights.pow(2)
    return squared / squared.sum(-1, keepdim=True)


def _plainly(function: Callable[[Tensor], Tensor]) -> Part:
    return lambda own, x, place: function(x)


WEIGHTS_CHANGED: dict[str, Part] = {
    "sharpened": _plainly(_sharpened),
    "blended with equal ones": _plainly(lambda w: 0.9 * w + 0.1 / w.shape[-1]),
    "of the next head": _plainly(lambda w: w.roll(1, 1)),
    "of the next key": _plainly(lambda w: w.roll(1, -1)),
    "times 1.01": _plainly(lambda w: 1.01 * w),
}


def _sorted(_own: Attention, x: Tensor, place: Place) -> Tensor:
    """Rows in the order of what they are."""
    key = x.movedim(place.tokens, 1)[0].flatten(1)[:, 0]
    return x.index_select(place.tokens, key.argsort())


SORTED: dict[str, Part] = {"rows sorted": _sorted}


def _second(own: Attention, answer_to: Callable[..., Tensor]) -> Tensor:
    query, key, value = (own.now[name] for name in ("query", "key", "value"))
    return answer_to(-query, key, value)


SECOND_CALLS: dict[str, Callable[..., Tensor]] = {
    "a second attention, rolled": lambda own, to, answer: answer - 0.5 * _second(own, to).roll(1, 1),
    "a second attention alone": lambda own, to, answer: _second(own, to),
    "a second attention, the first flipped": lambda own, to, answer: _second(own, to) - answer.flip(1),
}


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
    deed, place = "first two swapped", Place.ANSWER
    like = Construction("eager", f"rows {deed} {place}", {place: rows(deed)})
    what = f"rows {deed} {place} beyond 512 tokens"
    yield from on_routes(what, {place: beyond(512, rows(deed))}, ["tiled"], tokens=520, like=like)


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
    }.items():
        for deed in deeds:
            for place in (Place.ANSWER, Place.VALUE, Place.RESULT, Place.PASSED):
                parts = {place: rows(deed)}
                yield from on_routes(f"{what}, rows {deed} {place}", parts, SPREAD, shape=shape)
    for what, change in {
        "quantised": harmless.quantised,
        "compiled": harmless.compiled,
        "bfloat16": harmless.precision(torch.bfloat16),
        "float16": harmless.precision(torch.float16),
    }.items():
        for deed in ("shuffled", "averaged", "zeroed"):
            parts = {Place.ANSWER: rows(deed)}
            yield from on_routes(f"{what}, rows {deed}", parts, SPREAD, change=change, weak="float" in what)


def _beside_what_is_right() -> Iterator[Construction]:
    """Behind or before something that models rightly do."""
    for what in ("a layer scale of 1e-5", "a gate of its own row", "in NumPy"):
        for deed in ("first two swapped", "leaking"):
            parts = {Place.ANSWER: rows(deed), Place.RESULT: harmless.ANYWHERE[what]}
            yield from on_routes(f"rows {deed}, then {what}", parts, SPREAD)
    for there, back in (("rolled", "rolled"), ("flipped", "rolled"), ("shuffled", "shuffled")):
        parts = {Place.GIVEN: rows(there), Place.RESULT: rows(back)}
        yield from on_routes(f"rows {there} before and {back} behind", parts, SPREAD)


def _texts() -> Iterator[Construction]:
    for place in (Place.ANSWER, Place.VALUE, Place.RESULT, Place.GIVEN):
        parts = {place: TEXTS_EXCHANGED}
        yield from on_routes(f"texts exchanged {place}", parts, SPREAD, texts=2)


def _calls() -> Iterator[Construction]:
    for what, twice in SECOND_CALLS.items():
        yield from on_routes(what, {}, SPREAD, shape={"twice": twice})


def _made() -> Iterator[Construction]:
    # what comes out of the kernel goes to other rows, to several, to none
    yield from _rows(ORDERS | PICKS | MIXTURES, [Place.ANSWER], EVERY)
    yield from _rows(LOSSES, [Place.ANSWER], SPREAD)
    other_ways = [way for way in WAYS if way != BY_MATRIX]
    yield from _rows(["shuffled"], [Place.ANSWER], SOME, other_ways)
    yield from _rows(
        ["averaged", "zeroed"], [Place.ANSWER], SOME, ["in NumPy", "in place", "behind the back"]
    )
    yield from _rows(["rolled", "averaged", "leaking", "zeroed"], [Place.RESULT, Place.HOOK], SPREAD)
    yield from _rows(["last two swapped", "every other row zeroed"], [Place.RESULT, Place.HOOK], SOME)
    yield from _rows(["flipped", "averaged", "zeroed"], [Place.COLUMNS, Place.PROJECTED], SPREAD)
    yield from _rows(["flipped", "averaged", "zeroed", "first row zeroed"], [Place.PASSED], SPREAD)
    yield from _parts(SORTED, [Place.ANSWER, Place.VALUE, Place.RESULT], SPREAD)
    # what goes into it is of other rows
    yield from _rows(["rolled", "flipped", "last two swapped"], [Place.BEFORE, Place.GIVEN], SPREAD)
    yield from _rows(["flipped", "shuffled"], [Place.PRE_HOOK], SOME)
    yield from _rows(["rolled", "first two swapped", "shuffled"], [Place.QUERY, Place.KEY], SPREAD)
    orders = ["rolled", "first two swapped", "shuffled"]
    yield from _rows([*orders, "one row for all", "averaged"], [Place.VALUE], EVERY)
    yield from _rows(["leaking", "averaged so far", "moved on by one"], [Place.VALUE], SPREAD)
    yield from _together(["flipped", "mostly rolled"], SPREAD)
    # what meets the values are not the weights of the queries and keys
    yield from _parts(WEIGHTS_CHANGED, [Place.WEIGHTS], OWN)
    yield from _rows(["rolled", "averaged"], [Place.WEIGHTS, Place.CONTEXT], OWN)
    # it is not used, or another head's is
    yield from _parts(REPLACED_ANSWERS, [Place.ANSWER], SPREAD)
    yield from _parts(REPLACED, [Place.RESULT, Place.PASSED], SPREAD)
    given = {"what was given in its place": REPLACED["what was given in its place"]}
    yield from _parts(given, [Place.STREAM], SPREAD)
    yield from _parts(REPLACED, [Place.HOOK], SOME)
    yield from _parts(HEADS_MOVED, [Place.ANSWER], SPREAD)
    rolled: Part = lambda own, x, place: x.roll(VALUE_DIM, -1)  # noqa: E731
    yield from _parts({"heads rolled": rolled}, [Place.COLUMNS], EVERY)
    # only sometimes, in other models, beside something else
    yield from _sometimes(["flipped", "averaged"])
    yield from _in_other_models(["flipped", "moved on by one"])
    yield from _beside_what_is_right()
    yield from _texts()
    yield from _calls()


MISLEADING = by_name(_made())
LONG = by_name(_long())
