"""Every head of a model at a glance: the weights of each, as small as they can be read."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnscope.results.base.origin import Kind, Provenance, Verdict, worst
from attnscope.results.base.parts import Value, fits, one_for_each
from attnscope.results.base.presented import Presented
from attnscope.tokens import Tokens
from attnscope.vocabulary import Special


@dataclass(frozen=True, eq=False, repr=False)
class Thumbnails(Presented):
    """The weights of several heads on one input, each in the same few cells.

    `weights[i, j]` belongs to `layers[i]` and `heads[j]`. A cell is the largest weight of `step` queries by
    `step` keys, fewer at the ends, NaN where none of these queries may look at any of these keys. `tower` and
    `notes` are as in `HeadWeights`. With `words` queries and keys are words, as in `HeadView`; `special`
    tokens may be left out.
    """

    kind: Kind
    query_tokens: Tokens
    key_tokens: Tokens
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    step: int
    weights: Float[np.ndarray, "layer head row column"]
    verdicts: tuple[tuple[Verdict, ...], ...]
    provenance: Provenance
    tower: str = ""
    notes: tuple[str, ...] = ()
    words: bool = False
    special: Special = Special.SHOW

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of any head."""
        return worst(verdict for layer in self.verdicts for verdict in layer)

    def check_parts(self) -> None:
        fits(self.step >= 1, "'step' is no number of tokens")
        one_for_each(self.verdicts, self.weights.shape, "verdicts")
        cells = tuple(-(-len(each) // self.step) for each in (self.query_tokens, self.key_tokens))
        fits(self.weights.shape[2:] == cells, "'weights' is not of as many cells as the tokens make")

    def derived(self) -> dict[str, Value]:
        return {"verdict": self.verdict}
