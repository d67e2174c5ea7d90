"""Measures by hand, in tiles as in one piece, and the registry that makes a new one a single entry."""

import itertools
import math
import subprocess
import sys
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from attnscope.errors import InputError
from attnscope.measures import MEASURES, Measure, Tile, parse_measures, whole
from attnscope.results import MeasureDescription

BY_HAND = torch.tensor([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])
SQUARE = torch.tensor([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.0, 0.25, 0.75]])
Row = Callable[[list[float], int], float]


def weights() -> Tensor:
    """Rows of true weights, 5 queries by 7 keys."""
    logits = 2 * torch.randn(5, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return torch.softmax(logits, -1)


def at(row: list[float], key: int) -> float:
    return row[key] if 0 <= key < len(row) else 0.0


ORACLES: dict[str, Row] = {
    "entropy": lambda row, query: -sum(p * math.log(p) for p in row if p > 0),
    "confidence": lambda row, query: sorted(row)[-1],
    "distance": lambda row, query: sum(
        p * (query - k if query > k else k - query) for k, p in enumerate(row)
    ),
    "self": lambda row, query: at(row, query),
    "previous": lambda row, query: at(row, query - 1),
    "next": lambda row, query: at(row, query + 1),
    "first": lambda row, query: row[0],
}


def slowly(name: str, dense: Tensor, queries: Sequence[int] | None = None) -> float:
    """The measure by a loop over rows, the mean over those `queries`."""
    chosen = range(len(dense)) if queries is None else queries
    found = [ORACLES[name](dense[query].tolist(), query) for query in chosen]
    return math.fsum(found) / len(found)


def test_entropy_by_hand():
    first = 0.5 * math.log(2) + 2 * 0.25 * math.log(4)  # the second row looks at one key: 0
    assert MEASURES["entropy"](whole(BY_HAND)) == pytest.approx(first / 2)


def test_confidence_by_hand():
    assert MEASURES["confidence"](whole(BY_HAND)) == pytest.approx((0.5 + 1) / 2)


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("distance", (0.25 * 1 + 0.25 * 2, 0.25 * 1 + 0.25 * 1, 0 * 2 + 0.25 * 1)),
        ("self", (0.5, 0.5, 0.75)),
        ("previous", (0, 0.25, 0.25)),  # the first query has none, and counts
        ("next", (0.25, 0.25, 0)),  # the last query has none, and counts
        ("first", (0.5, 0.25, 0)),
    ],
)
def test_places_by_hand(name, rows):
    assert MEASURES[name](whole(SQUARE)) == pytest.approx(sum(rows) / 3)


def test_what_went_to_a_sink_is_no_distance_and_no_mass():
    with_sink = SQUARE / 2  # half of every row went to the sink
    for name in ("distance", "self", "previous", "next", "first", "confidence"):
        assert MEASURES[name](whole(with_sink)) == pytest.approx(MEASURES[name](whole(SQUARE)) / 2)


def test_behind_a_causal_mask_nothing_lies_on_the_next_token():
    causal = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])
    found = {name: measure(whole(causal)) for name, measure in MEASURES.items()}
    assert found["next"] == 0
    assert found["previous"] == pytest.approx((0.5 + 0.25) / 3)
    assert found["distance"] == pytest.approx((0 + 0.5 + 0.25 * 2 + 0.25) / 3)


def test_evenly_spread_weights_have_the_entropy_of_the_logarithm_of_the_keys():
    assert MEASURES["entropy"](whole(torch.full((2, 7), 1 / 7))) == pytest.approx(math.log(7))


def test_every_measure_has_a_slow_loop():
    assert list(ORACLES) == list(MEASURES)


@pytest.mark.parametrize("name", ORACLES)
def test_a_measure_equals_its_slow_loop(name):
    assert MEASURES[name](whole(weights())) == pytest.approx(slowly(name, weights()), rel=1e-12)
    assert MEASURES[name](whole(weights())) != pytest.approx(slowly(name, weights(), [0, 1, 2]))


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("cuts", [(0, 7), (0, 3, 7), (0, 1, 2, 3, 4, 5, 6, 7)], ids=str)
def test_tiles_put_together_equal_the_dense_head(name, cuts):
    tiles = [
        Tile(weights()[:, start:end], torch.arange(5), torch.arange(start, end))
        for start, end in itertools.pairwise(cuts)
    ]
    dense = slowly(name, weights())
    assert MEASURES[name](tiles) == pytest.approx(dense, rel=1e-12)
    assert MEASURES[name](tiles[::-1]) == pytest.approx(dense, rel=1e-12)
    without_one = [MEASURES[name](tiles[:i] + tiles[i + 1 :]) for i in range(len(tiles)) if len(tiles) > 1]
    assert len(tiles) == 1 or any(value != pytest.approx(dense) for value in without_one)


@pytest.mark.parametrize("name", ORACLES)
def test_rows_without_a_key_are_left_out(name):
    gap = weights()
    gap[1] = gap[4] = torch.nan
    assert MEASURES[name](whole(gap)) == pytest.approx(slowly(name, weights(), [0, 2, 3]))


@pytest.mark.parametrize("name", [name for name, measure in MEASURES.items() if measure.positional])
def test_a_tile_is_measured_by_its_positions_not_by_its_place(name):
    rows = torch.tensor([1, 3, 4])
    tile = Tile(weights()[rows], rows, torch.arange(7))
    assert MEASURES[name]([tile]) == pytest.approx(slowly(name, weights(), rows.tolist()))
    assert MEASURES[name](whole(weights()[rows])) != pytest.approx(MEASURES[name]([tile]))


@pytest.mark.parametrize("name", ORACLES)
def test_a_head_of_rows_without_a_key_is_nan(name):
    assert math.isnan(MEASURES[name](whole(torch.full((2, 3), torch.nan))))


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("keys", [1, 2, 9])
def test_no_head_lies_outside_the_limits(name, keys):
    least, most = MEASURES[name].limits(keys)
    generator = torch.Generator().manual_seed(1)
    heads = [torch.eye(keys), torch.eye(keys).flip(0), torch.full((keys, keys), 1 / keys)]
    heads += [torch.softmax(4 * torch.randn(keys, keys, generator=generator), -1) for _ in range(20)]
    for head in heads:
        assert least - 1e-6 <= MEASURES[name](whole(head)) <= most + 1e-6


def test_what_compares_places_is_positional_and_nothing_else():
    positional = {name for name, measure in MEASURES.items() if measure.positional}
    assert positional == {"distance", "self", "previous", "next"}
    described = MeasureDescription(name="own", unit="weight", meaning="Some weight.")
    assert not Measure(described, lambda tile: tile.weights.sum(-1)).positional


def test_the_limits_are_those_that_some_row_reaches():
    limits = {"entropy": (0, math.log(5)), "distance": (0, 4)}
    for name, measure in MEASURES.items():
        assert measure.limits(5) == pytest.approx(limits.get(name, (0, 1)))
    from_end_to_end = Tile(torch.eye(5)[4:], torch.tensor([0]), torch.arange(5))
    assert MEASURES["distance"]([from_end_to_end]) == 4
    assert MEASURES["entropy"](whole(torch.full((1, 5), 0.2))) == pytest.approx(math.log(5))
    assert MEASURES["self"](whole(torch.eye(5))) == 1


def test_a_dense_head_is_one_tile_that_knows_its_positions():
    (tile,) = whole(weights())
    assert torch.equal(tile.weights, weights())
    assert tile.queries.tolist() == [0, 1, 2, 3, 4]
    assert tile.keys.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert tile.offsets[3].tolist() == [-3, -2, -1, 0, 1, 2, 3]


def test_a_new_measure_is_one_function_and_one_entry(monkeypatch):
    def two_before(tile: Tile) -> Tensor:
        return (tile.weights * (tile.offsets == -2)).sum(-1)

    described = MeasureDescription(name="own", unit="weight", meaning="Weight on the one before the last.")
    monkeypatch.setitem(MEASURES, "own", Measure(described, two_before))
    expected = sum(weights()[i, i - 2].item() for i in range(2, 5)) / 5
    assert MEASURES["own"](whole(weights())) == pytest.approx(expected)
    tiles = [Tile(weights()[:, :2], torch.arange(5), torch.arange(2))]
    tiles.append(Tile(weights()[:, 2:], torch.arange(5), torch.arange(2, 7)))
    assert MEASURES["own"](tiles) == pytest.approx(expected)
    assert parse_measures("own,entropy") == ("own", "entropy")


@pytest.mark.parametrize("name", ORACLES)
def test_every_measure_says_what_it_is(name):
    described = MEASURES[name].description
    assert described.name == name
    assert described.meaning.endswith(".")
    assert names_a_year(described.paper)


def names_a_year(paper: str) -> bool:
    return any(str(year) in paper for year in range(2017, 2030))


# names on the command line


def test_names_are_parted_by_commas_and_each_is_taken_once():
    assert parse_measures("distance") == ("distance",)
    assert parse_measures("next, entropy,next") == ("next", "entropy")
    assert parse_measures("all") == tuple(MEASURES)


@pytest.mark.parametrize("text", ["", "entropie", "entropy,", "all,entropy", "Entropy", "\x1b[31m"])
def test_a_measure_that_there_is_not_is_refused_with_those_that_there_are(text):
    with pytest.raises(InputError) as refused:
        parse_measures(text)
    (message,) = str(refused.value).splitlines()
    assert message.endswith(", ".join(MEASURES))
    assert "\x1b" not in message


def test_names_and_meanings_are_read_without_torch():
    code = (
        "import sys; from attnscope.measures import MEASURES, parse_measures; parse_measures('all');"
        "from attnscope.render.measures.terminal import measures_table, measures_json;"
        "measures_json([each.description for each in MEASURES.values()]);"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
