"""Composition scores of heads, from low-rank factors: no matrix of hidden by hidden is made.

What an earlier head writes is x W_V W_O; a later one reads its queries by W_Q, its keys by W_K, its values by
W_V. Elhage et al. 2021, A Mathematical Framework for Transformer Circuits: the Frobenius norm of the product
of both circuits over the product of their norms, with the later circuit W_Q W_K' entered from its queries
(Q-composition) or its keys (K), or W_V W_O from its values (V). A factor that only stands at the end of a
product counts by its triangular part, which has the same lengths: |X W D'| = |X W R'| with D = Q R.

By chance, circuits have the same singular values in random directions. With directions drawn evenly
(Haar) the square of a score is p' E q: p and q are the squared singular values of both circuits over their
sums, E the squares of the cosines between random directions, which is a block of a random rotation of the
hidden space. Its mean is 1 / hidden, whatever the circuits are; how far single draws lie from it depends on
how many directions they use.

Of many pairs the best lies far above its own draws by chance. `limits` says how far. The cosines are taken
as independent normal numbers, which reach farther than those of a rotation: so the square of a score is a
weighted sum of chi-squares, and its tail is read off a saddlepoint approximation (Barndorff-Nielsen 1986,
Inference on full or partial parameters based on the standardized signed log likelihood ratio; Kuonen 1999,
Saddlepoint approximations for distributions of quadratic forms in normal variables).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.capture.circuits.paths import Factors
from attnscope.capture.circuits.skeleton import Gain
from attnscope.reference import EXACT, exact
from attnscope.verbs.compose.result import Through

Written = Float[Tensor, "head value_dim hidden"]
Reads = Float[Tensor, "head hidden dim"]


def written(layer: Factors, reader: Gain | None, way: Sequence[Gain], heads: Sequence[int]) -> Written:
    """W_V W_O of the heads of an earlier layer after the norms on the way, `hidden` on one side only.

    The other side is folded: the product of W_V W_O with anything from the right has the same length.
    """
    assert layer.value is not None, "asked of layers that have it"
    assert layer.output is not None, "asked of layers that have it"
    values = _triangular(_folded(layer.value.matrix, reader))
    output = exact(layer.output.matrix)[list(heads)]
    for each in way:
        output = each.forward(output)
    return values[[layer.key_head(head) for head in heads]] @ output


def reads(layer: Factors, through: Through, readers: dict[str, Gain | None], heads: Sequence[int]) -> Reads:
    """The circuit of the heads of a later layer, entered through queries, keys or values; folded likewise."""
    shared, own = [layer.key_head(head) for head in heads], list(heads)
    if through is Through.VALUE:
        assert layer.value is not None, "asked of layers that have it"
        assert layer.output is not None, "asked of layers that have it"
        end = _triangular(exact(layer.output.matrix).transpose(1, 2))[own]
        return _folded(layer.value.matrix, readers["value"])[shared] @ end.transpose(1, 2)
    assert layer.query is not None, "asked of layers that have it"
    assert layer.key is not None, "asked of layers that have it"
    queries = _folded(layer.query.matrix, readers["query"])
    keys = _folded(layer.key.matrix, readers["key"])
    if through is Through.QUERY:
        return queries[own] @ _triangular(keys)[shared].transpose(1, 2)
    return keys[shared] @ _triangular(queries)[own].transpose(1, 2)


def scores(
    early: Float[Tensor, "early value_dim hidden"], late: Float[Tensor, "late hidden dim"]
) -> Float[Tensor, "early late"]:
    """Every earlier head with every later one, 0 to 1; NaN where a circuit is nothing."""
    (first, dim, hidden), (second, _, width) = early.shape, late.shape
    product = early.reshape(-1, hidden) @ late.transpose(0, 1).reshape(hidden, -1)
    lengths = product.reshape(first, dim, second, width).square().sum((1, 3)).sqrt()
    found: Tensor = lengths / (early.flatten(1).norm(dim=1)[:, None] * late.flatten(1).norm(dim=1))
    return found


def _folded(matrix: Float[Tensor, "head read dim"], reader: Gain | None) -> Float[Tensor, "head read dim"]:
    """The matrix with the norm before it: its weight, and the mean taken away where it does so."""
    matrix = exact(matrix)
    return matrix if reader is None else reader.backward(matrix.transpose(1, 2)).transpose(1, 2)


def _triangular(matrix: Float[Tensor, "head read dim"]) -> Float[Tensor, "head rank dim"]:
    triangle: Tensor = torch.linalg.qr(matrix, mode="r").R
    return triangle


_TERMS = 96  # of the series in the sums of powers
_PLACES = torch.logspace(-2, 1.5, 80, dtype=EXACT)  # of saddlepoints x, as -log(1 - x)


@dataclass(frozen=True, eq=False)
class Chance:
    """Random scores of pairs of heads: mean, deviation, how many lie below the real one."""

    mean: Float[Tensor, "early late"]
    spread: Float[Tensor, "early late"]
    below: Float[Tensor, "early late"]


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
    below = exact(drawn < real).sum(0) + exact(drawn == real).sum(0) / 2
    return Chance(drawn.mean(0), drawn.std(0, correction=0), below)


def limits(
    early: Float[Tensor, "early early_rank"],
    late: Float[Tensor, "late late_rank"],
    hidden: int,
    share: float,
) -> Float[Tensor, "early late"]:
    """The score that a random pair passes in at most this `share` of draws; `early` and `late` are spectra.

    NaN where a circuit is nothing.
    """
    aim = -float(torch.special.ndtri(torch.tensor(share, dtype=EXACT)))
    deviates, sums = _tails(_sums_of_powers(early), _sums_of_powers(late))
    after = (deviates < aim).sum(0).clamp(1, len(_PLACES) - 1)[None]
    low, high = (deviates.gather(0, place)[0] for place in (after - 1, after))
    below, above = (sums.log().gather(0, place)[0] for place in (after - 1, after))
    size = torch.exp(below + (above - below) * (aim - low) / (high - low))
    return (early.amax(1)[:, None] * late.amax(1) / hidden * size).sqrt()


def _sums_of_powers(spectra: Float[Tensor, "head rank"]) -> Float[Tensor, "head term"]:
    """Of each spectrum over its largest value, the sum of the first, second, third ... powers."""
    parts = spectra / spectra.amax(1, keepdim=True)
    return torch.stack([(parts**power).sum(1) for power in range(1, _TERMS + 1)], 1)


def _tails(
    early: Float[Tensor, "early term"], late: Float[Tensor, "late term"]
) -> tuple[Float[Tensor, "place early late"], Float[Tensor, "place early late"]]:
    """At every place the normal deviate of a tail, and the sum beyond which it lies.

    All are series in x with the products of both sums of powers as factors. These come near one, since the
    largest value of all stays, and a series of ones has a closed form; only what goes beyond one is added up.
    """
    k = torch.arange(1, _TERMS + 1, dtype=EXACT)
    x = -torch.expm1(-_PLACES)
    odds = x / (1 - x)
    powers = x[:, None] ** k

    def series(
        factors: Float[Tensor, " term"], ones: Float[Tensor, " place"]
    ) -> Float[Tensor, "place early late"]:
        weights = powers * factors
        added: Tensor = (early * weights[:, None]) @ late.T
        return added + (ones - weights.sum(1))[:, None, None]

    first = series(torch.ones_like(k), odds)
    entropy = series((k - 1) / k, odds - _PLACES)
    curvature = series(k - 1, odds.square())
    root = entropy.sqrt()
    return root + (curvature / 2 / entropy).log() / 2 / root, first / x[:, None, None]
