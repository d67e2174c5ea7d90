"""What a head would cost at several lengths of text, also at lengths that the model does not read.

Positions that are computed allow a run without weights at any length. Positions that are looked up in a table
end it; then every figure is gone on with from shorter texts, if it is a polynomial of second degree in the
length (which products, operands and pairs of tokens are, and a fourth length must confirm), else it is not
said at all.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from attnscope.errors import InputError
from attnscope.results import Cost

MOST = 10**9
_GROWING = ("queries", "keys", "forward_flops", "head_flops", "weights", "operands", "kernel", "reference")

CostAt = Callable[[int], Cost | None]  # of a text so long, by a run without weights; None where it fails


def cost_at(length: int, context: int | None, usual: int, run: CostAt, name: str) -> Cost | None:
    """The cost at one length, marked where that is `beyond` the model's `context`.

    None where no run comes to the layer at all. Raises `InputError` where the length is no length, and where
    nothing can be said of it.
    """
    most = f", {name} reads at most {context:,}" if context else ""
    if not 1 <= length <= MOST:
        raise InputError(f"--length {length}: a text has 1 to {MOST:,} tokens{most}")
    beyond = context is not None and length > context
    found = run(length)
    if found is None and length > usual:
        found = _gone_on(length, usual, run)
        if found is None and run(usual) is not None:
            raise InputError(f"--length {length}: nothing can be said of a text so long{most}")
    return None if found is None else replace(found, beyond=beyond)


def _gone_on(length: int, most: int, run: CostAt) -> Cost | None:
    """The cost at `length` by the rule of texts of at most `most` tokens; None where they have none."""
    known = {each: run(each) for each in sorted({max(1, most * part // 4) for part in (1, 2, 3, 4)})}
    costs = [(each, cost) for each, cost in known.items() if cost is not None]
    if len(costs) < 4:
        return None
    *points, check = costs
    figures: dict[str, Any] = {}
    for name in _GROWING:
        through = [(each, getattr(cost, name)) for each, cost in points]
        figure = _polynomial(through, length)
        if _polynomial(through, check[0]) != getattr(check[1], name) or figure.denominator != 1:
            return None
        figures[name] = int(figure)
    return replace(check[1], length=length, **figures)


def _polynomial(points: Sequence[tuple[int, int]], at: int) -> Fraction:
    """The value at `at` of the polynomial of least degree through `points` (Lagrange)."""
    total = Fraction(0)
    for here, value in points:
        term = Fraction(value)
        for other, _ in points:
            if other != here:
                term *= Fraction(at - other, here - other)
        total += term
    return total
