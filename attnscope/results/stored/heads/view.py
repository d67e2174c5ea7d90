"""A head's weights by words, or without special tokens; scores and vectors stay with the tokens."""

from attnscope.results.heads import HeadWeights
from attnscope.results.stored.codec.damage import Damaged
from attnscope.results.stored.codec.record import Arrays, Record, made
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.strict import Value
from attnscope.results.stored.codec.tokens import pair_document, read_pair
from attnscope.results.stored.heads.head import head_arrays, read_head
from attnscope.results.view import Groups, HeadView
from attnscope.tokens import Token, Tokens

_AXES = ("row_", "column_")


@document.register
def _(result: HeadView, arrays: bool = True) -> dict[str, Value]:
    """The view, and under `by_tokens` the arrays of the head that it is of."""
    described = view_document(result, arrays)
    return described | ({"by_tokens": head_arrays(result.head)} if arrays else {})


def view_document(result: HeadView, arrays: bool = True) -> dict[str, Value]:
    """What describes the head and its tokens, what each row and column holds of them, and the weights."""
    described = document(result.head, arrays=False) | {
        "schema": "attnscope.view/1",
        "words": result.words,
        "special": result.special.value,
        "emptied_queries": result.emptied,
        "queries": _named(result.query_tokens, result.query_groups),
        "keys": _named(result.key_tokens, result.key_groups),
        **pair_document(result.query_tokens, result.key_tokens, _AXES),
        "row_written": result.query_tokens.written,
    }
    return described | ({"allowed": result.allowed, "weights": result.weights} if arrays else {})


def _named(tokens: Tokens, groups: Groups) -> list[Value]:
    """The label of each row or column, and the positions of the head's tokens that it holds."""
    return [
        {"label": label, "tokens": list(group)} for label, group in zip(tokens.labels, groups, strict=True)
    ]


@arrays_of.register
def _(result: HeadView) -> Arrays:
    """Of the head behind it, each with `by_tokens` before its name."""
    own = {f"by_tokens {name}": values for name, values in arrays_of(result.head).items()}
    return {"weights": result.weights, "allowed": result.allowed, **own}


@reads("attnscope.view/1")
def read(record: Record) -> HeadView:
    return read_view(record, read_head(_of_head(record)))


def _of_head(record: Record) -> Record:
    """The head's own arrays; what stands in the view's document under the same names is not meant."""
    own = {name: value for name, value in record.told.items() if name not in ("weights", "allowed")}
    return Record(own, record.arrays, record.prefix, record.old).beside("by_tokens", "by_tokens ")


def read_view(record: Record, head: HeadWeights) -> HeadView:
    """The view of a head that is read already."""
    queries, keys = (_groups(record, name) for name in ("queries", "keys"))
    for groups, tokens in ((queries, head.query_tokens), (keys, head.key_tokens)):
        if any(not group or not all(0 <= each < len(tokens) for each in group) for group in groups):
            raise Damaged("'queries' and 'keys' hold tokens that the head does not have")
    query_tokens, key_tokens = _axes(record, head)
    if (len(query_tokens), len(key_tokens)) != (len(queries), len(keys)):
        raise Damaged("'queries' and 'keys' are not as many as rows and columns")
    record.sizes.update(query=len(queries), key=len(keys))
    members = {"query_groups": queries, "key_groups": keys}
    return made(HeadView, record, head=head, query_tokens=query_tokens, key_tokens=key_tokens, **members)


def _groups(record: Record, name: str) -> Groups:
    return tuple(each.get("tokens", tuple[int, ...]) for each in record.parts(name))


def _axes(record: Record, head: HeadWeights) -> tuple[Tokens, Tokens]:
    """The words or tokens of rows and columns; an old file has no more than their labels."""
    if not record.old:
        wrote = record.get("row_written", str)
        query, key = read_pair(Record({**record.told, "written": wrote}, record.arrays), _AXES)
        return query, key
    query = _labelled(record, "queries", head.query_tokens)
    return query, query if head.key_tokens is head.query_tokens else _labelled(
        record, "keys", head.key_tokens
    )


def _labelled(record: Record, name: str, tokens: Tokens) -> Tokens:
    labels = [each.get("label", str) for each in record.parts(name)]
    items = tuple(Token(-1, label, label, None, None) for label in labels)
    return Tokens(tokens.texts, items, written=tokens.written)
