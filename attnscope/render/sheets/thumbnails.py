"""Sheet of every head's weights as a small picture, all on one scale."""

from collections.abc import Iterator

import numpy as np

from attnscope.render.kit.command import looked_at, opening_head
from attnscope.render.kit.palette import Scale as Weights
from attnscope.render.kit.palette import scale_of
from attnscope.render.sheet.heads import HeadMatrices
from attnscope.render.sheet.said import (
    attention,
    departures,
    grid_size,
    in_sentence,
    named,
    proof,
    view_notes,
)
from attnscope.render.sheet.sheet import Next, Sheet, saying
from attnscope.render.sheet.table import Table
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import Special, Thumbnails
from attnscope.tokens import Patches
from attnscope.vocabulary import Scaling


def sheet(result: Thumbnails, focus: Focus = WHOLE) -> Sheet:
    scale, say = common_scale(result, focus.scale), said(result)
    heads = HeadMatrices(
        title=say("picture_title"),
        layers=result.layers,
        heads=result.heads,
        values=result.weights,
        scale=scale,
        verdicts=result.verdicts,
        says=say("picture_says", scale.told),
    )
    opened = opening_head(result, result.layers[0], result.heads[0])
    by_tokens = " by tokens" if result.by.joins or result.special is not Special.SHOW else ""
    return saying(
        say,
        result,
        title=grid_size(result.layers, result.heads),
        blocks=(heads,),
        table=lambda: Table.of("layer head query query_token key key_token weight", _records(result)),
        legend=(*say.lines("legend"), *view_notes(result.by, result.special)),
        departs=departures(result.by, result.special),
        proof=proof((each for row in result.verdicts for each in row), "head", by_tokens),
        main=heads,
        summary=(attention(result.kind, result.tower),),
        record=(("kind", result.kind.value), ("tower", result.tower)),
        next=Next(say("look_into_one"), f"{opened}{looked_at(result.by, result.special)}"),
    )


def common_scale(result: Thumbnails, asked: Scaling = Scaling.SQRT) -> Weights:
    """One scale for the weights of all heads."""
    cells = result.weights.reshape(-1, result.weights.shape[-1])
    found = scale_of(cells, np.isfinite(cells), asked)
    return Weights(found.kind, np.array([found.top]), found.least)


def said(result: Thumbnails) -> Said:
    """Sentences of `heads --grid` about this result."""
    queries, keys = result.steps
    stretches = *result.query_tokens.stretches, *result.key_tokens.stretches
    i, j, row, column = result.largest or (0, 0, 0, 0)
    facts = {
        "heads": len(result.layers) * len(result.heads),
        "head": named(result, (i, j)),
        "own": float(result.weights[i, j, row, column]),
        "query": in_sentence(result.query_tokens, row * queries),
        "key": in_sentence(result.key_tokens, column * keys),
        "rows": len(result.query_tokens),
        "columns": len(result.key_tokens),
        "queries": queries,
        "keys": keys,
        "patches": any(isinstance(each, Patches) for each in stretches),
    }
    return Said("thumbnails", result, facts)


def pooled_words(result: Thumbnails) -> str:
    """Meaning of a cell that pools several pairs: `the largest weight of 1 query x 2 keys`."""
    return said(result)("pooled")


def _records(result: Thumbnails) -> Iterator[tuple[object, ...]]:
    queries, keys = result.query_tokens.labels, result.key_tokens.labels
    for i, j, row, column in np.argwhere(~np.isnan(result.weights)).tolist():
        query, key = row * result.steps[0], column * result.steps[1]
        given = float(result.weights[i, j, row, column])
        yield result.layers[i], result.heads[j], query, queries[query], key, keys[key], given
