"""The study of the scale 1/sqrt(d) as a table in the terminal."""

import math

from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, line
from attnscope.render.kit.labels import right
from attnscope.render.worked.terminal import check_lines
from attnscope.results.worked import ScaleStudy

TITLE = "why scores are divided by √d"
_WIDE = 68


def setting(result: ScaleStudy) -> str:
    """What was drawn, in one line."""
    return (
        f"{result.queries} queries with {result.keys} keys each per d, every entry drawn from N(0, 1), "
        f"seed {result.seed}"
    )


def reading(result: ScaleStudy) -> tuple[str, ...]:
    """What the numbers say, each sentence with its numbers."""
    (raw, scaled), most = result.gradient, math.log(result.keys)
    first, last = result.dims[0], result.dims[-1]
    return (
        f"spread: without the scale it grows as √d (√{last} = {math.sqrt(last):.1f}), with it near 1",
        f"entropy: of at most ln {result.keys} = {most:.2f} nats; near 0 the softmax sees one key only",
        "gradient (Frobenius norm of the softmax's Jacobian diag(p) - p pᵀ, mean over queries): from "
        f"d = {first} to d = {last} it goes from {raw[0]:.3f} to {raw[-1]:.3f} without the scale, "
        f"to {scaled[-1]:.3f} with it",
    )


def scale_table(result: ScaleStudy, width: int) -> RenderableType:
    """One row per d: spread, entropy and gradient, each without and with the scale; stacked where narrow."""
    names = {"spread of scores": result.spread, "entropy, nats": result.entropy, "gradient": result.gradient}
    groups = [tuple(names)] if width >= _WIDE else [(name,) for name in names]
    lines = [Text.assemble((TITLE, HEADING), " · example why-scale"), Text(setting(result)), Text()]
    for group in groups:
        lines.append(line(" " * 5, *((right(name, 21), HEADING) for name in group)))
        lines.append(line(right("d", 5), *((right("q·k", 11) + right("q·k/√d", 10), DIM) for _ in group)))
        for column, dim in enumerate(result.dims):
            cells = "".join(
                right(f"{names[name][0, column]:.3f}", 11) + right(f"{names[name][1, column]:.3f}", 10)
                for name in group
            )
            lines.append(line(right(str(dim), 5), cells))
        lines.append(Text())
    return Group(*lines, *(Text(each) for each in reading(result)), *check_lines(result.checks))
