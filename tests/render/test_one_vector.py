"""The vector of one token: on the terminal, in a picture, by what it is mixed of."""

import re
from dataclasses import replace

import made_results as made
import numpy as np
import pytest
from golden_text import printed
from written_numbers import number_of

from attnscope.errors import InputError
from attnscope.render.figure import figure_of
from attnscope.render.focus import Focus, focus_on
from attnscope.render.kit import numbers
from attnscope.render.sheets import sheet_of
from attnscope.render.terminal.sheet import screen

HEAD = made.head(made.DOOR, dim=24)


def shown(focus: Focus, width: int = 80) -> str:
    return "\n".join(printed(part, width) for part in screen(HEAD, width, focus))


def body(text: str) -> list[float]:
    """The numbers of the vector, read back from the lines that begin with a dimension."""
    lines = re.findall(r"^ *\d+ ((?: +−?\d*\.\d+)+)$", text, re.MULTILINE)
    return [number_of(number) for line in lines for number in line.split()]


@pytest.mark.parametrize("width", [40, 80, 140])
@pytest.mark.parametrize("stage", ["q", "k", "v", "output"])
def test_every_dimension_of_one_token_is_listed(stage: str, width: int) -> None:
    text = shown(focus_on(HEAD, stage, query="mat"), width)
    expected = getattr(HEAD, stage)[6]
    assert body(text) == pytest.approx(expected, abs=5.1e-3)
    assert (
        f"{len(expected)} dimensions · norm {numbers.significant(np.sqrt(sum(x * x for x in expected)))}"
        in text
    )
    assert all(len(line) <= width for line in text.splitlines())


def test_k_and_v_are_those_of_a_key() -> None:
    cross = made.head(made.DOOR[:3], ["a", "b", "c", "d"], dim=7)
    focus = focus_on(cross, "v", query="d")
    text = "\n".join(printed(part, 80) for part in screen(cross, 80, focus))
    assert body(text) == pytest.approx(cross.v[3], abs=5.1e-3)
    with pytest.raises(InputError, match="no token 'd' in the input"):
        focus_on(cross, "q", query="d")


@pytest.mark.parametrize(("stage", "asked"), [("q", True), ("output", True), ("k", False), ("v", False)])
def test_only_of_a_query_it_is_asked_next_where_it_looks(stage: str, asked: bool) -> None:
    following = sheet_of(HEAD, focus_on(HEAD, stage, query="mat")).next
    assert (following is not None and "--from mat --to" in following.command) is asked


def test_an_output_is_told_as_the_values_that_it_is_mixed_of() -> None:
    text = " ".join(shown(focus_on(HEAD, "output", query=6), 140).split())
    told = re.search(r" is (.*?) \+ (\d+) more", text)
    assert told is not None
    terms = re.findall(r"(\.\d+|1\.0) v\((\d+) ", told[1])
    weights = HEAD.weights[6]
    assert [int(key) for _, key in terms] == np.argsort(-weights, kind="stable")[:5].tolist()
    assert [float(weight) for weight, _ in terms] == pytest.approx(np.sort(weights)[::-1][:5], abs=5.1e-4)
    assert len(terms) + int(told[2]) == len(weights)


def test_a_query_without_keys_has_no_output() -> None:
    emptied = replace(made.head(made.DOOR, empty=[2]))
    text = "\n".join(printed(part, 80) for part in screen(emptied, 80, focus_on(emptied, "output", query=2)))
    assert "no valid key" in text
    assert "output =" not in text


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
