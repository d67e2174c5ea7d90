"""What a model predicts as bars, one below the other: a panel for each blank, a written text or a verdict.

`draw_bars` takes any Axes; how large those should be is `panel_size`'s answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from attnscope.render.kit.figure.page import FAINT, INK
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import weight_text
from attnscope.render.kit.typesetting import text_width
from attnscope.render.prediction.plot import BAR, TRACK
from attnscope.results import Guess, Prediction

_ROW, _BARS, _NUMBER, _GAP = 0.24, 2.0, 0.42, 0.08  # inches: a row, the bars, what stands beside them
_LABEL, _TITLE = 9.0, 9.0
_WIDEST_NAME = 28
_MOST_ROWS = 24  # of a written text in one panel


@dataclass(frozen=True)
class Bars:
    """Likeliest first, or in the order in which they were written."""

    title: str
    guesses: Sequence[Guess]


def panels_of(result: Prediction) -> list[Bars]:
    """A panel for each blank; a written text in as many as its length needs."""
    if result.generated is not None:
        written = result.generated.tokens
        starts = range(0, len(written), _MOST_ROWS)
        titles = ["each token, given those before", *["…"] * len(starts)]
        parts = [written[start : start + _MOST_ROWS] for start in starts]
        return [Bars(title, part) for title, part in zip(titles, parts, strict=False)]
    place = "after " if result.task == "next" else ""
    names = result.tokens.names
    titled = [(f"{place}{blank.position} {settled(names[blank.position])}", blank) for blank in result.blanks]
    return [Bars(title, blank.guesses) for title, blank in titled]


def judgement(result: Prediction) -> Bars | None:
    """The verdict on a pair as a bar; None where there is none."""
    judged = result.next_sentence
    if judged is None:
        return None
    does = "comes after the first" if judged.order else "follows from the first"
    return Bars("the second text", [Guess(-1, does, judged.probability)])


def panel_size(bars: Bars) -> tuple[float, float]:
    """Width and height in inches, with the labels at the left and the numbers at the right; without title."""
    return _labels(bars) + _BARS + _NUMBER, _ROW * max(len(bars.guesses), 1)


def _labels(bars: Bars) -> float:
    return max((text_width(_name(guess), _LABEL) for guess in bars.guesses), default=0.0) + _GAP


def _name(guess: Guess) -> str:
    return settled(fit(guess.text, _WIDEST_NAME))


def draw_bars(bars: Bars, axes: Axes) -> None:
    """One bar a guess, full at probability 1, its token at the left and its probability at the right."""
    width, _ = panel_size(bars)
    left, right = _labels(bars) / width, 1 - _NUMBER / width
    rows = range(len(bars.guesses))
    axes.set(xlim=(0, 1), ylim=(max(len(bars.guesses), 1), 0))
    axes.set_axis_off()
    axes.set_title(bars.title, loc="left", size=_TITLE, weight="bold", color=INK, pad=4, parse_math=False)
    places = [row + 0.5 for row in rows]
    chances = [guess.probability * (right - left) for guess in bars.guesses]
    axes.barh(places, [right - left] * len(places), 0.62, left, color=TRACK)
    axes.barh(places, chances, 0.62, left, color=BAR, label="probability")
    gap = _GAP / width
    for place, guess in zip(places, bars.guesses, strict=True):
        style = {"size": _LABEL, "va": "center", "parse_math": False}
        axes.text(left - gap / 2, place, _name(guess), ha="right", color=INK, **style)  # type: ignore[arg-type]
        chance = weight_text(guess.probability, 3)
        axes.text(right + gap / 2, place, chance, ha="left", color=FAINT, **style)  # type: ignore[arg-type]
