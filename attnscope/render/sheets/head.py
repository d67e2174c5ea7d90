"""Sheet of one head: a stage as a matrix, or the keys or the vector of one query.

A head that was recomputed has all stages; views and returned weights have weights only.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from jaxtyping import Float

from attnscope.render.kit.cells import settled
from attnscope.render.kit.command import asking, label, looked_at
from attnscope.render.kit.numbers import (
    alike,
    alike_texts,
    counted,
    descending,
    parameter,
    weight,
    weight_cell,
)
from attnscope.render.kit.stage import NO_KEY, NOTHING_LEFT, OF_KEYS, VECTORS, Panel, only, panel
from attnscope.render.kit.words import (
    head_of,
    many,
    mean_entropy,
    mostly,
    spans,
    special_words,
    sums_words,
    tokens_looked_at,
    view_words,
)
from attnscope.render.sheet.blocks import Block, Dimensions, KeyBars, Matrix
from attnscope.render.sheet.said import (
    at,
    attention,
    certified,
    departures,
    in_sentence,
    limits,
    numbered,
    of_head,
    span_notes,
)
from attnscope.render.sheet.sheet import Next, Sheet, saying
from attnscope.render.sheet.table import Column, Mark, Scale, Table
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import HeadAttention, HeadView, HeadWeights, Special
from attnscope.results.base.strongest import MOST, at_distance
from attnscope.results.base.strongest import even as even_weight
from attnscope.vocabulary import Unit

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
    return saying(
        say,
        own,
        title=say("title", "" if shown.show == "weights" else shown.title),
        answer=answer(result, focus, say),
        blocks=(block,),
        table=lambda: _every(result),
        notes=beside,
        details=tuple(each for each in notes if each and each not in beside),
        proof=certified(own.certificate, focus.verbose),
        main=block,
        summary=(attention(own.kind, own.tower), f"{queries} x {keys}"),
        record=of_head(own),
        departs=departures(result.by, result.special) if isinstance(result, HeadView) else (),
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


def most_telling(result: HeadWeights | HeadView, shown: Panel, most: int | None) -> list[int]:
    """Rows of the `most` queries with the largest weight (above its expected one, if known), largest first.

    All rows in order where there are no more, or `most` is None.
    """
    rows = len(shown.row_tokens)
    if most is None or rows <= most:
        return list(range(rows))
    above: Float[np.ndarray, "row column"] = shown.values
    if result.expected is not None and shown.show == "weights":
        above = shown.values - result.expected
    best = np.where(result.rest.pairs & shown.visible, above, -np.inf).max(axis=1)
    return [int(row) for row in np.argsort(-best, kind="stable")[:most]]


def next_question(result: HeadWeights | HeadView, say: Said, query: int, key: int, options: str = "") -> Next:
    """Next question: whether the head looks by words or by position, tried on shuffled texts.

    For a text that cannot be shuffled, such as a single word, the question is about all heads.
    """
    own, asked = head_of(result), label(result.query_tokens, query)
    kept = result.query_groups[query] if isinstance(result, HeadView) else (query,)
    items = enumerate(own.query_tokens.items)
    if len({each.id for place, each in items if not each.special and place not in kept}) < 2:
        return Next(say("all_heads"), asking(own, "heads", "--query", asked))
    sought = asking(own, "find", "--from", asked, "--to", label(result.key_tokens, key))
    return Next(say("by_words"), f"{sought}{options}")


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


Shown = HeadWeights | HeadView
MOST_KEYS = 25  # of one query that have a bar
_NAMED = 3  # keys of a sentence
_LITTLE = 0.05  # what is less need not be named
_MOST_TERMS = 5  # of an output


def said(result: Shown, focus: Focus = WHOLE) -> Said:
    """Sentences of `heads` about one head, or one query of it."""
    head, link = head_of(result), result.strongest
    queries, keys = result.query_tokens, result.key_tokens
    view = result if isinstance(result, HeadView) else None
    full = head if isinstance(head, HeadAttention) else None
    by = Unit.TOKEN if view is None else view.by
    texts, crosses = bool(head.query_tokens.texts), result.crosses
    aside, special = _aside(result, link), _special(result)
    distance = None
    if texts and not crosses:
        distance = at_distance(result.weights, result.allowed, queries.positions)
        distance = distance if mostly(distance) else None
    facts = {
        "head": head.name,
        "joins": by.joins,
        "unit": by.value,
        "units": by.several,
        "special_how": Special.SHOW.value if view is None else view.special.value,
        "emptied": bool(view and view.emptied),
        "texts": texts,
        "cross": crosses,
        "decoder": crosses and texts,
        "masked": not crosses and not result.allowed[result.answered].all(),
        "queries": len(queries),
        "keys": len(keys),
        "scale": None if full is None else parameter(full.scale),
        "cap": None if full is None or full.softcap is None else parameter(full.softcap),
        "sums": sums_words(result) if not isinstance(result, HeadAttention) else None,
        # where it looks
        "asked": None if link is None else in_sentence(queries, link[0]),
        "looked": None if link is None else in_sentence(keys, link[1]),
        "own": None if link is None else float(result.weights[link]),
        "even": None if link is None else _even(result, *link),
        "tokens": many(tokens_looked_at(mean_entropy(np.where(result.allowed, result.weights, 0.0)))),
        "rows": distance and distance.rows,
        "rows_of": distance and distance.of,
        "offset": distance and distance.offset,
        # what is passed over
        "aside": aside,
        "taken": sum(share for _, share in aside),
        "special": special[0] if special else None,
        "special_kinds": len(special),
        "sink": None if result.rest.sink < 0 else in_sentence(keys, result.rest.sink),
        **_row_facts(result, None if focus.stage in OF_KEYS else focus.query, focus.key),
    }
    return Said("head", result, facts)


def answer(result: Shown, focus: Focus, say: Said) -> str:
    """Answer about the head or one query; empty for vectors but the output."""
    if focus.query is None:
        return say(result.case)
    if focus.stage in VECTORS:
        return say("mixed") if focus.stage == "output" and result.answered[focus.query] else ""
    return say("row" if ranked(result, focus.query) else "row_without_keys")


def ranked(result: Shown, query: int) -> list[int]:
    """Visible keys of a query, largest weight first."""
    if not result.answered[query]:
        return []
    return [key for key in descending(result.weights[query]) if result.allowed[query, key]]


def listed(result: Shown, query: int, key: int | None) -> list[int]:
    """The strongest keys of a query, and `key` however weak."""
    order = ranked(result, query)
    return [*order[:MOST_KEYS], *(each for each in order[MOST_KEYS:] if each == key)]


def _even(result: Shown, query: int, key: int) -> float:
    if isinstance(result, HeadView) and (result.by.joins or spans(result)):
        return float(result.even[query, key])
    return even_weight(result.allowed, query)


def _special(result: Shown) -> list[str]:
    shares = dict[str, float]()
    weights = np.nan_to_num(result.weights).sum(axis=0).tolist()
    for token, share in zip(result.key_tokens.items, weights, strict=True):
        if token.special:
            shares[settled(token.name)] = shares.get(settled(token.name), 0.0) + share
    return sorted(shares, key=lambda name: -shares[name])


def _aside(result: Shown, link: tuple[int, int] | None) -> list[tuple[str, float]]:
    """Special tokens, sink or itself, where their weight exceeds the strongest link or half of all."""
    rest, found = result.rest, list[tuple[str, float]]()
    if link is None or rest.whole:
        return found
    own = float(result.weights[link])
    for name, pairs in zip(("special", "sink", "itself"), rest.parts, strict=True):
        share = rest.share(pairs)
        if share > MOST or np.nan_to_num(rest.weights * pairs).max(initial=0.0) > own:
            found.append((name, share))
    return found


def _tells(digits: str) -> bool:
    return bool(digits.strip("0."))


def _row_facts(result: Shown, query: int | None, key: int | None) -> dict[str, object]:
    """Facts about one query's row for the sentences; the same names without a query."""
    order = [] if query is None else ranked(result, query)
    row = result.weights[query or 0]
    bars = [] if query is None else listed(result, query, key)
    form = alike(row[order[:1]], 2)  # that of the largest: all can be compared with it
    shares = [form(float(row[to])) for to in order[:_NAMED]]
    given = [f"{in_sentence(result.key_tokens, to)} {text}" for to, text in zip(order, shares, strict=False)]
    further = [each for each in order if each not in bars]
    least = shares[1] if len(order) > 1 and row[order[1]] < _LITTLE else None
    share = None if key is None else form(float(row[key]))
    rank = order.index(key) + 1 if key is not None and key in order else None
    pieces = list(result.query_groups[query]) if isinstance(result, HeadView) and query is not None else []
    full = result if isinstance(result, HeadAttention) and result.sink is not None else None
    terms = [
        f"{weight(float(row[to]), 3)} v({settled(result.key_tokens.named(to))})".replace(" ", "\u00a0")
        for to in order[:_MOST_TERMS]
    ]
    return {
        "query": None if query is None else in_sentence(result.query_tokens, query),
        "query_emptied": bool(pieces) and bool(head_of(result).answered[pieces].any()),
        "first": given[0] if given else None,
        "then": given[1:],
        "least": None if least is None else least if _tells(least) else f"{least[:-1]}1",
        "nearly_none": least is not None and not _tells(least),
        "key": None if key is None else in_sentence(result.key_tokens, key),
        "key_masked": key is not None and key not in order,
        "key_rank": None if rank == 1 else rank,
        "key_share": share if share is None or _tells(share) else f"<{share[:-1]}1",
        "ranked": len(order),
        "terms": terms,
        "more_terms": max(len(order) - _MOST_TERMS, 0),
        "further": len(further),
        "further_share": float(row[further].sum()),
        "masked_keys": len(result.key_tokens) - len(order),
        "in_sink": float(1 - row[order].sum()) if full is not None and order else None,
    }
