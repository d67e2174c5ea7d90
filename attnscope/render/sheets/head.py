"""One head: a stage of it as a matrix, or of one query its keys or its vector.

A head that was read in full has all stages; of a view, and of returned weights, there are weights.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import alike_texts, counted, parameter, weight, weight_cell
from attnscope.render.kit.stage import NO_KEY, NOTHING_LEFT, OF_KEYS, VECTORS, Panel, only, panel
from attnscope.render.kit.words.command import looked_at
from attnscope.render.kit.words.header import where_words
from attnscope.render.kit.words.weights import head_of, spans, special_words, sums_words, view_words
from attnscope.render.sheet.blocks import Block, Dimensions, KeyBars, Matrix
from attnscope.render.sheet.said import (
    at,
    certified,
    departures,
    features,
    limits,
    numbered,
    of_head,
    read,
    setting,
    span_notes,
)
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Mark, Table
from attnscope.render.sheets.head_words import answer, listed, said
from attnscope.render.sheets.telling import most_telling, next_question
from attnscope.render.words import Said
from attnscope.results import HeadAttention, HeadView, HeadWeights, Special

_WHOLE = "rows sum to 1"
_FULL_BARS = (0.05, 0.1, 0.2, 0.5, 1.0)


def sheet(result: HeadWeights | HeadView, focus: Focus = WHOLE) -> Sheet:
    own, shown = head_of(result), panel(result, focus.stage, focus.scale)
    queries, keys = (
        counted(count, word) for count, word in zip(result.weights.shape, ("query", "key"), strict=True)
    )
    say = said(result, focus)
    block, notes = _looked_at(result, shown, focus, say)
    pair: tuple[int, int | None] | None
    pair = None if shown.column_tokens is None else result.strongest
    if focus.query is not None:  # of k and v it is a key, from which no link goes
        pair = None if shown.show in OF_KEYS else (focus.query, focus.key)
    told = *_beside(result, shown, focus, say), say("formula", focus.stage), *limits(own)
    beside = tuple(each for each in told if each)
    return Sheet(
        title=say("title", "" if shown.show == "weights" else shown.title),
        setting=setting(own),
        origins=(own.provenance,),
        answer=answer(result, focus, say),
        blocks=(block,),
        table=lambda: _every(result),
        texts=read(own.kind, own.query_tokens, own.key_tokens),
        notes=beside,
        legend=features(own),
        details=tuple(each for each in notes if each and each not in beside),
        proof=certified(own.certificate, focus.verbose),
        main=block,
        summary=(where_words(own), f"{queries} x {keys}"),
        record=of_head(own),
        departs=_departs(result),
        next=_next(result, pair, say),
        opens=_opens(result, pair),
    )


def _opens(result: HeadWeights | HeadView, pair: tuple[int, int | None] | None) -> dict[str, object]:
    query, key = pair or (None, None)
    found: dict[str, object] = {"query": query, "key": key}
    if isinstance(result, HeadView):
        found |= {"words": result.by.joins, "special": result.special.value}
    if isinstance(result, HeadView) and spans(result):  # which a page has not got: of a span its first token
        sides = {"query": (result.query_groups, query), "key": (result.key_groups, key)}
        shown = result.special is Special.SHOW
        found |= {
            name: groups[at][0] if shown and at is not None else None for name, (groups, at) in sides.items()
        }
    return {name: value for name, value in found.items() if value is not None}


def _departs(result: HeadWeights | HeadView) -> tuple[str, ...]:
    return departures(result.by, result.special) if isinstance(result, HeadView) else ()


def _next(result: HeadWeights | HeadView, pair: tuple[int, int | None] | None, say: Said) -> Next | None:
    own = head_of(result)
    if pair is None or not own.query_tokens.texts or not own.key_tokens.texts:
        return None
    query, key = pair
    if key is None or not result.allowed[query, key]:
        if not result.answered[query]:
            return None
        key = int(np.argmax(np.where(result.allowed[query], result.weights[query], -1.0)))
    looking = looked_at(result.by, result.special) if isinstance(result, HeadView) else ""
    return next_question(result, say, query, key, looking)


def _looked_at(
    result: HeadWeights | HeadView, shown: Panel, focus: Focus, say: Said
) -> tuple[Block, Sequence[str]]:
    query = focus.query
    if query is None:
        words = sums_words(result), special_words(head_of(result).special_mass), *view_words(result)
        return _matrix(result, shown, focus.rows, say), words if shown.show == "weights" else ()
    if shown.show in VECTORS:
        return _vector(only(shown, query), say), ()
    pieces = result.query_groups[query] if isinstance(result, HeadView) else (query,)
    special = special_words(head_of(result).special_mass_of(pieces), say("of_query"))
    block = _keys(result, _matrix(result, shown, 0, say), query, focus.key, say)
    return block, (special, " · ".join(view_words(result)))


def _beside(result: HeadWeights | HeadView, shown: Panel, focus: Focus, say: Said) -> Iterator[str]:
    if shown.show == "weights" and (sums := sums_words(result)) != _WHOLE:
        yield sums
    if shown.column_tokens is not None:
        yield " · ".join(say.lines("left_out")) if focus.query is not None else ""
        yield from say.lines("notes")
    if isinstance(result, HeadView) and spans(result):
        asked, given = (0 if at is None else at for at in (focus.query, focus.key))
        queries, keys = result.query_groups[asked], result.key_groups[given]
        names = result.query_tokens.names[asked], result.key_tokens.names[given]
        yield from span_notes(names[0], queries, names[1], keys)


def _keys(result: HeadWeights | HeadView, matrix: Matrix, query: int, key: int | None, say: Said) -> KeyBars:
    """The strongest keys of a query, and `key` however weak, each with its weight and its scaled score."""
    shown = listed(result, query, key)
    weights = [float(result.weights[query, each]) for each in shown]
    full = next((full for full in _FULL_BARS if max(weights, default=0.0) <= full), 1.0)
    columns = [Column("weight", weights, "weight", partial(weight, decimals=3))]
    if isinstance(result, HeadAttention):
        texts = alike_texts(result.scaled[query, shown], 2).tolist() if shown else []
        columns.append(Column("scaled", result.scaled[query, shown].tolist(), "scaled", told=texts))
    reason = NOTHING_LEFT if say.facts["query_emptied"] else NO_KEY
    return KeyBars(
        title=say("query_of_bars", at(result.query_tokens, query)),
        of="key",
        names=numbered(result.key_tokens, shown),
        table=Table(*columns),
        says=say("full_bar", parameter(full)) if shown else say("no_bar", reason),
        chosen=frozenset(i for i, each in enumerate(shown) if each == key),
        marks=(Mark("bar", "own", "", weights),),
        measured="attention weight",
        written="weight",
        axis=(0.0, full),
        matrix=matrix,
        query=query,
        pointed=key,
        above=key is not None,
    )


def _matrix(result: HeadWeights | HeadView, shown: Panel, rows: int | None, say: Said) -> Matrix:
    pairs, weights = shown.column_tokens is not None, shown.show == "weights"
    some = tuple(most_telling(result, shown, rows)) if pairs else ()
    chosen = say("chosen", len(some), shown.show) if 0 < len(some) < len(shown.row_tokens) else ""
    return Matrix(
        title=shown.title,
        words=(shown.row_word, shown.column_word),
        rows=shown.row_tokens,
        columns=shown.column_tokens or Dimensions.of(shown.values.shape[1]),
        values=np.where(shown.visible, shown.values, np.nan),
        scale=shown.scale if weights else Scale(-(shown.extent or 1.0), shown.extent or 1.0, "signed"),
        form=weight_cell if weights else None,
        unanswered=shown.unanswered,
        measured=shown.scale.label if weights else shown.title,
        listed=some,
        listing=(chosen, say("more_rows")) if chosen else (),
    )


def _vector(shown: Panel, say: Said) -> Matrix:
    values, there = shown.values[0], bool(shown.answered[0])
    return Matrix(
        title=say("vector", shown.show, settled(shown.row_tokens.named(0))),
        words=(shown.row_word, shown.column_word),
        rows=shown.row_tokens,
        columns=Dimensions.of(len(values)),
        values=np.where(shown.visible, shown.values, np.nan),
        scale=Scale(-(shown.extent or 1.0), shown.extent or 1.0, "signed"),
        form=None,
        says=say("size", len(values), float((values**2).sum() ** 0.5)) if there else "",
        unanswered=shown.unanswered,
        measured=shown.title,
    )


def _every(result: HeadWeights | HeadView) -> Table:
    queries, keys = result.weights.shape
    asked, looked_at = np.repeat(range(queries), keys).tolist(), list(range(keys)) * queries
    stages = {"weight": result.weights}
    allowed = Column("allowed", result.allowed.astype(int).ravel().tolist())
    if isinstance(result, HeadAttention):
        stages = {"score": result.scores, **result.terms, "scaled": result.scaled, "weight": result.weights}
    numbers = [Column(name, np.asarray(stage, float).ravel().tolist()) for name, stage in stages.items()]
    if not isinstance(result, HeadView):
        given = [allowed] if isinstance(result, HeadAttention) else []
        return Table(
            Column("query", asked), Column("query_token", [result.query_tokens.labels[i] for i in asked]),
            Column("key", looked_at), Column("key_token", [result.key_tokens.labels[i] for i in looked_at]),
            *given, *numbers,
        )  # fmt: skip
    groups = [
        [" ".join(map(str, group)) for group in side] for side in (result.query_groups, result.key_groups)
    ]
    return Table(
        Column("query", asked), Column("query_label", [result.query_tokens.labels[i] for i in asked]),
        Column("query_tokens", [groups[0][i] for i in asked]),
        Column("key", looked_at), Column("key_label", [result.key_tokens.labels[i] for i in looked_at]),
        Column("key_tokens", [groups[1][i] for i in looked_at]), allowed, *numbers,
    )  # fmt: skip
