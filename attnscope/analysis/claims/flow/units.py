"""A flow to tokens as one to words, sentences or passages: shares are summed over the tokens of each."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from attnscope.analysis.heads.view import Units
from attnscope.results.base.groups import members
from attnscope.results.claims.flow import Ablated, Flow

Shares = Float[np.ndarray, "layer key"]


def by_units(result: Flow, units: Units) -> Flow:
    """`result` by units, whose query is the one that was followed; effects are of whole units already."""
    assert units.query is not None, "something was followed"
    belongs = members(units.keys, len(result.tokens)).T.astype(float)

    def summed(shares: Shares | None) -> Float[np.ndarray, "layer unit"] | None:
        return None if shares is None else np.asarray(shares @ belongs)

    return replace(
        result,
        query=units.query,
        tokens=units.key_tokens,
        raw=result.raw @ belongs,
        rollout=result.rollout @ belongs,
        by_norm=summed(result.by_norm),
        zeroed=summed(result.zeroed),
        ablated=None if result.ablated is None else _effects(result.ablated, units),
        answers_at=result.query,
    )


def _effects(ablated: Ablated, units: Units) -> Ablated:
    """Of each unit that was replaced its effect; nothing of the others."""
    effects = np.full(len(units.keys), np.nan)
    replaced = set(ablated.groups)
    for number, unit in enumerate(units.keys):
        if unit in replaced:
            effects[number] = ablated.effects[unit[0]]
    return replace(ablated, effects=effects, groups=())
