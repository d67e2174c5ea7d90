"""A stored run against one made anew: every number of every head, within what rounding can do to it.

Two things may differ between installations that both are right. The arithmetic of the head itself: that is
the tolerance of its certificate. And what arrives there: all that the layers before rounded. How far this
carries cannot be read off the number of layers, for it depends on the model and on the text. So it is
measured: in further runs every weight of the model is moved by its own precision
(`capture.arithmetic`), and a number may be off by `TIMES` of what it moves by there besides. In
float64, and with all sums in another order, no number of three models used more than half of that; of one
tolerance for each layer they used from a seventh to all.

Scores are dimensionless logits, as the tolerance is; vectors are held against their largest entry.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float

from attnscope.results import Certificate, HeadAttention, HeadWeights, Overview, Result, Verdict
from attnscope.results.base.presented import Value
from attnscope.results.stored.codec import Object, encode
from attnscope.verbs.check.result import HeadCheck, PartCheck

TIMES = 4
_VECTORS = ("q", "k", "v", "output")
_EPSILON = {"bfloat16": 2.0**-7, "float16": 2.0**-10}
_UNCERTIFIED = 32  # epsilons that a weight without a certificate may be off
_OWN = 1e-6  # of the largest entry, or of 1: what a number of an answer may be off by itself
_NOTHING = np.zeros(0, object)  # where there is no such place
# fields that say where and how numbers were computed, or how well they are proved
_OF_THE_RUN = {
    "provenance", "module", "modules", "certificate", "certificates", "certified", "verdict", "verdicts",
    "verdict_of_each", "case", "notes", "unlike",
}  # fmt: skip

# stage, how far it is off, what its own arithmetic may round, what rounding before it moves it by
Off = tuple[str, float, float, float]


def checked_head(stored: HeadWeights, anew: HeadWeights, moved: Sequence[HeadWeights]) -> HeadCheck:
    """One head; `moved` is the same in runs whose weights were moved by their precision."""
    return _worst(stored.layer, stored.head, _head(stored, anew, moved), anew.verdict)


def checked_heads(stored: Overview, anew: Overview, moved: Sequence[Overview]) -> list[HeadCheck]:
    """Every head of an overview, its weights and its measures."""
    return [
        _worst(layer, head, _of_overview(stored, anew, moved, i, j), anew.certificates[i][j].verdict)
        for i, layer in enumerate(stored.layers)
        for j, head in enumerate(stored.heads)
    ]


def checked_parts(
    stored: Result, anew: Result, moved: Sequence[Result], *, npz: bool = True
) -> list[PartCheck]:
    """Every field of an answer, its numbers and what is said by them; without `npz` those that JSON has.

    A word, a rank or a place that is another one now is as stored where it is not the same in a moved run
    either: rounding decides it.
    """
    was, now, *others = (encode(each, npz=npz) for each in (stored, anew, *moved))
    return [
        _part(name, was, now, others) for name, each in {**was, **now}.items() if _is_compared(name, each)
    ]


def _part(name: str, was: Object, now: Object, others: Sequence[Object]) -> PartCheck:
    stored, anew, *moved = (dict(_leaves(each.get(name), name)) for each in (was, now, *others))
    made = [PartCheck(name, 0.0, 0.0)]
    for place in {**stored, **anew}:
        a, b, *c = (each.get(place, _NOTHING) for each in (stored, anew, *moved))
        if None in (a.tolist(), b.tolist()):
            continue  # a model that is loaded for less has no such number
        if a.dtype.kind == b.dtype.kind == "f":
            largest, carried = float(np.abs(b[np.isfinite(b)]).max(initial=1.0)), _carried(b, c)
            made.append(PartCheck(name, _off(a, b), _OWN * largest + TIMES * carried, carried))
        elif not np.array_equal(a, b) and all(np.array_equal(b, each) for each in c):
            made.append(PartCheck(name, math.inf, 0.0))
    return max(made, key=_times)


def _is_compared(name: str | int, value: Value) -> bool:
    """Whether a field is part of an answer; a number of `layers` is how many are in memory."""
    origin = isinstance(value, dict) and "versions" in value  # of one of two sides
    return not origin and name not in _OF_THE_RUN and not (name == "layers" and isinstance(value, int))


def _leaves(value: Value, place: str) -> Iterator[tuple[str, np.ndarray]]:
    if isinstance(value, dict | list):
        for name, each in value.items() if isinstance(value, dict) else enumerate(value):
            if _is_compared(name, each):
                yield from _leaves(each, f"{place}.{name}")
    else:
        yield place, np.asarray(value)


def _of_overview(
    stored: Overview, anew: Overview, moved: Sequence[Overview], i: int, j: int
) -> Iterator[Off]:
    tolerance = _tolerance(stored.certificates[i][j], stored.provenance.dtype)
    now = anew.dense_weights[i][j]
    carried = _carried(now, [each.dense_weights[i][j] for each in moved])
    yield "weights", _off(stored.dense_weights[i][j], now), tolerance, carried
    yield "strongest", _strongest(stored, i, j), 0.0, 0.0
    for name in stored.scores.keys() & anew.scores.keys():
        span = max(1.0, *(abs(each) for each in stored.scores[name].limits if math.isfinite(each)))
        was, now, *others = (each.scores[name].values[i : i + 1, j] for each in (stored, anew, *moved))
        yield name, _off(was, now), tolerance * len(stored.key_tokens) * span, _carried(now, others)


def _head(stored: HeadWeights, anew: HeadWeights, moved: Sequence[HeadWeights]) -> Iterator[Off]:
    tolerance = _tolerance(stored.certificate, stored.provenance.dtype)

    def off(name: str, allowed: float) -> Off:
        was, now, *others = (getattr(each, name) for each in (stored, anew, *moved))
        return name, _off(was, now), allowed, _carried(now, others)

    yield off("weights", tolerance)
    yield "allowed", 0.0 if np.array_equal(stored.allowed, anew.allowed) else math.inf, 0.0, 0.0
    if not isinstance(stored, HeadAttention) or not isinstance(anew, HeadAttention):
        return
    yield off("scaled", tolerance)
    yield off("scores", tolerance / abs(stored.scale or 1.0))
    for name in _VECTORS:
        now = getattr(anew, name)
        largest = float(np.nanmax(np.abs(now))) if np.isfinite(now).any() else 0.0
        yield off(name, stored.certificate.output_tolerance * largest)


def _strongest(stored: Overview, i: int, j: int) -> float:
    query, key = stored.strongest[i, j].tolist()
    if query < 0:
        return 0.0
    return _off(stored.strongest_weight[i : i + 1, j], stored.dense_weights[i][j][query, key : key + 1])


def _tolerance(certificate: Certificate, dtype: str) -> float:
    own = certificate.weight_tolerance
    return own if own > 0 else _UNCERTIFIED * _EPSILON.get(dtype, float(np.finfo(np.float32).eps))


def _off(a: Float[np.ndarray, "..."], b: Float[np.ndarray, "..."]) -> float:
    """The largest difference; infinite where shapes are not the same, or only one of both has a number."""
    if a.shape != b.shape or (np.isfinite(a) != np.isfinite(b)).any():
        return math.inf
    there = np.isfinite(a)
    return float(np.abs(a[there] - b[there]).max()) if there.any() else 0.0


def _carried(anew: Float[np.ndarray, "..."], moved: Sequence[Float[np.ndarray, "..."]]) -> float:
    """The largest movement in runs that rounding was put into; numbers that come or go there tell nothing."""
    found = [_off(anew, each) for each in moved]
    return max((each for each in found if math.isfinite(each)), default=0.0)


def _worst(layer: int, head: int, offs: Iterator[Off], verdict: Verdict) -> HeadCheck:
    made = [
        HeadCheck(layer, head, stage, off, own + TIMES * carried, verdict, carried)
        for stage, off, own, carried in offs
    ]
    return max(made, key=_times)


def _times(one: HeadCheck | PartCheck) -> float:
    return one.off / one.allowed if one.allowed > 0 else math.inf if one.off > 0 else 0.0
