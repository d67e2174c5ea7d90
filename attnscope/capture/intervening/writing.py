"""Other numbers in the place of what parts of a model hand on, each entry of a batch with its own, read back.

what a layer returns          found at the next operation, bit for bit
what the last matrix of an MLP reads   what the matrix makes of it is made again from what was asked for
the vector of a position      the sum that it stands in, at the next operation, has moved by as much
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.capture.intervening.changes import Place, Tap, Variant, Write
from attnscope.capture.intervening.read_back import ReadBack
from attnscope.capture.intervening.taps import first_tensor, tapping
from attnscope.capture.trace.operations import tensors_in
from attnscope.reference import exact
from attnscope.results.claims.intervention import Part

_ROUNDINGS = 8  # machine epsilons of the largest number


class Writing:
    """What is handed on at the taps in the run that is as it is, and changes of it.

    `written` are these numbers by tap; `sums` what the vectors of positions stand in.
    """

    def __init__(self, taps: Sequence[Tap]) -> None:
        self.taps = taps
        self.written: dict[Tap, Tensor] = {}
        self.sums: dict[Place, Tensor] = {}

    @contextmanager
    def watching(self, back: ReadBack) -> Iterator[None]:
        """While open, the one run that is as it is."""
        learning: list[Tap] = []

        def look(tap: Tap, tensor: Tensor) -> None:
            rows = _entries(tensor, 1)
            self.written[tap] = rows[0].detach().clone()
            if tap.part is Part.POSITION:
                learning.append(tap)
            else:
                self._expect(back, tap, rows, [()])

        def learn(_module: nn.Module, given: Any, kwargs: Any) -> None:
            for tap in list(learning):
                like = self.written[tap]
                for each in tensors_in((given, kwargs)):
                    if (
                        each.is_floating_point()
                        and each.shape[-2:] == like.shape
                        and each.numel() == like.numel()
                    ):
                        self.sums[tap.place] = each.detach().reshape(like.shape).clone()
                        back.settle(tap.place, True, control=False)
                        learning.remove(tap)
                        break

        with ExitStack() as stack:
            stack.enter_context(tapping(self.taps, look, self._read(back)))
            if any(tap.part is Part.POSITION for tap in self.taps):
                for part in back.model.modules():
                    if [*part.parameters(recurse=False)] and not isinstance(part, nn.Embedding):
                        stack.enter_context(part.register_forward_pre_hook(learn, with_kwargs=True))
            yield

    @contextmanager
    def changing(self, taps: Sequence[Tap], variants: Sequence[Variant], back: ReadBack) -> Iterator[None]:
        """While open, every entry has what its variant asks for."""

        def handle(tap: Tap, tensor: Tensor) -> Tensor:
            rows = _entries(tensor, len(variants)).clone()
            for entry, variant in enumerate(variants):
                for write in variant:
                    if isinstance(write, Write) and write.tap == tap:
                        rows[entry] = write.made(rows[entry])
            self._expect(back, tap, _expected(tap, _entries(tensor, len(variants)), variants), variants)
            return rows if len(variants) > 1 or tensor.ndim == rows.ndim else rows[0]

        with tapping(taps, handle, self._read(back)):
            yield

    def _expect(self, back: ReadBack, tap: Tap, rows: Tensor, variants: Sequence[Variant]) -> None:
        control = len(variants) > 1 and not variants[0]
        if tap.given:
            self._asked = rows
        elif tap.part is not Part.POSITION:
            back.expect_near(tap.place, rows[:, None], None, control=control)
        elif tap.place in self.sums:
            total = self.sums[tap.place] + (rows - self.written[tap])
            size = sum(each.abs().max() for each in (total, rows, self.written[tap]))
            off = torch.full_like(total, float(_ROUNDINGS * torch.finfo(rows.dtype).eps * size))
            back.expect_near(tap.place, total[:, None], off[:, None], control=control)
        else:
            back.settle(tap.place, False, control=True)

    def _read(self, back: ReadBack) -> Any:
        def after(tap: Tap, made: Any) -> None:
            back.settle(tap.place, _product_of(tap.module, self._asked, first_tensor(made)), control=False)

        return after


def _product_of(module: nn.Module, rows: Tensor, made: Tensor) -> bool:
    """Whether `made` is what the module's own matrix makes of the rows, in float64 and within rounding."""
    matrices = [each for each in module.parameters(recurse=False) if each.ndim == 2]
    offsets = [each for each in module.parameters(recurse=False) if each.ndim == 1]
    given, there = exact(rows.detach().cpu()), exact(made.detach().cpu())
    offset = sum((exact(each.detach().cpu()) for each in offsets), torch.zeros(()))
    for matrix in matrices:
        weights = exact(matrix.detach().cpu())
        for turned in (weights.T, weights):
            if turned.shape != (given.shape[-1], there.shape[-1]):
                continue
            off = _ROUNDINGS * torch.finfo(made.dtype).eps * (given.abs() @ turned.abs() + abs(offset))
            expected = given @ turned + offset
            near = ((there - expected).abs() <= off) | (there.isnan() & expected.isnan())
            if bool(near.all()):
                return True
    return False


def _entries(tensor: Tensor, entries: int) -> Tensor:
    """As `entry token feature`; what all entries share is repeated."""
    rows = tensor if tensor.ndim > 2 else tensor[None]
    if rows.ndim != 3 or rows.shape[0] not in (1, entries):
        shape = tuple(tensor.shape)
        raise ValueError(f"what is handed on has shape {shape}: no entry, token and feature")
    return rows.expand(entries, -1, -1)


def _expected(tap: Tap, rows: Tensor, variants: Sequence[Variant]) -> Tensor:
    expected = rows.detach().clone()
    for entry, variant in enumerate(variants):
        for write in variant:
            if not isinstance(write, Write) or write.tap != tap:
                continue
            if write.rounded:
                expected[entry] = write.made(rows[entry])
                continue
            for token in range(rows.shape[1]) if write.at is None else write.at:
                expected[entry, token] = 0 if write.rows is None else write.rows[token].to(rows)
    return expected
