"""A comparison as CSV: one fact a row, a cosine or a divergence of two layers or a weight of one side."""

from collections.abc import Iterator

from attnscope.render.comparison.words import view_remarks
from attnscope.render.kit.csv import Row, comments, exact, rows
from attnscope.render.kit.words.certificate import certificate_words
from attnscope.render.kit.words.weights import key_groups
from attnscope.results import Comparison


@rows.register
def _(result: Comparison) -> Iterator[Row]:
    """One fact a row: a cosine or a divergence of two layers, or a weight of one side.

    Of a word or a token of a view `key` is the position of its first token in the head.
    """
    yield "fact", "side", "layer_a", "layer_b", "head", "key", "token", "value"
    for i, pair in enumerate(result.layers):
        for each in result.similarities:
            yield f"cosine {each.vector}", "", *pair, "together", "", "", exact(each.together[i])
        for j, head in enumerate(result.heads):
            for each in result.similarities:
                yield f"cosine {each.vector}", "", *pair, head, "", "", exact(each.heads[i, j])
            if result.divergence is not None:
                nats, moved = result.divergence.jensen_shannon[i, j], result.divergence.total_variation[i, j]
                yield "jensen-shannon nats", "", *pair, head, "", "", exact(nats)
                yield "total variation", "", *pair, head, "", "", exact(moved)
    layers = result.a.head.layer, result.b.head.layer
    for letter, side in zip("ab", result.sides, strict=True):
        firsts = [group[0] for group in key_groups(side.looked_at)]
        for key, label, weight in zip(firsts, side.key_tokens.labels, side.weights, strict=True):
            yield "weight", letter, *layers, side.head.head, key, label, exact(weight)


@comments.register
def _(result: Comparison) -> Iterator[tuple[str, object]]:
    """The comments that any result has, then head, word, certificate, model and texts of each side."""
    yield from comments.dispatch(object)(result)
    yield from (("weights", remark) for remark in view_remarks(result))
    for letter, side in zip("ab", result.sides, strict=True):
        head = side.head
        told = {
            "head": head.name,
            "word": f"{side.position} {side.word}",
            "certificate": certificate_words(head.certificate),
            "model": f"{head.provenance.model} {head.provenance.source}",
        }
        yield from ((f"{letter} {name}", value) for name, value in told.items())
        every = dict.fromkeys((*head.query_tokens.texts, *head.key_tokens.texts))
        yield from ((f"{letter} text", text) for text in every)
