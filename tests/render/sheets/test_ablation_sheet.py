"""The sheet of an ablation: every difference beside what other heads do, and what was read back."""

from collections.abc import Callable
from dataclasses import replace

import made_ablation as made
import made_results
import numpy as np
import pytest
from golden_text import IN_FULL, printed
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_hex

from attnscope.render import screen as terminal
from attnscope.render.figure import figure_of
from attnscope.render.kit.palette import TINTS
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheets.ablation import sheet as ablation
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


def ranking(found: Ablation) -> Ranking:
    (block,) = [each for each in ablation(found).every if isinstance(each, Ranking)]
    return block


def marks(found: Ablation, tint: str) -> list[float]:
    """Where the marks of one meaning are, in the order of the rows."""
    at = [value for mark in ranking(found).marks if mark.tint == tint for value in mark.at]
    return [value for value in at if value is not None]


def shown(found: Ablation, width: int = 80) -> str:
    return "".join(printed(part, width) for part in terminal.screen(found, width, IN_FULL))


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


def test_the_answer_tells_what_becomes_of_it_and_what_others_do() -> None:
    assert ablation(made.ablation()).answer == (
        "Without L1 H0 the probability of “door” at 4 on goes from .250 to .056 (−1.50 nats); "
        "other heads of its layer make ±.200, 2 of 2 less than it."
    )
    together = ablation(made.together()).answer
    assert "with both at once it goes from .250 to .040 (−1.83 nats, KL 1.100)" in together
    assert "2 other groups of as many heads in the same layers make ±.900, 2 of them less" in together
    group = made.together().group
    assert group is not None
    alone = made.ablation(group=replace(group, chance=None, others=0, beaten=0))
    assert "no other group of as many heads to hold it against" in ablation(alone).answer
    assert ablation(made.ablation(heads=())).answer == ""


def test_the_edge_that_was_cut_is_named_first() -> None:
    made_sheet = ablation(made.edge())
    tokens = made.edge().tokens
    edge = f"{tokens.named(4)} → {tokens.named(2)}"
    assert f"without the edge {edge} in turn" in made_sheet.title
    assert made_sheet.answer.startswith(f"With the edge {edge} of L")
    assert "edge" not in ablation(made.ablation()).title


def test_the_numbers_of_a_head_stand_in_its_line_beside_what_others_do() -> None:
    row = next(line for line in shown(made.ablation()).splitlines() if line.startswith("L1 H0 ")).split()
    assert row[2:] == [".250", ".056", "−1.500", "2.250", "±.200", "2", "of", "2"]


def test_the_grid_has_every_difference_at_its_place_and_its_control_beside_it() -> None:
    (grid,) = [each for each in ablation(made.ablation()).every if isinstance(each, HeadGrid)]
    assert grid.values.tolist() == [[0.02, -0.12, 0.02], [-1.5, 0.4, 0.0]]
    assert grid.companion is not None
    others = [[grid.companion.short(i, j) for j in range(3)] for i in range(2)]
    assert others == [["±.07", "±.02", "±.07"], ["±.20", "±.75", "±.95"]]
    lines = shown(made.ablation()).splitlines()
    start = next(i for i, line in enumerate(lines) if line.split() == ["H0", "H1", "H2"])
    assert lines[start + 1].split() == ["L0", "+.02", "±.07", "−.12", "±.02", "+.02", "±.07"]
    assert lines[start + 2].split() == ["L1", "−1.50", "±.20", "+.40", "±.75", ".00", "±.95"]


@pytest.mark.parametrize(
    ("difference", "unit", "written"),
    [(-0.4, "", "−.40"), (-0.0042, "in thousandths", "−4.2"), (-3.1e-5, "in millionths", "−31.0")],
)
def test_no_number_of_a_dark_cell_is_nothing(difference: float, unit: str, written: str) -> None:
    small = tuple(
        made.effect(layer, head, difference / (1 + 2 * layer + head)) for layer in (0, 1) for head in (0, 1)
    )
    (grid,) = [each for each in ablation(made.ablation(heads=small)).every if isinstance(each, HeadGrid)]
    assert (grid.unit, grid.text(0, 0)) == (unit, written)
    assert all(grid.text(i, j).strip("−+.0") for i, j in grid.places if np.isfinite(grid.values[i, j]))


def test_a_control_that_there_is_not_is_said_to_be_none() -> None:
    alone = made.ablation(heads=(made.effect(0, 0, -0.4),), floor=Floor(2e-7, 0.0, 0, (), 0))
    notes = " ".join(ablation(alone).notes)
    assert "the layer has no other head that this one could be held against" in notes
    assert "with every output of a layer moved by its precision, the answer moves by at most 2.0e-7" in notes
    row = next(line for line in shown(alone).splitlines() if line.startswith("L0 H0 "))
    assert row.split()[-2:] == ["-", "-"]
    nothing = made.ablation(floor=Floor(0.0, 0.0, 2, (), 0))
    assert "moves by nothing at all" in " ".join(ablation(nothing).notes)


def test_shares_of_a_way_that_is_nothing_are_not_told() -> None:
    near = replace(made.patched(), total=Effect(0.25, 0.25, 1e-7, 0.0))
    assert "too little to speak of shares" in ablation(near).answer
    assert "of the way" not in shown(near)
    assert "L1 H0 alone makes 19 % of it" in ablation(made.patched()).answer
    assert "19 %" in shown(made.patched())


@pytest.mark.parametrize(
    ("done", "words"),
    [
        (Intervention.of(3, 0, 0, True), "✓ certified: 3 of 3 changed attentions read back"),
        (Intervention.of(3, 0, 0, False), "inconclusive: watching alone changed the answer's scores"),
        (Intervention.of(1, 0, 2, True), "of 3 changed attentions 2 cannot be read back"),
        (Intervention.of(1, 2, 0, True), "2 of 3 changed attentions did not come as asked for"),
    ],
)
def test_what_was_read_back_is_told(done: Intervention, words: str) -> None:
    result = made.ablation(intervention=done)
    ((verdict, told),) = ablation(result).proof
    assert words in told
    assert words in " ".join(shown(result, 200).split())
    heading = " ".join(each.get_text() for each in figure_of(result).texts if each.get_weight() == "bold")
    assert (verdict.value in heading.lower()) is (verdict.value != "certified")


def test_bars_are_the_differences_on_the_floor_of_their_layer() -> None:
    heads = made.ablation().heads
    assert marks(made.ablation(), "loses") == [each.difference for each in heads if each.difference < 0]
    assert marks(made.ablation(), "gains") == [each.difference for each in heads if each.difference >= 0]
    assert marks(made.ablation(), "floor") == [each.chance for each in heads]
    assert marks(made.ablation(), "noise") == [-3e-7, 3e-7]
    axes = figure_of(made.ablation()).axes[0]
    widths = [bar.get_width() for bar in axes.patches if to_hex(bar.get_facecolor()) == TINTS["floor"]]
    assert np.abs(widths) == pytest.approx([2 * (each.chance or 0) for each in heads])


def test_all_at_once_comes_first_and_random_heads_last_and_named_so() -> None:
    block = ranking(made.together())
    assert block.names == ("both at once", "L1 H0", "L1 H2", "L1 H1 random")
    assert block.faint == {3}
    assert marks(made.together(), "faint") == [0.4]
    assert "L1 H1 random" in shown(made.together())


def test_estimates_are_marks_on_the_bars_and_stand_for_every_head_in_a_grid() -> None:
    assert marks(made.foretold(), "control") == [-0.9, 0.5, 0.2]
    (grid,) = [each for each in ablation(made.foretold()).every if isinstance(each, HeadGrid)]
    assert grid.title == "difference foretold by the gradient"
    assert grid.values.tolist() == [[0.0, 0.2, 0.5], [-0.9, 0.1, 0.0]]
    assert (
        "estimates: rank correlation with what happened, over these 3 heads: .50"
        in ablation(made.foretold()).notes
    )


def test_the_grid_is_drawn_on_one_scale_around_nothing() -> None:
    (mesh,) = [each for each in figure_of(made.ablation()).axes[1].collections if isinstance(each, QuadMesh)]
    assert mesh.get_clim() == (-1.5, 1.5)
    assert mesh.get_array().tolist() == [[0.02, -0.12, 0.02], [-1.5, 0.4, 0.0]]  # type: ignore[union-attr]
    large = many(12, 12)
    assert f"{large.heads[0].difference:+.2f}".replace("-", "−") in {
        text.get_text() for text in figure_of(large).axes[1].texts
    }, "numbers of two digits keep both"


def test_many_heads_are_ranked_as_far_as_there_is_room_and_the_rest_counted() -> None:
    assert len(ranking(many(12, 32)).names) == 12
    assert ranking(many(12, 32)).hidden == 12 * 32 - 12
    assert ranking(made.ablation()).hidden == 0


def test_a_line_says_what_it_is_and_a_table_has_every_row() -> None:
    assert repr(made.ablation()).startswith("<Ablation 6 heads taken away in turn · answer “door” at 4 ")
    assert "most L1 H0" in repr(made.ablation())
    frame = made.foretold().to_pandas()
    assert frame["estimate"].notna().sum() == 6
    assert frame["difference"].notna().sum() == 3
    assert list(made.together().to_pandas()["drawn"]) == ["", "", "random", "group"]
