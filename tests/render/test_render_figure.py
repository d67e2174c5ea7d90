"""Pictures of a head, of one query and of worked examples: every label, no mathematics, blank masks."""

import io
import warnings
from dataclasses import replace
from itertools import combinations, pairwise

import made_results as made
import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from PIL import Image

from attnscope.errors import InputError
from attnscope.library.entrance import wrap
from attnscope.model.inputs.given import chat_of
from attnscope.render.figure import figure_bytes, figure_of, missing_glyphs
from attnscope.render.kit.palette import CHOSEN, scale_of
from attnscope.render.kit.stage import SHOWS, panel
from attnscope.render.kit.typesetting import drawing
from attnscope.render.look import Look
from attnscope.render.plot.heat import draw_head, side
from attnscope.render.plot.row import MOST_STRONGEST
from attnscope.render.sheets import Focus, focus_on
from attnscope.results import HeadAttention
from attnscope.results.steps import Given
from attnscope.verbs.sdpa.attention import work_out
from attnscope.verbs.sdpa.examples import example
from attnscope.vocabulary import Scaling

WORDS = ["the", "quick", "brown", "fox", "saw", "internationalisation"] * 12


def mesh(figure: Figure) -> QuadMesh:
    return next(made for made in figure.axes[0].collections if isinstance(made, QuadMesh))


def texts(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.findobj(Text) if isinstance(text, Text))


def on_the_page(figure: Figure) -> list[tuple[str, Bbox]]:
    """Every visible text with its box in pixels, none of which leaves the page."""
    with drawing():
        figure.draw_without_rendering()
        seen = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
        shown = [text for text in seen if text.axes is None or text.axes.axison]
        found = [(text.get_text(), text.get_window_extent()) for text in shown]
    for text, box in found:
        assert 0 <= box.x0 <= box.x1 <= figure.bbox.x1, text
        assert 0 <= box.y0 <= box.y1 <= figure.bbox.y1, text
    return found


def assert_legible(figure: Figure, high: int = 2) -> None:
    """No text leaves the page or lies on another; their boxes may share so many pixels."""
    for (text, box), (other, at) in combinations(on_the_page(figure), 2):
        across, down = min(box.x1, at.x1) - max(box.x0, at.x0), min(box.y1, at.y1) - max(box.y0, at.y0)
        assert across < 2 or down < high, (text, other)


def test_rows_are_queries_columns_keys_and_both_axes_say_so() -> None:
    result = made.head(made.DOOR[:4], ["x", "y", "z"])
    axes = figure_of(result).axes[0]
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("query", "key")
    assert [label.get_text() for label in axes.get_yticklabels()] == made.DOOR[:4]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["x", "y", "z"]
    assert axes.get_ylim() == (4, 0)
    np.testing.assert_array_equal(mesh(axes.figure).get_array(), result.weights)  # type: ignore[arg-type]


def diffuse(count: int, keys: int) -> HeadAttention:
    """A head whose queries look at everything nearly alike."""
    weights = np.exp(np.random.default_rng(3).normal(0.0, 0.8, (count, keys)))
    labels = [f"w{i}" for i in range(keys)]
    of = made.head(labels[:count], labels)
    return replace(of, weights=weights / weights.sum(axis=1, keepdims=True))


def dots_of(figure: Figure) -> np.ndarray:
    """The heat map as it is written, dot by dot from its upper left corner."""
    page = np.asarray(Image.open(io.BytesIO(figure_bytes(figure, "png"))).convert("RGB")).astype(int)
    box = figure.axes[0].get_window_extent()
    left, top = round(box.x0), round(len(page) - box.y1)
    return page[top : top + round(box.height), left : left + round(box.width)]


def test_each_weight_of_a_long_text_is_a_square_of_whole_dots_of_its_colour() -> None:
    result = diffuse(110, 130)
    figure = figure_of(result)
    drawn, dots = mesh(figure), dots_of(figure)
    side = len(dots) // 110
    assert dots.shape == (side * 110, side * 130, 3)
    expected = drawn.to_rgba(result.weights, bytes=True)[..., :3].astype(int)
    cells = dots.reshape(110, side, 130, side, 3)
    assert (np.abs(cells - expected[:, None, :, None]) <= 1).all()


def test_a_square_of_a_long_text_is_smaller_and_the_whole_never_larger_than_a_page() -> None:
    assert side(1100) * 200 == 2
    assert side(3000) * 3000 < 11.01


def test_every_so_many_tokens_of_a_long_text_are_named_with_their_positions() -> None:
    axes = figure_of(diffuse(110, 130)).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()][:3] == ["0 w0", "2 w2", "4 w4"]
    assert [label.get_text() for label in axes.get_xticklabels()][-1] == "128 w128"
    few = figure_of(made.head(WORDS[:64], WORDS[:60])).axes[0]
    assert len(few.get_yticklabels()) == 64


def test_a_label_of_one_character_is_never_turned() -> None:
    figure = figure_of(made.head(["[CLS]", "\u6211", "I", "e\u0301", "internationalisation"]))
    turned = {label.get_text(): label.get_rotation() for label in figure.axes[0].get_xticklabels()}
    assert {text for text, angle in turned.items() if angle} == {"[CLS]", "internationalisation"}


@pytest.mark.parametrize("kind", Scaling)
def test_colours_of_weights_are_those_of_their_scale_and_the_bar_says_which(kind: Scaling) -> None:
    result = made.head()
    figure = figure_of(result, Focus(scale=kind))
    drawn = mesh(figure)
    scale = scale_of(result.weights, result.allowed, kind)
    shades = drawn.norm(np.asarray(drawn.get_array()))
    np.testing.assert_allclose(shades, scale.shades(result.weights), atol=1e-12)
    assert figure.axes[0].child_axes[0].get_ylabel() == scale.label.replace(": ", "\n")
    said = [each for each in texts(figure).splitlines() if each.startswith("colours: ")]
    assert said == ([] if kind is Scaling.SQRT else [f"colours: {scale.told}"])


def test_masked_cells_are_not_drawn_and_explained() -> None:
    result = made.head(causal=True, empty=[0])
    figure = figure_of(result)
    np.testing.assert_array_equal(np.ma.getmaskarray(mesh(figure).get_array()), ~result.allowed)
    assert "hatched: masked" in texts(figure)
    assert "no valid key" in texts(figure)


@pytest.mark.parametrize("size", [1, 12, 60])
def test_no_label_is_cut_and_none_overlaps_another(size: int) -> None:
    figure = figure_of(made.head(["[CLS]", *WORDS][:size], causal=True))
    assert_legible(figure)


def test_the_title_names_model_head_and_kind_and_says_demo() -> None:
    head = figure_of(made.head(WORDS[:9])).texts
    assert [each.get_text() for each in head[:2]] == ["L3 H11", "encoder self-attention · bert-base-uncased"]
    assert "bundled demo model" in texts(figure_of(made.head(demo=True)))
    assert "bundled demo model" in texts(figure_of(made.overview(demo=True)))


def test_the_verdict_stands_at_the_foot_and_with_a_full_caption_what_pins_the_numbers_down() -> None:
    usual, full = texts(figure_of(made.head())), texts(figure_of(made.head(), look=Look(caption="full")))
    assert "✓ certified" in usual
    assert "✓ certified" in full
    for told in ("tolerated 5.2e-7", "86b5e09344", "float32", "kernel eager", "torch 2.9.0"):
        assert told in full
        assert told not in usual


def test_a_token_between_dollar_signs_is_text() -> None:
    figure = figure_of(made.head(["$x$", "$\\frac$", "a_b", "$"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert figure_bytes(figure, "png")
    assert all(not text.get_parse_math() for text in figure.axes[0].get_xticklabels())


def test_glyphs_that_no_font_has_are_named_and_raise_no_warning() -> None:
    figure = figure_of(made.head(["a", "\U0010fffe", "\u0378b", "日本"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure_bytes(figure, "png")
    assert missing_glyphs(figure_of(made.head(["plain", "é"]))) == ""
    unknown = figure_of(made.head(["a", "\u1bb0\U0001e900"]))
    assert "\U0001e900" in missing_glyphs(unknown)


@pytest.mark.parametrize("show", SHOWS)
def test_every_stage_can_be_drawn(show: str) -> None:
    result = made.head(made.DOOR[:5], ["x", "y", "z"], empty=[1], dim=20)
    assert figure_bytes(figure_of(result, Focus(show)), "png").startswith(b"\x89PNG")  # type: ignore[arg-type]


def test_no_format_holds_a_date() -> None:
    figure = figure_of(made.head())
    assert b"CreationDate" not in figure_bytes(figure, "pdf")
    assert b"<dc:date>" not in figure_bytes(figure, "svg")
    assert b"Software" not in figure_bytes(figure, "png")


matplotlib.use("agg")


@pytest.fixture(scope="module")
def head():
    from chat_models import TEMPLATES, chat_tokenizer
    from transformers import LlamaConfig, LlamaModel

    tokenizer = chat_tokenizer(TEMPLATES["llama3"])
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1,
    )  # fmt: skip
    chat = chat_of(
        [{"role": "user", "content": "Who opened the door?"}, {"role": "assistant", "content": "."}]
    )
    return wrap(LlamaModel(config), tokenizer).read(chat=list(chat.messages)).head(0, 0)


def test_a_line_and_a_name_for_each_message_along_each_axis(head) -> None:
    shown, axes = panel(head, "weights"), Figure().add_subplot()
    draw_head(shown, axes)
    lines = [each for each in axes.lines if isinstance(each, Line2D)]
    across = [each for each in lines if len({*each.get_ydata()}) == 1]
    down = [each for each in lines if each not in across]
    for drawn, ends in ((across, Line2D.get_xdata), (down, Line2D.get_ydata)):
        stretches = [tuple(round(end) for end in ends(each)) for each in drawn]
        assert stretches == [(s.first, s.first + s.count) for s in head.key_tokens.sections]
    named = [text.get_text() for text in axes.texts]
    assert [each for each in named if each in ("user", "assistant")] == ["user", "assistant"] * 2


LONG = [f"w{i}" for i in range(90)]


def every_axes(figure: Figure) -> list[Axes]:
    return [each for each in figure.findobj(Axes) if isinstance(each, Axes)]


def bars(figure: Figure) -> tuple[Axes, list[float], list[str]]:
    """The Axes with bars, their heights and the labels below them."""
    (axes,) = (
        each for each in every_axes(figure) if any(isinstance(c, BarContainer) for c in each.containers)
    )
    heights = [bar.get_height() for bar in axes.containers[0]]  # type: ignore[union-attr]
    return axes, heights, [label.get_text() for label in axes.get_xticklabels()]


def meshes(figure: Figure) -> list[QuadMesh]:
    found = [mesh for axes in every_axes(figure) for mesh in axes.collections if isinstance(mesh, QuadMesh)]
    return [mesh for mesh in found if mesh.axes is not None and mesh.axes.get_label() != "<colorbar>"]


def told(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.findobj(Text) if isinstance(text, Text))


def outlined(figure: Figure) -> dict[str, tuple[float, float, float, float]]:
    marks = [each for axes in every_axes(figure) for each in axes.patches if isinstance(each, Rectangle)]
    return {
        str(each.get_label()): each.get_bbox().bounds
        for each in marks
        if each.get_label() in ("query", "key")
    }


def cross() -> HeadAttention:
    return made.head(made.DOOR[:6], ["x", "yes", "zebra", "w"])


def test_a_row_is_a_bar_for_each_key_in_the_order_of_the_text() -> None:
    result = cross()
    figure = figure_of(result, Focus("weights", (4,)))
    _, heights, labels = bars(figure)
    assert labels == ["x", "yes", "zebra", "w"]
    np.testing.assert_allclose(heights, result.weights[4])
    assert f"query 4 {result.query_tokens.names[4]}" in told(figure)
    strongest = f"{result.weights[4, 0]:.2f}".removeprefix("0")
    assert int(result.weights[4].argmax()) == 0
    asked = f"the decoder reads “{result.query_tokens.names[4]}”, L3 H11 gives “x” {strongest} of its"
    assert asked in " ".join(told(figure).split())
    assert not outlined(figure)
    on_the_page(figure)


def test_masked_keys_are_hatched_and_have_no_bar() -> None:
    result = made.head(causal=True)
    axes, heights, _ = bars(figure_of(result, Focus("weights", (3,))))
    assert heights[4:] == [0.0] * 9
    hatched = [each.get_x() for each in axes.patches if isinstance(each, Rectangle) and each.get_hatch()]
    assert hatched == [float(key) for key in range(4, 13)]


def test_numbers_above_bars_do_not_overlap_where_nearly_all_weight_lies_on_one_key() -> None:
    result = made.head(LONG, [*LONG, "last"])
    weights = np.full_like(result.weights, 1e-5)
    weights[:, 4] = 1 - weights[:, 1:].sum(axis=1)
    figure = figure_of(replace(result, weights=weights), Focus("weights", (7,)))
    axes, heights, _ = bars(figure)
    with drawing():
        figure.draw_without_rendering()
        boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == len(heights) == MOST_STRONGEST
    assert [text.get_text() for text in axes.texts][1:] == ["<.001"] * (MOST_STRONGEST - 1)
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_with_a_key_the_row_stands_under_the_matrix_in_which_both_are_marked() -> None:
    result = cross()
    figure = figure_of(result, Focus("weights", (4,), 2))
    np.testing.assert_array_equal(np.asarray(meshes(figure)[0].get_array()), result.weights)
    assert outlined(figure) == {"query": (0, 4, 4, 1), "key": (2, 0, 1, 6)}
    axes, heights, labels = bars(figure)
    np.testing.assert_allclose(heights, result.weights[4])
    coloured = [label.get_text() for label in axes.get_xticklabels() if label.get_color() == CHOSEN]
    assert coloured == ["zebra"]
    rank = 1 + int((result.weights[4] > result.weights[4, 2]).sum())
    weight = f"{result.weights[4, 2]:.2f}".removeprefix("0")
    assert f" “zebra” gets {weight}, number {rank} of 4 keys." in " ".join(told(figure).split())
    heat = meshes(figure)[0].axes
    assert heat is not None
    assert heat.get_window_extent().x0 == pytest.approx(axes.get_window_extent().x0)
    assert heat.get_window_extent().x1 == pytest.approx(axes.get_window_extent().x1)
    assert len(labels) == 4
    on_the_page(figure)


def test_of_a_long_text_the_strongest_keys_are_bars_and_the_whole_row_is_a_strip() -> None:
    result = made.head(LONG, [*LONG, "last"])
    figure = figure_of(result, Focus("weights", (7,)))
    _, heights, labels = bars(figure)
    strongest = np.argsort(-result.weights[7], kind="stable")[:MOST_STRONGEST]
    np.testing.assert_allclose(heights, result.weights[7, strongest])
    assert labels == [f"{key} {result.key_tokens.names[key]}" for key in strongest]
    (strip,) = meshes(figure)
    np.testing.assert_array_equal(np.asarray(strip.get_array()), result.weights[7:8])
    rest = 1 - result.weights[7, strongest].sum()
    assert f"{91 - MOST_STRONGEST} more keys share {rest:.2f}".replace(" 0.", " .") in told(figure)
    on_the_page(figure)


def test_the_library_takes_the_same_way_on_a_page_and_on_an_axes() -> None:
    result = cross()
    figure = result.plot(query=4)
    assert isinstance(figure, Figure)
    assert figure_bytes(figure, "png") == figure_bytes(figure_of(result, Focus("weights", (4,))), "png")
    own = Figure().add_subplot()
    assert result.plot(own, query=4, key="yes") is own
    np.testing.assert_allclose([bar.get_height() for bar in own.containers[0]], result.weights[4])  # type: ignore[union-attr]
    with pytest.raises(InputError, match="a key goes with a query"):
        result.plot(key=2)


def test_a_scale_is_asked_for_by_name_and_refused_where_it_has_no_meaning() -> None:
    result = cross()
    assert focus_on(result, scale="row").scale is Scaling.ROW
    assert figure_bytes(figure_of(result, focus_on(result, scale="log")), "png") != figure_bytes(
        figure_of(result, focus_on(result, scale="1")), "png"
    )
    for refused in (
        lambda: focus_on(result, "scores", scale="log"),
        lambda: focus_on(made.projection(), scale="max"),
    ):
        with pytest.raises(InputError, match="a scale is that of the weights of one head: leave scale"):
            refused()
    with pytest.raises(InputError, match="no scale is called 'loud'"):
        focus_on(result, scale="loud")


def test_on_a_terminal_the_key_is_listed_however_weak_and_its_rank_is_told() -> None:
    result = made.head(LONG, [*LONG, "last"])
    weakest = int(np.argmin(result.weights[7]))
    name = f"{weakest} {result.key_tokens.names[weakest]}"
    token = result.key_tokens.names[weakest]
    said = result.text(query=7, key=weakest, width=80)
    assert f" “{token}” gets <.001, number 91 of 91 keys." in " ".join(said.split())
    assert any(line.strip().startswith(name) for line in said.splitlines()[:40])
    assert f"{91 - MOST_STRONGEST - 1} more keys" in said
    assert "number" not in result.text(query=7, width=80)
    masked = made.head(causal=True).text(query=2, key=10, width=80)
    assert " “tired” is masked." in " ".join(masked.split())
    assert "--from cat --to cat" in masked, "the next command asks for a key that may be looked at"


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
    assert_legible(figure_of(PICTURES[name]()), high=4)


def test_small_arrays_have_their_numbers_in_the_cells_and_large_ones_their_range() -> None:
    written = [text for text, _ in on_the_page(figure_of(example("fruit")))]
    assert {"0.76", "0.3716", "scores = Q Kᵀ", "1 x 3 (queries x keys)", "apple", "sweetness"} <= set(written)
    large = [text for text, _ in on_the_page(figure_of(PICTURES["large"]()))]
    assert any(text.startswith("40 x d_k=8, ") for text in large)
    assert len(large) < 60


def test_masked_cells_hold_no_number() -> None:
    figure = figure_of(PICTURES["causal"]())
    weights = next(
        axes for axes in figure.axes if any(t.get_text().startswith("weights") for t in axes.texts)
    )
    assert len(weights.texts) == 2 + (1 + 2 + 3 + 4)
