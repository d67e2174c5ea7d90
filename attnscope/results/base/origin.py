"""Provenance, verdict and certificate of a result, and the kind of attention it is about."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from attnscope.vocabulary import Effect, Kind, Route, Standing

__all__ = ["Certificate", "Fault", "Kind", "Provenance", "Route", "Verdict"]


class Verdict(StrEnum):
    """The conclusion of a certificate, best first (see `attnscope.verify`).

    A result read from a file is at best `recomputed`: its numbers follow from the queries, keys and values
    beside them; or `stored`: only the file says so.
    """

    CERTIFIED = "certified"
    RECOMPUTED = "recomputed"
    INCONCLUSIVE = "inconclusive"
    PARTIAL = "partial"
    STORED = "stored"
    UNCERTIFIED = "uncertified"
    FAILED = "failed"

    @property
    def proved(self) -> bool:
        """Whether everything was proved: certified, or recomputed from a file."""
        return self in (Verdict.CERTIFIED, Verdict.RECOMPUTED)

    @property
    def stands_out(self) -> bool:
        """Whether a head with this verdict is marked among others: not proved, and not just stored."""
        return not self.proved and self is not Verdict.STORED

    def from_file(self, follows: bool) -> "Verdict":
        """The verdict once read from a file; `follows` says that its numbers were recomputed."""
        if follows and self.proved:
            return Verdict.RECOMPUTED
        return self if follows else max(self, Verdict.STORED, key=lambda verdict: verdict.rank)

    @property
    def rank(self) -> int:
        """The rank of the verdict: 0 is best, larger proves less."""
        return list(Verdict).index(self)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict that proves least; `uncertified` for no verdicts."""
    return max(verdicts, key=lambda verdict: verdict.rank, default=Verdict.UNCERTIFIED)


def tallied(verdicts: Iterable[Verdict]) -> dict[Verdict, int]:
    """The number of each verdict, best first."""
    count = Counter(verdicts)
    return {each: count[each] for each in Verdict if count[each]}


@dataclass(frozen=True)
class Provenance:
    """The origin of a result: model, weights, inputs, kernel and versions.

    `requested` is the model name asked for, `model` the one that ran, `demo` whether it is bundled,
    `architecture` its class. `revision` is a hub commit, `digest` a SHA-256 of the weight files read, `part`
    how many of them that is if not all. `unread` names weights in them that the model was trained with and
    run without. `adapter` is the folder of an adapter, which `digest` includes; `none` where the model has
    one that was left out. `tokenizer` is the source of a tokenizer other than the model's own. `kernel`,
    `route`, `device` and `dtype` are how attention was computed and read. `versions` are those of the
    libraries. `token_ids` is what was read. `inputs` is all that the model was called with, by name; empty
    where that is not whole numbers alone, as for a picture, or is of several texts.

    `read` and `run` are the input and the model as words of a command: ("The door opened.", "--truncate")
    and ("-m", "demo"). `read` is None where no words say it, `run` empty for a model in memory. `files` are
    the files read, each with its SHA-256.
    """

    requested: str
    model: str
    architecture: str
    revision: str | None
    digest: str | None
    demo: bool
    kernel: str
    route: str
    device: str
    dtype: str
    versions: dict[str, str]
    token_ids: tuple[int, ...]
    part: str | None = None
    unread: tuple[str, ...] = ()
    adapter: str | None = None
    inputs: dict[str, tuple[int, ...]] = field(default_factory=dict)
    tokenizer: str | None = None
    read: tuple[str, ...] | None = None
    run: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)

    @property
    def of_no_text(self) -> "Provenance":
        """This provenance without its text, for numbers that come from several texts."""
        return replace(self, token_ids=(), inputs={}, read=None, files={})

    @property
    def source(self) -> str:
        """The pin of the weights (commit or start of a hash), with remarks on what was not read.

        A commit says nothing of an adapter from elsewhere: the hash stands beside it.
        """
        pin = self.revision[:10] if self.revision else self.digest[:19] if self.digest else "unpinned"
        count = len(self.unread)
        unread = f"{count} weight{'s' if count > 1 else ''} unread" if count else None
        adapted = self.revision and self.digest and self.adapter not in (None, "none")
        whole = f"with the adapter {self.digest[:19]}" if adapted and self.digest else None
        remarks = ", ".join(each for each in (self.part, whole, unread) if each)
        return f"{pin} ({remarks})" if remarks else pin


@dataclass(frozen=True)
class Fault:
    """A deliberate mistake in the recomputation, and the error that it causes.

    `weight_error` and `output_error` are its errors, and `power` is the error over the tolerance: above 1 the
    certificate would have caught the mistake.

    """

    name: str
    weight_error: float
    output_error: float
    power: float


@dataclass(frozen=True)
class Reach:
    """Whether changing a head's output changes the model's, and at which rows, tested in `runs` passes.

    `reason` says why that is not known, `beside` what else was seen of its block, which is no fault.
    """

    effect: Effect = Effect.UNKNOWN
    reason: str = ""
    runs: int = 0
    beside: str = ""


@dataclass(frozen=True)
class Certificate:
    """A comparison of one head's recomputed attention with the model's own.

    `weight_error` is the largest absolute difference of a weight; `output_error` that of an output entry
    over the largest value entry. `weight_tolerance` and `output_tolerance` are the most that rounding
    explains. All four are dimensionless; `precision` says what the tolerances were derived from. `faults`
    come smallest power first. `positions` says whether each query, key and value was seen to belong to the
    token at its place, `positions_tried` how that was tested where not every token was told from every
    other. `reason` says why the head is not certified, if it is not.
    """

    verdict: Verdict
    weight_error: float
    weight_tolerance: float
    output_error: float
    output_tolerance: float
    precision: str
    faults: tuple[Fault, ...]
    reason: str = ""
    positions: Standing = Standing.UNKNOWN
    positions_tried: str = ""
    reach: Reach | None = None

    for_readers = ("power", "unseen")

    @property
    def power(self) -> float:
        """The smallest power of any fault; 0 where no fault could be tried."""
        return min((fault.power for fault in self.faults), default=0.0)

    @property
    def unseen(self) -> tuple[str, ...]:
        """Names of the faults that the certificate would miss (power at most 1)."""
        return tuple(fault.name for fault in self.faults if not fault.power > 1)


class Certified:
    """Base of results with one `certificate`."""

    certificate: Certificate

    @property
    def verdict(self) -> Verdict:
        """The verdict of the certificate."""
        return self.certificate.verdict


class Counted:
    """Base of results about many heads, with a count of each verdict."""

    certified: dict[Verdict, int]

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of any certified head."""
        return worst(each for each, count in self.certified.items() if count)
