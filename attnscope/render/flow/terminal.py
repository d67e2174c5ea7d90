"""What reaches a token from the input, in a terminal: a row per input token, and how far to trust it."""

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.flow.words import (
    NEARNESS,
    depth,
    effect_text,
    effect_words,
    method_words,
    place_words,
    share_text,
    subject,
    trust_words,
    verdict_counts,
    verdict_on_methods,
    zeroing_words,
)
from attnscope.render.kit import palette
from attnscope.render.kit.cells import DIM, HEADING, line, row_heads
from attnscope.render.kit.labels import left, right
from attnscope.render.kit.numbers import largest_magnitude
from attnscope.render.kit.words.certificate import STYLES
from attnscope.render.kit.words.header import model_words, quoted, reading
from attnscope.render.sheet.said import signed
from attnscope.results import Flow

_CELL, _MOST_ROWS, _LISTED = 10, 40, 20
_NAME = 11


def flow(result: Flow, width: int) -> RenderableType:
    """Header, a table of the input tokens, and the correlations with what replacing them does."""
    features = [Text(" · ".join(result.notes))] if result.notes else []
    return Group(
        Text.assemble((depth(result), "bold"), f" {place_words(result)} · {model_words(result.provenance)}"),
        reading(result.provenance),
        *features,
        *([quoted(result.tokens)] if result.tokens.texts else []),
        "",
        Text(subject(result), style="bold"),
        *_table(result, width),
        *(Text(told, style=DIM) for told in method_words(result).split("; ")),
        Text(effect_words(result), style=DIM),
        "",
        *_trust(result),
        *_proof(result),
    )


def _proof(result: Flow) -> list[Text]:
    """What is certified of the weights, and whether zeroed values were seen to be zero."""
    heads = [Text(told, style=STYLES[verdict]) for verdict, told in verdict_counts(result)]
    if result.zeroing is not None:
        heads.append(Text(zeroing_words(result), style=STYLES[result.zeroing.verdict]))
    return heads


def _table(result: Flow, width: int) -> list[Text]:
    """All tokens, or of a long text those that most reaches the query from, in their order."""
    methods, count = result.methods, len(result.tokens)
    shown = list(range(count))
    if count > _MOST_ROWS:
        order = np.argsort(-result.rollout[-1], kind="stable")[:_LISTED]
        shown = sorted({*order.tolist(), result.query})
    columns = [*methods, *(["effect"] if result.ablated is not None else [])]
    heads = row_heads(result.tokens, width - _CELL * len(columns))
    largest = max(float(each.max()) for each in methods.values())
    extent = 0.0 if result.ablated is None else largest_magnitude(result.ablated.effects)
    lines = [line((left("input", heads.cells) + "".join(right(name, _CELL) for name in columns), HEADING))]
    for key in shown:
        cells = [
            (right(f"{share_text(share)} ", _CELL), palette.sequential(share, largest))
            for share in (float(each[key]) if result.reached[key] else np.nan for each in methods.values())
        ]
        if result.ablated is not None:
            effect = float(result.ablated.effects[key])
            cells.append((right(f"{effect_text(result, key)} ", _CELL), palette.diverging(effect, extent)))
        lines.append(line((left(heads.text(key), heads.cells), HEADING), *cells))
    if len(shown) < count:
        told = f"the {len(shown)} of {count} positions with the largest rollout (-o FILE.csv has all)"
        lines.append(Text(told, style=DIM))
    return lines


def _trust(result: Flow) -> list[Text]:
    """One line a method: its correlation, that of shuffled effects, and how many of these it beats."""
    if result.ablated is None:
        return [Text(trust_words(result))]
    lines = [line((f"{'':<{_NAME}}{'spearman':>9}{'shuffled':>14}{'beats':>9}", HEADING))]
    for each in result.ablated.trust:
        shuffled = f"{signed(each.low)} to {signed(each.high)}" if not np.isnan(each.low) else "-"
        beats = "-" if np.isnan(each.beats) else f"{each.beats:.0f} %"
        cells = f"{right(shuffled, 14)}{right(beats, 9)}"
        style = palette.diverging(each.correlation, 1.0)
        name = left(each.method, _NAME)
        note = "  knows no attention" if each.method == NEARNESS else ""
        lines.append(line((name, HEADING), (right(f"{signed(each.correlation)} ", 9), style), cells, note))
    told = verdict_on_methods(result)
    return [*lines, *([Text(told)] if told else []), Text(trust_words(result), style=DIM)]
