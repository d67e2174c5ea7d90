"""What a corpus will cost: what was measured of some of its texts, and what follows for all of them."""

from dataclasses import dataclass

from attnscope.results.base.origin import Provenance
from attnscope.results.base.parts import fits
from attnscope.results.base.presented import Presented

_STARTS = ("command", "worker")  # what a start is for


@dataclass(frozen=True)
class Term:
    """One thing that is done: `seconds` of a core were measured for a `unit`, of which there will be `count`.

    `driver` says that the command does it, one after the other, and not the workers among them.
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
    """The texts that were measured. `texts` is how many, `tokens` how many these have in all.

    `bytes` is how much of the files they were taken from. `error` is the standard error of the mean number of
    tokens of a text, as a share of it.
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

    `files` are the names of what is read. Measured are the `terms`' seconds, the `memory` of a worker and
    what was `sampled`. All else is calculated from the `size` of the files in bytes: `texts` and `tokens` as
    in the sample, `splits`, of which each is a part of the run, and the `kept` bytes of its folder, about.
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

    for_readers = ("seconds", "wall")

    @property
    def seconds(self) -> float:
        """Of all workers' cores or devices, and of the command."""
        return sum(term.whole for term in self.terms)

    @property
    def wall(self) -> float:
        """Seconds until it is done, where every worker has a core or a device of its own.

        The command starts, then the workers do, side by side; what the command does while they measure
        decides where it takes longer.
        """
        start = sum(term.seconds for term in self.terms if term.unit in _STARTS)
        rest = [term for term in self.terms if term.unit not in _STARTS]
        shared = sum(term.whole for term in rest if not term.driver)
        alone = sum(term.whole for term in rest if term.driver)
        return start + max(shared / min(self.workers * self.machines, self.splits), alone)
