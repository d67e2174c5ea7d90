"""What reaches a token from the input, as a figure: shares, what replacing does, how far the two agree."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnscope.render.flow.maps import draw_effect_map, draw_map, map_size, patches_of
from attnscope.render.flow.plot import draw_effects, draw_shares, draw_trust, names, row_height
from attnscope.render.flow.words import (
    effect_words,
    method_words,
    place_words,
    special_words,
    subject,
    trust_words,
    verdict_counts,
    verdict_on_methods,
    zeroing_words,
)
from attnscope.render.kit.figure.page import INK, Frame, Words, sheet
from attnscope.render.kit.typesetting import drawing, text_width
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.kit.words.figure import source_words
from attnscope.render.kit.words.header import model_words
from attnscope.render.look import look_now
from attnscope.results import Flow, Verdict
from attnscope.tokens import Patches, printable

_CELL, _EFFECTS, _TRUST, _METHOD = 0.62, 1.7, 2.1, 0.26  # inches
_TOP = 0.5


def flow_figure(result: Flow) -> Figure:
    """What each method gives to every input token, what replacing that does, and how far they agree.

    Of a picture each of these is a map of its patches.
    """
    if (patches := patches_of(result)) is not None:
        return _picture(result, patches)
    with drawing():
        figure, panels = sheet(_frames(result), _words(result))
        draw_shares(result, panels[0])
        _title(panels[0], "share from each input token", 15)
        if result.ablated is not None:
            draw_effects(result, panels[1])
            _title(panels[1], "effect of replacing it", 15)
            draw_trust(result, panels[2])
            _title(panels[2], "agreement of the two", 15)
    return figure


def _picture(result: Flow, patches: Patches) -> Figure:
    """Maps side by side, the effects behind them, and the agreement of both."""
    wide, high = map_size(patches)
    methods = list(result.methods)
    frames = [
        Frame(wide, high, left=0.0 if i == 0 else 0.16, top=_TOP, bottom=0.25) for i in range(len(methods))
    ]
    if result.ablated is not None:
        frames.append(Frame(wide, high, left=0.3, top=_TOP, bottom=0.25))
        frames.append(_trust_frame(result))
    with drawing():
        figure, panels = sheet(frames, _words(result))
        for name, axes in zip(methods, panels, strict=False):
            draw_map(result, patches, name, axes)
        if result.ablated is not None:
            draw_effect_map(result, patches, panels[-2])
            draw_trust(result, panels[-1])
            _title(panels[-1], "agreement with the effect", 15)
    return figure


def _trust_frame(result: Flow) -> Frame:
    count = 0 if result.ablated is None else len(result.ablated.trust)
    return Frame(_TRUST, _METHOD * count, left=0.95, top=_TOP, bottom=0.42)


def _frames(result: Flow) -> list[Frame]:
    high = row_height(result) * len(result.tokens)
    label = max(text_width(name, 7.0, bold=True) for name in names(result)) + 0.1
    shares = Frame(_CELL * len(result.methods), high, left=label, top=_TOP)
    if result.ablated is None:
        return [shares]
    effects = Frame(_EFFECTS, high, left=0.25, top=_TOP, bottom=0.42)
    return [shares, effects, _trust_frame(result)]


def _title(axes: Axes, text: str, pad: float) -> None:
    if not look_now().bare:
        axes.set_title(text, size=8.0, color=INK, loc="left", pad=pad, fontweight="bold")


def _words(result: Flow) -> Words:
    heading = f"{model_words(result.provenance)} · {place_words(result)} · {subject(result)}"
    if result.verdict is not Verdict.CERTIFIED:
        heading += f" · {verdict_words(result.verdict)}"
    sentence = f"“{printable(result.tokens.sentence)}”" if result.tokens.texts else ""
    told = verdict_on_methods(result)
    if not sentence and result.notes:
        sentence = result.notes[0]
    foot = (
        special_words(result) if patches_of(result) is not None else "",
        f"{told[:1].upper()}{told[1:]}",
        trust_words(result),
        method_words(result),
        effect_words(result),
        zeroing_words(result),
        " · ".join(each for _, each in verdict_counts(result)),
        source_words(result.provenance),
    )
    return Words(heading, sentence, tuple(each for each in foot if each))
