"""How far rounding carries in a model, measured: its weights moved by their precision, as `check` does it."""

import copy
from collections.abc import Sequence
from functools import cache

import numpy as np
from jaxtyping import Float
from torch import nn

from attnscope.capture.arithmetic import move_weights
from attnscope.verbs.check.answer import TIMES

Numbers = Float[np.ndarray, "..."]


@cache
def moved(model: nn.Module, seed: int) -> nn.Module:
    """A copy of the model whose weights are moved by their precision, up or down by lot."""
    other = copy.deepcopy(model)
    move_weights(other, seed)
    return other


def carried(plain: Numbers, others: Sequence[Numbers]) -> float:
    """`TIMES` of what numbers move by, in runs with such weights: two right answers lie no further apart."""
    return TIMES * max(float(np.nanmax(np.abs(other - plain), initial=0.0)) for other in others)
