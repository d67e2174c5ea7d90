"""Words in a picture: two columns with lines between those that belong together, darker where they are sure;
and sentences, each with its question and its figures. A command is for a screen.
"""

from matplotlib.axes import Axes

from attnscope.render.kit.palette import FAINT, INK, PAPER
from attnscope.render.kit.typesetting import line_height, text_width, wrapped
from attnscope.render.plot.panel import SMALL, TICK, TITLE, Panel
from attnscope.render.sheet.drawings import Linked, Statement, Statements

_WIDTH, _BETWEEN = 6.4, 0.1  # inches: of a line, between two sentences
_TEXT = 8.0
_Line = tuple[str, float, str, str]  # text, size, weight and colour


def statements_panel(block: Statements) -> Panel:
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


def _lines(told: Statement) -> list[_Line]:
    parts = ((told.question, TITLE, "bold", INK), (told.sentence, _TEXT, "normal", INK))
    return [
        (line, size, weight, color)
        for text, size, weight, color in (*parts, (told.figures, SMALL, "normal", FAINT))
        for line in (wrapped(text, _WIDTH, size, weight == "bold") if text else ())
    ]


_ROW, _COLUMNS = 0.19, 1.6  # inches: of a word down, between the columns
_FAINTEST, _GAP = 0.25, 0.04


def linked_panel(block: Linked) -> Panel:
    """As high as the longer side has words."""
    rows = max(len(block.left), len(block.right))
    return Panel(
        block.title,
        block.says,
        width=_COLUMNS,
        height=_ROW * rows,
        left=max(text_width(each, TICK) for each in (*block.left, block.sides[0])) + 0.1,
        above=0.18,
        below=0.02,
        draw=lambda axes: _draw_linked(block, axes),
        right=max(text_width(each, TICK) for each in (*block.right, block.sides[1])) + 0.1,
        least=0.6,
    )


def _draw_linked(block: Linked, axes: Axes) -> None:
    """Words from the top, each side as far down as the other: a word of few has more room."""
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(1, 0)
    for words, side, x, align in ((block.left, 0, -_GAP, "right"), (block.right, 1, 1 + _GAP, "left")):
        axes.text(
            x, -0.01, block.sides[side], size=SMALL, color=FAINT, ha=align, va="bottom", parse_math=False
        )
        for i, word in enumerate(words):
            axes.text(
                x, _down(i, len(words)), word, size=TICK, color=INK, ha=align, va="center", parse_math=False
            )
    for tie in block.ties:
        axes.plot(
            [0, 1],
            [_down(tie.left, len(block.left)), _down(tie.right, len(block.right))],
            color=PAPER["light"]["line"],
            alpha=_FAINTEST + (1 - _FAINTEST) * tie.strength,
            linewidth=0.6 + 1.6 * tie.strength,
            linestyle=(0, (3, 2)) if tie.broken else "-",
            solid_capstyle="round",
        )


def _down(place: int, count: int) -> float:
    return (place + 0.5) / count
