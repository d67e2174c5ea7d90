"""A head's weights by words, or without special tokens, as JSON, CSV and npz; scores stay with the tokens."""

from collections.abc import Iterator
from itertools import product

from attnscope.render.file_csv import Row, comments, exact, rows
from attnscope.render.file_json import Value, document, numbers
from attnscope.render.file_npz import Arrays, arrays_of
from attnscope.render.kit.certificate import certificate_words
from attnscope.render.kit.weights_words import weights_words
from attnscope.results import HeadView
from attnscope.results.view import Groups
from attnscope.tokens import Tokens


@document.register
def _(result: HeadView, arrays: bool = True) -> dict[str, Value]:
    """What describes the head and its tokens, what each row and column holds of them, and the weights."""
    described = document(result.head, arrays=False) | {
        "schema": "attnscope.view/1",
        "words": result.words,
        "special": result.special.value,
        "emptied_queries": result.emptied,
        "queries": _named(result.query_tokens, result.query_groups),
        "keys": _named(result.key_tokens, result.key_groups),
    }
    if not arrays:
        return described
    return described | {"allowed": result.allowed.tolist(), "weights": numbers(result.weights)}


def _named(tokens: Tokens, groups: Groups) -> list[Value]:
    """The label of each row or column, and the positions of the head's tokens that it holds."""
    return [
        {"label": label, "tokens": list(group)} for label, group in zip(tokens.labels, groups, strict=True)
    ]


@rows.register
def _(result: HeadView) -> Iterator[Row]:
    yield "query", "query_label", "query_tokens", "key", "key_label", "key_tokens", "allowed", "weight"
    queries, keys = (
        list(zip(tokens.labels, groups, strict=True))
        for tokens, groups in (
            (result.query_tokens, result.query_groups),
            (result.key_tokens, result.key_groups),
        )
    )
    for (i, query), (j, key) in product(enumerate(queries), enumerate(keys)):
        place = (i, query[0], _positions(query[1]), j, key[0], _positions(key[1]))
        yield *place, int(result.allowed[i, j]), exact(result.weights[i, j])


def _positions(group: tuple[int, ...]) -> str:
    return " ".join(map(str, group))


@arrays_of.register
def _(result: HeadView) -> Arrays:
    return {"weights": result.weights, "allowed": result.allowed}


@comments.register
def _(result: HeadView) -> Iterator[tuple[str, object]]:
    """The comments that any result has, then the certificate of the head, and what was joined or left out."""
    yield from comments.dispatch(object)(result)
    yield "certificate", certificate_words(result.head.certificate)
    yield from (("weights", phrase) for phrase in weights_words(result))
