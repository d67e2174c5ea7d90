"""A change let along one path only: from what is changed into what some later heads read, and on from there.

Every variant runs as two entries of a batch, one behind the other:

    the sender's   holds the change. What later heads answer in it is what they answer in the main one: so
                   norms and MLPs make something of the change on its way, and no other head does
    the main one   holds nothing but that the receivers answer to queries, keys and values of the sender's.
                   Whatever comes after them is computed anew

which is path patching (Wang et al. 2022, arXiv 2211.00593; Goldowsky-Dill et al. 2023, arXiv 2304.05969), in
one pass. Where the answer is read off the sender's entry, what reaches it `direct`, past all later heads, is
let in as well: with every later head as a receiver that is all that the change does.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from attnscope.capture.intervening.changes import INPUTS, Change, Held, Lent, Variant
from attnscope.results.claims.effect import Receiver


@dataclass(frozen=True)
class Via:
    """The heads that a change comes to, and whether it comes to the answer itself as well."""

    receivers: tuple[Receiver, ...]
    direct: bool = False

    def entries(self, variant: Variant, layers: Sequence[int]) -> tuple[Variant, Variant]:
        """The sender's and the main one, of a model with attention in these layers."""
        first = min(change.layer for change in variant)
        mine = [each for each in self.receivers if each.layer > first]
        held = [Held(layer) for layer in layers if layer >= first]
        same = [Change(each.layer, each.head, Lent(1, _others(each.inputs))) for each in mine]
        lent = [Change(each.layer, each.head, Lent(-1, each.inputs)) for each in mine]
        return (*held, *same, *variant), tuple(lent)


def holding(layer: int, variants: Sequence[Variant]) -> list[Variant]:
    """At an attention that is no receiver's: in every sender's entry the answers of the main one."""
    held = (Held(layer),)
    return [held if any(isinstance(one, Held) for one in variant) else () for variant in variants]


def _others(inputs: str) -> str:
    return "".join(each for each in INPUTS if each not in inputs)
