"""The sentences of an ablation: the answer by the case that it is."""

from collections.abc import Callable

from attnscope.printable import printable
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import counted, number, percent, signed, signed_cell, significant
from attnscope.render.sheet.said import name
from attnscope.render.sheets.ablation_labels import alone, group_words, like, without
from attnscope.render.sheets.ablation_measured import (
    LONGEST,
    decimals,
    in_unit,
    is_share,
    moved_by,
    other_ways,
    pair,
    quoted_answer,
    share,
    subject,
    value,
)
from attnscope.results import Ablation
from attnscope.results.claims.ablation import Case
from attnscope.results.claims.effect import Effect, Group, HeadEffect, PlaceEffect
from attnscope.results.claims.intervention import Measured

_ENOUGH = 12  # other groups, of which a median says something
_AGREE = 0.1  # of a sum: so near to it two changes are as much as their sum


def answer(result: Ablation) -> str:
    """One sentence for the case that it is, and what limits it."""
    return _SAID[result.case](result) + _other_ways(result) + one_text(result)


def _other_ways(result: Ablation) -> str:
    most = _largest(result) if result.heads else None
    return "" if most is None else other_ways(result, name(most.layer, most.head))


def one_text(result: Ablation) -> str:
    """What something that stands out in one text does not show yet."""
    alone = result.case is Case.EACH and len(result.alone) > 1
    return " One text, so no rule of this model yet." if alone else ""


def goes(result: Ablation, effect: Effect) -> str:
    """`falls from 8.3 % to 3.2 %`."""
    before, after = (value(result, each) for each in (effect.before, effect.after))
    if before == after:
        return f"stays at {before}{in_unit(result)}"
    return f"{'falls' if effect.change < 0 else 'rises'} from {before} to {after}{in_unit(result)}"


def typical(result: Ablation, one: HeadEffect | PlaceEffect) -> str:
    """What the answer would be after a change as large as the typical head's, in the same direction."""
    change = (one.typical or 0.0) * (1 if one.change > 0 else -1)
    then = moved_by(result, one.before, change)
    return f"{value(result, one.before)} → {value(result, then)}{in_unit(result)}"


def then(effect: Effect, when: str = "") -> str:
    """What the model answers in its place, if anything else; `when` where another effect was named last."""
    instead, answers = printable(effect.instead), f"{when} the model" if when else "The model then"
    return f" {answers} answers “{settled(fit(instead, LONGEST))}”." if instead else ""


def _moves(result: Ablation) -> str:
    (one,), instead = result.heads, like(result)
    nats = signed_cell(one.change, decimals=decimals(result))
    told = f"{without(result, name(one.layer, one.head))} {subject(result)} {goes(result, one)} "
    told += f"({nats} {result.unit}): "
    if one.typical:
        times = abs(one.change) / one.typical
        told += f"{factor(times)} x as much as {instead} the typical head of layer {one.layer}, and "
    return f"{told}more than {instead} any of {_others(one)} tried there.{then(one)}"


def factor(factor: float) -> str:
    """Two digits that tell, and no more than there are heads to tell them of."""
    return significant(float(f"{factor:.1e}"))


def _others(one: HeadEffect) -> str:
    return f"the {one.controls} other heads" if one.controls > 1 else "the one other head"


def _middling(result: Ablation) -> str:
    (one,) = result.heads
    told = f"{without(result, name(one.layer, one.head))} {subject(result)} {goes(result, one)}"
    return f"{told}{_among(result, one)}.{then(one)}"


def _among(result: Ablation, one: HeadEffect) -> str:
    if not one.controls:
        return f"; layer {one.layer} has no other head to hold it against"
    more = one.controls - one.below
    if more:
        verb = "moves" if more == 1 else "move"
        return f"; {more} of {_others(one)} tried in layer {one.layer} {verb} it more"
    instead, typical = like(result), f"the typical head of layer {one.layer}"
    least = f"; none of {_others(one)} tried in layer {one.layer} moves it more"
    if not one.typical:
        return least
    return f"{least}, but it is only {factor(abs(one.change) / one.typical)} x as much as {instead} {typical}"


def _little(result: Ablation) -> str:
    if len(result.heads) > 1:
        most = _largest(result)
        told = f"None of {counted(len(result.heads), 'head')}, {alone(result)}, moves "
        told += f"{subject(result)} by much: {pair(result, most)} at most ({name(most.layer, most.head)})."
        return f"{told}{then(most)}"
    (one,) = result.heads
    before, after = (value(result, each) for each in (one.before, one.after))
    told = f"{without(result, name(one.layer, one.head))} {subject(result)} hardly moves: "
    told += f"{before} before and after" if before == after else f"{before} → {after}"
    more, instead = one.controls - one.below, like(result)
    if not one.controls:
        return f"{told}.{then(one)}"
    if not more or more == one.controls:
        told += f", {'less' if more else 'though more'} than {instead} any of {_others(one)} tried in layer "
        return f"{told}{one.layer}.{then(one)}"
    return f"{told}{_among(result, one)}.{then(one)}"


def _largest(result: Ablation) -> HeadEffect:
    return max(result.heads, key=lambda each: abs(each.change))


def _rounding(result: Ablation) -> str:
    largest = _largest(result)
    what = f"what {name(largest.layer, largest.head)} does"
    if len(result.heads) > 1:
        what = f"what any of these {len(result.heads)} heads does"
    change, floor = significant(abs(largest.change)), significant(result.floor.rounding)
    return (
        f"This run cannot tell {what} to {subject(result)}: a change of {change} {result.unit} is no more "
        f"than rounding makes ({floor})."
    )


def _each(result: Ablation) -> str:
    best, count = _largest(result), len(result.heads)
    told = f"Of {counted(count, 'head')}, {alone(result)}, "
    if result.predicted:
        told = f"Of {counted(len(result.predicted), 'head')} the {count} predicted to matter most were "
        told += f"{alone(result)}: "
    told += f"{name(best.layer, best.head)} moves {subject(result)} most: {pair(result, best)}"
    told += f" (the typical head of its layer: {typical(result, best)})." if best.controls else "."
    return f"{told}{then(best)}{_ranked(result)}"


def _ranked(result: Ablation) -> str:
    rho = result.rank_correlation
    if not result.predicted or rho is None:
        return ""
    near = "nearly as" if rho >= 0.8 else "roughly as" if rho >= 0.5 else "not as"
    return f" The prediction ranks these {len(result.heads)} {near} they came out ({number(rho)})."


def _flat(result: Ablation) -> str:
    most, second, count = _largest(result), result.comes_next, len(result.heads)
    assert isinstance(second, HeadEffect), "heads are compared"
    first = name(most.layer, most.head)
    told = f"Of {counted(count, 'head')}, {alone(result)}, {first} moves {subject(result)} most, "
    told += f"{pair(result, most)}, but does not stand out: "
    told += f"{name(second.layer, second.head)} comes next, {pair(result, second)}"
    told += f"; the typical head of layer {most.layer}: {typical(result, most)}." if most.controls else "."
    return f"{told}{then(most, without(result, first))}{_ranked(result)}"


def _together(result: Ablation) -> str:
    group = result.group
    assert group is not None, "the case says so"
    effect = group.effect
    told = f"{without(result, group_words(result, group))} {subject(result)} "
    if abs(effect.change) < result.measured.little:
        told += f"hardly moves: {pair(result, effect)}"
    else:
        told += f"{goes(result, effect)}, {_beside_alone(result, group)}"
    return f"{told}; {_beside_groups(result, group)}.{then(effect)}"


def _beside_alone(result: Ablation, group: Group) -> str:
    own, alone = group.effect.change, sum(each.change for each in result.heads)
    how = "more than" if abs(own) > abs(alone) else "less than"
    if abs(own - alone) <= max(_AGREE * abs(alone), result.floor.rounding):
        how = "as much as"
    if own * alone < 0:
        how = "while"
    ends = "adds up to the opposite" if how == "while" else "adds up to"
    return f"{how} each alone {ends} ({signed(own)} against {signed(alone)} {result.unit})"


def _beside_groups(result: Ablation, group: Group) -> str:
    if group.typical is None:
        return "there is no other group of as many heads to hold it against"
    layers = sorted({layer for layer, _ in group.heads})
    where = f" of layer {layers[0]}" if len(layers) == 1 else " of the same layers"
    one = "pair" if len(group.heads) == 2 else f"group of {len(group.heads)}"
    if group.of_layers:
        where, one = "", f"set of {len(layers)} whole layers" if len(layers) > 1 else "whole layer"
    few = "only " if group.controls < _ENOUGH else ""
    size = f"it {number(group.typical)} {result.unit}"
    if group.controls == 1:
        return f"the one other {one}{where} moves {size}"
    return f"another {one}{where} moves {size} (the median of {few}{group.controls})"


def _closes(result: Ablation) -> str:
    total = result.total
    assert total is not None, "the case says so"
    best = closing(result)
    ends = (
        f"{measured_of(result)} is {value(result, total.before)} here and {value(result, total.after)} there"
    )
    if (share(result, best.change) or 0.0) <= 0:
        return f"No head alone closes any of the gap between the two texts: {ends}."
    return f"{name(best.layer, best.head)} alone {closes(result, best)} ({pair(result, best)}): {ends}."


def closes(result: Ablation, one: Effect) -> str:
    """`closes 38 % of the gap between the two texts`, or how far beyond it one goes."""
    part, between = share(result, one.change), "the gap between the two texts"
    if part is not None and is_share(part):
        return f"closes {percent(part)} of {between}"
    gap = 0.0 if result.total is None else result.total.change
    return f"moves it by {signed(one.change)} {result.unit}, beyond {between} ({signed(gap)})"


def measured_of(result: Ablation) -> str:
    """`“box”`, or what is measured of it where that is no probability."""
    return quoted_answer(result) if result.measured is Measured.CHANCE else subject(result)


def closing(result: Ablation) -> HeadEffect:
    """The head that goes furthest on the way to the other text."""
    assert result.total is not None, "there is another text"
    way = result.total.change
    return max(result.heads, key=lambda each: each.change / way if way else 0.0)


def closes_no_gap(result: Ablation) -> str:
    total, told = result.total, measured_of(result)
    assert total is not None, "the case says so"
    before, after = value(result, total.before), value(result, total.after)
    where = f"{before} in both" if before == after else f"{before} here and {after} there"
    apart = f"{number(abs(total.change))} {result.unit} apart"
    typical = (
        "" if abs(total.change) < result.measured.little else ", less than the typical head alone moves it"
    )
    return (
        f"These two texts cannot tell: {told} is {where} ({apart}{typical}), so there is no gap for a head "
        "to close. Choose an answer that they differ in (--answer)."
    )


_SAID: dict[Case, Callable[[Ablation], str]] = {
    Case.UNRANKED: lambda result: "",
    Case.ROUNDING: _rounding,
    Case.MOVES: _moves,
    Case.MIDDLING: _middling,
    Case.LITTLE: _little,
    Case.EACH: _each,
    Case.FLAT: _flat,
    Case.TOGETHER: _together,
    Case.CLOSES: _closes,
    Case.NO_GAP: closes_no_gap,
}
