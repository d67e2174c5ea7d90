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

    `gradient x input` (`values` in what the effects are measured in), `integrated gradients` (Sundararajan et
    al. 2017, the same), `attention x gradient` (Chefer et al. 2021, shares). NaN for tokens that it says
    nothing of. Of integrated gradients it is known what the parts sum to, the `whole`: what replacing all
    tokens at once costs, found with so many `steps`. `off` is how far the sum is from that, `each_off` how
    far one token may be off: what halving every step of twice this length changes at most. NaN where unknown.
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
    """How a text's one vector is pooled from its tokens' last hidden states (`how`).

    `weights` say how much of each token's last vector is in it, or in what a pooler reads; they sum to 1.
    `own` is the share of the vector itself that each token's own last vector is, its part along it: of a mean
    of several vectors, else None.
    """

    how: str
    weights: Float[np.ndarray, " key"]
    own: Float[np.ndarray, " key"] | None = None
