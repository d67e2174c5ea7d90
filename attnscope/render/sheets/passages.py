"""Texts as they read, shaded by what a result says of their tokens."""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
from jaxtyping import Float

from attnscope.render.kit.numbers import number, signed, weight
from attnscope.render.kit.scale import by_root
from attnscope.render.sheet.drawings import Passage
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheets import comparison_words, flow_methods, flow_words
from attnscope.results import Comparison, Difference, Flow

_THREE = 3  # decimals of a weight beside its bar


def of_flow(result: Flow) -> Iterator[Passage]:
    """What replacing each token does, and what the method gives that agrees with it best; of text alone."""
    if not result.tokens.texts:
        return
    asked = flow_words.asked(result)
    own = frozenset[int]() if result.query is None else frozenset({result.query})
    ablated, trusted = result.ablated, ""
    if ablated is not None:
        costs = f"costs, in {ablated.unit}" if ablated.answer else f"turns {asked}: 1 less the cosine"
        scale = Scale.around(ablated.effects, costs=bool(ablated.answer))
        form = signed if ablated.answer else number
        yield Passage(f"what replacing each token {costs}", result.tokens, ablated.effects, scale, form, own)
        trusted = "" if ablated.best is None else ablated.best.method
    name = trusted if trusted in result.methods else next(iter(result.methods))
    shares = np.where(result.reached, result.methods[name], math.nan)
    called = flow_methods.CALLED.get(name, name)
    yield Passage(
        f"what reaches {asked}, by {called}",
        result.tokens,
        shares,
        Scale.around(shares) if np.nanmin(shares, initial=0.0) < 0 else Scale(0.0, _largest(shares)),
        weight,
        own,
    )


def _largest(shares: Float[np.ndarray, " key"]) -> float:
    return float(np.nanmax(shares, initial=0.0)) or 1.0


def of_comparison(result: Comparison) -> Iterator[Passage]:
    """What the word looks at on either side."""
    for letter, side in zip("AB", result.sides, strict=True):
        if side.key_tokens.texts:
            yield Passage(
                f"{letter}, {side.head.name}: {comparison_words.placed(side)} looks at",
                side.key_tokens,
                np.where(side.allowed, side.weights, math.nan),
                by_root(),
                partial(weight, decimals=_THREE),
                frozenset({side.row}) if side.query_tokens is side.key_tokens else frozenset(),
            )


def of_difference(result: Difference) -> Iterator[Passage]:
    """How far each query of the head that is shown differs, in the text of B where both are texts."""
    tokens, apart = result.b.query_tokens, result.rows[result.shown]
    if tokens.texts and len(tokens) == len(apart):
        yield Passage(
            f"{result.name(result.shown)}: how far each query looks elsewhere in B, in nats",
            tokens,
            apart,
            Scale(0.0, float(np.nanmax(apart, initial=0.0)) or 1.0),
            number,
        )
