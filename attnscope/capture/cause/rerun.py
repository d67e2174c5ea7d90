"""Run a model again on the same inputs, with other outputs of its attentions or results of its modules.

Attentions are named by their module, its forward and their place within that forward: (module, 0, 0). In one
`Passage` attentions' outputs, modules' results and blocks' inputs may be replaced:

    with passage.open():
        model(**inputs)  # ends with `Enough` once all modules under test are through
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from attnscope.capture.cause.answers import Answered, Answers, Forward, Place, Sketches, answers
from attnscope.capture.cause.rows import size_of
from attnscope.capture.running import Refused, draw_from, drawing, evaluating, ours, running_again
from attnscope.errors import ModelUnavailableError
from attnscope.model.anatomy.sites import Site

_WHOLE = 1 / 64  # some steps of eight bits: one scale for all rows is moved by the largest of them
_LARGER = 4  # times an attention's output: larger tensors are weights, no hidden state
Answer = Callable[[Place, Tensor, Tensor], Tensor | None]  # place, output, queries -> replacement
# the tensors of a module's result -> their replacements
Leave = Callable[[Forward, list[Tensor]], list[Tensor] | None]
Enter = Callable[[Forward, Tensor], Tensor | None]  # hidden state -> replacement
Feed = Callable[[Forward, nn.Module, Tensor], None]  # input of a matrix that follows attention
Arrive = Callable[[Forward, list[Tensor]], None]  # all tensors that a layer gets
_HIDDEN = ("hidden_states", "hidden_state", "x", "inputs")


class Enough(Exception):
    """Raised inside the forward pass to end it once every module under test is through, with its block."""


@dataclass(frozen=True, eq=False)
class Hooks:
    """Callbacks of a run: a tensor that one returns replaces the original, None keeps it.

    With `arrive` the run goes on to the layer after the last one under test, or to its end; `whole` to its
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


@dataclass(eq=False)
class Clean:
    """Copies of the outputs of attentions, modules and blocks in an untouched run."""

    answers: dict[Place, Tensor] = field(default_factory=dict)  # batch head query dim
    queries: dict[Place, Tensor] = field(default_factory=dict)
    results: dict[Forward, list[Tensor]] = field(default_factory=dict)
    blocks: dict[Forward, list[Tensor]] = field(default_factory=dict)
    fed: dict[tuple[Forward, nn.Module], Tensor] = field(default_factory=dict)
    numbers: dict[Place, int] = field(default_factory=dict)  # how many attentions the module made before
    within: dict[Forward, Forward] = field(default_factory=dict)  # module's forward -> its block's
    sizes: dict[Place, float] = field(default_factory=dict)
    arrived: dict[Forward, list[Tensor]] = field(default_factory=dict)  # inputs of layers
    returned: list[Tensor] | None = None  # by the model, if the run reached its end
    epsilon: float = 0.0  # of integers, if the model computes with them

    def size(self, place: Place) -> float:
        """Root mean square of an attention's output, cached."""
        if place not in self.sizes:
            self.sizes[place] = size_of(self.answers[place])
        return self.sizes[place]

    def of(self, forward: Forward) -> list[Place]:
        """Places of the attentions in one forward of a module, in their order."""
        return [place for place in self.answers if place[:2] == forward]

    def answer(self, place: Place, _answered: Tensor, _queries: Tensor) -> Tensor | None:
        """Hook: an attention's output in the clean run, None if unknown."""
        return self.answers.get(place)

    def leave(self, forward: Forward, now: Sequence[Tensor]) -> list[Tensor]:
        """Hook: restore a module's result to the clean run's."""
        return restored(self.results.get(forward, ()), now)

    def leave_block(self, forward: Forward, now: Sequence[Tensor]) -> list[Tensor]:
        """Hook: restore a block's result to the clean run's."""
        return restored(self.blocks.get(forward, ()), now)


def restored(before: Sequence[Tensor], now: Sequence[Tensor]) -> list[Tensor]:
    """Copies of `before` in place of `now`, for each tensor that was kept and has the same shape."""
    if len(before) != len(now):
        return list(now)
    return [a.clone() if a.shape == b.shape and a.numel() else b for a, b in zip(before, now, strict=True)]


class Passage:
    """One forward pass under way with hooks; `within` maps a module's forward to that of its block.

    With `sketches`, large products are sketched between the modules under test and the next block, where
    nothing is looked at: that block reads its clean input.
    """

    answers: Answers

    def __init__(self, asked: "Rerun", hooks: Hooks, sketches: Sketches | None) -> None:
        self.asked, self.hooks, self.sketches = asked, hooks, sketches
        self.forwards: Counter[nn.Module] = Counter()  # that ended, of modules and blocks
        self.running: Counter[nn.Module] = Counter()  # blocks
        self.within: dict[Forward, Forward] = {}
        self.result: Any = None  # the model's output, if the run reached its end

    @property
    def through(self) -> bool:
        """Whether every module under test is through, with its block."""
        is_done = all(self.forwards[each] >= times for each, times in self.asked.tried.items())
        return is_done and not +self.running

    @contextmanager
    def open(self) -> Iterator[None]:
        """While open, the hooks are called at every attention, module and block under test."""
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
        """Restore a layer's arguments to those of the clean run, where these are known and fit."""
        forward = module, self.forwards[module]
        named: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
        # of a mask that is only a rule nothing is to be written out
        mine = {name: each for name, each in named.items() if type(each) is Tensor and is_hidden(each)}
        if self.hooks.arrive:
            self.hooks.arrive(forward, [*mine.values()])
            if self.through:
                raise Enough
        before = () if self.hooks.whole else self.asked.before.get(forward, ())
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


class Rerun:
    """Runs one model on one input; `tried` are the modules under test, with how often each has to run.

    `runs` counts forward passes. Other attentions in the same block keep their clean outputs. A run ends with
    the last block of a tried module.
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
        # what comes next may be no layer: what was not loaded is reached as well
        absent = {part for part in model.modules() if getattr(part, "is_absent", False)}
        self.beside = (_layers(model, sites) | absent) - around
        self.runs = 0
        self.before: dict[Forward, list[Tensor]] = {}  # inputs of blocks in every later run
        self.last: frozenset[Forward] = frozenset()  # each block's last tested module
        self.random = drawing(model)

    def sharing(self, module: nn.Module) -> list[nn.Module]:
        """The tried modules in the same block, in the model's order."""
        block = self.block_of.get(module)
        if block is None:
            return [module]
        return [each for each in self.tried if self.block_of[each] is block]

    def clean(self) -> Clean:
        """Run the model untouched, and keep copies of what its attentions, modules and blocks return."""
        seen = Clean(epsilon=_WHOLE if any(map(_is_quantised, self.model.modules())) else 0.0)

        def answer(place: Place, answered: Tensor, queries: Tensor) -> None:
            seen.answers[place], seen.queries[place] = _copy(answered), _copy(queries)

        def leave(forward: Forward, returned: list[Tensor]) -> None:
            largest = _LARGER * sum(seen.answers[each].numel() for each in seen.of(forward))
            seen.results[forward] = [
                _copy(each) if each.numel() <= largest else each[:0] for each in returned
            ]

        def leave_block(forward: Forward, returned: list[Tensor]) -> None:
            seen.blocks[forward] = [_copy(each) for each in returned]

        copies: dict[int, tuple[Tensor, Tensor]] = {}  # one of what several layers are given

        def kept(given: Tensor) -> Tensor:
            before = copies.get(id(given))
            if before is None or not torch.equal(before[1], given):
                before = copies[id(given)] = given, _copy(given)
            return before[1]

        def arrive(forward: Forward, given: list[Tensor]) -> None:
            seen.arrived[forward] = [kept(each) for each in given]

        def feed(forward: Forward, part: nn.Module, given: Tensor) -> None:
            seen.fed.setdefault((forward, part), _copy(given))

        passage = self.run(Hooks(answer, leave, leave_block, feed=feed, arrive=arrive))
        copies.clear()
        seen.returned = tensors(passage.result)
        seen.within = passage.within
        blocks = {*self.block_of.values()}
        self.before = {forward: given for forward, given in seen.arrived.items() if forward[0] in blocks}
        asked = {forward: around for forward, around in seen.within.items() if forward[0] in self.tried}
        if all(forward in asked for forward in seen.results) and all(map(self.before.get, asked.values())):
            self.last = frozenset({around: forward for forward, around in asked.items()}.values())
        counts: Counter[nn.Module] = Counter()
        for place in passage.answers.none:  # no attentions: their outputs go on as they are
            del seen.answers[place]
        for place in seen.answers:
            seen.numbers[place] = counts[place[0]]
            counts[place[0]] += 1
        return seen

    def run(
        self, hooks: Hooks, *, sketched: bool = False, inputs: Mapping[str, Any] | None = None
    ) -> Passage:
        """Run one forward pass with `hooks`, on other `inputs` if given; `sketched` if nothing is looked at.

        Raises `Refused` where the model does not run on these inputs.
        """
        passage = Passage(self, hooks, Sketches() if sketched and self.last else None)
        state = drawing(self.model)
        draw_from(self.random)  # the same random numbers in every run
        self.runs += 1
        try:
            with suppress(Enough), evaluating(self.model), running_again(self.model), passage.open():
                passage.result = self.model(**(inputs or self.inputs))
        except (Refused, ModelUnavailableError):  # what follows the wanted layers may be absent
            if not passage.through:
                raise
        finally:
            draw_from(state)
        return passage


def tensors(result: Any) -> list[Tensor] | None:
    """Copies of the tensors in a model's output; None if it has none."""
    there = [each for each in tree_flatten(result)[0] if isinstance(each, Tensor)]
    return [_copy(each) for each in there] if there else None


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().clone()


def _is_quantised(part: nn.Module) -> bool:
    """Whether a module computes in whole numbers: its weight is packed, or of an integer dtype."""
    weight = getattr(part, "weight", None)
    return callable(weight) or (isinstance(weight, Tensor) and not weight.is_floating_point())


def _layers(model: nn.Module, sites: Sequence[Site]) -> set[nn.Module]:
    blocks = {_block(model, site.path) for site in sites}
    lists = [part for part in model.modules() if isinstance(part, nn.ModuleList)]
    return {entry for each in lists if blocks & {*each} for entry in each}


def _block(model: nn.Module, path: str) -> nn.Module | None:
    """The innermost entry of a `ModuleList` around the module at `path`; None where there is none."""
    found, here, parts = None, model, path.split(".")
    for end, part in enumerate(parts, 1):
        is_list = isinstance(here, nn.ModuleList)
        here = getattr(here, part)
        if is_list and end < len(parts):
            found = here
    return found


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
    """The clean input if `now` differs: a model may pass on a copy made before a result was put back."""
    return now if now.shape != before.shape or torch.equal(now, before) else before.clone()


def is_hidden(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.ndim > 1


def _multiplies(part: nn.Module) -> bool:
    """Whether a module multiplies by a matrix, plain or quantised."""
    weight = getattr(part, "weight", None)
    return callable(weight) or (isinstance(weight, Tensor) and weight.ndim == 2)
