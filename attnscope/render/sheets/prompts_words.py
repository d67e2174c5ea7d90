"""The words of many prompts: what can be said of the figure that comes first, question by question."""

from collections.abc import Callable, Iterator

import numpy as np

from attnscope.errors import listed
from attnscope.render.kit.numbers import chance, counted, number, signed, weight
from attnscope.render.sheets.flow_methods import CALLED
from attnscope.results import Prompts
from attnscope.results.claims.prompts import CORRELATION, FEWEST, Asked, Case, Figure, by_reason, lines_told

_NAMED = 5  # lines that an answer names
CONTROL = {
    Asked.FIND: "control texts",
    Asked.LIKE: "control texts",
    Asked.ABLATE: "typical head",
    Asked.FLOW: "control",
    Asked.PREDICT: "elsewhere",
    Asked.LAYERS: "control texts",
    Asked.WHY: "controls",
}
_STANDS = {
    Asked.FIND: "stands out in",
    Asked.LIKE: "stands out in",
    Asked.ABLATE: "first in",
    Asked.FLOW: "beyond shuffles in",
    Asked.PREDICT: "likeliest in",
    Asked.LAYERS: "likeliest in",
    Asked.WHY: "a reason in",
}
_HELD = {
    Asked.FIND: "each prompt beside its own control texts, in which its words are shuffled",
    Asked.LIKE: "each prompt beside its own control texts, in which its words are shuffled",
    Asked.ABLATE: "in each prompt the other heads of the same layer, taken away one by one, and rounding",
    Asked.FLOW: "in each prompt distance alone, and effects shuffled among its tokens; of a field the other "
    "tokens that were replaced",
    Asked.PREDICT: "each prompt's own answer, as likely as it is in the other prompts; of a word the "
    "likeliest other answer in the same prompt",
    Asked.LAYERS: "each prompt with its words in other orders",
    Asked.WHY: "in each prompt the other heads of the part's layer, of an MLP the other MLPs, taken away too",
}
_UNITS = {"cosine": "of cosine"}
_CHANGES = {
    "nats": "its log probability",
    "logits": "its lead over the other one",
    "cosine": "its vector's cosine to what it was",
}
_FORMS: dict[str, Callable[[float], str]] = {"weight": weight, "distance": weight, "probability": chance}


def stands(result: Prompts, measured: str) -> str:
    """How the column is headed that counts the prompts in which a figure stands out."""
    of_field = result.asked is Asked.FLOW and measured != CORRELATION
    return "largest in" if of_field else _STANDS[result.asked]


def ticked(result: Prompts) -> str:
    """What the mark of a control says: of a part of a score how much is lost without that one."""
    return "lost without the largest of its controls" if result.asked is Asked.WHY else CONTROL[result.asked]


def form(measured: str) -> Callable[[float], str]:
    """How a number of a figure is written."""
    return _FORMS.get(measured, signed)


def called(figure: Figure) -> str:
    """A figure by name; a method as `flow` calls it."""
    return CALLED.get(figure.name, figure.name)


def between(result: Prompts, figure: int, form: Callable[[float], str] | None = None, sign: int = 1) -> str:
    """`.64 to .78`: the interval of the mean, of -1 times it with that `sign`; empty where there is none."""
    low, high = sorted(sign * float(each[figure]) for each in (result.low, result.high))
    if np.isnan(low):
        return ""
    if low == high:
        return "all alike"
    form = form or _FORMS.get(result.figures[figure].measured, signed)
    return f"{form(low)} to {form(high)}"


def answer(result: Prompts) -> str:
    """One sentence for the question, and what limits it."""
    if result.case is Case.NOTHING:
        return f"No figure of {counted(len(result.prompts), 'prompt')} has a number."
    if result.asked is Asked.LAYERS:
        return _layers(result)
    first = result.ranking[0]
    told = _SAID[result.asked](result, first)
    return " ".join(each for each in (told, _against(result, first), _limits(result, first)) if each)


def _mean(result: Prompts, figure: int) -> str:
    """`.71 (.66 to .76)`: a mean and its interval."""
    told = form(result.figures[figure].measured)(float(result.mean[figure]))
    return f"{told} {_ends(between(result, figure))}".strip()


def _ends(interval: str) -> str:
    return f"({interval})" if interval else ""


def _control(result: Prompts, figure: int) -> str:
    return form(result.figures[figure].measured)(float(result.control_mean[figure]))


def _with(result: Prompts, figure: int) -> str:
    """`28 of 30 prompts`: those that do not go against it."""
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


def _ablation(result: Prompts, figure: int) -> str:
    figured, mean = result.figures[figure], float(result.mean[figure])
    name = "all chosen heads at once" if figured.head is None else figured.name
    does = "loses" if mean < 0 else "gains"
    ends = _ends(between(result, figure, number, -1 if mean < 0 else 1))
    amount = f"{number(abs(mean))} {ends}".strip()
    others = "other such groups move" if figured.head is None else "the typical head of its layer moves"
    count, control = result.count(figure), number(float(result.control_mean[figure]))
    unit = _UNITS.get(figured.measured, figured.measured)
    told = (
        f"Without {name} the answer {does} {amount} {unit} in the mean of {counted(count, 'prompt')}, "
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


def _flow(result: Prompts, figure: int) -> str:
    figured = result.figures[figure]
    numbers = f"{_mean(result, figure)} in the mean of {counted(result.count(figure), 'prompt')}"
    if figured.measured != CORRELATION:
        return (
            f"Replacing {figured.name} costs {numbers} ({figured.measured}), other tokens "
            f"{_control(result, figure)}; more than these in {_with(result, figure)}."
        )
    told = f"{called(figured)} gives most to the tokens that the answer hangs on: rank correlation {numbers}"
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
    """From which layer on the answer of most prompts comes first."""
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
    """In how many the part has the same sign: the first line."""
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
    """The part that is a reason most often there, where any is."""
    side = result.figures[figure].name.rpartition(" on ")[2]
    others = [i for i in result.ranking if not result.figures[i].name.endswith(side)]
    often = int(result.stands[others[0]].sum()) if others else 0
    if not often:
        return ""
    where = f"{result.figures[others[0]].name}, {_mean(result, others[0])}"
    return f" There is also {where}: a reason in {often}, the same sign in {_with(result, others[0])}."


def _against(result: Prompts, figure: int) -> str:
    """`Against it: lines 7 and 19.`"""
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


def read(result: Prompts) -> str:
    """`30 prompts of texts.txt`."""
    return counted(len(result.prompts), "prompt") + (f" of {result.file}" if result.file else "")


def control(result: Prompts) -> str:
    """What the numbers are held against, and what the interval is of."""
    if result.asked is Asked.FLOW and not np.isfinite(result.control_mean).any():
        return "in each prompt effects shuffled among its tokens"  # nothing is nearer to a mean of all
    return _HELD[result.asked]


def notes(result: Prompts) -> Iterator[str]:
    yield from result.notes
    if result.asked is Asked.ABLATE:
        of = {figure.measured: _CHANGES.get(figure.measured, "") for figure in result.figures}
        yield from (
            f"each prompt has its own answer, and the change is that of {each}"
            for each in of.values()
            if each
        )
    reasons = by_reason(result.refused)
    for reason in [*reasons][:_NAMED]:
        yield f"{'line' if len(reasons[reason]) == 1 else 'lines'} {lines_told(reasons[reason])}: {reason}"
    if left := [line for each in [*reasons][_NAMED:] for line in reasons[each]]:
        yield f"{counted(len(left), 'more line')} without an answer"


_SAID: dict[Asked, Callable[[Prompts, int], str]] = {
    Asked.FIND: _finding,
    Asked.LIKE: _finding,
    Asked.ABLATE: _ablation,
    Asked.FLOW: _flow,
    Asked.PREDICT: _prediction,
    Asked.WHY: _why,
}
