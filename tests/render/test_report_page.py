"""The page of a report: what is drawn is what was computed, all of it on the page, no text over another."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import made_reports as reports
import made_results as made
import numpy as np
import pytest
from cases_media import frame_tokens
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from attnscope.render.figure import figure_bytes
from attnscope.render.kit import numbers
from attnscope.render.kit.typesetting import drawing
from attnscope.render.look import Look, dressed
from attnscope.render.report.page import report_figure, report_pages
from attnscope.results import Report, Verdict


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
    "5 tokens": lambda: of_length(5),
    "11 tokens": lambda: of_length(11),
    "30 tokens": lambda: of_length(30),
    "60 tokens": lambda: of_length(60),
    "causal": lambda: causal(12),
    "cross, few queries": lambda: cross(4, 33),
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


@pytest.mark.parametrize(
    "name", ["1 token", "11 tokens", "60 tokens", "causal", "cross, few keys", "no valid key", "sink"]
)
def test_the_same_holds_with_one_panel_a_page(name: str) -> None:
    for figure in report_pages(MADE[name]()):
        assert_legible(figure)
        assert_apart(figure)


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


def test_masked_cells_are_not_drawn() -> None:
    result = causal(9)
    for axes in axes_with(report_figure(result), QuadMesh):
        np.testing.assert_array_equal(np.ma.getmaskarray(mesh(axes).get_array()), ~result.head.allowed)


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


def test_keys_that_pull_back_are_hollow_and_on_the_other_side() -> None:
    drawn = bars(report_figure(of_length(11)), "share")
    back = [bar for bar in drawn if bar.get_width() < 0]
    assert 0 < len(back) < len(drawn)
    assert {bar.get_facecolor() for bar in back}.isdisjoint(
        {bar.get_facecolor() for bar in drawn if bar.get_width() > 0}
    )


def test_of_many_keys_the_strongest_are_drawn_and_the_rest_together() -> None:
    result = of_length(30)
    figure = report_figure(result)
    drawn = [bar.get_width() for bar in bars(figure, "share")]
    assert sum(drawn) == pytest.approx(1)
    assert len(drawn) == 9
    strongest = np.sort(np.abs(result.contributions))[-8:]
    assert sorted(np.abs(drawn[:-1])) == pytest.approx(strongest)
    assert "and 22 more keys" in told(figure)


def test_every_number_beside_a_bar_is_its_share_and_its_weight() -> None:
    result = of_length(5)
    texts = told(report_figure(result))
    for key in range(5):
        assert numbers.percent(result.contributions[key]) in texts
        assert f"{result.head.weights[2, key]:.3f}".lstrip("0") in texts


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


def test_of_cross_attention_both_texts_are_shown() -> None:
    figure = report_figure(cross(5, 9))
    words = [text.get_text() for text in figure.texts]
    assert words.index("key") < words.index("query")
    assert words.count("brown") == 2


def test_keys_that_are_frames_of_a_sound_are_no_text_and_have_no_line_in_the_heading() -> None:
    head = replace(reports.cross(5, 9), key_tokens=frame_tokens(9))
    figure = report_figure(reports.report(head, 3, reports.written(head, "la porte est ouverte")))
    heading = [text.get_text() for text in figure.texts]
    assert "query" in heading
    assert "key" not in heading
    assert heading.count("brown") == 1


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


@pytest.mark.parametrize(
    ("result", "title"),
    [
        (lambda: causal(9), "the model goes on with"),
        (lambda: cross(6, 4), "after 4 fox the model writes"),
        (lambda: reports.report(made.head(), 4, reports.masked(made.head(), [], 0.75)), "the model says"),
    ],
)
def test_every_kind_of_prediction_has_its_words(result: Callable[[], Report], title: str) -> None:
    assert title in told(report_figure(result()))


def test_without_a_prediction_the_page_is_shorter_and_has_no_hole() -> None:
    head = made.head()
    bare, full = (report_figure(reports.report(head, 4, said)) for said in (None, reports.masked(head, [4])))
    assert bare.get_figheight() < full.get_figheight()
    assert not [text for text in told(bare) if text.startswith("the model")]


def test_the_page_is_landscape() -> None:
    for name in ("1 token", "5 tokens", "11 tokens", "30 tokens", "60 tokens"):
        width, height = page(name).get_size_inches()
        assert 1.3 < width / height < 2


def test_the_heading_names_model_head_and_kind_and_the_verdict() -> None:
    texts = told(report_figure(reports.report(made.head(demo=True))))
    assert "bundled demo model · L3 H11 · encoder self-attention" in texts
    assert "✓ certified" in texts
    assert "✗ FAILED" in told(report_figure(unsettled()))


def test_the_small_print_has_certificate_map_and_provenance() -> None:
    with dressed(Look(caption="full")):
        shown = "\n".join(told(report_figure(causal(9))))
    for words in (
        "tolerated 5.2e-7", "hatched: masked", "cosine distance", "perplexity 5", "settled after 1,300",
        "86b5e09344", "float32", "kernel eager", "torch 2.9.0", "distances in the plane are not attention",
    ):  # fmt: skip
        assert words in shown


def test_a_map_that_did_not_settle_says_so_in_its_title() -> None:
    assert "t-SNE map, not settled: query 3 brown" in told(report_figure(unsettled()))


def test_the_statistics_are_on_the_page() -> None:
    texts = told(report_figure(of_length(11)))
    for words in ("entropy", "1.25", ".62", ".12", "trustworthiness", ".92", "−.61"):
        assert words in texts
    assert "nats, 50 % of the 2.50 of even weights" in texts
    assert "weight on the previous token" in texts
    assert "even weights give .07" in texts


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


def test_pdf_pages_have_no_date_and_other_formats_take_one_figure() -> None:
    pages = report_pages(of_length(5))
    assert b"CreationDate" not in figure_bytes(pages, "pdf")
    assert figure_bytes(pages[0], "svg").startswith(b"<?xml")
