"""What enters a softmax beside the products of Q and K: scale, soft cap, terms, masks, a sink."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.results.worked import Scoring

Pairs = Float[np.ndarray, "query key"]


@dataclass(frozen=True, eq=False)
class Beside:
    """`scale` is None where the scoring says it; `allowed` is False where a key is masked (None: nowhere).

    `added` are terms by name, added to the scores once these are scaled and capped; `sink` is the logit of
    one more key without a value.
    """

    scale: float | None = None
    softcap: float | None = None
    added: Mapping[str, Pairs] = field(default_factory=dict)
    allowed: Bool[np.ndarray, "query key"] | None = None
    sink: float | None = None

    def factor(self, scoring: Scoring, size: int) -> float:
        """What the scores of vectors of `size` are multiplied by."""
        if self.scale is not None:
            return self.scale
        return 1 / math.sqrt(size) if scoring is Scoring.SCALED_DOT else 1.0

    def mask(self, queries: int, keys: int, causal: bool) -> Bool[Tensor, "query key"] | None:
        """Where a query may look, with the causal mask where there is one; None for everywhere."""
        if self.allowed is None and not causal:
            return None
        seen = np.ones((queries, keys), dtype=bool) if self.allowed is None else self.allowed
        return torch.from_numpy(np.tril(seen) if causal else seen)
