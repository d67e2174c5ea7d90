"""Heads taken away, in a terminal: the ranking beside its controls, and where it fits layers by heads."""

import numpy as np
from rich.console import Group, RenderableType
from rich.style import StyleType
from rich.text import Text

from attnscope.render.ablation.words import (
    answer_words,
    beats_words,
    chance_text,
    control_words,
    done_words,
    estimate_words,
    group_words,
    head_name,
    legend_words,
    place_words,
    proof_words,
    rounding_words,
    share_of_total,
    share_text,
    signed_text,
    total_words,
)
from attnscope.render.kit import palette
from attnscope.render.kit.cells import DIM, HEADING, line
from attnscope.render.kit.columns import Cell, Column, ranking_lines
from attnscope.render.kit.labels import left, right
from attnscope.render.kit.numbers import largest_magnitude
from attnscope.render.kit.words.certificate import STYLES
from attnscope.render.kit.words.command import Command, opening_head
from attnscope.render.kit.words.header import model_words, quoted, reading
from attnscope.results import Ablation, Kind
from attnscope.results.claims.ablation import HeadEffect

RANKED = 12
_CELL = 6  # of the grid
_SMALL = 0.1  # nats: smaller differences need more decimals


def ablation(result: Ablation, width: int) -> RenderableType:
    """Header, the ranking, all heads at once, the noise floor, the grid, and what was read back."""
    dim = [legend_words(result), control_words(result), rounding_words(result), estimate_words(result)]
    return Group(
        *_header(result),
        "",
        *ranking_lines(result.heads, head_name, _columns(result), width, RANKED),
        "",
        *(Text(told) for told in (group_words(result), total_words(result)) if told),
        *_grid(result, width),
        *(Text(told, style=DIM) for told in dim if told),
        Text(proof_words(result), style=STYLES[result.verdict]),
    )


def next_step(result: Ablation) -> Command:
    """How to open the head that mattered most."""
    best = result.heads[0]
    edge = result.edge or (None, None)
    return Command(f"Open it: {opening_head(result, best.layer, best.head, *edge)}")


def _header(result: Ablation) -> list[Text]:
    model = model_words(result.provenance)
    lines = [Text.assemble((done_words(result), "bold"), f" · {place_words(result)} · {model}")]
    lines.append(reading(result.provenance))
    lines += [Text(each) for each in result.notes]
    texts = [("", result.tokens)]
    if result.kind is not Kind.ENCODER and result.target is not None:
        texts = [("reads   ", result.tokens), ("decoder ", result.target)]
    if result.other is not None:
        texts = [("A " if len(texts) == 1 else texts[0][0], result.tokens), *texts[1:], ("B ", result.other)]
    lines += [Text.assemble(name, quoted(each)) for name, each in texts if each.texts]
    answer = chance_text(result.answer.probability)
    lines.append(Text.assemble("answer: ", (answer_words(result), "bold"), f", probability {answer}"))
    return [*lines, Text(result.how)]


def _columns(result: Ablation) -> list[Column[HeadEffect]]:
    """The columns that have a meaning here, as they stand from left to right."""
    extent = largest_magnitude(np.array([each.difference for each in result.heads]))
    places = _decimals(extent)

    def difference(one: HeadEffect) -> Cell:
        return f"{signed_text(one.difference, places)} ", palette.diverging(one.difference, extent)

    columns: list[Column[HeadEffect]] = [
        Column("before", 8, lambda one: chance_text(one.before), 3),
        Column("after", 9, lambda one: chance_text(one.after), 1),
        Column("difference ", 12, difference),
        Column("KL", 8, lambda one: f"{one.kl:.{places}f}"),
        Column("others", 9, lambda one: "-" if one.chance is None else f"±{one.chance:.{places}f}"),
        Column("do less", 10, beats_words),
    ]
    if result.estimates:
        estimate: Column[HeadEffect] = Column(
            "estimate", 10, lambda one: "-" if one.estimate is None else signed_text(one.estimate, places)
        )
        columns.insert(3, estimate)
    if result.heads and share_of_total(result, result.heads[0]) is not None:
        share: Column[HeadEffect] = Column(
            "of the way", 12, lambda one: share_text(share_of_total(result, one) or 0.0)
        )
        columns.insert(3, share)
    return columns


def _grid(result: Ablation, width: int) -> list[Text]:
    """Layers by heads where more than one of both was looked at and it fits; else nothing."""
    values = result.grid
    layers, heads = values.shape
    looked = [head for head in range(heads) if not np.isnan(values[:, head]).all()]
    if layers < 2 or len(looked) < 2 or result.estimates or 5 + _CELL * len(looked) > width:
        return []
    extent = largest_magnitude(values)
    times, unit = (1, "") if extent >= _SMALL else (1000, ", in thousandths")
    names = "".join(right(f"H{head}", _CELL) for head in looked)
    lines = [Text(f"difference by layer and head{unit}", style=HEADING), line(" " * 5, (names, DIM))]
    for row, layer in enumerate(result.layers):
        cells = [_cell(float(values[row, head]), extent, times) for head in looked]
        lines.append(line((left(f"L{layer}", 5), DIM), *cells))
    return [*lines, Text("")]


def _decimals(extent: float) -> int:
    """Decimals of a column of differences, so that the largest has two digits that say something."""
    return 3 if extent >= _SMALL else 4 if extent >= _SMALL / 10 else 5


def _cell(value: float, extent: float, times: int) -> tuple[str, StyleType]:
    if np.isnan(value):
        return " " * _CELL, ""
    text = signed_text(times * value, 1) if times > 1 else signed_text(value, 2).replace("0.", ".", 1)
    return right(text, _CELL), palette.diverging(value, extent)
