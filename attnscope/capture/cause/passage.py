"""One forward pass in which attentions' answers, modules' results and blocks' inputs may be replaced.

with passage.open():
    model(**inputs)  # ends with `Enough` once all that is asked about is through
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from attnscope.capture.cause.sketched import Sketches
from attnscope.capture.faults import ours
from attnscope.capture.following.answers import Answered, Answers, Forward, Place, answers
from attnscope.model.anatomy.sites import Site

Answer = Callable[[Place, Tensor, Tensor], Tensor | None]  # place, answer and queries -> another answer
# what a module returns -> what it is to return
Leave = Callable[[Forward, list[Tensor]], list[Tensor] | None]
Enter = Callable[[Forward, Tensor], Tensor | None]  # the hidden state that is read -> another one
Feed = Callable[[Forward, nn.Module, Tensor], None]  # what a matrix within a module is given after an answer

_HIDDEN = ("hidden_states", "hidden_state", "x", "inputs")


class Enough(Exception):
    """Raised inside the forward pass once every module that is asked about is through, with its block."""


@dataclass(frozen=True, eq=False)
class Hooks:
    """Functions that are called as the model runs; what they return replaces a tensor, None leaves it."""

    answer: Answer
    leave: Leave | None = None
    leave_block: Leave | None = None
    enter_block: Enter | None = None
    enter_module: Enter | None = None
    feed: Feed | None = None


@dataclass(frozen=True, eq=False)
class Plan:
    """The `sites` whose attentions are watched, the modules `tried` with how often each runs, their blocks.

    `before` is what blocks are to read, `last` of each block the last forward that is asked about.
    """

    sites: Sequence[Site]
    tried: Mapping[nn.Module, int]
    block_of: Mapping[nn.Module, nn.Module | None]
    before: Mapping[Forward, Tensor]
    last: frozenset[Forward]


class Passage:
    """One forward pass under way; `within` says which forward of its block a module ran in.

    With `sketches` large products are that between what is asked about and the next block, where nothing is
    looked at: that block reads what it read before.
    """

    answers: Answers

    def __init__(self, asked: Plan, hooks: Hooks, sketches: Sketches | None) -> None:
        self.asked, self.hooks, self.sketches = asked, hooks, sketches
        self.forwards: Counter[nn.Module] = Counter()  # of modules and of blocks, that are through
        self.running: Counter[nn.Module] = Counter()  # blocks
        self.within: dict[Forward, Forward] = {}

    @contextmanager
    def open(self) -> Iterator[None]:
        """While open, the hooks are called at every attention, module and block of the plan."""
        asked, hooks = self.asked, self.hooks
        blocks = {block for block in asked.block_of.values() if block is not None}
        with ExitStack() as stack:
            if self.sketches:
                stack.enter_context(self.sketches)
            self.answers = stack.enter_context(answers(asked.sites, self._answered, changing=True))
            for module in asked.tried if hooks.feed else ():
                for part in module.modules():
                    if part is not module and _multiplies(part):
                        stack.enter_context(part.register_forward_pre_hook(self._fed(module)))
            early = {"with_kwargs": True, "prepend": True}
            for block in blocks:
                stack.enter_context(block.register_forward_pre_hook(ours(self._block_entered), **early))
            for module in asked.tried if hooks.enter_module else ():
                stack.enter_context(module.register_forward_pre_hook(ours(self._module_entered), **early))
            for module in {site.module for site in asked.sites}:
                stack.enter_context(module.register_forward_hook(ours(self._module_left)))
            for block in blocks:
                stack.enter_context(block.register_forward_hook(ours(self._block_left)))
            yield

    def _answered(self, seen: Answered) -> Tensor | None:
        return ours(self.hooks.answer)(seen.place, seen.output, seen.source.query)

    def _fed(self, module: nn.Module) -> Callable[..., None]:
        @ours
        def hook(part: nn.Module, args: Any) -> None:
            forward, feed = (module, self.forwards[module]), self.hooks.feed
            has_answered = self.answers.made[forward] > 0
            if feed and has_answered and args and isinstance(args[0], Tensor) and args[0].ndim > 1:
                feed(forward, part, args[0])

        return hook

    def _block_entered(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.running[module] += 1
        if self.sketches:
            self.sketches.active = False
        before = self.asked.before.get((module, self.forwards[module]))
        return self._entered(module, self.hooks.enter_block, before, args, kwargs)

    def _module_entered(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._entered(module, self.hooks.enter_module, None, args, kwargs)

    def _entered(
        self,
        module: nn.Module,
        enter: Enter | None,
        before: Tensor | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        if enter is None and before is None:
            return None
        for name in (*range(len(args)), *(name for name in _HIDDEN if name in kwargs)):
            given = args[name] if isinstance(name, int) else kwargs[name]
            if _is_hidden(given):
                # a model may hand on what was noted of a block before its result was put back
                is_known = before is not None and before.shape == given.shape
                clean = before.clone() if before is not None and is_known else given
                new = None if enter is None else enter((module, self.forwards[module]), clean)
                new = clean if new is None else new
                if isinstance(name, int):
                    return (*args[:name], new, *args[name + 1 :]), kwargs
                return args, {**kwargs, name: new}
        return None

    def _module_left(self, module: nn.Module, _inputs: Any, result: Any) -> Any:
        forward, block = (module, self.forwards[module]), self.asked.block_of.get(module)
        if block is not None and self.running[block]:
            self.within[forward] = block, self.forwards[block]
        if self.sketches and forward in self.asked.last:
            self.sketches.active = True
        return self._left(forward, self.hooks.leave if module in self.asked.tried else None, result)

    def _block_left(self, block: nn.Module, _inputs: Any, result: Any) -> Any:
        self.running[block] -= 1
        return self._left((block, self.forwards[block]), self.hooks.leave_block, result)

    def _left(self, forward: Forward, leave: Leave | None, result: Any) -> Any:
        self.forwards[forward[0]] += 1
        instead = None if leave is None else _instead(leave, forward, result)
        if not +self.running and all(self.forwards[each] >= n for each, n in self.asked.tried.items()):
            raise Enough
        return instead


def _instead(leave: Leave, forward: Forward, result: Any) -> Any:
    """A module's result with its tensors of numbers replaced by those that `leave` returns."""
    leaves, tree = tree_flatten(result)
    mine = [number for number, each in enumerate(leaves) if _is_hidden(each)]
    new = leave(forward, [leaves[number] for number in mine])
    if new is None:
        return None
    for number, each in zip(mine, new, strict=True):
        leaves[number] = each
    return tree_unflatten(leaves, tree)


def _is_hidden(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.ndim > 1


def _multiplies(part: nn.Module) -> bool:
    """Whether a module is a matrix, or what a quantised one has in its place."""
    weight = getattr(part, "weight", None)
    return callable(weight) or (isinstance(weight, Tensor) and weight.ndim == 2)
