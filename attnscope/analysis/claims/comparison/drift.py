"""How far heads move from one model to another over the same tokens: what they look at, what they write.

moved      half the sum of absolute differences of a query's two rows of weights, a sink one more key
written    |o' P' - o P| / |o P|      o what the head answers, P its part of the output projection
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.claims.ablation.question import log_chances
from attnscope.analysis.claims.prompts import interval
from attnscope.attention import Capture
from attnscope.capture.intervening.changes import Logits
from attnscope.capture.intervening.given_layers import Seen
from attnscope.reference import exact

ROUNDING = 1e-9  # of what is written: what adding it up leaves of two that are equal
ByHead = Float[np.ndarray, "layer head"]


def moved(before: Seen, after: Seen) -> ByHead:
    """The share of what a query gives that goes to other keys, mean over queries: 0 to 1."""
    return np.stack([_moved(before[layer].weights, after[layer].weights) for layer in before])


def _moved(
    a: Float[Tensor, "head query key"], b: Float[Tensor, "head query key"]
) -> Float[np.ndarray, " head"]:
    apart = (exact(a) - exact(b)).nan_to_num()
    sinks = apart.sum(-1).abs()
    sinks = sinks.where(sinks > 1e-5, 0.0)  # rows without a sink sum to 1 but for rounding
    seen = ~(exact(a).isnan().any(-1) & exact(b).isnan().any(-1))
    rows = (apart.abs().sum(-1) + sinks) / 2
    mean: Tensor = (rows * seen).sum(-1) / seen.sum(-1).clamp_min(1)
    return np.asarray(mean.cpu().numpy())


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
    """How far what a head writes lies from what it wrote, over its size; NaN where it wrote nothing."""
    rows = []
    for layer, own in before.items():
        triangle = of[layer][list(heads)]
        old, new = exact(own.output), exact(after[layer].output)
        triangle = triangle.mT.to(old.device)
        size = torch.cat([torch.zeros_like(old), old], dim=-1) @ triangle
        change = torch.cat([new, -old], dim=-1) @ triangle
        norms = [torch.linalg.vector_norm(each, dim=(-2, -1)) for each in (change, size)]
        share = norms[0] / norms[1].masked_fill(norms[1] == 0, float("nan"))
        rows.append(share.where(~(share < ROUNDING), 0.0).cpu().numpy())
    return np.stack(rows)


def intervals(values: Float[np.ndarray, "text layer head"]) -> tuple[ByHead, ByHead]:
    """Both ends of the 95 % interval of every head's mean, within 0 to 1."""
    low, high = (each.reshape(values.shape[1:]) for each in interval(values.reshape(len(values), -1).T))
    return np.clip(low, 0, 1), np.clip(high, 0, 1)


def distances(before: Logits, others: Iterable[Logits], vectors: bool) -> list[float]:
    """How far answers lie from one: nats of divergence a row, of vectors 1 less their cosine."""
    if vectors:
        one = exact(before[0])
        cosines = [torch.nn.functional.cosine_similarity(one, exact(each[0]), dim=-1) for each in others]
        return [float((1 - each).clamp_min(0).mean()) for each in cosines]
    old = log_chances(before[0])
    share = old.exp()
    divergences = ((share * (old - log_chances(each[0]))).nan_to_num().sum(-1) for each in others)
    return [float(each.clamp_min(0).mean()) for each in divergences]
