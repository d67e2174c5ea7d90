"""Attributions of an answer to input tokens, and the trust in each method."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from jaxtyping import Float

DISTANCE = "distance alone"  # the control that knows no attention


class ByGradients(StrEnum):
    """Attribution methods that use gradients."""

    GRADIENT = "gradient x input"
    INTEGRATED = "integrated gradients"
    WEIGHED = "attention x gradient"


GRADIENT, INTEGRATED, WEIGHED = ByGradients


@dataclass(frozen=True)
class Trust:
    """Spearman's rank `correlation` of a `method`'s attributions with the effects of replacing tokens.

    `low` and `high` hold the middle nine tenths of the correlations with effects that were shuffled among the
    tokens; `below` counts those that it exceeds. All are NaN where the method has no meaning.

    """

    method: str
    correlation: float
    low: float
    high: float
    below: float


@dataclass(frozen=True, eq=False)
class Attributed:
    """Token attributions by a gradient `method`, or `absent` with the reason.

    `gradient x input` and `integrated gradients` (Sundararajan et al. 2017) have `values` in the unit of the
    effects, `attention x gradient` (Chefer et al. 2021) in shares. NaN for tokens that the method says
    nothing of. Integrated gradients should sum to the `whole`, the effect of replacing all tokens at once,
    and take so many `steps`. `off` is how far the sum is from it, `each_off` how far one token may be off:
    the largest change when every step of twice the length is halved. NaN where unknown.
    """

    method: ByGradients
    values: Float[np.ndarray, " key"] | None
    absent: str = ""
    whole: float = float("nan")
    off: float = float("nan")
    each_off: float = float("nan")
    steps: int = 0


@dataclass(frozen=True, eq=False)
class Pooled:
    """The pooling of a text's one vector from its tokens' last hidden states (`how`).

    `weights` are the share of each token's last hidden state in it, or in the pooler's input; they sum to 1.
    `own` is, for a mean of several vectors, the part of each token's vector along the mean, as a share; else
    None.
    """

    how: str
    weights: Float[np.ndarray, " key"]
    own: Float[np.ndarray, " key"] | None = None
