"""Relations of a treebank as they are shown: each beside its control, within the width, in every form."""

from dataclasses import replace

import cases_dependencies as made
import numpy as np
import pytest
from cases_dependencies import by_errors
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attnscope.errors import InputError
from attnscope.render.figure import figure_of
from attnscope.render.focus import Focus
from attnscope.render.kit.numbers import weight
from attnscope.render.kit.words.command import Typed, as_typed
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheets import sheet_of
from attnscope.render.sheets.dependencies import finder, groups
from attnscope.render.sheets.dependencies import sheet as dependencies
from attnscope.render.terminal.sheet import written
from attnscope.render.web.page import as_page
from attnscope.results import Dependencies
from attnscope.results.claims.relations import LEAST, Direction, Example, Relation


def test_examples_are_told_to_who_asks_for_everything_and_in_a_page() -> None:
    result = made.dependencies()
    first, second = result.relations[:2]
    told = " ".join(written(result, Focus(verbose=True), width=140).split())
    right = "finds “«the» old door of the house…”: door"
    missed = "misses “the old door of «the» house opened , <b>when</b>…”: door, not house"
    assert f"{first.name} by {first.best.name}: {right}; {missed}" in told
    assert (
        f"{second.name} by {second.best.name}: misses “the «old» door of the house…”: nothing, not door"
        in told
    )
    assert "«the»" not in written(result, width=140)
    page = as_page(result).decode()
    assert "“the old door of «the» house opened , &lt;b&gt;when&lt;/b&gt;…”" in page
    assert "door, not house" in page
    one = written(made.dependencies(second.name), Focus(verbose=True), width=140)
    assert "nothing, not door" in one
    assert "door, not house" not in one


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("shown", ["", "det"])
def test_every_line_is_within_its_width_and_every_best_has_its_control(width: int, shown: str) -> None:
    result = made.dependencies(shown)
    text = result.text(width=width)
    assert max(map(len, text.splitlines())) <= width
    assert f"the best of {result.tried}" in " ".join(text.split())
    assert "control: the best fixed distance" in text
    if not shown:
        for each in rows(result):
            line = next(line for line in text.splitlines() if line.startswith(f"{each.name} "))
            assert f" {each.baseline.fixed_distance:+d} ".replace("-", "−") in line
            assert each.best.name in line


def rows(result: Dependencies) -> list[Relation]:
    """The relations that have a row, in the order of the table."""
    return [each for there in groups(result).values() for each in there]


def test_rare_relations_are_left_to_the_files_and_said() -> None:
    result = made.dependencies()
    rare = [each for each in result.relations if each.count < LEAST]
    assert [each.name for each in rare] == ["vocative"]
    assert "vocative" not in result.text().replace("in the files", "")
    assert "1 relation with fewer than 20 pairs, in the files" in result.text()
    assert "vocative" in set(result.to_pandas().relation)


def test_what_was_left_out_and_what_causality_allows_is_said() -> None:
    told = " ".join(written(made.dependencies(ahead=False), Focus(legend=True), width=80).split())
    assert (
        "Left out are 4 of 64 sentences: 1 longer than 512 tokens, 1 that cannot be read, 2 without a pair."
        in told
    )
    assert told.index("Left out are") < told.index("control:"), "it is in the answer"
    assert "3 pairs left out" in told
    assert "no head looks ahead" in told
    assert "no head looks ahead" not in made.dependencies().text()


def test_a_picture_has_each_head_beside_its_offset_at_their_accuracies() -> None:
    result = made.dependencies()
    axes = figure_of(result).axes[0]
    lines = {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}
    relations = rows(result)
    assert relations[-1] is result.overall
    best, fixed = lines["best head on all sentences, 95 %"], lines["best fixed distance, 95 %"]
    assert best.get_xdata() == pytest.approx([each.best.accuracy for each in relations])
    assert fixed.get_xdata() == pytest.approx([each.baseline.accuracy for each in relations])
    assert all(np.asarray(fixed.get_ydata()) > np.asarray(best.get_ydata())), "beside it, and not on it"
    held = [each.held_out.accuracy for each in relations if each.held_out is not None]
    assert lines["head on sentences held out"].get_xdata() == pytest.approx(held)
    told = [each.get_text() for one in figure_of(result).axes[0].child_axes for each in one.texts]
    for each in relations:
        assert finder(each) in told
        assert f"{each.baseline.fixed_distance:+d}".replace("-", "−") in told


def test_one_relation_has_every_direction_on_one_scale_and_outlines_what_beats_the_offset() -> None:
    result = made.dependencies("nsubj")
    panels = [
        each for each in figure_of(result).axes if any(isinstance(one, QuadMesh) for one in each.collections)
    ]
    values, relation = result.by_head("nsubj"), result.relation("nsubj")
    grids = [(axes, mesh) for axes in panels for mesh in axes.collections if np.size(mesh.get_array()) == 12]
    assert len(grids) == len(Direction)
    for k, (axes, mesh) in enumerate(grids):
        assert np.asarray(mesh.get_array()).reshape(values.shape[:2]) == pytest.approx(values[:, :, k])
        assert mesh.get_clim() == (0, 1)
        outlined = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
        assert len(outlined) == int(np.sum(values[:, :, k] > relation.baseline.accuracy))


def test_the_best_heads_of_one_relation_stand_beside_the_best_offset() -> None:
    result, relation = made.dependencies("nsubj"), made.dependencies().relation("nsubj")
    (block,) = [each for each in dependencies(result).every if isinstance(each, Ranking)]
    values = np.sort(result.by_head("nsubj"), axis=None)[::-1]
    assert block.table["accuracy"].values == values[:10].tolist()
    assert block.table["above_control"].values == pytest.approx(values[:10] - relation.baseline.accuracy)
    assert block.marks[1].at == [relation.baseline.accuracy]
    assert block.hidden == values.size - 10
    assert relation.held_out is not None
    assert (
        f": {weight(relation.held_out.accuracy)} of {relation.count} pairs, " in dependencies(result).answer
    )
    with pytest.raises(InputError, match="one relation has a panel for each direction"):
        result.plot(ax=Figure().add_subplot())


def test_of_many_relations_one_is_told_apart_only_by_what_is_rare_among_so_many() -> None:
    alone, many = by_errors(2.5), by_errors(2.5, *[0.0] * 9)
    assert alone.told_apart == {"r0": 1}
    assert set(many.told_apart.values()) == {0}
    stepped = by_errors(2.3, -2.6, 2.7)  # p .021, .009 and .007, which .05, .025 and .017 are needed for
    assert stepped.told_apart == {"r0": 1, "r1": -1, "r2": 1}


def test_a_relation_that_would_be_told_alone_says_why_it_is_not_among_others() -> None:
    found = by_errors(2.5, -2.3, 1.5, *[0.0] * 9)  # p .012, .021 and .13; .05 / 12 is needed
    assert set(found.told_apart.values()) == {0}
    why = "r0 (p .012), r1 (p .021) would be found better or worse"
    said = " ".join(written(found, width=140).split())
    assert said.index(why) < said.index("12 relations p .0042 or less")
    three = written(by_errors(-2.3, 2.2, 2.5, *[0.0] * 9), width=140)
    assert "tried alone, r2 (p .012), r1 (p .028) and 1 more would be found" in " ".join(three.split())
    one = replace(found, shown="r1")
    assert "tried alone, r1 (p .021) would be found" in " ".join(written(one, width=140).split())
    for silent in (replace(found, shown="r2"), by_errors(2.5), by_errors(1.5, 4.0)):
        assert "tried alone" not in written(silent, width=140)


def test_behind_a_relation_that_is_not_told_others_need_what_it_needed() -> None:
    found = by_errors(2.61, 2.6, *[0.0] * 4)  # p .0091 and .0093, where .05 / 6 and .05 / 5 would be needed
    assert [needed for _, _, needed in found.by_p] == pytest.approx([0.05 / 6] * 6)
    assert set(found.told_apart.values()) == {0}


def test_of_a_heads_strongest_word_the_head_is_marked_and_its_dependent_told() -> None:
    words = "the", "old", "door", "opened"
    missed = Example(words, 2, 3, 1, Direction.STRONGEST)
    assert (missed.right, replace(missed, taken=2).right) == (False, True)
    found = made.dependencies()
    relations = replace(found.relations[0], examples=(missed,)), *found.relations[1:]
    told = " ".join(written(replace(found, relations=relations), Focus(verbose=True), width=140).split())
    assert "misses “the old door «opened»”: old, not door" in told


def test_relations_stand_in_groups_the_best_evidence_first() -> None:
    found = by_errors(0.5, -4.0, 4.0, 1.0, 5.0)
    (block,) = dependencies(found).every
    assert isinstance(block, Ranking)
    assert block.names == ("r4", "r2", "r3", "r0", "r1", found.overall.name)
    assert [heading for _, heading in block.sections] == [
        "a head is better", "cannot tell", "the distance is better", "all together",
    ]  # fmt: skip
    assert [row for row, _ in block.sections] == [0, 2, 4, 5]
    many = by_errors(*[0.1 * i for i in range(20)])
    (short,) = dependencies(many).every
    (whole,) = dependencies(many, Focus(verbose=True)).every
    assert len(short.names) == 4 + 1  # type: ignore[union-attr]
    assert short.unshown.startswith("16 relations more (-v)")  # type: ignore[union-attr]
    assert len(whole.names) == 21  # type: ignore[union-attr]


def test_what_leads_on_reads_the_same_file_in_the_same_way() -> None:
    found = made.dependencies()
    assert sheet_of(found).next is None, "of a stored result nobody knows where its treebank is"
    with as_typed(Typed(("../my.conllu", "--limit 8"), run=("--device cpu", "--trust-remote-code"))):
        led = sheet_of(found).next
    assert led is not None
    named = f"attnscope dependencies ../my.conllu --limit 8 -m {found.provenance.model}"
    assert led.command.startswith(f"{named} --device cpu --trust-remote-code --relation ")
