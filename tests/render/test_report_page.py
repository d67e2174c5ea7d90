"""A report as a page and in the terminal: what is shown is what was computed, no text over another."""

import math
import re
from collections.abc import Callable
from functools import cache

import made_reports as reports
import made_results as made
import numpy as np
import pytest
from golden_text import IN_FULL, assert_golden, printed
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from rich.console import Group, RenderableType

from attnscope.render.figure import figure_bytes
from attnscope.render.kit.typesetting import drawing
from attnscope.render.sheets import sheet_of
from attnscope.render.terminal.sheet import screen
from attnscope.results import Kind, Report, Verdict
from attnscope.verbs.report.drawing.header import answer
from attnscope.verbs.report.drawing.page import figure as report_figure
from attnscope.verbs.report.drawing.page import pages as report_pages
from attnscope.verbs.report.drawing.panels import scores_words
from attnscope.verbs.report.result import Case
from attnscope.verbs.report.sheet import facts, shares, shares_remark


def of_length(count: int) -> Report:
    """A report on a masked model's head with `count` tokens."""
    head = made.head(reports.words(count))
    query = count // 2
    return reports.report(head, query, reports.masked(head, [query]))


def cross(queries: int, keys: int) -> Report:
    head = reports.cross(queries, keys)
    return reports.report(head, queries - 2, reports.written(head, "la porte est ouverte"))


def causal(count: int) -> Report:
    head = reports.causal(count)
    return reports.report(head, count - 2, reports.following(head))


def all_in_one_place() -> Report:
    head, nan = made.head(), float("nan")
    queries, keys = np.zeros((len(head.q), 2)), np.zeros((len(head.k), 2))
    undefined = {"trustworthiness": nan, "correlation": nan, "iterations": 0, "neighbours": 0}
    return reports.report(head, projection=made.projection(head, queries=queries, keys=keys, **undefined))


def unsettled() -> Report:
    head = made.head(reports.words(9), verdict=Verdict.FAILED)
    return reports.report(head, 3, projection=made.projection(head, settled=False))


def with_sink() -> Report:
    head = reports.with_sink(reports.causal(14))
    return reports.report(head, 9, reports.following(head))


MADE: dict[str, Callable[[], Report]] = {
    "1 token": lambda: of_length(1),
    "11 tokens": lambda: of_length(11),
    "60 tokens": lambda: of_length(60),
    "causal": lambda: causal(12),
    "cross, few keys": lambda: cross(33, 4),
    "awkward": lambda: reports.report(made.head(made.AWKWARD), 2),
    "no valid key": lambda: reports.report(made.head(empty=[4]), 4),
    "sink": with_sink,
    "one place": all_in_one_place,
    "unsettled and failed": unsettled,
    "long tokens": lambda: reports.report(made.head(["internationalisation" * 4] * 7), 6),
}


@cache
def page(name: str) -> Figure:
    """The page of one of MADE, drawn once: whoever changes it draws one of their own."""
    return report_figure(MADE[name]())


def axes_with(figure: Figure, kind: type) -> list[Axes]:
    """The axes that hold an artist of `kind`, colour bars left out."""
    found = [axes for axes in figure.axes if any(isinstance(one, kind) for one in axes.collections)]
    return [axes for axes in found if not hasattr(axes, "_colorbar")]


def mesh(axes: Axes) -> QuadMesh:
    return next(one for one in axes.collections if isinstance(one, QuadMesh))


def bars(figure: Figure, label: str) -> list[Rectangle]:
    return next(
        list(container.patches)
        for axes in figure.axes
        for container in axes.containers
        if container.get_label() == label
    )


def axes_of(figure: Figure, label: str) -> Axes:
    return next(axes for axes in figure.axes if any(c.get_label() == label for c in axes.containers))


def told(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if isinstance(text, Text) and text.get_text()]


def placed(figure: Figure) -> tuple[list[str], np.ndarray]:
    """Every visible text, and its box in pixels: left, bottom, right, top."""
    with drawing():
        figure.draw_without_rendering()
        seen = [one for one in figure.findobj(Text) if isinstance(one, Text) and one.get_visible()]
        seen = [one for one in seen if one.get_text().strip()]
        boxes = np.array([one.get_window_extent().extents for one in seen])
    return [one.get_text() for one in seen], boxes


def assert_legible(figure: Figure) -> None:
    texts, boxes = placed(figure)
    page = figure.bbox
    for text, (left, bottom, right, top) in zip(texts, boxes, strict=True):
        assert page.x0 <= left, text
        assert page.y0 <= bottom, text
        assert right <= page.x1, text
        assert top <= page.y1, text
    wide = np.minimum(boxes[:, None, 2], boxes[:, 2]) - np.maximum(boxes[:, None, 0], boxes[:, 0])
    high = np.minimum(boxes[:, None, 3], boxes[:, 3]) - np.maximum(boxes[:, None, 1], boxes[:, 1])
    covered = np.triu(np.minimum(wide, high) > 2, k=1)
    assert not covered.any(), [(texts[i], texts[j]) for i, j in np.argwhere(covered)]


def assert_apart(figure: Figure) -> None:
    """No axes outside of the page, none over another."""
    boxes = np.array([axes.get_window_extent().extents for axes in figure.axes]).reshape(-1, 4)
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, 2:] <= figure.bbox.extents[2:]).all()
    for i, one in enumerate(boxes):
        for other in boxes[i + 1 :]:
            assert (np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2])).min() <= 0


@pytest.mark.parametrize("name", MADE)
def test_everything_is_on_the_page_and_no_text_covers_another(name: str) -> None:
    assert_legible(page(name))
    assert_apart(page(name))


def test_two_texts_over_each_other_would_be_noticed() -> None:
    figure = report_figure(of_length(5))
    figure.text(0.5, 0.5, "somewhere")
    figure.text(0.501, 0.5, "elsewhere")
    with pytest.raises(AssertionError):
        assert_legible(figure)


def test_scores_and_weights_stand_side_by_side_with_one_set_of_row_labels() -> None:
    result = cross(5, 9)
    figure = report_figure(result)
    scores, weights = axes_with(figure, QuadMesh)
    np.testing.assert_array_equal(mesh(scores).get_array(), result.head.scaled)
    np.testing.assert_array_equal(mesh(weights).get_array(), result.head.weights)
    assert mesh(weights).get_clim() == (0, 1)
    labels = [label.get_text() for label in scores.get_yticklabels()]
    assert labels == list(result.head.query_tokens.labels)
    assert not weights.get_yticklabels()
    first, second = scores.get_position(), weights.get_position()
    assert (first.y0, first.y1) == pytest.approx((second.y0, second.y1))
    assert first.x1 < second.x0


def test_the_row_of_the_query_is_outlined_in_both_heat_maps_and_its_label_stands_out() -> None:
    figure = report_figure(cross(5, 9))
    for axes in axes_with(figure, QuadMesh):
        (outline,) = [patch for patch in axes.patches if patch.get_label() == "query"]
        assert outline.get_bbox().bounds == (0, 3, 9, 1)
    labels = axes_with(figure, QuadMesh)[0].get_yticklabels()
    assert [label.get_weight() == "bold" for label in labels] == [False, False, False, True, False]


def test_bars_are_the_shares_by_falling_share_and_dots_the_weights() -> None:
    result = cross(5, 7)
    figure = report_figure(result)
    order = np.argsort(-result.contributions)
    drawn = [bar.get_width() for bar in bars(figure, "share")]
    assert drawn == pytest.approx(result.contributions[order])
    axes = axes_of(figure, "share")
    (dots,) = [line for line in axes.lines if line.get_label() == "weight"]
    assert dots.get_xdata() == pytest.approx(result.head.weights[3, order])
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        f"{key} {result.head.key_tokens.names[key]}" for key in order
    ]


def test_shares_sum_to_1_where_weights_do_not() -> None:
    result = with_sink()
    figure = report_figure(result)
    assert sum(bar.get_width() for bar in bars(figure, "share")) == pytest.approx(1)
    (dots,) = [line for line in axes_of(figure, "share").lines if line.get_label() == "weight"]
    rest = 1 - sum(dots.get_xdata())
    assert rest > 0.005
    sink = f"the sink takes {rest:.2f} of the weight and adds nothing".replace("0.", ".")
    assert f"4 keys masked · {sink}" in told(figure)


def test_a_query_without_keys_has_no_bars_and_says_so() -> None:
    figure = report_figure(MADE["no valid key"]())
    assert not any(axes.containers for axes in figure.axes)
    assert any("no valid key" in each for each in told(figure))


def test_the_query_is_marked_in_the_text_and_the_text_is_whole() -> None:
    head = made.head(["[CLS]", "the", "door", "opens", "the", "door", "[SEP]"])
    texts = [text for text in report_figure(reports.report(head, 5)).texts if text.get_size() > 14]
    assert " ".join(text.get_text() for text in texts) == "the door opens the door"
    assert [text.get_bbox_patch() is not None for text in texts] == [False, False, False, False, True]


@pytest.mark.parametrize(("query", "place"), [(0, 0), (3, 2)])
def test_a_query_that_is_not_in_the_text_stands_where_the_model_reads_it(query: int, place: int) -> None:
    head = made.head(["[CLS]", "the", "door", "[SEP]"])
    texts = [text for text in report_figure(reports.report(head, query)).texts if text.get_size() > 14]
    assert len(texts) == 3
    assert texts[place].get_text() == head.query_tokens.names[query]
    assert texts[place].get_bbox_patch() is not None


def test_the_prediction_is_that_of_the_query_with_its_probabilities_as_bars() -> None:
    head = made.head(made.DOOR)
    figure = report_figure(reports.report(head, 4, reports.masked(head, [2, 4])))
    assert [bar.get_width() for bar in bars(figure, "probability")] == pytest.approx(
        [chance * bars(figure, "probability")[0].get_width() / 0.5 for chance in reports.CHANCES]
    )
    texts = told(figure)
    assert "the model fills 4 on with" in texts
    for word, chance in zip(reports.WORDS, ("50.0 %", "25.0 %", "12.5 %", "6.2 %", "3.1 %"), strict=True):
        assert f"{word}'" in texts
        assert chance in texts


def test_a_pdf_has_one_panel_a_page_and_every_page_the_heading() -> None:
    result = of_length(11)
    pages = report_pages(result)
    data = figure_bytes(pages, "pdf")
    assert len(re.findall(rb"/Type /Page\b", data)) == len(pages) == 6
    assert len({tuple(page.get_size_inches()) for page in pages}) == 1
    titles = ["the model fills", "what enters", "weights:", "t-SNE map", "how each key's", "the head in"]
    for page, title in zip(pages, titles, strict=True):
        texts = told(page)
        assert "bert-base-uncased · L3 H11 · encoder self-attention" in texts
        assert any(text.startswith("✓ certified") for text in texts)
        assert (
            [text for text in texts if text.startswith(tuple(titles))]
            == [text for text in texts if text.startswith(title)]
            != []
        )


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


def test_of_more_keys_the_strongest_either_way_are_listed_and_the_rest_added_up() -> None:
    result = reports.report(
        contributions=np.array([0.01, -0.5, 0.02, 0.9, 0.03, 0.04, 0.3, 0.05, 0.1, 0, 0, 0, 0.05])
    )
    listed = shares(result, 4)
    assert [each.key for each in listed] == [3, 6, 1, None]
    assert listed[-1].name == "and 10 more keys"
    assert listed[-1].share == pytest.approx(0.3)
    assert listed[-1].weight == pytest.approx(result.head.weights[4, [0, 2, 4, 5, 7, 8, 9, 10, 11, 12]].sum())


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


def test_a_zero_output_is_told_from_a_query_without_keys() -> None:
    zero = reports.report(contributions=np.full(13, np.nan))
    empty = reports.report(made.head(empty=[4]), 4)
    assert shares(zero, 9) == shares(empty, 9) == []
    assert (zero.case, empty.case) == (Case.NO_OUTPUT, Case.NO_KEY)
    assert shares_remark(zero) != shares_remark(empty)


def fact(result: Report, name: str) -> tuple[str, str]:
    return next((each.value, each.meaning) for each in facts(result) if each.name == name)


def test_entropy_is_held_against_the_most_that_is_possible() -> None:
    # queries of a causal head see 1, 2, 3 keys: ln(1 * 2 * 3) / 3 on average
    even = math.log(6) / 3
    result = reports.report(reports.causal(3), 2, statistics=(reports.statistic("entropy", 0.3, even),))
    assert fact(result, "entropy") == (".30", "nats, 50 % of the .60 of even weights")
    single = reports.report(made.head(["a"]), 0, statistics=(reports.statistic("entropy", 0.0, 0.0),))
    assert fact(single, "entropy")[1].startswith("nats; no query ")


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
