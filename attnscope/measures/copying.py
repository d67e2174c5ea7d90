"""Whether what a head moves of a token speaks for that token itself: from weights alone, no text.

The value-output circuit takes the embedding of a token to the logits of all: W_E W_V W_O W_U. Its eigenvalues
that are not 0 are those of the small matrix W_O W_U W_E W_V, value dimension by value dimension, since a
product and its cyclic rearrangements have the same ones; vocabulary by vocabulary is never made. Elhage et
al. 2021, A Mathematical Framework for Transformer Circuits, sum up how many are positive.
"""

from typing import TYPE_CHECKING, Any

from jaxtyping import Float

from attnscope.measures.tile import Tile, known

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any


def positivity(tile: Tile) -> Float[Tensor, ""]:
    """Sum of the eigenvalues over the sum of their sizes, -1 to 1: 1 copies, -1 speaks against its token."""
    import torch

    from attnscope.reference import exact

    circuit = exact(known(tile.circuit))
    if not circuit.isfinite().all():
        return torch.tensor(float("nan"))
    values = torch.linalg.eigvals(circuit)
    ratio: Tensor = values.real.sum() / values.abs().sum()
    return ratio
