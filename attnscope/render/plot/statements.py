"""Sentences in a picture: the question, the sentence and its figures; a command is for a screen."""

from matplotlib.axes import Axes

from attnscope.render.kit.palette import FAINT, INK
from attnscope.render.kit.typesetting import line_height, wrapped
from attnscope.render.plot.panel import SMALL, TITLE, Panel
from attnscope.render.sheet.drawings import Statement, Statements

_WIDTH, _BETWEEN = 6.4, 0.1  # inches: of a line, between two sentences
_TEXT = 8.0
Line = tuple[str, float, str, str]  # text, size, weight and colour


def panel(block: Statements) -> Panel:
    """As high as its lines are many."""
    told = [_lines(each) for each in block.statements]
    height = sum(line_height(size) for lines in told for _, size, _, _ in lines)
    height += _BETWEEN * max(len(told) - 1, 0)

    def draw(axes: Axes) -> None:
        axes.set_axis_off()
        below = 0.0
        for lines in told:
            for text, size, weight, color in lines:
                below += line_height(size)
                axes.text(
                    0.0, 1 - below / height, text, size=size, weight=weight, color=color, va="bottom",
                    transform=axes.transAxes, parse_math=False,
                )  # fmt: skip
            below += _BETWEEN

    return Panel(block.title, "", _WIDTH, max(height, 0.1), left=0.0, above=0.0, below=0.0, draw=draw)


def _lines(told: Statement) -> list[Line]:
    parts = ((told.question, TITLE, "bold", INK), (told.sentence, _TEXT, "normal", INK))
    return [
        (line, size, weight, color)
        for text, size, weight, color in (*parts, (told.figures, SMALL, "normal", FAINT))
        for line in (wrapped(text, _WIDTH, size, weight == "bold") if text else ())
    ]
