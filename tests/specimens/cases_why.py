"""A result for every case and every optional part of what `why` says."""

from collections.abc import Callable
from dataclasses import replace

import made_results as made

from attnscope.render.sheets import Focus
from attnscope.results import Kind, Why
from attnscope.verbs.why import sheet
from attnscope.verbs.why.result import Case, Pair, Part, Removed, Side

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


SAID, CASES = sheet.said, Case


def changed(result: Why, named: str, **fields: object) -> Why:
    """The same with one part changed."""
    parts = tuple(replace(part, **fields) if part.name == named else part for part in result.parts)
    return replace(result, parts=parts)


def _share(**fields: object) -> Why:
    return changed(changed(why(), "L1 H0", removed=None, controls=()), "L0 H2", **fields)


def _small(left: float) -> Why:
    return changed(changed(why(weight_left=left), "L0 H2", contrast=2.0), "L1 H0", contrast=2.0)


def _many() -> Why:
    """Three reasons, and of one side so many parts that the rest is counted."""
    own = why()
    heads = [replace(own.side(Side.QUERY)[0], name=f"L0 H{i}", head=i) for i in range(9)]
    kept = [replace(part, contrast=0.1) for part in heads[2:]]
    return replace(own, parts=(*heads[:2], *kept, *own.side(Side.KEY)))


EXAMPLES: dict[str, Callable[[], Why] | tuple[Callable[[], Why], Focus]] = {
    "both": why,
    "both, in full": (why, Focus(verbose=True)),
    "three": _many,
    "at the key": lambda: changed(why(), "L0 H2", contrast=2.9),
    "at the query": lambda: changed(why(), "L1 H0", contrast=2.9),
    "what it carries is not known": lambda: changed(why(), "L0 H2", source=None),
    "share, another does more": lambda: _share(controls=(0.3, -9.0, 0.1)),
    "share, too near": lambda: _share(controls=(0.3, -3.0, 0.1)),
    "share, few others": lambda: _share(controls=(0.3, -0.1)),
    "share of an MLP, no others": lambda: _share(name="MLP L0", head=None, controls=()),
    "share of an MLP, too near": lambda: _share(name="MLP L0", head=None, controls=(0.3, -3.0, 0.1)),
    "share, the score rises": lambda: _share(removed=Removed(4.0, 4.0, 0.01, 1.0)),
    "share, the weight stays": lambda: _share(removed=Removed(-4.0, -4.0, 0.9, 1.0)),
    "none": lambda: _small(0.9),
    "none, small parts": lambda: _small(0.04),
    "none before it": lambda: replace(
        why(), parts=tuple(replace(each, removed=None) for each in why().parts)
    ),
    "does not look": lambda: replace(why(contrast=0.4), weight=0.11),
    "less than all alike": lambda: replace(why(), weight=0.05),
    "below a key": lambda: why(contrast=-1.5, against=2, patched=True),
    "beside a key": lambda: why(against=2),
    "beside the one other": lambda: replace(why(contrast=0.4), weight=0.6, others=1),
    "no contrast": lambda: replace(why(contrast=1e-9), contrast=0.0, pairs=(Pair("a", "b", 0.0),)),
    "stored": lambda: replace(why(), certificate=replace(why().certificate, verdict=sheet.Verdict.STORED)),
}
NUMBERS: dict[str, tuple[str, ...]] = {  # the case of an example, and what its answer has
    "both": (Case.BOTH, "L2 H3", "“it”", "“the”@5", ".91", "L0 H2", "“because”", "L1 H0", "“on”", "to .04"),
    "at the query": (Case.QUERY, ".91", "L0 H2", "to .04", "No part of “the”@5"),
    "share, another does more": (Case.SHARE, ".91", "L0 H2 at “it”", "70 %", "−3.36", "−9.00"),
    "share, too near": (Case.SHARE, "−3.36", "−3.00", "too near"),
    "share, few others": (Case.SHARE, "2 other heads of its layer"),
    "share of an MLP, no others": (Case.SHARE, "no other MLP"),
    "share, the score rises": (Case.SHARE, "+4.00"),
    "share, the weight stays": (Case.SHARE, ".90"),
    "none": (Case.NONE, ".91", "3 parts", "L0 H2 at “it”", ".90"),
    "none, small parts": (Case.NONE, "L0 H2 at “it”", ".04", "33 %"),
    "does not look": (Case.NOT_ABOVE, ".11", ".08", ".40", ".69"),
    "less than all alike": (Case.NOT_ABOVE, ".05", ".08"),
    "below a key": (Case.NOT_ABOVE, ".91", "1.50 below “cat”"),
}
