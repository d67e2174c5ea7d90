"""Several heads at a glance: the entropy of each, and what the most focused ones look at."""

import math

from rich.console import Group, RenderableType
from rich.style import Style
from rich.text import Text

from attnscope.render.kit import palette
from attnscope.render.kit.cells import DIM, HEADING, line
from attnscope.render.kit.certificate import GLYPHS, STYLES
from attnscope.render.kit.labels import left, right
from attnscope.render.kit.numbers import counted, weight_text
from attnscope.render.kit.weights_words import overview_view_words
from attnscope.render.overview.links import link_table, link_words, most_focused
from attnscope.results import Overview, Special, Verdict

MOST_LINES = 110
_CELL, _LINK_CELL, _WIDEST_CELL = 6, 11, 16
_FEW_HEADS = 16


def overview(result: Overview, width: int) -> RenderableType:
    """A grid of layers by heads with the entropy of each, then the strongest links; `width` in cells.

    Where there is room a cell also holds the head's strongest link. A grid that would run over
    `MOST_LINES` lines is left out, and said to be.
    """
    room = (width - _margin(result)) // len(result.heads)
    many = result.main.values.size > _FEW_HEADS
    if many and room >= _LINK_CELL and 2 * len(result.layers) <= MOST_LINES:
        body = _with_links(result, min(room, _WIDEST_CELL))
    else:
        body = [*_plain(result, width), Text(""), link_table(result, width)]
    return Group(*body, *_legend(result), _next_step(result))


def _with_links(result: Overview, cell: int) -> list[RenderableType]:
    told = "each cell: entropy, weight of the strongest link, below it that link as query→key"
    return [*_grid(result, cell, links=True, per_block=len(result.heads)), Text(told, style=DIM)]


def _plain(result: Overview, width: int) -> list[RenderableType]:
    """The grid of entropies alone, in blocks of heads where they do not stand side by side, if it fits."""
    per_block = max((width - _margin(result)) // _CELL, 1)
    blocks = -(-len(result.heads) // per_block)
    fits = blocks * (len(result.layers) + 2) <= MOST_LINES
    return _grid(result, _CELL, links=False, per_block=per_block) if fits else [_left_out(result)]


def _margin(result: Overview) -> int:
    return len(f"L{max(result.layers)}") + 1


def _grid(result: Overview, cell: int, links: bool, per_block: int) -> list[RenderableType]:
    """The grid in blocks of `per_block` heads, each with its own heading line."""
    lines: list[RenderableType] = []
    for start in range(0, len(result.heads), per_block):
        columns = range(start, min(start + per_block, len(result.heads)))
        heading = "".join(_heading(result.heads[j], cell, links) for j in columns)
        lines.append(line(" " * _margin(result), (heading, HEADING)))
        for i, layer in enumerate(result.layers):
            cells = [part for j in columns for part in _cell(result, i, j, cell, links)]
            lines.append(line((left(f"L{layer}", _margin(result)), HEADING), *cells))
            if links:
                texts = "".join(left(f" {link_words(result, i, j, cell - 1)}", cell) for j in columns)
                lines.append(line(" " * _margin(result), texts))
    return lines


def _heading(head: int, cells: int, links: bool) -> str:
    """Above the entropy, which stands at the left of a cell that also holds a link."""
    return left(f"   H{head}", cells) if links else right(f"H{head} ", cells)


def _cell(result: Overview, i: int, j: int, cells: int, links: bool) -> list[tuple[str, Style] | str]:
    """Entropy with the mark of its verdict; with `links` also the weight of the strongest link."""
    entropy = float(result.main.values[i, j])
    most = math.log(len(result.key_tokens))
    style = palette.sequential(most - entropy, most) if most > 0 else Style.null()
    number = right(f"{entropy:.2f}", 5) if not math.isnan(entropy) else right("-", 5)
    verdict = result.certificates[i][j].verdict
    certified = verdict is Verdict.CERTIFIED
    mark = (" ", style) if certified else (GLYPHS[verdict], Style.parse(STYLES[verdict]))
    if not links:
        return [(number, style), mark]
    weight = right(weight_text(float(result.strongest_weight[i, j])), cells - 7)
    return [" ", (number[1:], style), mark, (weight + " ", style)]


def _left_out(result: Overview) -> Text:
    size = f"{counted(len(result.layers), 'layer')} x {counted(len(result.heads), 'head')}"
    return Text(f"The grid ({size}) does not fit here: a wider terminal or -o file.png shows it.")


def _legend(result: Overview) -> list[Text]:
    keys = len(result.key_tokens)
    range_ = f"0.00 looks at one key (dark), ln {keys} = {math.log(keys):.2f} at all alike (light)"
    lines = [Text(f"entropy in nats: {range_}", style=DIM)]
    if told := overview_view_words(result):
        lines.append(Text(" · ".join(told), style=DIM))
    verdicts = [certificate.verdict for layer in result.certificates for certificate in layer]
    for verdict in Verdict:
        if number := verdicts.count(verdict):
            words = f"{GLYPHS[verdict]} {verdict.value}: {number} of {counted(len(verdicts), 'head')}"
            lines.append(Text(words, style=STYLES[verdict]))
    return lines


def _next_step(result: Overview) -> Text:
    """How to open one head: the most focused of all."""
    focused = [(i, j) for i in range(len(result.layers)) if (j := most_focused(result, i)) is not None]
    i, j = min(focused, key=lambda place: result.main.values[place], default=(0, 0))
    layer, head = result.layers[i], result.heads[j]
    words = " --words" if result.words else ""
    special = "" if result.special is Special.SHOW else f" --special {result.special.value}"
    return Text(f'Open one: attnscope heads "..." --layer {layer} --head {head}{words}{special}')
