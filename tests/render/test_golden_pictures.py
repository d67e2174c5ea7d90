"""Pictures that look as they did when someone last looked at them, and changes that cannot pass unseen."""

from dataclasses import replace

import cases_ablate
import cases_find
import made_reports
import made_results as made
import numpy as np
import pytest
from golden_picture import alike, apart, drawn, golden
from golden_text import GOLDEN

from attnscope.render.focus import Focus
from attnscope.render.plot import heat
from attnscope.results import Result
from attnscope.vocabulary import Scaling

NAMES = ["[CLS]", "I", "was", "watching", "the", "[MASK]", "when", "it", "opened", ".", "[SEP]"]
HEAD = made.head(NAMES)
PICTURES: dict[str, Result] = {
    "picture_head": HEAD,
    "picture_overview": made.overview(4, 12, NAMES),
    "picture_find": cases_find.finding(),
    "picture_ablate": cases_ablate.ablation(),
    "picture_tsne": made.projection(HEAD),
    "picture_report": made_reports.report(HEAD),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_looks_as_it_did(name: str) -> None:
    shown = drawn(PICTURES[name])
    kept = golden(name, PICTURES[name])
    assert alike(shown, kept), "RMS {:.1f}, most {:.0f}".format(*apart(shown, kept))


def test_no_picture_looks_like_another() -> None:
    shown = {name: drawn(result) for name, result in PICTURES.items()}
    assert all(alike(shown[a], shown[b]) is (a == b) for a in shown for b in shown)


def test_another_scale_of_colours_is_seen() -> None:
    kept = golden("picture_head", HEAD)
    assert alike(drawn(HEAD), kept)
    assert not alike(drawn(HEAD, Focus(scale=Scaling.ONE)), kept)
    assert not alike(drawn(HEAD, Focus(scale=Scaling.MAX)), kept)


def test_another_colour_of_the_same_shades_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heat, "WEIGHTS", heat.WEIGHTS.reversed())
    assert not alike(drawn(HEAD), golden("picture_head", HEAD))


def test_two_swapped_rows_are_seen() -> None:
    order = np.arange(len(NAMES))
    order[[5, 6]] = 6, 5
    swapped = replace(HEAD, weights=HEAD.weights[order])
    assert not alike(drawn(swapped), golden("picture_head", HEAD))


def test_two_swapped_heads_are_seen() -> None:
    found, weights = cases_find.finding(), cases_find.finding().weights.copy()
    first, third = found.ranking[0], found.ranking[2]
    weights[first], weights[third] = weights[third], weights[first]
    assert not alike(drawn(replace(found, weights=weights)), golden("picture_find", found))


def test_the_pictures_are_small() -> None:
    assert sum((GOLDEN / f"{name}.png").stat().st_size for name in PICTURES) < 300_000
