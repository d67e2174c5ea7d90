"""What can be said of many prompts: of the figure that comes first, question by question."""

from collections.abc import Callable

import numpy as np

from attnscope.errors import listed
from attnscope.render.kit.numbers import counted, number
from attnscope.render.sheets import prompts_words as words
from attnscope.results import Prompts
from attnscope.results.base.evidence import LEAST
from attnscope.results.claims.prompts import CORRELATION, FEWEST, Asked, Case

_NAMED = 5  # lines that an answer names
_UNITS = {"cosine": "of cosine"}


def answer(result: Prompts) -> str:
    """One sentence for the question, and what limits it."""
    if result.case is Case.NOTHING and result.asked is Asked.LINKS:
        told = (
            f"Nothing is linked in the same way in {counted(len(result.prompts), 'prompt')}: no pair of words"
        )
        return f"{told} lies above all that explains it by {number(LEAST)} in the mean."
    if result.case is Case.NOTHING:
        return f"No figure of {counted(len(result.prompts), 'prompt')} has a number."
    if result.asked is Asked.LAYERS:
        return _layers(result)
    first = result.ranking[0]
    told = _SAID[result.asked](result, first)
    return " ".join(each for each in (told, _against(result, first), _limits(result, first)) if each)


def _mean(result: Prompts, figure: int) -> str:
    told = words.form(result.figures[figure].measured)(float(result.mean[figure]))
    return f"{told} {_ends(words.between(result, figure))}".strip()


def _ends(interval: str) -> str:
    return f"({interval})" if interval else ""


def _control(result: Prompts, figure: int) -> str:
    return words.form(result.figures[figure].measured)(float(result.control_mean[figure]))


def _with(result: Prompts, figure: int) -> str:
    count = result.count(figure)
    return f"{count - len(result.opposed(figure))} of {counted(count, 'prompt')}"


def _finding(result: Prompts, figure: int) -> str:
    name = result.figures[figure].name
    of = f"{len(result.figures):,} heads" if len(result.figures) > 1 else "this head"
    numbers = f"{_mean(result, figure)} in the mean, {_control(result, figure)} in their control texts"
    verb = result.question
    compared = "more than in control texts" if result.asked is Asked.FIND else "more so than in control texts"
    if result.case in (Case.HOLDS, Case.FEW):
        return f"{name} {verb} in {_with(result, figure)} {compared}: {numbers}."
    if result.case is Case.ALONE:
        return (
            f"{name} {verb} in {_with(result, figure)} {compared} ({numbers}), but as the best of {of} that "
            "may be luck."
        )
    count = counted(result.count(figure), "prompt")
    return f"{count} cannot tell whether any of {of} {verb}: {name} comes nearest, {numbers}."


_PLAINLY = "with zeros for outputs"


def _ablation(result: Prompts, figure: int) -> str:
    figured, mean = result.figures[figure], float(result.mean[figure])
    name = "all chosen heads at once" if figured.head is None else figured.name
    does = "loses" if mean < 0 else "gains"
    ends = _ends(words.between(result, figure, number, -1 if mean < 0 else 1))
    amount = f"{number(abs(mean))} {ends}".strip()
    others = "other such groups move" if figured.head is None else "the typical head of its layer moves"
    count, control = result.count(figure), number(float(result.control_mean[figure]))
    unit = _UNITS.get(figured.measured, figured.measured)
    told_apart = result.question.startswith("with") and result.question != _PLAINLY
    how = f" ({result.question})" if told_apart else ""
    told = (
        f"Without {name}{how} the answer {does} {amount} {unit} in the mean of {counted(count, 'prompt')}, "
        f"and {does} in {count - len(result.opposed(figure))}; {others} it by {control}."
    )
    if result.case is Case.CANNOT_TELL:
        of = f"any of {len(result.figures):,} heads" if len(result.figures) > 1 else "this head"
        shown = f"{counted(count, 'prompt')} do not show that {of} moves the answer more than others"
        return f"{shown}. Nearest: w{told[1:]}"
    if result.low[figure] <= 0 <= result.high[figure]:
        told += " The interval covers 0: which way it goes is not the same in all."
    if result.case is Case.ALONE:
        return f"{told} As the first of {len(result.figures):,} that may be luck."
    return told


def _links(result: Prompts, figure: int) -> str:
    name = result.figures[figure].name
    numbers = f"{_mean(result, figure)} in the mean, {_control(result, figure)} of it explained"
    stands = f"in {int(result.stands[figure].sum())} it stands out of all links of control texts"
    if result.case is Case.CANNOT_TELL:
        count = counted(result.count(figure), "prompt")
        return f"{count} cannot tell what is linked: {name} comes nearest, {numbers}; {stands}."
    told = f"{name} looks more than anything explains in {_with(result, figure)}: {numbers}; {stands}"
    return f"{told}; as the best of so many that may be luck." if result.case is Case.ALONE else f"{told}."


def _ranked(result: Prompts, figure: int) -> str:
    name, measured = result.figures[figure].name, result.figures[figure].measured
    unit, mean = measured.removeprefix("foretold "), float(result.mean[figure])
    count, effects = counted(result.count(figure), "prompt"), result.effects[figure]
    really = effects[np.isfinite(effects)]
    ends = _ends(words.between(result, figure, number, -1 if mean < 0 else 1))
    amount = " ".join(filter(None, (number(abs(mean)), ends, _UNITS.get(unit, unit))))
    told = (
        f"without {name} the answer is foretold to {'lose' if mean < 0 else 'gain'} {amount} in the mean of "
        f"{count}, without the typical head of its layer {number(float(result.control_mean[figure]))}; "
    )
    if len(really):
        does = "loses" if really.mean() < 0 else "gains"
        told += f"taken away in {len(really)} of them it really {does} {number(abs(float(really.mean())))}."
    else:
        told += "it was taken away in none of them."
    if result.case is Case.CANNOT_TELL:
        of = f"any of {len(result.figures):,} heads"
        return f"{count} do not show that {of} moves the answer more than others. Nearest: {told}"
    more = f" As the first of {len(result.figures):,} that may be luck." if result.case is Case.ALONE else ""
    return f"W{told[1:]}{more}"


def _of_answer(result: Prompts, figure: int) -> str:
    name, often = result.figures[figure].name, int(result.stands[figure].sum())
    told = f"{name} brings {_mean(result, figure)} directly in the mean, the same sign in "
    told += _with(result, figure)
    lost = result.effects[figure]
    if np.isfinite(lost).any():
        gone = float(np.nanmean(lost))
        told += f"; without it {number(abs(gone))} is {'lost' if gone > 0 else 'gained'}, the largest of its "
        told += f"controls moves it by {number(float(result.control_mean[figure]))}"
    if not often:
        return f"No part is shown to do in any prompt what it brings. The largest: {told}."
    return f"{told}; in {often} it does what it brings, and more than any control."


def _flow(result: Prompts, figure: int) -> str:
    figured = result.figures[figure]
    numbers = f"{_mean(result, figure)} in the mean of {counted(result.count(figure), 'prompt')}"
    if figured.measured != CORRELATION:
        return (
            f"Replacing {figured.name} costs {numbers} ({figured.measured}), other tokens "
            f"{_control(result, figure)}; more than these in {_with(result, figure)}."
        )
    told = f"{words.called(figured)} gives most to the tokens that the answer hangs on: rank correlation "
    told += numbers
    if not np.isfinite(result.control_mean[figure]):
        told = told.replace("that the answer hangs on", "whose replacement does most")
        stands = f"beyond shuffled effects in {int(result.stands[figure].sum())}"
        return f"Of all methods {told}, {stands}."
    told += f", distance alone {_control(result, figure)}; above it in {_with(result, figure)}."
    if result.case in (Case.CANNOT_TELL, Case.ALONE):
        return f"No method is shown to be better than distance alone. The best: {told}"
    return told[0].upper() + told[1:]


def _prediction(result: Prompts, figure: int) -> str:
    count = result.count(figure)
    told = f"The likeliest answer has {_mean(result, figure)} in the mean of {counted(count, 'prompt')}"
    if np.isfinite(result.control_mean[figure]):
        told += f"; the same answer has {_control(result, figure)} in the other prompts"
    named = [(int(result.stands[i].sum()), i) for i in result.ranking[1:]]
    if named:
        often, most = max(named, key=lambda each: (each[0], -each[1]))
        told += f". {result.figures[most].name} is the likeliest in {often} of them"
    return f"{told}."


def _layers(result: Prompts) -> str:
    often = [int(each.sum()) for each in result.stands]
    behind = [i for i, each in enumerate(often) if 2 * each < len(result.prompts)]
    first = min(behind[-1] + 1 if behind else 0, len(often) - 1)
    where, count = result.figures[first].name, len(result.prompts)
    told = (
        f"From {where} on the model's answer comes first in most of {counted(count, 'prompt')}: in "
        f"{often[first]} there, with {_mean(result, first)} in the mean"
    )
    if np.isfinite(result.control_mean[first]):
        told += f" ({_control(result, first)} in their control texts)"
    return f"{told}."


def _why(result: Prompts, figure: int) -> str:
    often = int(result.stands[figure].sum())
    told = (
        f"{result.figures[figure].name} has the same sign in {_with(result, figure)}: "
        f"{_mean(result, figure)} of the score above other keys in the mean; a reason in {often}."
    )
    lost = result.effects[figure]
    if np.isfinite(lost).any():
        gone, held = number(float(np.nanmean(lost))), number(float(result.control_mean[figure]))
        told += f" Without it {gone} of the score is lost, the largest of its controls moves it by {held}."
    if not often:
        return f"No part is a reason in any prompt. The largest: {told}"
    return told + _on_the_other_side(result, figure)


def _on_the_other_side(result: Prompts, figure: int) -> str:
    side = result.figures[figure].name.rpartition(" on ")[2]
    others = [i for i in result.ranking if not result.figures[i].name.endswith(side)]
    often = int(result.stands[others[0]].sum()) if others else 0
    if not often:
        return ""
    where = f"{result.figures[others[0]].name}, {_mean(result, others[0])}"
    return f" There is also {where}: a reason in {often}, the same sign in {_with(result, others[0])}."


def _against(result: Prompts, figure: int) -> str:
    lines = result.opposed(figure)
    if not lines or result.asked is Asked.PREDICT or 2 * len(lines) > result.count(figure):
        return ""
    more = f" and {len(lines) - _NAMED} more" if len(lines) > _NAMED else ""
    return f"Against it: {'line' if len(lines) == 1 else 'lines'} {listed(lines[:_NAMED])}{more}."


def _limits(result: Prompts, figure: int) -> str:
    told = []
    if result.case is Case.FEW:
        count = result.count(figure)
        few = "One prompt is" if count == 1 else f"{count} prompts are"
        told.append(f"{few} too few for an interval: it takes {FEWEST}.")
    if result.refused:
        of = f"{counted(len(result.refused), 'line')} of {result.file}"
        told.append(f"{of if result.file else counted(len(result.refused), 'prompt')} had no answer.")
    return " ".join(told)


_SAID: dict[Asked, Callable[[Prompts, int], str]] = {
    Asked.FIND: _finding,
    Asked.LIKE: _finding,
    Asked.ABLATE: _ablation,
    Asked.FLOW: _flow,
    Asked.PREDICT: _prediction,
    Asked.WHY: _why,
    Asked.LINKS: _links,
    Asked.RANK: _ranked,
    Asked.ANSWER: _of_answer,
}
