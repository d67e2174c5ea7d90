"""What the model predicts, as bars for the margin of a page. `draw_answer` may be used on any Axes."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from attnscope.render.labels import fit, settled
from attnscope.render.numbers import weight_text
from attnscope.render.page import INK
from attnscope.render.typesetting import text_width
from attnscope.results import Guess

ROW = 0.19  # inches for one word
_BAR, _TRACK = "#4a4f57", "#eeeff1"
_SIZE, _WIDEST_NAME = 9.0, 18
_GAP, _NUMBER = 0.08, 0.42  # inches


def draw_answer(guesses: Sequence[Guess], axes: Axes) -> None:
    """One line for each word, the first one bold: the word, a bar that is full at 1, the probability."""
    names = [settled(fit(guess.text, _WIDEST_NAME)) for guess in guesses]
    width = axes.get_window_extent().width / axes.get_figure(root=True).dpi  # type: ignore[union-attr]
    left = max(text_width(name, _SIZE, True) for name in names) + _GAP
    bar = max(width - left - _NUMBER, 0.3)
    axes.set(xlim=(0, width), ylim=(len(names) - 0.5, -0.5))
    axes.set_axis_off()
    for row, (guess, name) in enumerate(zip(guesses, names, strict=True)):
        weight = "normal" if row else "bold"
        style = {"size": _SIZE, "va": "center_baseline", "weight": weight, "color": INK, "parse_math": False}
        axes.text(left - _GAP, row, name, ha="right", **style)  # type: ignore[arg-type]
        axes.text(width, row, weight_text(guess.probability), ha="right", **style)  # type: ignore[arg-type]
    rows = range(len(names))
    axes.barh(rows, [bar] * len(names), left=left, height=0.42, color=_TRACK)
    axes.barh(
        rows, [bar * g.probability for g in guesses], left=left, height=0.42, color=_BAR, label="probability"
    )
