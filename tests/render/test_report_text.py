"""A report in the terminal: golden text, and the numbers behind it."""

import math
from dataclasses import replace

import made_reports as reports
import made_results as made
import numpy as np
import pytest
from golden_text import IN_FULL, assert_golden, printed
from rich.console import Group, RenderableType

from attnscope.render.report.header import answer
from attnscope.render.report.panels import scores_words
from attnscope.render.sheets import sheet_of
from attnscope.render.sheets.report import facts, shares, shares_remark
from attnscope.render.terminal.sheet import screen
from attnscope.results import Kind, Report
from attnscope.results.report import Case


def report_lines(result: Report, width: int) -> RenderableType:
    return Group(*screen(result, width, IN_FULL))


REPORTS = {
    "report": lambda: reports.report(),
    "report_of_many_keys": lambda: reports.report(made.head(reports.words(40)), 33),
    "report_with_sink": lambda: reports.report(reports.with_sink(reports.causal(9)), 6),
    "report_without_keys": lambda: reports.report(made.head(empty=[4]), 4),
}


@pytest.mark.parametrize("width", [60, 100])
@pytest.mark.parametrize("name", REPORTS)
def test_the_terminal_shows(name: str, width: int) -> None:
    text = printed(report_lines(REPORTS[name](), width), width)
    assert max(map(len, text.splitlines())) <= width
    assert_golden(f"{name}.{width}", text)


def test_shares_are_listed_by_falling_share_with_weight_and_sum() -> None:
    result = reports.report(reports.cross(5, 9), 2)
    listed = shares(result, 9)
    assert [each.share for each in listed] == sorted(result.contributions, reverse=True)
    for each in listed:
        assert each.share == result.contributions[each.key]
        assert each.weight == result.head.weights[2, each.key]
        assert each.name == f"{each.key} {result.head.key_tokens.names[each.key]}"


def test_of_more_keys_the_strongest_either_way_are_listed_and_the_rest_added_up() -> None:
    result = reports.report(
        contributions=np.array([0.01, -0.5, 0.02, 0.9, 0.03, 0.04, 0.3, 0.05, 0.1, 0, 0, 0, 0.05])
    )
    listed = shares(result, 4)
    assert [each.key for each in listed] == [3, 6, 1, None]
    assert listed[-1].name == "and 10 more keys"
    assert listed[-1].share == pytest.approx(0.3)
    assert listed[-1].weight == pytest.approx(result.head.weights[4, [0, 2, 4, 5, 7, 8, 9, 10, 11, 12]].sum())


def test_shares_above_the_whole_are_printed_in_full() -> None:
    given = np.array([12.345, -11.5, 0.155, *[0.0] * 10])
    lines = printed(report_lines(reports.report(contributions=given), 60), 60).splitlines()
    first = 1 + next(i for i, line in enumerate(lines) if line.split()[:2] == ["key", "weight"])
    assert [line.split()[3:5] for line in lines[first : first + 3]] == [
        ["1,234", "%"],
        ["16", "%"],
        ["0", "%"],
    ]
    assert any("−1,150 %" in line for line in lines)


def test_where_a_head_looks_is_not_said_to_make_what_the_model_answers() -> None:
    head = made.head()
    for prediction in (
        reports.masked(head, [2, 4]),
        reports.following(head),
        reports.written(head, "la porte"),
    ):
        told = sheet_of(reports.report(head, 4, prediction)).answer
        joining = (" so ", " because it", "therefore", "hence", "thus", "which is why", "explains")
        assert not any(word in told.lower() for word in joining), "the two are not joined"


def test_a_first_screen_is_the_keys_and_the_figures_of_the_head_stand_on_the_page_and_with_v() -> None:
    result = reports.report(made.head(reports.words(40)), 33)
    usual, whole = sheet_of(result), sheet_of(result, IN_FULL)
    assert len(result.text(width=80).splitlines()) <= 30
    assert [each.title for each in usual.every] == ["from “brown”@33"]
    assert "the head in numbers" in [each.title for each in usual.more]
    assert "the head in numbers" in [each.title for each in whole.every]


def test_what_follows_is_the_ablation_where_the_model_answers_and_else_the_control() -> None:
    head = made.head()
    answered = sheet_of(reports.report(head, 4, reports.masked(head, [4]))).next
    silent = sheet_of(reports.report(head, 4)).next
    assert answered is not None
    assert silent is not None
    assert answered.command.startswith("attnscope ablate ")
    assert answered.command.endswith("--layer 3 --head 11")
    assert silent.command.endswith("--from on --to because")


def test_masked_keys_are_not_listed() -> None:
    assert {each.key for each in shares(reports.report(reports.causal(9), 3), 9)} == {0, 1, 2, 3}


def test_a_zero_output_is_told_from_a_query_without_keys() -> None:
    zero = reports.report(contributions=np.full(13, np.nan))
    empty = reports.report(made.head(empty=[4]), 4)
    assert shares(zero, 9) == shares(empty, 9) == []
    assert (zero.case, empty.case) == (Case.NO_OUTPUT, Case.NO_KEY)
    assert shares_remark(zero) != shares_remark(empty)


def told(result: Report, name: str) -> tuple[str, str]:
    return next((fact.value, fact.meaning) for fact in facts(result) if fact.name == name)


def test_entropy_is_held_against_the_most_that_is_possible() -> None:
    # queries of a causal head see 1, 2, 3 keys: ln(1 * 2 * 3) / 3 on average
    even = math.log(6) / 3
    result = reports.report(reports.causal(3), 2, statistics=(reports.statistic("entropy", 0.3, even),))
    assert told(result, "entropy") == (".30", "nats, 50 % of the .60 of even weights")
    single = reports.report(made.head(["a"]), 0, statistics=(reports.statistic("entropy", 0.0, 0.0),))
    assert told(single, "entropy")[1].startswith("nats; no query ")


def test_a_measure_that_is_new_is_shown_with_its_unit() -> None:
    result = reports.report(statistics=(reports.statistic("distance", 2.5, 4.25),))
    assert told(result, "distance") == ("2.50", "tokens; even weights give 4.25")
    without = replace(result.statistics[0], even_attention=None)
    assert told(replace(result, statistics=(without,)), "distance") == ("2.50", "tokens")


def test_of_several_measures_without_a_meaning_the_first_says_why() -> None:
    nan = float("nan")
    listed = (
        reports.statistic("self", nan, nan, "no common tokens"),
        reports.statistic("confidence", 0.5, 0.25),
        reports.statistic("next", nan, nan, "no common tokens"),
    )
    result = reports.report(statistics=listed)
    assert told(result, "weight on itself") == ("-", "no common tokens")
    assert told(result, "largest weight") == (".50", "even weights give .25")
    assert told(result, "weight on the next token") == ("-", "likewise")


def test_what_is_undefined_is_not_shown_as_a_number() -> None:
    nan = float("nan")
    head = made.head(empty=range(13))
    projection = made.projection(head, trustworthiness=nan, correlation=nan)
    result = reports.report(head, projection=projection, statistics=(reports.statistic("entropy", nan),))
    assert [fact.value for fact in facts(result)] == ["-", "-", "-"]


def test_trust_and_correlation_are_those_of_the_map() -> None:
    result = reports.report(projection=made.projection(trustworthiness=0.876, neighbours=1, correlation=0.45))
    assert told(result, "trustworthiness") == (".88", "of the map, over 1 neighbour")
    assert told(result, "distance and score") == ("+.45", "over all pairs near ones mostly score low")


def test_the_answer_is_about_the_query_where_it_is_a_mask_and_else_about_the_first() -> None:
    head = made.head()
    both = reports.masked(head, [2, 6])
    for query, title, word in (
        (6, "the model fills 6 mat with", "princess'"),
        (3, "the model fills 2 cat with", "princess"),
    ):
        found = answer(reports.report(head, query, both))
        assert found is not None
        assert (found.title, found.guesses[0].text) == (title, word)
    assert answer(reports.report(head, 3)) is None


def test_an_encoder_of_a_model_that_writes_shows_the_text_and_a_decoder_the_next_words() -> None:
    encoder, decoder = made.head(kind=Kind.ENCODER), reports.cross(5, 9)
    whole = answer(reports.report(encoder, 4, reports.written(encoder, "la \x1bporte")))
    after = answer(reports.report(decoder, 2, reports.written(decoder, "la porte")))
    assert whole is not None
    assert after is not None
    assert (whole.title, whole.text, len(whole.guesses)) == ("the model writes", "“la \\x1bporte”", 0)
    assert (after.title, after.text, len(after.guesses)) == ("after 2 quick the model writes", "", 5)


def test_a_verdict_on_a_pair_is_told_with_or_without_words() -> None:
    head = made.head()
    alone = answer(reports.report(head, 4, reports.masked(head, [], 0.75)))
    beside = answer(reports.report(head, 4, reports.masked(head, [4], 0.75)))
    for found, title, count in ((alone, "the model says", 0), (beside, "the model fills 4 on with", 5)):
        assert found is not None
        assert (found.title, len(found.guesses)) == (title, count)
        assert found.text == "the second text follows from the first with 75.0 %"


def test_scores_are_said_to_be_scaled_capped_or_added_to_as_they_are() -> None:
    plain = made.head(causal=True)
    biased = made.head(causal=True, scaled=plain.scaled + 0.25)
    capped = made.head(softcap=50.0, scaled=50 * np.tanh(plain.scores / 50))
    assert scores_words(plain) == "scaled scores, q·k x .3536"
    assert scores_words(biased) == "scaled scores, q·k x .3536, and what the model adds to them"
    assert scores_words(capped) == "scaled scores, q·k x .3536, capped at ±50"
