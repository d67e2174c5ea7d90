"""What a corpus will cost: what was measured of some of its texts, and what follows for all of them."""

from dataclasses import dataclass

from attnscope.results.base.origin import Provenance
from attnscope.results.base.parts import fits
from attnscope.results.base.presented import Presented


@dataclass(frozen=True)
class Term:
    """One thing that is done: `seconds` of a core were measured for one `unit`, of which there will be `count`.

    `driver` says that whoever asks does it, one after the other, and not the workers among them.
    """

    name: str
    seconds: float
    unit: str
    count: float
    driver: bool = False

    @property
    def whole(self) -> float:
        """Seconds for all of them."""
        return self.seconds * self.count


@dataclass(frozen=True)
class Sampled:
    """The texts that were measured: how many, their tokens, and the bytes of the files that held them.

    `error` is the standard error of the mean number of tokens of a text, as a share of it.
    """

    texts: int
    tokens: int
    bytes: int
    error: float

    def check_parts(self) -> None:
        fits(self.texts > 0 and self.tokens > 0 and self.bytes > 0, "nothing was measured")


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(Presented):
    """The cost of a corpus on `machines` of so many `workers` each.

    Measured are the `terms`' seconds, the `memory` of a worker and what was `sampled`. All else is calculated
    from the `size` of the files in bytes: `texts` and `tokens` as in the sample, `splits`, of which
    each is a part of the run, and the `kept` bytes of its folder, which is at most so large.
    """

    files: tuple[str, ...]
    size: int
    sampled: Sampled
    terms: tuple[Term, ...]
    texts: float
    tokens: float
    splits: int
    workers: int
    machines: int
    memory: int | None
    kept: float
    provenance: Provenance

    for_readers = ("core_hours", "wall")

    @property
    def core_hours(self) -> float:
        """Of all workers, and of whoever asks."""
        return sum(term.whole for term in self.terms) / 3600

    @property
    def wall(self) -> float:
        """Seconds until it is done, where every worker has a core or a device of its own.

        Workers open their models side by side; what whoever asks does goes on meanwhile, and decides where it
        takes longer.
        """
        start = sum(term.seconds for term in self.terms if term.unit == "worker")
        shared = sum(term.whole for term in self.terms if not term.driver and term.unit != "worker")
        alone = sum(term.whole for term in self.terms if term.driver)
        return start + max(shared / min(self.workers * self.machines, self.splits), alone)
