"""The parts of one query's scores as one figure, with the sum of one pair worked out."""

from matplotlib.figure import Figure

from attnscope.render.kit.figure.page import Frame, Words, sheet
from attnscope.render.kit.numbers import counted, short, weight_text
from attnscope.render.kit.typesetting import drawing
from attnscope.render.kit.words.figure import heading_words, proof_words, sentence_words, source_words
from attnscope.render.terms.plot import panels_of
from attnscope.render.terms.row import CELL, HIGH, Parts, draw_parts, draw_weights, parts_of
from attnscope.render.terms.terminal import recipe, worked_sum
from attnscope.results import HeadTerms
from attnscope.vocabulary import Scaling

_BETWEEN = 0.1  # inches from the scores to the weights


def row_terms_figure(
    result: HeadTerms, query: int, key: int | None = None, scaling: Scaling = Scaling.AUTO
) -> Figure:
    """Each part of the score of `query` with every key; `key`, by default the strongest, is worked out."""
    with drawing():
        parts = parts_of(panels_of(result, scaling), query, key)
        height = HIGH * len(parts.panels) + _BETWEEN
        frame = Frame(CELL * len(parts.keys), height, left=parts.left, top=parts.above)
        figure, (host,) = sheet([frame], _words(result, parts))
        host.set_axis_off()
        scores = HIGH * len(parts.scores) / height
        draw_parts(parts, host.inset_axes((0, 1 - scores, 1, scores)))
        draw_weights(parts, host.inset_axes((0, 0, 1, HIGH / height)))
    return figure


def _words(result: HeadTerms, parts: Parts) -> Words:
    head, queries = result.head, result.head.query_tokens
    name = f"the score of query {queries.positions[parts.query]} {queries.names[parts.query]}"
    extent = short(next(iter(parts.scores.values())).extent)
    told = [recipe(result), f"scores: red -{extent}, white 0, blue {extent}; weights: {parts.scale.legend}"]
    told += [*([] if parts.visible.all() else ["hatched: masked"]), *_left_out(parts)]
    marked = f"marked: {worked_sum(result, parts.query, parts.key).plain}"
    worked = [marked] if head.allowed[parts.query, parts.key] else []
    foot = (*worked, " · ".join(told), proof_words(head.certificate), source_words(head.provenance))
    return Words(heading_words(head, name), sentence_words(head), foot)


def _left_out(parts: Parts) -> list[str]:
    drawn, visible = set(parts.keys), parts.weight.visible[parts.query]
    others = [key for key in visible.nonzero()[0].tolist() if key not in drawn]
    if not others:
        return []
    share = weight_text(float(parts.weight.values[parts.query, others].sum()))
    return [f"{counted(len(others), 'more key')} share {share}"]
