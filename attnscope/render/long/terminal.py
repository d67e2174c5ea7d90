"""A long head in a terminal: a picture of its blocks, then queries with their strongest keys."""

from collections.abc import Sequence

import numpy as np
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from attnscope.render.head.bars import MOST_KEYS
from attnscope.render.kit.cells import DIM, HEADING, bar, line
from attnscope.render.kit.labels import left, settled
from attnscope.render.kit.numbers import weight_text
from attnscope.render.kit.palette import BAR
from attnscope.render.kit.words.header import model_words, reading, where_words
from attnscope.render.kit.words.weights import special_words
from attnscope.render.long.words import (
    block_words,
    entropy_words,
    excerpt,
    panel_of,
    remarks,
    window_words,
)
from attnscope.render.terminal.matrix import number_table
from attnscope.render.terminal.raster import Raster, Side, ink_of
from attnscope.render.terminal.shading import shading
from attnscope.render.terminal.strongest import descending
from attnscope.results import LongHead
from attnscope.vocabulary import Scaling

_LINES, _LISTED = 48, 12  # of the picture, and queries below it
_LABEL = 12  # cells of a token
_TOLD = 0.05  # the largest weight of a window whose numbers say something in two decimals
_FULL_BARS = (0.05, 0.1, 0.2, 0.5, 1.0)


def long_header(result: LongHead) -> RenderableType:
    """What is shown and of which model, how it was read, what is special, the beginning of the text."""
    model = model_words(result.provenance)
    lines = [Text.assemble((result.name, "bold"), f" {where_words(result)} · {model}")]
    lines.append(reading(result.provenance))
    lines += [Text(" · ".join(told))] if (told := remarks(result)) else []
    sides = {"": result.query_tokens}
    if result.key_tokens != result.query_tokens:
        sides = {"query ": result.query_tokens, "key   ": result.key_tokens}
    for name, tokens in sides.items():
        if text := excerpt(tokens):
            lines.append(Text(name + text, style="italic", no_wrap=True, overflow="ellipsis"))
    return Group(*lines)


def long_head(
    result: LongHead, width: int, asked: Scaling = Scaling.AUTO, listed: int | None = _LISTED
) -> RenderableType:
    """The window in blocks that fit `width` cells; below it `listed` of its queries, or the one."""
    below = _listed(result, width, listed) if result.query is None else _bars(result, result.query, width)
    told = [entropy_words(result), special_words(result.special_mass)]
    captions = [Text(each, style=DIM) for each in told if each]
    return Group(_Picture(result, width, asked), Text(), *below, *captions)


def _fitting(result: LongHead, width: int, halves: bool) -> LongHead:
    """In blocks that are large enough for a picture in so many cells, in half cells two rows in each line."""
    rows, columns = result.cells.shape
    many = -(-rows // (2 * _LINES if halves else _LINES))
    names = _LABEL + 1 if result.steps[0] * many == 1 else 0
    room = max(width - len(str(result.first[0] + result.size[0])) - len("weights ") - names, 8)
    return result.coarser(many, -(-columns // room))


class _Picture:
    """The blocks, as coarse as the console needs them."""

    def __init__(self, result: LongHead, width: int, asked: Scaling) -> None:
        self.result, self.width, self.asked = result, width, asked

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        halves = bool(getattr(ink_of(console, options, False), "halves", False))
        fitting = _fitting(self.result, self.width, halves)
        yield Text(f"{window_words(self.result)}: {block_words(fitting)}\n")
        shown = panel_of(fitting, self.asked)
        assert shown.column_tokens is not None, "weights have keys"
        shades = shading(shown)
        told = float(np.nanmax(shown.values, initial=0.0)) >= _TOLD
        numbers = number_table(shown, shades, self.width) if fitting.exact and told else None
        if numbers is not None:
            yield numbers
            yield Text("blank: masked" if shown.masked else "", DIM)
            return
        yield Raster(
            shares=shades.shares,
            plain=shades.plain,
            title="weights",
            rows=Side("query", list(map(str, shown.row_tokens.positions)), _names(shown.row_tokens.names)),
            columns=Side(
                "key", list(map(str, shown.column_tokens.positions)), _names(shown.column_tokens.names)
            ),
            ends=shades.ends,
            plain_ends=shades.plain_ends,
            width=self.width,
            signed=shades.signed,
            blank="masked" if shown.masked else "",
        )


def _names(names: Sequence[str]) -> list[str]:
    return [settled(name) for name in names]


def _listed(result: LongHead, width: int, count: int | None) -> list[RenderableType]:
    """Queries of the window, evenly spaced, each with as many of its strongest keys of all as fit."""
    first, size = result.first[0], result.size[0]
    shown = size if count is None else min(count, size)
    rows = [first + round(i * (size - 1) / max(shown - 1, 1)) for i in range(shown)]
    digits = len(str(max(len(result.query_tokens), len(result.key_tokens)) - 1))
    head, entry = digits + 1 + _LABEL, 2 + digits + 1 + _LABEL + 1 + 5
    fits = min(max((width - head) // entry, 1), result.top_keys.shape[1])
    which = "every query" if shown == size else f"{shown} queries, evenly spaced"
    lines = [line((f"{which}: strongest keys (--query N ranks those of one)", DIM))]
    for row in rows:
        parts = [_name(result.query_tokens.names[row], row, digits)]
        for key, weight in zip(result.top_keys[row, :fits], result.top_weights[row, :fits], strict=True):
            if key >= 0:
                name = _name(result.key_tokens.names[key], int(key), digits)
                parts.append(f"{name} {weight_text(float(weight), 3):>5}")
        if len(parts) == 1:
            parts.append("no valid key")
        lines.append(line((parts[0], HEADING), "  ", "  ".join(parts[1:])))
    return [*lines]


def _name(name: str, position: int, digits: int) -> str:
    return f"{position:>{digits}} {left(settled(name), _LABEL)}"


def _bars(result: LongHead, query: int, width: int) -> list[RenderableType]:
    """The strongest keys of one query, each with its weight and a bar."""
    assert result.row is not None, "a query comes with its row"
    ranked = [key for key in descending(result.row)[:MOST_KEYS] if result.row[key] > 0]
    title = line(("query ", DIM), (f"{query} {settled(result.query_tokens.names[query])}", HEADING))
    if np.isnan(result.row).any() or not ranked:
        return [title, Text("no valid key", style=DIM)]
    digits = len(str(max(ranked)))
    label = min(max(cell_len(settled(result.key_tokens.names[key])) for key in ranked), 20)
    full = next((each for each in _FULL_BARS if result.row[ranked[0]] <= each), 1.0)
    lines = [title, line((f"{'':>{digits}} {left('key', label)}  weight  full bar = {full:g}", DIM))]
    for key in ranked:
        name = f"{key:>{digits}} {left(settled(result.key_tokens.names[key]), label)}"
        number = f"  {weight_text(float(result.row[key]), 3):>6}  "
        room = max(width - cell_len(name + number), 8)
        lines.append(line(name, number, (bar(float(result.row[key]) / full, room), BAR)))
    rest = 1 - float(result.row[ranked].sum())
    lines.append(line((f"{weight_text(max(rest, 0.0), 3)} of the weight lies on other keys", DIM)))
    return [*lines]
