"""The small words around the answer of an ablation: names, columns, control, legend, what is proved."""

from collections.abc import Iterator

from attnscope.printable import printable
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import cell, counted, likely, significant
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.kit.words.header import quoted
from attnscope.render.sheet.said import Place, in_sentence, name
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
from attnscope.spans import spelled

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


def texts(result: Ablation) -> Iterator[str]:
    """What was read, by the decoder too, and the text that outputs were taken from."""
    both = result.kind is not Kind.ENCODER and result.target is not None
    first = "reads   " if both else "A " if result.other is not None else ""
    sides = (first, result.tokens), ("decoder ", result.target if both else None), ("B ", result.other)
    yield from (
        f"{side}{quoted(tokens).plain}" for side, tokens in sides if tokens is not None and tokens.texts
    )


def pair(effect: Effect) -> str:
    """`8.3 % → 3.2 %`."""
    return f"{likely(effect.before)} → {likely(effect.after)}"


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
    group = result.group if result.case is Case.TOGETHER else None
    if result.case is Case.LITTLE or (group is not None and abs(group.effect.change) < LITTLE):
        yield f"hardly, or not by much: by less than {cell(LITTLE, 1)} nats"
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
