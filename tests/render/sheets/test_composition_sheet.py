"""Composition of heads as it is shown: strongest pairs by name, one head's partners, and every control."""

import io
import re
import shlex
from dataclasses import replace

import cases_compose
import matplotlib.pyplot as plt
import numpy as np
import pytest
from cases_compose import EXAMPLES, read_in, without_values
from matplotlib.text import Text
from PIL import Image

from attnscope.errors import InputError
from attnscope.render.figure import figure_bytes, figure_of
from attnscope.render.files import as_csv
from attnscope.render.focus import Focus
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheets.composition import sheet as composition
from attnscope.render.terminal.sheet import written
from attnscope.results import Composition, Kind
from attnscope.results.claims.composition import Pair, Through


@pytest.fixture(scope="module")
def every() -> Composition:
    return cases_compose.composition()


@pytest.fixture(scope="module")
def one() -> Composition:
    return cases_compose.composition((1, 2))


def test_pairs_are_ranked_by_what_they_have_over_chance_and_those_without_score_are_left_out(
    every: Composition,
) -> None:
    for t, through in enumerate(Through):
        ranked = every.ranked(through)
        above, needed = (each[t] - every.chance[t] for each in (every.scores, every.limit))
        assert [pair.excess for pair in ranked] == pytest.approx(
            np.sort(above / needed)[::-1][-len(ranked) :]
        )
        assert [pair.stands_out for pair in ranked] == [pair.excess > 1 for pair in ranked]
        assert every.looked_at(through) == len(ranked)
    assert [every.looked_at(through) for through in Through] == [47, 47, 20]  # 4 x 5 + 4 x 3 + 5 x 3


def test_what_stands_beside_a_pair_is_the_median_of_the_others_of_its_layers(every: Composition) -> None:
    pair = every.ranked(Through.KEY)[3]
    layers = pair.early[0], pair.late[0]
    others = [
        each.score
        for each in every.ranked(Through.KEY)
        if (each.early[0], each.late[0]) == layers and each != pair
    ]
    assert pair.beside == pytest.approx(np.median(others))


def test_a_terminal_names_the_strongest_pairs_with_every_control(every: Composition) -> None:
    text = written(every, Focus(legend=True), width=80)
    best = every.ranked(Through.QUERY)[0]
    numbers = best.score, best.chance, best.limit, best.beside
    assert _cells(text, best) == pytest.approx(numbers, abs=6e-4)
    out = int((every.scores[0] > every.limit[0]).sum())
    assert f"queries: {out} of 47 pairs stand out" in text
    for told in ("with residual additions", "left out: other heads", "no score, L3: no matrix alone", "✓"):
        assert told in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    assert "left out: other heads" not in written(every, width=80), "what never changes waits for --legend"
    whole = best.score, best.chance, best.spread, best.below, best.limit, best.difference, best.beside
    assert _cells(written(every, Focus(verbose=True), width=120), best) == pytest.approx(whole, abs=6e-4)


def test_pairs_that_stand_out_are_all_shown_where_everything_is_asked_for(every: Composition) -> None:
    few, all_of_them = (
        [each.names for each in composition(every, Focus(verbose=verbose)).every if isinstance(each, Ranking)]
        for verbose in (False, True)
    )
    assert [len(each) for each in few] == [5, 5, 5]
    assert [len(each) for each in all_of_them] == [every.standing_out(through) for through in Through]
    assert sum(map(len, all_of_them)) > 15
    one_input = replace(every, **{
        each: getattr(every, each)[:1] for each in ("scores", "chance", "spread", "below", "limit")
    }, through=(Through.QUERY,))  # fmt: skip
    (alone,) = composition(one_input).every
    assert isinstance(alone, Ranking)
    assert len(alone.names) == 15


@pytest.mark.parametrize(
    ("name", "left"), [("rotary", True), ("rotary, through values", False), ("one", False)]
)
def test_rotary_positions_that_are_left_out_are_a_note_where_they_turn_what_is_read(
    name: str, left: bool
) -> None:
    assert any("rotary" in each for each in composition(EXAMPLES[name]()).notes) is left


def test_numbers_have_as_many_digits_as_tell_a_score_from_what_it_needs() -> None:
    near = EXAMPLES["near what is needed"]()
    assert re.findall(r"\.\d+", composition(near).answer) == [".30002", ".20000", ".30000"]
    (first, *_) = composition(near).every
    assert isinstance(first, Ranking)
    assert (first.table["score"].text(0), first.table["limit"].text(0)) == (".30002", ".30000")
    assert re.findall(r"\.\d+", composition(EXAMPLES["one"]()).answer) == [".600", ".200", ".300"]


def test_the_control_is_named_and_so_is_what_makes_pairs_no_several_findings(every: Composition) -> None:
    assert composition(every).control.endswith("(50 draws in 20 dimensions)")
    assert composition(every).departs == ("seed 3",)
    assert not any("share" in each for each in composition(every).notes)
    assert any("3 heads share" in each for each in composition(EXAMPLES["shared keys"]()).notes)


def test_pairs_of_layers_that_are_left_out_as_they_share_weights_are_counted(every: Composition) -> None:
    assert every.repeated == 0
    assert not any("shared" in each for each in composition(every).notes)
    fewer = EXAMPLES["shared weights"]()
    assert fewer.repeated == fewer.derived()["repeated"] == 1
    assert any("1 of 3 pairs of layers" in each for each in composition(fewer).notes)
    assert len(composition(fewer).table()["score"].values) == 3 * (every.pairs[:, 0] == 0).sum()
    assert cases_compose.composition((1, 2)).repeated == 0


def test_an_input_without_any_score_is_told_once_with_its_reason() -> None:
    reasons = (
        "L0 to L1 and 5 more: through values: nothing comes there",
        "L3: no matrix alone makes its values",
    )
    notes = composition(without_values(*reasons)).notes
    assert notes[-2:] == ("no pair through values: nothing comes there", f"no score, {reasons[1]}")
    unknown = composition(without_values()).notes
    assert unknown[-1] == "no pair through values: no path between layers is proved"


def test_it_leads_on_to_the_later_head_and_then_to_what_that_looks_at(
    every: Composition, one: Composition
) -> None:
    leads = composition(every).next
    assert every.best is not None
    layer, head = every.best.late
    assert leads is not None
    assert leads.command == (
        f"attnscope compose -m bert-base-uncased --kind decoder --layer {layer} --head {head}"
    )
    read = composition(read_in("it's late", every)).next
    assert read is not None
    both = ",".join(f"L{layer}H{head}" for layer, head in (every.best.early, every.best.late))
    words = [
        "attnscope",
        "ablate",
        "it's late",
        *["-m", "bert-base-uncased", "--kind", "decoder", "--heads"],
        both,
    ]
    assert shlex.split(read.command) == words, "whether an answer needs the link"
    encoder = composition(replace(every, kind=Kind.ENCODER, read_back_in="it's late")).next
    assert encoder is not None
    assert " compose " in encoder.command, "not every encoder answers"
    assert composition(one).next is None, "there was no text"
    told = composition(replace(one, read_back_in="it's late", tower="text_model")).next
    assert told is not None
    options = "-m bert-base-uncased --kind decoder --tower text_model --layer 1 --head 2"
    assert shlex.split(told.command) == ["attnscope", "heads", "it's late", *options.split()]
    nothing = replace(every, scores=np.full_like(every.scores, np.nan))
    assert composition(nothing).next is None


def _cells(text: str, pair: Pair) -> list[float]:
    """The numbers behind the name of a pair where it first stands as a row."""
    name = _name(pair.early, pair.late)
    row = next(line for line in text.splitlines() if line.startswith(name))
    return [float(cell) for cell in row.removeprefix(name).split()]


def _name(early: tuple[int, int], late: tuple[int, int]) -> str:
    return f"L{early[0]} H{early[1]} → L{late[0]} H{late[1]} "


def test_one_head_has_those_before_it_and_those_after_it(one: Composition) -> None:
    blocks = composition(one).every
    rankings = [each for each in blocks if isinstance(each, Ranking)]
    assert [[name.startswith("L1 H2") for name in each.names] for each in rankings] == [
        [False] * 3 + [True] * 3, [False] * 3 + [True] * 3, [False] * 3,
    ]  # fmt: skip
    assert rankings[0].sections == ((0, "what L1 H2 reads"), (3, "what reads L1 H2"))
    assert rankings[2].sections == ((0, "what L1 H2 reads"),)
    grids = [each for each in blocks if isinstance(each, HeadGrid)]
    assert {each.itself for each in grids} == {(1, 2)}
    np.testing.assert_array_equal(grids[1].values, one.grid(Through.KEY))
    grid = one.grid(Through.KEY)
    assert grid.shape == (3, 5)
    assert np.isnan(grid[1]).all()  # its own layer
    assert np.isfinite(grid).sum() == 7
    assert np.isnan(one.grid(Through.VALUE)[2]).all()


def test_every_score_is_drawn_with_what_chance_makes_of_it(every: Composition) -> None:
    (first, *_) = [each for each in composition(every).every if isinstance(each, Ranking)]
    marks = {(mark.shape, mark.tint): mark for mark in first.marks}
    pairs = every.ranked(Through.QUERY, most=5)
    assert pairs == every.ranked(Through.QUERY)[:5]
    assert marks["dot", "own"].at == [pair.score for pair in pairs]
    assert marks["ring", "control"].at == [pair.chance for pair in pairs]
    assert marks["tick", "peers"].at == [pair.beside for pair in pairs]
    assert marks["span", "control"].at == pytest.approx([pair.chance - 2 * pair.spread for pair in pairs])
    assert marks["tick", "limit"].at == [pair.limit for pair in pairs]
    assert first.hidden == 47 - 5


def test_csv_has_every_pair_and_input(every: Composition) -> None:
    lines = [line for line in as_csv(every).splitlines() if not line.startswith("#")]
    assert len(lines) == 1 + 3 * 47
    first = lines[1].split(",")
    assert first[:5] == ["query", *map(str, every.pairs[0])]
    assert [float(each) for each in first[5:]] == [
        every.scores[0, 0], every.chance[0, 0], every.spread[0, 0], every.below[0, 0],
        every.scores[0, 0] - every.chance[0, 0], every.limit[0, 0],
    ]  # fmt: skip
    assert "left out: other heads" in as_csv(every)
    gone = lines[1 + 2 * 47 + int(np.flatnonzero(np.isnan(every.scores[2]))[0])].split(",")
    assert gone[5:] == [""] * 6, "what has no score has none"


@pytest.mark.parametrize("shown", [None, (1, 2)])
def test_nothing_of_a_picture_is_cut_or_lies_outside(shown: tuple[int, int] | None) -> None:
    figure = figure_of(cases_compose.composition(shown))
    figure.canvas.draw()
    page = figure.bbox
    for text in figure.findobj(Text):
        if text.get_text() and text.get_visible():
            box = text.get_window_extent()
            assert page.x0 <= box.x0, text.get_text()
            assert box.x1 <= page.x1 + 1, text.get_text()
    image = np.asarray(Image.open(io.BytesIO(figure_bytes(figure, "png"))).convert("L"))
    assert (image[:, -8:] == 255).all()
    assert (image[:, :8] == 255).all()


def test_all_grids_have_one_scale_around_chance(one: Composition) -> None:
    figure = figure_of(one)
    meshes = [each for axes in figure.axes for each in axes.collections if each.get_array() is not None]
    limits = {mesh.get_clim() for mesh in meshes if mesh.get_array().size == 15}
    (ends,) = limits
    largest = max(np.nanmax(abs(one.grid(through))) for through in Through)
    assert ends == pytest.approx((-largest, largest))


def test_on_axes_of_ones_own_the_pairs_are_drawn_and_a_head_needs_a_page(
    every: Composition, one: Composition
) -> None:
    figure, axes = plt.subplots()
    try:
        assert every.plot(axes) is axes
        names = [label.get_text() for label in axes.get_yticklabels()]
        best = max((every.ranked(each)[0] for each in Through), key=lambda pair: pair.excess)
        assert f"{names[0]} " == _name(best.early, best.late)
        with pytest.raises(InputError, match="a page of its own"):
            one.plot(axes)
    finally:
        plt.close(figure)


def test_a_table_has_a_row_for_every_pair_and_input(every: Composition) -> None:
    frame = every.to_pandas()
    assert len(frame) == 3 * 47
    assert list(frame.columns)[:6] == [
        "through", "early_layer", "early_head", "late_layer", "late_head", "score",
    ]  # fmt: skip
