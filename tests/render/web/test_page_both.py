"""Two runs beside each other in the browser: weights of both and what the second gives more, pair by pair."""

from dataclasses import replace

import cases_compare
import cases_difference
import made_every
import made_results as made
import numpy as np
import pytest

from attnscope.analysis.claims.comparison.difference import difference, matrices_in
from attnscope.render.kit import numbers
from attnscope.render.web.page import as_page
from attnscope.render.web.room import Beside
from attnscope.results import Difference, Overview

ROW = "side => [...document.querySelectorAll(`#view text[data-side='${side}']`)].map((e) => e.textContent)"


@pytest.fixture(scope="module")
def runs() -> tuple[Overview, Overview]:
    """Three layers of four heads, with the weights of two draws."""
    plain = made.overview(3, 4)

    def drawn(seed: int) -> Overview:
        every = cases_difference.run(seed).weights
        weights = tuple(tuple(every[layer, head] for head in plain.heads) for layer in plain.layers)
        return replace(plain, weights=weights)

    return drawn(0), drawn(1)


@pytest.fixture(scope="module")
def found(runs) -> Difference:
    return difference(*(matrices_in(each, "made") for each in runs), ("a.npz", "b.npz"))


@pytest.fixture(scope="module")
def page(runs, found) -> bytes:
    return as_page(found, beside=Beside(heads=runs))


def value(text: str) -> float:
    return float(text.replace("−", "-"))


def test_every_pair_shows_both_rows_and_their_difference(opened, go, page, runs) -> None:
    a, b = runs
    with opened(page) as view:
        for (i, j), query in (((0, 0), 3), ((2, 1), 5), ((1, 3), 0)):
            go(view, f"#L{a.layers[i]}H{a.heads[j]}&view=both&query={query}")
            first, second = a.dense_weights[i][j][query], b.dense_weights[i][j][query]
            for side, exact, within in (
                ("0", first, 6e-5),
                ("1", second, 6e-5),
                ("difference", second - first, 6e-4),
            ):
                shown = [value(each) for each in view.evaluate(ROW, side)]
                assert shown == pytest.approx(list(exact), abs=within)
                assert shown != pytest.approx(list(exact[::-1]), abs=within)


def test_pointing_at_a_cell_tells_both_weights_of_that_cell(opened, go, page, runs) -> None:
    (a, b), (q, k) = runs, (6, 2)
    with opened(page) as view:
        go(view, f"#L{a.layers[1]}H{a.heads[2]}&view=both&query=0")
        frame = view.locator("#view rect.frame").nth(2)  # the difference
        frame.scroll_into_view_if_needed()
        box, size = frame.bounding_box(), len(a.query_tokens)
        view.mouse.move(
            box["x"] + box["width"] * (k + 0.5) / size, box["y"] + box["height"] * (q + 0.5) / size
        )
        told = view.inner_text("output")
    first, second = a.dense_weights[1][2][q, k], b.dense_weights[1][2][q, k]
    for exact in (first, second):
        assert numbers.weight(exact, 4) in told
    assert told.startswith(f"{a.query_tokens.names[q]} → {a.key_tokens.names[k]}:")


def test_sides_that_are_exchanged_turn_the_sign(opened, go, runs) -> None:
    """The check of the check: b beside a is not a beside b."""
    a, b = runs
    turned = difference(matrices_in(b, "b"), matrices_in(a, "a"), ("b.npz", "a.npz"))
    with opened(as_page(turned, beside=Beside(heads=(b, a)))) as view:
        go(view, f"#L{a.layers[0]}H{a.heads[0]}&view=both&query=3")
        shown = np.array([value(each) for each in view.evaluate(ROW, "difference")])
    exact = b.dense_weights[0][0][3] - a.dense_weights[0][0][3]
    assert shown == pytest.approx(-exact, abs=6e-4)


def test_runs_of_which_nothing_else_is_known_show_the_pair_that_differs_most(opened, go, found) -> None:
    layer, head, *_ = found.pairs[found.shown]
    with opened(found) as view:
        go(view, f"#L{layer}H{head}&view=both&query=4")
        shown = [value(each) for each in view.evaluate(ROW, "difference")]
        assert shown == pytest.approx(list(found.signed[4]), abs=6e-4)


def test_of_texts_that_differ_no_difference_is_taken(opened, go) -> None:
    texts = cases_compare.texts()
    with opened(texts) as view:
        go(view, "#view=both")
        for side, each in enumerate(texts.sides):
            shown = [value(told) for told in view.evaluate(ROW, str(side))]
            assert shown == pytest.approx(list(each.head.weights[each.position]), abs=6e-5)
        assert view.evaluate(ROW, "difference") == []
        assert view.locator("#view rect.frame").count() == 2


def test_what_stands_beside_each_other_is_a_page_of_its_own_kind_only() -> None:
    both = {kind for kind, result in made_every.every().items() if b'"both":{' in as_page(result)}
    assert both == {"Comparison", "Difference"}


def test_no_name_of_a_matrix_is_cut_at_the_edge(opened) -> None:
    names = ["was/is@12", "the/my@18", "table/market", "[CLS]", "##a"]
    plain = made.overview(2, 3, names)
    turned = replace(plain, weights=tuple(row[::-1] for row in plain.weights))
    one, other = (matrices_in(each, "made") for each in (plain, turned))
    with opened(difference(one, other, ("a.npz", "b.npz"))) as view:
        cut = view.evaluate(
            """() => [...document.querySelectorAll('#sheet svg.matrix text')].filter(text => {
                const own = text.getBoundingClientRect(), all = text.closest('svg').getBoundingClientRect();
                return own.left < all.left || own.top < all.top;
            }).map(text => text.textContent)"""
        )
        assert view.locator("#sheet svg.matrix text", has_text="table/market").count() == 2
    assert cut == []
