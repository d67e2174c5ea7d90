"""Why scores are divided by sqrt(d): what growing vectors do to a softmax and to what it learns from."""

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.functional import jacobian

from attnscope.results.worked import Check, ScaleStudy
from attnscope.sdpa import softmax

DIMS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
QUERIES, KEYS, SEED = 256, 16, 0


def scale_study(dims: tuple[int, ...] = DIMS, seed: int = SEED) -> ScaleStudy:
    """Random queries and keys, every entry from the standard normal distribution, for each size in `dims`.

    The score of such a pair has the standard deviation sqrt(d) (Vaswani et al. 2017, footnote 4).
    """
    measured = np.zeros((3, 2, len(dims)))
    worst = 0.0
    for column, dim in enumerate(dims):
        generator = torch.Generator().manual_seed(seed + dim)
        q = torch.randn(QUERIES, dim, generator=generator, dtype=torch.float64)
        k = torch.randn(QUERIES, KEYS, dim, generator=generator, dtype=torch.float64)
        scores = torch.einsum("qd,qkd->qk", q, k)
        for row, scale in enumerate((1.0, 1 / math.sqrt(dim))):
            logits = scores * scale
            weights = softmax(logits[None])[0]
            slopes = softmax_jacobian(weights)
            worst = max(worst, float((slopes - _by_autograd(logits)).abs().max()))
            entropy = torch.special.entr(weights).sum(-1)
            sizes = slopes.flatten(1).norm(dim=-1)
            measured[:, row, column] = float(logits.std()), float(entropy.mean()), float(sizes.mean())
    what = "the softmax gradient, diag(p) - p pᵀ, against torch's automatic differentiation"
    check = Check(what, worst, 8 * float(np.finfo(np.float64).eps))
    spread, entropy, gradient = measured
    return ScaleStudy(dims, KEYS, QUERIES, seed, spread, entropy, gradient, (check,))


def softmax_jacobian(weights: Float[Tensor, "query key"]) -> Float[Tensor, "query key key"]:
    """How each weight moves with each logit: diag(p) - p p^T per row."""
    return torch.diag_embed(weights) - weights[:, :, None] * weights[:, None, :]


def _by_autograd(logits: Float[Tensor, "query key"]) -> Float[Tensor, "query key key"]:
    """The same Jacobians by differentiating torch's own softmax; rows do not depend on each other."""
    whole: Tensor = jacobian(lambda rows: torch.softmax(rows, -1).sum(0), logits)  # type: ignore[no-untyped-call]
    return whole.transpose(0, 1)
