"""Running a model again on the same inputs, with other answers of its attentions or results of its modules.

Attentions are named by their module, its forward and their place within that forward: (module, 0, 0).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten

from attnscope.capture.cards import draw_from, drawing
from attnscope.capture.cause.passage import Enough, Hooks, Passage, Plan
from attnscope.capture.cause.rows import size_of
from attnscope.capture.cause.sketched import Sketches
from attnscope.capture.following.answers import Forward, Place
from attnscope.capture.running import Refused, evaluating, running_again
from attnscope.errors import ModelUnavailableError
from attnscope.model.anatomy.sites import Site

_WHOLE = 1 / 64  # some steps of eight bits: one scale for all rows is moved by the largest of them
_LARGER = 4  # times an answer: what is larger is no hidden state, but weights of queries by keys


@dataclass(eq=False)
class Clean:
    """What an untouched run showed of the attentions, their modules and blocks; copies."""

    answers: dict[Place, Tensor] = field(default_factory=dict)  # batch head query dim
    queries: dict[Place, Tensor] = field(default_factory=dict)
    results: dict[Forward, list[Tensor]] = field(default_factory=dict)
    blocks: dict[Forward, list[Tensor]] = field(default_factory=dict)
    fed: dict[tuple[Forward, nn.Module], Tensor] = field(default_factory=dict)
    numbers: dict[Place, int] = field(default_factory=dict)  # how many attentions the module made before
    within: dict[Forward, Forward] = field(default_factory=dict)  # of a module, the forward of its block
    sizes: dict[Place, float] = field(default_factory=dict)
    arrived: dict[Forward, list[Tensor]] = field(default_factory=dict)  # all that a layer is given
    returned: list[Tensor] | None = None  # by the model, where that was waited for
    epsilon: float = 0.0  # of whole numbers that the model computes with, where it does

    def size(self, place: Place) -> float:
        """The size of an answer's numbers, found once."""
        if place not in self.sizes:
            self.sizes[place] = size_of(self.answers[place])
        return self.sizes[place]

    def of(self, forward: Forward) -> list[Place]:
        """The attentions of one forward of a module, in their order."""
        return [place for place in self.answers if place[:2] == forward]

    def answer(self, place: Place, _answered: Tensor, _queries: Tensor) -> Tensor | None:
        """A hook: the attention answers what it answered here."""
        return self.answers.get(place)

    def leave(self, forward: Forward, now: Sequence[Tensor]) -> list[Tensor]:
        """A hook: a module returns what it returned here."""
        return restored(self.results.get(forward, ()), now)

    def leave_block(self, forward: Forward, now: Sequence[Tensor]) -> list[Tensor]:
        """A hook: a block returns what it returned here."""
        return restored(self.blocks.get(forward, ()), now)


def restored(before: Sequence[Tensor], now: Sequence[Tensor]) -> list[Tensor]:
    """What was returned before in the place of what is returned now, where that was kept and fits."""
    if len(before) != len(now):
        return list(now)
    return [a.clone() if a.shape == b.shape and a.numel() else b for a, b in zip(before, now, strict=True)]


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
        # what comes next may be no layer: what was not loaded is reached as well
        absent = {part for part in model.modules() if getattr(part, "is_absent", False)}
        self.beside = (_layers(model, sites) | absent) - around
        self.runs = 0
        self.before: dict[Forward, list[Tensor]] = {}  # what blocks are given in every later run
        self.last: frozenset[Forward] = frozenset()  # of each block the last module that is asked about
        self.random = drawing(model)

    def sharing(self, module: nn.Module) -> list[nn.Module]:
        """The tried modules in the same block, in the model's order."""
        block = self.block_of.get(module)
        if block is None:
            return [module]
        return [each for each in self.tried if self.block_of[each] is block]

    def clean(self) -> Clean:
        """What an untouched run shows."""
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
        for place in passage.answers.none:  # what they answer is none, and goes on as the model has it
            del seen.answers[place]
        for place in seen.answers:
            seen.numbers[place] = counts[place[0]]
            counts[place[0]] += 1
        return seen

    def run(
        self, hooks: Hooks, *, sketched: bool = False, inputs: Mapping[str, Any] | None = None
    ) -> Passage:
        """One forward pass, on other `inputs` if given; `sketched` where nothing is looked at.

        `Refused` where the model does not run on what it is given.
        """
        before = {} if hooks.whole else self.before
        asked = Plan(self.sites, self.tried, self.block_of, before, self.last, self.beside)
        passage = Passage(asked, hooks, Sketches() if sketched and self.last else None)
        state = drawing(self.model)
        draw_from(self.random)  # what draws by lot draws the same
        self.runs += 1
        try:
            with suppress(Enough), evaluating(self.model), running_again(self.model), passage.open():
                passage.result = self.model(**(inputs or self.inputs))
        except (
            Refused,
            ModelUnavailableError,
        ):  # what comes after the layers that were asked for may be absent
            if not passage.through:
                raise
        finally:
            draw_from(state)
        return passage


def tensors(result: Any) -> list[Tensor] | None:
    """The tensors of what a model returned, copies; None where it returned nothing."""
    there = [each for each in tree_flatten(result)[0] if isinstance(each, Tensor)]
    return [_copy(each) for each in there] if there else None


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().clone()


def _is_quantised(part: nn.Module) -> bool:
    """Whether a module computes in whole numbers: its weight is packed, or of whole numbers itself."""
    weight = getattr(part, "weight", None)
    return callable(weight) or (isinstance(weight, Tensor) and not weight.is_floating_point())


def _layers(model: nn.Module, sites: Sequence[Site]) -> set[nn.Module]:
    blocks = {_block(model, site.path) for site in sites}
    lists = [part for part in model.modules() if isinstance(part, nn.ModuleList)]
    return {entry for each in lists if blocks & {*each} for entry in each}


def _block(model: nn.Module, path: str) -> nn.Module | None:
    """The innermost entry of a list of modules around the module at `path`; None where there is none."""
    found, here, parts = None, model, path.split(".")
    for end, part in enumerate(parts, 1):
        is_list = isinstance(here, nn.ModuleList)
        here = getattr(here, part)
        if is_list and end < len(parts):
            found = here
    return found
