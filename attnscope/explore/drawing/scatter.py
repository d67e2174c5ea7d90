"""A map as characters: queries and keys where they lie, the chosen query, its strongest keys named."""

import numpy as np
from rich.style import Style, StyleType
from rich.text import Text

from attnscope.render.kit.cells import DIM
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.palette import KEY, QUERY
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.sheets.map import DISCLAIMER, said
from attnscope.results import Projection

_QUERY, _KEY, _BOTH = "●", "○", "◉"
_NAMED = 3  # keys of the chosen query
_CHOSEN = Style(bold=True, reverse=True)


def scatter(result: Projection, query: int, width: int, height: int) -> Text:
    """The plane in `width` by `height` cells, below it how far it can be trusted."""
    words = _words(result)
    under = sum(-(-len(line) // max(width, 1)) for line in words)
    high = max(height - under - 1, height // 2, 4)
    drawn = _plane(result, query, width, high)
    drawn.append("\n").append_text(Text.assemble((_QUERY, QUERY), " query ", (_KEY, KEY), " key"))
    for line in words:
        drawn.append("\n" + line, DIM)
    return drawn


def _words(result: Projection) -> list[str]:
    say = said(result)
    return [
        say("trust_says"),
        say("correlation_says"),
        f"{verdict_words(result.verdict)} head · {DISCLAIMER}",
        " · ".join(say.lines("settings")),
    ]


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
