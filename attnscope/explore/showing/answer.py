"""What the model answers; with heads taken out before and after, side by side."""

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.explore import questions as ask
from attnscope.explore.asking import Failed
from attnscope.explore.showing import BAD, WAITS, Find, Part, in_pane
from attnscope.explore.state import State
from attnscope.render.kit.cells import DIM, fit, settled
from attnscope.render.kit.numbers import chance, give_or_take, signed
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.table import Column, Table
from attnscope.render.sheets import sheet_of
from attnscope.render.terminal.ranking import folded
from attnscope.render.terminal.sheet import laid
from attnscope.results import Prediction
from attnscope.results.claims.effect import Asks, Choice, Without
from attnscope.verbs.ablate.result import Ablation

_LONGEST, _FINEST = 12, 2  # cells of an answer; decimals of a per cent
_ROOM = 26  # cells with room for whole headings, and for a decimal more
_BOTH = 21  # cells of both probabilities: neither ever stands alone
_NO_MASK = "the text has no [MASK]"


def of_prediction(state: State, find: Find) -> Part:
    """What the model makes of the text, or what becomes of that without the heads that were taken out."""
    if state.removed:
        return _of_absence(state, find(ask.without_of(state)), find(ask.absence_of(state)))
    predicted = find(ask.prediction_of(state))
    if not isinstance(predicted, Prediction):
        line = WAITS if predicted is None else Text(_why(state, predicted), DIM)
        return Part(("prediction", predicted), lambda w, h: line, "predicts")
    every = [in_pane(each) for each in sheet_of(predicted).every]
    return Part(predicted, lambda w, h: Group(*laid(every, w)), "predicts")


def asks_nothing(state: State, find: Find) -> bool:
    """Whether the model would answer, but this text asks nothing of it."""
    return not state.removed and isinstance(find(ask.prediction_of(state)), Failed)


def answers(state: State, find: Find) -> bool:
    """Whether there is something to predict, or may be: a pane for it stays empty else."""
    predicted = find(ask.prediction_of(state))
    return not isinstance(predicted, Failed) or bool(state.scene.mask) or bool(state.removed)


def _why(state: State, failed: Failed) -> str:
    return f"no blank to fill: _ puts {state.scene.mask} here" if _NO_MASK in failed.why else failed.why


def _of_absence(state: State, without: Any, measured: Any) -> Part:
    count = len(state.removed)
    title = f"predicts · {_names(state) if count == 1 else f'{count} heads'} out"
    key = (without, measured, state.removed)
    if without is None:
        return Part(key, lambda w, h: Text(f"running without {_names(state)} …", DIM), title)
    if isinstance(without, Failed):
        return Part(key, lambda w, h: Text(without.why, BAD), title)

    def drawn(width: int, height: int) -> RenderableType:
        told = _measured(measured)
        beside = [] if told is None else folded(Text(told, DIM), width)
        return Group(*laid([in_pane(_before_and_after(state, without, width))], width), *beside)

    return Part(key, drawn, title)


def _before_and_after(state: State, without: Without, width: int) -> Ranking:
    if len(without.places) == 1:
        (place,) = without.places
        shown, chosen, instead = list(place.choices), frozenset({place.likeliest}), [""] * len(place.choices)
    else:
        shown = [place.choices[place.meant] for place in without.places]
        others = [place.likeliest != place.meant for place in without.places]
        chosen = frozenset(number for number, other in enumerate(others) if other)
        instead = [
            _name(place.choices[place.likeliest]) if other else ""
            for place, other in zip(without.places, others, strict=True)
        ]
    before, after = zip(*(_told_apart(each, width >= _ROOM) for each in shown), strict=True)
    return Ranking(
        title=_at(state, without),
        of="token" if width >= _ROOM else "",
        names=tuple(settled(fit(_name(each), max(width - _BOTH, 1))) for each in shown),
        table=Table(
            Column("before", [each.before for each in shown], "before", told=before),
            Column(
                "without", [each.after for each in shown], "without" if width >= _ROOM else "out", told=after
            ),
            Column("instead", instead, "instead"),
        ),
        chosen=chosen,
    )


def _at(state: State, without: Without) -> str:
    if without.position is None:
        return ""
    after = "after " if without.asks is Asks.NEXT else ""
    return f"{after}{settled(state.scene.queries.named(without.position))}"


def _told_apart(choice: Choice, finely: bool) -> tuple[str, str]:
    usual, finer = (
        (chance(choice.before, decimals), chance(choice.after, decimals)) for decimals in (1, _FINEST)
    )
    return finer if finely and usual[0] == usual[1] and finer[0] != finer[1] else usual


def _name(choice: Choice) -> str:
    return settled(fit(choice.text, _LONGEST))


def _measured(absence: Any) -> str | None:
    if not isinstance(absence, Ablation):
        return None
    one = absence.heads[0] if absence.group is None else absence.group
    effect = absence.heads[0] if absence.group is None else absence.group.effect
    others = "" if one.typical is None else f"; other heads {give_or_take(one.typical, None)}"
    doubt = "" if absence.verdict.proved else f" · {verdict_words(absence.verdict)}"
    return f"“{settled(absence.answer.text)}” {signed(effect.change, None)} nats{others}{doubt}"


def _names(state: State) -> str:
    names = [f"L{layer} H{head}" for layer, head in state.removed]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
