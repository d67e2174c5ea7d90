"""Splits one score of one head into shares and pairs of parts; tests the largest by replacement."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.attention import AttentionCall
from attnscope.capture.parts.rule import Change, Key, Leaf, Rule, Site
from attnscope.capture.parts.run import changed_runs, cut_run
from attnscope.capture.running import Refused
from attnscope.errors import InputError, one_line
from attnscope.model.anatomy import sites as anatomy
from attnscope.reference import exact
from attnscope.tiles.tiling import LongCall
from attnscope.verbs.why.account import (
    Account,
    Gradients,
    Name,
    Names,
    Row,
    find_row,
    named_masks,
    row_of,
    source_shares,
)
from attnscope.verbs.why.result import EXACT, Pair, Part, Removed, Side


@dataclass(frozen=True)
class Outcome:
    """Result of a changed run: the contrast, the weight, and the largest change factor of a norm."""

    contrast: float
    weight: float
    norm: float


Place = TypeVar("Place")
# change with others held, total change, weight then, norm factor; total changes of the controls
Tested = tuple[tuple[float, float, float, float], tuple[float, ...]]
NOTHING = Outcome(float("nan"), float("nan"), float("nan"))


@dataclass(frozen=True, eq=False)
class Replacing(ABC):
    """Runs the model with parts replaced by the `donor` run's values, or by a mean without a donor."""

    model: nn.Module
    inputs: Mapping[str, Any]
    sites: Sequence[str]
    held: frozenset[Key]
    donor: Rule | None

    @property
    @abstractmethod
    def untouched(self) -> tuple[Rule, Site | None]:
        """The unchanged run, and the attention where it stops (None: at the end)."""

    @abstractmethod
    def _read(self, rule: Rule, place: int, count: int) -> Outcome: ...

    def change(self, masks: Gradients, beside: Gradients) -> Change:
        """Replacement values within `masks`: the donor's, or the part's mean over other `beside` rows."""
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
        """Change of the contrast from `before`, for each tried part and each of its controls replaced."""
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
        """Outcome of each change, in order; NaN where a change cannot be made."""
        held = self.held if hold else frozenset[Key]()
        base, until = self.untouched
        made = changed_runs(self.model, self.inputs, self.sites, until, base, changes, held, frozen=frozen)
        yield from map(self._outcome, made)  # no run is held while the next one is made

    def _outcome(self, made: tuple[Rule, int, int] | None) -> Outcome:
        return NOTHING if made is None else self._read(*made)

    def _norm(self, rule: Rule, place: int, count: int) -> float:
        """Ratio, changed run over unchanged run, of the norm coefficient that changed most."""
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
    """Runs with replaced parts, measured by one row of one head."""

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


TRIED = 5  # parts of each side that are replaced
PAIRED, PAIRS = 8, 12  # parts of the query to pair, pairs to keep


@dataclass(frozen=True)
class Question:
    """The link to explain: head, query, key, and the key to compare with (None: the mean of all others)."""

    head: int
    heads: int
    query: int
    key: int
    against: int | None = None


@dataclass(frozen=True, eq=False)
class Explanation:
    """Numeric fields of a `Why` result."""

    score: float
    contrast: float
    others: int
    capped: bool
    residual: float
    parts: tuple[Part, ...]
    pairs: tuple[Pair, ...]
    tried: int


def explain(
    model: nn.Module,
    inputs: Mapping[str, Any],
    sites: Sequence[anatomy.Site],
    call: AttentionCall,
    asked: Question,
    other: Mapping[str, Any] | None = None,
) -> Explanation:
    """Explain one score of `call` by parts; replaced parts take values from the inputs `other`, else means.

    Raises `InputError` where the key is masked, and where the parts do not sum to the score.
    """
    if call.epsilon > torch.finfo(torch.float32).eps:
        raise InputError(f"in {call.precision} no score is the sum of its parts: --dtype float32")
    weights, rows = contrast_of(call, asked), (asked.query,) if isinstance(call, LongCall) else None
    paths, until = [site.path for site in sites], (call.module, call.call)
    try:
        rule = cut_run(model, inputs, paths, until, rows=rows)
    except Refused as error:
        raise InputError(f"this model does not run cut into parts: {one_line(error)}") from error
    row = find_row(rule, call, asked.head, asked.query, asked.heads)
    own = next(site for site in sites if site.path == call.module)
    names = Names(sites, own)
    score, contrast = (Account(row, each.to(row.scores)) for each in (weights.clamp(min=0), weights))
    residual = max(each.miss(side, names) for each in (score, contrast) for side in Side)
    if not residual <= EXACT:
        raise InputError(
            f"L{call.layer} H{asked.head} cannot be taken apart: its parts miss the score by {residual:.1g} "
            f"of it, where {EXACT:g} is allowed; something in the model is neither linear nor seen"
        )
    donor = None if other is None else cut_run(model, other, paths, until, rows=rows)
    held = frozenset(leaf.key for each in (score, contrast) for end in each.ends.values() for leaf in end)
    removals = Removals(model, inputs, paths, held, donor, row, asked.query, asked.key, weights)
    parts = _parts(score, contrast, names)
    parts = _with_removals(parts, score, contrast, names, removals)
    pairs, tried = _pairs(contrast, names)
    return Explanation(
        score.total,
        contrast.total,
        int((weights < 0).sum()),
        row.capped,
        residual,
        tuple(part for _, part in parts),
        pairs,
        tried,
    )


def contrast_of(call: AttentionCall, asked: Question) -> Tensor:
    """Contrast weights over keys: 1 at the key, -1 at `against` or spread over all other visible keys."""
    allowed = call.rows([asked.query]).allowed_matrix(asked.head)[0].cpu()
    queries, keys = call.query_tokens, call.key_tokens
    for key in (asked.key, asked.against):
        if key is not None and not allowed[key]:
            named = f"{queries.named(asked.query)} may not look at {keys.named(key)}"
            raise InputError(f"{named}: it is masked, as later tokens are in a decoder")
    others = allowed.clone()
    others[asked.key] = False
    if asked.against is not None:
        others = torch.zeros_like(allowed)
        others[asked.against] = True
    if not others.any():
        alone = f"{queries.named(asked.query)} may look at {keys.named(asked.key)} alone"
        raise InputError(f"{alone}: there is nothing to explain")
    weights = -others.float() / others.sum()
    weights[asked.key] = 1.0
    return weights


Named = tuple[Name, Part]


def _parts(score: Account, contrast: Account, names: Names) -> list[Named]:
    found = list[Named]()
    for side in Side:
        of_score, of_contrast = score.shares(side, names), contrast.shares(side, names)
        sources = source_shares(contrast.ends[side], names)
        for name in {**of_contrast, **of_score}:
            source, share = None, float("nan")
            if name.head is not None and name in sources:
                source = int(sources[name].abs().argmax())
                share = float(sources[name][source])
            shares = of_score.get(name, 0.0), of_contrast.get(name, 0.0)
            if not any(shares):
                continue  # no share, such as a mask that masks nothing
            found.append((name, Part(side, name.label, name.layer, name.head, source, share, *shares)))
    return found


def _with_removals(
    parts: list[Named], score: Account, contrast: Account, names: Names, removals: Removals
) -> list[Named]:
    tried = list[tuple[Side, Name]]()
    for side in Side:
        mine = [(name, part) for name, part in parts if part.side is side and name.can_be_a_reason]
        mine.sort(key=lambda each: -abs(each[1].contrast))
        tried += [(side, name) for name, _ in mine[:TRIED]]

    def alike(place: tuple[Side, Name]) -> list[tuple[Side, Name]]:
        side, name = place
        return [(side, other) for other, part in parts if part.side is side and name.is_like(other)]

    def change(place: tuple[Side, Name]) -> Change:
        return _change(*place, score, contrast, names, removals)

    found = removals.tested(tried, alike, change, contrast.total)
    return [
        (name, replace(part, removed=Removed(*found[place][0]), controls=found[place][1]))
        if (place := (part.side, name)) in found
        else (name, part)
        for name, part in parts
    ]


def _change(
    side: Side, name: Name, score: Account, contrast: Account, names: Names, removals: Removals
) -> Change:
    """Mean-replacement of a part: over the contrasted keys (key side), over all other tokens (query side)."""
    masks = named_masks(score.ends[side], names, name)
    if side is Side.KEY:
        return removals.change(
            masks, {leaf: (contrast.ends[side][leaf] != 0).any(-1, keepdim=True) for leaf in masks}
        )
    return removals.change(masks, {leaf: torch.ones_like(mask) for leaf, mask in masks.items()})


def _pairs(contrast: Account, names: Names) -> tuple[tuple[Pair, ...], int]:
    shares = contrast.shares(Side.QUERY, names)
    largest = sorted(shares, key=lambda name: -abs(shares[name]))[:PAIRED]
    found = list[Pair]()
    for name in largest:
        if masks := named_masks(contrast.ends[Side.QUERY], names, name):
            keys = contrast.paired(masks, names)
            found += [Pair(name.label, other.label, value) for other, value in keys.items()]
    found.sort(key=lambda pair: -abs(pair.contrast))
    return tuple(found[:PAIRS]), len(found)
