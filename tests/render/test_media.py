"""Attention over a picture or a sound as it is drawn, shown in a terminal and written to files."""

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import made_media as made
import numpy as np
import pytest
from golden_text import printed
from made_results import plain
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from PIL import Image
from rich.console import Console

from attnscope.render import files
from attnscope.render.figure import figure_bytes, missing_glyphs
from attnscope.render.media.picture_figure import picture_figure, picture_heads_figure
from attnscope.render.media.picture_terminal import picture_heads, picture_patches
from attnscope.render.media.plot_picture import outlines
from attnscope.render.media.sound_figure import sound_figure, sound_heads_figure
from attnscope.render.media.sound_terminal import sound_frames, sound_heads
from attnscope.render.media.words import medium_line, medium_words, query_words, shares
from attnscope.render.terminal.ramps import theme

RESULTS: dict[str, Callable[[], Any]] = {
    "picture": made.picture_head,
    "window": made.window_head,
    "picture-heads": made.picture_grid,
    "sound": made.sound_head,
    "spoken": made.spoken_head,
    "sound-heads": made.sound_grid,
}
FIGURES: dict[str, Callable[[Any], Figure]] = {
    "picture": picture_figure,
    "window": picture_figure,
    "picture-heads": picture_heads_figure,
    "sound": sound_figure,
    "spoken": sound_figure,
    "sound-heads": sound_heads_figure,
}


def images(axes: Axes) -> list[AxesImage]:
    return [each for each in axes.get_children() if isinstance(each, AxesImage)]


def every_axes(figure: Figure) -> list[Axes]:
    return [each for each in figure.findobj(Axes) if isinstance(each, Axes)]


def written(figure: Figure) -> str:
    from matplotlib.text import Text

    return " ".join(text.get_text() for text in figure.findobj(Text) if isinstance(text, Text))


def shown(renderable: Any, width: int = 80, colour: bool = False) -> str:
    buffer = io.StringIO()
    system = "truecolor" if colour else None
    Console(file=buffer, width=width, force_terminal=colour, color_system=system, legacy_windows=False).print(
        renderable
    )
    return buffer.getvalue()


# ---- figures


def test_the_overlay_holds_the_weights_in_place() -> None:
    result = made.picture_head(4)
    plain_axes, axes = picture_figure(result).axes[:2]
    np.testing.assert_array_equal(images(plain_axes)[0].get_array(), result.picture.pixels)
    grey, heat, _ = images(axes)
    np.testing.assert_array_equal(np.asarray(heat.get_array()), result.weights)
    assert grey.get_extent() == [0, 52, 31, 0]
    assert heat.get_extent() == [0, 50, 30, 0]
    assert heat.norm.vmin == 0
    assert heat.norm.vmax == result.weights.max()


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
    figure = picture_figure(result)
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


def test_the_patch_of_the_query_is_outlined() -> None:
    axes = picture_figure(made.picture_head(4)).axes[1]
    (outline,) = (each for each in axes.patches if isinstance(each, Rectangle))
    assert outline.get_bbox().bounds == (30, 0, 10, 10)
    assert not [
        each for each in picture_figure(made.picture_head(0)).axes[1].patches if isinstance(each, Rectangle)
    ]


def test_patches_that_a_window_does_not_read_have_no_colour() -> None:
    heat = images(picture_figure(made.window_head()).axes[1])[1]
    assert np.ma.getmaskarray(heat.get_array()).sum() == 9


def test_the_grid_has_a_picture_for_each_head_in_the_order_of_layers_and_heads() -> None:
    result = made.picture_grid()
    axes = picture_heads_figure(result).axes[0]
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
    said = written(picture_heads_figure(result))
    for weights in result.weights.reshape(6, 3, 5):
        assert f"{weights.max():.3f} · {100 * weights.sum():.0f} %".removeprefix("0") in said


def test_curve_and_spectrogram_share_their_time() -> None:
    figure = sound_figure(made.sound_head())
    axes = [each for each in every_axes(figure) if each.axison]
    assert {each.get_xlim() for each in axes} == {(0.0, 0.8)}
    (steps,) = (patch for each in axes for patch in each.patches if type(patch).__name__ == "StepPatch")
    np.testing.assert_array_equal(steps.get_data().values, made.sound_head().weights)
    np.testing.assert_allclose(steps.get_data().edges, 0.02 * np.arange(41))


def test_cross_attention_shows_every_token_over_the_time_of_the_sound() -> None:
    result = made.spoken_head()
    axes = next(each for each in every_axes(sound_figure(result)) if each.get_ylabel() == "query")
    np.testing.assert_array_equal(np.asarray(images(axes)[0].get_array()), result.head.weights[:, :25])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["[CLS]", "the", "door", "opens", "."]
    assert images(axes)[0].get_extent() == [0.0, 0.5, 5.0, 0.0]


def test_heads_over_a_sound_have_a_row_each_with_its_own_scale() -> None:
    result = made.sound_grid()
    axes = next(
        each
        for each in every_axes(sound_heads_figure(result))
        if "L0 H0" in [t.get_text() for t in each.get_yticklabels()]
    )
    drawn = np.asarray(images(axes)[0].get_array())
    rows = result.weights.reshape(6, 40)
    np.testing.assert_allclose(drawn, rows / rows.max(axis=1, keepdims=True))


@pytest.mark.parametrize("name", RESULTS)
def test_figures_are_the_same_bytes_every_time_and_say_what_is_proved(name: str) -> None:
    first, second = (FIGURES[name](RESULTS[name]()) for _ in range(2))
    assert figure_bytes(first, "svg") == figure_bytes(second, "svg")
    said = written(first)
    assert "certified" in said
    assert ("scene.png" in said) != ("tone.wav" in said)
    assert missing_glyphs(first) == ""


# ---- terminal


def test_every_patch_has_its_number_on_the_colour_of_its_weight() -> None:
    result = made.picture_head(0)
    text = printed(picture_patches(result, 80))
    read = [[float(each) for each in line.split()[1:]] for line in text.splitlines()[1:4]]
    factor = int(re.search(r"weights x (\d+)", text)[1])  # type: ignore[index]
    np.testing.assert_allclose(np.array(read) / factor, result.weights, atol=0.51 / factor)
    assert result.weights.max() * factor >= 10
    coloured = printed(picture_patches(result, 80), colour="256").splitlines()
    row, column = np.unravel_index(np.argmax(result.weights), result.weights.shape)
    strongest = theme("light", "256").styles["weight.64"].bgcolor
    assert strongest is not None
    cells = re.findall(r"48;5;(\d+)m", coloured[1 + int(row)])
    assert cells[int(column)] == str(strongest.number)


def test_patches_whose_numbers_do_not_fit_are_cells_and_the_query_s_own_is_named() -> None:
    result = made.picture_head(9)
    assert result.gaze.cell is not None
    text = printed(picture_patches(result, 16), 40)
    assert f"the query's own patch is r{result.gaze.cell[0]}c{result.gaze.cell[1]}" in " ".join(text.split())
    assert "weights x" not in text
    drawn = [line.split()[1] for line in text.splitlines() if re.match("r[0-9] ", line)]
    shares = result.weights / result.weights.max()
    wide = len(drawn[0]) // 5
    assert [len(row) for row in drawn] == [5 * wide] * 3
    for row, column in np.ndindex(3, 5):
        assert drawn[row][wide * column] == "·░▒▓█"[min(int(5 * shares[row, column]), 4)]


def test_the_strongest_patches_are_listed_in_order() -> None:
    result = made.picture_head(0)
    lines = shown(picture_patches(result, 80)).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("patch"))
    listed = [line.split()[0] for line in lines[start + 1 : start + 9]]
    ranked = np.argsort(-result.weights.flatten())[:8]
    assert listed == [f"r{i // 5}c{i % 5}" for i in ranked]


def test_a_window_shows_dots_for_what_it_does_not_read_and_lists_only_what_it_does() -> None:
    said = shown(picture_patches(made.window_head(), 80))
    assert said.splitlines()[1].split() == ["r0", *"·····"]
    assert "· not read" in " ".join(said.split())
    assert said.count("c") >= 6
    assert "nan" not in said
    assert "◆ the query's own patch" in " ".join(said.split())


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("width", [40, 80, 140])
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    result = RESULTS[name]()
    body = {
        "picture": picture_patches, "window": picture_patches, "picture-heads": picture_heads,
        "sound": sound_frames, "spoken": sound_frames, "sound-heads": sound_heads,
    }[name]  # fmt: skip
    said = shown(body(result, width), width)
    assert max(len(line) for line in said.splitlines()) <= width
    assert plain(shown(body(result, width), width, colour=True)).split() != []


def test_bars_over_time_are_as_high_as_their_weights() -> None:
    result = made.sound_head()
    bars = shown(sound_frames(result, 80)).splitlines()[0].split()[1]
    heights = [" ▁▂▃▄▅▆▇█".index(bar) for bar in bars]
    assert heights == np.ceil(8 * result.weights / result.weights.max() - 1e-9).astype(int).tolist()


def test_long_sounds_sum_frames_into_bars_and_say_so() -> None:
    said = shown(sound_heads(made.sound_grid(), 40))
    assert "weights summed" in said
    assert "a frame" in shown(sound_heads(made.sound_grid(), 80))


def test_words_about_query_medium_and_shares() -> None:
    assert query_words(made.picture_head(0)) == "query [CLS]"
    assert query_words(made.picture_head(None)) == "mean over 16 queries"
    assert query_words(made.spoken_head(2)) == "query 2 “door”"
    assert medium_words(made.picture_head()) == "scene.png, read as 31 x 52 pixels, 3 x 5 patches of 10 x 10"
    assert medium_words(made.sound_head()) == "tone.wav, 0.80 s at 16000 Hz, 40 frames of 20 ms"
    result = made.picture_head(0)
    assert shares(result)[1] == f"[CLS] {100 * result.head.weights[0, 0]:.1f} %"
    assert "query [CLS]" in medium_line(result).plain


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


@pytest.mark.parametrize("name", RESULTS)
def test_csv_has_a_row_for_every_patch_or_frame_that_is_read(name: str) -> None:
    result = RESULTS[name]()
    text = files.as_csv(result)
    comments = [line for line in text.splitlines() if line.startswith("#")]
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    np.testing.assert_array_equal(
        [float(row["weight"]) for row in rows], result.weights[np.isfinite(result.weights)].flatten()
    )
    assert any(line.startswith("# query: ") for line in comments)
    assert any("certif" in line or "verdict" in line for line in comments)
    assert sum(line.startswith("# schema:") for line in comments) == 1
