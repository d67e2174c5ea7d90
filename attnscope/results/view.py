"""A head's weights as they are looked at: between words instead of tokens, with special tokens or without."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float

from attnscope.results.base.origin import Verdict
from attnscope.results.base.parts import Value, fits, within
from attnscope.results.base.presented import Presented
from attnscope.results.base.special import Special
from attnscope.results.heads import HeadWeights
from attnscope.tokens import Tokens

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False, repr=False)
class HeadView(Presented):
    """The weights of `head` with its tokens grouped, and special tokens treated as `special` says.

    Entry i of `query_groups` holds the positions of the head's own tokens behind row i, which `query_tokens`
    names; keys alike. A weight is the sum over the pieces of its key and the mean over the pieces of its
    query (Clark et al. 2019). `allowed` is False where all pairs of pieces are masked. A row of which
    nothing is left is False in `answered`, and NaN where rows are divided by what remains.

    Scores and vectors belong to tokens and stay in `head`, whose certificate is about its own weights.
    """

    head: HeadWeights = field(metadata={"file": "by_tokens", "beside": True})
    words: bool
    special: Special
    query_tokens: Tokens = field(metadata={"file": "row_tokens"})
    key_tokens: Tokens = field(metadata={"file": "column_tokens"})
    query_groups: Groups = field(metadata={"file": "row_groups"})
    key_groups: Groups = field(metadata={"file": "column_groups"})
    weights: Float[np.ndarray, "query key"]
    allowed: Bool[np.ndarray, "query key"]

    @property
    def verdict(self) -> Verdict:
        """The verdict of the head's certificate."""
        return self.head.verdict

    @property
    def answered(self) -> Bool[np.ndarray, " query"]:
        """Which rows have a key left that they may look at, and any weight on those."""
        left = np.nan_to_num(self.weights).sum(axis=1) > 0
        return np.asarray(self.allowed.any(axis=1) & left)

    @property
    def emptied(self) -> int:
        """How many rows had a key, and have nothing left without the special tokens."""
        had = [bool(self.head.answered[list(group)].any()) for group in self.query_groups]
        return int((np.array(had, dtype=bool) & ~self.answered).sum())

    def query_row(self, position: int) -> int | None:
        """The row that holds the head's query at `position`; None where it is left out."""
        return next((row for row, group in enumerate(self.query_groups) if position in group), None)

    def check_parts(self) -> None:
        for groups, rows, tokens in (
            (self.query_groups, self.query_tokens, self.head.query_tokens),
            (self.key_groups, self.key_tokens, self.head.key_tokens),
        ):
            inside = all(group and all(within(each, len(tokens)) for each in group) for group in groups)
            fits(inside, "'row_groups' and 'column_groups' hold tokens that the head does not have")
            fits(
                len(groups) == len(rows),
                "'row_groups' and 'column_groups' are not as many as rows and columns",
            )

    def derived(self) -> dict[str, Value]:
        """What each row and column holds of the head's tokens."""
        named = {
            "queries": (self.query_tokens, self.query_groups),
            "keys": (self.key_tokens, self.key_groups),
        }
        return {"emptied_queries": self.emptied} | {
            name: [
                {"label": label, "tokens": group} for label, group in zip(tokens.labels, groups, strict=True)
            ]
            for name, (tokens, groups) in named.items()
        }
