"""A run under the rule that ends with the attention that is asked about.

Of a long text heads answer parts, and nothing of queries by keys is held:

every attention before  ->  its kernel answers, some queries at a time; weights are asked for by rows
the one that is asked   ->  the model's own eager function, of the rows that are asked about
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from attnscope.capture.following.takeover import KernelInputs, takeover
from attnscope.capture.long.chunked import for_each_head, own, rows_of
from attnscope.capture.parts.leaves import Change, Cut, Key, Site
from attnscope.capture.parts.rule import Changes, Misfit, Rule
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


def answered_by_rows(
    rule: Rule, modules: Iterable[nn.Module], until: Site | None
) -> AbstractContextManager[None]:
    """While open, under the rule, these attentions are answered without their squares."""

    def answer(given: KernelInputs) -> tuple[Tensor, Tensor | None]:
        if rule.site == until:
            return _asked(given, rule), None
        with torch._C.DisableTorchFunction():
            plain = detached(given)
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
    """The scores of the rows that are asked about, which the rule sees; the run ends with this attention."""
    assert rule.rows is not None, "these are what is asked about"
    rows = torch.tensor(rule.rows, device=given.query.device)
    replace(rows_of(given, rows), kernel=own(given)).answer()
    batch, heads, queries, _ = given.query.shape
    return given.value.new_zeros(batch, queries, heads, given.value.shape[-1])


def detached(given: KernelInputs) -> KernelInputs:
    query, key, value = (each.detach() for each in (given.query, given.key, given.value))
    return replace(given, query=query, key=key, value=value)


Cutting = TypeVar("Cutting", bound=Rule)
_AT_ONCE = 128  # positions of all texts of a batch


class _Done(Exception):
    """The attention that is asked about has ended."""


@contextmanager
def _ending() -> Iterator[None]:
    """Where the run has ended before the model's end, without the frames that would hold all of it."""
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
    """What the model is made of up to the end of one attention, None: to its own; `sites` are their paths.

    Of a long text, run in chunks, the scores of these `rows` are made there and no others (None: all of all).
    Raises `Refused` where it does not run under the rule.
    """
    return run_under(Rule(model, changes, rows), model, inputs, sites, until)


def run_under(
    rule: Cutting,
    model: nn.Module,
    inputs: Mapping[str, Any],
    sites: Sequence[str],
    until: Site | None = None,
) -> Cutting:
    """A run under a rule, which is given back with all that came of it. `Refused`: it does not run."""
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
    """A run for each change: the rule it ran under, which text of its batch it is, and of how many.

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
