"""The parts of a score as they are shown, and in files, against the numbers themselves."""

import csv
import io
import json
import math
import re

import numpy as np
import pytest
from cases_terms import LONG, at, bare, moved
from cases_terms import terms as result
from golden_text import assert_golden, printed
from matplotlib.container import BarContainer
from rich.cells import cell_len
from written_numbers import number_of

from attnscope.render import files
from attnscope.render.figure import figure_bytes, figure_of
from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit import numbers
from attnscope.render.sheet.blocks import Matrix
from attnscope.render.sheets.terms import keys_of
from attnscope.render.sheets.terms import sheet as terms
from attnscope.render.terminal.ranking import kept_columns
from attnscope.render.terminal.sheet import body
from attnscope.results import HeadTerms
from attnscope.results.score import CAP, CONTENT


def shown(of: HeadTerms, width: int, focus: Focus = WHOLE) -> str:
    return printed(body(terms(of, focus), width), width)


GOLDEN = {
    "terms": lambda width: shown(result(), width),
    "terms_of_a_query": lambda width: shown(result(), width, at(4, 2)),
    "terms_of_a_query_without_extras": lambda width: shown(
        result(causal=False, sink=False, capped=False), width, at(4)
    ),
    "terms_of_many_keys": lambda width: shown(result(LONG), width, at(65, 3)),
    "terms_of_a_query_without_key": lambda width: shown(result(empty=[3]), width, at(3)),
}


@pytest.mark.parametrize("width", [60, 100])
@pytest.mark.parametrize("name", GOLDEN)
def test_the_text_is_the_golden_text_and_no_line_is_too_wide(name: str, width: int) -> None:
    text = GOLDEN[name](width)
    assert_golden(f"{name}.{width}", text)
    assert max(cell_len(line) for line in text.splitlines()) <= width


def test_the_numbers_of_every_row_add_up_to_its_score_as_printed() -> None:
    text = shown(result(), 140, at(6))
    rows = [line.split() for line in text.splitlines() if re.match(r" ?\d+ \S+ +−?\d*\.", line)]
    assert len(rows) == 13
    for row in rows[:7]:
        capped, position, alibi, mask, score = map(number_of, row[4:9])
        assert capped + position + alibi + mask == pytest.approx(score, abs=0.002)
    assert all(row[7:10] == ["−∞", "−∞", "masked"] for row in rows[7:])


def test_the_worked_line_holds_as_printed() -> None:
    line = terms(result(), at(4, 2)).answer
    product, scale, scaled = map(number_of, re.search(r"q·k (\S+) x (\S+) = (\S+),", line).groups())
    assert product * scale == pytest.approx(scaled, abs=0.002)
    score, normaliser, weight = map(
        number_of, re.search(r"exp\((\S+) − (\S+)\) = weight (\S+),", line).groups()
    )
    assert math.exp(score - normaliser) == pytest.approx(weight, abs=0.002)


def test_columns_that_do_not_fit_are_left_out_from_the_left_and_the_last_ones_stay() -> None:
    def headings(width: int) -> list[str]:
        shown = kept_columns(keys_of(result(), 4, 2), width)
        return [each.heading for each in shown]

    every = ["q·k", "x .3536", "capped", "content to position", "alibi", "score", "weight"]
    assert headings(140) == [*every[:5], "mask", *every[5:]]
    narrower = [headings(width) for width in range(32, 90) if "mask" not in headings(width)]
    assert all(each == every[-len(each) :] for each in narrower)
    assert narrower[0] == ["score", "weight"]
    assert narrower[-1] == every, "only the mask has no room"


def test_keys_are_those_of_the_text_or_the_strongest_and_the_one_that_is_asked_for() -> None:
    of = result(LONG)
    weights = of.head.weights[65]
    strongest = sorted(np.argsort(-weights)[:39].tolist())
    assert 0 not in strongest
    block = keys_of(of, 65, 0)
    assert [int(name.split()[0]) for name in block.names[:-1]] == [0, *strongest]
    assert block.names[-1] == "sink"
    assert block.hidden == 70 - 40
    left_out = 1 - weights[[0, *strongest]].sum() - of.sink_weights[65]
    told = f"26 keys left out share {numbers.weight(left_out)} of the weight · 4 masked keys left out"
    assert told in block.says, "a masked key shares nothing"
    (bars,) = block.marks
    assert bars.at == [*weights[[0, *strongest]].tolist(), of.sink_weights[65]]
    every = keys_of(of, 30, 3, most=70)
    assert len(every.names) == 71
    assert every.faint == frozenset(range(31, 70)), "masked"
    assert every.chosen == frozenset({3})


def test_the_parts_are_shown_as_they_are_and_ranked_by_what_they_move() -> None:
    of = moved(0.2, 0.41, 0.3)
    assert [part.moved for part in of.ranked] == [0.41, 0.3, 0.2]
    assert moved(math.nan, 0.5).ranked == moved(math.nan, 0.5).ranked[:1]
    (ranking, _) = terms(of, WHOLE).blocks
    assert ranking.table["moved"].values == [0.2, 0.41, 0.3]
    assert [ranking.table["mean"].text(row) for row in range(3)] == [".100", ".100", ".100"]


def matrices(of: HeadTerms) -> dict[str, Matrix]:
    (_, beside) = terms(of, WHOLE).blocks
    return {each.title: each for each in beside.blocks}


def test_there_is_a_matrix_for_every_part_on_one_scale_and_they_add_up() -> None:
    shown, allowed = matrices(result()), result().head.allowed
    assert list(shown) == [CONTENT, CAP, "content to position", "alibi", "score", "weight"]
    assert len({each.scale.high for name, each in shown.items() if name != "weight"}) == 1
    assert shown["weight"].scale.top == 1.0
    total = sum(each.values for each in list(shown.values())[:4])
    assert total[allowed] == pytest.approx(shown["score"].values[allowed])
    assert all((np.isnan(each.values) == ~allowed).all() for each in shown.values())


def test_the_picture_stands_in_a_square_and_is_always_the_same() -> None:
    figure = figure_of(result())
    drawn = [axes for axes in figure.axes if axes.collections and len(axes.collections[0].get_array()) == 13]
    assert len(drawn) == 6
    assert len({round(axes.get_position().x0, 3) for axes in drawn}) == 3
    assert len({round(axes.get_position().y0, 3) for axes in drawn}) == 2
    assert figure_bytes(figure, "svg") == figure_bytes(figure_of(result()), "svg")


def test_the_picture_of_a_query_has_its_steps_as_cells_beside_bars_of_the_weights() -> None:
    of = result()
    figure = figure_of(of, at(4, 2))
    (axes,) = figure.axes
    bars = [bar for held in axes.containers if isinstance(held, BarContainer) for bar in held]
    assert [bar.get_width() for bar in bars] == pytest.approx([*of.head.weights[4, :5], of.sink_weights[4]])
    (cells,) = axes.child_axes
    told = {text.get_text() for text in cells.texts}
    assert {numbers.cell(each, 3) for each in of.head.terms["alibi"][4]} <= told
    assert numbers.cell(of.head.scaled[4, 2], 3) in told
    assert [label.get_text() for label in cells.get_yticklabels() if label.get_fontweight() == "bold"] == [
        " 2 cat"
    ]
    assert "q·k 6.767 x .3536 = 2.392" in " ".join(text.get_text() for text in figure.texts)


def test_a_head_with_nothing_added_has_no_matrix_of_the_score_beside_its_product() -> None:
    assert list(matrices(bare())) == [CONTENT, "weight"]
    assert [each.name for each in keys_of(bare(), 4, 2).table.columns] == ["q·k", "score", "weight"]


def test_the_document_holds_every_step_and_nulls_where_a_key_is_masked() -> None:
    of = result()
    document = json.loads(files.as_json(of))
    assert document["schema"] == "attnscope.terms/2"
    assert [part["name"] for part in document["parts"]] == [each.name for each in of.influences]
    assert document["terms"]["alibi"] == pytest.approx(of.head.terms["alibi"])
    steps = (document[name][5][3] for name in ("times_scale", "capped", "scaled"))
    assert list(steps) == pytest.approx([of.scaled[5, 3], of.capped[5, 3], of.head.scaled[5, 3]])
    assert document["scaled"][3][5] is None
    assert document["sink_weights"] == pytest.approx(of.sink_weights)


def test_the_table_as_csv_has_a_row_per_pair_and_one_per_sink() -> None:
    of = result()
    text = files.as_csv(of)
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(io.StringIO("\n".join(lines))))
    assert len(rows) == 13 * 13 + 13
    row = rows[5 * 13 + 3]
    total = sum(float(row[name]) for name in ("capped", "content to position", "alibi", "mask"))
    assert total == pytest.approx(float(row["score"])) == pytest.approx(of.head.scaled[5, 3])
    assert float(row["q·k"]) * float(row["scale"]) == pytest.approx(float(row["scaled"]))
    assert (rows[-1]["key_token"], float(rows[-1]["score"])) == ("sink", 0.5)
    assert "# score part: alibi: mean 0.1" in text


def test_the_archive_holds_the_same_arrays() -> None:
    of = result()
    with np.load(io.BytesIO(files.as_npz(of))) as archive:
        assert np.array_equal(archive["times_scale"], of.scaled)
        assert np.array_equal(archive["terms alibi"], of.head.terms["alibi"])
        assert np.array_equal(archive["sinks"], of.sinks)
