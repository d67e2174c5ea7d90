"""The words of many prompts: what can be said of the figure that comes first, question by question."""

from collections.abc import Callable, Iterator

import numpy as np

from attnscope.render.kit.numbers import chance, counted, signed, weight
from attnscope.render.words import Said
from attnscope.results import Prompts
from attnscope.results.claims.prompts import CORRELATION, Asked, Figure, by_reason, lines_told

_NAMED = 5  # reasons that are told
CONTROL = {
    Asked.FIND: "control texts",
    Asked.LIKE: "control texts",
    Asked.LINKS: "explained",
    Asked.ABLATE: "typical head",
    Asked.RANK: "typical head",
    Asked.FLOW: "control",
    Asked.PREDICT: "elsewhere",
    Asked.LAYERS: "control texts",
    Asked.WHY: "controls",
    Asked.ANSWER: "controls",
}
_STANDS = {
    Asked.FIND: "stands out in",
    Asked.LIKE: "stands out in",
    Asked.LINKS: "stands out in",
    Asked.ABLATE: "first in",
    Asked.RANK: "really first in",
    Asked.FLOW: "beyond shuffles in",
    Asked.PREDICT: "likeliest in",
    Asked.LAYERS: "likeliest in",
    Asked.WHY: "a reason in",
    Asked.ANSWER: "does so in",
}
_OTHERS = "in each prompt the other heads of the part's layer, of an MLP the other MLPs, taken away too"
_WITHOUT = {
    Asked.WHY: ("lost without it", "of the score above other keys, everything computed again, in the mean"),
    Asked.ANSWER: ("lost without it", "everything computed again, in the mean of the prompts where it was"),
    Asked.RANK: ("really", "the change where it was taken away, in the mean of those prompts"),
}
_HELD = {
    Asked.FIND: "each prompt beside its own control texts, in which its words are shuffled",
    Asked.LIKE: "each prompt beside its own control texts, in which its words are shuffled",
    Asked.LINKS: "in each prompt the most of what may explain it: its control texts at the same two places, "
    "other queries at that distance or to that word, even attention",
    Asked.ABLATE: "in each prompt the other heads of the same layer, taken away one by one, and rounding",
    Asked.RANK: "in each prompt what is foretold of the other heads of the same layer, in the median",
    Asked.FLOW: "in each prompt distance alone, and effects shuffled among its tokens; of a field the other "
    "tokens that were replaced",
    Asked.PREDICT: "each prompt's own answer, as likely as it is in the other prompts; of a word the "
    "likeliest other answer in the same prompt",
    Asked.LAYERS: "each prompt with its words in other orders",
    Asked.WHY: _OTHERS,
    Asked.ANSWER: _OTHERS,
}
_CHANGES = {
    "nats": "its log probability",
    "logits": "its lead over the other one",
    "cosine": "its vector's cosine to what it was",
}
_FORMS: dict[str, Callable[[float], str]] = {"weight": weight, "distance": weight, "probability": chance}


def stood(result: Prompts) -> str:
    """By which rule a figure stands out in one prompt."""
    if result.asked in (Asked.ABLATE, Asked.RANK):
        return "it moves the answer more than every other head of its layer that was taken away there"
    return "by the rule for one prompt"


def stands(result: Prompts, measured: str) -> str:
    """How the column is headed that counts the prompts in which a figure stands out."""
    of_field = result.asked is Asked.FLOW and measured != CORRELATION
    return "largest in" if of_field else _STANDS[result.asked]


def ticked(result: Prompts) -> str:
    """What the mark of a control says: of a part of a score how much is lost without that one."""
    return "lost without the largest of its controls" if result.asked.of_parts else CONTROL[result.asked]


def without(result: Prompts) -> tuple[str, str]:
    """How the column of what is really lost is headed, and what it is; empty where there is none."""
    return _WITHOUT.get(result.asked, ("", ""))


def form(measured: str) -> Callable[[float], str]:
    """How a number of a figure is written."""
    return _FORMS.get(measured, signed)


def called(figure: Figure) -> str:
    """A figure by name; a method as `flow` calls it."""
    return Said("common", {})("method_words", figure.name)


def between(result: Prompts, figure: int, form: Callable[[float], str] | None = None, sign: int = 1) -> str:
    """`.64 to .78`: the interval of the mean, of -1 times it with that `sign`; empty where there is none."""
    low, high = sorted(sign * float(each[figure]) for each in (result.low, result.high))
    if np.isnan(low):
        return ""
    if low == high:
        return "all alike"
    form = form or _FORMS.get(result.figures[figure].measured, signed)
    return f"{form(low)} to {form(high)}"


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
    if result.asked in (Asked.ABLATE, Asked.RANK):
        units = (figure.measured.removeprefix("foretold ") for figure in result.figures)
        of = {unit: _CHANGES.get(unit, "") for unit in units}
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
