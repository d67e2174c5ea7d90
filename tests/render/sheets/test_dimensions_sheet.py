"""One pair by dimension on the screen, in a picture and in files, against the numbers themselves."""

import csv
import io
import json
from dataclasses import replace

import cases_dimensions
import pytest
from golden_text import IN_FULL, assert_golden, printed
from written_numbers import number_of

from attnscope.render import files
from attnscope.render.figure import figure_of
from attnscope.render.focus import Focus
from attnscope.render.kit import numbers
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheets.dimensions import sheet as dimensions
from attnscope.render.terminal.sheet import screen
from attnscope.results import Dimensions

GOLDEN = {
    "dimensions": lambda width: shown(cases_dimensions.dimensions(), width, 3),
    "dimensions_not_turned": lambda width: shown(
        cases_dimensions.dimensions(turned=False, unpaired="nobody knows"), width, None
    ),
}


def shown(result: Dimensions, width: int, rows: int | None) -> str:
    return "".join(printed(part, width) for part in screen(result, width, replace(IN_FULL, rows=rows)))


@pytest.mark.parametrize("width", [40, 80, 140])
@pytest.mark.parametrize("name", GOLDEN)
def test_the_screen_is_as_it_was_looked_at(name: str, width: int) -> None:
    assert_golden(f"{name}.{width}", GOLDEN[name](width))


def test_every_number_on_the_screen_is_that_of_the_result() -> None:
    result = cases_dimensions.dimensions(turned=False)
    text = shown(result, 100, None)
    rows = [line.split() for line in text.splitlines() if line.strip()[:1].isdigit()]
    assert [int(row[0]) for row in rows] == result.order.tolist()
    so_far = 0.0
    for row in rows:
        dim = int(row[0])
        q, k = float(result.head.q[8, dim]), float(result.head.k[2, dim])
        so_far += q * k
        assert [number_of(each) for each in row[1:4]] == pytest.approx([q, k, q * k], abs=0.0051)
        assert number_of(row[5]) == pytest.approx(so_far, abs=0.0051)
    assert so_far == pytest.approx(result.head.scores[8, 2])
    assert f"q·k {numbers.number(so_far)}" in dimensions(result, Focus()).answer


def test_how_many_dimensions_make_half_of_what_tells_the_key_from_others() -> None:
    result = cases_dimensions.dimensions()
    above = sorted((result.products - result.beside).tolist(), reverse=True)
    total = sum(above)
    helping = above if total > 0 else [-each for each in reversed(above)]
    count, reached = 0, 0.0
    while reached < abs(total) / 2:
        reached += helping[count]
        count += 1
    assert f" {count} of {len(above)} dimensions can make half" in dimensions(result, Focus()).answer


def test_rows_that_are_left_out_are_added_up() -> None:
    result = cases_dimensions.dimensions()
    text = shown(result, 100, 3)
    rest = result.products.sum() - result.products[result.order[:3]].sum()
    assert f"{len(result.products) - 3} more dimensions add {numbers.number(rest)} (" in text


def test_marks_have_the_values_of_the_result_and_pairs_their_turns() -> None:
    result = cases_dimensions.dimensions()
    products, pairs = dimensions(result, Focus(rows=5)).every
    assert isinstance(products, Ranking)
    assert isinstance(pairs, Ranking)
    order = result.order[:5]
    below, above, others, sums, score = (mark.at for mark in products.marks)
    bars = [a if b is None else b for a, b in zip(above, below, strict=True)]
    assert bars == result.products[order].tolist()
    assert all(value < 0 for value in below if value is not None)
    assert others == result.beside[order].tolist()
    assert sums == result.cumulated[:5].tolist()
    assert score == [result.head.scores[8, 2]]
    assert pairs.table["adds"].values == sorted(result.by_pair, key=lambda value: -abs(value))
    turns = dict(zip(pairs.names, pairs.table["turn"].values, strict=True))
    half = len(result.products) // 2
    assert turns == {f"{i}+{i + half}": wave for i, wave in enumerate(result.rotation.wavelength)}  # type: ignore[union-attr]
    assert pairs.table["turn"].text(0) == "never"
    assert len(figure_of(result).axes) == 2
    assert len(dimensions(cases_dimensions.dimensions(turned=False), Focus()).every) == 1


def test_files_have_every_dimension_with_its_partner() -> None:
    result = cases_dimensions.dimensions()
    lines = [line for line in files.as_csv(result).splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(io.StringIO("\n".join(lines))))
    assert [int(row["dim"]) for row in rows] == result.order.tolist()
    half = len(rows) // 2
    assert all(int(row["turned_with"]) == (int(row["dim"]) + half) % (2 * half) for row in rows)
    assert float(rows[-1]["cumulated"]) == pytest.approx(result.head.scores[8, 2])
    document = json.loads(files.as_json(result))
    assert document["schema"] == "attnscope.dimensions/2"
    assert sum(row["product"] for row in document["products"]) == pytest.approx(document["score"])
    assert document["weight"] == result.head.weights[8, 2]
