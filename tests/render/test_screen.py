"""The door from a result to a screen: every kind has one, and it is what its command prints."""

from dataclasses import replace

import cases_compare
import cases_media
import made_every
import made_reports
import made_results as made
import pytest
from golden_text import GOLDEN, IN_FULL, printed
from rich.console import Group

from attnscope.errors import InputError
from attnscope.render.figure import figure_of
from attnscope.render.focus import WHOLE, Focus, focus_on
from attnscope.render.sheets import sheet_of
from attnscope.render.terminal.sheet import of_sheet, screen
from attnscope.results import Overview, Result, Verdict

EVERY = made_every.every()


def shown(result: Result, width: int = 80, focus: Focus = WHOLE) -> str:
    return printed(Group(*screen(result, width, focus)), width)


def golden(name: str) -> str:
    return (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("result", "focus", "name"),
    [
        (made.head(), WHOLE, "weights.80"),
        (made.head(causal=True), Focus("scaled"), "scaled.80"),
        (made.head(dim=64), Focus("q"), "queries.80"),
        (made.head(), Focus(queries=(3,)), "bars.80"),
        (made.overview(2, 3), WHOLE, "overview_of_few_heads.80"),
        (made.projection(made.head(empty=[0])), IN_FULL, "map.80"),
        (made.projection(), replace(IN_FULL, queries=(3, 7), key=4), "map_compared.80"),
        (cases_compare.texts(), IN_FULL, "comparison_texts_80"),
    ],
)
def test_the_body_is_that_of_its_room(result: Result, focus: Focus, name: str) -> None:
    everything = replace(focus, legend=True, verbose=True)
    told = "".join(printed(part, 80) for part in of_sheet(sheet_of(result, focus), 80, everything))
    body = [line for line in told.splitlines() if line]
    assert [line for line in golden(name).splitlines() if line and line not in body] == []


def test_a_head_opens_with_its_answer_and_its_text_and_ends_with_its_proof() -> None:
    head = made.head(causal=True)
    for focus in (WHOLE, Focus("scaled"), Focus(queries=(3,))):
        lines = shown(head, 80, focus).splitlines()
        assert "L3 H11" in lines[0]
        assert "“the cat sat on the mat because it was tired .”" in lines[:5]
        assert "✓ certified: recomputed, equal to the model's · bert-base-uncased 86b5e093" in "\n".join(
            lines
        )
        assert not any("sha256" in line or "takeover" in line for line in lines)


def test_what_is_quiet_is_the_answer_and_the_proof_and_verbose_pins_the_numbers_down() -> None:
    head = made.head()
    brief, usual, full, legend = (
        shown(head, 80, Focus(**each)) for each in ({"brief": True}, {}, {"verbose": True}, {"legend": True})
    )
    assert len(brief.splitlines()) <= 6
    assert brief.splitlines()[0] == usual.splitlines()[0]
    assert "sha256" in full or "revision" in full
    assert "takeover" in full
    assert "takeover" not in usual + legend
    assert "not that attention explains its answer" in " ".join(legend.split())
    assert "not that attention explains its answer" not in " ".join(usual.split())


def test_a_query_is_shown_as_bars_and_a_stage_as_its_numbers() -> None:
    head = made.head()
    whole, bars, scores = (shown(head, 80, each) for each in (WHOLE, Focus(queries=(2,)), Focus("scores")))
    assert len({whole, bars, scores}) == 3
    assert "query 2 cat" in bars
    assert "before the scale" in scores


def test_a_prediction_stands_in_the_report_where_there_is_one() -> None:
    head = made.head()
    without = shown(made_reports.report(head))
    predicted = shown(made_reports.report(head, prediction=made_reports.masked(head, [4])))
    assert "princess" in predicted
    assert "princess" not in without


def test_decimals_are_those_of_a_worked_example() -> None:
    example = EVERY["Worked"]
    assert shown(example, 80, Focus(decimals=2)) != shown(example, 80, Focus(decimals=6))


def test_the_picture_is_of_what_is_looked_at() -> None:
    head, projection = made.head(), made.projection()
    assert figure_of(head, Focus("q")).get_size_inches()[0] != figure_of(head).get_size_inches()[0]
    assert len(figure_of(projection, Focus(queries=(1, 2))).axes) == 2


def test_the_verdict_of_several_heads_is_the_worst() -> None:
    several: Overview = made.overview(2, 3, verdicts={(1, 2): Verdict.PARTIAL, (0, 1): Verdict.FAILED})
    assert several.verdict is Verdict.FAILED
    assert made.overview(2, 3, verdicts={(1, 2): Verdict.PARTIAL}).verdict is Verdict.PARTIAL


def test_a_focus_is_found_by_the_text_or_position_of_tokens() -> None:
    projection = made.projection()
    assert focus_on(projection, query="cat", key=-1) == Focus(queries=(2,), key=12)
    assert focus_on(made_every.terms(), query=4, key="mat") == Focus(queries=(4,), key=6)
    assert focus_on(made.head(), show="scaled") == Focus("scaled")
    assert focus_on(cases_media.picture_head()) == WHOLE


@pytest.mark.parametrize(
    ("name", "asked", "message"),
    [
        ("HeadAttention", {"query": "dog"}, "no token 'dog' in the input"),
        ("HeadAttention", {"query": "the"}, "token 'the' stands 2 times: choose one of the@1, the@5"),
        ("HeadAttention", {"query": 13}, "no token 13 in the input: positions 0-12"),
        ("HeadAttention", {"query": "cat", "show": "scores"}, "leave show scores out"),
        ("HeadAttention", {"query": "cat", "key": "mat", "show": "q"}, "leave key out"),
        ("HeadAttention", {"show": "values"}, "nothing of a head is called 'values': weights, scores"),
        ("HeadTerms", {"key": "mat"}, "name a query"),
        ("HeadView", {"show": "q"}, "words and special tokens are about weights"),
        ("HeadWeights", {"show": "v"}, "only weights of this head: leave show v out"),
        ("Overview", {"query": "cat"}, "need one head"),
        ("Overview", {"show": "q"}, "show needs one head"),
        ("Prediction", {"query": "cat"}, "need one head"),
    ],
)
def test_what_a_result_does_not_have_is_one_line(name: str, asked: dict, message: str) -> None:
    with pytest.raises(InputError) as error:
        focus_on(EVERY[name], **asked)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
