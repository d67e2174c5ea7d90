"""A sheet as a picture: exact numbers at their places, nothing cut, any size and look."""

import io
import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from made_blocks import NAMES, curve, grid, matrix, ranking, sheet, table
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from attnscope.render.figure import figure_bytes
from attnscope.render.kit.numbers import weight
from attnscope.render.kit.palette import OUTLINES, TINTS
from attnscope.render.kit.typesetting import drawing
from attnscope.render.look import Look, dressed
from attnscope.render.plot.sheet import draw, figure
from attnscope.render.sheet.blocks import Beside
from attnscope.render.sheet.heads import Companion
from attnscope.render.sheet.table import Line, Mark
from attnscope.results import Verdict

CASES = {
    "ranking": sheet(blocks=(ranking(),)),
    "ranking and grid": sheet(),
    "two grids": sheet(blocks=(ranking(), grid(12, 12), grid(12, 12))),
    "many heads": sheet(blocks=(ranking(), grid(32, 32), grid(32, 32))),
    "one head": sheet(
        blocks=(
            ranking(names=("L0 H0",), table=table(1), marks=(Mark("dot", "own", "it", [0.4]),)),
            grid(1, 1),
        )
    ),
    "beside": sheet(blocks=(Beside((ranking(), ranking(), ranking())), Beside((grid(), grid(2, 9))))),
    "matrix": sheet(blocks=(ranking(), matrix(5, 7), grid())),
    "curve": sheet(blocks=(curve(), curve(), ranking())),
    "cells": sheet(blocks=(Beside((ranking(cells=("score",), chosen=frozenset({1})), ranking())),)),
    "long names": sheet(blocks=(ranking(names=("a long name " * 4, "b", "c")),), answer="words " * 60),
}


def words(drawn: Figure) -> list[Text]:
    """All that is drawn: a tick beyond the ends of its axis is not."""
    beyond = [
        label
        for axes in drawn.axes
        for labels, (low, high), side in (
            (axes.get_xticklabels(), sorted(axes.get_xlim()), 0),
            (axes.get_yticklabels(), sorted(axes.get_ylim()), 1),
        )
        for label in labels
        if not low <= label.get_position()[side] <= high
    ]
    every = (each for each in drawn.findobj(Text) if isinstance(each, Text) and each not in beyond)
    return [each for each in every if each.get_text().strip() and each.get_visible()]


@pytest.mark.parametrize(
    ("name", "size"),
    [
        *((name, None) for name in CASES),
        *((name, (4.0, 7.0)) for name in ("ranking and grid", "beside", "matrix", "cells", "long names")),
        *((name, (12.0, 4.0)) for name in ("ranking and grid", "curve")),
    ],
)
def test_every_word_lies_on_its_page_and_none_on_another(name: str, size: tuple[float, float] | None) -> None:
    with dressed(Look(size=size)), drawing():
        drawn = figure(CASES[name])
        drawn.draw_without_rendering()
        boxes = [(each.get_text(), each.get_window_extent()) for each in words(drawn)]
    width, height = drawn.get_size_inches() * drawn.dpi
    for text, box in boxes:
        assert 0 <= box.x0 <= box.x1 <= width, text
        assert 0 <= box.y0 <= box.y1 <= height, text
    for (text, box), (other, at) in combinations(boxes, 2):
        across, down = min(box.x1, at.x1) - max(box.x0, at.x0), min(box.y1, at.y1) - max(box.y0, at.y0)
        assert across < 1 or down < 2, (text, other)


@pytest.mark.parametrize(("name", "size"), [("ranking", (12.0, 4.0)), ("beside", (3.3, 2.5))])
def test_a_picture_is_as_large_as_it_was_asked_to_be(name: str, size: tuple[float, float]) -> None:
    with dressed(Look(size=size)):
        image = Image.open(io.BytesIO(figure_bytes(figure(CASES[name]), "png", 100)))
    assert image.size == (100 * size[0], 100 * size[1])


def test_a_wider_page_has_wider_axes_and_letters_as_large() -> None:
    plain = figure(sheet())
    with dressed(Look(size=(14.0, 8.0))):
        stretched = figure(sheet())
    assert stretched.zoom == 1.0  # type: ignore[attr-defined]
    at = [each.axes[0].get_position().width * each.get_size_inches()[0] for each in (plain, stretched)]
    assert at[1] > 1.2 * at[0]


def test_bars_are_as_long_as_their_numbers_and_marks_stand_at_theirs() -> None:
    (axes,) = figure(CASES["ranking"]).axes
    assert [each.get_width() for each in axes.patches] == pytest.approx([0.91, 0.4, -0.05])
    assert {to_hex(each.get_facecolor()) for each in axes.patches} == {TINTS["own"]}
    (rings,) = [each for each in axes.lines if each.get_marker() == "o"]
    assert list(rings.get_xdata()) == [0.2, 0.3], "the third row has no control"
    assert [each.get_xdata()[0] for each in axes.lines if each.get_color() == TINTS["limit"]] == [0.7]
    assert [each.get_text() for each in axes.get_yticklabels()] == list(NAMES)
    assert {"+.91", "+.40", "−.05"} <= {each.get_text() for each in axes.texts}
    low, high = axes.get_xlim()
    assert low < -0.05
    assert high > 0.91


@pytest.mark.parametrize("shape", ["bar", "band", "span", "dot", "ring", "diamond", "tick", "line"])
def test_every_mark_has_its_name_above_the_axis(shape: str) -> None:
    mark = Mark(shape, "gains", f"a {shape}", [0.2, 0.1, None], [0.5, 0.4, None] if shape == "span" else ())  # type: ignore[arg-type]
    line = Mark("line", "gains", "a line", [0.2])
    (axes,) = figure(sheet(blocks=(ranking(marks=(line if shape == "line" else mark,)),))).axes
    legend = axes.get_legend()
    assert legend is not None
    assert [each.get_text() for each in legend.get_texts()] == [f"a {shape}"]


def test_a_grid_has_every_number_on_its_scale_with_the_ends_below() -> None:
    axes, bar = figure(sheet(blocks=(grid(2, 3),))).axes
    (mesh,) = [each for each in axes.collections if isinstance(each, QuadMesh)]
    assert mesh.get_clim() == (-0.9, 0.9)
    np.testing.assert_allclose(np.ma.filled(mesh.get_array(), math.nan), grid(2, 3).values)
    assert [each.get_text() for each in axes.texts] == ["−.40", "−.14", "+.38", "+.64", "+.90"]
    assert [each.get_text() for each in bar.get_xticklabels()] == ["−.90", "+.90"]
    many = figure(sheet(blocks=(grid(3, 32),))).axes[0]
    assert len(many.texts) == 3 * 32 - 1, "the only grid has room for its numbers"
    assert not figure(sheet(blocks=(grid(3, 32), grid(3, 32)))).axes[0].texts
    assert not figure(sheet(blocks=(grid(3, 41),))).axes[0].texts


def test_below_each_number_stands_what_belongs_to_it_its_names_cut_to_the_cell() -> None:
    errors = Companion.numbers("its error", np.full((2, 3), 0.5), weight)
    axes = figure(sheet(blocks=(grid(2, 3, companion=errors),))).axes[0]
    assert [each.get_text() for each in axes.texts].count(".50") == 6 - 1, "a head without a number has none"
    assert "below each number: its error" in [each.get_text() for each in axes.figure.texts]
    names = Companion(
        "its link", lambda i, j: ".9", lambda i, j, cells: "a very long name of a token"[:cells]
    )
    for heads, whole in ((3, True), (10, False)):  # few heads have the room of the page
        axes = figure(sheet(blocks=(grid(2, heads, companion=names),))).axes[0]
        links = [each.get_text() for each in axes.texts if each.get_text().startswith("a ")]
        assert len(links) == 2 * heads - 1
        assert all(each.endswith(" .9") and each.startswith("a very long") for each in links)
        assert {each == "a very long name of a token .9" for each in links} == {whole}


def test_a_ring_at_zero_is_drawn_whole() -> None:
    rows = table()
    ring = Mark("ring", "control", "its control", [0.0] * len(rows))
    axes = figure(sheet(blocks=(ranking(marks=(Mark("bar", "own", "it", [0.5] * 3), ring)),))).axes[0]
    (drawn,) = [each for each in axes.lines if each.get_label() == "its control"]
    assert not drawn.get_clip_on()


def test_a_matrix_has_every_number_on_its_scale_and_none_where_there_is_none() -> None:
    axes = figure(sheet(blocks=(matrix(2, 3),))).axes[0]
    (mesh,) = [each for each in axes.collections if isinstance(each, QuadMesh)]
    assert mesh.get_clim() == (-0.9, 0.9)
    np.testing.assert_allclose(np.ma.filled(mesh.get_array(), math.nan), matrix(2, 3).values)
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("query", "key")
    assert len([each for each in axes.texts if each.get_text().strip()]) == 5


def test_groups_of_a_matrix_are_parted_and_a_marked_cell_has_a_frame() -> None:
    plain, marked = matrix(4, 4), replace(matrix(4, 4), groups=(1,), marked=((2, 3),))
    axes = figure(sheet(blocks=(marked,))).axes[0]
    assert len(axes.lines) == 2
    assert [each.get_ydata()[0] for each in axes.lines] == [1, 0]
    (frame,) = [each for each in axes.patches if not each.get_fill()]
    assert (frame.get_x(), frame.get_y()) == (3, 2)
    assert not figure(sheet(blocks=(plain,))).axes[0].lines


def test_a_curve_has_its_lines_at_the_numbers_of_its_rows_and_says_what_each_is() -> None:
    (axes,) = figure(sheet(blocks=(curve(),))).axes
    (line,) = [each for each in axes.lines if each.get_marker() == "o"]
    np.testing.assert_allclose(line.get_xdata(), [0, 1, 2, 5])
    np.testing.assert_allclose(line.get_ydata(), [0.1, 0.5, 0.4, math.nan])
    points, ring = (each.get_offsets() for each in axes.collections[1:])
    np.testing.assert_allclose(points, [(0, 0.0), (0, 0.3), (1, 0.6), (5, -0.2)])
    np.testing.assert_allclose(ring[1], (1, 0.6))
    low, high = axes.get_ylim()
    assert low < -0.2
    assert high > 0.9, "the band too"
    assert [each.get_text() for each in axes.get_legend().get_texts()] == [
        *("all heads", "their range", "one head")
    ]
    assert [each.get_xdata()[0] for each in axes.lines if each.get_linestyle() == ":"] == [1.0]


def test_a_curve_by_orders_of_magnitude_has_equal_steps_for_equal_ratios() -> None:
    doubled = curve(lines=(Line("line", "own", "spread", [0.25, 1.0, 4.0, 16.0]),), log=True)
    shares = [doubled.share(value) for value in (0.25, 1.0, 4.0, 16.0)]
    np.testing.assert_allclose(np.diff(shares), math.log(4) / math.log(64 * 1.2**2))
    (axes,) = figure(sheet(blocks=(doubled,))).axes
    across = axes.transAxes.inverted().transform(
        axes.transData.transform([(0, value) for value in (0.25, 16)])
    )
    np.testing.assert_allclose(across[:, 1], [shares[0], shares[-1]])
    assert np.diff([replace(doubled, log=False).share(value) for value in (0.25, 1.0)]) < 0.06


def test_columns_that_a_picture_shows_too_stand_as_cells_before_the_marks() -> None:
    shown = ranking(cells=("score",), chosen=frozenset({1}))
    drawn = figure(sheet(blocks=(shown,)))
    (axes,) = drawn.axes
    (cells,) = axes.child_axes
    assert [each.get_text() for each in cells.texts] == ["+.91", "+.40", "−.05"]
    assert [each.get_text() for each in cells.get_xticklabels()] == ["score"]
    colours = [to_hex(each.get_facecolor()) for each in cells.patches]
    assert colours == [shown.table["score"].scale.paper(each)[0] for each in (0.91, 0.4, -0.05)]
    names = [(each.get_text(), each.get_fontweight()) for each in cells.get_yticklabels()]
    assert names == [(NAMES[0], "normal"), (NAMES[1], "bold"), (NAMES[2], "normal")]
    assert cells.get_ylim() == axes.get_ylim()


def test_many_panels_make_a_page_that_is_no_tower_and_three_stand_abreast() -> None:
    wide, high = figure(sheet(blocks=tuple(grid(4, 4) for _ in range(31)))).get_size_inches()
    assert 0.6 < wide / high < 2
    pairs = ranking(names=("L11 H10 → L11 H10", "b", "c"))
    compared = figure(sheet(blocks=(Beside((pairs, pairs, pairs)),)))
    assert len({round(each.get_position().y0, 4) for each in compared.axes}) == 1


def test_a_verdict_that_is_not_the_best_stands_in_the_heading_and_the_answer_above_the_panels() -> None:
    failed = figure(sheet(proof=((Verdict.CERTIFIED, "✓"), (Verdict.FAILED, "✗ failed: 1 of 3 heads"))))
    told = [each.get_text() for each in failed.texts]
    assert told[0] == "an invention · ✗ FAILED"
    assert "L0 H3 does .91 where others do .20." in told
    assert "FAILED" not in figure(sheet()).texts[0].get_text()
    (line,) = [each for each in failed.texts if each.get_text() == "✗ failed: 1 of 3 heads"]
    (small,) = [each for each in failed.texts if each.get_text() == "✓"]
    assert (line.get_fontweight(), line.get_color()) == ("bold", OUTLINES[Verdict.FAILED])
    assert line.get_fontsize() > small.get_fontsize()
    assert line.get_position()[1] > small.get_position()[1], "above what holds"


def test_bare_leaves_the_axes_alone() -> None:
    with dressed(Look(bare=True)):
        bare = figure(sheet())
    assert not bare.texts
    assert bare.get_size_inches()[1] < figure(sheet()).get_size_inches()[1]


def test_a_long_heading_of_a_section_ends_within_a_narrow_figure_and_a_short_one_keeps_its_size() -> None:
    long = "above their own controls only (10, 4 shown; of 48 heads about 2 or 3 are so by luck)"
    with dressed(Look(bare=True, size=(3.3, 2.2))):
        drawn = figure(sheet(blocks=(ranking(sections=((0, "stand out"), (1, long))),)))
    drawn.draw_without_rendering()
    short, cut = (
        next(each for each in words(drawn) if each.get_text() == text) for text in ("stand out", long)
    )
    assert cut.get_window_extent().x1 <= drawn.bbox.x1
    assert cut.get_fontsize() < short.get_fontsize()


def test_the_same_sheet_gives_the_same_bytes_and_any_axes_will_do() -> None:
    once, again = (figure_bytes(figure(sheet()), "svg") for _ in range(2))
    assert once == again
    axes = Figure().add_subplot()
    with drawing():
        draw(ranking(), axes)
    assert [each.get_text() for each in axes.get_yticklabels()] == list(NAMES)


def test_a_head_that_is_not_certified_is_outlined_in_the_colour_of_its_verdict() -> None:
    verdicts = ((Verdict.CERTIFIED, Verdict.FAILED), (Verdict.PARTIAL, Verdict.CERTIFIED))
    axes = figure(sheet(blocks=(grid(2, 2, verdicts=verdicts),))).axes[0]
    outlined = {(int(each.get_x()), int(each.get_y())): to_hex(each.get_edgecolor()) for each in axes.patches}  # type: ignore[attr-defined]
    assert outlined == {(1, 0): OUTLINES[Verdict.FAILED], (0, 1): OUTLINES[Verdict.PARTIAL]}
    assert "✗" in [each.get_text() for each in axes.texts], "it has no number"
    assert not figure(sheet(blocks=(grid(2, 2),))).axes[0].patches


def test_a_table_without_marks_is_left_to_other_media() -> None:
    alone = figure(sheet(blocks=(ranking(marks=()),)))
    assert not alone.axes
    assert sheet().answer in [each.get_text() for each in alone.texts]
    with dressed(Look(size=(4.0, 3.0))):
        drawn = figure(sheet(blocks=(Beside((ranking(marks=()),)),)))
    assert drawn.get_size_inches() == pytest.approx((4.0, 3.0))
