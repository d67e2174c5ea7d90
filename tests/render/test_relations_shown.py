"""Relations of a treebank as they are shown: each beside its control, within the width, in every form."""

import made_relations as made
import numpy as np
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.patches import Rectangle

from attnscope.render.figure import figure_of
from attnscope.render.look import USUAL
from attnscope.render.relations.figure import ordered
from attnscope.render.relations.words import LEAST, shown_relations


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
            assert f"{each.baseline.offset:+d}" in line
            assert each.best.name in line


def test_rare_relations_are_left_to_the_files_and_said() -> None:
    result = made.dependencies()
    rare = [each for each in result.relations if each.count < LEAST]
    assert [each.name for each in rare] == ["vocative"]
    assert "vocative" not in result.text().replace("in the files", "")
    assert "1 relation with fewer than 20 edges: in the files" in result.text()
    assert "vocative" in set(result.to_pandas().relation)


def test_what_was_left_out_and_what_causality_allows_is_said() -> None:
    told = " ".join(made.dependencies(ahead=False).text().split())
    assert "left out: 2 sentences without an edge, 1 sentence longer than 512 tokens" in told
    assert "3 edges of words without a piece" in told
    assert "no head looks ahead" in told
    assert "no head looks ahead" not in made.dependencies().text()


def test_a_picture_has_each_head_beside_its_offset_at_their_accuracies() -> None:
    result = made.dependencies()
    (axes,) = figure_of(result, look=USUAL).axes
    lines = {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}
    relations = ordered(result)
    assert lines["best head"].get_xdata() == pytest.approx([each.best.accuracy for each in relations])
    assert lines["best fixed offset"].get_xdata() == pytest.approx(
        [each.baseline.accuracy for each in relations]
    )
    held = [each.held_out.accuracy for each in relations if each.held_out is not None]
    assert lines["head chosen on other sentences"].get_xdata() == pytest.approx(held)
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == [f"{each.name}  {each.count:,}" for each in relations]


def test_one_relation_has_both_directions_on_one_scale_and_outlines_what_beats_the_offset() -> None:
    result = made.dependencies("nsubj")
    panels = figure_of(result).axes
    values = result.by_head("nsubj")
    relation = result.relation("nsubj")
    assert len(panels) == 2
    for k, axes in enumerate(panels):
        (mesh,) = (each for each in axes.collections if isinstance(each, QuadMesh))
        assert np.asarray(mesh.get_array()).reshape(values.shape[:2]) == pytest.approx(values[:, :, k])
        assert (mesh.norm.vmin, mesh.norm.vmax) == (0, 1)
        outlined = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
        assert len(outlined) == int(np.sum(values[:, :, k] > relation.baseline.accuracy))
