"""A result with a sheet as a page: its answer and its rankings stand there without any script."""

import html
import math
import re
from dataclasses import replace
from pathlib import Path

import cases_ablate
import cases_compare
import cases_compose
import cases_find
import numpy as np
import pytest
import written_numbers as cases
from made_blocks import curve, grid, matrix, ranking, sheet

from attnscope import load
from attnscope.render.kit.numbers import signed, weight
from attnscope.render.kit.palette import RAMPS
from attnscope.render.saving import content
from attnscope.render.sheet.blocks import Heap, Passage
from attnscope.render.sheet.heads import Companion, HeadGrid
from attnscope.render.sheet.steps import Steps
from attnscope.render.sheet.table import Line, Mark, Scale
from attnscope.render.sheets import Focus, sheet_of
from attnscope.render.web.blocks import shaded
from attnscope.render.web.document import document
from attnscope.render.web.page import asset
from attnscope.render.web.ranking import ticks
from attnscope.render.web.room import NOTHING
from attnscope.render.web.sheet import section
from attnscope.results import Result, Verdict
from attnscope.session.opening import aim_at
from attnscope.session.wanted import Looking
from attnscope.tokens import Token, Tokens
from attnscope.verbs.sdpa.examples import example

MADE: list[Result] = [cases_find.finding(), cases_ablate.together(), cases_compose.composition()]


def rows(page: str) -> list[list[str]]:
    """The texts of the cells of the first ranking."""
    body = page.split("<tbody>")[1].split("</tbody>")[0]
    told = re.sub(r"<title>.*?</title>", "", body)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in told.split("</tr>")[:-1]]
    return [[html.unescape(re.sub(r"<[^>]+>", "", cell)) for cell in row] for row in cells]


def test_a_row_has_its_texts_and_under_the_pointer_its_exact_numbers() -> None:
    page = section(sheet())
    assert rows(page)[1] == ["L10 H11", "", "+.40", ".30", "1 of 4", "word"]
    assert 'title="0.3">.30</td>' in page
    assert "<title>its control .3</title>" in page
    assert 'and <a href="#view=numbers">5 more, among the numbers</a>' in page
    assert "score: how much it does" in page


def test_marks_stand_at_their_places_on_one_axis() -> None:
    """The value a dot, the mean of its controls a tick, their interval a band, and a line through all."""
    block = ranking()
    low, high = block.extent()
    percent = [100 * (each - low) / (high - low) for each in (0.91, 0.4, -0.05)]
    body = section(sheet(blocks=(block,))).split("<tbody>")[1]
    dots = re.findall(r'<circle cx="([\d.]+)%" cy="11" r="4.5" class="(\w+)"', body)
    assert [float(x) for x, _ in dots] == pytest.approx(percent, abs=0.01)
    assert [kind for _, kind in dots] == ["fills", "hollow", "fills"], "only .40 lies within .2 and .5"
    bands = re.findall(r'<rect x="([\d.]+)%" width="([\d.]+)%" [^>]*class="held"><title>(.*?)</title>', body)
    ends = [(float(x), float(x) + float(wide)) for x, wide, _ in bands]
    expected = [
        (100 * (a - low) / (high - low), 100 * (b - low) / (high - low)) for a, b in ((0.1, 0.3), (0.2, 0.5))
    ]
    assert ends == [pytest.approx(each, abs=0.02) for each in expected]
    assert [told for *_, told in bands] == [".1 to .3", ".2 to .5"]
    means = re.findall(r'<line x1="([\d.]+)%" x2="\1%" y1="5" y2="17"', body)
    assert [float(x) for x in means] == pytest.approx(
        [100 * (each - low) / (high - low) for each in (0.2, 0.3)], abs=0.01
    )
    assert body.count("stroke-dasharray") == len(block.names), "the line crosses every row"


def test_the_key_of_a_ranking_says_what_a_hollow_dot_is_and_only_where_there_is_one() -> None:
    key = section(sheet(blocks=(ranking(),))).split('<p class="marks">')[1].split("</p>")[0]
    assert "hollow: within its controls" in key
    apart = ranking(marks=(Mark("bar", "own", "score", [0.9, 0.6, 0.7]), *ranking().marks[1:]))
    assert "hollow:" not in section(sheet(blocks=(apart,)))
    bars = ranking(marks=ranking().marks[:1])
    assert re.search(r'<rect x="[\d.]+%" width="[\d.]+%" y="5"', section(sheet(blocks=(bars,)))), (
        "no interval"
    )


def test_heads_are_links_only_where_the_page_leads_to_them() -> None:
    blocks = (ranking(names=("L0 H3", "10 L9", "L12 H0")),)
    there, without = (section(sheet(blocks=blocks), leads=each) for each in (True, False))
    assert re.findall(r'<a href="(#L[^"]*)">(.*?)</a>', there) == [("#L0H3", "L0 H3"), ("#L12H0", "L12 H0")]
    assert 'href="#L' not in without


def test_a_cell_of_a_grid_leads_to_its_head_and_tells_its_number_and_what_stands_with_it() -> None:
    errors = Companion.numbers("its error", np.full((2, 3), 0.25), weight)
    bad = (((Verdict.CERTIFIED,) * 3), (Verdict.CERTIFIED, Verdict.FAILED, Verdict.CERTIFIED))
    block = grid(2, 3, companion=errors, verdicts=bad, beyond=("more than chance", frozenset({(0, 0)})))
    page = section(sheet(blocks=(block,)), leads=True)
    assert 'title="L0 H1: −.14 (-0.14), its error .25"><a href="#L0H1"' in page
    assert "its error .25, ✗ FAILED" in page
    assert page.count("box-shadow") == 2
    assert "outlined: more than chance; outlined: not certified" in page
    assert page.count("<td") == 7, "six cells and the corner"
    assert page.count("<a ") == 5, "a head without a number leads nowhere"
    many = section(sheet(blocks=(grid(2, 32),)))
    assert "L1 H31: +.90 (0.9)" in many
    assert ">+.90</a>" not in many, "cells without room have their numbers under the pointer"


def test_a_curve_has_its_points_at_their_places_and_its_numbers_below() -> None:
    page = section(sheet(blocks=(curve(),)))
    circles = re.findall(r'cx="([\d.]+)" cy="([\d.]+)" r="3.0" [^>]*><title>(.*?)</title>', page)
    assert [told for _, _, told in circles] == ["L0 all heads .1", "L1 all heads .5", "L2 all heads .4"]
    (x0, y0), (x1, y1), (x2, _) = [(float(x), float(y)) for x, y, _ in circles]
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    low, high = curve().extent()
    assert (y0 - y1) / 190 == pytest.approx(0.4 / (high - low), abs=0.01)
    assert rows(page)[1] == ["L1", ".50"]


def test_the_key_of_a_curve_has_a_piece_of_each_line_as_it_is_drawn() -> None:
    shapes = "line", "dashed", "band", "points", "ring"
    at = {"points": [[0.1], [0.2], [], [0.3]]}
    lines = [
        Line(
            each, "own", f"a {each}", at.get(each, [0.1, 0.2, None, 0.3]), [0.4] * 4 if each == "band" else ()
        )
        for each in shapes
    ]
    key = section(sheet(blocks=(curve(lines=tuple(lines)),))).split('<p class="marks">')[1].split("</p>")[0]
    samples = dict(zip(shapes, key.split("<span>")[1:], strict=True))
    assert all(f"a {each}" in sample for each, sample in samples.items())
    assert [each for each in shapes if "<circle" in samples[each]] == ["points", "ring"]
    assert [each for each in shapes if "dasharray" in samples[each]] == ["dashed"]
    assert 'class="lines"' in samples["ring"], "a ring is not filled"


def test_a_matrix_has_a_cell_for_every_number_and_none_where_there_is_none() -> None:
    page = section(sheet(blocks=(matrix(2, 3),)))
    told = re.findall(r"<title>(.*?)</title>", page)
    assert [html.unescape(each) for each in told] == [
        *("r0 → c0: −.60", "r0 → c1: −.30", "r1 → c0: +.30", "r1 → c1: +.60", "r1 → c2: +.90")
    ]
    assert matrix(2, 3).scale.paper(0.9)[0] in page
    large = section(sheet(blocks=(matrix(100, 7),)))
    assert "each cell the strongest of 2 queries x 1 key" in large
    assert len(re.findall("<title>", large)) == 50 * 7


def test_a_text_reads_as_it_is_with_each_token_on_the_shade_of_its_number() -> None:
    """Blanks and words are the text's own; the tokens that it does not hold stand in their order."""
    tokens = Tokens(
        ("A  cat<b> ran.",),
        (
            Token(0, "[CLS]", "[CLS]", None, None, special=True),
            Token(1, "A", "A", (0, 1), 0), Token(2, "cat", "cat", (3, 6), 1),
            Token(3, " ran", " ran", (9, 13), 2), Token(4, ".", ".", (13, 14), 3),
        ),
    )  # fmt: skip
    values = np.array([0.5, -0.25, 1.0, np.nan, 0.125])
    scale = Scale.around(values)
    block = Passage("what it does", tokens, values, scale, signed, frozenset({2}))
    page = section(sheet(blocks=(block,))).split('<p class="passage">')[1].split("</p>")[0]
    assert html.unescape(re.sub(r"<[^>]+>", "", page)).strip() == "[CLS] A  cat<b> ran."
    spans = re.findall(r'<span class="([^"]*)"([^>]*)>(.*?)</span>', page)
    assert [(kind, text) for kind, _, text in spans] == [
        ("w added shade", "[CLS]"), ("w shade", "A"), ("w chosen shade", "cat"), ("w", "ran"),
        ("w shade", "."),
    ]  # fmt: skip
    assert 'title="cat: +1.00 (1)"' in spans[2][1]
    assert shaded(scale, -0.25) in spans[1][1]
    assert 'title="ran: no number"' in spans[3][1]


def test_a_heap_has_a_dot_for_each_number_and_a_line_where_the_own_one_is() -> None:
    values = (0.0, 0.1, 0.1, 2.0)
    block = Heap("the others", "another", values, "L1 H2", 1.0, "nats", signed)
    page = section(sheet(blocks=(block,)))
    drawn = page.split('role="img"')[1]
    dots = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', drawn)]
    assert len(dots) == len(values)
    left, right = min(dots), max(dots)
    own = float(re.search(r'<path d="M([\d.]+) 2V', drawn)[1])  # type: ignore[index]
    assert own == pytest.approx((left + right) / 2, abs=4), "1 lies half way from 0 to 2"
    assert "L1 H2 +1.00; the dots from 0 to +2.00" in drawn
    many = replace(block, values=(0.0,) * 100)
    assert "a dot is up to 5 of them" in section(sheet(blocks=(many,)))


def test_round_numbers_of_an_axis_lie_on_it_and_have_the_same_decimals() -> None:
    for low, high, told in (
        (0.0, 1.02, ["0", ".5", "1.0"]), (-0.07, 1.05, ["0", ".25", ".50", ".75", "1.00"]),
        (-0.9, 0.1, ["−.8", "−.6", "−.4", "−.2", "0"]), (0.0, 4.2, ["0", "1", "2", "3", "4"]),
        (0.0, 3e-6, ["0", "1e-6", "2e-6", "3e-6"]),
    ):  # fmt: skip
        found = ticks(low, high, 3 if high == 1.02 else 5)
        assert [text for _, text in found] == told
        assert all(low <= value <= high * 1.001 for value, _ in found)


def test_nothing_ranked_is_no_table() -> None:
    empty = section(sheet(blocks=(replace(ranking(), names=()),)))
    assert "<table" not in empty
    assert "L0 H3 does" in empty


@pytest.mark.parametrize("result", MADE, ids=lambda each: type(each).__name__)
def test_every_kind_with_a_sheet_has_a_page_with_its_answer(result: Result, tmp_path: Path) -> None:
    page = content(result, ".html").decode()
    made = sheet_of(result)
    assert made is not None
    assert html.escape(made.answer) in page
    first = next(each for each in made.every if hasattr(each, "names"))
    shown = [row[0] for row in rows(page) if len(row) > 1]
    assert shown == list(first.names), "a row of one cell is a group's heading"  # type: ignore[union-attr]


def test_the_steps_of_a_worked_example_are_written_out_and_its_text_is_no_markup() -> None:
    made = sheet_of(example("fruit"))
    assert made is not None
    page = html.unescape(section(made))
    for value in ("0.4388", "12.3564", "scores = Q Kᵀ", "fruit, apple: 0.76 / 1.7321 = 0.4388"):
        assert value in page
    (block, *_) = made.every
    assert isinstance(block, Steps)
    hostile = replace(block, steps=(replace(block.steps[0], meaning="<script>alert(1)</script>"),))
    assert "<script" not in section(replace(made, blocks=(hostile,)))


def test_two_sides_of_a_word_have_a_grid_of_every_head_for_rows_and_for_vectors() -> None:
    rows, vectors = cases_compare.layers(), cases_compare.texts()
    assert rows.divergence is not None
    grids = comparison_grids(rows)
    assert np.array_equal(grids["divergence of the rows"], rows.divergence.jensen_shannon)
    assert np.array_equal(grids["total variation of the rows"], rows.divergence.total_variation)
    assert len(vectors.similarities) > 1
    for each in vectors.similarities:
        alike = comparison_grids(vectors)[f"cosine of the {each.vector} vectors"]
        assert np.array_equal(alike, each.heads, equal_nan=True)
    assert content(rows, ".html").decode().count('<table class="heads') == len(grids)


def comparison_grids(found: Result) -> dict[str, np.ndarray]:
    """The grids that only a page has, by their titles."""
    made = sheet_of(found)
    assert made is not None
    return {each.title: each.values for each in made.more if isinstance(each, HeadGrid)}


def test_a_cell_without_script_has_the_colours_of_both_grounds() -> None:
    """Those of the palette: the strongest cell is dark on light and bright on dark."""
    scale = Scale(0.0, 1.0)
    cell = dict(each.split(":") for each in shaded(scale, 1.0).split(";"))
    assert cell["--l"] == RAMPS["light"]["weight"][-1]
    assert cell["--d"] == RAMPS["dark"]["weight"][-1]
    assert (cell["--i"], cell["--j"]) == ("#fff", "#000")
    table = re.search(
        r'<table class="heads.*?</table>', section(replace(sheet(), blocks=(grid(2, 3),))), re.DOTALL
    )
    assert table is not None
    cells = [each for each in re.findall(r"<td[^>]*>", table[0]) if "style" in each]
    assert len(cells) >= 4
    assert all('class="shade"' in each and "--d:#" in each for each in cells)
    assert "background:#" not in table[0], "no colour that stays as it is"


TEXT = "I was watching the door when [MASK] opened."


def test_a_page_of_a_span_opens_on_tokens_that_were_named() -> None:
    seen = aim_at(load("demo").read(TEXT).head(3, 11), Looking(), "[MASK]", "the door")
    assert (seen.query, seen.key) == (6, 4)  # the span is one row
    opening = document(seen.shown, Focus(queries=(seen.query,), key=seen.key), NOTHING).opening
    assert (opening["query"], opening["key"]) == (7, 4)  # [MASK], and the first of the door
    single = aim_at(load("demo").read(TEXT).head(3, 11), Looking(), "[MASK]", "door")
    opening = document(single.shown, Focus(queries=(single.query,), key=single.key), NOTHING).opening
    assert (opening["query"], opening["key"]) == (7, 5)


RULES = {
    "numberText": cases.SIGNIFICANT,
    "parameterText": cases.PARAMETER,
    "signedText": cases.SIGNED,
    "weightText": cases.WEIGHT,
    "weightCell": cases.WEIGHT_CELL,
}


@pytest.fixture(scope="module")
def written(browser):
    """A function of the script by its name, for values and their digits."""
    view = browser.new_page()
    view.add_script_tag(content=re.sub(r"^export ", "", asset("elements.js"), flags=re.MULTILINE))
    yield lambda name, pairs: view.evaluate(
        f"pairs => pairs.map(([value, digits]) => {name}(value, digits))", pairs
    )
    view.close()


@pytest.mark.parametrize("name", RULES)
def test_the_page_writes_a_number_as_the_package_does(written, name) -> None:
    values, texts = [[value, digits] for value, digits, _ in RULES[name]], [text for *_, text in RULES[name]]
    assert written(name, values) == texts


def test_the_page_leaves_a_place_empty_where_there_is_no_number(written) -> None:
    for name in RULES:
        assert written(name, [[math.nan, 2]]) == [""]
