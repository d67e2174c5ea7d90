"""Rows of tensors: told apart by code words, put in another order, changed or not."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, islice
from math import comb

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

MOST = 3432  # rows that words of fourteen bits tell apart
_LARGE = 32.0  # times a tensor: noise that a layer scale of 1e-5 leaves to be seen in the hidden state
_ROUNDING = 4  # machine epsilons of a row's largest number; two runs of the same shapes differ by less
_GROUPED = 64  # where rows are multiplied in other groups, as experts do, but no more than 1e-5
_COARSE = 1e-4  # a machine epsilon above it is that of half precision
_MANY = 0.25  # of a row's features
_LITTLE = 1e-2  # of a row's largest number: another order that changes less is no other row

Rows = Float[Tensor, "row feature"]


def words(count: int) -> Bool[Tensor, "row bit"]:
    """`count` words with as many ones each, in an order drawn at random, so that none contains another."""
    bits = next(each for each in range(4, 64, 2) if comb(each, each // 2) >= count)
    made = torch.zeros(count, bits, dtype=torch.bool)
    there = list(islice(combinations(range(bits), bits // 2), MOST))
    order = torch.randperm(len(there), generator=torch.Generator().manual_seed(1)).tolist()
    for row, place in enumerate(order[:count]):
        made[row, list(there[place])] = True
    return made


def halves(count: int, seed: int) -> Bool[Tensor, " row"]:
    """About half of the rows, drawn at random, neither none nor all of them where there are two."""
    drawn = torch.rand(count, generator=torch.Generator().manual_seed(seed)) < 0.5
    if count > 1:
        drawn[0], drawn[-1] = True, False
    return drawn if count > 1 else torch.ones(1, dtype=torch.bool)


def noise(like: Float[Tensor, "*axis"], seed: int, size: float) -> Float[Tensor, "*axis"]:
    """Numbers drawn at random, of 32 times this size, in the shape of `like`."""
    return _drawn(like.shape, seed).to(like) * (_LARGE * size)


@lru_cache(maxsize=8)
def _drawn(shape: torch.Size, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def size_of(values: Tensor) -> float:
    """The root of the mean square of what is finite, 1 where all of it is 0."""
    size = float(values[values.isfinite()].float().pow(2).mean().sqrt())
    return size if size > 1e-6 else 1.0


def shuffled(values: Float[Tensor, "*axis"], seed: int) -> Float[Tensor, "*axis"]:
    """Each row with its features in another order, which keeps its norm, mean and range.

    So a norm over the whole row, or one scale for a whole tensor of whole numbers, carries the change to no
    other row. A row that this leaves nearly as it is gets noise.
    """
    generator = torch.Generator().manual_seed(seed)
    dim = values.shape[-1]
    new = (
        values[..., torch.randperm(dim, generator=generator).roll(1).to(values.device)] if dim > 3 else values
    )
    largest = values.float().abs().amax(-1, keepdim=True).clamp_min(1e-20)
    same = (new - values).float().abs().amax(-1, keepdim=True) < _LITTLE * largest
    return torch.where(same, values + noise(values, seed, size_of(values)), new)


def changed(now: Rows, before: Rows, epsilon: float = 0.0) -> Bool[Tensor, " row"]:
    """Which rows differ by more than rounding in the tensors' own type; what is no number counts as 0.

    `epsilon` is that of whole numbers on the way, where there are some. In half precision a row has changed
    too where many of its features have, each held against itself: beside one feature of a thousand times the
    size of all others, as the first token of a trained model has it, no change is large.
    """
    own = torch.finfo(before.dtype).eps
    least = max(_ROUNDING * max(epsilon, own), min(_GROUPED * own, 1e-5))
    now, before = torch.nan_to_num(now.float()), torch.nan_to_num(before.float())
    change, size = (now - before).abs(), before.abs()
    there = change.amax(1) > least * size.amax(1).clamp_min(1e-30)
    if not epsilon and own > _COARSE:
        there |= (change > least * size).float().mean(1) > _MANY
    return there.cpu()


def is_coarse(tensor: Tensor) -> bool:
    """Whether its numbers are of half precision."""
    return torch.finfo(tensor.dtype).eps > _COARSE


@dataclass(frozen=True)
class Shape:
    """How many batch entries, heads, queries and features of a head an answer has."""

    batch: int
    heads: int
    queries: int
    dim: int

    @property
    def rows(self) -> int:
        return self.batch * self.queries


def as_rows(answer: Float[Tensor, "batch head query dim"]) -> Float[Tensor, "row feature"]:
    """One row for each query of each batch entry, its heads side by side."""
    return answer.transpose(1, 2).flatten(2).flatten(0, 1)


def layouts(result: Tensor, shape: Shape, rows: int) -> Iterator[Tensor]:
    """`result` as `row feature`, in each way in which it may hold so many rows, the likeliest first."""
    return (each for each in _ways(result, shape, rows) if len(each) == rows)


def _ways(result: Tensor, shape: Shape, rows: int) -> Iterator[Tensor]:
    if result.ndim > 1 and result[..., 0].numel() == rows:
        yield result.flatten(0, -2)
    if result.ndim == 4 and result.shape[:3] == (shape.batch, shape.heads, shape.queries):
        yield as_rows(result)
    if result.ndim == 4 and result.shape[:3] == (shape.batch, shape.queries, shape.heads):
        yield result.flatten(2).flatten(0, 1)
    if result.ndim == 4 and result.shape[0] * result.shape[2] * result.shape[3] == rows:
        yield result.flatten(2).transpose(1, 2).flatten(0, 1)
    if result.ndim == 3 and result.shape[::2] == (shape.batch, shape.queries):
        yield result.transpose(1, 2).flatten(0, 1)
    if result.ndim == 3 and result.shape[:2] == (shape.queries, shape.batch) and shape.batch > 1:
        yield result.transpose(0, 1).flatten(0, 1)
    if result.ndim == 2 and result.shape[0] == shape.batch and result.shape[1] % shape.queries == 0:
        yield result.view(rows, -1) if rows == shape.rows else result


def decoded(patterns: Bool[Tensor, "row bit"], code: Bool[Tensor, "coded bit"]) -> Int[Tensor, " row"] | None:
    """The row whose word each pattern is, -1 for one that answers to nothing; None where one is no word."""
    table = {tuple(word): row for row, word in enumerate(code.tolist())}
    found = [table.get(tuple(each), -1 if not any(each) else None) for each in patterns.tolist()]
    return None if None in found else torch.tensor(found)


def slices(difference: Float[Tensor, "row feature"], heads: int) -> Float[Tensor, "row head"]:
    """How much of each row's change stands in the columns of each head, 1 in all."""
    mass = difference.float().abs().reshape(len(difference), heads, -1).sum(2).cpu()
    share: Tensor = mass / mass.sum(1, keepdim=True).clamp_min(1e-30)
    return share
