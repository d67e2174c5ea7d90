"""Two corpora in a terminal: the difference of every head, those that differ most, a line a measure."""

from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.corpus.apart_words import (
    beyond_words,
    head_name,
    ranked,
    read_words,
    setting,
    signed,
    subject,
)
from attnscope.render.corpus.words import small
from attnscope.render.kit import palette
from attnscope.render.kit.cells import DIM, HEADING, line
from attnscope.render.kit.labels import left, right
from attnscope.render.kit.words.certificate import STYLES, verdict_words
from attnscope.results import CorpusDifference
from attnscope.results.claims.corpus import ScoresApart

_CELL, _LISTED, _MOST_LINES = 7, 8, 110


def corpora(result: CorpusDifference, width: int) -> RenderableType:
    """Header, the grid, the heads that differ most, the measures, the verdicts."""
    main = result.main
    return Group(
        Text.assemble((subject(result), "bold"), f" · {setting(result)}"),
        Text(read_words(result)),
        *(Text(each, style=DIM) for each in result.notes),
        "",
        line((f"{main.scores.description.title}: mean over texts, B less A", HEADING)),
        *_grid(result, main, width),
        Text("above 0: more in B, below: less", style=DIM),
        "",
        *_most(result, main),
        "",
        *_measures(result),
        "",
        *(
            Text(f"{name} {verdict_words(verdict)}", style=STYLES[verdict])
            for name, verdict in zip("AB", result.verdict_of_each, strict=True)
        ),
    )


def _grid(result: CorpusDifference, scores: ScoresApart, width: int) -> list[Text]:
    margin = len(f"L{max(result.layers)}") + 1
    per_block = max((width - margin) // _CELL, 1)
    starts = range(0, len(result.heads), per_block)
    if len(starts) * (len(result.layers) + 2) > _MOST_LINES:
        return [Text("The grid does not fit here: a wider terminal or -o FILE.png shows it.")]
    extent = scores.scores.limits[1]
    lines = []
    for start in starts:
        columns = range(start, min(start + per_block, len(result.heads)))
        heading = "".join(right(f"H{result.heads[j]} ", _CELL) for j in columns)
        lines.append(line(" " * margin, (heading, HEADING)))
        for i, layer in enumerate(result.layers):
            values = [float(scores.difference[i, j]) for j in columns]
            cells = [(right(f"{_cell(value)} ", _CELL), palette.diverging(value, extent)) for value in values]
            lines.append(line((left(f"L{layer}", margin), HEADING), *cells))
    return lines


def _cell(value: float) -> str:
    return "-" if value != value else f"{value:+.2f}"


def _most(result: CorpusDifference, scores: ScoresApart) -> list[Text]:
    names = ("A", "B", "B less A", "error", "errors")
    heading = left("head", 8) + "".join(right(name, 10) for name in names)
    lines = [line((heading, HEADING))]
    for place in ranked(scores)[:_LISTED]:
        difference, reached = float(scores.difference[place]), float(scores.reached[place])
        lines.append(
            line(
                (left(head_name(result, place), 8), HEADING),
                right(f"{float(scores.first[place]):.3f}", 10),
                right(f"{float(scores.second[place]):.3f}", 10),
                (right(signed(difference), 10), palette.diverging(difference, scores.scores.limits[1])),
                right(f"±{small(float(scores.error[place]))}", 10),
                right(f"{reached:+.1f}", 10),
            )
        )
    return [*lines, Text(beyond_words(scores))]


def _measures(result: CorpusDifference) -> list[Text]:
    """By each measure the head that differs by most errors."""
    heading = f"{left('measure', 20)}{left('most', 8)}{right('B less A', 10)}{right('errors', 10)}"
    lines = [line((heading, HEADING))]
    for name, scores in result.measures.items():
        listed = ranked(scores)
        if listed:
            place = listed[0]
            difference = signed(float(scores.difference[place]))
            reached = f"{float(scores.reached[place]):+.1f}"
            told = f"{left(head_name(result, place), 8)}{right(difference, 10)}{right(reached, 10)}"
            lines.append(line((left(name, 20), HEADING), told))
    return lines
