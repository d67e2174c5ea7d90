"""The parts of a head's scores as one figure."""

from matplotlib.figure import Figure

from attnscope.render.kit.figure.page import Words, sheet
from attnscope.render.kit.stage import Panel
from attnscope.render.kit.typesetting import drawing
from attnscope.render.kit.words.figure import heading_words, proof_words, sentence_words, source_words
from attnscope.render.kit.words.header import feature_words
from attnscope.render.kit.words.weights import sums_words
from attnscope.render.terms.plot import colour_words, draw_terms, panels_of, terms_frames
from attnscope.render.terms.terminal import recipe
from attnscope.results import HeadTerms
from attnscope.vocabulary import Scaling


def terms_figure(result: HeadTerms, scaling: Scaling = Scaling.AUTO) -> Figure:
    """A heatmap for every part of the score, side by side, then the score and the weights."""
    shown = panels_of(result, scaling)
    with drawing():
        figure, axes = sheet(terms_frames(shown), _words(result, shown))
        for place, (title, one) in zip(axes, shown.items(), strict=True):
            draw_terms(title, one, place, first=place is axes[0])
    return figure


def _words(result: HeadTerms, shown: dict[str, Panel]) -> Words:
    head = result.head
    hatched = [] if head.allowed.all() else ["hatched: masked"]
    told = [recipe(result), colour_words(shown), *hatched, sums_words(head), *feature_words(head)]
    foot = (" · ".join(told), proof_words(head.certificate), source_words(head.provenance))
    return Words(heading_words(head, "parts of the score"), sentence_words(head), foot)
