"""Running a model again on the same inputs, with other answers of its attentions or results of its modules.

Attentions are named by their module, its forward and their place within that forward: (module, 0, 0).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Size, Tensor, nn

from attnscope.capture.cards import draw_from, drawing
from attnscope.capture.cause.entries import Unlike, side_by_side
from attnscope.capture.cause.exchange import AT_ONCE
from attnscope.capture.cause.passage import Enough, Hooks, Passage, Plan
from attnscope.capture.cause.rows import changed, size_of
from attnscope.capture.cause.sketched import Sketches, are_worth_it
from attnscope.capture.evaluation_mode import evaluating
from attnscope.capture.faults import Refused, running_again
from attnscope.capture.following.answers import Forward, Place
from attnscope.model.anatomy.sites import Site

_WHOLE = 1 / 64  # some steps of eight bits: one scale for all rows is moved by the largest of them
_NEAR = 1 / 4  # of what counts as a change: so far apart may the same be at two entries of a batch
_FAR = 16.0  # times as much: and a run from what it is by itself, through all layers
_LARGER = 4  # times an answer: what is larger is no hidden state, but weights of queries by keys


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
    shapes: dict[Any, list[Size]] = field(default_factory=dict)  # as `Plan` has them
    alone: bool = True  # as no entry of a batch
    epsilon: float = 0.0  # of whole numbers that the model computes with, where it does

    def size(self, place: Place) -> float:
        """The size of an answer's numbers, found once."""
        if place not in self.sizes:
            self.sizes[place] = size_of(self.answers[place])
        return self.sizes[place]

    def hooks(self) -> Hooks:
        """Hooks that note what passes by and change nothing of it."""

        def answer(place: Place, answered: Tensor, queries: Tensor) -> None:
            self.shapes[place], self.shapes["queries", place] = [answered.shape], [queries.shape]
            self.answers[place], self.queries[place] = _copy(answered), _copy(queries)

        def leave(forward: Forward, returned: list[Tensor]) -> None:
            self.shapes[forward] = [each.shape for each in returned]
            largest = _LARGER * sum(self.answers[each].numel() for each in self.of(forward))
            self.results[forward] = [
                _copy(each) if each.numel() <= largest else each[:0] for each in returned
            ]

        def leave_block(forward: Forward, returned: list[Tensor]) -> None:
            self.shapes[forward] = [each.shape for each in returned]
            self.blocks[forward] = [_copy(each) for each in returned]

        def enter_block(forward: Forward, hidden: Tensor) -> None:
            self.shapes["reads", forward] = [hidden.shape]
            self.given[forward] = _copy(hidden)

        def feed(forward: Forward, part: nn.Module, given: Tensor) -> None:
            self.shapes.setdefault((forward, part), [given.shape])
            self.fed.setdefault((forward, part), _copy(given))

        return Hooks(answer, leave, leave_block, enter_block, feed=feed)

    def differ(self, now: Tensor, before: Tensor) -> bool:
        """Whether anything of a tensor is another: to the bit in a run by itself, which is the same work."""
        if self.alone or now.ndim < 2:
            return bool((now != before).any())
        return bool(changed(now.flatten(0, -2), before.flatten(0, -2), self.epsilon).any())

    def of(self, forward: Forward) -> list[Place]:
        """The attentions of one forward of a module, in their order."""
        return [place for place in self.answers if place[:2] == forward]

    def answer(self, place: Place, _answered: Tensor, _queries: Tensor) -> Tensor | None:
        """A hook: the attention answers what it answered here."""
        return self.answers.get(place)

    def leave(self, forward: Forward, now: Sequence[Tensor]) -> list[Tensor]:
        """A hook: a module returns what it returned here."""
        return restored(self.results[forward], now)

    def leave_block(self, forward: Forward, now: Sequence[Tensor]) -> list[Tensor]:
        """A hook: a block returns what it returned here."""
        return restored(self.blocks[forward], now)


def restored(before: Sequence[Tensor], now: Sequence[Tensor]) -> list[Tensor]:
    """What was returned before in the place of what is returned now, where that was kept and fits."""
    if len(before) != len(now):
        return list(now)
    return [a.clone() if a.shape == b.shape and a.numel() else b for a, b in zip(before, now, strict=True)]


class Rerun:
    """One model on one input; `tried` are the modules that are asked about, with how often each has to run.

    `runs` counts those by which anything was told. Attentions beside them in the same block answer what they
    answered in the clean run. A run ends with the last block of a tried module.
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
        self.runs = 0
        self.before: dict[Forward, Tensor] = {}  # what blocks read in every later run
        self.last: frozenset[Forward] = frozenset()  # of each block the last module that is asked about
        self.positions, self.sketches = 0, False  # of a block's input, and whether sketches pay for so many
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
        passage = self.run(seen.hooks())
        seen.within, self.before = passage.within, seen.given
        asked = {forward: around for forward, around in seen.within.items() if forward[0] in self.tried}
        if all(forward in asked for forward in seen.results) and {*asked.values()} <= {*seen.given}:
            self.last = frozenset({around: forward for forward, around in asked.items()}.values())
        self.positions = max((each[..., 0].numel() for each in seen.given.values()), default=0)
        self.sketches = are_worth_it(self.model, self.positions)
        counts: Counter[nn.Module] = Counter()
        for place in passage.answers.none:  # what they answer is none, and goes on as the model has it
            del seen.answers[place]
        for place in seen.answers:
            seen.numbers[place] = counts[place[0]]
            counts[place[0]] += 1
        return seen

    def run(self, hooks: Hooks, *, sketched: bool = False) -> Passage:
        """One forward pass; `sketched` where nothing is looked at, if that can be told.

        `Refused` where the model does not run on what it is given.
        """
        asked = Plan(self.sites, self.tried, self.block_of, self.before, self.last)
        sketches = Sketches() if sketched and self.sketches and self.last else None
        self.runs += 1
        return self._through(Passage(asked, [hooks], sketches), self.inputs)

    def together(self, clean: Clean, made: Callable[[Clean], Sequence[Hooks]]) -> int:
        """Runs as entries of one batch, an untouched one first; how many there were besides.

        `made` gets what that shows, as it is noted, and gives the hooks of the others. One more, the last,
        has the same answers again. 0 where they cannot be one batch or it would not be small, where the
        untouched one is not in it what it is by itself, or the same answers come out otherwise at another
        entry. Nothing is counted: that is for whoever believes what they told.
        """
        seen = Clean(numbers=clean.numbers, within=clean.within, alone=False)
        again, ways = Again(seen), made(seen)
        hooks = [seen.hooks(), *(_reading(seen, each) for each in (*ways, again.hooks()))]
        if self.sketches or clean.epsilon or len(hooks) * self.positions > AT_ONCE:
            return 0
        asked = Plan(self.sites, self.tried, self.block_of, {}, self.last, clean.shapes)
        try:
            self._through(Passage(asked, hooks, None), side_by_side(self.inputs, len(hooks)))
        except (Unlike, Refused):
            return 0
        return len(ways) if again.alike and _alike(clean, seen) else 0

    def _through(self, passage: Passage, inputs: Mapping[str, Any]) -> Passage:
        state = drawing(self.model)
        draw_from(self.random)  # what draws by lot draws the same
        try:
            with suppress(Enough), evaluating(self.model), running_again(self.model), passage.open():
                self.model(**inputs)
        finally:
            draw_from(state)
        return passage


class Again:
    """The same answers once more, at another entry of a batch: whether modules and blocks return the same."""

    def __init__(self, clean: Clean) -> None:
        self.clean, self.alike = clean, True

    def hooks(self) -> Hooks:
        """Each block reads and each attention answers what it did; all it makes of that is looked at."""
        return Hooks(self.clean.answer, self._leave, self._leave_block)

    def _leave(self, forward: Forward, now: list[Tensor]) -> list[Tensor] | None:
        self._look(self.clean.results[forward], now)
        return None if forward in self.clean.within else self.clean.leave(forward, now)

    def _leave_block(self, forward: Forward, now: list[Tensor]) -> list[Tensor]:
        self._look(self.clean.blocks[forward], now)
        return self.clean.leave_block(forward, now)

    def _look(self, before: Sequence[Tensor], now: Sequence[Tensor]) -> None:
        self.alike = self.alike and _same(zip(before, now, strict=True), _NEAR)


def _reading(clean: Clean, hooks: Hooks) -> Hooks:
    """The same hooks, where every block is to read what it reads in the untouched run."""

    def enter_block(forward: Forward, _hidden: Tensor) -> Tensor:
        hidden = clean.given[forward].clone()
        new = hooks.enter_block and hooks.enter_block(forward, hidden)
        return hidden if new is None else new

    return replace(hooks, enter_block=enter_block)


def _alike(one: Clean, other: Clean) -> bool:
    """Whether two runs, one of them in a batch, differ by no more than rounding from layer to layer."""
    pairs = [(one.answers[place], other.answers.get(place)) for place in one.answers]
    for mine, theirs in ((one.results, other.results), (one.blocks, other.blocks)):
        for forward, tensors in mine.items():
            found = theirs.get(forward, [])
            pairs += zip(tensors, [*found, *[None] * (len(tensors) - len(found))], strict=True)
    return _same(pairs, _FAR)


def _same(pairs: Iterable[tuple[Tensor, Tensor | None]], part: float) -> bool:
    """Whether tensors that were kept are the same but for such a part of what counts as a change."""
    return all(
        b is not None
        and a.shape == b.shape
        and not changed(b.flatten(0, -2), a.flatten(0, -2), part=part).any()
        for a, b in pairs
        if a.numel()
    )


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().clone()


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
