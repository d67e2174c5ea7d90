"""How often each head, and each fixed offset, is right: sums alone, so that no treebank is too long.

Words of one sentence are no independent trials. So errors come from sentences: of each are kept the sums of
squares and products of how many it had right, which is what the variance of a share needs (a ratio estimate
over clusters, Cochran 1977, Section 6.3). Everything is kept apart for every other sentence, so that a head
can be chosen on one half and judged by the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

OFFSETS = (-3, -2, -1, 1, 2, 3)
PUNCTUATION = "punct"
_HALVES, _DIRECTIONS = 2, 2

Edges = Sequence[tuple[int, int, str]]  # dependent, head, relation


@dataclass(frozen=True, eq=False)
class Half:
    """Sums over every other sentence. The last place of `relation` is all relations but punctuation.

    `count` are edges, `before` those whose head stands before its dependent, `sentences` those that have one.
    `right` are heads that were found, `squares` sums over sentences of their squares and `products` of their
    product with the sentence's count; `offset_*` the same of fixed offsets, `both` of head times offset, and
    `counts_squared` of the counts.
    """

    count: Float[np.ndarray, " relation"]
    before: Float[np.ndarray, " relation"]
    sentences: Float[np.ndarray, " relation"]
    counts_squared: Float[np.ndarray, " relation"]
    right: Float[np.ndarray, "layer head direction relation"]
    squares: Float[np.ndarray, "layer head direction relation"]
    products: Float[np.ndarray, "layer head direction relation"]
    offset_right: Float[np.ndarray, "offset relation"]
    offset_squares: Float[np.ndarray, "offset relation"]
    offset_products: Float[np.ndarray, "offset relation"]
    both: Float[np.ndarray, "layer head direction offset relation"]

    def __add__(self, other: "Half") -> "Half":
        return Half(**{name: value + getattr(other, name) for name, value in vars(self).items()})


def _empty(layers: int, heads: int, relations: int) -> Half:
    one, each = (relations,), (layers, heads, _DIRECTIONS, relations)
    fixed = (len(OFFSETS), relations)
    shapes = (one, one, one, one, each, each, each, fixed, fixed, fixed, (*each[:3], *fixed))
    return Half(*map(np.zeros, shapes))


class Tally:
    """Counts sentence by sentence; `names` are the relations there are, without the root."""

    def __init__(self, layers: int, heads: int, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.halves = tuple(_empty(layers, heads, len(names) + 1) for _ in range(_HALVES))

    def add(self, number: int, edges: Edges, answered: Int[np.ndarray, "layer head direction word"]) -> None:
        """Sentence `number` of those that are counted, with what every head answers for every word."""
        dependents, heads = (np.array([edge[i] for edge in edges]) for i in (0, 1))
        places, member = self._members([name for _, _, name in edges])
        half = self.halves[number % _HALVES]
        right = (answered[..., dependents] == heads) @ member
        fixed = np.array([dependents + offset == heads for offset in OFFSETS]) @ member
        count = member.sum(0)
        half.count[places] += count
        half.before[places] += (heads < dependents) @ member
        half.sentences[places] += 1
        half.counts_squared[places] += count**2
        half.right[..., places] += right
        half.squares[..., places] += right**2
        half.products[..., places] += right * count
        half.offset_right[:, places] += fixed
        half.offset_squares[:, places] += fixed**2
        half.offset_products[:, places] += fixed * count
        half.both[..., places] += right[..., None, :] * fixed

    def _members(
        self, names: Sequence[str]
    ) -> tuple[Int[np.ndarray, " present"], Float[np.ndarray, "edge present"]]:
        """The places of the relations that are there, and which edge is of which."""
        own = np.array([self.names.index(name) for name in names])
        places = np.unique(own)
        member = (own[:, None] == places).astype(float)
        counts: Bool[np.ndarray, " edge"] = np.array([name != PUNCTUATION for name in names])
        if counts.any():
            places = np.append(places, len(self.names))
            member = np.column_stack([member, counts])
        return places, member
