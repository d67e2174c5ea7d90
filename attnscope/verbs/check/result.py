"""The result of `check`: how far the numbers of a rerun lie from the stored ones."""

from dataclasses import dataclass
from enum import StrEnum

from attnscope.results.base.origin import Provenance, Verdict, worst
from attnscope.results.base.presented import Presented, Value
from attnscope.results.heads import Placed


class Case(StrEnum):
    """Outcomes of a check: the same to the bit, the same but for rounding, or different."""

    DIFFERS = "differs"
    SAME_TO_THE_BIT = "same to the bit"
    SAME_BUT_ROUNDING = "same but rounding"
    NO_HEAD = "no head"


@dataclass(frozen=True)
class HeadCheck(Placed):
    """One head: of its stored numbers those of `stage` differ most, by `off`; `allowed` is tolerated.

    `off` is infinite where only one side has a number. `rounding` is how far these numbers move in reruns
    with weights moved by their precision; a multiple of it, plus the certificate's tolerance, is `allowed`.
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
        """Whether the head is as stored within the tolerance, and its new certificate has not failed."""
        return self.off <= self.allowed and self.verdict is not Verdict.FAILED


@dataclass(frozen=True)
class PartCheck:
    """One field, `name`, of an answer that is more than heads.

    Its numbers differ by at most `off`, of which `allowed` is tolerated; infinite where words or places
    differ. `rounding` is how far they move in reruns with weights moved by their precision.
    """

    name: str
    off: float
    allowed: float
    rounding: float = 0.0

    for_readers = ("as_stored",)

    @property
    def as_stored(self) -> bool:
        """Whether the field is as stored within the tolerance."""
        return self.off <= self.allowed


@dataclass(frozen=True, eq=False, repr=False)
class Check(Presented):
    """The heads of the stored run `file`, each compared with its rerun; `changes` list what else differs.

    `parts` are the fields of an answer that is more than heads. `provenance` is the rerun's, `stored` the
    file's (None for numbers without a model); `proved` is the verdict of the new answer, where it has one.
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
        """The outcome of the check."""
        if self.off or not self.every:
            return Case.DIFFERS if self.off else Case.NO_HEAD
        return Case.SAME_BUT_ROUNDING if any(each.off for each in self.every) else Case.SAME_TO_THE_BIT

    @property
    def every(self) -> tuple[HeadCheck | PartCheck, ...]:
        """All heads and parts that were compared."""
        return self.heads + self.parts

    @property
    def off(self) -> tuple[HeadCheck | PartCheck, ...]:
        """Heads and parts that are not as stored."""
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
