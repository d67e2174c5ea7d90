"""What is true of a construction, found without attnscope, and what is wrong with what attnscope says of it.

Its own tensors are perturbed one row at a time.

In float64, in one block after the other: a row of what the block is given is perturbed, and the rows of the
queries, keys and values that change are noted; a row of one head's answer is perturbed, and the rows of the
module's and of the block's result. A head misleads where what is shown of it does not act, acts on another
row than the one that asked, or on several, where keys and values are those of different rows, or where it
stands in the columns of another head. What is done within a kernel is told by the weights that really act:
by how much an answer changes with each value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.errors import InputError
from attnscope.results import Verdict
from attnscope.vocabulary import Effect, Standing
from tests.capture.constructed.construction import Construction, Head
from tests.capture.constructed.model import HEADS, Block, Place

GOOD = (Verdict.CERTIFIED, Verdict.INCONCLUSIVE)
_LEAST = 1e-9  # of the largest: less is rounding
_MOSTLY = 0.7  # of all that changes a row
_CLEARLY = 1.2  # times as much as any other row


class UnknownTruthError(Exception):
    """The queries are made of several rows each: whose they are cannot be said."""


_IN_KERNEL = {Place.WEIGHTS, Place.CONTEXT}


@dataclass(frozen=True, eq=False)
class Truth:
    """Why each head misleads that does, and in which layers queries and keys stand in their rows' place."""

    misleading: Mapping[Head, str]
    in_place: frozenset[int]


_known: dict[str, Truth] = {}


def truth(construction: Construction) -> Truth:
    """The truth of a construction, which is the same on every route."""
    if construction.like is not None:
        return truth(construction.like)
    if construction.what not in _known:
        with torch.no_grad():
            _known[construction.what] = _found(replace(construction, route="eager"))
    return _known[construction.what]


def faults_in(construction: Construction, misleads: bool) -> list[str]:
    """What is wrong with what attnscope says of it; nothing where all is well."""
    true, faults = truth(construction), list[str]()
    if misleads != bool(true.misleading):
        faults.append(f"its list says otherwise than the truth: {dict(true.misleading)}")
    try:
        every = list(construction.certificates())
    except InputError as refusal:  # nothing is shown, so nothing misleads
        return faults if misleads else [*faults, f"refused: {refusal}"]
    for (layer, head, call), told in every:
        where, may = f"L{layer} H{head}", GOOD if construction.weak else (Verdict.CERTIFIED,)
        if why := true.misleading.get((layer, head, call)):
            if told.verdict in GOOD:
                faults.append(f"{where} is {told.verdict}, and misleads: {why}")
            elif not told.reason:
                faults.append(f"{where} is {told.verdict} for no reason")
        elif told.verdict not in may and (not misleads or layer not in construction.layers):
            faults.append(f"{where} is {told.verdict}, and is right: {told.reason}")
        elif not misleads and (told.reach is None or told.reach.effect is not Effect.OWN):
            faults.append(f"{where} is {told.verdict}, and was not seen to act: {told.reach}")
        if told.positions is Standing.OWN and layer not in true.in_place:
            faults.append(f"{where}: positions are said to be in place, and are not")
    return faults


def _found(construction: Construction) -> Truth:
    found: dict[Head, str] = {}
    in_place = set()
    for layer, (block, given) in enumerate(_entered(construction)):
        for call in range(1 if block.attention.twice is None else 2):
            probed = probe(block, given, call, construction)
            if probed.in_place:
                in_place.add(layer)
            reasons = {(layer, head, call): probed.reason(head) for head in range(HEADS)}
            found |= {head: reason for head, reason in reasons.items() if reason}
    if _IN_KERNEL & {*construction.parts}:
        found |= _reweighted(construction)
    return Truth(found, frozenset(in_place))


def _entered(construction: Construction) -> list[tuple[Block, tuple[Any, ...]]]:
    """The blocks in float64, and what each is given."""
    model, inputs = construction.built(exact=True)
    entered: list[tuple[Block, tuple[Any, ...]]] = []
    handles = [
        layer.register_forward_pre_hook(lambda block, given: entered.append((block, given)))
        for layer in model.layers
    ]
    model(**inputs)
    for handle in handles:
        handle.remove()
    return entered


def _reweighted(construction: Construction) -> dict[Head, str]:
    """The heads whose weights are others than without what is done in the kernel."""
    plain = {place: part for place, part in construction.parts.items() if place not in _IN_KERNEL}
    both = (_entered(each) for each in (construction, replace(construction, parts=plain)))
    return {
        (layer, head, 0): "other weights"
        for layer, ((block, given), (without, _)) in enumerate(zip(*both, strict=True))
        for head, off in enumerate((_weights(block, given) - _weights(without, given)).abs().amax((1, 2)))
        if off > _LEAST
    }


def _weights(block: Block, given: tuple[Any, ...]) -> Tensor:
    """How much each row of an answer is made of each value: `head query key`."""
    clean = _seen(block, given).answers[0]
    keys = range(given[0].shape[1])
    columns = [(_seen(block, given, value=key).answers[0] - clean)[0].mean(-1) for key in keys]
    return torch.stack(columns, -1).transpose(0, 1)


@dataclass(frozen=True, eq=False)
class Probed:
    """How much depends on what in one block: `head, row that changes, row that was perturbed`.

    `columns` are `head, slice of the output projection's input`. Rows are those of all texts, `mine` those of
    the one that is asked about, `padding` how many of them stand for nothing.
    """

    queries: Tensor
    keys: Tensor
    values: Tensor
    in_module: Tensor
    in_block: Tensor
    columns: Tensor
    mine: slice
    padding: int

    @property
    def in_place(self) -> bool:
        return all(
            each.shape[1] == each.shape[2]
            and torch.equal(_some(each).any(0), torch.eye(each.shape[1]).bool())
            for each in (self.queries, self.keys)
        )

    def reason(self, head: int) -> str:
        """Why a head misleads; empty where it does not."""
        asked, spread, reach = _some(self.queries[head]), _some(self.in_module[head]), self.in_block[head]
        acts = _some(reach).any(0)[self.mine]
        silent = int((~acts[: len(acts) - self.padding]).sum())
        if silent:
            return f"no effect of {silent} rows" if acts.any() else "no effect"
        if (asked.sum(1) != 1).any():
            raise UnknownTruthError
        if (spread[:, self.mine].sum(0) > 1).any() or (spread[self.mine].sum(1) > 1).any():
            return "rows mixed"
        own = asked.long().argmax(1), torch.arange(len(asked))
        others = reach.clone()
        others[own] = 0
        clearly = (reach[own] >= _CLEARLY * others.amax(0))[self.mine]
        if not clearly[: len(acts) - self.padding].all():
            return "rows moved"
        return self._of_keys(head, own[0]) or self._of_columns(head)

    def _of_keys(self, head: int, own: Tensor) -> str:
        keys, values = _some(self.keys[head]), _some(self.values[head])
        if not torch.equal(keys, values):
            return "keys and values of different rows"
        single = bool((keys.sum(1) == 1).all())
        if not single:
            changes = self.keys[head]
            another = changes.amax(1) > _MOSTLY * changes.sum(1)
            another &= changes.argmax(1) != own
            return "keys mostly of other rows" if 2 * int(another.sum()) > len(another) else ""
        return "" if torch.equal(keys.long().argmax(1), own) else "keys of other rows"

    def _of_columns(self, head: int) -> str:
        mass = self.columns[head]
        if mass[head] <= 0.9 * mass.max():
            return "another head's columns"
        return "every head's columns" if mass.min() > 0.9 * mass.max() else ""


def probe(block: Block, given: tuple[Any, ...], call: int, construction: Construction) -> Probed:
    """What one call of the kernel depends on, and what depends on it."""
    clean = _seen(block, given)
    sides: list[list[Tensor]] = [[], [], []]
    for place in product(*map(range, given[0].shape[:2])):
        noisy = _seen(block, (_noisy(given[0], place), *given[1:])).sides
        for side, now, before in zip(sides, noisy, clean.sides, strict=True):
            side.append(_change(now, before).mT)
    in_module, in_block, columns = [], [], []
    batch, rows = clean.answers[call].shape[:2]
    for head in range(HEADS):
        runs = [_seen(block, given, (call, *place, head)) for place in product(range(batch), range(rows))]
        in_module.append(torch.stack([_change(now.module, clean.module) for now in runs], -1))
        in_block.append(torch.stack([_change(now.block, clean.block) for now in runs], -1))
        changes = [_change(now.columns, clean.columns) for now in runs]
        columns.append(torch.stack(changes).amax((0, 1)))
    each = batch * rows // construction.texts
    return Probed(
        *(torch.stack(side, -1) for side in sides),
        *(torch.stack(by_head) for by_head in (in_module, in_block, columns)),
        slice(each * (construction.texts - 1), each * construction.texts),
        construction.padded,
    )


def _some(change: Tensor) -> Tensor:
    return change > _LEAST


def _change(now: Tensor, clean: Tensor) -> Tensor:
    """How much changed, of `row head feature` by row and head."""
    return (now - clean).abs().amax(-1) / clean.abs().max().clamp_min(1e-300)


def _noisy(x: Tensor, where: tuple[int, ...]) -> Tensor:
    made = x.clone()
    noise = torch.randn(x[where].shape, generator=torch.Generator().manual_seed(5), dtype=x.dtype)
    made[where] += noise * x.std()
    return made


@dataclass(eq=False)
class _Seen:
    """What was seen in one run of a block: rows of all texts first, then heads, where there are, features."""

    sides: list[Tensor] = field(default_factory=list)
    answers: list[Tensor] = field(default_factory=list)  # text row head feature
    columns: Tensor = field(default_factory=lambda: torch.zeros(1, HEADS, 1))
    module: Tensor = field(default_factory=lambda: torch.zeros(1))
    block: Tensor = field(default_factory=lambda: torch.zeros(1))


def _seen(
    block: Block,
    given: tuple[Any, ...],
    perturbed: tuple[int, int, int, int] | None = None,
    value: int | None = None,
) -> _Seen:
    """One run, `perturbed` in a call, text, row and head of the answers, or with one added to a `value`."""
    seen = _Seen()

    def tap(name: str, tensor: Tensor) -> Tensor:
        if name == "ANSWER":
            if perturbed is not None and perturbed[0] == len(seen.answers):
                tensor = _noisy(tensor, perturbed[1:])
            seen.answers.append(tensor.clone())
            return tensor
        of_each = tensor.repeat_interleave(HEADS // tensor.shape[1], 1)
        seen.sides.append(of_each.transpose(1, 2).flatten(0, 1).clone())
        if name != "VALUE" or value is None:
            return tensor
        return tensor.index_add(2, torch.tensor([value]), torch.ones_like(tensor[:, :, :1]))

    def before(_projection: nn.Module, given: Any) -> None:
        seen.columns = given[0].flatten(0, -2).unflatten(-1, (HEADS, -1)).clone()

    def leave(_module: nn.Module, _given: object, result: Any) -> None:
        result = result if isinstance(result, Tensor) else result[0]
        seen.module = result.flatten(0, -2).clone()

    attention = block.attention
    handles = [attention.o_proj.register_forward_pre_hook(before), attention.register_forward_hook(leave)]
    attention.tap = tap  # type: ignore[method-assign]
    try:
        seen.block = block(*given).flatten(0, -2)
    finally:
        for handle in handles:
            handle.remove()
        del attention.tap
    return seen
