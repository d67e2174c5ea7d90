"""Two runs, or a word in two texts, beside each other: weights of both, and what has room."""

from dataclasses import replace
from pathlib import Path

import cases_compare
import cases_difference
import made_results as made
import numpy as np
import pytest
from pages_read import codes_in, document
from typer.testing import CliRunner

import attnscope as at
from attnscope.cli.app import app
from attnscope.render.kit import numbers
from attnscope.render.web import room
from attnscope.render.web.codes import decoded
from attnscope.render.web.page import as_page
from attnscope.render.web.room import Beside
from attnscope.results import Difference, Overview
from attnscope.session.reading import Reading
from attnscope.verbs.compare.difference import difference, matrices_in

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
    return difference(*map(matrices_in, runs, ("a.npz", "b.npz")))


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


def test_of_texts_that_differ_no_difference_is_taken(opened, go) -> None:
    texts = cases_compare.texts()
    with opened(texts) as view:
        go(view, "#view=both")
        for side, each in enumerate(texts.sides):
            shown = [value(told) for told in view.evaluate(ROW, str(side))]
            assert shown == pytest.approx(list(each.head.weights[each.position]), abs=6e-5)
        assert view.evaluate(ROW, "difference") == []
        assert view.locator("#view rect.frame").count() == 2


def test_no_name_of_a_matrix_is_cut_at_the_edge(opened) -> None:
    names = ["was/is@12", "the/my@18", "table/market", "[CLS]", "##a"]
    plain = made.overview(2, 3, names)
    turned = replace(plain, weights=tuple(row[::-1] for row in plain.weights))
    with opened(difference(matrices_in(plain, "a.npz"), matrices_in(turned, "b.npz"))) as view:
        cut = view.evaluate(
            """() => [...document.querySelectorAll('#sheet svg.matrix text')].filter(text => {
                const own = text.getBoundingClientRect(), all = text.closest('svg').getBoundingClientRect();
                return own.left < all.left || own.top < all.top;
            }).map(text => text.textContent)"""
        )
        assert view.locator("#sheet svg.matrix text", has_text="table/market").count() == 2
    assert cut == []


SOME = (0, 5, 11)  # heads
TEXTS = ("I opened the door.", "She saw it, and the door fell.")  # of different lengths


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments), env={"HF_HUB_OFFLINE": "1", "COLUMNS": "100"})
    return result.exit_code, result.stderr


def compared(place: Path, *more: str) -> tuple[int, str]:
    return run("compare", *TEXTS, "--word", "door", "-m", "demo", "-q", "-o", str(place), *more)


@pytest.fixture(scope="module")
def model() -> at.Model:
    return at.load("demo")


def weights(place: Path, reading: dict) -> np.ndarray:
    """Head, query, key of the only layer of a reading, as the page has them."""
    (layer,) = codes_in(place, reading)
    return decoded(layer, both=True)


def test_both_sides_hold_every_head_of_the_layer_as_the_text_alone_has_it(tmp_path, model) -> None:
    place = tmp_path / "x.html"
    code, said = compared(place, "--layer", "2")
    assert code == 0, said
    told = document(place)
    assert told["both"]["pairs"] == [[2, head, 2, head] for head in range(12)]
    for text, reading in zip(TEXTS, told["readings"], strict=True):
        assert (reading["layers"], len(reading["full"])) == ([2], 1)
        own = model.read(text)
        exact = np.array([own.head(2, head).weights for head in SOME])
        assert weights(place, reading)[list(SOME)] == pytest.approx(exact, abs=3.2e-5)
    first, second = (weights(place, each) for each in told["readings"])
    assert first.shape != second.shape


def test_what_has_no_room_is_left_out_or_refused_before_the_model_runs(tmp_path, monkeypatch) -> None:
    place = tmp_path / "x.html"
    monkeypatch.setattr(room, "MOST_BYTES", 181_500)  # one head a side has 90 kB of frame and its numbers
    code, said = compared(place)
    assert code == 0, said
    assert [reading["blocks"] for reading in document(place)["readings"]] == [None, None]
    place.unlink()

    def never(*_: object, **__: object) -> None:
        raise AssertionError("the model ran")

    monkeypatch.setattr(Reading, "capture", never)
    monkeypatch.setattr(room, "MOST_BYTES", 180_100)
    code, said = compared(place)
    assert code == 2
    assert "a page of one head a side over 11 tokens would have about" in said
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(AssertionError, match="the model ran"):  # without a page it is not refused
        CliRunner().invoke(app, ["compare", *TEXTS, "--word", "door", "-m", "demo"], catch_exceptions=False)
