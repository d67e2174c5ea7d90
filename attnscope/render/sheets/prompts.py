"""Sheet of one question over many prompts: each figure's mean and interval, and deviating prompts."""

from collections.abc import Callable, Iterator

import numpy as np

from attnscope.render.kit.cells import fit
from attnscope.render.kit.command import asking_of_text, looked_at
from attnscope.render.kit.numbers import chance, exact, number, signed, weight
from attnscope.render.kit.words import model_words
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.said import attention, departures, name, proof
from attnscope.render.sheet.sheet import Next, Sheet, saying
from attnscope.render.sheet.table import Column, Mark, Table, as_written
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import Prompts
from attnscope.results.base.evidence import LEAST
from attnscope.results.claims.prompts import CORRELATION, FEWEST, Asked, by_reason, lines_told

_SHOWN, _PROMPTS, _REASONS = 12, 10, 5
_BOUNDED = ("weight", "probability")  # what lies between 0 and 1, as its axis does
_LONGEST = 46  # characters of a prompt in a table
_COLUMNS = "figure measured layer head line value control effect stands mean low high spread"
_FORMS: dict[str, Callable[[float], str]] = {"weight": weight, "distance": weight, "probability": chance}


def sheet(result: Prompts, focus: Focus = WHOLE) -> Sheet:
    say, whole = said(result), focus.verbose
    measures = dict.fromkeys(result.figures[i].measured for i in result.ranking)
    rankings = tuple(_ranking(result, say, measured, whole) for measured in measures)
    of = "" if result.kind is None else f"{attention(result.kind, result.tower)} · "
    return saying(
        say,
        setting=f"{of}{model_words(result.provenance)}",
        blocks=(*rankings, *_prompts(result, say, whole)),
        table=lambda: Table.of(_COLUMNS, _records(result)),
        texts=(say("read"),),
        notes=(*result.notes, *say.lines("notes")),
        proof=proof(result.certified, "prompt"),
        untouched="" if result.certified else "the model ran untouched",
        main=rankings[0] if rankings else None,
        departs=departures(result.by, result.special),
        record=tuple(("prompt", f"{each.line} {each.text}") for each in result.prompts),
        next=_next(result, say),
    )


def said(result: Prompts) -> Said:
    """Sentences of many prompts about this result."""
    asked, first = result.asked, _first(result)
    best = None if first is None else _figure(result, first)
    measured = "" if first is None else result.figures[first].measured
    unit = measured.removeprefix("foretold ").removesuffix(" lost")
    likely = {"nats": "likely", "logits": "likely beside the other one"}.get(unit)
    other = None if first is None else _other(result, first)
    reasons = [(lines_told(lines), len(lines), why) for why, lines in by_reason(result.refused).items()]
    correlated = [each for each in result.figures if each.measured == CORRELATION]
    facts = {
        "prompts": len(result.prompts),
        "figures": len(result.figures),
        "refused": len(result.refused),
        "reasons": reasons[:_REASONS],
        "unsaid": sum(count for _, count, _ in reasons[_REASONS:]),
        "least": FEWEST,
        "linked": LEAST,
        "of_heads": asked in (Asked.FIND, Asked.LIKE, Asked.LINKS),
        "predicted": asked is Asked.RANK,
        "of_answer": asked is Asked.ANSWER,
        "methods": len(correlated) if measured == CORRELATION else 0,
        "held": bool(np.isfinite(result.control_mean).any()),
        "unit": unit,
        "likely": likely,
        "best": best,
        "other": None if other is None else _figure(result, other),
    }
    return Said("prompts", result, facts)


def _first(result: Prompts) -> int | None:
    """Index of the answer's figure; for layers, the first from which the answer leads in most prompts."""
    if not result.ranking:
        return None
    if result.asked is not Asked.LAYERS:
        return result.ranking[0]
    behind = np.flatnonzero(2 * result.stands.sum(axis=1) < len(result.prompts))
    return min(int(behind[-1]) + 1 if len(behind) else 0, len(result.figures) - 1)


def _other(result: Prompts, first: int) -> int | None:
    """The second answer by number of prompts; for a score, the first reason at its other end."""
    often = result.stands.sum(axis=1)
    if result.asked is Asked.PREDICT:
        return max(result.ranking[1:], key=lambda i: int(often[i]), default=None)
    side = result.figures[first].name.rpartition(" on ")[2]
    ends = (i for i in result.ranking if not result.figures[i].name.endswith(side))
    return next((i for i in ends if result.asked is Asked.WHY and often[i]), None)


def _figure(result: Prompts, i: int) -> dict[str, object]:
    figure, mean, effects = result.figures[i], float(result.mean[i]), result.effects[i]
    tried, count = effects[np.isfinite(effects)], result.count(i)
    effect = float(tried.mean()) if len(tried) else None
    control = float(result.control_mean[i])
    part, _, side = figure.name.partition(" on the ")
    ends = {"key side": " at the token looked at", "query side": " at the token that looks"}
    one = None if figure.layer is None or figure.head is None else name(figure.layer, figure.head)
    lost = effect if result.asked.of_parts else mean if result.asked is Asked.FLOW else -mean
    return {
        "name": _called(result, i),
        "one": one,
        "head": one or "all chosen heads at once",
        "link": figure.name.partition(" ")[2].partition(" ")[2] if result.asked is Asked.LINKS else "",
        "who": part,
        "part": part + ends.get(side, ""),
        "measured": figure.measured,
        "mean": mean,
        "control": control if np.isfinite(control) else None,
        "between": _between(result, i),
        "alike": result.low[i] == result.high[i],
        "either": result.asked.signed and result.low[i] <= 0 <= result.high[i],
        "count": count,
        "same": count - len(result.opposed(i)),
        "often": int(result.stands[i].sum()),
        "lost": lost,
        "tried": len(tried),
        "really": None if effect is None else -effect,
    }


def _called(result: Prompts, figure: int) -> str:
    return Said("common")("method_words", result.figures[figure].name)


def _form(measured: str) -> Callable[[float], str]:
    return _FORMS.get(measured, signed)


def _between(result: Prompts, figure: int) -> str:
    """The interval of the mean, `.64 to .78`; empty where there is none."""
    low, high = float(result.low[figure]), float(result.high[figure])
    form = _form(result.figures[figure].measured)
    return "" if np.isnan(low) else "all alike" if low == high else f"{form(low)} to {form(high)}"


def _ranking(result: Prompts, say: Said, measured: str, whole: bool) -> Ranking:
    every = [i for i in result.ranking if result.figures[i].measured == measured]
    shown = every if whole or result.asked is Asked.LAYERS else every[:_SHOWN]
    form, by_sign = _form(measured), result.asked.signed
    mean, low, high, spread, control = (
        [float(each[i]) for i in shown]
        for each in (result.mean, result.low, result.high, result.spread, result.control_mean)
    )
    held = [by_sign or np.isfinite(result.excess[i]).any() for i in shown]
    same = [_of(result, i, result.count(i) - len(result.opposed(i))) for i in shown]
    lost, hidden = [_mean(result.effects[i]) for i in shown], len(every) - len(shown)
    beside, lost_heading = say("beside_heading"), say("lost_heading")
    ticks = np.copysign(control, mean).tolist() if by_sign else control
    # fmt: off
    return Ranking(
        title=say("ranking_title", measured),
        of=say("of", result.figures[every[0]].head is not None),
        names=tuple(_called(result, i) for i in shown),
        table=Table(
            Column("mean", mean, "mean", form),
            Column("between", [_between(result, i) for i in shown], "95 % between", as_written,
                   say("says_between")),
            Column("spread", spread, "spread", form if measured == "probability" else number,
                   say("says_spread"), spared=2),
            Column("lost", lost, lost_heading, signed, say("says_lost")),
            Column("control", control, beside, number if by_sign else form, say("says_beside")),
            Column("same", [each if has else "" for each, has in zip(same, held, strict=True)],
                   say("same_heading"), says=say("says_same")),
            Column("stands", [_of(result, i, int(result.stands[i].sum())) for i in shown],
                   say("stands_heading", measured != CORRELATION), says=say("says_stands"), spared=1),
            Column("against", [_lines(result.opposed(i)) for i in shown], say("against_heading"), spared=3),
        ),
        measured=measured,
        marks=(
            Mark("span", "kin", say("mark_between"), low, high),
            Mark("dot", "own", "mean", mean),
            *((Mark("diamond", "limit", lost_heading, lost),) if lost_heading else ()),
            Mark("tick", "control", beside, ticks),
        ),
        written="mean",
        axis=(0.0, 1.0) if measured in _BOUNDED else None,
        hidden=hidden,
        unshown=say("more_figures", hidden, whole),
    )
    # fmt: on


def _of(result: Prompts, figure: int, count: int) -> str:
    return f"{count} of {result.count(figure)}"


def _lines(lines: tuple[int, ...]) -> str:
    return ", ".join(map(str, lines[:6])) + (", ..." if len(lines) > 6 else "")


def _mean(values: np.ndarray) -> float | None:
    there = values[np.isfinite(values)]
    return float(there.mean()) if len(there) else None


def _prompts(result: Prompts, say: Said, whole: bool) -> Iterator[Ranking]:
    if not result.ranking or result.asked is Asked.LAYERS:
        return
    first = result.ranking[0]
    measured = result.figures[first].measured
    form = _form(measured)
    order = np.flatnonzero(np.isfinite(result.values[first])).tolist()
    order.sort(key=lambda i: (not result.against[first, i], i))
    against = int(result.against[first].sum())
    shown = order if whole else order[: max(_PROMPTS, min(against, 2 * _PROMPTS))]
    sections = [(0, say("against_it", against))] if against else []
    sections += [(against, say("with_it"))] if against < len(shown) and against else []
    stands = ["yes" if result.stands[first, i] else "" for i in shown]
    controls = [float(result.controls[first, i]) for i in shown]
    heading = say("stands_heading", measured != CORRELATION).removesuffix(" in")
    yield Ranking(
        title=say("prompts_title"),
        of="prompt",
        names=tuple(f"{result.prompts[i].line} {fit(result.prompts[i].text, _LONGEST)}" for i in shown),
        table=Table(
            Column("value", [float(result.values[first, i]) for i in shown], measured, form),
            Column("control", controls, say("beside_heading"), number if result.asked.signed else form),
            Column("stands", stands, heading),
        ),
        hidden=len(order) - len(shown),
        unshown=say("more_prompts", len(order) - len(shown), whole),
        sections=tuple(sections),
    )


def _next(result: Prompts, say: Said) -> Next | None:
    if not result.ranking:
        return None
    first = result.ranking[0]
    figure, head = result.figures[first], ""
    against = [] if result.asked is Asked.LAYERS else np.flatnonzero(result.against[first]).tolist()
    prompt = result.prompts[against[0] if against else 0]
    # not every model whose heads are asked answers anything
    command, options = "predict" if result.asked in (Asked.PREDICT, Asked.LAYERS) else "heads", list[str]()
    if figure.head is not None and figure.layer is not None:
        command, options = "heads", ["--layer", str(figure.layer), "--head", str(figure.head)]
        head = name(figure.layer, figure.head)
    of_heads = command == "heads"
    looking = looked_at(result.by, result.special) if of_heads else ""
    asked = asking_of_text(command, prompt.text, result.provenance, *options)
    what = say("next", command, head, prompt.line, bool(against))
    return Next(what, f"{asked}{looking}") if asked else None


def _records(result: Prompts) -> Iterator[tuple[object, ...]]:
    for i in result.ranking:
        figure = result.figures[i]
        layer, head = ("" if each is None else each for each in (figure.layer, figure.head))
        over = [exact(float(each[i])) for each in (result.mean, result.low, result.high, result.spread)]
        for j, prompt in enumerate(result.prompts):
            own = (result.values, result.controls, result.effects)
            numbers = (exact(float(each[i, j])) for each in own)
            yield (
                figure.name, figure.measured, layer, head, prompt.line, *numbers,
                int(result.stands[i, j]), *over,
            )  # fmt: skip
