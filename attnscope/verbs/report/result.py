"""Result of `report`: one query of one head with map, contributions, statistics and prediction."""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from jaxtyping import Float

from attnscope.results.base.origin import Verdict
from attnscope.results.base.presented import Presented, fits, in_tokens, within
from attnscope.results.heads import HeadAttention, HeadView
from attnscope.results.prediction import Prediction
from attnscope.results.projection import Projection
from attnscope.results.scores import HeadScores


class Case(StrEnum):
    """Whether the query has a key, and an output to split over its keys."""

    LOOKS = "looks"
    NO_KEY = "no key"
    NO_OUTPUT = "no output"


@dataclass(frozen=True, eq=False, repr=False)
class Report(Presented):
    """Report on one query of a head: map, contributions, statistics, and the model's prediction, or None.

    `contributions` split the query's output vector among the keys: the weighted value of each key, projected
    on the output's own direction and divided by its length. They sum to 1 and may be negative; NaN where
    the output is zero. `statistics` are measures of this one head. `view` holds the weights by words, or
    without special tokens, where the options ask for it; everything else stays by tokens.
    """

    projection: Projection = field(metadata={"file": "map", "beside": True})
    query: int
    contributions: Float[np.ndarray, " key"]
    statistics: tuple[HeadScores, ...]
    prediction: Prediction | None
    view: HeadView | None = None

    for_readers = ("verdict", "case")

    @property
    def case(self) -> Case:
        """Which conclusion the query allows."""
        if not (self.head.answered[self.query] and self.weights.answered[self.row]):
            return Case.NO_KEY
        given = np.isfinite(self.contributions[self.head.allowed[self.query]])
        return Case.LOOKS if given.all() else Case.NO_OUTPUT

    @property
    def verdict(self) -> Verdict:
        """The verdict of the head's certificate."""
        return self.head.verdict

    @property
    def weights(self) -> HeadAttention | HeadView:
        """The weights as shown: by words or without special tokens, else by tokens."""
        return self.view or self.head

    @property
    def row(self) -> int:
        """Row of the query within `weights`."""
        row = self.query if self.view is None else self.view.query_row(self.query)
        assert row is not None, "a query that is left out has no report"
        return row

    @property
    def head(self) -> HeadAttention:
        """The reported head."""
        return self.projection.head

    def check_parts(self) -> None:
        tokens = self.head.query_tokens
        fits(within(self.query, len(tokens)), f"'query' is {self.query}, which is no token's position")
        fits(len(self.contributions) == len(self.head.key_tokens), "'contributions' are not one for each key")
        inside = self.view is None or self.view.query_row(self.query) is not None
        fits(inside, "'view' leaves the query out")
        if self.prediction is not None:
            in_tokens((blank.position for blank in self.prediction.blanks), len(tokens), "blanks")
