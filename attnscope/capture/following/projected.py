"""The output projection of an attention: the matrix that takes its heads' outputs to the hidden state.

No names and no list of architectures: of the modules beside an attention with a matrix for a weight it is the
one that reads, number by number, what the attention has answered, heads side by side. That it multiplies by
this matrix and does nothing else is read back: answer times matrix plus offset is what it returned, and with
the heads exchanged it is not. Where a gate or a norm comes between, where several modules read the answer or
one does more than multiply, there is none, and nobody is told one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.attention import AttentionCall
from attnscope.model.anatomy.sites import Site

Projection = Float[Tensor, "head value_dim hidden"]
_ROUNDINGS = 2  # machine epsilons of the sum of absolute products
_ADDED = torch.finfo(torch.float32).eps / 2  # of the same, for each product that is added up


@dataclass(frozen=True, eq=False)
class _Answer:
    """What an attention answered, and what the modules that read it multiply it by, None if by nothing."""

    call: AttentionCall
    readers: list[Projection | None] = field(default_factory=list)

    @property
    def rows(self) -> Float[Tensor, "query feature"]:
        return self.call.output.transpose(0, 1).flatten(1)

    def read_by(self, part: nn.Module, given: Tensor, made: Tensor) -> None:
        """Remembers `part` where what it was given has these rows, one after the other."""
        rows = self.rows
        if given.ndim < 2 or given.shape[-1] != rows.shape[-1] or given.shape[:-1] != made.shape[:-1]:
            return
        there, rows = given.detach().flatten(0, -2).cpu(), rows.to(given.dtype)
        for start in (there == rows[0]).all(1).nonzero().flatten().tolist():
            mine = slice(start, start + len(rows))
            if torch.equal(there[mine], rows):
                self.readers.append(_multiplied(self.call, part, rows, made.detach().flatten(0, -2)[mine]))
                return


class OutputProjections:
    """Finds the output projections of the attentions at `sites` while their model runs."""

    def __init__(self, model: nn.Module, sites: Iterable[Site]) -> None:
        self.around = {site.module: _around(model, site.path) for site in sites}
        self.waiting: dict[nn.Module, list[_Answer]] = {around: [] for around in self.around.values()}
        self.after: dict[nn.Module, list[Callable[[], None]]] = {around: [] for around in self.waiting}
        self.found: dict[int, _Answer] = {}  # by what was answered, which the answer itself keeps alive

    @contextmanager
    def watching(self) -> Iterator[None]:
        handles = []
        try:
            for around in self.waiting:
                handles += [
                    part.register_forward_hook(self._reader(around), with_kwargs=True)
                    for part in around.modules()
                    if _matrix(part) is not None
                ]
                handles.append(around.register_forward_hook(self._leave))
            yield
        finally:
            for handle in handles:
                handle.remove()

    def answered(self, module: nn.Module, calls: Iterable[AttentionCall]) -> None:
        """The attention `module` has just answered `calls`."""
        for call in calls:
            answer = _Answer(call)
            self.found[id(call.output)] = answer
            self.waiting[self.around[module]].append(answer)

    def through(self, module: nn.Module, then: Callable[[], None]) -> None:
        """The module has ended: `then` is done as soon as it is known what reads its answers."""
        around = self.around[module]
        if all(answer.readers for answer in self.waiting[around]):
            then()
        else:
            self.after[around].append(then)

    def of(self, call: AttentionCall, first: AttentionCall | None = None) -> AttentionCall:
        """The call with its projection, where there is one; `first` is what it was joined from."""
        answer = self.found.get(id((first or call).output))
        readers = [] if answer is None else answer.readers
        return replace(call, projection=readers[0]) if len(readers) == 1 else call

    def _reader(self, around: nn.Module) -> Callable[..., None]:
        def hook(part: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], made: Any) -> None:
            given = next(iter((*args, *kwargs.values())), None)
            if isinstance(given, Tensor) and isinstance(made, Tensor):
                with torch._C.DisableTorchFunction():
                    for answer in self.waiting[around]:
                        answer.read_by(part, given, made)

        return hook

    def _leave(self, around: nn.Module, _inputs: Any, _output: Any) -> None:
        self.waiting[around].clear()
        waited, self.after[around] = self.after[around], []
        for then in waited:
            then()


def projections_of(model: nn.Module, watched: Sequence[Site], wanted: set[int]) -> OutputProjections:
    """What looks for the output projections of the wanted layers."""
    return OutputProjections(model, [site for site in watched if wanted.intersection(site.layers)])


def _multiplied(
    call: AttentionCall, part: nn.Module, rows: Float[Tensor, "query feature"], made: Tensor
) -> Projection | None:
    """What `part` multiplies the rows by, as it is seen to have done; None where that is not all it does."""
    weight = _matrix(part)
    assert weight is not None, "only such parts are watched"
    offset, made = getattr(part, "bias", None), made.double().cpu()
    added = torch.zeros(made.shape[1]) if offset is None else offset.detach()
    epsilon = max(call.epsilon, torch.finfo(rows.dtype).eps)
    dim = call.output.shape[-1] if call.heads > 1 else 1
    for matrix in (weight.detach().cpu().T, weight.detach().cpu()):
        if matrix.shape != (rows.shape[1], made.shape[1]) or added.shape != made.shape[1:]:
            continue
        right, exchanged = (
            _read_back(rows.double(), each.double(), added.double().cpu(), made, epsilon)
            for each in (matrix, matrix.roll(dim, 0))
        )
        if right and not exchanged:
            return matrix.reshape(call.heads, -1, matrix.shape[1])
    return None


def _read_back(rows: Tensor, matrix: Tensor, added: Tensor, made: Tensor, epsilon: float) -> bool:
    off = (rows @ matrix + added - made).abs()
    size = rows.abs() @ matrix.abs() + added.abs()
    return bool((off <= (_ROUNDINGS * epsilon + _ADDED * len(matrix)) * size).all())


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
