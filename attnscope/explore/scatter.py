"""Draws a plane in characters: a map of queries and keys, or a picture shaded by attention."""

import numpy as np
from jaxtyping import Float, UInt8
from rich.style import Style, StyleType
from rich.text import Text

from attnscope.explore.surface import Cells, Line
from attnscope.render.kit.cells import DIM, fit, settled
from attnscope.render.kit.palette import KEY, QUERY, by_root
from attnscope.render.kit.words import verdict_words
from attnscope.render.sheets.projection import DISCLAIMER, said
from attnscope.results import Picture, Projection

_QUERY, _KEY, _BOTH = "●", "○", "◉"
_NAMED = 3  # keys of the chosen query
_CHOSEN = Style(bold=True, reverse=True)


def scatter(result: Projection, query: int, width: int, height: int) -> Text:
    """The t-SNE map in `width` by `height` cells, with notes below it on how far to trust it."""
    say = said(result)
    words = [
        say("trust_says"),
        say("correlation_says"),
        f"{verdict_words(result.verdict)} head · {DISCLAIMER}",
        " · ".join(say.lines("settings")),
    ]
    under = sum(-(-len(line) // max(width, 1)) for line in words)
    high = max(height - under - 1, height // 2, 4)
    drawn = _plane(result, query, width, high)
    drawn.append("\n").append_text(Text.assemble((_QUERY, QUERY), " query ", (_KEY, KEY), " key"))
    for line in words:
        drawn.append("\n" + line, DIM)
    return drawn


def _plane(result: Projection, query: int, width: int, height: int) -> Text:
    both = np.concatenate([result.queries, result.keys])
    low, high = both.min(axis=0), both.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    room = np.array([max(width - 12, 1), max(height - 1, 1)])
    cells = np.rint((both - low) / span * room).astype(int)
    characters = [[" "] * width for _ in range(height)]
    styles: list[list[StyleType]] = [[""] * width for _ in range(height)]
    count = len(result.queries)
    for number, (x, up) in enumerate(cells.tolist()):
        y = height - 1 - up
        mark, side = (_QUERY, QUERY) if number < count else (_KEY, KEY)
        there = characters[y][x]
        characters[y][x] = _BOTH if there not in (" ", mark) else mark
        styles[y][x] = side
    if query < count:
        chosen = [query, *(count + int(key) for key in result.ranked_keys(query)[:_NAMED])]
        for number in chosen:
            x, up = cells[number].tolist()
            tokens, place = (
                (result.query_tokens, number) if number < count else (result.key_tokens, number - count)
            )
            name = fit(settled(tokens.named(place)), 12)
            _name(characters, styles, x, height - 1 - up, name, _CHOSEN if number < count else KEY)
    lines = []
    for row, own in zip(characters, styles, strict=True):
        line = Text(no_wrap=True)
        for character, style in zip(row, own, strict=True):
            line.append(character, style)
        lines.append(line)
    return Text("\n").join(lines)


def _name(
    characters: list[list[str]], styles: list[list[StyleType]], x: int, y: int, name: str, style: StyleType
) -> None:
    width = len(characters[y])
    styles[y][x] = style
    for start in (x + 1, x - len(name)):
        end = start + len(name)
        if start >= 0 and end <= width and not "".join(characters[y][start:end]).strip():
            characters[y][start:end] = name
            styles[y][start:end] = [style] * len(name)
            return


_FAINT = 0.25  # of the brightness, where a query gives nothing
Weights = Float[np.ndarray, "row column"]


def picture(seen: Picture, weights: Weights, width: int, height: int) -> Cells:
    """The picture in at most `width` by `height` cells, two pixels above one another in each.

    A patch is the brighter the more weight it has, on the default scale of weights.
    """
    columns, rows = size(seen, width, height)
    shown = lit(seen, weights, columns, 2 * rows).tolist()
    return Cells([_line(shown[row], shown[row + 1]) for row in range(0, 2 * rows, 2)])


def size(seen: Picture, width: int, height: int) -> tuple[int, int]:
    """Columns and rows of cells that the picture fills; a cell is twice as high as wide."""
    high, wide = seen.size
    scale = min(width / wide, 2 * height / high)
    return max(int(wide * scale), 1), max(int(high * scale) // 2, 1)


def lit(seen: Picture, weights: Weights, columns: int, rows: int) -> UInt8[np.ndarray, "row column 3"]:
    """RGB pixels of the picture, resampled to `rows` x `columns`, each as bright as its patch's weight."""
    high, wide = seen.size
    down = (np.arange(rows) + 0.5) * high / rows
    across = (np.arange(columns) + 0.5) * wide / columns
    pixels = seen.image[np.ix_(down.astype(int), across.astype(int))]
    patch_rows = np.minimum(down * weights.shape[0] / seen.covered[0], weights.shape[0] - 1).astype(int)
    patch_columns = np.minimum(across * weights.shape[1] / seen.covered[1], weights.shape[1] - 1).astype(int)
    shades = by_root(len(weights)).shades(np.nan_to_num(weights))
    bright = _FAINT + (1 - _FAINT) * shades[np.ix_(patch_rows, patch_columns)]
    whole: UInt8[np.ndarray, "row column 3"] = np.rint(
        255 * np.clip(pixels * bright[..., None], 0, 1)
    ).astype(np.uint8)
    return whole


def _line(above: list[list[int]], below: list[list[int]]) -> Line:
    line = Line()
    for upper, lower in zip(above, below, strict=True):
        line.append("▀", Style.parse(f"{_colour(upper)} on {_colour(lower)}"))
    return line


def _colour(parts: list[int]) -> str:
    return f"#{parts[0]:02x}{parts[1]:02x}{parts[2]:02x}"
