"""Why scores are divided by sqrt(d): what growing vectors do to a softmax and to what it learns from."""

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.functional import jacobian

from attnscope.arithmetic import softmax
from attnscope.reference import EXACT
from attnscope.results.worked import Check, ScaleStudy

DIMS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
QUERIES, KEYS, SEED = 256, 16, 0


def scale_study(dims: tuple[int, ...] = DIMS, seed: int = SEED) -> ScaleStudy:
    """Random queries and keys, every entry from the standard normal distribution, for each size in `dims`.

    The score of such a pair has the standard deviation sqrt(d) (Vaswani et al. 2017, footnote 4).
    """
    measured = np.zeros((3, 3, len(dims)))
    worst = 0.0
    for column, dim in enumerate(dims):
        generator = torch.Generator().manual_seed(seed + dim)
        q = torch.randn(QUERIES, dim, generator=generator, dtype=EXACT)
        k = torch.randn(QUERIES, KEYS, dim, generator=generator, dtype=EXACT)
        scores = torch.einsum("qd,qkd->qk", q, k)
        ways = (scores, scores / math.sqrt(dim), additive_logits(q, k, seed + dim))
        for row, logits in enumerate(ways):
            weights = softmax(logits[None])[0]
            slopes = softmax_jacobian(weights)
            worst = max(worst, float((slopes - _by_autograd(logits)).abs().max()))
            entropy = torch.special.entr(weights).sum(-1)
            sizes = slopes.flatten(1).norm(dim=-1)
            measured[:, row, column] = float(logits.std()), float(entropy.mean()), float(sizes.mean())
    what = "the softmax gradient, diag(p) - p pᵀ, against torch's automatic differentiation"
    check = Check.of(what, worst, 8 * float(np.finfo(np.float64).eps))
    spread, entropy, gradient = measured
    whole = (spread[:2], entropy[:2], gradient[:2])
    return ScaleStudy(dims, KEYS, QUERIES, seed, *whole, (check,), additive=measured[:, 2])


Projection = Float[Tensor, "dim hidden"]


def additive_weights(
    dim: int, generator: torch.Generator
) -> tuple[Projection, Projection, Float[Tensor, " hidden"]]:
    """Aq, Ak and a of additive scoring, d_a = d, every entry from N(0, 1/d) as layers usually start."""
    wq, wk = (torch.randn(dim, dim, generator=generator, dtype=EXACT) for _ in range(2))
    vector = torch.randn(dim, generator=generator, dtype=EXACT)
    root = math.sqrt(dim)
    return wq / root, wk / root, vector / root


def additive_logits(
    q: Float[Tensor, "query dim"], k: Float[Tensor, "query key dim"], seed: int
) -> Float[Tensor, "query key"]:
    """a . tanh(q Aq + k Ak) (Bahdanau et al. 2015): no term is larger than its own a, however long q and k.

    Vaswani et al. (2017, section 3.2.1) compare it with dot products that grow with d.
    """
    wq, wk, vector = additive_weights(q.shape[1], torch.Generator().manual_seed(seed))
    return torch.tanh((q @ wq)[:, None] + k @ wk) @ vector


def softmax_jacobian(weights: Float[Tensor, "query key"]) -> Float[Tensor, "query key key"]:
    """How each weight moves with each logit: diag(p) - p p^T per row."""
    return torch.diag_embed(weights) - weights[:, :, None] * weights[:, None, :]


def _by_autograd(logits: Float[Tensor, "query key"]) -> Float[Tensor, "query key key"]:
    """The Jacobians by differentiating torch's own softmax; rows do not depend on each other."""
    whole: Tensor = jacobian(lambda rows: torch.softmax(rows, -1).sum(0), logits)  # type: ignore[no-untyped-call]
    return whole.transpose(0, 1)
