"""Links and times by the book: warping by a double loop, scores by sets, shares that a mixture would have."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from attnscope.errors import InputError
from attnscope.verbs.align import gold, judging
from attnscope.verbs.align import word_times as timing


def warped_by_the_book(cost: np.ndarray) -> float:
    """The cost of the cheapest path, by Sakoe and Chiba's recurrence, cell by cell."""
    rows, columns = cost.shape
    best = np.full((rows + 1, columns + 1), np.inf)
    best[0, 0] = 0.0
    for i in range(1, rows + 1):
        for j in range(1, columns + 1):
            best[i, j] = cost[i - 1, j - 1] + min(best[i - 1, j - 1], best[i - 1, j], best[i, j - 1])
    return float(best[rows, columns])


@pytest.mark.parametrize(("rows", "frames", "seed"), [(1, 7, 0), (5, 1, 1), (12, 57, 4)])
def test_the_path_is_the_cheapest_of_all(rows: int, frames: int, seed: int) -> None:
    gain = np.random.default_rng(seed).normal(size=(rows, frames))
    path = timing.path(gain)
    assert path[0].tolist() == [0, 0]
    assert path[-1].tolist() == [rows - 1, frames - 1]
    steps = np.diff(path, axis=0)
    assert {tuple(step) for step in steps.tolist()} <= {(1, 1), (1, 0), (0, 1)}
    assert -gain[path[:, 0], path[:, 1]].sum() == pytest.approx(warped_by_the_book(-gain), abs=1e-9)


def test_a_word_begins_where_its_row_rises_and_not_where_the_one_before_it_ends() -> None:
    rows = np.full((2, 3, 20), 0.01)
    rows[:, 0, 2:6], rows[:, 1, 12:15], rows[:, 2, 18:20] = 0.2, 0.3, 0.4  # a pause from 6 to 12
    rows[:, 1, 6:12] = 0.02  # of which the second word has a little more
    found = timing.timed(rows, judging.even(2), ((0,), (1,)), 0.05, 0.1)
    assert found.begins == pytest.approx([0.1, 0.6])
    assert found.jumps[1] < 0.5  # as published the pause is a part of the second word
    assert found.ends[1] <= 0.9 + 1e-9


@pytest.mark.parametrize(("seconds", "width"), [(0.02, 7), (0.04, 3), (0.01, 15), (0.2, 1)])
def test_the_median_is_over_as_much_time_whatever_a_frame_lasts(seconds: float, width: int) -> None:
    assert timing.median_width(seconds) == width


def test_scores_are_those_of_sets() -> None:
    strengths = np.array([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]])
    answered, sure, possible = {(0, 0), (1, 2), (1, 1)}, {(0, 0), (1, 1)}, {(0, 0), (1, 1), (0, 1)}

    def matrix(pairs: set[tuple[int, int]]) -> np.ndarray:
        made = np.zeros((2, 3), bool)
        made[tuple(np.array(sorted(pairs)).T)] = True
        return made

    score = judging.score_links(
        "x", [strengths], [matrix(answered)], [judging.Gold(matrix(sure), matrix(possible))]
    )
    assert score.precision == len(answered & possible) / 3
    assert score.recall == len(answered & sure) / 2
    assert score.error == 1 - (len(answered & sure) + len(answered & possible)) / (3 + 2)
    assert score.found == 1 / 2  # the second word's strongest source is none of gold's
    assert score.links == 3


def test_any_word_is_what_drawing_by_lot_comes_to() -> None:
    random = np.random.default_rng(0)
    gold_links = [judging.Gold(*([random.random((4, 7)) < 0.3] * 2)) for _ in range(3)]
    drawn = []
    for _ in range(4000):
        ways = [np.eye(7)[random.integers(7, size=4)] for _ in gold_links]
        drawn.append(judging.score_links("x", ways, [way > 0 for way in ways], gold_links))
    told = judging.score_even(gold_links)
    assert told.precision == pytest.approx(np.mean([each.precision for each in drawn]), abs=0.01)
    assert told.found == pytest.approx(np.mean([each.found for each in drawn]), abs=0.01)


def test_how_often_something_is_right_is_counted_by_how_sure_it_is() -> None:
    told = judging.reliabilities([0.95, 0.96, 0.6, 1.0], [True, False, True, True])
    assert [(each.low, each.count, each.right) for each in told] == [
        (0.5, 1, 1.0),
        (0.9, 2, 0.5),
        (0.97, 1, 1.0),
    ]
    few, many = (judging.reliabilities([0.95] * n, [True] * (n - 1) + [False])[0] for n in (5, 500))
    assert few.right_low < 0.5 < few.right < few.right_high < 1
    assert many.right_high - many.right_low < 0.02


@pytest.mark.parametrize("linked", [0.0, 1.0])
def test_gold_that_links_nothing_or_everything_teaches_nothing(linked: float) -> None:
    random = np.random.default_rng(0)
    words = [judging.WordWeights(*random.dirichlet(np.ones(5), size=(2, 4, 3))) for _ in range(4)]
    with pytest.raises(InputError, match="nothing to learn"):
        judging.learn(words, [np.full((3, 5), bool(linked))] * 4)


def test_a_head_counts_by_how_sharp_and_how_monotone_it_is() -> None:
    forward, even, backward = np.eye(6) * 0.9 + 0.02, np.full((6, 6), 1 / 6), np.eye(6)[::-1]
    shares = judging.by_sharpness(np.stack([forward, even, backward]))
    assert shares == pytest.approx([1, 0, 0], abs=1e-9)
    assert judging.by_sharpness(np.stack([even, even])) == pytest.approx([0.5, 0.5])


def test_shares_are_those_of_the_mixture_that_the_cases_came_from() -> None:
    random, true = np.random.default_rng(1), np.array([0.7, 0.3, 0.0])
    keys = random.integers(3, size=4000)
    heads = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [1 / 3] * 3])
    keys = np.array([random.choice(3, p=true @ heads) for _ in range(4000)])
    assert judging.fitted(heads[:, keys].T) == pytest.approx(true, abs=0.08)


def test_what_is_learnt_is_sure_only_of_what_it_was_right_about() -> None:
    """Heads of which one finds the link and the others know nothing; a tenth of gold is wrong at random."""
    random = np.random.default_rng(3)
    cases, gold_links = [], []
    for _ in range(40):
        true = np.eye(5)[random.permutation(5)]
        writes = random.dirichlet(np.ones(5), size=(4, 5))
        writes[2] = 0.8 * true + 0.2 * writes[2]
        cases.append(judging.WordWeights(writes, random.dirichlet(np.ones(5), size=(4, 5))))
        noise = random.random(5) < 0.1
        gold_links.append((np.where(noise[:, None], np.roll(true, 1, axis=1), true)) > 0)
    learnt = judging.learn(cases, gold_links)
    assert learnt.shares.argmax() == 2
    both = list(zip(cases, gold_links, strict=True))
    ways = judging.left_out(both, lambda some: judging.learn(*map(list, zip(*some, strict=True))))
    chances = [way.chances(each) for way, each in zip(ways, cases, strict=True)]
    said = np.concatenate([each[each >= 0.5] for each in chances])
    right = np.concatenate([g[c >= 0.5] for c, g in zip(chances, gold_links, strict=True)])
    assert right.mean() == pytest.approx(0.9, abs=0.06)
    assert said.mean() == pytest.approx(right.mean(), abs=0.06)


BAD = {
    "0-0 1:1": ":1: '1:1' is no link",
    "a b ||| c ||| 0-0 2-0": ":1: link 2-0 does not fit: the source has 2 words, the target 1",
    "a b ||| c": ":1: neither links alone nor source",
    "a b |||  ||| 0-0": ":1: an empty target",
    "0-0\n1-1": ":2: links of a second pair",
    "a ||| b ||| 0-0\n0-0": "lines with sentences and lines without",
    "\n": "no gold in",
}


BAD_TIMES = {
    "a\t0.1": ":1: a line has word, begin",
    "a\t0\t0.5\nb\t0.7\t0.6": ":2: begin 0.7 and end 0.6 are no stretch",
    "a\tx\t1": ":1: begin and end are seconds",
    "s.wav\ta\t0\t1\nb\t1\t2": "lines with a sound and lines without",
}


@pytest.mark.parametrize(
    ("read", "text", "why"),
    [(gold.read_links, *each) for each in BAD.items()]
    + [(gold.read_times, *each) for each in BAD_TIMES.items()],
)
def test_a_line_that_is_no_gold_or_no_time_is_named(
    read: Callable[[Path], object], text: str, why: str, tmp_path: Path
) -> None:
    file = tmp_path / "gold.txt"
    file.write_text(text)
    with pytest.raises(InputError) as told:
        read(file)
    assert why in str(told.value)


def test_links_are_read_as_they_are_written(tmp_path: Path) -> None:
    file = tmp_path / "gold.txt"
    file.write_text("the cat sleeps ||| le chat dort ||| 0-0 1?1 2-2\n\na ||| b ||| 0?0\n")
    first, second = gold.read_links(file)
    assert first.sure == {(0, 0), (2, 2)}
    assert first.possible == {(0, 0), (1, 1), (2, 2)}
    assert second.place.endswith(":3")
    assert first.matrix(3, 3, sure=True).tolist() == [[True, False, False], [False] * 3, [False, False, True]]


def test_each_part_is_judged_by_what_was_learnt_of_the_others() -> None:
    for cases in (list(range(2)), list(range(12))):
        for case, known in zip(cases, judging.left_out(cases, list), strict=True):
            assert case not in known
            assert all(other in known for other in cases if other % 5 != case % 5)
