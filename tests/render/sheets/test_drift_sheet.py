"""The sentences and blocks of what a tuning changed, on results made by hand."""

from dataclasses import replace

import cases_drift
import numpy as np
import pytest

from attnscope.render.focus import Focus
from attnscope.render.sheets.drift import sheet
from attnscope.results import Drift
from attnscope.results.claims.drift import Case


def titles(result: Drift) -> list[str]:
    return [block.title for block in sheet(result).every]


def test_the_answer_says_what_moved_beside_rounding_by_whose_doing_and_what_it_does() -> None:
    result = cases_drift.drift()
    assert result.case is Case.MOVED
    told = sheet(result).answer
    shares = f"{100 * result.mean[0, 1]:.0f} %", f"{100 * result.loudest.mean():.1f} %", "95 %", "1.7 %"
    parts = "L4 H1 changed most", "4 of 6 heads", "1 by more than 10 %", "only L4 H1", ".16 nats", ".010"
    assert [each for each in (*parts, *shares) if each not in told] == []


def test_of_nothing_that_changed_one_line_tells_the_precision_and_tables_of_zeros_stand_aside() -> None:
    result = cases_drift.drift(moved=False)
    made = sheet(result)
    assert result.case is Case.SAME
    assert f"{100 * result.loudest.mean():.1f} % at most" in made.answer
    assert any(each.endswith(" 1 part in 1,000,000,000") for each in made.notes)
    assert made.every == ()
    assert [block.title for block in made.more] == ["how far each head changed"]
    assert "how far each head changed" in [block.title for block in sheet(result, Focus(verbose=True)).every]
    assert made.next is None
    unheard = replace(result, written=np.full_like(result.written, np.nan))
    assert not [each for each in sheet(unheard).notes if "write" in each]


def test_heads_within_rounding_are_said_so_with_their_share() -> None:
    result = cases_drift.drift()
    within = replace(result, moved=result.floor / 2, limit=0.5)
    assert within.case is Case.WITHIN
    assert not within.beyond
    assert within.exceeding == ()


def test_a_head_is_beyond_where_it_is_so_in_more_than_half_of_the_texts() -> None:
    result = cases_drift.drift()
    moved = np.zeros_like(result.moved)
    moved[:2, 0, 0] = 1  # two of four
    moved[:3, 1, 2] = 0.01
    changed = replace(result, moved=moved)
    assert changed.ranking[0] == (0, 0)
    assert changed.beyond == {(1, 2)}
    assert "L4 H0 changed most in the mean: 50 %" in sheet(changed).answer


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ([(0, 1)], "and only L4 H1 by its own weights"),
        ([(0, 1), (1, 0)], "and only L4 H1 and L5 H0 by their own weights"),
        ([(0, 1), (0, 2), (1, 0)], "only L4 H1, L4 H2 and 1 more by their own weights"),
        ([], "and none by its own weights"),
    ],
)
def test_who_changed_by_its_own_weights_is_named(changed, told: str) -> None:
    result = cases_drift.drift()
    own = np.zeros_like(result.own)
    for rank, place in enumerate(changed):
        own[(slice(None), *place)] = 0.5 - 0.1 * rank
    result = replace(result, own=own, written=np.zeros_like(own))
    assert told in sheet(result).answer
    assert ("heads that changed by their own weights" in titles(result)) is bool(changed)


def test_where_all_changed_or_it_is_not_told_nobody_is_singled_out() -> None:
    result = cases_drift.drift()
    every = replace(result, own=np.full_like(result.own, 0.2))
    unknown = replace(result, own=np.full_like(result.own, np.nan), notes=("so it is",))
    assert unknown.touched is None
    for each in (every, unknown):
        assert "own weights" not in sheet(each).answer
        assert "heads that changed by their own weights" not in titles(each)
    assert "so it is" in sheet(unknown).notes


def test_a_model_that_answers_nothing_says_why_no_head_was_put_back() -> None:
    none = np.full(4, np.nan)
    bare = replace(cases_drift.drift(), put_back=None, unanswered="it has no head")
    result = replace(bare, answers=none, answers_floor=none, answers_by="")
    assert any("answers" in each and "it has no head" in each for each in sheet(result).notes)
    assert "nats" not in sheet(result).answer
    assert any("put back" in each and "it has no head" in each for each in sheet(bare).notes)


def test_answers_no_further_apart_than_rounding_moves_them_are_given_no_share() -> None:
    result = cases_drift.drift()
    assert result.put_back is not None
    within = replace(result, answers_floor=np.full(4, 0.25))
    made = sheet(within)
    assert "by .16 nats, no more than bfloat16 alone makes (.25)" in made.answer
    assert "put back" not in " ".join((made.answer, *made.notes, *titles(within)))


def test_the_table_has_a_row_for_each_number_of_each_head_and_text() -> None:
    table = sheet(cases_drift.drift()).table()
    facts = [table["fact"].values.count(name) for name in ("moved", "own", "written", "floor")]
    assert facts == [24] * 4
    assert table["fact"].values.count("put back, alone") == 6
