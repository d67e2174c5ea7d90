"""A word in many texts as it is shown: every pair, the gap of groups beside that of shuffled labels."""

import csv
import io
import re
from dataclasses import replace

import cases_senses
import numpy as np
import pytest
from cases_senses import EXAMPLES

from attnscope.render.figure import figure_of
from attnscope.render.files import as_csv
from attnscope.render.focus import Focus
from attnscope.render.kit.words.command import Typed, as_typed
from attnscope.render.sheet.blocks import Curve, Matrix
from attnscope.render.sheets.senses import sheet as senses
from attnscope.render.terminal.sheet import written


def blocks(labelled: bool = True) -> tuple[Curve, Matrix]:
    curve, matrix = senses(cases_senses.senses(labelled)).blocks
    assert isinstance(curve, Curve)
    assert isinstance(matrix, Matrix)
    return curve, matrix


def test_the_matrix_has_the_layer_whose_groups_lie_furthest_apart_and_texts_of_one_label_together() -> None:
    found = cases_senses.senses()
    usages = (*found.usages[1:], found.usages[0])  # river, money, money, money, river
    moved = [1, 2, 3, 4, 0]
    found = replace(found, usages=usages, cosines=found.cosines[:, moved][:, :, moved])
    matrix = senses(found).blocks[1]
    assert isinstance(matrix, Matrix)
    assert list(matrix.rows.positions) == [1, 5, 2, 3, 4], "numbers are those of the file"
    assert matrix.groups == (2,)
    values = found.cosines[int(found.separation.excess.argmax())]
    order = [0, 4, 1, 2, 3]
    assert matrix.values == pytest.approx(values[order][:, order])
    assert matrix.rows.labels[1] == "5 river “the «bank» of the river”"


def test_the_gap_of_every_layer_stands_beside_that_of_shuffled_labels() -> None:
    curve, _ = blocks()
    parted = cases_senses.senses().separation
    table = curve.table
    above = parted.within - parted.between - parted.control_mean
    assert table["above_control"].values == pytest.approx(above)
    assert table["control_mean"].values == pytest.approx(parted.control_mean)
    assert table["below"].text(1) == f"{int(parted.below[1])} of 9"
    assert "best head" not in [each.heading for each in table.headed]
    (whole, _) = senses(cases_senses.senses(), Focus(verbose=True)).blocks
    best = parted.heads_excess.argmax(axis=1)
    assert whole.table["best"].values == [f"H{(0, 3)[j]}" for j in best]
    assert curve.lines[-1].label == "gap of shuffled labels"
    assert curve.lines[-1].at == pytest.approx(parted.control_mean)


def test_without_labels_the_pairs_have_their_mean_and_their_range() -> None:
    curve, matrix = blocks(labelled=False)
    found = cases_senses.senses(labelled=False)
    upper = np.triu_indices(5, 1)
    band, mean = curve.lines
    assert mean.at == pytest.approx([each[upper].mean() for each in found.cosines])
    assert band.at == pytest.approx([each[upper].min() for each in found.cosines])
    assert band.to == pytest.approx([each[upper].max() for each in found.cosines])
    assert not matrix.groups
    text = written(found, width=100)
    assert "is most alike" in text
    assert "other labels" not in text


@pytest.mark.parametrize("width", [40, 60, 80, 140])
@pytest.mark.parametrize("labelled", [True, False])
def test_no_line_is_wider_than_the_terminal_and_other_forms_of_the_word_are_named(
    width: int, labelled: bool
) -> None:
    text = written(cases_senses.senses(labelled), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "taken in another form: “banks” in text 5" in " ".join(text.split())


def test_a_row_of_the_file_is_a_fact_and_none_is_left_out() -> None:
    found = cases_senses.senses()
    lines = as_csv(found).splitlines()
    rows = list(csv.DictReader(io.StringIO("\n".join(each for each in lines if not each.startswith("#")))))
    pairs = [each for each in rows if each["fact"] == "cosine"]
    assert len(pairs) == 3 * 10
    for each in pairs:
        a, b = int(each["text_a"]) - 1, int(each["text_b"]) - 1
        assert float(each["value"]) == found.cosines[int(each["layer"]), a, b]
    chance = [float(each["value"]) for each in rows if each["fact"] == "control_mean"]
    assert chance == found.separation.control_mean.tolist()
    assert "# text: 1 river “the «bank» of the river”" in lines


def test_the_picture_has_the_texts_by_number_and_says_what_every_line_is() -> None:
    drawn = figure_of(cases_senses.senses())
    labels = [each.get_text() for axes in drawn.axes for each in axes.get_yticklabels()]
    assert "3 money “the «bank» has the money”" in labels
    legends = [axes.get_legend() for axes in drawn.axes if axes.get_legend()]
    assert "gap of shuffled labels" in [each.get_text() for key in legends for each in key.get_texts()]


def test_no_number_is_called_good_before_it_is_said_that_nothing_could_have_come_out() -> None:
    told = senses(EXAMPLES["few texts"]()).answer
    assert told.index("too few") < told.index("cosine")
    shuffled = EXAMPLES["parted beside shuffled labels"]()
    reached = shuffled.separation.reached  # a shuffling may meet the real labels
    assert f"{reached or 'any'} of 99 shufflings of the labels" in senses(shuffled).answer
    assert "99 times" in senses(shuffled).control


def test_the_least_p_stands_beside_any_p() -> None:
    (told,) = senses(EXAMPLES["few texts"]()).details
    assert re.findall(r"[.]?\d+", told) == [".10", "10", ".10"]


def test_what_leads_on_runs_the_model_in_the_same_way() -> None:
    found = cases_senses.senses()
    with as_typed(Typed(run=("--revision v1", "--trust-remote-code"))):
        led = senses(found).next
    assert led is not None
    assert " --revision v1 --trust-remote-code --word " in led.command
    alone = senses(found).next
    assert alone is not None
    shown = f"-m {found.provenance.model} --kind {found.kind} "
    assert shown in alone.command, "a result does not know whether there are other kinds"
    typed = alone.command.replace(f"--kind {found.kind} ", "--revision v1 --trust-remote-code ")
    assert led.command == typed, "where nobody chose a kind, the model's usual one is meant"
    exact = senses(replace(found, provenance=replace(found.provenance, kernel="sdpa", dtype="float64"))).next
    assert exact is not None
    assert " --dtype float64 --attn sdpa " in exact.command
