"""One word in two contexts, or one text under two models or layers."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnscope.results.heads import HeadAttention


@dataclass(frozen=True, eq=False)
class Side:
    """One half of a comparison: a head on its text, and the position of the word that is compared."""

    head: HeadAttention
    position: int


@dataclass(frozen=True, eq=False)
class LayerSimilarity:
    """Cosines between the two sides' vectors of the word in one layer, each from -1 to 1, one per head.

    NaN where the vectors are of different lengths or one of them is zero.
    """

    layer: int
    query: Float[np.ndarray, " head"]
    key: Float[np.ndarray, " head"]
    value: Float[np.ndarray, " head"]
    output: Float[np.ndarray, " head"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two sides; layer by layer how alike the word's vectors are, and one head of each side in full."""

    a: Side
    b: Side
    layers: tuple[LayerSimilarity, ...]
