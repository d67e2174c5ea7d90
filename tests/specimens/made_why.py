"""Why a head looks there, as it could have come out: two sides of other parts that sum to one score."""

import made_results as made

from attnscope.results import Kind, Why
from attnscope.results.claims.why import Pair, Part, Removed, Side

QUERY, KEY, SCORE = 8, 5, 7.5
_SHARES = {
    Side.QUERY: [("L0 H2", 0.8, 0.7), ("MLP L1", 0.3, 0.35), ("L0 H5", -0.2, -0.15), ("token", 0.1, 0.1)],
    Side.KEY: [("L1 H0", 0.6, 0.5), ("biases", 0.1, 0.2), ("position", 0.3, 0.3)],
}


def why(
    *, contrast: float = 6.0, weight_left: float = 0.04, against: int | None = None, patched: bool = False
) -> Why:
    """Without its largest head on either side the head still gives `weight_left` to the key."""
    tokens = made.tokens(made.DOOR)
    parts = [
        _part(side, name, of_score * SCORE, of_contrast * contrast, weight_left)
        for side, shares in _SHARES.items()
        for name, of_score, of_contrast in shares
    ]
    return Why(
        layer=2,
        head=3,
        kind=Kind.ENCODER,
        query_tokens=tokens,
        key_tokens=tokens,
        query=QUERY,
        key=KEY,
        against=against,
        others=1 if against is not None else len(tokens) - 1,
        weight=0.91,
        score=SCORE,
        contrast=contrast,
        parts=tuple(parts),
        pairs=(Pair("L0 H2", "L1 H0", 0.4 * contrast), Pair("MLP L1", "position", -0.1 * contrast)),
        tried=12,
        residual=3.1e-7,
        certificate=made.certificate(),
        provenance=made.provenance(),
        capped=True,
        other_tokens=tokens if patched else None,
        notes=("odd",),
    )


def _part(side: Side, name: str, score: float, contrast: float, weight_left: float) -> Part:
    layer, _, head = name.removeprefix("L").partition(" H")
    if not head:
        return Part(
            side, name, 1 if name.startswith("MLP") else None, None, None, float("nan"), score, contrast
        )
    source = 7 if side is Side.QUERY else 4
    removed = Removed(-0.9 * contrast, -0.8 * contrast, weight_left, 1.42)
    return Part(
        side, name, int(layer), int(head), source, 0.7 * contrast, score, contrast, removed, (0.3, -0.5, 0.0)
    )
