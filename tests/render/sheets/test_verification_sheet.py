"""The sheet of a verification: errors by layer, how surely each head was checked, and what failed."""

import csv
import io
import json
from dataclasses import replace

import made_check
import made_results as made
import numpy as np
import pytest
from golden_text import printed
from matplotlib.collections import QuadMesh
from matplotlib.text import Text

from attnscope.render import files
from attnscope.render.figure import figure_of
from attnscope.render.focus import Focus
from attnscope.render.screen import screen
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheets import sheet_of
from attnscope.render.sheets.verification import POWERS
from attnscope.render.sheets.verification import sheet as verification
from attnscope.results import Kind, LayerCheck, OutputCheck, Result, Verdict, Verification


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
    lines = shown(checks(*SEVERAL)).splitlines()
    row = next(line for line in lines if line.startswith("L0 vision"))
    assert "2 x 3 blocks" in row
    assert "✓ 5 ? 1" in row
    assert "6.0e-8 H1 B2" in row
    assert sum(line.startswith("L0 ") and "-8" in line for line in lines) == 3


def test_towers_are_called_by_name_where_their_kind_does_not_tell_and_routes_where_they_differ() -> None:
    (layers, *grids) = verification(checks(*SEVERAL)).every
    assert isinstance(layers, Ranking)
    assert layers.names == ("L0 vision", "L0 text", "L0 cross")
    assert layers.table["route"].values == ["takeover", "traced", "takeover"]
    assert [grid.title.partition(":")[0] for grid in grids] == ["vision", "text", "cross"]
    (alone, *_) = verification(checks(SEVERAL[0], SEVERAL[4])).every
    assert isinstance(alone, Ranking)
    assert alone.names[0] == "L0 encoder"
    assert "route" not in [each.name for each in alone.table.headed]


def test_the_answer_counts_every_verdict_and_says_what_reading_changed() -> None:
    several, changed = checks(*SEVERAL), made.verification(2, 3, difference=1e-3)
    told = "10 heads, blocks counted apart, in 3 layers: 8 certified, 1 inconclusive, 1 partial; "
    assert verification(several).answer.startswith(told)
    assert any("worst head: L0 H1 block 0 (text) ~ partial" in each for each in verification(several).notes)
    assert verification(made.verification()).answer == (
        "48 heads in 4 layers: all certified; the faintest mistake put in on purpose lies at 1,200 x the "
        "tolerance; reading the model changed nothing."
    )
    assert verification(changed).answer.endswith("reading the model changed last_hidden_state.")


def test_a_verification_whose_outputs_changed_has_failed_and_one_without_layers_claims_nothing() -> None:
    changed, nothing = made.verification(2, 3, difference=1e-3), made.verification(layers=0)
    assert verification(changed).proof[-1][0] is Verdict.FAILED
    assert "✗ FAILED" in shown(changed)
    assert "✗" not in shown(made.verification(2, 3))
    assert "✓" not in shown(nothing)
    assert verification(nothing).answer.startswith("no head was checked")


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
    (grid,) = [each for each in verification(result).every if isinstance(each, HeadGrid)]
    assert grid.form(grid.values[0, 0]) == "1,200"
    assert grid.form(grid.values[1, 2]) == ".31"
    assert grid.form(POWERS) == "≥10⁶"


def test_heads_that_are_not_certified_are_outlined_and_the_verdict_is_in_the_heading() -> None:
    plain, failed = made.verification(3, 5), made.verification(3, 5, {(0, 1): Verdict.FAILED})
    words = [each.get_text() for each in figure_of(failed).findobj(Text) if isinstance(each, Text)]
    assert any("verification of 15 heads · ✗ FAILED" in each for each in words)
    assert any(each.startswith("worst head: L0 H1") for each in words)
    assert len(figure_of(failed).axes[0].patches) == 1
    assert not figure_of(plain).axes[0].patches


def test_each_attention_has_its_grid_and_of_blocks_the_worst_counts() -> None:
    result = made.verification(2, 3)
    cross = tuple(replace(layer, kind=Kind.CROSS, tower="decoder") for layer in result.layers)
    worse = made.verification(2, 3, {(1, 1): Verdict.FAILED}).layers
    blocks = tuple(replace(layer, block=1) for layer in worse)
    (_, own, other) = verification(replace(result, layers=(*result.layers, *blocks, *cross))).every
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
    broken, whole = made_check.check(broken=True), made_check.check()
    named = [sheet_of(broken, Focus(verbose=verbose)).every[0].names for verbose in (False, True)]  # type: ignore[union-attr]
    assert named == [("L2 H11", "L3 H5"), ("L0 H1", "L2 H11", "L3 H5")]
    row = next(line for line in shown(broken).splitlines() if line.startswith("L2 H11"))
    assert row.split() == ["L2", "H11", "scores", ".0040", "2.0e-6", "not", "as", "stored"]
    assert "L3 H5 farthest off." in shown(broken)
    assert not sheet_of(whole).every  # type: ignore[union-attr]
    assert "come out as they were stored" in shown(whole)


@pytest.mark.parametrize("width", [40, 60, 80, 140])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    for each in (made.verification(4, 12), checks(*SEVERAL), made_check.check(broken=True)):
        assert max(map(len, shown(each, width).splitlines())) <= width
