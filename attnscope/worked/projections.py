"""The matrices behind the queries, keys and values of one head, found by what a model's modules do.

No names and no list of architectures: of all modules beside an attention whose output is their input times a
matrix, those are its projections whose columns are the head's own vectors, number by number. Where something
stands between (rotary positions, a norm), no column is, and that is said.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.attention import AttentionCall
from attnscope.capture.running import hooked
from attnscope.errors import InputError
from attnscope.model.anatomy.placed import weight_of
from attnscope.reference import EXACT, exact

_OFF = 1e-4  # of the largest number: what two runs and two orders of adding up may differ by


@dataclass(frozen=True, eq=False)
class Linear:
    """What one module did in a run: what it read, what it wrote, and its weight, whichever way round."""

    read: Float[Tensor, "token dim"]
    written: Float[Tensor, "token other"]
    weight: Tensor
    offset: Tensor | None

    @cached_property
    def matrix(self) -> Float[Tensor, "dim other"] | None:
        """What `read` was multiplied by to give `written`; None where it was not by this weight alone."""
        weight, bias = exact(self.weight.detach()).cpu(), self.bias
        for matrix in (weight.T, weight):
            if matrix.shape != (self.read.shape[1], self.written.shape[1]):
                continue
            made = self.read @ matrix if bias is None else self.read @ matrix + bias
            if _alike(made, self.written, made.abs().max()):
                return matrix
        return None

    @cached_property
    def bias(self) -> Float[Tensor, " other"] | None:
        return None if self.offset is None else exact(self.offset.detach()).cpu()


@dataclass(frozen=True, eq=False)
class Part:
    """The columns of a projection that make the vectors of one head, or the rows that read them."""

    linear: Linear
    first: int
    width: int

    @property
    def place(self) -> slice:
        return slice(self.first, self.first + self.width)

    @property
    def matrix(self) -> Float[Tensor, "dim other"]:
        """The whole matrix of the module."""
        assert self.linear.matrix is not None, "a part is found only where there is one"
        return self.linear.matrix


@contextmanager
def watching(model: nn.Module, call: AttentionCall) -> Iterator[list[Linear]]:
    """While open, what every linear module beside the attention of `call` does for the first text."""
    beside, _, _ = call.module.rpartition(".")
    around = model.get_submodule(beside) if beside else model
    seen: list[Linear] = []

    def keep(module: nn.Module, given: tuple[object, ...], output: object) -> None:
        read = given[0] if given else None
        if not isinstance(read, Tensor) or not isinstance(output, Tensor) or not read.is_floating_point():
            return
        rows, written = (exact(_first_text(each).detach()).cpu() for each in (read, output))
        if rows.ndim == written.ndim == 2:
            weight = weight_of(module)
            assert weight is not None, "only such modules are watched"
            seen.append(Linear(rows, written, weight, weight_of(module, "bias")))

    with hooked(
        module.register_forward_hook(keep)
        for module in around.modules()
        if isinstance(getattr(module, "weight", None), Tensor) and module.weight.ndim == 2
    ):
        yield seen


def _first_text(batch: Tensor) -> Tensor:
    return batch[0] if batch.ndim == 3 else batch


def _alike(a: Tensor, b: Tensor, largest: Tensor) -> bool:
    return bool(((a - b).abs() <= _OFF * largest).all())


def reads(linears: list[Linear], vectors: Float[Tensor, "token dim"]) -> Part | None:
    """The rows of the module that reads the `vectors`; None where no module does."""
    return next((part for each in linears if (part := _columns(each, each.read, vectors))), None)


def makes(linears: list[Linear], vectors: Float[Tensor, "token dim"]) -> Part | None:
    """The columns of the module that writes the `vectors`; None where no module does."""
    return next((part for each in linears if (part := _columns(each, each.written, vectors))), None)


def _columns(
    linear: Linear, table: Float[Tensor, "row all"], wanted: Float[Tensor, "token dim"]
) -> Part | None:
    width, wanted = wanted.shape[1], exact(wanted)
    if len(table) != len(wanted) or table.shape[1] < width:
        return None
    largest = wanted.abs().max().clamp_min(torch.finfo(EXACT).tiny)
    starts = ((table - wanted[:, :1]).abs() <= _OFF * largest).all(dim=0)[: table.shape[1] - width + 1]
    for first in starts.nonzero().flatten().tolist():
        if _alike(table[:, first : first + width], wanted, largest) and linear.matrix is not None:
            return Part(linear, first, width)
    return None


def projections_of(linears: list[Linear], call: AttentionCall, head: int, name: str) -> dict[str, Part]:
    """The parts that make Q, K and V of a head; `InputError` where one of them is not made so."""
    shared = call.key_head(head)
    vectors = {"q": call.q[head], "k": call.k[shared], "v": call.v[shared]}
    makers = {letter: makes(linears, each) for letter, each in vectors.items()}
    parts = {letter: part for letter, part in makers.items() if part is not None}
    if missing := [letter for letter in vectors if letter not in parts]:
        raise InputError(
            f"{name} is no plain X W: {_between(linears, call, head, missing)}. From Q, K and V on: "
            "attnscope heads ... -o head.npz, then attnscope sdpa head.npz"
        )
    if any(not torch.equal(part.linear.read, parts["q"].linear.read) for part in parts.values()):
        raise InputError(f"{name} makes its queries and its keys of two texts: there is no one X")
    return parts


def _between(linears: list[Linear], call: AttentionCall, head: int, missing: list[str]) -> str:
    unrotated = call.unrotated_k
    if unrotated is not None and makes(linears, unrotated[call.key_head(head)]) is not None:
        return "rotary positions are turned into its queries and keys after Wq and Wk"
    called = ", ".join(letter.upper() for letter in missing)
    return f"no module writes its {called} (a norm, a scale or a position comes after the matrix)"
