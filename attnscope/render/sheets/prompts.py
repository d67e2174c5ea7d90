"""One question over many prompts: the mean of every figure with its interval, and the prompts against it."""

from collections.abc import Iterator

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.csv import exact
from attnscope.render.kit.labels import fit
from attnscope.render.kit.numbers import counted, number, signed
from attnscope.render.kit.words.command import asking_of_text, looked_at
from attnscope.render.kit.words.header import model_words
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.said import attention, departures, proof
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Mark, Table, as_written
from attnscope.render.sheets import prompts_answers as answers
from attnscope.render.sheets import prompts_words as words
from attnscope.results import Prompts
from attnscope.results.claims.prompts import FEWEST, Asked

_SHOWN, _PROMPTS = 12, 10
_OF = {
    Asked.PREDICT: "answer",
    Asked.LAYERS: "layer",
    Asked.WHY: "part",
    Asked.ANSWER: "part",
    Asked.LINKS: "link",
}
_BOUNDED = ("weight", "probability")  # what lies between 0 and 1, as its axis does
_LONGEST = 46  # characters of a prompt in a table
_FACTS = "figure measured layer head line value control effect stands mean low high spread"
_TITLE = {
    Asked.FIND: "which head {}",
    Asked.LIKE: "which head {}",
    Asked.LINKS: "{}",
    Asked.ABLATE: "what answers become {}",
    Asked.RANK: "what is foretold of answers {}",
    Asked.FLOW: "what reaches the answer {}",
    Asked.PREDICT: "{}",
    Asked.LAYERS: "{}",
    Asked.WHY: "why a head looks {}",
    Asked.ANSWER: "why the model answers {}",
}


def sheet(result: Prompts, focus: Focus = WHOLE) -> Sheet:
    rankings = tuple(_rankings(result, focus.verbose))
    of = "" if result.kind is None else f"{attention(result.kind, result.tower)} · "
    title = _TITLE[result.asked].format(result.question)
    return Sheet(
        title=f"{title}, over {counted(len(result.prompts), 'prompt')}",
        setting=f"{of}{model_words(result.provenance)}",
        origins=(result.provenance,),
        answer=answers.answer(result),
        blocks=(*rankings, *_prompts(result, focus.verbose)),
        table=lambda: Table.of(_FACTS, _facts(result)),
        texts=(words.read(result),),
        control=words.control(result),
        notes=tuple(words.notes(result)),
        legend=(
            f"95 % between: the interval of the mean, with prompts as trials (Student's t), of {FEWEST} at "
            "least: it is of prompts like these, and of a template it says nothing of other sentences",
        ),
        proof=proof(result.certified, "prompt"),
        untouched="" if result.certified else "the model ran untouched",
        main=rankings[0] if rankings else None,
        departs=departures(result.by, result.special),
        record=tuple(("prompt", f"{each.line} {each.text}") for each in result.prompts),
        next=_next(result),
    )


def _rankings(result: Prompts, whole: bool) -> Iterator[Ranking]:
    measures = dict.fromkeys(result.figures[i].measured for i in result.ranking)
    for measured in measures:
        yield _ranking(result, measured, whole)


def _ranking(result: Prompts, measured: str, whole: bool) -> Ranking:
    every = [i for i in result.ranking if result.figures[i].measured == measured]
    shown = every if whole or result.asked is Asked.LAYERS else every[:_SHOWN]
    form, asked = words.form(measured), result.asked
    low, high = ([float(each[i]) for i in shown] for each in (result.low, result.high))
    between = [words.between(result, i) for i in shown]
    control = [float(result.control_mean[i]) for i in shown]
    held = [asked.signed or np.isfinite(result.excess[i]).any() for i in shown]
    same = [
        _of(result, i, result.count(i) - len(result.opposed(i))) if has else ""
        for i, has in zip(shown, held, strict=True)
    ]
    sign = "same sign" if asked.signed else "beyond it in"
    says = "sign of the mean" if asked.signed else "prompts in which it is beyond its control"
    lines = [_lines(result.opposed(i)) for i in shown]
    lost = [_mean(result.effects[i]) for i in shown]
    hidden = len(every) - len(shown)
    # fmt: off
    return Ranking(
        title=f"{measured} over prompts",
        of=_OF.get(asked, "figure" if result.figures[every[0]].head is None else "head"),
        names=tuple(words.called(result.figures[i]) for i in shown),
        table=Table(
            Column("mean", [float(result.mean[i]) for i in shown], "mean", form),
            Column("between", between, "95 % between", as_written,
                   "the interval of the mean, prompts as trials"),
            Column("spread", [float(result.spread[i]) for i in shown], "spread",
                   form if measured == "probability" else number,
                   "standard deviation over prompts", spared=2),
            Column("lost", lost, words.without(result)[0], signed, words.without(result)[1]),
            Column("control", control, words.CONTROL[asked], form if not asked.signed else number,
                   "the mean over prompts of what stands beside it in each"),
            Column("same", same, sign, says=f"in how many prompts: {says}"),
            Column("stands", [_of(result, i, int(result.stands[i].sum())) for i in shown],
                   words.stands(result, measured), says=words.stood(result), spared=1),
            Column("against", lines, "lines against it", spared=3),
        ),
        measured=measured,
        marks=(
            Mark("span", "kin", "95 % interval of the mean", low, high),
            Mark("dot", "own", "mean", [float(result.mean[i]) for i in shown]),
            *(Mark("diamond", "limit", each, lost) for each in words.without(result)[:1] if each),
            Mark("tick", "control", words.ticked(result), _both(result, shown, control)),
        ),
        written="mean",
        axis=(0.0, 1.0) if measured in _BOUNDED else None,
        hidden=hidden,
        unshown=f"{counted(hidden, 'more figure')}{'' if whole else ' (-v)'}",
    )
    # fmt: on


def _both(result: Prompts, shown: list[int], control: list[float]) -> list[float]:
    if not result.asked.signed:
        return control
    return [float(np.copysign(each, result.mean[i])) for each, i in zip(control, shown, strict=True)]


def _of(result: Prompts, figure: int, count: int) -> str:
    return f"{count} of {result.count(figure)}"


def _lines(lines: tuple[int, ...]) -> str:
    return ", ".join(map(str, lines[:6])) + (", ..." if len(lines) > 6 else "")


def _mean(values: np.ndarray) -> float | None:
    there = values[np.isfinite(values)]
    return float(there.mean()) if len(there) else None


def _prompts(result: Prompts, whole: bool) -> Iterator[Ranking]:
    if not result.ranking or result.asked is Asked.LAYERS:
        return
    first = result.ranking[0]
    figure, form = result.figures[first], words.form(result.figures[first].measured)
    there = np.isfinite(result.values[first])
    order = [i for i in range(len(result.prompts)) if there[i]]
    order.sort(key=lambda i: (not result.against[first, i], i))
    against = int(result.against[first].sum())
    shown = order if whole else order[: max(_PROMPTS, min(against, 2 * _PROMPTS))]
    sections = [(0, f"against it ({against})")] if against else []
    sections += [(against, "with it")] if against < len(shown) and against else []
    yield Ranking(
        title=f"{words.called(figure)} in each prompt",
        of="prompt",
        names=tuple(f"{result.prompts[i].line} {fit(result.prompts[i].text, _LONGEST)}" for i in shown),
        table=Table(
            Column("value", [float(result.values[first, i]) for i in shown], figure.measured, form),
            Column(
                "control",
                [float(result.controls[first, i]) for i in shown],
                words.CONTROL[result.asked],
                number if result.asked.signed else form,
            ),
            Column(
                "stands",
                ["yes" if result.stands[first, i] else "" for i in shown],
                words.stands(result, figure.measured).removesuffix(" in"),
            ),
        ),
        hidden=len(order) - len(shown),
        unshown=f"{counted(len(order) - len(shown), 'more prompt')}{'' if whole else ' (-v)'}",
        sections=tuple(sections),
    )


def _next(result: Prompts) -> Next | None:
    if not result.ranking:
        return None
    first = result.ranking[0]
    figure = result.figures[first]
    off = [i for i in range(len(result.prompts)) if result.against[first, i]]
    off = [] if result.asked is Asked.LAYERS else off
    prompt = result.prompts[off[0] if off else 0]
    # not every model whose heads are asked answers anything
    command, options = "predict" if result.asked in (Asked.PREDICT, Asked.LAYERS) else "heads", list[str]()
    if figure.head is not None and figure.layer is not None:
        command, options = "heads", ["--layer", str(figure.layer), "--head", str(figure.head)]
    kind = result.kind if command == "heads" else None
    looking = looked_at(result.by, result.special) if command == "heads" else ""
    asked = asking_of_text(command, prompt.text, result.provenance, kind, result.tower, *options)
    what = f"what does {figure.name.split(' on ')[0]} do" if options else "what do heads look at"
    what = "what does the model answer" if command == "predict" else what
    which = "which goes against it" if off else "the first one"
    return Next(f"{what} in line {prompt.line}, {which}?", f"{asked}{looking}") if asked else None


def _facts(result: Prompts) -> Iterator[tuple[object, ...]]:
    for i in result.ranking:
        figure = result.figures[i]
        place = ("" if each is None else each for each in (figure.layer, figure.head))
        layer, head = place
        over = [exact(float(each[i])) for each in (result.mean, result.low, result.high, result.spread)]
        for j, prompt in enumerate(result.prompts):
            own = (result.values, result.controls, result.effects)
            numbers = (exact(float(each[i, j])) for each in own)
            yield (
                figure.name, figure.measured, layer, head, prompt.line, *numbers,
                int(result.stands[i, j]), *over,
            )  # fmt: skip
