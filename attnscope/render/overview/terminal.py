"""Several heads at a glance: measures of each, and what the strongest ones look at."""

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.style import StyleType
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, line
from attnscope.render.kit.labels import left, right
from attnscope.render.kit.numbers import counted, weight_text
from attnscope.render.kit.words.certificate import GLYPHS, STYLES
from attnscope.render.kit.words.command import Command, opening
from attnscope.render.kit.words.weights import overview_view_words
from attnscope.render.overview.links import link_table, link_words, ranked
from attnscope.render.overview.words import absent_words, of_a_pair, range_words, shown, style, told
from attnscope.results import HeadScores, Overview, Verdict

MOST_LINES = 110
_CELL, _LINK_CELL, _WIDEST_CELL = 6, 11, 16
_FEW_HEADS = 16
_GAP = 3


def overview(result: Overview, width: int) -> RenderableType:
    """A grid of layers by heads for each measure, then the strongest links; `width` in cells.

    Where there is one measure and room for it a cell also holds the head's strongest link. A grid that
    would run over `MOST_LINES` lines is left out, and said to be.
    """
    room = (width - _margin(result)) // len(result.heads)
    listed = shown(result)
    many = result.main.values.size > _FEW_HEADS
    body: list[RenderableType]
    if len(listed) > 1:
        body = [*_several(result, listed, width), Text(""), link_table(result, width)]
    elif many and not of_a_pair(result) and room >= _LINK_CELL and 2 * len(result.layers) <= MOST_LINES:
        body = [*_with_links(result, min(room, _WIDEST_CELL)), Text(""), link_table(result, width)]
    else:
        body = [*_plain(result, result.main, width), Text(""), link_table(result, width)]
    if len(listed) == 1:
        title = result.main.description.title
        body.append(Text(f"{title}: {_range(result, result.main)}", style=DIM))
    return Group(*body, *_legend(result))


def _with_links(result: Overview, cell: int) -> list[Text]:
    meant = f"each cell: {result.main.measure}, weight of the strongest link, below it that link as query→key"
    if result.aim is not None:
        meant = "each cell: the largest weight, below it the key that has it"
    grid = _grid(result, result.main, cell, links=True, columns=range(len(result.heads)))
    return [*grid, Text(meant, style=DIM)]


def _several(result: Overview, listed: list[HeadScores], width: int) -> list[Text]:
    """One grid a measure under its name, side by side where they fit, with the meaning of its shades."""
    named = [words for scores in listed for words in (scores.description.title, _range(result, scores))]
    grid_width = max(_margin(result) + _CELL * len(result.heads), *map(cell_len, named))
    beside = max((width + _GAP) // (grid_width + _GAP), 1)
    lines: list[Text] = []
    for start in range(0, len(listed), beside):
        together = listed[start : start + beside]
        blocks = [[line((s.description.title, HEADING)), *_plain(result, s, width)] for s in together]
        lines += [_joined(row, grid_width + _GAP) for row in zip(*blocks, strict=True)]
        ranges = [line((_range(result, scores), DIM)) for scores in together]
        lines += [_joined(tuple(ranges), grid_width + _GAP), Text("")]
    return lines[:-1]


def _joined(parts: tuple[Text, ...], width: int) -> Text:
    """Lines of several grids as one, each but the last filled up to `width` cells."""
    joined = Text(no_wrap=True, overflow="crop")
    for i, part in enumerate(parts):
        joined.append_text(part)
        if i < len(parts) - 1:
            joined.append(" " * (width - part.cell_len))
    return joined


def _plain(result: Overview, scores: HeadScores, width: int) -> list[Text]:
    """The grid of numbers alone, in blocks of heads where they do not stand side by side, if it fits."""
    per_block = max((width - _margin(result)) // _CELL, 1)
    starts = range(0, len(result.heads), per_block)
    if len(starts) * (len(result.layers) + 2) > MOST_LINES:
        return [_left_out(result)]
    lines: list[Text] = []
    for start in starts:
        columns = range(start, min(start + per_block, len(result.heads)))
        lines += _grid(result, scores, _CELL, links=False, columns=columns)
    return lines


def _margin(result: Overview) -> int:
    return len(f"L{max(result.layers)}") + 1


def _grid(result: Overview, scores: HeadScores, cell: int, links: bool, columns: range) -> list[Text]:
    """The grid of the heads number `columns`, under its heading line."""
    heading = "".join(_heading(result.heads[j], cell, links) for j in columns)
    lines = [line(" " * _margin(result), (heading, HEADING))]
    for i, layer in enumerate(result.layers):
        cells = [part for j in columns for part in _cell(result, scores, i, j, cell, links)]
        lines.append(line((left(f"L{layer}", _margin(result)), HEADING), *cells))
        if links:
            texts = "".join(left(f" {link_words(result, i, j, cell - 1)}", cell) for j in columns)
            lines.append(line(" " * _margin(result), texts))
    return lines


def _heading(head: int, cells: int, links: bool) -> str:
    """Above the entropy, which stands at the left of a cell that also holds a link."""
    return left(f"   H{head}", cells) if links else right(f"H{head} ", cells)


def _cell(
    result: Overview, scores: HeadScores, i: int, j: int, cells: int, links: bool
) -> list[tuple[str, StyleType] | str]:
    """The number with the mark of its verdict; with `links` also the weight of the strongest link."""
    value = float(scores.values[i, j])
    shade = style(scores, value)
    shown_number = right(told(scores, value), 5)
    verdict = result.certificates[i][j].verdict
    certified = verdict is Verdict.CERTIFIED
    mark = (" ", shade) if certified else (GLYPHS[verdict], STYLES[verdict])
    if not links:
        return [(shown_number, shade), mark]
    weight = weight_text(float(result.strongest_weight[i, j])) if result.aim is None else ""
    first, rest = shown_number[:1], shown_number[1:]
    edge = first if first == " " else (first, shade)
    return [edge, (rest, shade), mark, (right(weight, cells - 7) + " ", shade)]


def _left_out(result: Overview) -> Text:
    size = f"{counted(len(result.layers), 'layer')} x {counted(len(result.heads), 'head')}"
    return Text(f"The grid ({size}) does not fit here: a wider terminal or -o file.png shows it.")


def _range(result: Overview, scores: HeadScores) -> str:
    return range_words(scores, len(result.key_tokens))


def _legend(result: Overview) -> list[Text]:
    lines = [Text(words, style=DIM) for words in absent_words(result)]
    if viewed := overview_view_words(result):
        lines.append(Text(" · ".join(viewed), style=DIM))
    verdicts = [certificate.verdict for layer in result.certificates for certificate in layer]
    for verdict in Verdict:
        if number := verdicts.count(verdict):
            words = f"{GLYPHS[verdict]} {verdict.value}: {number} of {counted(len(verdicts), 'head')}"
            lines.append(Text(words, style=STYLES[verdict]))
    return lines


def next_step(result: Overview) -> Command:
    """How to open one head: the strongest that is worth it."""
    i, j = next(iter(ranked(result)), (0, 0))
    return Command(f"Open one: {opening(result, result.layers[i], result.heads[j])}")
