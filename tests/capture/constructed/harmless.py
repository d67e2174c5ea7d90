"""Constructions that are odd and right: everything that is shown acts, on the row that asked.

Products as in `misleading`; a new one is a line in `kept`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from transformers.modeling_outputs import BaseModelOutput

from tests.capture.constructed import kept, others
from tests.capture.constructed.construction import Construction, by_name, on_routes
from tests.capture.constructed.model import HEADS, TOKENS, Part, Place
from tests.capture.constructed.rows import WAYS, rows, undone

EVERY = ("eager", "fused", "named", "traced", "tiled")
SPREAD = ("fused", "traced", "tiled")
SOME = ("eager", "traced")
OWN = ("eager", "named", "traced", "tiled")  # the kernel is the model's own function


def _parts(made: Mapping[str, Part], place: Place, routes: Iterable[str]) -> Iterator[Construction]:
    for what, part in made.items():
        yield from on_routes(f"{what} {place}", {place: part}, routes)


_THERE_AND_BACK = (
    (Place.GIVEN, Place.RESULT),
    (Place.GIVEN, Place.ANSWER),
    (Place.GIVEN, Place.HOOK),
    (Place.PRE_HOOK, Place.HOOK),
    (Place.BEFORE, Place.PASSED),
)


def _put_back(deed: str, routes: Iterable[str]) -> Iterator[Construction]:
    for there, back in _THERE_AND_BACK:
        parts = {there: rows(deed), back: undone(deed)}
        yield from on_routes(f"rows {deed} {there} and put back {back}", parts, routes)


def _written(routes: Iterable[str]) -> Iterator[Construction]:
    """An order that is taken back at once, in every way that code may be written."""
    for way in WAYS:
        both = (rows("shuffled", way), undone("shuffled", way))
        yield from on_routes(f"rows shuffled and put back {way} {Place.ANSWER}", {Place.ANSWER: both}, routes)


_SHAPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "key heads shared": {"key_heads": 1},
    "causal": {"causal": True},
    "causal, key heads shared": {"causal": True, "key_heads": 1},
    "norms behind": {"norm_behind": True},
    "a tensor returned": {"returned": lambda result: result},
    "an output object returned": {"returned": lambda result: BaseModelOutput(last_hidden_state=result)},
    "a differential attention": {"twice": kept.minus_another},
    "two attentions in the same rows": {"twice": kept.plus_another},
    "crossing": {"crossing": True},
}
_OPTIONS: dict[str, dict[str, Any]] = {
    "sinks": {"options": {"s_aux": (HEADS,)}},
    "an added position": {"options": {"position_bias": (1, HEADS, TOKENS, TOKENS)}},
    "a soft cap": {"options": {"softcap": 1.5}},
}
_CHANGES: dict[str, Any] = {
    "quantised": kept.quantised,
    "compiled projections": kept.compiled,
    "bfloat16": kept.precision(torch.bfloat16),
    "float16": kept.precision(torch.float16),
    "float64": kept.precision(torch.float64),
}


def _pairs(routes: Iterable[str]) -> Iterator[Construction]:
    """Two of them, one behind the other."""
    names = list(kept.ANYWHERE)
    for one, other in zip(names[1:], names[4:], strict=False):
        parts = {Place.ANSWER: kept.ANYWHERE[one], Place.PASSED: kept.ANYWHERE[other]}
        yield from on_routes(f"{one} {Place.ANSWER}, {other} {Place.PASSED}", parts, routes)


def _in_other_models() -> Iterator[Construction]:
    for what in ("causal", "key heads shared", "norms behind", "crossing"):
        for name in (
            "a gate of its own row",
            "a layer scale of 1e-5",
            "in NumPy",
            "rows sorted to experts and put back",
        ):
            parts = {Place.ANSWER: kept.ANYWHERE[name]}
            yield from on_routes(f"{what}, {name} {Place.ANSWER}", parts, SPREAD, shape=_SHAPES[what])
    for what in ("quantised", "bfloat16", "float16"):
        for name in ("a gate of its own row", "a norm of the row", "cubed"):
            parts = {Place.ANSWER: kept.ANYWHERE[name]}
            told, change = f"{what}, {name} {Place.ANSWER}", _CHANGES[what]
            yield from on_routes(told, parts, SPREAD, change=change, weak="float16" in what)


def _crossing() -> Iterator[Construction]:
    """What is looked at may stand in any order, if keys and values stand in the same."""
    both = {place: rows("rolled", "by an index") for place in (Place.KEY, Place.VALUE)}
    for what, parts in {
        "keys and values rolled": both,
        "rows flipped and put back": {Place.GIVEN: rows("flipped"), Place.RESULT: undone("flipped")},
    }.items():
        yield from on_routes(f"crossing, {what}", parts, SPREAD, shape={"crossing": True})


def _made() -> Iterator[Construction]:
    for what, shape in _SHAPES.items():
        yield from on_routes(what, {}, EVERY, shape=shape)
    for what, shape in _OPTIONS.items():
        routes = [route for route in OWN if (route, what) != ("traced", "sinks")]  # which are not read there
        yield from on_routes(what, {}, routes, shape=shape)
    for what, change in _CHANGES.items():
        yield from on_routes(what, {}, EVERY, change=change, weak="float16" in what)
    yield from _parts(kept.ANYWHERE, Place.ANSWER, SPREAD)
    yield from _parts(kept.ANYWHERE, Place.RESULT, SOME)
    yield from _parts(kept.ANYWHERE, Place.HOOK, ("fused",))
    yield from _parts(kept.ANYWHERE, Place.PASSED, ("tiled",))
    yield from _parts(kept.BEHIND_THE_KERNEL, Place.ANSWER, EVERY)
    yield from _parts(kept.ON_WEIGHTS, Place.WEIGHTS, OWN)
    yield from _parts(kept.ON_QUERIES_AND_KEYS, Place.QUERY, SPREAD)
    yield from _parts(kept.ON_QUERIES_AND_KEYS, Place.KEY, SPREAD)
    yield from on_routes("a rotary position", {Place.QUERY: kept.ROTARY, Place.KEY: kept.ROTARY}, EVERY)
    for rolled in (0, 2):
        windows = {Place.GIVEN: kept.cut(2, rolled), Place.RESULT: kept.joined(2, rolled)}
        yield from on_routes(f"windows, rolled by {rolled}", windows, SPREAD, tokens=8)
    exchanged = {Place.GIVEN: others.TEXTS_EXCHANGED, Place.RESULT: others.TEXTS_EXCHANGED}
    for what, parts in (("several texts", {}), ("texts exchanged and put back", exchanged)):
        yield from on_routes(what, parts, EVERY, texts=2)
    for what, parts in (("padding", {}), ("padding left out", {Place.RESULT: kept.without_padding})):
        yield from on_routes(what, parts, EVERY, padded=2)
    for deed in ("flipped", "shuffled"):
        yield from _put_back(deed, SPREAD)
    for place in (Place.STREAM,):  # as a convolution behind the attention does (Conformer)
        yield from on_routes(f"rows leaking {place}", {place: rows("leaking")}, SPREAD)
    for place in (Place.COLUMNS, Place.PROJECTED):
        made = {
            name: kept.ANYWHERE[name] for name in ("in NumPy", "in place", "a norm of the row", "half of it")
        }
        yield from _parts(made, place, SPREAD)
    both = {place: rows("rolled in part") for place in (Place.KEY, Place.VALUE)}
    yield from on_routes("rows rolled in part on keys and values", both, ("fused", "tiled"))
    yield from _in_other_models()
    yield from _crossing()
    yield from _written(SOME)
    yield from _pairs(SPREAD)


HARMLESS = by_name(_made())
