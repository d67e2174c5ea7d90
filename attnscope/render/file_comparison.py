"""A comparison as JSON, CSV and npz: cosines and divergences by layer and head, and both rows of weights."""

from collections.abc import Iterator

import numpy as np

from attnscope.render.file_csv import Row, comments, exact, rows
from attnscope.render.file_json import Value, certificate, document, numbers, provenance, texts, tokens
from attnscope.render.file_npz import Arrays, arrays_of
from attnscope.render.kit.certificate import certificate_words
from attnscope.results import Comparison, Kind, Side


@document.register
def _(result: Comparison, arrays: bool = True) -> dict[str, Value]:
    """What is compared, then by layer and head, then each side; `layers` are pairs of side a and side b.

    The provenance of the whole is that of side a; each side has its own.
    """
    described: dict[str, Value] = {
        "schema": "attnscope.comparison/1",
        "between": result.between.value,
        "verdict": result.verdict.value,
        "layers": [list(pair) for pair in result.layers],
        "heads": list(result.heads),
        "chosen": result.chosen,
        "provenance": provenance(result.a.head.provenance),
    }
    if arrays:
        described |= {"cosine": _cosines(result), "divergence": _divergence(result)}
    return described | {"a": _side(result.a, arrays), "b": _side(result.b, arrays)}


def _cosines(result: Comparison) -> dict[str, Value] | None:
    """By kind of vector, `together` by layer and `heads` by layer and head; null where there are none."""
    told = {
        each.vector: {"together": numbers(each.together), "heads": numbers(each.heads)}
        for each in result.similarities
    }
    return told or None


def _divergence(result: Comparison) -> dict[str, Value] | None:
    """By layer and head; null where the rows are over different tokens."""
    if result.divergence is None:
        return None
    return {
        "jensen_shannon": numbers(result.divergence.jensen_shannon),
        "jensen_shannon_unit": "nats",
        "total_variation": numbers(result.divergence.total_variation),
    }


def _side(side: Side, arrays: bool) -> dict[str, Value]:
    head = side.head
    told = {
        "name": head.name,
        "kind": head.kind.value,
        "layer": head.layer,
        "head": head.head,
        "position": side.position,
        "word": side.word,
        "certificate": certificate(head.certificate),
        "verdicts": [[one.verdict.value for one in layer] for layer in side.certificates],
        "provenance": provenance(head.provenance),
        "query_texts": texts(head.query_tokens),
        "key_texts": texts(head.key_tokens),
        "query_tokens": tokens(head.query_tokens),
        "key_tokens": tokens(head.key_tokens),
    }
    values = _of_side(side) if arrays else {}
    return told | {
        name: array.tolist() if array.dtype == bool else numbers(array) for name, array in values.items()
    }


def _of_side(side: Side) -> Arrays:
    """What the word has in the head that is shown: its row by key, and its vectors by dim."""
    head, place = side.head, side.position
    found = {
        "weights": side.weights,
        "scaled": head.scaled[place],
        "allowed": head.allowed[place],
        "query": head.q[place],
        "output": head.output[place],
    }
    if head.kind is not Kind.CROSS:
        found |= {"key": head.k[place], "value": head.v[place]}
    return found


@arrays_of.register
def _(result: Comparison) -> Arrays:
    """Axes: layer head, or layer for vectors of all heads together; `a_` and `b_` before what a side has."""
    found = {"layers": np.array(result.layers), "heads": np.array(result.heads)}
    for each in result.similarities:
        name = each.vector.replace(" ", "_")
        found |= {f"cosine_{name}": each.heads, f"cosine_{name}_together": each.together}
    if result.divergence is not None:
        found["jensen_shannon"] = result.divergence.jensen_shannon
        found["total_variation"] = result.divergence.total_variation
    for letter, side in zip("ab", result.sides, strict=True):
        verdicts = [[one.verdict.value for one in layer] for layer in side.certificates]
        found |= {f"{letter}_verdicts": np.array(verdicts)}
        found |= {f"{letter}_{name}": array for name, array in _of_side(side).items()}
    return found


@rows.register
def _(result: Comparison) -> Iterator[Row]:
    """One fact a row: a cosine or a divergence of two layers, or a weight of one side."""
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
        for key, label in enumerate(side.head.key_tokens.labels):
            yield "weight", letter, *layers, side.head.head, key, label, exact(side.weights[key])


@comments.register
def _(result: Comparison) -> Iterator[tuple[str, object]]:
    """The comments that any result has, then head, word, certificate, model and texts of each side."""
    yield from comments.dispatch(object)(result)
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
