"""Thumbnails of every head in a terminal: a few characters each, all on one scale."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, line
from attnscope.render.kit.labels import left
from attnscope.render.kit.scale import Scale
from attnscope.render.kit.words.command import Command, looked_at, opening_head
from attnscope.render.kit.words.header import model_words, reading
from attnscope.render.terminal.raster import ink_of
from attnscope.render.thumbnails.words import (
    blank,
    cell_words,
    common_scale,
    remarks,
    shades,
    subject,
    verdict_counts,
    where,
)
from attnscope.results import Thumbnails
from attnscope.tokens import printable
from attnscope.vocabulary import Scaling

_MOST, _LEAST = 12, 2  # characters of a head


def thumbnails(result: Thumbnails, width: int, asked: Scaling = Scaling.AUTO) -> RenderableType:
    """A line of small pictures a layer; where they do not fit, how to see them."""
    said = [Text.assemble((subject(result), "bold"), f" {where(result)} · {model_words(result.provenance)}")]
    said.append(reading(result.provenance))
    said += [Text(" · ".join(told))] if (told := remarks(result)) else []
    if sentence := result.query_tokens.sentence:
        said.append(Text(f"“{printable(sentence)}”", style="italic"))
    scale = common_scale(result, asked)
    cells = (width - _margin(result)) // len(result.heads) - 1
    if cells < _LEAST:
        body: RenderableType = Text(
            f"{subject(result)} do not fit here: a wider terminal or -o grid.png shows them."
        )
    else:
        body = _Mosaic(result, scale, min(cells, _MOST, result.weights.shape[3]))
    legend = f"{cell_words(result)}; rows: queries, columns: keys; {scale.legend.replace('white', 'faint')}"
    proof = Text(verdict_counts(result), DIM)
    return Group(*said, Text(), body, Text(legend.replace("dark", "strong"), DIM), proof)


def next_step(result: Thumbnails) -> Command:
    """How to open one head."""
    opened = opening_head(result, result.layers[0], result.heads[0])
    return Command(f"Open one: {opened}{looked_at(result.words, result.special)}")


def _margin(result: Thumbnails) -> int:
    return len(f"L{max(result.layers)}") + 1


@dataclass(frozen=True, eq=False)
class _Mosaic:
    """The heads side by side, each `cells` characters wide and about as high."""

    result: Thumbnails
    scale: Scale
    cells: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        ink, result = ink_of(console, options, False), self.result
        halves = bool(getattr(ink, "halves", False))
        margin, wide = _margin(result), self.cells + 1
        heading = "".join(left(f"H{head}"[: self.cells], wide) for head in result.heads)
        yield line(" " * margin, (heading, HEADING))
        rows = min(self.cells if halves else -(-self.cells // 2), result.weights.shape[2])
        for i, layer in enumerate(result.layers):
            small = [_smaller(head, rows, self.cells) for head in result.weights[i]]
            shown = [shades(self.scale, each) for each in small]
            step = 2 if halves else 1
            for first in range(0, rows, step):
                name = left(f"L{layer}" if first == 0 else "", margin)
                text = Text.assemble((name, HEADING), no_wrap=True, overflow="crop")
                for head in shown:
                    pair = np.full((step, head.shape[1]), np.nan)
                    pair[: len(head[first : first + step])] = head[first : first + step]
                    drawn = ink.drawn(pair, 1)
                    text.append_text(drawn).append(" " * (wide - drawn.cell_len))
                yield text
            if i < len(result.layers) - 1:
                yield Text()
        if bool(np.any(blank(result))):
            yield Text("blank: masked", DIM)


def _smaller(cells: Float[np.ndarray, "row column"], rows: int, columns: int) -> Float[np.ndarray, "r c"]:
    """The largest of each group of cells, `rows` by `columns` of them; NaN where all are."""
    for axis, wanted in ((0, rows), (1, columns)):
        starts = np.arange(wanted) * cells.shape[axis] // wanted
        cells = np.fmax.reduceat(cells, starts, axis=axis)
    return cells
