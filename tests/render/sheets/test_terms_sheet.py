"""A score by its parts and its dimensions, one vector, and a long head, against the numbers themselves."""

import csv
import io
import math
import re
from dataclasses import replace

import cases_dimensions
import cases_long
import made_results as made
import numpy as np
import pytest
from cases_terms import LONG, at, bare
from cases_terms import terms as result
from golden_text import IN_FULL, assert_golden, printed
from matplotlib.container import BarContainer
from rich.cells import cell_len
from written_numbers import number_of

from attnscope.errors import InputError
from attnscope.render import files
from attnscope.render.figure import figure_of
from attnscope.render.files import as_csv
from attnscope.render.kit import numbers
from attnscope.render.sheet.blocks import Matrix, Ranking
from attnscope.render.sheets import WHOLE, Focus, focus_on, sheet_of
from attnscope.render.sheets.long import sheet as long_head
from attnscope.render.sheets.terms import keys_of
from attnscope.render.sheets.terms import sheet as terms
from attnscope.render.terminal.sheet import body, screen
from attnscope.results import Dimensions, HeadTerms, LongHead
from attnscope.results.score import CONTENT
from attnscope.vocabulary import Pool


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


def test_the_worked_line_holds_as_printed() -> None:
    line = terms(result(), at(4, 2)).answer
    product, scale, scaled = map(number_of, re.search(r"q·k (\S+) x (\S+) = (\S+),", line).groups())
    assert product * scale == pytest.approx(scaled, abs=0.002)
    score, normaliser, weight = map(
        number_of, re.search(r"exp\((\S+) − (\S+)\) = weight (\S+),", line).groups()
    )
    assert math.exp(score - normaliser) == pytest.approx(weight, abs=0.002)


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


def matrices(of: HeadTerms) -> dict[str, Matrix]:
    (_, beside) = terms(of, WHOLE).blocks
    return {each.title: each for each in beside.blocks}


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


PAIRS = {
    "dimensions": lambda width: pair(cases_dimensions.dimensions(), width, 3),
    "dimensions_not_turned": lambda width: pair(
        cases_dimensions.dimensions(turned=False, unpaired="nobody knows"), width, None
    ),
}


def pair(result: Dimensions, width: int, rows: int | None) -> str:
    return "".join(printed(part, width) for part in screen(result, width, replace(IN_FULL, rows=rows)))


@pytest.mark.parametrize("width", [40, 80, 140])
@pytest.mark.parametrize("name", PAIRS)
def test_the_screen_is_as_it_was_looked_at(name: str, width: int) -> None:
    assert_golden(f"{name}.{width}", PAIRS[name](width))


def test_every_number_on_the_screen_is_that_of_the_result() -> None:
    result = cases_dimensions.dimensions(turned=False)
    text = pair(result, 100, None)
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
    assert f"q·k {numbers.number(so_far)}" in terms(result, Focus()).answer


def test_how_many_dimensions_make_half_of_what_tells_the_key_from_others() -> None:
    result = cases_dimensions.dimensions()
    above = sorted((result.products - result.beside).tolist(), reverse=True)
    total = sum(above)
    helping = above if total > 0 else [-each for each in reversed(above)]
    count, reached = 0, 0.0
    while reached < abs(total) / 2:
        reached += helping[count]
        count += 1
    assert f" {count} of {len(above)} dimensions can make half" in terms(result, Focus()).answer


HEAD = made.head(made.DOOR, dim=24)


def vector(focus: Focus, width: int = 80) -> str:
    return "\n".join(printed(part, width) for part in screen(HEAD, width, focus))


def numbers_in(text: str) -> list[float]:
    """The numbers of the vector, read back from the lines that begin with a dimension."""
    lines = re.findall(r"^ *\d+ ((?: +−?\d*\.\d+)+)$", text, re.MULTILINE)
    return [number_of(number) for line in lines for number in line.split()]


@pytest.mark.parametrize("width", [40, 140])
@pytest.mark.parametrize("stage", ["q", "k", "v", "output"])
def test_every_dimension_of_one_token_is_listed(stage: str, width: int) -> None:
    text = vector(focus_on(HEAD, stage, query="mat"), width)
    expected = getattr(HEAD, stage)[6]
    assert numbers_in(text) == pytest.approx(expected, abs=5.1e-3)
    assert (
        f"{len(expected)} dimensions · norm {numbers.significant(np.sqrt(sum(x * x for x in expected)))}"
        in text
    )
    assert all(len(line) <= width for line in text.splitlines())


def test_k_and_v_are_those_of_a_key() -> None:
    cross = made.head(made.DOOR[:3], ["a", "b", "c", "d"], dim=7)
    focus = focus_on(cross, "v", query="d")
    text = "\n".join(printed(part, 80) for part in screen(cross, 80, focus))
    assert numbers_in(text) == pytest.approx(cross.v[3], abs=5.1e-3)
    with pytest.raises(InputError, match="no token 'd' in the input"):
        focus_on(cross, "q", query="d")


@pytest.mark.parametrize(("stage", "asked"), [("q", True), ("output", True), ("k", False), ("v", False)])
def test_only_of_a_query_it_is_asked_next_where_it_looks(stage: str, asked: bool) -> None:
    following = sheet_of(HEAD, focus_on(HEAD, stage, query="mat")).next
    assert (following is not None and "--from mat --to" in following.command) is asked


def test_an_output_is_told_as_the_values_that_it_is_mixed_of() -> None:
    text = " ".join(vector(focus_on(HEAD, "output", query=6), 140).split())
    told = re.search(r" is (.*?) \+ (\d+) more", text)
    assert told is not None
    terms = re.findall(r"(\.\d+|1\.0) v\((\d+) ", told[1])
    weights = HEAD.weights[6]
    assert [int(key) for _, key in terms] == np.argsort(-weights, kind="stable")[:5].tolist()
    assert [float(weight) for weight, _ in terms] == pytest.approx(np.sort(weights)[::-1][:5], abs=5.1e-4)
    assert len(terms) + int(told[2]) == len(weights)


def test_its_picture_has_one_row_on_the_colours_of_all() -> None:
    one, whole = (figure_of(HEAD, focus_on(HEAD, "q", query=each)) for each in ("mat", None))
    meshes = [figure.axes[0].collections[0] for figure in (one, whole)]
    np.testing.assert_array_equal(meshes[0].get_array(), HEAD.q[[6]])
    assert meshes[0].get_clim() == meshes[1].get_clim()


@pytest.mark.parametrize("stage", ["scores", "scaled"])
def test_scores_of_one_query_stand_beside_its_weights_already(stage: str) -> None:
    with pytest.raises(InputError, match=f"leave show {stage} out"):
        focus_on(HEAD, stage, query="mat")
    with pytest.raises(InputError, match="leave key out"):
        focus_on(HEAD, "q", query="mat", key="sat")


def blocks(found: LongHead, focus: Focus = WHOLE) -> tuple[Matrix, Ranking]:
    matrix, ranking = long_head(found, focus).blocks
    assert isinstance(matrix, Matrix)
    assert isinstance(ranking, Ranking)
    return matrix, ranking


@pytest.mark.parametrize(("pool", "combine"), [(Pool.MEAN, np.nanmean), (Pool.MAX, np.nanmax)])
def test_a_cell_is_what_pool_says_of_its_pairs_and_coarser_ones_are_too(pool: Pool, combine: object) -> None:
    dense = np.where(np.tril(np.ones((23, 23), bool)), cases_long.weights(), np.nan)
    matrix, _ = blocks(cases_long.long_head(step=4, pool=pool))
    assert matrix.values[3, 1] == pytest.approx(combine(dense[12:16, 4:8]))  # type: ignore[operator]
    assert np.isnan(matrix.values[0, 1]), "masked"
    assert list(matrix.rows.positions) == [0, 4, 8, 12, 16, 20]
    assert matrix.coarser is not None
    wide = matrix.coarser(2, 1)
    assert list(wide.rows.positions) == [0, 8, 16]
    assert wide.values[1, 1] == pytest.approx(combine(dense[8:16, 4:8]))  # type: ignore[operator]
    assert "8 queries x 4 keys" in wide.says


def test_a_window_has_every_pair_under_the_names_of_its_tokens() -> None:
    matrix, _ = blocks(cases_long.long_head(zoom=(5, 3, 9, 8)))
    assert matrix.values[2, 1] == pytest.approx(cases_long.weights()[7, 4])
    assert matrix.rows.labels[0] == "5 the"
    assert "one weight" in matrix.says
    assert (
        "queries 5-13 of 23, keys 3-10 of 23"
        in long_head(cases_long.long_head(zoom=(5, 3, 9, 8)), WHOLE).setting
    )


def test_the_file_has_the_pairs_of_a_window_and_else_the_strongest_keys() -> None:
    def rows(found: LongHead) -> list[dict[str, str]]:
        lines = [each for each in as_csv(found).splitlines() if not each.startswith("#")]
        return list(csv.DictReader(io.StringIO("\n".join(lines))))

    window = rows(cases_long.long_head(zoom=(5, 3, 9, 8)))
    there = {(int(each["query"]), int(each["key"])): float(each["weight"]) for each in window}
    expected = {(q, k): cases_long.weights()[q, k] for q in range(5, 14) for k in range(3, 11) if k <= q}
    assert there == pytest.approx(expected)
    strongest = [each for each in rows(cases_long.long_head()) if each["rank"] == "0"]
    assert [float(each["weight"]) for each in strongest] == pytest.approx(cases_long.weights().max(axis=1))
