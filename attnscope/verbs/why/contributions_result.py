"""Why a model answers what it answers: the answer's logit as a sum over its parts, beside removing them."""

from dataclasses import dataclass, field
from enum import StrEnum

from attnscope.results.base.origin import Provenance
from attnscope.results.base.presented import Presented, fits, within
from attnscope.results.claims.effect import Answer
from attnscope.tokens import Tokens


class Case(StrEnum):
    """What can be said of the part that brings most of what was taken away."""

    STANDS = "stands"  # taking it away does what it brings, and more than any control does
    OTHERWISE = "otherwise"  # taking it away does not do what it brings
    CONTROLLED = "controlled"  # a control does as much when it is taken away
    ALONE = "alone"  # there is no control to hold it against
    NONE = "no part"  # no head and no MLP that can be told apart brings anything


@dataclass(frozen=True)
class Taken:
    """What the logit or the difference becomes more or less when a part is replaced where the answer stands.

    `held`: all other parts stay as they were, the norms and the word head follow; `total`: everything is
    computed again, and the answer then has the `probability`. `norm` is by what factor the scale of a norm
    moved that moved most, others held.
    """

    held: float
    total: float
    probability: float
    norm: float


@dataclass(frozen=True)
class Contribution:
    """What one part brings to the answer directly, by no later part: `direct`.

    `layer` and `head` are None of what is of none. `source` is the token from which most of what a head
    brings comes, with `source_share`; None where that was not followed. `removed` is None of what was not
    taken away; then there are no `controls` either: the total effects of the other heads of the layer, of an
    MLP those of the other MLPs.
    """

    name: str
    layer: int | None
    head: int | None
    source: int | None
    source_share: float
    direct: float
    removed: Taken | None = None
    controls: tuple[float, ...] = ()

    for_readers = ("stands",)

    @property
    def agrees(self) -> bool:
        """Whether taking it away moves the answer against what it brings."""
        return self.removed is not None and self.removed.total * self.direct < 0

    @property
    def stands(self) -> bool:
        """Whether taking it away does what it brings, and more than any control does."""
        if self.removed is None or not self.controls:
            return False
        return self.agrees and abs(self.removed.total) > max(map(abs, self.controls))


@dataclass(frozen=True, eq=False, repr=False)
class Contributions(Presented):
    """The logit of an `answer`, or how far it lies above that of `against`, as a sum of `parts`.

    The sum of what all parts bring is `summed`, which is the `logit` of the untouched model up to `residual`,
    a share of the larger of the two logits. Norms have their observed scale; what is not linear in the word
    head is taken at its slope there, and what that leaves over is a part of its own. `position` is where the
    answer stands, None of one about the text as a whole. A part was replaced by its mean over the other
    tokens, or by what it is in the text `other_tokens`.
    """

    tokens: Tokens
    position: int | None
    answer: Answer = field(metadata={"file": "target"})
    against: Answer | None
    logit: float
    summed: float
    residual: float
    parts: tuple[Contribution, ...]
    provenance: Provenance
    other_tokens: Tokens | None = None
    notes: tuple[str, ...] = ()

    for_readers = ("verdict", "case")

    @property
    def ranked(self) -> tuple[Contribution, ...]:
        """Its parts, what brings most first."""
        return tuple(sorted(self.parts, key=lambda part: -abs(part.direct)))

    @property
    def largest(self) -> Contribution | None:
        """Of what was taken away the part that brings most."""
        return next((part for part in self.ranked if part.removed is not None), None)

    @property
    def case(self) -> Case:
        """What can be said of the largest part, by one test after the other."""
        part = self.largest
        if part is None:
            return Case.NONE
        if not part.agrees:
            return Case.OTHERWISE
        if not part.controls:
            return Case.ALONE
        return Case.STANDS if part.stands else Case.CONTROLLED

    def check_parts(self) -> None:
        fits(bool(self.parts), "'parts' are none")
        if self.position is not None:
            fits(within(self.position, len(self.tokens)), "'position' is no token's position")
        for part in self.parts:
            if part.source is not None:
                fits(within(part.source, len(self.tokens)), "a 'source' is no token's position")
