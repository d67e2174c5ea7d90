"""One head on a long text: blocks, single rows and top keys instead of the dense matrix."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from attnscope.results.base.groups import SpecialMass
from attnscope.results.base.origin import Certificate, Certified, Kind, Provenance
from attnscope.results.base.presented import Presented, Value, fits, within
from attnscope.results.heads import Placed
from attnscope.tokens import Tokens
from attnscope.vocabulary import Pool


class Case(StrEnum):
    """The conclusion that is shown first for one head of a long text."""

    SPREAD = "spread"
    ROW = "row"
    ROW_WITHOUT_KEYS = "row without keys"
    NO_KEY = "no key"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LongHead(Placed, Certified, Presented):
    """One head of a long text, whose dense query-key matrix would not fit in memory.

    `first` is the first query and key of the window shown, `size` its numbers of queries and keys, `steps`
    those of a block (fewer at the ends); with steps 1 by 1 a block is a weight. `mean` is over the `pairs`
    that are allowed, `largest` the largest weight, NaN where none is. `entropy` is that of every query in
    nats, NaN for one without a key; `top_keys` are its strongest keys, largest first, `top_weights` their
    weights, -1 and NaN where there are fewer. With a `query` its `row` has the weights of all keys.
    `sampled` counts the rows that are certified in full. `tower`, `block`, `blocks` and `notes` are as in
    `HeadWeights`.
    """

    layer: int
    head: int
    kind: Kind
    heads: int
    layers: int
    query_tokens: Tokens
    key_tokens: Tokens
    first: tuple[int, int]
    size: tuple[int, int]
    steps: tuple[int, int]
    pool: Pool
    mean: Float[np.ndarray, "row column"]
    largest: Float[np.ndarray, "row column"]
    pairs: Int[np.ndarray, "row column"]
    entropy: Float[np.ndarray, " query"]
    top_keys: Int[np.ndarray, "query rank"]
    top_weights: Float[np.ndarray, "query rank"]
    module: str
    certificate: Certificate
    sampled: int
    provenance: Provenance
    special_mass: SpecialMass | None = None
    query: int | None = None
    row: Float[np.ndarray, " key"] | None = None
    tower: str = ""
    block: int = 0
    blocks: int = 1
    notes: tuple[str, ...] = ()

    @property
    def case(self) -> Case:
        """The conclusion: one row or all, and whether there is a key to attend to."""
        if self.row is not None:
            return Case.ROW if np.nan_to_num(self.row).any() else Case.ROW_WITHOUT_KEYS
        return Case.NO_KEY if np.isnan(self.entropy).all() else Case.SPREAD

    @property
    def exact(self) -> bool:
        """Whether every block is a single weight."""
        return self.steps == (1, 1)

    @property
    def whole(self) -> bool:
        """Whether the window covers the whole text."""
        return self.size == (len(self.query_tokens), len(self.key_tokens))

    @property
    def cells(self) -> Float[np.ndarray, "row column"]:
        """The value of each block that is drawn: its mean or its largest weight."""
        return self.largest if self.pool is Pool.MAX else self.mean

    def coarser(self, rows: int, columns: int) -> "LongHead":
        """This head with `rows` x `columns` blocks merged into one."""
        if (rows, columns) == (1, 1):
            return self
        pairs = _joined(self.pairs, rows, columns, np.add)
        sums = _joined(np.nan_to_num(self.mean) * self.pairs, rows, columns, np.add)
        return replace(
            self,
            steps=(self.steps[0] * rows, self.steps[1] * columns),
            mean=np.where(pairs > 0, sums / np.maximum(pairs, 1), np.nan),
            largest=_joined(self.largest, rows, columns, np.fmax),
            pairs=pairs,
        )

    def check_parts(self) -> None:
        axes = zip((self.query_tokens, self.key_tokens), self.first, self.size, self.steps, strict=True)
        for side, first, size, step in axes:
            inside = first >= 0 and size >= 1 and step >= 1 and first + size <= len(side)
            fits(inside, "'first', 'size' and 'steps' are no window of the text")
        cells = tuple(-(-size // step) for size, step in zip(self.size, self.steps, strict=True))
        fits(self.mean.shape == cells, "'mean' is not of as many rows and columns as the window has blocks")
        together = (self.query is None) == (self.row is None) and within(self.query, len(self.query_tokens))
        fits(together, "'query' and 'row' do not belong together")
        top, keys = self.top_keys, len(self.key_tokens)
        fits(
            not top.size or -1 <= top.min() <= top.max() < keys,
            "'top_keys' lead to a token that is not there",
        )

    def derived(self) -> dict[str, Value]:
        return {"name": self.name, "case": self.case}


def _joined(values: Any, rows: int, columns: int, combine: np.ufunc) -> Any:
    for axis, many in ((0, rows), (1, columns)):
        values = combine.reduceat(values, np.arange(0, values.shape[axis], many), axis=axis)
    return values
