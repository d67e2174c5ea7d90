"""Every head of a model at a glance: a small picture of the weights of each, all on one scale."""

from collections.abc import Iterator

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import counted, weight
from attnscope.render.kit.scale import Scale as Weights
from attnscope.render.kit.scale import scale_of
from attnscope.render.kit.words.command import looked_at, opening_head
from attnscope.render.sheet.heads import HeadMatrices
from attnscope.render.sheet.said import (
    attention,
    departures,
    grid_size,
    in_sentence,
    limits,
    named,
    proof,
    read,
    setting,
    view_notes,
)
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Table
from attnscope.results import Special, Thumbnails
from attnscope.tokens import Patches
from attnscope.vocabulary import Scaling


def sheet(result: Thumbnails, focus: Focus = WHOLE) -> Sheet:
    scale = common_scale(result, focus.scale)
    size = f"{len(result.query_tokens)} queries x {len(result.key_tokens)} keys"
    cell = f", each cell {pooled}" if (pooled := pooled_words(result)) else ""
    heads = HeadMatrices(
        title=f"each head: {size}{cell}",
        layers=result.layers,
        heads=result.heads,
        values=result.weights,
        scale=scale,
        verdicts=result.verdicts,
        says="rows: queries, columns: keys" + (f"; colours of all heads: {scale.told}" if scale.told else ""),
    )
    opened = opening_head(result, result.layers[0], result.heads[0])
    by_tokens = " by tokens" if result.by.joins or result.special is not Special.SHOW else ""
    return Sheet(
        title=grid_size(result.layers, result.heads),
        setting=setting(result),
        origins=(result.provenance,),
        answer=_answer(result),
        blocks=(heads,),
        table=lambda: Table.of("layer head query query_token key key_token weight", _facts(result)),
        texts=read(result.kind, result.query_tokens, result.key_tokens),
        notes=limits(result),
        legend=tuple(_legend(result)),
        departs=departures(result.by, result.special),
        proof=proof((each for row in result.verdicts for each in row), "head", by_tokens),
        main=heads,
        summary=(attention(result.kind, result.tower),),
        record=(("kind", result.kind.value), ("tower", result.tower)),
        next=Next("look into one", f"{opened}{looked_at(result.by, result.special)}"),
    )


def common_scale(result: Thumbnails, asked: Scaling = Scaling.SQRT) -> Weights:
    """One scale for every head; it has no rows of its own."""
    cells = result.weights.reshape(-1, result.weights.shape[-1])
    found = scale_of(cells, np.isfinite(cells), asked)
    return Weights(found.kind, np.array([found.top]), found.least)


def _answer(result: Thumbnails) -> str:
    free = np.isfinite(result.weights).sum(axis=3, keepdims=True) > 1
    weights = np.where(free, np.nan_to_num(result.weights, nan=-1.0), -1.0)
    i, j, row, column = (int(each) for each in np.unravel_index(weights.argmax(), weights.shape))
    if (largest := float(weights[i, j, row, column])) < 0:
        return "No query may look at more than one key."
    queries, keys = result.steps
    query = in_sentence(result.query_tokens, row * queries)
    key = in_sentence(result.key_tokens, column * keys)
    places = (
        f"from {f'one of the {queries} queries at ' if queries > 1 else ''}{query} "
        f"to {f'one of the {keys} keys at ' if keys > 1 else ''}{key}"
    )
    return f"The largest weight is {weight(largest, 3)}, of {named(result, (i, j))} {places}."


def pooled_words(result: Thumbnails) -> str:
    """What a cell is that stands for several pairs: `the largest weight of 1 query x 2 keys`."""
    pairs = zip(result.steps, ("query", "key"), strict=True)
    return (
        f"the largest weight of {' x '.join(counted(*each) for each in pairs)}"
        if max(result.steps) > 1
        else ""
    )


def _legend(result: Thumbnails) -> Iterator[str]:
    stretches = *result.query_tokens.stretches, *result.key_tokens.stretches
    if any(isinstance(each, Patches) for each in stretches):
        yield "patches row by row"
    yield from view_notes(result.by, result.special)


def _facts(result: Thumbnails) -> Iterator[tuple[object, ...]]:
    queries, keys = result.query_tokens.labels, result.key_tokens.labels
    for i, j, row, column in np.argwhere(~np.isnan(result.weights)).tolist():
        query, key = row * result.steps[0], column * result.steps[1]
        given = float(result.weights[i, j, row, column])
        yield result.layers[i], result.heads[j], query, queries[query], key, keys[key], given
