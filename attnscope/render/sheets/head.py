"""One head: a stage of it as a matrix, or of one query its keys or its vector.

A head that was read in full has all stages; of a view, and of returned weights, there are weights.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import counted, descending, parameter, significant, weight, weight_cell
from attnscope.render.kit.stage import OF_KEYS, VECTORS, Panel, Show, only, panel
from attnscope.render.kit.words.command import looked_at
from attnscope.render.kit.words.header import where_words
from attnscope.render.kit.words.weights import head_of, spans, special_words, sums_words, view_words
from attnscope.render.sheet.blocks import Block, Dimensions, Matrix
from attnscope.render.sheet.said import (
    begun,
    certified,
    departures,
    features,
    limits,
    of_head,
    read,
    setting,
    span_notes,
)
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Table
from attnscope.render.sheets.head_row import keys_of, left_out, most_of, of_row
from attnscope.render.sheets.looking import (
    NO_CONTROL,
    about,
    distance_words,
    link,
    mean_entropy,
    mostly,
    seen_of,
    tokens_looked_at,
)
from attnscope.render.sheets.telling import (
    aside_words,
    left_of,
    most_telling,
    next_question,
    strongest_link,
    telling_words,
)
from attnscope.results import HeadAttention, HeadView, HeadWeights, Kind, Special
from attnscope.results.base.distances import at_distance, even

_MOST_TERMS = 5
_VECTORS = {"q": "query vector", "k": "key vector", "v": "value vector", "output": "output"}
_WHOLE = "rows sum to 1"
_MORE = "--rows all lists every query, --query TOKEN ranks the keys of one"


def sheet(result: HeadWeights | HeadView, focus: Focus = WHOLE) -> Sheet:
    own, shown = head_of(result), panel(result, focus.stage, focus.scale)
    queries, keys = (
        counted(count, word) for count, word in zip(result.weights.shape, ("query", "key"), strict=True)
    )
    block, answer, notes = _looked_at(result, shown, focus)
    pair: tuple[int, int | None] | None
    pair = None if shown.column_tokens is None else strongest_link(result, shown)
    if focus.query is not None:  # of k and v it is a key, from which no link goes
        pair = None if shown.show in OF_KEYS else (focus.query, focus.key)
    said = *_beside(result, shown, focus), *_formula(own, focus.stage), *limits(own)
    beside = tuple(each for each in said if each)
    return Sheet(
        title=begun(own.name) + _viewed(result) + ("" if shown.show == "weights" else f": {shown.title}"),
        setting=setting(own),
        origins=(own.provenance,),
        answer=answer,
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
        next=_next(result, pair),
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


def _viewed(result: HeadWeights | HeadView) -> str:
    if not isinstance(result, HeadView):
        return ""
    if result.special is Special.SHOW:
        return f" by {result.by.several}" if result.by.joins else ""
    return f" by {result.by.several}" if result.by.joins else f", special tokens: {result.special.value}"


def answer_of(result: HeadWeights | HeadView, pair: tuple[int, int] | None) -> str:
    """How many tokens the head looks at, whether position or a sink tells it all, and its strongest link."""
    own, keys = head_of(result), len(result.key_tokens)
    tokens = tokens_looked_at(mean_entropy(np.where(result.allowed, result.weights, 0.0)))
    crosses = own.kind is Kind.CROSS
    masked = not crosses and not result.allowed[result.answered].all()
    unit = result.by.value if isinstance(result, HeadView) else "token"
    told = f"{own.name} {about(tokens, seen_of(own.kind, keys, masked, unit), unit)}"
    told = f"From each written {unit}, {told}" if crosses and own.query_tokens.texts else begun(told)
    if not crosses and own.query_tokens.texts:
        distance = at_distance(result.weights, result.allowed, result.query_tokens.positions)
        if mostly(distance):
            where = distance_words(distance)
            told += f", for {distance.rows} of {distance.of} {where}: position alone can do this"
    told += "."
    if pair is not None:
        named = link(result.query_tokens, result.key_tokens, *pair)
        beside = f"{weight(float(result.weights[pair]))} (even attention: {weight(_even(result, *pair))})"
        by_size = isinstance(result, HeadView) and result.by.is_long
        strongest = "The link farthest above even attention is" if by_size else "Its strongest link is"
        if by_size and float(result.weights[pair]) <= _even(result, *pair):
            between = "" if crosses else f" between {unit}s"
            strongest = f"No link{between} lies above even attention: nearest to it is"
        aside = aside_words(left_of(result), result.key_tokens, float(result.weights[pair]))
        told += f" {strongest} {named}: {beside}{aside}."
    return f"{told} {NO_CONTROL}" if own.query_tokens.texts else told


def _even(result: HeadWeights | HeadView, query: int, key: int) -> float:
    if isinstance(result, HeadView) and (result.by.joins or spans(result)):
        return float(result.even[query, key])
    return even(result.allowed, query)


def _departs(result: HeadWeights | HeadView) -> tuple[str, ...]:
    return departures(result.by, result.special) if isinstance(result, HeadView) else ()


def _next(result: HeadWeights | HeadView, pair: tuple[int, int | None] | None) -> Next | None:
    own = head_of(result)
    if pair is None or not own.query_tokens.texts or not own.key_tokens.texts:
        return None
    query, key = pair
    if key is None or not result.allowed[query, key]:
        if not result.answered[query]:
            return None
        key = int(np.argmax(np.where(result.allowed[query], result.weights[query], -1.0)))
    looking = looked_at(result.by, result.special) if isinstance(result, HeadView) else ""
    return next_question(result, query, key, looking)


def _looked_at(
    result: HeadWeights | HeadView, shown: Panel, focus: Focus
) -> tuple[Block, str, Sequence[str]]:
    query = focus.query
    if query is None and shown.show == "weights":
        said = sums_words(result), special_words(head_of(result).special_mass), *view_words(result)
        return _matrix(result, shown, focus.rows), answer_of(result, strongest_link(result, shown)), said
    if query is None:
        return _matrix(result, shown, focus.rows), "", ()
    if shown.show in VECTORS:
        return _vector(only(shown, query)), _mixed(head_of(result), shown, query), ()
    block = keys_of(result, _matrix(result, shown, 0), query, focus.key)
    return block, most_of(result, query, focus.key), of_row(result, query)


def _beside(result: HeadWeights | HeadView, shown: Panel, focus: Focus) -> Iterator[str]:
    if shown.show == "weights" and (sums := sums_words(result)) != _WHOLE:
        yield sums
    if focus.query is not None and shown.show not in VECTORS:
        yield left_out(result, focus.query, focus.key)
    if isinstance(result, HeadView) and spans(result):
        asked, given = (0 if at is None else at for at in (focus.query, focus.key))
        queries, keys = result.query_groups[asked], result.key_groups[given]
        names = result.query_tokens.names[asked], result.key_tokens.names[given]
        yield from span_notes(names[0], queries, names[1], keys)


def _matrix(result: HeadWeights | HeadView, shown: Panel, rows: int | None) -> Matrix:
    pairs, weights = shown.column_tokens is not None, shown.show == "weights"
    listed = tuple(most_telling(result, shown, rows)) if pairs else ()
    chosen = telling_words(result, shown, listed) if pairs and listed else ""
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
        listed=listed,
        listing=(chosen, _MORE) if chosen else (),
    )


def _vector(shown: Panel) -> Matrix:
    values, name = shown.values[0], settled(shown.row_tokens.named(0))
    there = bool(shown.answered[0])
    norm = f"{counted(len(values), 'dimension')} · norm {significant(float((values**2).sum() ** 0.5))}"
    return Matrix(
        title=f"{_VECTORS[shown.show]} of {name}",
        words=(shown.row_word, shown.column_word),
        rows=shown.row_tokens,
        columns=Dimensions.of(len(values)),
        values=np.where(shown.visible, shown.values, np.nan),
        scale=Scale(-(shown.extent or 1.0), shown.extent or 1.0, "signed"),
        form=None,
        says=norm if there else "",
        unanswered=shown.unanswered,
        measured=shown.title,
    )


def _mixed(result: HeadWeights, shown: Panel, query: int) -> str:
    """`output = .980 v(8 opened) + .007 v(9 .) + 9 more`: weights V (Vaswani et al. 2017, equation 1).

    A weight and its vector stand in one line.
    """
    if shown.show != "output" or not shown.answered[query]:
        return ""
    weights, keys = result.weights[query], result.key_tokens
    ranked = [key for key in descending(weights) if result.allowed[query, key]]
    named = [
        f"{weight(float(weights[key]), 3)} v({settled(keys.named(key))})".replace(" ", "\u00a0")
        for key in ranked
    ]
    more = [f"{len(named) - _MOST_TERMS} more"] if len(named) > _MOST_TERMS else []
    return f"output = {' + '.join([*named[:_MOST_TERMS], *more])}"


def _formula(result: HeadWeights, show: Show) -> Iterator[str]:
    if isinstance(result, HeadAttention) and show == "scores":
        yield f"q·k before the scale of {parameter(result.scale)}"
    if isinstance(result, HeadAttention) and show == "scaled":
        capped = "" if result.softcap is None else f", capped at ±{parameter(result.softcap)}"
        yield f"what enters the softmax: q·k x {parameter(result.scale)}{capped}, with any bias of the model"


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
