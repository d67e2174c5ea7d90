"""The rules that rows are compared by, each on numbers that were made for it."""

import pytest
import torch
from torch import Tensor, nn

from attnscope.capture.cause import rows
from attnscope.capture.cause.rerun import restored
from attnscope.capture.cause.rows import Shape

BATCH, HEADS, QUERIES, DIM = 2, 3, 5, 4
SHAPE = Shape(BATCH, HEADS, QUERIES, DIM)
ANSWER = torch.arange(BATCH * HEADS * QUERIES * DIM, dtype=torch.float32).view(BATCH, HEADS, QUERIES, DIM)
ROWS = torch.stack([ANSWER[b, :, q].flatten() for b in range(BATCH) for q in range(QUERIES)])  # by hand


@pytest.mark.parametrize(
    ("arrangement", "result"),
    [
        ("rows", ROWS),
        ("batch query feature", ROWS.view(BATCH, QUERIES, -1)),
        ("query batch feature", ROWS.view(BATCH, QUERIES, -1).transpose(0, 1)),
        ("batch feature query", ROWS.view(BATCH, QUERIES, -1).transpose(1, 2)),
        ("batch head query dim", ANSWER),
        ("batch query head dim", ANSWER.transpose(1, 2)),
        ("batch feature height width", ROWS.view(BATCH, QUERIES, -1).transpose(1, 2).unflatten(2, (5, 1))),
        ("batch, all of it in one", ROWS.view(BATCH, -1)),
    ],
)
def test_a_result_is_read_as_rows_however_it_is_laid_out(arrangement: str, result: Tensor) -> None:
    found = list(rows.layouts(result, SHAPE, BATCH * QUERIES))
    assert any(each.shape == ROWS.shape and torch.equal(each, ROWS) for each in found), arrangement
    assert all(len(each) == BATCH * QUERIES for each in found)


@pytest.mark.parametrize("shape", [(BATCH, QUERIES + 2, 12), (7,), (BATCH, 7), (3, 7, 2)])
def test_what_has_other_rows_is_not_read(shape: tuple[int, ...]) -> None:
    assert list(rows.layouts(torch.zeros(shape), SHAPE, BATCH * QUERIES)) == []


def test_a_size_is_the_root_of_the_mean_square_of_what_is_finite() -> None:
    assert rows.size_of(torch.tensor([3.0, -4.0, float("inf"), float("nan")])) == pytest.approx(12.5**0.5)
    assert rows.size_of(torch.zeros(3)) == 1.0


@pytest.mark.parametrize(("count", "seed"), [(2, 11), (3, 13), (40, 11)])
def test_a_half_is_neither_nothing_nor_all(count: int, seed: int) -> None:
    half = rows.halves(count, seed)
    assert half.shape == (count,)
    assert 0 < int(half.sum()) < count
    assert rows.halves(1, seed).tolist() == [True]


def test_a_row_in_another_order_has_the_same_numbers_and_one_that_is_constant_gets_others() -> None:
    values = torch.stack([torch.tensor([1.0, -2, 3, 5, 8, 13]), torch.full((6,), 4.0)])
    new = rows.shuffled(values, 31)
    assert torch.equal(new[0].sort().values, values[0].sort().values)
    assert bool((new != values).any(1).all())
    few = torch.tensor([[1.0, 2, 3]])  # another order of three is too often nearly the same
    assert float((rows.shuffled(few, 31) - few).abs().max()) > 1


@pytest.mark.parametrize(("dtype", "steps"), [(torch.float32, 64), (torch.bfloat16, 4)])
def test_a_change_of_more_than_rounding_of_the_row_s_largest_number_counts(
    dtype: torch.dtype, steps: int
) -> None:
    epsilon = torch.finfo(dtype).eps
    before = torch.zeros(3, 6, dtype=dtype)
    before[:2, 0] = 8
    now = before.clone().double()
    now[0, 1] = 8 * epsilon * steps * 0.9
    now[1, 1] = 8 * epsilon * steps * 1.1
    assert rows.changed(now.to(dtype), before).tolist() == [False, True, False]
    assert rows.changed(now.to(dtype), before, epsilon=epsilon * steps).tolist() == [False, False, False]
    before[2, 0] = float("nan")
    assert rows.changed(before, before).tolist() == [False, False, False]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_in_half_precision_a_change_of_many_features_counts_beside_one_that_is_a_thousand_times_as_large(
    dtype: torch.dtype,
) -> None:
    epsilon = torch.finfo(dtype).eps
    before = torch.full((3, 8), 2.0, dtype=dtype)
    before[:, 5] = 4096
    now = before.clone()
    now[0, :3] += 10 * epsilon  # of three of eight features more than rounding
    now[1, :2] += 10 * epsilon
    now[2, :] += 4 * epsilon
    assert rows.changed(now, before).tolist() == [dtype != torch.float32, False, False]
    assert rows.changed(now, before, epsilon=1 / 64).tolist() == [False, False, False]


def test_the_share_of_a_change_that_stands_in_each_head_s_columns() -> None:
    found = rows.slices(torch.tensor([[1.0, -1, 0, 6, 0, 0], [0, 0, 0, 0, 0, 0]]), 3)
    assert torch.allclose(found, torch.tensor([[0.25, 0.75, 0], [0, 0, 0]]))


def test_what_was_returned_before_is_put_back_where_it_was_kept_and_fits() -> None:
    before, now = (
        [torch.ones(2, 3), torch.ones(0), torch.ones(4)],
        [torch.zeros(2, 3), torch.zeros(2), torch.zeros(5)],
    )
    back = restored(before, now)
    assert [each.tolist() for each in back] == [[[1.0] * 3] * 2, [0.0] * 2, [0.0] * 5]
    assert back[0] is not before[0]
    assert restored(before[:2], now) == now


def test_a_model_that_computes_in_whole_numbers_is_known_by_its_weights() -> None:
    from attnscope.capture.cause.rerun import _is_quantised

    whole, packed = nn.Module(), nn.Module()
    whole.weight = torch.ones(2, 2, dtype=torch.int8)
    packed.weight = lambda: torch.ones(2, 2)  # as torch's own int8 modules have it
    assert [_is_quantised(part) for part in (whole, packed, nn.Linear(2, 2), nn.ReLU())] == [
        True,
        True,
        False,
        False,
    ]
