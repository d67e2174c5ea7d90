"""Every measure over tiles of every mechanism, against the same in one piece in float64."""

import math
from dataclasses import replace

import pytest
import torch
from made_long import MECHANISMS, QUERIES, VALUE_DIM, Mechanism

from attnscope.analysis.scores import supplies
from attnscope.arithmetic import Stages, attend
from attnscope.measures import MEASURES, Need, whole
from attnscope.measures.rows import cosine_distances
from attnscope.tiles.collectors import TopKeys, collect, collector_of
from attnscope.tiles.softmax import Head, Heads, block_of, values_of
from attnscope.tiles.stream import WITHOUT_FORM, Beside, Stream
from attnscope.tiles.tiling import EVERYWHERE, Room, Sizes, tiling

SIZES = (Sizes(11, 18, 6, held=2), Sizes(64, 23, 23, held=0))
HEADS = (0, 3)
PERIOD = 9
NAMES = [name for name in MEASURES if name not in WITHOUT_FORM]
random = torch.Generator().manual_seed(7)
CIRCUIT, SLOPE, DIRECT = (
    torch.randn(*shape, generator=random, dtype=torch.float64)
    for shape in ((VALUE_DIM, VALUE_DIM), (QUERIES, VALUE_DIM), (QUERIES, VALUE_DIM))
)


def names_of(mechanism: Mechanism) -> tuple[torch.Tensor, torch.Tensor]:
    sides = mechanism.call.query_tokens, mechanism.call.key_tokens
    return tuple(torch.tensor([token.id for token in side.items]) for side in sides)


def norms_of(mechanism: Mechanism, head: int) -> torch.Tensor:
    return mechanism.call.v[mechanism.call.key_head(head)].norm(dim=-1)


def beside(mechanism: Mechanism, head: int) -> Beside:
    call = mechanism.call
    query_names, key_names = names_of(mechanism)
    parts = [torch.tensor([t.part for t in side.items]) for side in (call.query_tokens, call.key_tokens)]
    return Beside(
        special=supplies.special(call.key_tokens),
        punctuation=supplies.punctuation(call.key_tokens),
        query_names=query_names,
        key_names=key_names,
        query_parts=parts[0],
        key_parts=parts[1],
        norms=norms_of(mechanism, head),
        period=PERIOD,
        circuit=CIRCUIT,
        slope=SLOPE,
        direct=DIRECT,
    )


def in_one_piece(mechanism: Mechanism, stages: Stages, head: int) -> dict[str, float]:
    """The measures as they are taken of a short text, from weights that are all there."""
    call, weights = mechanism.call, stages.weights[head]
    dense, norms = mechanism.dense, norms_of(mechanism, head)
    allowed = torch.ones_like(weights, dtype=torch.bool) if dense.allowed is None else dense.allowed[head]
    values = call.v[call.key_head(head)]
    tiles = whole(
        weights,
        allowed=allowed,
        visible=allowed.sum(-1),
        special=supplies.special(call.key_tokens),
        punctuation=supplies.punctuation(call.key_tokens),
        alike=supplies.alike(call.query_tokens, call.key_tokens),
        together=supplies.together(call.query_tokens, call.key_tokens),
        norms=norms,
        moved=weights @ norms,
        distances=cosine_distances(call.q[head], call.k[call.key_head(head)]),
        scaled=stages.masked[head],
        period=PERIOD,
        circuit=CIRCUIT,
        output=stages.output[head],
        slope=SLOPE,
        direct=DIRECT,
        gradient=SLOPE @ values.T,
    )
    return {name: MEASURES[name](tiles) for name in NAMES}


def in_tiles(mechanism: Mechanism, heads: Heads, head: int) -> dict[str, float]:
    known = beside(mechanism, head)
    one = heads.head(head)
    stream = Stream(one, known, tuple(Need))
    found = {name: collector_of(MEASURES[name], *one.shape) for name in NAMES}
    collect(stream, list(found.values()))
    return {name: each.value for name, each in found.items()}


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_measure_over_tiles_is_what_it_is_in_one_piece(name):
    mechanism = MECHANISMS[name]
    stages = attend(mechanism.dense)
    expected = {head: in_one_piece(mechanism, stages, head) for head in HEADS}
    for sizes in SIZES:
        heads = Heads(mechanism.call, sizes, torch.float64)
        for head, values in expected.items():
            found = in_tiles(mechanism, heads, head)
            assert found == pytest.approx(values, abs=1e-10, nan_ok=True), (sizes, head)


def test_all_of_the_registry_is_tried_but_what_says_that_it_has_no_form():
    assert set(NAMES) == set(MEASURES) - {"near"}
    assert "ranks all pairs" in WITHOUT_FORM["near"]
    first, ahead = {"first", "first-norm", "sink", "sink-norm"}, {"next", "next-norm"}
    beyond = {"plain": set(), "window": {*ahead, "duplicate"}, "left padding": {*ahead, *first}}
    for name, nobody_may in beyond.items():
        values = in_one_piece(MECHANISMS[name], attend(MECHANISMS[name].dense), 0)
        assert {name for name, value in values.items() if math.isnan(value)} == nobody_may


@pytest.mark.parametrize("name", MECHANISMS)
def test_rows_of_the_first_pass_are_those_of_the_plain_softmax(name):
    mechanism = MECHANISMS[name]
    stages = attend(mechanism.dense)
    for sizes in SIZES:
        heads = Heads(mechanism.call, sizes, torch.float64)
        for head in HEADS:
            stream = Stream(heads.head(head), Beside(norms=norms_of(mechanism, head)))
            for mine, tiles in stream.blocks():
                for columns, tile in tiles:
                    expected = stages.weights[head][mine, columns]
                    torch.testing.assert_close(tile.weights, expected, equal_nan=True)
            rows = stream.rows
            torch.testing.assert_close(rows.output, stages.output[head], equal_nan=True)
            torch.testing.assert_close(
                rows.moved, stages.weights[head] @ norms_of(mechanism, head), equal_nan=True
            )


def test_a_tile_that_is_left_out_is_seen():
    mechanism = MECHANISMS["causal"]
    heads = Heads(mechanism.call, Sizes(11, 17, 17), torch.float64)
    expected = in_one_piece(mechanism, attend(mechanism.dense), 0)
    heads.tiling(0).state[3][1] = 0
    found = in_tiles(mechanism, heads, 0)
    assert found["entropy"] != pytest.approx(expected["entropy"], abs=1e-6)


def test_single_precision_stays_near():
    mechanism = MECHANISMS["all at once"]
    expected = in_one_piece(mechanism, attend(mechanism.dense), 1)
    found = in_tiles(mechanism, Heads(mechanism.call, Sizes(11, 17, 17), torch.float32), 1)
    plain = [name for name in NAMES if not name.startswith(("offset", "fixed", "pattern"))]
    assert {n: found[n] for n in plain} == pytest.approx(
        {n: expected[n] for n in plain}, rel=1e-5, abs=1e-5, nan_ok=True
    )


@pytest.mark.parametrize("name", ["causal", "left padding", "sink"])
def test_weights_that_are_next_to_nothing_are_no_smaller_than_a_processor_is_quick_with(name):
    """Scores of hundreds: nearly all weights lie below 1e-38, and what may not be looked at is exactly 0."""
    mechanism = MECHANISMS[name]
    call, dense = replace(mechanism.call, scale=200.0), mechanism.dense.but(scale=200.0)
    steep = Mechanism(call, dense)
    stages = attend(dense)
    assert (stages.scaled[1].amax() - stages.scaled[1].amin()) > 1000
    found = in_tiles(steep, Heads(call, SIZES[0], torch.float32), 1)
    expected = in_one_piece(steep, stages, 1)
    of_weights = ["entropy", "confidence", "distance", "previous", "first", "special-tokens"]
    if name != "sink":  # it may leave so little that a row moves nothing
        of_weights.append("distance-norm")
    assert {n: found[n] for n in of_weights} == pytest.approx(
        {n: expected[n] for n in of_weights}, rel=1e-4, abs=1e-4, nan_ok=True
    )
    least = torch.finfo(torch.float32).tiny
    norms = Beside(norms=norms_of(steep, 1))
    for rows, tiles in Stream(Heads(call, SIZES[0], torch.float32).head(1), norms).blocks():
        for columns, tile in tiles:
            hidden = dense.allowed[1][rows, columns].logical_not()
            answered = ~tile.weights.isnan()
            assert (tile.weights[hidden & answered] == 0).all()
            seen = tile.weights[~hidden & answered]
            assert ((seen == 0) | (seen > least)).all()
            assert (tile.by_norm.weights.nan_to_num(0.0).sum(-1) <= 1 + 1e-3).all()


def test_where_a_sink_leaves_next_to_nothing_no_key_has_a_share_in_it():
    mechanism = MECHANISMS["sink"]
    call = replace(mechanism.call, sinks=torch.full((4,), 87.0, dtype=torch.float64))
    head = Heads(call, SIZES[0], torch.float32).head(1)
    stream = Stream(head, Beside(norms=norms_of(mechanism, 1)))
    for _, tiles in stream.blocks():
        assert all(tile.by_norm.weights.isnan().all() for _, tile in tiles)
    assert (stream.rows.moved > 0).all()  # in float64 they are still told apart


def test_keys_whose_weights_are_no_longer_told_apart_are_not_among_the_strongest():
    mechanism = MECHANISMS["causal"]
    call, dense = replace(mechanism.call, scale=200.0), mechanism.dense.but(scale=200.0)
    one = Heads(call, SIZES[0], torch.float32).head(1)
    top = TopKeys(3, QUERIES)
    collect(Stream(one), [top])
    weights = attend(dense).weights[1]
    few = 0
    for query in range(QUERIES):
        there = [
            key for key in weights[query].argsort(descending=True).tolist() if weights[query, key] > 1e-37
        ]
        assert top.keys[query].tolist() == [*there[:3], -1, -1, -1][:3], query
        few += len(there) < 3
    assert few > QUERIES // 2


def rising(step: float) -> Head:
    """A head of which each key of the second tile scores `step` more than that of the first."""
    q, k = torch.zeros(8, 5), torch.zeros(12, 5)
    q[:, 0] = 1.0
    k[:, 0] = torch.linspace(-3.0, 3.0, 6).repeat(2) + step * (torch.arange(12) >= 6)
    tiles = tiling(EVERYWHERE, 0, 8, 12, Sizes(8, 6, 6), q.device)
    return Head(q, k, torch.randn(12, 3, generator=random), None, (), None, tiles)


@pytest.mark.parametrize(("step", "kept"), [(0.0, True), (30.0, True), (60.0, False)])
def test_exponentials_of_the_first_pass_serve_the_second_unless_weights_would_be_lost(
    step: float, kept: bool
) -> None:
    head = rising(step)
    rows, held = block_of(head, slice(0, 8), values_of(head), Room(head.q, head.tiles.sizes), 32)
    assert sorted(held) == [0, 6]
    assert (held[0].weights(rows.log_sum.float()) is not None) == kept
    plain = torch.softmax(head.q.double() @ head.k.double().T, -1)
    for _, tiles in Stream(head).blocks():
        for columns, tile in tiles:
            expected = plain[:, columns]
            torch.testing.assert_close(tile.weights.double(), expected, rtol=1e-4, atol=1e-37)
            entropy = torch.special.entr(expected).sum(-1)
            found = tile.once(MEASURES["entropy"].contribution).double()
            torch.testing.assert_close(found, entropy, rtol=1e-4, atol=1e-30)
