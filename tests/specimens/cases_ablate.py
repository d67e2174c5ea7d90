"""A result for every case and every optional part of what `ablate` says."""

from dataclasses import replace
from functools import partial
from typing import Any

import made_results as made
import numpy as np

from attnscope.render.sheets import Focus
from attnscope.results import Ablation, Kind, Verdict
from attnscope.results.claims.effect import (
    Answer,
    Asks,
    Effect,
    Floor,
    Group,
    HeadEffect,
    Intervention,
    Measured,
    Method,
    Part,
    Path,
    PlaceEffect,
    Predicted,
    Receiver,
    ranked,
)
from attnscope.verbs.ablate import sheet as ablation_words
from attnscope.verbs.ablate.result import Case

BEFORE = 0.25


def effect(layer: int, head: int, change: float, **beside: object) -> HeadEffect:
    after = BEFORE * 2.718281828459045**change
    return HeadEffect(BEFORE, after, change, change**2, layer, head, **beside)  # type: ignore[arg-type]


def ablation(**other: object) -> Ablation:
    """Two layers of three heads, each in turn."""
    head = made.head()
    heads = [
        effect(0, 0, 0.02, typical=0.07, below=0, controls=2),
        effect(0, 1, -0.12, typical=0.02, below=2, controls=2),
        effect(0, 2, 0.02, typical=0.07, below=0, controls=2),
        effect(1, 0, -1.5, typical=0.2, below=2, controls=2),
        effect(1, 1, 0.25, typical=0.75, below=1, controls=2),
        effect(1, 2, 0.0, typical=0.95, below=0, controls=2),
    ]
    result = Ablation(
        tokens=head.query_tokens,
        target=None,
        kind=Kind.ENCODER,
        answer=Answer(Asks.MASK, "door", (7,), 4, BEFORE),
        method=Method.ZERO,
        how="each output replaced by zeros",
        heads=ranked(tuple(heads)),
        group=None,
        floor=Floor(3e-7, 2e-9, 2, (), 0),
        intervention=Intervention.of(2, 0, 0, True),
        provenance=head.provenance,
    )
    return replace(result, **other)  # type: ignore[arg-type]


def together() -> Ablation:
    """Two heads of one layer, alone and at once, beside a random one."""
    heads = (effect(1, 0, -1.5, typical=0.4, below=1, controls=1), effect(1, 2, 0.1, typical=0.4, controls=1))
    group = Group(((1, 0), (1, 2)), Effect(BEFORE, 0.04, float(np.log(0.04 / BEFORE)), 1.1), 0.9, 2, 2)
    return ablation(heads=heads, group=group, floor=Floor(1e-7, 0.0, 0, (effect(1, 1, 0.4),), 3))


def foretold() -> Ablation:
    """The first three of six heads by what was foretold."""
    heads = (
        effect(1, 0, -1.5, typical=0.4, below=1, controls=1, predicted=-0.9),
        effect(0, 2, 0.3, typical=0.01, below=2, controls=2, predicted=0.5),
        effect(0, 1, -0.12, typical=0.01, below=2, controls=2, predicted=0.2),
    )
    predicted = tuple(
        Predicted(layer, head, value)
        for layer, head, value in (
            (1, 0, -0.9),
            (0, 2, 0.5),
            (0, 1, 0.2),
            (1, 1, 0.1),
            (0, 0, 0.0),
            (1, 2, 0.0),
        )
    )
    method = {"method": Method.MEAN, "how": "each output replaced by its mean"}
    return ablation(heads=heads, predicted=predicted, rank_correlation=0.5, **method)


def patched() -> Ablation:
    """Every head from another text, in which the answer is not probable."""
    other = made.head().query_tokens
    total = Effect(BEFORE, 0.0001, float(np.log(0.0001 / BEFORE)), 6.5)
    return ablation(method=Method.TEXT, how="each output of the other text", other=other, total=total)


def link() -> Ablation:
    """One link cut."""
    return ablation(method=Method.LINK, link=(4, 2), how="the attention of 4 to 2 cut")


def grid() -> Ablation:
    """What two layers hand on at each of three tokens, from another text and the other way round."""
    tokens = made.head().query_tokens
    changes = ((-0.02, 0.4, -6.1), (0.01, -7.7, 0.0))
    places = tuple(
        PlaceEffect(
            BEFORE, BEFORE * 2.718281828459045**change, change, change**2, layer=layer, positions=(token,),
            typical=0.2, below=int(abs(change) > 1), controls=2, enough=0.9 * -change,
        )
        for layer, row in enumerate(changes)
        for token, change in enumerate(row)
    )  # fmt: skip
    return ablation(
        heads=(),
        places=places,
        part=Part.RESIDUAL,
        beside="other tokens of the same layer",
        method=Method.TEXT,
        how="what each part hands on replaced by what it hands on in the other text",
        other=tokens,
        total=Effect(BEFORE, 0.0001, float(np.log(0.0001 / BEFORE)), 6.5),
    )


def along() -> Ablation:
    """Three heads of the first layer, read by the keys of one head of the second alone."""
    heads = (
        effect(0, 1, -1.2, typical=0.15, below=2, controls=2, whole=-2.5),
        effect(0, 0, 0.2, typical=0.65, below=1, controls=2, whole=0.3),
        effect(0, 2, -0.1, typical=0.7, below=0, controls=2, whole=0.4),
    )
    others = tuple(
        Group(((1, head),), Effect(BEFORE, BEFORE * 2.718281828459045**change, change, 0.01))
        for head, change in ((1, -0.05), (2, 0.03))
    )
    return ablation(heads=heads, path=Path((Receiver(1, 0, "k"),), direct=False, others=others))


def mlps() -> Ablation:
    """Two MLPs removed, by how far the answer lies above another one."""
    places = tuple(
        PlaceEffect(3.5, 3.5 + change, change, 0.1, layer=layer, typical=0.9, below=1 - layer, controls=1)
        for layer, change in enumerate((-2.25, 0.9))
    )
    rival = Answer(Asks.MASK, "wall", (9,), 4, 0.1, likeliest=False)
    return ablation(
        heads=(),
        places=places,
        part=Part.MLP,
        beside="the other layers",
        measured=Measured.DIFFERENCE,
        against=rival,
        how="what each part hands on replaced by zeros",
    )


SAID, CASES = ablation_words.said, Case
WHOLE = Focus(verbose=True)
GAP = Effect(0.25, 0.5, 0.69, 0.1)


def one(change: float, **beside: Any) -> HeadEffect:
    return effect(1, 0, change, **({"typical": 0.2, "below": 11, "controls": 11} | beside))


def alone(*heads: HeadEffect, **other: Any) -> Ablation:
    return ablation(heads=heads, **other)


def several(change: float, typical: float, **other: Any) -> Ablation:
    heads = (effect(1, i, change + i / 100, typical=typical, controls=3) for i in range(4))
    return alone(*heads, **other)


def at_once(**other: Any) -> Ablation:
    group = together().group
    assert group is not None
    return replace(together(), group=replace(group, **other))


def of_group(change: float) -> Ablation:
    """Both heads at once, where each alone makes -1.5 and .1."""
    return at_once(effect=Effect(BEFORE, BEFORE * float(np.exp(change)), change, 1.1))


def many(layers: int, heads: int) -> Ablation:
    values = np.random.default_rng(0).normal(size=(layers, heads)) ** 3
    effects = [
        HeadEffect(0.25, 0.2, float(value), 0.1, *place, typical=0.1, below=3, controls=heads - 1)
        for place, value in np.ndenumerate(values)
    ]
    return ablation(heads=ranked(tuple(effects)))


def of_layers(*changes: float, part: Part = Part.MLP, **more: Any) -> Ablation:
    """A part of each of so many layers, changed at all tokens."""
    controls = len(changes) - 1
    places = tuple(
        PlaceEffect(
            BEFORE, BEFORE * float(np.exp(change)), change, 0.1, layer=layer, typical=0.2,
            below=sum(abs(each) < abs(change) for each in changes), controls=controls,
        )
        for layer, change in enumerate(changes)
    )  # fmt: skip
    plain = replace(mlps(), measured=Measured.CHANCE, against=None)
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
    answer = Answer(asks, "the door opened", (1, 2), position, BEFORE)
    return alone(one(-0.9), answer=answer, measured=measured, **other)


def read_by(*receivers: Receiver, direct: bool = False, others: tuple[Group, ...] = ()) -> Ablation:
    return replace(along(), path=Path(receivers, direct, others))


def others(*groups: tuple[tuple[int, int], ...], change: float = -0.05) -> tuple[Group, ...]:
    effect = Effect(BEFORE, BEFORE * float(np.exp(change)), change, 0.01)
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
    "one, alone in its layer": lambda: alone(effect(1, 0, -0.5)),
    "one, hardly": lambda: alone(one(-0.09, typical=0.001)),
    "one, the least of all": lambda: alone(one(-1e-4, below=0)),
    "rounding": lambda: alone(one(2e-7)),
    "rounding of many": lambda: alone(one(2e-7), effect(1, 1, 1e-7)),
    "each": ablation,
    "each, foretold": foretold,
    "each, foretold, too few to compare": lambda: replace(foretold(), rank_correlation=None),
    "none stands out": lambda: several(-0.5, 0.4),
    "none stands out, another answer": lambda: alone(
        *(replace(each, instead="lid") for each in several(-0.5, 0.4).heads)
    ),
    "many, hardly": lambda: several(0.01, 0.01),
    "many, far more than there is room": lambda: many(12, 32),
    "together": lambda: at_once(controls=12, below=12),
    "together, all columns": (together, WHOLE),
    "together, as much": lambda: of_group(-1.4),
    "together, less": lambda: of_group(-0.4),
    "together, the opposite": lambda: of_group(0.4),
    "together, hardly": lambda: of_group(-0.05),
    "together, one other": lambda: at_once(controls=1, below=1),
    "together, no other group": lambda: at_once(typical=None, controls=0, below=0),
    "together, a whole layer": lambda: at_once(of_layers=True, controls=3),
    "together, whole layers": lambda: at_once(of_layers=True, heads=((0, 0), (1, 0)), controls=3),
    "together, many": lambda: at_once(heads=((0, 0), (0, 1), (1, 0), (1, 2)), controls=3),
    "a link": lambda: replace(link(), heads=(one(-1.5),)),
    "a link of spans": lambda: replace(link(), link_spans=((4,), (1, 2))),
    "a link in each": link,
    "a link by layers": lambda: at(replace(link_by_key(), places=of_layers(-1.5, 0.2).places), 2),
    "a link by keys": lambda: link_by_key(-0.9, -0.1, 0.2),
    "a mean": lambda: alone(one(-1.5), method=Method.MEAN, how="each output replaced by its mean"),
    "part of the gap": patched,
    "beyond the gap": lambda: replace(patched(), heads=(one(-12.0), effect(1, 1, 0.1))),
    "none of the gap": lambda: replace(patched(), total=GAP, heads=(one(-0.3),)),
    "no gap": lambda: replace(patched(), total=Effect(0.25, 0.25, 1e-5, 0.0)),
    "hardly a gap": lambda: replace(patched(), total=Effect(0.25, 0.26, 0.04, 0.0)),
    "a gap less than one head": lambda: replace(
        patched(), total=Effect(0.25, 0.28, 0.12, 0.0), heads=(one(-1.5),)
    ),
    "another text, a vector": lambda: answered(
        Asks.VECTOR, Measured.TURN, method=Method.TEXT, other=grid().tokens
    ),
    "where it stands": grid,
    "where it stands, in three steps": lambda: replace(
        grid(), places=tuple(replace(each, layer=i) for i, each in enumerate(grid().places))
    ),
    "places of the gap": lambda: toward(0.6, 0.1, enough=(-0.5, 0.1)),
    "places of the gap, nothing back": lambda: toward(0.6, 0.1, enough=(0.5, 0.1)),
    "places of the gap, beyond back": lambda: toward(0.6, 0.1, enough=(-2.5, 0.1)),
    **{f"of {asks}": partial(answered, asks) for asks in Asks if asks is not Asks.VECTOR},
    "a vector": lambda: answered(Asks.VECTOR, Measured.TURN),
    "a vector beside another": lambda: answered(Asks.VECTOR, Measured.SIMILARITY, against=RIVAL),
    "a lead": mlps,
    "a lead of one": lambda: answered(Asks.MASK, Measured.DIFFERENCE, against=RIVAL),
    "a lead towards another text": lambda: replace(
        grid(), measured=Measured.DIFFERENCE, against=RIVAL
    ),
    "along a path": along,
    "along a path, none more": lambda: replace(along(), heads=along().heads[1:]),
    "along a path, parts of layers": lambda: replace(of_layers(-1.5, 0.2), path=along().path),
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
    "another of the texts": lambda: replace(ablation(), kind=Kind.DECODER, target=grid().tokens),
    "drawn": lambda: alone(one(-1.5), floor=Floor(1e-7, 0.0, 0, (effect(1, 1, 0.4),), 3)),
    "no rounding": lambda: ablation(floor=Floor(0.0, 0.0, 2, (), 0)),
    "not as asked": lambda: ablation(intervention=Intervention.of(1, 2, 0, True)),
    "unseen": lambda: ablation(intervention=Intervention.of(1, 0, 2, True)),
    "unfaithful": lambda: ablation(intervention=Intervention.of(3, 0, 0, False)),
    "stored": lambda: ablation(intervention=Intervention(3, 0, 0, True, Verdict.STORED)),
    "no head": lambda: ablation(heads=()),
}  # fmt: skip
NUMBERS: dict[str, tuple[str, ...]] = {  # the case of an example, and what its answer has
    "one": (Case.MOVES, "L1 H0", "25.0 %", "5.6 %", "20.5 %", "11 other heads none", "“lid”"),
    "one, and others change it more": (Case.MIDDLING, "L1 H0", "37.3 %", "30.5 %", "11 other heads 4"),
    "one, not five times the typical head": (Case.MIDDLING, "15.2 %", "20.5 %", "11 other heads none"),
    "one, alone in its layer": (Case.MIDDLING, "15.2 %"),
    "one, hardly": (Case.LITTLE, "25.0 %", "22.8 %", "11 other heads none"),
    "one, the least of all": (Case.LITTLE, "25.0 %", "11 other heads 11"),
    "rounding": (Case.ROUNDING, "L1 H0", "2.0e-7", "3.0e-7"),
    "each": (Case.EACH, "6 heads", "L1 H0", "25.0 %", "5.6 %", "20.5 %"),
    "each, foretold": (Case.EACH, "3 of 6 heads", "L1 H0", "5.6 %", "16.8 %"),
    "none stands out": (Case.FLAT, "4 heads", "L1 H0", "15.2 %", "L1 H1", "15.3 %"),
    "many, hardly": (Case.LITTLE, "4 heads", "L1 H3", "26.0 %"),
    "together": (Case.TOGETHER, "L1 H0", "L1 H2", "4.0 %", "12 other", "10.2 %", "−1.40", "−1.83"),
    "together, no other group": (Case.TOGETHER, "4.0 %"),
    "together, a whole layer": (Case.TOGETHER, "layer 1", "3 other whole layers", "10.2 %"),
    "a link": (Case.MOVES, "“on” → “cat”", "L1 H0", "5.6 %", "20.5 %"),
    "part of the gap": (Case.CLOSES, "L1 H0", "5.6 %", "19 %", "1 in 10,000"),
    "beyond the gap": (Case.CLOSES, "L1 H0", "1 in 650,000", "1 in 10,000"),
    "none of the gap": (Case.CLOSES, "25.0 %", "50.0 %"),
    "no gap": (Case.NO_GAP, "25.0 %", "--answer"),
    "a gap less than one head": (Case.NO_GAP, "25.0 %", "28.0 %"),
    "where it stands": (Case.CLOSES, "“cat” in layer 0 (78 %", "“the”@1 in layer 1 (98 %", "89 %"),
    "a lead": (Case.FLAT, "33 times", "3.5 times", "81 times"),
    "no head": (Case.UNRANKED,),
}
