"""Totals of parts, what merging may not change; two corpora at equal length by a plain loop."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise

import made_corpus as made
import numpy as np
import pytest
import torch

from attnscope.analysis.rows import word_weights
from attnscope.results import CorpusDifference
from attnscope.verbs.compare.corpora import corpora_apart
from attnscope.verbs.corpus.measuring import links
from attnscope.verbs.corpus.moments import EDGES, KEPT, ROUNDED, keys_of, values_of
from attnscope.verbs.corpus.part import Totals
from attnscope.verbs.corpus.result import FEWEST, CorpusText

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


def check_moments(chosen: np.ndarray, count: np.ndarray, mean: np.ndarray, error: np.ndarray) -> None:
    """Number, mean and standard error of these texts, place by place."""
    for place in np.ndindex(count.shape):
        mine = chosen[(slice(None), *place)]
        mine = mine[~np.isnan(mine)]
        assert count[place] == len(mine)
        assert mean[place] == pytest.approx(mine.mean() if len(mine) else np.nan, rel=1e-12, nan_ok=True)
        if len(mine) > 1:
            own = mine.std(ddof=1) / np.sqrt(len(mine))
            assert error[place] == pytest.approx(own, rel=1e-9, abs=1e-12)


def test_parts_come_to_what_all_texts_come_to() -> None:
    every = values()
    totals = in_parts(every, (20, 0, 1, 40, 22))
    count, mean, error = totals.moments.whole()
    check_moments(every, count, mean, error)
    there = count > 0
    assert np.array_equal(totals.least[there], np.nanmin(every[:, there], axis=0))
    assert np.array_equal(totals.largest[there], np.nanmax(every[:, there], axis=0))
    assert np.isnan(error[1, 2, 3]), "one text alone"
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
        check_moments(chosen, count[i], mean[i], error[i])
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


TEXT_LENGTHS = np.random.default_rng(5)
SHORT, LONG = TEXT_LENGTHS.integers(4, 40, 200), TEXT_LENGTHS.integers(14, 90, 150)
CLASSES = [(4, 5), (6, 7), (8, 11), (12, 15), (16, 22), (23, 31), (32, 45), (46, 63), (64, 90)]


def values_by_length(tokens: np.ndarray, more: float, seed: int) -> np.ndarray:
    """text measure layer head: heads do `more` than the logarithm of the length, which all of them follow."""
    random = np.random.default_rng(seed)
    shape = (len(tokens), 2, len(made.LAYERS), len(made.HEADS))
    found = np.log(tokens)[:, None, None, None] + 0.1 * random.normal(size=shape)
    found[:, 0, 1, 2] += more
    found[::3, 1, 0, 0] = np.nan
    return found


def by_hand(mine: np.ndarray, others: np.ndarray) -> tuple[float, float, float]:
    """Difference at equal length, its standard error, and what lengths alone make, class by class."""
    sides = []
    for each, tokens in ((mine, SHORT), (others, LONG)):
        rows = {}
        for i, (least, most) in enumerate(CLASSES):
            inside = (tokens >= least) & (tokens <= most)
            own = each[inside & ~np.isnan(each)]
            if len(own) >= FEWEST:
                rows[i] = (own, np.log(tokens[inside].mean()))
        sides.append(rows)
    shared = sorted({*sides[0]} & {*sides[1]})
    whole = [sum(len(side[i][0]) for i in shared) for side in sides]

    def made_of(means: list[dict[int, float]]) -> float:
        """The difference at equal length of means of classes, which is linear in them."""
        found = 0.0
        for i in shared:
            share = sum(len(side[i][0]) / every for side, every in zip(sides, whole, strict=True)) / 2
            gap = sides[1][i][1] - sides[0][i][1]
            found += share * (means[1][i] - means[0][i] - slope(means, i) * gap)
        return found

    def slope(means: list[dict[int, float]], i: int) -> float:
        """Least squares over a class and its neighbours, with a level for each side."""
        rows = [
            (s, side[k], means[s][k]) for s, side in enumerate(sides) for k in (i - 1, i, i + 1) if k in side
        ]
        heavy = np.sqrt([len(own) for _, (own, _), _ in rows])
        design = np.array([[s == 0, s == 1, long] for s, (_, long), _ in rows], float)
        levels = np.array([mean for *_, mean in rows])
        return float(np.linalg.lstsq(design * heavy[:, None], levels * heavy, rcond=None)[0][2])

    means = [{i: float(own.mean()) for i, (own, _) in side.items()} for side in sides]
    difference, variance = made_of(means), 0.0
    for s, side in enumerate(sides):
        for i, (own, _) in side.items():
            moved = [dict(each) for each in means]
            moved[s][i] += 1
            variance += (made_of(moved) - difference) ** 2 * own.var(ddof=1) / len(own)
    as_read = [
        sum(len(s[i][0]) * m[i] for i in shared) / n for s, m, n in zip(sides, means, whole, strict=True)
    ]
    return difference, float(np.sqrt(variance)), as_read[1] - as_read[0] - difference


def apart(more: float = 0.5) -> tuple[CorpusDifference, np.ndarray, np.ndarray]:
    drawn = values_by_length(SHORT, 0.0, 1), values_by_length(LONG, more, 2)
    first, second = (
        made.corpus(name, len(tokens), measures=("entropy", "previous"), drawn=each, tokens=tokens)
        for name, tokens, each in (("a.txt", SHORT, drawn[0]), ("b.txt", LONG, drawn[1]))
    )
    return corpora_apart(first, second), *drawn


def test_at_equal_length_the_difference_is_that_of_a_plain_loop_and_lengths_alone_stand_beside_it() -> None:
    result, mine, others = apart()
    assert result.equal
    for i, name in enumerate(("entropy", "previous")):
        scores = result.measures[name]
        for place in np.ndindex(scores.difference.shape):
            a, b = mine[(slice(None), i, *place)], others[(slice(None), i, *place)]
            difference, error, alone = by_hand(a, b)
            assert scores.difference[place] == pytest.approx(difference, abs=1e-12)
            assert scores.second[place] - scores.first[place] == pytest.approx(difference, abs=1e-12)
            assert scores.error[place] == pytest.approx(error, rel=1e-9)
            assert scores.length_alone[place] == pytest.approx(alone, abs=1e-12)
            assert scores.as_read[place] == pytest.approx(np.nanmean(b) - np.nanmean(a), abs=1e-12)


def test_what_length_alone_makes_is_no_difference_and_one_head_that_does_more_is_found() -> None:
    same, more = apart(0.0)[0], apart(0.5)[0]
    null = same.measures["entropy"]
    assert np.abs(null.as_read).min() > 0.5, "as they are read all heads differ"
    assert np.abs(null.length_alone).min() > 0.1
    assert np.abs(null.reached).max() < 4, "at equal length none does"
    assert same.case == "alike"
    scores = more.measures["entropy"]
    assert np.unravel_index(np.nanargmax(scores.reached), scores.reached.shape) == (1, 2)
    assert scores.difference[1, 2] == pytest.approx(0.5, abs=0.08)


def test_lengths_that_are_alike_or_that_no_text_shares_are_compared_as_read() -> None:
    first = made.corpus("a.txt", 41, 0)
    assert not corpora_apart(first, made.corpus("b.txt", 41, 1)).equal
    short, long = np.full(30, 8), np.full(30, 80)
    drawn = values_by_length(short, 0, 1), values_by_length(long, 0, 2)
    sides = [
        made.corpus(name, 30, measures=("entropy", "previous"), drawn=each, tokens=tokens)
        for name, tokens, each in (("a.txt", short, drawn[0]), ("b.txt", long, drawn[1]))
    ]
    result = corpora_apart(*sides)
    assert not result.equal
    assert np.isnan(result.main.length_alone).all()
    np.testing.assert_array_equal(result.main.difference, result.main.as_read)
    assert all(mean in result.text(width=300) for mean in ("A has 8.0 tokens", "B 80.0: "))
    own = sides[0]
    again = replace(own, read=replace(own.read, files=("c.txt",)))
    assert not np.nan_to_num(corpora_apart(own, again).main.difference).any()


def two_samples(random: np.random.Generator, more: float) -> CorpusDifference:
    """12 and 17 texts of one source whose heads go together, skewed; in the second one head does `more`."""
    sides = []
    for name, texts, own in (("a.txt", 12, 0.0), ("b.txt", 17, more)):
        shared = random.normal(size=(texts, 1, 1, 1))
        drawn = np.exp(0.3 * (shared + random.normal(size=(texts, 2, len(made.LAYERS), len(made.HEADS)))))
        drawn[:, 0, 1, 2] += own
        sides.append(
            made.corpus(name, texts, measures=("entropy", "previous"), drawn=drawn, tokens=[9] * texts)
        )
    return corpora_apart(*sides)


def test_two_samples_of_one_source_are_rarely_apart_and_two_sources_are() -> None:
    random, pairs = np.random.default_rng(8), 40
    same = [two_samples(random, 0.0) for _ in range(pairs)]
    assert sum(each.case == "apart" for each in same) <= 5, "1 in 20: more than 5 of 40 in 1 of 70 tries"
    by_the_normal_mean = [(np.abs(each.main.reached) > 1.73).sum() > 1 for each in same]  # 1 of 12 heads
    assert sum(by_the_normal_mean) > 8, "what luck gives one head in the mean it often gives two"
    other = [two_samples(random, 1.5) for _ in range(10)]
    assert all(each.main.beyond >= {(1, 2)} for each in other)
    assert all(each.case == "apart" for each in other)


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
