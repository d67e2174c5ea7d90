"""Heads ranked, in a terminal: the best ones with their controls, and what these are."""

from collections.abc import Callable
from functools import partial

from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.finding.words import (
    above_words,
    account_name,
    best_words,
    controls_words,
    head_name,
    place_words,
    range_text,
    remarks,
    signed_text,
    subject,
    value_text,
    verdict_counts,
)
from attnscope.render.kit import palette
from attnscope.render.kit.cells import DIM
from attnscope.render.kit.columns import Cell, Column, ranking_lines
from attnscope.render.kit.numbers import counted, largest_magnitude
from attnscope.render.kit.words.certificate import STYLES
from attnscope.render.kit.words.command import Command, looked_at, opening_head
from attnscope.render.kit.words.header import CROSS_ROWS, model_words, quoted, reading, written_words
from attnscope.results import Contents, Finding, Kind

_RANKED = 12
Place = tuple[int, int]


def finding(result: Finding, width: int) -> RenderableType:
    """Header, the best heads, the best of many beside that of the controls, and what the controls are."""
    return Group(
        *_header(result),
        "",
        Text(f"{subject(result)}, best first", style="bold"),
        *ranking_lines(result.ranking, partial(head_name, result), _columns(result), width, _RANKED),
        "",
        Text(best_words(result)),
        *([Text(told)] if (told := above_words(result)) else []),
        Text(controls_words(result), style=DIM),
        *(Text(each, style=DIM) for each in remarks(result)),
        *(Text(told, style=STYLES[verdict]) for verdict, told in verdict_counts(result)),
    )


def _header(result: Finding) -> list[Text]:
    size = f"{counted(len(result.layers), 'layer')} x {counted(len(result.heads), 'head')}"
    lines = [Text.assemble((size, "bold"), f" {place_words(result)} · {model_words(result.provenance)}")]
    lines.append(reading(result.provenance))
    features = [CROSS_ROWS] if result.kind is Kind.CROSS else []
    features += [told] if (told := written_words(result.query_tokens)) else []
    if features := [*features, *result.notes]:
        lines.append(Text(" · ".join(features)))
    if result.kind is Kind.CROSS and result.key_tokens.texts:
        sides = ("query ", result.query_tokens), ("key   ", result.key_tokens)
        return lines + [
            Text.assemble(side, quoted(tokens), no_wrap=True, overflow="ellipsis") for side, tokens in sides
        ]
    return lines + ([quoted(result.query_tokens)] if result.query_tokens.texts else [])


def _columns(result: Finding) -> list[Column[Place]]:
    """The columns that have a meaning here, as they stand from left to right."""
    controls, extent = result.controls, largest_magnitude(result.difference)

    def weight(place: Place) -> Cell:
        value = float(result.weights[place])
        text = value_text(result, value, 3)
        return text if result.smaller_is_better else (f"{text} ", palette.sequential(value))

    def difference(place: Place) -> Cell:
        value = float(result.difference[place])
        return f"{signed_text(value)} ", palette.diverging(value, extent)

    def plain(values: object) -> Callable[[Place], Cell]:
        return lambda place: value_text(result, float(values[place]))  # type: ignore[index]

    columns = [Column("divergence" if result.smaller_is_better else "weight ", 8, weight)]
    if result.smaller_is_better:
        columns = [Column("divergence", 11, weight)]
    if result.ranks is not None:
        ranks, digits = result.ranks, 0 if result.sought.pattern is None else 1
        columns.append(Column("rank", 6, lambda place: f"{ranks[place]:.{digits}f}", 2))
    if result.shares is not None:
        columns.append(Column("norm", 6, plain(result.shares), 3))
    columns.append(Column("control", 10, plain(controls.mean)))
    columns.append(Column("90 %", 9, lambda place: range_text(result, place), 1))
    columns.append(Column("diff ", 7, difference))
    columns.append(Column("beats", 8, lambda place: f"{controls.percentile[place]:.0f} %"))
    if not result.smaller_is_better:
        widest = 9 if controls.of is Contents.PICTURE else 7
        columns.append(Column("by", widest, lambda place: account_name(result, place)))
    if result.followed is not None:
        columns.insert(len(columns) - 1, Column("follows", 9, plain(result.followed), 4))
    return columns


def next_step(result: Finding) -> Command:
    """How to open the best head, where its query looks at its key."""
    if not result.ranking:
        return Command("")
    i, j = result.ranking[0]
    sought = result.sought
    over = not result.query_tokens.texts and result.key_tokens.stretches  # where every key is shown
    opened = opening_head(
        result, result.layers[i], result.heads[j], sought.query, None if over else sought.key
    )
    return Command(f"Open it: {opened}{looked_at(result.words, result.special)}")
