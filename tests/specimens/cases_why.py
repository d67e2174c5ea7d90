"""A result for every case and every optional part of what `why` says."""

from collections.abc import Callable
from dataclasses import replace

import made_why

from attnscope.render.focus import Focus
from attnscope.render.sheets import why
from attnscope.results import Why
from attnscope.results.claims.why import Case, Pair, Removed, Side

SAID, CASES = why.said, Case


def changed(result: Why, named: str, **fields: object) -> Why:
    """The same with one part changed."""
    parts = tuple(replace(part, **fields) if part.name == named else part for part in result.parts)
    return replace(result, parts=parts)


def _share(**fields: object) -> Why:
    return changed(changed(made_why.why(), "L1 H0", removed=None, controls=()), "L0 H2", **fields)


def _small(left: float) -> Why:
    return changed(changed(made_why.why(weight_left=left), "L0 H2", contrast=2.0), "L1 H0", contrast=2.0)


def _many() -> Why:
    """Three reasons, and of one side so many parts that the rest is counted."""
    own = made_why.why()
    heads = [replace(own.side(Side.QUERY)[0], name=f"L0 H{i}", head=i) for i in range(9)]
    kept = [replace(part, contrast=0.1) for part in heads[2:]]
    return replace(own, parts=(*heads[:2], *kept, *own.side(Side.KEY)))


EXAMPLES: dict[str, Callable[[], Why] | tuple[Callable[[], Why], Focus]] = {
    "both": made_why.why,
    "both, in full": (made_why.why, Focus(verbose=True)),
    "three": _many,
    "at the key": lambda: changed(made_why.why(), "L0 H2", contrast=2.9),
    "at the query": lambda: changed(made_why.why(), "L1 H0", contrast=2.9),
    "what it carries is not known": lambda: changed(made_why.why(), "L0 H2", source=None),
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
        made_why.why(), parts=tuple(replace(each, removed=None) for each in made_why.why().parts)
    ),
    "does not look": lambda: replace(made_why.why(contrast=0.4), weight=0.11),
    "less than all alike": lambda: replace(made_why.why(), weight=0.05),
    "below a key": lambda: made_why.why(contrast=-1.5, against=2, patched=True),
    "beside a key": lambda: made_why.why(against=2),
    "beside the one other": lambda: replace(made_why.why(contrast=0.4), weight=0.6, others=1),
    "no contrast": lambda: replace(made_why.why(contrast=1e-9), contrast=0.0, pairs=(Pair("a", "b", 0.0),)),
    "stored": lambda: replace(
        made_why.why(), certificate=replace(made_why.why().certificate, verdict=why.Verdict.STORED)
    ),
}
