"""Test whether a block's result is read later on, and whether rows reach one another within a block.

    replace half of the rows of a block's input   ->  the queries, and the rows of its result, that change
    replace half of the rows of its result        ->  the rows of the next block's input that change

All shown attentions keep their clean outputs, so that rows beyond the half are reached on another way. The
halves of a block and of the next have no row in common, so that reading another block shows. One run tests
all blocks. Where a block does not seem to be read, its attention outputs are replaced with nothing put
back, and the model's own result decides: layers may be read later on, or by modules outside all lists.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Self

import torch
from jaxtyping import Bool
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_map_only

from attnscope.capture.cause import rows
from attnscope.capture.cause.answers import Forward, Place
from attnscope.capture.cause.outputs import Trial, perturbed
from attnscope.capture.cause.rerun import Clean, Hooks, Rerun, is_hidden, tensors
from attnscope.capture.following.takeover import KERNELS
from attnscope.capture.running import Refused
from attnscope.results import Route

_ATTEND = frozenset({"softmax", "scaled_dot_product_attention", "multi_head_attention_forward"})

Half = tuple[Bool[Tensor, " row"], torch.Size]  # mask of rows, and their axes
Halves = dict[Forward, Half]
Differing = list[tuple[torch.Size, Tensor]]  # leading axes, mask of differing rows


@dataclass(eq=False)
class Onward:
    """Findings of one run about blocks: which are read later, and in which rows reach one another.

    `given` is the half of the input rows that was replaced, `asked` the queries that changed with it and
    `carried` the rows of the block's result. `unread` are the blocks that nothing seems to read, `undecided`
    those that only modules not loaded could read, `beside` those whose rows reach one another outside the
    shown attentions, with whether another attention does it. The `last` block was followed up to `end`.
    """

    given: Halves = field(default_factory=dict)
    asked: dict[Place, Tensor] = field(default_factory=dict)
    carried: dict[Forward, Tensor] = field(default_factory=dict)
    unread: set[Forward] = field(default_factory=set)
    undecided: set[Forward] = field(default_factory=set)
    beside: dict[Forward, bool] = field(default_factory=dict)
    last: Forward | None = None
    end: str = ""


def between_blocks(rerun: Rerun, clean: Clean, tried: Sequence[Trial]) -> Onward:
    """Replace half of the rows that each tested block reads and returns, and find which blocks are read."""
    found = Onward()
    blocks = {clean.within[trial.forward] for trial in tried if trial.forward in clean.within}
    if not blocks:
        return found
    seen = _Seen(clean, blocks, found)
    softmaxes = _Softmaxes(rerun)
    with softmaxes:
        passage = rerun.run(seen.hooks())
    doubted = seen.doubted(tensors(passage.result))
    try:
        found.unread = _unread(rerun, clean, tried, doubted)
    except Refused:
        found.undecided = doubted
    found.last = seen.returned[-1][0] if seen.returned else None
    found.end = _end(rerun.model, passage.result)
    if not clean.epsilon:  # one scale for all rows carries a little of each to all others
        mixing = {
            block
            for block, there in found.carried.items()
            if len(found.given[block][1]) == 2 and bool((there & ~found.given[block][0]).any())
        }
        found.beside = dict.fromkeys(mixing, False)
        with suppress(Refused):
            for block in _by_softmaxes(rerun, clean, mixing & softmaxes.there, found):
                found.beside[block] = True
    return found


def _end(model: nn.Module, result: Any) -> str:
    """How far the last block was followed, in words; empty where that is as far as the model goes."""
    if result is None or getattr(model, "is_cut", False):
        return "up to what comes next"
    return "up to the last layer's result" if getattr(model, "base_model", None) is model else ""


def note_queries(clean: Clean, place: Place, queries: Tensor, asked: dict[Place, Tensor]) -> None:
    """Store in `asked` the mask of an attention's queries that differ from the clean run."""
    before = clean.queries.get(place)
    if before is not None and before.shape == queries.shape:
        asked[place] = rows.changed(rows.as_rows(queries), rows.as_rows(before), clean.epsilon)


def other_rows(hidden: Tensor, chosen: Bool[Tensor, " row"], seed: int) -> Tensor:
    """The hidden state with the features of the chosen rows shuffled."""
    there = chosen.view(hidden.shape[:-1])[..., None].to(hidden.device)
    return torch.where(there, rows.shuffled(hidden, seed), hidden)


def moved(
    before: Sequence[Tensor], now: Sequence[Tensor], leading: torch.Size, epsilon: float
) -> Tensor | None:
    """Mask of changed rows in the first changed tensor with the axes `leading`; None if there is none."""
    for is_, was in zip(now, before, strict=False):
        if was.numel() and is_.shape == was.shape and was.shape[:-1] == leading:
            there = rows.changed(is_.flatten(0, -2), was.flatten(0, -2), epsilon)
            if there.any():
                return there
    return None


def _half(count: int, number: int, seed: int) -> Bool[Tensor, " row"]:
    """A random half of the rows for block `number`; an odd block gets the complement of the one before."""
    drawn = rows.halves(count, seed + number // 2)
    return ~drawn if number % 2 and count > 1 else drawn


def _differing(now: Sequence[Tensor], before: Sequence[Tensor] | None) -> Differing | None:
    """Leading axes and mask of differing rows for each tensor; None if the shapes do not match."""
    if before is None or [each.shape for each in now] != [each.shape for each in before]:
        return None
    return [(is_.shape[:-1], (is_ != was).flatten(0, -2).any(-1).cpu()) for is_, was in _pairs(now, before)]


def _pairs(now: Sequence[Tensor], before: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    for is_, was in zip(now, before, strict=True):
        yield (is_, was) if is_.ndim > 1 else (is_.reshape(1, -1), was.reshape(1, -1))


class _Seen:
    """Hooks of one run in which every block reads, and returns, half of its rows replaced."""

    def __init__(self, clean: Clean, blocks: Collection[Forward], found: Onward) -> None:
        self.clean, self.blocks, self.found = clean, blocks, found
        self.returned: list[tuple[Forward, Half | None]] = []
        self.given: list[tuple[Forward, int, Differing | None]] = []  # after how many had returned

    def hooks(self) -> Hooks:
        return Hooks(self._answer, None, self._leave, self._enter, arrive=self._arrive)

    def _answer(self, place: Place, _answered: Tensor, queries: Tensor) -> Tensor | None:
        note_queries(self.clean, place, queries, self.found.asked)
        return self.clean.answers.get(place)

    def _arrive(self, forward: Forward, given: list[Tensor]) -> None:
        differing = _differing(given, self.clean.arrived.get(forward))
        self.given.append((forward, len(self.returned), differing))

    def _enter(self, forward: Forward, hidden: Tensor) -> Tensor | None:
        count = hidden[..., 0].numel()
        if forward not in self.blocks or count > rows.MOST:
            return None
        half = _half(count, len(self.found.given), 11)
        self.found.given[forward] = half, hidden.shape[:-1]
        return other_rows(hidden, half, 11)

    def _leave(self, forward: Forward, now: list[Tensor]) -> list[Tensor]:
        clean = self.clean.leave_block(forward, now)
        if forward not in self.blocks:
            return clean
        leading = None
        if forward in self.found.given:
            leading = self.found.given[forward][1]
            carried = moved(self.clean.blocks[forward], now, leading, self.clean.epsilon)
            if carried is not None:
                self.found.carried[forward] = carried
        number = next((i for i, each in enumerate(clean) if each.shape[:-1] == leading), None)
        half = None
        if number is not None:
            half = _half(clean[number][..., 0].numel(), len(self.returned), 101), clean[number].shape[:-1]
            there = half[0].view(*half[1], 1).to(clean[number].device)
            clean[number] = torch.where(there, 1 - clean[number], clean[number])
        elif clean:
            clean[0] = 1 - clean[0]
        self.returned.append((forward, half))
        return clean

    def doubted(self, result: Sequence[Tensor] | None) -> set[Forward]:
        """Blocks whose replaced rows neither later layers nor the model's result seem to read."""
        final = None if result is None else _differing(result, self.clean.returned)
        found = set()
        for number, (forward, half) in enumerate(self.returned):
            later = [each for _, count, each in self.given if count > number]
            known = [each for each in (*later, final) if each is not None]
            of_its_rows = [there for each in known if (there := _of_rows(each, half)) is not None]
            if of_its_rows and half is not None:
                is_read = not bool((half[0] & ~of_its_rows[0]).any())
            else:
                is_read = not known or any(bool(there.any()) for each in known for _, there in each)
            if not is_read:
                found.add(forward)
        return found | {*self._unread_within()}

    def _unread_within(self) -> Iterator[Forward]:
        """Blocks whose successor ignores its replaced input rows, in its queries and its result."""
        within = self.clean.within
        for forward, count, _ in self.given:
            half = self.found.given.get(forward)
            if half is None or not count:
                continue
            asked = [there for place, there in self.found.asked.items() if within.get(place[:2]) == forward]
            carried = self.found.carried.get(forward)
            there = [*asked] if carried is None else [*asked, carried]
            own = (len(each) != len(half[0]) or not bool((half[0] & ~each).any()) for each in there)
            if there and not any(own):
                yield self.returned[count - 1][0]


def _of_rows(differing: Differing, half: Half | None) -> Tensor | None:
    there = [each for leading, each in differing if half is not None and leading == half[1]]
    return torch.stack(there).any(0) if there else None


def _unread(rerun: Rerun, clean: Clean, tried: Sequence[Trial], doubted: Collection[Forward]) -> set[Forward]:
    """Doubted blocks whose attention outputs change nothing of the model's result, while other changes do."""
    if not doubted:
        return set()
    before = clean.returned
    if before is None:
        before = tensors(rerun.run(Hooks(lambda *_: None, whole=True)).result)
    if before is None or getattr(rerun.model, "is_cut", False):
        raise Refused("what comes behind is not there")

    def changes(blocks: Collection[Forward]) -> bool:
        mine = {t.forward: t for t in tried if clean.within.get(t.forward) in blocks}

        def answer(place: Place, answered: Tensor, _queries: Tensor) -> Tensor | None:
            trial = mine.get(place[:2])
            if trial is None or place not in trial.shapes or answered.shape != clean.answers[place].shape:
                return None
            amount = torch.ones(trial.shapes[place].rows, 1)
            return perturbed(clean, trial, place, amount, shuffle=clean.epsilon > 0)

        return _other(tensors(rerun.run(Hooks(answer, whole=True)).result), before)

    silent = {block for block in doubted if not changes({block})}
    every = {clean.within[trial.forward] for trial in tried if trial.forward in clean.within}
    if not silent or changes(every - {*doubted}):
        return silent
    upside_down = rerun.run(Hooks(lambda *_: None, whole=True), inputs=_other_inputs(rerun)).result
    return every if _other(tensors(upside_down), before) and not changes(every) else set()


def _other(now: Sequence[Tensor] | None, before: Sequence[Tensor] | None) -> bool:
    differing = None if now is None else _differing(now, before)
    return differing is None or any(bool(there.any()) for _, there in differing)


def _other_inputs(rerun: Rerun) -> dict[str, Any]:
    return {
        name: each.flip(-1) if isinstance(each, Tensor) and each.ndim else each
        for name, each in rerun.inputs.items()
    }


def _by_softmaxes(
    rerun: Rerun, clean: Clean, mixing: Collection[Forward], found: Onward
) -> Iterator[Forward]:
    """Blocks in which rows reach fewer others once softmaxes outside the shown attentions return zeros."""
    if not mixing:
        return
    first: dict[Forward, list[Tensor]] = {}
    there: dict[Forward, Tensor | None] = {}

    def enter(forward: Forward, hidden: Tensor) -> Tensor | None:
        return other_rows(hidden, found.given[forward][0], 11) if first and forward in mixing else None

    def leave(forward: Forward, now: list[Tensor]) -> list[Tensor]:
        if forward in mixing:
            seen.setdefault(forward, [each.detach().clone() for each in now])
        return clean.leave_block(forward, now)

    for _ in range(2):
        seen: dict[Forward, list[Tensor]] = {}
        with _Softmaxes(rerun, silent=True):
            rerun.run(Hooks(clean.answer, None, leave, enter))
        there = {
            forward: moved(first[forward], now, found.given[forward][1], clean.epsilon)
            for forward, now in seen.items()
            if first
        }
        first = seen
    for forward, now in there.items():
        if (
            now is not None
            and torch.equal(now & found.carried[forward], now)
            and bool((now != found.carried[forward]).any())
        ):
            yield forward


class _Softmaxes(TorchFunctionMode):
    """Torch function mode: notes blocks (`there`) with attention that is not read; if `silent`, zeros it."""

    def __init__(self, rerun: Rerun, silent: bool = False) -> None:
        super().__init__()
        self.rerun, self.silent = rerun, silent
        self.there: set[Forward] = set()
        self.forwards: Counter[nn.Module] = Counter()
        self.running: list[tuple[Forward, int]] = []  # blocks, with how many rows an entry of their batch has
        self.followed = 0  # modules that run whose softmaxes are followed
        self.stack = ExitStack()

    def __enter__(self) -> Self:
        early = {"with_kwargs": True, "prepend": True}
        for block in {each for each in self.rerun.block_of.values() if each is not None}:
            self.stack.enter_context(block.register_forward_pre_hook(self._block_entered, **early))
            self.stack.enter_context(block.register_forward_hook(self._block_left, always_call=True))
        for site in self.rerun.sites:
            if site.route is Route.TRACED:
                self.stack.enter_context(site.module.register_forward_pre_hook(self._followed))
                self.stack.enter_context(site.module.register_forward_hook(self._left, always_call=True))
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self.stack.close()

    def _block_entered(self, block: nn.Module, args: Any, kwargs: Any) -> None:
        rows_of = [each.shape[-2] for each in tree_flatten((args, kwargs))[0] if is_hidden(each)]
        self.running.append(((block, self.forwards[block]), rows_of[0] if rows_of else 0))

    def _block_left(self, block: nn.Module, _inputs: Any, _result: Any) -> None:
        self.forwards[block] += 1
        self.running.pop()

    def _followed(self, _module: nn.Module, _inputs: Any) -> None:
        self.followed += 1

    def _left(self, _module: nn.Module, _inputs: Any, _result: Any) -> None:
        self.followed -= 1

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        name = getattr(function, "__name__", "")
        if name not in _ATTEND or not self.running or self.followed or KERNELS.get():
            return result
        forward, count = self.running[-1]
        if not _relates(name, args, result, count):
            return result
        self.there.add(forward)
        return tree_map_only(Tensor, torch.zeros_like, result) if self.silent else result


def _relates(name: str, args: Sequence[Any], result: Any, count: int) -> bool:
    """Whether a softmax or attention operation weighs `count` keys for `count` queries."""
    if count < 2:
        return False
    if name == "softmax":
        shape = [*result.shape]
        return shape.count(count) > 1 and count in shape[-2:]
    if name == "scaled_dot_product_attention":
        return bool(args[0].shape[-2] == count == args[1].shape[-2])
    return name == "multi_head_attention_forward"
