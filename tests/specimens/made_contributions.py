"""What parts bring to an answer, as it could have come out: they sum to its logit."""

import made_results as made

from attnscope.results import Contributions
from attnscope.results.claims.contributions import Contribution, Taken
from attnscope.results.claims.effect import Answer, Asks

_SHARES = [
    ("L0 H2", 1.5), ("MLP L1", -0.8), ("L0 H5", 0.1), ("token", 0.6), ("biases", 0.3), ("left over", -0.2)
]  # fmt: skip
POSITION = 8


def contributions(
    *, alone: bool = False, change: float = -1.2, control: float = 0.3, patched: bool = False
) -> Contributions:
    """Its largest head changes the answer by `change` when it is taken away, a control by `control`."""
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
