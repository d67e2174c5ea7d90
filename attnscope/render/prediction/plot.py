"""What the model predicts, as a row of words with their probabilities. `draw_answer` takes any wide Axes."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from attnscope.render.kit.figure.page import FAINT, INK
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import weight_text
from attnscope.render.kit.typesetting import text_width
from attnscope.results import Guess

HEIGHT = 0.34  # inches
BAR, TRACK = "#4a4f57", "#e9eaec"
_SIZE, _WIDEST_NAME = 10.5, 20
_GAP = 0.3  # inches between two words
_FULL_ROW = 5  # words that fill the row
_BASE, _BAR_BOTTOM, _BAR_HEIGHT = 0.15, 0.02, 0.055  # inches from the bottom


def draw_answer(guesses: Sequence[Guess], axes: Axes, zoom: float = 1.0) -> None:
    """Side by side, the likeliest first and bold: a word, its probability, and a bar that is full at 1.

    The Axes are `zoom` times `HEIGHT` high, and everything on them is that much larger.
    """
    box, dpi = axes.get_window_extent(), axes.get_figure(root=True).dpi  # type: ignore[union-attr]
    pitch = (box.width / dpi + _GAP) / max(len(guesses), _FULL_ROW)
    bar = pitch - _GAP
    axes.set(xlim=(0, box.width / dpi), ylim=(0, HEIGHT))
    axes.set_axis_off()
    for i, guess in enumerate(guesses):
        left, weight = i * pitch, "normal" if i else "bold"
        style = {"size": zoom * _SIZE, "weight": weight, "parse_math": False}
        chance = weight_text(guess.probability, 3)
        name = _cut(guess.text, bar - text_width(f" {chance}", zoom * _SIZE, bold=True), zoom * _SIZE)
        axes.text(left, _BASE, name, color=INK, **style)  # type: ignore[arg-type]
        number = {**style, "ha": "right", "color": FAINT if i else INK}
        axes.text(left + bar, _BASE, chance, **number)  # type: ignore[arg-type]
    starts, middle = [i * pitch for i in range(len(guesses))], _BAR_BOTTOM + _BAR_HEIGHT / 2
    chances = [bar * guess.probability for guess in guesses]
    axes.barh([middle] * len(starts), [bar] * len(starts), _BAR_HEIGHT, starts, color=TRACK)
    axes.barh([middle] * len(starts), chances, _BAR_HEIGHT, starts, color=BAR, label="probability")


def _cut(name: str, room: float, size: float) -> str:
    """`name`, cut until it has `room`."""
    cuts = [settled(fit(name, cells)) for cells in range(_WIDEST_NAME, 1, -1)]
    return next((cut for cut in cuts if text_width(cut, size, bold=True) <= room), cuts[-1])
