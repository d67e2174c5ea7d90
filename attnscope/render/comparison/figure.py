"""A comparison as a figure with its page."""

from matplotlib.figure import Figure

from attnscope.render.comparison import words
from attnscope.render.comparison.plot_layers import draw_layers, has_layers, layers_frame
from attnscope.render.comparison.plot_rows import MOST_KEYS, draw_row, leaves_out, row_frame, title_lines
from attnscope.render.kit.figure.page import Words, sheet
from attnscope.render.kit.typesetting import drawing
from attnscope.render.kit.words.certificate import GLYPHS, verdict_words
from attnscope.render.kit.words.figure import proof_words, source_words
from attnscope.results import Comparison, Verdict


def comparison_figure(result: Comparison) -> Figure:
    """What the word attends to on both sides, and beside it how alike its vectors are, layer by layer."""
    with drawing():
        titled = title_lines(result)
        frames = [row_frame(result, side, titled=titled) for side in result.sides]
        if has_layers(result):
            frames.append(layers_frame(result, max(frame.height for frame in frames)))
        figure, panels = sheet(frames, _comparison_words(result))
        for side, axes in zip(result.sides, panels, strict=False):
            draw_row(result, side, axes, titled=titled)
        if has_layers(result):
            draw_layers(result, panels[-1])
    return figure


def _comparison_words(result: Comparison) -> Words:
    heading = f"{words.models(result)} · {words.subject(result)}"
    heading += "".join(f" · {told}" for told in (words.looks(result), words.kinds(result)) if told)
    if result.verdict is not Verdict.CERTIFIED:
        heading += f" · {verdict_words(result.verdict)}"
    told = words.remarks(result)
    if has_layers(result):
        told.insert(0, words.curves(result))
    if any((~side.allowed).any() for side in result.sides):
        told.insert(0, "grey: masked")
    if leaves_out(result):
        told.insert(0, f"of longer texts the keys that matter, at most {MOST_KEYS}, in the order of the text")
    verdicts = [f"{GLYPHS[verdict]} {counted}" for verdict, counted in words.verdict_counts(result)]
    heads = [
        f"{letter} {side.head.name} {proof_words(side.head.certificate)}"
        for letter, side in zip("AB", result.sides, strict=True)
    ]
    sources = dict.fromkeys(source_words(side.head.provenance) for side in result.sides)
    foot = (" · ".join(told), " · ".join(verdicts), *heads, *sources)
    return Words(heading, words.shown_words(result), foot)
