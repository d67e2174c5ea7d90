"""A comparison in a terminal: the word's vectors layer by layer, then what it attends to on each side."""

from itertools import zip_longest

import numpy as np
from jaxtyping import Float
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.style import Style
from rich.text import Text

from attnscope.render import palette
from attnscope.render.bars import bar
from attnscope.render.cells import DIM, HEADING, line
from attnscope.render.certificate import GLYPHS, STYLES, certificate_line
from attnscope.render.comparison_words import (
    attended_words,
    cosine_text,
    kinds,
    models,
    remarks,
    sentence,
    shown_words,
    side_words,
    subject,
    table_remarks,
    verdict_counts,
)
from attnscope.render.header import reading
from attnscope.render.labels import left, right, settled
from attnscope.render.numbers import counted, weight_text
from attnscope.render.strongest import descending
from attnscope.results import Between, Comparison, Side

MOST_KEYS = 20
_MOST_LABEL, _LEAST_BAR, _BETWEEN = 16, 8, 3
_BAR = Style(color="blue")


def comparison_header(result: Comparison) -> RenderableType:
    """What is compared and of which model, how it was read, and both texts with the word marked."""
    title = Text.assemble((subject(result), "bold"), f" · {kinds(result)} · {models(result)}")
    lines = [title]
    for told in dict.fromkeys(reading(side.head.provenance).plain for side in result.sides):
        lines.append(Text(told, style=DIM))
    for name, side in zip("AB", result.sides, strict=True):
        told = " · ".join(filter(None, (side_words(result, side), sentence(side), attended_words(side))))
        lines.append(Text.assemble((f"{name} ", "bold"), told))
    return Group(*lines)


def comparison(result: Comparison, width: int) -> RenderableType:
    """The table of layers or heads, what it means, both rows of weights, and the certificates."""
    parts: list[RenderableType] = [
        *_table(result),
        *(Text(told, style=DIM) for told in [*table_remarks(result), *remarks(result)]),
        "",
    ]
    parts += [Text(shown_words(result), style="bold"), *_rows(result, width), ""]
    return Group(*parts, *_certificates(result))


def _table(result: Comparison) -> list[Text]:
    if result.between is Between.LAYERS:
        return _by_head(result) if len(result.heads) > 1 else []
    return _by_layer(result) if result.similarities or result.divergence else []


def _by_layer(result: Comparison) -> list[Text]:
    """One line per layer: cosines of all compared heads as one vector, and the head that differs most."""
    several = len(result.heads) > 1
    shown = "all heads of a layer together" if several else f"H{result.heads[0]}"
    lines = []
    if result.similarities:
        lines.append(line((f"cosine between the vectors of the word in A and B, {shown}", DIM)))
    names = [each.vector for each in result.similarities]
    heading = "".join(right(name, _cell(name)) for name in names)
    if several and result.similarities:
        heading += "  least alike"
    if result.divergence is not None:
        heading += "  furthest apart" if several else "  rows apart"
    margin = _margin(result)
    lines.append(line(" " * margin, (heading, HEADING)))
    for i, (layer, _) in enumerate(result.layers):
        cells: list[tuple[str, Style] | str] = []
        for each in result.similarities:
            value = float(each.together[i])
            cells += [
                " " * (_cell(each.vector) - 7),
                (right(cosine_text(value), 7), palette.diverging(value, 1.0)),
            ]
        output = result.similarity("output")
        if several and output is not None:
            cells.append("  " + left(_extreme(result, -output.heads[i], output.heads[i]), 11))
        if result.divergence is not None:
            apart = result.divergence.jensen_shannon[i]
            cells.append(
                "  " + (_extreme(result, apart, apart) if several else right(cosine_text(apart[0]), 10))
            )
        lines.append(line((left(f"L{layer}", margin), HEADING), *cells))
    return lines


def _cell(name: str) -> int:
    return max(len(name), 7) + 2


def _margin(result: Comparison) -> int:
    return len(f"L{max(layer for layer, _ in result.layers)}") + 1


def _extreme(
    result: Comparison, differing: Float[np.ndarray, " head"], shown: Float[np.ndarray, " head"]
) -> str:
    """`H3 0.912`: the head that differs most."""
    if np.isnan(differing).all():
        return "-"
    j = int(np.nanargmax(differing))
    return f"{left(f'H{result.heads[j]}', 4)}{right(cosine_text(shown[j]), 6)}"


def _by_head(result: Comparison) -> list[Text]:
    """One line per head: how far apart the rows of the two layers are."""
    assert result.divergence is not None, "one text gives one sequence of tokens"
    lines = [line((left("", 5) + "Jensen-Shannon (nats)  total variation", HEADING))]
    for j, head in enumerate(result.heads):
        values = (
            each[0, j] for each in (result.divergence.jensen_shannon, result.divergence.total_variation)
        )
        first, second = (cosine_text(float(value)) for value in values)
        lines.append(line((left(f"H{head}", 5), HEADING), right(first, 21), right(second, 17)))
    return lines


def _rows(result: Comparison, width: int) -> list[RenderableType]:
    """Both rows of weights, side by side where `width` allows, on one scale."""
    full = max((float(np.nanmax(side.weights, initial=0.0)) for side in result.sides), default=0.0)
    half = (width - _BETWEEN) // 2
    blocks = [_row(name, side, full, half) for name, side in zip("AB", result.sides, strict=True)]
    needed = max(each.cell_len for block in blocks for each in block)
    if needed > half:
        blocks = [_row(name, side, full, width) for name, side in zip("AB", result.sides, strict=True)]
        return [*blocks[0], "", *blocks[1]]
    return [_joined(left_line, right_line, half + _BETWEEN) for left_line, right_line in zip_longest(*blocks)]


def _joined(first: Text | None, second: Text | None, place: int) -> Text:
    """Two lines in one, the second from cell `place` on."""
    joined = Text(no_wrap=True, overflow="crop") if first is None else first.copy()
    if second is not None:
        joined.append(" " * (place - joined.cell_len))
        joined.append_text(second)
    return joined


def _row(name: str, side: Side, full: float, width: int) -> list[Text]:
    """The keys of the word by weight; a full bar is the largest weight of both sides."""
    tokens, weights = side.head.key_tokens, side.weights
    heading = line(
        (f"{name} ", HEADING), (f"{side.position} {settled(side.word)}", HEADING), (" attends to", DIM)
    )
    allowed = side.head.allowed[side.position]
    ranked = [key for key in descending(weights) if allowed[key]]
    if not ranked:
        return [line((f"{name} {settled(side.word)}", HEADING), " has no valid key")]
    label = min(max(cell_len(settled(tokens.names[key])) for key in ranked[:MOST_KEYS]), _MOST_LABEL)
    digits = len(str(len(tokens) - 1))
    room = max(width - digits - label - 9, _LEAST_BAR)
    lines = [heading]
    for key in ranked[:MOST_KEYS]:
        told = (
            f"{key:>{digits}} {left(settled(tokens.names[key]), label)}  {weight_text(weights[key], 3):>4} "
        )
        lines.append(line(told, (bar(weights[key] / full if full else 0.0, room), _BAR)))
    return [*lines, *_left_out(side, ranked)]


def _left_out(side: Side, ranked: list[int]) -> list[Text]:
    """Further keys, masked keys, the share of a sink."""
    told = []
    if further := ranked[MOST_KEYS:]:
        told.append(
            f"{counted(len(further), 'more key')} share {weight_text(float(side.weights[further].sum()))}"
        )
    if masked := len(side.head.key_tokens) - len(ranked):
        told.append(f"{counted(masked, 'key')} masked")
    if side.head.sink is not None:
        told.append(f"the sink takes {weight_text(float(1 - side.weights[ranked].sum()))}")
    return [Text(" · ".join(told), style=DIM)] if told else []


def _certificates(result: Comparison) -> list[Text]:
    """Every head that a number was taken from by verdict, then the two that are shown in full."""
    lines = [
        Text(f"{GLYPHS[verdict]} {told}", style=STYLES[verdict]) for verdict, told in verdict_counts(result)
    ]
    for name, side in zip("AB", result.sides, strict=True):
        lines.append(
            Text.assemble((f"{name} {side.head.name} ", "bold"), certificate_line(side.head.certificate))
        )
    return lines
