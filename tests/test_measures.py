"""Measures by hand, in tiles as in one piece, and the registry that makes a new one a single line."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from attnscope import measures
from attnscope.measures import MEASURES, Measure, Tile, whole

BY_HAND = torch.tensor([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])


def weights() -> Tensor:
    """Rows of true weights, 5 queries by 7 keys."""
    logits = 2 * torch.randn(5, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return torch.softmax(logits, -1)


def test_entropy_by_hand():
    first = 0.5 * math.log(2) + 2 * 0.25 * math.log(4)  # the second row looks at one key: 0
    assert MEASURES["entropy"](whole(BY_HAND)) == pytest.approx(first / 2)


def test_confidence_by_hand():
    assert MEASURES["confidence"](whole(BY_HAND)) == pytest.approx((0.5 + 1) / 2)


def test_evenly_spread_weights_have_the_entropy_of_the_logarithm_of_the_keys():
    assert MEASURES["entropy"](whole(torch.full((2, 7), 1 / 7))) == pytest.approx(math.log(7))


def test_entropy_equals_a_slow_loop():
    rows = [-sum(p * math.log(p) for p in row) for row in weights().tolist()]
    assert MEASURES["entropy"](whole(weights())) == pytest.approx(sum(rows) / 5)


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("cuts", [(0, 7), (0, 3, 7), (0, 1, 2, 3, 4, 5, 6, 7)], ids=str)
def test_tiles_put_together_equal_the_dense_head(name, cuts):
    tiles = [
        Tile(weights()[:, start:end], torch.arange(5), torch.arange(start, end))
        for start, end in itertools.pairwise(cuts)
    ]
    assert MEASURES[name](tiles) == pytest.approx(MEASURES[name](whole(weights())), rel=1e-12)
    assert len(tiles) == 1 or MEASURES[name](tiles[:-1]) != pytest.approx(MEASURES[name](tiles))


@pytest.mark.parametrize("name", MEASURES)
def test_rows_without_a_key_are_left_out(name):
    gap = weights()
    gap[1] = gap[4] = torch.nan
    assert MEASURES[name](whole(gap)) == pytest.approx(MEASURES[name](whole(weights()[[0, 2, 3]])))


@pytest.mark.parametrize("name", MEASURES)
def test_a_head_of_rows_without_a_key_is_nan(name):
    assert math.isnan(MEASURES[name](whole(torch.full((2, 3), torch.nan))))


def test_a_dense_head_is_one_tile_that_knows_its_positions():
    (tile,) = whole(weights())
    assert torch.equal(tile.weights, weights())
    assert tile.queries.tolist() == [0, 1, 2, 3, 4]
    assert tile.keys.tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_a_new_measure_is_one_function_and_one_line(monkeypatch):
    def on_the_diagonal(tile: Tile) -> Tensor:
        return (tile.weights * (tile.queries[:, None] == tile.keys[None, :])).sum(-1)

    monkeypatch.setitem(measures.MEASURES, "own", Measure("own", "weight", on_the_diagonal, torch.add))
    expected = sum(weights()[i, i].item() for i in range(5)) / 5
    assert MEASURES["own"](whole(weights())) == pytest.approx(expected)
    tiles = [Tile(weights()[:, :2], torch.arange(5), torch.arange(2))]
    tiles.append(Tile(weights()[:, 2:], torch.arange(5), torch.arange(2, 7)))
    assert MEASURES["own"](tiles) == pytest.approx(expected)
