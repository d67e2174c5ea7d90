"""A map in pictures, in the terminal and in files: points with labels, links as wide as their weights."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace

import made_results as made
import numpy as np
import pytest
from golden_text import IN_FULL, assert_golden, printed
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from rich.cells import cell_len
from rich.console import Group, RenderableType
from written_numbers import number_of

from attnscope.render.figure import figure_bytes, figure_of, missing_glyphs
from attnscope.render.kit import numbers
from attnscope.render.kit.typesetting import drawing
from attnscope.render.plot.map import LINK_WIDTH
from attnscope.render.plot.sheet import draw
from attnscope.render.sheets import Focus
from attnscope.render.sheets.projection import Map
from attnscope.render.sheets.projection import said as facts_of
from attnscope.render.terminal.sheet import screen
from attnscope.results import Projection

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


def test_masked_keys_get_no_link_and_a_chosen_one_is_called_masked() -> None:
    result = made.projection(made.head(causal=True))
    axes = linked(result, 2, 9, 8)
    drawn = lines(axes, "links")
    assert drawn is not None
    assert len(drawn.get_segments()) == 1  # of its three keys two have links too thin to be seen
    assert "key it masked" in labels(axes)
    assert Map(result, 2, 8).says.startswith("masked · cosine distance ")


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


# bytes


def drawn(result: Projection, *queries: int) -> str:
    figure = figure_of(result, Focus(queries=queries))
    return " ".join(each.get_text() for each in figure.findobj(Text)).replace("\n", " ")


LONG = [f"w{i}" for i in range(70)]


def projection(result: Projection, queries: list[int], key: int | None, width: int) -> RenderableType:
    return Group(*screen(result, width, replace(IN_FULL, queries=tuple(queries), key=key)))


def shown(result: Projection, queries: list[int], key: int | None = None, width: int = 80) -> str:
    return printed(projection(result, queries, key, width), width)


def clamped() -> Projection:
    settings = {"perplexity": 5 / 3, "wanted_perplexity": 5.0, "neighbours": 2}
    nothing = {"trustworthiness": math.nan, "correlation": math.nan}
    return made.projection(
        made.head(["Yes", "no", "yes"]), settled=False, iterations=20_000, **settings, **nothing
    )


GOLDEN = {
    "map": lambda width: projection(made.projection(made.head(empty=[0])), [], None, width),
    "map_of_one_query": lambda width: projection(made.projection(), [3], None, width),
    "map_of_two_queries": lambda width: projection(
        made.projection(made.head(causal=True)), [3, 7], None, width
    ),
    "map_compared": lambda width: projection(made.projection(), [3, 7], 4, width),
    "map_of_one_query_and_a_key": lambda width: projection(made.projection(), [3], 4, width),
    "map_of_a_cross_attention": lambda width: projection(
        made.projection(made.head(made.DOOR[:4], made.AWKWARD)), [2], None, width
    ),
    "map_clamped": lambda width: projection(clamped(), [], None, width),
}  # fmt: skip


@pytest.mark.parametrize("width", [40, 80, 140])
@pytest.mark.parametrize("name", GOLDEN)
def test_the_text_is_the_golden_text_and_no_line_is_too_wide(name: str, width: int) -> None:
    drawn: RenderableType = GOLDEN[name](width)
    text = printed(drawn, width)
    assert_golden(f"{name}.{width}", text)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert "\x1b" not in text


def rows(text: str, heading: str) -> list[list[str]]:
    """The words of the rows below the headings, of which `heading` is the first."""
    lines = text.replace("−", "-").splitlines()
    start = next(i for i, line in enumerate(lines) if line.split()[:1] == [heading] and "distance" in line)
    end = next(i for i, line in enumerate(lines) if i > start and not line.strip()[:1].isdigit())
    return [line.split() for line in lines[start + 1 : end]]


def test_keys_are_ranked_by_weight_over_all_keys_with_their_true_numbers() -> None:
    result = made.projection(made.head(made.DOOR, ["a", "b", "c", "d", "e"]))
    weights = result.head.weights[3]
    listed = rows(shown(result, [3]), "key")
    assert [int(row[0]) for row in listed] == sorted(range(5), key=lambda key: -weights[key])
    for key, name, weight, scaled, distance in listed:
        assert name == "abcde"[int(key)]
        assert number_of(weight) == pytest.approx(weights[int(key)], abs=5.1e-4)
        assert number_of(scaled) == pytest.approx(result.head.scaled[3, int(key)], abs=5.1e-3)
        assert number_of(distance) == pytest.approx(result.distance[3, int(key)], abs=5.1e-4)


def test_very_many_keys_are_cut_and_what_is_left_out_is_told() -> None:
    result = made.projection(made.head(LONG))
    text = shown(result, [5])
    assert len(rows(text, "key")) == 60
    rest = np.sort(result.head.weights[5])[:10].sum()
    assert f"10 more keys share {numbers.weight(rest)}" in text


def test_the_short_table_names_the_strongest_and_the_nearest_key_of_every_query() -> None:
    result = made.projection(made.head(made.DOOR, ["a", "b", "c", "d", "e"]))
    listed = rows(shown(result, []), "query")
    assert len(listed) == 13
    differing = 0
    for query, row in enumerate(listed):
        strongest = max(range(5), key=lambda key: result.head.weights[query, key])
        nearest = min(range(5), key=lambda key: result.distance[query, key])
        assert row[0] == str(query)
        assert row[2:4] == [str(strongest), "abcde"[strongest]]
        assert row[5:7] == [str(nearest), "abcde"[nearest]]
        assert (row[-1] == "≠") == (strongest != nearest)
        differing += strongest != nearest
    assert 0 < differing < 13
    told = " ".join(shown(result, []).split())
    assert f"for {'only ' if differing > 6 else ''}{13 - differing} of 13 queries" in told


def test_two_queries_are_compared_on_one_key_in_all_four_numbers() -> None:
    result = made.projection()
    listed = rows(shown(result, [3, 7], 4), "query")
    assert [row[0] for row in listed] == ["3", "7"]
    for query, row in zip((3, 7), listed, strict=True):
        weights = result.head.weights[query]
        rank = 1 + sum(weight > weights[4] for weight in weights)
        assert row[3:6] == [str(rank), "of", "13"]
        assert number_of(row[2]) == pytest.approx(weights[4], abs=5.1e-4)
        assert number_of(row[6]) == pytest.approx(result.head.scaled[query, 4], abs=5.1e-3)
        assert number_of(row[7]) == pytest.approx(result.distance[query, 4], abs=5.1e-4)


@pytest.mark.parametrize("nearer", [3, 7])
def test_the_words_say_whether_weight_and_distance_agree(nearer: int) -> None:
    result = made.projection()
    result.head.weights[[3, 7], 4] = 0.7, 0.2
    result.distance[[3, 7], 4] = (0.1, 0.9) if nearer == 3 else (0.9, 0.1)
    text = shown(result, [7, 3], 4)
    agreed = "“sat” gives it the larger weight, and is nearer to it"
    opposed = "“sat” gives it the larger weight, although “because” is nearer to it"
    assert (agreed if nearer == 3 else opposed) in text
    assert (opposed if nearer == 3 else agreed) not in text


@pytest.mark.parametrize(
    ("correlation", "words"),
    [
        (-0.98, "over all pairs near ones score high"), (-0.89, "over all pairs near ones mostly score high"),
        (-0.3, "nearness says little about the score"), (-0.05, "nearness says nothing about the score"),
        (0.19, "nearness says nothing about the score"), (0.5, "over all pairs near ones mostly score low"),
        (0.9, "over all pairs near ones score low"),
    ],
)  # fmt: skip
def test_one_phrase_says_what_nearness_means_in_this_head(correlation: float, words: str) -> None:
    assert facts_of(made.projection(correlation=correlation))("nearness") == words
    assert words in shown(made.projection(correlation=correlation), [], width=140).lower()


def test_a_map_of_a_long_text_is_one_screen_of_the_queries_that_are_surest_of_a_key() -> None:
    names = [f"w{i}" for i in range(458)]
    result = made.projection(made.head(names, provenance=made.provenance().of_no_text))
    text = printed(Group(*screen(result, 80)), 80)
    assert len(text.splitlines()) <= 30
    assert "443 queries less sure of a key are not shown" in text
    listed = [int(row[0]) for row in rows(text, "query")[:15]]
    surest = np.argsort(-result.weights.max(axis=1), kind="stable")[:15]
    assert listed == sorted(surest.tolist())
    assert len(rows(shown(result, []), "query")) == 458
    assert len(printed(Group(*screen(result, 80, Focus(queries=(3,)))), 80).splitlines()) <= 30


# files
