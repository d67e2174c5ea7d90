"""One forward pass in which attentions' answers, modules' results and blocks' inputs may be replaced.

with passage.open():
    model(**inputs)  # ends with `Enough` once all that is asked about is through
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from attnscope.capture.cause.sketched import Sketches
from attnscope.capture.following.answers import Answered, Answers, Forward, Place, answers
from attnscope.capture.running import ours
from attnscope.model.anatomy.sites import Site

Answer = Callable[[Place, Tensor, Tensor], Tensor | None]  # place, answer and queries -> another answer
# what a module returns -> what it is to return
Leave = Callable[[Forward, list[Tensor]], list[Tensor] | None]
Enter = Callable[[Forward, Tensor], Tensor | None]  # the hidden state that is read -> another one
Feed = Callable[[Forward, nn.Module, Tensor], None]  # what a matrix within a module is given after an answer
Arrive = Callable[[Forward, list[Tensor]], None]  # all that a layer is given

_HIDDEN = ("hidden_states", "hidden_state", "x", "inputs")


class Enough(Exception):
    """Raised inside the forward pass once every module that is asked about is through, with its block."""


@dataclass(frozen=True, eq=False)
class Hooks:
    """Functions that are called as the model runs; what they return replaces a tensor, None leaves it.

    With `arrive` the run goes on to the layer after the last one that is tried, or to its end; `whole` to its
    end in any case, and nothing is put back.
    """

    answer: Answer
    leave: Leave | None = None
    leave_block: Leave | None = None
    enter_block: Enter | None = None
    enter_module: Enter | None = None
    feed: Feed | None = None
    arrive: Arrive | None = None
    whole: bool = False


@dataclass(frozen=True, eq=False)
class Plan:
    """The `sites` whose attentions are watched, the modules `tried` with how often each runs, their blocks.

    `before` is all that blocks are to be given, `last` of each block the last forward that is asked about.
    `beside` are the layers that are no such blocks.
    """

    sites: Sequence[Site]
    tried: Mapping[nn.Module, int]
    block_of: Mapping[nn.Module, nn.Module | None]
    before: Mapping[Forward, Sequence[Tensor]]
    last: frozenset[Forward]
    beside: Collection[nn.Module] = ()


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
        self.result: Any = None  # the model's, of a run that goes on to its end

    @property
    def through(self) -> bool:
        """Whether every module that is asked about is through, with its block."""
        is_done = all(self.forwards[each] >= times for each, times in self.asked.tried.items())
        return is_done and not +self.running

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
            for layer in asked.beside if hooks.arrive else ():
                stack.enter_context(layer.register_forward_pre_hook(ours(self._arrived), **early))
                stack.enter_context(layer.register_forward_hook(ours(self._beside_left)))
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

    def _arrived(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a layer is to be given: what it was given before, where that is known and fits."""
        forward = module, self.forwards[module]
        named: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
        # of a mask that is only a rule nothing is to be written out
        mine = {name: each for name, each in named.items() if type(each) is Tensor and is_hidden(each)}
        if self.hooks.arrive:
            self.hooks.arrive(forward, [*mine.values()])
            if self.through:
                raise Enough
        before = self.asked.before.get(forward, ())
        if len(before) == len(mine):
            named |= {name: _again(*pair) for name, *pair in zip(mine, mine.values(), before, strict=True)}
        return tuple(named[i] for i in range(len(args))), {name: named[name] for name in kwargs}

    def _beside_left(self, layer: nn.Module, _inputs: Any, _result: Any) -> None:
        self.forwards[layer] += 1

    def _block_entered(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        args, kwargs = self._arrived(module, args, kwargs)
        self.running[module] += 1
        if self.sketches:
            self.sketches.active = False
        return self._entered(module, self.hooks.enter_block, args, kwargs) or (args, kwargs)

    def _module_entered(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._entered(module, self.hooks.enter_module, args, kwargs)

    def _entered(
        self,
        module: nn.Module,
        enter: Enter | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        if enter is None:
            return None
        for name in (*range(len(args)), *(name for name in _HIDDEN if name in kwargs)):
            given = args[name] if isinstance(name, int) else kwargs[name]
            if is_hidden(given):
                if (new := enter((module, self.forwards[module]), given)) is None:
                    return None
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
        if self.through and not (self.hooks.arrive or self.hooks.whole):
            raise Enough
        return instead


def _instead(leave: Leave, forward: Forward, result: Any) -> Any:
    leaves, tree = tree_flatten(result)
    mine = [number for number, each in enumerate(leaves) if is_hidden(each)]
    new = leave(forward, [leaves[number] for number in mine])
    if new is None:
        return None
    for number, each in zip(mine, new, strict=True):
        leaves[number] = each
    return tree_unflatten(leaves, tree)


def _again(now: Tensor, before: Tensor) -> Tensor:
    """What was given before: a model may hand on what it noted of a block before its result was put back."""
    return now if now.shape != before.shape or torch.equal(now, before) else before.clone()


def is_hidden(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.ndim > 1


def _multiplies(part: nn.Module) -> bool:
    """Whether a module is a matrix, or what a quantised one has in its place."""
    weight = getattr(part, "weight", None)
    return callable(weight) or (isinstance(weight, Tensor) and weight.ndim == 2)
