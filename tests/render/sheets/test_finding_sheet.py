"""The sheet of heads ranked: one sentence for each case, every number beside its controls."""

import csv
import io
import re
from collections.abc import Callable
from dataclasses import replace

import made_finding as made
import made_results
import numpy as np
import pytest
from golden_text import IN_FULL

from attnscope.render.focus import Focus
from attnscope.render.kit.palette import TINTS
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheets import finding_rows, sheet_of
from attnscope.render.sheets.finding import sheet as finding
from attnscope.render.table import as_csv
from attnscope.results import Contents, Finding, Kind, Pattern, Sought, Verdict
from attnscope.results.claims.finding import Case
from attnscope.results.claims.ranking import DependsOn, Group
from attnscope.vocabulary import Unit

STEADY = np.random.default_rng(0).random((60, 3, 4)) / 50  # of every head in every control
LOW = np.full((3, 4), 0.01)


def with_heads(
    heads: dict[tuple[int, int], float], controls: np.ndarray = STEADY, **other: object
) -> Finding:
    own = LOW.copy()
    for place, value in heads.items():
        own[place] = value
    return made.beside(own, controls, **other)


def raised(place: tuple[int, int], low: float, high: float) -> np.ndarray:
    """The same controls, in which one head has numbers between these."""
    controls = STEADY.copy()
    controls[:, *place] = low + (high - low) * np.random.default_rng(1).random(60)
    return controls


SEVERAL = with_heads({(1, 2): 0.9, (2, 0): 0.5})
ONE = with_heads({(1, 2): 0.71})
WORD = with_heads({(1, 2): 0.71}, followed=np.full((3, 4), 0.47))
WANDERING = raised((1, 2), 0.0, 0.65)
WANDERING[:10, 2, 2] = 0.9
CANNOT = with_heads({(1, 2): 0.72}, WANDERING)
POSITION = with_heads({(0, 1): 0.75}, raised((0, 1), 0.6, 0.8))
NOTHING = with_heads({(0, 1): 0.07})
FEW = with_heads({(1, 2): 0.9}, STEADY[:12])
PREVIOUS = with_heads({(0, 1): 0.99}, raised((0, 1), 0.97, 0.99), question=Sought(pattern=Pattern.PREVIOUS))
INDUCTION = replace(SEVERAL, question=Sought(pattern=Pattern.INDUCTION))
LIKE = made.beside(
    np.where(LOW > 0, 0.4, 0) - 0.39 * (np.arange(12).reshape(3, 4) == 7),
    0.14 + raised((0, 0), 0, 0.1),
    question=Sought(like=(2, 4)),
)
CROSS = replace(ONE, kind=Kind.CROSS)
PICTURE = replace(ONE, controls=replace(ONE.controls, of=Contents.PICTURE))

CASES: dict[str, tuple[Finding, Case, str]] = {
    "several": (
        SEVERAL,
        Case.SEVERAL,
        "2 of 12 heads look from “it” at … far more than in control texts: L1 H2, .90 here, .01 there. "
        "No head of any control text stands so clear of its own.",
    ),
    "one": (ONE, Case.ONE, "One of 12 heads looks from … far more than in control texts: L1 H2, .71"),
    "word": (
        WORD,
        Case.ONE,
        "Wherever … itself went, it got .47 from L1 H2: mostly the word draws it, not the sentence.",
    ),
    "cannot tell": (
        CANNOT,
        Case.CANNOT_TELL,
        "This text cannot tell which head looks from …: L1 H2 comes nearest (.72 here, … in control "
        "texts), but in … of 60 control texts some head stands as clear of its own.",
    ),
    "position": (
        POSITION,
        Case.POSITION_ONLY,
        "Heads look from … because of where it stands: L0 H1 gives it .75 here and … whatever word is there.",
    ),
    "nothing": (NOTHING, Case.NOTHING, "No head looks from …: the most is .07 (L0 H1; even attention: .0"),
    "few": (
        FEW,
        Case.FEW_CONTROLS,
        "This text is too short to tell: its words stand in no more than 12 other orders, and 19 are needed.",
    ),
    "previous": (
        PREVIOUS,
        Case.POSITION_SOUGHT,
        "L0 H1 looks at the token before, whatever the words: .99 here, .98 in control texts. "
        "No head does it for these words alone.",
    ),
    "induction": (INDUCTION, Case.SEVERAL, "heads look at what followed the same token before far more"),
    "like": (
        LIKE,
        Case.ONE,
        "One of 12 heads is more like L2 H4 here than in control texts: L1 H3, .01 apart",
    ),
    "cross": (CROSS, Case.ONE, "One of 12 heads looks at … when the decoder reads … far more than"),
    "picture": (PICTURE, Case.ONE, "than in control pictures: … An untrained model can do this too."),
}


@pytest.mark.parametrize("name", CASES)
def test_each_case_has_its_sentence(name: str) -> None:
    found, case, words = CASES[name]
    told = finding(found).answer
    assert found.case is case
    assert re.search(".*".join(map(re.escape, words.split("…"))), told), told
    assert not told[0].islower()
    assert told.endswith(".")


def test_heads_below_a_heading_that_lists_a_few_of_them_are_more_and_show_nothing_else() -> None:
    block = ranking(FEW)
    hidden = FEW.weights.size - len(block.names)
    assert 0 < hidden < FEW.weights.size
    assert block.unshown == f"{hidden} more heads (-v)"


def test_a_head_that_position_explains_is_never_called_one_that_stands_out() -> None:
    both = with_heads({(0, 1): 0.99, (1, 2): 0.6}, raised((0, 1), 0.7, 0.72))
    assert both.evidence.as_far((0, 1)) == 0, "it is far beyond its controls"
    assert "One of 12 heads" in finding(both).answer
    assert "L1 H2" in finding(both).answer
    names = ranking(both).names
    assert names.index("L1 H2") < names.index("L0 H1")


@pytest.mark.parametrize(
    ("verdict", "begins"),
    [
        (Verdict.INCONCLUSIVE, "Probably: One of 12"),
        (Verdict.PARTIAL, "Probably: One of 12"),
        (Verdict.UNCERTIFIED, "As the model reports it, unchecked: One of 12"),
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
    named = {label.split(":")[0] for label in block.key() if "shuffled" in label}
    assert named == {each for each in block.table["depends_on"].values if each}
    assert ("context" in named) is (of is Contents.TEXT)


def ranking(found: Finding, look: Callable[[Finding], object] = finding) -> Ranking:
    (block,) = [each for each in look(found).every if isinstance(each, Ranking)]
    return block


def test_rows_stand_in_their_groups_and_the_rest_is_counted() -> None:
    block = ranking(SEVERAL)
    assert block.names == ("L1 H2", "L2 H0")
    assert block.sections == ((0, "stand out"),)
    assert block.unshown == "10 heads show neither (-v)"
    assert len(ranking(SEVERAL, lambda found: finding(found, IN_FULL)).names) == 12


@pytest.mark.parametrize("name", CASES)
def test_a_head_that_the_answer_names_is_a_row_that_is_shown(name: str) -> None:
    found, _, _ = CASES[name]
    shown = finding(found)
    named = set(re.findall(r"L\d+ H\d+", shown.answer)) - {"L2 H4" if name == "like" else ""}
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
    assert {"weight", "rank", "mean", "below", "above control", "excess"} <= full


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
    assert finding(found).answer == "None of 12 heads has a number."
    assert ranking(found).names == ()
    assert finding(found).next is None
    assert found.plot().axes


def test_departures_from_what_is_usual_stand_in_the_line_of_proof() -> None:
    told = finding(made.finding())
    assert told.departs == ("30 of 40 controls", "seed 5")
    assert finding(replace(SEVERAL, by=Unit.WORD)).departs[0] == "by words"
    assert made_results.provenance().kernel in "eager"
    assert SEVERAL.evidence.of_group(Group.STANDS_OUT) == SEVERAL.ranking[:2]


def test_the_heading_of_a_group_says_how_many_of_a_long_group_are_shown() -> None:
    rare = np.zeros((40, 2, 3))
    rare[np.arange(6), [0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]] = 3.0  # in each control another head is clear
    found = made.beside(np.full((2, 3), 0.5), rare)
    assert len(found.evidence.of_group(Group.ABOVE_ITS_OWN)) == 6
    few, every = (_sections(finding(found, focus)) for focus in (Focus(), Focus(verbose=True)))
    assert few == ["above their own controls only (6, 4 shown; of 6 heads about 1 are so by luck)"]
    assert every == ["above their own controls only (6; of 6 heads about 1 are so by luck)"]


def _sections(sheet: Sheet) -> list[str]:
    return [heading for block in sheet.blocks for _, heading in getattr(block, "sections", ())]


def test_bars_of_what_heads_depend_on_have_colours_of_their_own() -> None:
    colours = [TINTS[tint] for tint, _ in finding_rows._BARS.values()]
    assert len(set(colours)) == len(colours) == 1 + len(DependsOn)
