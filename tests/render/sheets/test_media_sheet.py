"""Attention over a picture or a sound, and heads in small: weights in place, on one scale."""

import io
import itertools
import re
from dataclasses import replace
from typing import Any

import cases_media as made
import cases_thumbnails
import numpy as np
import pytest
from golden_text import IN_FULL, body, printed
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from PIL import Image
from rich.console import Console

from attnscope.render.figure import figure_bytes, figure_of
from attnscope.render.kit import numbers
from attnscope.render.kit.palette import sequential
from attnscope.render.kit.typesetting import drawing
from attnscope.render.plot.grid import draw_weights as draw
from attnscope.render.plot.media import outlines
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.heads import HeadMatrices
from attnscope.render.sheets import Focus, sheet_of
from attnscope.render.sheets.thumbnails import common_scale
from attnscope.render.sheets.thumbnails import sheet as thumbnails
from attnscope.render.terminal.console import theme
from attnscope.render.terminal.sheet import screen
from attnscope.results import Thumbnails, Verdict
from attnscope.vocabulary import Scaling


def images(axes: Axes) -> list[AxesImage]:
    return [each for each in axes.get_children() if isinstance(each, AxesImage)]


def every_axes(figure: Figure) -> list[Axes]:
    return [each for each in figure.findobj(Axes) if isinstance(each, Axes)]


def written(figure: Figure) -> str:
    from matplotlib.text import Text

    return " ".join(text.get_text() for text in figure.findobj(Text) if isinstance(text, Text))


def shown(result: Any, width: int = 80) -> str:
    return printed(body(result, width), width)


# ---- what is said


# ---- pictures


def test_the_overlay_holds_the_weights_in_place() -> None:
    result = made.picture_head(4)
    plain_axes, axes = figure_of(result).axes[:2]
    np.testing.assert_array_equal(images(plain_axes)[0].get_array(), result.picture.pixels)
    grey, heat, _ = images(axes)
    np.testing.assert_array_equal(np.asarray(heat.get_array()), result.weights)
    assert grey.get_extent() == [0, 52, 31, 0]
    assert heat.get_extent() == [0, 50, 30, 0]
    np.testing.assert_allclose(heat.norm(result.weights), result.weights**0.5)
    largest = images(figure_of(result, Focus(scale=Scaling.MAX)).axes[1])[1]
    np.testing.assert_allclose(largest.norm(result.weights), result.weights / result.weights.max())


def rendered(figure: Figure) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(figure_bytes(figure, "png"))).convert("RGB"))


def patch_colours(figure: Figure, axes: Axes, shape: tuple[int, int], covered: tuple[int, int]) -> np.ndarray:
    """The colour in the middle of every patch of a picture as it is written."""
    dots = rendered(figure)
    rows, columns = np.indices(shape)
    middles = np.stack([(columns + 0.5) * covered[1] / shape[1], (rows + 0.5) * covered[0] / shape[0]], -1)
    places = axes.transData.transform(middles.reshape(-1, 2)).astype(int)
    return dots[len(dots) - 1 - places[:, 1], places[:, 0]].reshape(*shape, 3)


@pytest.mark.parametrize("lightness", [0.0, 1.0, "black beside white"])
def test_a_colour_reads_back_to_its_weight_whatever_the_picture_is_like(lightness: Any) -> None:
    result = made.picture_head(0)
    pixels = np.ones_like(result.picture.pixels) * (lightness if isinstance(lightness, float) else 0.0)
    if not isinstance(lightness, float):
        pixels[:, 20:] = 1.0
    result = replace(result, picture=replace(result.picture, pixels=pixels))
    figure = figure_of(result)
    axes = figure.axes[1]
    heat = images(axes)[1]
    expected = heat.get_cmap()(heat.norm(result.weights), bytes=True)[..., :3]
    found = patch_colours(figure, axes, result.weights.shape, result.picture.covered)
    np.testing.assert_allclose(found, expected.astype(int), atol=1)


def test_outlines_lie_on_the_edges_of_the_picture_and_an_even_one_has_none() -> None:
    grey = np.full((40, 60), 0.3)
    assert not outlines(grey)[..., 3].any()
    grey[:, 25:] = 0.9
    rows, columns = np.nonzero(outlines(grey)[..., 3])
    assert set(rows.tolist()) == set(range(40))
    assert set(columns.tolist()) <= {24, 25}
    assert not outlines(np.zeros((1, 7)))[..., 3].any()


def frames(figure: Figure) -> list[Rectangle]:
    return [each for each in figure.axes[1].patches if isinstance(each, Rectangle)]


def test_the_patch_of_the_query_is_outlined() -> None:
    (outline,) = frames(figure_of(made.picture_head(4)))
    assert outline.get_bbox().bounds == (30, 0, 10, 10)
    assert not frames(figure_of(made.picture_head(0)))


def at_key(result: Any, name: str) -> Focus:
    return Focus(key=result.head.key_tokens.names.index(name))


def test_a_key_is_framed_told_with_its_rank_and_listed_however_weak() -> None:
    result = made.picture_head(0)
    order = np.argsort(-result.weights.ravel(), kind="stable")
    row, column = divmod(int(order[11]), 5)
    name, weighed = f"row {row}, column {column}", numbers.significant(float(result.weights[row, column]))
    focus = at_key(result, f"r{row}c{column}")
    (frame,) = frames(figure_of(result, focus))
    assert frame.get_bbox().bounds == (10 * column, 10 * row, 10, 10)
    assert "framed: the key" in written(figure_of(result, focus))
    assert f"Patch {name} gets {weighed}, number 12 of 15" in sheet_of(result, focus).answer
    listed = next(block for block in sheet_of(result, focus).blocks if isinstance(block, Ranking))
    assert [listed.names[i] for i in listed.chosen] == [name]
    assert len(listed.names) == 9
    assert "number" not in sheet_of(result).answer
    assert "framed" not in written(figure_of(result))


def test_the_grid_has_a_picture_for_each_head_in_the_order_of_layers_and_heads() -> None:
    result = made.picture_grid()
    axes = figure_of(result).axes[0]
    heats = images(axes)[1::3]
    assert len(heats) == 6
    for i, heat in enumerate(heats):
        np.testing.assert_array_equal(np.asarray(heat.get_array()), result.weights[i // 3, i % 3])
    corners = [heat.get_extent()[0] for heat in heats[:3]]
    assert corners == sorted(corners)
    assert heats[3].get_extent()[3] > heats[0].get_extent()[2]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["L0", "L1"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["H0", "H1", "H2"]


def test_above_each_picture_of_a_grid_stand_its_largest_weight_and_its_share() -> None:
    result = made.picture_grid()
    said = written(figure_of(result))
    for weights in result.weights.reshape(6, 3, 5):
        assert f"{numbers.significant(weights.max())} · {numbers.percent(weights.sum())}" in said


# ---- sounds


def test_curve_and_spectrogram_share_their_time() -> None:
    figure = figure_of(made.sound_head())
    axes = [each for each in every_axes(figure) if each.axison]
    assert {each.get_xlim() for each in axes} == {(0.0, 0.8)}
    (steps,) = (patch for each in axes for patch in each.patches if type(patch).__name__ == "StepPatch")
    np.testing.assert_array_equal(steps.get_data().values, made.sound_head().weights)
    np.testing.assert_allclose(steps.get_data().edges, 0.02 * np.arange(41))


def test_a_frame_that_is_asked_about_is_dashed_in_both_parts() -> None:
    result = made.spoken_head(2)
    focus = at_key(result, "0.20s")

    def dashed(figure: Figure) -> list[float]:
        lines = [line for axes in every_axes(figure) for line in axes.lines if line.get_linestyle() == "--"]
        return [float(np.asarray(line.get_xdata())[0]) for line in lines]

    assert dashed(figure_of(result, focus)) == pytest.approx([0.20, 0.22, 0.20, 0.22])
    assert "dashed: the key" in written(figure_of(result, focus))
    assert f"0.20s gets {numbers.significant(float(result.weights[10]))}" in sheet_of(result, focus).answer
    assert dashed(figure_of(result)) == []


def drawn_rows(figure: Figure, first: str) -> tuple[Axes, np.ndarray]:
    """The axes whose first row is called so, and the shades that are drawn in them."""
    axes = next(
        each for each in every_axes(figure) if first in [label.get_text() for label in each.get_yticklabels()]
    )
    return axes, np.asarray(images(axes)[0].get_array())


def test_cross_attention_shows_every_token_over_the_time_of_the_sound() -> None:
    result = made.spoken_head()
    axes, shades = drawn_rows(figure_of(result), "[CLS]")
    weights = result.head.weights[:, :25]
    np.testing.assert_allclose(shades, weights**0.5)
    assert axes.get_ylabel() == "query"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["[CLS]", "the", "door", "opens", "."]
    assert images(axes)[0].get_extent() == [0.0, 0.5, 5.0, 0.0]
    told = [line.split()[0] for line in shown(result).splitlines() if re.search(r"[▁-█].* \.\d{3}$", line)]
    assert tuple(told[:5]) == result.head.query_tokens.names


def test_heads_over_a_sound_have_a_row_each_all_on_one_scale_unless_asked() -> None:
    result = made.sound_grid()
    rows = result.weights.reshape(6, 40)
    _, shades = drawn_rows(figure_of(result), "L0 H0")
    np.testing.assert_allclose(shades, rows**0.5)
    _, own = drawn_rows(figure_of(result, Focus(scale=Scaling.ROW)), "L0 H0")
    np.testing.assert_allclose(own, rows / rows.max(axis=1, keepdims=True))


def test_bars_over_time_are_as_high_as_their_weights() -> None:
    result = made.sound_head()
    line = next(line for line in shown(result).splitlines() if line.startswith("weight "))
    heights = [" ▁▂▃▄▅▆▇█".index(bar) for bar in line.removeprefix("weight ")[:40]]
    exact = 8 * result.weights / result.weights.max()
    assert max(heights) == 8
    assert min(heights) == 0  # less than half of the lowest bar is none
    assert abs(np.array(heights) - exact).max() <= 0.5


@pytest.mark.parametrize(("width", "together"), [(80, 1), (40, 2), (26, 3)])
def test_even_weights_over_a_long_sound_make_even_bars(width: int, together: int) -> None:
    even = made.several(made.frame_tokens(39))
    even = replace(even, weights=tuple(tuple(np.full_like(w, 1 / 39) for w in row) for row in even.weights))
    lines = shown(made.heads_over_sound(even, made.sound(0.78), 6), width).splitlines()
    strips = [re.search("[▁▂▃▄▅▆▇█]+", line) for line in lines if re.match("L[01] H[012] ", line)]
    bars = {strip[0] for strip in strips if strip}
    whole, left = divmod(39, together)
    (bar,) = bars
    assert set(bar[:whole]) == {"█"}
    assert len(bar) == whole + bool(left)
    said = " ".join(" ".join(lines).split())
    assert (f"{20 * together} ms, weights summed" in said) == (together > 1)
    assert (f"(the last: {20 * left} ms)" in said) == bool(left)


# ---- every medium


def numbers_of(result: Any, colour: str | None = None) -> list[str]:
    """The lines of the terminal that have the patches, row by row."""
    lines = printed(body(result, 80), colour=colour).splitlines()
    first = next(i for i, line in enumerate(lines) if "row ↓" in line) + 1
    return lines[first : first + 3]


@pytest.mark.parametrize("query", [0, None])
def test_every_patch_has_its_number_on_the_colour_of_its_weight(query: int | None) -> None:
    result = made.picture_head(query)
    told = [line.split()[1:] for line in numbers_of(result)]
    decimals = len(told[0][0].partition(".")[2])
    np.testing.assert_allclose(np.array(told, float), 100 * result.weights, atol=0.51 / 10**decimals)
    assert len(told[0][0].replace(".", "")) <= 2 or decimals, "two digits tell"
    row, column = np.unravel_index(np.argmax(result.weights), result.weights.shape)
    strongest = theme("light", "256").styles[sequential(float(result.weights.max()) ** 0.5)].bgcolor
    assert strongest is not None
    cells = re.findall(r"48;5;(\d+)m", numbers_of(result, "256")[int(row)])
    assert cells[int(column)] == str(strongest.number)


def test_patches_whose_numbers_do_not_fit_are_cells_and_the_query_s_own_is_named() -> None:
    result = made.picture_head(9)
    said = shown(result, 20)
    assert result.gaze.cell is not None
    row, column = result.gaze.cell
    assert f"own patch is row {row}, column {column}" in " ".join(said.split())
    drawn = [line.split()[1] for line in said.splitlines() if re.match(r"[0-2] +[·░▒▓█]{10}", line)]
    shades = result.weights**0.5
    wide = len(drawn[0]) // 5
    assert [len(row) for row in drawn] == [5 * wide] * 3
    for row, column in np.ndindex(3, 5):
        assert drawn[row][wide * column] == "·░▒▓█"[min(int(5 * shades[row, column]), 4)]


def test_a_window_that_reads_no_patch_says_so_in_every_medium() -> None:
    empty = made.none_read()
    assert sheet_of(empty).answer in shown(empty)
    assert sheet_of(empty).answer in written(figure_of(empty))


# ---- files


SMALL = cases_thumbnails.thumbnails()
CAUSAL = cases_thumbnails.thumbnails(causal=True, last=Verdict.PARTIAL)


def heads_of(result: Thumbnails) -> HeadMatrices:
    (block,) = thumbnails(result, Focus()).every
    assert isinstance(block, HeadMatrices)
    return block


def in_small(result: Thumbnails, width: int = 80) -> str:
    return "".join(printed(part, width) for part in screen(result, width, IN_FULL))


def words_of(figure: Figure) -> str:
    return " ".join(" ".join(texts(figure)).split())


def texts(figure: Figure) -> list[str]:
    found = figure.findobj(lambda each: hasattr(each, "get_text"))
    return [text.get_text() for text in found if text.get_text().strip()]


def test_every_head_is_drawn_at_its_place_on_the_same_scale() -> None:
    axes = Figure().add_subplot()
    draw(heads_of(SMALL), axes)
    images = [each for each in axes.get_children() if isinstance(each, AxesImage)]
    assert len(images) == 12
    for image in images:
        left, right, bottom, top = image.get_extent()
        i, j = int(top), int(left)
        assert (int(bottom), int(right)) == (i, j)
        assert np.array_equal(image.get_array(), SMALL.weights[i, j])
    assert len({(image.norm.vmin, image.norm.vmax) for image in images}) == 1
    assert top < bottom  # the first query on top


def test_the_scale_is_one_for_all_heads_and_said() -> None:
    scale = common_scale(SMALL)
    assert (scale.kind, scale.top) == (Scaling.SQRT, 1.0)
    assert common_scale(SMALL, Scaling.MAX).top == pytest.approx(np.nanmax(SMALL.weights))
    assert "colours of all heads" not in words_of(figure_of(SMALL))
    assert "colours of all heads: logarithmic" in words_of(figure_of(SMALL, Focus(scale=Scaling.LOG)))


def test_what_is_masked_is_grey_and_said_and_what_is_not_certified_outlined() -> None:
    words = words_of(figure_of(CAUSAL))
    assert "grey: masked" in words
    assert "grey" not in words_of(figure_of(SMALL))
    assert "outlined: not certified" in words
    assert "✓ certified: 11 of 12 heads recomputed, equal to the model's · ~ partial: 1 of 12 heads" in words
    pooled = cases_thumbnails.thumbnails(tokens=40, step=4)
    assert "each cell the largest weight of 4 queries x 4 keys" in words_of(figure_of(pooled))


@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (4, 12), (12, 12), (32, 32)])
def test_labels_of_any_number_of_heads_stay_on_the_page_and_off_each_other(layers: int, heads: int) -> None:
    result = cases_thumbnails.thumbnails(layers, heads, tokens=5)
    figure = figure_of(result)
    with drawing():
        figure.draw_without_rendering()
        axes, page = figure.axes[0], figure.bbox
        for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
            boxes = [each.get_window_extent() for each in labels if each.get_text()]
            assert all(page.contains(b.x0, b.y0) and page.contains(b.x1, b.y1) for b in boxes)
            assert not any(a.overlaps(b) for a, b in itertools.pairwise(boxes))
    assert [each.get_text() for each in axes.get_yticklabels()] == [f"L{i}" for i in result.layers]
    across = axes.get_position().width * figure.get_figwidth() / heads
    assert across * figure.dpi >= 5 * 4, "dots for five cells"


def test_a_causal_head_is_blank_above_its_diagonal_in_colour_and_without() -> None:
    plain = in_small(CAUSAL).splitlines()
    first = next(line for line in plain if line.startswith("L2"))
    assert first[3:15].strip()
    assert len(first[3:15].rstrip()) <= 2
    stream = io.StringIO()
    console = Console(
        file=stream, width=80, color_system="truecolor", force_terminal=True, theme=theme("dark", "truecolor")
    )
    console.print(*screen(CAUSAL, 80))
    assert "\x1b[" in stream.getvalue()
    assert "▀" in stream.getvalue() or "▄" in stream.getvalue()
