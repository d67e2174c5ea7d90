"""Thumbnails drawn: legible on a page and in a terminal, on one scale, the same in every file."""

import io
import itertools
from pathlib import Path

import cases_thumbnails
import made_results as made
import numpy as np
import pytest
from golden_text import IN_FULL, printed
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from rich.console import Console

from attnscope.render.figure import figure_of
from attnscope.render.files import as_csv, numbers
from attnscope.render.focus import Focus
from attnscope.render.kit.typesetting import drawing
from attnscope.render.plot.grid import draw_weights as draw
from attnscope.render.sheet.heads import HeadMatrices
from attnscope.render.sheets.thumbnails import common_scale
from attnscope.render.sheets.thumbnails import sheet as thumbnails
from attnscope.render.terminal.console import theme
from attnscope.render.terminal.sheet import screen
from attnscope.results import Thumbnails, Verdict, load
from attnscope.vocabulary import Scaling

SMALL = cases_thumbnails.thumbnails()
CAUSAL = cases_thumbnails.thumbnails(causal=True, last=Verdict.PARTIAL)


def heads_of(result: Thumbnails) -> HeadMatrices:
    (block,) = thumbnails(result, Focus()).every
    assert isinstance(block, HeadMatrices)
    return block


def shown(result: Thumbnails, width: int = 80) -> str:
    return "".join(printed(part, width) for part in screen(result, width, IN_FULL))


def written(figure: Figure) -> str:
    return " ".join(" ".join(texts(figure)).split())


def texts(figure: Figure) -> list[str]:
    found = figure.findobj(lambda each: hasattr(each, "get_text"))
    return [text.get_text() for text in found if text.get_text().strip()]


def test_every_head_is_drawn_at_its_place_on_the_same_scale() -> None:
    axes = Figure().add_subplot()
    draw(heads_of(SMALL), axes)
    images = [each for each in axes.get_children() if isinstance(each, AxesImage)]
    assert len(images) == 12
    for image in images:
        left, right, bottom, top = image.get_extent()
        i, j = int(top), int(left)
        assert (int(bottom), int(right)) == (i, j)
        assert np.array_equal(image.get_array(), SMALL.weights[i, j])
    assert len({(image.norm.vmin, image.norm.vmax) for image in images}) == 1
    assert top < bottom  # the first query on top


def test_the_scale_is_one_for_all_heads_and_said() -> None:
    scale = common_scale(SMALL)
    assert (scale.kind, scale.top) == (Scaling.SQRT, 1.0)
    assert common_scale(SMALL, Scaling.MAX).top == pytest.approx(np.nanmax(SMALL.weights))
    assert "colours of all heads" not in written(figure_of(SMALL))
    assert "colours of all heads: logarithmic" in written(figure_of(SMALL, Focus(scale=Scaling.LOG)))


def test_what_is_masked_is_grey_and_said_and_what_is_not_certified_outlined() -> None:
    words = written(figure_of(CAUSAL))
    assert "grey: masked" in words
    assert "grey" not in written(figure_of(SMALL))
    assert "outlined: not certified" in words
    assert "✓ certified: 11 of 12 heads recomputed, equal to the model's · ~ partial: 1 of 12 heads" in words
    pooled = cases_thumbnails.thumbnails(tokens=40, step=4)
    assert "each cell the largest weight of 4 queries x 4 keys" in written(figure_of(pooled))


@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (4, 12), (12, 12), (32, 32)])
def test_labels_of_any_number_of_heads_stay_on_the_page_and_off_each_other(layers: int, heads: int) -> None:
    result = cases_thumbnails.thumbnails(layers, heads, tokens=5)
    figure = figure_of(result)
    with drawing():
        figure.draw_without_rendering()
        axes, page = figure.axes[0], figure.bbox
        for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
            boxes = [each.get_window_extent() for each in labels if each.get_text()]
            assert all(page.contains(b.x0, b.y0) and page.contains(b.x1, b.y1) for b in boxes)
            assert not any(a.overlaps(b) for a, b in itertools.pairwise(boxes))
    assert [each.get_text() for each in axes.get_yticklabels()] == [f"L{i}" for i in result.layers]
    across = axes.get_position().width * figure.get_figwidth() / heads
    assert across * figure.dpi >= 5 * 4, "dots for five cells"


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("result", [SMALL, CAUSAL], ids=["both ways", "causal"])
def test_the_terminal_shows_every_head_within_its_width(result: Thumbnails, width: int) -> None:
    text = shown(result, width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    named = [line.split()[0] for line in lines[1:] if line.startswith(("L2", "L3", "L4"))]
    assert named == ["L2", "L3", "L4"]
    assert next(line for line in lines if line.startswith("   H0")).split() == ["H0", "H1", "H2", "H3"]
    assert "✓ certified: 1" in text


def test_a_causal_head_is_blank_above_its_diagonal_in_colour_and_without() -> None:
    plain = shown(CAUSAL).splitlines()
    first = next(line for line in plain if line.startswith("L2"))
    assert first[3:15].strip()
    assert len(first[3:15].rstrip()) <= 2
    stream = io.StringIO()
    console = Console(
        file=stream, width=80, color_system="truecolor", force_terminal=True, theme=theme("dark", "truecolor")
    )
    console.print(*screen(CAUSAL, 80))
    assert "\x1b[" in stream.getvalue()
    assert "▀" in stream.getvalue() or "▄" in stream.getvalue()


def test_the_answer_is_the_darkest_cell_of_a_query_that_had_a_choice() -> None:
    i, j, row, column = np.unravel_index(SMALL.weights.argmax(), SMALL.weights.shape)
    names = SMALL.query_tokens.names[row], SMALL.key_tokens.names[column]
    assert SMALL.largest == (i, j, row, column)
    told = f"L{SMALL.layers[i]} H{SMALL.heads[j]} looks from “{names[0]}” at “{names[1]}” with "
    assert thumbnails(SMALL, Focus()).answer.startswith(told)
    assert "from [CLS]" not in thumbnails(CAUSAL, Focus()).answer, "it may look at itself alone"
    assert cases_thumbnails.thumbnails(causal=True, tokens=1).largest is None


def test_where_they_do_not_fit_it_is_said_what_does() -> None:
    text = shown(cases_thumbnails.thumbnails(2, 40, tokens=5))
    assert "too many heads for this screen: a wider one, or -o FILE.png, shows them" in text


@pytest.mark.usefixtures("believing")
@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_a_file_of_thumbnails_is_read_again_as_it_was(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"grid{suffix}"
    path.write_bytes(numbers(CAUSAL, suffix))
    again = load(path)
    assert np.array_equal(again.weights, CAUSAL.weights, equal_nan=True)
    assert (again.layers, again.heads, again.steps) == (CAUSAL.layers, CAUSAL.heads, CAUSAL.steps)
    assert (again.verdicts, again.query_tokens) == (CAUSAL.verdicts, CAUSAL.query_tokens)
    assert numbers(again, suffix) == path.read_bytes()


def test_a_table_has_a_row_for_each_cell_that_is_not_masked() -> None:
    frame = CAUSAL.to_pandas()
    assert len(frame) == 12 * 13 * 14 // 2
    assert list(frame.columns) == ["layer", "head", "query", "query_token", "key", "key_token", "weight"]
    last = frame.iloc[-1]
    assert (last["layer"], last["head"], last["query"], last["key"]) == (4, 3, 12, 12)
    assert last["weight"] == CAUSAL.weights[2, 3, 12, 12]
    assert "# verdict: partial\n" in as_csv(CAUSAL)


def test_it_is_shown_in_one_line_and_drawn_on_axes_of_somebody_else() -> None:
    assert "3 layers x 4 heads" in repr(SMALL)
    axes = Figure().add_subplot()
    assert SMALL.plot(axes) is axes
    assert "H3" in [each.get_text() for each in axes.get_xticklabels()]
    assert made.DOOR[1] in shown(SMALL)
