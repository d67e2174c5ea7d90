"""A ranking in a terminal: names and columns, of which the lesser give way where there is no room."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich.style import StyleType
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, line
from attnscope.render.kit.labels import left, right
from attnscope.render.kit.numbers import counted

Cell = tuple[str, StyleType] | str
One = TypeVar("One")


@dataclass(frozen=True)
class Column(Generic[One]):
    """What is said of each of those that are ranked; those with the largest `spared` give way first."""

    heading: str
    cells: int
    cell: Callable[[One], Cell]
    spared: int = 0


def ranking_lines(
    ranked: Sequence[One], named: Callable[[One], str], columns: Sequence[Column[One]], width: int, most: int
) -> list[Text]:
    """A heading, a line for each of the first `most`, and how many are not shown, in `width` cells."""
    name, kept = 9, list(columns)
    while name + sum(each.cells for each in kept) > width and any(each.spared for each in kept):
        kept.remove(max(kept, key=lambda each: each.spared))
    heading = left("head", name) + "".join(right(each.heading, each.cells) for each in kept)
    lines = [line((heading, HEADING))]
    for one in ranked[:most]:
        cells = (_padded(each.cell(one), each.cells) for each in kept)
        lines.append(line((left(named(one), name), HEADING), *cells))
    if (more := len(ranked) - most) > 0:
        lines.append(Text(f"and {counted(more, 'head')} below (-o FILE.csv has all)", style=DIM))
    return lines


def _padded(cell: Cell, cells: int) -> Cell:
    return right(cell, cells) if isinstance(cell, str) else (right(cell[0], cells), cell[1])
