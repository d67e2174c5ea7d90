"""What asking a stored result again came to."""

from dataclasses import dataclass
from enum import StrEnum

from attnscope.results.base.origin import Provenance, Verdict, worst
from attnscope.results.base.presented import Presented, Value
from attnscope.results.heads import Placed


class Case(StrEnum):
    """What can be said of a stored run that was made anew."""

    DIFFERS = "differs"
    SAME_TO_THE_BIT = "same to the bit"
    SAME_BUT_ROUNDING = "same but rounding"
    NO_HEAD = "no head"


@dataclass(frozen=True)
class HeadCheck(Placed):
    """One head: of all its stored numbers those of `stage` lie furthest off, by `off` where `allowed` may be.

    `off` is infinite where one of both has no number. `rounding` is what these numbers move by in runs whose
    weights were moved by their precision; a multiple of it, and the certificate's tolerance, is `allowed`.
    `verdict` is that of the new certificate.
    """

    layer: int
    head: int
    stage: str
    off: float
    allowed: float
    verdict: Verdict
    rounding: float = 0.0

    for_readers = ("as_stored",)

    @property
    def as_stored(self) -> bool:
        """Whether it is as stored, within the tolerance, and proved now where it is to be."""
        return self.off <= self.allowed and self.verdict is not Verdict.FAILED


@dataclass(frozen=True)
class PartCheck:
    """One field of an answer that is more than heads, by its `name`.

    Its numbers lie `off` by at most so much where `allowed` may be; infinite where it has other words or
    places than it had. `rounding` is what they move by in runs whose weights were moved by their precision.
    """

    name: str
    off: float
    allowed: float
    rounding: float = 0.0

    for_readers = ("as_stored",)

    @property
    def as_stored(self) -> bool:
        """Whether it is as stored, within the tolerance."""
        return self.off <= self.allowed


@dataclass(frozen=True, eq=False, repr=False)
class Check(Presented):
    """The heads of the stored run `file`, each against what it is now; `changes` say what is not as it was.

    Of another answer `parts` are its fields. `provenance` is that of the new run, `stored` that of the file
    (None of numbers without a model); `proved` is the verdict of the new answer, where it has one.
    """

    file: str
    heads: tuple[HeadCheck, ...]
    changes: tuple[str, ...]
    stored: Provenance | None
    provenance: Provenance | None
    parts: tuple[PartCheck, ...] = ()
    proved: Verdict | None = None

    for_readers = ("verdict", "case")

    @property
    def case(self) -> Case:
        """What can be said."""
        if self.off or not self.every:
            return Case.DIFFERS if self.off else Case.NO_HEAD
        return Case.SAME_BUT_ROUNDING if any(each.off for each in self.every) else Case.SAME_TO_THE_BIT

    @property
    def every(self) -> tuple[HeadCheck | PartCheck, ...]:
        """All that was held against what it is now."""
        return self.heads + self.parts

    @property
    def off(self) -> tuple[HeadCheck | PartCheck, ...]:
        """What is not as stored."""
        return tuple(each for each in self.every if not each.as_stored)

    @property
    def verdict(self) -> Verdict:
        """`failed` where something is not as stored, else the worst of the new certificates.

        An answer without a certificate was computed again, and is the same.
        """
        if self.off or not self.parts:
            return Verdict.FAILED if self.off else worst(each.verdict for each in self.heads)
        return self.proved or Verdict.RECOMPUTED

    def derived(self) -> dict[str, Value]:
        return {"checked": len(self.every), "not_as_stored": len(self.off)}
