"""A long head as a figure: its blocks with the positions at which they begin, or a window pair by pair."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnscope.render.kit.figure.page import Words, colour_bar, page
from attnscope.render.kit.stage import Panel
from attnscope.render.kit.typesetting import drawing
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.kit.words.figure import proof_words, source_words
from attnscope.render.kit.words.header import model_words, where_words
from attnscope.render.long.words import bar_words, block_words, excerpt, panel_of, remarks, window_words
from attnscope.render.plot.heat import draw_head
from attnscope.render.plot.layout import grid, head_frame
from attnscope.results import LongHead, Verdict
from attnscope.vocabulary import Scaling


def long_figure(result: LongHead, asked: Scaling = Scaling.AUTO) -> Figure:
    """Rows are queries, columns keys; masked blocks hatched."""
    shown = panel_of(result, asked)
    with drawing():
        made = page(head_frame(shown), _words(result, shown))
        drawn = draw_head(shown, made.axes)
        colour_bar(made, drawn, f"{bar_words(result)}\n{shown.scale.label.partition(chr(10))[2]}")
        if shown.scale.kind is Scaling.LOG and drawn.colorbar is not None:
            places, texts = zip(*shown.scale.ticks, strict=True)
            drawn.colorbar.set_ticks(places, labels=texts)
            drawn.colorbar.minorticks_off()
    return made.figure


def draw_long(result: LongHead, axes: Axes, asked: Scaling = Scaling.AUTO) -> None:
    """The same on an Axes, without its page."""
    draw_head(panel_of(result, asked), axes)


def _words(result: LongHead, shown: Panel) -> Words:
    parts = [model_words(result.provenance), result.name, where_words(result)]
    if result.certificate.verdict is not Verdict.CERTIFIED:
        parts.append(verdict_words(result.certificate.verdict).replace(" ", "\u00a0"))
    told = [window_words(result), block_words(result)]
    if max(result.steps) > 1:
        told.append("labels: where a block begins")
    if shown.masked:
        told.append("hatched: masked")
    if (block := grid(shown).block) > 1:
        told.append(f"each dot: the strongest of {block} x {block}")
    told += [f"colours: {shown.scale.legend}", *remarks(result)]
    sentence = excerpt(result.query_tokens)
    if result.key_tokens != result.query_tokens:
        sentence = f"query: {sentence}   key: {excerpt(result.key_tokens)}"
    foot = (" · ".join(told), proof_words(result.certificate), source_words(result.provenance))
    return Words(" · ".join(parts), sentence, foot)
