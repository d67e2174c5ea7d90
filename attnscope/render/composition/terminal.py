"""Composition of heads in a terminal: the strongest pairs by each input, beside what chance comes to."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.composition.words import (
    INPUTS,
    certified_words,
    chance_words,
    draws_words,
    head_words,
    inside_words,
    legend,
    outside_words,
    pair_words,
    reasons_words,
    score_text,
    setting,
    signed_text,
    subject,
    through_words,
)
from attnscope.render.kit import palette
from attnscope.render.kit.cells import DIM, HEADING, line
from attnscope.render.kit.labels import left, right
from attnscope.render.kit.words.certificate import GLYPHS, STYLES
from attnscope.render.kit.words.header import reading
from attnscope.results import Composition
from attnscope.results.claims.composition import Pair, Through

_PAIRS, _SIDE = 8, 5  # pairs of all heads that are named, and of one head before and after it
_HEADINGS = ("score", "chance", "diff", "others", "beats")


def composition(result: Composition, width: int) -> RenderableType:
    """Header, the strongest pairs through queries, keys and values, and what these numbers are."""
    body = [each for through in result.through for each in _through(result, through)]
    return Group(
        Text.assemble((subject(result), "bold"), f" · {setting(result)}"),
        Text(reading(result.provenance).plain, style=DIM),
        "",
        *body,
        *(Text(each, style=DIM) for each in legend()),
        Text(inside_words(result)),
        Text(outside_words(result)),
        Text(draws_words(result), style=DIM),
        *(Text(each) for each in reasons_words(result)),
        *(
            Text(f"{GLYPHS[verdict]} {told}", style=STYLES[verdict])
            for verdict, told in certified_words(result)
        ),
    )


def _through(result: Composition, through: Through) -> list[Text | str]:
    """The strongest pairs by one input; of one head those before and those after it."""
    if not result.looked_at(through):
        return [Text(f"no pair composes through its {INPUTS[through]}", style=DIM), ""]
    if result.shown is None:
        ranked = result.ranked(through)
        return [*_titled(result, through), *_rows(ranked[:_PAIRS], ranked), ""]
    name, lines = head_words(result.shown), list[Text | str](_titled(result, through))
    for before, told in ((True, f"before it, read by {name}"), (False, f"after it, reading {name}")):
        if ranked := result.ranked(through, before=before):
            lines += [
                Text(f"{told}: the strongest of {len(ranked)}"),
                *_rows(ranked[:_SIDE], result.ranked(through)),
            ]
    return [*lines, ""]


def _titled(result: Composition, through: Through) -> list[Text]:
    told = Text.assemble((through_words(result, through), "bold"))
    return [told, Text(chance_words(result, through), style=DIM)]


def _rows(pairs: Sequence[Pair], every: Sequence[Pair]) -> list[Text]:
    name = max(len(pair_words(pair)) for pair in pairs) + 1
    extent = max(abs(pair.difference) for pair in every)
    largest = max(pair.score for pair in every)
    lines = [
        line(
            (left("earlier → later", max(name, 16)) + "".join(right(each, 8) for each in _HEADINGS), HEADING)
        )
    ]
    for pair in pairs:
        lines.append(
            line(
                (left(pair_words(pair), max(name, 16)), HEADING),
                (right(f"{score_text(pair.score)} ", 8), palette.sequential(pair.score, largest)),
                right(score_text(pair.chance), 8),
                (right(f"{signed_text(pair.difference)} ", 8), palette.diverging(pair.difference, extent)),
                right(score_text(pair.beside), 8),
                right(f"{pair.percentile:.0f} %", 8),
            )
        )
    return lines
