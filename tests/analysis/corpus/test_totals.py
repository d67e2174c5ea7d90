"""Totals of parts against all values at once; what merging may not change; how far a quantile is off."""

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
import torch

from attnscope.analysis.claims.relations.answers import word_weights
from attnscope.analysis.corpus.links import links
from attnscope.analysis.corpus.moments import EDGES
from attnscope.analysis.corpus.outer import EXCERPT, KEPT
from attnscope.analysis.corpus.sketch import ROUNDED, keys_of, values_of
from attnscope.analysis.corpus.totals import Totals
from attnscope.results.claims.lengths import CorpusText

DRAWN = np.random.default_rng(2)
TOKENS = np.random.default_rng(3).integers(2, 90, 83)
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


def text(number: int) -> CorpusText:
    """Every fifth is too long to be kept whole."""
    said = f"Text {number}." + "x" * (400 if number % 5 == 0 else 0)
    return CorpusText(f"a.txt:{number + 1}", int(TOKENS[number]), said)


def totals_of(every: np.ndarray, numbers: Sequence[int]) -> Totals:
    """Those of the texts with these numbers, through their arrays."""
    chosen = np.array(numbers, np.int64)
    totals = Totals.of(every[chosen], chosen, [text(number) for number in numbers])
    return Totals.from_arrays(totals.arrays())


def in_parts(every: np.ndarray, sizes: tuple[int, ...]) -> Totals:
    merged, start = None, 0
    for size in sizes:
        part = totals_of(every, range(start, start + size))
        merged, start = part if merged is None else merged.merged(part), start + size
    assert merged is not None
    assert start == len(every)
    return merged


def test_parts_come_to_what_all_texts_come_to() -> None:
    every = values()
    totals = in_parts(every, (20, 0, 1, 40, 22))
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
            totals.moments.each()[1][half, 0, 0], every[half::2, 0, 0].mean(axis=0), rtol=1e-12
        )


def test_quantiles_are_off_by_no_more_than_is_said() -> None:
    every = values()
    found = in_parts(every, (30, 30, 23)).quantiles(LEVELS)
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
    first, second = totals_of(every, range(17)), totals_of(every, range(17, 40))
    one, other = first.merged(second), second.merged(first)
    assert np.array_equal(one.sketch.entry, other.sketch.entry)
    assert np.array_equal(one.sketch.times, other.sketch.times)
    assert one.outer.values.tobytes() == other.outer.values.tobytes()
    assert one.outer.texts == other.outer.texts
    again = totals_of(every, range(17)).merged(totals_of(every, range(17, 40)))
    for name, array in one.arrays().items():
        assert array.tobytes() == again.arrays()[name].tobytes()


def test_keys_have_the_order_of_their_values_and_whole_numbers_come_back() -> None:
    drawn = np.sort(np.concatenate([values().ravel(), [-1e300, 1e300, 5e-324]]))
    drawn = drawn[~np.isnan(drawn)]
    assert (np.diff(keys_of(drawn)) >= 0).all()
    whole = np.arange(-256.0, 257.0)
    assert np.array_equal(values_of(keys_of(whole)), whole)
    counts = in_parts(values(), (83,)).sketch.times_of(4.0, 30).reshape(2, 3, 5)
    assert counts[1, 0, 0] == (np.arange(3, 83, 11)).size
    assert counts[0, 0, 0] == 0


def outermost(mine: np.ndarray, sign: int) -> list[int]:
    """The numbers of the texts at one end, of equal values the first, by a plain sort."""
    there = [i for i in range(len(mine)) if not np.isnan(mine[i])]
    return sorted(there, key=lambda i: (sign * mine[i], i))[:KEPT]


@pytest.mark.parametrize("sizes", [(83,), (1, 2, 40, 0, 39, 1), (9, 9, 9, 9, 9, 9, 9, 9, 9, 2)])
def test_the_outermost_texts_are_those_of_a_plain_sort_however_parts_are_grouped(
    sizes: Sequence[int],
) -> None:
    every = values()
    every[40:60] = np.round(every[40:60])  # so that many are equal
    ends = np.cumsum([0, *sizes])
    parts = [totals_of(every, range(*pair)) for pair in pairwise(ends)]
    in_turn = reduce(Totals.merged, parts)
    while len(parts) > 1:  # a tree, with the later part first
        pairs = [parts[i : i + 2][::-1] for i in range(0, len(parts), 2)]
        parts = [reduce(Totals.merged, pair) for pair in pairs]
    for totals in (in_turn, parts[0]):
        assert totals.outer.values.tobytes() == in_turn.outer.values.tobytes()
        assert totals.outer.texts == in_turn.outer.texts
        assert list(totals.outer.texts) == sorted(totals.outer.texts), "in the order of the corpus"
        for place in np.ndindex(every.shape[1:]):
            mine = every[(slice(None), *place)]
            for end, sign in enumerate((1, -1)):
                wanted = outermost(mine, sign)
                more = KEPT - len(wanted)
                numbers = totals.outer.numbers[(end, slice(None), *place)]
                assert list(numbers) == [*wanted, *[-1] * more]
                own = totals.outer.values[(end, slice(None), *place)]
                np.testing.assert_array_equal(own, [*mine[wanted], *[np.nan] * more])


def test_of_the_outermost_texts_their_beginnings_are_kept_and_of_no_others() -> None:
    totals = in_parts(values(), (40, 43))
    kept = totals.outer.texts
    assert set(kept) == set(totals.outer.numbers.ravel()) - {-1}
    assert len(kept) < 83
    for number, each in kept.items():
        own = text(number)
        assert (each.place, each.tokens, each.text) == (own.place, own.tokens, own.text[:EXCERPT])
        assert each.whole == (number % 5 != 0)
    moved = totals.moved(lambda place: place.replace("a.txt", "b.txt"))
    assert all(each.place.startswith("b.txt:") for each in moved.outer.texts.values())


def test_moments_by_length_are_those_of_the_texts_of_each_class() -> None:
    every = values()
    totals = in_parts(every, (20, 0, 1, 40, 22))
    count, mean, error = totals.lengths.moments.each()
    classes = totals.lengths.described()
    assert sum(each.texts for each in classes) == 83
    assert sum(each.tokens for each in classes) == TOKENS.sum()
    assert all(first.most < second.least for first, second in pairwise(classes))
    for i, each in enumerate(classes):
        assert each.most + 1 <= 2 * each.least, "no text of a class is twice as long as another one"
        inside = (each.least <= TOKENS) & (each.most >= TOKENS)
        chosen = every[inside]
        assert (each.texts, each.mean) == (len(chosen), pytest.approx(TOKENS[inside].mean()))
        for place in np.ndindex(every.shape[1:]):
            mine = chosen[(slice(None), *place)]
            mine = mine[~np.isnan(mine)]
            assert count[(i, *place)] == len(mine)
            if not len(mine):
                assert np.isnan(mean[(i, *place)])
                continue
            assert mean[(i, *place)] == pytest.approx(mine.mean(), rel=1e-12, abs=1e-300)
            if len(mine) > 1:
                own = mine.std(ddof=1) / np.sqrt(len(mine))
                assert error[(i, *place)] == pytest.approx(own, rel=1e-9, abs=1e-12)
    assert list(EDGES[:12]) == [1, 2, 3, 4, 6, 8, 12, 16, 23, 32, 46, 64]


TAGS = (("NOUN", "VERB", "NOUN", "ADJ"), ("VERB", "X", "X"), ("ADJ", "NOUN", "VERB"))
PIECES = torch.tensor(  # row word token: a word of two pieces, one without any, special tokens at both ends
    [
        [[0, 1, 0, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 1, 0]],
        [[0, 1, 0, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0]],
        [[0, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0]],
    ]
).bool()


def slow(by_word: np.ndarray, tags: tuple[str, ...], there: list[int]) -> tuple[float, float]:
    """Link and place of one head in one text."""
    pairs = [(i, j) for i in there for j in there if i != j and (tags[i], tags[j]) == ("VERB", "NOUN")]
    if not pairs:
        return float("nan"), float("nan")
    queries = {i for i, _ in pairs}
    expected = 0.0
    for i, j in pairs:
        alike = [by_word[a, b] for a in there for b in there if a != b and b - a == j - i]
        expected += sum(alike) / len(alike)
    return sum(by_word[i, j] for i, j in pairs) / len(queries), expected / len(queries)


def test_links_are_those_of_the_slow_loop() -> None:
    weights = torch.softmax(2 * torch.randn(3, 2, 7, 7, generator=torch.Generator().manual_seed(1)), -1)
    found = links(weights, PIECES, TAGS, "VERB", "NOUN")
    by_word = word_weights(weights, PIECES).numpy()
    for row, tags in enumerate(TAGS):
        there = [i for i in range(len(tags)) if PIECES[row, i].any()]
        for head in range(2):
            link, place = slow(by_word[row, head], tags, there)
            expected = [link, place, link - place]
            assert found[row, :, head].tolist() == pytest.approx(expected, abs=1e-12, nan_ok=True)
    assert found[1].isnan().all()  # no noun
    assert found[2].isnan().all()  # a noun without a piece


def test_a_head_that_looks_to_a_place_alone_gains_nothing_and_one_that_seeks_nouns_does() -> None:
    tags = (("VERB", "NOUN", "X", "VERB", "X", "NOUN", "X", "X"),)
    pieces = torch.eye(8, dtype=torch.bool)[None]
    weights = torch.zeros(1, 2, 8, 8)
    weights[0, 0] = torch.eye(8).roll(1, 1)  # the next word, whatever it is
    weights[0, 1, :, 1] = weights[0, 1, :, 5] = 0.5  # the nouns, wherever they are
    link, place, gain = links(weights, pieces, tags, "VERB", "NOUN")[0].tolist()
    assert (link[0], place[0], gain[0]) == pytest.approx((0.5, 0.5, 0.0))
    assert link[1] == pytest.approx(1.0)
    assert gain[1] > 0.4
