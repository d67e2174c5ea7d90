"""The study of the scale 1/sqrt(d) as a table in the terminal."""

import math

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, line
from attnscope.render.kit.labels import right
from attnscope.render.worked.terminal import check_lines
from attnscope.results.worked import ScaleStudy

TITLE = "why scores are divided by √d"


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
    additive = () if result.additive is None else (_of_additive(result),)
    return (
        f"spread: without the scale it grows as √d (√{last} = {math.sqrt(last):.1f}), with it near 1",
        f"entropy: of at most ln {result.keys} = {most:.2f} nats; near 0 the softmax sees one key only",
        "gradient (Frobenius norm of the softmax's Jacobian diag(p) - p pᵀ, mean over queries): from "
        f"d = {first} to d = {last} it goes from {raw[0]:.3f} to {raw[-1]:.3f} without the scale, "
        f"to {scaled[-1]:.3f} with it",
        *additive,
    )


def _of_additive(result: ScaleStudy) -> str:
    """What additive scores of the same vectors do."""
    assert result.additive is not None, "said only where they were studied"
    spread = result.additive[0]
    return (
        "additive, a·tanh(q Aq + k Ak) (Bahdanau et al. 2015), entries of Aq, Ak and a from N(0, 1/d): tanh "
        f"keeps every term within its own a, so that the spread is {spread[-1]:.2f} at d = {result.dims[-1]} "
        "without any scale; dot products need one (Vaswani et al. 2017, section 3.2.1)"
    )


def scale_table(result: ScaleStudy, width: int) -> RenderableType:
    """One row per d: spread, entropy and gradient, each without and with the scale; stacked where narrow."""
    names = {"spread of scores": result.spread, "entropy, nats": result.entropy, "gradient": result.gradient}
    if result.additive is not None:
        names = {
            name: np.vstack([values, own])
            for (name, values), own in zip(names.items(), result.additive, strict=True)
        }
    columns = [("q·k", 11), ("q·k/√d", 10), ("additive", 10)][: 2 if result.additive is None else 3]
    across = sum(each for _, each in columns)
    groups = [tuple(names)] if width >= 5 + 3 * across else [(name,) for name in names]
    lines = [Text.assemble((TITLE, HEADING), " · example why-scale"), Text(setting(result)), Text()]
    for group in groups:
        lines.append(line(" " * 5, *((right(name, across), HEADING) for name in group)))
        lines.append(line(right("d", 5), *(("".join(right(*each) for each in columns), DIM) for _ in group)))
        for column, dim in enumerate(result.dims):
            told = "".join(
                right(f"{names[name][row, column]:.3f}", cells)
                for name in group
                for row, (_, cells) in enumerate(columns)
            )
            lines.append(line(right(str(dim), 5), told))
        lines.append(Text())
    return Group(*lines, *(Text(each) for each in reading(result)), *check_lines(result.checks))
