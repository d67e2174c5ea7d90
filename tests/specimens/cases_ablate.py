"""A result for every case and every optional part of what `ablate` says."""

from dataclasses import replace
from functools import partial
from typing import Any

import made_ablation as made
import numpy as np

from attnscope.render.focus import Focus
from attnscope.render.sheets import ablation_words
from attnscope.results import Ablation, Kind, Verdict
from attnscope.results.claims.ablation import Case, Method, ranked
from attnscope.results.claims.effect import (
    Answer,
    Asks,
    Effect,
    Floor,
    Group,
    HeadEffect,
    Path,
    PlaceEffect,
    Receiver,
)
from attnscope.results.claims.intervention import Intervention, Measured, Part

SAID, CASES = ablation_words.said, Case
WHOLE = Focus(verbose=True)
GAP = Effect(0.25, 0.5, 0.69, 0.1)


def one(change: float, **beside: Any) -> HeadEffect:
    return made.effect(1, 0, change, **({"typical": 0.2, "below": 11, "controls": 11} | beside))


def alone(*heads: HeadEffect, **other: Any) -> Ablation:
    return made.ablation(heads=heads, **other)


def several(change: float, typical: float, **other: Any) -> Ablation:
    heads = (made.effect(1, i, change + i / 100, typical=typical, controls=3) for i in range(4))
    return alone(*heads, **other)


def at_once(**other: Any) -> Ablation:
    group = made.together().group
    assert group is not None
    return replace(made.together(), group=replace(group, **other))


def together(change: float) -> Ablation:
    """Both heads at once, where each alone makes -1.5 and .1."""
    return at_once(effect=Effect(made.BEFORE, made.BEFORE * float(np.exp(change)), change, 1.1))


def many(layers: int, heads: int) -> Ablation:
    values = np.random.default_rng(0).normal(size=(layers, heads)) ** 3
    effects = [
        HeadEffect(0.25, 0.2, float(value), 0.1, *place, typical=0.1, below=3, controls=heads - 1)
        for place, value in np.ndenumerate(values)
    ]
    return made.ablation(heads=ranked(tuple(effects)))


def of_layers(*changes: float, part: Part = Part.MLP, **more: Any) -> Ablation:
    """A part of each of so many layers, changed at all tokens."""
    controls = len(changes) - 1
    places = tuple(
        PlaceEffect(
            made.BEFORE, made.BEFORE * float(np.exp(change)), change, 0.1, layer=layer, typical=0.2,
            below=sum(abs(each) < abs(change) for each in changes), controls=controls,
        )
        for layer, change in enumerate(changes)
    )  # fmt: skip
    plain = replace(made.mlps(), measured=Measured.CHANCE, against=None)
    return replace(plain, places=places, part=part, **more)


def at(found: Ablation, *positions: int) -> Ablation:
    return replace(found, places=tuple(replace(each, positions=positions) for each in found.places))


def by_token(*changes: float, **more: Any) -> Ablation:
    """A part at each of so many tokens of one layer."""
    found = of_layers(*changes)
    places = tuple(replace(one, layer=0, positions=(i,)) for i, one in enumerate(found.places))
    return replace(found, **({"places": places, "beside": "other tokens of the same layer"} | more))


def link_by_key(*changes: float) -> Ablation:
    return by_token(*changes, part=Part.ATTENTION, method=Method.LINK, link=(4, 2))


def answered(asks: Asks, measured: Measured = Measured.CHANCE, **other: Any) -> Ablation:
    position = 4 if asks in (Asks.MASK, Asks.NEXT, Asks.TAG) else None
    answer = Answer(asks, "the door opened", (1, 2), position, made.BEFORE)
    return alone(one(-0.9), answer=answer, measured=measured, **other)


def read_by(*receivers: Receiver, direct: bool = False, others: tuple[Group, ...] = ()) -> Ablation:
    return replace(made.along(), path=Path(receivers, direct, others))


def others(*groups: tuple[tuple[int, int], ...], change: float = -0.05) -> tuple[Group, ...]:
    effect = Effect(made.BEFORE, made.BEFORE * float(np.exp(change)), change, 0.01)
    return tuple(Group(heads, effect) for heads in groups)


def all_of(*layers: int) -> tuple[Receiver, ...]:
    return tuple(Receiver(layer, head, "k") for layer in layers for head in range(4))


def toward(*changes: float, enough: tuple[float, ...] = (), **other: Any) -> Ablation:
    """MLPs from another text, in which the answer has twice the probability."""
    found = of_layers(*changes, method=Method.TEXT, total=GAP, **other)
    back = (replace(place, enough=each) for place, each in zip(found.places, enough, strict=False))
    return replace(found, places=tuple(back) or found.places)


RIVAL = Answer(Asks.MASK, "wall", (9,), 4, 0.1, likeliest=False)
EXAMPLES: dict[str, Any] = {
    "one": lambda: alone(one(-1.5, instead="lid")),
    "one, and others change it more": lambda: alone(one(0.4, below=7)),
    "one, and another changes it more": lambda: alone(one(0.4, below=10)),
    "one, not five times the typical head": lambda: alone(one(-0.5)),
    "one, alone in its layer": lambda: alone(made.effect(1, 0, -0.5)),
    "one, hardly": lambda: alone(one(-0.09, typical=0.001)),
    "one, the least of all": lambda: alone(one(-1e-4, below=0)),
    "rounding": lambda: alone(one(2e-7)),
    "rounding of many": lambda: alone(one(2e-7), made.effect(1, 1, 1e-7)),
    "each": made.ablation,
    "each, foretold": made.foretold,
    "each, foretold, too few to compare": lambda: replace(made.foretold(), rank_correlation=None),
    "none stands out": lambda: several(-0.5, 0.4),
    "none stands out, another answer": lambda: alone(
        *(replace(each, instead="lid") for each in several(-0.5, 0.4).heads)
    ),
    "many, hardly": lambda: several(0.01, 0.01),
    "many, far more than there is room": lambda: many(12, 32),
    "together": lambda: at_once(controls=12, below=12),
    "together, all columns": (made.together, WHOLE),
    "together, as much": lambda: together(-1.4),
    "together, less": lambda: together(-0.4),
    "together, the opposite": lambda: together(0.4),
    "together, hardly": lambda: together(-0.05),
    "together, one other": lambda: at_once(controls=1, below=1),
    "together, no other group": lambda: at_once(typical=None, controls=0, below=0),
    "together, a whole layer": lambda: at_once(of_layers=True, controls=3),
    "together, whole layers": lambda: at_once(of_layers=True, heads=((0, 0), (1, 0)), controls=3),
    "together, many": lambda: at_once(heads=((0, 0), (0, 1), (1, 0), (1, 2)), controls=3),
    "a link": lambda: replace(made.link(), heads=(one(-1.5),)),
    "a link of spans": lambda: replace(made.link(), link_spans=((4,), (1, 2))),
    "a link in each": made.link,
    "a link by layers": lambda: at(replace(link_by_key(), places=of_layers(-1.5, 0.2).places), 2),
    "a link by keys": lambda: link_by_key(-0.9, -0.1, 0.2),
    "a mean": lambda: alone(one(-1.5), method=Method.MEAN, how="each output replaced by its mean"),
    "part of the gap": made.patched,
    "beyond the gap": lambda: replace(made.patched(), heads=(one(-12.0), made.effect(1, 1, 0.1))),
    "none of the gap": lambda: replace(made.patched(), total=GAP, heads=(one(-0.3),)),
    "no gap": lambda: replace(made.patched(), total=Effect(0.25, 0.25, 1e-5, 0.0)),
    "hardly a gap": lambda: replace(made.patched(), total=Effect(0.25, 0.26, 0.04, 0.0)),
    "a gap less than one head": lambda: replace(
        made.patched(), total=Effect(0.25, 0.28, 0.12, 0.0), heads=(one(-1.5),)
    ),
    "another text, a vector": lambda: answered(
        Asks.VECTOR, Measured.TURN, method=Method.TEXT, other=made.grid().tokens
    ),
    "where it stands": made.grid,
    "where it stands, in three steps": lambda: replace(
        made.grid(), places=tuple(replace(each, layer=i) for i, each in enumerate(made.grid().places))
    ),
    "places of the gap": lambda: toward(0.6, 0.1, enough=(-0.5, 0.1)),
    "places of the gap, nothing back": lambda: toward(0.6, 0.1, enough=(0.5, 0.1)),
    "places of the gap, beyond back": lambda: toward(0.6, 0.1, enough=(-2.5, 0.1)),
    **{f"of {asks}": partial(answered, asks) for asks in Asks if asks is not Asks.VECTOR},
    "a vector": lambda: answered(Asks.VECTOR, Measured.TURN),
    "a vector beside another": lambda: answered(Asks.VECTOR, Measured.SIMILARITY, against=RIVAL),
    "a lead": made.mlps,
    "a lead of one": lambda: answered(Asks.MASK, Measured.DIFFERENCE, against=RIVAL),
    "a lead towards another text": lambda: replace(
        made.grid(), measured=Measured.DIFFERENCE, against=RIVAL
    ),
    "along a path": made.along,
    "along a path, none more": lambda: replace(made.along(), heads=made.along().heads[1:]),
    "along a path, parts of layers": lambda: replace(of_layers(-1.5, 0.2), path=made.along().path),
    "along a path to the answer": lambda: read_by(direct=True),
    "along a path to heads and the answer": lambda: read_by(
        Receiver(1, 1, "qk"), direct=True, others=others(((1, 2), (2, 3)))
    ),
    "along a path to a layer": lambda: read_by(*all_of(1), others=others(tuple((2, i) for i in range(4)))),
    "along a path to layers": lambda: read_by(*all_of(1, 2), others=others(((3, 0), (4, 0)), change=1e-9)),
    "along a path to some heads": lambda: read_by(
        *all_of(1), *all_of(2), others=others(((1, 4), (2, 4)), ((1, 5), (2, 5)))
    ),
    "one layer most": lambda: of_layers(-1.5, 0.2),
    "one layer": lambda: of_layers(-1.5),
    "attention": lambda: of_layers(-0.5, -0.4, part=Part.ATTENTION),
    "hardly a layer": lambda: of_layers(-0.01, 0.01),
    "residual": lambda: of_layers(-1.5, 0.2, part=Part.RESIDUAL),
    "heads by token": lambda: replace(
        by_token(-1.5, 0.2, 0.1, 0.1), part=Part.HEAD,
        places=tuple(replace(each, head=2) for each in by_token(-1.5, 0.2, 0.1, 0.1).places),
    ),
    "positions": lambda: by_token(
        *(-0.5, 0.01) * 3, part=Part.POSITION, method=Method.MEAN, beside="other positions"
    ),
    "many layers": lambda: of_layers(*(-0.5, 0.01) * 9),
    "at tokens": lambda: at(of_layers(-1.5, 0.2), 1, 2),
    "another of the texts": lambda: replace(made.ablation(), kind=Kind.DECODER, target=made.grid().tokens),
    "drawn": lambda: alone(one(-1.5), floor=Floor(1e-7, 0.0, 0, (made.effect(1, 1, 0.4),), 3)),
    "no rounding": lambda: made.ablation(floor=Floor(0.0, 0.0, 2, (), 0)),
    "not as asked": lambda: made.ablation(intervention=Intervention.of(1, 2, 0, True)),
    "unseen": lambda: made.ablation(intervention=Intervention.of(1, 0, 2, True)),
    "unfaithful": lambda: made.ablation(intervention=Intervention.of(3, 0, 0, False)),
    "stored": lambda: made.ablation(intervention=Intervention(3, 0, 0, True, Verdict.STORED)),
    "no head": lambda: made.ablation(heads=()),
}  # fmt: skip
