"""Totals of chunks against all values at once; what merging may not change; how far a quantile is off."""

import numpy as np
import pytest

from attnscope.analysis.corpus.totals import ROUNDED, Totals, keys_of, values_of

DRAWN = np.random.default_rng(2)
LEVELS = (0.05, 0.5, 0.95)


def values(texts: int = 83) -> np.ndarray:
    """text measure layer head, of many sizes and both signs, with zeros, whole numbers and gaps."""
    found = DRAWN.normal(size=(texts, 2, 3, 5)) * np.exp(4 * DRAWN.normal(size=(texts, 2, 3, 5)))
    found[::7] = 0.0
    found[3::11, 1] = 4.0
    found[5:9, 0, 1] = np.nan
    found[:, 1, 2, 4] = np.nan
    found[1:, 1, 2, 3] = np.nan  # one text alone
    return found


def in_chunks(every: np.ndarray, sizes: tuple[int, ...]) -> Totals:
    merged, start = None, 0
    for size in sizes:
        part = Totals.of(every[start : start + size], np.arange(start, start + size))
        part = Totals.from_arrays(part.arrays())
        merged, start = part if merged is None else merged.merged(part), start + size
    assert merged is not None
    assert start == len(every)
    return merged


def test_chunks_come_to_what_all_texts_come_to() -> None:
    every = values()
    totals = in_chunks(every, (20, 0, 1, 40, 22))
    count, mean, error = totals.moments.whole()
    there = (~np.isnan(every)).sum(axis=0)
    assert np.array_equal(count, there)
    for place in np.ndindex(there.shape):
        mine = every[(slice(None), *place)]
        mine = mine[~np.isnan(mine)]
        if len(mine) > 1:
            assert mean[place] == pytest.approx(mine.mean(), rel=1e-12, abs=1e-300)
            assert error[place] == pytest.approx(mine.std(ddof=1) / np.sqrt(len(mine)), rel=1e-10)
            assert (totals.least[place], totals.largest[place]) == (mine.min(), mine.max())
    assert np.isnan(error[1, 2, 3])
    assert mean[1, 2, 3] == every[0, 1, 2, 3]
    for half in (0, 1):
        np.testing.assert_allclose(
            totals.moments.half(half)[1][0, 0], every[half::2, 0, 0].mean(axis=0), rtol=1e-12
        )


def test_quantiles_are_off_by_no_more_than_is_said() -> None:
    every = values()
    found = in_chunks(every, (30, 30, 23)).quantiles(LEVELS)
    for place in np.ndindex(every.shape[1:]):
        mine = every[(slice(None), *place)]
        mine = np.sort(mine[~np.isnan(mine)])
        for level, value in zip(LEVELS, found[(slice(None), *place)], strict=True):
            if not len(mine):
                assert np.isnan(value)
                continue
            exact = mine[max(int(np.ceil(level * len(mine))), 1) - 1]
            assert abs(value - exact) <= ROUNDED * abs(exact)


def test_the_order_of_merging_changes_no_count_and_the_same_order_no_bit() -> None:
    every = values(40)
    first, second = (Totals.of(every[part], np.arange(40)[part]) for part in (slice(17), slice(17, 40)))
    one, other = first.merged(second), second.merged(first)
    assert np.array_equal(one.sketch.entry, other.sketch.entry)
    assert np.array_equal(one.sketch.times, other.sketch.times)
    again = Totals.of(every[:17], np.arange(17)).merged(Totals.of(every[17:], np.arange(17, 40)))
    for name, array in one.arrays().items():
        assert array.tobytes() == again.arrays()[name].tobytes()


def test_keys_have_the_order_of_their_values_and_whole_numbers_come_back() -> None:
    drawn = np.sort(np.concatenate([values().ravel(), [-1e300, 1e300, 5e-324]]))
    drawn = drawn[~np.isnan(drawn)]
    assert (np.diff(keys_of(drawn)) >= 0).all()
    whole = np.arange(-256.0, 257.0)
    assert np.array_equal(values_of(keys_of(whole)), whole)
    counts = in_chunks(values(), (83,)).sketch.times_of(4.0, 30).reshape(2, 3, 5)
    assert counts[1, 0, 0] == (np.arange(3, 83, 11)).size
    assert counts[0, 0, 0] == 0
