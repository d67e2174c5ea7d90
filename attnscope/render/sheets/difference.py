"""Two runs held against each other head by head: what one gives more, beside what rounding does."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import counted, number, signed, signed_cell, significant, weight
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.kit.words.header import model_words
from attnscope.render.sheet.blocks import Block, Matrix, Ranking
from attnscope.render.sheet.drawings import Passage
from attnscope.render.sheet.heads import Companion, HeadGrid, by_head
from attnscope.render.sheet.said import attention, in_sentence
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Mark, Table
from attnscope.results import Difference, Provenance, Verdict
from attnscope.results.claims.difference import Run
from attnscope.tokens import Tokens

_nats = partial(number, decimals=3)
_SHOWN = 10  # heads, and queries of the one that is shown
_NUMBERS = {"divergence": "divergences", "largest difference": "largest", "rounding": "rounding"}
_FACTS = "fact layer head layer_b head_b query query_token key key_token a b value"


def sheet(result: Difference, focus: Focus = WHOLE) -> Sheet:
    a, b = result.a.name, result.b.name
    matrix, alike = _matrix(result), result.largest[result.shown] == 0
    shown = (_heads(result), *([] if alike else [matrix]), *_rows(result), *_grids(result))
    nothing = result.is_same and not focus.verbose  # zeros are no evidence
    layer, head = result.pairs[result.shown][:2]
    return Sheet(
        title=f"{result.name(result.shown)}: {b} minus {a}",
        setting="",
        origins=(result.a.provenance, result.b.provenance),
        answer=_answer(result),
        blocks=() if nothing else shown,
        table=lambda: Table.of(_FACTS, _facts(result)),
        texts=(f"A {a}: {_run(result.a, result.b)}", f"B {b}: {_run(result.b, result.a)}"),
        control=_control(result),
        notes=tuple(each for each in (_other_tokens(result), _rounding(result)) if each),
        proof=tuple(_proof(result)),
        main=matrix,
        summary=(counted(len(result.pairs), "head"),),
        more=(*(shown if nothing else ()), *_shaded(result)),
        opens={"layer": layer, "head": head},
    )


def _run(run: Run, other: Run) -> str:
    parts = [model_words(run.provenance), attention(run.kind, ""), *_own(run.provenance, other.provenance)]
    if not run.verdict.proved:
        parts.append(verdict_words(run.verdict))
    sentence = f" “{run.query_tokens.sentence}”" if run.query_tokens.texts else ""
    return " · ".join(parts) + sentence


def _own(own: Provenance, other: Provenance) -> list[str]:
    told = [own.source] if own.source != other.source else []
    told += [
        f"{name} {getattr(own, name)}" if name == "kernel" else str(getattr(own, name))
        for name in ("device", "dtype", "kernel", "route")
        if getattr(own, name) != getattr(other, name)
    ]
    versions = own.versions.items()
    told += [f"{name} {version}" for name, version in versions if other.versions.get(name) != version]
    return told


def _other_tokens(result: Difference) -> str:
    if not result.other_tokens:
        return ""
    pairs = zip(result.a.query_tokens.names, result.b.query_tokens.names, strict=True)
    named = [f"{i} {a} / {b}" for i, (a, b) in enumerate(pairs) if a != b]
    more = f", and {len(named) - 4} more" if len(named) > 4 else ""
    listed = f": {', '.join(named[:4])}{more}" if named else ""
    return f"other tokens at {counted(result.other_tokens, 'position')}{listed}"


def _rounding(result: Difference) -> str:
    if np.isfinite(result.rounding).any():
        if len(result.pairs) == 1 or result.is_same:
            return ""  # the answer tells
        within = f"{result.within_rounding:,}" if result.within_rounding else "none"
        return f"{within} of {counted(len(result.pairs), 'head')} may differ by rounding alone"
    return "no head has a tolerance: it cannot be told what rounding does"


def _answer(result: Difference) -> str:
    i, named, many = result.shown, result.name(result.shown), len(result.pairs)
    if math.isnan(result.divergences[i]):
        return f"{named} has no query with a key."
    if result.is_same:
        of = named if many == 1 else f"each of {counted(many, 'head')}"
        return f"A and B attend the same: {of}, to the last bit."
    if result.within_rounding == many:
        return f"A and B attend the same: 0 of {counted(many, 'head')} differ by more than rounding."
    change = np.abs(np.nan_to_num(result.signed))
    query, key = (int(each) for each in np.unravel_index(int(change.argmax()), change.shape))
    link = f"{in_sentence(result.a.query_tokens, query)} → {in_sentence(result.a.key_tokens, key)}"
    values = " → ".join(
        weight(float(np.nan_to_num(each[query, key]))) for each in (result.before, result.after)
    )
    most = " most" if many > 1 else ""
    layer, head, *other = result.pairs[i]
    changes = "changes" if [layer, head] == other else "differ"  # of one head, or of two
    told = f"{_other_tokens_first(result)}{named} {changes}{most}, at {link}: {values}."
    if not np.isfinite(result.rounding).any():
        return told
    beyond = f"{many - result.within_rounding} of {counted(many, 'head')}"
    return f"{told} {beyond} differ by more than rounding." if many > 1 else f"{told} That is no rounding."


def _other_tokens_first(result: Difference) -> str:
    count = result.other_tokens
    return f"A and B differ in {counted(count, 'token')}. " if count else ""


def _control(result: Difference) -> str:
    if math.isfinite(result.unlike):
        return f"two neighbouring heads of a layer of one run differ by {_nats(result.unlike)} nats"
    return "none: how far other heads move is not in these files"


def _heads(result: Difference) -> Ranking:
    order = result.ranking[:_SHOWN]
    apart, shades = [float(result.divergences[i]) for i in order], Scale(0.0, math.log(2))
    unlike = [result.unlike] if math.isfinite(result.unlike) else []
    return Ranking(
        title="heads that differ most",
        of="head",
        names=tuple(map(result.name, order)),
        table=Table(
            Column("divergence", apart, "divergence", _nats, "Jensen-Shannon, in nats", shades),
            Column(
                "largest", [float(result.largest[i]) for i in order], "largest", significant, "of a weight"
            ),
            Column("rounding", [_against(result, i) for i in order], "against rounding", spared=1),
        ),
        measured="divergence in nats",
        marks=(
            Mark("bar", "own", "divergence of both runs", apart),
            Mark("line", "limit", "two neighbouring heads of a layer" if unlike else "", unlike),
        ),
        hidden=len(result.ranking) - len(order),
    )


def _against(result: Difference, i: int) -> str:
    largest, rounding = float(result.largest[i]), float(result.rounding[i])
    if largest == 0:
        return "the same to the bit"
    if math.isnan(rounding):
        return ""
    if largest <= rounding:
        return "within rounding"
    times = largest / rounding
    return f"{number(times, 0)} x rounding" if times < 1e6 else "over 1,000,000 x rounding"


def _matrix(result: Difference) -> Matrix:
    values = np.where((result.before > 0) | (result.after > 0), result.signed, np.nan)
    return Matrix(
        title=f"{result.name(result.shown)}: B minus A",
        words=("query", "key"),
        rows=_both(result.a.query_tokens, result.b.query_tokens),
        columns=_both(result.a.key_tokens, result.b.key_tokens),
        values=values,
        scale=Scale.around(values),
        form=signed_cell,
        says="above 0, blue: B gives more; below, red: less; blank: neither gives anything",
        measured="weight in B minus weight in A",
    )


def _both(a: Tokens, b: Tokens) -> Tokens:
    items = tuple(
        first if first.name == second.name else replace(first, text=f"{first.name}/{second.name}", piece="")
        for first, second in zip(a.items, b.items, strict=True)
    )
    return replace(a, items=items)


def _rows(result: Difference) -> Iterator[Block]:
    own = result.rows[result.shown]
    order = [i for i in np.argsort(-np.nan_to_num(own, nan=-1.0), kind="stable").tolist() if own[i] > 0]
    if not order:
        return
    shown, change = order[:_SHOWN], np.nan_to_num(result.signed)
    ends = [(int(change[i].argmax()), int(change[i].argmin())) for i in shown]
    apart = [float(own[i]) for i in shown]
    yield Ranking(
        title="its queries that differ most",
        of="query",
        names=tuple(result.a.query_tokens.named(i) for i in shown),
        table=Table(
            Column("divergence", apart, "divergence", _nats),
            Column("gains", _told(result, change, shown, [most for most, _ in ends]), "gains most"),
            Column("loses", _told(result, change, shown, [least for _, least in ends]), "loses most"),
        ),
        measured="divergence in nats",
        marks=(Mark("bar", "own", "", apart),),
        hidden=len(order) - len(shown),
    )


def _told(result: Difference, change: np.ndarray, rows: Sequence[int], keys: Sequence[int]) -> list[str]:
    names = (result.a.key_tokens.named(key) for key in keys)
    values = (signed(float(change[row, key])) for row, key in zip(rows, keys, strict=True))
    return [f"{name} {value}" for name, value in zip(names, values, strict=True)]


def _grids(result: Difference) -> Iterator[HeadGrid]:
    if len(result.pairs) < 2 or any(pair[:2] != pair[2:] for pair in result.pairs):
        return
    layers, heads = (tuple(sorted({pair[axis] for pair in result.pairs})) for axis in (0, 1))
    places = [pair[:2] for pair in result.pairs]
    apart, largest, rounding = (
        by_head(layers, heads, dict(zip(places, numbers, strict=True)))
        for numbers in (result.divergences, result.largest, result.rounding)
    )
    unlike = Companion.numbers(
        "two neighbouring heads of a layer", np.full(apart.shape, result.unlike), _nats
    )
    may = Companion.numbers("rounding may make", rounding, significant)
    for title, values, unit, beside in (
        ("divergence of every head", apart, "nats", unlike),
        ("largest difference of a weight", largest, "", may),
    ):
        scale = Scale(0.0, float(np.nanmax(values, initial=0.0)) or 1.0)
        yield HeadGrid(title, layers, heads, values, scale, _cell, unit, companion=beside)


def _cell(value: float) -> str:
    return "0" if value < 5e-4 else number(value, 3 if value < 0.1 else 2)


def _facts(result: Difference) -> Iterator[tuple[object, ...]]:
    a, none = result.a, ("",) * 6
    for i in result.ranking:
        for fact, field in _NUMBERS.items():
            yield fact, *result.pairs[i], *none, float(getattr(result, field)[i])
    for pair, own in zip(result.pairs, result.rows.tolist(), strict=True):
        for query, value in enumerate(own):
            yield "divergence of a row", *pair, query, a.query_tokens.labels[query], *none[:4], value
    for (query, key), value in np.ndenumerate(result.signed):
        at = query, a.query_tokens.labels[query], key, a.key_tokens.labels[key]
        both = float(result.before[query, key]), float(result.after[query, key])
        yield "weight", *result.pairs[result.shown], *at, *both, float(value)


def _proof(result: Difference) -> Iterator[tuple[Verdict, str]]:
    if result.a.verdict is result.b.verdict:
        yield result.a.verdict, f"{verdict_words(result.a.verdict)}: both runs"
        return
    for run in (result.a, result.b):
        yield run.verdict, f"{verdict_words(run.verdict)}: {run.name}"


def _shaded(result: Difference) -> Iterator[Passage]:
    """How far each query of the head that is shown differs, in the text of B where both are texts."""
    tokens, apart = result.b.query_tokens, result.rows[result.shown]
    if tokens.texts and len(tokens) == len(apart):
        yield Passage(
            f"{result.name(result.shown)}: how far each query looks elsewhere in B, in nats",
            tokens,
            apart,
            Scale(0.0, float(np.nanmax(apart, initial=0.0)) or 1.0),
            number,
        )
