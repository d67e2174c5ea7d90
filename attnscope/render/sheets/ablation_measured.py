"""What of the answer an ablation measures, in words, and the path that the change was let along."""

import math
from collections.abc import Iterable, Sequence

from attnscope.errors import listed
from attnscope.printable import printable
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import counted, likely, number, percent, signed
from attnscope.render.sheet.said import Place, name
from attnscope.results import Ablation
from attnscope.results.claims.ablation import Case
from attnscope.results.claims.effect import Asks, Effect
from attnscope.results.claims.intervention import LITTLE, Measured

LONGEST, _HEADING = 60, 24  # cells of an answer in a sentence, and above a column
_BEYOND = 0.1  # of a gap: what lies further outside of it is no share


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
        named = {
            Asks.WRITTEN: f"the text {told}",
            Asks.CLASS: f"the class {told}",
            Asks.SPAN: f"the span {told}",
        }
        return named.get(answer.asks, f"the second text {answer.text}")
    where = settled(result.tokens.named(answer.position))
    over = "" if result.against is None else f" over {quoted(result.against.text)}"
    return f"{told}{over} {'after' if answer.asks is Asks.NEXT else 'at'} {where}"


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
    word = "the word" if len(result.answer.ids) == 1 else "the text"
    word = "the answer" if result.answer.likeliest else word
    named = {
        Asks.WRITTEN: "the written text",
        Asks.CLASS: "the class",
        Asks.PAIR: "the verdict",
        Asks.TAG: "the tag",
        Asks.SPAN: "the span",
    }
    return f"{named.get(asks, word)} {quoted_answer(result)}"


def quoted(text: str, longest: int = LONGEST) -> str:
    return f"“{settled(fit(printable(text), longest))}”"


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


def decimals(result: Ablation) -> int:
    """So many that the largest difference has two digits that say something."""
    extent = max((abs(each.change) for each in result.heads or result.places), default=0.0)
    return 3 if extent >= LITTLE else 4 if extent >= LITTLE / 10 else 5


def share(result: Ablation, change: float) -> float | None:
    """Which part of the way to the other text a change goes; None where there is no way to speak of."""
    if result.total is None or result.case is not Case.CLOSES:
        return None
    return change / result.total.change


def is_share(part: float | None) -> bool:
    """Whether it is a part of a whole, or nearly: nobody understands -238 % of a gap."""
    return part is not None and -_BEYOND <= part <= 1 + _BEYOND


def told_share(result: Ablation, part: float | None, change: float) -> str:
    """`38 %`, and of what is no part of the gap by how much it moves the answer."""
    if part is None:
        return ""
    return percent(part) if is_share(part) else f"{signed(change)} {result.unit}"


def beyond(result: Ablation, changes: Iterable[float | None]) -> str:
    """Why some are told in nats and not as shares; empty where all are shares."""
    gap = 0.0 if result.total is None else result.total.change
    if all(is_share(share(result, each)) for each in changes if each is not None):
        return ""
    return (
        f"no share: what goes the other way, or beyond the gap of {signed(gap)} {result.unit}, is no part "
        f"of it and is told in {result.unit}"
    )


_NOTHING = 1e-4  # nats or logits, of an answer that something else moves by more
NAMED = 3  # heads of a group that are named one by one
_INPUTS = {"q": "queries", "k": "keys", "v": "values"}


def only(result: Ablation) -> str:
    """`for the keys of L1 H3 only`: what alone reads the change; empty where everything does."""
    path = result.path
    if path is None:
        return ""
    if not path.receivers:
        return "for the answer only, past all later heads"
    groups: dict[str, list[Place]] = {}
    for each in path.receivers:
        groups.setdefault(each.inputs, []).append((each.layer, each.head))
    told = [f"{_read_by(inputs)}{_together(result, heads)}" for inputs, heads in groups.items()]
    told += ["the answer itself"] if path.direct else []
    return f"for {listed_words(told)} only"


def _read_by(inputs: str) -> str:
    named = [_INPUTS[each] for each in inputs]
    return "" if len(named) == len(_INPUTS) else f"the {' and '.join(named)} of "


def _together(result: Ablation, heads: Sequence[Place]) -> str:
    if len(heads) <= NAMED:
        return listed_words([name(*each) for each in heads])
    layers = sorted({layer for layer, _ in heads})
    where = f"layer {layers[0]}" if len(layers) == 1 else f"layers {listed(layers)}"
    return where if _are_whole_layers(result) else f"{len(heads)} heads of {where}"


def _are_whole_layers(result: Ablation) -> bool:
    """Whether all heads of some layers read the change: otherwise others of the same layers were tried."""
    assert result.path is not None, "there is a path"
    heads = [(each.layer, each.head) for each in result.path.receivers]
    mine = {layer for layer, _ in heads}
    same = any({layer for layer, _ in one.heads} == mine for one in result.path.others)
    return not same and len(heads) > len(mine)


def listed_words(told: Sequence[str]) -> str:
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"


def via(result: Ablation) -> str:
    """`L1H3.k,L2H0,direct`, `L1.k`: the same way as an option."""
    path = result.path
    assert path is not None, "there is a path"
    whole = _are_whole_layers(result)
    told = [
        f"L{each.layer}{'' if whole else f'H{each.head}'}"
        + ("" if len(each.inputs) == len(_INPUTS) else f".{each.inputs}")
        for each in path.receivers
    ]
    return ",".join(dict.fromkeys([*told, "direct"] if path.direct else told))


def receivers(result: Ablation) -> str:
    """`11 other heads of layer 1`: what else reads the change that moves the answer most, one by one."""
    path = result.path
    if path is None or not path.others:
        return ""
    count, size = len(path.others), len(path.others[0].heads)
    layers = sorted({layer for one in path.others for layer, _ in one.heads})
    mine = sorted({each.layer for each in path.receivers})
    if layers != mine:
        return (
            f"{counted(count, 'other set')} of whole layers"
            if len(mine) > 1
            else counted(count, "other layer")
        )
    where = f"layer {layers[0]}" if len(layers) == 1 else "the same layers"
    return (
        f"{counted(count, 'other head')} of {where}"
        if size == 1
        else f"{count} other groups of heads of {where}"
    )


def other_ways(result: Ablation, called: str) -> str:
    """What the change that moves the answer most, of what is `called` so, does where others read it."""
    if result.path is None or not result.alone or result.moves_most.whole is None:
        return ""
    best, unit = result.moves_most, result.unit
    moves = f"moves it by {signed(best.whole or 0.0)} {unit} instead of {signed(best.change)}"
    told = f" The change of {called} alone, read by everything, {moves}"
    if others := result.path.others:
        most, any_of = max((one.effect.change for one in others), key=abs), "any of " * (len(others) > 1)
        nothing = abs(most) <= max(result.floor.rounding, _NOTHING)
        far = "by next to nothing" if nothing else f"by {signed(most)} at most"
        told += f"; read by {any_of}{receivers(result)} instead, {far}"
    return f"{told}."
