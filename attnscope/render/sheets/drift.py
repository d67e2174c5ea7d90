"""What a tuning changed: the heads whose attention moved most, beside rounding and beside what they heard."""

from collections.abc import Iterator, Sequence

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.labels import fit
from attnscope.render.kit.numbers import counted, number, percent, significant
from attnscope.render.kit.words.command import asking_of_text
from attnscope.render.kit.words.header import model_words
from attnscope.render.sheet.blocks import Block, Curve, Ranking
from attnscope.render.sheet.heads import Companion, HeadGrid, each_of
from attnscope.render.sheet.said import attention, proof
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Line, Mark, Table
from attnscope.results import Drift
from attnscope.results.claims.drift import SAME, Case, Place

_SHOWN = 10
_LONGEST = 46  # characters of a text in a table
_FACTS = "fact layer head line value"
_MOVED = "of what its queries give, what goes to other tokens: mean over queries, then over texts"
_OWN = "the same where its layer reads what it read in A: moved by its own weights"
_WRITES = "how far what it then writes lies from what it wrote in A, over the size of that"
_FEW = 8  # texts: of fewer the answer says how few


def sheet(result: Drift, focus: Focus = WHOLE) -> Sheet:
    grid, whole = _grid(result), focus.verbose
    nothing = result.case is Case.SAME and not whole  # zeros are no evidence: the answer says it
    a, b = map(model_words, (result.before, result.after))
    return Sheet(
        title=f"what tuning changed: B {b}, A {a}, over {counted(len(result.texts), 'text')}",
        setting=f"{attention(result.kind, result.tower)} · {model_words(result.before)}",
        origins=(result.before, result.after),
        answer=_answer(result),
        blocks=() if nothing else (_moved(result, whole), *_touched(result, whole), grid,
                                   *_profiles(result, whole)),
        more=(grid,) if nothing else (),
        table=lambda: Table.of(_FACTS, _facts(result)),
        texts=(f"A {a}", f"B {b}", _read(result)),
        control=_control(result),
        notes=tuple(_notes(result)),
        proof=proof(result.certified, "head", ", of one text under both models"),
        main=grid,
        record=tuple(("text", f"{each.line} {each.text}") for each in result.texts),
        next=_next(result),
    )  # fmt: skip


def _moved(result: Drift, whole: bool) -> Ranking:
    places = list(result.ranking) if whole else list(result.ranking[:_SHOWN])
    low, high, means = (each_of(values, places) for values in (result.low, result.high, result.mean))
    floor, texts = each_of(result.floor_mean, places), len(result.texts)
    return Ranking(
        title="heads whose attention moved most",
        of="head",
        names=tuple(map(result.name, places)),
        table=Table(
            Column("moved", means, "moved", percent, _MOVED),
            Column("reach", [_reach(a, b) for a, b in zip(low, high, strict=True)], "95 % interval",
                   says="of the mean, texts as trials (Student's t)", spared=1),
            Column("own", each_of(result.own_mean, places), "by itself", percent, _OWN),
            Column("written", each_of(result.written_mean, places), "writes otherwise", percent, _WRITES,
                   spared=2),
            Column("floor", floor, "rounding", percent, f"the same head of A, in {result.floor_by}"),
            Column("louder", [f"{result.louder[place]} of {texts}" for place in places], "beyond in",
                   says="texts in which it moved further than rounding moves any head", spared=1),
        ),
        measured="of what a query gives, to other tokens",
        marks=(
            Mark("span", "kin", "95 % interval", low, high),
            Mark("dot", "own", "moved", means),
            Mark("tick", "control", "rounding", floor),
            Mark("line", "limit", "" if result.limit is None else "--fail-above",
                 [] if result.limit is None else [result.limit]),
        ),
        written="moved",
        hidden=len(result.ranking) - len(places),
    )  # fmt: skip


def _reach(low: float, high: float) -> str:
    return "" if np.isnan(low) else f"{percent(low)} to {percent(high)}"


def _touched(result: Drift, whole: bool) -> Iterator[Ranking]:
    touched = result.touched or ()
    if not 0 < len(touched) < result.mean.size:
        return
    places: Sequence[Place] = touched if whole else touched[:_SHOWN]
    yield Ranking(
        title="heads that changed by their own weights",
        of="head",
        names=tuple(map(result.name, places)),
        table=Table(
            Column("own", each_of(result.own_mean, places), "looks elsewhere", percent, _OWN),
            Column("written", each_of(result.written_mean, places), "writes otherwise", percent, _WRITES),
        ),
        hidden=len(touched) - len(places),
    )


def _grid(result: Drift) -> HeadGrid:
    top = float(result.mean.max()) or 1.0
    return HeadGrid(
        title="how far each head moved",
        layers=result.layers,
        heads=result.heads,
        values=100 * result.mean,
        scale=Scale(0.0, 100 * top),
        form=_cell,
        unit="%",
        companion=Companion.numbers("rounding", 100 * result.floor_mean, _cell),
        beyond=("further than rounding moves any head", result.beyond),
    )


def _cell(value: float) -> str:
    if value == 0 or value >= 10:
        return f"{value:.0f}"
    return number(value, 1) if value >= 0.05 else "<.1"


def _profiles(result: Drift, whole: bool) -> Iterator[Block]:
    yield _layers(result)
    yield from _texts(result, whole)
    yield from _put_back(result)


def _layers(result: Drift) -> Curve:
    most = result.mean.max(axis=1)
    own = np.array(result.own_mean.mean(axis=1))
    floor = result.floor_mean.mean(axis=1)
    told = [result.heads[int(j)] for j in result.mean.argmax(axis=1)]
    names = [f"H{head} {percent(value)}" for head, value in zip(told, most.tolist(), strict=True)]
    return Curve(
        title="layer by layer",
        of="layer",
        names=tuple(f"L{layer}" for layer in result.layers),
        table=Table(
            Column("moved", result.by_layer.tolist(), "moved", percent, "in the mean over its heads"),
            Column("own", own.tolist(), "by itself", percent),
            Column("floor", floor.tolist(), "rounding", percent),
            Column("most", names, "its head that moved most"),
        ),
        places=tuple(map(float, result.layers)),
        measured="mean over heads",
        lines=(
            Line("line", "own", "moved", result.by_layer.tolist()),
            Line("line", "query", "by itself", own.tolist()),
            Line("dashed", "control", "rounding", floor.tolist()),
        ),
    )


def _texts(result: Drift, whole: bool) -> Iterator[Ranking]:
    if len(result.texts) < 2:
        return
    order = np.argsort(-result.by_text, kind="stable").tolist()
    shown = order if whole else order[:_SHOWN]
    flat = result.moved.reshape(len(result.texts), -1)
    best = [np.unravel_index(int(flat[i].argmax()), result.mean.shape) for i in shown]
    means = [float(result.by_text[i]) for i in shown]
    yield Ranking(
        title="texts on which it moved most",
        of="text",
        names=tuple(f"{result.texts[i].line} {fit(result.texts[i].text, _LONGEST)}" for i in shown),
        table=Table(
            Column("moved", means, "moved", percent, "in the mean over heads"),
            Column("head", [f"{result.name((int(i), int(j)))} {percent(float(flat[t].max()))}"
                            for t, (i, j) in zip(shown, best, strict=True)], "most in"),
        ),
        hidden=len(order) - len(shown),
    )  # fmt: skip


def _put_back(result: Drift) -> Iterator[Block]:
    back = result.put_back
    if back is None or not result.answers_differ:
        return
    form = percent
    yield Ranking(
        title=f"the answer of B with A's head put back, {counted(len(back.texts), 'text')}",
        of="head",
        names=tuple(f"L{layer} H{head}" for layer, head in back.heads),
        table=Table(
            Column("restored", back.restored.tolist(), "of the change gone", form,
                   f"of how far B's answer lies from A's ({result.answers_by}), what is gone with it; below "
                   "0: it lies further"),
            Column("others", back.restored_by_others.tolist(), "other heads", form,
                   "the same for other heads of its layer, drawn by lot: their mean"),
        ),
    )  # fmt: skip


def _next(result: Drift) -> Next | None:
    if result.case is Case.SAME:
        return None
    i, j = result.ranking[0]
    text = result.texts[int(result.moved[:, i, j].argmax())]
    options = ("--layer", str(result.layers[i]), "--head", str(result.heads[j]))
    asked = asking_of_text("heads", text.text, result.after, result.kind, result.tower, *options)
    return (
        Next(f"what does {result.name((i, j))} look at in B, in line {text.line}?", asked) if asked else None
    )


def _facts(result: Drift) -> Iterator[tuple[object, ...]]:
    for name in ("moved", "own", "written", "floor"):
        for t, i, j in np.ndindex(result.moved.shape):
            value = float(getattr(result, name)[t, i, j])
            yield name, result.layers[i], result.heads[j], result.texts[t].line, value
    for name in ("answers", "answers_floor"):
        for each, value in zip(result.texts, getattr(result, name).tolist(), strict=True):
            yield name, None, None, each.line, value
    if (back := result.put_back) is not None:
        for name in ("alone", "others"):
            for (layer, head), row in zip(back.heads, getattr(back, name).tolist(), strict=True):
                for t, value in zip(back.texts, row, strict=True):
                    yield f"put back, {name}", layer, head, result.texts[t].line, value


def _answer(result: Drift) -> str:
    """Other answers, the verdict over a limit, what moved most beside rounding, whose doing it is."""
    told = {Case.SAME: _same, Case.WITHIN: _within, Case.MOVED: _moved_most}[result.case](result)
    limit = "" if result.limit is None else _over(result)
    first, last = (_apart(result), "") if result.answers_differ else ("", _apart(result))
    return " ".join(each for each in (first, limit, told, last, _back_words(result), _few(result)) if each)


def _over(result: Drift) -> str:
    if not result.exceeding:
        return f"No head moved beyond {percent(result.limit or 0)}."
    return f"{counted(len(result.exceeding), 'head')} moved beyond {percent(result.limit or 0)}."


def _same(result: Drift) -> str:
    written = "" if np.isnan(result.written).any() else f", and writes the same to 1 part in {1 / SAME:,.0f}"
    what = "Nothing" if result.answers_by and not result.answers.any() else "No head"
    return (
        f"{what} changed: each of {counted(result.mean.size, 'head')} attends the same in A and B, to the "
        f"last bit{written}; {_rounding(result)}."
    )


def _most(result: Drift) -> str:
    place = result.ranking[0]
    share = percent(float(result.mean[place]))
    return f"{result.name(place)} moved most: {share} of what its queries give goes to other tokens"


def _rounding(result: Drift) -> str:
    return f"{result.floor_by} alone moves a head by {percent(float(result.loudest.mean()))} at most"


def _within(result: Drift) -> str:
    own = _own(result)
    return f"No head moved further than rounding moves one: {_most(result)}; {_rounding(result)}.{own}"


def _moved_most(result: Drift) -> str:
    count = f"{len(result.beyond):,} of {counted(result.mean.size, 'head')}"
    first = "" if result.ranking[0] in result.beyond else "In the mean "
    return f"{first}{_most(result)}; {_rounding(result)}. {count} moved further than that.{_own(result)}"


def _own(result: Drift) -> str:
    touched = result.touched
    if touched is None or len(touched) == result.mean.size:
        return ""
    if not touched:
        return " None of them changed by its own weights: they only hear of a change elsewhere."
    names = _listed(result, touched)
    verb = "has weights of its own that changed" if len(touched) == 1 else "have weights that changed"
    alone = not result.own_mean[touched[0]] > 0
    rest = " (it looks at the same tokens and writes something else)" if alone else ""
    return f" Only {names} {verb}{rest}; the others hear of it."


def _listed(result: Drift, places: tuple[Place, ...]) -> str:
    named = [result.name(place) for place in places]
    if len(named) < 3:
        return " and ".join(named)
    return f"{', '.join(named[:2])} and {len(named) - 2:,} more"


def _apart(result: Drift) -> str:
    if not result.answers_by:
        return f"The answers are not compared: {result.unanswered}."
    if not result.answers.any():
        return "" if result.case is Case.SAME else "The answers are the same."
    far, floor = (significant(float(each.mean())) for each in (result.answers, result.answers_floor))
    unit = "nats" if "nats" in result.answers_by else "of cosine"
    if result.answers_differ:
        return (
            f"A and B answer differently: {far} {unit} apart, where {result.floor_by} moves one by {floor}."
        )
    return f"The answers lie {far} {unit} apart, no further than {result.floor_by} moves them ({floor})."


def _back_words(result: Drift) -> str:
    """What putting the head that moved most back does to the answer, beside other heads."""
    back = result.put_back
    if back is None or not result.answers_differ:
        return ""
    gone, others = float(back.restored[0]), float(back.restored_by_others[0])
    layer, head = back.heads[0]
    beside = "" if others != others else f", another head of its layer {percent(others)}"
    return (
        f"L{layer} H{head} of A put back takes {percent(gone)} of the difference of the answers away{beside}."
    )


def _few(result: Drift) -> str:
    texts = len(result.texts)
    return f"Over only {counted(texts, 'text')}." if texts < _FEW else ""


def _read(result: Drift) -> str:
    file = f" of {result.file}" if result.file else ""
    return f"{counted(len(result.texts), 'text')}{file}"


def _control(result: Drift) -> str:
    return f"the same heads of A in {result.floor_by}, over the same texts"


def _notes(result: Drift) -> Iterator[str]:
    yield from result.notes
    if result.put_back is not None and result.answers_differ:
        every = percent(result.put_back.restored_by_every)
        yield f"all heads of A put back take {every} of the change of the answer away; the rest is no head's"
    elif result.answers_by and result.put_back is None and result.case is not Case.SAME:
        yield f"no head was put back: {result.unanswered}"
