"""A prediction as a figure with its page."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from attnscope.render.kit.figure.page import Frame, Words, sheet
from attnscope.render.kit.numbers import short
from attnscope.render.kit.typesetting import drawing
from attnscope.render.kit.words.figure import source_words
from attnscope.render.kit.words.header import model_words
from attnscope.render.prediction.bars import Bars, draw_bars, judgement, panel_size, panels_of
from attnscope.render.prediction.terminal import header_title
from attnscope.results import Prediction
from attnscope.tokens import printable

_BESIDE, _ABOVE, _BETWEEN = 0.45, 0.3, 0.15  # inches: between panels, the title above each, between rows
_MOST_BESIDE = 3


def prediction_figure(result: Prediction) -> Figure:
    """A panel of bars for every blank, or for the tokens that were written; up to three side by side."""
    with drawing():
        rows = _rows(result)
        wide = max((panel_size(panel)[0] for row in rows for panel in row), default=1.0)
        columns = max(map(len, rows), default=1)
        width = columns * (wide + _BESIDE) - _BESIDE
        height = sum(_ABOVE + _height(row) + _BETWEEN for row in rows) - _BETWEEN if rows else 0.1
        figure, (canvas,) = sheet([Frame(width, height, left=0.0, top=0.0)], _words(result))
        canvas.set_axis_off()
        top = 0.0
        for row in rows:
            top += _ABOVE
            for i, panel in enumerate(row):
                own_width, own_height = panel_size(panel)
                left, bottom = i * (wide + _BESIDE), height - top - own_height
                place = (left / width, bottom / height, own_width / width, own_height / height)
                draw_bars(panel, canvas.inset_axes(place))
            top += _height(row) + _BETWEEN
    return figure


def _rows(result: Prediction) -> list[list[Bars]]:
    """The verdict on a pair in a row of its own, then the others side by side."""
    judged, panels = judgement(result), panels_of(result)
    rows = [panels[i : i + _MOST_BESIDE] for i in range(0, len(panels), _MOST_BESIDE)]
    return rows if judged is None else [[judged], *rows]


def _height(row: Sequence[Bars]) -> float:
    return max(panel_size(panel)[1] for panel in row)


def _words(result: Prediction) -> Words:
    heading = f"{model_words(result.provenance)} · {header_title(result)}"
    read = " | ".join(f"“{printable(text)}”" for text in result.tokens.texts)
    written = "" if result.generated is None else f" → “{printable(result.generated.text)}”"
    told = ["probability of each token; a full bar is 1", *map(printable, result.notes)]
    if result.generated is not None and result.generated.cache_error is not None:
        error = short(result.generated.cache_error)
        told.append(f"as it was written, with a cache, no probability differs by more than {error}")
    if result.generated is not None and not result.generated.finished:
        told.append("cut off: the model had not come to an end")
    return Words(heading, read + written, (" · ".join(told), source_words(result.provenance)))
