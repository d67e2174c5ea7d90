"""Result of `why` for a link: one attention score as sums over earlier parts, from query and key."""

from dataclasses import dataclass
from enum import StrEnum
from statistics import mean, stdev

from attnscope.results.base.origin import Certificate, Certified, Kind, Provenance
from attnscope.results.base.presented import Presented, fits, within
from attnscope.tokens import Tokens

MUCH = 0.5  # share of the weight lost without a reason, and of the contrast that it brings, at least
FEWEST, SPREADS = 3, 3.0  # fewest controls of a reason; standard deviations that it exceeds their mean by
TWICE = 0.6931471805599453  # ln 2: score difference that doubles the weight
EXACT = 3e-5  # largest relative error of a sum of parts
MLP, BIASES, OTHER = "MLP", "biases", "other constants"
LEFT = "left over"  # remainder of linearising what follows the last layer


class Side(StrEnum):
    """Whether parts of the query or of the key are summed. Each sum is the whole score."""

    QUERY = "query"
    KEY = "key"


class Case(StrEnum):
    """Which conclusion an explained score allows."""

    NOT_ABOVE = "no look"
    BOTH = "reasons at both ends"
    QUERY = "a reason at the query"
    KEY = "a reason at the key"
    SHARE = "a large share and no reason"
    NONE = "no single reason"


class Lack(StrEnum):
    """Why a part is not called a reason: the first test that it fails."""

    NOT_TAKEN = "not taken"  # the part was not replaced
    AGAINST = "against"  # without the part the score does not fall
    FEW = "few"  # too few controls
    CONTROLLED = "controlled"  # a control does as much, or nearly
    STAYS = "stays"  # most of the weight stays without the part
    SMALL = "small"  # the part brings less than half of the contrast


@dataclass(frozen=True)
class Removed:
    """Change of the contrast when a part is replaced in the rows that this side reads.

    `held`: the change with all other parts fixed, norms recomputed; `total`: the change with everything
    recomputed, and `weight` the head's weight on the key then. `norm` is the largest change factor of the
    scale of a norm, others held: far from 1, it stretches the rest of the sum.
    """

    held: float
    total: float
    weight: float
    norm: float


@dataclass(frozen=True)
class Part:
    """Contribution of one part to the `score` and to the `contrast`, from one side.

    `layer` and `head` are None for parts without one. `source` is the token from which most of a head's share
    comes, with `source_share`. `removed` is None where the part was not replaced. `controls` are the total
    effects of replacing the other heads of the layer, or for an MLP the other MLPs, on the same side in the
    same row; empty where the part was not replaced.
    """

    side: Side
    name: str
    layer: int | None
    head: int | None
    source: int | None
    source_share: float
    score: float
    contrast: float
    removed: Removed | None = None
    controls: tuple[float, ...] = ()

    for_readers = ("stands",)

    @property
    def told(self) -> bool:
        """True where replacing the part moves the contrast against its share."""
        return self.removed is not None and self.removed.total * self.contrast < 0

    @property
    def stands(self) -> bool:
        """Whether replacing the part does what its share says, and far more than for enough controls."""
        if self.removed is None or not self.told or len(self.controls) < FEWEST:
            return False
        effects, own = [abs(each) for each in self.controls], abs(self.removed.total)
        return own > max(effects) and own >= mean(effects) + SPREADS * stdev(effects)


@dataclass(frozen=True)
class Pair:
    """Joint share of the `contrast` of two parts by name, `query` of the query and `key` of the key."""

    query: str
    key: str
    contrast: float


@dataclass(frozen=True, eq=False, repr=False)
class Why(Certified, Presented):
    """The score of one query and one key of a head, and its contrast, as sums over parts of the model.

    `weight` is the head's weight on the key. `score` is the softmax input of the two, before a soft cap where
    it is `capped`; `contrast` is that score minus the one of the key `against`, or (None) minus the mean of
    all `others` that the query may see.
    On each side the `parts` sum to both, up to `residual`, the largest relative error.
    `pairs` are the largest of `tried`: pairs of the largest parts of the query with all parts of the key.
    A part of the key was replaced by its mean over the keys compared with, a part of the query by its mean
    over the other tokens; or each by its value in the text `other_tokens`.
    """

    layer: int
    head: int
    kind: Kind
    query_tokens: Tokens
    key_tokens: Tokens
    query: int
    key: int
    against: int | None
    others: int
    weight: float
    score: float
    contrast: float
    parts: tuple[Part, ...]
    pairs: tuple[Pair, ...]
    tried: int
    residual: float
    certificate: Certificate
    provenance: Provenance
    capped: bool = False
    other_tokens: Tokens | None = None
    tower: str = ""
    notes: tuple[str, ...] = ()

    for_readers = ("verdict", "case", "reasons")

    @property
    def looks(self) -> bool:
        """Whether the key has twice the weight that it is compared with, and at least even attention."""
        even = 0.0 if self.against is not None else 1 / (self.others + 1)
        return self.contrast >= TWICE and self.weight >= even

    def side(self, side: Side) -> tuple[Part, ...]:
        """Parts of one side, the largest share of the contrast first."""
        return tuple(sorted((p for p in self.parts if p.side is side), key=lambda p: -abs(p.contrast)))

    def lack_of(self, part: Part) -> Lack | None:
        """The first test of a reason that `part` fails; None where it is a reason."""
        if part.removed is None:
            return Lack.NOT_TAKEN
        tests = {
            Lack.AGAINST: part.told and part.contrast > 0,
            Lack.FEW: len(part.controls) >= FEWEST,
            Lack.CONTROLLED: part.stands,
            Lack.STAYS: part.removed.weight <= MUCH * self.weight,
            Lack.SMALL: part.contrast >= MUCH * self.contrast,
        }
        return next((lack for lack, passed in tests.items() if not passed), None)

    def is_reason(self, part: Part) -> bool:
        """Whether the head looks there because of `part`: it brings at least half of the contrast, and
        replacing it removes at least half of the weight, far more than replacing any control.
        """
        return self.looks and self.lack_of(part) is None

    def reasons_of(self, side: Side) -> tuple[Part, ...]:
        """Parts of one side for which `is_reason` is True, the largest share first."""
        return tuple(filter(self.is_reason, self.side(side)))

    @property
    def reasons(self) -> dict[str, tuple[str, ...]]:
        """Names of the parts that are reasons for the look, by side."""
        return {side.value: tuple(part.name for part in self.reasons_of(side)) for side in Side}

    @property
    def largest(self) -> Part | None:
        """The replaced part with the largest share of the contrast, or None."""
        tried = [part for part in self.parts if part.removed is not None]
        return max(tried, key=lambda part: part.contrast, default=None)

    @property
    def missed(self) -> Part | None:
        """The replaced part without which the weight is smallest, or None."""
        tried = [(part.removed.weight, i) for i, part in enumerate(self.parts) if part.removed is not None]
        return self.parts[min(tried)[1]] if tried else None

    @property
    def case(self) -> Case:
        """Which conclusion the score allows."""
        if not self.looks:
            return Case.NOT_ABOVE
        query, key = (bool(self.reasons_of(side)) for side in Side)
        if query or key:
            return Case.BOTH if query and key else Case.QUERY if query else Case.KEY
        much = self.largest is not None and self.largest.contrast >= MUCH * self.contrast
        return Case.SHARE if much else Case.NONE

    def check_parts(self) -> None:
        fits(within(self.query, len(self.query_tokens)), "'query' is no token's position")
        for name, place in ("key", self.key), ("against", self.against):
            fits(within(place, len(self.key_tokens)), f"'{name}' is no token's position")
