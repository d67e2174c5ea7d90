"""One head as CSV, a row per query and key: every stage of it, or the weights as they are looked at."""

from collections.abc import Iterator
from itertools import product

from attnscope.render.kit.csv import Row, comments, exact, rows
from attnscope.render.kit.words.certificate import certificate_words
from attnscope.render.kit.words.weights import weights_words
from attnscope.results import HeadAttention, HeadView, HeadWeights


@rows.register
def _(result: HeadAttention) -> Iterator[Row]:
    terms = tuple(result.terms)
    yield "query", "query_token", "key", "key_token", "allowed", "score", *terms, "scaled", "weight"
    queries, keys = result.query_tokens.labels, result.key_tokens.labels
    for query, key in product(range(len(queries)), range(len(keys))):
        stages = (result.scores, *result.terms.values(), result.scaled, result.weights)
        values = (exact(stage[query, key]) for stage in stages)
        yield query, queries[query], key, keys[key], int(result.allowed[query, key]), *values


@rows.register
def _(result: HeadWeights) -> Iterator[Row]:
    yield "query", "query_token", "key", "key_token", "weight"
    queries, keys = result.query_tokens.labels, result.key_tokens.labels
    for query, key in product(range(len(queries)), range(len(keys))):
        yield query, queries[query], key, keys[key], exact(result.weights[query, key])


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


@comments.register
def _(result: HeadView) -> Iterator[tuple[str, object]]:
    """The comments that any result has, then the certificate of the head, and what was joined or left out."""
    yield from comments.dispatch(object)(result)
    yield "certificate", certificate_words(result.head.certificate)
    yield from (("weights", phrase) for phrase in weights_words(result))
