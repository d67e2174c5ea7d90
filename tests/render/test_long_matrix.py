"""Matrices whose numbers do not fit: a picture in characters, read back by cell, and the queries listed."""

import io
import re
from dataclasses import replace
from itertools import product
from typing import Any

import made_results as made
import numpy as np
import pytest
from golden_text import body, drawn, printed
from rich.cells import cell_len
from rich.console import Console

from attnscope.render.kit.numbers import pooled
from attnscope.render.kit.palette import diverging, sequential
from attnscope.render.sheets import Focus
from attnscope.render.terminal.console import theme
from attnscope.render.terminal.raster import ASCII_SHADES, SHADES, Plan, Raster, Side, plan
from attnscope.results import HeadAttention, Kind
from attnscope.vocabulary import Scaling

ONE = Scaling.ONE
NOWHERE = (None, None)


def words(count: int, first: str = "w") -> list[str]:
    return ["[CLS]", *(f"{first}{i}" for i in range(1, count - 1)), "[SEP]"]


def causal(count: int, **changed: Any) -> HeadAttention:
    return made.head([f"w{i}" for i in range(count)], causal=True, kind=Kind.DECODER, **changed)


def raster(shares: np.ndarray, width: int, signed: bool = False) -> Raster:
    rows, columns = shares.shape
    sides = [Side(noun, [str(i) for i in range(n)], [f"t{i}" for i in range(n)]) for noun, n in
             (("query", rows), ("key", columns))]  # fmt: skip
    ends = ("0", "1")
    return Raster(shares, np.abs(shares), "weights", *sides, ends, ends, width, signed)


def cells_of(line: str) -> list[tuple[str, tuple[Any, Any]]]:
    """The characters of a line with their colours: (text, background) as truecolor triplets."""
    cells, ink = [], NOWHERE
    for code, character in re.findall(r"\x1b\[([0-9;]*)m|(.)", line):
        if character:
            cells.append((character, ink))
            continue
        numbers = [int(each or 0) for each in code.split(";")]
        ink = NOWHERE if numbers == [0] else ink
        while numbers:
            number = numbers.pop(0)
            if number in (38, 48):
                triplet, numbers = tuple(numbers[1:4]), numbers[4:]
                ink = (triplet, ink[1]) if number == 38 else (ink[0], triplet)
    return cells


def halves(line: str) -> list[tuple[Any, Any]]:
    """The colours of the upper and lower half of every cell of a line, None where it shows the paper."""
    seen = []
    for character, (text, paper) in cells_of(line):
        seen.append({"▀": (text, paper), "▄": (paper, text)}.get(character, (paper, paper)))
    return seen


def colour_of(name: str) -> Any:
    if not name:
        return None
    background = theme("light", "truecolor").styles[name].bgcolor
    assert background is not None
    return tuple(background.get_truecolor())


# ---- pooling


def test_what_is_pooled_is_what_lies_farthest_from_0_and_nan_only_where_all_are() -> None:
    shares = np.random.default_rng(3).normal(size=(7, 11))
    shares[2:5, 4:9] = np.nan
    found = pooled(shares, 3, 2)
    assert found.shape == (3, 6)
    for row, column in product(range(3), range(6)):
        group = shares[3 * row : 3 * row + 3, 2 * column : 2 * column + 2]
        known = [each for each in group.flat if not np.isnan(each)]
        if known:
            assert found[row, column] == max(known, key=abs)
        else:
            assert np.isnan(found[row, column])


@pytest.mark.parametrize(
    ("rows", "columns", "room", "expected"),
    [
        (30, 30, 60, Plan(1, 1, 2, False)),
        (30, 31, 60, Plan(1, 1, 1, False)),
        (60, 60, 66, Plan(1, 1, 1, True)),
        (200, 200, 128, Plan(2, 2, 1, True)),
        (500, 500, 66, Plan(5, 8, 1, True)),
        (5, 400, 66, Plan(1, 7, 1, False)),
    ],
)
def test_nothing_is_pooled_that_has_room(rows: int, columns: int, room: int, expected: Plan) -> None:
    assert plan(rows, columns, room, halves=True) == expected


# ---- in colour


def test_two_rows_stand_in_one_line_each_in_its_own_colour() -> None:
    shares = np.random.default_rng(1).uniform(size=(45, 52))
    shares[:, 40:] = np.nan
    shares[7, 40:] = 0.5
    lines = printed(raster(shares, 64), 64, "truecolor").splitlines()[3:-1]
    assert len(lines) == 23
    margin = max(len(halves(line)) for line in lines) - 52
    for i, line in enumerate(lines):
        seen = halves(line)[margin:]
        for column, (upper, lower) in enumerate(seen):
            assert upper == colour_of(sequential(float(shares[2 * i, column])))
            below = shares[2 * i + 1, column] if 2 * i + 1 < 45 else np.nan
            assert lower == colour_of(sequential(float(below)))


def test_signed_numbers_have_the_colours_around_0() -> None:
    shares = np.linspace(-1, 1, 12 * 50).reshape(12, 50)
    lines = printed(raster(shares, 60, signed=True), 60, "truecolor").splitlines()[3:-1]
    seen = [halves(line)[-50:] for line in lines]
    assert seen[0][0][0] == colour_of(diverging(-1.0, 1.0))
    assert seen[11][49][0] == colour_of(diverging(1.0, 1.0))
    assert seen[3][20][0] == colour_of(diverging(float(shares[3, 20]), 1.0))


def test_a_masked_pair_is_told_from_a_weight_of_0_in_colour_and_without() -> None:
    head = causal(50)
    weights = head.weights.copy()
    weights[40, 10] = 0.0
    shown = drawn(replace(head, weights=weights), 80, Focus(scale=ONE, rows=0))
    coloured, plain = (printed(shown, 80, colour).splitlines()[4:] for colour in ("truecolor", None))
    row = halves(coloured[20])[-50:]
    assert row[10][0] == colour_of("weight.0")
    assert [upper for upper, _ in row[41:]] == [None] * 9
    margin = len("weights ")
    assert plain[40][margin + 10] == "·"
    assert len(plain[40].rstrip()) == margin + 41


def test_of_16_colours_that_for_0_is_the_background_and_so_masked_pairs_are_dots() -> None:
    text = printed(drawn(causal(50), 80, Focus(scale=ONE, rows=0)), 80, "standard", "dark")
    assert "dots: masked" in made.plain(text)
    assert made.plain(text).splitlines()[4].endswith("·" * 48)
    fine = made.plain(printed(body(causal(50), 80, Focus(scale=ONE, rows=0)), 80, "256", "dark"))
    assert "blank: masked" in fine
    assert "··" not in fine


# ---- without colour


def test_every_character_is_the_shade_of_its_weight_and_masked_pairs_are_blank() -> None:
    head = causal(50)
    lines = printed(drawn(head, 64, Focus(scale=ONE, rows=0)), 64).splitlines()[4:54]
    margin = max(map(len, lines)) - 50
    for row, line in enumerate(lines):
        shades = line[margin:].ljust(50)
        for column in range(50):
            share = head.weights[row, column]
            assert shades[column] == (SHADES[min(int(5 * share), 4)] if column <= row else " ")


def shown_by(console: Console, renderable: Any) -> str:
    if console.color_system is not None:
        console.push_theme(theme("light", console.color_system))
    console.print(renderable)
    file = console.file
    assert isinstance(file, io.StringIO | io.TextIOWrapper)
    if isinstance(file, io.StringIO):
        return file.getvalue()
    file.flush()
    return file.buffer.getvalue().decode("ascii")  # type: ignore[attr-defined]


def test_no_color_shows_shades_and_a_terminal_of_ascii_its_own_characters() -> None:
    shown = body(causal(50), 64, Focus(scale=ONE, rows=0))
    coloured = printed(shown, 64, "truecolor")
    bare = shown_by(Console(file=io.StringIO(), width=64, force_terminal=True, no_color=True,
                            color_system="truecolor"), shown)  # fmt: skip
    assert "▀" in coloured
    assert "▀" not in bare
    assert "░" in bare
    ascii_only = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="replace")
    text = shown_by(Console(file=ascii_only, width=64, color_system=None), shown)
    assert all(f"{each} " in text for each in ASCII_SHADES)
    assert "@ .89" in text  # eight ninths
    assert "░" not in text


# ---- what is said around it


@pytest.mark.parametrize("width", [60, 140])
@pytest.mark.parametrize("count", [5, 30, 60, 200, 500])
def test_any_length_fits_any_width_and_a_screen_or_two(count: int, width: int) -> None:
    for head in (made.head(words(count)), causal(count), made.head(words(count)[:17], words(count, "k"))):
        for stage in ("weights", "scaled"):
            text = printed(body(head, width, Focus(stage)), width)  # type: ignore[arg-type]
            lines = text.splitlines()
            assert max(map(cell_len, lines)) <= width
            assert len(lines) <= 60 + 20 + 31, "rows, names of columns and strongest links, words in full"
            assert "nan" not in text


def test_60_tokens_stand_in_80_columns_and_200_in_140_with_every_name_or_how_they_are_pooled() -> None:
    short, long = (
        made.plain(printed(body(made.head(words(count)), width, Focus(scale=ONE)), width, "256"))
        for count, width in ((60, 80), (200, 140))
    )
    assert "16 w16·w17" in short
    assert not re.search(r" w17·w18 |each cell", short)
    assert "16-19 w16" in long
    assert "each cell the largest of 2 queries x 2 keys" in long


@pytest.mark.parametrize(
    ("scale", "said"),
    [
        (Scaling.SQRT, r"^· 0  ░ \.04  ▒ \.16  ▓ \.36  █ \.64$"),
        (Scaling.ONE, r"^· 0  ░ \.2  ▒ \.4  ▓ \.6  █ \.8 · shades: in proportion, 0 to 1$"),
        (Scaling.MAX, r"^· 0  ░ .* · shades: in proportion, 0 to (1|\.\d\d), the largest weight$"),
        (Scaling.ROW, r"^· 0  ░ \.2 .* · shades: in proportion, 0 to the largest weight of each row$"),
        (Scaling.LOG, r"^· \S+  ░ .* · shades: logarithmic, \S+ or less to (1|\.\d\d), the largest weight$"),
    ],
)
def test_the_legend_says_where_shades_begin_and_which_scale_was_asked_for(scale: Scaling, said: str) -> None:
    text = printed(body(made.head(words(50)), 110, Focus(scale=scale, rows=0)), 110)
    assert re.search(said, text, re.MULTILINE)


def test_a_table_of_numbers_is_coloured_by_the_same_scale_and_says_so() -> None:
    head = made.head(made.DOOR)
    plain, largest = (printed(body(head, 80, Focus(scale=each)), 80) for each in (Scaling.SQRT, Scaling.MAX))
    assert "shades" not in plain
    assert f"shades: in proportion, 0 to {head.weights.max():.2f}".replace(" 0.", " .") in largest
    row = int(head.weights.max(axis=1).argmax())
    strongest = colour_of("weight.64")
    line = printed(drawn(head, 80, Focus(scale=Scaling.MAX)), 80, "truecolor").splitlines()[4 + row]
    assert strongest in [paper for _, (_, paper) in cells_of(line)]
    faint = printed(drawn(head, 80, Focus(scale=ONE)), 80, "truecolor").splitlines()[4 + row]
    assert strongest not in [paper for _, (_, paper) in cells_of(faint)]


# ---- which queries are listed


def listed(text: str) -> list[int]:
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if "strongest keys" in line)
    return [int(line.split()[0]) for line in lines[start + 1 :] if re.match(r" *\d+ \S+ ", line)]


def test_the_queries_that_are_listed_are_those_with_the_largest_weight_on_another_ordinary_token() -> None:
    head = made.head(words(90))
    telling = {}
    for query in range(90):
        others = [key for key in range(90) if key not in (0, 89, query)]
        telling[query] = max(head.weights[query, key] for key in others)
    expected = sorted(telling, key=lambda query: -telling[query])[:20]
    text = printed(drawn(head, 80), 80)
    assert listed(text) == expected
    assert "20 of 90 queries: largest weight on another token not special" in text
    assert listed(printed(drawn(head, 80, Focus(rows=3)), 80)) == expected[:3]


def test_a_query_that_looks_at_itself_or_the_first_token_is_not_telling_but_one_across_is() -> None:
    count = 40
    weights = np.full((count, count), 0.2 / count)
    weights[np.arange(count), np.arange(count)] += 0.8
    weights[:, 0] += 0.1
    weights[33, 5] += 0.3
    own = made.head([f"w{i}" for i in range(count)], weights=weights / weights.sum(1, keepdims=True))
    assert listed(printed(drawn(own, 80, Focus(rows=1)), 80)) == [33]
    crossed = replace(own, kind=Kind.CROSS)
    text = printed(drawn(crossed, 80, Focus(rows=1)), 80)
    assert listed(text) == [0]
    assert "largest weight on a token not special" in text


def test_a_query_without_keys_is_blank_and_never_telling() -> None:
    head = causal(70, empty=[3, 40])
    text = printed(drawn(head, 80), 80)
    assert "nan" not in text
    assert not {3, 40} & set(listed(text))
    assert "no valid key" in printed(drawn(head, 80, Focus(rows=None)), 80)
