"""Measures by hand, in tiles as in one piece, and the registry that makes a new one a single entry."""

import math
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from known_tiles import ALLOWED, OF_NO_WEIGHTS, ORACLES, slowly, tiles, weights
from scipy.stats import spearmanr
from torch import Tensor

from attnscope.errors import InputError
from attnscope.measures import MEASURES, Measure, Need, Tile, parse_measures, whole
from attnscope.measures.rows import CLASSES, cosine_distances
from attnscope.results import MeasureDescription

SQUARE = torch.tensor([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.0, 0.25, 0.75]])
WEIGHED = [name for name in ORACLES if name not in OF_NO_WEIGHTS]
PLAIN = [name for name, measure in MEASURES.items() if not measure.needs]


def test_a_query_that_may_look_at_none_of_the_keys_that_are_meant_does_not_count():
    causal = torch.tensor([[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0.25, 0.25, 0.5, 0], [0.125, 0.5, 0.25, 0.125]])
    seen = torch.ones(4, 4).tril().bool()
    names = torch.tensor([3, 5, 4, 5])
    known = {
        "allowed": seen,
        "special": names == 3,
        "punctuation": names == 4,
        "alike": names[:, None] == names[None, :],
    }
    found = {
        name: MEASURES[name](whole(causal, **known))
        for name in (*PLAIN, "special-tokens", "punctuation", "same")
    }
    assert math.isnan(found["next"])  # nobody may look there
    assert found["previous"] == pytest.approx((0.5 + 0.25 + 0.25) / 3)
    assert found["special-tokens"] == found["first"] == pytest.approx((1 + 0.5 + 0.25 + 0.125) / 4)
    assert found["punctuation"] == pytest.approx((0.5 + 0.25) / 2)  # the first two stand before it
    assert found["same"] == 0.5  # the second 5 alone stands behind another
    assert found["distance"] == pytest.approx((0 + 0.5 + 0.25 * 2 + 0.25 + 0.125 * 3 + 0.5 * 2 + 0.25) / 4)
    window = seen & ~seen.tril(-2)
    of_window = causal * window / (causal * window).sum(-1, keepdim=True)
    of_those = {name: MEASURES[name](whole(of_window, allowed=window)) for name in ("first", "sink")}
    assert of_those == pytest.approx({"first": (1 + 0.5) / 2, "sink": 0.5})


def test_every_measure_has_a_slow_loop():
    assert set(ORACLES) == set(MEASURES)


@pytest.mark.parametrize("name", ORACLES)
def test_a_measure_equals_its_slow_loop(name):
    dense = weights()
    assert MEASURES[name](tiles(dense)) == pytest.approx(slowly(name, dense), rel=1e-12)


def test_measures_of_weights_by_hand():
    two = whole(torch.tensor([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]]))  # the second row looks at one key
    assert MEASURES["entropy"](two) == pytest.approx((0.5 * math.log(2) + 2 * 0.25 * math.log(4)) / 2)
    assert MEASURES["confidence"](two) == pytest.approx((0.5 + 1) / 2)
    assert MEASURES["entropy"](whole(torch.full((2, 7), 1 / 7))) == pytest.approx(math.log(7))
    for name, rows in {
        "distance": (0.25 * 1 + 0.25 * 2, 0.25 * 1 + 0.25 * 1, 0 * 2 + 0.25 * 1),
        "self": (0.5, 0.5, 0.75),
        "previous": (0.25, 0.25),  # the first query has none
        "next": (0.25, 0.25),  # the last query has none
        "first": (0.5, 0.25, 0),
    }.items():
        assert MEASURES[name](whole(SQUARE)) == pytest.approx(sum(rows) / len(rows))
        with_sink = MEASURES[name](whole(SQUARE / 2))  # half of every row went to the sink
        assert with_sink == pytest.approx(sum(rows) / len(rows) / 2)


def test_evenness_and_the_same_token_by_hand():
    causal = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0], [0.5, 0.25, 0.25]])
    seen = torch.ones(3, 3).tril().bool()
    third = (0.5 * math.log(2) + 0.5 * math.log(4)) / math.log(3)  # the first query has no choice
    found = MEASURES["evenness"](whole(causal, allowed=seen, visible=seen.sum(-1)))
    assert found == pytest.approx((1 + third) / 2)
    alike = torch.tensor([[True, False, True], [False, True, False], [True, False, True]])
    assert MEASURES["same"](whole(SQUARE, alike=alike)) == pytest.approx((0.25 + 0) / 2)
    assert MEASURES["same"](whole(SQUARE.flip(0), alike=alike)) == pytest.approx((0.75 + 0.5) / 2)


def test_random_tokens_that_stand_twice_by_hand():
    period, size = 3, 7  # one token before them
    head = torch.zeros(size, size)
    head[:, 0] = 0.1  # everybody looks a little at the start
    for i in range(4, size):
        head[i, i - period + 1], head[i, i - period], head[i, i - 1] = 0.5, 0.25, 0.125
    places = torch.arange(size) - 1
    tile = Tile(head, places, places, period=period)
    found = [MEASURES[name]([tile]) for name in ("induction", "duplicate", "previous-random")]
    assert found == pytest.approx([0.5, 0.25, 0.125])
    assert MEASURES["induction"]([Tile(head, places + 1, places + 1, period=period)]) != pytest.approx(0.5)


def test_what_a_head_does_to_an_answer_by_hand():
    weights = torch.tensor([[0.25, 0.75], [1.0, 0.0]], dtype=torch.float64)
    values = torch.tensor([[4.0, 0.0, 1.0], [0.0, 2.0, 1.0]], dtype=torch.float64)
    slope = torch.tensor([[1.0, -1.0, 0.5], [0.0, 3.0, -2.0]], dtype=torch.float64)
    gradient = torch.tensor([[4.5, -1.5], [-2.0, 4.0]], dtype=torch.float64)  # slope along each value
    assert torch.equal(slope @ values.T, gradient)
    tile = whole(weights, output=weights @ values, slope=slope, direct=slope[[1, 0]], gradient=gradient)
    for name, expected in {
        "attention-gradient": 0.25 * 4.5 - 0.75 * 1.5 - 1.0 * 2.0,
        "attention-gradient-positive": 0.25 * 4.5,
        "importance": abs(1 * 1 - 1.5 * 1 + 1 * 0.5 - 1 * 2),
        "logit": (1.5 * 3 - 1 * 2) + (4 * 1 + 1 * 0.5),
    }.items():
        assert MEASURES[name](tile) == expected


@pytest.mark.parametrize(
    "name", [name for name in WEIGHED if not name.startswith(("pattern", "fixed", "offset"))]
)
def test_a_measure_is_one_of_all_its_rows(name):
    assert MEASURES[name](tiles(weights())) != pytest.approx(slowly(name, weights(), [0, 1, 2]))


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("cuts", [(0, 3, 7), (0, 1, 2, 3, 4, 5, 6, 7)], ids=str)
def test_tiles_put_together_equal_the_dense_head(name, cuts):
    if name == "copying":
        pytest.skip("a circuit has no tiles")
    found, dense = tiles(weights(), cuts), slowly(name, weights())
    assert MEASURES[name](found) == pytest.approx(dense, rel=1e-12)
    assert MEASURES[name](found[::-1]) == pytest.approx(dense, rel=1e-12)


@pytest.mark.parametrize("name", WEIGHED)
def test_no_tile_may_be_missing(name):
    found = tiles(weights(), (0, 1, 2, 3, 4, 5, 6, 7))
    without_one = [MEASURES[name](found[:i] + found[i + 1 :]) for i in range(7)]
    if name != "pattern":
        assert any(value != pytest.approx(slowly(name, weights())) for value in without_one)


@pytest.mark.parametrize("name", WEIGHED)
def test_rows_without_a_key_are_left_out(name):
    gap = weights()
    gap[1] = gap[4] = torch.nan
    assert MEASURES[name](tiles(gap)) == pytest.approx(slowly(name, weights(), [0, 2, 3]))


@pytest.mark.parametrize("name", [name for name in WEIGHED if MEASURES[name].positional])
def test_a_tile_is_measured_by_its_positions_not_by_its_place(name):
    rows = [1, 3, 4]
    assert MEASURES[name](tiles(weights(), queries=rows)) == pytest.approx(slowly(name, weights(), rows))


@pytest.mark.parametrize("name", WEIGHED)
def test_a_head_of_rows_without_a_key_is_nan(name):
    assert math.isnan(MEASURES[name](tiles(torch.full((5, 7), torch.nan, dtype=torch.float64))))


@pytest.mark.parametrize("name", ORACLES)
def test_no_head_lies_outside_the_limits(name):
    least, most = MEASURES[name].limits(7)
    generator = torch.Generator().manual_seed(1)
    heads = [torch.eye(5, 7), torch.eye(7).flip(0)[:5], torch.full((5, 7), 1 / 7)]
    heads += [torch.softmax(4 * torch.randn(5, 7, generator=generator), -1) for _ in range(20)]
    for head in heads:
        seen = head.double() * torch.tensor(ALLOWED)
        found = MEASURES[name](tiles(seen / seen.sum(-1, keepdim=True)))
        assert math.isnan(found) or least - 1e-6 <= found <= most + 1e-6


def test_what_compares_places_is_positional_and_nothing_else():
    positional = {name for name, measure in MEASURES.items() if measure.positional}
    weighed = {"distance", "self", "previous", "next", "sink", "same", "fixed", "offset"}
    random = {"induction", "duplicate", "previous-random"}
    assert positional == weighed | {f"{name}-norm" for name in weighed} | random | {"pattern"}
    described = MeasureDescription(name="own", unit="weight", meaning="Some weight.")
    assert not Measure(described, lambda tile: tile.weights.sum(-1)).positional


def test_reports_show_the_measures_of_weights_alone():
    brief = [name for name, measure in MEASURES.items() if measure.brief]
    assert brief == ["entropy", "confidence", "distance", "self", "previous", "next", "first"]
    assert not any(MEASURES[name].needs for name in brief)


# what is known beside weights


def test_by_norm_a_row_is_the_share_of_each_key_in_what_is_moved():
    norms = torch.tensor([4.0, 1.0, 0.0])
    known = {"norms": norms, "moved": SQUARE @ norms}
    (tile,) = whole(SQUARE, **known)
    assert tile.by_norm.weights[0].tolist() == pytest.approx([8 / 9, 1 / 9, 0])  # 2, .25 and 0
    shares = (8 / 9, 0.5 / 1.5, 0.0)  # on itself
    assert MEASURES["self-norm"]([tile]) == pytest.approx(sum(shares) / 3)
    assert MEASURES["moved"]([tile]) == pytest.approx((2.25 + 1.5 + 0.25) / 3)
    with_sink, norms = SQUARE / 2, torch.tensor([4.0, 1.0, 3.0])
    halved, whole_rows = (
        MEASURES["self-norm"](whole(each, norms=norms, moved=each @ norms)) for each in (with_sink, SQUARE)
    )
    assert halved == pytest.approx(whole_rows)
    norms = torch.tensor([0.0, 1.0, 1.0])
    only_first = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0.5, 0.5]])
    found = MEASURES["self-norm"](whole(only_first, norms=norms, moved=only_first @ norms))
    assert found == pytest.approx((1 + 0.5) / 2)


def test_a_sink_is_counted_without_the_first_query_and_of_equals_the_first_or_nearest_counts():
    assert MEASURES["sink"](whole(SQUARE)) == pytest.approx((0.25 + 0) / 2)
    assert math.isnan(MEASURES["sink"](whole(torch.ones(1, 1))))
    assert MEASURES["offset"](whole(torch.full((1, 3), 1 / 3))) == 0
    ties = torch.tensor([[0.0, 0, 1, 0], [0, 0, 0, 1], [1.0, 0, 0, 0], [0, 0, 1, 0]])  # +2, +2, -2, -1
    assert (MEASURES["fixed"](whole(ties)), MEASURES["offset"](whole(ties))) == (0.5, 2)
    ties[1] = torch.tensor([1.0, 0, 0, 0])  # +2, -1, -2, -1
    assert MEASURES["offset"](whole(ties)) == -1
    ties[3] = torch.tensor([0, 0, 0, 1.0])  # +2, -1, -2, 0
    assert MEASURES["offset"](whole(ties)) == 0


def shifted(by: int, size: int = 8) -> Tensor:
    """Every query looks at the key `by` behind it, the last ones at themselves."""
    found = torch.zeros(size, size)
    for i in range(size):
        found[i, i + by if 0 <= i + by < size else i] = 1
    return found


@pytest.mark.parametrize("by", [-3, -1, 0, 1, 2])
def test_a_positional_head_tells_its_offset_and_for_how_many_queries_it_holds(by):
    assert MEASURES["fixed"](whole(shifted(by))) == pytest.approx((8 - abs(by)) / 8)
    assert MEASURES["offset"](whole(shifted(by))) == by


EVERYWHERE = torch.ones(8, 8, dtype=torch.bool)
HALVES = torch.arange(8)[:, None] // 4 == torch.arange(8)[None, :] // 4


def column(size: int = 8) -> Tensor:
    found = torch.zeros(size, size)
    found[:, 6] = 1
    return found


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (column(), "vert"),
        (shifted(-1), "diag"),
        (shifted(2), "diag"),
        (shifted(3), "mixed"),  # farther than Kovaleva's diagonals
        (0.5 * column() + 0.5 * shifted(-1), "v+d"),
        (HALVES / 4, "block"),
        (torch.full((8, 8), 1 / 8), "mixed"),
        (0.45 * column() + 0.55 * torch.full((8, 8), 1 / 8), "mixed"),
        (0.55 * column() + 0.45 * torch.full((8, 8), 1 / 8), "vert"),
    ],
)
def test_what_a_head_looks_like(head, name):
    known = {"allowed": EVERYWHERE, "visible": EVERYWHERE.sum(-1), "together": HALVES}
    assert CLASSES[int(MEASURES["pattern"](whole(head, **known)))] == name


def test_even_weights_behind_a_causal_mask_are_no_column_and_without_two_texts_nothing_is_a_block():
    seen = EVERYWHERE.tril()
    even = seen / seen.sum(-1, keepdim=True)
    assert even.mean(0)[0] > 0.3
    found = MEASURES["pattern"](whole(even, allowed=seen, visible=seen.sum(-1)))
    assert CLASSES[int(found)] == "mixed"
    known = {"allowed": EVERYWHERE, "visible": EVERYWHERE.sum(-1)}
    assert CLASSES[int(MEASURES["pattern"](whole(HALVES / 4, **known)))] == "mixed"


@pytest.mark.parametrize("tokens", [25, 49])  # as many times 1 / tokens is less than 1
def test_a_sum_of_even_weights_that_rounds_to_less_than_all_makes_no_block(tokens):
    generator = torch.Generator().manual_seed(tokens)
    weights = torch.softmax(3 * torch.randn(tokens, tokens, generator=generator), -1)
    seen = torch.ones(tokens, tokens, dtype=torch.bool)
    assert float((seen / seen.sum(-1, keepdim=True)).double().sum() / tokens) != 1
    assert CLASSES[int(MEASURES["pattern"](whole(weights, allowed=seen, visible=seen.sum(-1))))] == "mixed"


def test_near_attends_where_scores_fall_with_distance():
    generator = torch.Generator().manual_seed(4)
    q, k = torch.randn(6, 5, generator=generator).double(), torch.randn(9, 5, generator=generator).double()
    distances, allowed = cosine_distances(q, k), torch.rand(6, 9, generator=generator) > 0.2
    by_hand = [[1 - float(a @ b) / math.dist(a, 0 * a) / math.dist(b, 0 * b) for b in k] for a in q]
    assert torch.allclose(distances, torch.tensor(by_hand, dtype=torch.float64))
    for scaled, expected in ((-distances, -1), (distances.exp(), 1), (q @ k.T, None)):
        known = {"distances": distances, "scaled": scaled, "allowed": allowed}
        found = MEASURES["near"](whole(torch.full((6, 9), 1 / 9), **known))
        oracle = spearmanr(distances[allowed], scaled[allowed]).statistic
        assert found == pytest.approx(oracle if expected is None else expected)
    assert math.isnan(
        MEASURES["near"](whole(torch.full((6, 9), 1 / 9), **(known | {"scaled": 0 * distances})))
    )


def test_pairs_that_differ_by_rounding_alone_share_a_rank_and_pairs_a_decade_further_apart_do_not():
    distances = torch.tensor([[0.1, 0.4, 0.4, 0.4, 0.9], [0.2, 0.3, 0.5, 0.6, 0.8]], dtype=torch.float64)
    scaled = torch.tensor([[4.0, 3.1, 1.2, 2.3, 0.9], [3.9, 3.2, 1.5, 1.4, 1.3]], dtype=torch.float64)
    allowed, tolerance = torch.ones(2, 5, dtype=torch.bool), 2.0**-44 * 0.9

    def near(off: float) -> float:
        moved = distances.clone()
        moved[0, 1] += off
        moved[0, 3] -= off
        known = {"distances": moved, "scaled": scaled, "allowed": allowed}
        return float(MEASURES["near"](whole(torch.full((2, 5), 0.2), **known)))

    tied = spearmanr(distances.flatten(), scaled.flatten()).statistic
    assert near(0) == near(tolerance / 10) == near(-tolerance / 10) == pytest.approx(tied)
    assert abs(near(10 * tolerance) - near(-10 * tolerance)) > 0.02


def test_the_eigenvalues_of_the_small_matrix_are_those_of_vocabulary_by_vocabulary():
    generator = np.random.default_rng(2)
    embedding, unembedding = generator.normal(size=(40, 12)), generator.normal(size=(12, 40))
    values, output = generator.normal(size=(12, 3)), generator.normal(size=(3, 12))
    dense = np.linalg.eigvals(embedding @ values @ output @ unembedding)
    small = torch.from_numpy(output @ (unembedding @ embedding) @ values)
    found = MEASURES["copying"](whole(torch.ones(1, 1), circuit=small))
    assert found == pytest.approx(dense.real.sum() / np.abs(dense).sum())
    for sign in (1, -1):
        copies = torch.from_numpy(sign * output @ output.T)
        assert MEASURES["copying"](whole(torch.ones(1, 1), circuit=copies)) == pytest.approx(sign)


def test_the_limits_are_those_that_some_row_reaches():
    limits = {"entropy": (0, math.log(5)), "distance": (0, 4), "offset": (-4, 4), "moved": (0, math.inf)}
    limits |= {"near": (-1, 1), "copying": (-1, 1), "pattern": (0, len(CLASSES) - 1)}
    limits |= dict.fromkeys(("importance", "attention-gradient-positive"), (0, math.inf))
    limits |= dict.fromkeys(("attention-gradient", "logit"), (-math.inf, math.inf))
    for name, measure in MEASURES.items():
        name = name.removesuffix("-norm")
        assert measure.limits(5) == pytest.approx(limits.get(name, (0, 1)))
    from_end_to_end = Tile(torch.eye(5)[4:], torch.tensor([0]), torch.arange(5))
    assert MEASURES["distance"]([from_end_to_end]) == 4
    assert MEASURES["entropy"](whole(torch.full((1, 5), 0.2))) == pytest.approx(math.log(5))
    assert MEASURES["self"](whole(torch.eye(5))) == 1


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


def test_every_measure_says_what_it_is():
    for name, measure in MEASURES.items():
        assert measure.description.name == name
        assert measure.description.meaning.endswith(".")
        assert re.search(r"20[12]\d", measure.description.paper), name


# names on the command line


def test_names_are_parted_by_commas_and_all_are_those_of_the_one_run_over_the_text():
    assert parse_measures("distance") == ("distance",)
    assert parse_measures("next, entropy,next") == ("next", "entropy")
    apart = {"induction", "duplicate", "previous-random", "copying"}
    of_answers = {"importance", "attention-gradient", "attention-gradient-positive", "logit"}
    assert parse_measures("all") == tuple(name for name in MEASURES if name not in apart | of_answers)
    assert {name for name in MEASURES if MEASURES[name].needs & {Need.PERIOD, Need.CIRCUIT}} == apart
    of_gradients = {Need.SLOPE, Need.GRADIENT, Need.DIRECT}
    assert {name for name in MEASURES if MEASURES[name].needs & of_gradients} == of_answers


@pytest.mark.parametrize("text", ["", "entropie", "entropy,", "all,entropy", "Entropy", "\x1b[31m"])
def test_a_measure_that_there_is_not_is_refused_with_the_nearest_and_where_all_stand(text):
    with pytest.raises(InputError) as refused:
        parse_measures(text)
    (message,) = str(refused.value).splitlines()
    told = re.fullmatch(r"no measure '.*': the nearest are (.+); (attnscope measures .*)", message)
    assert told is not None, message
    nearest = told[1].split(", ")
    assert len(nearest) == 3
    assert set(nearest) <= set(MEASURES)
    assert text.lower() not in ("entropie", "entropy") or nearest[0] == "entropy"
    assert str(len(MEASURES)) in told[2]
    assert "\x1b" not in message


def test_names_and_meanings_are_read_without_torch():
    code = (
        "import sys; from attnscope.measures import MEASURES, parse_measures; parse_measures('all');"
        "from attnscope.render.terminal.measures import measures_begun;"
        "measures_begun([each.description for each in MEASURES.values()], 80);"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
