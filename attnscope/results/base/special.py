"""Special tokens, put around a text by its tokenizer: how much attention lies on them, what to do with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnscope.tokens import Tokens
from attnscope.vocabulary import Special

__all__ = ["Special", "SpecialMass", "special_mass"]


@dataclass(frozen=True)
class SpecialMass:
    """Share of the weight, 0 to 1, that lies on special tokens: mean over the queries that have a key.

    `by_name` splits it among them in the order of the text, those of one name together.
    """

    total: float
    by_name: Mapping[str, float]


def special_mass(weights: Sequence[Float[np.ndarray, "query key"]], keys: Tokens) -> SpecialMass | None:
    """The mass of one head, or the mean over several; None without special tokens or answered queries."""
    special = [i for i, token in enumerate(keys.items) if token.special]
    rows = [each[~np.isnan(each).any(axis=1)] for each in weights]
    means = [each[:, special].mean(axis=0) for each in rows if len(each)]
    if not special or not means:
        return None
    masses: dict[str, float] = {}
    for position, mass in zip(special, np.mean(means, axis=0).tolist(), strict=True):
        masses[keys.names[position]] = masses.get(keys.names[position], 0.0) + mass
    return SpecialMass(sum(masses.values()), masses)
