"""What a picture shows: every label, no mathematics, blank masks, and the same bytes every time."""

import io
import subprocess
import sys
import warnings
from dataclasses import replace

import made_results as made
import matplotlib
import numpy as np
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from PIL import Image

from attnscope.model.inputs.chat import chat_of
from attnscope.render.figure import (
    FORMATS,
    Format,
    figure_bytes,
    figure_of,
    missing_glyphs,
)
from attnscope.render.focus import Focus
from attnscope.render.kit.scale import scale_of
from attnscope.render.kit.stage import SHOWS, panel
from attnscope.render.kit.typesetting import drawing
from attnscope.render.look import Look
from attnscope.render.plot.heat import draw_head, strongest
from attnscope.render.plot.layout import grid, head_frame, side
from attnscope.results import HeadAttention, Verdict
from attnscope.session.library.entrance import wrap
from attnscope.vocabulary import Scaling

WORDS = ["the", "quick", "brown", "fox", "saw", "internationalisation"] * 12


def mesh(figure: Figure) -> QuadMesh:
    return next(made for made in figure.axes[0].collections if isinstance(made, QuadMesh))


def texts(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.findobj(Text) if isinstance(text, Text))


def boxes(figure: Figure) -> list[tuple[str, Bbox]]:
    """Every visible text with its box in pixels."""
    with drawing():
        figure.draw_without_rendering()
        found = [text for text in figure.findobj(Text) if isinstance(text, Text)]
        seen = [text for text in found if text.get_visible() and text.get_text().strip()]
        return [(text.get_text(), text.get_window_extent()) for text in seen]


def test_rows_are_queries_columns_keys_and_both_axes_say_so() -> None:
    result = made.head(made.DOOR[:4], ["x", "y", "z"])
    axes = figure_of(result).axes[0]
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("query", "key")
    assert [label.get_text() for label in axes.get_yticklabels()] == made.DOOR[:4]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["x", "y", "z"]
    assert axes.get_ylim() == (4, 0)
    np.testing.assert_array_equal(mesh(axes.figure).get_array(), result.weights)  # type: ignore[arg-type]


def test_repeated_tokens_have_labels_of_their_own() -> None:
    labels = [label.get_text() for label in figure_of(made.head()).axes[0].get_xticklabels()]
    assert len(set(labels)) == len(labels) == 13
    assert "the@5" in labels


def test_weights_run_from_0_to_1_and_scores_around_0() -> None:
    assert mesh(figure_of(made.head())).get_clim() == (0, 1)
    low, high = mesh(figure_of(made.head(), Focus("scores"))).get_clim()
    assert low == -high < 0


def diffuse(count: int, keys: int) -> HeadAttention:
    """A head whose queries look at everything nearly alike."""
    weights = np.exp(np.random.default_rng(3).normal(0.0, 0.8, (count, keys)))
    labels = [f"w{i}" for i in range(keys)]
    of = made.head(labels[:count], labels)
    return replace(of, weights=weights / weights.sum(axis=1, keepdims=True))


ONE = Focus(scale=Scaling.ONE)


def dots_of(figure: Figure) -> np.ndarray:
    """The heat map as it is written, dot by dot from its upper left corner."""
    page = np.asarray(Image.open(io.BytesIO(figure_bytes(figure, "png"))).convert("RGB")).astype(int)
    box = figure.axes[0].get_window_extent()
    left, top = round(box.x0), round(len(page) - box.y1)
    return page[top : top + round(box.height), left : left + round(box.width)]


@pytest.mark.parametrize("count", [30, 90, 220])
def test_a_diffuse_head_is_seen_at_every_length(count: int) -> None:
    result = diffuse(count, count + 1)
    scales = Focus(), Focus(scale=Scaling.ROW), ONE
    usual, by_row, even = (np.std(dots_of(figure_of(result, each)).mean(axis=2)) for each in scales)
    assert usual > 1.5 * even
    assert usual > 3, "of 255: faint, on the one scale on which heads compare"
    assert by_row > 8, "and plain where it was asked for"


def test_each_weight_of_a_long_text_is_a_square_of_whole_dots_of_its_colour() -> None:
    result = diffuse(110, 130)
    figure = figure_of(result)
    drawn, dots = mesh(figure), dots_of(figure)
    side = len(dots) // 110
    assert dots.shape == (side * 110, side * 130, 3)
    expected = drawn.to_rgba(result.weights, bytes=True)[..., :3].astype(int)
    cells = dots.reshape(110, side, 130, side, 3)
    assert (np.abs(cells - expected[:, None, :, None]) <= 1).all()


def test_of_very_many_tokens_several_share_a_block_that_shows_the_strongest() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(size=(7, 4))
    blocks = strongest(values, 3)
    assert blocks.shape == (3, 4)
    for block, rows in enumerate((values[:3], values[3:6], values[6:])):
        for column in range(4):
            assert blocks[block, column] == max(rows[:, column], key=abs)
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


def test_the_colour_bar_of_the_square_root_has_five_ticks_at_their_places() -> None:
    bar = figure_of(made.head()).axes[0].child_axes[0]
    assert [text.get_text() for text in bar.get_yticklabels()] == ["0", ".01", ".1", ".5", "1"]
    heights = bar.transData.transform([(0, place) for place in bar.get_yticks()])[:, 1]
    shares = (heights - heights[0]) / (heights[-1] - heights[0])
    np.testing.assert_allclose(shares, [0, 0.1, 0.1**0.5, 0.5**0.5, 1], atol=1e-6)


def test_a_scale_of_weights_does_nothing_to_scores() -> None:
    result = made.head()
    assert figure_bytes(figure_of(result, Focus("scores", scale=Scaling.LOG)), "png") == figure_bytes(
        figure_of(result, Focus("scores")), "png"
    )


def test_masked_cells_are_not_drawn_and_explained() -> None:
    result = made.head(causal=True, empty=[0])
    figure = figure_of(result)
    np.testing.assert_array_equal(np.ma.getmaskarray(mesh(figure).get_array()), ~result.allowed)
    assert "hatched: masked" in texts(figure)
    assert "no valid key" in texts(figure)


@pytest.mark.parametrize("size", [1, 5, 12, 26, 60])
def test_no_label_is_cut_and_none_overlaps_another(size: int) -> None:
    figure = figure_of(made.head(["[CLS]", *WORDS][:size], causal=True))
    placed = boxes(figure)
    page = figure.bbox
    for text, box in placed:
        assert box.x0 >= page.x0, text
        assert box.y0 >= page.y0, text
        assert box.x1 <= page.x1, text
        assert box.y1 <= page.y1, text
    for i, (text, box) in enumerate(placed):
        for other, at in placed[i + 1 :]:
            wide = min(box.x1, at.x1) - max(box.x0, at.x0)
            high = min(box.y1, at.y1) - max(box.y0, at.y0)
            assert min(wide, high) < 2, (text, other)


def test_a_long_sentence_is_wrapped_and_not_cut() -> None:
    shown = texts(figure_of(made.head(WORDS[:20]))).replace("\n", " ")
    assert f"“{' '.join(WORDS[:20])}”" in shown


def test_the_title_names_model_head_and_kind_and_says_demo() -> None:
    head = figure_of(made.head(WORDS[:9])).texts
    assert [each.get_text() for each in head[:2]] == ["L3 H11", "encoder self-attention · bert-base-uncased"]
    assert "bundled demo model" in texts(figure_of(made.head(demo=True)))
    assert "bundled demo model" in texts(figure_of(made.overview(demo=True)))


@pytest.mark.parametrize("verdict", [verdict for verdict in Verdict if not verdict.proved])
def test_a_head_that_is_not_certified_says_so_in_its_title(verdict: Verdict) -> None:
    title = figure_of(made.head(WORDS[:9], verdict=verdict)).texts[0].get_text()
    assert verdict.value in title.lower()


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


@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (12, 12), (6, 20), (4, 64)])
def test_overviews_of_any_size_stay_on_the_page(layers: int, heads: int) -> None:
    figure = figure_of(made.overview(layers, heads, made.DOOR[:5]))
    for text, box in boxes(figure):
        assert box.x0 >= 0, text
        assert box.x1 <= figure.bbox.x1, text
    count = layers * heads
    assert f"✓ certified: {count} of {count} head{'s' if count > 1 else ''}" in texts(figure)


def test_heads_that_are_not_certified_are_outlined_and_counted() -> None:
    figure = figure_of(made.overview(3, 4, verdicts={(1, 2): Verdict.FAILED}))
    assert len(figure.axes[0].patches) == 1
    assert "✗ FAILED: 1 of 12 heads" in texts(figure)
    assert any(text.get_text().endswith("✗") for text in figure.axes[0].texts)


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_result_gives_the_same_bytes(format: Format) -> None:
    for make in (lambda: figure_of(made.head(causal=True)), lambda: figure_of(made.overview(3, 4))):
        assert figure_bytes(make(), format) == figure_bytes(make(), format)


def test_no_format_holds_a_date() -> None:
    figure = figure_of(made.head())
    assert b"CreationDate" not in figure_bytes(figure, "pdf")
    assert b"<dc:date>" not in figure_bytes(figure, "svg")
    assert b"Software" not in figure_bytes(figure, "png")


def test_pyplot_is_never_imported() -> None:
    code = "import sys, attnscope.render.figure; print('matplotlib.pyplot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


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


def test_labels_have_room_beside_the_messages_and_a_text_alone_has_none_of_it(head) -> None:
    from dataclasses import replace

    with_messages = grid(panel(head, "weights"))
    bare = replace(head.query_tokens, marked=())
    without = grid(panel(replace(head, query_tokens=bare, key_tokens=bare), "weights"))
    assert with_messages.left > without.left
    assert with_messages.above > without.above
    shown = panel(replace(head, query_tokens=bare, key_tokens=bare), "weights")
    axes = Figure().add_subplot()
    draw_head(shown, axes)
    assert len(axes.lines) == 0
    assert head_frame(shown).top < head_frame(panel(head, "weights")).top
