"""How far heads move from one model to another over the same tokens: what they look at, what they write.

moved      half the sum of absolute differences of a query's two rows of weights, a sink one more key
written    |o' P' - o P| / |o P|      o what the head answers, P its part of the output projection
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.analysis.answers.question import log_chances, unit
from attnscope.analysis.controls import interval
from attnscope.attention import Capture
from attnscope.capture.intervening.changes import Logits
from attnscope.capture.intervening.given_layers import HeadsSeen, Seen
from attnscope.errors import CertificateError
from attnscope.reference import exact

BROKEN = "broken weights, or too large for its precision"
ROUNDING = 1e-9  # of what is written: what adding it up leaves of two that are equal
ByHead = Float[np.ndarray, "layer head"]


def moved(before: Seen, after: Seen) -> ByHead:
    """The share of what a query gives that goes to other keys, mean over queries: 0 to 1.

    Queries that have no key in both are left out; NaN where one of both gives no numbers elsewhere.
    """
    return np.stack([_moved(before[layer].weights, after[layer].weights) for layer in before])


def _moved(
    a: Float[Tensor, "head query key"], b: Float[Tensor, "head query key"]
) -> Float[np.ndarray, " head"]:
    a, b = exact(a), exact(b)
    seen = ~(_open(a) & _open(b))
    apart = (a - b).masked_fill(~seen[..., None], 0.0)
    sinks = apart.sum(-1).abs()
    sinks = sinks.where(sinks > 1e-5, 0.0)  # rows without a sink sum to 1 but for rounding
    rows = (apart.abs().sum(-1) + sinks) / 2
    mean: Tensor = rows.sum(-1) / seen.sum(-1).clamp_min(1)
    return np.asarray(mean.cpu().numpy())


def _open(weights: Float[Tensor, "head query key"]) -> Bool[Tensor, "head query"]:
    return weights.isnan().any(-1)


def check_numbers(one: Seen, other: Seen, called: tuple[str, str], heads: Sequence[int]) -> None:
    """`CertificateError` where a head of one of two runs gives or writes no numbers.

    A query without any key has none, and it has none in both runs. A head has some query with a key.
    """
    for layer in one:
        both = one[layer], other[layer]
        none = _open(both[0].weights).cpu() & _open(both[1].weights).cpu()
        none &= ~none.all(-1, keepdim=True)
        for name, seen in zip(called, both, strict=True):
            broken = (~(none | _numbers(seen))).any(-1)
            if bool(broken.any()):
                head = heads[int(broken.nonzero()[0])]
                raise CertificateError(f"{name} gives no numbers in L{layer} H{head}: {BROKEN}")


def _numbers(seen: HeadsSeen) -> Bool[Tensor, "head query"]:
    return (seen.weights.isfinite().all(-1) & seen.output.isfinite().all(-1)).cpu()


Factors = Mapping[int, Float[Tensor, "head size both"]]


def factors(before: Capture, after: Capture) -> Factors | None:
    """By layer what measures a difference of two outputs in the hidden state; None without the projections.

    |o' P' - o P| is |(o', -o) R| where Q R is (P', P) transposed: R is as wide as two values.
    """
    found = {}
    for call in before.calls:
        old, new = call.projection, after.call(call.layer).projection
        if old is None or new is None or old.shape != new.shape:
            return None
        both = torch.cat([exact(new), exact(old)], dim=1)
        found[call.layer] = torch.linalg.qr(both.mT, mode="r").R
    return found


def written(before: Seen, after: Seen, of: Factors, heads: Sequence[int]) -> ByHead:
    """How far what a head writes lies from what it wrote, over its size; infinite where it wrote nothing."""
    rows = []
    for layer, own in before.items():
        triangle = of[layer][list(heads)]
        none = _open(exact(own.weights))[..., None]
        old, new = (exact(each.output).masked_fill(none, 0.0) for each in (own, after[layer]))
        triangle = triangle.mT.to(old.device)
        size = torch.cat([torch.zeros_like(old), old], dim=-1) @ triangle
        change = torch.cat([new, -old], dim=-1) @ triangle
        norms = [torch.linalg.vector_norm(each, dim=(-2, -1)) for each in (change, size)]
        share = (norms[0] / norms[1]).masked_fill(norms[0] == 0, 0.0)
        rows.append(share.where(~(share < ROUNDING), 0.0).cpu().numpy())
    return np.stack(rows)


def intervals(values: Float[np.ndarray, "text layer head"]) -> tuple[ByHead, ByHead]:
    """Both ends of the 95 % interval of every head's mean, within 0 to 1."""
    low, high = (each.reshape(values.shape[1:]) for each in interval(values.reshape(len(values), -1).T))
    return np.clip(low, 0, 1), np.clip(high, 0, 1)


def distances(before: Logits, others: Iterable[Logits], vectors: bool) -> list[float]:
    """How far answers lie from one: nats of divergence a row, of vectors 1 less their cosine.

    `CertificateError` where an answer is none.
    """
    if vectors:
        old = unit(before[0])
        return [float((1 - (old * unit(each[0])).sum(-1)).clamp_min(0).mean()) for each in others]
    old = log_chances(before[0])
    share = old.exp()
    apart = (torch.where(share > 0, share * (old - log_chances(each[0])), 0.0) for each in others)
    return [float(each.sum(-1).clamp_min(0).mean()) for each in apart]
