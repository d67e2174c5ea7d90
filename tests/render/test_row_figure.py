"""The picture of one query: bars, a strip of a long text, the matrix with row and key marked."""

import re
from dataclasses import replace
from itertools import pairwise

import made_results as made
import numpy as np
import pytest
from cases_head import row
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from attnscope.errors import InputError
from attnscope.render.figure import figure_bytes, figure_of
from attnscope.render.focus import Focus, focus_on
from attnscope.render.kit.palette import CHOSEN
from attnscope.render.kit.typesetting import drawing
from attnscope.render.plot.row import MOST_STRONGEST
from attnscope.render.sheets import sheet_of
from attnscope.results import HeadAttention
from attnscope.vocabulary import Scaling

LONG = [f"w{i}" for i in range(90)]


def every_axes(figure: Figure) -> list[Axes]:
    return [each for each in figure.findobj(Axes) if isinstance(each, Axes)]


def bars(figure: Figure) -> tuple[Axes, list[float], list[str]]:
    """The Axes with bars, their heights and the labels below them."""
    (axes,) = (
        each for each in every_axes(figure) if any(isinstance(c, BarContainer) for c in each.containers)
    )
    heights = [bar.get_height() for bar in axes.containers[0]]  # type: ignore[union-attr]
    return axes, heights, [label.get_text() for label in axes.get_xticklabels()]


def meshes(figure: Figure) -> list[QuadMesh]:
    found = [mesh for axes in every_axes(figure) for mesh in axes.collections if isinstance(mesh, QuadMesh)]
    return [mesh for mesh in found if mesh.axes is not None and mesh.axes.get_label() != "<colorbar>"]


def told(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.findobj(Text) if isinstance(text, Text))


def outlined(figure: Figure) -> dict[str, tuple[float, float, float, float]]:
    marks = [each for axes in every_axes(figure) for each in axes.patches if isinstance(each, Rectangle)]
    return {
        str(each.get_label()): each.get_bbox().bounds
        for each in marks
        if each.get_label() in ("query", "key")
    }


def assert_on_the_page(figure: Figure) -> None:
    with drawing():
        figure.draw_without_rendering()
        for text in figure.findobj(Text):
            assert isinstance(text, Text)
            if text.get_visible() and text.get_text().strip():
                box = text.get_window_extent()
                assert box.x0 >= 0, text.get_text()
                assert box.y0 >= 0, text.get_text()
                assert box.x1 <= figure.bbox.x1, text.get_text()
                assert box.y1 <= figure.bbox.y1, text.get_text()


def cross() -> HeadAttention:
    return made.head(made.DOOR[:6], ["x", "yes", "zebra", "w"])


def test_another_query_is_another_picture_and_neither_is_that_of_the_whole() -> None:
    result = cross()
    drawn = [figure_bytes(figure_of(result, Focus("weights", query)), "png") for query in ((), (1,), (4,))]
    assert len(set(drawn)) == 3
    assert drawn[1] == figure_bytes(figure_of(result, Focus("weights", (1,))), "png")


def test_a_row_is_a_bar_for_each_key_in_the_order_of_the_text() -> None:
    result = cross()
    figure = figure_of(result, Focus("weights", (4,)))
    _, heights, labels = bars(figure)
    assert labels == ["x", "yes", "zebra", "w"]
    np.testing.assert_allclose(heights, result.weights[4])
    assert f"query 4 {result.query_tokens.names[4]}" in told(figure)
    strongest = f"{result.weights[4, 0]:.2f}".removeprefix("0")
    assert int(result.weights[4].argmax()) == 0
    asked = f"the decoder reads “{result.query_tokens.names[4]}”, L3 H11 gives “x” {strongest} of its"
    assert asked in " ".join(told(figure).split())
    assert not outlined(figure)
    assert_on_the_page(figure)


def test_masked_keys_are_hatched_and_have_no_bar() -> None:
    result = made.head(causal=True)
    axes, heights, _ = bars(figure_of(result, Focus("weights", (3,))))
    assert heights[4:] == [0.0] * 9
    hatched = [each.get_x() for each in axes.patches if isinstance(each, Rectangle) and each.get_hatch()]
    assert hatched == [float(key) for key in range(4, 13)]


def test_numbers_above_bars_do_not_overlap_where_nearly_all_weight_lies_on_one_key() -> None:
    result = made.head(LONG, [*LONG, "last"])
    weights = np.full_like(result.weights, 1e-5)
    weights[:, 4] = 1 - weights[:, 1:].sum(axis=1)
    figure = figure_of(replace(result, weights=weights), Focus("weights", (7,)))
    axes, heights, _ = bars(figure)
    with drawing():
        figure.draw_without_rendering()
        boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == len(heights) == MOST_STRONGEST
    assert [text.get_text() for text in axes.texts][1:] == ["<.001"] * (MOST_STRONGEST - 1)
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_a_query_that_may_look_at_nothing_says_so() -> None:
    figure = figure_of(made.head(empty=[2]), Focus("weights", (2,)))
    assert "no valid key" in told(figure)


def test_with_a_key_the_row_stands_under_the_matrix_in_which_both_are_marked() -> None:
    result = cross()
    figure = figure_of(result, Focus("weights", (4,), 2))
    np.testing.assert_array_equal(np.asarray(meshes(figure)[0].get_array()), result.weights)
    assert outlined(figure) == {"query": (0, 4, 4, 1), "key": (2, 0, 1, 6)}
    axes, heights, labels = bars(figure)
    np.testing.assert_allclose(heights, result.weights[4])
    coloured = [label.get_text() for label in axes.get_xticklabels() if label.get_color() == CHOSEN]
    assert coloured == ["zebra"]
    rank = 1 + int((result.weights[4] > result.weights[4, 2]).sum())
    weight = f"{result.weights[4, 2]:.2f}".removeprefix("0")
    assert f" “zebra” gets {weight}, number {rank} of 4 keys." in " ".join(told(figure).split())
    heat = meshes(figure)[0].axes
    assert heat is not None
    assert heat.get_window_extent().x0 == pytest.approx(axes.get_window_extent().x0)
    assert heat.get_window_extent().x1 == pytest.approx(axes.get_window_extent().x1)
    assert len(labels) == 4
    assert_on_the_page(figure)


def test_of_a_long_text_the_strongest_keys_are_bars_and_the_whole_row_is_a_strip() -> None:
    result = made.head(LONG, [*LONG, "last"])
    figure = figure_of(result, Focus("weights", (7,)))
    _, heights, labels = bars(figure)
    strongest = np.argsort(-result.weights[7], kind="stable")[:MOST_STRONGEST]
    np.testing.assert_allclose(heights, result.weights[7, strongest])
    assert labels == [f"{key} {result.key_tokens.names[key]}" for key in strongest]
    (strip,) = meshes(figure)
    np.testing.assert_array_equal(np.asarray(strip.get_array()), result.weights[7:8])
    rest = 1 - result.weights[7, strongest].sum()
    assert f"{91 - MOST_STRONGEST} more keys share {rest:.2f}".replace(" 0.", " .") in told(figure)
    assert_on_the_page(figure)


def test_a_weak_key_of_a_long_text_has_its_bar_when_it_is_asked_for() -> None:
    result = made.head(LONG, [*LONG, "last"])
    weakest = int(np.argmin(result.weights[7]))
    _, heights, labels = bars(figure_of(result, Focus("weights", (7,), weakest)))
    assert labels[-1] == f"{weakest} {result.key_tokens.names[weakest]}"
    assert heights[-1] == pytest.approx(result.weights[7, weakest])
    assert len(labels) == MOST_STRONGEST + 1


def test_the_library_takes_the_same_way_on_a_page_and_on_an_axes() -> None:
    result = cross()
    figure = result.plot(query=4)
    assert isinstance(figure, Figure)
    assert figure_bytes(figure, "png") == figure_bytes(figure_of(result, Focus("weights", (4,))), "png")
    own = Figure().add_subplot()
    assert result.plot(own, query=4, key="yes") is own
    np.testing.assert_allclose([bar.get_height() for bar in own.containers[0]], result.weights[4])  # type: ignore[union-attr]
    with pytest.raises(InputError, match="a key goes with a query"):
        result.plot(key=2)


def test_a_scale_is_asked_for_by_name_and_refused_where_it_has_no_meaning() -> None:
    result = cross()
    assert focus_on(result, scale="row").scale is Scaling.ROW
    assert figure_bytes(figure_of(result, focus_on(result, scale="log")), "png") != figure_bytes(
        figure_of(result, focus_on(result, scale="1")), "png"
    )
    for refused in (
        lambda: focus_on(result, "scores", scale="log"),
        lambda: focus_on(made.projection(), scale="max"),
    ):
        with pytest.raises(InputError, match="a scale is that of the weights of one head: leave scale"):
            refused()
    with pytest.raises(InputError, match="no scale is called 'loud'"):
        focus_on(result, scale="loud")


def test_on_a_terminal_the_key_is_listed_however_weak_and_its_rank_is_told() -> None:
    result = made.head(LONG, [*LONG, "last"])
    weakest = int(np.argmin(result.weights[7]))
    name = f"{weakest} {result.key_tokens.names[weakest]}"
    token = result.key_tokens.names[weakest]
    said = result.text(query=7, key=weakest, width=80)
    assert f" “{token}” gets <.001, number 91 of 91 keys." in " ".join(said.split())
    assert any(line.strip().startswith(name) for line in said.splitlines()[:40])
    assert f"{91 - MOST_STRONGEST - 1} more keys" in said
    assert "number" not in result.text(query=7, width=80)
    masked = made.head(causal=True).text(query=2, key=10, width=80)
    assert " “tired” is masked." in " ".join(masked.split())
    assert "--from cat --to cat" in masked, "the next command asks for a key that may be looked at"


@pytest.mark.parametrize(
    ("weights", "key", "numbers"),
    [
        ([0.0031, 0.0078, 0.0062], None, [".0078", ".0062"]),
        ([0.0031, 0.98, 0.004], None, [".98", ".01"]),
        ([0.02, 0.9, 0.0], None, [".90", ".02"]),
        ([0.21, 0.6, 0.1], None, [".60", ".21", ".10"]),
        ([0.0031, 0.0078, 0.0062], 0, [".0078", ".0062", ".0031", "3", "3"]),
        ([0.0031, 0.9, 0.004], 0, [".90", ".01", "<.01", "3", "3"]),
    ],
)
def test_what_a_query_gives_is_told_in_digits_alike(
    weights: list[float], key: int | None, numbers: list[str]
) -> None:
    make, focus = row(*weights, key=key)
    told = sheet_of(make(), focus).answer.split(" gives ")[1]
    assert re.findall(r"<?\.?\d+", told) == numbers
