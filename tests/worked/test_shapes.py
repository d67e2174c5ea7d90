"""Arrays that do not fit together are named with their shapes; names find their axes."""

import numpy as np
import pytest

from attnscope.errors import InputError
from attnscope.results.worked import Given, Scoring
from attnscope.worked import work_out
from attnscope.worked.shapes import MOST_PAIRS


def given(**shapes: tuple[int, int]) -> dict[str, Given]:
    return {key: Given(np.ones(shape)) for key, shape in shapes.items()}


PROJECTED = {"x": (4, 5), "wq": (5, 3), "wk": (5, 3), "wv": (5, 2)}
ADDITIVE = {
    "q": (2, 3),
    "k": (4, 2),
    "v": (4, 1),
    "additive_wq": (3, 5),
    "additive_wk": (2, 5),
    "additive_v": (1, 5),
}

MISFITS = [
    ({"q": (1, 2), "k": (3, 3), "v": (3, 1)}, "Q is 1 x d_k=2, K is 3 x d_k=3: d_k must agree"),
    ({"q": (1, 3), "k": (4, 3), "v": (2, 5)}, "K is 4 x d_k=3, V is 2 x d_v=5: keys must agree"),
    ({"q": (1, 3), "k": (4, 3), "v": (1, 4)}, "written '1; 2; 3'"),
    (PROJECTED | {"wk": (6, 3)}, "X is T=4 x d=5, Wk is d=6 x d_k=3: d must agree"),
    (PROJECTED | {"wk": (5, 4)}, "Wq is d=5 x d_k=3, Wk is d=5 x d_k=4: d_k must agree"),
    (PROJECTED | {"wo": (3, 5)}, "Wv is d=5 x d_v=2, Wo is d_v=3 x d=5: d_v must agree"),
    (PROJECTED | {"bv": (1, 3)}, "Wv is d=5 x d_v=2, bv is 1 x d_v=3: d_v must agree"),
    (PROJECTED | {"bv": (2, 1)}, "bv is 2 x d_v=1: it has one row"),
    (PROJECTED | {"q": (1, 3)}, "q beside x"),
    ({"q": (1, 2), "v": (3, 1)}, "no k: give q, k and v, or x with wq, wk and wv"),
    ({"x": (1, 2)}, "no wq, wk, wv"),
    ({"q": (1, 2), "k": (3, 2), "v": (3, 1), "bq": (1, 2)}, "bq without x"),
    (ADDITIVE, "without additive scoring"),
]


@pytest.mark.parametrize(("shapes", "message"), MISFITS)
def test_arrays_that_do_not_fit_are_named_with_their_shapes(shapes: dict, message: str) -> None:
    with pytest.raises(InputError) as refused:
        work_out(given(**shapes))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"additive_wq": (4, 5)}, "Q is 2 x d_q=3, Aq is d_q=4 x d_a=5: d_q must agree"),
        ({"additive_wk": (2, 6)}, "Aq is d_q=3 x d_a=5, Ak is d_k=2 x d_a=6: d_a must agree"),
        ({"additive_v": (5, 1)}, "a is 5 x d_a=1"),
    ],
)
def test_additive_weights_are_checked_too(changed: dict, message: str) -> None:
    with pytest.raises(InputError) as refused:
        work_out(given(**(ADDITIVE | changed)), scoring=Scoring.ADDITIVE)
    assert message in str(refused.value)


def test_additive_scoring_without_its_weights_says_their_shapes() -> None:
    with pytest.raises(InputError, match=r"additive_wq = Aq \(d_q x d_a\).*additive_v = a \(1 x d_a\)"):
        work_out(given(q=(1, 2), k=(3, 2), v=(3, 1)), scoring=Scoring.ADDITIVE)


def test_square_arrays_are_warned_about_and_others_are_not() -> None:
    square = work_out(given(q=(1, 3), k=(3, 3), v=(3, 2))).warnings
    assert len(square) == 1
    assert square[0].startswith("K is square")
    assert square[0].endswith("rows = keys, columns = d_k")
    assert work_out(given(q=(1, 3), k=(4, 3), v=(4, 2))).warnings == ()
    assert work_out(given(q=(1, 1), k=(1, 1), v=(1, 1))).warnings == ()


def test_names_of_options_come_before_those_of_arrays() -> None:
    arrays = given(q=(1, 3), k=(4, 3), v=(4, 2))
    arrays["k"] = Given(arrays["k"].values, rows=("a", "b", "c", "d"), columns=("x", "y", "z"))
    result = work_out(arrays, names={"dims": ("red", "green", "blue")})
    assert result.step("weights").matrix.columns.names == ("a", "b", "c", "d")
    assert result.step("v").matrix.rows.names == ("a", "b", "c", "d")
    assert result.step("q").matrix.columns.names == ("red", "green", "blue")
    assert result.step("q").matrix.rows.names == ("q0",)


def test_names_that_contradict_each_other_are_refused() -> None:
    arrays = given(q=(1, 3), k=(2, 3), v=(2, 2))
    arrays["k"] = Given(arrays["k"].values, rows=("a", "b"))
    arrays["v"] = Given(arrays["v"].values, rows=("b", "a"))
    with pytest.raises(InputError, match="two names for the same keys: k has a, b, v has b, a"):
        work_out(arrays)
    assert work_out(arrays, names={"key_names": ("c", "d")}).step("k").matrix.rows.names == ("c", "d")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"key_names": ("a", "b")}, "2 names for 4 keys"),
        ({"query_names": ("a", "b")}, "2 names for 1 query"),
        ({"dims": ("a",)}, "1 names for d_k = 3"),
        ({"token_names": ("a",)}, "token_names: these arrays have no such axis"),
    ],
)
def test_names_that_do_not_fit_are_refused(names: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        work_out(given(q=(1, 3), k=(4, 3), v=(4, 2)), names=names)


def test_more_pairs_than_can_be_shown_are_refused() -> None:
    side = int(MOST_PAIRS**0.5) + 1
    with pytest.raises(InputError, match="too many to show"):
        work_out(given(q=(side, 1), k=(side, 1), v=(side, 1)))
