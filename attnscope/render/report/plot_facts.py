"""The head in numbers, as a table of three columns. `draw_facts` may be used on any Axes."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from attnscope.render.kit.figure.page import FAINT, INK
from attnscope.render.kit.figure.sheet import RULE
from attnscope.render.kit.typesetting import text_width
from attnscope.render.report.words import Fact

ROW = 0.25  # inches for one fact
_NAME, _VALUE, _MEANING = 8.0, 10.5, 7.5  # points
_GAP = 0.14


def facts_width(listed: Sequence[Fact], zoom: float = 1.0) -> float:
    """Inches that the table needs."""
    meaning = max(text_width(each.meaning, zoom * _MEANING) for each in listed)
    return _second_column(listed, zoom) + zoom * _GAP + meaning


def draw_facts(listed: Sequence[Fact], axes: Axes, zoom: float = 1.0) -> None:
    """One line for each fact, with thin rules between them, the letters `zoom` times as large as usual."""
    width = axes.get_window_extent().width / axes.get_figure(root=True).dpi  # type: ignore[union-attr]
    values = _second_column(listed, zoom)
    axes.set(xlim=(0, width), ylim=(len(listed), 0))
    axes.set_axis_off()
    for row, each in enumerate(listed):
        for place, text, size, style in (
            (0.0, each.name, _NAME, {"color": INK}),
            (values, each.value, _VALUE, {"color": INK, "weight": "bold", "ha": "right"}),
            (values + zoom * _GAP, each.meaning, _MEANING, {"color": FAINT}),
        ):
            at = {"size": zoom * size, "va": "center_baseline", "parse_math": False}
            axes.text(place, row + 0.5, text, **at, **style)  # type: ignore[arg-type]
    axes.hlines(range(len(listed) + 1), 0, width, colors=RULE, linewidth=0.7)


def _second_column(listed: Sequence[Fact], zoom: float) -> float:
    """Where the values end, which stand behind the names."""
    name = max(text_width(each.name, zoom * _NAME) for each in listed)
    return name + zoom * _GAP + max(text_width(each.value, zoom * _VALUE, True) for each in listed)
