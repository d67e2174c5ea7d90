"""One word held against itself: in two texts, in two layers, or under two models."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from jaxtyping import Float

from attnscope.results.heads import HeadAttention
from attnscope.results.origin import Certificate, Verdict
from attnscope.results.presented import Presented


class Between(StrEnum):
    """What differs between the two sides of a comparison."""

    TEXTS = "texts"
    LAYERS = "layers"
    MODELS = "models"


@dataclass(frozen=True, eq=False)
class Side:
    """One side: a head in full, the position of the word among its queries, and what is proved.

    `certificates` are those of all heads whose numbers the comparison uses, by layer, then head.
    """

    head: HeadAttention
    position: int
    certificates: tuple[tuple[Certificate, ...], ...]

    @property
    def word(self) -> str:
        return self.head.query_tokens.names[self.position]

    @property
    def weights(self) -> Float[np.ndarray, " key"]:
        """What the word attends to."""
        return np.asarray(self.head.weights[self.position])

    @property
    def every_certificate(self) -> tuple[Certificate, ...]:
        return tuple(certificate for layer in self.certificates for certificate in layer)


@dataclass(frozen=True, eq=False)
class Similarity:
    """Cosine, from -1 to 1, between the vectors that the word has on both sides.

    `vector` is `query`, `key`, `value`, `output` (of the head, before the output projection) or
    `unrotated key`. `together` takes the vectors of all the heads of a layer as one. NaN where one of the
    two is zero or unknown.
    """

    vector: str
    heads: Float[np.ndarray, "layer head"]
    together: Float[np.ndarray, " layer"]


@dataclass(frozen=True, eq=False)
class Divergence:
    """How far apart the word's two rows of weights are.

    `jensen_shannon` in nats, 0 for equal rows to ln 2 for rows without a common key (Lin 1991);
    `total_variation`, 0 to 1, is the weight that would have to move. A sink counts as one more key. NaN
    where a row has no key.
    """

    jensen_shannon: Float[np.ndarray, "layer head"]
    total_variation: Float[np.ndarray, "layer head"]


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Presented):
    """Two sides, one head of each in full, and how alike they are in every compared layer and head.

    `layers[i]` holds the layer of side a and the layer of side b behind entry `i` of every layer axis.
    `similarities` are empty where the vectors do not live in one space, `divergence` is None where the
    rows are not over the same tokens. `chosen` says that the heads shown in full were not asked for but
    are those that differ most: by their outputs, or where there are no cosines by their rows.
    """

    between: Between
    a: Side
    b: Side
    layers: tuple[tuple[int, int], ...]
    heads: tuple[int, ...]
    similarities: tuple[Similarity, ...]
    divergence: Divergence | None
    chosen: bool

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.a, self.b

    @property
    def shown(self) -> tuple[int, int]:
        """Where the heads that are shown in full stand on the axes of layers and heads."""
        layers = self.a.head.layer, self.b.head.layer
        return self.layers.index(layers), self.heads.index(self.a.head.head)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of both sides."""
        every = [certificate.verdict for side in self.sides for certificate in side.every_certificate]
        return max(every, key=lambda verdict: verdict.rank)

    def similarity(self, vector: str) -> Similarity | None:
        """The similarity of one kind of vector, None where there is none."""
        return next((each for each in self.similarities if each.vector == vector), None)
