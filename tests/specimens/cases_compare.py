"""A result for every case and every optional part of what `compare` says of one word."""

from collections.abc import Callable
from dataclasses import replace

import made_comparison as made
import numpy as np

from attnscope.render.sheets import comparison
from attnscope.results import Comparison, Special
from attnscope.results.claims.comparison import Case
from attnscope.vocabulary import Unit

SAID, CASES = comparison.said, Case
ROTARY = ("query", "key", "unrotated key", "value", "output")


def same(found: Comparison) -> Comparison:
    """The same on both sides, in all vectors and all rows."""
    alike = [
        replace(each, heads=np.ones_like(each.heads), together=np.ones_like(each.together))
        for each in found.similarities
    ]
    rows = found.divergence
    none = rows and replace(
        rows, **{name: np.zeros((4, 6)) for name in ("jensen_shannon", "total_variation")}
    )
    return replace(found, similarities=tuple(alike), divergence=none)


def parting(*heads: int, layer: int = 3) -> Comparison:
    """Two models that are the same before `layer`, of which these heads differ there."""
    found = same(made.models())
    rows, output = found.divergence, found.similarities[-1]
    assert rows is not None
    rows.total_variation[layer, list(heads)] = 0.05
    output.heads[layer, list(heads)] = 0.98
    sides = (
        replace(side, head=replace(side.head, layer=layer, head=heads[0])) for side in (found.a, found.b)
    )
    return replace(found, **dict(zip("ab", sides, strict=True)))


def with_sink(found: Comparison) -> Comparison:
    a, b = (
        replace(side, head=replace(side.head, sink=0.5, weights=side.head.weights / 2))
        for side in found.sides
    )
    return replace(found, a=a, b=b)


def of_several_tokens() -> Comparison:
    found = made.by_words(Special.SHOW)
    a, b = (replace(side, view=side.view and replace(side.view, by=Unit.TOKEN)) for side in found.sides)
    return replace(found, a=a, b=b)


EXAMPLES: dict[str, Callable[[], Comparison]] = {
    "texts differ": made.texts,
    "texts differ at one place": lambda: made.texts(vectors=ROTARY, places=(2, 2)),
    "texts differ, rotary": lambda: made.texts(vectors=ROTARY, causal=True),
    "texts differ in two words": lambda: made.texts(places=(5, 3)),
    "texts differ, cross-attention": made.cross,
    "texts differ by words": made.by_words,
    "texts differ of several tokens": of_several_tokens,
    "texts differ, special tokens hidden": lambda: made.by_words(Special.HIDE),
    "some heads": lambda: made.texts(heads=4, chosen=False),
    "one head": lambda: made.texts(heads=2, chosen=False),
    "no valid key": lambda: made.texts(empty=[5, 2]),
    "texts same": lambda: same(made.texts()),
    "one layer": lambda: made.texts(layers=1),
    "two layers": made.layers,
    "two layers of one head": lambda: made.layers(1),
    "models differ": made.models,
    "models differ, a sink": lambda: with_sink(made.models()),
    "models differ in rows": lambda: made.models(one_space=False),
    "models differ, passed over": lambda: replace(made.models(), passed_over=3),
    "models begin": lambda: parting(1),
    "models begin in several heads of their first layer": lambda: parting(1, 3, layer=0),
    "models same": lambda: same(made.models()),
    "models apart": lambda: replace(made.models(one_space=False), divergence=None),
}
