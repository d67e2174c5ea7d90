"""Pictures of worked examples: everything on the page, nothing over anything else, numbers where they fit."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from attnscope.render.figure import figure_bytes, figure_of
from attnscope.render.kit.typesetting import drawing
from attnscope.results.worked import Given
from attnscope.worked import example, work_out


def drawn_texts(figure: Figure) -> dict[Text, object]:
    """Every text that can be seen, with its place on the page."""
    with drawing():
        figure.draw_without_rendering()
        shown = [text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible()]
        ticks = [text for text in shown if text.axes is None or text.axes.axison]
        return {text: text.get_window_extent() for text in ticks}


def random(**shapes: tuple[int, int]) -> dict[str, Given]:
    generator = np.random.default_rng(0)
    return {key: Given(generator.normal(size=shape) * 9) for key, shape in shapes.items()}


PICTURES = {
    "fruit": lambda: example("fruit"),
    "dictionary": lambda: example("dictionary"),
    "causal": lambda: work_out(random(q=(4, 3), k=(6, 3), v=(6, 2)), causal=True),
    "middle": lambda: work_out(random(x=(13, 9), wq=(9, 8), wk=(9, 8), wv=(9, 5), wo=(5, 9))),
    "large": lambda: work_out(random(q=(40, 8), k=(90, 8), v=(90, 70))),
    "names": lambda: work_out(
        random(q=(1, 2), k=(3, 2), v=(3, 2)),
        names={
            "key_names": ("a rather long name for a key", "$x^2$", "[b]"),
            "dims": ("one dimension", "another"),
        },
    ),
}


@pytest.mark.parametrize("name", PICTURES)
def test_no_text_leaves_the_page_or_lies_on_another(name: str) -> None:
    figure = figure_of(PICTURES[name]())
    page, boxes = figure.bbox, drawn_texts(figure)
    for text, box in boxes.items():
        assert page.x0 <= box.x0 <= box.x1 <= page.x1, text.get_text()
        assert page.y0 <= box.y0 <= box.y1 <= page.y1, text.get_text()
    for (one, first), (other, second) in combinations(boxes.items(), 2):
        wide = min(first.x1, second.x1) - max(first.x0, second.x0)
        high = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert wide < 2 or high < 4, (one.get_text(), other.get_text())


def test_small_arrays_have_their_numbers_in_the_cells_and_large_ones_their_range() -> None:
    written = [text.get_text() for text in drawn_texts(figure_of(example("fruit")))]
    assert {"0.76", "0.3716", "scores = Q Kᵀ", "1 x 3 (queries x keys)", "apple", "sweetness"} <= set(written)
    large = [text.get_text() for text in drawn_texts(figure_of(PICTURES["large"]()))]
    assert any(text.startswith("40 x d_k=8, ") for text in large)
    assert len(large) < 60


def test_masked_cells_hold_no_number() -> None:
    figure = figure_of(PICTURES["causal"]())
    weights = next(
        axes for axes in figure.axes if any(t.get_text().startswith("weights") for t in axes.texts)
    )
    assert len(weights.texts) == 2 + (1 + 2 + 3 + 4)


@pytest.mark.parametrize("format", ["png", "svg", "pdf"])
def test_the_same_example_is_the_same_file(format) -> None:
    first, second = (figure_bytes(figure_of(example("tensors")), format) for _ in range(2))
    assert first == second
    assert first != figure_bytes(figure_of(example("tensors-identity")), format)
