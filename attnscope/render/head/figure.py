"""One stage of a head as a figure with its page."""

from matplotlib.figure import Figure

from attnscope.render.head.plot import draw_head, head_frame
from attnscope.render.kit.certificate import certificate_words
from attnscope.render.kit.figure_words import heading_words, sentence_words, source_words
from attnscope.render.kit.header import feature_words
from attnscope.render.kit.page import Words, colour_bar, page
from attnscope.render.kit.stage import NO_KEY, NOTHING_LEFT, Panel, Show, panel
from attnscope.render.kit.typesetting import drawing
from attnscope.render.kit.weights_words import head_of, weights_words
from attnscope.results import HeadView, HeadWeights


def heatmap(result: HeadWeights | HeadView, show: Show = "weights") -> Figure:
    """One stage of a head: rows are queries, columns keys (or dimensions), masked cells hatched."""
    shown = panel(result, show)
    with drawing():
        made = page(head_frame(shown), _head_words(result, shown))
        drawn = draw_head(shown, made.axes)
        colour_bar(made, drawn, shown.title)
    return made.figure


def _head_words(result: HeadWeights | HeadView, shown: Panel) -> Words:
    """Heading, text and small print of one head."""
    head, told = head_of(result), []
    if shown.column_tokens is not None and (shown.masked or (~shown.answered).any()):
        told.append(f"hatched: {'masked' if shown.masked or shown.unanswered == NO_KEY else NOTHING_LEFT}")
    if shown.show == "weights":
        told += weights_words(result)
    told += feature_words(head)
    foot = [certificate_words(head.certificate), source_words(head.provenance)]
    foot = [" · ".join(told), *foot] if told else foot
    return Words(heading_words(head), sentence_words(head), tuple(foot))
