"""The sheet of an ablation: every difference beside what other heads do, and what was read back."""

import re
from dataclasses import replace

import cases_ablate as made
import made_results
import numpy as np
import pytest
from cases_ablate import EXAMPLES, NUMBERS, alone, many, one
from golden_text import IN_FULL, printed
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_hex

from attnscope.render.figure import figure_of
from attnscope.render.focus import Focus
from attnscope.render.kit.palette import TINTS
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheets.ablation import sheet as ablation
from attnscope.render.terminal import sheet as terminal
from attnscope.results import Ablation
from attnscope.results.claims.ablation import Case, ranked
from attnscope.results.claims.effect import Answer, Asks, Effect, Floor
from attnscope.results.claims.intervention import Intervention

DRAWN = {name: EXAMPLES[name] for name in ("each", "each, foretold", "part of the gap", "a link in each")} | {
    "together": made.together,
    "many": lambda: many(12, 32),
    "written": lambda: made.ablation(
        answer=Answer(Asks.WRITTEN, "la porte s'est ouverte " * 9, (1, 2, 3), None, 1e-9)
    ),
}


def ranking(found: Ablation) -> Ranking:
    (block,) = [each for each in ablation(found).every if isinstance(each, Ranking)]
    return block


def marks(found: Ablation, tint: str) -> list[float]:
    """Where the marks of one meaning are, in the order of the rows."""
    at = [value for mark in ranking(found).marks if mark.tint == tint for value in mark.at]
    return [value for value in at if value is not None]


def shown(found: Ablation, width: int = 80) -> str:
    return "".join(printed(part, width) for part in terminal.screen(found, width, IN_FULL))


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("width", [40, 60, 80, 140])
def test_no_line_is_wider_than_the_terminal_and_nothing_raw_reaches_it(name: str, width: int) -> None:
    (body, _command) = terminal.screen(DRAWN[name](), width)
    text = printed(body, width)
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text


@pytest.mark.parametrize("name", DRAWN)
def test_colour_changes_no_character(name: str) -> None:
    body = terminal.screen(DRAWN[name](), 100)[0]
    coloured = printed(body, 100, "truecolor")
    assert coloured != made_results.plain(coloured)
    assert made_results.plain(coloured) == printed(body, 100)


def test_of_equal_heads_one_seldom_matters_more_than_the_rest_and_one_or_two_that_do_are_told() -> None:
    random = np.random.default_rng(0)

    def case(changes: list[float]) -> Case:
        heads = [made.effect(0, i, -each, typical=0.1, controls=11) for i, each in enumerate(changes)]
        return made.ablation(heads=ranked(tuple(heads))).case

    drawn = [random.exponential(1.0, 12).tolist() for _ in range(400)]
    assert sum(case(each) is Case.EACH for each in drawn) <= 36  # 1 in 20 exceeds that once in 1,000 runs
    like = [0.1, 0.2, 0.15, 0.12, 0.11, 0.05, 0.09, 0.2, 0.13, 0.02]
    assert case([3.0, *like]) is Case.EACH
    assert case([3.0, 2.9, *like]) is Case.EACH
    assert case([0.45, 0.3, *like]) is Case.FLAT
    assert case([3.0, 2.9, 2.8, 2.7, *like]) is Case.FLAT


def test_a_head_comes_first_that_exceeds_the_typical_head_of_its_layer_most() -> None:
    loud = made.effect(0, 0, -0.9, typical=0.8, below=1, controls=2)
    clear = made.effect(1, 0, -0.7, typical=0.1, below=2, controls=2)
    found = made.ablation(heads=ranked((loud, clear)))
    assert ranking(found).names == ("L1 H0", "L0 H0")
    assert re.findall(r"L\d H\d", ablation(found).answer) == ["L0 H0", "L1 H0"], "by the change itself"


def test_what_is_asked_next_follows_from_the_case_and_keeps_the_word_that_was_asked_for() -> None:
    def next_of(found: Ablation) -> str:
        return str(ablation(found).next)

    assert "--heads L1H0,L0H1" in next_of(made.ablation())
    assert "--heads L1H0,L0H2 --with mean" in next_of(made.foretold())
    assert " find " in next_of(made.link())
    little = alone(one(-1e-3), answer=replace(made.ablation().answer, likeliest=False))
    assert next_of(little).endswith("--answer door")
    assert "--answer" not in next_of(made.ablation())
    assert ablation(made.ablation(heads=())).next is None


def test_the_link_that_was_cut_is_named() -> None:
    cut, other = ablation(made.link()), ablation(made.ablation())
    assert ["“on” → “cat”" in told for told in (cut.title, cut.answer, other.title)] == [True, True, False]


def test_the_numbers_of_a_head_stand_in_its_line_beside_what_others_do() -> None:
    lines = shown(made.ablation()).splitlines()
    row = next(line for line in lines if line.startswith("L1 H0 "))
    assert " ".join(row.split()[2:]) == "25.0 % → 5.6 % −1.500 2.250 .200 largest of 3"
    assert any(line.split()[:2] == ["removed", "“door”"] for line in lines)
    brief = printed(terminal.screen(made.ablation(), 140)[0], 140)
    assert "all answers moved" not in brief
    assert "all answers moved" in " ".join(shown(made.ablation(), 140).split())


def test_the_grid_has_every_difference_at_its_place() -> None:
    (grid,) = [each for each in ablation(made.ablation()).every if isinstance(each, HeadGrid)]
    assert grid.values.tolist() == [[0.02, -0.12, 0.02], [-1.5, 0.25, 0.0]]
    assert grid.title == "change (nats; − is less likely) without each head"
    lines = shown(made.ablation()).splitlines()
    start = next(i for i, line in enumerate(lines) if line.split() == ["H0", "H1", "H2"])
    assert lines[start + 1].split() == ["L0", "+.02", "−.12", "+.02"]
    assert lines[start + 2].split() == ["L1", "−1.50", "+.25", ".00"]


@pytest.mark.parametrize(
    ("change", "unit", "written"),
    [(-0.4, "", "−.40"), (-0.0042, "in thousandths", "−4.2"), (-3.1e-5, "in millionths", "−31.0")],
)
def test_no_number_of_a_dark_cell_is_nothing(change: float, unit: str, written: str) -> None:
    small = tuple(
        made.effect(layer, head, change / (1 + 2 * layer + head)) for layer in (0, 1) for head in (0, 1)
    )
    (grid,) = [each for each in ablation(made.ablation(heads=small)).every if isinstance(each, HeadGrid)]
    assert (grid.unit, grid.text(0, 0)) == (unit, written)
    assert all(grid.text(i, j).strip("−+.0") for i, j in grid.places if np.isfinite(grid.values[i, j]))


def test_a_control_that_there_is_not_is_said_to_be_none() -> None:
    lonely = made.ablation(heads=(made.effect(0, 0, -0.4),), floor=Floor(2e-7, 0.0, 0, (), 0))
    assert ablation(lonely).control == "none, the layer has no other head; output replaced by zeros"
    told = " ".join(ablation(lonely).legend)
    assert "at most 2.0e-7" in told
    row = next(line for line in shown(lonely).splitlines() if line.startswith("L0 H0 "))
    assert row.split()[-2:] == ["−.400", ".160"], "nothing under typical and rank"
    nothing = made.ablation(floor=Floor(0.0, 0.0, 2, (), 0))
    assert "moves by nothing at all" in " ".join(ablation(nothing).legend)


def test_shares_of_a_way_that_is_nothing_are_not_told() -> None:
    near = replace(made.patched(), total=Effect(0.25, 0.25, 1e-7, 0.0))
    assert "share of the gap" not in " ".join(shown(near, 140).split())
    assert "share of the gap" in " ".join(shown(made.patched(), 140).split())
    assert "19 %" in shown(made.patched())


@pytest.mark.parametrize(
    ("done", "words"),
    [
        (Intervention.of(3, 0, 0, True), "✓ certified: the changes were read back in the model"),
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
    assert marks(made.ablation(), "loses") == [each.change for each in heads if each.change < 0]
    assert marks(made.ablation(), "gains") == [each.change for each in heads if each.change >= 0]
    assert marks(made.ablation(), "floor") == [each.typical for each in heads]
    assert marks(made.ablation(), "noise") == [-3e-7, 3e-7]
    axes = figure_of(made.ablation()).axes[0]
    widths = [bar.get_width() for bar in axes.patches if to_hex(bar.get_facecolor()) == TINTS["floor"]]
    assert np.abs(widths) == pytest.approx([2 * (each.typical or 0) for each in heads])


def test_all_at_once_comes_first_and_random_heads_only_where_everything_is_asked_for() -> None:
    assert ranking(made.together()).names == ("both at once", "L1 H0", "L1 H2")
    assert marks(made.together(), "faint") == []
    (block,) = [
        each for each in ablation(made.together(), Focus(verbose=True)).every if isinstance(each, Ranking)
    ]
    assert block.names == ("both at once", "L1 H0", "L1 H2", "L1 H1 random")
    assert block.faint == {3}
    assert "random" not in printed(terminal.screen(made.together(), 80)[0], 80)
    assert "L1 H1 random" in shown(made.together())


def test_estimates_are_marks_on_the_bars_and_stand_for_every_head_in_a_grid() -> None:
    assert marks(made.foretold(), "control") == [-0.9, 0.5, 0.2]
    (grid,) = [each for each in ablation(made.foretold()).every if isinstance(each, HeadGrid)]
    assert grid.title == "change (nats; − is less likely) predicted by the gradient"
    assert grid.values.tolist() == [[0.0, 0.2, 0.5], [-0.9, 0.1, 0.0]]


def test_the_grid_is_drawn_on_one_scale_around_nothing() -> None:
    (mesh,) = [each for each in figure_of(made.ablation()).axes[1].collections if isinstance(each, QuadMesh)]
    assert mesh.get_clim() == (-1.5, 1.5)
    assert mesh.get_array().tolist() == [[0.02, -0.12, 0.02], [-1.5, 0.25, 0.0]]  # type: ignore[union-attr]
    large = many(12, 12)
    assert f"{large.heads[0].change:+.2f}".replace("-", "−") in {
        text.get_text() for text in figure_of(large).axes[1].texts
    }, "numbers of two digits keep both"


def test_many_heads_are_ranked_as_far_as_there_is_room_and_the_rest_counted() -> None:
    assert len(ranking(many(12, 32)).names) == 12
    assert ranking(many(12, 32)).hidden == 12 * 32 - 12
    assert ranking(made.ablation()).hidden == 0


def test_a_line_says_what_it_is_and_a_table_has_every_row() -> None:
    assert repr(made.ablation()).startswith("<Ablation 6 heads removed in turn · answer “door” at 4 ")
    assert "most L1 H0" in repr(made.ablation())
    frame = made.foretold().to_pandas()
    assert frame["predicted"].notna().sum() == 6
    assert frame["change"].notna().sum() == 3
    assert list(made.together().to_pandas()["drawn"]) == ["", "", "random", "group"]


@pytest.mark.parametrize("name", NUMBERS)
def test_the_legend_explains_the_vague_words_of_the_answer_and_no_others(name: str) -> None:
    sheet = ablation(EXAMPLES[name]())
    told = " ".join(sheet.legend)
    assert ("hardly" in told) == ("hardly" in sheet.answer or "by much" in sheet.answer)
    assert ("to stand out" in told) == ("stands out" in sheet.answer)
    assert "replaced by zeros" not in told or "where it stands" in name, "the line of controls says it"


def test_what_is_no_share_of_the_gap_is_told_in_nats_with_the_reason() -> None:
    """A part that goes two and a half times the gap in the wrong direction has no −238 % of it."""
    found = made.grid()
    far = replace(found.places[0], enough=2.38 * 7.8)
    told = " ".join(shown(replace(found, places=(far, *found.places[1:])), 160).split())
    assert "238" not in told
    assert "(nats; the gap is −7.82" in told
    assert "+18.56" in told
    assert "no share" in told
    assert "needed: share of the gap" in told, "of this direction all are shares"
    whole = " ".join(shown(found, 160).split())
    assert "no share" not in whole
    assert "enough: share" in whole


def test_heads_that_go_beyond_the_other_text_are_told_in_nats_and_not_as_shares() -> None:
    told = " ".join(shown(EXAMPLES["beyond the gap"](), 200).split())
    assert "−12.00 nats" in told.partition("share of the gap")[2]
    assert "154 %" not in told


def test_a_path_is_told_with_who_reads_it_what_all_ways_do_and_who_else_was_tried() -> None:
    sheet = ablation(made.along())
    assert ["the keys of L1 H0" in told for told in (sheet.title, sheet.answer)] == [True, True]
    (note,) = sheet.notes
    assert re.findall(r"[−+][\d.]+", note) == ["−2.50", "−1.20", "−.05"]
    told = " ".join(shown(made.along(), 200).split())
    assert "by all ways" in told
    assert "2 other heads of layer 1" in sheet.control
    assert "Wang et al. 2022" in told
    assert "--via L1H0.k" in told
