"""Result of `why --answer`: the answer's logit as a sum over model parts, with tests by replacement."""

from dataclasses import dataclass, field
from enum import StrEnum

from attnscope.results.base.origin import Provenance
from attnscope.results.base.presented import Presented, fits, within
from attnscope.results.claims.effect import Answer
from attnscope.tokens import Tokens


class Case(StrEnum):
    """Which conclusion the largest of the replaced parts allows."""

    STANDS = "stands"  # replacing it undoes its contribution, more than any control does
    OTHERWISE = "otherwise"  # replacing it does not undo its contribution
    CONTROLLED = "controlled"  # replacing a control does as much
    ALONE = "alone"  # there is no control
    NONE = "no part"  # no head and no MLP contributes


@dataclass(frozen=True)
class Taken:
    """Change of the logit, or of the difference of logits, when a part is replaced.

    `held`: the change with all other parts fixed, norms and word head recomputed; `total`: the change with
    everything recomputed, and `probability` that of the answer then. `norm` is the largest change factor of
    the scale of a norm, others held.
    """

    held: float
    total: float
    probability: float
    norm: float


@dataclass(frozen=True)
class Contribution:
    """Direct contribution of one part to the answer's logit, through no later part: `direct`.

    `layer` and `head` are None for parts without one. `source` is the token from which most of a head's
    contribution comes, with `source_share`; None where that is unknown. `removed` is None where the part was
    not replaced. `controls` are the total effects of replacing the other heads of the layer, or for an MLP
    the other MLPs; empty where the part was not replaced.
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
        """True where replacing the part moves the logit against its contribution."""
        return self.removed is not None and self.removed.total * self.direct < 0

    @property
    def stands(self) -> bool:
        """Whether replacing the part undoes its contribution, with a larger effect than any control."""
        if self.removed is None or not self.controls:
            return False
        return self.agrees and abs(self.removed.total) > max(map(abs, self.controls))


@dataclass(frozen=True, eq=False, repr=False)
class Contributions(Presented):
    """The logit of an `answer`, or its lead over the answer `against`, as a sum over `parts`.

    `summed` is the sum of all direct contributions, equal to the `logit` of the unchanged model up to
    `residual`, relative to the larger of the two logits. Norms have their observed scale; nonlinear parts of
    the word head are linearised there, and the remainder is a part of its own. `position` is that of the
    answer, None where it is about the whole text. A part was replaced by its mean over the other tokens, or
    by its value in the text `other_tokens`.
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
        """Parts, the largest absolute contribution first."""
        return tuple(sorted(self.parts, key=lambda part: -abs(part.direct)))

    @property
    def largest(self) -> Contribution | None:
        """The replaced part with the largest absolute contribution, or None."""
        return next((part for part in self.ranked if part.removed is not None), None)

    @property
    def case(self) -> Case:
        """Which conclusion the largest replaced part allows."""
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
