"""Certifies the heads of a call: measured errors against tolerances, and deliberate faults.

The same sum by another kernel, batch size, processor or number of threads is added in another order and
differs in its last bits (Higham 2002, chapter 3). Equal bits are therefore required only for the same
operation on the same shapes, or where numbers are only moved; all else has one of the tolerances `adding`
and `apart`.

A fault (`FAULTS`) gets a call, a head and the head's operands, and returns the operands with one thing
wrong; None where it does not apply. Operands that it does not change are the same objects: so the unchanged
parts of the arithmetic are known.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.arithmetic import Operands
from attnscope.attention import AttentionCall
from attnscope.errors import InputError
from attnscope.reference import exact
from attnscope.results import Certificate, Fault, Kind, Reach, Verdict
from attnscope.verify.together import Distance, FewQueries, Together
from attnscope.vocabulary import Effect

Made = Callable[[AttentionCall, int, Operands], Operands | None]
_NOT_SO = {Effect.SOME, Effect.NONE, Effect.OTHER}  # an answer that does not act as its weights say
_AT_ONCE = 2**20  # entries of a matrix of weights, of all heads that are computed together


def applicable(call: AttentionCall, head: int) -> dict[str, Made]:
    """Every fault that may apply to a head, by name: `FAULTS`, and each added term left out."""
    return {**FAULTS, **_dropped_terms(call, head)}


def _mask_dropped(call: AttentionCall, head: int, operands: Operands) -> Operands | None:
    everywhere = call.allowed is None or bool(call.allowed_matrix(head).all())
    return None if everywhere else operands.but(allowed=None)


def _window_dropped(call: AttentionCall, head: int, operands: Operands) -> Operands | None:
    if call.window is None:
        return None
    allowed = call.allowed_matrix(head)
    rows = torch.arange(len(allowed), device=allowed.device)
    wider = allowed | hidden_by_window(call, allowed, rows, allowed.any(0))
    return None if torch.equal(wider, allowed) else operands.but(allowed=wider[None])


def hidden_by_window(
    call: AttentionCall,
    allowed: Bool[Tensor, "row key"],
    rows: Int[Tensor, " row"],
    read: Bool[Tensor, " key"],
) -> Bool[Tensor, "row key"]:
    """True for pairs that only the window masks: too far apart, but neither future nor padding.

    `allowed` is of those queries of the call that stand at `rows`, `read` says which keys are no padding.
    """
    (_, queries, _), keys = call.q.shape, call.k.shape[1]
    distance = rows[:, None] + (keys - queries) - torch.arange(keys, device=rows.device)
    size = call.window or 0
    far = distance >= size if call.kind is Kind.DECODER else distance.abs() >= size
    return far & read & allowed.any(1)[:, None]


def _dropped_terms(call: AttentionCall, head: int) -> dict[str, Made]:
    """One fault for each term added to the scores; terms with the same name are left out together."""
    by_name: dict[str, Tensor] = {}
    for name, added in call.added(head).items():
        plain = name.rstrip(" 0123456789")
        by_name[plain] = by_name[plain] + added if plain in by_name else added
    clashing = {name.removesuffix(" dropped") for name in FAULTS}
    return {
        f"{'added ' if name in clashing else ''}{name} dropped": _without(added)
        for name, added in by_name.items()
    }


def _without(added: Float[Tensor, "query key"]) -> Made:
    """The fault that leaves out one added term; none where it is constant along every row."""

    def drop(call: AttentionCall, head: int, operands: Operands) -> Operands | None:
        if operands.bias is None:
            return None
        forbidden = ~call.allowed_matrix(head)
        highest = added.masked_fill(forbidden, -torch.inf).amax(-1)
        lowest = added.masked_fill(forbidden, torch.inf).amin(-1)
        tells = bool((highest > lowest).any()) or operands.sinks is not None
        return operands.but(bias=operands.bias - added) if tells else None

    return drop


def _wrong_key_head(call: AttentionCall, head: int, operands: Operands) -> Operands | None:
    other = _neighbour(call.k, call, head)
    return None if other is None else operands.but(k=other)


def _wrong_value_head(call: AttentionCall, head: int, operands: Operands) -> Operands | None:
    other = _neighbour(call.v, call, head)
    return None if other is None else operands.but(v=other)


def _neighbour(shared: Tensor, call: AttentionCall, head: int) -> Tensor | None:
    """The next different key/value head, with a head axis of length 1; None without one.

    Models that repeat their heads before the call have equal copies. Heads that were computed twice and
    differ by rounding count as different: then the fault is seen to have no power.
    """
    place, count = call.key_head(head), call.key_heads
    mine, others = shared[place], ((place + step) % count for step in range(1, count))
    other = next((each for each in others if not torch.equal(shared[each], mine)), None)
    return None if other is None else exact(shared[other : other + 1])


def _rotation_left_out(call: AttentionCall, head: int, operands: Operands) -> Operands | None:
    """The fault without key rotation; None where the model rotates nothing."""
    if call.unrotated_k is None or torch.equal(call.unrotated_k, call.k):
        return None
    key_head = call.key_head(head)
    return operands.but(k=exact(call.unrotated_k[key_head : key_head + 1]))


def _product_transposed(call: AttentionCall, head: int, operands: Operands) -> Operands | None:
    """The fault with query and key exchanged; None where their shapes differ."""
    return operands.but(q=operands.k, k=operands.q) if operands.q.shape == operands.k.shape else None


FAULTS: dict[str, Made] = {
    "scale off by sqrt 2": lambda _call, _head, operands: operands.but(scale=operands.scale * math.sqrt(2)),
    "mask dropped": _mask_dropped,
    "window dropped": _window_dropped,
    "soft cap dropped": lambda _call, _head, each: None if each.softcap is None else each.but(softcap=None),
    "sink dropped": lambda _call, _head, each: None if each.sinks is None else each.but(sinks=None),
    "wrong key head": _wrong_key_head,
    "wrong value head": _wrong_value_head,
    "key rotation left out": _rotation_left_out,
    "query and key exchanged": _product_transposed,
}


def adding(terms: int, sums: float) -> float:
    """The bound on the rounding error of a sum of `terms` numbers, relative to the sum of their sizes.

    `sums` is the machine epsilon of the type in which it is added up, mostly float32.
    """
    return terms * sums / 2


def apart(terms: int, epsilon: float, sums: float) -> float:
    """The bound on the difference of two sums of the same weighted values, relative to the largest value.

    A query's weights sum to 1 at most. Each sum has the error of `adding` and of storing it and its weights
    in a type of machine epsilon `epsilon`, and one more rounding is for writing it down.
    """
    return 2 * (epsilon + adding(terms, min(epsilon, sums)))


def certify(call: AttentionCall, head: int) -> Certificate:
    """The certificate of one head; `InputError` when the head's own weights were not captured."""
    return certify_heads(call, (head,))[0]


def certify_heads(
    call: AttentionCall, heads: Sequence[int] | None = None, queries: Sequence[int] | None = None
) -> tuple[Certificate, ...]:
    """The certificates of `heads` (default: all captured), in order; `InputError` if one was not captured.

    Heads are recomputed together, as many as fit a fixed memory, and judged one by one: each has its own
    tolerances, faults and verdict.

    The tolerance of a weight is eps * (1 + S) + sqrt(d) * sums * S / 2: eps is the machine epsilon of the
    kernel's arithmetic, S the largest sum of absolute products of a score, d the number of these products,
    and sums the epsilon of their summation. Storing such a score has an error of eps * S / 2, and d
    roundings of random sign seldom add up to twice sqrt(d) * sums * S / 2 (Higham and Mary 2019); the
    softmax turns an error of its logits into at most half as large a one of a weight. The tolerance of the
    output, relative to the largest entry of V, is twice that plus the error of adding n terms, n eps / 2
    with n the most keys of a query (Higham 2002) and the eps of their summation: float32, unless half
    precision was allowed for it too.

    With `queries` a fault is tried on these first, and on all if they do not show it: so verdicts are the
    same, and a fault's stated effect is a lower bound.
    """
    chosen = tuple(call.weights) if heads is None else tuple(heads)
    for head in chosen:
        if head not in call.weights:
            raise InputError(
                f"head {head} of layer {call.layer} was not captured: captured are {list(call.weights)}"
            )
    step = max(1, _AT_ONCE // max(1, call.q.shape[1] * call.k.shape[1]))
    parts = [chosen[start : start + step] for start in range(0, len(chosen), step)]
    return tuple(certificate for part in parts for certificate in _certified(call, part, queries))


def _certified(
    call: AttentionCall, heads: Sequence[int], queries: Sequence[int] | None
) -> Iterator[Certificate]:
    together = Together(call, heads)
    honest = together.honest()
    tolerances = []
    for largest, count in zip(together.score_sums(), together.most_keys(), strict=True):
        sums = min(call.epsilon, call.sums)
        tolerance = call.epsilon * (1 + largest) + math.sqrt(call.q.shape[2]) * sums * largest / 2
        tolerances.append((tolerance, 2 * tolerance + adding(count, sums)))
    few = None if queries is None else FewQueries(together, queries)
    distances = _fault_distances(call, together, few, tolerances)
    for i, head in enumerate(heads):
        yield _judged(call, head, honest[i], tolerances[i], distances[i])


def _fault_distances(
    call: AttentionCall, together: Together, few: FewQueries | None, tolerances: Sequence[tuple[float, float]]
) -> list[dict[str, Distance]]:
    """The error of each head under each applicable fault, from a `few` queries where these suffice."""
    heads = together.heads
    found: list[dict[str, Distance]] = [{} for _ in heads]
    faults = [applicable(call, head) for head in heads]
    for name in dict.fromkeys(name for each in faults for name in each):
        made = {
            i: faulty
            for i, head in enumerate(heads)
            if name in faults[i] and (faulty := faults[i][name](call, head, together.alone[i])) is not None
        }
        seen = {} if few is None else few.distances(made)
        shown = {i: distance for i, distance in seen.items() if _power(distance, tolerances[i]) > 1}
        left = {i: faulty for i, faulty in made.items() if i not in shown}
        for i, distance in (shown | together.distances(left)).items():
            found[i][name] = distance
    return found


def _power(off: Distance, tolerances: tuple[float, float]) -> float:
    return max(off.weights / tolerances[0], off.output / tolerances[1])


def _judged(
    call: AttentionCall,
    head: int,
    honest: Distance,
    tolerances: tuple[float, float],
    distances: dict[str, Distance],
) -> Certificate:
    faults = [Fault(name, *off, _power(off, tolerances)) for name, off in distances.items()]
    faults.sort(key=lambda fault: fault.power)
    agrees = honest.weights <= tolerances[0] and honest.output <= tolerances[1]  # False also when NaN
    verdict, reason = conclusion(agrees, honest.weights, honest.output, tuple(faults))
    reach = None if call.reach is None else call.reach.get(head, Reach())
    if verdict in (Verdict.CERTIFIED, Verdict.INCONCLUSIVE) and (open_part := _not_rebuilt(call, reach)):
        verdict, reason = Verdict.PARTIAL, open_part
    return Certificate(
        verdict=verdict,
        weight_error=honest.weights,
        weight_tolerance=tolerances[0],
        output_error=honest.output,
        output_tolerance=tolerances[1],
        precision=call.precision,
        faults=tuple(faults),
        reason=reason,
        positions=call.standing,
        positions_tried=call.tried,
        reach=reach,
    )


def _not_rebuilt(call: AttentionCall, reach: Reach | None) -> str:
    if call.remainder is not None:
        return "part of the score is known only as a remainder"
    if call.unread:
        return f"{call.unread} more softmax{'es' if call.unread > 1 else ''} of this layer could not be read"
    if call.reweighted is not None:
        return "the model changes the weights of its softmax before they meet the values"
    return reach.reason if reach is not None and reach.effect in _NOT_SO else call.reservation


def conclusion(
    agrees: bool, weight_error: float, output_error: float, faults: tuple[Fault, ...]
) -> tuple[Verdict, str]:
    """The verdict and its reason: certified only if errors agree and every fault would be seen."""
    if math.isnan(weight_error + output_error):
        return Verdict.FAILED, "the model's own weights or output are not numbers"
    if not agrees:
        return Verdict.FAILED, "the recomputed attention is not the model's"
    unseen = [fault.name for fault in faults if not fault.power > 1]
    if unseen:
        return Verdict.INCONCLUSIVE, f"would not have been seen: {', '.join(unseen)}"
    return Verdict.CERTIFIED, ""
