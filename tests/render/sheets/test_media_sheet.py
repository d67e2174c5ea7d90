"""Attention over a picture or a sound: its weights in place, where they lie, and the same in every medium."""

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cases_media as made
import numpy as np
import pytest
from golden_text import body, printed
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from PIL import Image

from attnscope.render import files
from attnscope.render.figure import figure_bytes, figure_of, missing_glyphs
from attnscope.render.focus import Focus
from attnscope.render.kit import numbers
from attnscope.render.kit.palette import sequential
from attnscope.render.kit.words.command import Typed, as_typed
from attnscope.render.plot.overlay import outlines
from attnscope.render.saving import content
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheets import sheet_of
from attnscope.render.sheets.media import medium_words, query_words, shares
from attnscope.render.terminal.console import theme
from attnscope.results import Verdict
from attnscope.results.media import Case
from attnscope.vocabulary import Scaling

RESULTS: dict[str, Callable[[], Any]] = {
    "picture": made.picture_head,
    "window": made.window_head,
    "picture-heads": made.picture_grid,
    "sound": made.sound_head,
    "spoken": made.spoken_head,
    "sound-heads": made.sound_grid,
}


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


def test_words_about_query_medium_and_shares() -> None:
    assert query_words(made.picture_head(0)) == "query [CLS]"
    assert query_words(made.picture_head(None)) == "mean over 16 queries"
    assert query_words(made.spoken_head(2)) == "query 2 “door”"
    assert medium_words(made.picture_head()) == "scene.png, read as 31 x 52 pixels, 3 x 5 patches of 10 x 10"
    assert medium_words(made.sound_head()) == "tone.wav, 0.80 s at 16000 Hz, 40 frames of 20 ms"
    result = made.picture_head(0)
    assert shares(result)["[CLS]"] == pytest.approx(result.head.weights[0, 0])
    assert sum(shares(result).values()) == pytest.approx(1)
    with_sink = replace(result.head, sink=0.3, weights=0.8 * result.head.weights)
    halved = {name: 0.8 * share for name, share in result.elsewhere.items()}
    sunk = replace(result, head=with_sink, weights=0.8 * result.weights, elsewhere=halved)
    assert shares(sunk)["the sink"] == pytest.approx(0.2)


@pytest.mark.parametrize("query", [0, 9, None])
def test_the_answer_names_the_strongest_patch_and_how_much_lies_on_the_picture(query: int | None) -> None:
    result = made.picture_head(query)
    row, column = np.unravel_index(result.weights.argmax(), result.weights.shape)
    answer = sheet_of(result).answer
    assert result.case is Case.PLACE
    assert f"patch row {row}, column {column}" in answer
    assert f"{numbers.significant(float(result.weights.max()))} of its attention" in answer
    share = float(result.weights.sum())
    assert (f"{numbers.weight(share)} is on the picture" in answer) == (share < 0.99)


def test_a_window_that_reads_no_patch_says_so_in_every_medium() -> None:
    empty = made.none_read()
    assert sheet_of(empty).answer in shown(empty)
    assert sheet_of(empty).answer in written(figure_of(empty))


@pytest.mark.parametrize(("result", "part"), [(made.picture_head(0), "patch"), (made.sound_head(), "frame")])
def test_the_largest_weights_are_listed_in_order_and_a_picture_does_not_repeat_them(
    result: Any, part: str
) -> None:
    (ranking,) = (each for each in sheet_of(result).every if isinstance(each, Ranking))
    expected = np.sort(result.weights, axis=None)[::-1]
    np.testing.assert_array_equal(ranking.table["weight"].values, expected[:8])
    assert ranking.hidden == len(expected) - 8
    lines = shown(result).splitlines()
    start = next(i for i, line in enumerate(lines) if line.split() == [part, "weight"])
    rows = lines[start + 1 : start + 9]
    assert [line[: line.index("  ")] for line in rows] == list(ranking.names)
    assert ranking.names[-1] not in written(figure_of(result))


@pytest.mark.parametrize("result", [made.picture_grid(), made.sound_grid()])
def test_heads_are_ranked_by_their_largest_weight_at_one_place(result: Any) -> None:
    (ranking,) = (each for each in sheet_of(result).every if isinstance(each, Ranking))
    rows = {f"L{i} H{j}": result.weights[i, j] for i, j in np.ndindex(result.weights.shape[:2])}
    order = sorted(rows, key=lambda name: -rows[name].max())
    assert list(ranking.names) == order
    for row, name in enumerate(order):
        weights, place = rows[name], int(rows[name].argmax())
        assert ranking.table["largest"].values[row] == weights.max()
        assert ranking.table["share"].values[row] == pytest.approx(weights.sum())
        named = f"{0.02 * place:.2f}s" if weights.ndim == 1 else f"row {place // 5}, column {place % 5}"
        assert ranking.table["frame" if weights.ndim == 1 else "patch"].values[row] == named
    assert sheet_of(result).answer.startswith(f"{order[0]} looks hardest of 6 heads")
    assert sheet_of(result).next is None, "a command without its file does not run"
    with as_typed(Typed(("--image", "given.file"))):
        following = sheet_of(result).next
    assert following is not None
    assert "given.file" in following.command.split()
    assert f"--layer {order[0][1]} --head {order[0][-1]}" in following.command


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


def test_what_the_model_sees_and_what_lies_over_it_are_side_by_side() -> None:
    original, overlay = (each.get_position() for each in figure_of(made.window_head()).axes[:2])
    assert (original.y0, original.y1) == pytest.approx((overlay.y0, overlay.y1))
    assert original.x1 < overlay.x0


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


def test_beside_the_querys_own_patch_the_key_is_dashed() -> None:
    result = made.picture_head(4)
    own, key = frames(figure_of(result, at_key(result, "r2c4")))
    assert (own.get_bbox().bounds, own.get_linestyle()) == ((30, 0, 10, 10), "-")
    assert (key.get_bbox().bounds, key.get_linestyle()) == ((40, 20, 10, 10), "--")
    assert "dashed: the key" in written(figure_of(result, at_key(result, "r2c4")))


def test_a_key_that_is_no_patch_is_told_and_the_strongest_is_not_said_twice() -> None:
    result = made.picture_head(4)
    weighed = numbers.significant(float(result.head.weights[4, 0]))
    focus = at_key(result, "[CLS]")
    assert f"[CLS] gets {weighed}." in sheet_of(result, focus).answer
    assert len(frames(figure_of(result, focus))) == 1
    best = divmod(int(result.weights.argmax()), 5)
    strongest = at_key(result, f"r{best[0]}c{best[1]}")
    assert sheet_of(result, strongest).answer == sheet_of(result).answer


def test_patches_that_a_window_does_not_read_have_no_colour() -> None:
    figure = figure_of(made.window_head())
    assert np.ma.getmaskarray(images(figure.axes[1])[1].get_array()).sum() == 9
    assert "without colour: not read" in written(figure)
    assert "without colour" not in written(figure_of(made.picture_head()))


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


def test_a_head_that_is_not_certified_is_outlined_and_told() -> None:
    result = made.picture_grid()
    doubted = replace(made.made.overview(2, 3, verdicts={(1, 2): Verdict.PARTIAL}))
    several = replace(result.overview, certificates=doubted.certificates)
    figure = figure_of(replace(result, overview=several))
    assert "outlined: not certified" in written(figure)
    assert "outlined" not in written(figure_of(result))
    assert "partial: 1 of 6 heads" in " ".join(shown(replace(result, overview=several)).split())


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


def test_the_weights_over_a_sound_are_written_as_everywhere() -> None:
    figure = figure_of(made.sound_head())
    figure.draw_without_rendering()
    (axes,) = (each for each in every_axes(figure) if each.get_ylabel() == "weight")
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert len(labels) > 2
    assert not [label for label in labels if label.startswith("0.")]


def test_on_an_axes_of_the_user_stand_the_weights_alone() -> None:
    axes = Figure().add_subplot()
    result = made.sound_head()
    result.plot(ax=axes)
    (steps,) = (patch for patch in axes.patches if type(patch).__name__ == "StepPatch")
    np.testing.assert_array_equal(steps.get_data().values, result.weights)
    assert not axes.child_axes


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


def test_long_sounds_sum_frames_into_bars_and_say_so() -> None:
    assert "weights summed" in shown(made.sound_grid(), 40)
    assert "each bar: a frame" in shown(made.sound_grid(), 80)


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


@pytest.mark.parametrize("name", RESULTS)
def test_figures_are_the_same_bytes_every_time_and_say_what_is_proved(name: str) -> None:
    first, second = (figure_of(RESULTS[name]()) for _ in range(2))
    assert figure_bytes(first, "svg") == figure_bytes(second, "svg")
    said = written(first)
    assert "certified" in said
    assert ("scene.png" in said) != ("tone.wav" in said)
    assert missing_glyphs(first) == ""


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


def test_a_window_leaves_blank_what_it_does_not_read_and_lists_only_what_it_does() -> None:
    result = made.window_head()
    first, *rest = numbers_of(result)
    assert first.split() == ["0"]
    assert [len(line.split()) for line in rest] == [4, 4]
    said = " ".join(shown(result).split())
    assert "blank: not read here" in said
    assert "masked" not in said
    assert "nan" not in said


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("width", [40, 80, 140])
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    assert max(len(line) for line in shown(RESULTS[name](), width).splitlines()) <= width


def test_a_page_has_the_picture_once_and_a_cell_for_every_patch() -> None:
    for result in (made.picture_head(9), made.picture_grid()):
        pictures = content(result, ".html").count(b"data:image/png")
        assert pictures - 1 == 1, "beside the icon of the page"
    page = content(made.picture_head(9), ".html").decode()
    assert page.count("<title>") - 1 >= made.ROWS * made.COLUMNS
    assert 'stroke="var(--chosen)"' in page
    assert 'stroke="var(--chosen)"' not in content(made.picture_head(0), ".html").decode()


# ---- files


@pytest.mark.parametrize("name", RESULTS)
def test_files_hold_the_weights_of_the_query_and_all_of_the_heads(name: str) -> None:
    result = RESULTS[name]()
    told = json.loads(files.as_json(result))
    over = np.array(told["over"], float)
    np.testing.assert_array_equal(over, result.weights)
    assert told["keys"] == result.gaze.keys.tolist()
    assert told["query"] == result.gaze.query
    assert told["verdict"] == "certified"
    medium = told["picture" if "picture" in told else "sound"]
    assert medium["digest"] == made.DIGEST
    archive = np.load(io.BytesIO(files.as_npz(result)))
    np.testing.assert_array_equal(archive["over"], result.weights)
    assert json.loads(str(archive["meta"]))["schema"] == told["schema"]
    assert files.as_npz(result) == files.as_npz(RESULTS[name]())


COLUMNS = {
    "picture": "row,column,key,weight",
    "window": "row,column,key,weight",
    "picture-heads": "layer,head,row,column,key,weight,verdict",
    "sound": "frame,start,key,weight",
    "spoken": "frame,start,key,weight",
    "sound-heads": "layer,head,frame,start,key,weight,verdict",
}


@pytest.mark.parametrize("name", RESULTS)
def test_csv_has_a_row_for_every_patch_or_frame_that_is_read(name: str) -> None:
    result = RESULTS[name]()
    lines = files.as_csv(result).splitlines()
    comments = [line for line in lines if line.startswith("#")]
    heading, *rows = (line for line in lines if not line.startswith("#"))
    assert heading == COLUMNS[name]
    read = list(csv.DictReader([heading, *rows]))
    expected = result.weights[np.isfinite(result.weights)].flatten()
    np.testing.assert_array_equal([float(row["weight"]) for row in read], expected)
    keys = result.gaze.keys[result.gaze.keys >= 0].tolist()
    assert [int(row["key"]) for row in read][: len(keys)] == keys
    assert any(line.startswith("# query: ") for line in comments)
    assert any(line.startswith("# verdict: certified") for line in comments)
    assert sum(line.startswith("# schema:") for line in comments) == 1
