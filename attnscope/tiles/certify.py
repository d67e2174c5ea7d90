"""The certificate of a long head: a sample of its rows in full, and the kernel's output for all of them.

On the sample everything is as for a short text (`attnscope.verify`): weights and output in float64 against
those of the model's own kernel, and every fault that could apply put in on purpose. Beside that the output of
all rows, as it comes out over tiles, is held against what the kernel returned; tiles are computed as roughly
as the kernel itself, so twice its tolerance is allowed there.
"""

import math
from collections.abc import Iterator
from dataclasses import fields, replace

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.attention import AttentionCall, Term
from attnscope.reference import EXACT, brought, exact, place
from attnscope.results import Certificate, Fault, Verdict
from attnscope.sdpa import Operands, attend
from attnscope.tiles.call import Everywhere, LongCall
from attnscope.tiles.softmax import Rows
from attnscope.verify import certify, conclusion
from attnscope.verify.faults import hidden_by_window


def certify_long(call: LongCall, head: int, rows: Rows) -> Certificate:
    """The certificate of `head`, whose `rows` came out of the tiles; `sample` must hold its weights."""
    some = sampled(call, head)
    of_sample = certify(some, head)
    errors, tolerances = of_sample.weight_error, of_sample.weight_tolerance
    faults = (*of_sample.faults, *_of_places(call, some, head, of_sample))
    everywhere = _output_error(call, head, rows)
    output_error = _worse(of_sample.output_error, everywhere)
    tolerance = 2 * of_sample.output_tolerance
    agrees = errors <= tolerances and of_sample.output_error <= of_sample.output_tolerance
    verdict, reason = conclusion(agrees and everywhere <= tolerance, errors, output_error, faults)
    if verdict in (Verdict.CERTIFIED, Verdict.INCONCLUSIVE) and of_sample.verdict is Verdict.PARTIAL:
        verdict, reason = Verdict.PARTIAL, of_sample.reason
    return replace(
        of_sample,
        verdict=verdict,
        reason=reason,
        output_error=output_error,
        output_tolerance=tolerance,
        faults=tuple(sorted(faults, key=lambda fault: fault.power)),
    )


def sampled(call: LongCall, head: int) -> AttentionCall:
    """The rows of the sample as a call of their own, of a head that the kernel's weights are known of.

    The window is left out: a fault that drops it needs to know where the rows stand.
    """
    assert call.sample is not None, "a long call is certified by its sample"
    rows, keys = call.sample.rows.to(call.q.device), call.k.shape[1]
    queries = call.q.shape[1]
    plain = {each.name: getattr(call, each.name) for each in fields(AttentionCall)}
    every = torch.arange(keys, device=rows.device)
    allowed = None if isinstance(call.rule, Everywhere) else call.rule.block(head, rows, every)[None]
    sinks = call.sinks
    if sinks is not None and sinks.ndim > 1 and sinks.shape[1] == queries:
        sinks = sinks[:, rows]
    changed = {
        "q": call.q[:, rows],
        "query_tokens": call.query_tokens.only(rows.tolist()),
        "terms": tuple(Term(term.name, term.values[:, rows]) for term in call.terms),
        "allowed": None if allowed is None or bool(allowed.all()) else allowed,
        "sinks": sinks,
        "window": None,
        "output": call.output[:, rows],
        "weights": call.sample.weights,
        "projection": None,
        "value_projection": None,
    }
    return AttentionCall(**{**plain, **changed}).at(place(call.q.device))


def _of_places(call: LongCall, some: AttentionCall, head: int, of_sample: Certificate) -> Iterator[Fault]:
    """The faults that need to know where the rows of the sample stand among all."""
    assert call.sample is not None, "it has been sampled"
    operands, rows = some.operands(head), call.sample.rows.to(some.q.device)
    if call.window is not None:
        allowed = some.allowed_matrix(head)
        read = torch.tensor([not token.padding for token in call.key_tokens.items], device=rows.device)
        wider = allowed | hidden_by_window(call, allowed, rows, read)
        if not torch.equal(wider, allowed):
            yield _fault("window dropped", some, head, operands.but(allowed=wider[None]), of_sample)
    if call.q.shape[1:] == call.k.shape[1:]:
        exchanged = operands.but(q=operands.k[:, rows], k=exact(call.q[head : head + 1]))
        yield _fault("query and key exchanged", some, head, exchanged, of_sample)


def _fault(name: str, some: AttentionCall, head: int, faulty: Operands, of_sample: Certificate) -> Fault:
    stages = attend(faulty)
    answered = some.allowed_matrix(head).any(-1)
    largest = exact(some.v[some.key_head(head)]).abs().max().clamp_min(torch.finfo(EXACT).tiny)
    off = (stages.weights[0] - exact(some.weights[head]))[answered].abs()
    output = (stages.output[0] - exact(some.output[head]))[answered].abs() / largest
    errors = [float(each.max()) if each.numel() else 0.0 for each in (off, output)]
    power = max(errors[0] / of_sample.weight_tolerance, errors[1] / of_sample.output_tolerance)
    return Fault(name, errors[0], errors[1], power)


def _output_error(call: LongCall, head: int, rows: Rows) -> float:
    """Largest distance of the output of any row that has a key, relative to the largest value."""
    largest = exact(call.v[call.key_head(head)]).abs().max().clamp_min(torch.finfo(EXACT).tiny)
    answered = ~rows.log_sum.isnan()
    off = _distances(rows.output, call.output[head])[answered]
    return float(off.max() / largest) if off.numel() else 0.0


def _distances(
    ours: Float[Tensor, "query value_dim"], theirs: Float[Tensor, "query value_dim"]
) -> Float[Tensor, "query value_dim"]:
    return (ours - brought(theirs).to(ours)).abs()


def _worse(one: float, other: float) -> float:
    return math.nan if math.isnan(one + other) else max(one, other)
