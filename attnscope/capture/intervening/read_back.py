"""Certificate of an intervention: read the changed numbers back at the model's next operation.

    kernel's output -> changed -> views, transpositions -> the next module with weights of its own: read here

What is expected there is made anew from the kernel's own output and from the change, as features in
their order, head by head; nothing of the code that made the change is used. Every feature must be equal bit
for bit, since on this way numbers are only moved: those of the changed heads are the change, those of
all others the kernel's output. The row of a cut link is computed, and compared with
(output - weight * value) / (1 - weight) in float64, within what rounding may come to; a head's output for
inputs of two entries is compared with its weights times its values. Where even an unchanged output is not
found again (a gate, a norm comes between), nothing can be read back, and that is reported.

Other parts of a model may hand on other numbers too (`Writing`), each entry of a batch its own:

    what a layer returns          found at the next operation, bit for bit
    what the last matrix of an MLP reads   the matrix's output is computed again from the changed rows
    the vector of a position      the sum that it stands in, at the next operation, has moved by as much
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.capture.intervening.changes import (
    INPUTS,
    Attended,
    Change,
    Cut,
    Held,
    Lent,
    Place,
    Put,
    Rounded,
    Tap,
    Variant,
    Write,
    asked_of,
    further,
)
from attnscope.capture.intervening.taps import first_tensor, tapping
from attnscope.capture.trace.operations import tensors_in
from attnscope.reference import EXACT, exact
from attnscope.results.claims.effect import Part

Rows = Float[Tensor, "batch query feature"]
_ROUNDINGS = 8  # machine epsilons of the largest number


@dataclass(eq=False)
class _Expected:
    """Features that must come next, and the tolerance for cut rows.

    `control` says that the first entry is unchanged: where that one comes, and the others are not as they
    should be, the others are `wrong`.
    """

    place: Place
    rows: Float[Tensor, "entry part query feature"]
    off: Float[Tensor, "entry part query feature"] | None
    control: bool
    found: bool = False
    wrong: bool = False

    def meets(self, given: Tensor) -> bool:
        """Whether `given` holds the expected features, in one of the axis orders that models use."""
        entries, parts, queries, features = self.rows.shape
        given = given.detach()
        orders = (
            given.reshape(self.rows.shape),
            given.reshape(queries, entries, parts, features).permute(1, 2, 0, 3),  # tokens before the batch
            given.reshape(entries, queries, parts, features).transpose(1, 2),  # windows behind the tokens
        )
        for there in orders:
            alike = self._alike(there).flatten(1).all(1)
            if bool(alike.all()):
                self.found = True
            elif self.control and bool(alike[0]):
                self.wrong = True
        return self.found

    def _alike(self, there: Tensor) -> Tensor:
        if self.off is None:
            return (there == self.rows) | (there.isnan() & self.rows.isnan())
        return (there - self.rows).abs() <= self.off


@dataclass(eq=False)
class ReadBack:
    """Looks for expected features at the inputs of a model's parts, until they are found."""

    model: nn.Module
    waiting: list[_Expected] = field(default_factory=list)
    seen: list[_Expected] = field(default_factory=list)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While open, the inputs of all parts of the model that have weights of their own are watched."""
        with ExitStack() as stack:
            for part in self.model.modules():
                if [*part.parameters(recurse=False), *part.buffers(recurse=False)]:
                    stack.enter_context(part.register_forward_pre_hook(self._enter, with_kwargs=True))
            yield

    def expect(self, attended: Attended, variants: Sequence[Variant]) -> None:
        """Expect the attention's output, changed by the variants, at the next operation."""
        self.waiting.append(_expected(attended, variants))
        self.seen.append(self.waiting[-1])

    def expect_near(self, place: Place, rows: Tensor, off: Tensor | None, *, control: bool) -> None:
        """Expect these rows `entry part query feature` next, within `off` (None: bit for bit)."""
        self.waiting.append(_Expected(place, rows, off, control))
        self.seen.append(self.waiting[-1])

    def settle(self, place: Place, found: bool, *, control: bool) -> None:
        """Record the result of a check made elsewhere: whether the place's expected tensor was `found`.

        With a `control` entry what is not found counts as not seen.
        """
        nothing = torch.empty(0, 0, 0, 0)
        self.seen.append(_Expected(place, nothing, None, control, found, wrong=False))

    @property
    def found(self) -> set[Place]:
        """The places at which the expected features were found."""
        return {one.place for one in self.seen if one.found}

    def counts(self, passes: Collection[Place]) -> tuple[int, int, int]:
        """Numbers of attentions that were read back as changed, were not, and cannot be.

        `passes` are the places at which an unchanged output was found again.
        """
        back = sum(one.found for one in self.seen)
        lost = sum(not one.found and (one.wrong or self._must(one, passes)) for one in self.seen)
        return back, lost, len(self.seen) - back - lost

    @staticmethod
    def _must(one: _Expected, passes: Collection[Place]) -> bool:
        return not one.control and one.place in passes

    def end(self, output: Any) -> None:
        """Look for the remaining expected features in the model's output."""
        self._enter(self.model, output, {})

    def _enter(self, _part: nn.Module, args: Any, kwargs: Any) -> None:
        if not self.waiting:
            return
        given = [each for each in tensors_in((args, kwargs)) if each.is_floating_point()]
        for one in list(self.waiting):
            if any(each.numel() == one.rows.numel() and one.meets(each) for each in given):
                self.waiting.remove(one)


def _expected(attended: Attended, variants: Sequence[Variant]) -> _Expected:
    dim = attended.output.shape[-1]
    kernel = attended.output.detach().transpose(1, 2).flatten(2)
    rows, off = kernel.clone(), None
    for parts, change in asked_of(attended, variants):
        if isinstance(change, Held):
            rows[parts] = kernel[further(parts, change.over)]
            continue
        columns = slice(change.head * dim, (change.head + 1) * dim)
        at = slice(None) if change.at is None else list(change.at)
        if isinstance(change.what, Cut):
            off = torch.zeros_like(rows) if off is None else off
            for query in change.what.queries:
                row, tolerance = _without_links(attended, change, query, parts)
                rows[parts, query, columns] = row
                off[parts, query, columns] = tolerance
        elif isinstance(change.what, Lent) and change.what.inputs not in ("", INPUTS):
            off = torch.zeros_like(rows) if off is None else off
            rows[parts, :, columns], off[parts, :, columns] = _of_both(attended, change, parts)
        elif isinstance(change.what, Lent):
            whose = further(parts, change.what.over if change.what.inputs else 0)
            rows[parts, :, columns] = kernel[whose, :, columns]
        elif isinstance(change.what, Rounded):
            rows[parts, :, columns] = change.what.made(attended, change.head, parts)
        else:
            put = change.what.answers[attended.place] if isinstance(change.what, Put) else None
            new = 0 if put is None else put[:, change.head].to(rows)
            rows[parts, at, columns] = new if isinstance(new, int) else new[:, at]
        if off is not None and not isinstance(change.what, Cut | Lent):
            off[parts, at, columns] = 0
    shape = (len(variants), -1, *rows.shape[1:])
    control = len(variants) > 1 and not variants[0]
    return _Expected(attended.place, rows.view(shape), None if off is None else off.view(shape), control)


def _of_both(attended: Attended, change: Change, parts: slice) -> tuple[Tensor, Tensor]:
    """A head's output for inputs of two batch entries, and the tolerance for rounding."""
    assert isinstance(change.what, Lent)
    mixed = attended.with_inputs(parts, further(parts, change.what.over), change.what.inputs)
    values = exact(mixed.values_of(change.head).cpu())
    rows = exact(mixed.weights()[:, change.head].cpu()) @ values
    tolerance = 2 * mixed.rounding * values.abs().amax((1, 2))[:, None, None]
    return rows.to(attended.output), tolerance.expand_as(rows).to(attended.output)


def _without_links(attended: Attended, change: Change, query: int, parts: slice) -> tuple[Tensor, Tensor]:
    """A query's output row with links cut by subtraction, in float64, and the tolerance for rounding."""
    assert isinstance(change.what, Cut)
    keys = list(change.what.keys)
    output = exact(attended.output[parts, change.head, query].cpu())
    weights = exact(attended.weights()[parts, change.head, query][:, keys].cpu())
    values = exact(attended.values_of(change.head)[parts].cpu())
    left = (1 - weights.sum(-1, keepdim=True)).clamp_min(torch.finfo(EXACT).tiny)
    row = (output - (weights[..., None] * values[:, keys]).sum(1)) / left
    off = 2 * attended.rounding  # of the row, and of what is left
    tolerance = off * values.abs().amax((1, 2))[:, None] / left
    return row.to(attended.output), tolerance.expand_as(row).to(attended.output)


class Writing:
    """Records the tensors at the taps in the untouched run, and changes them in later runs.

    `written` are these tensors by tap; `sums` those in which the vectors of positions stand.
    """

    def __init__(self, taps: Sequence[Tap]) -> None:
        self.taps = taps
        self.written: dict[Tap, Tensor] = {}
        self.sums: dict[Place, Tensor] = {}

    @contextmanager
    def watching(self, back: ReadBack) -> Iterator[None]:
        """Context manager: records the untouched run."""
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
        """While open, every batch entry gets the writes of its variant."""

        def handle(tap: Tap, tensor: Tensor) -> Tensor:
            rows = _entries(tensor, len(variants)).clone()
            for entry, variant in enumerate(variants):
                for write in variant:
                    if isinstance(write, Write) and write.tap == tap:
                        rows[entry] = write.made(rows[entry])
            self._expect(back, tap, _written(tap, _entries(tensor, len(variants)), variants), variants)
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
    """Whether `made` is the rows times the module's own matrix, in float64 and within rounding."""
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
    """The tensor as `entry token feature`, repeated if entries share it; `ValueError` for other shapes."""
    rows = tensor if tensor.ndim > 2 else tensor[None]
    if rows.ndim != 3 or rows.shape[0] not in (1, entries):
        shape = tuple(tensor.shape)
        raise ValueError(f"what is handed on has shape {shape}: no entry, token and feature")
    return rows.expand(entries, -1, -1)


def _written(tap: Tap, rows: Tensor, variants: Sequence[Variant]) -> Tensor:
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
