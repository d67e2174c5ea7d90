"""What one prompt says of heads taken away, beside other prompts."""

from collections.abc import Iterator

import numpy as np

from attnscope.analysis.prompts import NONE, OnePrompt, Seen, Spans, of_head
from attnscope.errors import InputError
from attnscope.results.claims.prompts import Asked, Figure
from attnscope.verbs.ablate.result import Ablation


def figures(result: Ablation, spans: Spans) -> OnePrompt:
    """Each head that was taken away, or what is foretold of each."""
    if result.predicted:
        return OnePrompt(Asked.RANK, dict(_foretold(result)))
    return OnePrompt(Asked.ABLATE, dict(_removed(result)))


def _removed(result: Ablation) -> Iterator[tuple[Figure, Seen]]:
    if result.places:
        raise InputError("parts and tokens are not counted over prompts: ask each of them")
    floor, unit = result.floor.rounding, result.unit.removeprefix("of ")
    for each in result.heads:
        control = floor if each.typical is None else each.typical
        first = each.rank == 1 and each.controls > 0 and abs(each.change) > floor
        yield of_head(each.layer, each.head, unit), Seen(each.change, control, stands=first)
    if (group := result.group) is not None and len(group.heads) > 1:
        change = group.effect.change
        control = floor if group.typical is None else group.typical
        first = group.below == group.controls > 0 and abs(change) > floor
        yield Figure("all at once", unit), Seen(change, control, stands=first)


def _foretold(result: Ablation) -> Iterator[tuple[Figure, Seen]]:
    really = {(each.layer, each.head): each for each in result.heads}
    by_layer = dict[int, list[tuple[int, float]]]()
    for each in result.predicted:
        by_layer.setdefault(each.layer, []).append((each.head, abs(each.change)))
    for each in result.predicted:
        others = [size for head, size in by_layer[each.layer] if head != each.head]
        typical = float(np.median(others)) if others else result.floor.rounding
        taken = really.get((each.layer, each.head))
        effect, first = (NONE, False) if taken is None else (taken.change, taken.rank == 1)
        seen = Seen(each.change, typical, effect, first and abs(effect) > result.floor.rounding)
        yield of_head(each.layer, each.head, f"foretold {result.unit.removeprefix('of ')}"), seen
