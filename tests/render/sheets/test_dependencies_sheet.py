"""Relations of a treebank as they are shown: each beside its control, within the width, in every form."""

from dataclasses import replace

import made_relations as made
import numpy as np
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attnscope.errors import InputError
from attnscope.render.figure import figure_of
from attnscope.render.kit.numbers import weight
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheets.dependencies import LEAST, finder, shown_relations
from attnscope.render.sheets.dependencies import sheet as dependencies
from attnscope.results import Dependencies
from attnscope.results.claims.relations import Offset


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("shown", ["", "det"])
def test_every_line_is_within_its_width_and_every_best_has_its_control(width: int, shown: str) -> None:
    result = made.dependencies(shown)
    text = result.text(width=width)
    assert max(map(len, text.splitlines())) <= width
    assert f"the best of {result.tried}" in " ".join(text.split())
    if not shown:
        for each in shown_relations(result):
            line = next(line for line in text.splitlines() if line.startswith(each.name))
            assert f"| {each.baseline.offset:+d}".replace("-", "−") in line
            assert each.best.name in line


def test_rare_relations_are_left_to_the_files_and_said() -> None:
    result = made.dependencies()
    rare = [each for each in result.relations if each.count < LEAST]
    assert [each.name for each in rare] == ["vocative"]
    assert "vocative" not in result.text().replace("in the files", "")
    assert "1 relation with fewer than 20 edges, in the files" in result.text()
    assert "vocative" in set(result.to_pandas().relation)


def test_what_was_left_out_and_what_causality_allows_is_said() -> None:
    told = " ".join(made.dependencies(ahead=False).text().split())
    assert "left out: 2 sentences without an edge, 1 sentence longer than 512 tokens" in told
    assert "3 edges of words without a piece" in told
    assert "no head looks ahead" in told
    assert "no head looks ahead" not in made.dependencies().text()


def test_a_picture_has_each_head_beside_its_offset_at_their_accuracies() -> None:
    result = made.dependencies()
    axes = figure_of(result).axes[0]
    lines = {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}
    relations = shown_relations(result)
    gains = [each.best.accuracy - each.baseline.accuracy for each in relations[1:]]
    assert relations[0] is result.overall
    assert gains == sorted(gains, reverse=True)
    best, fixed = lines["best head, 95 %"], lines["best fixed offset, 95 %"]
    assert best.get_xdata() == pytest.approx([each.best.accuracy for each in relations])
    assert fixed.get_xdata() == pytest.approx([each.baseline.accuracy for each in relations])
    assert all(np.asarray(fixed.get_ydata()) > np.asarray(best.get_ydata())), "beside it, and not on it"
    held = [each.held_out.accuracy for each in relations if each.held_out is not None]
    assert lines["head chosen on other sentences"].get_xdata() == pytest.approx(held)
    told = [each.get_text() for one in figure_of(result).axes[0].child_axes for each in one.texts]
    assert [f"{finder(each)} | {each.baseline.offset:+d}".replace("-", "−") for each in relations] == told[
        len(relations) :
    ]


def test_one_relation_has_both_directions_on_one_scale_and_outlines_what_beats_the_offset() -> None:
    result = made.dependencies("nsubj")
    panels = [
        each for each in figure_of(result).axes if any(isinstance(one, QuadMesh) for one in each.collections)
    ]
    values, relation = result.by_head("nsubj"), result.relation("nsubj")
    grids = [(axes, mesh) for axes in panels for mesh in axes.collections if np.size(mesh.get_array()) == 12]
    assert len(grids) == 2
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
    assert block.table["gain"].values == pytest.approx(values[:10] - relation.baseline.accuracy)
    assert block.marks[1].at == [relation.baseline.accuracy]
    assert block.hidden == values.size - 10
    answer = dependencies(result).answer
    assert (
        f"{int((values > relation.baseline.accuracy).sum())} of {result.tried} are better than that" in answer
    )
    assert relation.held_out is not None
    assert f"judged on those between: {weight(relation.held_out.accuracy)}, " in answer
    with pytest.raises(InputError, match="one relation has a panel for each direction"):
        result.plot(ax=Figure().add_subplot())


def test_what_is_better_is_told_by_the_sentences_that_were_held_out() -> None:
    result = made.dependencies()
    (block,) = dependencies(result).every
    assert isinstance(block, Ranking)
    better = dict(zip(block.names, block.table["better"].values, strict=True))
    assert {each.name: better[each.name] == "head" for each in shown_relations(result)} == {
        each.name: each.told_apart > 0 for each in shown_relations(result)
    }
    count = sum(each.told_apart > 0 for each in shown_relations(result)[1:])
    assert dependencies(result).answer.startswith(
        f"On sentences held out the head is better for {count} of 3 relations"
    )
    assert "cannot be told apart" in dependencies(beaten(result)).answer
    assert "as good as every head, or better: nsubj, det, punct." in dependencies(beaten(result)).answer


def beaten(found: Dependencies) -> Dependencies:
    """The same where offsets find all, and no sentence is held out."""
    fixed = Offset(1.0, 1.0, 1.0, -2)
    relations = tuple(replace(each, baseline=fixed, held_out=None) for each in found.relations)
    return replace(found, relations=relations)
