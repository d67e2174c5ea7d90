"""Value zeroing through the layers (Mohebbi et al. 2023): what each token's values do to each other's vector.

    C_l[i, j] = 1 - cosine of token i's vector behind layer l, as it is and without the values of token j
    rows divided by their sums,   R_l = C_l R_(l-1),   R before the first layer is I

Unlike a weight, C holds what the layer itself makes of it: output projection, residual, norm, feed-forward.
So no identity is mixed in: what a token keeps of itself stands on the diagonal already.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import nn

from attnscope.analysis.flow.graph import rollout
from attnscope.capture import Selection
from attnscope.capture.intervening.value_zeroing import value_zeroing_on
from attnscope.errors import InputError
from attnscope.results.claims.ablation import Intervention

Matrix = Float[np.ndarray, "query key"]


@dataclass(frozen=True, eq=False)
class Zeroed:
    """What has come through the layers up to each, and whether the values were really zero."""

    rollout: Float[np.ndarray, "layer query key"]
    intervention: Intervention


def rolled_out(
    model: nn.Module, inputs: Mapping[str, Any], selection: Selection, heads: Sequence[int], tokens: int
) -> Zeroed:
    """All `tokens` zeroed in each of the selected layers, in `heads`, and the layers multiplied.

    Raises `InputError` where a layer cannot be run alone with other values, or reads other positions.
    """
    made = value_zeroing_on(model, inputs, selection)
    if {*made.lengths.values()} != {tokens}:
        raise InputError("the layers read other positions than the tokens")
    found = [shares_of_change(made.distances(layer, heads).numpy()) for layer in made.layers]
    return Zeroed(rollout(found), Intervention(made.back, made.lost, made.unseen, made.faithful))


def shares_of_change(distances: Matrix) -> Matrix:
    """Every row divided by its sum; a token that no values turn keeps itself."""
    sums = distances.sum(axis=1, keepdims=True)
    itself = np.eye(len(distances))
    return np.asarray(np.where(sums > 0, distances / np.where(sums > 0, sums, 1), itself))
