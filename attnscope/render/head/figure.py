"""One stage of a head as a figure with its page."""

from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from attnscope.render.kit.figure.page import Page, Words, colour_bar, page
from attnscope.render.kit.stage import NO_KEY, NOTHING_LEFT, Panel, Show, only, panel
from attnscope.render.kit.typesetting import drawing
from attnscope.render.kit.words.figure import heading_words, proof_words, sentence_words, source_words
from attnscope.render.kit.words.header import feature_words
from attnscope.render.kit.words.weights import head_of, weights_words
from attnscope.render.plot.heat import draw_head
from attnscope.render.plot.layout import grid, head_frame
from attnscope.results import HeadView, HeadWeights
from attnscope.vocabulary import Scaling


def heatmap(
    result: HeadWeights | HeadView,
    show: Show = "weights",
    scaling: Scaling = Scaling.AUTO,
    row: int | None = None,
) -> Figure:
    """One stage of a head: rows are queries, columns keys (or dimensions), masked cells hatched.

    `scaling` is how dark weights are; with a `row` that row alone.
    """
    shown = panel(result, show, scaling)
    shown = shown if row is None else only(shown, row)
    with drawing():
        made = page(head_frame(shown), _head_words(result, shown))
        drawn = draw_head(shown, made.axes)
        stage_bar(made, drawn, shown)
    return made.figure


def stage_bar(made: Page, drawn: QuadMesh, shown: Panel) -> None:
    """The colour bar of a stage; that of weights says on which scale they are."""
    if shown.show != "weights":
        colour_bar(made, drawn, shown.title)
        return
    colour_bar(made, drawn, shown.scale.label)
    if shown.scale.kind is Scaling.LOG and drawn.colorbar is not None:
        places, texts = zip(*shown.scale.ticks, strict=True)
        drawn.colorbar.set_ticks(places, labels=texts)
        drawn.colorbar.minorticks_off()


def _head_words(result: HeadWeights | HeadView, shown: Panel) -> Words:
    """Heading, text and small print of one head."""
    head, told = head_of(result), []
    if shown.column_tokens is not None and (shown.masked or (~shown.answered).any()):
        told.append(f"hatched: {'masked' if shown.masked or shown.unanswered == NO_KEY else NOTHING_LEFT}")
    if shown.show == "weights":
        told += [f"colours: {shown.scale.legend}", *weights_words(result)]
    if (block := grid(shown).block) > 1:
        told.append(f"each dot: the strongest of {block} x {block}")
    told += feature_words(head)
    foot = [proof_words(head.certificate), source_words(head.provenance)]
    foot = [" · ".join(told), *foot] if told else foot
    return Words(heading_words(head), sentence_words(head), tuple(foot))
