"""Two runs held against each other head by head: what one gives more, beside what rounding does."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from jaxtyping import Float

from attnscope.results.base.origin import Kind, Provenance, Verdict, worst
from attnscope.results.base.presented import Presented, Value, fits, within
from attnscope.results.heads import head_name
from attnscope.tokens import Tokens


class Case(StrEnum):
    """What can be said of two runs."""

    NO_QUERY = "no query"
    SAME_TO_THE_BIT = "same to the bit"
    SAME_BUT_ROUNDING = "same but rounding"
    CHANGED = "changed"


@dataclass(frozen=True)
class Run:
    """One of two runs: what it is called, where it comes from, and its worst verdict."""

    name: str
    kind: Kind
    query_tokens: Tokens
    key_tokens: Tokens
    provenance: Provenance
    verdict: Verdict


@dataclass(frozen=True, eq=False, repr=False)
class Difference(Presented):
    """Heads of run `a` beside heads of run `b`; `pairs` are layer and head of the one and of the other.

    `rows` are Jensen-Shannon divergences of each query's weights in nats, 0 to ln 2 (Lin 1991; what a sink
    takes counts as one more key), NaN where a query has no key; `divergences` their mean. `largest` is the
    largest difference of a weight, `rounding` the sum of both certificates' tolerances, NaN where there is
    none: a difference below it is none. `unlike` is the control: the median divergence of two neighbouring
    heads of one layer of `a`, NaN where there are not two. `before` and `after` are the weights of the pair
    at the place `shown`.
    """

    a: Run
    b: Run
    pairs: tuple[tuple[int, int, int, int], ...]
    rows: Float[np.ndarray, "pair query"]
    divergences: Float[np.ndarray, " pair"]
    largest: Float[np.ndarray, " pair"]
    rounding: Float[np.ndarray, " pair"]
    unlike: float
    shown: int
    before: Float[np.ndarray, "query key"]
    after: Float[np.ndarray, "query key"]

    asks_alone = True
    for_readers = ("verdict", "case")

    @property
    def verdict(self) -> Verdict:
        """The worse of both runs' verdicts."""
        return worst((self.a.verdict, self.b.verdict))

    @property
    def provenance(self) -> Provenance:
        """That of the first; pictures and files name both."""
        return self.a.provenance

    @property
    def ranking(self) -> list[int]:
        """The places of the pairs, those that differ most first; NaN last."""
        return [int(i) for i in np.argsort(-np.nan_to_num(self.divergences, nan=-1.0), kind="stable")]

    @property
    def within_rounding(self) -> int:
        """How many heads differ by no more than rounding may make them differ."""
        return int((self.largest <= self.rounding).sum())

    @property
    def is_same(self) -> bool:
        """Whether every weight of both runs is the same number."""
        return bool((self.largest == 0).all())

    @property
    def case(self) -> Case:
        """What can be said."""
        if np.isnan(self.divergences[self.shown]):
            return Case.NO_QUERY
        if self.is_same:
            return Case.SAME_TO_THE_BIT
        return Case.SAME_BUT_ROUNDING if self.within_rounding == len(self.pairs) else Case.CHANGED

    @property
    def signed(self) -> Float[np.ndarray, "query key"]:
        """What `b` gives more than `a` in the pair that is shown."""
        return np.asarray(self.after - self.before)

    @property
    def other_tokens(self) -> int:
        """At how many positions of the queries and keys the two runs read other tokens."""
        sides = ((self.a.query_tokens, self.b.query_tokens), (self.a.key_tokens, self.b.key_tokens))
        places = [
            sum(x.name != y.name for x, y in zip(first.items, second.items, strict=True))
            for first, second in sides
        ]
        return places[0] if self.a.query_tokens == self.a.key_tokens else sum(places)

    def name(self, place: int) -> str:
        """`L3 H11`, or `L3 H11 and L2 H10` where these are two."""
        layer, head, other, second = self.pairs[place]
        first = head_name(layer, head)
        return first if (layer, head) == (other, second) else f"{first} and {head_name(other, second)}"

    def check_parts(self) -> None:
        fits(within(self.shown, len(self.pairs)), "'shown' is none of the pairs")
        sizes = [(len(run.query_tokens), len(run.key_tokens)) for run in (self.a, self.b)]
        fits(sizes[0] == sizes[1] == self.before.shape, "'a' and 'b' have not as many tokens")

    def derived(self) -> dict[str, Value]:
        """The pairs as a ranking, those that differ most first."""
        numbers = ("divergences", "largest", "rounding")
        names = ("layer", "head", "layer_b", "head_b")
        return {
            "looked_at": len(self.pairs),
            "within_rounding": self.within_rounding,
            "other_tokens": self.other_tokens,
            "unit": "nats",
            "provenance": self.a.provenance,
            "ranking": [
                dict(zip(names, self.pairs[i], strict=True))
                | {name.removesuffix("s"): float(getattr(self, name)[i]) for name in numbers}
                for i in self.ranking
            ],
        }
