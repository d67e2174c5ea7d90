"""What a head does where random tokens stand twice: nothing but their order tells it where to look.

    A B C D A B C D        at the second B: induction looks at C, duplicate at the first B, previous at A

Olsson et al. 2022, In-context Learning and Induction Heads. The text is not the user's: the model reads a
sequence of its own for it, which `analysis` makes.
"""

from typing import TYPE_CHECKING, Any

from jaxtyping import Float

from attnscope.measures.tile import Tile, known

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any

Rows = Float[Tensor, " query"]


def induction(tile: Tile) -> Rows:
    """The weight on the token behind the query's first place, of the queries in the second half."""
    return _behind(tile, known(tile.period) - 1)


def duplicate(tile: Tile) -> Rows:
    """The weight on the query's first place, of the queries in the second half."""
    return _behind(tile, known(tile.period))


def previous(tile: Tile) -> Rows:
    """The weight on the token before the query, of the queries in the second half."""
    return _behind(tile, 1)


def _behind(tile: Tile, steps: int) -> Rows:
    """Positions count from the first of the random tokens; what stands before these is negative."""
    mass = (tile.weights * (tile.offsets == -steps)).sum(-1)
    return mass.masked_fill(tile.queries < known(tile.period), float("nan"))
