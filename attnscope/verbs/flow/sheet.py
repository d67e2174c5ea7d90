"""Sheet of `flow`: attribution of every token by each method, beside the effect of replacing it."""

import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from attnscope.errors import InputError
from attnscope.printable import printable
from attnscope.render.kit.cells import settled
from attnscope.render.kit.command import asking, finding, looked_at
from attnscope.render.kit.numbers import largest_magnitude, number, signed, signed_cell, weight, weight_cell
from attnscope.render.kit.palette import Scale as Weights
from attnscope.render.kit.words import model_words, verdict_words
from attnscope.render.script import COARSE, EXACT, NATS, Told, names_of, of_run
from attnscope.render.sheet import said as sheet_said
from attnscope.render.sheet.blocks import Beside, Curve, Matrix, Names, Passage, Ranking
from attnscope.render.sheet.said import at, attention, in_sentence, numbered, proof, text
from attnscope.render.sheet.sheet import Next, Sheet, saying
from attnscope.render.sheet.table import Column, Line, Mark, Scale, Table, Tint, as_written, both_ways, only
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import Kind, Verdict
from attnscope.results.claims.attributed import DISTANCE, GRADIENT, INTEGRATED
from attnscope.spelling import told
from attnscope.tokens import Patches
from attnscope.verbs.flow.result import Ablated, Flow
from attnscope.vocabulary import Scaling, Special

_MOST, _LISTED, _PATCHES = 64, 40, 12  # most tokens shown in full; rows beyond that; rows of a picture
_FIRST_ROWS = 12  # replaced tokens shown, the largest effect first
_LINES: tuple[Tint, ...] = ("own", "other", "kin", "peers")
_BEST = 2  # without -v: methods shown besides the first, those that agree best
_FACTS = "fact layer position token value"


def sheet(result: Flow, focus: Focus = WHOLE) -> Sheet:
    say = said(result)
    averaged = say("averaged")
    patches, tokens = patches_of(result), _tokens(result, say, focus.verbose)
    maps = () if patches is None else (Beside(tuple(_maps(result, say, patches))),)
    ablated = result.ablated if result.ablated is not None and result.ablated.best is not None else None
    agreement = () if ablated is None else (_agreement(say, ablated, focus.verbose),)
    return saying(
        say,
        setting=f"{attention(result.kind, result.tower)}, {averaged} · {model_words(result.provenance)}",
        blocks=(Beside((tokens, *agreement)), *maps),
        table=lambda: Table.of(_FACTS, _rows(result)),
        texts=text(result.tokens),
        notes=(*say.lines("pooled_note"), *result.notes, *say.lines("notes")),
        departs=(f"seed {result.ablated.seed}",) if result.ablated and result.ablated.seed else (),
        proof=tuple(proofs(result, say)),
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
        return [*places, *others] if whole else places[:_FIRST_ROWS]
    most, listed = (_MOST, _LISTED) if patches_of(result) is None else (_PATCHES, _PATCHES)
    if len(seen) <= most:
        return seen
    order = np.argsort(-result.rollout[-1], kind="stable")[:listed]
    return sorted({*map(int, order), *([] if result.query is None else [result.query])})


def _tokens(result: Flow, say: Said, whole: bool) -> Ranking:
    shown, ablated = _shown(result, whole), result.ablated
    first = list(result.methods) if ablated is None else ordered(result, ablated)
    first = first if ablated is None or whole else first[: 1 + _BEST]
    shares = {
        name: [float(result.methods[name][key]) if result.reached[key] else math.nan for key in shown]
        for name in first
    }
    largest = max(float(np.nanmax(values)) for name, values in result.methods.items() if name not in SIGNED)
    shades = Scale(0.0, largest or 1.0)
    columns, marks = list[Column](), tuple[Mark, ...]()
    costs = ablated is not None and bool(ablated.answer)  # then + supports the answer, in one colour
    if ablated is not None:
        effects = [float(ablated.effects[key]) for key in shown]
        form = signed if costs else number
        around = Scale.around(ablated.effects, costs=costs)
        columns.append(Column("effect", effects, say("effect_heading"), form, say("says_effect"), around))
        marks = (Mark("bar", "own", "", effects),)
        if ablated.answer:
            marks = both_ways(effects, say("gains"), say("loses"), costs=True)
    for name, values in shares.items():
        falls = name in SIGNED
        scale = Scale.around(result.methods[name], costs=costs) if falls else shades
        shape = signed if falls else weight
        columns.append(
            Column(name.replace(" ", "_"), values, say("heading", name), shape, say("says", name), scale)
        )
    hidden, rows, seen = len(result.tokens) - len(shown), {*shown}, {*np.flatnonzero(result.reached).tolist()}
    tried = set[int]() if ablated is None else {*ablated.ranking}
    unshown = len(tried - rows), len(seen - tried - rows), len(result.tokens) - len(seen)
    return Ranking(
        title=say("tokens_title"),
        of=unit(result),
        names=numbered(result.tokens, shown),
        table=Table(*columns),
        measured="" if ablated is None else say("effect_measured"),
        marks=marks,
        written="effect" if marks else "",
        cells=tuple(name.replace(" ", "_") for name in shares),
        chosen=frozenset({shown.index(result.query)}) if result.query in shown else frozenset(),
        hidden=hidden,
        unshown=say("unshown", *unshown) if hidden else "",
    )


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
    """Arrange values by position into the patch grid; NaN for patches without a position."""
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


def _agreement(say: Said, ablated: Ablated, whole: bool) -> Ranking:
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
        names=tuple(Said("common")("method_words", each.method) for each in trust),
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


def _rows(result: Flow) -> Iterator[tuple[object, ...]]:
    by_layer = ("attention", result.raw), ("rollout", result.rollout), ("by norm", result.by_norm)
    labels = result.tokens.labels
    for name, values in (*by_layer, ("zeroing", result.zeroed)):
        for layer, row in zip(result.layers, () if values is None else values, strict=values is not None):
            for key, value in enumerate(row):
                yield name, layer, key, labels[key], float(value)
    for way in result.attributed:
        for key, value in enumerate(() if way.values is None else way.values):
            if not np.isnan(value):
                yield way.method, "", key, labels[key], float(value)
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
    """The text shaded by replacement effects, and by the method that agrees best; only for texts."""
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


_FEW = 10  # fewer tokens make a rank correlation weak
_FIRST = "attention"
SIGNED = frozenset({GRADIENT, INTEGRATED})  # methods with signed numbers, not shares


def said(result: Flow) -> Said:
    """Sentences of `flow` about this result, and the facts they use."""
    made = result.ablated
    best = None if made is None else made.best
    trust = () if made is None else made.trust
    parts = [] if made is None else [_part(result, made, place) for place in made.ranking[:2]]
    near = next((each.correlation for each in trust if each.method == DISTANCE), math.nan)
    summed = (each for each in result.attributed if each.method == INTEGRATED and each.values is not None)
    absent = dict[str, list[str]]()
    for each in result.attributed:
        if each.absent:
            absent.setdefault(each.absent, []).append(each.method)
    place = "" if result.query is None else at(result.tokens, result.query)
    span = result.query_span
    facts = {
        # the question
        "at": settled(told(result.tokens, span)) if span else place,
        "query": "" if result.query is None else in_sentence(result.tokens, result.query),
        "position": result.query,
        "span": span if len(span) > 1 else (),
        "how": "" if result.pooled is None else result.pooled.how,
        "answer": "" if made is None else settled(printable(made.answer)),
        "against": "" if made is None else settled(printable(made.against)),
        "after_it": result.kind is Kind.DECODER and made is not None and not made.tag,
        "of_span": made is not None and made.of_span,
        # the input
        "unit": unit(result),
        "layers": len(result.layers),
        "last_layer": result.layers[-1],
        "heads": len(result.heads),
        # the replacement
        "replacement": "" if made is None else made.replacement,
        "count": 0 if made is None else made.count,
        "together": 1 if made is None else made.together,
        "effect_unit": "" if made is None else made.unit,
        "before": None if made is None else made.probability,
        "lead": None if made is None else made.lead,
        "first": parts[0] if parts else None,
        "second": parts[1] if parts[1:] else None,
        # the methods
        "methods": sum(not math.isnan(each.correlation) for each in trust if each.method != DISTANCE),
        "best": best and best.method,
        "agrees": best and best.correlation,
        "shuffled": None if made is None else made.best_of_shuffled,
        "controls": 0 if made is None else made.controls,
        "near": near if best is not None and near >= best.correlation else None,
        "few": made is not None and best is not None and made.count < _FEW,
        "summed": next(summed, None),
        "no_flow": result.most if result.flow is None else None,
        "no_zeroing": result.no_zeroing if result.zeroed is None else "",
        "absent_by": tuple(absent.items()),
        "beside_map": _beside_the_map(result),
    }
    return Said("flow", result, facts)


def _part(result: Flow, made: Ablated, place: int) -> dict[str, object]:
    """Facts about one replacement: token name, number of others in its group, effect, answer after it."""
    effect = float(made.effects[place])
    return {
        "name": in_sentence(result.tokens, place),
        "beside": next((len(each) - 1 for each in made.groups if each[0] == place), 0),
        "effect": effect,
        "after": min(1.0, made.probability * math.exp(-effect)) if made.answer else None,
        "lead": made.lead - effect,
    }


def _beside_the_map(result: Flow) -> list[tuple[str, list[tuple[str, float]]]]:
    """Shares by method of up to four tokens: those outside the picture (such as [CLS]), and the query."""
    if patches_of(result) is None:
        return []
    patched = {place for stretch in result.tokens.stretches for place in stretch.positions}
    beside = [place for place in range(len(result.tokens)) if place not in patched or place == result.query]
    shares = {name: values for name, values in result.methods.items() if name not in SIGNED}
    return [
        (at(result.tokens, place), [(name, float(values[place])) for name, values in shares.items()])
        for place in beside[:4]
    ]


def proofs(result: Flow, say: Said) -> Iterator[tuple[Verdict, str]]:
    """Proof lines: heads by verdict, whether zeroed values were really zero, exactness of gradient sums."""
    rows = say("rows_in")
    yield from proof(result.certified, "head", what=f"{rows} " if rows else "")
    if (done := result.zeroing) is not None:
        mark = "" if done.verdict is Verdict.CERTIFIED else f"{verdict_words(done.verdict)}: "
        runs = done.read_back + done.lost + done.unseen
        yield done.verdict, mark + say("zeroed", runs, done.lost, done.unseen, done.faithful)
    if say.facts["summed"] is not None:
        yield Verdict.CERTIFIED, say("sums")


def patches_of(result: Flow) -> Patches | None:
    """The patch grid of a picture; None for texts, sounds, and pictures within a text."""
    stretch = next(iter(result.tokens.stretches), None)
    if not isinstance(stretch, Patches) or len(result.tokens.stretches) > 1:
        return None
    return None if result.tokens.texts else stretch


def unit(result: Flow) -> str:
    """Name of what one position is: token, word, patch or frame."""
    return result.by.value if result.by.joins else sheet_said.unit(result.tokens)


def ordered(result: Flow, ablated: Ablated) -> list[str]:
    """Method names: attention first, then by correlation with the effects, the highest first."""
    agrees = {each.method: each.correlation for each in ablated.trust if not math.isnan(each.correlation)}
    others = [each for each in result.methods if each != _FIRST]
    return [_FIRST, *sorted(others, key=lambda each: -agrees.get(each, -math.inf))]


def figures(result: Flow) -> Told:
    """Data for the script that recomputes the flow; `InputError` where no script can."""
    ablated = result.ablated
    if ablated is None:
        raise InputError(f"no script: nothing was replaced: {result.reason}")
    if result.query is None:
        raise InputError("no script: none computes a pooled vector again")
    if result.by.joins:
        raise InputError(f"no script: it is by {result.by.several}, and a script follows tokens")
    if result.query_span:
        raise InputError("no script: it is from several tokens, and a script goes back from one")
    if ablated.against:
        raise InputError("no script: it is of a lead, and a script tells what one answer loses")
    if len(ablated.answer_ids) > 1:
        raise InputError(
            "no script: its answer has several tokens, and a script tells what one of them loses"
        )
    told = of_run(result.provenance, result.tokens, result.kind, result.tower)
    places = np.flatnonzero(~np.isnan(ablated.effects)).tolist()
    return told | {
        "allowed": NATS if result.provenance.dtype in EXACT else COARSE,
        "layers": len(result.layers),
        "heads": result.heads,
        "query": result.query,
        "tokens": names_of(result.tokens),
        "rollout": result.rollout[-1].tolist(),
        "replaced in": ablated.input,
        "replacement": ablated.replacement,
        "replacement id": ablated.replacement_id,
        "said": ablated.answer,
        "answer": next(iter(ablated.answer_ids), None),
        "probability": ablated.probability,
        "effects": [(place, float(ablated.effects[place])) for place in places],
    }
