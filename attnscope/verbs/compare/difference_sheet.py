"""The sheet of two compared runs: each head's divergence and largest difference, beside rounding."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from attnscope.render.kit.numbers import counted, number, signed, signed_cell, significant
from attnscope.render.kit.words import model_words, verdict_words
from attnscope.render.sheet.blocks import Block, Matrix, Passage, Ranking
from attnscope.render.sheet.heads import Companion, HeadGrid, by_head
from attnscope.render.sheet.said import attention, in_sentence
from attnscope.render.sheet.sheet import Sheet, saying
from attnscope.render.sheet.table import Column, Mark, Scale, Table
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.tokens import Tokens
from attnscope.verbs.compare.result import Difference, Run

_nats = partial(number, decimals=3)
_NAMED = 4  # pairs of other tokens
_SHOWN = 10  # heads, and queries of the one that is shown
_NUMBERS = {"divergence": "divergences", "largest difference": "largest", "rounding": "rounding"}
_FACTS = "fact layer head layer_b head_b query query_token key key_token a b value"


def sheet(result: Difference, focus: Focus = WHOLE) -> Sheet:
    a, b, say = result.a, result.b, said(result)
    matrix, alike = _matrix(result, say), result.largest[result.shown] == 0
    shown = (_heads(result, say), *([] if alike else [matrix]), *_rows(result, say), *_grids(result, say))
    nothing = result.is_same and not focus.verbose  # zeros are no evidence
    layer, head = result.pairs[result.shown][:2]
    proved = ((a, say("both_runs")),) if a.verdict is b.verdict else ((a, a.name), (b, b.name))
    return saying(
        say,
        setting="",
        origins=(a.provenance, b.provenance),
        blocks=() if nothing else shown,
        table=lambda: Table.of(_FACTS, _records(result)),
        texts=(f"A {a.name}: {_run(a, b)}", f"B {b.name}: {_run(b, a)}"),
        notes=tuple(say.lines("notes")),
        proof=tuple((run.verdict, f"{verdict_words(run.verdict)}: {of}") for run, of in proved),
        main=matrix,
        summary=(counted(len(result.pairs), "head"),),
        more=(*(shown if nothing else ()), *_shaded(result, say)),
        opens={"layer": layer, "head": head},
    )


def _run(run: Run, beside: Run) -> str:
    own, other = run.provenance, beside.provenance
    parts = [model_words(own), attention(run.kind, "")]
    parts += [own.source] if own.source != other.source else []
    parts += [
        f"{name} {getattr(own, name)}" if name == "kernel" else str(getattr(own, name))
        for name in ("device", "dtype", "kernel", "route")
        if getattr(own, name) != getattr(other, name)
    ]
    versions = own.versions.items()
    parts += [f"{name} {version}" for name, version in versions if other.versions.get(name) != version]
    if not run.verdict.proved:
        parts.append(verdict_words(run.verdict))
    sentence = f" “{run.query_tokens.sentence}”" if run.query_tokens.texts else ""
    return " · ".join(parts) + sentence


def said(result: Difference) -> Said:
    """A `Said` that fills the sentence templates about two compared runs with their facts."""
    change, many, tokens = np.abs(np.nan_to_num(result.signed)), len(result.pairs), result.a.query_tokens
    query, key = (int(each) for each in np.unravel_index(int(change.argmax()), change.shape))
    pairs = enumerate(zip(tokens.names, result.b.query_tokens.names, strict=True))
    named = [f"{i} {a} / {b}" for i, (a, b) in pairs if a != b] if result.other_tokens else []
    layer, head, *other = result.pairs[result.shown]
    facts = {
        "name": result.name(result.shown),
        "one_head": [layer, head] == other,
        "many": many,
        "query": in_sentence(tokens, query),
        "key": in_sentence(result.a.key_tokens, key),
        "before": float(np.nan_to_num(result.before[query, key])),
        "after": float(np.nan_to_num(result.after[query, key])),
        "rounding_known": bool(np.isfinite(result.rounding).any()),
        "beyond": many - result.within_rounding,
        "unlike": result.unlike if math.isfinite(result.unlike) else None,
        "pairs": named[:_NAMED],
        "more": max(0, len(named) - _NAMED),
    }
    return Said("difference", result, facts)


def _heads(result: Difference, say: Said) -> Ranking:
    order = result.ranking[:_SHOWN]
    apart, largest, rounding = (
        values[order].tolist() for values in (result.divergences, result.largest, result.rounding)
    )
    unlike, shades = [result.unlike] if math.isfinite(result.unlike) else [], Scale(0.0, math.log(2))
    beside = []
    for most, may in zip(largest, rounding, strict=True):
        times = most / may if most and may else math.inf if most else 0
        beside.append("" if math.isnan(may) and most else say("beside_rounding", times))
    return Ranking(
        title=say("heads_title"),
        of="head",
        names=tuple(map(result.name, order)),
        table=Table(
            Column("divergence", apart, "divergence", _nats, say("jensen_shannon"), shades),
            Column("largest", largest, "largest", significant, say("largest")),
            Column("rounding", beside, say("against_rounding"), spared=1),
        ),
        measured="divergence in nats",
        marks=(
            Mark("bar", "own", say("bar"), apart),
            Mark("line", "limit", say("neighbours") if unlike else "", unlike),
        ),
        hidden=len(result.ranking) - len(order),
    )


def _matrix(result: Difference, say: Said) -> Matrix:
    values = np.where((result.before > 0) | (result.after > 0), result.signed, np.nan)
    return Matrix(
        title=say("matrix_title"),
        words=("query", "key"),
        rows=_both(result.a.query_tokens, result.b.query_tokens),
        columns=_both(result.a.key_tokens, result.b.key_tokens),
        values=values,
        scale=Scale.around(values),
        form=signed_cell,
        says=say("matrix_says"),
        measured=say("matrix_measured"),
    )


def _both(a: Tokens, b: Tokens) -> Tokens:
    items = (
        one if one.name == other.name else replace(one, text=f"{one.name}/{other.name}", piece="")
        for one, other in zip(a.items, b.items, strict=True)
    )
    return replace(a, items=tuple(items))


def _rows(result: Difference, say: Said) -> Iterator[Block]:
    own = result.rows[result.shown]
    order = [i for i in np.argsort(-np.nan_to_num(own, nan=-1.0), kind="stable").tolist() if own[i] > 0]
    if not order:
        return
    shown, change = order[:_SHOWN], np.nan_to_num(result.signed)
    gains, loses = (
        [f"{result.a.key_tokens.named(int(key))} {signed(float(change[row, key]))}"
         for row, key in zip(shown, keys, strict=True)]
        for keys in (change[shown].argmax(axis=1), change[shown].argmin(axis=1))
    )  # fmt: skip
    apart = own[shown].tolist()
    yield Ranking(
        title=say("queries_title"),
        of="query",
        names=tuple(result.a.query_tokens.named(i) for i in shown),
        table=Table(
            Column("divergence", apart, "divergence", _nats),
            Column("gains", gains, "gains most"),
            Column("loses", loses, "loses most"),
        ),
        measured="divergence in nats",
        marks=(Mark("bar", "own", "", apart),),
        hidden=len(order) - len(shown),
    )


def _grids(result: Difference, say: Said) -> Iterator[HeadGrid]:
    if len(result.pairs) < 2 or any(pair[:2] != pair[2:] for pair in result.pairs):
        return
    layers, heads = (tuple(sorted({pair[axis] for pair in result.pairs})) for axis in (0, 1))
    places = [pair[:2] for pair in result.pairs]
    apart, largest, rounding = (
        by_head(layers, heads, dict(zip(places, numbers, strict=True)))
        for numbers in (result.divergences, result.largest, result.rounding)
    )
    unlike = Companion.numbers(say("neighbours"), np.full(apart.shape, result.unlike), _nats)
    may = Companion.numbers(say("may_make"), rounding, significant)
    of = (say("every_divergence"), apart, "nats", unlike), (say("every_largest"), largest, "", may)
    for title, values, unit, beside in of:
        scale = Scale(0.0, float(np.nanmax(values, initial=0.0)) or 1.0)
        yield HeadGrid(title, layers, heads, values, scale, _cell, unit, companion=beside)


def _cell(value: float) -> str:
    return "0" if value < 5e-4 else number(value, 3 if value < 0.1 else 2)


def _records(result: Difference) -> Iterator[tuple[object, ...]]:
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


def _shaded(result: Difference, say: Said) -> Iterator[Passage]:
    """Divergence of each query of the head shown, shaded in the text of B, where there is one."""
    tokens, apart = result.b.query_tokens, result.rows[result.shown]
    if tokens.texts and len(tokens) == len(apart):
        scale = Scale(0.0, float(np.nanmax(apart, initial=0.0)) or 1.0)
        yield Passage(say("passage"), tokens, apart, scale, number)
