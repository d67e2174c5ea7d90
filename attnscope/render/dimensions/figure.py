"""One query and one key, dimension by dimension, as one figure."""

from matplotlib.figure import Figure

from attnscope.render.dimensions.plot import draw_pairs, draw_products, draw_vectors
from attnscope.render.dimensions.words import pair_name, share_words, sum_words
from attnscope.render.kit.figure.page import Frame, Words, sheet
from attnscope.render.kit.typesetting import drawing
from attnscope.render.kit.words.figure import heading_words, proof_words, sentence_words, source_words
from attnscope.results import Dimensions

_VECTORS, _PRODUCTS, _PAIRS, _BETWEEN, _LEGEND = 1.1, 2.2, 1.2, 0.35, 0.2  # inches
_NARROWEST, _WIDEST, _EACH = 4.6, 11.0, 0.15


def dimensions_figure(result: Dimensions) -> Figure:
    """Both vectors, their products with the sum so far, and where dimensions are turned the pairs."""
    turned = result.rotation is not None
    with drawing():
        width = min(max(_EACH * len(result.products), _NARROWEST), _WIDEST)
        below = _PAIRS + 0.75 if turned else 0.0
        height = _VECTORS + _BETWEEN + _PRODUCTS + below
        frame = Frame(width, height, left=0.62, top=_LEGEND, bottom=0.5)
        figure, (host,) = sheet([frame], _words(result))
        host.set_axis_off()
        draw_vectors(result, host.inset_axes((0, 1 - _VECTORS / height, 1, _VECTORS / height)))
        draw_products(result, host.inset_axes((0, below / height, 1, _PRODUCTS / height)))
        if turned:
            draw_pairs(result, host.inset_axes((0, 0, 1, _PAIRS / height)))
    return figure


def _words(result: Dimensions) -> Words:
    head = result.head
    notes = [result.unpaired] if result.unpaired else []
    told = " · ".join([sum_words(result), share_words(result), *notes])
    foot = (told, proof_words(head.certificate), source_words(head.provenance))
    return Words(heading_words(head, f"{pair_name(result)} by dimension"), sentence_words(head), foot)
