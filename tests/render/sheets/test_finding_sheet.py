"""The sheet of heads ranked: one sentence for each case, every number beside its controls."""

import csv
import io
import re
from collections.abc import Callable
from dataclasses import replace

import cases_find as made
import cases_retrieval
import numpy as np
import pytest
from cases_find import EXAMPLES, NUMBERS, ONE, SEVERAL, raised, with_heads
from cases_links import links
from golden_text import IN_FULL

from attnscope.render.files import as_csv
from attnscope.render.focus import Focus
from attnscope.render.kit.palette import TINTS
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheets import sheet_of
from attnscope.render.sheets.finding import _BARS
from attnscope.render.sheets.finding import sheet as finding
from attnscope.results import Contents, Finding, Pattern, Verdict
from attnscope.results.claims.finding import Case
from attnscope.results.claims.ranking import DependsOn, Group
from attnscope.vocabulary import Unit


def test_heads_below_a_heading_that_lists_a_few_of_them_are_more_and_show_nothing_else() -> None:
    few = EXAMPLES["too short"]()
    block = ranking(few)
    hidden = few.weights.size - len(block.names)
    assert 0 < hidden < few.weights.size
    assert block.unshown.startswith(f"{hidden} more ")


def test_a_head_that_position_explains_is_never_called_one_that_stands_out() -> None:
    both = with_heads({(0, 1): 0.99, (1, 2): 0.6}, raised((0, 1), 0.7, 0.72))
    assert both.evidence.as_far((0, 1)) == 0, "it is far beyond its controls"
    assert both.case is Case.ONE
    assert "L1 H2" in finding(both).answer
    names = ranking(both).names
    assert names.index("L1 H2") < names.index("L0 H1")


@pytest.mark.parametrize(
    ("verdict", "begins"),
    [
        (Verdict.INCONCLUSIVE, "Probably: Of 12"),
        (Verdict.PARTIAL, "Probably: Of 12"),
        (Verdict.UNCERTIFIED, "As the model reports it, unchecked: Of 12"),
        (Verdict.FAILED, "✗ Do not use these numbers: 1 of 12 heads does not match the model."),
    ],
)
def test_what_is_not_certified_changes_the_first_line(verdict: Verdict, begins: str) -> None:
    rows = [list(row) for row in ONE.verdicts]
    rows[1][2] = verdict
    told = sheet_of(replace(ONE, verdicts=tuple(map(tuple, rows))))
    assert told.answer.startswith(begins)
    assert (told.next is None) is (verdict is Verdict.FAILED)


def test_a_head_that_the_answer_does_not_name_leaves_it_as_it_is() -> None:
    rows = [list(row) for row in ONE.verdicts]
    rows[2][3] = Verdict.INCONCLUSIVE
    told = sheet_of(replace(ONE, verdicts=tuple(map(tuple, rows))))
    assert told.answer == sheet_of(ONE).answer
    assert [words for _, words in told.proof] == [
        "✓ certified: 11 of 12 heads recomputed, equal to the model's",
        "? inconclusive: 1 of 12 heads",
    ]


@pytest.mark.parametrize("of", Contents)
def test_the_key_of_the_picture_calls_what_heads_depend_on_as_the_table_does(of: Contents) -> None:
    block = ranking(replace(SEVERAL, controls=replace(SEVERAL.controls, of=of)))
    named = {label.split(":")[0] for label in block.key() if "when the" in label}
    assert named == {each for each in block.table["depends_on"].values if each}
    assert ("context" in named) is (of is Contents.TEXT)


def ranking(found: Finding, look: Callable[[Finding], object] = finding) -> Ranking:
    (block,) = [each for each in look(found).every if isinstance(each, Ranking)]
    return block


def test_rows_stand_in_their_groups_and_the_rest_is_counted() -> None:
    block = ranking(SEVERAL)
    assert block.names == ("L1 H2", "L2 H0")
    assert block.sections == ((0, "clearly"),)
    assert block.unshown.startswith("10 heads")
    assert len(ranking(SEVERAL, lambda found: finding(found, IN_FULL)).names) == 12


@pytest.mark.parametrize("name", NUMBERS)
def test_a_head_that_the_answer_names_is_a_row_that_is_shown(name: str) -> None:
    shown = finding(EXAMPLES[name]())
    named = set(re.findall(r"L\d+ H\d+", shown.answer)) - {"L2 H4" if name == "one alike" else ""}
    assert named <= {*shown.main.names}


def test_a_head_that_comes_nearest_is_shown_where_many_larger_ones_stand_before_it() -> None:
    wide = np.random.default_rng(2).random((60, 3, 4)) * 0.45
    wide[:, 2, 3] = wide[:, 1, 3] = 0.01
    wide[:4, 1, 3] = 0.95
    own = np.full((3, 4), 0.5)
    own[2, 3], own[1, 3] = 0.35, 0.01
    found = made.beside(own, wide)
    assert found.case is Case.CANNOT_TELL
    assert found.evidence.of_group(found.evidence.group((2, 3)))[-1] == (2, 3)
    assert "L2 H3" in finding(found).answer
    assert "L2 H3" in finding(found).main.names


def test_every_bar_has_its_controls() -> None:
    block = ranking(SEVERAL)
    marks = {(mark.shape, mark.tint): mark for mark in block.marks}
    places = SEVERAL.ranking[:2]
    assert marks["ring", "control"].at == [SEVERAL.controls.mean[place] for place in places]
    assert marks["span", "control"].at == [SEVERAL.controls.low[place] for place in places]
    assert marks["span", "control"].to == [SEVERAL.controls.high[place] for place in places]


@pytest.mark.parametrize(
    "found", [made.finding(), made.finding(by_norm=False), made.finding(pattern=Pattern.PREVIOUS)]
)
def test_few_columns_are_shown_and_in_full_those_that_have_a_meaning(found: Finding) -> None:
    usual = [each.heading for each in ranking(found).table.headed]
    assert usual[:4] == ["weight", "mean", "90 % between", "below"]
    full = {each.heading for each in ranking(found, lambda one: finding(one, IN_FULL)).table.headed}
    assert ("share of output" in full) is (found.shares is not None)
    assert ("goes with the word" in full) is (found.followed is not None)
    assert {"weight", "rank", "mean", "below", "above mean", "excess"} <= full


def test_the_csv_has_every_head_with_its_exact_numbers() -> None:
    found = made.finding()
    lines = [line for line in as_csv(found).splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(io.StringIO("\n".join(lines))))
    assert [(int(row["layer"]), int(row["head"])) for row in rows] == [
        (found.layers[i], found.heads[j]) for i, j in found.ranking
    ]
    for name, values in {
        "weight": found.weights, "norm": found.norms, "control_mean": found.controls.mean,
        "control_low": found.controls.low, "control_high": found.controls.high,
        "below": found.controls.below, "above_control": found.above_control, "excess": found.evidence.excess,
    }.items():  # fmt: skip
        assert values is not None
        assert [float(row[name]) for row in rows] == [values[place] for place in found.ranking], name
    assert [row["verdict"] for row in rows] == [found.verdicts[i][j].value for i, j in found.ranking]
    assert [row["stands_out"] for row in rows] == [str(int(found.stands_out(at))) for at in found.ranking]


def test_nothing_ranked_is_said_and_drawn() -> None:
    nothing = np.full((3, 4), np.nan)
    found = replace(made.finding(), weights=nothing, ranks=None, shares=None, norms=None, followed=None)
    found = replace(found, controls=replace(found.controls, mean=nothing))
    assert found.case is Case.UNRANKED
    assert ranking(found).names == ()
    assert finding(found).next is None
    assert found.plot().axes


def test_departures_from_what_is_usual_stand_in_the_line_of_proof() -> None:
    told = finding(made.finding())
    assert told.departs == ("30 of 40 controls", "seed 5")
    assert finding(replace(SEVERAL, by=Unit.WORD)).departs[0] == "by words"
    assert SEVERAL.evidence.of_group(Group.STANDS_OUT) == SEVERAL.ranking[:2]


def test_the_heading_of_a_group_says_how_many_of_a_long_group_are_shown() -> None:
    rare = np.zeros((40, 2, 3))
    rare[np.arange(6), [0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]] = 3.0  # in each control another head is clear
    found = made.beside(np.full((2, 3), 0.5), rare)
    assert len(found.evidence.of_group(Group.ABOVE_ITS_OWN)) == 6
    few, every = (_sections(finding(found, focus)) for focus in (Focus(), Focus(verbose=True)))
    assert [re.findall(r"\d+", *each) for each in (few, every)] == [["6", "4", "6", "1"], ["6", "6", "1"]]


def _sections(sheet: Sheet) -> list[str]:
    return [heading for block in sheet.blocks for _, heading in getattr(block, "sections", ())]


def test_bars_of_what_heads_depend_on_have_colours_of_their_own() -> None:
    colours = [TINTS[tint] for tint in _BARS.values()]
    assert len(set(colours)) == len(colours) == 1 + len(DependsOn)


def test_the_head_of_equal_weight_that_does_not_copy_stands_beside_the_named_one() -> None:
    assert cases_retrieval.retrieval().alike == ((0, 1),)
    assert cases_retrieval.retrieval().named == ((1, 2),)


def test_too_few_answers_name_no_head() -> None:
    assert (
        cases_retrieval.retrieval(named=False).enough == 7
    )  # a head of six that looks there in each: 6 / 2^7 < .05


def test_links_that_chance_would_give_stand_under_their_own_heading() -> None:
    (block,) = sheet_of(links()).every
    first, rest = block.sections
    assert (first[0], rest[0]) == (0, 2)
    assert "2" in first[1]
    assert sheet_of(links(as_clear=3)).every[0].sections == ((0, rest[1]),)
    assert sheet_of(links(found=0)).every == ()


def test_the_next_command_asks_for_the_heads_of_the_clearest_link() -> None:
    following = sheet_of(links()).next
    assert following is not None
    assert "find" in following.command
    assert "--from it --to the@5" in following.command
    assert sheet_of(links(found=0)).next is None


def test_a_file_has_what_may_explain_each_link() -> None:
    columns = {each.name: list(each.values) for each in sheet_of(links(cross=True), Focus()).table().columns}
    assert len(columns["query"]) == 4
    assert [float(each) for each in columns["controls"]] == pytest.approx([0.25, 0.35, 0.45, 0.55])
    assert columns["distance"] == [""] * 4
