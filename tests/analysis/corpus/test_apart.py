"""Two corpora at equal length against a plain loop over texts; what cannot be compared, what is alike."""

from dataclasses import replace

import made_corpus as made
import numpy as np
import pytest

from attnscope.analysis.corpus.apart import corpora_apart
from attnscope.results import CorpusDifference
from attnscope.results.claims.lengths import FEWEST

DRAWN = np.random.default_rng(5)
SHORT, LONG = DRAWN.integers(4, 40, 200), DRAWN.integers(14, 90, 150)
CLASSES = [(4, 5), (6, 7), (8, 11), (12, 15), (16, 22), (23, 31), (32, 45), (46, 63), (64, 90)]


def values(tokens: np.ndarray, more: float, seed: int) -> np.ndarray:
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
        values = np.array([mean for *_, mean in rows])
        return float(np.linalg.lstsq(design * heavy[:, None], values * heavy, rcond=None)[0][2])

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
    drawn = values(SHORT, 0.0, 1), values(LONG, more, 2)
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
    same, _, _ = apart(0.0)
    more, _, _ = apart(0.5)
    null = same.measures["entropy"]
    assert np.abs(null.as_read).min() > 0.5, "as they are read all heads differ"
    assert np.abs(null.length_alone).min() > 0.1
    assert np.abs(null.reached).max() < 4, "at equal length none does"
    assert same.case == "alike"
    scores = more.measures["entropy"]
    assert np.unravel_index(np.nanargmax(scores.reached), scores.reached.shape) == (1, 2)
    assert scores.difference[1, 2] == pytest.approx(0.5, abs=0.08)
    assert more.compared == pytest.approx((np.mean(SHORT >= 12), np.mean(LONG <= 45)))


def test_lengths_that_are_alike_or_that_no_text_shares_are_compared_as_read() -> None:
    first = made.corpus("a.txt", 41, 0)
    assert not corpora_apart(first, made.corpus("b.txt", 41, 1)).equal
    short, long = np.full(30, 8), np.full(30, 80)
    drawn = values(short, 0, 1), values(long, 0, 2)
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
