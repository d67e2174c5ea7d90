"""From one token back to the input: what each method gives to every token, beside what replacing it does."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import largest_magnitude, number, signed, signed_cell, weight, weight_cell
from attnscope.render.kit.scale import Scale as Weights
from attnscope.render.kit.words.command import asking, finding, looked_at
from attnscope.render.kit.words.header import model_words
from attnscope.render.sheet.blocks import Beside, Curve, Matrix, Names, Ranking
from attnscope.render.sheet.drawings import Passage
from attnscope.render.sheet.said import attention, numbered, text
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Line, Mark, Table, Tint, as_written, both_ways, only
from attnscope.render.sheets import flow_words as words
from attnscope.render.sheets.flow_words import patches_of
from attnscope.render.words import Said
from attnscope.results import Flow
from attnscope.results.claims.flow import DISTANCE, Ablated
from attnscope.tokens import Patches
from attnscope.vocabulary import Scaling, Special

_MOST, _LISTED, _PATCHES = 64, 40, 12  # tokens that all have a row; of more, and of a picture, so many
_FIRST = 12  # that were replaced, the largest effect first
_LINES: tuple[Tint, ...] = ("own", "other", "kin", "peers")
_BEST = 2  # without -v: the first method, and so many of the others that agree best
_FACTS = "fact layer position token value"


def sheet(result: Flow, focus: Focus = WHOLE) -> Sheet:
    say = words.said(result)
    averaged = say("averaged")
    patches, tokens = patches_of(result), _tokens(result, say, focus.verbose)
    maps = () if patches is None else (Beside(tuple(_maps(result, say, patches))),)
    told = result.ablated if result.ablated is not None and result.ablated.best is not None else None
    agreement = () if told is None else (_agreement(result, say, told, focus.verbose),)
    return Sheet(
        title=say("title"),
        setting=f"{attention(result.kind, result.tower)}, {averaged} · {model_words(result.provenance)}",
        origins=(result.provenance,),
        answer=say(result.case),
        blocks=(Beside((tokens, *agreement)), *maps),
        table=lambda: Table.of(_FACTS, _facts(result)),
        texts=text(result.tokens),
        control=say("control"),
        notes=(*say.lines("pooled_note"), *result.notes, *say.lines("notes")),
        legend=tuple(say.lines("legend")),
        departs=(f"seed {result.ablated.seed}",) if result.ablated and result.ablated.seed else (),
        proof=tuple(words.proofs(result, say)),
        main=tokens,
        next=_next(result, say),
        more=(*_passages(result, say), *_by_layer(result, say)),
    )


def _next(result: Flow, say: Said) -> Next | None:
    if result.ablated is None or not result.ablated.ranking or not result.tokens.texts:
        return None
    if result.query is None:
        return Next(say("next_heads"), asking(result, "heads"))
    asked = finding(result, result.query, result.ablated.ranking[0], result.query_span)
    asked += looked_at(result.by, Special.SHOW)
    return Next(say("next_find"), asked)


def _shown(result: Flow, whole: bool) -> list[int]:
    seen, ablated = np.flatnonzero(result.reached).tolist(), result.ablated
    if ablated is not None and patches_of(result) is None:
        places = list(ablated.ranking)
        others = [each for each in seen if each not in set(places)]
        return [*places, *others] if whole else places[:_FIRST]
    most, listed = (_MOST, _LISTED) if patches_of(result) is None else (_PATCHES, _PATCHES)
    if len(seen) <= most:
        return seen
    order = np.argsort(-result.rollout[-1], kind="stable")[:listed]
    return sorted({*map(int, order), *([] if result.query is None else [result.query])})


def _tokens(result: Flow, say: Said, whole: bool) -> Ranking:
    shown, ablated = _shown(result, whole), result.ablated
    first = list(result.methods) if ablated is None else words.ordered(result, ablated)
    first = first if ablated is None or whole else first[: 1 + _BEST]
    shares = {name: _seen(result, result.methods[name], shown) for name in first}
    largest = max(
        float(np.nanmax(values)) for name, values in result.methods.items() if name not in words.SIGNED
    )
    shades = Scale(0.0, largest or 1.0)
    columns, marks = list[Column](), tuple[Mark, ...]()
    costs = ablated is not None and bool(ablated.answer)  # then + is what the answer rests on, in one colour
    if ablated is not None:
        effects = [float(ablated.effects[key]) for key in shown]
        form = signed if costs else number
        around = Scale.around(ablated.effects, costs=costs)
        columns.append(Column("effect", effects, say("effect_heading"), form, say("says_effect"), around))
        marks = (Mark("bar", "own", "", effects),)
        if ablated.answer:
            marks = both_ways(effects, say("gains"), say("loses"), costs=True)
    for name, values in shares.items():
        falls = name in words.SIGNED
        scale = Scale.around(result.methods[name], costs=costs) if falls else shades
        shape = signed if falls else weight
        columns.append(
            Column(name.replace(" ", "_"), values, say("heading", name), shape, say("says", name), scale)
        )
    hidden = len(result.tokens) - len(shown)
    return Ranking(
        title=say("tokens_title"),
        of=words.unit(result),
        names=numbered(result.tokens, shown),
        table=Table(*columns),
        measured="" if ablated is None else say("effect_measured"),
        marks=marks,
        written="effect" if marks else "",
        cells=tuple(name.replace(" ", "_") for name in shares),
        chosen=frozenset({shown.index(result.query)}) if result.query in shown else frozenset(),
        hidden=hidden,
        unshown=_unshown(result, say, shown) if hidden else "",
    )


def _unshown(result: Flow, say: Said, shown: Sequence[int]) -> str:
    rows, seen = set(shown), set(np.flatnonzero(result.reached).tolist())
    tried = set() if result.ablated is None else set(result.ablated.ranking)
    return say("unshown", len(tried - rows), len(seen - tried - rows), len(result.tokens) - len(seen))


def _seen(result: Flow, values: Float[np.ndarray, " key"], shown: Sequence[int]) -> list[float]:
    return [float(values[key]) if result.reached[key] else math.nan for key in shown]


def _maps(result: Flow, say: Said, patches: Patches) -> Iterator[Matrix]:
    for name, values in result.methods.items():
        values = np.where(result.reached, values, np.nan)
        others = values.copy()
        if result.query is not None:
            others[result.query] = np.nan
        yield _map(result, say, patches, name, values, largest_magnitude(_laid_out(patches, others)))
    if result.ablated is not None:
        effects = result.ablated.effects * (
            -1 if result.ablated.answer else 1
        )  # red is a loss, as everywhere
        yield _map(result, say, patches, say("map_title"), effects, largest_magnitude(effects))


def _map(
    result: Flow, say: Said, patches: Patches, title: str, values: Float[np.ndarray, " key"], largest: float
) -> Matrix:
    shown, largest = _laid_out(patches, values), largest or 1.0
    falls = bool(np.nanmin(shown, initial=0.0) < 0)
    own = [divmod(i, patches.columns) for i, place in enumerate(patches.positions) if place == result.query]
    return Matrix(
        title=title,
        words=("row", "column"),
        rows=Names(("",) * patches.rows, tuple(range(patches.rows))),
        columns=Names(("",) * patches.columns, tuple(range(patches.columns))),
        values=shown,
        scale=Scale.around(shown) if falls else Weights(Scaling.MAX, np.full(patches.rows, largest)),
        form=signed_cell if falls else weight_cell,
        says=say("map_scale", falls, largest),
        unanswered="",
        marked=tuple(own),
    )


def _laid_out(patches: Patches, values: Float[np.ndarray, " key"]) -> Float[np.ndarray, "row column"]:
    """Values by position as those of the patches, row by row; NaN for a patch that has no position."""
    flat = [values[place] if place >= 0 else np.nan for place in patches.positions]
    return np.array(flat, dtype=np.float64).reshape(patches.rows, patches.columns)


def _by_layer(result: Flow, say: Said) -> Iterator[Curve]:
    if len(result.layers) < 2:
        return
    ablated = result.ablated
    order = np.argsort(-result.rollout[-1], kind="stable").tolist() if ablated is None else ablated.ranking
    first = [each for each in order if result.reached[each]][: len(_LINES)]
    labels, shares = numbered(result.tokens, first), result.rollout[:, first]
    table = Table(
        *(
            Column(f"token_{each}", values.tolist(), label.strip(), weight, scale=Scale(0.0, 1.0))
            for each, label, values in zip(first, labels, shares.T, strict=True)
        )
    )
    yield Curve(
        title=say("by_layer_title", len(first)),
        of="layer",
        names=tuple(f"L{layer}" for layer in result.layers),
        table=table,
        places=tuple(map(float, result.layers)),
        named=True,
        measured="share of the rollout",
        lines=tuple(
            Line("line", tint, label.strip(), values.tolist())
            for tint, label, values in zip(_LINES, labels, shares.T, strict=False)
        ),
    )


def _agreement(result: Flow, say: Said, ablated: Ablated, whole: bool) -> Ranking:
    trust = sorted(ablated.trust, key=lambda each: (math.isnan(each.correlation), -each.correlation))
    correlations = [each.correlation for each in trust]
    near = [each.method == DISTANCE for each in trust]
    low, high = [each.low for each in trust], [each.high for each in trust]
    below = [each.below for each in trust]
    counts = ["" if math.isnan(each) else f"{each:.0f} of {ablated.controls:,}" for each in below]
    shuffled = [
        "" if math.isnan(each.low) else f"{signed(each.low)} to {signed(each.high)}" for each in trust
    ]
    return Ranking(
        title=say("agreement_title"),
        of="method",
        names=tuple(Said("common", {})("method_words", each.method) for each in trust),
        table=Table(
            Column(
                "correlation",
                correlations,
                say("agreement_heading"),
                signed,
                scale=Scale(-1.0, 1.0, "signed"),
            ),
            Column("shuffled", shuffled, say("shuffled_heading"), as_written),
            Column("below", below, "below" if whole else "", says=say("says_below"), told=counts),
        ),
        measured=say("agreement_measured"),
        marks=(
            Mark("bar", "own", say("of_effects"), only(correlations, [not each for each in near])),
            Mark("bar", "faint", "", only(correlations, near)),
            Mark("span", "control", say("of_shuffled"), low, high),
        ),
        axis=(-1.0, 1.0),
        faint=frozenset(i for i, each in enumerate(near) if each),
    )


def _facts(result: Flow) -> Iterator[tuple[object, ...]]:
    by_layer = ("attention", result.raw), ("rollout", result.rollout), ("by norm", result.by_norm)
    labels = result.tokens.labels
    for name, values in (*by_layer, ("zeroing", result.zeroed)):
        for layer, row in zip(result.layers, () if values is None else values, strict=values is not None):
            for key, value in enumerate(row):
                yield name, layer, key, labels[key], float(value)
    for told in result.attributed:
        for key, value in enumerate(() if told.values is None else told.values):
            if not np.isnan(value):
                yield told.method, "", key, labels[key], float(value)
    for key, value in enumerate(() if result.flow is None else result.flow):
        yield "flow", result.layers[-1], key, labels[key], float(value)
    if result.ablated is None:
        return
    for key, value in enumerate(result.ablated.effects):
        if not np.isnan(value):
            yield "effect", "", key, labels[key], float(value)
    yield "best of shuffled", "", "", "", result.ablated.best_of_shuffled
    for each in result.ablated.trust:
        for name in ("correlation", "low", "high", "below"):
            yield f"{name} of {each.method}", "", "", "", float(getattr(each, name))


def _passages(result: Flow, say: Said) -> Iterator[Passage]:
    """What replacing each token does, and what the method gives that agrees with it best; of text alone."""
    if not result.tokens.texts:
        return
    own = frozenset[int]() if result.query is None else frozenset({result.query})
    ablated, trusted = result.ablated, ""
    if ablated is not None:
        scale = Scale.around(ablated.effects, costs=bool(ablated.answer))
        form = signed if ablated.answer else number
        yield Passage(say("costs_title"), result.tokens, ablated.effects, scale, form, own)
        trusted = "" if ablated.best is None else ablated.best.method
    name = trusted if trusted in result.methods else next(iter(result.methods))
    shares = np.where(result.reached, result.methods[name], math.nan)
    falls, largest = np.nanmin(shares, initial=0.0) < 0, float(np.nanmax(shares, initial=0.0)) or 1.0
    scale = Scale.around(shares) if falls else Scale(0.0, largest)
    yield Passage(say("reaches_title", name), result.tokens, shares, scale, weight, own)
