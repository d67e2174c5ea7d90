"""What an ablation shows: in a terminal, in a picture, in one line."""

from collections.abc import Callable
from dataclasses import replace

import made_ablation as made
import made_results
import numpy as np
import pytest
from golden_text import assert_golden, printed
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_hex
from matplotlib.text import Text

from attnscope.render import screen as terminal
from attnscope.render.ablation.plot import FLOOR, LESS, MORE, RANDOM, RANKED, bars_of, draw_bars
from attnscope.render.ablation.words import proof_words, rounding_words, total_words
from attnscope.render.figure import figure_bytes, figure_of
from attnscope.render.kit.typesetting import drawing
from attnscope.results import Ablation
from attnscope.results.claims.ablation import Answer, Asks, Effect, Floor, HeadEffect, Intervention, ranked

CASES: dict[str, Callable[[], Ablation]] = {
    "each": made.ablation,
    "together": made.together,
    "foretold": made.foretold,
    "patched": made.patched,
    "edge": made.edge,
    "many": lambda: many(12, 32),
    "written": lambda: made.ablation(
        answer=Answer(Asks.WRITTEN, "la porte s'est ouverte " * 9, (1, 2, 3), None, 1e-9)
    ),
}


def many(layers: int, heads: int) -> Ablation:
    values = np.random.default_rng(0).normal(size=(layers, heads)) ** 3
    effects = [
        HeadEffect(0.25, 0.2, float(value), 0.1, *place, chance=0.1, beaten=3, others=heads - 1)
        for place, value in np.ndenumerate(values)
    ]
    return made.ablation(heads=ranked(tuple(effects)))


def shown(result: Ablation, width: int = 80) -> str:
    return "".join(printed(part, width) for part in terminal.screen(result, width))


def flat(result: Ablation, width: int = 80) -> str:
    return " ".join(shown(result, width).split())


@pytest.mark.parametrize("name", ["each", "together", "foretold", "patched", "edge"])
@pytest.mark.parametrize("width", [80, 140])
def test_what_a_terminal_shows(name: str, width: int) -> None:
    assert_golden(f"ablation_{name}_{width}", shown(CASES[name](), width))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("width", [40, 60, 80, 140])
def test_no_line_is_wider_than_the_terminal_and_nothing_raw_reaches_it(name: str, width: int) -> None:
    (body, _command) = terminal.screen(CASES[name](), width)
    text = printed(body, width)
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text


@pytest.mark.parametrize("name", CASES)
def test_colour_changes_no_character(name: str) -> None:
    body = terminal.screen(CASES[name](), 100)[0]
    coloured = printed(body, 100, "truecolor")
    assert coloured != made_results.plain(coloured)
    assert made_results.plain(coloured) == printed(body, 100)


def test_the_numbers_of_a_head_stand_in_its_line_beside_what_others_do() -> None:
    lines = shown(made.ablation()).splitlines()
    row = next(line for line in lines if line.startswith("L1 H0 ")).split()
    assert row[2:] == [".250", ".056", "−1.500", "2.250", "±0.200", "2", "of", "2"]


def test_the_grid_has_every_difference_at_its_place() -> None:
    lines = shown(made.ablation()).splitlines()
    start = next(i for i, line in enumerate(lines) if line.split() == ["H0", "H1", "H2"])
    assert lines[start + 1].split() == ["L0", "+.02", "−.12", "+.02"]
    assert lines[start + 2].split() == ["L1", "−1.50", "+.40", ".00"]
    assert "difference by layer and head" not in shown(many(12, 32))


def test_a_control_that_there_is_not_is_said_to_be_none() -> None:
    alone = made.ablation(heads=(made.effect(0, 0, -0.4),), floor=Floor(2e-7, 0.0, 0, (), 0))
    assert "the layer has no other head that this one could be held against" in flat(alone)
    moved = (
        "rounding: with every output of a layer moved by its precision, the answer moves by at most 2.0e-7"
    )
    assert rounding_words(alone) == moved
    assert shown(alone).splitlines()[7].split()[-2:] == ["-", "-"]
    nothing = made.ablation(floor=Floor(0.0, 0.0, 2, (), 0))
    assert rounding_words(nothing).endswith("moves by nothing at all")


def test_shares_of_a_way_that_is_nothing_are_not_told() -> None:
    near = replace(made.patched(), total=Effect(0.25, 0.25, 1e-7, 0.0))
    assert "too little to speak of shares" in total_words(near)
    assert "of the way" not in shown(near)
    assert "L1 H0 alone makes 19 % of it" in total_words(made.patched())
    assert "19 %" in shown(made.patched())


@pytest.mark.parametrize(
    ("done", "words"),
    [
        (Intervention(3, 0, 0, True), "✓ certified: 3 of 3 changed attentions read back"),
        (Intervention(3, 0, 0, False), "inconclusive: watching alone changed the answer's scores"),
        (Intervention(1, 0, 2, True), "of 3 changed attentions 2 cannot be read back"),
        (Intervention(1, 2, 0, True), "2 of 3 changed attentions did not come as asked for"),
    ],
)
def test_what_was_read_back_is_told(done: Intervention, words: str) -> None:
    result = made.ablation(intervention=done)
    assert words in proof_words(result)
    assert words in flat(result, 200)
    verdict = result.verdict.value
    heading = " ".join(each.get_text() for each in figure_of(result).texts if each.get_weight() == "bold")
    assert (verdict in heading.lower()) is (verdict != "certified")


def test_bars_are_as_long_as_the_differences_on_the_floor_of_their_layer() -> None:
    axes = figure_of(made.ablation()).axes[0]
    widths = {colour: [] for colour in (LESS, MORE, FLOOR)}
    for patch in axes.patches:
        widths[to_hex(patch.get_facecolor())].append(patch.get_width())
    heads = made.ablation().heads
    assert widths[LESS] == [each.difference for each in heads if each.difference < 0]
    assert widths[MORE] == [each.difference for each in heads if each.difference >= 0]
    assert widths[FLOOR] == pytest.approx([2 * each.chance for each in heads])
    assert [label.get_text() for label in axes.get_yticklabels()] == [f"L{e.layer} H{e.head}" for e in heads]
    low, high = axes.get_xlim()
    assert low < -1.5
    assert high > 0.95
    rounding = [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"]
    assert sorted(rounding) == [-3e-7, 3e-7]


def test_all_at_once_comes_first_and_random_heads_last() -> None:
    bars = bars_of(made.together())
    assert [bar.name for bar in bars] == ["both at once", "L1 H0", "L1 H2", "L1 H1"]
    assert [bar.random for bar in bars] == [False, False, False, True]
    colours = [to_hex(patch.get_facecolor()) for patch in figure_of(made.together()).axes[0].patches]
    assert colours.count(RANDOM) == 1


def test_estimates_are_marks_on_the_bars() -> None:
    (marks,) = [line for line in figure_of(made.foretold()).axes[0].lines if line.get_marker() == "D"]
    assert list(marks.get_xdata()) == [-0.9, 0.5, 0.2]
    assert len(figure_of(made.foretold()).axes) == 1, "of a few heads there is no grid"


def test_the_grid_is_drawn_on_one_scale_around_nothing() -> None:
    (mesh,) = [each for each in figure_of(made.ablation()).axes[1].collections if isinstance(each, QuadMesh)]
    assert mesh.get_clim() == (-1.5, 1.5)
    assert mesh.get_array().tolist() == [[0.02, -0.12, 0.02], [-1.5, 0.4, 0.0]]
    assert len(bars_of(many(12, 32))) == RANKED
    assert len(bars_of(many(24, 16))) == 2 * RANKED, "as high as the grid beside them"


@pytest.mark.parametrize("name", CASES)
def test_every_word_of_a_picture_lies_on_its_page_and_none_on_another(name: str) -> None:
    with drawing():
        figure = figure_of(CASES[name]())
        figure.draw_without_rendering()
        boxes = [
            text.get_window_extent()
            for text in figure.findobj(Text)
            if text.get_text().strip() and text.get_visible()
        ]
    width, height = figure.get_size_inches() * figure.dpi
    for box in boxes:
        assert 0 <= box.x0 <= box.x1 <= width
        assert 0 <= box.y0 <= box.y1 <= height
    numbers = [box for box in boxes if box.width]
    for i, box in enumerate(numbers):
        for other in numbers[i + 1 :]:
            assert min(box.x1, other.x1) - max(box.x0, other.x0) < 1 or (
                min(box.y1, other.y1) - max(box.y0, other.y0) < 2
            ), "two words lie on each other"


def test_the_same_result_gives_the_same_picture() -> None:
    assert figure_bytes(figure_of(made.patched()), "svg") == figure_bytes(figure_of(made.patched()), "svg")


def test_bars_are_drawn_on_any_axes() -> None:
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    draw_bars(made.ablation(), axes)
    assert made.ablation().plot(axes) is axes


def test_a_line_says_what_it_is() -> None:
    assert repr(made.ablation()).startswith("<Ablation answer “door” at 4 ")
    assert "6 heads taken away in turn · most L1 H0" in repr(made.ablation())
    frame = made.foretold().to_pandas()
    assert frame["estimate"].notna().sum() == 6
    assert frame["difference"].notna().sum() == 3
