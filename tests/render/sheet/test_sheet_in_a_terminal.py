"""A sheet in a terminal at every width, its blocks as data, and how a token is named in a sentence."""

import math
import re
from dataclasses import replace

import made_results
import numpy as np
import pytest
from golden_text import IN_FULL, printed
from made_blocks import curve, grid, matrix, ranking, sheet, table

from attnscope.render.kit.numbers import weight
from attnscope.render.sheet.blocks import Beside
from attnscope.render.sheet.heads import Companion
from attnscope.render.sheet.said import in_sentence
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Mark, Scale, Table, as_written, legend, missing
from attnscope.render.sheets import Focus
from attnscope.render.terminal.ranking import kept_columns
from attnscope.render.terminal.sheet import body, lines_of, of_sheet
from attnscope.results import Verdict
from attnscope.tokens import Patches, Token, Tokens


def shown(made: Sheet, width: int = 80, colour: str | None = None) -> str:
    return "".join(
        printed(part, width, colour) if colour else printed(part, width)
        for part in of_sheet(made, width, IN_FULL)
    )


@pytest.mark.parametrize("width", [24, 60, 140])
@pytest.mark.parametrize("heads", [1, 12, 40])
def test_no_line_is_wider_than_the_terminal(width: int, heads: int) -> None:
    made = sheet(blocks=(ranking(says="long words " * 20), grid(3, heads), grid(2, heads)))
    assert max(map(len, printed(body(made, width), width).splitlines())) <= width


def test_colour_changes_no_character() -> None:
    coloured = shown(sheet(), colour="truecolor")
    assert coloured != made_results.plain(coloured)
    assert made_results.plain(coloured) == shown(sheet())


def test_a_row_has_its_numbers_beside_its_control() -> None:
    rows = shown(sheet()).splitlines()
    (heading,) = [line for line in rows if line.startswith("head ")]
    assert heading.split() == ["head", "score", "control", "beats", "by"]
    (row,) = [line for line in rows if line.startswith("L10 H11")]
    assert row.split() == ["L10", "H11", "+.40", ".30", "1", "of", "4", "word"]
    (alone,) = [line for line in rows if line.startswith("both at once")]
    assert alone.split() == ["both", "at", "once", "−.05"]
    assert "and 5 heads more (-o FILE.csv has all)" in rows


def test_a_grid_has_every_number_at_its_place_and_a_hole_where_there_is_none() -> None:
    lines = [line.plain for line in lines_of(grid(2, 3), 80)]
    assert lines[1].split() == ["H0", "H1", "H2"]
    assert lines[2].split() == ["L0", "−.40", "−.14"]
    assert lines[3].split() == ["L1", "+.38", "+.64", "+.90"]
    marked = [line.plain for line in lines_of(grid(2, 3, itself=(1, 0)), 80)]
    assert marked[3].split() == ["L1", "■", "+.64", "+.90"]


def test_a_grid_that_is_too_wide_comes_in_pieces() -> None:
    lines = [line.plain for line in lines_of(grid(2, 20), 60)]
    headings = [line.split() for line in lines if line.split()[0] == "H0" or line.split()[0].startswith("H")]
    assert [each for names in headings for each in names] == [f"H{head}" for head in range(20)]
    assert len(headings) == 3


def test_what_stands_with_a_number_is_beside_it_where_all_heads_have_room() -> None:
    errors = Companion.numbers("its error", np.full((2, 3), 0.25), weight)
    wide = [line.plain for line in lines_of(grid(2, 3, companion=errors), 60)]
    assert wide[2].split() == ["L0", "−.40", ".25", "−.14", ".25", ".25"]
    assert wide[-1] == "beside it: its error"
    narrow = [line.plain for line in lines_of(grid(2, 3, companion=errors), 30)]
    assert narrow[2].split() == ["L0", "−.40", "−.14"]
    assert "its error" not in narrow[-1]
    names = Companion("its link", lambda i, j: ".9", lambda i, j, cells: f"cat{i}→mat{j}"[:cells])
    lines = [line.plain for line in lines_of(grid(2, 3, companion=names), 40)]
    assert lines[3].split() == ["cat0→mat0", "cat0→mat1", "cat0→mat2"]
    assert lines[-1] == "beside it, and below it: its link"


def test_a_head_that_stands_out_has_a_mark_and_the_ends_of_the_shades_say_what_they_mean() -> None:
    bad = ((Verdict.CERTIFIED,) * 3, (Verdict.CERTIFIED, Verdict.CERTIFIED, Verdict.FAILED))
    scale = Scale(0.0, 1.0, "falling", ("one key", "all alike"))
    block = grid(2, 3, verdicts=bad, beyond=("above chance", frozenset({(0, 0)})), scale=scale, absent="-")
    lines = [line.plain for line in lines_of(block, 60)]
    assert lines[2].split() == ["L0", "−.40*", "−.14", "-"]
    assert lines[3].split() == ["L1", "+.38", "+.64", "+.90✗"]
    assert lines[-2:] == ["0 one key (strong), +1.00 all alike (faint)", "* above chance"]


def test_a_matrix_has_every_number_under_its_column_and_a_hole_where_there_is_none() -> None:
    lines = [line.plain for line in lines_of(matrix(2, 3), 80)]
    assert lines[0] == "B less A"
    assert [line.split()[2:] for line in lines[-3:-1]] == [["−.60", "−.30"], ["+.30", "+.60", "+.90"]]
    assert lines[-3].split()[:2] == ["0", "r0"]
    assert lines[-1] == "blue: more"


def test_a_matrix_that_has_no_room_for_its_numbers_is_a_picture_of_them() -> None:
    for large in (matrix(2, 60), matrix(61, 2)):
        assert [line.plain for line in lines_of(large, 80)] == ["B less A"]
        lines = shown(sheet(blocks=(large,)), 80).splitlines()
        place = lines.index("B less A")
        assert lines[place + 1] == "blue: more"
        assert "key →" in lines[place + 2]
        inked = [line for line in lines[place:] if any(shade in line for shade in "█▓▒░·")]
        assert len(inked) > len(large.rows) / 2


def test_heads_whose_numbers_would_fill_screens_are_shades_and_verbose_has_the_numbers() -> None:
    values = np.random.default_rng(4).uniform(0.0, 0.8, (30, 28))
    values[7, 19], values[21, 3] = 1.0, np.nan
    large = grid(30, 28)
    large = replace(large, values=values, scale=Scale(0.0, 1.0), form=weight)
    made = sheet(blocks=(large, ranking()))
    text = "".join(printed(part, 80) for part in of_sheet(made, 80))
    lines = text.splitlines()
    rows = {line.split()[0]: line for line in lines if line.lstrip().startswith("L") and "█" + "█" in line}
    assert list(rows) == ["L7"], "the strongest alone is in the darkest shade"
    (heads,) = [line for line in lines if line.startswith("layer ↓")]
    at = rows["L7"].index("██")
    assert at == heads.index("H0") + 2 * 19
    (hole,) = [line for line in lines if line.split()[:1] == ["L21"]]
    assert hole[heads.index("H0") + 6 :][:2] == "  "
    assert hole[heads.index("H0") + 4 :][:2].strip()
    assert "-v has the numbers" in text
    assert "blank: no number" in text
    assert lines.index(next(each for each in lines if each.startswith("best heads first"))) < 45
    every = "".join(printed(part, 80) for part in of_sheet(made, 80, Focus(verbose=True)))
    assert not re.search("[█▓▒░]", every.split("best heads first")[0])
    assert len(re.findall(r"(?m)^L7 ", every)) == 3, "three pieces"
    assert "1.0" in every


def test_signed_heads_that_are_shades_keep_their_sizes_without_colour_and_their_marks_as_counts() -> None:
    values = np.zeros((33, 20))
    values[5, 2], values[30, 9] = -0.8, 0.4
    beyond = ("beyond chance", frozenset({(5, 2), (30, 9)}))
    block = replace(grid(33, 20), values=values, scale=Scale.around(values), beyond=beyond)
    text = "".join(printed(part, 80) for part in of_sheet(sheet(blocks=(block,)), 80))
    rows = {line.split()[0]: line for line in text.splitlines() if line.lstrip().startswith("L")}
    assert (rows["L5"].count("█"), rows["L30"].count("▒"), rows["L6"].count("·")) == (2, 2, 40)
    assert "above or below 0" in text
    assert "2 heads beyond chance" in " ".join(text.split())


def test_headings_that_several_columns_share_never_touch() -> None:
    count = 2
    shared = "of this text alone", "of all the other texts that there are"
    columns = (
        Column("a", ["1"] * count, "mean", as_written, under=shared[0]),
        Column("b", ["2"] * count, "low", as_written, under=shared[0]),
        Column("c", ["3"] * count, "mean", as_written, under=shared[1]),
        Column("d", ["4"] * count, "low", as_written, under=shared[1]),
    )
    block = ranking(
        title="", names=("L0 H1", "L12 H3"), table=Table(*columns), marks=(), written="", hidden=0
    )
    for width in (50, 80):
        lines = [each.plain for each in lines_of(block, width)]
        place = next(
            i for i, each in enumerate(lines) if each.split() == ["head", "mean", "low", "mean", "low"]
        )
        start = lines[place].index("mean", lines[place].index("low"))
        begins = start - len("mean") + len("mean")  # of the second pair
        left, right = (
            " ".join(" ".join(each[side].split()) for each in lines[:place])
            for side in (slice(0, begins - 1), slice(begins, None))
        )
        assert (left.strip(), right.strip()) == shared
        assert all(each[begins - 1 : begins] in ("", " ") for each in lines[:place])


def test_a_curve_is_a_table_of_its_rows() -> None:
    lines = [line.plain.split() for line in lines_of(curve(), 80)]
    assert lines[1] == ["layer", "cosine"]
    assert lines[2:] == [["L0", ".10"], ["L1", ".50"], ["L2", ".40"], ["L5", "-"]]


def test_narrow_blocks_stand_side_by_side_and_wide_ones_below() -> None:
    two = sheet(blocks=(grid(2, 3), grid(2, 4)))
    assert any("H0" in line[8:] and line.lstrip().startswith("H0") for line in shown(two, 80).splitlines())
    assert shown(two, 40).count("\n  ") > 0
    assert not any(line.count("H0") > 1 for line in shown(two, 40).splitlines())


def test_a_large_grid_behind_another_block_is_left_to_the_picture() -> None:
    assert "by layer and head" not in shown(sheet(blocks=(ranking(), grid(48, 12))))
    assert "by layer and head" in shown(sheet(blocks=(grid(48, 12),)))
    beside = sheet(blocks=(ranking(), Beside((ranking(), grid(48, 12)))))
    assert "by layer and head" in shown(beside), "what is read beside a ranking stays with it"


def test_what_it_says_stands_around_its_blocks() -> None:
    lines = shown(sheet()).splitlines()
    assert lines[:2] == ["L0 H3 does .91 where others do .20.", "“one two”"]
    assert lines.index("best heads first") < lines.index("control: the words shuffled")
    assert lines.index("control: the words shuffled") < lines.index("[b]no markup[/b]")
    proof = next(i for i, line in enumerate(lines) if line.startswith("✓ certified: 3 of 3 heads · "))
    assert lines.index("[b]no markup[/b]") < proof < lines.index("an invention · 12 heads")
    assert lines[-2:] == ["Next: what is it?", "  attnscope heads -m demo"]
    usual = "".join(printed(part, 80) for part in of_sheet(sheet(), 80))
    assert "an invention" not in usual
    assert "beats: how many" not in usual
    (only,) = of_sheet(replace(sheet(), next=None), 80)
    assert "Next" not in printed(only, 80)


def test_bars_are_as_long_as_their_numbers_and_stand_only_where_no_control_belongs_beside_them() -> None:
    values = [0.8, 0.4, 0.0]
    only = ranking(marks=(Mark("bar", "own", "", values),), axis=(0.0, 1.0), hidden=0)
    rows = [line.plain for line in lines_of(only, 140)][2:]
    assert [row.count("█") for row in rows] == [32, 16, 0]
    longest = [line.plain for line in lines_of(replace(only, axis=None), 140)][2:]
    assert [row.count("█") for row in longest] == [40, 20, 0]
    controlled = replace(only, marks=(*only.marks, Mark("ring", "control", "", values)))
    around = replace(only, marks=(Mark("bar", "own", "", [0.8, -0.4, 0.0]),), axis=None)
    for other, width in ((controlled, 140), (around, 140), (only, 40)):
        assert "█" not in "".join(line.plain for line in lines_of(other, width))


def test_words_are_folded_before_a_column_gives_way() -> None:
    words = Column("said", ["one two three", "", "four"], "said")
    made = ranking(table=Table(Column("n", [1, 2, 3], "n", "{}".format), words), marks=(), hidden=0)
    wide, narrow = ([line.plain for line in lines_of(made, width)] for width in (60, 23))
    assert wide[2].endswith("one two three")
    assert [line.split()[-1] for line in narrow[2:5]] == ["one", "two", "three"]
    assert all("1" not in line for line in narrow[3:5]), "a number stands in the first line alone"
    assert [each.name for each in kept_columns(made, 20)] == ["n"]


def test_columns_that_have_no_room_are_named_with_the_width_that_shows_all() -> None:
    words = Column("said", ["one two three", "", "four"], "said")
    folding = ranking(table=Table(Column("n", [1, 2, 3], "n", "{}".format), words), marks=(), hidden=0)
    for block, narrow, left_out in ((ranking(), 40, "beats"), (folding, 20, "said")):
        every = [each.heading for each in block.table.headed]
        said = " ".join(" ".join(line.plain for line in lines_of(block, narrow)).split())
        names, wide = re.search(r"left out here: (.+) \(a terminal (\d+) characters wide", said).groups()
        assert names == left_out
        assert [each.heading for each in kept_columns(block, int(wide))] == every
        assert [each.heading for each in kept_columns(block, int(wide) - 1)] != every
        assert all("left out" not in line.plain for line in lines_of(block, int(wide)))


def test_the_answer_is_not_broken_where_its_words_are_held_together() -> None:
    told = replace(sheet(), answer="output = .980\u00a0v(8\u00a0opened) + .007\u00a0v(9\u00a0.)")
    assert "output = .980\u00a0v(8\u00a0opened) +\n.007\u00a0v(9\u00a0.)\n" in shown(told, 33)
    assert "output =\n.980\u00a0v(8\u00a0opened) +\n" in shown(told, 24)


def test_headings_are_folded_before_a_column_gives_way() -> None:
    columns = (
        Column("part", [0.25, 0.5, 0.75], "share of the weight", weight, spared=1),
        Column("whole", [1.25, 2.5, 3.75], "sum", "{:.2f}".format),
    )
    block = ranking(table=Table(*columns), marks=(), title="")
    lines = [each.plain for each in lines_of(block, 30)]
    assert [line.split() for line in lines[:3]] == [["share", "of"], ["the"], ["head", "weight", "sum"]]
    assert lines[3].split()[-2:] == [".25", "1.25"]
    assert lines[2].rstrip().endswith("sum"), "the last line of a heading stands above the numbers"
    assert [each.heading for each in kept_columns(block, 20)] == ["sum"]


def test_a_legend_explains_the_columns_that_it_is_given_and_alike_ones_once() -> None:
    columns = table().headed
    assert legend(columns[:2]) == "score: how much it does; control: what others do"
    alike = [Column(each, [1], each, says="a chance") for each in ("before", "after")]
    assert legend([*alike, columns[-1]]) == "before, after: a chance"


def test_the_text_of_a_row_is_its_value_as_it_is_read_or_what_is_told_of_it() -> None:
    rows = table()
    assert [rows["score"].text(row) for row in range(3)] == ["+.91", "+.40", "−.05"]
    assert [rows["control"].text(row) for row in range(3)] == [".20", ".30", ""]
    assert [rows["beaten"].text(row) for row in range(3)] == ["3 of 4", "1 of 4", ""]


@pytest.mark.parametrize(
    ("value", "gone"), [(None, True), ("", True), (math.nan, True), (0.0, False), (0, False)]
)
def test_a_value_is_missing_where_there_is_none_and_zero_is_one(value: object, gone: bool) -> None:
    assert missing(value) is gone


def test_an_axis_reaches_over_all_that_is_drawn_and_nothing_else() -> None:
    low, high = ranking().extent()
    assert low < -0.05 <= 0
    assert 0.91 < high < 1.0
    assert ranking(axis=(0.0, 2.0)).extent() == (0.0, 2.0)
    assert ranking(marks=()).extent()[0] == 0.0


@pytest.mark.parametrize(
    ("scale", "value", "share", "shades"),
    [
        (Scale(0.0, 2.0), 0.5, 0.25, ("light", "dark")),
        (Scale(0.0, 2.0, "falling"), 0.5, 0.25, ("dark", "light")),
        (Scale.around([-4.0, 1.0]), 2.0, 0.75, ("red", "blue")),
        (Scale(0.0, 2.0), 9.0, 1.0, ("light", "dark")),
        (Scale(1.0, 1.0), 1.0, 0.0, ("light", "dark")),
    ],
)
def test_a_number_has_one_place_on_its_scale(
    scale: Scale, value: float, share: float, shades: tuple[str, str]
) -> None:
    assert scale.share(value) == pytest.approx(share)
    assert scale.shades == shades


def test_the_strong_end_is_dark_and_its_ink_is_light() -> None:
    rising, falling = Scale(0.0, 1.0), Scale(0.0, 1.0, "falling")
    assert rising.paper(1.0) == falling.paper(0.0) == ("#082a5e", "#ffffff")
    assert rising.paper(0.0) == falling.paper(1.0) == ("#ebf2fa", "#000000")
    assert rising.paper(math.nan)[0] == "#ffffff"
    assert rising.style(math.nan) == ""
    assert rising.style(0.25) == falling.style(0.75) != falling.style(0.25)
    around = Scale.around([-2.0, 2.0])
    assert around.paper(0.0)[0] == "#f7f7f7"
    assert Scale.around([math.nan]).high == 1.0, "of nothing there is still a scale"


TEXT = "It, it: [MASK] <b ز"
PIECES = ("It", ",", "it", ":", "[MASK]", "<b", "ز")


def tokens(*added: Token, **fields: object) -> Tokens:
    starts = [TEXT.index(piece) for piece in PIECES]
    items = (
        Token(i, piece, piece, (start, start + len(piece)), i)
        for i, (piece, start) in enumerate(zip(PIECES, starts, strict=True))
    )
    return Tokens((TEXT,), (*added, *items), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("position", "told"),
    [(0, "“It”"), (1, "“,”"), (2, "“it”"), (3, "“:”"), (4, "[MASK]"), (5, "“<b”"), (6, "“ز\u200e”")],
)
def test_text_stands_in_quotes_and_what_has_brackets_of_its_own_does_not(position: int, told: str) -> None:
    assert in_sentence(tokens(), position) == told


def test_where_a_token_stands_twice_its_position_follows_the_quotes() -> None:
    twice = tokens(Token(9, "it", "it", (4, 6), 9))
    assert [in_sentence(twice, i) for i in (0, 3)] == ["“it”@0", "“it”@3"]
    masks = tokens(Token(4, "[MASK]", "[MASK]", (8, 14), 4))
    assert in_sentence(masks, 0) == "[MASK]@0"


@pytest.mark.parametrize("fields", [{"special": True}, {"unknown": True}])
def test_special_tokens_and_those_that_cannot_be_spelled_are_named_as_they_are(
    fields: dict[str, bool],
) -> None:
    added = tokens(Token(9, "</s>", "", None, None, **fields))
    assert in_sentence(added, 0) == "</s>"


def test_a_patch_of_a_picture_is_no_text_beside_text_or_alone() -> None:
    patch = Token(-1, "r0c0", "r0c0", None, None)
    assert in_sentence(tokens(patch, marked=(Patches(0, 1, 1),)), 0) == "patch row 0, column 0"
    assert in_sentence(Tokens((), (patch,)), 0) == "r0c0"
