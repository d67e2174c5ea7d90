"""The result of `ablate`: how the answer changes without a head, beside controls and rounding."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from attnscope.results.base.origin import Kind, Provenance, Verdict
from attnscope.results.base.presented import Arrays, Presented, columns_of, fits, in_tokens
from attnscope.results.claims.effect import (
    Answer,
    ControlIds,
    Effect,
    Floor,
    Group,
    HeadEffect,
    Intervention,
    Measured,
    Method,
    Part,
    Path,
    PlaceEffect,
    Predicted,
)
from attnscope.results.claims.ranking import LEVEL, times
from attnscope.tokens import Tokens


class Case(StrEnum):
    """Outcomes of an ablation: one head or several alone, all at once, or a patch from another text."""

    UNRANKED = "no head"
    ROUNDING = "no more than rounding"
    MOVES = "moves it more than others"
    MIDDLING = "moves it as others do"
    LITTLE = "hardly moves it"
    EACH = "one of many moves it most"
    FLAT = "none of many stands out"
    TOGETHER = "all at once"
    CLOSES = "part of the gap"
    NO_GAP = "no gap between the texts"


MUCH = 5.0  # times the typical head of the layer
FIRST = 1, 2  # that may matter more than all others


@dataclass(frozen=True, eq=False, repr=False)
class Ablation(Presented):
    """The `heads`, ranked by how far the answer changes without each of them, beside the typical head.

    `how` says what replaced the outputs. `link` is the query and the key whose link was cut; where an end is
    a span of several tokens, `link_spans` are the positions of both ends, every one of the first cut from
    every one of the second, and `link` has the first of each. `other` is the text that outputs were taken
    from, `total` the answer's change from this text to that one. `predicted` are all heads by the change that
    gradients predict, the largest first; those in `heads` were then taken away. `rank_correlation` is
    Spearman's, between predicted and measured changes. `predicted_by` is the method: patching, importance,
    attention-gradient or logit. `mean_over` are the texts that a mean is over, `modules` the paths of the
    attention modules by layer.

    `part` is what was changed: heads, or another part, whose effects are in `places`, by layer and by token,
    and not in `heads`. `beside` names the others that each place is compared with. `measured` is the quantity
    that stands for the answer, such as its log probability; `against` is the rival answer, or the text that
    the answer's vector is compared with. `unit` is the unit of changes. `path` is the one path that changes
    act along, None where they act on everything.
    """

    tokens: Tokens
    target: Tokens | None = field(metadata={"file": "target_tokens"})
    kind: Kind
    answer: Answer = field(metadata={"file": "target"})
    method: Method
    how: str
    heads: tuple[HeadEffect, ...]
    group: Group | None
    floor: Floor = field(metadata={"file": "noise_floor"})
    intervention: Intervention
    provenance: Provenance
    tower: str = ""
    link: tuple[int, int] | None = None
    link_spans: tuple[tuple[int, ...], ...] = ()
    other: Tokens | None = field(default=None, metadata={"file": "other_tokens"})
    total: Effect | None = None
    predicted: tuple[Predicted, ...] = ()
    rank_correlation: float | None = None
    notes: tuple[str, ...] = ()
    predicted_by: str = "patching"
    mean_over: tuple[ControlIds, ...] = ()
    modules: dict[str, str] = field(default_factory=dict)
    part: Part = Part.HEAD
    places: tuple[PlaceEffect, ...] = ()
    beside: str = ""
    measured: Measured = Measured.CHANCE
    against: Answer | None = None
    path: Path | None = None

    for_readers = ("verdict", "case", "looked_at", "unit")

    @property
    def verdict(self) -> Verdict:
        """Verdict of the intervention: whether exactly the requested change was made."""
        return self.intervention.verdict

    @property
    def looked_at(self) -> int:
        """Number of heads, or places, that were changed in turn, or whose change was predicted."""
        return len(self.predicted) or len(self.heads) or len(self.places)

    @property
    def alone(self) -> "tuple[HeadEffect, ...] | tuple[PlaceEffect, ...]":
        """Effects of heads or places that were changed one at a time."""
        return self.heads or self.places

    @property
    def by_size(self) -> "Sequence[HeadEffect | PlaceEffect]":
        """Effects of single changes, the largest first, without the answer's own token."""
        return sorted(self._compared, key=lambda each: -abs(each.change))

    @property
    def of_several_tokens(self) -> bool:
        """Whether the places are at more than one set of positions."""
        return len({place.positions for place in self.places}) > 1

    def is_the_answers_own(self, one: HeadEffect | PlaceEffect) -> bool:
        """Whether a place includes the answer's own position, by way of which all other tokens act on it."""
        at = self.answer.position
        return self.of_several_tokens and isinstance(one, PlaceEffect) and at in one.positions

    @property
    def _compared(self) -> "Sequence[HeadEffect | PlaceEffect]":
        alone: Sequence[HeadEffect | PlaceEffect] = self.alone
        return [each for each in alone if not self.is_the_answers_own(each)] or alone

    @property
    def unit(self) -> str:
        """The unit of changes: nats, logits, of cosine."""
        return self.measured.unit

    @property
    def query_tokens(self) -> Tokens:
        """The query tokens of this kind of attention."""
        return self.tokens if self.kind is Kind.ENCODER or self.target is None else self.target

    @property
    def key_tokens(self) -> Tokens:
        """The key tokens of this kind of attention."""
        return self.tokens if self.kind is Kind.CROSS else self.query_tokens

    @property
    def layers(self) -> tuple[int, ...]:
        """The layers of the heads, ascending."""
        return tuple(sorted({each.layer for each in self.heads}))

    @property
    def case(self) -> Case:
        """The first outcome whose test holds."""
        if not self.alone:
            return Case.UNRANKED
        if self.total is not None:
            return Case.CLOSES if self._apart() else Case.NO_GAP
        sizes = sorted((abs(each.change) for each in self._compared), reverse=True)
        together = 0.0 if self.group is None else abs(self.group.effect.change)
        if max(sizes[0], together) <= self.floor.rounding:
            return Case.ROUNDING
        if self.group is not None:
            return Case.TOGETHER
        if sizes[0] < self.measured.little:
            return Case.LITTLE
        if len(sizes) == 1:
            best = self.by_size[0]
            much = bool(best.controls) and sizes[0] >= MUCH * (best.typical or 0.0)
            return Case.MOVES if much and best.rank == 1 else Case.MIDDLING
        return Case.EACH if self._ahead(sizes) else Case.FLAT

    def _ahead(self, sizes: Sequence[float]) -> bool:
        """Whether one or two changes exceed all others by more than chance would among equal ones.

        Changes no larger than rounding are not counted.
        """
        reach = len(self.predicted) or sum(size > self.floor.rounding for size in sizes)
        return any(
            sizes[count - 1] >= times(count, max(reach - count, 1), LEVEL / len(FIRST), 1.0) * sizes[count]
            for count in FIRST
            if len(sizes) > count
        )

    def _apart(self) -> bool:
        """Whether the gap between the texts is at least `measured.little` and the median single change."""
        assert self.total is not None, "there is another text"
        typical = float(np.median([abs(each.change) for each in self.alone]))
        return abs(self.total.change) >= max(self.measured.little, typical)

    def check_parts(self) -> None:
        in_tokens([self.answer.position], len(self.tokens), "answer")
        for position, tokens in zip(self.link or (), (self.query_tokens, self.key_tokens), strict=False):
            in_tokens([position], len(tokens), "link")
        places = [(each.layer, each.head) for each in self.heads]
        once = len(set(places)) == len(places) and all(min(place) >= 0 for place in places)
        fits(once, "'heads' has a layer and head twice, or none")
        fits(not (self.heads and self.places), "it has 'heads' and 'places' both")
        for effect in self._effects():
            effect.check_change(self.measured)
        for place in self.places:
            in_tokens(place.positions, len(self.key_tokens), "places")

    def _effects(self) -> Iterator[Effect]:
        yield from (*self.alone, *self.floor.random)
        groups = (self.group, *(self.path.others if self.path else ()))
        yield from (each.effect for each in groups if each is not None)
        if self.total is not None:
            yield self.total

    @property
    def best_heads(self) -> tuple[tuple[int, int], ...]:
        """(layer, head) of the ranked heads, the best first, then of heads that were only predicted."""
        removed = [(each.layer, each.head) for each in self.heads]
        return tuple(dict.fromkeys(removed + [(each.layer, each.head) for each in self.predicted]))

    def npz_columns(self) -> Arrays:
        numbers = ("before", "after", "change", "kl", "typical", "predicted")
        return columns_of(self.heads, ("layer", "head", "below", "controls"), numbers)
