"""What a head is held against, a dot each: the best head of every control, or every other head alone."""

from collections.abc import Iterator

import numpy as np

from attnscope.render.kit.numbers import cell, signed
from attnscope.render.sheet.drawings import Heap
from attnscope.render.sheet.said import name, named
from attnscope.render.sheets.finding_words import said
from attnscope.render.words import Said
from attnscope.results import Ablation, Finding

_FEW = 3  # others of which a heap says something


def of_finding(result: Finding) -> Iterator[Heap]:
    """How far the best head of each control lies above its own controls, and the best head of the text.

    Counted in the spread of each head (Westfall and Young 1993); none without a ranking or controls.
    """
    best = result.controls.best_excess
    best = np.maximum(best[np.isfinite(best)], 0.0)
    if not result.ranking or not len(best):
        return
    first = result.ranking[0]
    own = max(float(result.evidence.excess[first]), 0.0)
    beyond = int((best >= own).sum())
    say = said(result)
    yield Heap(
        title=say("heap_title", named(result, first), beyond, len(best)),
        dots=say("heap_dots"),
        values=tuple(best.tolist()),
        name=named(result, first),
        own=own,
        measured=say("heap_measured"),
        form=lambda value: cell(value, 1),
    )


def of_ablation(result: Ablation, say: Said) -> Iterator[Heap]:
    """What the answer becomes without each other head that was tried alone; none of few."""
    if not result.heads:
        return
    first, *others = result.heads
    tried = {(each.layer, each.head): each.change for each in (*others, *result.floor.random)}
    tried.pop((first.layer, first.head), None)
    if len(tried) < _FEW:
        return
    head = name(first.layer, first.head)
    larger = sum(abs(each) > abs(first.change) for each in tried.values())
    yield Heap(
        title=say("heap_title", head, larger, len(tried)),
        dots=say("heap_dots"),
        values=tuple(tried.values()),
        name=head,
        own=first.change,
        measured=say("measured_words"),
        form=signed,
    )
