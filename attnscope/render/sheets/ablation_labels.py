"""The small words around the answer of an ablation: names, columns, control, legend, what is proved."""

import math
from collections.abc import Iterator

from attnscope.printable import printable
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import counted, likely, number, significant
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.kit.words.header import quoted as quoted_tokens
from attnscope.render.kit.words.shell import word
from attnscope.render.sheet.said import Place, in_sentence, name
from attnscope.results import Ablation, Kind, Verdict
from attnscope.results.claims.ablation import (
    AHEAD,
    MUCH,
    Asks,
    Case,
    Effect,
    Group,
    HeadEffect,
    Method,
    PlaceEffect,
)
from attnscope.results.claims.intervention import LITTLE, Measured, Part
from attnscope.spelling import spelled

LONGEST, _HEADING = 60, 24  # cells of an answer in a sentence, and above a column
_NAMED = 3  # heads of a group that are named one by one
DONE = {
    Method.ZERO: "removed",
    Method.MEAN: "replaced by its mean",
    Method.TEXT: "patched from the other text",
    Method.LINK: "without the link {link}",
}
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
    done = DONE[result.method].format(link=link(result))
    done = done.replace("its mean", "their means") if len(result.heads) > 1 else done
    return f"{count} {done}{' in turn' if len(result.heads) > 1 else ''}"


def link(result: Ablation) -> str:
    """`[MASK] → “opened”`: which attention was cut, where one was; positions only of what stands twice."""
    if result.link is None:
        return ""
    query, key = result.link
    if result.link_spans:
        asked, given = result.link_spans
        return (
            f"{settled(spelled(result.query_tokens, asked))} → {settled(spelled(result.key_tokens, given))}"
        )
    return f"{in_sentence(result.query_tokens, query)} → {in_sentence(result.key_tokens, key)}"


def removed(result: Ablation) -> str:
    """What heads the names of heads: `removed`."""
    return _REMOVED[result.method]


def quoted_answer(result: Ablation, longest: int = LONGEST) -> str:
    return quoted(result.answer.text, longest)


def heading(result: Ablation) -> str:
    """The answer above the column of its probabilities."""
    if result.measured is Measured.DIFFERENCE and result.against is not None:
        half = _HEADING // 2
        return f"{quoted_answer(result, half)} over {quoted(result.against.text, half)}"
    if result.answer.asks is Asks.VECTOR:
        return "cosine"
    return "written text" if result.answer.asks is Asks.WRITTEN else quoted_answer(result, _HEADING)


def answer_words(result: Ablation) -> str:
    """`“door” at 5 [MASK]`: what the answer is and where it stands."""
    answer, told = result.answer, quoted_answer(result)
    if answer.asks is Asks.VECTOR:
        return "the text's vector" + (
            "" if result.against is None else f" beside {quoted(result.against.text)}"
        )
    if answer.position is None:
        named = {Asks.WRITTEN: f"the text {told}", Asks.CLASS: f"the class {told}"}
        return named.get(answer.asks, f"the second text {answer.text}")
    where = settled(result.tokens.named(answer.position))
    over = "" if result.against is None else f" over {quoted(result.against.text)}"
    return f"{told}{over} {'after' if answer.asks is Asks.NEXT else 'at'} {where}"


def texts(result: Ablation) -> Iterator[str]:
    """What was read, by the decoder too, and the text that outputs were taken from."""
    both = result.kind is not Kind.ENCODER and result.target is not None
    first = "reads   " if both else "A " if result.other is not None else ""
    sides = (first, result.tokens), ("decoder ", result.target if both else None), ("B ", result.other)
    yield from (
        f"{side}{quoted_tokens(tokens).plain}"
        for side, tokens in sides
        if tokens is not None and tokens.texts
    )


def pair(result: Ablation, effect: Effect) -> str:
    """`8.3 % → 3.2 %`, `11.2 → 5.8 logits`."""
    before, after = (value(result, each) for each in (effect.before, effect.after))
    return f"{before} → {after}{in_unit(result)}"


def value(result: Ablation, number_before: float) -> str:
    """A number of what is measured: a probability, a difference of logits, a cosine."""
    if result.measured is Measured.CHANCE:
        return likely(number_before)
    return number(number_before, 2 if result.measured is Measured.DIFFERENCE else 3)


def in_unit(result: Ablation) -> str:
    """What is behind such a number where it does not say itself what it is."""
    return " logits" if result.measured is Measured.DIFFERENCE else ""


def moved_by(result: Ablation, before: float, change: float) -> float:
    """What is measured after a change of so much."""
    if result.measured is Measured.CHANCE:
        return min(1.0, before * math.exp(change))
    return before + change


def subject(result: Ablation) -> str:
    """`the answer “box”`, `the word “it”` of one that was asked for, `the lead of “it” over “they”`."""
    if result.measured is Measured.DIFFERENCE and result.against is not None:
        return f"the lead of {quoted_answer(result)} over {quoted(result.against.text)}"
    if result.measured is Measured.TURN:
        return "the cosine of the text's vector to what it was"
    if result.measured is Measured.SIMILARITY and result.against is not None:
        return f"the cosine of the text's vector to that of {quoted(result.against.text)}"
    asks = result.answer.asks
    word = "the answer" if result.answer.likeliest else "the word"
    named = {Asks.WRITTEN: "the written text", Asks.CLASS: "the class", Asks.PAIR: "the verdict"}
    return f"{named.get(asks, word)} {quoted_answer(result)}"


def quoted(text: str, longest: int = LONGEST) -> str:
    return f"“{settled(fit(printable(text), longest))}”"


def asked_again(result: Ablation) -> tuple[str, ...]:
    """The options that name the answer, and what it is held against, as they were asked for."""
    mine = () if result.answer.likeliest else ("--answer", word(result.answer.text))
    return mine if result.against is None else (*mine, "--against", word(result.against.text))


def less(result: Ablation) -> str:
    """What a change is in, and what less than nothing means: `nats; − is less likely`."""
    told = {Measured.CHANCE: "less likely", Measured.DIFFERENCE: "a smaller lead"}
    return f"{result.unit}; − is {told.get(result.measured, 'further away')}"


def moved_words(result: Ablation) -> str:
    """What the divergence is of all that might have been answered; of a vector how far it turned."""
    if result.answer.asks is Asks.VECTOR:
        return "how far the vector turned: 1 less its cosine to what it was"
    return "how far all possible answers moved, in nats: Kullback-Leibler divergence"


def changes(result: Ablation) -> str:
    """What a change is of, and in what: `change of the log probability, nats`."""
    unit = result.unit.removeprefix("of ")
    return (
        f"change of the {result.measured}, {unit}" if unit == "nats" else f"change of the {result.measured}"
    )


def group_words(result: Ablation, group: Group) -> str:
    """`L3 H7 and L3 H11`, `all 12 heads of layer 3`, `these 5 heads`."""
    layers = {layer for layer, _ in group.heads}
    if group.of_layers and len(layers) == 1:
        return f"all {len(group.heads)} heads of layer {layers.pop()}"
    if len(group.heads) > _NAMED:
        return f"these {len(group.heads)} heads"
    named = [name(*each) for each in group.heads]
    return f"{', '.join(named[:-1])} and {named[-1]}"


def control(result: Ablation) -> str:
    """What the heads are held against, and what stands in the place of what was taken away."""
    floor, instead = result.floor, _INSTEAD[result.method]
    if floor.random:
        layers = sorted({each.layer for each in floor.random})
        where = f"layer {layers[0]}" if len(layers) == 1 else "these layers"
        return f"{counted(len(floor.random), 'other head')} of {where}, each taken away alone; {instead}"
    if any(each.controls for each in result.heads):
        return f"the other heads of the same layer, each taken away alone; {instead}"
    return f"none, the layer has no other head; {instead}"


def legend(result: Ablation) -> Iterator[str]:
    """What stood in the place of outputs, the rules behind the words of the answer, what rounding does."""
    if result.method is not Method.ZERO:  # of which the line of controls says all
        yield result.how
    if result.answer.asks is Asks.VECTOR:
        yield "the text's vector: the mean of the last vectors of its tokens; cosine 1 is the same direction"
    group, little = result.group if result.case is Case.TOGETHER else None, result.measured.little
    if result.case is Case.LITTLE or (group is not None and abs(group.effect.change) < little):
        yield f"hardly, or not by much: by less than {number(little)} {result.unit}"
    elif result.case is Case.FLAT:
        yield (
            f"to matter more than the rest a head moves it {MUCH:.0f} x as much as the typical head of its "
            f"layer, or {AHEAD:.0f} x as much as the next two"
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
    count, changed = done.read_back + done.lost + done.unseen, _changed(result)
    if done.lost:
        return f"{told}{done.lost} of {count} {changed} did not come as asked for to the next operation"
    if done.unseen:
        heads = "its heads' outputs"
        return (
            f"{told}of {count} {changed} {done.unseen} cannot be read back, since the model makes something "
            f"else of {'what is handed on' if result.places else heads} first"
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
    near = result.method is Method.LINK or result.part in (Part.MLP, Part.POSITION)
    how = "within rounding" if near else "bit for bit"
    return f"{done.read_back} of {count} {_changed(result)} read back at the next operation, {how}"


def _changed(result: Ablation) -> str:
    """What was changed, batch by batch."""
    named = {Part.MLP: "MLPs", Part.RESIDUAL: "layers", Part.POSITION: "vectors of positions"}
    return f"changed {named.get(result.part, 'attentions')}"


def at_once(group: Group) -> str:
    return "both at once" if len(group.heads) == 2 else f"all {len(group.heads)} at once"


def most(result: Ablation) -> Place:
    """Layer and head of the one that mattered most."""
    return result.heads[0].layer, result.heads[0].head


def rank(beside: HeadEffect | PlaceEffect | Group, of_group: bool) -> str:
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
    extent = max((abs(each.change) for each in result.heads or result.places), default=0.0)
    return 3 if extent >= LITTLE else 4 if extent >= LITTLE / 10 else 5
