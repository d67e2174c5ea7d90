"""What queries and keys of a map have to do with each other: weight, rank, score and distance, in columns.

Distances are those of the full space. Names are cut where a terminal is narrow, numbers never.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from rich.cells import cell_len
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, line
from attnscope.render.kit.labels import left, right, settled
from attnscope.render.kit.numbers import counted, signed_texts, weight_text
from attnscope.render.kit.stage import NOTHING_LEFT
from attnscope.render.map.words import elsewhere_words, keyless_words
from attnscope.results import Projection
from attnscope.tokens import Tokens

MOST_KEYS = 60
_LEAST_NAME, _WIDEST_NAME = 6, 16


def ranked(result: Projection, query: int, width: int) -> list[Text]:
    """The keys that `query` may look at, the largest weight first."""
    keys = result.ranked_keys(query)
    title = line(("query ", DIM), (_named(result.query_tokens, query).lstrip(), HEADING))
    if not keys.size:
        return [title, line(keyless_words(result, query))]
    listed = keys[:MOST_KEYS]
    scores, distances = _column(result.scaled[query, listed]), _column(result.distance[query, listed], 3)
    rows = [
        [
            str(rank + 1),
            _named(result.key_tokens, key),
            weight_text(result.weights[query, key], 3),
            score,
            distance,
        ]
        for rank, (key, score, distance) in enumerate(zip(listed, scores, distances, strict=True))
    ]
    table = _table(["rank", "key", "weight", "scaled", "distance"], rows, [1], width)
    return [title, *table, *_remarks(result, query)]


def _remarks(result: Projection, query: int) -> list[Text]:
    """What the table leaves out: further keys, masked keys, the share of a sink and of special tokens."""
    keys, remarks = result.ranked_keys(query), []
    if (further := keys[MOST_KEYS:]).size:
        share = weight_text(float(result.weights[query, further].sum()))
        remarks.append(f"{counted(len(further), 'more key')} share {share}")
    if masked := len(result.key_tokens) - len(keys):
        remarks.append(f"{counted(masked, 'key')} masked")
    if elsewhere := elsewhere_words(result):
        remarks.append(f"{elsewhere} {weight_text(float(1 - result.weights[query, keys].sum()))}")
    return [line((" · ".join(remarks), DIM))] if remarks else []


def compared(result: Projection, queries: Sequence[int], key: int, width: int) -> list[Text]:
    """One key as each of `queries` sees it, and in words whether weight and distance agree."""
    scores = _column(result.scaled[list(queries), key])
    distances = _column(result.distance[list(queries), key], 3)
    rows = []
    for query, score, distance in zip(queries, scores, distances, strict=True):
        rank = result.rank(query, key)
        seen = ["-" if result.allowed[query, key] else "masked", "-", "-"]
        if rank is not None:
            place = f"{rank} of {len(result.ranked_keys(query))}"
            seen = [weight_text(result.weights[query, key], 3), place, score]
        rows.append([_named(result.query_tokens, query), *seen, distance])
    title = line(("key ", DIM), (_named(result.key_tokens, key).lstrip(), HEADING))
    headings = ["query", "weight", "rank", "scaled", "distance"]
    return [title, *_table(headings, rows, [0], width), *_agreement(result, queries, key)]


def _agreement(result: Projection, queries: Sequence[int], key: int) -> list[Text]:
    """Whether, of two queries, the one that is nearer to `key` gives it the larger weight."""
    if len(set(queries)) != 2 or any(result.rank(query, key) is None for query in queries):
        return []
    first, second = queries
    weights, distances = result.weights[:, key], result.distance[:, key]
    if weights[first] == weights[second] or not abs(distances[first] - distances[second]) > 0:
        return []
    heavier, lighter = (first, second) if weights[first] > weights[second] else (second, first)
    names = [result.query_tokens.named(query) for query in (heavier, lighter)]
    if distances[heavier] < distances[lighter]:
        return [Text(f"{settled(names[0])} gives it the larger weight, and is nearer to it")]
    told = f"{settled(names[0])} gives it the larger weight, although {settled(names[1])} is nearer to it"
    return [Text(told)]


def nearest(result: Projection, width: int) -> list[Text]:
    """Of every query the key with the largest weight and the key at the smallest distance."""
    rows = []
    shown = np.where(result.allowed, result.distance, np.inf)
    distances = _column(shown.min(axis=1), 3)
    for query in np.flatnonzero(result.answered).tolist():
        strongest, nearest = int(result.ranked_keys(query)[0]), int(shown[query].argmin())
        strong = [_named(result.key_tokens, strongest), weight_text(result.weights[query, strongest], 3)]
        near = [_named(result.key_tokens, nearest), distances[query], "" if strongest == nearest else "≠"]
        rows.append([_named(result.query_tokens, query), *strong, *near])
    table = _table(
        ["query", "strongest key", "weight", "nearest key", "distance", ""], rows, [0, 1, 3], width
    )
    told = ["≠: another key is the nearest"] if any(row[-1] for row in rows) else []
    emptied = result.view.emptied if result.view else 0
    if without := len(result.answered) - len(rows) - emptied:
        told.append(f"{counted(without, 'query')} without a valid key")
    if emptied:
        told.append(f"{counted(emptied, 'query')} with {NOTHING_LEFT}")
    return [*table, *([Text(" · ".join(told), style=DIM)] if told else [])]


def _table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[int], width: int
) -> list[Text]:
    """Columns as wide as their widest entry, those numbered in `words` from the left and cut to fit."""
    widths = [max(map(cell_len, column)) for column in zip(headings, *rows, strict=True)]
    gap = "  " if sum(widths) + 2 * len(widths) <= width else " "
    room = width - len(gap) * (len(widths) - 1) - sum(w for i, w in enumerate(widths) if i not in words)
    for i in words:
        widths[i] = min(widths[i], max(room // len(words), _LEAST_NAME))
    sides = [left if i in words else right for i in range(len(widths))]
    lines = [
        gap.join(side(text, cells) for side, text, cells in zip(sides, row, widths, strict=True))
        for row in (headings, *rows)
    ]
    return [line((lines[0], DIM)), *map(line, lines[1:])]


def _named(tokens: Tokens, position: int) -> str:
    """`4 door`, the name cut where it is long."""
    digits = len(str(max(tokens.positions)))
    name = settled(tokens.names[position])
    return f"{tokens.positions[position]:>{digits}} {left(name, min(cell_len(name), _WIDEST_NAME))}"


def _column(values: Float[np.ndarray, " row"], decimals: int = 2) -> list[str]:
    texts: list[str] = signed_texts(values, decimals).tolist()
    return texts
