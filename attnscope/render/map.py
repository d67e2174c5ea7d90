"""The map of a head in a terminal: not as a drawing but as the numbers behind it.

How far the map can be trusted comes first, then the keys of the chosen queries by weight, each with its
score and its distance, or one key as several queries see it, or of every query the strongest and the
nearest key.
"""

from collections.abc import Sequence

import numpy as np
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.cells import DIM, HEADING, line
from attnscope.render.labels import left, right, settled
from attnscope.render.map_words import DISCLAIMER, correlation_words, settings_words, trust_words
from attnscope.render.numbers import counted, signed_texts, weight_text
from attnscope.results import Projection
from attnscope.tokens import Tokens

MOST_KEYS = 60
_WIDEST_NAME, _BETWEEN = 16, 4
_BAD = "bold red"


def projection(result: Projection, queries: Sequence[int], key: int | None, width: int) -> RenderableType:
    """How far to trust the map, then what was asked for, in `width` cells.

    The keys of `queries` by weight; with a `key` also how each of them sees it, and only that where there
    are several; without queries one line for each.
    """
    parts = [*_honesty(result)]
    if not queries:
        parts += ["", *_nearest(result)]
    if queries and (key is None or len(queries) == 1):
        parts += ["", *_beside([_ranked(result, query) for query in queries], width)]
    if queries and key is not None:
        parts += ["", *_compared(result, queries, key)]
    return Group(*parts)


def _honesty(result: Projection) -> list[RenderableType]:
    settled_words = Text(" · ".join(settings_words(result)), style=DIM if result.settled else _BAD)
    return [settled_words, Text(trust_words(result)), Text(correlation_words(result)), Text(DISCLAIMER, DIM)]


def _named(tokens: Tokens, position: int) -> str:
    """`4 door`, the name cut where it is long."""
    digits = len(str(len(tokens) - 1))
    name = settled(tokens.names[position])
    return f"{position:>{digits}} {left(name, min(cell_len(name), _WIDEST_NAME))}"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[int]) -> list[Text]:
    """Columns as wide as their widest entry, those numbered in `words` from the left."""
    columns = list(zip(headings, *rows, strict=True))
    widths = [max(map(cell_len, column)) for column in columns]
    sides = [left if i in words else right for i in range(len(columns))]
    lines = [
        "  ".join(side(text, width) for side, text, width in zip(sides, row, widths, strict=True))
        for row in (headings, *rows)
    ]
    return [line((lines[0], DIM)), *map(line, lines[1:])]


def _ranked(result: Projection, query: int) -> list[Text]:
    """The keys that `query` may look at, the largest weight first."""
    head, keys = result.head, result.ranked_keys(query)
    title = line(("query ", DIM), (_named(head.query_tokens, query).lstrip(), HEADING))
    if not keys.size:
        return [title, line("has no valid key")]
    listed = keys[:MOST_KEYS]
    scores, distances = _column(head.scaled[query, listed]), _column(result.distance[query, listed], 3)
    rows = [
        [
            str(rank + 1),
            _named(head.key_tokens, key),
            weight_text(head.weights[query, key], 3),
            score,
            distance,
        ]
        for rank, (key, score, distance) in enumerate(zip(listed, scores, distances, strict=True))
    ]
    table = _table(["rank", "key", "weight", "scaled", "distance"], rows, words=[1])
    return [title, *table, *_remarks(result, query)]


def _remarks(result: Projection, query: int) -> list[Text]:
    """What the table leaves out: further keys, masked keys, the share of a sink."""
    head, keys = result.head, result.ranked_keys(query)
    remarks = []
    if (further := keys[MOST_KEYS:]).size:
        share = weight_text(float(head.weights[query, further].sum()))
        remarks.append(f"{counted(len(further), 'more key')} share {share}")
    if masked := len(head.key_tokens) - len(keys):
        remarks.append(f"{counted(masked, 'key')} masked")
    if head.sink is not None:
        remarks.append(f"the sink takes {weight_text(float(1 - head.weights[query, keys].sum()))}")
    return [line((" · ".join(remarks), DIM))] if remarks else []


def _beside(blocks: list[list[Text]], width: int) -> list[RenderableType]:
    """Blocks of lines side by side where all fit in `width`, else one under the other."""
    widths = [max(each.cell_len for each in block) for block in blocks]
    if sum(widths) + _BETWEEN * (len(blocks) - 1) > width:
        return [part for i, block in enumerate(blocks) for part in ([""] if i else []) + block]
    joined: list[RenderableType] = []
    for row in range(max(map(len, blocks))):
        text = Text(no_wrap=True)
        for block, wide in zip(blocks, widths, strict=True):
            part = block[row] if row < len(block) else Text()
            text.append_text(part)
            text.append(" " * (wide - part.cell_len + _BETWEEN))
        text.rstrip()
        joined.append(text)
    return joined


def _compared(result: Projection, queries: Sequence[int], key: int) -> list[Text]:
    """One key as each of `queries` sees it, and in words whether weight and distance agree."""
    head = result.head
    scores = _column(head.scaled[list(queries), key])
    distances = _column(result.distance[list(queries), key], 3)
    rows = []
    for query, score, distance in zip(queries, scores, distances, strict=True):
        rank = result.rank(query, key)
        seen = (
            ["masked", "-", "-"]
            if rank is None
            else [
                weight_text(head.weights[query, key], 3),
                f"{rank} of {len(result.ranked_keys(query))}",
                score,
            ]
        )
        rows.append([_named(head.query_tokens, query), *seen, distance])
    title = line(("key ", DIM), (_named(head.key_tokens, key).lstrip(), HEADING))
    headings = ["query", "weight", "rank", "scaled", "distance"]
    return [title, *_table(headings, rows, words=[0]), *_agreement(result, queries, key)]


def _agreement(result: Projection, queries: Sequence[int], key: int) -> list[Text]:
    """Whether, of two queries, the one that is nearer to `key` gives it the larger weight."""
    if len(set(queries)) != 2 or not result.head.allowed[list(queries), key].all():
        return []
    first, second = queries
    weights, distances = result.head.weights[:, key], result.distance[:, key]
    if weights[first] == weights[second] or not abs(distances[first] - distances[second]) > 0:
        return []
    heavier, lighter = (first, second) if weights[first] > weights[second] else (second, first)
    names = [result.head.query_tokens.labels[query] for query in (heavier, lighter)]
    if distances[heavier] < distances[lighter]:
        return [Text(f"{settled(names[0])} gives it the larger weight, and is nearer to it")]
    told = f"{settled(names[0])} gives it the larger weight, although {settled(names[1])} is nearer to it"
    return [Text(told)]


def _nearest(result: Projection) -> list[Text]:
    """Of every query the key with the largest weight and the key at the smallest distance."""
    head = result.head
    rows, agreeing = [], 0
    shown = np.where(head.allowed, result.distance, np.inf)
    distances = _column(shown.min(axis=1), 3)
    for query in np.flatnonzero(head.answered).tolist():
        strongest, nearest = int(result.ranked_keys(query)[0]), int(shown[query].argmin())
        agreeing += strongest == nearest
        strong = [_named(head.key_tokens, strongest), weight_text(head.weights[query, strongest], 3)]
        near = [_named(head.key_tokens, nearest), distances[query], "" if strongest == nearest else "≠"]
        rows.append([_named(head.query_tokens, query), *strong, *near])
    table = _table(["query", "strongest key", "weight", "nearest key", "distance", ""], rows, words=[0, 1, 3])
    told = f"the nearest key is the strongest for {agreeing} of {counted(len(rows), 'query')}"
    return [*table, line((told, DIM))]


def _column(values: "np.ndarray", decimals: int = 2) -> list[str]:
    texts: list[str] = signed_texts(values, decimals).tolist()
    return texts
