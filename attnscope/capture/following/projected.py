"""The output projection of an attention: the matrix that takes its heads' outputs to the hidden state.

    what the layer reads -> value projection -> values ... answer -> output projection -> hidden state

No names and no list of architectures: of the modules beside an attention with a matrix for a weight it is the
one that reads, number by number, what the attention has answered, heads side by side. That it multiplies by
this matrix and does nothing else is read back: answer times matrix plus offset is what it returned, and with
the heads exchanged it is not. Where a gate or a norm comes between, where several modules read the answer or
one does more than multiply, the call is left without a projection. What makes the values is found in the
same way, by what it returns.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.attention import AttentionCall
from attnscope.capture.arithmetic import sums_of
from attnscope.model.anatomy.placed import weight_of
from attnscope.model.anatomy.sites import Site
from attnscope.reference import exact
from attnscope.verify import adding

Projection = Float[Tensor, "head value_dim hidden"]
_ROUNDINGS = 2  # machine epsilons of the sum of absolute products
_ROWS = 16  # rows read back at most


@dataclass(frozen=True, eq=False)
class ModuleRun:
    """One forward of a module with a weight: its input, its output, and how often it had run before."""

    part: nn.Module
    given: Tensor
    made: Tensor
    turn: int


@dataclass(frozen=True, eq=False)
class _Answer:
    """One attention's output, with the matrices of the modules that read it (None for more than a matrix).

    `by` are these modules, each with how often it had run before.
    """

    call: AttentionCall
    readers: list[Projection | None] = field(default_factory=list)
    by: list[tuple[nn.Module, int]] = field(default_factory=list)
    values: Float[Tensor, "kv_head read value_dim"] | None = None

    @property
    def rows(self) -> Float[Tensor, "query feature"]:
        return self.call.output.transpose(0, 1).flatten(1)

    def read_by(self, run: ModuleRun) -> None:
        part, given, made, rows = run.part, run.given, run.made, self.rows
        if given.ndim < 2 or given.shape[-1] != rows.shape[-1] or given.shape[:-1] != made.shape[:-1]:
            return
        there, rows = given.detach().flatten(0, -2), rows.to(given)
        for start in (there == rows[0]).all(1).nonzero().flatten().tolist():
            mine = slice(start, start + len(rows))
            if torch.equal(there[mine], rows):  # the same numbers, moved
                self.readers.append(_multiplied(self.call, part, rows, made.detach().flatten(0, -2)[mine]))
                self.by.append((part, run.turn))
                return


class OutputProjections:
    """Finds the output projections of the attentions at `sites` while their model runs."""

    def __init__(self, model: nn.Module, sites: Iterable[Site], values: bool = False) -> None:
        self.values = values
        self.around = {site.module: _around(model, site.path) for site in sites}
        self.waiting: dict[nn.Module, list[_Answer]] = {around: [] for around in self.around.values()}
        self.after: dict[nn.Module, list[Callable[[], None]]] = {around: [] for around in self.waiting}
        self.ran: Counter[nn.Module] = Counter()
        self.runs: dict[nn.Module, list[ModuleRun]] = {around: [] for around in self.waiting}
        self.found: dict[int, _Answer] = {}  # by id of the output, which `_Answer` keeps alive

    @contextmanager
    def watching(self) -> Iterator[None]:
        with ExitStack() as stack:
            for around in self.waiting:
                for part in around.modules():
                    if _matrix(part) is not None:
                        hook = part.register_forward_hook(self._reader(around), with_kwargs=True)
                        stack.enter_context(hook)
                stack.enter_context(around.register_forward_hook(self._leave))
            yield

    def answered(self, module: nn.Module, calls: Iterable[AttentionCall]) -> None:
        """Register the `calls` that attention `module` has just made, to find what reads their outputs."""
        for call in calls:
            with torch._C.DisableTorchFunction():
                values = _made_by(self.runs[self.around[module]], call) if self.values else None
            answer = _Answer(call, values=values)
            self.found[id(call.output)] = answer
            self.waiting[self.around[module]].append(answer)

    def through(self, module: nn.Module, then: Callable[[], None]) -> None:
        """Call `then` as soon as the readers of the outputs of `module`, which has ended, are known."""
        around = self.around[module]
        if all(answer.readers for answer in self.waiting[around]):
            then()
        else:
            self.after[around].append(then)

    def of(self, call: AttentionCall, first: AttentionCall | None = None) -> AttentionCall:
        """Copy of the call with its projection, if any; `first` is the call that it was joined from."""
        answer = self.found.get(id((first or call).output))
        readers = [] if answer is None else answer.readers
        call = call if answer is None else replace(call, value_projection=answer.values)
        return replace(call, projection=readers[0]) if len(readers) == 1 else call

    def _reader(self, around: nn.Module) -> Callable[..., None]:
        def hook(part: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], made: Any) -> None:
            given = next(iter((*args, *kwargs.values())), None)
            if isinstance(given, Tensor) and isinstance(made, Tensor):
                run = ModuleRun(part, given, made, self.ran[part])
                if self.values:
                    self.runs[around].append(run)
                with torch._C.DisableTorchFunction():
                    for answer in self.waiting[around]:
                        answer.read_by(run)
            self.ran[part] += 1

        return hook

    def _leave(self, around: nn.Module, _inputs: Any, _output: Any) -> None:
        self.waiting[around].clear()
        self.runs[around].clear()
        waited, self.after[around] = self.after[around], []
        for then in waited:
            then()


def projections_of(
    model: nn.Module, watched: Sequence[Site], wanted: set[int], values: bool = False
) -> OutputProjections:
    """A finder of the output projections of the wanted layers; with `values`, of value projections too."""
    return OutputProjections(model, [site for site in watched if wanted.intersection(site.layers)], values)


def _multiplied(
    call: AttentionCall, part: nn.Module, rows: Float[Tensor, "query feature"], made: Tensor
) -> Projection | None:
    """The matrix by which `part` multiplies the rows, by head; None where it is not seen to do just that."""
    dim = call.output.shape[-1] if call.heads > 1 else 1
    matrix = matrix_seen(part, rows, made, call.epsilon, lambda rows, made: (rows.roll(dim, 1), made))
    return None if matrix is None else matrix.to(call.q.device).reshape(call.heads, -1, matrix.shape[1])


def _made_by(
    runs: Iterable[ModuleRun], call: AttentionCall
) -> Float[Tensor, "kv_head read value_dim"] | None:
    """The matrix that makes the values of `call`, up to an offset; None where no module makes them."""
    key_heads, keys, dim = call.v.shape
    wanted = call.v.transpose(0, 1)  # key kv_head value_dim
    for each in runs:
        part, made = each.part, each.made
        there, read = made.detach().flatten(0, -2), each.given.detach().flatten(0, -2)
        if made.ndim < 2 or len(there) != len(read) or there.shape[1] < key_heads * dim:
            continue
        if len(there) < keys or there.dtype != wanted.dtype:
            continue
        wanted = wanted.to(there.device)
        for start in range(0, len(there) - keys + 1, keys):
            rows = there[start : start + keys]
            places = [_place(rows, wanted[:, head]) for head in range(key_heads)]
            if None in places:
                continue
            mine = slice(start, start + keys)
            matrix = matrix_seen(part, read[mine], rows, call.epsilon, another_column)
            if matrix is not None:
                parts = [matrix[:, first : first + dim] for first in places if first is not None]
                return torch.stack(parts).to(call.v.device)
    return None


def _place(rows: Float[Tensor, "token column"], wanted: Float[Tensor, "token value_dim"]) -> int | None:
    """The first column from which on `rows` equals `wanted`, bit by bit; None where there is none."""
    width = wanted.shape[1]
    starts = (rows == wanted[:, :1]).all(0)[: rows.shape[1] - width + 1].nonzero().flatten().tolist()
    return next((each for each in starts if torch.equal(rows[:, each : each + width], wanted)), None)


def another_column(rows: Tensor, made: Tensor) -> tuple[Tensor, Tensor]:
    """A `fault` for `matrix_seen`: the columns of the result rolled by one."""
    return rows, made.roll(1, 1)


def matrix_seen(
    part: nn.Module,
    rows: Tensor,
    made: Tensor,
    epsilon: float,
    fault: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
) -> Float[Tensor, "read made"] | None:
    """The matrix by which `part` maps `rows` to `made`, verified; None where it does more, or less is seen.

    With the `fault` put into rows or results it must not fit. A few rows tell: all are multiplied alike.
    """
    epsilon, some = max(epsilon, torch.finfo(rows.dtype).eps), slice(None, None, -(-len(rows) // _ROWS))
    sums = sums_of(rows, made)
    rows, made = exact(rows[some]), exact(made[some])
    weight, offset = weight_of(part), weight_of(part, "bias")
    assert weight is not None, "only such parts are watched"
    tolerance = _ROUNDINGS * epsilon + adding(rows.shape[1], sums)
    added = made.new_zeros(made.shape[1]) if offset is None else exact(offset.detach()).to(made.device)
    weight = weight.detach().to(rows.device)
    for matrix in (weight.T, weight):
        if matrix.shape == (rows.shape[1], made.shape[1]) and added.shape == made.shape[1:]:
            seen = _Product(exact(matrix), added, tolerance)
            if seen.gives(rows, made) and not seen.gives(*fault(rows, made)):
                return matrix
    return None


@dataclass(frozen=True, eq=False)
class _Product:
    """A matrix and an offset in float64, and the error that their product may have, relative to its size."""

    matrix: Float[Tensor, "read made"]
    offset: Float[Tensor, " made"]
    tolerance: float

    @cached_property
    def sizes(self) -> Float[Tensor, "read made"]:
        return self.matrix.abs()

    def gives(self, rows: Float[Tensor, "row read"], made: Float[Tensor, "row made"]) -> bool:
        off = (rows @ self.matrix + self.offset - made).abs()
        size = rows.abs() @ self.sizes + self.offset.abs()
        return bool((off <= self.tolerance * size).all())


def _matrix(part: nn.Module) -> Tensor | None:
    weight = getattr(part, "weight", None)
    usual = isinstance(weight, Tensor) and weight.ndim == 2 and weight.is_floating_point()
    return weight if usual else None


def _around(model: nn.Module, path: str) -> nn.Module:
    """The innermost module with a forward of its own that holds the one at `path`."""
    while path:
        path = path.rpartition(".")[0]
        around = model.get_submodule(path)
        if not isinstance(around, nn.ModuleList | nn.ModuleDict):
            return around
    return model
