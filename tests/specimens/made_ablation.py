"""An ablation made up of numbers that are easy to tell apart, of two layers with three heads each."""

from dataclasses import replace

import made_results as made
import numpy as np

from attnscope.results import Ablation, Kind
from attnscope.results.claims.ablation import Method, ranked
from attnscope.results.claims.effect import (
    Answer,
    Asks,
    Effect,
    Floor,
    Group,
    HeadEffect,
    Path,
    PlaceEffect,
    Predicted,
    Receiver,
)
from attnscope.results.claims.intervention import Intervention, Measured, Part

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
