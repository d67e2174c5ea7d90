"""Relations of a treebank in a terminal: a line each beside its control, or one relation in every head."""

from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.kit import palette
from attnscope.render.kit.cells import DIM, HEADING, line
from attnscope.render.kit.labels import left, right
from attnscope.render.kit.words.certificate import GLYPHS, STYLES
from attnscope.render.kit.words.header import reading
from attnscope.render.relations.words import (
    ARROWS,
    beaten_words,
    certified_words,
    direction_words,
    finder,
    heads_words,
    held_words,
    left_out,
    legend,
    ranked_heads,
    rare_words,
    reach,
    read_words,
    setting,
    share,
    shown_relations,
    signed,
    subject,
    told_apart_words,
)
from attnscope.results import Dependencies
from attnscope.results.claims.relations import Direction, Relation
from attnscope.tokens import printable

_NAME, _COUNT, _CELL = 13, 7, 4
_WIDE = 96  # cells from which on the interval of the best head is shown too
_LISTED = 10  # heads of one relation that are named


def dependencies(result: Dependencies, width: int) -> RenderableType:
    """Header, table, what it comes to, what the columns mean, and what is certified."""
    relation = result.looked_at
    body = _table(result, width) if relation is None else _heads(result, relation, width)
    told = [each for each in (left_out(result),) if each]
    return Group(
        Text.assemble((subject(result), "bold"), f" · {setting(result)}"),
        Text(reading(result.provenance).plain, style=DIM),
        Text(read_words(result)),
        *(Text(each, style=DIM) for each in told),
        "",
        *body,
        "",
        *(
            Text(f"{GLYPHS[verdict]} {each}", style=STYLES[verdict])
            for verdict, each in certified_words(result)
        ),
    )


def _table(result: Dependencies, width: int) -> list[Text | str]:
    """A line each, the most frequent relation first."""
    wide = width >= _WIDE
    rows = [_row(each, wide) for each in shown_relations(result)]
    rest = [rare] if (rare := rare_words(result)) else []
    told = [beaten_words(result), told_apart_words(result)]
    return [
        *_heading(wide),
        *rows,
        *(Text(each, style=DIM) for each in rest),
        "",
        *(Text(each) for each in told),
        *(Text(each, style=DIM) for each in legend(result)),
    ]


def _heading(wide: bool) -> list[Text]:
    gap = " " * (_NAME + _COUNT)
    best, fixed, held = "  best head", "  offset", "  held out, beside the offset"
    first = f"{gap}{left(best, 14 + 10 * wide)}{left(fixed, 10)}{held}"
    return [line((first, HEADING))]


def _row(relation: Relation, wide: bool) -> Text:
    best, fixed, held = relation.best, relation.baseline, relation.held_out
    interval = f" [{share(best.low)} {share(best.high)}]" if wide else ""
    parts: list[tuple[str, str] | str] = [
        left(printable(relation.name), _NAME) + right(f"{relation.count:,}", _COUNT),
        f"  {left(finder(relation), 9)}",
        (share(best.accuracy), palette.sequential(best.accuracy)),
        left(interval, 10 * wide),
        f"  {fixed.offset:+d} ",
        (share(fixed.accuracy), palette.sequential(fixed.accuracy)),
        "    ",
    ]
    if held is None:
        return line(*parts, ("too few to hold some out", DIM))
    return line(
        *parts,
        (share(held.accuracy), palette.sequential(held.accuracy)),
        "  ",
        (signed(held.difference), palette.diverging(held.difference, 0.5)),
        reach(held),
        ("" if relation.told_apart > 0 else "  offset" if relation.told_apart < 0 else "  ?", DIM),
    )


def _heads(result: Dependencies, relation: Relation, width: int) -> list[Text | str]:
    """The best heads by name, and for both directions layers by heads where they fit."""
    told: list[Text | str] = [Text(heads_words(result, relation), style="bold"), ""]
    if relation.held_out is not None:
        told[1:1] = [Text(held_words(relation))]
    best = ranked_heads(result, relation)[:_LISTED]
    told += [_listed(each, relation) for each in best]
    if 4 + _CELL * len(result.heads) <= width:
        for k, direction in enumerate(Direction):
            told += ["", Text(direction_words(direction), style="bold"), *_grid(result, relation, k)]
    return told


def _listed(found: tuple[int, int, Direction, float], relation: Relation) -> Text:
    layer, head, direction, accuracy = found
    gain = accuracy - relation.baseline.accuracy
    name = left(f"L{layer} H{head} {ARROWS[direction]}", 11)
    parts = (share(accuracy), palette.sequential(accuracy)), (signed(gain), palette.diverging(gain, 0.5))
    return line(name, parts[0], "  ", parts[1], (" beside the best offset", DIM))


def _grid(result: Dependencies, relation: Relation, direction: int) -> list[Text]:
    values = result.by_head(relation.name)[:, :, direction]
    lines = [line(" " * 4, ("".join(right(f"H{head}", _CELL) for head in result.heads), HEADING))]
    for layer, row in zip(result.layers, values, strict=True):
        cells = [(right(share(value), _CELL), palette.sequential(float(value))) for value in row]
        lines.append(line((left(f"L{layer}", 4), HEADING), *cells))
    return lines
