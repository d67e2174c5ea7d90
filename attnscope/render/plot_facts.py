"""The head in numbers, as a table of three columns. `draw_facts` may be used on any Axes."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from attnscope.render.page import FAINT, INK
from attnscope.render.report_sheet import RULE
from attnscope.render.report_text import Fact
from attnscope.render.typesetting import text_width

ROW = 0.3  # inches for one fact
_NAME, _VALUE, _MEANING = 8.0, 10.5, 7.5  # points
_GAP = 0.14


def facts_width(listed: Sequence[Fact]) -> float:
    """Inches that the table needs."""
    first, second = _columns(listed)
    return first + second + 2 * _GAP + max(text_width(each.meaning, _MEANING) for each in listed)


def draw_facts(listed: Sequence[Fact], axes: Axes) -> None:
    """One line for each fact, with thin rules between them."""
    width = axes.get_window_extent().width / axes.get_figure(root=True).dpi  # type: ignore[union-attr]
    first, second = _columns(listed)
    axes.set(xlim=(0, width), ylim=(len(listed), 0))
    axes.set_axis_off()
    for row, each in enumerate(listed):
        style = {"va": "center_baseline", "parse_math": False}
        axes.text(0, row + 0.5, each.name, size=_NAME, color=INK, **style)  # type: ignore[arg-type]
        value = {**style, "ha": "right", "weight": "bold"}
        axes.text(first + _GAP + second, row + 0.5, each.value, size=_VALUE, color=INK, **value)  # type: ignore[arg-type]
        place = first + second + 2 * _GAP
        axes.text(place, row + 0.5, each.meaning, size=_MEANING, color=FAINT, **style)  # type: ignore[arg-type]
    axes.hlines(range(len(listed) + 1), 0, width, colors=RULE, linewidth=0.7)


def _columns(listed: Sequence[Fact]) -> tuple[float, float]:
    """Widths of names and values."""
    return (
        max(text_width(each.name, _NAME) for each in listed),
        max(text_width(each.value, _VALUE, True) for each in listed),
    )
