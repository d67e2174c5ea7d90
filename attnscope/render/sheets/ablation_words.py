"""The words of an ablation: the answer by the case that it is, what it is held against, what is proved."""

import math
from collections.abc import Callable, Iterator

from attnscope.printable import printable
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import (
    cell,
    counted,
    likely,
    number,
    percent,
    signed,
    signed_cell,
    significant,
)
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.kit.words.header import quoted
from attnscope.render.sheet.said import Place, name
from attnscope.results import Ablation, Kind, Verdict
from attnscope.results.claims.ablation import (
    AHEAD,
    LITTLE,
    MUCH,
    Asks,
    Case,
    Effect,
    Group,
    HeadEffect,
    Method,
)

_LONGEST, _HEADING = 60, 24  # cells of an answer in a sentence, and above a column
_NAMED = 3  # heads of a group that are named one by one
_ENOUGH = 12  # other groups, of which a median says something
_AGREE = 0.1  # of a sum: so near to it two changes are as much as their sum
_DONE = {
    Method.ZERO: "removed",
    Method.MEAN: "replaced by its mean",
    Method.TEXT: "patched from the other text",
    Method.LINK: "without the link {link}",
}
_WITHOUT = {
    Method.ZERO: "Without {}",
    Method.MEAN: "With {} replaced by its mean",
    Method.TEXT: "With {} patched from the other text",
    Method.LINK: "Without the one link {link} in {}",
}
_ALONE = {**_DONE, Method.LINK: "without the one link {link}"}
_LIKE = {Method.ZERO: "without", Method.MEAN: "with", Method.TEXT: "with", Method.LINK: "in"}
_INSTEAD = {
    Method.ZERO: "output replaced by zeros",
    Method.MEAN: "output set to its mean",
    Method.TEXT: "its output in the other text",
    Method.LINK: "the link cut",
}
_REMOVED = {
    Method.ZERO: "removed",
    Method.MEAN: "replaced",
    Method.TEXT: "patched",
    Method.LINK: "link cut in",
}


def each_head(result: Ablation) -> str:
    """`without each head`: what was done to every head of a grid."""
    done = {Method.MEAN: "with each head replaced", Method.TEXT: "with each head patched"}
    done |= {Method.LINK: "with the link cut in each head"}
    return done.get(result.method, "without each head")


def done_words(result: Ablation) -> str:
    """`48 heads removed in turn`."""
    count = counted(len(result.heads), "head")
    if result.predicted:
        count = f"the first {len(result.heads)} of {counted(len(result.predicted), 'head')}"
    done = _DONE[result.method].format(link=link(result))
    done = done.replace("its mean", "their means") if len(result.heads) > 1 else done
    return f"{count} {done}{' in turn' if len(result.heads) > 1 else ''}"


def link(result: Ablation) -> str:
    """`[MASK] → opened`: which attention was cut, where one was; positions only of what stands twice."""
    if result.link is None:
        return ""
    query, key = result.link
    return f"{settled(result.query_tokens.labels[query])} → {settled(result.key_tokens.labels[key])}"


def removed(result: Ablation) -> str:
    """What heads the names of heads: `removed`."""
    return _REMOVED[result.method]


def quoted_answer(result: Ablation, longest: int = _LONGEST) -> str:
    return f"“{settled(fit(printable(result.answer.text), longest))}”"


def heading(result: Ablation) -> str:
    """The answer above the column of its probabilities."""
    return "written text" if result.answer.asks is Asks.WRITTEN else quoted_answer(result, _HEADING)


def answer_words(result: Ablation) -> str:
    """`“door” at 5 [MASK]`: what the answer is and where it stands."""
    answer, told = result.answer, quoted_answer(result)
    if answer.position is None:
        named = {Asks.WRITTEN: f"the text {told}", Asks.CLASS: f"the class {told}"}
        return named.get(answer.asks, f"the second text {answer.text}")
    where = settled(result.tokens.named(answer.position))
    return f"{told} {'after' if answer.asks is Asks.NEXT else 'at'} {where}"


def _of(result: Ablation) -> str:
    """`the answer “box”`, `the word “it”` of one that was asked for, `the written text “…”`."""
    asks = result.answer.asks
    word = "the answer" if result.answer.likeliest else "the word"
    named = {Asks.WRITTEN: "the written text", Asks.CLASS: "the class", Asks.PAIR: "the verdict"}
    return f"{named.get(asks, word)} {quoted_answer(result)}"


def texts(result: Ablation) -> Iterator[str]:
    """What was read, by the decoder too, and the text that outputs were taken from."""
    both = result.kind is not Kind.ENCODER and result.target is not None
    first = "reads   " if both else "A " if result.other is not None else ""
    sides = (first, result.tokens), ("decoder ", result.target if both else None), ("B ", result.other)
    yield from (
        f"{side}{quoted(tokens).plain}" for side, tokens in sides if tokens is not None and tokens.texts
    )


def answer(result: Ablation) -> str:
    """One sentence for the case that it is, and what limits it."""
    return _SAID[result.case](result)


def pair(effect: Effect) -> str:
    """`8.3 % → 3.2 %`."""
    return f"{likely(effect.before)} → {likely(effect.after)}"


def _goes(effect: Effect) -> str:
    """`falls from 8.3 % to 3.2 %`."""
    before, after = likely(effect.before), likely(effect.after)
    if before == after:
        return f"stays at {before}"
    return f"{'falls' if effect.change < 0 else 'rises'} from {before} to {after}"


def _done(result: Ablation, head: str) -> str:
    return _WITHOUT[result.method].format(head, link=link(result))


def _typical(one: HeadEffect) -> str:
    """What the answer would be after a change as large as the typical head's, in the same direction."""
    change = (one.typical or 0.0) * (1 if one.change > 0 else -1)
    return f"{likely(one.before)} → {likely(min(1.0, one.before * math.exp(change)))}"


def _then(effect: Effect) -> str:
    instead = printable(effect.instead)
    return f" The model then answers “{settled(fit(instead, _LONGEST))}”." if instead else ""


def _moves(result: Ablation) -> str:
    """One head that does far more than the typical one, and more than every other."""
    (one,), like = result.heads, _LIKE[result.method]
    nats = signed_cell(one.change, decimals=decimals(result))
    told = f"{_done(result, name(one.layer, one.head))} {_of(result)} {_goes(one)} ({nats} nats): "
    if one.typical:
        factor = abs(one.change) / one.typical
        told += f"{_factor(factor)} x as much as {like} the typical head of layer {one.layer}, and "
    return f"{told}more than {like} any of {_others(one)} tried there.{_then(one)}"


def _factor(factor: float) -> str:
    """Two digits that tell, and no more than there are heads to tell them of."""
    return significant(float(f"{factor:.1e}"))


def _others(one: HeadEffect) -> str:
    return f"the {one.controls} other heads" if one.controls > 1 else "the one other head"


def _middling(result: Ablation) -> str:
    (one,) = result.heads
    told = f"{_done(result, name(one.layer, one.head))} {_of(result)} {_goes(one)}"
    return f"{told}{_among(result, one)}.{_then(one)}"


def _among(result: Ablation, one: HeadEffect) -> str:
    """How many others move it more, or how little more it is than the typical head."""
    if not one.controls:
        return f"; layer {one.layer} has no other head to hold it against"
    more = one.controls - one.below
    if more:
        verb = "moves" if more == 1 else "move"
        return f"; {more} of {_others(one)} tried in layer {one.layer} {verb} it more"
    like, typical = _LIKE[result.method], f"the typical head of layer {one.layer}"
    least = f"; none of {_others(one)} tried in layer {one.layer} moves it more"
    if not one.typical:
        return least
    return f"{least}, but it is only {_factor(abs(one.change) / one.typical)} x as much as {like} {typical}"


def _little(result: Ablation) -> str:
    """Less than a tenth of a nat, whatever the others do: no factor is said of it."""
    if len(result.heads) > 1:
        most = _largest(result)
        told = f"None of {counted(len(result.heads), 'head')}, each {_alone(result)} alone, moves "
        told += f"{_of(result)} by much: {pair(most)} at most ({name(most.layer, most.head)})."
        return f"{told}{_then(most)}"
    (one,) = result.heads
    before, after = likely(one.before), likely(one.after)
    told = f"{_done(result, name(one.layer, one.head))} {_of(result)} hardly moves: "
    told += f"{before} before and after" if before == after else f"{before} → {after}"
    more, like = one.controls - one.below, _LIKE[result.method]
    if not one.controls:
        return f"{told}.{_then(one)}"
    if not more or more == one.controls:
        told += f", {'less' if more else 'though more'} than {like} any of {_others(one)} tried in layer "
        return f"{told}{one.layer}.{_then(one)}"
    return f"{told}{_among(result, one)}.{_then(one)}"


def _alone(result: Ablation) -> str:
    return _ALONE[result.method].format(link=link(result))


def _largest(result: Ablation) -> HeadEffect:
    return max(result.heads, key=lambda each: abs(each.change))


def _rounding(result: Ablation) -> str:
    """Nothing that rounding does not do as well."""
    largest = _largest(result)
    what = f"what {name(largest.layer, largest.head)} does"
    if len(result.heads) > 1:
        what = f"what any of these {len(result.heads)} heads does"
    change, floor = significant(abs(largest.change)), significant(result.floor.rounding)
    return (
        f"This run cannot tell {what} to {_of(result)}: a change of {change} nats is no more than rounding "
        f"makes ({floor})."
    )


def _each(result: Ablation) -> str:
    """Of heads that were taken one by one the one that stands furthest above the typical one."""
    best, count = result.heads[0], len(result.heads)
    told = f"Of {counted(count, 'head')}, each {_alone(result)} alone, "
    if result.predicted:
        told = f"Of {counted(len(result.predicted), 'head')} the {count} predicted to matter most were each "
        told += f"{_alone(result)} alone: "
    most = "most" if best == _largest(result) else "most beside the typical head of its layer"
    told += f"{name(best.layer, best.head)} moves {_of(result)} {most}: {pair(best)}"
    told += f" (the typical head of its layer: {_typical(best)})." if best.controls else "."
    return f"{told}{_then(best)}{_ranked(result)} One text, so no rule of this model yet."


def _ranked(result: Ablation) -> str:
    """How far the order that was predicted is the one that came out."""
    rho = result.rank_correlation
    if not result.predicted or rho is None:
        return ""
    near = "nearly as" if rho >= 0.8 else "roughly as" if rho >= 0.5 else "not as"
    return f" The prediction ranks these {len(result.heads)} {near} they came out ({number(rho)})."


def _flat(result: Ablation) -> str:
    most, count = _largest(result), len(result.heads)
    told = f"No single head matters more than the rest: of {count:,}, each {_alone(result)} alone, "
    told += f"{name(most.layer, most.head)} moves {_of(result)} most, {pair(most)}"
    told += f"; the typical head of its layer: {_typical(most)}." if most.controls else "."
    return f"{told}{_then(most)}{_ranked(result)}"


def _together(result: Ablation) -> str:
    """All at once, beside what each does alone and beside other groups."""
    group = result.group
    assert group is not None, "the case says so"
    effect = group.effect
    told = f"{_done(result, group_words(result, group))} {_of(result)} "
    if abs(effect.change) < LITTLE:
        told += f"hardly moves: {pair(effect)}"
    else:
        told += f"{_goes(effect)}, {_beside_alone(result, group)}"
    return f"{told}; {_beside_groups(group)}.{_then(effect)}"


def group_words(result: Ablation, group: Group) -> str:
    """`L3 H7 and L3 H11`, `all 12 heads of layer 3`, `these 5 heads`."""
    layers = {layer for layer, _ in group.heads}
    if group.of_layers and len(layers) == 1:
        return f"all {len(group.heads)} heads of layer {layers.pop()}"
    if len(group.heads) > _NAMED:
        return f"these {len(group.heads)} heads"
    named = [name(*each) for each in group.heads]
    return f"{', '.join(named[:-1])} and {named[-1]}"


def _beside_alone(result: Ablation, group: Group) -> str:
    """`more than each alone adds up to (−3.42 against −1.57 nats)`."""
    own, alone = group.effect.change, sum(each.change for each in result.heads)
    how = "more than" if abs(own) > abs(alone) else "less than"
    if abs(own - alone) <= max(_AGREE * abs(alone), result.floor.rounding):
        how = "as much as"
    if own * alone < 0:
        how = "while"
    ends = "adds up to the opposite" if how == "while" else "adds up to"
    return f"{how} each alone {ends} ({signed(own)} against {signed(alone)} nats)"


def _beside_groups(group: Group) -> str:
    if group.typical is None:
        return "there is no other group of as many heads to hold it against"
    layers = sorted({layer for layer, _ in group.heads})
    where = f" of layer {layers[0]}" if len(layers) == 1 else " of the same layers"
    one, many = ("pair", "pairs") if len(group.heads) == 2 else ("group", f"groups of {len(group.heads)}")
    if group.of_layers:
        where, one, many = "", "whole layer", "whole layers"
        if len(layers) > 1:
            one, many = f"set of {len(layers)} whole layers", f"sets of {len(layers)} whole layers"
    few = "only " if group.controls < _ENOUGH else ""
    size = f"it {number(group.typical)} nats"
    if group.controls == 1:
        return f"{few}one other {one}{where} moves {size}"
    return f"{few}{group.controls} other {many}{where} move {size} in the median"


def _closes(result: Ablation) -> str:
    """How much of the way to the other text one head alone goes."""
    total = result.total
    assert total is not None, "the case says so"
    best = closing(result)
    ends = f"{quoted_answer(result)} is {likely(total.before)} here and {likely(total.after)} there"
    part = share(result, best) or 0.0
    if part <= 0:
        return f"No head alone closes any of the gap between the two texts: {ends}."
    told = f"{name(best.layer, best.head)} alone closes {percent(part)} of the gap between the two texts"
    told += f" ({pair(best)}): {ends}."
    if result.group is not None and (whole := share(result, result.group.effect)) is not None:
        told += f" {at_once(result.group)[0].upper()}{at_once(result.group)[1:]} close {percent(whole)}."
    return told


def closing(result: Ablation) -> HeadEffect:
    """The head that goes furthest on the way to the other text."""
    assert result.total is not None, "there is another text"
    way = result.total.change
    return max(result.heads, key=lambda each: each.change / way if way else 0.0)


def _no_gap(result: Ablation) -> str:
    total, told = result.total, quoted_answer(result)
    assert total is not None, "the case says so"
    before, after = likely(total.before), likely(total.after)
    where = f"{before} in both" if before == after else f"{before} here and {after} there"
    apart = f"{number(abs(total.change))} nats apart"
    typical = "" if abs(total.change) < LITTLE else ", less than the typical head alone moves it"
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
    Case.NO_GAP: _no_gap,
}


def control(result: Ablation) -> str:
    """What the heads are held against, and what stands in the place of what was taken away."""
    floor, instead = result.floor, _INSTEAD[result.method]
    if floor.random:
        layers = sorted({each.layer for each in floor.random})
        where = f"layer {layers[0]}" if len(layers) == 1 else "these layers"
        return f"{counted(len(floor.random), 'other head')} of {where}, each alone; {instead}"
    if any(each.controls for each in result.heads):
        return f"the other heads of the same layer, each alone; {instead}"
    return f"none, the layer has no other head; {instead}"


def legend(result: Ablation) -> Iterator[str]:
    """What stood in the place of outputs, what the rules are, what rounding does."""
    if result.method is not Method.ZERO:  # of which the control says as much
        yield result.how
    yield (
        f"far more: at least {MUCH:.0f} x the typical head or {AHEAD:.0f} x the next two; a change below "
        f"{cell(LITTLE, 1)} nats is hardly one. Of several heads those come first that exceed the typical "
        "head of their layer most"
    )
    floor = result.floor
    alike = f"in {counted(floor.runs, 'batch')} of other size, or " if floor.runs else ""
    moves = f"at most {significant(floor.rounding)}" if floor.rounding else "nothing at all"
    yield f"rounding: {alike}with every output of a layer moved by its precision, the answer moves by {moves}"
    if result.predicted and result.rank_correlation is None:
        yield "predicted: too few heads to compare their order with what happened"
    elif result.predicted:
        yield "predicted: the heads beside which these stand are those that were predicted to do less"


def proof_words(result: Ablation) -> str:
    """Whether the change was read back in the model."""
    done, told = result.intervention, f"{verdict_words(result.verdict)}: "
    count = done.read_back + done.lost + done.unseen
    if done.lost:
        lost = f"{done.lost} of {count} changed attentions"
        return f"{told}{lost} did not come as asked for to the next operation"
    if done.unseen:
        return (
            f"{told}of {count} changed attentions {done.unseen} cannot be read back, since the model makes "
            "something else of its heads' outputs first"
        )
    if not done.faithful:
        return f"{told}watching alone changed the answer's scores"
    was = "change was" if len(result.heads) == 1 and result.group is None else "changes were"
    when = " when it was run" if result.verdict is Verdict.STORED else ""
    return f"{told}the {was} read back in the model{when}"


def read_back(result: Ablation) -> str:
    """How many changed attentions came as asked for to the model's next operation."""
    done = result.intervention
    count = done.read_back + done.lost + done.unseen
    how = "within rounding" if result.method is Method.LINK else "bit for bit"
    return f"{done.read_back} of {count} changed attentions read back at the next operation, {how}"


def at_once(group: Group) -> str:
    return "both at once" if len(group.heads) == 2 else f"all {len(group.heads)} at once"


def most(result: Ablation) -> Place:
    """Layer and head of the one that mattered most."""
    return result.heads[0].layer, result.heads[0].head


def rank(beside: HeadEffect | Group, of_group: bool) -> str:
    """`largest of 12`, `2nd of 12`: a rank among itself and the others that it is held against."""
    place, count = 1 + beside.controls - beside.below, beside.controls + 1
    which = "largest" if place == 1 else f"{place}{_ordinal(place)}"
    return f"{which} of {count}{' groups' if of_group else ''}"


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def share(result: Ablation, one: Effect) -> float | None:
    """Which part of the way to the other text one effect goes; None where there is no way to speak of."""
    if result.total is None or result.case is not Case.CLOSES:
        return None
    return one.change / result.total.change


def decimals(result: Ablation) -> int:
    """So many that the largest difference has two digits that say something."""
    extent = max((abs(each.change) for each in result.heads), default=0.0)
    return 3 if extent >= LITTLE else 4 if extent >= LITTLE / 10 else 5
