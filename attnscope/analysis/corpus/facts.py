"""What is known of the texts of a batch that are filled up to one length, beside their weights.

`Facts` says which tokens are of which sort. A text's own queries and keys come first; what fills up is no
query, and no key of any sort. `norms_moved` says how long the value of every key is as it arrives in the
hidden state.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.analysis.scores import sorts
from attnscope.capture.weights import Passed
from attnscope.reference import exact
from attnscope.tokens import Tokens

Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class Facts:
    """Texts of a batch, `lengths` tokens long, filled up to as many as the longest has."""

    lengths: Int[Tensor, " row"]
    special: Bool[Tensor, "row key"]
    punctuation: Bool[Tensor, "row key"]
    alike: Bool[Tensor, "row query key"]

    @classmethod
    def of(cls, texts: Sequence[Tokens]) -> "Facts":
        """What the tokens tell."""
        lengths = [len(tokens) for tokens in texts]
        rows, most = len(texts), max(lengths)
        found = cls(
            torch.tensor(lengths),
            torch.zeros(rows, most, dtype=torch.bool),
            torch.zeros(rows, most, dtype=torch.bool),
            torch.zeros(rows, most, most, dtype=torch.bool),
        )
        for row, (tokens, length) in enumerate(zip(texts, lengths, strict=True)):
            found.special[row, :length] = sorts.special(tokens)
            found.punctuation[row, :length] = sorts.punctuation(tokens)
            found.alike[row, :length, :length] = sorts.alike(tokens, tokens)
        return found

    def at(self, device: torch.device) -> "Facts":
        """The same facts on `device`, moved there once."""
        if device == self.lengths.device:
            return self
        moved = (each.to(device) for each in (self.lengths, self.special, self.punctuation, self.alike))
        return self.once(("at", device), lambda: Facts(*moved))

    def once(self, name: object, make: Callable[[], Made]) -> Made:
        """What is the same for all layers, made once."""
        kept: dict[object, Any] = self.__dict__.setdefault("_made", {})
        if name not in kept:
            kept[name] = make()
        made: Made = kept[name]
        return made

    @property
    def own(self) -> Bool[Tensor, "row token"]:
        """Which tokens are the text's own."""
        return torch.arange(self.special.shape[1], device=self.lengths.device) < self.lengths[:, None]

    @property
    def missing(self) -> dict[str, Bool[Tensor, " row"]]:
        """Which texts lack a sort of keys altogether: what is measured of these then has no meaning."""
        return {
            "special": ~self.special.any(-1),
            "punctuation": ~self.punctuation.any(-1),
            "alike": self.alike.sum((-2, -1)) <= self.lengths,
        }


def triangles(projection: Float[Tensor, "head value_dim hidden"]) -> Float[Tensor, "head size value_dim"]:
    """R of every head, in float64."""
    triangle: Tensor = torch.linalg.qr(exact(projection).mT, mode="r").R
    return triangle


def norms_moved(passed: Passed, of: Float[Tensor, "head size value_dim"]) -> Float[Tensor, "row chosen key"]:
    """||f(x)|| of every key in the selected heads, in units of the hidden state, in float64.

    ||v P|| is ||R v|| where Q R is P transposed: the triangle R is as wide as the value and not as the hidden
    state, found once for each head, and nothing is squared on the way (Golub and Van Loan, Section 5.2).
    """
    values, heads = exact(passed.values), list(passed.heads)
    each = values[:, [head // passed.shared for head in heads]] @ of[heads].mT.to(values.device)
    lengths: Tensor = torch.linalg.vector_norm(each, dim=-1)
    return lengths
