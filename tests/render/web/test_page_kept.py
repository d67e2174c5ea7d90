"""Beyond what a page has room for the largest of each row are kept: nothing that is absent is shown as 0."""

from dataclasses import replace

import made_results as made
import numpy as np
import pytest

from attnscope.render.saving import content
from attnscope.render.web import codes, readings, room
from attnscope.results import Overview

TOKENS = 90


@pytest.fixture(scope="module")
def overview() -> Overview:
    """Causal in its first layer; nobody looks at less than 1e-4."""
    random = np.random.default_rng(4)
    weights = random.dirichlet(np.full(TOKENS, 0.6), size=(2, 3, TOKENS)) + 1e-4
    weights[0] *= np.tri(TOKENS)
    weights /= weights.sum(axis=-1, keepdims=True)
    plain = made.overview(2, 3, [f"t{i}" for i in range(TOKENS)])
    return replace(plain, weights=tuple(tuple(each) for each in weights))


@pytest.fixture(scope="module")
def page(overview) -> bytes:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readings, "DENSE_BYTES", 1000)
        return content(overview, ".html")


def largest(row: np.ndarray) -> set[int]:
    return {int(i) for i in np.argsort(-row)[: room.KEPT] if row[i] > 0}


def test_the_largest_of_every_row_are_kept_and_the_share_that_they_hold_is_right(overview) -> None:
    weights = np.array(overview.dense_weights[1])
    found, shares = codes.largest(weights, room.KEPT)
    for head in range(3):
        kept = [largest(row) for row in weights[head]]
        assert [set(np.flatnonzero(row != codes.LOST)) for row in found[head]] == kept
        held = sum(weights[head, q, k] for q, keys in enumerate(kept) for k in keys)
        assert shares[head] == pytest.approx(held / weights[head].sum())
    assert shares.max() < 1


def test_no_weight_that_is_kept_has_the_code_of_one_that_is_not() -> None:
    every = np.linspace(0, 1, 100_001)[None, None]
    assert codes.LOST not in codes.sparing(every)
    assert 0 not in codes.sparing(every)


def test_a_page_says_what_it_keeps_and_what_it_does_not(opened, go, page, overview) -> None:
    weights = overview.dense_weights
    with opened(page, "#L1H2,q=5,view=matrix") as view:
        held = sum(weights[1][2][q][k] for q in range(TOKENS) for k in largest(weights[1][2][q]))
        assert (
            f"64 largest of each row are here, {int(100 * held / TOKENS)} % of its weight"
            in view.inner_text("#reader h2")
        )
        kept = largest(weights[1][2][5])
        lost = next(k for k in range(TOKENS) if k not in kept)
        for key, told in ((lost, "not kept"), (max(kept), "about ")):
            go(view, f"#L1H2,q=5,k={key},view=matrix")
            assert told in view.inner_text("#view .readout")
        assert f"56 others kept, {TOKENS - 64} not" in view.inner_text("#lists")
        assert "of each row the 64 largest are kept" in view.inner_text("footer")
        assert view.locator("[data-choice=words]").count() == 0


def test_what_is_masked_is_not_told_as_lost(opened, page) -> None:
    with opened(page, "#L0H1,q=80,k=85,view=matrix") as view:
        assert "masked" in view.inner_text("#view .readout")


def test_the_table_of_a_row_says_of_each_key_whether_it_is_kept(opened, page, overview) -> None:
    with opened(page, "#L1H0,q=7,view=lines") as view:
        view.click("#view summary")
        view.locator("#view .behind td").first.wait_for()
        cells = view.locator("#view .behind td:last-child").all_inner_texts()
    kept = largest(overview.dense_weights[1][0][7])
    assert [each != "not kept" for each in cells] == [k in kept for k in range(TOKENS)]


def test_a_page_with_room_keeps_all(overview) -> None:
    assert b"largest are kept" not in content(overview, ".html")
