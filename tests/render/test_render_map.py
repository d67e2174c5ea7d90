"""The picture of a map: every point with its label, links as wide as their weights, the same bytes again."""

import warnings
from collections.abc import Sequence
from dataclasses import replace

import made_results as made
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from attnscope.render.figure import figure_bytes, figure_of, missing_glyphs
from attnscope.render.files import as_csv
from attnscope.render.focus import Focus
from attnscope.render.kit.typesetting import drawing
from attnscope.render.plot.map import LINK_WIDTH
from attnscope.render.plot.sheet import draw
from attnscope.render.sheets.map import Map
from attnscope.results import Kind, Projection, Verdict

WORDS = ["the", "quick", "brown", "fox", "saw", "internationalisation", "of", "a"] * 12
STRANGE = ["日本語", "👍🏽", "سلام", "שלום", "x" * 70, "$x$", "e\u0301", "\u0301", "[/b]", "\x1b[31m"]


def map_figure(result: Projection, queries: Sequence[int] = (), key: int | None = None) -> Figure:
    return figure_of(result, Focus(queries=tuple(queries), key=key))


def linked(result: Projection, query: int, links: int, key: int | None = None) -> Axes:
    """A map on axes of its own, with so many links."""
    axes = Figure(figsize=(6, 6)).add_axes((0.02, 0.02, 0.96, 0.9))
    with drawing():
        draw(Map(result, query, key, links), axes)
    return axes


def texts(figure: Figure) -> str:
    found = [text.get_text() for text in figure.findobj(Text) if isinstance(text, Text)]
    return "\n".join(found)


def labels(axes: Axes) -> dict[str, Text]:
    """The labels of points, by colour and name: markers and labels of a side have one colour."""
    inks = {line.get_color(): str(line.get_label()) for line in axes.lines}
    return {
        f"{inks[str(text.get_color())]} {text.get_text()}": text
        for text in axes.texts
        if text.get_color() in inks
    }


def marks(axes: Axes, label: str) -> Line2D:
    return next(line for line in axes.lines if line.get_label() == label)


def lines(axes: Axes, label: str) -> LineCollection | None:
    found = [made for made in axes.collections if made.get_label() == label]
    assert all(isinstance(each, LineCollection) for each in found)
    return found[0] if found else None  # type: ignore[return-value]


def boxes(figure: Figure, found: list[Text]) -> list[Bbox]:
    with drawing():
        figure.draw_without_rendering()
        return [text.get_window_extent() for text in found]


def overlap(one: Bbox, other: Bbox) -> float:
    """The smaller side, in pixels, of what two boxes share; 0 or less where they are apart."""
    return min(min(one.x1, other.x1) - max(one.x0, other.x0), min(one.y1, other.y1) - max(one.y0, other.y0))


def marker_boxes(axes: Axes) -> list[Bbox]:
    """The boxes of all markers in pixels, without their edge lines."""
    found = []
    for side in ("query", "key"):
        line = marks(axes, side)
        reach = line.get_markersize() / 2 * axes.figure.dpi / 72  # type: ignore[union-attr]
        for x, y in axes.transData.transform(np.asarray(line.get_xydata())):
            found.append(Bbox.from_extents(x - reach, y - reach, x + reach, y + reach))
    return found


def assert_legible(figure: Figure) -> None:
    """Labels stay inside their Axes, and cover neither each other nor a marker by more than a pixel."""
    for axes in figure.axes:
        placed = boxes(figure, list(axes.texts))
        frame = axes.get_window_extent()
        for i, box in enumerate(placed):
            told = axes.texts[i].get_text()
            if box.y0 < frame.y1:  # not the lines above the Axes
                assert min(box.x0 - frame.x0, frame.x1 - box.x1, box.y0 - frame.y0, frame.y1 - box.y1) > -1, (
                    told
                )
            for other in placed[i + 1 :]:
                assert overlap(box, other) < 1, told
            for marker in marker_boxes(axes):
                assert overlap(box, marker) < 1, told


def scattered(names: list[str], seed: int = 0, **head: object) -> Projection:
    """A made map whose points lie in clusters, as those of t-SNE do."""
    of = made.head(names, **head)  # type: ignore[arg-type]
    random = np.random.default_rng(seed)
    centres = random.normal(size=(5, 2)) * 30
    queries, keys = (
        centres[random.integers(0, 5, count)] + random.normal(size=(count, 2)) * 6
        for count in (len(of.query_tokens), len(of.key_tokens))
    )
    return made.projection(of, queries=queries, keys=keys)


def origin(names: list[str], **head: object) -> Projection:
    of = made.head(names, **head)  # type: ignore[arg-type]
    size = len(of.query_tokens)
    nothing = {"trustworthiness": np.nan, "correlation": np.nan, "iterations": 0, "divergence": 0.0}
    return made.projection(of, queries=np.zeros((size, 2)), keys=np.zeros((size, 2)), **nothing)


# points and labels


def test_queries_and_keys_lie_where_the_map_says_in_two_colours_and_two_markers() -> None:
    result = made.projection(made.head(made.DOOR[:6], ["x", "y", "z"]))
    axes = map_figure(result).axes[0]
    queries, keys = marks(axes, "query"), marks(axes, "key")
    np.testing.assert_array_equal(queries.get_xydata(), result.queries)  # type: ignore[arg-type]
    np.testing.assert_array_equal(keys.get_xydata(), result.keys)  # type: ignore[arg-type]
    assert queries.get_marker() != keys.get_marker()
    assert queries.get_color() != keys.get_color()
    told = [text.get_text() for text in axes.get_legend().get_texts()]  # type: ignore[union-attr]
    assert told == ["query", "key"]


def test_every_point_carries_the_token_of_its_own_side() -> None:
    result = made.projection(made.head(made.DOOR, ["Das", "日本語", "das"]))
    found = labels(map_figure(result).axes[0])
    expected = {f"query {label}" for label in result.head.query_tokens.labels} | {
        "key Das",
        "key 日本語",
        "key das",
    }
    assert set(found) == expected
    assert {"query the@1", "query the@5"} <= set(found)


@pytest.mark.parametrize("size", [2, 5, 11, 30, 60])
def test_labels_of_any_number_of_tokens_are_all_there_and_legible(size: int) -> None:
    result = scattered(WORDS[:size], seed=size)
    figure = map_figure(result, [1])
    assert_legible(figure)
    assert len(labels(figure.axes[0])) == 2 * size
    sizes = [text.get_size() for text in labels(figure.axes[0]).values()]
    assert min(sizes) >= 5  # type: ignore[type-var]


def test_labels_of_any_script_keep_the_layout_and_long_ones_are_cut() -> None:
    figure = map_figure(scattered(STRANGE), [2], 3)
    assert_legible(figure)
    told = texts(figure)
    assert "…@4" in told
    assert "x" * 30 not in "\n".join(labels(figure.axes[0]))
    assert "\\x1b[31m" in told
    assert "日" in missing_glyphs(figure)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert figure_bytes(figure, "png")


def test_right_to_left_names_are_held_in_place_between_marks() -> None:
    found = labels(map_figure(scattered(["שלום", "a", "שלום"]), [1]).axes[0])
    assert "query \u200eשלום\u200e@2" in found


def test_a_displaced_label_has_a_line_that_leads_to_its_point() -> None:
    result = scattered(WORDS[:40], seed=3)
    axes = map_figure(result).axes[0]
    leaders = lines(axes, "leaders")
    assert leaders is not None
    points = np.concatenate([result.queries, result.keys])
    starts = np.array([segment[0] for segment in leaders.get_segments()])
    assert 0 < len(starts) < len(points)
    distances = np.hypot(*(starts[:, None] - points).transpose(2, 0, 1)).min(axis=1)
    np.testing.assert_allclose(distances, 0, atol=1e-9)


def test_points_in_one_place_share_a_label_and_a_chosen_one_has_its_own() -> None:
    result = made.projection(made.head(made.DOOR))
    result.queries[[1, 5, 9]] = result.queries[4]
    axes = map_figure(result).axes[0]
    assert "query the@1, on, the@5, was" in labels(axes)
    chosen = labels(map_figure(result, [5]).axes[0])
    assert {"query the@1, on, was", "query the@5"} <= set(chosen)
    assert_legible(map_figure(result, [5]))


@pytest.mark.parametrize("size", [2, 13, 60])
def test_a_map_whose_points_are_all_one_is_drawn_and_says_so(size: int) -> None:
    result = origin(WORDS[:size])
    figure = map_figure(result, [0], 1)
    assert_legible(figure)
    assert "all queries and keys are one point" in texts(figure).replace("\n", " ")
    assert "one point" not in texts(map_figure(scattered(WORDS[:size]), [0], 1))
    assert "trustworthiness undefined" in texts(figure)
    told = "\n".join(labels(map_figure(result).axes[0]))
    for label in result.head.query_tokens.labels:
        assert label.split("@")[0][:8] in told


def test_labels_without_room_are_left_out_and_counted_those_of_the_chosen_never() -> None:
    figure = Figure(figsize=(2.4, 1.8), dpi=200)
    axes = figure.add_axes((0.02, 0.02, 0.96, 0.7))
    result = scattered(WORDS[:50])
    with drawing():
        draw(Map(result, 3, 7), axes)
    assert_legible(figure)
    shown = labels(axes)
    note = next(text.get_text() for text in axes.texts if "left out" in text.get_text())
    assert note == f"{100 - sum(len(name.split(', ')) for name in shown)} labels left out"
    assert len(shown) < 100
    assert any(name.startswith("query fox@3") for name in shown)
    assert sum(text.get_weight() == "bold" for text in shown.values()) >= 6


# links


def test_links_run_to_the_strongest_keys_as_wide_as_their_weights() -> None:
    result = made.projection(made.head())
    axes = linked(result, 2, 4)
    drawn = lines(axes, "links")
    assert drawn is not None
    weights = result.head.weights[2]
    strongest = np.argsort(-weights)[:4]
    ends = np.array(drawn.get_segments())
    np.testing.assert_array_equal(ends[:, 0], np.tile(result.queries[2], (4, 1)))
    np.testing.assert_array_equal(ends[:, 1], result.keys[strongest])
    np.testing.assert_allclose(drawn.get_linewidths(), LINK_WIDTH * weights[strongest])
    heaviest = result.head.key_tokens.labels[strongest[0]]
    assert f"key {heaviest} {weights[strongest[0]]:.2f}".replace(" 0.", " .") in labels(axes)


def test_without_a_query_there_are_no_links_rings_or_title() -> None:
    figure = map_figure(made.projection())
    axes = figure.axes[0]
    assert lines(axes, "links") is None
    assert [line.get_label() for line in axes.lines] == ["query", "key"]
    assert not any(line.startswith("query ") for line in texts(figure).splitlines())


def test_masked_keys_get_no_link_and_a_chosen_one_is_called_masked() -> None:
    result = made.projection(made.head(causal=True))
    axes = linked(result, 2, 9, 8)
    drawn = lines(axes, "links")
    assert drawn is not None
    assert len(drawn.get_segments()) == 1  # of its three keys two have links too thin to be seen
    assert "key it masked" in labels(axes)
    assert Map(result, 2, 8).says.startswith("masked · cosine distance ")


def test_a_query_without_a_key_gets_no_link_and_says_why() -> None:
    figure = map_figure(made.projection(made.head(empty=[2])), [2])
    drawn = lines(figure.axes[0], "links")
    assert drawn is not None
    assert drawn.get_segments() == []
    assert "has no valid key" in texts(figure)


def test_a_compared_key_is_linked_even_where_it_is_weak() -> None:
    result = made.projection(made.head())
    weakest = int(np.argmin(result.head.weights[2]))
    axes = linked(result, 2, 2, weakest)
    drawn = lines(axes, "links")
    assert drawn is not None
    np.testing.assert_array_equal(drawn.get_segments()[-1][1], result.keys[weakest])
    told = texts(map_figure(result, [2], weakest)).replace("−", "-")
    assert f"rank 13 of 13 · scaled score {result.head.scaled[2, weakest]:.2f}" in told


def test_a_link_too_thin_to_be_seen_is_not_drawn_and_has_no_weight_at_its_key() -> None:
    weights = np.full((1, 13), 0.008 / 11)
    weights[0, 4], weights[0, 7] = 0.9, 0.092
    of = made.head(["[CLS]"], made.DOOR)
    result = made.projection(replace(of, weights=weights))
    axes = linked(result, 0, 5)
    drawn = lines(axes, "links")
    assert drawn is not None
    assert len(drawn.get_linewidths()) == 2
    assert not any("<" in label for label in labels(axes))
    assert "<.01" in " ".join(labels(linked(result, 0, 5, 2)))  # a key that is asked for
    even = made.projection(replace(of, weights=np.full((1, 13), 1 / 130)))
    drawn = lines(linked(even, 0, 5), "links")
    assert drawn is not None
    assert len(drawn.get_linewidths()) == 1


def test_two_queries_stand_on_the_same_map_with_the_key_ringed_in_both() -> None:
    result = made.projection(made.head())
    figure = map_figure(result, [3, 7], key=4)
    first, second = figure.axes
    assert first.get_xlim() == second.get_xlim()
    assert first.get_ylim() == second.get_ylim()
    for side in ("query", "key"):
        np.testing.assert_array_equal(marks(first, side).get_xydata(), marks(second, side).get_xydata())  # type: ignore[arg-type]
    for axes, query in ((first, 3), (second, 7)):
        np.testing.assert_array_equal(marks(axes, "chosen query").get_xydata()[0], result.queries[query])  # type: ignore[index]
        np.testing.assert_array_equal(marks(axes, "chosen key").get_xydata()[0], result.keys[4])  # type: ignore[index]
        name = result.head.query_tokens.names[query]
        assert f"query {query} {name} → key 4 on" in texts(figure).splitlines()
    assert_legible(figure)


# honesty


def test_one_inch_is_as_long_upwards_as_sideways_and_the_axes_have_no_ticks() -> None:
    figure = map_figure(made.projection(), [1, 2])
    figure_bytes(figure, "png")
    for axes in figure.axes:
        box = axes.get_window_extent()
        (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
        assert box.width / (right - left) == pytest.approx(box.height / (top - bottom), rel=1e-6)
        assert len(axes.get_xticks()) == len(axes.get_yticks()) == 0


def test_the_small_print_tells_how_far_to_trust_the_map() -> None:
    figure = map_figure(made.projection())
    told = texts(figure)
    for phrase in (
        "trustworthiness .92 over 5 neighbours",
        "over all pairs near ones mostly score high",
        "the correlation of full-space distance and score is −.61 (Spearman)",
        "the axes have no unit, and distances in the plane are not attention",
        "✓ certified",
    ):
        assert phrase in told.replace("\n", " ")


def test_a_picture_tells_what_is_not_as_it_comes_and_files_all_settings() -> None:
    usual, other = made.projection(), made.projection(seed=7, perplexity=4.0, wanted_perplexity=4.0)
    told, changed = (texts(map_figure(each)) for each in (usual, other))
    for phrase in ("cosine distance", "perplexity", "seed"):
        assert phrase not in told
    assert "perplexity 4 · seed 7" in changed
    assert "t-SNE · cosine distance · perplexity 5 · seed 0 · settled after 1,300 iterations" in as_csv(usual)
    assert "perplexity 4 · seed 7" in as_csv(other)


def test_what_was_asked_for_and_not_done_is_told() -> None:
    changed = {"perplexity": 10 / 3, "wanted_perplexity": 30.0, "metric": "euclidean"}
    result = made.projection(settled=False, iterations=20_000, **changed)
    told, stored = texts(map_figure(result)).replace("\n", " "), as_csv(result)
    assert "The points still moved after 20,000 iterations." in told
    assert "not settled in 20,000 iterations" in stored
    assert "t-SNE map of L3 H11, not settled" in told
    assert "perplexity 3.33" in told
    assert "perplexity 3.33 (not 30: too few points)" in stored
    assert "euclidean distance" in told
    assert "settled" not in texts(map_figure(made.projection()))


def test_the_heading_names_model_head_kind_and_verdict_and_both_texts_of_a_cross_attention() -> None:
    of = made.head(made.DOOR[:4], ["Das", "Haus"], demo=True, verdict=Verdict.FAILED)
    assert of.kind is Kind.CROSS
    told = texts(map_figure(made.projection(of))).replace("\n", " ")
    assert "t-SNE map of L3 H11 · ✗ FAILED" in told
    assert "cross-attention, decoder to encoder · bundled demo model" in told
    assert "query “the cat sat”" in told
    assert "key “Das Haus”" in told


# bytes
