"""Run a model under the cutting rule, up to one attention or on to the answer.

Of a long text heads' outputs are parts, and nothing of queries by keys is held:

    every attention before  ->  its kernel answers, some queries at a time; weights are asked for by rows
    the one that is asked   ->  the model's own eager function, of the rows that are asked about

A head that predicts words may bend what it is given (BERT's transform, a soft cap of logits): behind the last
layer a part's share of the answer is what it brings along the tangent at the observed numbers,

    f(x) = f'(x0) x + left over,    f(a, b) = a b = a b0 + a0 b + left over,

and what the tangent leaves over is a part of its own. Norms have their observed scale, as everywhere.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from attnscope.capture.following.takeover import KernelInputs, takeover
from attnscope.capture.long.chunked import for_each_head, own, rows_of
from attnscope.capture.parts.rule import Change, Changes, Cut, Key, Leaf, Misfit, Rule, Site, detached
from attnscope.capture.running import (
    Refused,
    evaluating,
    hooked,
    repeated,
    running_again,
    without_cache,
    without_weights,
)
from attnscope.capture.trace.fused import unscripted
from attnscope.capture.trace.operations import BOUNDS, overwrites

_ENTRIES = """gelu relu silu tanh leaky_relu elu selu celu relu6 hardswish hardtanh mish softsign pow square
    softshrink hardshrink erf sigmoid exp log log1p expm1 softplus logsigmoid sqrt"""
ENTRIES = BOUNDS | frozenset(_ENTRIES.split())  # each number by itself
_AT_ONCE = 128  # positions of all texts of a batch


class Sloped(Rule):
    """Rule that goes on to the answer: behind the last layer, functions are replaced by their tangents.

    `last` is the attention that runs last, `stacks` the lists that layers stand in. `strays` are cuts behind
    the last layer that have no slope here: an answer that depends on one is no sum.
    """

    def __init__(self, model: nn.Module, last: Site, stacks: Sequence[str]) -> None:
        super().__init__(model)
        self.last, self.stacks = last, tuple(f"{each}." for each in stacks)
        self.strays: set[Key] = set()

    @property
    def _behind(self) -> bool:
        return self._stands_behind(self.site, self.stack[-1])

    def behind(self, leaf: Leaf) -> bool:
        """Whether the part was cut behind the last layer."""
        return self._stands_behind(leaf.site, leaf.key[0])

    def _stands_behind(self, site: Site, module: str) -> bool:
        return site == self.last and not f"{module}.".startswith(self.stacks)

    def _term(self, value: Any, like: Tensor, name: str) -> Any:
        plain = isinstance(value, int | float) and not isinstance(value, bool) and value
        if plain and self._behind:  # such as the 1 in x (1 + tanh x)
            number = torch.full((), float(value), dtype=like.dtype, device=like.device)
            return self.part(number, name, Cut.TANGENT)
        return super()._term(value, like, name)

    def _both(self, function: Any, name: str, alive: Tensor, args: Any, kwargs: Any) -> Any:
        if name != "mul" or overwrites(function) or not self._behind:
            return super()._both(function, name, alive, args, kwargs)
        one, two = args[0], args[1]
        rest = self.part(-(one.detach() * two.detach()), name, Cut.TANGENT)
        return one * two.detach() + one.detach() * two + rest

    def _cut(self, function: Any, name: str, alive: Tensor, args: Any, kwargs: Any) -> Any:
        if not self._behind or alive.shape[-1] == 1:
            return super()._cut(function, name, alive, args, kwargs)
        if name in ENTRIES and args and args[0] is alive and not overwrites(function):
            with torch.enable_grad():
                there = alive.detach().requires_grad_()
                made = function(there, *detached(args[1:]), **detached(kwargs))
                if isinstance(made, Tensor) and made.shape == alive.shape:
                    (slope,) = torch.autograd.grad(made.sum(), there)
                    rest = self.part(made.detach() - slope * there.detach(), name, Cut.TANGENT)
                    return alive * slope + rest
        cut = super()._cut
        return self._strayed(lambda: cut(function, name, alive, args, kwargs))

    def _of_constants(self, function: Any, name: str, tensors: Any, args: Any, kwargs: Any) -> Any:
        """Like the base rule, but parts cut behind the last layer are strays: nothing is read there."""
        made = super()._of_constants
        return self._strayed(lambda: made(function, name, tensors, args, kwargs))

    def _strayed(self, make: Callable[[], Any]) -> Any:
        before = {*self.leaves}
        made = make()
        if self._behind:
            self.strays |= {*self.leaves} - before
        return made


def answered_by_rows(
    rule: Rule, modules: Iterable[nn.Module], until: Site | None
) -> AbstractContextManager[None]:
    """While open, these attentions run under `rule` without a matrix of queries by keys."""

    def answer(given: KernelInputs) -> tuple[Tensor, Tensor | None]:
        if rule.site == until:
            return _asked(given, rule), None
        with torch._C.DisableTorchFunction():
            query, key, value = (each.detach() for each in (given.query, given.key, given.value))
            plain = replace(given, query=query, key=key, value=value)
            made = plain.answer()[0].transpose(1, 2)
            values = for_each_head(plain.value, made.shape[1])

        def weights(rows: Tensor) -> Tensor:
            with torch.no_grad():
                found = replace(rows_of(plain, rows), kernel=own(plain)).answer()[1]
            assert found is not None, "a function that makes its weights has them"
            return found

        cut = rule.part(made, "attention", Cut.ATTENTION, pattern=weights, values=values, axis=1)
        return cut.transpose(1, 2), None

    return takeover(modules, answer)


def _asked(given: KernelInputs, rule: Rule) -> Tensor:
    """Run the eager function for the rule's rows, so that it sees their scores; zeros as the output."""
    assert rule.rows is not None, "these are what is asked about"
    rows = torch.tensor(rule.rows, device=given.query.device)
    replace(rows_of(given, rows), kernel=own(given)).answer()
    batch, heads, queries, _ = given.query.shape
    return given.value.new_zeros(batch, queries, heads, given.value.shape[-1])


Cutting = TypeVar("Cutting", bound=Rule)


class _Done(Exception):
    """Raised inside the forward pass to end it after the last wanted attention."""


@contextmanager
def _ending() -> Iterator[None]:
    """Context manager that ends quietly on `_Done`, and drops the frames that would hold the whole run."""
    try:
        yield
    except _Done as done:
        done.__traceback__ = None


def cut_run(
    model: nn.Module,
    inputs: Mapping[str, Any],
    sites: Sequence[str],
    until: Site | None,
    changes: Changes | None = None,
    rows: Sequence[int] | None = None,
) -> Rule:
    """Run the model under a new `Rule` up to the end of the attention `until` (None: to the model's end).

    `sites` are the paths of the attentions. Of a long text, run in chunks, the scores of these `rows` are
    made there and no others (None: all of all). Raises `Refused` where it does not run under the rule.
    """
    return run_under(Rule(model, changes, rows), model, inputs, sites, until)


def run_under(
    rule: Cutting,
    model: nn.Module,
    inputs: Mapping[str, Any],
    sites: Sequence[str],
    until: Site | None = None,
) -> Cutting:
    """Run the model under `rule`, and return the rule; raises `Refused` where it does not run."""
    with ExitStack() as stack:
        stack.enter_context(evaluating(model))
        stack.enter_context(without_weights(model))
        stack.enter_context(unscripted(model.modules()))
        stack.enter_context(_followed(rule, model, frozenset(sites), until))
        if rule.rows is not None:
            stack.enter_context(answered_by_rows(rule, map(model.get_submodule, sites), until))
        stack.enter_context(torch.enable_grad())
        stack.enter_context(rule)
        stack.enter_context(running_again(model))
        stack.enter_context(_ending())
        rule.output = model(**without_cache(model, inputs))
    return rule


@contextmanager
def _followed(rule: Rule, model: nn.Module, sites: frozenset[str], until: Site | None) -> Iterator[None]:
    calls = Counter[str]()
    paths = {module: path for path, module in model.named_modules()}

    def enter(module: nn.Module, given: Any) -> None:
        rule.stack.append(path := paths[module])
        if path in sites:
            rule.site = path, calls[path]
            calls[path] += 1

    def leave(module: nn.Module, given: Any, made: Any) -> None:
        left = rule.stack.pop()
        if until is not None and left == until[0] and calls[left] == until[1] + 1:
            raise _Done

    entering = (module.register_forward_pre_hook(enter) for module in paths)
    leaving = (module.register_forward_hook(leave) for module in paths)
    with hooked(entering), hooked(leaving):
        yield


def changed_runs(
    model: nn.Module,
    inputs: Mapping[str, Any],
    sites: Sequence[str],
    until: Site | None,
    base: Rule,
    changes: Sequence[Change],
    held: frozenset[Key] = frozenset(),
    *,
    frozen: bool = False,
) -> Iterator[tuple[Rule, int, int] | None]:
    """Run each change: yields its rule, its index in the batch, and the batch's size.

    None for one that cannot be made, where another run has not the same parts. Several run at once where the
    model keeps what it makes of each text apart.
    """
    tensors = [each for each in inputs.values() if isinstance(each, Tensor)]
    alone = any(not each.ndim or each.shape[0] != 1 for each in tensors)
    longest = max((each.numel() for each in tensors), default=1)
    size = 1 if alone else max(1, _AT_ONCE // longest)
    for first in range(0, len(changes), size):
        some = changes[first : first + size]
        try:
            rule = _together(model, inputs, sites, until, Changes(base, some, held, frozen))
            yield from ((rule, i, len(some)) for i in range(len(some)))
            del rule  # before the next one runs
        except (Misfit, Refused):
            for one in some:
                try:
                    yield _together(model, inputs, sites, until, Changes(base, [one], held, frozen)), 0, 1
                except (Misfit, Refused):
                    yield None


def _together(
    model: nn.Module, inputs: Mapping[str, Any], sites: Sequence[str], until: Site | None, changes: Changes
) -> Rule:
    return cut_run(model, repeated(inputs, len(changes.each)), sites, until, changes)
