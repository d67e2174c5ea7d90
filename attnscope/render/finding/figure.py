"""Heads ranked, as a figure: their numbers, how far these lie above the controls, and the best as bars."""

from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnscope.render.finding.plot import (
    RANKED,
    cell_size,
    draw_bar,
    draw_bars,
    draw_differences,
    draw_numbers,
    top_of,
)
from attnscope.render.finding.words import (
    above_words,
    best_words,
    controls_words,
    place_words,
    remarks,
    signed_text,
    subject,
    value_text,
    verdict_counts,
)
from attnscope.render.kit.figure.page import INK, Frame, Words, sheet
from attnscope.render.kit.numbers import counted, largest_magnitude
from attnscope.render.kit.typesetting import drawing, line_height, text_width
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.kit.words.figure import source_words
from attnscope.render.kit.words.header import model_words
from attnscope.render.look import look_now
from attnscope.results import Finding, Verdict
from attnscope.tokens import printable

_TITLE, _LEGEND = 8.5, 6.5
_CHANGE = "difference to the mean of its controls"
_BARS, _BAR = 2.9, 0.2  # inches: width of the bars, height of one
_BETWEEN = 1.0  # between two grids, one above the other: the colour bar of one, the title of the other
_TOP = 0.62  # title and head numbers above a grid


def finding_figure(result: Finding) -> Figure:
    """The number of every head, beside it the difference to its controls, and the best ones as bars."""
    with drawing():
        figure, grid, change, bars = _panels(result)
        number = draw_numbers(result, grid)
        _title(grid, "divergence: less is nearer" if result.smaller_is_better else "weight")
        draw_bar(number, figure, grid, ("0", value_text(result, top_of(result))))
        signed = draw_differences(result, change)
        _title(change, _CHANGE)
        extent = largest_magnitude(result.difference) or 1.0
        draw_bar(signed, figure, change, (signed_text(-extent), signed_text(extent)))
        draw_bars(result, bars)
        _legend(bars)
    return figure


def _panels(result: Finding) -> tuple[Figure, Axes, Axes, Axes]:
    """An empty page with its three panels: the grids side by side, or flat ones one above the other."""
    grid, beside, bars = _frames(result)
    high = 2 * grid.height + _BETWEEN
    if high > 1.7 * bars.height:
        figure, (first, second, third) = sheet([grid, beside, bars], _words(result))
        return figure, first, second, third
    figure, (both, third) = sheet([replace(grid, height=high), bars], _words(result))
    place = both.get_position()
    both.remove()
    own = place.height * grid.height / high
    upper, lower = ((place.x0, y, place.width, own) for y in (place.y1 - own, place.y0))
    return figure, figure.add_axes(upper), figure.add_axes(lower), third


def _frames(result: Finding) -> list[Frame]:
    wide, high = cell_size(result)
    label = text_width(f"L{max(result.layers)}", 7.0) + 0.1
    width, height = wide * len(result.heads), high * len(result.layers)
    grid = Frame(width, height, left=label, top=_TOP, bottom=0.42)
    beside = Frame(width, height, left=label + 0.3, top=_TOP, bottom=0.42)
    over = 0.0 if look_now().bare else max(text_width(_CHANGE, _TITLE, bold=True) + 0.1 - width, 0.0)
    listed = min(RANKED, max(len(result.ranking), 1))
    name = text_width(f"L{max(result.layers)} H{max(result.heads)}", 7.0) + 0.4
    return [grid, beside, Frame(_BARS, _BAR * listed, left=name + over, top=_above(result), bottom=0.42)]


def _above(result: Finding) -> float:
    """The room for the lines of the legend above the bars."""
    shown = {result.account(place) for place in result.ranking[:RANKED]}
    return 0.1 + (2 + len(shown)) * 1.2 * line_height(_LEGEND)


def _title(axes: Axes, text: str) -> None:
    if not look_now().bare:
        axes.set_title(text, size=_TITLE, color=INK, loc="left", pad=15, fontweight="bold")


def _legend(axes: Axes) -> None:
    axes.legend(
        loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=1, fontsize=_LEGEND, frameon=False,
        borderaxespad=0.1, handlelength=1.8, labelspacing=0.15,
    )  # fmt: skip


def _words(result: Finding) -> Words:
    heading = f"{model_words(result.provenance)} · {place_words(result)} · {subject(result)}"
    if result.verdict is not Verdict.CERTIFIED:
        heading += f" · {verdict_words(result.verdict)}"
    sentence = f"“{result.query_tokens.sentence}”" if result.query_tokens.texts else ""
    if result.query_tokens is not result.key_tokens and result.key_tokens.texts:
        sentence = f"query: {sentence}   key: “{result.key_tokens.sentence}”"
    verdicts = " · ".join(told for _, told in verdict_counts(result))
    foot = (
        ". ".join(
            f"{each[:1].upper()}{each[1:]}" for each in (best_words(result), above_words(result)) if each
        ),
        controls_words(result),
        " · ".join([*remarks(result)[1:], *result.notes]),
        f"{counted(result.weights.size, 'head')} looked at · {verdicts}",
        source_words(result.provenance),
    )
    return Words(heading, printable(sentence), tuple(each for each in foot if each))
