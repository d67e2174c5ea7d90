"""What parts bring to an answer, a result for every case and every optional part of what is said of them."""

from collections.abc import Callable
from dataclasses import replace

import made_results as made

from attnscope.results import Contributions
from attnscope.results.claims.effect import Answer, Asks
from attnscope.verbs.why import contributions_sheet as sheets
from attnscope.verbs.why.contributions_result import Case, Contribution, Taken

_SHARES = [
    ("L0 H2", 1.5), ("MLP L1", -0.8), ("L0 H5", 0.1), ("token", 0.6), ("biases", 0.3), ("left over", -0.2)
]  # fmt: skip
POSITION = 8


def contributions(
    *, alone: bool = False, change: float = -1.2, control: float = 0.3, patched: bool = False
) -> Contributions:
    """They sum to its logit. Without the largest head the answer changes by `change`, without a control by
    `control`.
    """
    tokens = made.tokens(made.DOOR)
    parts = tuple(_part(name, direct, change, control) for name, direct in _SHARES)
    return Contributions(
        tokens=tokens,
        position=POSITION,
        answer=Answer(Asks.MASK, "it", (17,), POSITION, 0.4),
        against=None if alone else Answer(Asks.MASK, "they", (23,), POSITION, 0.1, likeliest=False),
        logit=1.5,
        summed=1.5,
        residual=3.1e-7,
        parts=parts,
        provenance=made.provenance(),
        other_tokens=tokens if patched else None,
        notes=("odd",),
    )


def _part(name: str, direct: float, change: float, control: float) -> Contribution:
    layer, _, head = name.removeprefix("L").partition(" H")
    if not head:
        own = 1 if name.startswith("MLP") else None
        return Contribution(name, own, None, None, float("nan"), direct)
    removed = Taken(0.9 * change, change, 0.12, 1.42)
    return Contribution(name, int(layer), int(head), 4, 0.7 * direct, direct, removed, (control, -0.1))


SAID, CASES = sheets.said, Case


def of_parts(**changed: object) -> Contributions:
    """Its parts with these fields."""
    made = contributions()
    return replace(made, parts=tuple(replace(part, **changed) for part in made.parts))  # type: ignore[arg-type]


def asked(asks: Asks, probability: float, position: int | None = POSITION) -> Contributions:
    answer = Answer(asks, "it", (17,), position, probability)
    return replace(contributions(alone=True), answer=answer, position=position)


def mlps(**changed: object) -> Contributions:
    return of_parts(name="MLP L1", layer=1, head=None, source=None, **changed)


EXAMPLES: dict[str, Callable[[], Contributions]] = {
    "stands": contributions,
    "stands by itself": lambda: contributions(alone=True),
    "stands after a word": lambda: asked(Asks.NEXT, 0.05),
    "stands and changes nothing": lambda: asked(Asks.SPAN, 0.12),
    "of the text as a whole": lambda: asked(Asks.CLASS, 0.4, None),
    "against": lambda: replace(contributions(change=1.5), parts=(_part("L0 H2", -1.5, 1.2, 0.3),)),
    "against by itself": lambda: replace(contributions(alone=True), parts=(_part("L0 H2", -1.5, 1.2, 0.3),)),
    "controlled": lambda: contributions(control=-1.3),
    "otherwise": lambda: contributions(change=0.4),
    "otherwise by itself": lambda: contributions(alone=True, change=0.4),
    "alone": lambda: of_parts(controls=()),
    "an MLP alone": lambda: mlps(controls=()),
    "no part": lambda: of_parts(removed=None, controls=()),
    "another text": lambda: contributions(patched=True),
    "many": lambda: replace(contributions(), parts=contributions().parts * 3),
}
NUMBERS: dict[str, tuple[str, ...]] = {  # the case of an example, and what its answer has
    "stands": (Case.STANDS, "L0 H2", "4.5 times", "1.3 times", "layer 0", "±.30 logits", "−1.20"),
    "stands by itself": (Case.STANDS, "falls from 40.0 % to 12.0 %"),
    "stands after a word": (Case.STANDS, "after “it”", "rises from 5.0 % to 12.0 %"),
    "stands and changes nothing": (Case.STANDS, "stays at 12.0 %"),
    "against": (Case.STANDS, "against “it” and for “they”", "4.5 times", "15 times"),
    "controlled": (Case.CONTROLLED, "another head of layer 0", "±1.3", "−1.20"),
    "otherwise": (Case.OTHERWISE, "4.5 times", "6.7 times"),
    "otherwise by itself": (Case.OTHERWISE, "+.40", "falls from 40.0 % to 12.0 %"),
    "alone": (Case.ALONE, "L0 H2", "1.3 times"),
}
