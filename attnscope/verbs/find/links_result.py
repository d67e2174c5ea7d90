"""What is linked in a text: the links that nothing but its words in this order explains."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from jaxtyping import Float, Int

from attnscope.results.base.evidence import Link
from attnscope.results.base.origin import Kind, Provenance, Verdict, worst
from attnscope.results.base.presented import Presented, fits, one_for_each, within
from attnscope.results.claims.ranking import LEAST_CONTROLS, LEVEL
from attnscope.tokens import Tokens


class Case(StrEnum):
    """What can be said of the links of a text."""

    NOTHING = "nothing"
    SEVERAL = "several"
    ONE = "one"
    FEW_CONTROLS = "few controls"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, eq=False, repr=False)
class Links(Presented):
    """Links between two words, most evidence first, of all heads that were looked at.

    `layer` and `head` of a link are the model's numbers. Its evidence is its weight above the largest of
    what may explain it: the most of any control text at the same two places, the mean of other queries at
    that distance and to that key, even attention. Only links with at least .1 are there; `more` are not kept.

    Every control, read as if it were the text and the text as one of its controls, has a link with most
    evidence: `best_of_controls`. A link stands out where at most 5 in a hundred of them have as much
    (Westfall and Young 1993). `ids` are the controls as the model read them, drawn with `seed`;
    `input` is the name under which it read them, and `how` says what changed places.
    """

    kind: Kind
    query_tokens: Tokens
    key_tokens: Tokens
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    links: tuple[Link, ...]
    more: int
    best_of_controls: Float[np.ndarray, " control"]
    how: str
    seed: int
    ids: Int[np.ndarray, "control place"]
    input: str
    verdicts: tuple[tuple[Verdict, ...], ...]
    provenance: Provenance
    tower: str = ""
    notes: tuple[str, ...] = ()

    for_readers = ("verdict", "case", "controls", "standing_out", "p")

    def check_parts(self) -> None:
        for link in self.links:
            there = within(link.query, len(self.query_tokens)) and within(link.key, len(self.key_tokens))
            fits(there, "'links' are not all between tokens")
            fits(link.layer in self.layers, "'links' are not all of these layers")
            fits(link.head in self.heads, "'links' are not all of these heads")
        one_for_each(self.verdicts, (len(self.layers), len(self.heads)), "verdicts")

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of any head."""
        return worst(verdict for layer in self.verdicts for verdict in layer)

    @property
    def case(self) -> Case:
        """What can be said."""
        if not self.links:
            return Case.NOTHING
        if self.standing_out:
            return Case.ONE if self.standing_out == 1 else Case.SEVERAL
        return Case.FEW_CONTROLS if self.few else Case.CANNOT_TELL

    @property
    def controls(self) -> int:
        """How many control texts there are."""
        return len(self.best_of_controls)

    @property
    def few(self) -> bool:
        """Whether there are too few controls for any link to stand out."""
        return self.controls < LEAST_CONTROLS

    @property
    def standing_out(self) -> int:
        """How many links, of those that are kept, stand out: the first ones."""
        return sum(self.chance(link) <= LEVEL for link in self.links)

    @property
    def p(self) -> float:
        """Of the text and its controls the share that has a link as clear as the first one; 1 without any."""
        return self.chance(self.links[0]) if self.links else 1.0

    def chance(self, link: Link) -> float:
        """Of the text and its controls the share that has a link with as much evidence."""
        return (1 + self.as_clear(link)) / (self.controls + 1)

    def as_clear(self, link: Link) -> int:
        """How many controls have a link with as much evidence."""
        return int((self.best_of_controls >= link.evidence).sum())
