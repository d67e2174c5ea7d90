"""The words of an ablation: what was done to which answer, what became of it, and beside what."""

from collections.abc import Iterator

from attnscope.printable import printable
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import chance, counted, give_or_take, number, percent, signed, significant
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.kit.words.header import quoted
from attnscope.render.sheet.said import Place, name
from attnscope.results import Ablation, Kind
from attnscope.results.claims.ablation import Asks, Effect, Group, Method

_SMALL = 0.1  # nats: smaller differences need more decimals
_LONGEST = 60  # cells of an answer
_DONE = {
    Method.ZERO: "taken away",
    Method.MEAN: "replaced by their means",
    Method.TEXT: "patched from the other text",
    Method.EDGE: "without the edge {edge}",
}
_WITHOUT = {
    Method.ZERO: "Without {}",
    Method.MEAN: "With {} replaced by its mean",
    Method.TEXT: "With {} patched from the other text",
    Method.EDGE: "With the edge {edge} of {} cut",
}


def done_words(result: Ablation) -> str:
    """`48 heads taken away in turn`."""
    count = counted(len(result.heads), "head")
    if result.estimates:
        count = f"the first {len(result.heads)} of {counted(len(result.estimates), 'head')}"
    done = _DONE[result.method].format(edge=_edge(result))
    return f"{count} {done}{' in turn' if len(result.heads) > 1 else ''}"


def _edge(result: Ablation) -> str:
    """`5 [MASK] → 8 opened`: which attention was cut, where one was."""
    if result.edge is None:
        return ""
    query, key = result.edge
    return f"{settled(result.query_tokens.named(query))} → {settled(result.key_tokens.named(key))}"


def answer_words(result: Ablation) -> str:
    """`“door” at 5 [MASK]`: what the answer is and where it stands."""
    answer = result.answer
    told = f"“{settled(fit(printable(answer.text), _LONGEST))}”"
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


def answer(result: Ablation) -> str:
    """What was done, what became of the answer, and beside what."""
    told = []
    if result.heads:
        best = result.heads[0]
        head = name(best.layer, best.head)
        change = signed(best.difference, max(decimals(result) - 1, 2))
        told.append(
            f"{_WITHOUT[result.method].format(head, edge=_edge(result))} the probability of "
            f"{answer_words(result)} goes from {chance(best.before)} to {chance(best.after)} ({change} nats)"
        )
        if best.others and best.chance is not None:
            others = give_or_take(best.chance, decimals(result))
            told.append(
                f"other heads of its layer make {others}, {best.beaten} of {best.others} less than it"
            )
    if result.group is not None:
        told.append(_group(result.group))
    if result.total is not None and result.other is not None:
        told.append(_total(result, result.total))
    return f"{'; '.join(told)}." if told else ""


def _group(group: Group) -> str:
    effect = group.effect
    goes = f"{chance(effect.before)} to {chance(effect.after)}"
    told = f"with {at_once(group)} it goes from {goes} ({signed(effect.difference)} nats"
    told += f", KL {number(effect.kl, 3)})"
    if group.chance is None:
        return f"{told}, and there is no other group of as many heads to hold it against"
    of = f"{counted(group.others, 'other group')} of as many heads in the same layers"
    if group.of_layers:
        several = len({layer for layer, _ in group.heads}) > 1
        whole = f"{counted(group.others, 'other layer')}, each whole,"
        of = f"{counted(group.others, 'group')} of as many other whole layers" if several else whole
    return f"{told}, where {of} make {give_or_take(group.chance, 3)}, {group.beaten} of them less"


def _total(result: Ablation, total: Effect) -> str:
    """How probable the answer is in the other text."""
    told = f"in the other text it is {chance(total.after)} ({signed(total.difference)} nats)"
    part = share(result, result.heads[0]) if result.heads else None
    if part is None:
        return f"{told}, too little to speak of shares" if result.heads else told
    return f"{told}, and {name(*most(result))} alone makes {percent(part)} of it"


def control(result: Ablation) -> str:
    """What the heads are held against."""
    floor = result.floor
    if floor.random:
        count = counted(len(floor.random), "head")
        drawn = f"{count} of the same layers that are not in the list, drawn with seed {floor.seed}"
        return f"{drawn}, each alone"
    if any(each.others for each in result.heads):
        return "all other heads of the same layer, each alone"
    return "none, the layer has no other head that this one could be held against"


def notes(result: Ablation) -> Iterator[str]:
    """What rounding does, how far what was foretold is right."""
    floor = result.floor
    alike = f"in {counted(floor.runs, 'batch')} of other size, or " if floor.runs else ""
    moves = f"at most {significant(floor.rounding)}" if floor.rounding else "nothing at all"
    yield f"rounding: {alike}with every output of a layer moved by its precision, the answer moves by {moves}"
    if result.estimates and result.rank_correlation is None:
        yield "estimates: too few heads to compare their order with what happened"
    elif result.estimates and result.rank_correlation is not None:
        rho = number(result.rank_correlation)
        of = f"over these {len(result.heads)} heads"
        yield f"estimates: rank correlation with what happened, {of}: {rho}"


def proof_words(result: Ablation) -> str:
    """What was read back of what was done."""
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
    how = "within rounding" if result.method is Method.EDGE else "bit for bit"
    return f"{told}{count} of {count} changed attentions read back at the next operation, {how}"


def at_once(group: Group) -> str:
    return "both at once" if len(group.heads) == 2 else f"all {len(group.heads)} at once"


def most(result: Ablation) -> Place:
    """Layer and head of the one that mattered most."""
    return result.heads[0].layer, result.heads[0].head


def share(result: Ablation, one: Effect) -> float | None:
    """Which part of the way to the other text one effect goes; None where there is no way to speak of."""
    if result.total is None or abs(result.total.difference) < 10 * max(result.floor.rounding, 1e-6):
        return None
    return one.difference / result.total.difference


def decimals(result: Ablation) -> int:
    """So many that the largest difference has two digits that say something."""
    extent = max((abs(each.difference) for each in result.heads), default=0.0)
    return 3 if extent >= _SMALL else 4 if extent >= _SMALL / 10 else 5
