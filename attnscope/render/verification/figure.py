"""A verification as a figure with its page: a grid of layers by heads for each attention of the model."""

from matplotlib.figure import Figure

from attnscope.render.kit.figure.page import INK, Frame, Words, sheet
from attnscope.render.kit.typesetting import drawing
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.kit.words.figure import source_words
from attnscope.render.kit.words.header import model_words
from attnscope.render.verification.plot import HEADINGS, POWERS, checks_frame, draw_checks, towers_of
from attnscope.render.verification.terminal import conclusion_words, worst_words
from attnscope.results import Verdict, Verification
from attnscope.tokens import printable

_BAR, _BAR_ROOM, _GAP = 0.16, 1.0, 0.15  # inches: the colour bar, all that it needs, before it


def verification_figure(result: Verification) -> Figure:
    """How surely every head was checked, and what was found."""
    with drawing():
        towers = towers_of(result)
        frames = [checks_frame(tower, first=tower is towers[0]) for tower in towers]
        high = max((frame.height for frame in frames), default=1.0)
        bar = Frame(_BAR_ROOM, max(high, 1.5), left=_GAP, top=HEADINGS)
        figure, (*grids, beside) = sheet([*frames, bar], _words(result))
        beside.set_axis_off()
        for tower, axes in zip(towers, grids, strict=True):
            drawn = draw_checks(tower, axes)
        if towers:
            legend = figure.colorbar(drawn, cax=beside.inset_axes((0.0, 0.0, _BAR / _BAR_ROOM, 1.0)))
            legend.outline.set_visible(False)  # type: ignore[operator]
            legend.set_ticks(range(0, POWERS + 1, 2), labels=["1", "100", "10⁴", "≥ 10⁶"])
            legend.ax.tick_params(labelsize=7, length=2, colors=INK)
            legend.ax.set_ylabel("faintest fault / tolerance", size=8, color=INK)
    return figure


def _words(result: Verification) -> Words:
    heading = f"{model_words(result.provenance)} · verification"
    if result.verdict is not Verdict.CERTIFIED:
        heading += f" · {verdict_words(result.verdict)}"
    sentence = " | ".join(f"“{printable(text)}”" for text in result.tokens.texts)
    legend = (
        "each head's attention recomputed and held against the model's own; the darker, the further even the "
        "faintest mistake that was put in on purpose lies above the tolerance; grey: none could be tried"
    )
    marked = "" if result.verdict is Verdict.CERTIFIED else "; outlined: not certified"
    foot = (
        legend + marked,
        f"{verdict_words(result.verdict)} · {conclusion_words(result)}",
        "" if result.verdict is Verdict.CERTIFIED else worst_words(result),
        *map(printable, result.notes),
        source_words(result.provenance),
    )
    return Words(heading, sentence, foot)
