"""Measures of another run than that over the text, or of weights alone: asked for by name.

    A B C D A B C D        at the second B: induction looks at C, duplicate at the first B, previous at A

Olsson et al. 2022, In-context Learning and Induction Heads: nothing but the order of random tokens tells a
head where to look. The model reads a sequence of its own for it, which `analysis.scores.apart` makes.

Elhage et al. 2021, A Mathematical Framework for Transformer Circuits: the value-output circuit takes the
embedding of a token to the logits of all, W_E W_V W_O W_U. Its eigenvalues that are not 0 are those of the
small matrix W_O W_U W_E W_V, value dimension by value dimension, since a product and its cyclic
rearrangements have the same ones; vocabulary by vocabulary is never made. They sum up how many are positive.
"""

from typing import TYPE_CHECKING, Any

from jaxtyping import Float

from attnscope.measures.measure import Measure, OnKeys, mass_on, weight_on
from attnscope.measures.tile import Need, Tile, known
from attnscope.results import MeasureDescription

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any

OLSSON = "Olsson et al. 2022, In-context Learning and Induction Heads"


def induction(tile: Tile) -> OnKeys:
    """The weight on the token behind the query's first place, of the queries in the second half."""
    return _behind(tile, known(tile.period) - 1)


def duplicate(tile: Tile) -> OnKeys:
    """The weight on the query's first place, of the queries in the second half."""
    return _behind(tile, known(tile.period))


def previous(tile: Tile) -> OnKeys:
    """The weight on the token before the query, of the queries in the second half."""
    return _behind(tile, 1)


def _behind(tile: Tile, steps: int) -> OnKeys:
    """Positions count from the first of the random tokens; what stands before these is negative."""
    return weight_on(tile, tile.offsets == -steps).masked_fill(
        tile.queries < known(tile.period), float("nan")
    )


def positivity(tile: Tile) -> Float[Tensor, ""]:
    """Whether what a head moves of a token speaks for that token itself, from weights alone.

    Sum of the eigenvalues of its circuit over the sum of their sizes, -1 to 1: 1 copies, -1 speaks against
    its token.
    """
    import torch

    from attnscope.reference import exact

    circuit = exact(known(tile.circuit))
    if not circuit.isfinite().all():
        return torch.tensor(float("nan"))
    values = torch.linalg.eigvals(circuit)
    ratio: Tensor = values.real.sum() / values.abs().sum()
    return ratio


_OF_TOKENS = (
    (
        "what came after it, of random tokens",
        "induction",
        induction,
        "the token behind a query's first place",
    ),
    ("its first place, of random tokens", "duplicate", duplicate, "a query's first place"),
    ("the previous of random tokens", "previous-random", previous, "the previous token"),
)
APART = (
    *(
        mass_on(
            called,
            name,
            rows,
            OLSSON,
            meaning=f"Mean weight on {on}, of the second half.",
            apart="random tokens, read twice over in a run of their own",
            positional=True,
            needs=frozenset({Need.PERIOD}),
        )
        for called, name, rows, on in _OF_TOKENS
    ),
    Measure(
        MeasureDescription(
            name="copying",
            unit="positivity",
            meaning="Sum of the eigenvalues of W_E W_V W_O W_U over the sum of their sizes; norms left out.",
            paper="Elhage et al. 2021, A Mathematical Framework for Transformer Circuits",
            label="eigenvalues of the value-output circuit",
            least="-1",
            low="speaks against its token",
            high="copies",
            strongest="head of each layer that copies most",
            signed=True,
            apart="the model's weights alone",
        ),
        positivity,
        needs=frozenset({Need.CIRCUIT}),
        finish=float,
    ),
)
