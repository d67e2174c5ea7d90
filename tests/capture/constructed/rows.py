"""What may be done to rows: every deed a matrix over tokens, written in code in many ways.

new row i = sum over j of matrix[i, j] * row j
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from tests.capture.constructed.model import Attention, Part, Place

Matrix = Callable[[int], Tensor]  # of so many tokens
Way = Callable[[Tensor, Tensor, int], Tensor]  # rows, matrix and the rows' axis to new rows


def _ordered(order: Callable[[list[int]], Sequence[int]]) -> Matrix:
    return lambda n: torch.eye(n)[list(order(list(range(n))))]


def _rolled(n: int) -> Tensor:
    return torch.eye(n).roll(1, 0)


ORDERS: dict[str, Matrix] = {
    "rolled": _rolled,
    "flipped": _ordered(lambda rows: rows[::-1]),
    "first two swapped": _ordered(lambda rows: [1, 0, *rows[2:]]),
    "last two swapped": _ordered(lambda rows: [*rows[:-2], rows[-1], rows[-2]]),
    "shuffled": lambda n: torch.eye(n)[torch.randperm(n, generator=torch.Generator().manual_seed(1)).roll(1)],
}
PICKS: dict[str, Matrix] = {
    "one row for all": _ordered(lambda rows: [2] * len(rows)),
    "moved on by one": _ordered(lambda rows: [0, *rows[:-1]]),
}
MIXTURES: dict[str, Matrix] = {
    "averaged": lambda n: torch.full((n, n), 1 / n),
    "averaged so far": lambda n: torch.ones(n, n).tril() / torch.arange(1, n + 1)[:, None],
    "leaking a little": lambda n: torch.eye(n) + 1e-4 * _rolled(n),
    "leaking": lambda n: 0.95 * torch.eye(n) + 0.05 * _rolled(n),
    "mostly rolled": lambda n: 0.25 * torch.eye(n) + 0.75 * _rolled(n),
    "rolled in part": lambda n: 0.6 * torch.eye(n) + 0.4 * _rolled(n),
    "leaking into one row": lambda n: torch.eye(n) + 0.3 * torch.eye(n)[:, [1]] * torch.eye(n)[[0]],
}
LOSSES: dict[str, Matrix] = {
    "zeroed": lambda n: torch.zeros(n, n),
    "every other row zeroed": lambda n: torch.diag(1.0 * (torch.arange(n) % 2 == 0)),
    "first row zeroed": lambda n: torch.diag(1.0 * (torch.arange(n) > 0)),
    "last row zeroed": lambda n: torch.diag(1.0 * (torch.arange(n) < n - 1)),
}
ALL = ORDERS | PICKS | MIXTURES | LOSSES


def _by_matrix(x: Tensor, matrix: Tensor, axis: int) -> Tensor:
    return torch.matmul(matrix.to(x), x.movedim(axis, -2)).movedim(-2, axis)


def _by_index(x: Tensor, matrix: Tensor, axis: int) -> Tensor:
    assert set(matrix.sum(1).tolist()) == {1.0}, "only an order or a pick has an index"
    return x.index_select(axis, matrix.argmax(1))


def _in_numpy(x: Tensor, matrix: Tensor, axis: int) -> Tensor:
    rows = np.moveaxis(x.detach().numpy(), axis, 0)
    made = np.tensordot(matrix.to(x).numpy(), rows, axes=1)
    return torch.from_numpy(np.ascontiguousarray(np.moveaxis(made, 0, axis)))


def _in_place(x: Tensor, matrix: Tensor, axis: int) -> Tensor:
    return x.copy_(_by_matrix(x.clone(), matrix, axis))


def _behind_the_back(x: Tensor, matrix: Tensor, axis: int) -> Tensor:
    """Into the same memory, which torch does not notice."""
    x.detach().numpy()[...] = _in_numpy(x.clone(), matrix, axis).numpy()
    return x


BY_MATRIX = "by a matrix"
WAYS: dict[str, Way] = {
    BY_MATRIX: _by_matrix,
    "by an index": _by_index,
    "in NumPy": _in_numpy,
    "in place": _in_place,
    "behind the back": _behind_the_back,
}


def rows(deed: str, way: str = BY_MATRIX) -> Part:
    """The part that does this to the tokens' rows, wherever it stands."""

    def part(_own: Attention, x: Tensor, place: Place) -> Tensor:
        return WAYS[way](x, ALL[deed](x.shape[place.tokens]), place.tokens)

    return part


def undone(deed: str, way: str = BY_MATRIX) -> Part:
    """The part that puts the rows of an order back."""

    def part(_own: Attention, x: Tensor, place: Place) -> Tensor:
        return WAYS[way](x, ORDERS[deed](x.shape[place.tokens]).T, place.tokens)

    return part


def of_head(head: int, part: Part) -> Part:
    """The part for one head alone."""

    def alone(own: Attention, x: Tensor, place: Place) -> Tensor:
        made, only = part(own, x.clone(), place), [slice(None)] * x.ndim
        only[place.heads] = slice(head, head + 1)
        x = x.clone()
        x[tuple(only)] = made[tuple(only)]
        return x

    return alone


def beyond(tokens: int, part: Part) -> Part:
    """The part for texts of more tokens than these alone."""

    def sometimes(own: Attention, x: Tensor, place: Place) -> Tensor:
        return part(own, x, place) if x.shape[place.tokens] > tokens else x

    return sometimes


TEXTS_EXCHANGED: Part = lambda own, x, place: x.flip(0)  # noqa: E731


def values_of(own: Attention) -> Tensor:
    """What every token's own value is, in the shape of an answer."""
    value = own.now["value"].repeat_interleave(own.num_key_value_groups, 1)
    return value.transpose(1, 2).contiguous()
