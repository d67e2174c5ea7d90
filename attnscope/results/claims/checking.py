"""A stored run held against the same run made anew: does this installation still give its numbers?"""

from dataclasses import dataclass

from attnscope.results.base.origin import Provenance, Verdict, worst
from attnscope.results.base.parts import Value
from attnscope.results.base.presented import Presented


@dataclass(frozen=True)
class HeadCheck:
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

    @property
    def as_stored(self) -> bool:
        """Whether it is as stored, within the tolerance, and proved now where it is to be."""
        return self.off <= self.allowed and self.verdict is not Verdict.FAILED

    @property
    def name(self) -> str:
        return f"L{self.layer} H{self.head}"

    def derived(self) -> dict[str, Value]:
        return {"as_stored": self.as_stored}


@dataclass(frozen=True, eq=False, repr=False)
class Check(Presented):
    """The heads of the stored run `file`, each against what it is now; `changes` say what is not as it was.

    `provenance` is that of the new run, `stored` that of the file.
    """

    file: str
    heads: tuple[HeadCheck, ...]
    changes: tuple[str, ...]
    stored: Provenance
    provenance: Provenance

    @property
    def off(self) -> tuple[HeadCheck, ...]:
        """The heads that are not as stored."""
        return tuple(each for each in self.heads if not each.as_stored)

    @property
    def verdict(self) -> Verdict:
        """`failed` where a head is not as stored, else the worst of the new certificates."""
        return Verdict.FAILED if self.off else worst(each.verdict for each in self.heads)

    def derived(self) -> dict[str, Value]:
        return {"verdict": self.verdict, "checked": len(self.heads), "not_as_stored": len(self.off)}
