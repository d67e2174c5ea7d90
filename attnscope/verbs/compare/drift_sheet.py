"""The sheet of a tuning: heads whose attention moved most, beside rounding and their inputs' part."""

from collections.abc import Iterator

import numpy as np

from attnscope.render.kit.cells import fit
from attnscope.render.kit.command import asking_of_text
from attnscope.render.kit.numbers import number, percent
from attnscope.render.kit.words import model_words
from attnscope.render.sheet.blocks import Block, Curve, Ranking
from attnscope.render.sheet.heads import Companion, HeadGrid, each_of
from attnscope.render.sheet.said import proof
from attnscope.render.sheet.sheet import Next, Sheet, saying
from attnscope.render.sheet.table import Column, Line, Mark, Scale, Table
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results.heads import head_name
from attnscope.results.scores import ordered
from attnscope.verbs.compare.sheet import by_layer
from attnscope.verbs.compare.texts_result import SAME, Drift, DriftCase

_SHOWN, _ALL = 10, 2  # rows of a table; heads that are all named
_LONGEST = 46  # characters of a text in a table
_FACTS = "fact layer head line value"


def sheet(result: Drift, focus: Focus = WHOLE) -> Sheet:
    say, whole = said(result), focus.verbose
    grid = _grid(result, say)
    nothing = result.case is DriftCase.SAME and not whole  # zeros are no evidence: the answer says it
    a, b = map(model_words, (result.before, result.after))
    return saying(
        say,
        origins=(result.before, result.after),
        blocks=() if nothing else (_moved(result, say, whole), *_touched(result, say, whole), grid,
                                   _layers(result, say), *_texts(result, say, whole),
                                   *_put_back(result, say)),
        more=(grid,) if nothing else (),
        table=lambda: Table.of(_FACTS, _records(result)),
        texts=(f"A {a}", f"B {b}", say("read")),
        notes=(*result.notes, *say.lines("notes")),
        proof=proof(result.certified, "head", say("certified_in")),
        main=grid,
        record=tuple(("text", f"{each.line} {each.text}") for each in result.texts),
        next=_next(result, say),
    )  # fmt: skip


def said(result: Drift) -> Said:
    """A `Said` that fills the sentence templates about a tuning with the facts of this result."""
    best, touched, back = result.ranking[0], result.touched, result.put_back
    some = None if touched is None or len(touched) == result.mean.size else [*map(result.name, touched)]
    shown = some and some[: _ALL if len(some) <= _ALL else 2]
    alone = touched and shown and not result.means["own"][touched[0]] > 0
    others = None if back is None else float(back.restored_by_others[0])
    facts = {
        "model_a": model_words(result.before),
        "model_b": model_words(result.after),
        # what changed
        "best": result.name(best),
        "most": float(result.mean[best]),
        "best_beyond": best in result.beyond,
        "rounding": float(result.loudest.mean()),
        "touched": shown,
        "and_more": len(some or ()) - len(shown or ()),
        "alone": shown and alone and shown[0],
        "to_1_part_in": None if np.isnan(result.written).any() else f"{1 / SAME:,.0f}",
        # what became of the answers
        "apart": float(result.answers.mean()) if result.answers_by else None,
        "apart_by_rounding": float(result.answers_floor.mean()),
        "unit": "nats" if "nats" in result.answers_by else "of cosine",
        "answers_same": bool(result.answers_by) and not result.answers.any(),
        "put_back": back and head_name(*back.heads[0]),
        "restored": back and float(back.restored[0]),
        "others": None if others is None or np.isnan(others) else others,
        "restored_by_every": back and back.restored_by_every,
    }
    return Said("drift", result, facts)


def _moved(result: Drift, say: Said, whole: bool) -> Ranking:
    places = list(result.ranking) if whole else list(result.ranking[:_SHOWN])
    low, high = (each_of(values, places) for values in (result.low, result.high))
    means, own, written, floor = (each_of(values, places) for values in result.means.values())
    reach = ["" if np.isnan(a) else f"{percent(a)} to {percent(b)}" for a, b in zip(low, high, strict=True)]
    louder = [f"{result.louder[place]} of {len(result.texts)}" for place in places]
    return Ranking(
        title=say("moved_title"),
        of="head",
        names=tuple(map(result.name, places)),
        table=Table(
            Column("moved", means, "moved", percent, say("moved_says")),
            Column("reach", reach, "95 % interval", says=say("interval_says"), spared=1),
            Column("own", own, "by itself", percent, say("own_says")),
            Column("written", written, "writes otherwise", percent, say("writes_says"), spared=2),
            Column("floor", floor, "rounding", percent, say("floor_says")),
            Column("louder", louder, "beyond in", says=say("beyond_says"), spared=1),
        ),
        measured=say("measured"),
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


def _touched(result: Drift, say: Said, whole: bool) -> Iterator[Ranking]:
    touched = result.touched or ()
    if 0 < len(touched) < result.mean.size:
        places = touched if whole else touched[:_SHOWN]
        own, written = (each_of(result.means[name], places) for name in ("own", "written"))
        yield Ranking(
            title=say("own_title"),
            of="head",
            names=tuple(map(result.name, places)),
            table=Table(
                Column("own", own, "looks elsewhere", percent, say("own_says")),
                Column("written", written, "writes otherwise", percent, say("writes_says")),
            ),
            hidden=len(touched) - len(places),
        )


def _grid(result: Drift, say: Said) -> HeadGrid:
    top = float(result.mean.max()) or 1.0
    return HeadGrid(
        title=say("grid_title"),
        layers=result.layers,
        heads=result.heads,
        values=100 * result.mean,
        scale=Scale(0.0, 100 * top),
        form=_cell,
        unit="%",
        companion=Companion.numbers("rounding", 100 * result.means["floor"], _cell),
        beyond=(say("grid_beyond"), result.beyond),
    )


def _cell(value: float) -> str:
    if value == 0 or value >= 10:
        return f"{value:.0f}"
    return number(value, 1) if value >= 0.05 else "<.1"


def _layers(result: Drift, say: Said) -> Curve:
    most = [f"H{result.heads[int(row.argmax())]} {percent(float(row.max()))}" for row in result.mean]
    moved, own, floor = (result.means[name].mean(axis=1).tolist() for name in ("moved", "own", "floor"))
    columns = (
        Column("moved", moved, "moved", percent, say("layers_says")),
        Column("own", own, "by itself", percent),
        Column("floor", floor, "rounding", percent),
        Column("most", most, say("layers_most")),
    )
    lines = (
        Line("line", "own", "moved", moved),
        Line("line", "query", "by itself", own),
        Line("dashed", "control", "rounding", floor),
    )
    return by_layer(result.layers, say("layers_title"), say("layers_measured"), columns, lines)


def _texts(result: Drift, say: Said, whole: bool) -> Iterator[Ranking]:
    if len(result.texts) < 2:
        return
    order = np.argsort(-result.by_text, kind="stable").tolist()
    shown = order if whole else order[:_SHOWN]
    best = [ordered(result.moved[i])[0] for i in shown]
    most = [f"{result.name(place)} {percent(float(result.moved[i][place]))}"
            for i, place in zip(shown, best, strict=True)]  # fmt: skip
    means = [float(result.by_text[i]) for i in shown]
    yield Ranking(
        title=say("texts_title"),
        of="text",
        names=tuple(f"{result.texts[i].line} {fit(result.texts[i].text, _LONGEST)}" for i in shown),
        table=Table(
            Column("moved", means, "moved", percent, say("texts_says")), Column("head", most, "most in")
        ),
        hidden=len(order) - len(shown),
    )


def _put_back(result: Drift, say: Said) -> Iterator[Block]:
    back = result.put_back
    if back is not None and result.answers_differ:
        gone, others = back.restored.tolist(), back.restored_by_others.tolist()
        yield Ranking(
            title=say("back_title", len(back.texts)),
            of="head",
            names=tuple(head_name(*head) for head in back.heads),
            table=Table(
                Column("restored", gone, "of the change gone", percent, say("back_says")),
                Column("others", others, "other heads", percent, say("back_others")),
            ),
        )


def _next(result: Drift, say: Said) -> Next | None:
    if result.case is DriftCase.SAME:
        return None
    i, j = result.ranking[0]
    text = result.texts[int(result.moved[:, i, j].argmax())]
    options = ("--layer", str(result.layers[i]), "--head", str(result.heads[j]))
    asked = asking_of_text("heads", text.text, result.after, *options)
    return Next(say("look_in_b", text.line), asked) if asked else None


def _records(result: Drift) -> Iterator[tuple[object, ...]]:
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
