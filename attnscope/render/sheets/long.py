"""Sheet of one head on a long text: blocks or a window of pairs, and queries with their strongest keys."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from attnscope.render.kit.cells import fit, settled
from attnscope.render.kit.numbers import weight, weight_cell
from attnscope.render.kit.palette import scale_of
from attnscope.render.kit.words import many, model_words, tokens_looked_at
from attnscope.render.sheet.blocks import Matrix, Named, Names, Ranking
from attnscope.render.sheet.said import at, attention, certified, in_sentence, limits, numbered
from attnscope.render.sheet.sheet import Sheet, saying
from attnscope.render.sheet.table import Column, Mark, Table
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import LongHead
from attnscope.tokens import Tokens
from attnscope.vocabulary import Kind, Pool, Scaling

_EXCERPT = 300  # characters of a text that is far too long to be printed
_RANKS = ("strongest", "second", "third", "fourth", "fifth")
_MOST_KEYS, _LABEL = 25, 16  # keys of one query; cells of a token beside others
_NAMED = 3  # keys of a sentence


def sheet(result: LongHead, focus: Focus = WHOLE) -> Sheet:
    matrix, say = _matrix(result, focus.scale), said(result)
    below = _listed(result, focus.rows, say) if result.query is None else _of_query(result, result.query, say)
    return saying(
        say,
        title=result.name,
        setting=" · ".join(
            (attention(result.kind, result.tower), say("window"), model_words(result.provenance))
        ),
        blocks=(matrix, below),
        table=lambda: Table.of("query query_token rank key key_token weight", _facts(result)),
        texts=tuple(_texts(result)),
        notes=limits(result),
        departs=tuple(say.lines("block")),
        proof=certified(result.certificate, focus.verbose),
        main=matrix,
        summary=(attention(result.kind, result.tower), say("window")),
    )


def _texts(result: LongHead) -> Iterator[str]:
    sides = {"": result.query_tokens}
    if result.key_tokens != result.query_tokens:
        sides = {"query ": result.query_tokens, "key   ": result.key_tokens}
    for name, tokens in sides.items():
        if text := tokens.sentence:
            cut = text[:_EXCERPT].strip()
            yield f"{name}“{cut}”" if len(text) <= _EXCERPT else f"{name}“{cut}…”"


def said(result: LongHead) -> Said:
    """Sentences of `heads` about one head of a long text."""
    row = np.nan_to_num(result.row) if result.row is not None else np.zeros(0)
    strongest = [key for key in np.argsort(-row, kind="stable").tolist()[:_NAMED] if row[key] > 0]
    keys, mass, entropy = result.key_tokens, result.special_mass, result.entropy
    facts = {
        "head": result.name,
        "queries": len(result.query_tokens),
        "keys": len(keys),
        "cross": result.kind is Kind.CROSS,
        "masked": result.kind is Kind.DECODER,
        "tokens": None if np.isnan(entropy).all() else many(tokens_looked_at(float(np.nanmean(entropy)))),
        "special": None if mass is None else settled(max(mass.by_name, key=lambda name: mass.by_name[name])),
        "special_share": None if mass is None else mass.total,
        "query": None if result.query is None else in_sentence(result.query_tokens, result.query),
        "strongest": [f"{in_sentence(keys, key)} {weight(float(row[key]))}" for key in strongest],
        "largest": result.pool is Pool.MAX,
        "block_number": result.block,
    }
    return Said("long", result, facts)


def _matrix(result: LongHead, asked: Scaling) -> Matrix:
    cells = result.cells
    visible = ~np.isnan(cells)
    scale = scale_of(cells, visible, asked)
    sides = zip(
        (result.query_tokens, result.key_tokens), result.first, result.size, result.steps, strict=True
    )
    rows, columns = (_side(*side) for side in sides)
    return Matrix(
        title="attention weight",
        words=("query", "key"),
        rows=rows,
        columns=columns,
        values=cells,
        scale=scale,
        form=weight_cell,
        says=said(result)("cell", *result.steps),
        unanswered="",
        measured=scale.label,
        coarser=lambda rows, columns: _matrix(result.coarser(rows, columns), asked),
    )


def _side(tokens: Tokens, first: int, size: int, step: int) -> Named:
    starts = tuple(range(first, first + size, step))
    names = tuple(settled(tokens.names[i]) if step == 1 else "" for i in starts)
    return Names(names, starts)


def _listed(result: LongHead, asked: int | None, say: Said) -> Ranking:
    first, size = result.first[0], result.size[0]
    count = size if asked is None else min(asked, size)
    rows = [first + round(i * (size - 1) / max(count - 1, 1)) for i in range(count)]
    columns = [
        Column(f"rank_{rank}", [_key(result, row, rank, say) for row in rows], heading, spared=rank)
        for rank, heading in zip(range(result.top_keys.shape[1]), _RANKS, strict=False)
    ]
    return Ranking(
        title=say("listed", count, count == size),
        of="query",
        names=numbered(result.query_tokens, rows),
        table=Table(*columns),
        says=say("one_query"),
        hidden=size - count,
    )


def _key(result: LongHead, query: int, rank: int, say: Said) -> str:
    key = int(result.top_keys[query, rank])
    if key < 0:
        return say("without_key") if rank == 0 else ""
    told = f"{fit(at(result.key_tokens, key), _LABEL)} {weight(float(result.top_weights[query, rank]), 3)}"
    return told.replace(" ", "\u00a0")  # in one line


def _of_query(result: LongHead, query: int, say: Said) -> Ranking:
    assert result.row is not None, "a query comes with its row"
    there = np.nan_to_num(result.row)
    ranked = [int(key) for key in np.argsort(-there, kind="stable")[:_MOST_KEYS] if there[key] > 0]
    weights = [float(there[key]) for key in ranked]
    rest = max(1 - sum(weights), 0.0)
    told = say("rest", rest) if rest >= 0.0005 else ""
    return Ranking(
        title=f"query {at(result.query_tokens, query)}",
        of="key",
        names=numbered(result.key_tokens, ranked),
        table=Table(Column("weight", weights, "weight", partial(weight, decimals=3))),
        measured="attention weight",
        marks=(Mark("bar", "own", "", weights),),
        written="weight",
        says=told if ranked else say("without_key"),
    )


def _facts(result: LongHead) -> Iterator[tuple[object, ...]]:
    queries, keys = result.query_tokens.labels, result.key_tokens.labels
    if result.query is not None and result.row is not None:
        for rank, key in enumerate(np.argsort(-result.row, kind="stable").tolist()):
            yield result.query, queries[result.query], rank, key, keys[key], float(result.row[key])
    elif result.exact and not result.whole:
        for row, column in np.argwhere(~np.isnan(result.mean)).tolist():
            query, key = result.first[0] + row, result.first[1] + column
            yield query, queries[query], "", key, keys[key], float(result.mean[row, column])
    else:
        for query, rank in np.argwhere(result.top_keys >= 0).tolist():
            key = int(result.top_keys[query, rank])
            yield query, queries[query], rank, key, keys[key], float(result.top_weights[query, rank])
