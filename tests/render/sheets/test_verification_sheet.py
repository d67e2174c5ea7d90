"""The sheet of a verification: errors by layer, how surely each head was checked, and what failed."""

import csv
import io
import json
from dataclasses import replace

import cases_check
import made_results as made
import numpy as np
import pytest
from cases_check import EXAMPLES
from cases_verification import EXAMPLES as VERIFIED
from golden_text import printed
from matplotlib.collections import QuadMesh
from matplotlib.text import Text

from attnscope.render import files
from attnscope.render.figure import figure_of
from attnscope.render.focus import Focus
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheets import sheet_of
from attnscope.render.sheets.verification import POWERS
from attnscope.render.sheets.verification import sheet as verification
from attnscope.render.terminal.sheet import screen
from attnscope.results import Kind, LayerCheck, OutputCheck, Result, Verdict, Verification
from attnscope.results.verification import Proved


def shown(result: Result, width: int = 110, focus: Focus = Focus()) -> str:  # noqa: B008
    return "".join(
        printed(part, width) for part in screen(result, width, replace(focus, legend=True, verbose=True))
    )


def checks(*places: tuple[str, Kind, str, int, int, Verdict]) -> Verification:
    """One check of two heads per place: tower, kind, route, layer, block, the second head's verdict."""
    layers = tuple(
        LayerCheck(
            layer, kind, f"{tower}.{layer}",
            (made.certificate(), made.certificate(verdict, 2e-8 * (block + 1))), tower, route, block,
        )
        for tower, kind, route, layer, block, verdict in places
    )  # fmt: skip
    outputs = (OutputCheck("last_hidden_state", 0.0, True),)
    return Verification(made.tokens(made.DOOR), layers, outputs, made.provenance())


GOOD, OPEN, PART = Verdict.CERTIFIED, Verdict.INCONCLUSIVE, Verdict.PARTIAL
SEVERAL = (
    ("vision", Kind.ENCODER, "takeover", 0, 0, GOOD),
    ("vision", Kind.ENCODER, "takeover", 0, 1, OPEN),
    ("vision", Kind.ENCODER, "takeover", 0, 2, GOOD),
    ("text", Kind.ENCODER, "traced operations", 0, 0, PART),
    ("fuse", Kind.CROSS, "takeover", 0, 0, GOOD),
)


def test_blocks_of_a_layer_are_one_row_with_the_worst_of_them() -> None:
    lines = shown(checks(*SEVERAL), 160).splitlines()
    row = next(line for line in lines if line.startswith("L0 vision"))
    assert "5 of 6 (3 blocks)" in row
    assert "✓ 5 ? 1" in row
    assert "6.0e-8 H1 B2" in row
    assert sum(line.startswith("L0 ") and "-8" in line for line in lines) == 3


def test_towers_are_called_by_name_where_their_kind_does_not_tell_and_routes_where_they_differ() -> None:
    made_one = verification(checks(*SEVERAL))
    (layers,), grids = made_one.every, made_one.more
    assert isinstance(layers, Ranking)
    assert layers.names == ("L0 vision", "L0 text", "L0 cross")
    assert layers.table["route"].values == ["takeover", "traced", "takeover"]
    assert [grid.title.partition(":")[0] for grid in grids if isinstance(grid, HeadGrid)] == [
        "vision",
        "text",
        "cross",
    ]
    assert all(isinstance(each, HeadGrid) for each in grids)
    (alone,) = verification(checks(SEVERAL[0], SEVERAL[4])).every
    assert isinstance(alone, Ranking)
    assert alone.names[0] == "L0 encoder"
    assert "route" not in [each.name for each in alone.table.headed]
    (single,) = verification(checks(SEVERAL[0])).every
    assert isinstance(single, Ranking)
    assert single.names == ("L0",)


HALF = {(0, j): Verdict.INCONCLUSIVE for j in range(2)}
CASES = {  # what of numbers and names the answer has
    "all": (Proved.ALL, "48 encoder heads", "bert-base-uncased", "none of its results"),
    "the only one": (Proved.ALL, "only encoder head"),
    "inconclusive": (Proved.NOT_ALL, "46 of 48 encoder heads", "2"),
    "none to the end": (Proved.NOT_ALL, "None of 48", "48"),
    "of three kinds": (Proved.NOT_ALL, "45 of 48", "relative-position term read as a remainder"),
    "unchecked": (Proved.WEIGHTS,),
    "one failed": (Proved.FAILED, "✗ 1 of 48 encoder heads", "does not come out", ".25", "5.2e-7"),
    "all failed": (Proved.FAILED, "✗ None of the 48 encoder heads", ".25", "5.2e-7"),
    "failed and changed": (Proved.FAILED, "✗ 1 of 48", "last_hidden_state", ".0010"),
    "no number": (Proved.FAILED, "✗ The only encoder head", "does not come out", "no number"),
    "changed": (Proved.CHANGED, "✗", "last_hidden_state", ".0010"),
    "stored": (Proved.STORED, "48 heads"),
    "nothing": (Proved.NOTHING, "No head"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_answer_of_each_case_claims_no_more_than_its_verdicts(case: str) -> None:
    made_one, (expected, *parts) = VERIFIED[case](), CASES[case]
    told = verification(made_one)
    assert made_one.case is expected
    assert [each for each in parts if each not in told.answer] == []
    assert (told.next is None) == (expected not in (Proved.ALL, Proved.STORED))


def test_a_row_has_the_error_that_uses_most_of_its_tolerance_and_that_tolerance() -> None:
    result = made.verification(3, 5)
    layers = verification(result).every[0]
    assert isinstance(layers, Ranking)
    assert [each.heading for each in layers.table.headed] == [
        "heads", "furthest off", "rounding allows", "weakest test (≥ 1 needed)",
    ]  # fmt: skip
    assert layers.table["heads"].values == ["5 of 5"] * 3
    for row, layer in enumerate(result.layers):
        pairs = [
            pair
            for one in layer.certificates
            for pair in (
                (one.weight_error, one.weight_tolerance),
                (one.output_error, one.output_tolerance),
            )
        ]
        shown_pair = layers.table["off"].values[row], layers.table["allowed"].values[row]
        assert shown_pair == max(pairs, key=lambda pair: pair[0] / pair[1])
    assert "1,200 times" in layers.table["power"].values[0]


def test_the_control_is_the_mistake_that_is_hardest_to_see_and_there_is_none_where_none_was_tried() -> None:
    half = verification(made.verification(4, 12, HALF)).control
    assert "2 mistakes" in half
    assert "at .31 times what rounding allows" in half
    assert verification(VERIFIED["unchecked"]()).control == ""


def test_the_first_screen_has_no_grid_and_the_picture_and_the_page_have_it() -> None:
    result = made.verification(4, 12)
    assert not any(isinstance(each, HeadGrid) for each in verification(result).every)
    assert any(isinstance(each, HeadGrid) for each in verification(result).more)
    assert any(isinstance(each, HeadGrid) for each in verification(result, Focus(verbose=True)).every)
    assert len(result.text(width=80).splitlines()) <= 18


def test_a_verification_whose_outputs_changed_has_failed_and_one_without_layers_claims_nothing() -> None:
    changed, nothing = made.verification(2, 3, difference=1e-3), made.verification(layers=0)
    assert verification(changed).proof[-1][0] is Verdict.FAILED
    assert "✗ FAILED" in shown(changed)
    assert "✗" not in shown(made.verification(2, 3))
    assert "✓" not in shown(nothing)


def test_a_cell_is_the_power_of_its_faintest_fault() -> None:
    result = made.verification(3, 5, {(1, 2): Verdict.INCONCLUSIVE, (2, 0): Verdict.UNCERTIFIED})
    drawn = next(
        one for one in figure_of(result).axes[0].collections if isinstance(one, QuadMesh)
    ).get_array()
    powers = np.array([[one.power or np.nan for one in layer.certificates] for layer in result.layers])
    assert np.isnan(powers[2, 0]), "no fault was tried there"
    np.testing.assert_allclose(
        np.ma.filled(drawn, np.nan).reshape(3, 5), np.minimum(np.log10(powers), POWERS)
    )
    (grid,) = [each for each in verification(result).more if isinstance(each, HeadGrid)]
    assert grid.form(grid.values[0, 0]) == "1,200"
    assert grid.form(grid.values[1, 2]) == ".31"
    assert grid.form(POWERS) == "≥10⁶"


def test_heads_that_are_not_certified_are_outlined_and_the_verdict_is_in_the_heading() -> None:
    plain, failed = made.verification(3, 5), made.verification(3, 5, {(0, 1): Verdict.FAILED})
    words = [each.get_text() for each in figure_of(failed).findobj(Text) if isinstance(each, Text)]
    assert any("verification of 15 heads · ✗ FAILED" in each for each in words)
    assert any("✗ 1 of 15 encoder heads" in each for each in words)
    assert len(figure_of(failed).axes[0].patches) == 1
    assert not figure_of(plain).axes[0].patches


def test_each_attention_has_its_grid_and_of_blocks_the_worst_counts() -> None:
    result = made.verification(2, 3)
    cross = tuple(replace(layer, kind=Kind.CROSS, tower="decoder") for layer in result.layers)
    worse = made.verification(2, 3, {(1, 1): Verdict.FAILED}).layers
    blocks = tuple(replace(layer, block=1) for layer in worse)
    (own, other) = verification(replace(result, layers=(*result.layers, *blocks, *cross))).more
    assert isinstance(own, HeadGrid)
    assert isinstance(other, HeadGrid)
    assert own.verdicts == ((Verdict.CERTIFIED,) * 3, (Verdict.CERTIFIED, Verdict.FAILED, Verdict.CERTIFIED))
    assert other.layers == (0, 1)


def test_files_of_a_verification_tell_tower_route_and_block() -> None:
    result = checks(*SEVERAL)
    layers = json.loads(files.as_json(result))["layers"]
    assert [(each["tower"], each["route"], each["block"]) for each in layers] == [
        (tower, route, block) for tower, _, route, _, block, _ in SEVERAL
    ]
    lines = [line for line in files.as_csv(result).splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(io.StringIO("\n".join(lines))))
    assert [(row["tower"], row["block"], row["head"]) for row in rows][4:8] == [
        ("vision", "2", "0"), ("vision", "2", "1"), ("text", "0", "0"), ("text", "0", "1"),
    ]  # fmt: skip
    with np.load(io.BytesIO(files.as_npz(result))) as archive:
        assert archive["tower"].tolist() == ["vision"] * 6 + ["text"] * 2 + ["fuse"] * 2
        assert archive["block"].tolist() == [0, 0, 1, 1, 2, 2, 0, 0, 0, 0]


def test_a_check_has_the_heads_that_are_not_as_stored_and_every_one_where_more_is_asked_for() -> None:
    broken, whole = cases_check.check(broken=True), cases_check.check()
    named = [sheet_of(broken, Focus(verbose=verbose)).every[0].names for verbose in (False, True)]  # type: ignore[union-attr]
    assert named == [("L2 H11", "L3 H5"), ("L0 H1", "L2 H11", "L3 H5")]
    row = next(line for line in shown(broken).splitlines() if line.startswith("L2 H11"))
    assert row.split() == ["L2", "H11", "scores", ".0040", "2.0e-6", "not", "as", "stored"]
    assert not sheet_of(whole).every


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("same to the bit", ("run.npz", "3 heads")),
        ("same but rounding", ("run.npz", "3 heads", "4.0e-7", "2.0e-6")),
        (
            "differs in one head",
            ("1 of 2 heads differs", "L2 H11: .0040 in its scores", "2.0e-6"),
        ),
        ("differs", ("✗ run.npz", "2 of 3 heads differ", "L3 H5: output of another shape")),
        ("differs in its proof", ("1 of 1 head differs", "L0 H1: no longer certified")),
    ],
)
def test_a_check_says_whether_the_file_is_what_the_model_gives_and_which_head_is_farthest_off(
    name: str, parts: tuple[str, ...]
) -> None:
    told = sheet_of(EXAMPLES[name]()).answer
    assert [each for each in parts if each not in told] == []


@pytest.mark.parametrize("width", [40, 60, 80, 140])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    for each in (made.verification(4, 12), checks(*SEVERAL), cases_check.check(broken=True)):
        assert max(map(len, shown(each, width).splitlines())) <= width


def heads_of(found: Verification) -> list[object]:
    ranking = verification(found).blocks[0]
    assert isinstance(ranking, Ranking)
    return list(ranking.table["heads"].values)


def test_a_stored_verification_says_of_no_head_that_it_is_proved_or_not_and_leads_on() -> None:
    places = [("", Kind.ENCODER, "takeover", layer, 0, Verdict.STORED) for layer in (0, 1, 2)]
    found = checks(*places)
    assert heads_of(found) == ["✓ 1 ○ 1"] * 3
    assert heads_of(checks(("", Kind.ENCODER, "takeover", 0, 0, GOOD))) == ["2 of 2"]
    assert heads_of(checks(("", Kind.ENCODER, "takeover", 0, 0, OPEN))) == ["1 of 2"]
    led = sheet_of(found).next
    assert led is not None
    assert led.command.startswith("attnscope heads ")
    assert sheet_of(checks(("", Kind.ENCODER, "takeover", 0, 0, Verdict.UNCERTIFIED))).next is None
