"""One pair by dimension on the screen, in a picture and in files, against the numbers themselves."""

import csv
import io
import json

import made_dimensions
import numpy as np
import pytest
from golden_text import assert_golden, printed
from matplotlib.figure import Figure

from attnscope.render import files
from attnscope.render.dimensions.plot import draw_pairs, draw_products, draw_vectors
from attnscope.render.dimensions.terminal import dimensions
from attnscope.render.dimensions.words import share_words, sum_words

GOLDEN = {
    "dimensions": lambda width: dimensions(made_dimensions.dimensions(), width, 3),
    "dimensions_not_turned": lambda width: dimensions(
        made_dimensions.dimensions(turned=False, unpaired="nobody knows"), width, None
    ),
}


@pytest.mark.parametrize("width", [40, 80, 140])
@pytest.mark.parametrize("name", GOLDEN)
def test_the_screen_is_as_it_was_looked_at(name: str, width: int) -> None:
    assert_golden(f"{name}.{width}", printed(GOLDEN[name](width), width))


def test_every_number_on_the_screen_is_that_of_the_result() -> None:
    result = made_dimensions.dimensions(turned=False)
    text = printed(dimensions(result, 100, None), 100)
    rows = [line.split() for line in text.splitlines() if line.strip()[:1].isdigit()][1:]
    assert [int(row[0]) for row in rows] == result.order.tolist()
    so_far = 0.0
    for row in rows:
        dim = int(row[0])
        q, k = float(result.head.q[8, dim]), float(result.head.k[2, dim])
        so_far += q * k
        assert [float(each) for each in row[1:4]] == pytest.approx([q, k, q * k], abs=0.0051)
        assert float(row[5]) == pytest.approx(so_far, abs=0.0051)
    assert so_far == pytest.approx(result.head.scores[8, 2])
    assert f"q·k {so_far:.2f}" in sum_words(result)


def test_how_many_dimensions_make_half_of_what_tells_the_key_from_others() -> None:
    result = made_dimensions.dimensions()
    above = sorted((result.products - result.beside).tolist(), reverse=True)
    total = sum(above)
    helping = above if total > 0 else [-each for each in reversed(above)]
    count, reached = 0, 0.0
    while reached < abs(total) / 2:
        reached += helping[count]
        count += 1
    assert f"half of which {count} dimension" in share_words(result)


def test_rows_that_are_left_out_are_added_up() -> None:
    result = made_dimensions.dimensions()
    text = printed(dimensions(result, 100, 3), 100)
    rest = result.products.sum() - result.products[result.order[:3]].sum()
    assert f"{len(result.products) - 3} more dimensions add {rest:.2f} (" in text


def test_bars_lines_and_points_have_the_values_of_the_result() -> None:
    result = made_dimensions.dimensions()
    axes = Figure().subplots(3)
    draw_vectors(result, axes[0])
    draw_products(result, axes[1])
    draw_pairs(result, axes[2])
    heights = [bar.get_height() for bar in axes[0].patches]
    assert heights == [*result.query_vector[result.order], *result.key_vector[result.order]]
    assert [bar.get_height() for bar in axes[1].patches] == result.products[result.order].tolist()
    marks, sums, score, _ = axes[1].lines
    assert list(marks.get_ydata()) == result.beside[result.order].tolist()
    assert list(sums.get_ydata()) == result.cumulated.tolist()
    assert score.get_ydata()[0] == result.head.scores[8, 2]
    points = np.asarray(axes[2].collections[1].get_offsets())
    assert points[:, 1].tolist() == pytest.approx(result.by_pair.tolist())
    assert (np.diff(points[:, 0]) > 0).all(), "what never turns stands at the right"


def test_files_have_every_dimension_with_its_partner() -> None:
    result = made_dimensions.dimensions()
    lines = [line for line in files.as_csv(result).splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(io.StringIO("\n".join(lines))))
    assert [int(row["dim"]) for row in rows] == result.order.tolist()
    half = len(rows) // 2
    assert all(int(row["turned_with"]) == (int(row["dim"]) + half) % (2 * half) for row in rows)
    assert float(rows[-1]["cumulated"]) == pytest.approx(result.head.scores[8, 2])
    document = json.loads(files.as_json(result))
    assert document["schema"] == "attnscope.dimensions/1"
    assert sum(row["product"] for row in document["products"]) == pytest.approx(document["score"])
    assert document["weight"] == result.head.weights[8, 2]
