"""What is said of many prompts: whether a figure holds, how sure that is, and which prompts go against it."""

import math
import re
from dataclasses import replace

import cases_prompts
import numpy as np
import pytest

from attnscope.analysis.claims.prompts import Seen, tabled
from attnscope.render.sheets import sheet_of
from attnscope.results import Prompts
from attnscope.results.claims.prompts import Asked, Case, Figure


def answer(asked: Asked = Asked.FIND, **how) -> str:
    return sheet_of(cases_prompts.prompts(asked, **how)).answer


def test_no_interval_is_of_fewer_than_six_prompts_or_reaches_beyond_what_a_number_can_be() -> None:
    """Five that all lie on one side do so by chance in 2 of 32."""
    five, six = (cases_prompts.prompts(count=count, off=0) for count in (5, 6))
    assert (five.case, six.case) == (Case.FEW, Case.HOLDS)
    assert np.isnan(five.low).all()
    assert np.isfinite(six.low).all()
    assert answer(count=5, off=0).startswith("5 prompts are too few ")
    for asked, (least, most) in {
        Asked.FIND: (0, 1), Asked.PREDICT: (0, 1), Asked.FLOW: (-1, 1), Asked.LIKE: (0, np.inf),
    }.items():  # fmt: skip
        told = cases_prompts.prompts(asked, off=3)
        plain = told.mean - 9 * told.spread
        assert plain.min() < least, "unbounded it might reach so far"
        assert ((told.low >= least) & (told.high <= most)).all()


def test_what_is_the_same_in_every_prompt_is_said_to_be_so() -> None:
    """.3 + .3 + ... is no multiple of .3 in the last bit, which is no spread."""
    told = cases_prompts.prompts(first=0.3, refused=False)
    assert told.spread[0] == 0
    assert told.low[0] == told.high[0] == told.mean[0]
    column = sheet_of(told).every[0].table["between"]
    assert "all alike" in column.values


def test_a_change_that_goes_both_ways_has_an_interval_that_covers_0() -> None:
    told = cases_prompts.prompts(Asked.ABLATE, off=4)
    assert told.low[0] < 0 < told.high[0]
    assert told.case is Case.HOLDS, "it moves every prompt more than others do"
    assert "either way" in answer(Asked.ABLATE, off=4)
    assert "either way" not in answer(Asked.ABLATE)


def test_a_change_that_is_smaller_than_that_of_others_is_not_shown() -> None:
    told = cases_prompts.prompts(Asked.ABLATE, first=0.01)
    assert told.excess_high[0] < told.control_mean[0]
    assert told.case is Case.CANNOT_TELL


def test_one_of_several_that_is_beyond_its_controls_alone_may_be_luck() -> None:
    told = cases_prompts.prompts(count=6, off=2, refused=False)
    assert told.excess_surely[0] < 0 < told.excess_low[0]
    assert told.case is Case.ALONE


def many_heads(first_in: int) -> Prompts:
    """8 prompts, 4 layers of 9 heads: L2 H4 loses most, unlike much, and L0 H1 little, always alike."""
    random = np.random.default_rng(4)
    every = []
    for place in range(8):
        own = {
            Figure(f"L{i} H{j}", "nats", i, j): Seen(0.02 * float(random.normal()), 0.01)
            for i in range(4)
            for j in range(9)
        }
        lost = (0.6, 4.5, 0.9, 5.0, 0.5, 1.2, 6.0, 0.7)[place]
        own[Figure("L2 H4", "nats", 2, 4)] = Seen(-lost, 0.01, stands=place < first_in)
        own[Figure("L0 H1", "nats", 0, 1)] = Seen(-0.2, 0.01, stands=place >= first_in)
        every.append(own)
    base = cases_prompts.prompts(Asked.ABLATE, refused=False)
    return replace(base, **vars(tabled(Asked.ABLATE, every)))


def test_heads_taken_away_come_by_what_is_lost_and_one_that_is_always_first_is_so_by_no_luck() -> None:
    always, seldom = many_heads(8), many_heads(2)
    big = [each.name for each in always.figures].index("L2 H4")
    small = [each.name for each in always.figures].index("L0 H1")
    assert always.excess_surely[big] < 0 < always.excess_low[big], "one of 36 means may lie so far by luck"
    assert always.ranking[:2] == (big, small), "both are shown: the larger comes first"
    assert always.case is Case.HOLDS
    assert "luck" not in sheet_of(always).answer
    assert sheet_of(always).answer.startswith("Without L2 H4 the answer becomes 11 times less likely ")
    assert math.exp(2.42) == pytest.approx(11, abs=0.5)
    assert always.errors[small] > 3 * always.errors[big]
    assert seldom.ranking[:2] == (small, big), "what is shown comes before what may be luck"
    one = 36 * sum(math.comb(8, k) * (1 / 9) ** k * (8 / 9) ** (8 - k) for k in range(5, 9))
    assert many_heads(5).case is Case.HOLDS
    assert many_heads(5).ranking[0] == big
    assert one < 0.05 < 36 * sum(math.comb(8, k) * (1 / 9) ** k * (8 / 9) ** (8 - k) for k in range(4, 9))
    assert many_heads(4).ranking[0] == small


def test_a_head_is_first_in_its_layer_only_where_no_other_figure_there_moves_the_answer_more() -> None:
    """Of 8 of 9 heads of a layer each is held against the ninth alone, and half of them come first by lot."""
    always = many_heads(8)
    big, rival = (next(i for i, each in enumerate(always.figures) if each.name == name) for name in _TWO)
    values = always.values.copy()
    values[rival] = (values[big] - 1.0) * (np.arange(8) % 2)  # more is lost than without L2 H4 in four of 8
    assert replace(always, values=values).ranking[0] != big
    stands = always.stands.copy()
    stands[rival] = True  # against the ninth each of the two came first
    second = replace(always, values=values, stands=stands)
    assert second.ranking[0] not in (big, rival)
    assert always.ranking[0] == big
    alone = [i for i, each in enumerate(always.figures) if each.layer != 2 or i == big]
    arrays = {name: getattr(always, name)[alone] for name in ("values", "controls", "effects", "stands")}
    ends = {
        name: getattr(always, name)[alone]
        for name in ("low", "high", "excess_low", "excess_high", "excess_surely")
    }
    figures = tuple(always.figures[i] for i in alone)
    only = replace(always, figures=figures, **arrays, **ends)
    assert only.figures[only.ranking[0]].name == "L0 H1"  # not the only head of its layer


_TWO = "L2 H4", "L2 H3"


@pytest.mark.parametrize(("asked", "first"), [(Asked.FIND, "large"), (Asked.LIKE, "small")])
def test_of_figures_that_stand_out_the_largest_comes_first_and_of_distances_the_smallest(
    asked: Asked, first: str
) -> None:
    below = asked is Asked.LIKE
    every = []
    for place in range(8):
        wobble = 0.03 * (-1) ** place
        own = {
            Figure("small", "weight"): Seen(0.2, 0.6 if below else 0.05),
            Figure("large", "weight"): Seen(0.7 + 2 * wobble, 0.9 if below else 0.5),
            Figure("neither, clearer", "weight"): Seen(0.5 + wobble / 2, 0.5),
            Figure("neither, farther off", "weight"): Seen(0.95, 0.7 if below else 1.0),
        }
        every.append(own)
    base = cases_prompts.prompts(asked, refused=False)
    found = replace(base, **vars(tabled(asked, every)))
    names = [found.figures[i].name for i in found.ranking]
    small, large = (next(i for i, each in enumerate(found.figures) if each.name == name) for name in _SIZES)
    assert found.errors[small] > 2 * found.errors[large] > 0 or below
    assert found.case is Case.HOLDS
    assert names[0] == first
    assert set(names[:2]) == {"small", "large"}
    assert names[2:] == ["neither, clearer", "neither, farther off"]


_SIZES = "small", "large"


def test_likeness_is_nearer_where_the_distance_is_less() -> None:
    told = cases_prompts.prompts(Asked.LIKE)
    assert told.excess[0].tolist() == pytest.approx([0.3, 0.28, 0.25, 0.3, 0.28, 0.25, 0.3, -0.1])
    assert told.opposed(0) == (9,)
    assert told.ranking[0] == 0


def test_a_change_is_against_the_mean_by_its_sign_and_its_size_is_held_against_others() -> None:
    told = cases_prompts.prompts(Asked.ABLATE)
    assert told.excess[0].tolist() == pytest.approx([1.15, 0.85, 1.35, 1.15, 0.85, 1.35, 1.15, 0.25])
    assert told.opposed(0) == (9,)


@pytest.mark.parametrize("asked", Asked)
def test_one_prompt_says_that_it_has_no_interval(asked: Asked) -> None:
    told = cases_prompts.prompts(asked, count=1)
    assert np.isnan(told.low).all()
    assert not re.search(r"\d to [−+]?[.\d]", answer(asked, count=1))
    if asked is not Asked.LAYERS:
        assert "1 prompt is too few " in answer(asked, count=1)


def test_the_prompts_that_go_against_it_come_first_and_the_next_command_asks_one_of_them() -> None:
    sheet = sheet_of(cases_prompts.prompts())
    prompts = sheet.every[-1]
    assert prompts.names == (
        "9 Mary saw Tom.",
        "2 Mary gave Ann a book.",
        "3 John gave the old man a key.",
        "4 Ann sold Tom the red car.",
        "5 Tom fell.",
        "6 Ann gave Mary the key.",
        "7 The old man sold Tom a car.",
        "8 John sold Ann the red book.",
    )
    assert prompts.sections == ((0, "against it (1)"), (1, "with it"))
    assert sheet.next is not None
    assert "'Mary saw Tom.'" in sheet.next.command
    assert "--layer 1 --head 8" in sheet.next.command
