"""The certificate of a long head: a sample of its rows in full, and the kernel's output for all of them.

Who asks about some rows has these for a sample, and they alone are certified (`certify_rows`).

On the sample everything is as for a short text (`attnscope.verify`): weights and output in float64 against
those of the model's own kernel, and every fault that could apply put in on purpose. Beside that the output of
all rows, as it comes out over tiles, is held against what the kernel returned; tiles are computed as roughly
as the kernel itself, so twice its tolerance is allowed there.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from attnscope.arithmetic import Operands, attend
from attnscope.attention import AttentionCall
from attnscope.reference import EXACT, brought, exact, place
from attnscope.results import Certificate, Fault, Verdict
from attnscope.tiles.call import LongCall
from attnscope.tiles.softmax import Rows
from attnscope.verify import certify_heads, conclusion
from attnscope.verify.faults import hidden_by_window


def certify_rows(call: LongCall, heads: Sequence[int]) -> tuple[Certificate, ...]:
    """The certificates of the rows of the `sample` alone, for heads whose weights it holds."""
    some = sampled(call)
    return tuple(
        _with_places(call, some, head, found)
        for head, found in zip(heads, certify_heads(some, heads), strict=True)
    )


def certify_long(call: LongCall, head: int, rows: Rows) -> Certificate:
    """The certificate of `head`, whose `rows` came out of the tiles; `sample` must hold its weights."""
    (of_sample,) = certify_rows(call, (head,))
    everywhere, tolerance = _output_error(call, head, rows), 2 * of_sample.output_tolerance
    output_error = _worse(of_sample.output_error, everywhere)
    agrees = _agrees(of_sample) and everywhere <= tolerance
    verdict, reason = _concluded(of_sample, agrees, output_error, of_sample.faults)
    return replace(
        of_sample, verdict=verdict, reason=reason, output_error=output_error, output_tolerance=tolerance
    )


def sampled(call: LongCall) -> AttentionCall:
    """The rows of the sample as a call of their own."""
    assert call.sample is not None, "a long call is certified by its sample"
    rows = call.rows(call.sample.rows.tolist())
    return replace(rows, projection=None, value_projection=None).at(place(call.q.device))


def _with_places(call: LongCall, some: AttentionCall, head: int, found: Certificate) -> Certificate:
    faults = tuple(
        sorted((*found.faults, *_of_places(call, some, head, found)), key=lambda fault: fault.power)
    )
    verdict, reason = _concluded(found, _agrees(found), found.output_error, faults)
    return replace(found, verdict=verdict, reason=reason, faults=faults)


def _agrees(found: Certificate) -> bool:
    return found.weight_error <= found.weight_tolerance and found.output_error <= found.output_tolerance


def _concluded(
    found: Certificate, agrees: bool, output_error: float, faults: tuple[Fault, ...]
) -> tuple[Verdict, str]:
    verdict, reason = conclusion(agrees, found.weight_error, output_error, faults)
    if verdict in (Verdict.CERTIFIED, Verdict.INCONCLUSIVE) and found.verdict is Verdict.PARTIAL:
        return Verdict.PARTIAL, found.reason
    return verdict, reason


def _of_places(call: LongCall, some: AttentionCall, head: int, of_sample: Certificate) -> Iterator[Fault]:
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
    numbers = call.q[head].isfinite().all(-1) & call.k[call.key_head(head)].isfinite().all()
    answered = ~(rows.log_sum.isnan() & numbers.to(rows.log_sum.device))  # all but those without any key
    off = (rows.output - brought(call.output[head]).to(rows.output)).abs()[answered]
    return float(off.max() / largest) if off.numel() else 0.0


def _worse(one: float, other: float) -> float:
    return math.nan if math.isnan(one + other) else max(one, other)
