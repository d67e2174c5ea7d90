"""One head on a long text: its blocks or a window pair by pair, and queries with their strongest keys."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import counted, weight, weight_cell
from attnscope.render.kit.scale import scale_of
from attnscope.render.kit.words.header import model_words, where_words
from attnscope.render.kit.words.weights import special_words
from attnscope.render.sheet.blocks import Matrix, Named, Names, Ranking
from attnscope.render.sheet.said import at, certified, in_sentence, limits, numbered
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Mark, Table
from attnscope.render.sheets.looking import NO_CONTROL, about, seen_of, tokens_looked_at
from attnscope.results import LongHead
from attnscope.tokens import Tokens
from attnscope.vocabulary import Kind, Pool, Scaling

_EXCERPT = 300  # characters of a text that is far too long to be printed
_RANKS = ("strongest", "second", "third", "fourth", "fifth")
_MOST_KEYS, _LABEL = 25, 16  # keys of one query; cells of a token beside others
_NAMED = 3  # keys of a sentence


def sheet(result: LongHead, focus: Focus = WHOLE) -> Sheet:
    matrix = _matrix(result, focus.scale)
    below = _listed(result, focus.rows) if result.query is None else _of_query(result, result.query)
    return Sheet(
        title=result.name,
        setting=f"{where_words(result)} · {_window(result)} · {model_words(result.provenance)}",
        origins=(result.provenance,),
        answer=_answer(result),
        blocks=(matrix, below),
        table=lambda: Table.of("query query_token rank key key_token weight", _facts(result)),
        texts=tuple(_texts(result)),
        notes=limits(result),
        departs=(f"block {result.block} of {result.blocks}",) if result.blocks > 1 else (),
        proof=certified(result.certificate, focus.verbose),
        main=matrix,
        summary=(where_words(result), _window(result)),
    )


def _texts(result: LongHead) -> Iterator[str]:
    sides = {"": result.query_tokens}
    if result.key_tokens != result.query_tokens:
        sides = {"query ": result.query_tokens, "key   ": result.key_tokens}
    for name, tokens in sides.items():
        if text := tokens.sentence:
            cut = text[:_EXCERPT].strip()
            yield f"{name}“{cut}”" if len(text) <= _EXCERPT else f"{name}“{cut}…”"


def _window(result: LongHead) -> str:
    sides = ("queries", len(result.query_tokens)), ("keys", len(result.key_tokens))
    if result.whole:
        return " x ".join(f"{count:,} {noun}" for noun, count in sides)
    return ", ".join(
        f"{noun} {first}-{first + size - 1} of {count:,}"
        for (noun, count), first, size in zip(sides, result.first, result.size, strict=True)
    )


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
        says=_cell(result),
        unanswered="",
        measured=scale.label,
        coarser=partial(_coarser, result, asked),
    )


def _coarser(result: LongHead, asked: Scaling, rows: int, columns: int) -> Matrix:
    return _matrix(result.coarser(rows, columns), asked)


def _side(tokens: Tokens, first: int, size: int, step: int) -> Named:
    starts = tuple(range(first, first + size, step))
    names = tuple(settled(tokens.names[i]) if step == 1 else "" for i in starts)
    return Names(names, starts)


def _cell(result: LongHead) -> str:
    if result.exact:
        return "every cell is one weight"
    what = "the largest weight" if result.pool is Pool.MAX else "the mean weight"
    sizes = [counted(step, noun) for step, noun in zip(result.steps, ("query", "key"), strict=True)]
    return f"every cell is {what} of {' x '.join(sizes)}, numbered by its first"


def _listed(result: LongHead, asked: int | None) -> Ranking:
    first, size = result.first[0], result.size[0]
    count = size if asked is None else min(asked, size)
    rows = [first + round(i * (size - 1) / max(count - 1, 1)) for i in range(count)]
    columns = [
        Column(f"rank_{rank}", [_key(result, row, rank) for row in rows], heading, spared=rank)
        for rank, heading in zip(range(result.top_keys.shape[1]), _RANKS, strict=False)
    ]
    which = "every query" if count == size else f"{counted(count, 'query')}, evenly spaced"
    return Ranking(
        title=f"{which}, with the strongest keys",
        of="query",
        names=numbered(result.query_tokens, rows),
        table=Table(*columns),
        says="--query N ranks the keys of one",
        hidden=size - count,
    )


def _key(result: LongHead, query: int, rank: int) -> str:
    key = int(result.top_keys[query, rank])
    if key < 0:
        return "no valid key" if rank == 0 else ""
    told = f"{fit(at(result.key_tokens, key), _LABEL)} {weight(float(result.top_weights[query, rank]), 3)}"
    return told.replace(" ", "\u00a0")  # in one line


def _of_query(result: LongHead, query: int) -> Ranking:
    assert result.row is not None, "a query comes with its row"
    there = np.nan_to_num(result.row)
    ranked = [int(key) for key in np.argsort(-there, kind="stable")[:_MOST_KEYS] if there[key] > 0]
    weights = [float(there[key]) for key in ranked]
    rest = max(1 - sum(weights), 0.0)
    told = f"{weight(rest, 3)} of the weight lies on other keys" if rest >= 0.0005 else ""
    return Ranking(
        title=f"query {at(result.query_tokens, query)}",
        of="key",
        names=numbered(result.key_tokens, ranked),
        table=Table(Column("weight", weights, "weight", partial(weight, decimals=3))),
        measured="attention weight",
        marks=(Mark("bar", "own", "", weights),),
        written="weight",
        says=told if ranked else "no valid key",
    )


def _answer(result: LongHead) -> str:
    if result.query is not None and result.row is not None:
        keys = [
            key for key in np.argsort(-result.row, kind="stable").tolist()[:_NAMED] if result.row[key] > 0
        ]
        most = [f"{in_sentence(result.key_tokens, key)} {weight(float(result.row[key]))}" for key in keys]
        told = ", then ".join([*most[:1], ", ".join(most[1:])][: len(most)]) or "no key any weight"
        return (
            f"From {in_sentence(result.query_tokens, result.query)}, {result.name} gives {told}. {NO_CONTROL}"
        )
    there = result.entropy[~np.isnan(result.entropy)]
    if not there.size:
        return "No query has a key."
    seen = seen_of(result.kind, len(result.key_tokens), result.kind is Kind.DECODER)
    told = f"{result.name} {about(tokens_looked_at(float(there.mean())), seen)}"
    special = special_words(result.special_mass)
    return f"{told}; {special}. {NO_CONTROL}" if special else f"{told}. {NO_CONTROL}"


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
