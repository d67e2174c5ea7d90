"""Composition of heads as it is shown: strongest pairs by name, one head's partners, and every control."""

import io
from dataclasses import replace

import made_composition
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.text import Text
from PIL import Image

from attnscope.errors import InputError
from attnscope.render.figure import figure_bytes, figure_of
from attnscope.render.files import as_csv
from attnscope.render.focus import Focus
from attnscope.render.present.written import written
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheets.composition import sheet as composition
from attnscope.results import Composition
from attnscope.results.claims.composition import Through


@pytest.fixture(scope="module")
def every() -> Composition:
    return made_composition.composition()


@pytest.fixture(scope="module")
def one() -> Composition:
    return made_composition.composition((1, 2))


def test_pairs_are_ranked_by_what_they_have_over_chance_and_those_without_score_are_left_out(
    every: Composition,
) -> None:
    for t, through in enumerate(Through):
        ranked = every.ranked(through)
        above, needed = (each[t] - every.chance[t] for each in (every.scores, every.limit))
        assert [pair.excess for pair in ranked] == pytest.approx(
            np.sort(above / needed)[::-1][-len(ranked) :]
        )
        assert [pair.stands_out for pair in ranked] == [pair.excess > 1 for pair in ranked]
        assert every.looked_at(through) == len(ranked)
    assert [every.looked_at(through) for through in Through] == [47, 47, 20]  # 4 x 5 + 4 x 3 + 5 x 3


def test_what_stands_beside_a_pair_is_the_median_of_the_others_of_its_layers(every: Composition) -> None:
    pair = every.ranked(Through.KEY)[3]
    layers = pair.early[0], pair.late[0]
    others = [
        each.score
        for each in every.ranked(Through.KEY)
        if (each.early[0], each.late[0]) == layers and each != pair
    ]
    assert pair.beside == pytest.approx(np.median(others))


def test_a_terminal_names_the_strongest_pairs_with_every_control(every: Composition) -> None:
    text = written(every, Focus(legend=True), width=80)
    best = every.ranked(Through.QUERY)[0]
    (row,) = [line for line in text.splitlines() if line.startswith(_name(best.early, best.late))][:1]
    cells = row.removeprefix(_name(best.early, best.late)).split()
    numbers = best.score, best.chance, best.spread, best.difference, best.beside, best.limit
    assert [float(cell) for cell in cells[:6]] == pytest.approx(numbers, abs=6e-4)
    assert "through queries (Q): 47 pairs looked at" in text
    for told in ("with residual additions", "left out: other heads", "no score, L3: no matrix alone", "✓"):
        assert told in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    assert "left out: other heads" not in written(every, width=80), "what never changes waits for --legend"


def test_the_answer_tells_how_many_pairs_stand_out_and_which_lies_farthest_above_chance(
    every: Composition,
) -> None:
    excess = (every.scores - every.chance) / (every.limit - every.chance)
    t, i = np.unravel_index(int(np.nanargmax(excess)), excess.shape)
    pair = every.pair(int(i), every.through[t])
    told = composition(every).answer
    assert told.startswith(f"{int((every.scores > every.limit).sum())} of 114 pairs of heads stand out. ")
    assert f"{_name(pair.early, pair.late)}through" in told
    for number in (pair.score, pair.chance, pair.limit):
        assert f"{number:.3f}".removeprefix("0") in told
    none = replace(every, scores=np.full_like(every.scores, np.nan))
    assert composition(none).answer == "No pair of heads has a score."
    assert "no pair composes through its values (V)" in composition(none).notes


def test_where_no_pair_stands_out_the_answer_says_so_first(every: Composition) -> None:
    high = replace(every, limit=np.full_like(every.limit, 0.7))
    told = composition(high).answer
    assert told.startswith("None of 114 pairs of heads stands out. Farthest above chance lies ")
    assert told.endswith(" and .700 is needed to stand out of so many.")
    best = max(every.ranked(Through.KEY), key=lambda pair: pair.excess)
    only = np.where(every.scores == best.score, (every.scores + every.chance) / 2, 0.7)
    assert (
        f"1 of 114 pairs of heads stands out. Farthest above chance lies {_name(best.early, best.late)}"
        in (composition(replace(every, limit=only)).answer)
    )


def _name(early: tuple[int, int], late: tuple[int, int]) -> str:
    return f"L{early[0]} H{early[1]} → L{late[0]} H{late[1]} "


def test_one_head_has_those_before_it_and_those_after_it(one: Composition) -> None:
    blocks = composition(one).every
    rankings = [each for each in blocks if isinstance(each, Ranking)]
    assert [[name.startswith("L1 H2") for name in each.names] for each in rankings] == [
        [False] * 4 + [True] * 3, [False] * 4 + [True] * 3, [False] * 4,
    ]  # fmt: skip
    assert "pairs: first what L1 H2 reads, then what reads it" in composition(one).legend
    grids = [each for each in blocks if isinstance(each, HeadGrid)]
    assert {each.itself for each in grids} == {(1, 2)}
    np.testing.assert_array_equal(grids[1].values, one.grid(Through.KEY))
    grid = one.grid(Through.KEY)
    assert grid.shape == (3, 5)
    assert np.isnan(grid[1]).all()  # its own layer
    assert np.isfinite(grid).sum() == 7
    assert np.isnan(one.grid(Through.VALUE)[2]).all()


def test_every_score_is_drawn_with_what_chance_makes_of_it(every: Composition) -> None:
    (first, *_) = [each for each in composition(every).every if isinstance(each, Ranking)]
    marks = {(mark.shape, mark.tint): mark for mark in first.marks}
    pairs = every.ranked(Through.QUERY, most=12)
    assert pairs == every.ranked(Through.QUERY)[:12]
    assert marks["dot", "own"].at == [pair.score for pair in pairs]
    assert marks["ring", "control"].at == [pair.chance for pair in pairs]
    assert marks["tick", "peers"].at == [pair.beside for pair in pairs]
    assert marks["span", "control"].at == pytest.approx([pair.chance - 2 * pair.spread for pair in pairs])
    assert marks["tick", "limit"].at == [pair.limit for pair in pairs]
    assert first.hidden == 47 - 12


def test_csv_has_every_pair_and_input(every: Composition) -> None:
    lines = [line for line in as_csv(every).splitlines() if not line.startswith("#")]
    assert len(lines) == 1 + 3 * 47
    first = lines[1].split(",")
    assert first[:5] == ["query", *map(str, every.pairs[0])]
    assert [float(each) for each in first[5:]] == [
        every.scores[0, 0], every.chance[0, 0], every.spread[0, 0], every.below[0, 0],
        every.scores[0, 0] - every.chance[0, 0], every.limit[0, 0],
    ]  # fmt: skip
    assert "left out: other heads" in as_csv(every)
    gone = lines[1 + 2 * 47 + int(np.flatnonzero(np.isnan(every.scores[2]))[0])].split(",")
    assert gone[5:] == [""] * 6, "what has no score has none"


@pytest.mark.parametrize("shown", [None, (1, 2)])
def test_nothing_of_a_picture_is_cut_or_lies_outside(shown: tuple[int, int] | None) -> None:
    figure = figure_of(made_composition.composition(shown))
    figure.canvas.draw()
    page = figure.bbox
    for text in figure.findobj(Text):
        if text.get_text() and text.get_visible():
            box = text.get_window_extent()
            assert page.x0 <= box.x0, text.get_text()
            assert box.x1 <= page.x1 + 1, text.get_text()
    image = np.asarray(Image.open(io.BytesIO(figure_bytes(figure, "png"))).convert("L"))
    assert (image[:, -8:] == 255).all()
    assert (image[:, :8] == 255).all()


def test_all_grids_have_one_scale_around_chance(one: Composition) -> None:
    figure = figure_of(one)
    meshes = [each for axes in figure.axes for each in axes.collections if each.get_array() is not None]
    limits = {mesh.get_clim() for mesh in meshes if mesh.get_array().size == 15}
    (ends,) = limits
    largest = max(np.nanmax(abs(one.grid(through))) for through in Through)
    assert ends == pytest.approx((-largest, largest))


def test_on_axes_of_ones_own_the_pairs_are_drawn_and_a_head_needs_a_page(
    every: Composition, one: Composition
) -> None:
    figure, axes = plt.subplots()
    try:
        assert every.plot(axes) is axes
        names = [label.get_text() for label in axes.get_yticklabels()]
        best = max((every.ranked(each)[0] for each in Through), key=lambda pair: pair.excess)
        assert f"{names[0]} " == _name(best.early, best.late)
        with pytest.raises(InputError, match="a page of its own"):
            one.plot(axes)
    finally:
        plt.close(figure)


def test_a_table_has_a_row_for_every_pair_and_input(every: Composition) -> None:
    frame = every.to_pandas()
    assert len(frame) == 3 * 47
    assert list(frame.columns)[:6] == [
        "through", "early_layer", "early_head", "late_layer", "late_head", "score",
    ]  # fmt: skip
