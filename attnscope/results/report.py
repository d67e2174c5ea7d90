"""Everything about one query of one head that goes on one page."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnscope.results.heads import HeadAttention, HeadScores
from attnscope.results.prediction import Prediction
from attnscope.results.projection import Projection


@dataclass(frozen=True, eq=False)
class Report:
    """One head, its map, one query of it and what the model predicts (None: it has no such head).

    `contributions` split the query's output vector among the keys: the weighted value of each key, projected
    on the output's own direction and divided by its length. They sum to 1 and may be negative; NaN where
    the output is zero. `statistics` are measures of this one head.
    """

    projection: Projection
    query: int
    contributions: Float[np.ndarray, " key"]
    statistics: tuple[HeadScores, ...]
    prediction: Prediction | None

    @property
    def head(self) -> HeadAttention:
        return self.projection.head
