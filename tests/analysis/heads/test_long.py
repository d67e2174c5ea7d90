"""Heads of a long text from tiles against the same model read whole: blocks, rows, links, measures."""

import math

import numpy as np
import pytest
import torch
from families import sharp

from attnscope.analysis.heads.head import recompute_head
from attnscope.analysis.heads.long import measure_long, read_long_head, step_of
from attnscope.analysis.heads.overview import measure_heads
from attnscope.attention import Capture
from attnscope.capture import Labels, Selection, record
from attnscope.capture.long.run import record_long
from attnscope.measures import MEASURES
from attnscope.results import HeadAttention, Verdict
from attnscope.session.questions.rows import Cost, gigabytes
from attnscope.tokens import Token, Tokens
from attnscope.vocabulary import Pool

COUNT = 37
NAMES = [name for name, each in MEASURES.items() if not each.description.apart]


@pytest.fixture(scope="module")
def captured() -> tuple[Capture, Capture]:
    return _captured()


def _captured() -> tuple[Capture, Capture]:
    """The same layers whole and long."""
    model = sharp("mistral")
    ids = torch.randint(3, 9, (1, COUNT), generator=torch.Generator().manual_seed(1))
    words = ["[A]", ",", "it", "was", "the", "door", ".", "x", "y"]
    read = Tokens(
        (" ".join(words),),
        tuple(
            Token(each, words[each], words[each], None if i in (0, 9) else (0, 1), None, special=i in (0, 9))
            for i, each in enumerate(ids[0].tolist())
        ),
    )
    inputs, selection = {"input_ids": ids}, Selection(layers=[1, 2], projections=True)
    made = [each(model, inputs, selection, Labels(tokens=read)) for each in (record, record_long)]
    return made[0], made[1]


@pytest.fixture(scope="module")
def whole(captured: tuple[Capture, Capture]) -> HeadAttention:
    return recompute_head(captured[0], 2, 3)


def blocks(dense: HeadAttention, first: tuple[int, int], size: tuple[int, int], step: int) -> list:
    """Mean and largest of every block by plain loops."""
    found = []
    for i in range(first[0], first[0] + size[0], step):
        for j in range(first[1], first[1] + size[1], step):
            pairs = [
                float(dense.weights[q, k])
                for q in range(i, min(i + step, first[0] + size[0]))
                for k in range(j, min(j + step, first[1] + size[1]))
                if dense.allowed[q, k]
            ]
            found.append((math.fsum(pairs) / len(pairs), max(pairs)) if pairs else (math.nan, math.nan))
    return found


@pytest.mark.parametrize("step", [1, 4])
def test_blocks_are_means_and_largest_weights_of_their_pairs(captured, whole, step, monkeypatch):
    monkeypatch.setattr("attnscope.analysis.heads.long.step_of", lambda length, zoomed: step)
    found = read_long_head(captured[1], 2, 3, query=20)
    expected = blocks(whole, (0, 0), (COUNT, COUNT), step)
    mine = list(zip(found.mean.flatten().tolist(), found.largest.flatten().tolist(), strict=True))
    assert mine == [pytest.approx(each, abs=1e-5, nan_ok=True) for each in expected]
    assert found.row == pytest.approx(np.where(whole.allowed[20], whole.weights[20], 0), abs=1e-5)
    assert found.certificate.verdict is Verdict.CERTIFIED
    pooled = read_long_head(captured[1], 2, 3).coarser(step, step) if step > 1 else found
    assert (found.coarser(3, 2).pairs.sum(), pooled.pairs.sum()) == (found.pairs.sum(), whole.allowed.sum())


def test_a_window_is_the_weights_themselves(captured, whole):
    found = read_long_head(captured[1], 2, 3, zoom=(range(12, 30), range(5, 25)), pool=Pool.MAX)
    assert found.exact
    expected = np.where(whole.allowed, whole.weights, np.nan)[12:30, 5:25]
    assert found.mean == pytest.approx(expected, abs=1e-5, nan_ok=True)
    assert np.array_equal(found.mean, found.largest, equal_nan=True)


def test_every_query_has_its_strongest_keys_and_its_entropy(captured, whole):
    found = read_long_head(captured[1], 2, 3)
    for query, row in enumerate(whole.weights):
        allowed = [key for key in range(COUNT) if whole.allowed[query, key]]
        best = sorted(allowed, key=lambda key: -row[key])[:5]
        kept = found.top_keys[query]
        assert kept[kept >= 0].tolist() == best
        assert found.top_weights[query][: len(best)] == pytest.approx(row[best], abs=1e-5)
        entropy = -math.fsum(p * math.log(p) for p in row[allowed] if p > 0)
        assert found.entropy[query] == pytest.approx(entropy, abs=1e-5)


@pytest.mark.parametrize("among_all", [True, False])
def test_an_overview_in_tiles_is_that_of_a_short_text(captured, among_all):
    short = measure_heads(captured[0], measures=NAMES)
    if among_all:
        from attnscope.analysis.heads.view import among_all as linked

        short = linked(short)
    names = [name for name in NAMES if name != "near"]
    long = measure_long(captured[1], measures=NAMES, among_all=among_all)
    for name in names:
        assert long.scores[name].values == pytest.approx(short.scores[name].values, abs=1e-5, nan_ok=True)
        assert long.scores[name].absent == short.scores[name].absent
    assert "ranks all pairs" in long.scores["near"].absent
    assert np.array_equal(long.strongest, short.strongest)
    assert long.strongest_weight == pytest.approx(short.strongest_weight, abs=1e-5)
    assert long.special_shares == pytest.approx(short.special_shares, abs=1e-5)
    assert long.special_mass.total == pytest.approx(short.special_mass.total, abs=1e-5)
    assert long.verdict is short.verdict is Verdict.CERTIFIED
    assert long.weights is None
    assert "in tiles" in long.notes[-1]


def test_blocks_are_powers_of_two_and_what_a_text_costs_by_hand():
    assert [step_of(n, False) for n in (200, 256, 257, 2000, 32768, 131072)] == [1, 1, 2, 8, 128, 512]
    assert [step_of(n, True) for n in (1024, 1025)] == [1, 8]
    cost = Cost(queries=1000, keys=2000, layers=2, heads=3, width=12, dim=64, hidden=768)
    run = 3 * 10**8 + 4 * 16 * 768 * 2000
    assert cost.dense == 2_000_000 * (12 * 12 + 12 * 2 * 3 + 72) + run
    assert cost.tiled == 16 * 2 * 12 * 64 * 3000 // 2 + 4 * 16 * 2000 * 3 * 2 + run
    fits = cost.longest(cost.dense // 2, tiled=False)
    assert 900 < fits < 1100
    assert (gigabytes(4.2e8), gigabytes(1.44e10), gigabytes(6.9e12)) == ("0.4 GB", "14 GB", "6,900 GB")
