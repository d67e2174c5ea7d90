"""A model that runs again on the same inputs, where what attentions answer, and modules return, may be other.

Attentions are named by their module, its forward and their place within that forward: (module, 0, 0).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from attnscope.capture.evaluation_mode import evaluating
from attnscope.capture.following.takeover import STAND_INS, KernelInputs
from attnscope.capture.reaching.rows import size_of
from attnscope.capture.standing.sketched import Sketches
from attnscope.capture.trace.tracer import TracedAttention, traced
from attnscope.model.anatomy.sites import Site
from attnscope.results import Route

Forward = tuple[nn.Module, int]
Place = tuple[nn.Module, int, int]
Answer = Callable[[Place, Tensor, Tensor], Tensor | None]  # place, answer and queries -> another answer
# what a module returns -> what it is to return
Leave = Callable[[Forward, list[Tensor]], list[Tensor] | None]
Enter = Callable[[Forward, Tensor], Tensor | None]  # the hidden state that a block is given -> another one
Feed = Callable[[Forward, nn.Module, Tensor], None]  # what a matrix within a module is given after an answer

_WHOLE = 1 / 64  # some steps of eight bits: one scale for all rows is moved by the largest of them
_LARGER = 4  # times an answer: what is larger is no hidden state, but weights of queries by keys


class _Enough(Exception):
    """Raised inside the forward pass once every module that is asked for is through, with its block."""


@dataclass(eq=False)
class Clean:
    """What an untouched run showed of the attentions, their modules and blocks; copies."""

    answers: dict[Place, Tensor] = field(default_factory=dict)  # batch head query dim
    queries: dict[Place, Tensor] = field(default_factory=dict)
    results: dict[Forward, list[Tensor]] = field(default_factory=dict)
    blocks: dict[Forward, list[Tensor]] = field(default_factory=dict)
    given: dict[Forward, Tensor] = field(default_factory=dict)  # the hidden state that a block reads
    fed: dict[tuple[Forward, nn.Module], Tensor] = field(default_factory=dict)
    numbers: dict[Place, int] = field(default_factory=dict)  # how many attentions the module made before
    within: dict[Forward, Forward] = field(default_factory=dict)  # of a module, the forward of its block
    sizes: dict[Place, float] = field(default_factory=dict)
    epsilon: float = 0.0  # of whole numbers that the model computes with, where it does

    def size(self, place: Place) -> float:
        """The size of an answer's numbers, found once."""
        if place not in self.sizes:
            self.sizes[place] = size_of(self.answers[place])
        return self.sizes[place]

    def of(self, forward: Forward) -> list[Place]:
        """The attentions of one forward of a module, in their order."""
        return [place for place in self.answers if place[:2] == forward]


class Rerun:
    """One model on one input; `tried` are the modules that are asked about, with how often each has to run.

    `runs` counts forward passes. Attentions beside them in the same block answer what they answered in the
    clean run. A run ends with the last block of a tried module.
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: Mapping[str, Any],
        sites: Sequence[Site],
        tried: Mapping[nn.Module, int],
    ) -> None:
        self.model, self.inputs, self.tried = model, inputs, tried
        self.block_of = {each.module: _block(model, each.path) for each in sites if each.module in tried}
        around = {block for block in self.block_of.values() if block is not None}
        inside = {part for block in around for part in block.modules()}
        self.sites = [site for site in sites if site.module in tried or site.module in inside]
        self.site_of = {site.module: site for site in self.sites}
        self.runs = 0
        self.before: dict[Forward, Tensor] = {}  # what blocks read in every later run
        self.last: set[Forward] = set()  # of each block the last module that is asked about
        self.random = torch.get_rng_state()

    def sharing(self, module: nn.Module) -> list[nn.Module]:
        """The tried modules in the same block, in the model's order."""
        block = self.block_of.get(module)
        return [each for each in self.tried if each is module or (block and self.block_of[each] is block)]

    def clean(self) -> Clean:
        """What an untouched run shows."""
        seen = Clean(epsilon=_WHOLE if any(map(_is_quantised, self.model.modules())) else 0.0)
        gone: set[Place] = set()

        def answer(place: Place, answered: Tensor, queries: Tensor) -> None:
            seen.answers[place], seen.queries[place] = _copy(answered), _copy(queries)

        def leave(forward: Forward, returned: list[Tensor]) -> None:
            largest = _LARGER * sum(seen.answers[each].numel() for each in seen.of(forward))
            seen.results[forward] = [
                _copy(each) if each.numel() <= largest else each[:0] for each in returned
            ]

        def leave_block(forward: Forward, returned: list[Tensor]) -> None:
            seen.blocks[forward] = [_copy(each) for each in returned]

        def enter_block(forward: Forward, hidden: Tensor) -> None:
            seen.given[forward] = _copy(hidden)

        def feed(forward: Forward, part: nn.Module, given: Tensor) -> None:
            seen.fed.setdefault((forward, part), _copy(given))

        self.run(answer, leave, leave_block, enter_block, feed=feed, gone=gone, within=seen.within)
        self.before = seen.given
        asked = {forward: around for forward, around in seen.within.items() if forward[0] in self.tried}
        if all(forward in asked for forward in seen.results) and {*asked.values()} <= {*seen.given}:
            self.last = {*{around: forward for forward, around in asked.items()}.values()}
        counts: Counter[nn.Module] = Counter()
        for place in gone:  # what they answer is none, and goes on as the model has it
            del seen.answers[place]
        for place in seen.answers:
            seen.numbers[place] = counts[place[0]]
            counts[place[0]] += 1
        return seen

    def run(
        self,
        answer: Answer,
        leave: Leave | None = None,
        leave_block: Leave | None = None,
        enter_block: Enter | None = None,
        enter_module: Enter | None = None,
        feed: Feed | None = None,
        gone: set[Place] | None = None,
        within: dict[Forward, Forward] | None = None,
        sketched: bool = False,
    ) -> None:
        """One forward pass; `gone` gets the places that were none, `within` which block a module ran in.

        Where it may be `sketched`, large products are between what is asked about and the next block: there
        nothing is looked at, and that block reads what it did.
        """
        state = torch.get_rng_state()
        torch.set_rng_state(self.random)  # what draws by lot draws the same
        self.runs += 1
        try:
            with suppress(_Enough), evaluating(self.model), ExitStack() as stack:
                sketches = stack.enter_context(Sketches()) if sketched and self.last else None
                passage = _Passage(
                    self, answer, set() if gone is None else gone, {} if within is None else within, sketches
                )
                passage.watch(stack, leave, leave_block, enter_block, enter_module, feed)
                self.model(**self.inputs)
        finally:
            torch.set_rng_state(state)


class _Passage:
    """One forward pass under way."""

    def __init__(
        self,
        rerun: Rerun,
        answer: Answer,
        gone: set[Place],
        within: dict[Forward, Forward],
        sketches: Sketches | None,
    ) -> None:
        self.sketches = sketches
        self.rerun, self.answer, self.gone, self.within = rerun, answer, gone, within
        self.forwards: Counter[nn.Module] = Counter()  # of modules and of blocks, that are through
        self.made: defaultdict[Forward, int] = defaultdict(int)
        self.numbered: list[tuple[TracedAttention, Place]] = []
        self.running: Counter[nn.Module] = Counter()  # blocks

    def watch(
        self,
        stack: ExitStack,
        leave: Leave | None,
        leave_block: Leave | None,
        enter_block: Enter | None,
        enter_module: Enter | None,
        feed: Feed | None,
    ) -> None:
        by_route = {route: [s.module for s in self.rerun.sites if s.route is route] for route in Route}
        for route, stand_in in STAND_INS.items():
            if by_route[route]:
                stack.enter_context(stand_in(by_route[route], self.of_kernel))
        if followed := by_route[Route.TRACED]:
            traced_ = traced(followed, self.number, taken_back=self.take_back, change=self.of_trace)
            stack.enter_context(traced_)
        for module in self.rerun.tried:
            for part in module.modules() if feed else ():
                if part is not module and _multiplies(part):
                    stack.callback(part.register_forward_pre_hook(self.fed(module, feed)).remove)
        blocks = dict.fromkeys(block for block in self.rerun.block_of.values() if block is not None)
        for block in blocks:
            hook = block.register_forward_pre_hook(self.entered(enter_block), with_kwargs=True, prepend=True)
            stack.callback(hook.remove)
        for module in self.rerun.tried if enter_module else ():
            hook = module.register_forward_pre_hook(
                self.entered(enter_module), with_kwargs=True, prepend=True
            )
            stack.callback(hook.remove)
        for module in self.rerun.site_of:
            mine = leave if module in self.rerun.tried else None
            stack.callback(module.register_forward_hook(self.left(mine, block=False)).remove)
        for block in blocks:
            stack.callback(block.register_forward_hook(self.left(leave_block, block=True)).remove)

    def _place(self, module: nn.Module) -> Place:
        forward = module, self.forwards[module]
        self.made[forward] += 1
        return *forward, self.made[forward] - 1

    def of_kernel(self, given: KernelInputs) -> tuple[Tensor, Tensor | None]:
        output, weights = given.answer()
        new = self.answer(self._place(given.module), output.transpose(1, 2), given.query)
        return (output if new is None else new.transpose(1, 2).contiguous()), weights

    def number(self, one: TracedAttention) -> None:
        self.numbered.append((one, self._place(one.module)))

    def take_back(self, one: TracedAttention) -> None:
        self.gone |= {place for each, place in self.numbered if each is one}

    def of_trace(self, one: TracedAttention, result: Tensor, arranged: Callable[[Tensor], Tensor]) -> None:
        cells = torch.arange(result.numel(), device=result.device).view(result.shape)
        where = torch.unravel_index(arranged(cells), result.shape)  # type: ignore[no-untyped-call]
        new = self.answer(self.numbered[-1][1], one.output, one.query)
        if new is not None:
            result[where] = new.to(result.dtype)

    def fed(self, module: nn.Module, feed: Feed | None) -> Callable[..., None]:
        def hook(part: nn.Module, args: Any) -> None:
            forward = module, self.forwards[module]
            if feed and self.made[forward] and args and isinstance(args[0], Tensor) and args[0].ndim > 1:
                feed(forward, part, args[0])

        return hook

    def entered(self, enter: Enter | None) -> Callable[..., Any]:
        def hook(block: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            self.running[block] += block in self.rerun.block_of.values()
            forward = block, self.forwards[block]
            before = self.rerun.before.get(forward)
            if self.sketches:
                self.sketches.active = False
            if enter is None and before is None:
                return None
            names = [*range(len(args)), *(name for name in _HIDDEN if name in kwargs)]
            for name in names:
                given = args[name] if isinstance(name, int) else kwargs[name]
                if isinstance(given, Tensor) and given.is_floating_point() and given.ndim > 1:
                    # a model may hand on what was noted of a block before its result was put back
                    is_known = before is not None and before.shape == given.shape
                    clean = before.clone() if before is not None and is_known else given
                    new = clean if enter is None else enter(forward, clean)
                    new = clean if new is None else new
                    if isinstance(name, int):
                        return (*args[:name], new, *args[name + 1 :]), kwargs
                    return args, {**kwargs, name: new}
            return None

        return hook

    def left(self, leave: Leave | None, block: bool) -> Callable[..., Any]:
        def hook(module: nn.Module, _inputs: Any, result: Any) -> Any:
            forward = module, self.forwards[module]
            self.forwards[module] += 1
            self.running[module] -= block
            around = self.rerun.block_of.get(module)
            if around is not None and self.running[around]:
                self.within[forward] = around, self.forwards[around]
            instead = None if leave is None else _instead(leave, forward, result)
            if self.sketches and forward in self.rerun.last:
                self.sketches.active = True
            if not +self.running and self._all_through():
                raise _Enough
            return instead

        return hook

    def _all_through(self) -> bool:
        return all(self.forwards[each] >= times for each, times in self.rerun.tried.items())


_HIDDEN = ("hidden_states", "hidden_state", "x", "inputs")


def _instead(leave: Leave, forward: Forward, result: Any) -> Any:
    """What a module is to return, its tensors of numbers as `leave` has them."""
    leaves, tree = tree_flatten(result)
    mine = [number for number, each in enumerate(leaves) if _is_result(each)]
    new = leave(forward, [leaves[number] for number in mine])
    if new is None:
        return None
    for number, each in zip(mine, new, strict=True):
        leaves[number] = each
    return tree_unflatten(leaves, tree)


def restored(before: Sequence[Tensor], now: Sequence[Tensor]) -> list[Tensor]:
    """What was returned before in the place of what is returned now, where that was kept and fits."""
    if len(before) != len(now):
        return list(now)
    return [a.clone() if a.shape == b.shape and a.numel() else b for a, b in zip(before, now, strict=True)]


def _is_result(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.ndim > 1


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().clone()


def _multiplies(part: nn.Module) -> bool:
    """Whether a module is a matrix, or what a quantised one has in its place."""
    weight = getattr(part, "weight", None)
    return callable(weight) or (isinstance(weight, Tensor) and weight.ndim == 2)


def _is_quantised(part: nn.Module) -> bool:
    """Whether a module computes in whole numbers: its weight is packed, or of whole numbers itself."""
    weight = getattr(part, "weight", None)
    return callable(weight) or (isinstance(weight, Tensor) and not weight.is_floating_point())


def _block(model: nn.Module, path: str) -> nn.Module | None:
    """The innermost entry of a list of modules around the module at `path`; None where there is none."""
    found, here, parts = None, model, path.split(".")
    for end, part in enumerate(parts, 1):
        is_list = isinstance(here, nn.ModuleList)
        here = getattr(here, part)
        if is_list and end < len(parts):
            found = here
    return found
