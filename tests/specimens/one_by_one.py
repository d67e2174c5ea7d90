"""The certificate of one head as a slow, obvious loop: the oracle of those that are made of many at once.

Every stage is written out and kept (`attend`), every fault computed from its start, and nothing is shared.
"""

import torch
from torch import Tensor

from attnscope.arithmetic import Operands, Stages, attend
from attnscope.attention import AttentionCall
from attnscope.results import Certificate, Fault, Verdict
from attnscope.verify import applicable, conclusion


def certificate_of(call: AttentionCall, head: int) -> Certificate:
    operands = call.operands(head)
    stages = attend(operands)
    largest, sums = _largest_sum(call, operands, stages), min(call.epsilon, torch.finfo(torch.float32).eps)
    weight_tolerance = call.epsilon * (1 + largest) + call.q.shape[-1] ** 0.5 * sums / 2 * largest
    keys = int(call.allowed_matrix(head).sum(-1).max())
    adding = keys * sums / 2
    output_tolerance = 2 * weight_tolerance + adding
    errors = _distance(call, head, stages)
    faults = []
    for name, fault in applicable(call, head).items():
        if (faulty := fault(call, head, operands)) is not None:
            off = _distance(call, head, attend(faulty))
            faults.append(Fault(name, *off, max(off[0] / weight_tolerance, off[1] / output_tolerance)))
    faults.sort(key=lambda fault: fault.power)
    agrees = errors[0] <= weight_tolerance and errors[1] <= output_tolerance
    verdict, reason = conclusion(agrees, *errors, tuple(faults))
    if call.reweighted is not None and verdict in (Verdict.CERTIFIED, Verdict.INCONCLUSIVE):
        verdict = Verdict.PARTIAL
        reason = "the model changes the weights of its softmax before they meet the values"
    return Certificate(
        verdict, errors[0], weight_tolerance, errors[1], output_tolerance, call.precision, tuple(faults),
        reason, call.standing,
    )  # fmt: skip


def _largest_sum(call: AttentionCall, operands: Operands, stages: Stages) -> float:
    sums = (operands.q.abs() @ operands.k.abs().transpose(-1, -2)) * abs(operands.scale)
    sums = sums if operands.bias is None else sums + operands.bias.abs()
    logits = stages.masked
    near = logits + call.epsilon * sums >= logits.amax(-1, keepdim=True) - 100
    return _largest(sums[near & (logits > -torch.inf)])


def _distance(call: AttentionCall, head: int, stages: Stages) -> tuple[float, float]:
    answered = call.allowed_matrix(head).any(-1)
    values = call.v[call.key_head(head)].double()
    output = stages.output[0] if call.reweighted is None else call.reweighted[head].double() @ values
    weights_off = (stages.weights[0] - call.weights[head].double())[answered].abs()
    largest = values.abs().max().clamp_min(torch.finfo(torch.float64).tiny)
    return _largest(weights_off), _largest((output - call.output[head].double())[answered].abs() / largest)


def _largest(distances: Tensor) -> float:
    return float(distances.max()) if distances.numel() else 0.0
