"""What composition scores come to by chance: circuits of the same singular values in random directions.

With directions drawn evenly (Haar) the square of a score is p' E q: p and q are the squared singular values
of both circuits over their sums, E the squares of the cosines between random directions, which is a block of
a random rotation of the hidden space. Its mean is 1 / hidden, whatever the circuits are; how far single draws
lie from it depends on how many directions they use.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.reference import EXACT, exact


@dataclass(frozen=True, eq=False)
class Chance:
    """Random scores of pairs of heads: mean, deviation, how many in a hundred lie below the real one.

    `largest` is the largest random score of any pair.
    """

    mean: Float[Tensor, "early late"]
    spread: Float[Tensor, "early late"]
    percentile: Float[Tensor, "early late"]
    largest: float


def spectrum(circuit: Float[Tensor, "head row column"]) -> Float[Tensor, "head rank"]:
    """The squared singular values of each circuit over their sum."""
    thin = circuit if circuit.shape[1] <= circuit.shape[2] else circuit.transpose(1, 2)
    squares: Tensor = torch.linalg.eigvalsh(thin @ thin.transpose(1, 2)).clamp(min=0)
    return squares / squares.sum(-1, keepdim=True)


def cosines(ranks: tuple[int, int], hidden: int, draws: int, seed: int) -> Float[Tensor, "draw early late"]:
    """Squared cosines between the first directions and as many random ones, in `hidden` dimensions."""
    first, second = (min(rank, hidden) for rank in ranks)
    random = torch.Generator().manual_seed(seed)
    drawn = torch.empty(draws, first, second, dtype=EXACT)
    for draw in drawn:
        normal = torch.randn(hidden, second, generator=random, dtype=EXACT)
        triangle = torch.linalg.cholesky(normal.T @ normal)  # its frame is normal / triangle', drawn evenly
        frame = torch.linalg.solve_triangular(triangle, normal[:first].T, upper=False).T
        draw[:] = frame.square()
    return drawn


def beside_chance(
    real: Float[Tensor, "early late"],
    early: Float[Tensor, "early early_rank"],
    late: Float[Tensor, "late late_rank"],
    squares: Float[Tensor, "draw early_rank late_rank"],
) -> Chance:
    """The scores beside random ones; `early` and `late` are spectra. All pairs share each draw."""
    drawn = (early @ squares @ late.T).sqrt()
    below = exact(drawn < real).mean(0) + exact(drawn == real).mean(0) / 2
    return Chance(drawn.mean(0), drawn.std(0, correction=0), 100 * below, float(drawn.max()))
