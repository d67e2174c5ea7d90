"""What becomes of a contrast where a part is replaced in one row: others held, and all computed again."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.analysis.claims.why.account import Gradients, Row, row_of
from attnscope.capture.parts.leaves import Change, Key, Leaf, Site
from attnscope.capture.parts.rule import Rule
from attnscope.capture.parts.run import changed_runs
from attnscope.reference import exact


@dataclass(frozen=True)
class Outcome:
    """The contrast and the weight of a changed run, and the factor of the norm that moved most."""

    contrast: float
    weight: float
    norm: float


Place = TypeVar("Place")
# less or more with all else held and in all, the weight then, how far a norm moved; and of its like in all
Tested = tuple[tuple[float, float, float, float], tuple[float, ...]]
NOTHING = Outcome(float("nan"), float("nan"), float("nan"))


@dataclass(frozen=True, eq=False)
class Replacing(ABC):
    """Runs of the model with other numbers in the place of parts, those of the `donor` where there is one."""

    model: nn.Module
    inputs: Mapping[str, Any]
    sites: Sequence[str]
    held: frozenset[Key]
    donor: Rule | None

    @property
    @abstractmethod
    def untouched(self) -> tuple[Rule, Site | None]:
        """The run that they are held against, and the attention that it ended with."""

    @abstractmethod
    def _read(self, rule: Rule, place: int, count: int) -> Outcome: ...

    def change(self, masks: Gradients, beside: Gradients) -> Change:
        """Other numbers within the masks: the donor's, or the part's mean over the rows `beside` them."""
        return Change(
            {leaf.key: (mask, self._instead(leaf, beside[leaf] & ~mask)) for leaf, mask in masks.items()}
        )

    def _instead(self, leaf: Leaf, others: Tensor) -> Tensor:
        tensor = leaf.tensor.detach()
        if self.donor is None:
            count = others.sum(leaf.tokens, keepdim=True).clamp(min=1)
            return (tensor * others).sum(leaf.tokens, keepdim=True) / count
        other = self.donor.leaves.get(leaf.key)
        if other is None or other.tensor.shape != tensor.shape:
            return torch.full_like(tensor, float("nan"))
        return other.tensor.detach()

    def tested(
        self,
        tried: Sequence[Place],
        alike: Callable[[Place], list[Place]],
        change: Callable[[Place], Change],
        before: float,
    ) -> dict[Place, Tested]:
        """What becomes of the contrast, which was `before`, without each that is `tried` and its like."""
        controls = {place: alike(place) for place in tried}
        every = list(dict.fromkeys([*tried, *(each for several in controls.values() for each in several)]))
        changes = {place: change(place) for place in every}
        total = dict(zip(every, self.outcomes(list(changes.values())), strict=True))
        held = dict(zip(tried, self.outcomes([changes[each] for each in tried], hold=True), strict=True))

        def off(outcome: Outcome) -> float:
            return outcome.contrast - before

        return {
            place: (
                (off(held[place]), off(total[place]), total[place].weight, held[place].norm),
                tuple(off(total[each]) for each in controls[place]),
            )
            for place in tried
        }

    def outcomes(
        self, changes: Sequence[Change], *, hold: bool = False, frozen: bool = False
    ) -> Iterator[Outcome]:
        """What becomes of each change; no numbers where it cannot be made."""
        held = self.held if hold else frozenset[Key]()
        base, until = self.untouched
        made = changed_runs(self.model, self.inputs, self.sites, until, base, changes, held, frozen=frozen)
        yield from map(self._outcome, made)  # no run is held while the next one is made

    def _outcome(self, made: tuple[Rule, int, int] | None) -> Outcome:
        return NOTHING if made is None else self._read(*made)

    def _norm(self, rule: Rule, place: int, count: int) -> float:
        """By what factor the coefficient moved that moved most."""
        most = 1.0
        for key, base in self.untouched[0].coefficients.items():
            now = rule.coefficients.get(key)
            if now is None or now.numel() != count * base.numel() or not base.ndim:
                continue
            ratio = exact(now.reshape(count, -1)[place] / base.reshape(-1)).abs()
            ratio = ratio[ratio.isfinite() & (ratio > 0)]
            if ratio.numel():
                far = float(ratio[ratio.log().abs().argmax()])
                most = max(most, far, key=lambda each: abs(torch.tensor(each).log()))
        return most


@dataclass(frozen=True, eq=False)
class Removals(Replacing):
    """Replaces parts of the model, and reads one row of one head."""

    row: Row
    query: int
    key: int
    weights: Float[Tensor, " key"]

    @property
    def untouched(self) -> tuple[Rule, Site | None]:
        return self.row.rule, self.row.softmax.site

    def _read(self, rule: Rule, place: int, count: int) -> Outcome:
        mine = self.row.softmax
        here = [each for each in self.row.rule.softmaxes if each.site == mine.site].index(mine)
        softmax = [each for each in rule.softmaxes if each.site == mine.site][here]
        number = place * (softmax.weights.reshape(-1, *softmax.weights.shape[-2:]).shape[0] // count)
        row = row_of(rule, softmax, number + self.row.number, self.query)
        weight = softmax.weights.reshape(-1, *softmax.weights.shape[-2:])[number + self.row.number]
        return Outcome(
            float(row.of(self.weights).detach()),
            float(exact(weight[softmax.row(self.query), self.key])),
            self._norm(rule, place, count),
        )
