"""What a comparison shows: in a terminal, in a picture, and in files."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace

import cases_compare as made
import made_results
import numpy as np
import pytest
from cases_compare import EXAMPLES, ROTARY
from golden_text import IN_FULL, assert_golden, printed
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from attnscope.render.figure import FORMATS, figure_bytes, figure_of
from attnscope.render.files import as_csv, as_json, as_npz
from attnscope.render.focus import WHOLE
from attnscope.render.kit.typesetting import drawing
from attnscope.render.sheet.blocks import Block, Curve, Ranking
from attnscope.render.sheets.comparison import MOST_KEYS
from attnscope.render.sheets.comparison import sheet as comparison
from attnscope.render.terminal import sheet as terminal
from attnscope.results import Comparison, Verdict

LONG = ["[CLS]", *(f"w{i}" for i in range(70)), "bank", "[SEP]"]
SHOWN = "texts differ, rotary", "one head", "no valid key", "texts differ by words", "models differ in rows"
CASES: dict[str, Callable[[], Comparison]] = {name: EXAMPLES[name] for name in SHOWN} | {
    "hidden tokens": EXAMPLES["texts differ, special tokens hidden"],
    "texts": made.texts,
    "cross": made.cross,
    "layers": made.layers,
    "models": made.models,
    "awkward": lambda: made.texts(made_results.AWKWARD, made_results.AWKWARD, (6, 7)),
    "very long": lambda: made.texts(LONG * 5, places=(71, 2)),
    "long": lambda: made.texts(LONG, places=(71, 2)),
}


def shown(result: Comparison, width: int = 80, colour: str | None = None) -> str:
    parts = terminal.screen(result, width, IN_FULL)
    return "\n".join(printed(each, width, colour) if colour else printed(each, width) for each in parts)


# terminal


@pytest.mark.parametrize("name", ["texts", "cross", "layers", "models"])
@pytest.mark.parametrize("width", [80, 140])
def test_what_a_terminal_shows(name: str, width: int) -> None:
    assert_golden(f"comparison_{name}_{width}", shown(CASES[name](), width))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("width", [40, 60, 80, 140])
def test_no_line_is_wider_than_the_terminal_and_nothing_raw_reaches_it(name: str, width: int) -> None:
    text = shown(CASES[name](), width)
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text


@pytest.mark.parametrize("name", CASES)
def test_colour_changes_no_character(name: str) -> None:
    coloured = shown(CASES[name](), 100, "truecolor")
    assert coloured != made_results.plain(coloured)
    assert made_results.plain(coloured) == shown(CASES[name](), 100)


@pytest.mark.parametrize(
    ("there", "said"), [(6, "all heads of a layer together"), (12, "6 chosen heads together")]
)
def test_cosines_of_some_heads_are_not_said_to_be_of_all(there: int, said: str) -> None:
    result = made.texts(heads=6)
    a, b = (replace(side, head=replace(side.head, heads=there)) for side in result.sides)
    result = replace(result, a=a, b=b)
    assert f"vectors of A and B, {said}" in " ".join(shown(result).split())


def test_the_cosines_stand_in_the_table_layer_by_layer() -> None:
    result = made.texts()
    lines = shown(result).splitlines()
    for i in range(4):
        row = next(line for line in lines if line.startswith(f"L{i} ")).split()
        expected = [similarity.together[i] for similarity in result.similarities]
        assert [float(cell.replace("−", "-")) for cell in row[1:5]] == pytest.approx(expected, abs=0.0005)
        output = result.similarity("output").heads[i]
        assert (row[5], float(row[6].replace("−", "-"))) == (
            f"H{output.argmin()}",
            pytest.approx(output.min(), abs=0.0005),
        )


def test_the_keys_of_both_sides_stand_beside_each_other_with_bars_on_one_scale() -> None:
    result = made.texts()
    lines = shown(result).splitlines()
    start = next(i for i, line in enumerate(lines) if "looks at" in line) + 2
    longest, place = [], lines[start - 2].index("B, ")
    for side, half in ((result.a, slice(0, place)), (result.b, slice(place, 80))):
        rows = [line[half].split() for line in lines[start : start + len(side.weights)]]
        assert [row[1] for row in rows] == list(side.key_tokens.names)
        assert [float(row[2]) for row in rows] == pytest.approx(side.weights, abs=0.0005)
        longest.append(max(row[3].count("█") for row in rows if len(row) > 3))
    strongest = [side.weights.max() for side in result.sides]
    assert longest[1] / longest[0] == pytest.approx(strongest[1] / strongest[0], abs=0.15)


def test_rows_stand_under_each_other_where_there_is_no_room_beside() -> None:
    lines = shown(made.texts(), 40).splitlines()
    assert len([line for line in lines if "looks at" in line]) == 2
    assert len([line for line in shown(made.texts(), 80).splitlines() if "looks at" in line]) == 1


def test_the_word_is_marked_in_both_texts() -> None:
    lines = shown(made.texts(), 240).splitlines()
    read = "A “we sat on the «bank» .” · B “the «bank» gave her some money without an account”"
    assert read in lines


def test_a_special_token_is_marked_nowhere() -> None:
    text = shown(made.texts(places=(0, 2)))
    assert "“[CLS]” and “bank” in two texts" in text
    assert "A “we sat on the bank .”" in text


def test_what_rotary_positions_do_is_said_for_other_and_for_equal_positions() -> None:
    apart = " ".join(shown(made.texts(vectors=ROTARY)).split())
    assert "rotary position, here 5 and 2" in apart
    together = " ".join(shown(made.texts(vectors=ROTARY, places=(2, 2))).split())
    assert "here 2 in both, which changes nothing" in together
    assert "rotary" not in shown(made.texts())


def test_masked_keys_are_counted_and_never_ranked() -> None:
    text = shown(made.texts(causal=True))
    assert "2 keys masked" in text
    assert "8 keys masked" in text


def test_one_failed_certificate_is_seen() -> None:
    text = shown(made.texts(verdict=Verdict.FAILED))
    assert "FAILED: 1 of 48" in text
    assert "✓ certified: 47 of 48 heads" in text
    assert "failed" not in shown(made.texts())


# blocks and picture


def blocks(result: Comparison) -> tuple[Block, ...]:
    return comparison(result, WHOLE).every


def sides(result: Comparison) -> tuple[Ranking, Ranking]:
    a, b = (each for each in blocks(result)[-2:] if isinstance(each, Ranking))
    return a, b


def test_bars_are_the_weights_in_the_order_of_the_text_on_one_scale() -> None:
    result = made.texts()
    first, second = sides(result)
    for ranking, side in ((first, result.a), (second, result.b)):
        (bar,) = ranking.marks
        assert bar.at == pytest.approx(side.weights)
        assert [each.split()[1] for each in ranking.names] == list(side.head.key_tokens.names)
    assert first.axis == second.axis == (0.0, max(side.weights.max() for side in result.sides))


def test_the_word_itself_is_chosen_and_masked_keys_stand_back() -> None:
    for ranking, place in zip(sides(made.texts(causal=True)), (5, 2), strict=True):
        assert ranking.chosen == {place}
        assert ranking.faint == set(range(place + 1, len(ranking.names)))
        assert [np.isnan(each) for each in ranking.table["weight"].values] == [
            row > place for row in range(len(ranking.names))
        ]


def test_in_cross_attention_no_key_is_the_word() -> None:
    first, _ = sides(made.cross())
    assert [each.split()[1] for each in first.names] == ["la", "rive", "."]
    assert not first.chosen


def test_curves_are_the_cosines_of_all_heads_and_points_those_of_each_output() -> None:
    result = made.texts(vectors=ROTARY)
    curve = blocks(result)[0]
    assert isinstance(curve, Curve)
    lines = {line.label: line for line in curve.lines}
    for similarity in result.similarities:
        assert lines[similarity.vector].at == pytest.approx(similarity.together)
    heads = result.similarity("output").heads
    assert lines["the output of each head"].at == heads.tolist()
    assert lines["the head whose rows are shown"].at == [None, None, None, heads[3, 1]]
    low, high = curve.extent()
    assert low < heads.min()
    assert high > 1
    assert (curve.of, curve.measured) == ("layer", "cosine between A and B")


def test_without_cosines_the_curve_shows_how_far_rows_are_apart() -> None:
    result = made.models(one_space=False)
    curve = blocks(result)[0]
    assert isinstance(curve, Curve)
    points, ring = curve.lines
    assert points.at == result.divergence.jensen_shannon.tolist()
    assert ring.shape == "ring"
    assert curve.measured == "Jensen-Shannon in nats"


def test_two_layers_have_their_heads_one_by_one_and_no_curve() -> None:
    result = made.layers()
    by_head, *rows = blocks(result)
    assert isinstance(by_head, Ranking)
    assert by_head.table["apart"].values == result.divergence.jensen_shannon[0].tolist()
    assert by_head.chosen == {result.shown[1]}
    assert len(rows) == 2
    assert len(blocks(made.layers(1))) == 2, "of one head there is no table of heads"


def test_of_a_long_text_the_strongest_keys_and_the_word_are_drawn_with_their_positions() -> None:
    result = made.texts(LONG, places=(71, 2))
    first, _ = sides(result)
    weights = result.a.weights
    assert "71 bank" in first.names
    bars = sorted((each for each in first.marks[0].at if each is not None), reverse=True)
    matter = np.sort(weights[weights >= 0.05 * weights.max()])[::-1]
    assert len(bars) <= min(len(matter), MOST_KEYS) + 1
    assert bars[: len(matter)] == pytest.approx(matter[:MOST_KEYS])
    assert first.names[-1].strip() == f"{len(weights) - len(bars)} others"
    assert first.table["weight"].values[-1] == pytest.approx(1 - sum(bars))
    assert first.marks[0].at[-1] is None, "what is added up has no bar: it would have another scale"


def test_of_keys_that_hardly_count_none_has_an_empty_bar_of_its_own() -> None:
    result = made.texts(LONG, places=(71, 2))
    weights = np.full(len(LONG), 0.001)
    weights[[3, 40]] = 0.6, 1 - 0.6 - 0.001 * (len(LONG) - 2)
    rows = np.tile(weights, (len(LONG), 1))
    side = replace(
        result.a, head=replace(result.a.head, weights=rows, allowed=np.ones_like(rows, dtype=bool))
    )
    first, second = sides(replace(result, a=side))
    assert [each.split()[1] for each in first.names] == ["w2", "w39", "bank", "others"]
    assert len(second.names) == len(made.texts().b.weights), "a short text has a bar for every key"


def test_of_a_very_long_text_what_stands_around_the_word_is_written() -> None:
    words = [*("far" for _ in range(200)), "bank", *("off" for _ in range(200))]
    for names, place, dots in ((words, 200, 2), (words[200:], 0, 1), (words[:201], 200, 1)):
        told = comparison(made.texts(names, places=(place, 2)), WHOLE).texts[0]
        assert "«bank»" in told
        assert told.count("…") == dots
        assert len(told) < 360
    assert "…" not in comparison(made.texts(), WHOLE).texts[0]


@pytest.mark.parametrize("name", CASES)
def test_no_text_overlaps_another_or_leaves_the_page(name: str) -> None:
    with drawing():
        figure = figure_of(CASES[name]())
        figure.draw_without_rendering()
        placed = boxes(figure)
    width, height = figure.canvas.get_width_height()
    assert "attention weight" in dict(placed)
    for i, (text, box) in enumerate(placed):
        assert box.x0 >= -1, text
        assert box.x1 <= width + 1, text
        assert box.y0 >= -1, text
        assert box.y1 <= height + 1, text
        for other, second in placed[i + 1 :]:
            across = min(box.x1, second.x1) - max(box.x0, second.x0)
            along = min(box.y1, second.y1) - max(box.y0, second.y0)
            assert across < 3 or along < 3, (text, other)


def boxes(figure: Figure) -> list[tuple[str, Bbox]]:
    """Every text that is drawn with its box in pixels: matplotlib leaves out ticks beyond an axis."""
    beyond = set()
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        ticks = [tick for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high]
        beyond |= {label for tick in ticks for label in (tick.label1, tick.label2)}
    found = [text for text in figure.findobj(Text) if text.get_visible() and text not in beyond]
    return [(text.get_text(), text.get_window_extent()) for text in found if text.get_text().strip()]


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_comparison_gives_the_same_picture(format: str) -> None:
    first, second = (figure_bytes(figure_of(made.texts()), format) for _ in range(2))
    assert first == second
    assert first != figure_bytes(figure_of(made.layers()), format)


def test_the_page_names_a_demo_model_and_a_verdict_that_is_not_the_best() -> None:
    told = [each.get_text() for each in figure_of(made.models()).texts]
    assert any("bundled demo model" in each for each in told)
    failed = figure_of(made.texts(verdict=Verdict.FAILED))
    assert "✗ FAILED" in "\n".join(text.get_text() for text in failed.texts)


# files


def strict(text: str) -> dict:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def read(data: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def test_json_csv_and_npz_hold_the_same_numbers() -> None:
    result = made.models()
    document, arrays = strict(as_json(result)), read(as_npz(result))
    lines = [line for line in as_csv(result).splitlines(keepends=True) if not line.startswith("# ")]
    facts = {
        (row["fact"], row["side"], row["layer_a"], row["head"], row["key"]): float(row["value"])
        for row in csv.DictReader(lines)
    }
    for similarity in result.similarities:
        name = similarity.vector
        np.testing.assert_array_equal(document["cosine"][name]["heads"], similarity.heads)
        np.testing.assert_array_equal(arrays[f"cosine {name} heads"], similarity.heads)
        np.testing.assert_array_equal(arrays[f"cosine {name} together"], similarity.together)
        assert facts[f"cosine {name}", "", "2", "5", ""] == similarity.heads[2, 5]
        assert facts[f"cosine {name}", "", "2", "together", ""] == similarity.together[2]
    for name, fact in (("jensen_shannon", "jensen-shannon nats"), ("total_variation", "total variation")):
        values = getattr(result.divergence, name)
        np.testing.assert_array_equal(document["divergence"][name], values)
        np.testing.assert_array_equal(arrays[f"divergence {name}"], values)
        assert facts[fact, "", "1", "4", ""] == values[1, 4]
    for letter, side in zip("ab", result.sides, strict=True):
        np.testing.assert_array_equal(document[letter]["weights"], side.weights)
        np.testing.assert_array_equal(arrays[f"{letter} weights"], side.weights)
        np.testing.assert_array_equal(document[letter]["value"], side.head.v[side.position])
        assert facts["weight", letter, "3", "1", "6"] == side.weights[6]


@pytest.mark.parametrize("name", CASES)
def test_every_format_carries_schema_verdict_and_both_sides(name: str) -> None:
    result = CASES[name]()
    meta = strict(str(read(as_npz(result))["meta"]))
    for told in (strict(as_json(result)), meta):
        assert told["schema"] == "attnscope.comparison/2"
        assert told["verdict"] == "certified"
        assert told["between"] == result.between.value
        for letter, side in zip("ab", result.sides, strict=True):
            assert told[letter]["position"] == side.position
            name = side.head.query_tokens.names[side.position]  # by words that of the first piece
            assert told[letter]["query_tokens"][side.position]["label"].startswith(name)
            assert told[letter]["provenance"]["model"] == side.head.provenance.model
    text = as_csv(result)
    assert "# schema: attnscope.comparison/2\n" in text
    assert "# verdict: certified\n" in text
    assert f"# b word: {result.b.position} {result.b.word}\n" in text


def test_what_there_is_not_is_null_or_empty() -> None:
    document = strict(as_json(made.layers()))
    assert document["cosine"] == {}
    assert strict(as_json(made.texts()))["divergence"] is None
    assert "key" not in strict(as_json(made.cross()))["a"]
    assert strict(as_json(made.texts(empty=[5, 2])))["a"]["weights"] == [None] * 8


def test_a_failed_certificate_is_in_every_file() -> None:
    result = made.texts(verdict=Verdict.FAILED)
    document = strict(as_json(result))
    assert document["verdict"] == "failed"
    assert "failed" in [each["verdict"] for layer in document["b"]["certificates"] for each in layer]
    assert "# verdict: failed\n" in as_csv(result)
    assert strict(str(read(as_npz(result))["meta"]))["verdict"] == "failed"


@pytest.mark.parametrize("write", [as_json, as_csv, as_npz])
def test_the_same_comparison_gives_the_same_file(write: Callable[[Comparison], object]) -> None:
    assert write(made.texts()) == write(made.texts())
