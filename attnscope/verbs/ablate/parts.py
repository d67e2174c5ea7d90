"""Parts of layers changed in turn, at all tokens or at some of them, each beside others and rounding.

all tokens        layer by layer, beside the same part of the other layers
some tokens       layer by layer, beside as many other tokens of the same layer, drawn by lot
token by token    the grid of layers and tokens, each beside the other tokens of its layer
one path          what a change does along it, beside what it does by all, and along it to other heads
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from attnscope.analysis.answers.experiment import (
    MOST_DRAWN,
    against,
    floor_of,
    groups_drawn,
    head_counts,
    layers_drawn,
)
from attnscope.analysis.answers.question import Tell
from attnscope.analysis.answers.replacing import Replacement
from attnscope.capture.intervening.changes import Change, Cut, Rounded, Tap, Variant, Via, What, Write
from attnscope.capture.intervening.experiments import Experiments
from attnscope.results.claims.effect import Beside, Effect, Floor, Group, Part, Path, PlaceEffect, Receiver

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Asked:
    """The places that are changed: which part of which layers, or which heads, at which tokens.

    `tokens` are the sets of positions, each changed by itself; one that is empty means all of them. Of a
    link they are the keys that `queries` do not look at.
    """

    part: Part
    layers: tuple[int, ...]
    tokens: tuple[Tokens, ...] = ((),)
    heads: tuple[tuple[int, int], ...] = ()
    queries: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Places:
    """The effects by layers and tokens, what each is held against, the noise floor, and the path."""

    effects: tuple[PlaceEffect, ...]
    beside: str
    floor: Floor
    path: Path | None


Cell = tuple[int, int | None, Tokens]  # layer, head, positions


def changed_in_turn(
    experiments: Experiments,
    taps: Mapping[int, Tap],
    asked: Asked,
    instead: Replacement,
    tell: Tell,
    *,
    length: int,
    seed: int,
    path: Path | None = None,
) -> Places:
    """Every place changed by itself, all ways or along one path; `length` is how many tokens there are."""
    cells = _cells(asked)
    drawn = [] if len(asked.tokens) > 1 else _others(asked, length, seed)
    make = _made(experiments, taps, asked, instead)
    *outcomes, rounded = along(experiments, path).run(
        [*map(make, (*cells, *drawn)), _rounding(experiments, taps, asked)]
    )
    effects = [tell(each.scores) for each in outcomes]
    several = dict(zip((*cells, *drawn), effects, strict=True))
    found = tuple(_beside(cell, several) for cell in cells)
    found = beside_all_ways(experiments, path, found, lambda one: make(_cell(one)), tell)
    best = make(_cell(max(found, key=lambda one: abs(one.change))))
    path = beside_other_receivers(experiments, path, best, tell, seed)
    return Places(found, _told(asked, drawn), floor_of(tell, outcomes, rounded, (), seed), path)


def _cell(one: PlaceEffect) -> Cell:
    return one.layer, one.head, one.positions


def brought_back(
    there: Experiments, taps: Mapping[int, Tap], asked: Asked, mine: Replacement, tell: Tell
) -> list[float]:
    """What of the answer each place alone brings back in the other text, with this one's part put in."""
    make = _made(there, taps, asked, mine)
    return [tell(each.scores).change for each in there.run(list(map(make, _cells(asked))))]


def _cells(asked: Asked) -> list[Cell]:
    rows: Sequence[tuple[int, int | None]] = asked.heads or [(layer, None) for layer in asked.layers]
    return [(layer, head, tokens) for layer, head in rows for tokens in asked.tokens]


def _others(asked: Asked, length: int, seed: int) -> list[Cell]:
    """As many other tokens, next to one another, of the same layers; none where all tokens are meant."""
    (mine,) = asked.tokens
    if not mine:
        return []
    starts = [
        start for start in range(length - len(mine) + 1) if not {*range(start, start + len(mine))} & {*mine}
    ]
    some = sorted(np.random.default_rng(seed).permutation(starts)[:MOST_DRAWN].tolist())
    rows: Sequence[tuple[int, int | None]] = asked.heads or [(layer, None) for layer in asked.layers]
    return [(*row, tuple(range(start, start + len(mine)))) for row in rows for start in some]


def _made(
    experiments: Experiments, taps: Mapping[int, Tap], asked: Asked, instead: Replacement
) -> Callable[[Cell], Variant]:
    counts = head_counts(experiments)

    def make(cell: Cell) -> Variant:
        layer, head, tokens = cell
        if asked.part in (Part.HEAD, Part.ATTENTION):
            what: What = instead.what if asked.queries is None else Cut(asked.queries, tokens)
            at = tokens if tokens and asked.queries is None else None
            heads = range(counts[layer]) if head is None else [head]
            return tuple(Change(layer, each, what, at) for each in heads)
        tap = taps[layer]
        return (Write(tap, instead.rows[tap] if instead.rows else None, tokens or None),)

    return make


def _rounding(experiments: Experiments, taps: Mapping[int, Tap], asked: Asked) -> Variant:
    """Every number of the first layer that is looked at moved by its own precision."""
    first = min((layer for layer, _ in asked.heads), default=min(asked.layers, default=0))
    if taps:
        return (Write(taps[min(taps) if first not in taps else first], rounded=True),)
    return tuple(Change(first, head, Rounded()) for head in range(head_counts(experiments)[first]))


def _beside(cell: Cell, several: Mapping[Cell, Effect]) -> PlaceEffect:
    """The effect at a place beside other tokens of its row, or where there are none beside other layers."""
    layer, head, tokens = cell
    row = [each for each in several if each[:2] == cell[:2] and each != cell]
    others = row if tokens else [each for each in several if each != cell]
    typical, below = against(several[cell], [several[each] for each in others])
    one = PlaceEffect(**vars(several[cell]), layer=layer, head=head, positions=tokens)
    return replace(one, typical=typical, below=below, controls=len(others))


def _told(asked: Asked, drawn: Sequence[Cell]) -> str:
    row = "head" if asked.heads else "layer"
    if asked.part is Part.POSITION:
        return "other positions"
    if len(asked.tokens) > 1:
        return f"other {'keys' if asked.queries is not None else 'tokens'} of the same {row}"
    if asked.tokens[0]:
        few = "tokens" if len(asked.tokens[0]) == 1 else f"stretches of {len(asked.tokens[0])} tokens"
        return f"other {few} of the same {row}, drawn by lot" if drawn else ""
    return f"the other {row}s"


One = TypeVar("One", bound=Beside)


def along(experiments: Experiments, path: Path | None) -> Experiments:
    """The same experiments, with what is changed let along this path alone where there is one."""
    return experiments if path is None else experiments.along(Via(path.receivers, path.direct))


def beside_all_ways(
    experiments: Experiments,
    path: Path | None,
    effects: Sequence[One],
    made: Callable[[One], Variant],
    tell: Tell,
) -> tuple[One, ...]:
    """The effects along a path, each with that of the same change where it comes to everything."""
    if path is None:
        return tuple(effects)
    outcomes = experiments.run([made(each) for each in effects])
    return tuple(
        replace(one, whole=tell(outcome.scores).change)
        for one, outcome in zip(effects, outcomes, strict=True)
    )


def beside_other_receivers(
    experiments: Experiments, path: Path | None, variant: Variant, tell: Tell, seed: int
) -> Path | None:
    """The path with what this change does where it comes to as many other heads of the same layers.

    Where all heads of the layers are its receivers, to all of as many other layers that come after it.
    """
    if path is None:
        return None
    mine = [(each.layer, each.head) for each in path.receivers]
    inputs, counts = [each.inputs for each in path.receivers], head_counts(experiments)
    groups = groups_drawn(mine, counts, seed) if mine else []
    if not groups and len({*inputs}) == 1:
        first = min(change.layer for change in variant)
        later = {layer: count for layer, count in counts.items() if layer > first}
        groups = layers_drawn(mine, later, seed) if {layer for layer, _ in mine} <= set(later) else []
    others = []
    for heads in groups:
        by_head = inputs if len(inputs) == len(heads) else inputs[:1] * len(heads)
        receivers = tuple(Receiver(*head, by) for head, by in zip(heads, by_head, strict=True))
        (outcome,) = experiments.along(Via(receivers, path.direct)).run([variant])
        others.append(Group(heads, tell(outcome.scores)))
    return replace(path, others=tuple(others))
