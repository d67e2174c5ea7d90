"""Two columns of words in a picture, lines between those that belong together, darker where they are sure."""

from matplotlib.axes import Axes

from attnscope.render.kit.palette import FAINT, INK, PAPER
from attnscope.render.kit.typesetting import text_width
from attnscope.render.plot.panel import SMALL, TICK, Panel
from attnscope.render.sheet.drawings import Linked

_ROW, _BETWEEN = 0.19, 1.6  # inches: of a word down, between the columns
_FAINTEST, _GAP = 0.25, 0.04


def panel(block: Linked) -> Panel:
    """As high as the longer side has words."""
    rows = max(len(block.left), len(block.right))
    return Panel(
        block.title,
        block.says,
        width=_BETWEEN,
        height=_ROW * rows,
        left=max(text_width(each, TICK) for each in (*block.left, block.sides[0])) + 0.1,
        above=0.18,
        below=0.02,
        draw=lambda axes: draw(block, axes),
        right=max(text_width(each, TICK) for each in (*block.right, block.sides[1])) + 0.1,
        least=0.6,
    )


def draw(block: Linked, axes: Axes) -> None:
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
